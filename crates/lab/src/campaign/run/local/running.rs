//! Records started sessions for a later run, and ends them by signals.

use hakobu_sys::paths::Links;
use hakobu_sys::{child, host, process};
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// SIGKILL, signal(7).
pub(super) const KILL: i32 = 9;
/// SIGTERM, signal(7).
pub(super) const TERMINATE: i32 = 15;

/// File of sessions started here, so that a later process can end them if this one is killed. Each line
/// has a process id, its start time and the boot id.
#[derive(Debug)]
pub(super) struct RunningSessions {
    /// `None` to record nothing.
    path: Option<PathBuf>,
}

impl RunningSessions {
    pub(super) fn new(path: Option<PathBuf>) -> RunningSessions {
        RunningSessions { path }
    }

    /// Adds a session by its leader. A failed write is ignored: the session is then unknown later.
    pub(super) fn add(&self, pid: u32) {
        use std::io::Write;
        let Some((path, ticks)) = self.path.as_ref().zip(process::start_ticks(pid)) else { return };
        if let Ok(file) = Links::Trusted.open_private(path) {
            let mut file = File::from(file);
            let _ = file.write_all(format!("{pid} {ticks} {}\n", host::boot_id()).as_bytes());
        }
    }

    /// Removes a session that has ended.
    pub(super) fn remove(&self, pid: u32) {
        let Some(path) = &self.path else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let prefix = format!("{pid} ");
        let rest: String =
            text.split_inclusive('\n').filter(|line| !line.starts_with(&prefix)).collect();
        let _ = match rest.is_empty() {
            true => std::fs::remove_file(path),
            false => Links::Trusted.write_private(path, rest.as_bytes()),
        };
    }

    pub(super) fn clear(&self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Ends the recorded sessions that still run, and waits briefly.
    pub(super) fn end_what_is_left(&self) {
        let Some(path) = &self.path else { return };
        let Ok(text) = std::fs::read_to_string(path) else { return };
        for line in text.lines() {
            let numbers: Vec<u64> =
                line.split(' ').filter_map(|word| word.parse::<u64>().ok()).collect();
            let [pid, ticks, boot] = numbers[..] else { continue };
            let Ok(pid) = u32::try_from(pid) else { continue };
            let is_same =
                || boot == u64::from(host::boot_id()) && process::start_ticks(pid) == Some(ticks);
            if pid == std::process::id() || !is_same() {
                continue;
            }
            let _ = child::kill_session(pid);
            let until = Instant::now() + Duration::from_secs(2);
            while is_same() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        self.clear();
    }
}
