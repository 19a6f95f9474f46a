//! Slurm: an array of slots that run workers, and a job that collects after them.

use super::order::{Order, ending, shell};
use crate::show::output;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Slots of an array: each of them takes shards until none is left.
const SLOTS_MAX: u64 = 1_000;
/// Maximum number of restarts of a worker in its slot, and of requeues of a slot.
const TRIES_MAX: u32 = 16;
/// Seconds before the time limit at which a worker gives its shard back.
const WARNING_S: u32 = 60;

/// The script of one slot. A worker that asks for another try gets it here. Slurm requeues a job whose
/// node failed, but not one whose script ended early: a slot that was warned of its time limit, or
/// preempted, is put back in the queue by itself.
fn work_script(order: &Order) -> String {
    let work = shell(&order.work());
    let slots = order.nodes.min(SLOTS_MAX) - 1;
    format!(
        r#"#!/bin/bash
#SBATCH --job-name=hakobu-work
#SBATCH --array=0-{slots}
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@{WARNING_S}
stopped= tries=0
trap 'stopped=1; kill -TERM $worker 2>/dev/null' TERM
while :; do
  {work} &
  worker=$!
  # Warned before there was a worker to pass it on to.
  [ -z "$stopped" ] || kill -TERM $worker 2>/dev/null
  wait $worker; code=$?
  while kill -0 $worker 2>/dev/null; do wait $worker; code=$?; done
  [ $code -eq 75 ] && [ -z "$stopped" ] && [ $tries -lt {TRIES_MAX} ] || break
  tries=$((tries + 1))
  sleep 10 & worker=$!
  wait $worker
done
# A worker that the warning met before it handled it (128 + 15) had no shard yet.
[ -z "$stopped" ] || [ $code -ne 143 ] || code=75
if [ $code -eq 75 ] && [ -n "$stopped" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {TRIES_MAX} ] &&
    [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" = RUNNING ]; then
  scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $code
"#
    )
}

/// The script that collects.
fn collect_script(order: &Order) -> String {
    let collect = shell(&order.collect());
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name=hakobu-collect\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --requeue\n\
         exec {collect}\n"
    )
}

/// Submits the workers of each order as an array, and after it a job that collects, however the
/// array ended. Each job depends on the one before.
///
/// # Errors
/// sbatch is not there, or refuses.
pub fn submit(orders: &[Order], dry_run: bool) -> Result<(), String> {
    let mut before: Option<String> = None;
    let steps = orders.iter().flat_map(|order| {
        let what =
            if order.verifies { ["verifying workers", "verdict"] } else { ["workers", "collect"] };
        let scripts = [work_script(order), collect_script(order)];
        what.into_iter().zip(scripts).map(move |(what, script)| (order, what, script))
    });
    for (order, what, script) in steps {
        let dependency = before.as_ref().map(|job| format!("--dependency=afterany:{job}"));
        if dry_run {
            let mut words: Vec<OsString> = vec!["sbatch".into(), "--parsable".into()];
            words.extend(dependency.map(OsString::from));
            words.extend(order.rest.iter().cloned());
            let gap = if before.is_some() { "\n" } else { "" };
            output::text(&format!("{gap}# {}\n{script}", shell(&words)));
            before = Some(format!("JOB-OF-{}", what.to_uppercase().replace(' ', "-")));
            continue;
        }
        let more: Vec<&str> = dependency.iter().map(String::as_str).collect();
        let job = sbatch(order, &more, &script)?;
        output::message(&format!("submitted {what} as job {job}"));
        before = Some(job);
    }
    Ok(())
}

/// Submits the array and waits for its end. Workers that failed are not a failure here: what they left
/// is collected.
///
/// # Errors
/// sbatch is not there, or refuses.
pub fn run(order: &Order) -> Result<(), String> {
    let array = sbatch(order, &[], &work_script(order))?;
    output::message(&format!("submitted workers as job {array}"));
    loop {
        std::thread::sleep(std::time::Duration::from_secs(2));
        let asked = Command::new("squeue").args(["--noheader", "--jobs", &array]).output();
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

fn sbatch(order: &Order, more: &[&str], script: &str) -> Result<String, String> {
    use std::io::Write;
    let mut command = Command::new("sbatch");
    command.arg("--parsable").args(&order.rest).args(more);
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
