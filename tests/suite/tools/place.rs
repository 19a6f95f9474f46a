//! A folder in which scripts create trees and both programs run, and trees deeper than PATH_MAX.

use crate::common::area::Area;
use crate::common::case::{Run, run_fed};
use crate::common::program;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// A directory of one test.
pub struct Place {
    area: Area,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { area: Area::tmpfs() };
        // Others than the superuser must get in.
        place.sh("chmod 755 .");
        place
    }

    pub fn path(&self) -> &Path {
        self.area.path()
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
        out.ok().out()
    }

    /// Runs a script in which `$H` is the program under test.
    pub fn try_sh(&self, script: &str) -> Run {
        let mut command = self.command(OsStr::new("bash"));
        command.args(["-c", script]).env("H", program());
        run_fed(&mut command, b"")
    }

    /// Runs the program under test; the words of `line` are its arguments.
    pub fn run(&self, line: &str) -> Run {
        self.run_with(line, &[], b"")
    }

    /// As [`Place::run`], with more arguments and an input.
    pub fn run_with(&self, line: &str, more: &[&[u8]], input: &[u8]) -> Run {
        let mut command = self.command(program().as_os_str());
        command.args(line.split_whitespace()).args(more.iter().map(|arg| OsStr::from_bytes(arg)));
        run_fed(&mut command, input)
    }

    /// Runs another program.
    pub fn other(&self, line: &str, input: &[u8]) -> Run {
        let mut words = line.split_whitespace();
        let mut command = self.command(OsStr::new(words.next().unwrap_or_default()));
        command.args(words);
        run_fed(&mut command, input)
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

/// Names that programs trip over.
pub const HOSTILE: &str = r#"
    touch -- -rf -i '--' 'a b' $'new\nline' $'bad\xff' $'esc\e[31m' '*' "it's" '$(x)' 'dot.' '...' \
        "$(printf 'n%.0s' $(seq 255))" 'caf'$'\xc3\xa9'
"#;
