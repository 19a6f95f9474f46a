//! `hakobu report` and `hakobu compare`: the real binary on results folders, all formats, and the page in a
//! real browser.

mod compare;
pub mod folder;
mod forms;

use crate::common::case::Run;
use crate::common::program;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `hakobu` in a folder, in which results are kept as well.
fn hakobu(dir: &Path, words: &[&str]) -> Run {
    let mut command = Command::new(program());
    command
        .current_dir(dir)
        .args(words)
        .stdin(Stdio::null())
        .env("XDG_STATE_HOME", dir.join("state"));
    Run::new(words.join(" "), command.output().unwrap())
}

/// Runs `hakobu report` in a folder.
fn report(dir: &Path, words: &[&str]) -> Run {
    hakobu(dir, &[&["report"], words].concat())
}

/// Arguments of a line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
