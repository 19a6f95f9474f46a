//! rsync options that are easily misunderstood, compared with rsync.

use crate::common::case::{Case, Run, case};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::{have, have_root, must};
use std::fs::{create_dir, create_dir_all, hard_link, read, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

pub(super) const T: i64 = 1_600_000_000;

/// The three trees of a case.
pub(super) fn trees(c: &Case) -> [std::path::PathBuf; 3] {
    [c.src(), c.dst(), c.oracle_dst()]
}

pub(super) fn file(path: &Path, content: &str, time: i64) {
    create_dir_all(path.parent().unwrap()).unwrap();
    write(path, content).unwrap();
    set_mtime(path, time, 0);
}

/// Runs both programs; exit codes and targets must be the same.
pub(super) fn agree(c: &Case, fields: &Fields) -> Run {
    if !have("rsync", "comparison with rsync") {
        return c.run();
    }
    let recent_s = crate::oracle::options::now() - 1;
    let (ours, theirs) = (c.run(), c.oracle());
    assert_eq!(ours.code, theirs.code, "{ours}\n{theirs}");
    c.target_is_oracles(&Fields { recent_s, ..*fields });
    ours
}

/// A new name of a file that the target has under another one: no byte is copied, whichever is met first.
#[test]
fn a_new_name_is_linked_to_what_the_target_has() {
    for names in [["a/new", "b/there"], ["b/new", "a/there"], ["a/new", "a/there"]] {
        case("sync -aH SRC/ DST", |c| {
            for root in trees(c) {
                file(&root.join(names[1]), &"x".repeat(100_000), T);
                create_dir_all(root.join("a")).unwrap();
                create_dir_all(root.join("b")).unwrap();
            }
            hard_link(c.src().join(names[1]), c.src().join(names[0])).unwrap();
            let inode = |name: &str| std::fs::metadata(c.dst().join(name)).unwrap().ino();
            let before = inode(names[1]);
            let dry = c.run_line("sync -aHn --json SRC/ DST").ok().summary();
            assert_eq!(dry["bytes"], 0, "{dry}");
            let summary = c.run_line("sync -aH --json SRC/ DST").ok().summary();
            assert_eq!(summary["bytes"], 0, "{summary}");
            assert_eq!((inode(names[0]), inode(names[1])), (before, before));
            agree(c, &Fields { dir_times: false, ..Fields::ALL });
        });
    }
}

/// Groups of which no name is at the target, or none that is right, or of which names are outside.
#[test]
fn names_without_a_target_are_copied_in_the_end() {
    case("sync -aH --delete SRC/ DST", |c| {
        for root in trees(c) {
            file(&root.join("unrelated"), "x", T);
            file(&root.join("stale"), "older", T - 9);
        }
        file(&c.src().join("stale"), "newer", T);
        for name in ["d/stale2", "e/stale3"] {
            create_dir_all(c.src().join(name).parent().unwrap()).unwrap();
            hard_link(c.src().join("stale"), c.src().join(name)).unwrap();
        }
        file(&c.src().join("fresh"), "fresh", T);
        hard_link(c.src().join("fresh"), c.place("outside")).unwrap();
        hard_link(c.src().join("fresh"), c.src().join("d/fresh2")).unwrap();
        file(&c.src().join("alone"), "alone", T);
        hard_link(c.src().join("alone"), c.place("outside2")).unwrap();
        agree(c, &Fields::ALL).ok();
        c.target_is_source(&Fields { groups: false, ..Fields::ALL });
        assert_eq!(c.run_line("sync -aHi SRC/ DST").ok().out(), "");
    });
}

#[test]
fn link_dest_exchanges_what_is_identical_already() {
    case("sync -a --link-dest=OLD SRC/ DST", |c| {
        for root in [c.src(), c.dst(), c.oracle_dst(), c.old()] {
            file(&root.join("same"), "same", T);
            file(&root.join("d/same"), "same", T);
            set_mtime(&root.join("d"), T, 0);
            set_mtime(&root, T, 0);
        }
        file(&c.dst().join("d/same"), "older", T - 5);
        file(&c.oracle_dst().join("d/same"), "older", T - 5);
        agree(c, &Fields { groups: false, ..Fields::ALL }).ok();
        for name in ["same", "d/same"] {
            let inode = |root: &Path| std::fs::metadata(root.join(name)).unwrap().ino();
            assert_eq!(inode(&c.old()), inode(&c.dst()), "{name}");
            assert_eq!(inode(&c.old()), inode(&c.oracle_dst()), "{name} of rsync");
        }
    });
    // A dry run with a target that is not there yet, and a tree that is named from it.
    case("sync -ani --link-dest=../old SRC/ DST", |c| {
        for root in [c.src(), c.old()] {
            file(&root.join("same"), "same", T);
            set_mtime(&root, T, 0);
        }
        file(&c.src().join("new"), "new", T);
        set_mtime(&c.src(), T, 0);
        let (ours, theirs) = (c.run(), c.oracle());
        assert!(!ours.ok().out().contains("same"), "{ours}");
        // rsync compares directories with those of the other tree; here they are new.
        let files = |run: &Run| run.items().into_iter().filter(|line| !line.starts_with("cd"));
        assert!(files(&ours).eq(files(&theirs)), "{ours}\n{theirs}");
    });
}

#[test]
fn copy_dest_and_compare_dest() {
    for option in ["--copy-dest", "--compare-dest"] {
        case(&format!("sync -a {option}=OLD {option}=../old2 SRC/ DST"), |c| {
            let second = c.place("old2");
            for root in [c.src(), c.old()] {
                file(&root.join("same"), "same", T);
                file(&root.join("d/same"), "same", T);
                file(&root.join("moded"), "mode", T);
                symlink("same", root.join("link")).unwrap();
                set_mtime(&root.join("link"), T, 0);
            }
            file(&second.join("there"), "there", T);
            file(&c.src().join("there"), "there", T);
            file(&c.src().join("new"), "new", T);
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(c.old().join("moded"), mode).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                // Right already, and outdated: neither stays where another tree has it.
                file(&root.join("same"), "same", T);
                file(&root.join("d/same"), "older", T - 1);
                file(&root.join("extra"), "extra", T);
            }
            agree(c, &Fields::ALL).ok();
            let kept = c.dst().join("same").exists();
            assert_eq!(kept, option == "--copy-dest");
        });
    }
    case("sync -a --copy-dest=OLD --link-dest=OLD SRC/ DST", |c| {
        create_dir(c.src()).unwrap();
        c.run().expect(1).says(&["--link-dest cannot be used with --copy-dest"]);
    });
}

/// The content is that of the other tree where that counts as the same.
#[test]
fn copy_dest_reads_the_other_tree() {
    case("sync -a --copy-dest=OLD SRC/ DST", |c| {
        file(&c.src().join("f"), "source", T);
        file(&c.old().join("f"), "others", T);
        agree(c, &Fields::ALL).ok();
        assert_eq!(read(c.dst().join("f")).unwrap(), b"others");
    });
}

#[test]
fn the_top_keeps_its_time_beside_a_file() {
    for line in ["sync -a SRC/ LIST DST", "sync -a LIST SRC/ DST"] {
        case(line, |c| {
            for root in trees(c) {
                for number in 0..200 {
                    file(&root.join(format!("f{number}")), "x", T);
                }
                set_mtime(&root, T, 0);
            }
            file(&c.list(), &"y".repeat(1 << 20), T);
            agree(c, &Fields::ALL).ok();
            assert_eq!(std::fs::metadata(c.dst()).unwrap().mtime(), T);
        });
    }
}

#[test]
fn a_default_acl_reaches_a_new_top() {
    if !have("setfacl", "default ACLs") {
        return;
    }
    for line in [
        "sync -r SRC/ DST/new",
        "sync -a SRC/ DST/new",
        "sync -rA --no-p SRC/ DST/new",
        "sync -rA --no-p SRC/f SRC/d DST",
        "sync -aA SRC/ DST/new",
    ] {
        case(line, |c| {
            for root in trees(c) {
                create_dir(root).unwrap();
            }
            for root in [c.dst(), c.oracle_dst()] {
                must(
                    Command::new("setfacl").args(["-d", "-m", "u:1000:rwx,g::rwx,o::rx"]).arg(root),
                );
            }
            file(&c.src().join("f"), "f", T);
            file(&c.src().join("d/g"), "g", T);
            for (name, mode) in [("f", 0o666), ("d/g", 0o664), ("d", 0o755), (".", 0o775)] {
                let mode = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(c.src().join(name), mode).unwrap();
            }
            agree(c, &Fields::ALL).ok();
        });
    }
}

#[test]
fn acls_name_the_owners_that_are_asked_for() {
    if !have("setfacl", "ACLs") || !have_root("owners") {
        return;
    }
    for line in [
        "sync -aA --chown=:1001 SRC/ DST",
        "sync -aA --groupmap=5:66 --usermap=7:77 SRC/ DST",
        "sync -aA --chown=77 SRC/ DST",
    ] {
        case(line, |c| {
            file(&c.src().join("f"), "f", T);
            let acl = "g:5:r,u:7:rw,u:9:r,g:9:rw";
            must(Command::new("setfacl").args(["-m", acl]).arg(c.src().join("f")));
            agree(c, &Fields::ALL).ok();
            assert_eq!(c.run_line(&format!("{line} -i")).ok().out(), "");
        });
    }
}

#[test]
fn existing_does_not_open_what_it_does_not_copy() {
    if !have("setpriv", "another user") || !have_root("another user") {
        return;
    }
    for option in ["--existing", "--max-size=1", "--min-size=99"] {
        case("sync SRC/ DST", |c| {
            file(&c.src().join("e/secret"), "secret", T);
            std::fs::set_permissions(
                c.src().join("e/secret"),
                std::fs::Permissions::from_mode(0o000),
            )
            .unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                create_dir_all(root.join("e")).unwrap();
            }
            let own = c.src().parent().unwrap().to_owned();
            let to = c.dst().parent().unwrap().to_owned();
            for path in [own, to.clone(), c.dst(), c.dst().join("e")] {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
            }
            let mut words = vec!["--reuid=65534", "--regid=65534", "--clear-groups"];
            let program = crate::common::program();
            words.push(program.to_str().unwrap());
            let (src, dst) = (c.src().join("."), c.dst());
            words.extend(["sync", "-r", option, src.to_str().unwrap(), dst.to_str().unwrap()]);
            let run = crate::common::case::run_command(Path::new("setpriv"), &words);
            run.ok();
            assert_eq!(run.err(), "", "{run}");
        });
    }
}

#[test]
fn holes_are_made_in_place_too() {
    case("sync -aS --inplace SRC/ DST", |c| {
        let mut content = "x".repeat(3 << 20);
        for root in [c.dst(), c.oracle_dst()] {
            file(&root.join("f"), &content, T - 5);
            file(&root.join("shorter"), &content[..100_000], T - 5);
        }
        content.replace_range(300_000..2_900_000, &"\0".repeat(2_600_000));
        for name in ["f", "shorter"] {
            file(&c.src().join(name), &content, T);
        }
        let inode = std::fs::metadata(c.dst().join("f")).unwrap().ino();
        agree(c, &Fields { dir_times: false, ..Fields::HOLES }).ok();
        c.target_is_source(&Fields { dir_times: false, ..Fields::ALL });
        let there = std::fs::metadata(c.dst().join("f")).unwrap();
        assert_eq!(there.ino(), inode);
        assert!(there.blocks() * 512 < 1 << 20, "{} blocks", there.blocks());
    });
}

/// A merge file that is named from the directory: its last name counts there, and on the way down.
#[test]
fn merge_files_are_named_from_above() {
    for line in ["sync -a --filter=': .rules' SRC/ DST", "sync -a --filter=': ../x' SRC/ DST"] {
        case(line, |c| {
            for dir in ["", "sub/", "sub/deep/", "q/"] {
                for name in ["a", "b", "c"] {
                    file(&c.src().join(format!("{dir}{name}")), name, T);
                }
            }
            file(&c.src().join("x"), "- a\n", T);
            file(&c.src().join("sub/x"), "- b\n", T);
            file(&c.src().join("../x"), "- c\n", T);
            file(&c.src().join("sub/.rules"), ": ../x\n", T);
            file(&c.src().join("sub/deep/.rules"), ": ../../x\n", T);
            file(&c.src().join("q/.rules"), ". ../x\n", T);
            agree(c, &Fields { dir_times: false, ..Fields::ALL }).ok();
        });
    }
}

#[test]
fn unsafe_links_get_no_backup() {
    for line in [
        "sync -ab --safe-links --delete SRC/ DST",
        "sync -a --backup-dir=../DST.bak --safe-links SRC/ DST",
    ] {
        case(line, |c| {
            for root in [c.dst(), c.oracle_dst()] {
                create_dir(&root).unwrap();
                symlink("/etc/passwd", root.join("m")).unwrap();
                symlink("/etc/passwd", root.join("extra")).unwrap();
                symlink("ok", root.join("o")).unwrap();
            }
            file(&c.src().join("m"), "m", T);
            symlink("zz", c.src().join("o")).unwrap();
            agree(c, &Fields { times: false, dir_times: false, link_times: false, ..Fields::ALL })
                .ok();
            assert!(!c.dst().join("m~").exists() && !c.dst().join("m~").is_symlink());
        });
    }
}

#[test]
fn links_to_directories_are_looked_through_before_deleting() {
    case("sync -rkm --delete-before SRC/ DST", |c| {
        for root in trees(c) {
            file(&root.join("real/x"), "x", T);
            symlink("real", root.join("link")).unwrap();
        }
        create_dir(c.src().join("real/empty")).unwrap();
        file(&c.dst().join("extra"), "extra", T);
        file(&c.oracle_dst().join("extra"), "extra", T);
        agree(c, &Fields::NO_TIMES).ok();
    });
}

/// A source is not removed as long as another one leads to it.
#[test]
fn links_are_read_before_what_they_lead_to_is_removed() {
    for line in
        ["sync -aL --remove-source-files SRC/ DST", "sync -aL -j 8 --remove-source-files SRC/ DST"]
    {
        case(line, |c| {
            for number in 0..50 {
                file(&c.src().join(format!("f{number}")), "content", T);
                symlink(format!("f{number}"), c.src().join(format!("l{number}"))).unwrap();
                symlink(format!("l{number}"), c.src().join(format!("a{number}"))).unwrap();
            }
            file(&c.src().join("d/g"), "g", T);
            symlink("d", c.src().join("dl")).unwrap();
            c.run().ok();
            for number in 0..50 {
                for name in ["f", "l", "a"] {
                    let name = format!("{name}{number}");
                    assert_eq!(read(c.dst().join(&name)).unwrap(), b"content", "{name}");
                    assert!(!c.src().join(&name).exists(), "{name} is still there");
                }
            }
            assert_eq!(read(c.dst().join("dl/g")).unwrap(), b"g");
        });
    }
}

/// A source that changed since it was copied stays, and so does what leads to it.
#[test]
fn relative_paths_upwards_are_refused_before_anything_is_made() {
    for line in ["sync -aR SRC/missing/.. DST", "sync -aRn SRC/missing/.. DST"] {
        case(line, |c| {
            create_dir(c.src()).unwrap();
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!((ours.code, theirs.code), (1, 1), "{ours}");
            assert!(!c.dst().exists());
        });
    }
}

/// Entries removed from the source stay at the target, at any time of deletion.
#[test]
fn removed_sources_are_not_extraneous() {
    for when in ["--delete", "--delete-before", "--delete-after", "--delete-delay"] {
        case(&format!("sync -a -j 8 --remove-source-files {when} SRC/ DST"), |c| {
            for number in 0..3000 {
                file(&c.src().join(format!("d/{number}")), "content", T);
            }
            file(&c.dst().join("d/extra"), "extra", T);
            file(&c.dst().join("extra/x"), "extra", T);
            c.run().ok();
            assert_eq!(std::fs::read_dir(c.dst().join("d")).unwrap().count(), 3000, "{when}");
            assert_eq!(std::fs::read_dir(c.src().join("d")).unwrap().count(), 0, "{when}");
            assert!(!c.dst().join("extra").exists());
        });
    }
}
