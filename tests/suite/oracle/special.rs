//! Options whose effects go beyond the tree: mount points, deletion limits, shared inodes, rates, logs,
//! temporary folders.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use crate::common::snapshot::Snapshot;
use crate::common::{have, have_root, must};
use crate::oracle::stage;
use std::process::Command;
use std::time::Instant;

#[test]
fn one_file_system_stops_at_mount_points() {
    if !have_root("-x") {
        return;
    }
    for line in ["sync -ax SRC/ DST", "sync -ax --delete SRC/ DST", "sync -rx SRC DST"] {
        case(line, |c| {
            std::fs::create_dir_all(c.src().join("mounted")).unwrap();
            std::fs::write(c.src().join("file"), "here").unwrap();
            let point = c.src().join("mounted");
            must(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&point));
            std::fs::write(point.join("inside"), "elsewhere").unwrap();
            let runs = (c.run(), c.oracle());
            let trees = (Snapshot::of(&c.dst()), Snapshot::of(&c.oracle_dst()));
            must(Command::new("umount").arg(&point));
            assert_eq!(runs.0.code, runs.1.code, "{} {}", runs.0, runs.1);
            assert!(
                trees.0.not_in(&Snapshot::default()).iter().all(|name| !name.ends_with("inside"))
            );
            let names = |tree: &Snapshot| tree.entries.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&trees.0), names(&trees.1));
        });
    }
}

#[test]
fn max_delete_stops_at_its_number() {
    for (line, left) in [
        ("sync -a --delete --max-delete=2 SRC/ DST", 3),
        ("sync -a --delete-after --max-delete=4 SRC/ DST", 1),
        ("sync -a --delete-before --max-delete=1 SRC/ DST", 4),
    ] {
        case(line, |c| {
            std::fs::create_dir(c.src()).unwrap();
            for dir in [c.dst(), c.oracle_dst()] {
                std::fs::create_dir(&dir).unwrap();
                (0..5).for_each(|n| std::fs::write(dir.join(format!("x{n}")), "x").unwrap());
            }
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!(theirs.code, 25);
            ours.expect(25);
            assert_eq!(std::fs::read_dir(c.dst()).unwrap().count(), left, "{ours}");
            assert_eq!(std::fs::read_dir(c.oracle_dst()).unwrap().count(), left);
        });
    }
}

#[test]
fn link_dest_shares_inodes_of_unchanged_files_only() {
    case("sync -a --link-dest=OLD SRC/ DST/", |c| {
        stage::source(&c.src());
        must(Command::new("rsync").arg("-a").arg(c.src().join("a")).arg(c.old()));
        std::fs::write(c.src().join("a/new.txt"), "changed since").unwrap();
        std::fs::create_dir(c.dst()).unwrap();
        c.run().ok();
        c.target_is_source(&Fields { groups: false, ..Fields::ALL });
        let (old, new) = (Snapshot::of(&c.old()), Snapshot::of(&c.dst()));
        let inode = |tree: &Snapshot, name: &str| tree.get(name).unwrap().ino;
        assert_eq!(inode(&old, "a/same.txt"), inode(&new, "a/same.txt"));
        assert_ne!(inode(&old, "a/new.txt"), inode(&new, "a/new.txt"));
    });
}

#[test]
fn inplace_keeps_the_inode_and_replacing_does_not() {
    for (line, kept) in [("sync -a --inplace SRC/ DST", true), ("sync -a SRC/ DST", false)] {
        case(line, |c| {
            std::fs::create_dir(c.src()).unwrap();
            std::fs::create_dir(c.dst()).unwrap();
            std::fs::write(c.src().join("f"), "new and longer").unwrap();
            std::fs::write(c.dst().join("f"), "old").unwrap();
            let before = Snapshot::of(&c.dst()).get("f").unwrap().ino;
            // An open reader sees the old content to its end, except in place.
            let mut reader = std::fs::File::open(c.dst().join("f")).unwrap();
            c.run().ok();
            c.target_is_source(&Fields::CONTENT);
            assert_eq!(before == Snapshot::of(&c.dst()).get("f").unwrap().ino, kept);
            let mut seen = String::new();
            std::io::Read::read_to_string(&mut reader, &mut seen).unwrap();
            assert_eq!(seen, if kept { "new and longer" } else { "old" });
        });
    }
}

#[test]
fn bwlimit_limits() {
    case("sync -a --bwlimit=2m SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        for n in 0..4 {
            std::fs::write(c.src().join(n.to_string()), vec![b'x'; 1 << 20]).unwrap();
        }
        let start = Instant::now();
        c.run().ok();
        let seconds = start.elapsed().as_secs_f64();
        assert!((1.2..6.0).contains(&seconds), "4 MiB at 2 MiB/s took {seconds} s");
        c.target_is_source(&Fields::ALL);
    });
}

#[test]
fn temp_dir_holds_the_temporaries_and_is_left_empty() {
    let line = "sync -a --temp-dir=OLD SRC/ DST";
    let Some(to) = Area::new(Fs::Ext4, line) else { return };
    let case = Case::new(line, Area::tmpfs(), to);
    stage::source(&case.src());
    std::fs::create_dir(case.old()).unwrap();
    case.run().ok();
    case.target_is_source(&Fields { groups: false, ..Fields::ALL });
    assert_eq!(std::fs::read_dir(case.old()).unwrap().count(), 0);
}

#[test]
fn temp_dir_on_another_file_system_works() {
    let Some(other) = Volume::new(Fs::Ext4, 64, &[], "--temp-dir elsewhere") else { return };
    let line = format!("sync -a --temp-dir={} SRC/ DST", other.path().display());
    case(&line, |c| {
        stage::source(&c.src());
        c.run().ok();
        c.target_is_source(&Fields { groups: false, ..Fields::ALL });
    });
}

#[test]
fn log_file_gets_the_itemized_lines() {
    case("sync -a --log-file=LIST SRC/ DST", |c| {
        stage::source(&c.src());
        assert_eq!(c.run().ok().out(), "");
        let log = std::fs::read_to_string(c.list()).unwrap();
        assert!(log.lines().any(|line| line.ends_with("a/new.txt")), "{log}");
    });
}

#[test]
fn reflink_shares_extents_or_says_that_it_cannot() {
    for (fs, code) in [(Fs::Btrfs, 0), (Fs::Xfs, 0), (Fs::Ext4, 1)] {
        let line = "cp --reflink=always SRC/file DST/file";
        let (Some(from), Some(to)) = (Area::new(fs, line), Area::new(fs, line)) else { continue };
        let case = Case::new(line, from, to);
        std::fs::create_dir(case.src()).unwrap();
        std::fs::create_dir(case.dst()).unwrap();
        std::fs::write(case.src().join("file"), vec![7_u8; 1 << 20]).unwrap();
        case.run().expect(code);
        if code == 0 {
            case.target_is_source(&Fields { dir_times: false, ..Fields::CONTENT });
            if have("filefrag", "reading extents") {
                let of = |dir: std::path::PathBuf| {
                    let text = must(Command::new("filefrag").arg("-v").arg(dir.join("file")));
                    String::from_utf8_lossy(&text).contains("shared")
                };
                assert!(of(case.dst()), "no shared extent on {}", fs.name());
            }
        } else {
            assert!(!case.dst().join("file").exists(), "left an empty file");
        }
    }
}
