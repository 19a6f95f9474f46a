//! Who was asked to work on a run, and whether anyone came: marks of workers that were submitted, records of workers that
//! could not open the run, and the decision whether `collect` may do everything by itself.
//!
//! A run whose workers all failed to start looks like one for which none was ever started. Without the marks, one machine
//! would do the whole transfer and report success.

use crate::folder::{self, RunError, RunFolder};
use crate::heartbeat::{self, Heartbeat, WorkerState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Folder of the marks.
const SUBMITTED: &str = "submitted";
/// Maximum number of characters of a job's name: it comes from the environment.
const JOB_CHARS_MAX: usize = 128;
/// Beginning of the message of a worker that reached none of its ends in S3.
pub(crate) const NO_REQUEST: &str = "no request to S3 succeeded";

/// Beginning of the message of a worker that could not list a range at all.
pub(crate) const NOT_LISTED: &str = "cannot list range";

/// Workers that were handed over to an engine together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The engine, for a reader.
    pub engine: String,
    /// Number of workers.
    pub workers: u64,
    /// They verify the run.
    pub verifies: bool,
    /// A command that shows what became of them.
    pub look: String,
}

/// The mark of a submission in the run folder.
pub struct SubmissionMark {
    name: String,
}

impl SubmissionMark {
    /// Leaves a mark. It comes before the workers: a process that is killed in between has submitted none, or all is
    /// known.
    ///
    /// # Errors
    /// The folder's.
    pub fn make(
        folder: &dyn RunFolder,
        submission: &Submission,
    ) -> Result<SubmissionMark, RunError> {
        let name = format!("{SUBMITTED}/{}.json", folder::random_name()?);
        let mark = SubmissionMark { name };
        mark.update(folder, submission)?;
        Ok(mark)
    }

    /// Replaces what the mark says, when the engine has named the job.
    ///
    /// # Errors
    /// The folder's.
    pub fn update(&self, folder: &dyn RunFolder, submission: &Submission) -> Result<(), RunError> {
        folder.replace(&self.name, &folder::json(submission)?)
    }

    /// Removes the mark of workers that the engine did not take.
    ///
    /// # Errors
    /// The folder's.
    pub fn remove(self, folder: &dyn RunFolder) -> Result<(), RunError> {
        folder.remove(&self.name)
    }
}

/// Reads all marks, in the order of their engines.
///
/// # Errors
/// The folder's.
pub fn read_all(folder: &dyn RunFolder) -> Result<Vec<Submission>, RunError> {
    let mut all: Vec<Submission> = Vec::new();
    for name in folder.names(SUBMITTED)?.into_iter().filter(|name| folder::is_inside(name)) {
        all.extend(folder::parsed::<Submission>(folder, &format!("{SUBMITTED}/{name}"))?);
    }
    all.sort_by(|a, b| (&a.engine, &a.look).cmp(&(&b.engine, &b.look)));
    Ok(all)
}

/// The job that this process belongs to, as its engine calls it; `None` where no engine started it.
pub fn job() -> Option<String> {
    job_of(|name| std::env::var(name).ok())
}

/// The same, by an environment. `HAKOBU_JOB` is what an engine that has no variables of its own sets.
fn job_of(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let get = |name| variable(name).filter(|text| !text.is_empty());
    let task = || get("SLURM_PROCID").filter(|_| get("SLURM_STEP_ID").is_some());
    let named = match (get("HAKOBU_JOB"), get("SLURM_ARRAY_JOB_ID"), get("SLURM_JOB_ID")) {
        (Some(job), ..) => job,
        (None, Some(array), _) => {
            format!("Slurm {array}_{}", get("SLURM_ARRAY_TASK_ID").unwrap_or_default())
        }
        (None, None, Some(job)) => {
            let task = task().map(|task| format!(" task {task}"));
            format!("Slurm {job}{}", task.unwrap_or_default())
        }
        (None, None, None) => {
            let index = get("JOB_COMPLETION_INDEX")?;
            let pod = get("HAKOBU_POD").or_else(|| get("HOSTNAME")).unwrap_or_default();
            format!("Kubernetes {pod} index {index}")
        }
    };
    Some(named.chars().filter(|c| !c.is_control()).take(JOB_CHARS_MAX).collect())
}

/// What every heartbeat of this process says of it.
pub fn this_process() -> Heartbeat {
    Heartbeat { pid: std::process::id(), job: job(), ..Heartbeat::default() }
}

/// Leaves a record of a worker that ends because it cannot open the plan, or one of the ends.
///
/// # Errors
/// The folder's.
pub fn record_unopened(
    folder: &dyn RunFolder,
    why: &RunError,
    stale: Duration,
    verifies: bool,
) -> Result<(), RunError> {
    let beat = Heartbeat {
        state: WorkerState::Ended,
        verifies,
        unopened: true,
        message: Some(why.message.clone()),
        ..Heartbeat::first(stale)?
    };
    heartbeat::write(folder, &beat)
}

/// Who came to work on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attendance {
    /// A worker opened the run and both ends, or there is no work.
    Came,
    /// No worker was submitted or started.
    NoneStarted,
    /// Workers were submitted or started, and none of them opened the run and both ends.
    NoneOpened,
}

/// Returns who came to the transfer of a run. `has_work`: there is something to transfer, and no collect has begun yet.
pub fn attendance(has_work: bool, submissions: &[Submission], workers: &[Heartbeat]) -> Attendance {
    let transfers = |worker: &&Heartbeat| !worker.verifies && !worker.collects;
    let mut workers = workers.iter().filter(transfers).peekable();
    let is_asked = submissions.iter().any(|submission| !submission.verifies);
    match (has_work, workers.peek().is_some() || is_asked) {
        (false, _) => Attendance::Came,
        (true, false) => Attendance::NoneStarted,
        (true, true) if workers.any(|worker| !is_unopened(worker)) => Attendance::Came,
        (true, true) => Attendance::NoneOpened,
    }
}

/// Returns whether a worker ended before it had reached the plan and both ends.
fn is_unopened(worker: &Heartbeat) -> bool {
    let reached_none = |why: &String| why.starts_with(NO_REQUEST) || why.starts_with(NOT_LISTED);
    let done = worker.shards + worker.ranges;
    worker.unopened || (done == 0 && worker.message.as_ref().is_some_and(reached_none))
}

/// Reasons of workers that could not open a run: each with the workers that gave it, as host, process and job.
pub fn causes(workers: &[Heartbeat]) -> BTreeMap<&str, Vec<String>> {
    let mut causes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for worker in workers.iter().filter(|worker| !worker.verifies && is_unopened(worker)) {
        let job = worker.job.as_ref().map(|job| format!(" {job}")).unwrap_or_default();
        let who = format!("{} pid {}{job}", worker.host, worker.pid);
        causes.entry(worker.message.as_deref().unwrap_or("no reason given")).or_default().push(who);
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(unopened: bool, message: Option<&str>) -> Heartbeat {
        Heartbeat { unopened, message: message.map(str::to_owned), ..Heartbeat::default() }
    }

    #[test]
    fn a_run_that_nobody_opened_is_told_from_one_without_workers() {
        let submitted = [Submission { workers: 3, ..Submission::default() }];
        let verifying = [Submission { verifies: true, ..Submission::default() }];
        let verifier = Heartbeat { verifies: true, ..Heartbeat::default() };
        let ended = || worker(true, Some("cannot use the plan"));
        let away = || worker(false, Some("no request to S3 succeeded (x): the rest was returned"));
        let mut some_shards = away();
        some_shards.shards = 1;
        use Attendance::{Came, NoneOpened, NoneStarted};
        for (has_work, submissions, workers, expected) in [
            (true, &[][..], vec![], NoneStarted),
            (true, &verifying[..], vec![], NoneStarted),
            (true, &[][..], vec![verifier.clone()], NoneStarted),
            (true, &submitted[..], vec![], NoneOpened),
            (true, &submitted[..], vec![ended(), ended()], NoneOpened),
            (true, &submitted[..], vec![ended(), away()], NoneOpened),
            // Started by hand.
            (true, &[][..], vec![ended()], NoneOpened),
            (true, &submitted[..], vec![verifier], NoneOpened),
            (true, &submitted[..], vec![ended(), worker(false, None)], Came),
            // It was killed, or interrupted before its first shard was done.
            (true, &submitted[..], vec![worker(false, Some("interrupted: x"))], Came),
            (true, &submitted[..], vec![some_shards], Came),
            (true, &[][..], vec![worker(false, None)], Came),
            (false, &submitted[..], vec![ended()], Came),
            (false, &[][..], vec![], Came),
        ] {
            let found = attendance(has_work, submissions, &workers);
            assert_eq!(found, expected, "{has_work} {submissions:?} {workers:?}");
        }
    }

    #[test]
    fn jobs_have_the_names_of_their_engines() {
        let job = |line: &str| {
            job_of(|name| {
                let mut pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
                pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
            })
        };
        for (environment, expected) in [
            ("", None),
            ("HOSTNAME=h SLURM_JOB_ID=", None),
            ("SLURM_ARRAY_JOB_ID=12 SLURM_ARRAY_TASK_ID=3 SLURM_JOB_ID=15", Some("Slurm 12_3")),
            ("SLURM_JOB_ID=15 SLURM_PROCID=0", Some("Slurm 15")),
            ("SLURM_JOB_ID=15 SLURM_PROCID=2 SLURM_STEP_ID=0", Some("Slurm 15 task 2")),
            ("JOB_COMPLETION_INDEX=4 HOSTNAME=p-4", Some("Kubernetes p-4 index 4")),
            (
                "JOB_COMPLETION_INDEX=4 HAKOBU_POD=p-4-x HOSTNAME=p",
                Some("Kubernetes p-4-x index 4"),
            ),
            ("HAKOBU_JOB=Ray/1 SLURM_JOB_ID=15", Some("Ray/1")),
        ] {
            assert_eq!(job(environment).as_deref(), expected, "{environment}");
        }
        let long = "x".repeat(1000);
        let named = job_of(|name| (name == "HAKOBU_JOB").then(|| format!("a\n{long}"))).unwrap();
        assert!(named.len() == JOB_CHARS_MAX && !named.contains('\n'), "{named}");
    }

    #[test]
    fn workers_with_the_same_reason_are_named_together() {
        let of = |host: &str, why: &str| Heartbeat {
            host: host.to_owned(),
            pid: 7,
            job: Some("Slurm 1_2".to_owned()),
            ..worker(true, Some(why))
        };
        let all = [of("a", "x"), of("b", "y"), of("c", "x"), worker(false, None)];
        let found = causes(&all);
        assert_eq!(found["x"], ["a pid 7 Slurm 1_2", "c pid 7 Slurm 1_2"]);
        assert_eq!(found.len(), 2);
    }
}
