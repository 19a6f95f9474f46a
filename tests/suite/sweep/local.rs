//! The fault sweep over commands between volumes.

use super::fault::{Fault, behind, files_below, run};
use super::judge::{Scenario, can_inject, sweep};
use super::table::May;
use crate::common::area::{Area, Fs};
use crate::common::case::{replace, split};
use crate::common::diff::{Fields, diff};
use crate::common::grow::{Plan, grow};
use crate::common::mutate::{Wild, mutate};
use crate::common::snapshot::{Snapshot, show};
use crate::common::xattr::Features;
use crate::common::{must, program, remove_tree};
use rustix::fs::FileType;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

/// A command with its expectations.
#[derive(Clone, Copy)]
pub struct Kind {
    pub line: &'static str,
    /// Command for the repair: the same one, unless it refuses the remains.
    pub heal: Option<&'static str>,
    /// The target holds an older version.
    pub update: bool,
    /// Sources are removed.
    pub moves: bool,
    /// State that must be equal after a run that ended with 0.
    pub fields: Fields,
    /// State that must be equal after the second run.
    pub healed: Fields,
    /// A call and an error after which less is kept, as the documentation says.
    pub gives_up: Option<(&'static str, &'static str)>,
    /// Source and target are on these.
    pub fs: (Fs, Fs),
}

pub const SYNC: Kind = Kind {
    line: "sync -aHAX -j 1 SRC/ DST",
    heal: None,
    update: false,
    moves: false,
    fields: Fields::ALL,
    healed: Fields::ALL,
    gives_up: None,
    fs: (Fs::Tmpfs, Fs::Tmpfs),
};

/// A command between two places.
pub struct Local {
    kind: Kind,
    from: Area,
    to: Area,
    whole: Snapshot,
    old: Snapshot,
}

impl Local {
    /// `None` where a file system cannot be had.
    pub fn new(kind: Kind) -> Option<Local> {
        let from = Area::new(kind.fs.0, kind.line)?;
        let to = Area::new(kind.fs.1, kind.line)?;
        let plan = Plan {
            entries: 40,
            hostile: false,
            size_max: 200_000,
            ..Plan::full(Features::probe(to.path()))
        };
        let original = from.join("original");
        grow(&original, 11, &plan);
        if kind.update {
            copy(&original, &to.join("old"));
            mutate(&original, 12, 25, &plan, Wild::ALL);
        }
        let (whole, old) = (Snapshot::of(&original), Snapshot::of(&to.join("old")));
        copy(&original, &from.join("src"));
        Some(Local { kind, from, to, whole, old })
    }

    fn src(&self) -> PathBuf {
        self.from.join("src")
    }

    pub fn dst(&self) -> PathBuf {
        self.to.join("dst")
    }

    fn state(&self) -> PathBuf {
        self.from.join("state")
    }

    fn command_of(&self, line: &str) -> Command {
        let mut command = Command::new(program());
        // `SRC/*` is all that is there, as a shell would put it.
        let all = match std::fs::read_dir(self.src()) {
            Ok(names) => names.map(|name| name.unwrap().path()).collect(),
            Err(_) => Vec::new(),
        };
        for word in split(line) {
            if word == "SRC/*" {
                command.args(&all);
                continue;
            }
            let word = replace(word.as_bytes(), b"SRC", self.src().as_os_str().as_bytes());
            let word = replace(&word, b"DST", self.dst().as_os_str().as_bytes());
            command.arg(OsString::from_vec(word));
        }
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.from.join("home")).env("XDG_STATE_HOME", self.state());
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    /// Entries missing at the target, and left in the source after a complete move.
    fn unfinished(&self, fields: &Fields) -> Vec<String> {
        let mut wrong = diff(&self.whole, &Snapshot::of(&self.dst()), fields, 5);
        if self.kind.moves {
            let left = files_below(&self.src()).into_iter();
            wrong.extend(left.map(|path| format!("{} is left", path.display())));
        } else {
            wrong.extend(self.lost());
        }
        wrong
    }

    /// Everything of the source is in its place, or, of a move, in one of both.
    fn lost(&self) -> Vec<String> {
        let src = Snapshot::of(&self.src());
        if !self.kind.moves {
            return diff(&self.whole, &src, &Fields::ALL, 5);
        }
        let dst = Snapshot::of(&self.dst());
        let kept = |path: &Vec<u8>, tree: &Snapshot| {
            let there = tree.entries.get(path);
            there.is_some_and(|there| {
                let before = &self.whole.entries[path];
                (there.kind, there.hash, &there.link) == (before.kind, before.hash, &before.link)
            })
        };
        let gone = self.whole.entries.iter().filter(|(path, entry)| {
            entry.kind != FileType::Directory && !kept(path, &src) && !kept(path, &dst)
        });
        gone.map(|(path, _)| format!("lost {}", show(path))).collect()
    }

    /// Files in the target that are neither the source's nor the old one, and pass for finished.
    fn torn(&self) -> Vec<String> {
        let dst = Snapshot::of(&self.dst());
        let torn = dst.entries.iter().filter(|(path, entry)| {
            let Some(from) = self.whole.entries.get(*path) else { return false };
            if entry.kind != FileType::RegularFile || entry.hash == from.hash {
                return false;
            }
            let before = self.old.entries.get(*path);
            if before.is_some_and(|before| before.hash == entry.hash && before.size == entry.size) {
                return false;
            }
            // If times are kept, a file without its time is one that the next run replaces.
            let unfinished = (entry.size, entry.mtime_s) != (from.size, from.mtime_s);
            !(self.kind.fields.times && unfinished && before.is_none())
        });
        torn.map(|(path, _)| format!("{} is torn", show(path))).collect()
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    must(Command::new("cp").arg("-a").arg(from).arg(to));
}

impl Scenario for Local {
    fn line(&self) -> &str {
        self.kind.line
    }

    fn command(&self) -> Command {
        self.command_of(self.kind.line)
    }

    fn concerns(&self, fault: &Fault) -> bool {
        self.kind.gives_up != Some((&fault.call, &fault.how))
    }

    fn log(&self) -> PathBuf {
        self.from.join("log")
    }

    fn prepare(&self) {
        if self.kind.moves {
            remove_tree(&self.src());
            copy(&self.from.join("original"), &self.src());
        }
        remove_tree(&self.dst());
        remove_tree(&self.state());
        match self.kind.update {
            true => copy(&self.to.join("old"), &self.dst()),
            false => std::fs::create_dir(self.dst()).unwrap(),
        }
    }

    fn not_whole(&self) -> Vec<String> {
        self.unfinished(&self.kind.fields)
    }

    fn harm(&self) -> Vec<String> {
        [self.lost(), self.torn()].concat()
    }

    fn not_healed(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        // A move that had failed at its very last step has nothing left to move.
        if !self.kind.moves
            || std::fs::read_dir(self.src()).is_ok_and(|mut names| names.next().is_some())
        {
            let run = run(self.command_of(self.kind.heal.unwrap_or(self.kind.line)));
            if run.code != 0 {
                wrong.push(run.to_string());
            }
        }
        wrong.extend(self.unfinished(&self.kind.healed));
        wrong
    }

    fn left_over(&self) -> Vec<String> {
        // A record of a killed run stays until the same sources come into the same target again.
        let state = files_below(&self.state()).into_iter();
        let state = state.filter(|path| !path.parent().is_some_and(|dir| dir.ends_with("runs")));
        state.map(|path| format!("{} is remembered", path.display())).collect()
    }
}

fn sweep_local(kind: Kind, salt: usize) {
    if let Some(local) = Local::new(kind) {
        sweep(&local, 2, salt);
    }
}

/// Without what changes in folders whose files were removed one by one, by two runs.
pub const IN_TWO_RUNS: Fields = Fields { dir_times: false, groups: false, ..Fields::ALL };

/// Without the attributes of the folder that all is moved into.
const MOVED: Fields = Fields { mode: false, owner: false, xattrs: false, ..IN_TWO_RUNS };

#[test]
fn sync_of_a_new_tree() {
    sweep_local(SYNC, 1);
}

#[test]
fn sync_of_a_changed_tree() {
    let line = "sync -aHAX --delete -j 1 SRC/ DST";
    sweep_local(Kind { line, update: true, fs: (Fs::Tmpfs, Fs::Ext4), ..SYNC }, 2);
}

#[test]
fn sync_that_removes_sources() {
    let line = "sync -aHAX --remove-source-files -j 1 SRC/ DST";
    sweep_local(Kind { line, moves: true, healed: IN_TWO_RUNS, ..SYNC }, 3);
}

#[test]
fn cp_of_a_tree() {
    // As with coreutils, -a keeps attributes where the user may set them, and fails for no others.
    let gives_up = Some(("fsetxattr", "error=EPERM"));
    sweep_local(Kind { line: "cp -a -j 1 -T SRC DST", gives_up, ..SYNC }, 4);
}

/// Without times, nothing tells a half-written file from a finished one: there must be none.
#[test]
fn cp_without_times() {
    let (line, fs) = ("cp -r -j 1 -T SRC DST", (Fs::Tmpfs, Fs::Ext4));
    let fields = Fields::CONTENT;
    sweep_local(Kind { line, fields, healed: fields, fs, ..SYNC }, 5);
}

// mv refuses to merge what it left with what is still to come: sync does.
pub const MV: Kind = Kind {
    line: "mv -j 1 SRC/* DST/",
    heal: Some("sync -aHAX --remove-source-files SRC/ DST/"),
    moves: true,
    fields: MOVED,
    healed: MOVED,
    ..SYNC
};

#[test]
fn mv_between_file_systems() {
    sweep_local(Kind { fs: (Fs::Tmpfs, Fs::Ext4), ..MV }, 6);
}

#[test]
fn mv_inside_a_file_system() {
    sweep_local(MV, 7);
}

// System calls that fail permanently from some moment on; and harmless failures.

fn stage() -> Option<Local> {
    let line = "sync -aHAX --delete -j 1 SRC/ DST";
    Local::new(Kind { line, ..SYNC }).filter(|_| can_inject())
}

#[test]
fn lasting_failures() {
    let Some(stage) = stage() else { return };
    let moments = stage.moments();
    let mut failed = Vec::new();
    for (call, how) in [
        ("write", "error=ENOSPC"),
        ("write", "error=EIO"),
        ("openat", "error=EMFILE"),
        ("utimensat", "error=EPERM"),
        ("fchown", "error=EPERM"),
        ("fchownat", "error=EPERM"),
        ("linkat", "error=EPERM"),
        ("copy_file_range", "error=EXDEV"),
        ("read", "retval=0"),
        ("pread64", "retval=0"),
        ("getdents64", "error=EIO"),
        ("fsetxattr", "error=ENOSPC"),
        ("unlinkat", "error=EBUSY"),
        ("close", "error=EIO"),
    ] {
        let Some(last) = moments.get(call).and_then(|when| when.last()) else { continue };
        for part in [2, 3, 4] {
            let fault = Fault::lasting(call, how, (last * part / 4).max(1));
            failed.extend(stage.try_out(&fault, May::End).and_then(Result::err));
        }
    }
    assert!(failed.is_empty(), "{} failures:\n{}", failed.len(), failed.join("\n"));
}

/// Unsupported operations of a kernel or file system have a fallback.
#[test]
fn failures_that_are_none() {
    let Some(stage) = stage() else { return };
    for (call, error) in [
        ("copy_file_range", "EXDEV"),
        ("copy_file_range", "EOPNOTSUPP"),
        ("ioctl", "EOPNOTSUPP"),
        ("fallocate", "EOPNOTSUPP"),
        ("setxattrat", "ENOSYS"),
        ("fchmodat2", "ENOSYS"),
        ("openat2", "ENOSYS"),
    ] {
        stage.prepare();
        let fault = Fault::lasting(call, &format!("error={error}"), 1);
        run(behind(fault.strace(&stage.log()), &stage.command())).ok();
        assert!(stage.not_whole().is_empty(), "{fault}: {:?}", stage.not_whole());
        assert!(!Snapshot::of(&stage.dst()).entries.is_empty());
    }
}
