//! Common parts of rigs: running the program for its summary, cheap sources, tools.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::program;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A transfer against a limit that was reached.
pub struct Trial {
    pub summary: Value,
    /// Share of the limit that was reached, for the table.
    pub note: String,
    /// Output with `--explain`.
    pub explained: String,
}

impl Trial {
    /// Takes a run that must have reached `reached` per second of the possible `limit`; if it is too far
    /// below, something else limited it, and the verdict cannot be checked.
    pub fn at(run: &Run, reached: f64, limit: f64, unit: &str) -> Result<Trial, String> {
        let note = format!("{reached:.0} of {limit:.0} {unit}, {:.1} s", real_s(&run.summary()));
        if reached < 0.85 * limit {
            return Err(format!("the limit was not reached: {note}"));
        }
        Ok(Trial { summary: run.summary(), note, explained: run.err() })
    }
}

/// Duration of a run, seconds.
pub fn real_s(summary: &Value) -> f64 {
    summary["real_s"].as_f64().unwrap()
}

/// Files per second of a run.
pub fn files_per_s(run: &Run) -> f64 {
    run.summary()["files"].as_f64().unwrap() / real_s(&run.summary())
}

/// Bytes per second of a run.
pub fn bytes_per_s(run: &Run) -> f64 {
    run.summary()["bytes"].as_f64().unwrap() / real_s(&run.summary())
}

/// Runs the program with these arguments, `--json --explain` and a separate environment; `before` is a
/// command prefix (`taskset`), or empty.
///
/// # Panics
/// If it fails.
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

/// Runs a system tool; returns its output if it failed.
pub fn tool(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).env("PATH", path()).output();
    let output = output.map_err(|error| format!("{line}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Writes a line to a kernel file.
pub fn tell(file: impl AsRef<Path>, line: &str) -> Result<(), String> {
    let file = file.as_ref();
    std::fs::write(file, format!("{line}\n")).map_err(|e| format!("{}: {e}", file.display()))
}

/// A folder with `count` files of `size` bytes: hard links of one file per thousand names, to save memory;
/// without `-H` each is copied separately.
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
    // Much older than the run: recently changed files are written under another name first.
    for number in (0..count).step_by(1_000) {
        let file = std::fs::File::options().write(true).open(name(number)).unwrap();
        let day = std::time::Duration::from_secs(86_400);
        file.set_modified(std::time::SystemTime::now() - day).unwrap();
    }
    dir.to_owned()
}

/// A path with a trailing slash as an argument: its contents.
pub fn inside(dir: &Path) -> String {
    format!("{}/", dir.display())
}
