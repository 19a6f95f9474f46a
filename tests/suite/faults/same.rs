//! Overlapping sources and targets: the same file, the same tree, one inside the other.

use crate::common::area::Area;
use crate::common::case::{Case, case};
use crate::common::diff::{Fields, diff};
use crate::common::grow::age;
use crate::common::snapshot::Snapshot;
use std::path::Path;

fn files(root: &Path) {
    for name in ["a", "d/b", "d/e/c"] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name.repeat(100)).unwrap();
    }
}

/// Lines that must leave the source as it is, whatever their code.
fn source_survives(line: &str, codes: &[i32]) {
    case(line, |c| {
        files(&c.src());
        let before = Snapshot::of(&c.src());
        let run = c.run();
        assert!(codes.contains(&run.code), "{run}");
        let after = Snapshot::of(&c.src());
        for (path, entry) in &before.entries {
            let now = after.entries.get(path);
            assert_eq!(now.map(|now| now.hash), Some(entry.hash), "{run}");
        }
    });
}

#[test]
fn the_same_tree() {
    for line in ["sync -a SRC/ SRC", "sync -a SRC/ SRC/", "sync -a --delete SRC/ SRC/."] {
        source_survives(line, &[0, 1, 11, 23]);
    }
    for line in ["sync -aI --inplace SRC/ SRC", "sync -a SRC/a SRC/a", "sync -a SRC/a SRC/"] {
        source_survives(line, &[0, 1, 11, 23]);
    }
}

#[test]
fn the_same_file() {
    for line in ["cp SRC/a SRC/a", "cp -a SRC/a SRC", "cp -f SRC/a SRC/../src/a", "mv SRC/a SRC/a"]
    {
        source_survives(line, &[1]);
    }
    source_survives("cp -a SRC SRC", &[1]);
    source_survives("mv SRC/d SRC/d/e", &[1]);
    source_survives("cp SRC/a SRC/d/b SRC/a", &[1]);
}

/// Copied into itself: an end is reached, and what was there at the start is copied or refused.
#[test]
fn the_target_inside_the_source() {
    for line in [
        "sync -a SRC/ SRC/inside",
        "sync -a SRC SRC/inside",
        "sync -a --delete SRC/ SRC/d",
        "cp -a SRC SRC/inside",
        "cp -r SRC/. SRC/inside",
    ] {
        source_survives(line, &[0, 1, 11, 23]);
        case(line, |c| {
            files(&c.src());
            c.run();
            let count = Snapshot::of(&c.src()).entries.len();
            assert!(count < 40, "{line} went round in circles: {count} entries");
        });
    }
}

/// A hard link of the source at the target is the same file, too.
#[test]
fn a_hard_link_of_the_source() {
    for line in ["sync -aI --inplace SRC/ DST", "sync -aI SRC/ DST", "cp -aT SRC DST"] {
        case(line, |c| {
            files(&c.src());
            std::fs::create_dir(c.dst()).unwrap();
            std::fs::hard_link(c.src().join("a"), c.dst().join("a")).unwrap();
            c.run();
            assert_eq!(std::fs::read_to_string(c.src().join("a")).unwrap(), "a".repeat(100));
            assert_eq!(std::fs::read_to_string(c.dst().join("a")).unwrap(), "a".repeat(100));
        });
    }
}

/// A symlink at the target that leads back to the source.
#[test]
fn a_symlink_back_to_the_source() {
    case("sync -a SRC/ DST", |c| {
        files(&c.src());
        std::fs::create_dir(c.dst()).unwrap();
        std::os::unix::fs::symlink(c.src().join("a"), c.dst().join("a")).unwrap();
        std::os::unix::fs::symlink(c.src().join("d"), c.dst().join("d")).unwrap();
        age(&c.src());
        let before = Snapshot::of(&c.src());
        c.run().ok();
        assert!(diff(&before, &Snapshot::of(&c.src()), &Fields::ALL, 5).is_empty());
        c.target_is_source(&Fields::ALL);
    });
}

/// A symlink that `-K` follows leads to an extraneous directory, which the same run removes while it looks there.
#[test]
fn a_kept_symlink_may_lead_to_what_is_removed() {
    let names = 0..300;
    for round in 0..4 {
        let case = Case::new("sync -aK --delete SRC/ DST", Area::tmpfs(), Area::tmpfs());
        for number in names.clone() {
            let (source, gone) =
                (case.src().join(format!("k{number}")), case.dst().join(format!("e{number}")));
            std::fs::create_dir_all(&source).unwrap();
            std::fs::create_dir_all(&gone).unwrap();
            std::fs::write(source.join("inside"), "new").unwrap();
            std::fs::write(gone.join("inside"), "old").unwrap();
            let link = case.dst().join(format!("k{number}"));
            std::os::unix::fs::symlink(format!("e{number}"), link).unwrap();
        }
        let run = case.run();
        assert_eq!(run.code, 0, "round {round}: {run}");
        case.target_is_source(&Fields::ALL);
    }
}
