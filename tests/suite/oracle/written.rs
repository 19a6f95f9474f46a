//! rsync options about writing files and keeping attributes, compared with rsync.

use super::meanings::{T, agree, file};
use crate::common::case::case;
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::snapshot::Snapshot;
use crate::common::{have_root, must, remove_tree};
use std::fs::{create_dir, create_dir_all, read, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

#[test]
fn missing_arguments_are_passed_over_or_removed() {
    for line in [
        "sync -a --ignore-missing-args SRC/a SRC/gone DST",
        "sync -ar --ignore-missing-args --files-from=LIST SRC DST",
        "sync -a --delete-missing-args SRC/a SRC/gone SRC/full SRC/hollow DST",
        "sync -ar --delete-missing-args --files-from=LIST SRC DST",
        "sync -arn --delete-missing-args --files-from=LIST SRC DST",
        "sync -a --delete-missing-args --force SRC/a SRC/full DST",
        "sync -ab --delete-missing-args SRC/a SRC/gone DST",
        "sync -a --ignore-missing-args SRC/nope DST",
    ] {
        case(line, |c| {
            file(&c.src().join("a/f"), "f", T);
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("gone"), "gone", T);
                file(&root.join("full/x"), "x", T);
                create_dir_all(root.join("hollow")).unwrap();
                file(&root.join("a/extra"), "extra", T);
            }
            write(c.list(), "a\ngone\nfull\nhollow\nnever\n").unwrap();
            agree(c, &Fields { dir_times: false, ..Fields::ALL });
        });
    }
}

#[test]
fn shorter_files_are_appended_to() {
    for line in [
        "sync -a --append SRC/ DST",
        "sync -a --append-verify SRC/ DST",
        "sync -ac --append SRC/ DST",
        "sync -ab --append SRC/ DST",
        "sync -an --append SRC/ DST",
    ] {
        case(line, |c| {
            let long = "0123456789".repeat(100_000);
            for (name, ours) in
                [("f", long.as_str()), ("wrong", &long), ("same", "abc"), ("new", "new")]
            {
                file(&c.src().join(name), ours, T);
            }
            file(&c.src().join("longer"), "short", T);
            file(&c.src().join("modes"), "modes", T);
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("f"), &long[..400_005], T - 5);
                file(&root.join("wrong"), &"X".repeat(500), T - 5);
                file(&root.join("same"), "abc", T - 5);
                file(&root.join("longer"), "much longer", T - 5);
                file(&root.join("modes"), "modes", T);
                let mode = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(root.join("modes"), mode).unwrap();
            }
            create_dir_all(c.dst()).unwrap();
            let before = Snapshot::of(&c.dst()).get("f").unwrap().ino;
            let run = agree(c, &Fields { dir_times: false, ..Fields::ALL });
            assert_eq!(Snapshot::of(&c.dst()).get("f").unwrap().ino, before, "{run}");
        });
    }
    for other in ["--partial-dir=p", "--delay-updates"] {
        case(&format!("sync -a --append {other} SRC/ DST"), |c| {
            create_dir(c.src()).unwrap();
            assert_eq!((c.run().code, c.oracle().code), (1, 1));
        });
    }
}

/// Only what is missing is read and written.
#[test]
fn appending_moves_what_is_missing() {
    case("sync -a --append --json SRC/ DST", |c| {
        file(&c.src().join("f"), &"x".repeat(3_000_000), T);
        file(&c.dst().join("f"), &"y".repeat(2_999_000), T - 5);
        assert_eq!(c.run().ok().summary()["bytes"], 1000);
        assert!(read(c.dst().join("f")).unwrap().starts_with(b"yyy"));
    });
}

#[test]
fn access_times_executability_and_times_of_links() {
    let at = |path: &Path, atime: i64| {
        use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
        let time = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
        let times = Timestamps { last_access: time(atime), last_modification: time(T) };
        rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    };
    case("sync -aU SRC/ DST", |c| {
        file(&c.src().join("f"), "f", T);
        file(&c.src().join("g"), "g", T);
        at(&c.src().join("f"), T - 100);
        let atime = |root: &Path| std::fs::metadata(root.join("f")).unwrap().atime();
        c.run().ok();
        assert_eq!(atime(&c.dst()), T - 100);
        at(&c.src().join("f"), T + 100);
        let run = c.run_line("sync -aUi SRC/ DST");
        assert!(run.ok().items().iter().any(|line| line == ".f......u.. f"), "{run}");
        assert_eq!(atime(&c.dst()), T + 100);
        // Reading leaves it alone.
        at(&c.src().join("f"), 1000);
        remove_tree(&c.dst());
        c.run_line("sync -a --open-noatime SRC/ DST").ok();
        assert_eq!(atime(&c.src()), 1000);
        remove_tree(&c.dst());
        c.run_line("sync -rU SRC/ DST").ok();
        assert_eq!(atime(&c.dst()), 1000);
        assert!(std::fs::metadata(c.dst().join("f")).unwrap().mtime() > T + 1000);
    });
    case("sync -rtE SRC/ DST", |c| {
        for from in [0o644, 0o755, 0o711, 0o600] {
            for to in [0o644, 0o755, 0o711, 0o600, 0o4755] {
                let name = format!("{from:o}-{to:o}");
                for (root, mode) in [(c.src(), from), (c.dst(), to), (c.oracle_dst(), to)] {
                    file(&root.join(&name), "x", T);
                    let mode = std::fs::Permissions::from_mode(mode);
                    std::fs::set_permissions(root.join(&name), mode).unwrap();
                }
            }
        }
        file(&c.src().join("new"), "new", T);
        agree(c, &Fields { dir_times: false, ..Fields::ALL }).ok();
    });
    for line in ["sync -aJ SRC/ DST", "sync -aJ --no-J SRC/ DST"] {
        case(line, |c| {
            create_dir(c.src()).unwrap();
            symlink("x", c.src().join("link")).unwrap();
            set_mtime(&c.src().join("link"), T, 0);
            agree(c, &Fields { dir_times: false, ..Fields::ALL }).ok();
        });
    }
}

#[test]
fn without_superuser_owners_and_devices_are_left_out() {
    if !have_root("owners") {
        return;
    }
    case("sync -a --no-super SRC/ DST", |c| {
        file(&c.src().join("f"), "f", T);
        std::os::unix::fs::chown(c.src().join("f"), Some(1000), Some(0)).unwrap();
        must(Command::new("mknod").arg(c.src().join("null")).args(["c", "1", "3"]));
        must(Command::new("mkfifo").arg(c.src().join("fifo")));
        agree(c, &Fields { dir_times: false, ..Fields::ALL });
        assert_eq!(std::fs::metadata(c.dst().join("f")).unwrap().uid(), 0);
    });
}

/// No file has its new content before all have it; what is killed meanwhile leaves the old ones.
#[test]
fn delayed_files_appear_together() {
    case("sync -a --delay-updates --remove-source-files SRC/ DST", |c| {
        for root in [c.dst(), c.oracle_dst()] {
            file(&root.join("d/old"), "old", T - 5);
        }
        file(&c.src().join("d/old"), "new content", T);
        file(&c.src().join("d/new"), "new", T);
        file(&c.src().join("e/new"), "new", T);
        must(Command::new("cp").arg("-a").arg(c.src()).arg(c.place("saved")));
        c.run().ok();
        c.same(
            "what arrived",
            &c.place("saved"),
            &c.dst(),
            &Fields { dir_times: false, ..Fields::ALL },
        );
        assert!(!c.src().join("e/new").exists());
    });
    // The last file fails: what was complete before gets its name all the same, and its source goes; the one
    // that failed keeps both.
    case("sync -a --delay-updates --remove-source-files SRC/ DST", |c| {
        file(&c.src().join("good"), "good", T);
        file(&c.src().join("bad"), "bad", T);
        file(&c.dst().join("bad/full"), "in the way", T);
        c.run().expect(23);
        assert!(c.dst().join("good").exists() && !c.src().join("good").exists());
        assert!(c.src().join("bad").exists() && c.dst().join("bad/full").exists());
    });
}

#[test]
fn a_run_ends_at_its_time() {
    case("sync -a --stop-at=2001-01-01T00:00 SRC/ DST", |c| {
        create_dir(c.src()).unwrap();
        c.run().expect(1).says(&["has passed"]);
        c.run_line("sync -a --stop-after=x SRC/ DST").expect(1).says(&["not a number of minutes"]);
        c.run_line("sync -a --stop-at=25:00 SRC/ DST").expect(1).says(&["not a time such as"]);
        c.run_line("sync -a --stop-after=100 --stop-at=23:59 SRC/ DST").ok();
    });
}
