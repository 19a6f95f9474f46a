//! An attacker replaces directories by symlinks during a run: nothing outside the target is written or
//! removed, nothing outside the source is copied.

use crate::common::area::Area;
use crate::common::case::Case;
use crate::common::diff::{Fields, diff};
use crate::common::snapshot::{Snapshot, show};
use crate::common::{must, remove_tree, rounds};
use rustix::fs::{CWD, FileType, RenameFlags, renameat_with};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

const CANARY: &[u8] = b"CANARY";

fn files(root: &Path, content: &[u8]) {
    for dir in ["swap", "swap/below", "other"] {
        let dir = root.join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        for n in 0..40 {
            std::fs::write(dir.join(format!("f{n}")), content).unwrap();
        }
    }
}

/// Exchanges `root/swap` with a symlink to the canary for as long as `work` runs.
fn while_swapping<T>(case: &Case, root: &Path, work: impl FnOnce() -> T) -> T {
    let (link, swap) = (case.place("link"), root.join("swap"));
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(case.place("canary/swap"), &link).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &swap, CWD, &link, RenameFlags::EXCHANGE);
                std::thread::yield_now();
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn scene(line: &str) -> (Case, Snapshot) {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let case = Case::new(line, from, to);
    files(&case.place("canary"), CANARY);
    // Names that the other side does not have, for the deleting runs.
    std::fs::write(case.place("canary/swap/precious"), CANARY).unwrap();
    let before = Snapshot::of(&case.place("canary"));
    (case, before)
}

#[track_caller]
fn canary_lives(case: &Case, before: &Snapshot) {
    let after = Snapshot::of(&case.place("canary"));
    let wrong = diff(before, &after, &Fields::ALL, 10);
    assert!(wrong.is_empty(), "{}: the canary was touched: {wrong:?}", case.line);
}

#[test]
fn the_target_is_swapped_for_a_link() {
    for line in [
        "sync -a -j 4 SRC/ DST",
        "sync -a -j 4 --delete SRC/ DST",
        "sync -a -j 4 --delete-after SRC/ DST",
        "sync -a --inplace -j 4 SRC/ DST",
        "sync -aHAX --ignore-times -j 2 SRC/ DST",
        "sync -a -j 2 --backup SRC/ DST",
        "cp -aT SRC DST",
        "rm -r DST",
    ] {
        let (case, before) = scene(line);
        files(&case.src(), b"source content that is longer");
        for _ in 0..rounds(12) {
            remove_tree(&case.dst());
            remove_tree(&case.place("link"));
            files(&case.dst(), b"old");
            std::fs::write(case.dst().join("swap/extra"), "extra").unwrap();
            while_swapping(&case, &case.dst(), || case.run());
            canary_lives(&case, &before);
        }
    }
}

#[test]
fn the_source_is_swapped_for_a_link() {
    for line in ["sync -a -j 4 SRC/ DST", "sync -rl -j 4 SRC/ DST", "cp -aT SRC DST"] {
        let (case, before) = scene(line);
        files(&case.place("pristine"), b"source");
        for _ in 0..rounds(12) {
            remove_tree(&case.src());
            must(Command::new("cp").arg("-a").arg(case.place("pristine")).arg(case.src()));
            // The exchange needs one file system; the link lives beside the source.
            let link = case.src().with_file_name("link");
            let _ = std::fs::remove_file(&link);
            remove_tree(&link);
            std::os::unix::fs::symlink(case.place("canary/swap"), &link).unwrap();
            remove_tree(&case.dst());
            let swap = case.src().join("swap");
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let _ = renameat_with(CWD, &swap, CWD, &link, RenameFlags::EXCHANGE);
                    }
                });
                case.run();
                done.store(true, Ordering::Relaxed);
            });
            for (path, entry) in &Snapshot::of(&case.dst()).entries {
                if entry.kind != FileType::RegularFile {
                    continue;
                }
                let name = String::from_utf8(path.clone()).unwrap();
                let bytes = std::fs::read(case.dst().join(name)).unwrap_or_default();
                assert!(bytes != CANARY, "{line}: {} came from outside", show(path));
            }
            canary_lives(&case, &before);
        }
    }
}
