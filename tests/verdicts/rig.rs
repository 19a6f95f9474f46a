//! What rigs share: running the program for its summary, sources that are cheap to make, and tools.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::program;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One transfer against a limit that was reached.
pub struct Trial {
    pub summary: Value,
    /// How well the limit was reached, for whoever reads the table.
    pub note: String,
    /// What was said with `--explain`.
    pub explained: String,
}

impl Trial {
    /// Takes a run that must have moved at `reached` a second where `limit` was possible; too far
    /// below, something else limited it, and nothing can be said about the verdict.
    pub fn at(run: &Run, reached: f64, limit: f64, unit: &str) -> Result<Trial, String> {
        let note = format!("{reached:.0} of {limit:.0} {unit}, {:.1} s", real_s(&run.summary()));
        if reached < 0.85 * limit {
            return Err(format!("the limit was not reached: {note}"));
        }
        Ok(Trial { summary: run.summary(), note, explained: run.err() })
    }
}

/// Seconds that a run took.
pub fn real_s(summary: &Value) -> f64 {
    summary["real_s"].as_f64().unwrap()
}

/// Files a second of a run.
pub fn files_per_s(run: &Run) -> f64 {
    run.summary()["files"].as_f64().unwrap() / real_s(&run.summary())
}

/// Bytes a second of a run.
pub fn bytes_per_s(run: &Run) -> f64 {
    run.summary()["bytes"].as_f64().unwrap() / real_s(&run.summary())
}

/// Runs the program with these words, `--json --explain` and an environment of its own; `before`
/// are the words of a program that starts it (`taskset`), or none.
///
/// # Panics
/// When it fails.
#[track_caller]
pub fn run<S: AsRef<OsStr>>(before: &[&str], area: &Area, words: &[S]) -> Run {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "90"]).args(before).arg(program()).args(words);
    command.args(["--json", "--explain"]);
    let home = area.join("home");
    command.env_clear().env("PATH", path()).env("LC_ALL", "C.UTF-8");
    command.env("XDG_STATE_HOME", home.join("state")).env("HOME", home);
    command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    let line = format!("{command:?}");
    let run = Run::new(line, command.output().unwrap());
    run.ok();
    run
}

fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// Runs a tool of the machine; what it said if it failed.
pub fn tool(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).env("PATH", path()).output();
    let output = output.map_err(|error| format!("{line}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Writes a line into a file of the kernel.
pub fn tell(file: impl AsRef<Path>, line: &str) -> Result<(), String> {
    let file = file.as_ref();
    std::fs::write(file, format!("{line}\n")).map_err(|e| format!("{}: {e}", file.display()))
}

/// A folder with `count` names of files of `size` bytes. They are hard links of one file for each
/// thousand names, so that many cost little memory; without `-H` each is copied by itself.
pub fn names(dir: &Path, count: usize, size: usize) -> PathBuf {
    let one = vec![0x5a; size];
    std::fs::create_dir_all(dir).unwrap();
    let name = |number: usize| dir.join(format!("f{number:07}"));
    for number in 0..count {
        match number % 1_000 {
            0 => std::fs::write(name(number), &one).unwrap(),
            past => std::fs::hard_link(name(number - past), name(number)).unwrap(),
        }
    }
    // Older than the run by far: files that just changed are written under another name first.
    for number in (0..count).step_by(1_000) {
        let file = std::fs::File::options().write(true).open(name(number)).unwrap();
        let day = std::time::Duration::from_secs(86_400);
        file.set_modified(std::time::SystemTime::now() - day).unwrap();
    }
    dir.to_owned()
}

/// A path as a word, with a slash at its end: its contents.
pub fn inside(dir: &Path) -> String {
    format!("{}/", dir.display())
}
