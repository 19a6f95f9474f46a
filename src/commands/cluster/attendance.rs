//! Whether `collect` may begin: it does not do the work of workers that were submitted, and none of which came, without
//! being asked to.

use super::{AGAIN, report_error};
use crate::commands::tool::end_with;
use crate::number::things;
use crate::show::output;
use hakobu_cluster::folder::{RunError, RunFolder};
use hakobu_cluster::heartbeat::{self, Heartbeat};
use hakobu_cluster::plan::COLLECTED;
use hakobu_cluster::submitted::{self, Attendance, Submission, attendance, causes};

/// Workers that are named for one cause.
const NAMED_MAX: usize = 3;

/// Checks that a worker opened the run, or that none was ever asked to; the error is an exit code, with its message
/// already told. `alone`: the user wants everything to be transferred here in any case.
pub fn check(folder: &dyn RunFolder, has_work: bool, alone: bool, quiet: bool) -> Result<(), u8> {
    let read = || {
        let is_collected = folder.read(COLLECTED)?.is_some();
        let (submissions, workers) = (submitted::read_all(folder)?, heartbeat::read_all(folder)?);
        Ok::<_, RunError>((has_work && !is_collected, submissions, workers))
    };
    let (has_work, submissions, workers) = read().map_err(report_error)?;
    match attendance(has_work, &submissions, &workers) {
        Attendance::NoneStarted if !quiet => {
            output::message("no worker was started: collect transfers everything by itself");
        }
        Attendance::NoneOpened if !alone => {
            return Err(end_with(AGAIN, &none_opened(&submissions, &workers)));
        }
        _ => {}
    }
    Ok(())
}

/// Tells that workers were asked to come and that none did, why as far as they left word, and where to look.
fn none_opened(submissions: &[Submission], workers: &[Heartbeat]) -> String {
    let submissions: Vec<&Submission> =
        submissions.iter().filter(|submission| !submission.verifies).collect();
    let by = |submission: &&Submission| {
        format!("{} by {}", things(submission.workers, "worker"), submission.engine)
    };
    let mut text = match submissions.is_empty() {
        true => "workers were started".to_owned(),
        false => {
            format!("submitted: {}", submissions.iter().map(by).collect::<Vec<_>>().join(", "))
        }
    };
    text.push_str("; none of them opened the run, and nothing was transferred");
    let causes = causes(workers);
    for (why, who) in &causes {
        let more = match who.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = who.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let why = why.replace('\n', "; ");
        text.push_str(&format!("\nworkers: {why} ({named}{more})"));
    }
    if causes.is_empty() {
        text.push_str("\nworkers: none left a word in the run folder");
    }
    for submission in submissions.iter().filter(|submission| !submission.look.is_empty()) {
        text.push_str(&format!("\nlook at: {}", submission.look));
    }
    text.push_str(
        "\nhint: start workers again, or transfer everything from here: collect --alone RUN",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_places_are_named() {
        let submissions = [
            Submission {
                engine: "Slurm (job 12)".to_owned(),
                workers: 5,
                verifies: false,
                look: "squeue --jobs=12".to_owned(),
            },
            Submission { verifies: true, ..Submission::default() },
        ];
        assert_eq!(
            none_opened(&submissions, &[]),
            "submitted: 5 workers by Slurm (job 12); none of them opened the run, and nothing was transferred\n\
             workers: none left a word in the run folder\n\
             look at: squeue --jobs=12\n\
             hint: start workers again, or transfer everything from here: collect --alone RUN"
        );
        let worker = |host: &str| Heartbeat {
            host: host.to_owned(),
            pid: 7,
            unopened: true,
            message: Some("cannot use 'x'\nhint: y".to_owned()),
            ..Heartbeat::default()
        };
        let workers = ["a", "b", "c", "d"].map(worker);
        let text = none_opened(&[], &workers);
        assert!(text.starts_with("workers were started; none of them opened the run"), "{text}");
        let cause = "\nworkers: cannot use 'x'; hint: y (a pid 7, b pid 7, c pid 7 and 1 more)\n";
        assert!(text.contains(cause), "{text}");
    }
}
