//! A full disk, and a disk without inodes: exit code 11 with a message, existing files unchanged, and a
//! second run that completes once there is space.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::run_command;
use crate::common::diff::{Fields, diff};
use crate::common::grow::age;
use crate::common::snapshot::{Snapshot, show};
use crate::common::{have, program, soon};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

fn sync(line: &[&str], from: &Path, to: &Path) -> crate::common::case::Run {
    let mut words: Vec<OsString> = line.iter().map(OsString::from).collect();
    words.extend([from.join("").into_os_string(), to.as_os_str().to_owned()]);
    run_command(&program(), &words)
}

/// Old files of the target, which every failed run must leave as they are or replace wholly.
fn unharmed(before: &Snapshot, source: &Snapshot, after: &Snapshot) {
    for (path, old) in &before.entries {
        let now = after.entries.get(path).unwrap_or_else(|| panic!("lost {}", show(path)));
        let new = source.entries.get(path);
        let whole = now.hash == old.hash || new.is_some_and(|new| now.hash == new.hash);
        assert!(whole, "{} was damaged", show(path));
    }
}

fn full_disk(fs: Fs, size_mib: u64, options: &[&str]) {
    let what = "full disk";
    let Some(volume) = Volume::new(fs, size_mib, options, what) else { return };
    let area = Area::tmpfs();
    let (source, target) = (area.join("src"), volume.join("dst"));
    std::fs::create_dir_all(source.join("old")).unwrap();
    std::fs::create_dir_all(target.join("old")).unwrap();
    for n in 0..40 {
        let name = format!("old/{n:02}");
        std::fs::write(target.join(&name), vec![b'o'; 20_000]).unwrap();
        std::fs::write(source.join(&name), vec![b'n'; 60_000]).unwrap();
        std::fs::write(source.join(format!("new{n:02}")), vec![b'+'; 400_000]).unwrap();
    }
    std::fs::write(source.join("huge"), vec![b'h'; 12 << 20]).unwrap();
    age(&source);
    age(&target);
    let ballast = volume.fill(6 << 20);
    let before = Snapshot::of(&target);
    let from = Snapshot::of(&source);
    for line in [&["sync", "-a"][..], &["sync", "-aHAX", "-j", "8"]] {
        let run = sync(line, &source, &target);
        run.expect(11).says(&["No space left on device"]);
        let after = Snapshot::of(&target);
        unharmed(&before, &from, &after);
        assert!(after.not_in(&from).is_empty(), "stray files: {:?}", after.not_in(&from));
        for (path, entry) in &after.entries {
            let Some(new) = from.entries.get(path) else { continue };
            let alike = new.size == entry.size && new.mtime_s == entry.mtime_s;
            assert!(!alike || new.hash == entry.hash, "{} only looks whole", show(path));
        }
        let errors = run.err().lines().count();
        assert!(errors <= 10, "a full disk is one problem, not {errors} lines: {run}");
    }
    let taken = std::fs::metadata(&ballast).unwrap().len();
    std::fs::remove_file(ballast).unwrap();
    // XFS frees the blocks of a removed file later, in the background.
    let free = || rustix::fs::statvfs(&target).map(|volume| volume.f_bavail * volume.f_frsize);
    assert!(soon(|| free().unwrap() + (1 << 20) > taken), "a removed file still takes its room");
    sync(&["sync", "-a"], &source, &target).ok();
    let wrong = diff(&from, &Snapshot::of(&target), &Fields::ALL, 10);
    assert!(wrong.is_empty(), "after there was room: {wrong:?}");
}

#[test]
fn full_disk_ext4() {
    full_disk(Fs::Ext4, 64, &[]);
}

#[test]
fn full_disk_xfs() {
    full_disk(Fs::Xfs, 320, &[]);
}

#[test]
fn full_disk_btrfs() {
    full_disk(Fs::Btrfs, 256, &[]);
}

#[test]
fn no_inodes_left() {
    let Some(volume) = Volume::new(Fs::Ext4, 64, &["-N", "128"], "full inodes") else { return };
    let area = Area::tmpfs();
    let (source, target) = (area.join("src"), volume.join("dst"));
    std::fs::create_dir(&source).unwrap();
    for n in 0..400 {
        std::fs::write(source.join(format!("f{n}")), format!("content {n}")).unwrap();
    }
    let run = sync(&["sync", "-a"], &source, &target);
    run.expect(11).says(&["No space left on device"]);
    let after = Snapshot::of(&target);
    assert!(after.not_in(&Snapshot::of(&source)).is_empty());
}

/// Tries of what a thread of the lowest priority does beside a copy.
const TRIES: usize = 8;

/// The need is counted beside the copy, which is tried all the same.
#[test]
fn too_little_space_is_foretold() {
    let Some(volume) = Volume::new(Fs::Ext4, 64, &[], "free space") else { return };
    let area = Area::tmpfs();
    let (source, target) = (area.join("src"), volume.join("dst"));
    std::fs::create_dir_all(source.join("a/b")).unwrap();
    for (name, mib) in [("f", 10), ("a/f", 10), ("a/b/huge", 100)] {
        std::fs::write(source.join(name), vec![b'f'; mib << 20]).unwrap();
    }
    // The thread that counts has the lowest priority: on a busy machine the copy may end before it.
    let foretold = (0..TRIES).any(|_| {
        let _ = std::fs::remove_dir_all(&target);
        let run = sync(&["sync", "-a"], &source, &target);
        run.expect(11).says(&["No space left on device"]);
        run.err().contains("hakobu: warning: ")
            && run.err().contains(" to copy, but only ")
            && run.err().contains(" free on the target")
    });
    assert!(foretold);
    assert!(!target.join("a/b/huge").exists(), "an unfinished file has its final name");
    // What fits is not mentioned.
    std::fs::remove_file(source.join("a/b/huge")).unwrap();
    std::fs::remove_dir_all(&target).unwrap();
    assert_eq!(sync(&["sync", "-a"], &source, &target).ok().err(), "");
}

/// The thread that counts beside a copy looks at the source alone: what the copy has just brought is not taken for
/// what was there before, and the target's directories are not locked for it.
#[test]
fn counting_beside_a_copy_leaves_the_target_alone() {
    if !have("strace", "who looks at what") {
        return;
    }
    let Some(volume) = Volume::new(Fs::Ext4, 64, &[], "free space") else { return };
    let area = Area::tmpfs();
    let (source, target) = (area.join("src"), volume.join("dst"));
    for dir in ["a/b", "c"] {
        std::fs::create_dir_all(source.join(dir)).unwrap();
    }
    // More than there is room for: only then is the tree counted.
    for (name, mib) in [("f", 1), ("a/f", 1), ("a/b/f", 1), ("c/huge", 100)] {
        std::fs::write(source.join(name), vec![b'f'; mib << 20]).unwrap();
    }
    let log = area.join("log");
    let (from, to) = (format!("{}/", source.display()), target.display().to_string());
    // As above: a copy may end before anything is counted.
    let has_counted = (0..TRIES).any(|_| {
        let _ = std::fs::remove_dir_all(&target);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-y", "-e", "trace=setpriority,%file,%desc", "-o"]).arg(&log);
        strace.arg(program()).args(["sync", "-a", &from, &to]);
        assert_eq!(strace.output().unwrap().status.code(), Some(11));
        let log = std::fs::read_to_string(&log).unwrap();
        let lowers = |line: &&str| line.contains("setpriority(") && line.contains("19");
        let Some((thread, _)) = log.lines().find(lowers).and_then(|line| line.split_once(' '))
        else {
            return false;
        };
        let of_thread =
            |line: &&str| line.split_once(' ').is_some_and(|(number, _)| number == thread);
        let counting = log.lines().filter(of_thread).skip_while(|line| !lowers(line));
        let there: Vec<&str> = counting.filter(|line| line.contains(&to)).collect();
        assert!(there.is_empty(), "{there:?}");
        log.lines().filter(of_thread).filter(|line| line.contains(&*from)).count() >= 3
    });
    assert!(has_counted);
}

/// `--partial` keeps what came through, and it does not look finished.
#[test]
fn partial_files_do_not_look_finished() {
    let Some(volume) = Volume::new(Fs::Ext4, 64, &[], "--partial") else { return };
    let area = Area::tmpfs();
    let source = area.join("src");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("huge"), vec![1_u8; 100 << 20]).unwrap();
    let run = sync(&["sync", "-a", "--partial"], &source, &volume.join("dst"));
    assert_ne!(run.code, 0);
    if let Ok(meta) = std::fs::metadata(volume.join("dst/huge")) {
        let from = std::fs::metadata(source.join("huge")).unwrap();
        let alike =
            meta.len() == from.len() && meta.modified().unwrap() == from.modified().unwrap();
        assert!(!alike, "the partial file looks finished");
    }
}
