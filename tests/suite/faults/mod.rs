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

use crate::common::case::{Case, Run};
use crate::common::{program, soon};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};

// Starts the program in the background, to disturb it at a chosen moment.

/// The program at work.
pub struct Running {
    line: String,
    child: Child,
}

/// Starts a line of a case.
pub fn start(case: &Case, line: &str) -> Running {
    let mut command = Command::new(program());
    command.args(case.words(line, &case.dst()));
    // Records of killed runs and what is remembered belong to the case.
    command.env("XDG_STATE_HOME", case.place("state"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running { line: line.to_owned(), child: command.spawn().unwrap() }
}

impl Running {
    pub fn kill(&self, signal: Signal) {
        // Gone already is fine: the moment is random.
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, signal);
    }

    /// Waits for the end; output beyond a pipe's size would stall it.
    pub fn wait(mut self) -> Run {
        if !soon(|| self.child.try_wait().unwrap().is_some()) {
            self.kill(Signal::KILL);
            panic!("{} hangs", self.line);
        }
        Run::new(self.line, self.child.wait_with_output().unwrap())
    }
}
