//! End of `cluster collect`, of a run and of its verification: the report for a reader or a program, and the exit code.

use crate::exit;
use crate::number::things;
use crate::show::{Wanted, output};
use hakobu_cluster::Trouble;
use hakobu_cluster::status::Results;
use hakobu_transfer::journal;
use serde::Serialize;

/// A problem of workers: a sentence without names, how many names have it, and the first one's path.
pub type Problem = (String, u64, String);

/// Problems of all results, in the order of their sentences.
pub fn problems(results: &Results) -> Vec<Problem> {
    let problems = results.problems.iter();
    problems.map(|(what, (count, first))| (what.clone(), *count, first.clone())).collect()
}

/// Tells of problems, each on a line of its own after `who`.
pub fn tell_problems(who: &str, problems: &[Problem]) {
    for (what, count, first) in problems {
        let path = String::from_utf8_lossy(&journal::bytes(first)).into_owned();
        output::message(&format!("{who}: {what}: {} ('{path}')", things(*count, "name")));
    }
}

/// Form of a report.
#[derive(Clone, Copy)]
pub struct Form {
    json: bool,
    quiet: bool,
}

impl Form {
    /// Returns the form that the transfer's options ask for; `json` asks for JSON in any case.
    pub fn of(wanted: &Wanted, json: bool) -> Form {
        Form { json: json || wanted.json, quiet: wanted.quiet }
    }

    /// Shows a report: `tell` does that for a reader. `written`: whether the run folder has it. Returns the exit code, which
    /// is not 0 where the folder lacks the report.
    pub fn end(
        self,
        report: &impl Serialize,
        code: u8,
        written: Result<(), Trouble>,
        tell: impl FnOnce(),
    ) -> u8 {
        if let Err(trouble) = &written {
            output::message(&trouble.message);
        }
        if self.json {
            output::line(report);
        } else if !self.quiet {
            tell();
        }
        match (code, written) {
            (exit::OK, Err(_)) => exit::SYNC_IO,
            (code, _) => code,
        }
    }
}
