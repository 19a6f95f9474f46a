//! Number of calls that look up a name: as many as necessary, none if the listing provides the type. Counted
//! by strace, because a network file system answers each one remotely.

use super::place::Place;
use crate::common::grow::age;
use crate::common::{have, program};
use crate::wire::server::Stage;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIRS: usize = 20;
const FILES: usize = 49;
/// Folders, folders in them and files.
const ENTRIES: usize = DIRS * (2 + FILES);
/// Looks that do not depend on the size of the tree: at arguments, at what is remembered, and those of two milliseconds
/// in which an update estimates the space that it needs.
const FIXED: usize = 200;

const STRACE: &str = "strace -f -qq -e trace=stat,lstat,newfstatat,statx,prctl -o";

/// Names that were looked at by name (not through a descriptor) in a run of `words`.
fn looks(place: &Place, words: &str) -> usize {
    logged(&trace(place, STRACE, words))
}

/// Runs `words` under strace; returns its log.
fn trace(place: &Place, strace: &str, words: &str) -> PathBuf {
    let log = place.path().join("calls");
    let mut strace = strace.split(' ');
    let mut command = Command::new(strace.next().unwrap());
    command.args(strace).arg(&log).arg(program()).args(words.split(' '));
    command.current_dir(place.path()).env("XDG_STATE_HOME", place.path().join("state"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    log
}

fn logged(log: &Path) -> usize {
    let log = std::fs::read_to_string(log).unwrap();
    // The estimate for a new target takes as long as it may, on a thread of its own.
    let named = |line: &&str| line.contains("prctl(PR_SET_NAME, \"space\")");
    let estimates: Vec<&str> =
        log.lines().filter(named).filter_map(|line| line.split(' ').next()).collect();
    // Names of a tree are looked at from its folders. Whole paths are those of arguments, and of what the machine has
    // and does, which is looked at now and then as long as a run takes.
    let elsewhere = ["AT_EMPTY_PATH", "\"/", "prctl("];
    let is_look = |line: &&str| {
        line.contains('(')
            && !elsewhere.iter().any(|is| line.contains(is))
            && !line.split(' ').next().is_some_and(|thread| estimates.contains(&thread))
    };
    log.lines().filter(is_look).count()
}

fn place() -> Place {
    let place = Place::new();
    for dir in 0..DIRS {
        let sub = place.path().join(format!("src/{dir}/sub"));
        std::fs::create_dir_all(&sub).unwrap();
        for file in 0..FILES {
            std::fs::write(sub.join(file.to_string()), file.to_string()).unwrap();
        }
    }
    age(&place.path().join("src"));
    place
}

#[test]
fn names_are_looked_at_no_more_often_than_needed() {
    if !have("strace", "calls of a name") {
        return;
    }
    let place = place();
    for (words, each) in [
        // Sources are opened and looked at through their descriptors.
        ("sync -a -j 2 src/ dst", 0),
        ("cp -r -j 2 src copy", 0),
        // Both sides of each.
        ("sync -a -j 2 src/ dst", 2),
        ("verify -j 2 src dst", 2),
        // Each name of the target also at the source, in case it came meanwhile: removing trusts no listing.
        ("sync -a -j 2 --delete src/ dst", 3),
        ("du -j 2 src", 1),
        ("du -a -j 2 src", 1),
        // The listing has the types.
        ("rm -rn -j 2 --exclude=none copy", 0),
        ("rm -r -j 2 --exclude=0 copy", 0),
        ("rm -r -j 2 copy", 0),
    ] {
        let found = looks(&place, words);
        assert!(found <= each * ENTRIES + FIXED, "{words}: {found} looks at {ENTRIES} entries");
    }
}

/// Leftovers of killed runs are looked for in the reading that shows whether a target directory is empty.
#[test]
fn directories_that_are_up_to_date_are_read_once() {
    if !have("strace", "calls of a name") {
        return;
    }
    let place = place();
    let words = "sync -a -j 2 src/ dst";
    looks(&place, words);
    let log = trace(&place, "strace -f -qq -e trace=getdents64 -o", words);
    let log = std::fs::read_to_string(log).unwrap();
    let reads = log.lines().filter(|line| line.contains("getdents64(")).count();
    // Both sides, each with the call that proves the end, and what is read for an estimate in two milliseconds.
    let most = 4 * (1 + 2 * DIRS) + 30;
    assert!(reads <= most, "{reads} reads of directories, expected at most {most}");
}

#[test]
fn extraneous_folders_are_removed_by_their_listings() {
    if !have("strace", "calls of a name") {
        return;
    }
    let place = place();
    place.sh("mkdir empty");
    let found = looks(&place, "sync -a -j 2 --delete empty/ src");
    assert!(
        found <= DIRS + FIXED,
        "{found} looks at {DIRS} extraneous folders of {ENTRIES} entries"
    );
    assert_eq!(place.sh("ls src"), "");
}

#[test]
fn a_listing_for_a_store_looks_once() {
    if !have("strace", "calls of a name") {
        return;
    }
    let place = place();
    let stage = Stage::new();
    let server = stage.serve("");
    let (log, src) = (place.path().join("calls"), place.path().join("src"));
    let strace = format!("{STRACE} {}", log.display());
    server.run_by(&strace, &format!("sync -n -r {}/ s3://bkt/p/", src.display())).ok();
    let found = logged(&log);
    assert!(found <= ENTRIES + FIXED, "{found} looks at {ENTRIES} entries");
}

// Trees deeper than the limit of open directories: closed ones are reopened with few calls.

/// One chain of directories is copied, looked at again, and proved to be the same.
#[test]
fn directories_of_a_deep_tree_are_opened_a_few_times_each() {
    const DEPTH: usize = 1500;
    let place = Place::new();
    place.deep("s", "d", DEPTH, "f");
    for (run, per_dir_max) in [("first", 16), ("second", 16)] {
        place.sh(&format!(
            "ulimit -n 64; strace -f -q -e trace=openat,openat2 -o {run}.log $H sync -a -j 4 s/ t/"
        ));
        let opened = std::fs::read_to_string(place.path().join(format!("{run}.log"))).unwrap();
        let opened = opened.lines().filter(|line| line.contains("openat")).count();
        assert!(opened < per_dir_max * DEPTH, "{run}: {opened} for {DEPTH} directories");
    }
    place.sh("$H verify s t");
}
