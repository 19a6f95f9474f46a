//! Directories that a run makes, replaces, follows or leaves out, compared with rsync.

use super::meanings::{T, agree, file};
use crate::common::case::{Case, Run, case};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::have_root;
use std::fs::{create_dir, create_dir_all};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// A directory in the way of a file: a dry run fails where the run would.
#[test]
fn dry_runs_tell_of_directories_in_the_way() {
    for (options, full) in [
        ("-an", true),
        ("-an", false),
        ("-rn", true),
        ("-an --force", true),
        ("-an --delete", true),
    ] {
        case(&format!("sync {options} SRC/ DST"), |c| {
            file(&c.src().join("name"), "x", T);
            for root in [c.dst(), c.oracle_dst()] {
                create_dir_all(root.join("name")).unwrap();
                if full {
                    file(&root.join("name/inside"), "x", T);
                }
            }
            let dry = c.run();
            let real = c.run_line(&format!("sync {} SRC/ DST", options.replace('n', "")));
            assert_eq!(dry.code, real.code, "{dry}\n{real}");
            if full {
                assert_eq!(dry.code, c.oracle().code, "{dry}");
            }
        });
    }
}

/// A directory in the way of a file that `--link-dest` has is replaced by the link.
#[test]
fn link_dest_replaces_directories() {
    for options in ["--delete", "--force", "--delete -n"] {
        case(&format!("sync -a {options} --link-dest=OLD SRC/ DST"), |c| {
            for root in [c.src(), c.old()] {
                file(&root.join("name"), "x", T);
            }
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("name/inside"), "y", T);
            }
            agree(c, &Fields { dir_times: false, ..Fields::ALL }).ok();
            let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
            if !options.ends_with("-n") {
                assert_eq!(inode(&c.dst().join("name")), inode(&c.old().join("name")));
            }
        });
    }
}

/// A folder that `--mkpath` made counts as existing afterwards.
#[test]
fn folders_of_mkpath_are_as_existing_ones() {
    for options in ["-rt", "-a", "-rt --chmod=D700", "-n -rt"] {
        for target in ["DST", "DST/", "DST/new/one"] {
            case(&format!("sync -i {options} --mkpath SRC/ {target}"), |c| {
                file(&c.src().join("d/f"), "x", T);
                std::fs::set_permissions(c.src(), PermissionsExt::from_mode(0o711)).unwrap();
                set_mtime(&c.src(), T, 0);
                let run = agree_if_there(c);
                assert_eq!(run.0.items(), run.1.items(), "{}\n{}", run.0, run.1);
            });
        }
    }
}

/// Runs both programs; exit codes, and targets where there are any, must be the same.
fn agree_if_there(c: &Case) -> (Run, Run) {
    let recent_s = crate::oracle::options::now() - 1;
    let (ours, theirs) = (c.run(), c.oracle());
    assert_eq!(ours.code, theirs.code, "{ours}\n{theirs}");
    assert_eq!(c.dst().exists(), c.oracle_dst().exists());
    if c.dst().exists() {
        c.target_is_oracles(&Fields { recent_s, ..Fields::ALL });
    }
    (ours, theirs)
}

/// A new directory that would inherit setgid and does not keep it gives its group to nothing.
#[test]
fn new_folders_do_not_pass_on_a_group_by_setgid() {
    if !have_root("groups") {
        return;
    }
    for options in ["-rlpt", "-rlt", "-a", "-rlpt --chmod=Dg+s"] {
        case(&format!("sync {options} SRC/ DST"), |c| {
            file(&c.src().join("d/e/f"), "x", T);
            // The existing top keeps it.
            std::fs::set_permissions(c.src(), PermissionsExt::from_mode(0o2755)).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                create_dir(&root).unwrap();
                std::os::unix::fs::chown(&root, None, Some(1000)).unwrap();
                std::fs::set_permissions(&root, PermissionsExt::from_mode(0o2755)).unwrap();
            }
            agree(c, &Fields { dir_times: false, ..Fields::ALL }).ok();
        });
    }
}

/// A dry run counts the directories that the run makes, the new top among them, as rsync does.
#[test]
fn dry_runs_count_the_directories_that_are_made() {
    for target in ["DST", "DST/new", "DST/there"] {
        case(&format!("sync -a --stats SRC/ {target}"), |c| {
            file(&c.src().join("d/e/f"), "x", T);
            for root in [c.dst(), c.oracle_dst()].iter().filter(|_| target != "DST") {
                create_dir_all(root.join("there")).unwrap();
            }
            let count = |run: &Run| {
                let text = run.ok().out();
                let found = text.lines().find(|line| line.starts_with("Number of created files"));
                found.unwrap_or_default().to_owned()
            };
            let dry = count(&c.run_line(&c.line.replace("-a", "-an")));
            assert_eq!((count(&c.run()), count(&c.oracle())), (dry.clone(), dry));
        });
    }
}

/// Where rsync goes on and hakobu does not, or the other way round (docs/differences.md).
#[test]
fn links_to_a_directory_above_and_rules_that_cannot_be_read() {
    case("sync -aL SRC/ DST", |c| {
        file(&c.src().join("d/f"), "x", T);
        symlink("..", c.src().join("d/up")).unwrap();
        c.run().expect(23).says(&["it leads back to a directory above"]);
        assert!(c.dst().join("d/f").exists() && !c.dst().join("d/up").exists());
    });
    case("sync -aF SRC/ DST", |c| {
        file(&c.src().join("d/f"), "x", T);
        file(&c.src().join("e/f"), "x", T);
        file(&c.src().join("d/.rsync-filter"), "nonsense", T);
        c.run().expect(23).says(&["line 1"]);
        assert!(c.dst().join("e/f").exists() && !c.dst().join("d/f").exists());
    });
    case("sync -aL --delete SRC/ DST", |c| {
        file(&c.src().join("f"), "x", T);
        file(&c.dst().join("extra"), "x", T);
        symlink("nowhere", c.src().join("dangling")).unwrap();
        c.run().expect(23).says(&["symlink has no referent"]);
        assert!(c.dst().join("f").exists() && !c.dst().join("extra").exists());
    });
}
