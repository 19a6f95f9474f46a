//! A fault: system call, error, and position.

use crate::common::case::Run;
use crate::common::tool_path;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer than any run of these takes, in seconds.
const RUN_MAX_S: &str = "60";

/// A call that fails once in each thread that makes it so often, or from then on.
#[derive(Clone, Debug)]
pub struct Fault {
    pub call: String,
    /// `error=EIO`, or another of strace's ways to tamper.
    pub how: String,
    pub when: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "inject={}:{}:when={}", self.call, self.how, self.when)
    }
}

impl Fault {
    pub fn once(call: &str, error: &str, when: u64) -> Fault {
        Fault { call: call.to_owned(), how: format!("error={error}"), when: when.to_string() }
    }

    pub fn lasting(call: &str, how: &str, from: u64) -> Fault {
        Fault { call: call.to_owned(), how: how.to_owned(), when: format!("{from}+") }
    }

    /// Command prefix that injects this fault. Affected calls are written to `log`.
    pub fn strace(&self, log: &Path) -> Command {
        let mut command = strace(log);
        let traced = format!("trace=?{}", self.call);
        let fault = format!("inject=?{}:{}:when={}", self.call, self.how, self.when);
        command.args(["--seccomp-bpf", "-e", &traced, "-e", &fault]);
        command
    }

    /// Whether nothing could be done about what is left over.
    pub fn excuses(&self, left: &str) -> bool {
        // The server begins an upload and its answer is lost: its id is known to the server alone.
        let cut = ["recvfrom", "recvmsg", "epoll_wait", "epoll_ctl"].contains(&&*self.call);
        // A record that could not be removed is found useless by the next run that needs it.
        let kept = self.call == "unlink";
        cut && left.contains("unfinished upload") || kept && left.contains("is remembered")
    }

    /// Whether the fault may have taken the words for an error message: it meets each thread, and
    /// one of them writes the messages.
    pub fn mutes(&self) -> bool {
        self.call == "write"
    }
}

/// strace over all threads, writing to a file.
pub fn strace(log: &Path) -> Command {
    let mut command = Command::new(tool_path("timeout"));
    command.args(["--kill-after=5", RUN_MAX_S, "strace", "-f", "-qq", "-o"]).arg(log);
    command
}

/// Puts a command behind another one, with its own environment and nothing else.
pub fn behind(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args()).env_clear().env("RUST_BACKTRACE", "0");
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    outer
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Run {
    let line = command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    Run::new(line, command.output().unwrap())
}

/// The names of all files below a folder; none where it is not there.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { waiting.push(path) } else { found.push(path) }
        }
    }
    found
}
