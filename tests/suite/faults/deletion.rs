//! Deletion is suppressed if the source could not be read completely.

use crate::common::area::Area;
use crate::common::case::{Case, case};
use crate::common::snapshot::Snapshot;
use crate::common::{have, have_root, program};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn files(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
}

/// Every listing of a source fails once in turn: whatever is deleted must be extraneous, and where
/// listing failed nothing may be deleted at all.
#[test]
fn a_listing_that_fails_deletes_nothing_there() {
    if !have("strace", "failing listings") {
        return;
    }
    for when in [
        "--delete",
        "--delete-before",
        "--delete-during",
        "--delete-delay",
        "--delete-after",
        "--delete-excluded",
    ] {
        for moment in 1..=8 {
            let case = Case::new(&format!("sync -a {when} -j 1"), Area::tmpfs(), Area::tmpfs());
            files(&case.src(), &["one/keep", "two/keep", "three/keep", "top"]);
            files(&case.dst(), &["one/keep", "two/keep", "three/keep", "top"]);
            let mut command = Command::new("strace");
            // Cargo names folders of libraries, each of which is searched by a call of its own.
            command.env_remove("LD_LIBRARY_PATH");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
            command.arg(format!("inject=getdents64:error=EIO:when={moment}"));
            command.arg(program()).args(["sync", "-a", when, "-j", "1"]);
            let output = command.arg(case.src().join("")).arg(case.dst()).output().unwrap();
            let target = Snapshot::of(&case.dst());
            for name in ["one/keep", "two/keep", "three/keep", "top"] {
                assert!(target.has(name), "{when}, listing {moment} failed: lost {name}");
            }
            // Nothing was to be done; a listing that failed must not be passed over in silence.
            let code = output.status.code().unwrap();
            assert!(code == 0 || !output.stderr.is_empty());
        }
    }
}

#[test]
fn an_unreadable_directory_keeps_its_target() {
    if !have_root("an ordinary user") {
        return;
    }
    for (line, deleted) in [
        ("sync -rlt --delete SRC/ DST", false),
        ("sync -rlt --delete-after SRC/ DST", false),
        ("sync -rlt --delete --ignore-errors SRC/ DST", true),
    ] {
        case(line, |c| {
            files(&c.src(), &["closed/a", "open/a"]);
            files(&c.dst(), &["closed/a", "closed/extra", "open/a", "open/extra"]);
            for root in [c.src(), c.dst()] {
                crate::faults::user::give_away(&root);
            }
            std::fs::set_permissions(c.src().join("closed"), PermissionsExt::from_mode(0o000))
                .unwrap();
            let run = crate::faults::user::run_as_nobody(c, line);
            run.expect(23).says(&["closed"]);
            let target = Snapshot::of(&c.dst());
            if deleted {
                assert!(!target.has("open/extra"), "{run}");
            } else {
                assert!(target.has("closed/extra"), "deleted below an unreadable directory: {run}");
            }
        });
    }
}

#[test]
fn a_missing_source_deletes_nothing() {
    for line in ["sync -a --delete SRC/missing/ DST", "sync -a --delete SRC/a SRC/missing DST"] {
        case(line, |c| {
            files(&c.src(), &["a/file"]);
            files(&c.dst(), &["a/file", "old", "missing/old"]);
            c.run().expect(23).says(&["missing"]);
            let target = Snapshot::of(&c.dst());
            assert!(target.has("old") && target.has("missing/old"), "deleted for a missing source");
        });
    }
}

#[test]
fn an_empty_source_is_a_source() {
    case("sync -a --delete SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        files(&c.dst(), &["a", "b/c"]);
        c.run().ok();
        assert_eq!(Snapshot::of(&c.dst()).entries.len(), 1);
    });
}

/// A symlink in the target is removed, not what it points to.
#[test]
fn deletion_does_not_follow_links() {
    for line in ["sync -a --delete SRC/ DST", "sync -aK --delete SRC/ DST", "rm -r DST"] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            files(&c.place("canary"), &["precious/file"]);
            files(&c.dst(), &["a"]);
            std::os::unix::fs::symlink(c.place("canary"), c.dst().join("link")).unwrap();
            std::os::unix::fs::symlink("..", c.dst().join("up")).unwrap();
            c.run().ok();
            assert!(c.place("canary/precious/file").exists());
            assert!(!c.dst().join("link").is_symlink());
        });
    }
}
