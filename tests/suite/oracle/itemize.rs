//! Names in the output are escaped for the terminal like in rsync.

use super::meanings::{T, file};
use crate::common::case::{Case, Run, case};
use crate::common::grow::set_mtime;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const NAMES: &[&[u8]] = &[
    b"plain",
    b"with space ",
    b"line\nbreak",
    b"tab\there",
    b"bell\x07",
    b"\xff\xfe not UTF-8",
    b"\xe9\x81\x8b\xe3\x81\xb6",
    b"\xc3\xa9t\xc3\xa9",
    b"back\\slash",
    b"looks\\#012escaped",
    b"-n",
];

fn odd(root: &Path) {
    std::fs::create_dir(root).unwrap();
    for name in NAMES {
        let path = root.join(OsStr::from_bytes(name));
        std::fs::write(&path, name).unwrap();
        set_mtime(&path, 1_500_000_000, 0);
        let link = [name, &b".link"[..]].concat();
        std::os::unix::fs::symlink(OsStr::from_bytes(name), root.join(OsStr::from_bytes(&link)))
            .unwrap();
    }
}

#[test]
fn odd_names_are_escaped_as_rsync_does() {
    for line in ["sync -a -i SRC/ DST", "sync -a -n -i SRC/ DST"] {
        case(line, |c| {
            odd(&c.src());
            [c.dst(), c.oracle_dst()].iter().for_each(|dir| std::fs::create_dir(dir).unwrap());
            assert_eq!(c.run().ok().items(), c.oracle().ok().items());
        });
    }
}

#[test]
fn odd_names_are_deleted_and_itemized() {
    case("sync -a -i --delete SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        odd(&c.dst());
        odd(&c.oracle_dst());
        set_mtime(&c.src(), 1_500_000_000, 0);
        assert_eq!(c.run().ok().items(), c.oracle().ok().items());
        c.target_is_oracles(&crate::common::diff::Fields::ALL);
    });
}

#[test]
fn verbose_names_every_file() {
    case("sync -av SRC/ DST", |c| {
        odd(&c.src());
        let (ours, theirs) = (c.run(), c.oracle());
        let names = |lines: Vec<String>| {
            let kept = |l: &String| !l.starts_with("sen") && !l.starts_with("total");
            lines.into_iter().filter(kept).collect::<Vec<_>>()
        };
        let ours = names(ours.ok().sorted());
        for line in names(theirs.ok().sorted()) {
            if line != "created directory" && !line.starts_with("created directory") {
                assert!(ours.contains(&line), "{line} is missing in {ours:?}");
            }
        }
    });
}

#[test]
fn list_only_reads_nothing_and_writes_nothing() {
    for line in ["sync -a --list-only SRC/", "sync --list-only SRC/", "sync -r --list-only SRC/"] {
        case(line, |c| {
            crate::oracle::stage::set(c);
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!(ours.ok().sorted(), theirs.ok().sorted(), "{ours}\n{theirs}");
        });
    }
}

/// Lines of entries that a tree beside the target has, alike or not, with hard links.
#[test]
fn trees_beside_the_target() {
    for option in ["--link-dest", "--copy-dest", "--compare-dest"] {
        for rest in ["-aHi", "-aHii", "-aHv", "-aHvv", "-aHin", "-aHini", "-rli", "-aHiiI"] {
            for older in [false, true] {
                case(&format!("sync -j1 {rest} {option}=OLD SRC/ DST/"), |c| {
                    beside(c, older);
                    let (ours, theirs) = (c.run(), c.oracle_line(&c.line.replace("-j1 ", "")));
                    assert_eq!(ours.code, theirs.code, "{ours}\n{theirs}");
                    let lines = |run: &Run| {
                        let mut lines = run.sorted();
                        let starts = ["sent ", "total", "sending ", "created dir", "delta-"];
                        lines.retain(|line| !starts.iter().any(|start| line.starts_with(start)));
                        lines
                    };
                    assert_eq!(lines(&ours), lines(&theirs), "{ours}\n{theirs}");
                });
            }
        }
    }
}

/// Fills the trees of a case. `older`: some entries are at the target.
fn beside(c: &Case, older: bool) {
    for root in [c.src(), c.old()] {
        for name in ["d/x", "linked", "mode", "same", "size", "time"] {
            file(&root.join(name), name, T);
        }
        for (to, name) in [("linked", "z1"), ("mode", "z2"), ("size", "z3")] {
            std::fs::hard_link(root.join(to), root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("text", root.join("text")).unwrap();
        // rsync's dry run shows a link that its run makes without a line.
        if !c.line.contains("-aHin") {
            std::fs::hard_link(root.join("text"), root.join("ztext")).unwrap();
        }
        std::os::unix::fs::symlink(root.file_name().unwrap(), root.join("texts")).unwrap();
        set_mtime(&root.join("text"), T, 0);
        set_mtime(&root.join("texts"), T, 0);
    }
    std::fs::set_permissions(c.src().join("mode"), PermissionsExt::from_mode(0o600)).unwrap();
    file(&c.src().join("new"), "new", T);
    set_mtime(&c.src().join("time"), T + 9, 0);
    std::fs::write(c.src().join("size"), "another size").unwrap();
    set_mtime(&c.src().join("size"), T + 9, 0);
    for root in [c.src(), c.old()] {
        set_mtime(&root.join("d"), T, 0);
        set_mtime(&root, T, 0);
    }
    for root in [c.dst(), c.oracle_dst()].iter().filter(|_| older) {
        for name in ["same", "size"] {
            file(&root.join(name), "older", T - 9);
        }
    }
}

/// Lines of hard links whose first name is transferred or made anew although another tree has the others.
#[test]
fn links_beside_a_name_that_is_not_from_the_other_tree() {
    type Fill = fn(&Case);
    let fills: [(Fill, &[&str]); 3] = [
        (
            |c| {
                file(&c.old().join("a"), "other", T + 9);
                file(&c.old().join("b"), "same", T);
            },
            &["--copy-dest", "--link-dest"],
        ),
        (
            |c| {
                file(&c.old().join("b"), "same", T);
                [c.dst(), c.oracle_dst()].iter().for_each(|to| file(&to.join("a"), "other", T + 9));
            },
            &["--copy-dest", "--link-dest"],
        ),
        (
            |c| {
                std::fs::remove_file(c.src().join("a")).unwrap();
                std::fs::remove_file(c.src().join("b")).unwrap();
                for root in [c.src(), c.old()] {
                    symlink("text", root.join("a")).unwrap();
                    set_mtime(&root.join("a"), T, 0);
                    std::fs::hard_link(root.join("a"), root.join("b")).unwrap();
                }
            },
            &["--copy-dest"],
        ),
    ];
    for (fill, options) in fills {
        for option in options {
            case(&format!("sync -j1 -aHii {option}=OLD SRC/ DST/"), |c| {
                file(&c.src().join("a"), "same", T);
                std::fs::hard_link(c.src().join("a"), c.src().join("b")).unwrap();
                [c.dst(), c.oracle_dst(), c.old()]
                    .iter()
                    .for_each(|to| std::fs::create_dir_all(to).unwrap());
                fill(c);
                [c.src(), c.dst(), c.oracle_dst(), c.old()]
                    .iter()
                    .for_each(|root| set_mtime(root, T, 0));
                let (ours, theirs) = (c.run(), c.oracle_line(&c.line.replace("-j1 ", "")));
                assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
                assert!(ours.out().contains("+++++++++ b => a"), "{ours}");
                assert_eq!(ours.sorted(), theirs.sorted(), "{ours}\n{theirs}");
            });
        }
    }
}
