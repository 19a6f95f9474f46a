//! `hakobu bench` and `hakobu results`: the real binary with real commands, some of which fail, hang, lose
//! files or write too much.

mod campaigns;
mod commands;
mod hyperfine;
mod idle;
mod ours;
mod places;
mod private;
mod results;
mod stops;
mod terminal;

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::program;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// `hakobu` with these arguments; the user's folders and the working directory are in the area.
fn hakobu(area: &Area, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(words).stdin(Stdio::null()).current_dir(area.path());
    command.env("XDG_STATE_HOME", area.join("state")).env("XDG_CACHE_HOME", area.join("cache"));
    command
}

/// Runs it to its end.
fn run(area: &Area, words: &[&str]) -> Run {
    let output = hakobu(area, words).output().unwrap();
    Run::new(words.join(" "), output)
}

/// `hakobu bench`, with its results in the folder `out`.
fn bench(area: &Area, words: &[&str]) -> Run {
    run(area, &[&["bench", "-o", "out"], words].concat())
}

/// All lines of a results folder.
#[track_caller]
fn lines(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Lines of one kind.
fn of_kind(lines: &[Value], kind: &str) -> Vec<Value> {
    lines.iter().filter(|line| line["line"] == kind).cloned().collect()
}

/// Runs in the folder `out`.
#[track_caller]
fn runs(area: &Area) -> Vec<Value> {
    of_kind(&lines(&area.join("out")), "run")
}

/// A number of a run.
#[track_caller]
fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer} in {value}"))
}
