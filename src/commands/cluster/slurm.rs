//! The engine Slurm: scripts of the workers and of the job that collects, their submission, and the wait for their end.
//!
//! One worker runs on each node. Slots of an array are jobs of their own: they start as nodes become free and are put back
//! in the queue one by one, but Slurm packs them, and only `--exclusive` keeps two of them off one node. Where a number of
//! CPUs is asked for, nodes are shared with other jobs; then one job with a task on each node holds all of them.

use super::AGAIN;
use super::submit::{EngineError, Marks, WorkerOrder, ending, shell};
use crate::show::output;
use hakobu_cluster::submitted::Submission;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

/// Slots of one array: `MaxArraySize` is 1001 by default.
const SLOTS_MAX: u64 = 1_000;
/// Maximum number of restarts of a worker in its slot, and of requeues of a slot.
const TRIES_MAX: u32 = 16;
/// Seconds before the time limit at which a worker gives its shard back.
const WARNING_S: u32 = 60;

/// Form of the jobs that workers run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// An array whose slots have a node each.
    Array,
    /// One job with a task on each node, whose other CPUs are left to others.
    Tasks,
}

impl Form {
    /// The form for options of sbatch.
    fn of(options: &[OsString]) -> Form {
        let asks_cpus = |word: &OsString| {
            let word = word.as_bytes();
            // getopt_long(3) takes beginnings of names.
            word.starts_with(b"--cpus-per-t") || (word.starts_with(b"-c") && word != b"-")
        };
        if options.iter().any(asks_cpus) { Form::Tasks } else { Form::Array }
    }

    /// Workers of each job.
    fn jobs(self, workers: u64) -> Vec<u64> {
        match self {
            Form::Tasks => vec![workers],
            Form::Array => {
                let whole = (0..workers / SLOTS_MAX).map(|_| SLOTS_MAX);
                whole.chain(Some(workers % SLOTS_MAX).filter(|rest| *rest > 0)).collect()
            }
        }
    }

    /// Lines of the script that ask for nodes.
    fn directives(self, workers: u64) -> String {
        match self {
            Form::Array => format!(
                "#SBATCH --array=0-{}\n\
                 #SBATCH --nodes=1\n\
                 #SBATCH --ntasks=1\n\
                 #SBATCH --exclusive\n",
                workers.saturating_sub(1)
            ),
            // The other nodes go on when one of them fails.
            Form::Tasks => format!(
                "#SBATCH --nodes={workers}\n\
                 #SBATCH --ntasks-per-node=1\n\
                 #SBATCH --no-kill\n"
            ),
        }
    }

    /// The command that runs the workers of a job.
    fn launch(self, work: &str) -> String {
        match self {
            Form::Array => work.to_owned(),
            // Since Slurm 22.05, srun does not take over --cpus-per-task of the job.
            Form::Tasks => format!(
                "srun --no-kill --kill-on-bad-exit=0 --wait=0 \
                 ${{SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}} {work}"
            ),
        }
    }

    /// The body of the shell function that passes SIGTERM on to the workers.
    fn stop(self) -> &'static str {
        match self {
            Form::Array => "kill -TERM $worker 2>/dev/null",
            // srun answers SIGTERM by killing its tasks; a signal to the step reaches them as it is. Before srun has
            // made the step there is none to signal.
            Form::Tasks => {
                "while kill -0 $worker 2>/dev/null; do\n    \
                 case $(squeue --noheader --steps --jobs=\"$SLURM_JOB_ID\" --format=%i) in\n      \
                 *.[0-9]*) scancel --signal=TERM \"$SLURM_JOB_ID\"; return ;;\n    \
                 esac\n    \
                 sleep 1\n  \
                 done"
            }
        }
    }
}

/// The script of one slot, or of all tasks. A worker that asks for another try gets it here. Slurm requeues a job whose
/// node failed, but not one whose script ended early: one that was warned of its time limit, or preempted, is put back
/// in the queue by itself.
fn work_script(order: &WorkerOrder, form: Form, workers: u64) -> String {
    let directives = form.directives(workers);
    let (launch, stop) = (form.launch(&shell(&order.work())), form.stop());
    format!(
        r#"#!/bin/bash
#SBATCH --job-name=hakobu-work
{directives}#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@{WARNING_S}
stopped= tries=0 code={AGAIN}
stop() {{
  {stop}
}}
trap 'stopped=1; [ -z "$worker" ] || stop' TERM
while [ -z "$stopped" ]; do
  {launch} &
  worker=$!
  # Warned before there was a worker to pass it on to.
  [ -z "$stopped" ] || stop
  wait $worker; code=$?
  while kill -0 $worker 2>/dev/null; do wait $worker; code=$?; done
  worker=
  [ $code -eq {AGAIN} ] && [ -z "$stopped" ] && [ $tries -lt {TRIES_MAX} ] || break
  tries=$((tries + 1))
  sleep 10 &
  wait $!
done
# A worker that the warning met before it handled it (128 + 15) had no shard yet.
[ -z "$stopped" ] || [ $code -ne 143 ] || code={AGAIN}
if [ $code -eq {AGAIN} ] && [ -n "$stopped" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {TRIES_MAX} ] &&
    [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $code
"#
    )
}

/// The script that collects.
fn collect_script(order: &WorkerOrder) -> String {
    let collect = shell(&order.collect());
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=hakobu-collect\n\
         #SBATCH --nodes=1\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --requeue\n\
         exec {collect}\n"
    )
}

/// The submission of an order's workers; without jobs before sbatch has named them.
fn submission(order: &WorkerOrder, jobs: &[String]) -> Submission {
    let jobs = jobs.join(",");
    let (engine, look) = match jobs.is_empty() {
        true => ("Slurm".to_owned(), "squeue --me".to_owned()),
        false => {
            let here = std::env::current_dir().map(|here| here.display().to_string());
            let look = format!("squeue --jobs={jobs}; slurm-*.out in {}", here.unwrap_or_default());
            (format!("Slurm (job {jobs})"), look)
        }
    };
    Submission { engine, workers: order.nodes, verifies: order.verifies, look }
}

/// Submits the workers of each order, and after them a job that collects, however they ended. Each depends on the one
/// before.
///
/// # Errors
/// sbatch is not there, or refuses.
pub fn submit(orders: &[WorkerOrder], marks: &Marks<'_>) -> Result<(), EngineError> {
    let mut before: Vec<String> = Vec::new();
    for order in orders {
        let (workers, collect) = match order.verifies {
            true => ("verifying workers", "verdict"),
            false => ("workers", "collect"),
        };
        let after = dependency(&before);
        let mut jobs = Vec::new();
        marks.around(submission(order, &[]), |known| {
            let submitted = submit_workers(order, after.as_deref(), workers, marks, &mut jobs);
            if !jobs.is_empty() && !marks.is_dry() {
                *known = submission(order, &jobs);
            }
            submitted
        })?;
        let script = collect_script(order);
        let job = submit_script(order, dependency(&jobs).as_deref(), &script, collect, marks);
        before = vec![job.map_err(|error| EngineError { started: true, ..error })?];
    }
    Ok(())
}

fn dependency(jobs: &[String]) -> Option<String> {
    (!jobs.is_empty()).then(|| format!("--dependency=afterany:{}", jobs.join(":")))
}

/// Submits the workers of an order; their jobs are added to `jobs`, also where the next one is refused.
fn submit_workers(
    order: &WorkerOrder,
    after: Option<&str>,
    what: &str,
    marks: &Marks<'_>,
    jobs: &mut Vec<String>,
) -> Result<(), EngineError> {
    let form = Form::of(&order.rest);
    for workers in form.jobs(order.nodes) {
        let script = work_script(order, form, workers);
        let job = submit_script(order, after, &script, what, marks);
        jobs.push(job.map_err(|error| EngineError { started: !jobs.is_empty(), ..error })?);
    }
    Ok(())
}

/// Submits one script, or in a dry run prints it; returns the number of its job.
fn submit_script(
    order: &WorkerOrder,
    after: Option<&str>,
    script: &str,
    what: &str,
    marks: &Marks<'_>,
) -> Result<String, EngineError> {
    if marks.is_dry() {
        let mut words: Vec<OsString> = vec!["sbatch".into(), "--parsable".into()];
        words.extend(after.map(OsString::from));
        words.extend(order.rest.iter().cloned());
        output::text(&format!("# {}\n{script}\n", shell(&words)));
        return Ok(format!("JOB-OF-{}", what.to_uppercase().replace(' ', "-")));
    }
    let job = sbatch(order, after, script).map_err(EngineError::not_started)?;
    output::message(&format!("submitted {what} as job {job}"));
    Ok(job)
}

/// Submits the workers and waits for their end. Workers that failed are not a failure here: what they left is collected.
///
/// # Errors
/// sbatch is not there, or refuses.
pub fn run(order: &WorkerOrder, marks: &Marks<'_>) -> Result<(), EngineError> {
    let mut jobs = Vec::new();
    let submitted = marks.around(submission(order, &[]), |known| {
        let submitted = submit_workers(order, None, "workers", marks, &mut jobs);
        if !jobs.is_empty() {
            *known = submission(order, &jobs);
        }
        submitted
    });
    if !jobs.is_empty() {
        wait(&jobs.join(",")).map_err(EngineError::after_start)?;
    }
    submitted
}

/// Waits until Slurm knows none of these jobs any more.
fn wait(jobs: &str) -> Result<(), String> {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let asked = Command::new("squeue").args(["--noheader", "--jobs", jobs]).output();
        match asked {
            // A job that is over is unknown after some minutes.
            Ok(answer) if answer.stdout.trim_ascii().is_empty() => {
                let text = String::from_utf8_lossy(&answer.stderr).into_owned();
                if answer.status.success() || text.contains("Invalid job id") {
                    return Ok(());
                }
            }
            Ok(_) => {}
            Err(error) => return Err(format!("cannot run squeue: {error}")),
        }
    }
}

fn sbatch(order: &WorkerOrder, after: Option<&str>, script: &str) -> Result<String, String> {
    let mut command = Command::new("sbatch");
    command.arg("--parsable").args(&order.rest).args(after);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let started = command.spawn();
    let mut child =
        started.map_err(|error| format!("cannot run sbatch: {error}\nhint: install Slurm"))?;
    let fed = child.stdin.take().map(|mut stdin| stdin.write_all(script.as_bytes()));
    let ended = child.wait_with_output().map_err(|error| format!("cannot run sbatch: {error}"))?;
    if !ended.status.success() {
        return Err(format!("sbatch failed: {}", ending(ended.status)));
    }
    if let Some(Err(error)) = fed {
        return Err(format!("cannot give sbatch its script: {error}"));
    }
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let number = text.trim().split(';').next().unwrap_or_default().to_owned();
    match !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(number),
        false => Err(format!("sbatch gave no job number: {}", text.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_shared_where_a_number_of_cpus_is_asked_for() {
        let form =
            |line: &str| Form::of(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        for line in ["--cpus-per-task=4", "--partition=p --cpus-per-task 4", "-c4", "-c 4"] {
            assert_eq!(form(line), Form::Tasks, "{line}");
        }
        for line in ["", "--partition=copy", "--cpus-per-gpu=2", "--comment=-c", "-C fast"] {
            assert_eq!(form(line), Form::Array, "{line}");
        }
    }

    #[test]
    fn arrays_have_a_thousand_slots_at_most() {
        for (workers, jobs) in
            [(1, vec![1]), (1000, vec![1000]), (1001, vec![1000, 1]), (2500, vec![1000, 1000, 500])]
        {
            assert_eq!(Form::Array.jobs(workers), jobs);
            assert_eq!(Form::Tasks.jobs(workers), [workers]);
        }
    }
}
