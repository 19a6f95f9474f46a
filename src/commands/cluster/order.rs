//! Workers that are handed to an engine, and their commands.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Workers to hand over.
pub struct Order {
    /// The run folder, absolute or in S3.
    pub run: OsString,
    /// Number of workers.
    pub nodes: u64,
    /// Seconds without a sign of life after which a worker is gone.
    pub stale: Duration,
    /// The workers verify a run that was collected.
    pub verifies: bool,
    /// Options for the engine, as they were typed.
    pub rest: Vec<OsString>,
}

impl Order {
    /// The same for the verification of the run.
    pub fn verifying(&self) -> Order {
        Order { run: self.run.clone(), rest: self.rest.clone(), verifies: true, ..*self }
    }

    /// The command of one worker.
    pub fn work(&self) -> Vec<OsString> {
        self.command("work", format!("--workers={}", self.nodes))
    }

    /// The command that collects.
    pub fn collect(&self) -> Vec<OsString> {
        self.command("collect", "--wait".to_owned())
    }

    fn command(&self, verb: &str, option: String) -> Vec<OsString> {
        let program =
            std::env::current_exe().map_or_else(|_| "hakobu".into(), PathBuf::into_os_string);
        let stale = format!("--stale-after={}s", self.stale.as_secs());
        let mut words = vec![program, "cluster".into(), verb.into(), option.into(), stale.into()];
        words.extend(self.verifies.then(|| "--verify".into()));
        words.push(self.run.clone());
        words
    }
}

/// Words as a line that sh(1) reads.
pub fn shell(words: &[OsString]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(byte);
    let word = |word: &OsString| {
        let text = word.to_string_lossy();
        match !text.is_empty() && word.as_bytes().iter().all(plain) {
            true => text.into_owned(),
            false => format!("'{}'", text.replace('\'', "'\\''")),
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Describes the exit status of a process.
pub fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    }
}
