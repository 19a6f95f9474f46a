//! A large file between slow file systems: many workers copy it, and no fault leaves an incomplete file that
//! looks complete.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::{Run, run_command};
use crate::common::fuse::slow::Slow;
use crate::common::fuse::{Mount, op};
use crate::common::grow::age;
use crate::common::{have, must, program, remove_tree, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const MIB: usize = 1 << 20;

/// A slow file system, and places on it and beside it.
struct Scene {
    slow: Arc<Slow>,
    mount: Mount,
    area: Area,
}

/// Contents in which no two places are alike, with zeroes between them.
fn content(mib: usize) -> Vec<u8> {
    let mut bytes = vec![0; mib * MIB];
    for (at, piece) in bytes.chunks_mut(4096).enumerate().filter(|(at, _)| at % 64 < 40) {
        piece[..8].copy_from_slice(&(at as u64 + 1).to_le_bytes());
        piece[4088..].copy_from_slice(&(at as u64 + 1).to_be_bytes());
    }
    bytes
}

impl Scene {
    fn new() -> Option<Scene> {
        Scene::beside(Area::tmpfs())
    }

    fn beside(area: Area) -> Option<Scene> {
        match Slow::mount(area.join("slow"), Duration::ZERO, 48) {
            Ok((mount, slow)) => Some(Scene { slow, mount, area }),
            Err(why) => {
                skip(&format!("a slow file system: {why}"));
                None
            }
        }
    }

    /// Puts a file of so many MiB there, and makes the file system slow.
    fn with_source(&self, path: &Path, mib: usize) -> Vec<u8> {
        let bytes = content(mib);
        self.slow.set_delay(Duration::ZERO);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &bytes).unwrap();
        age(path.parent().unwrap());
        self.slow.set_delay(Duration::from_millis(3));
        self.slow.most();
        self.slow.seen();
        self.slow.readers();
        bytes
    }

    fn far(&self, name: &str) -> PathBuf {
        self.mount.join(name)
    }

    fn near(&self, name: &str) -> PathBuf {
        self.area.join(name)
    }

    fn words(&self, line: &str) -> Vec<OsString> {
        let place = |word: &str| match word.split_once(':') {
            Some(("FAR", name)) => self.far(name).into(),
            Some(("NEAR", name)) => self.near(name).into(),
            _ => word.into(),
        };
        line.split(' ').map(place).collect()
    }

    /// `FAR:name` is a name on the slow file system, `NEAR:name` one beside it.
    fn run(&self, line: &str) -> Run {
        run_command(&program(), &self.words(line))
    }

    /// Starts a line, kills it once the file system has seen so many reads and writes.
    fn kill_after(&self, line: &str, seen: u64) {
        let mut command = Command::new(program());
        command.args(self.words(line)).env("XDG_STATE_HOME", self.near("state"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (begun, mut calls) = (Instant::now(), 0);
        while calls < seen && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{line} hangs");
            let (reads, writes) = self.slow.seen();
            calls += reads + writes;
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
    }
}

fn is_same(path: &Path, bytes: &[u8]) {
    let there = std::fs::read(path).unwrap();
    assert!(there == bytes, "{} of {} bytes differs", path.display(), there.len());
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(list) = std::fs::read_dir(dir) else { return Vec::new() };
    list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn many_workers_read_one_file() {
    let Some(scene) = Scene::new() else { return };
    let bytes = scene.with_source(&scene.far("src/f"), 64);
    for line in [
        "sync -a -j 8 FAR:src/ NEAR:dst",
        "sync -a -j 8 --inplace FAR:src/ NEAR:dst",
        "cp -j 8 -T FAR:src/f NEAR:dst/f",
        "cp -j 8 --reflink=never -T FAR:src/f FAR:dst/f",
        "cp -j 8 -T FAR:src/f FAR:dst/f",
    ] {
        remove_tree(&scene.near("dst"));
        remove_tree(&scene.far("dst"));
        std::fs::create_dir(scene.near("dst")).unwrap();
        std::fs::create_dir(scene.far("dst")).unwrap();
        if line.contains("--inplace") {
            std::fs::write(scene.near("dst/f"), vec![9; 70 * MIB]).unwrap();
        }
        // A busy machine may start the threads late: one of several attempts is enough.
        let enough = (0..5).any(|_| {
            let (_, _) = (scene.slow.most(), scene.slow.readers());
            let run = scene.run(line);
            run.ok();
            let ((reads, _), readers) = (scene.slow.most(), scene.slow.readers());
            let target =
                if line.contains("FAR:dst") { scene.far("dst/f") } else { scene.near("dst/f") };
            is_same(&target, &bytes);
            if reads < 4 || readers < 3 {
                remove_tree(&scene.near("dst"));
                remove_tree(&scene.far("dst"));
                std::fs::create_dir(scene.near("dst")).unwrap();
                std::fs::create_dir(scene.far("dst")).unwrap();
            }
            reads >= 4 && readers >= 3
        });
        assert!(enough, "{line}: one after the other");
    }
}

#[test]
fn as_many_workers_as_are_asked_for() {
    let Some(scene) = Scene::new() else { return };
    let bytes = scene.with_source(&scene.far("src/f"), 32);
    for jobs in [1, 2, 3] {
        remove_tree(&scene.near("dst"));
        scene.slow.readers();
        let line = format!("sync -a -j 8 --jobs-per-file {jobs} FAR:src/ NEAR:dst");
        scene.run(&line).ok();
        let readers = scene.slow.readers();
        assert!((1..=jobs).contains(&readers), "{readers} workers read with {line}");
        is_same(&scene.near("dst/f"), &bytes);
    }
    let run = scene.run("cp --jobs-per-file=0 FAR:src/f NEAR:g");
    run.expect(2).says(&["--jobs-per-file '0'", "from 1 to 4096, or auto"]);
    let run = scene.run("cp --jobs-per-file=4 FAR:src/f s3://bucket/k");
    run.expect(2).says(&["--jobs-per-file is not supported for s3://"]);
}

/// Forced where it would not begin by itself: local file systems, with and without holes.
#[test]
fn contents_are_the_same_on_all_file_systems() {
    for fs in Fs::ALL {
        let Some(area) = Area::new(fs, "large") else { continue };
        let (src, dst) = (area.join("src"), area.join("dst"));
        std::fs::create_dir(&src).unwrap();
        let dense = content(24);
        std::fs::write(src.join("dense"), &dense).unwrap();
        std::fs::write(src.join("odd"), &dense[..9 * MIB + 77]).unwrap();
        let sparse = std::fs::File::create(src.join("sparse")).unwrap();
        for mib in [3, 4, 11, 30] {
            sparse.write_all_at(&dense[..MIB + 5], mib * MIB as u64).unwrap();
        }
        sparse.set_len(40 << 20).unwrap();
        drop(sparse);
        age(&src);
        for options in ["-a", "-aS", "-a --inplace", "-a --bwlimit=400m", "-a --fsync"] {
            for jobs in ["auto", "4", "1"] {
                remove_tree(&dst);
                let mut words: Vec<OsString> = vec!["sync".into()];
                words.extend(options.split(' ').map(OsString::from));
                words.extend(["-j", "6", "--jobs-per-file", jobs].map(OsString::from));
                words.extend([src.join("").into(), dst.clone().into()]);
                let run = run_command(&program(), &words);
                run.ok();
                for name in ["dense", "odd", "sparse"] {
                    let (from, to) = (src.join(name), dst.join(name));
                    assert!(
                        std::fs::read(&from).unwrap() == std::fs::read(&to).unwrap(),
                        "{name}: {run}"
                    );
                }
                let blocks = |path: &Path| path.metadata().unwrap().blocks();
                let sparse = blocks(&dst.join("sparse"));
                assert!(sparse <= blocks(&src.join("sparse")) + 64, "{sparse} blocks: {run}");
                // XFS keeps what it reserved behind the end when that becomes a hole, btrfs shares all.
                if options == "-aS" && matches!(fs, Fs::Ext4 | Fs::Tmpfs) {
                    assert!(blocks(&dst.join("dense")) < blocks(&src.join("dense")), "{run}");
                }
            }
        }
    }
}

#[test]
fn zeroes_from_a_slow_source_become_holes() {
    let Some(area) = Area::new(Fs::Ext4, "holes") else { return };
    let Some(scene) = Scene::beside(area) else { return };
    let bytes = scene.with_source(&scene.far("src/f"), 32);
    scene.run("sync -aS -j 8 FAR:src/ NEAR:dst").ok();
    is_same(&scene.near("dst/f"), &bytes);
    let blocks = scene.near("dst/f").metadata().unwrap().blocks() * 512;
    assert!(blocks < bytes.len() as u64 * 3 / 4, "{blocks} bytes");
}

#[test]
fn a_read_that_fails_in_the_middle_fails_the_file() {
    let Some(scene) = Scene::new() else { return };
    let bytes = scene.with_source(&scene.far("src/f"), 48);
    for options in ["-a", "-au", "-a --partial"] {
        remove_tree(&scene.near("dst"));
        scene.slow.fail_from(op::READ, 20 << 20, EIO);
        let run = scene.run(&format!("sync {options} -j 8 FAR:src/ NEAR:dst"));
        run.expect(23).says(&["cannot read", "src/f", "Input/output error"]);
        let left = names(&scene.near("dst"));
        if options.contains("--partial") {
            // Segments are written in order: what is kept is a prefix of the source.
            let there = std::fs::read(scene.near("dst/f")).unwrap();
            assert!(there.len() <= 20 << 20 && bytes.starts_with(&there), "{run}");
        } else {
            assert!(left.is_empty(), "{left:?} is left: {run}");
        }
        scene.slow.heal();
        scene.run(&format!("sync {options} -j 8 FAR:src/ NEAR:dst")).ok();
        is_same(&scene.near("dst/f"), &bytes);
    }
}

#[test]
fn a_write_without_room_leaves_nothing_under_the_final_name() {
    let Some(scene) = Scene::new() else { return };
    for (source, line) in [
        (scene.near("src/f"), "sync -a -j 8 --jobs-per-file 4 NEAR:src/ FAR:dst"),
        (scene.far("src/f"), "sync -a -j 8 --no-whole-file FAR:src/ FAR:dst"),
        (scene.far("src/f"), "cp -r -j 8 -T FAR:src FAR:dst"),
    ] {
        let bytes = scene.with_source(&source, 48);
        remove_tree(&scene.far("dst"));
        scene.slow.fail_from(op::WRITE, 20 << 20, ENOSPC);
        let run = scene.run(line);
        assert_ne!(run.code, 0, "{run}");
        run.says(&["cannot write", "dst/f", "No space left on device"]);
        let left = names(&scene.far("dst"));
        assert!(left.is_empty(), "{left:?} is left: {run}");
        scene.slow.heal();
        scene.run(line).ok();
        is_same(&scene.far("dst/f"), &bytes);
    }
}

#[test]
fn a_killed_run_leaves_nothing_that_looks_finished() {
    let Some(scene) = Scene::new() else { return };
    for (source, target, line) in [
        (scene.far("src/f"), scene.near("dst"), "sync -a -j 8 FAR:src/ NEAR:dst"),
        (scene.far("src/f"), scene.far("dst"), "sync -au -j 8 FAR:src/ FAR:dst"),
        (scene.near("src/f"), scene.far("dst"), "sync -a -j 8 --jobs-per-file 4 NEAR:src/ FAR:dst"),
    ] {
        let bytes = scene.with_source(&source, 72);
        for seen in [8, 30, 60] {
            remove_tree(&target);
            scene.kill_after(line, seen);
            if target.join("f").exists() {
                // Done before it was killed, or a moment before its end.
                is_same(&target.join("f"), &bytes);
            }
            scene.run(line).ok();
            is_same(&target.join("f"), &bytes);
            assert_eq!(names(&target), ["f"], "{line}");
        }
    }
}

/// It is copied anew, as it is then, or reported.
#[test]
fn a_source_that_shrinks_is_noticed() {
    let Some(scene) = Scene::new() else { return };
    let bytes = scene.with_source(&scene.far("src/f"), 48);
    scene.slow.set_delay(Duration::from_millis(20));
    let mut command = Command::new(program());
    command.args(scene.words("sync -a -j 4 FAR:src/ NEAR:dst"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while scene.slow.seen().0 < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let file = std::fs::File::options().write(true).open(scene.far("src/f")).unwrap();
    file.set_len(30 << 20).unwrap();
    drop(file);
    let run = Run::new("sync".into(), child.wait_with_output().unwrap());
    match run.code {
        0 => is_same(&scene.near("dst/f"), &bytes[..30 << 20]),
        _ => {
            run.expect(23).says(&["shrinks"]);
            assert!(names(&scene.near("dst")).is_empty(), "{run}");
        }
    }
}

// Start of writeback during the copy of a large file.

const BYTES: usize = 24 << 20;

/// The kernel can say what is in memory (cachestat(2)).
fn has_cachestat() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 5)
}

/// Times that writeback was asked for while a tree was copied.
fn asked(from: &Path, to: &Path, trace: &Path) -> usize {
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=sync_file_range", "-o"]).arg(trace).arg(program());
    let mut source = from.as_os_str().to_owned();
    source.push("/");
    must(command.args(["sync", "-a", "--no-memory"]).arg(source).arg(to));
    assert_eq!(
        std::fs::read(to.join("large")).unwrap(),
        std::fs::read(from.join("large")).unwrap()
    );
    let text = std::fs::read_to_string(trace).unwrap();
    text.lines().filter(|line| line.contains("sync_file_range(")).count()
}

/// Makes the page cache forget the source.
fn forget(from: &Path) {
    let name = format!("if={}", from.join("large").display());
    must(Command::new("sync").arg("-f").arg(from));
    must(Command::new("dd").args([&name, "iflag=nocache", "count=0", "status=none"]));
}

#[test]
fn reading_from_a_disk_comes_before_writing_to_it() {
    if !have("strace", "early writeback") {
        return;
    }
    if !has_cachestat() {
        return skip("early writeback: the kernel is older than 6.5");
    }
    let volume = |what| Volume::new(Fs::Ext4, 128, &[], what);
    let (Some(one), Some(other)) = (volume("writeback"), volume("writeback to another disk"))
    else {
        return;
    };
    let from = one.join("src");
    std::fs::create_dir(&from).unwrap();
    let mut bytes = vec![0; BYTES];
    fastrand::Rng::with_seed(7).fill(&mut bytes);
    std::fs::write(from.join("large"), bytes).unwrap();
    age(&from);
    let trace = other.join("trace");
    forget(&from);
    assert_eq!(asked(&from, &one.join("cold"), &trace), 0, "one disk, not in memory");
    // By now it is in memory.
    assert!(asked(&from, &one.join("warm"), &trace) >= 2, "one disk, in memory");
    forget(&from);
    assert!(asked(&from, &other.join("cold"), &trace) >= 2, "two disks");
}
