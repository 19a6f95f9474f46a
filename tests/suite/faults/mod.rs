//! Failures: nothing is lost, nothing incomplete passes for complete, and the exit code shows the failure.

mod deletion;
mod ends;
mod full;
mod hang;
mod itself;
mod kill;
mod large;
mod late;
mod limits;
mod names;
mod partial;
mod race;
mod same;
mod signal;
mod together;
mod unfinished;
mod user;
mod vanish;

use crate::common::case::Case;
use crate::common::program;
use crate::common::running::Running;
use std::process::Command;

/// Starts a line of a case, to be disturbed at a chosen moment.
pub fn start(case: &Case, line: &str) -> Running {
    let mut command = Command::new(program());
    command.args(case.words(line, &case.dst()));
    // Records of killed runs and what is remembered belong to the case.
    command.env("XDG_STATE_HOME", case.place("state"));
    Running::start(line, command)
}
