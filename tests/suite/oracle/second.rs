//! A repeated command does nothing: no output, no file in the summary, no inode touched. Users repeat a sync
//! to be sure, which must not enlarge snapshots and backups.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case};
use crate::common::grow::{Plan, grow};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use crate::common::{have, have_root};
use crate::tools::place::Place;
use serde_json::Value;

fn second_run(fs: Fs, line: &str) {
    let (Some(from), Some(to)) = (Area::new(Fs::Tmpfs, line), Area::new(fs, line)) else { return };
    let plan = Plan { hostile: true, ..Plan::full(Features::probe(to.path())) };
    let case = Case::new(line, from, to);
    grow(&case.src(), 7, &plan);
    std::fs::create_dir(case.dst()).unwrap();
    case.run().ok();
    let before = Snapshot::of(&case.dst());
    assert!(before.entries.len() > 50, "nothing was copied: {line}");
    let run = case.run_line(&format!("{line} -i"));
    assert!(run.ok().items().is_empty(), "a second run did something: {run}");
    let run = case.run_line(&format!("{line} --json"));
    let summary = run.ok().out().lines().last().map(str::to_owned).unwrap_or_default();
    let summary: Value = serde_json::from_str(&summary).expect("a JSON summary");
    assert_eq!(summary["files"], 0, "{run}");
    assert_eq!(summary["bytes"], 0, "{run}");
    assert_eq!(summary["deleted"], 0, "{run}");
    let after = Snapshot::of(&case.dst());
    assert!(before.ctimes() == after.ctimes(), "a second run touched inodes: {line}");
}

macro_rules! second_runs {
    ($($name:ident: $line:literal)*) => {$(
        #[test]
        fn $name() {
            for fs in Fs::ALL {
                second_run(fs, $line);
            }
        }
    )*};
}

second_runs! {
    archive: "sync -a SRC/ DST"
    archive_with_all_attributes: "sync -aHAX SRC/ DST"
    archive_with_holes: "sync -aHAXS --delete SRC/ DST"
    checksum: "sync -ac SRC/ DST"
    relative: "sync -aR SRC/./ DST"
    links_and_times: "sync -rlt SRC/ DST"
    into_the_target: "sync -aH SRC DST"
    size_only: "sync -rl --size-only SRC/ DST"
    delete_after: "sync -a --delete-after SRC/ DST"
    numeric: "sync -aAX --numeric-ids --no-owner SRC/ DST"
}

/// Only the nanoseconds differ: with a window the rule is rsync's, which compares whole seconds
/// unless told otherwise.
#[test]
fn fractions_of_a_second() {
    for line in ["sync -a -i --modify-window=0 SRC/ DST", "sync -a -i --modify-window=-1 SRC/ DST"]
    {
        case(line, |c| {
            for dir in [c.src(), c.dst(), c.oracle_dst()] {
                std::fs::create_dir(&dir).unwrap();
                std::fs::write(dir.join("file"), "same").unwrap();
                let ns = if dir == c.src() { 5 } else { 999 };
                crate::common::grow::set_mtime(&dir.join("file"), 1_000_000_000, ns);
                crate::common::grow::set_mtime(&dir, 1_000_000_000, 0);
            }
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!(ours.ok().out(), theirs.ok().out(), "{ours}");
            c.target_is_oracles(&crate::common::diff::Fields::ALL);
        });
    }
}

// FUSE file systems with habits of their own. libfuse 2 drops a call that sets only one time: times arrive, and a second
// run finds nothing to do. sshfs lists a directory once for each descriptor: what is extraneous is removed.

#[test]
fn times_are_kept_through_libfuse_2() {
    if !have_root("a FUSE mount") || !have("bindfs", "times through libfuse 2") {
        return;
    }
    let place = Place::new();
    place.sh(
        "mkdir -p s/d real m; for i in 1 2 3; do echo $i > s/$i; touch -d 2001-0$i-01 s/$i; done
         echo x > s/d/x; ln -s x s/link; touch -hd 2003-03-03 s/d/x s/link; touch -d 2002-02-02 s/d s",
    );
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state; trap 'umount m' EXIT; bindfs real m || exit 77
         for line in 'sync -a s/ m/t/' 'sync -aU s/ m/v/' 'cp -a s m/u' 'cp -r --preserve=timestamps s m/w'; do
             $H $line || exit 3
             to=${line##* }; to=${to%/}
             for e in 1 2 3 d/x d .; do
                 [ $(stat -c %Y s/$e) = $(stat -c %Y $to/$e) ] || { echo $line: $e; exit 4; }
             done
         done
         $H sync -ai s/ m/t/ || exit 5
         echo y >> s/1; touch -d 2001-05-05 s/1; $H sync -a s/ m/t/ && $H sync -ai s/ m/t/",
    );
    if run.code == 77 {
        return crate::common::skip("times through libfuse 2: bindfs cannot mount");
    }
    assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
}

#[test]
fn sshfs_without_a_cache_of_listings() {
    const SERVER: &str = "/usr/lib/openssh/sftp-server";
    if !have_root("a FUSE mount") || !have("sshfs", "deletion through sshfs") {
        return;
    }
    if !std::path::Path::new(SERVER).exists() {
        return crate::common::skip("deletion through sshfs: needs openssh-sftp-server");
    }
    let place = Place::new();
    place.sh(&format!(
        "printf '#!/bin/sh\\nexec {SERVER}\\n' > ssh; chmod +x ssh; mkdir -p s/d real/t/d/junk/deep m
         echo x > s/f; echo y > s/d/g; echo z > real/t/extra; echo z > real/t/d/junk/deep/q; touch real/t/d/one"
    ));
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state
         sshfs -o dir_cache=no,ssh_command=$PWD/ssh x:$PWD/real m || exit 77; trap 'umount m' EXIT
         $H sync -a --delete s/ m/t/ && diff -r s real/t || exit 3
         echo z > real/t/d/two; $H sync -a --delete-after s/ m/t/ && diff -r s real/t || exit 4
         echo z > real/t/d/two; $H sync -a --delete-before s/ m/t/ && diff -r s real/t",
    );
    if run.code == 77 {
        return crate::common::skip("deletion through sshfs: it cannot mount");
    }
    assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
}
