//! `hakobu io` end to end: the real binary, what it asks of the kernel, what it leaves behind, what
//! it says beside fio.

mod content;
mod engines;
mod jobs;
mod kernel;
mod order;
mod peers;
mod priority;
mod results;
mod safety;
mod sweep;

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::program;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// `hakobu` with these words, working in a folder, where the user's folders are as well.
fn hakobu(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(words).stdin(Stdio::null()).current_dir(folder);
    command.env("XDG_STATE_HOME", folder.join("state"));
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// `hakobu io` with the words of a line, to its end.
fn io(folder: &Path, line: &str) -> Run {
    let words: Vec<&str> = ["io"].into_iter().chain(line.split_whitespace()).collect();
    let output = hakobu(folder, &words).output().unwrap();
    Run::new(format!("io {line}"), output)
}

/// The JSON that a run has on standard output: that and nothing else.
#[track_caller]
fn json(run: &Run) -> Value {
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{error} in {run}"))
}

/// `hakobu io` that has to end well, with its JSON.
#[track_caller]
fn measured(folder: &Path, line: &str) -> Value {
    let run = io(folder, &format!("{line} --output-format=json"));
    run.ok();
    json(&run)
}

/// A whole number in JSON.
#[track_caller]
fn number(value: &Value, pointer: &str) -> u64 {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {value:#}"))
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An empty folder in memory.
fn area() -> Area {
    Area::tmpfs()
}
