//! `hakobu report`: the real binary over folders of results, every form that it writes, and the page
//! in a real browser.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod folder;
mod forms;
mod wrong;

use common::case::Run;
use common::program;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `hakobu report` in a folder.
fn report(dir: &Path, words: &[&str]) -> Run {
    let mut command = Command::new(program());
    command.current_dir(dir).arg("report").args(words).stdin(Stdio::null());
    Run::new(format!("report {}", words.join(" ")), command.output().unwrap())
}
