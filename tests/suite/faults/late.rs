//! File systems that report failed writes at close(2): NFS, SMB, FUSE. This one, a FUSE file system, loses
//! the data of a file and reports it once, on flush. No such file looks complete, no source is gone, the exit
//! code shows the failure, and repeating the command repairs it.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::{Run, run_command};
use crate::common::fuse::memory::{Faults, Memory};
use crate::common::fuse::{Mount, op};
use crate::common::grow::age;
use crate::common::{have, program, remove_tree, skip};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

/// Names and contents of the sources: without content, small, and in several segments.
fn files() -> [(&'static str, Vec<u8>); 5] {
    [
        ("empty", Vec::new()),
        ("one", b"one".to_vec()),
        ("sub/two", vec![2; 70_000]),
        ("sub/three", vec![3; 300_000]),
        ("large", vec![4; 5 << 20]),
    ]
}

fn make(dir: &Path) {
    for (name, content) in files() {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    age(dir);
}

/// A mount that fails on demand.
struct Scene {
    faults: Faults,
    /// Unmounted before the area that holds it is removed.
    mount: Mount,
    area: Area,
}

impl Scene {
    fn new(writeback: bool, unnamed: bool) -> Option<Scene> {
        let (area, faults) = (Area::tmpfs(), Faults::default());
        let memory = Memory::new(&faults, writeback, unnamed);
        match Mount::new(area.join("late"), "rw", memory) {
            Ok(mount) => Some(Scene { faults, mount, area }),
            Err(why) => {
                skip(&format!("a file system that fails late: {why}"));
                None
            }
        }
    }

    /// Runs a line: `SRC/` has the files, `DST` is on the mount.
    fn run(&self, line: &str) -> Run {
        let (source, target) = (self.area.join("src"), self.mount.join("dst"));
        let words = line.split(' ').map(|word| {
            let word = word.replace("SRC", source.to_str().unwrap());
            OsString::from(word.replace("DST", target.to_str().unwrap()))
        });
        run_command(&program(), &words.collect::<Vec<_>>())
    }

    /// The sources anew, and at the target nothing, or older files with the same names.
    fn prepare(&self, old: bool) {
        self.faults.clear();
        remove_tree(&self.area.join("src"));
        remove_tree(&self.mount.join("dst"));
        make(&self.area.join("src"));
        if old {
            for (name, content) in files() {
                let path = self.mount.join("dst").join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, vec![b'o'; content.len() + 10]).unwrap();
            }
        }
    }

    /// Each file is at its source, or whole at its target; none only looks finished.
    #[track_caller]
    fn nothing_is_lost(&self, run: &Run, gone: bool) {
        for (name, content) in files() {
            let (source, target) =
                (self.area.join("src").join(name), self.mount.join("dst").join(name));
            let read = |path: &Path| std::fs::read(path).ok();
            let there = read(&target);
            let whole = there.as_ref() == Some(&content);
            if gone && !source.exists() {
                assert!(whole, "{name} is lost: {run}");
                continue;
            }
            let Some(there) = there.filter(|_| !whole) else { continue };
            let mtime = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
            let alike = there.len() == content.len() && mtime(&source) == mtime(&target);
            assert!(!alike, "{name} only looks finished: {run}");
        }
    }

    /// One line with one failing operation, then the same line with none.
    fn attempt(&self, line: &str, old: bool, fails: u64, errno: i32) {
        self.prepare(old);
        let before = self.faults.seen(fails);
        self.faults.fail(fails, errno);
        let run = self.run(line);
        assert!(self.faults.seen(fails) > before, "operation {fails} never came: {run}");
        let removes = line.starts_with("mv") || line.contains("--remove-source-files");
        assert_ne!(run.code, 0, "operation {fails} failed with {errno}: {run}");
        assert!(run.code < 100, "{run}");
        assert!(!run.stderr.is_empty(), "{run}");
        self.nothing_is_lost(&run, removes);
        for (name, content) in files() {
            // Empty files are not flushed.
            let source = self.area.join("src").join(name);
            let writes = [op::FLUSH, op::WRITE, op::FSYNC].contains(&fails);
            assert!(!writes || content.is_empty() || source.exists(), "{name} is gone: {run}");
        }
        self.faults.clear();
        let again = self.run(match line {
            "mv -T SRC DST" => "sync -a --remove-source-files SRC/ DST",
            line => line,
        });
        assert_eq!(again.code, 0, "after {run}: {again}");
        for (name, content) in files() {
            let there = std::fs::read(self.mount.join("dst").join(name)).unwrap();
            assert!(there == content, "{name} is not healed: {again} after {run}");
            assert!(!removes || !self.area.join("src").join(name).exists(), "{name}: {again}");
        }
        let left = names_below(&self.mount.join("dst"));
        assert!(left.iter().all(|name| !name.contains(".hakobu-")), "{left:?} after {again}");
    }
}

fn names_below(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(names_below(&entry.path()));
        }
        found.push(entry.file_name().into_string().unwrap());
    }
    found
}

/// Lines and whether the target has older files before.
const LINES: [(&str, bool); 9] = [
    ("sync -a SRC/ DST", false),
    ("sync -a -j 4 SRC/ DST", true),
    ("sync -a -u SRC/ DST", false),
    ("sync -a --inplace SRC/ DST", true),
    ("sync -a --remove-source-files SRC/ DST", false),
    ("sync -a --backup SRC/ DST", true),
    ("cp -r -T SRC DST", false),
    ("cp -a -T SRC DST", true),
    ("mv -T SRC DST", false),
];

fn flushes_fail(writeback: bool, unnamed: bool, fails: u64) {
    let Some(scene) = Scene::new(writeback, unnamed) else { return };
    for (line, old) in LINES {
        for errno in [ENOSPC, EDQUOT, EIO] {
            scene.attempt(line, old, fails, errno);
        }
    }
}

#[test]
fn a_failed_flush_is_seen() {
    flushes_fail(false, false, op::FLUSH);
}

#[test]
fn a_failed_flush_is_seen_of_files_that_get_their_names_last() {
    flushes_fail(false, true, op::FLUSH);
}

#[test]
fn a_failed_write_is_seen() {
    flushes_fail(false, false, op::WRITE);
}

/// The kernel keeps what is written and meets the failure when the file is closed.
#[test]
fn a_failed_write_that_the_kernel_kept_is_seen() {
    flushes_fail(true, false, op::WRITE);
    flushes_fail(true, true, op::WRITE);
}

#[test]
fn failures_of_fsync_times_and_names_are_seen() {
    let Some(scene) = Scene::new(false, false) else { return };
    for errno in [ENOSPC, EDQUOT, EIO] {
        scene.attempt("sync -a --fsync SRC/ DST", false, op::FSYNC, errno);
        scene.attempt("sync -a --fsync --inplace SRC/ DST", true, op::FSYNC, errno);
        scene.attempt("sync -a --fsync --remove-source-files SRC/ DST", true, op::FSYNC, errno);
    }
    for line in ["sync -a SRC/ DST", "sync -a --remove-source-files SRC/ DST", "mv -T SRC DST"] {
        scene.attempt(line, false, op::SETATTR, EIO);
    }
    for line in ["sync -a SRC/ DST", "sync -a --remove-source-files SRC/ DST"] {
        scene.attempt(line, true, op::RENAME, EIO);
    }
}

/// Local file systems pay nothing: not one call a file.
#[test]
fn local_file_systems_are_not_flushed() {
    if !have("strace", "calls of a file") {
        return;
    }
    let area = Area::tmpfs();
    let source = area.join("src");
    std::fs::create_dir(&source).unwrap();
    for n in 0..100 {
        std::fs::write(source.join(format!("f{n}")), "x").unwrap();
    }
    age(&source);
    let (log, target) = (area.join("log"), area.join("dst"));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=fcntl,dup,fstatfs", "-o"]).arg(&log).arg(program());
    command.args(["sync", "-a", "-j", "1", "--no-memory"]).arg(source.join("")).arg(target);
    assert!(command.status().unwrap().success());
    let log = std::fs::read_to_string(log).unwrap();
    let calls =
        log.lines().filter(|line| ["DUPFD", "dup(", "statfs"].iter().any(|w| line.contains(w)));
    let calls = calls.count();
    assert!(calls < 20, "{calls} calls for 100 files: {log}");
}

/// A close of the target that fails on any file system keeps the source.
#[test]
fn an_injected_failure_of_close_keeps_the_source() {
    if !have("strace", "errno injection") {
        return;
    }
    let Some(volume) = Volume::new(Fs::Ext4, 64, &[], "close") else { return };
    for line in ["mv SRC DST", "sync -a --remove-source-files SRC DST"] {
        let area = Area::tmpfs();
        let (source, target) = (area.join("f"), volume.join("f"));
        let _ = std::fs::remove_file(&target);
        std::fs::write(&source, "content").unwrap();
        age(&source);
        let mut command = Command::new("timeout");
        command.args(["60", "strace", "-f", "-qq", "-o"]).arg(area.join("log"));
        command.args(["-P".as_ref(), target.as_os_str()]);
        command.args(["-e", "trace=close", "-e", "inject=close:error=EIO:when=1+"]);
        command.arg(program()).env_remove("LD_LIBRARY_PATH");
        command.args(line.split(' ').map(|word| match word {
            "SRC" => source.clone().into_os_string(),
            "DST" => target.clone().into_os_string(),
            word => word.into(),
        }));
        let run = Run::new(line.to_owned(), command.output().unwrap());
        let log = std::fs::read_to_string(area.join("log")).unwrap();
        assert!(log.contains("INJECTED"), "{run}{log}");
        assert_ne!(run.code, 0, "{run}{log}");
        run.says(&["Input/output error"]);
        assert!(source.exists(), "{run}");
        assert!(!target.exists(), "a file whose close failed has its name: {run}");
    }
}
