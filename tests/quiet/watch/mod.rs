//! `hakobu watch`: the real binary with real commands, compared with time(1) and vmstat(8).

mod codes;
mod files;
mod numbers;
mod own;
mod verdict;
mod view;

use crate::common::case::Run;
use crate::common::program;
use std::path::Path;
use std::process::{Command, Stdio};

/// `hakobu watch` with these arguments.
fn watch(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("watch").args(words).stdin(Stdio::null());
    command
}

/// Runs it to its end.
fn run(words: &[&str]) -> Run {
    let output = watch(words).output().unwrap();
    Run::new(format!("watch {}", words.join(" ")), output)
}

/// Runs a shell script under watch; also returns the recording as JSON.
fn record(dir: &Path, script: &str) -> (Run, serde_json::Value) {
    let json = dir.join("record.json");
    let run = run(&["--json", json.to_str().unwrap(), "--", "sh", "-c", script]);
    let text = std::fs::read(&json).unwrap_or_else(|error| panic!("{error}: {run}"));
    (run, serde_json::from_slice(&text).unwrap())
}

/// Number at a path in JSON.
#[track_caller]
fn number(value: &serde_json::Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(serde_json::Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {value}"))
}
