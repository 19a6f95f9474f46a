//! What the tests of `verify`, `rm`, `du` and `ls` share: a place that goes away again, the program
//! under test and others run in it, and trees that are deeper than a path may be long.

#![allow(dead_code, reason = "every test program uses its own part")]

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a program did.
pub struct Out {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Out {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its lines, sorted.
    pub fn sorted(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.text().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// The last line as JSON.
    pub fn summary(&self) -> serde_json::Value {
        let text = self.text();
        serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default()
    }

    /// Fails with everything that is known unless the exit code is this.
    #[track_caller]
    pub fn expect(self, code: i32) -> Out {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }
}

/// A directory of one test.
pub struct Place {
    dir: tempfile::TempDir,
}

/// The program under test.
pub fn program() -> PathBuf {
    std::env::var_os("HAKOBU_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_hakobu")), PathBuf::from)
}

/// Whether the tests run as the superuser; says so if not.
pub fn have_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        let _ = writeln!(std::io::stderr(), "skipped: needs the superuser");
    }
    root
}

impl Place {
    pub fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        // Others than the superuser must get in.
        place.sh("chmod 755 .");
        place
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "Europe/Berlin")
            .env_remove("COLUMNS");
        command
    }

    /// Runs a script that must succeed; its standard output.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        let out = self.try_sh(script);
        assert_eq!(out.code, 0, "{script}\n{}", out.stderr);
        out.text()
    }

    /// Runs a script in which `$H` is the program under test.
    pub fn try_sh(&self, script: &str) -> Out {
        let mut command = self.command(OsStr::new("bash"));
        command.args(["-c", script]).env("H", program());
        finish(command, b"")
    }

    /// Runs the program under test; the words of `line` are its arguments.
    pub fn run(&self, line: &str) -> Out {
        self.run_with(line, &[], b"")
    }

    /// As [`Place::run`], with more arguments and an input.
    pub fn run_with(&self, line: &str, more: &[&[u8]], input: &[u8]) -> Out {
        let mut command = self.command(program().as_os_str());
        command.args(line.split_whitespace()).args(more.iter().map(|arg| OsStr::from_bytes(arg)));
        finish(command, input)
    }

    /// Runs another program.
    pub fn other(&self, line: &str, input: &[u8]) -> Out {
        let mut words = line.split_whitespace();
        let mut command = self.command(OsStr::new(words.next().unwrap_or_default()));
        command.args(words);
        finish(command, input)
    }

    /// All paths below `name`.
    pub fn tree(&self, name: &str) -> BTreeSet<String> {
        let list = self.sh(&format!("cd '{name}' && find . -printf '%p\\n' | LC_ALL=C sort"));
        list.lines().map(str::to_owned).collect()
    }

    /// Directories in each other, so many, each with a file `f` in it; in the last one also `last`.
    pub fn deep(&self, name: &str, component: &str, depth: usize, last: &str) {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut here = openat(rustix::fs::CWD, self.path(), flags, Mode::empty()).unwrap();
        mkdirat(&here, name, Mode::from_raw_mode(0o755)).unwrap();
        here = openat(&here, name, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&here, component, Mode::from_raw_mode(0o755)).unwrap();
            here = openat(&here, component, flags, Mode::empty()).unwrap();
            let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            drop(openat(&here, "f", create, Mode::from_raw_mode(0o644)).unwrap());
        }
        let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(openat(&here, last, create, Mode::from_raw_mode(0o644)).unwrap());
    }
}

fn finish(mut command: Command, input: &[u8]) -> Out {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who needs no input may end before it is written.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    let out = child.wait_with_output().unwrap();
    Out {
        code: out.status.code().unwrap_or(-1),
        stdout: out.stdout,
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

/// Names that programs trip over.
pub const HOSTILE: &str = r#"
    touch -- -rf -i '--' 'a b' $'new\nline' $'bad\xff' $'esc\e[31m' '*' "it's" '$(x)' 'dot.' '...' \
        "$(printf 'n%.0s' $(seq 255))" 'caf'$'\xc3\xa9'
"#;
