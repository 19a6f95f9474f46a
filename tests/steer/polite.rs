//! Priorities of the process.

use crate::common::area::Fs;
use crate::common::case::{Case, case_on};
use crate::common::{have, must, program};
use crate::files;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A copy of some seconds with these options, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(c: &Case) -> Running {
    files(&c.src(), 1, 8 << 20);
    let words = c.words(&format!("{} --bwlimit=1m", c.line), &c.dst());
    let mut command = Command::new(program());
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

/// Niceness of a thread (field 19 of its `stat`).
fn niceness(path: &std::path::Path) -> Option<i64> {
    let text = std::fs::read_to_string(path.join("stat")).ok()?;
    text[text.rfind(')')? + 2..].split(' ').nth(16)?.parse().ok()
}

#[test]
fn every_thread_is_nice() {
    for line in ["sync -a --nice=7 SRC/ DST", "cp -r --nice 7 SRC DST"] {
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            let run = start(c);
            let tasks = std::path::PathBuf::from(format!("/proc/{}/task", run.0.id()));
            let begun = Instant::now();
            loop {
                let found: Vec<i64> = std::fs::read_dir(&tasks)
                    .unwrap()
                    .filter_map(|task| niceness(&task.unwrap().path()))
                    .collect();
                if found.len() > 1 && found.iter().all(|nice| *nice == 7) {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(5), "{line}: {found:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }
}

#[test]
fn disks_hear_of_it() {
    if !have("ionice", "the priority for disks") {
        return;
    }
    for (line, class) in [
        ("sync -a --ionice=idle SRC/ DST", "idle"),
        ("sync -a --ionice=best-effort:6 SRC/ DST", "best-effort: prio 6"),
    ] {
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            let run = start(c);
            let begun = Instant::now();
            loop {
                let said = must(Command::new("ionice").arg("-p").arg(run.0.id().to_string()));
                if String::from_utf8_lossy(&said).trim() == class {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(5), "{line}: {said:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }
}
