//! Several sources for one target directory: no source makes the files of another extraneous, and an
//! unreadable source keeps its possible files.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::{Case, Run, case, run_command};
use crate::common::diff::Fields;
use crate::common::snapshot::Snapshot;
use crate::common::{have, have_root, must, program};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const WHEN: [&str; 4] = ["--delete", "--delete-before", "--delete-during", "--delete-after"];

/// Files that hold their own name; those of targets hold what no source has.
fn files(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{}/{name}", root.display())).unwrap();
    }
}

const NAMES: [&str; 7] = ["d/a", "d/both", "d/sub/s", "d/sub/deep/t", "e/x", "1/top", "f"];

/// Three folders with directories of the same names, and targets with files of all of them and
/// extraneous ones.
fn stage(c: &Case) {
    let src = c.src();
    files(&src.join("1"), &["d/a", "d/both", "d/sub/one", "d/only1/o", "e/x", "f", "kind/in"]);
    files(&src.join("2"), &["d/b", "d/both", "d/sub/two", "d/sub/deep/t", "e/y", "f", "kind"]);
    files(&src.join("3"), &["d/c", "d/both", "d/sub/two", "d/sub/three", "other/z", "p/d/q"]);
    files(&c.dst(), &NAMES);
    files(&c.dst(), &["d/b", "d/c", "d/extra", "d/sub/two", "d/sub/extra", "e/extra", "extra"]);
    files(&c.dst(), &["p/d/extra"]);
    for (n, root) in [src.join("1"), src.join("2"), src.join("3"), c.dst()].iter().enumerate() {
        // Each of them has an hour of its own.
        let when = format!("@{}", 1_400_000_000 + n * 3600);
        must(Command::new("find").arg(root).args(["-exec", "touch", "-d", &when, "{}", "+"]));
    }
    must(Command::new("cp").arg("-a").arg(c.dst()).arg(c.oracle_dst()));
}

fn as_rsync(line: &str) {
    case(line, |c| {
        stage(c);
        let (ours, theirs) = (c.run(), c.oracle());
        assert_eq!(ours.code, theirs.code, "exit codes: {ours}\n{theirs}");
        // The times of directories that are not copied themselves are those of the moment.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let recent_s = i64::try_from(now).unwrap() - 600;
        let fields = Fields { recent_s, ..Fields::ALL };
        c.target_is_oracles(&fields);
        // A second run finds nothing to do.
        c.run().expect(theirs.code);
        c.target_is_oracles(&fields);
    });
}

#[test]
fn arguments_of_one_name_are_merged() {
    for when in WHEN {
        for arguments in [
            "SRC/1/d SRC/2/d",
            "SRC/2/d SRC/1/d SRC/3/d",
            "SRC/1/ SRC/2/d",
            "SRC/2/d SRC/1/",
            "SRC/3/ SRC/2/d SRC/1/e",
            "SRC/3/p/d SRC/1/ SRC/2/d SRC/2/e",
            "SRC/1/ SRC/2/ SRC/3/d",
            "SRC/1/ SRC/2/ SRC/1/d",
            "SRC/1/d SRC/2/d SRC/1/e SRC/2/e SRC/3/other",
            "SRC/1/d SRC/2/e SRC/3/d",
            "SRC/1/f SRC/2/f",
            "SRC/1/kind SRC/2/kind",
            "SRC/2/kind SRC/1/kind",
        ] {
            as_rsync(&format!("sync -a {when} {arguments} DST"));
        }
    }
}

#[test]
fn relative_arguments_are_merged() {
    for when in WHEN {
        for arguments in [
            "SRC/1/./d SRC/2/./d",
            "SRC/1/./d SRC/2/./d/sub",
            "SRC/1/./d/sub SRC/2/./d",
            "SRC/1/./d/sub SRC/2/./d/sub SRC/3/./d/sub",
            "SRC/1/./ SRC/2/./d/sub",
            "SRC/1/./ SRC/2/./d/b SRC/2/./d/sub/deep",
            "SRC/1/./d SRC/2/./d/b SRC/3/./d/sub/three SRC/2/./d/sub/deep",
        ] {
            as_rsync(&format!("sync -aR {when} {arguments} DST"));
        }
    }
}

#[test]
fn merged_arguments_that_are_symlinks() {
    for line in [
        "sync -aL --delete SRC/1/d SRC/links/d DST",
        "sync -ak --delete SRC/1/d SRC/links/d DST",
        "sync -aL --delete SRC/1/ SRC/links/ DST",
        "sync -ak --delete SRC/1/ SRC/links/d DST",
        "sync -aR --delete SRC/1/./d SRC/links/./d/ DST",
        "sync -aR --delete SRC/1/./d/ SRC/links/./d/sub DST",
        "sync -aR --delete SRC/1/./ SRC/links/./d/sub DST",
        "sync -aR --delete SRC/1/./ SRC/links/./d/ DST",
    ] {
        case(line, |c| {
            stage(c);
            std::fs::create_dir(c.src().join("links")).unwrap();
            std::os::unix::fs::symlink("../2/d", c.src().join("links/d")).unwrap();
            c.run().ok();
            let target = Snapshot::of(&c.dst());
            assert!(target.has("d/a") && target.has("d/sub/one"), "{line}");
            assert!(target.has("d/sub/two"), "{line}");
            assert!(!target.has("d/extra") && !target.has("d/sub/extra"), "{line}");
            if !line.contains("d/sub DST") {
                assert!(target.has("d/b"), "{line}");
            }
        });
    }
}

#[test]
fn an_argument_that_cannot_be_opened_deletes_nothing() {
    for when in WHEN {
        for (arguments, deleted) in [
            ("SRC/1/ SRC/missing/", false),
            ("SRC/missing/ SRC/1/", false),
            ("SRC/1/d SRC/missing/d", false),
            ("SRC/missing/ SRC/1/d", false),
            ("SRC/1/ SRC/missing/d", false),
            ("--ignore-errors SRC/1/ SRC/missing/", true),
        ] {
            let line = format!("sync -a {when} {arguments} DST");
            case(&line, |c| {
                stage(c);
                c.run().expect(23).says(&["missing"]);
                let target = Snapshot::of(&c.dst());
                assert!(target.has("d/a"), "{line}");
                for name in ["d/b", "d/c", "d/sub/two", "d/sub/deep/t", "d/extra", "extra"] {
                    assert_eq!(target.has(name), !deleted, "{line}: {name}");
                }
            });
        }
    }
}

/// Runs a line as uid 65534 from a copy of the program that it may run.
fn as_nobody(c: &Case, line: &str) -> Run {
    let copy = c.place("hakobu");
    // By a process of its own: a descriptor open for writing here could be inherited by a child of
    // another test, and a program that is open for writing cannot be run (ETXTBSY).
    let install = Command::new("install").arg("-m755").arg(program()).arg(&copy).status();
    assert!(install.unwrap().success());
    let mut words: Vec<std::ffi::OsString> =
        ["--reuid", "65534", "--regid", "65534", "--clear-groups"].map(Into::into).into();
    words.push(copy.into());
    words.extend(c.words(line, &c.dst()));
    run_command(Path::new("setpriv"), &words)
}

#[test]
fn a_later_source_that_cannot_be_read_keeps_its_target() {
    if !have_root("an ordinary user") || !have("setpriv", "an ordinary user") {
        return;
    }
    for when in WHEN {
        for arguments in ["SRC/1/ SRC/2/", "SRC/1/d SRC/2/d", "SRC/1/ SRC/2/d"] {
            for closed in ["2/d", "2/d/sub"] {
                let line = format!("sync -rt {when} {arguments} DST");
                case(&line, |c| {
                    stage(c);
                    for root in [c.src(), c.dst()] {
                        must(Command::new("chown").args(["-hR", "65534:65534"]).arg(root));
                    }
                    let closed_dir = c.src().join(closed);
                    std::fs::set_permissions(&closed_dir, PermissionsExt::from_mode(0o000))
                        .unwrap();
                    let run = as_nobody(c, &line);
                    std::fs::set_permissions(&closed_dir, PermissionsExt::from_mode(0o755))
                        .unwrap();
                    run.expect(23).says(&[closed]);
                    let target = Snapshot::of(&c.dst());
                    for name in ["d/a", "d/sub/one", "d/b", "d/sub/two", "d/sub/deep/t"] {
                        assert!(target.has(name), "{closed} is closed, lost {name}: {run}");
                    }
                });
            }
        }
    }
}

/// EMFILE and EIO are not proof of absence either.
#[test]
fn a_later_source_that_fails_to_open_keeps_its_target() {
    if !have("strace", "failing opens") {
        return;
    }
    for error in ["EIO", "EMFILE", "EACCES"] {
        for when in WHEN {
            for moment in 1..=30 {
                let c = Case::new(&format!("sync -a {when} -j 1"), Area::tmpfs(), Area::tmpfs());
                files(&c.src(), &["1/d/a", "1/d/sub/one", "2/d/b", "2/d/sub/two"]);
                files(&c.dst(), &["d/a", "d/sub/one", "d/b", "d/sub/two"]);
                let mut command = Command::new("strace");
                // Cargo names folders of libraries, each of which is searched by a call of its own.
                command.env_remove("LD_LIBRARY_PATH");
                command.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
                command.arg(format!("inject=openat,openat2:error={error}:when={moment}"));
                command.arg(program()).args(["sync", "-a", when, "-j", "1"]);
                command.args([c.src().join("1/d"), c.src().join("2/d"), c.dst()]);
                command.output().unwrap();
                let target = Snapshot::of(&c.dst());
                for name in ["d/a", "d/sub/one", "d/b", "d/sub/two"] {
                    assert!(target.has(name), "{when}, open {moment}: {error}: lost {name}");
                }
            }
        }
    }
}

#[test]
fn a_mount_point_that_is_an_argument_is_copied() {
    if !have_root("-x") {
        return;
    }
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], "-x") else { return };
    let inner = volume.join("usb/inner");
    files(volume.path(), &["usb/file", "usb/sub/deep"]);
    std::fs::create_dir(&inner).unwrap();
    for line in [
        "sync -ax SRC/usb DST",
        "sync -ax --delete SRC/usb DST",
        "sync -ax SRC/usb/ DST",
        "sync -axR SRC/./usb DST",
        "sync -axR SRC/./usb/sub DST",
        "sync -ax SRC/other/ SRC/usb DST",
        "sync -ax SRC/other/usb SRC/usb DST",
        "sync -ax SRC/other/ SRC/usb/ DST",
    ] {
        case(line, |c| {
            files(&c.src(), &["other/usb/o", "other/sub/p"]);
            let point = c.src().join("usb");
            std::fs::create_dir(&point).unwrap();
            let bind = volume.join("usb");
            must(Command::new("mount").arg("--bind").arg(&bind).arg(&point));
            must(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(point.join("inner")));
            std::fs::write(point.join("inner/beyond"), "elsewhere").unwrap();
            let runs = (c.run(), c.oracle());
            let trees = (Snapshot::of(&c.dst()), Snapshot::of(&c.oracle_dst()));
            must(Command::new("umount").arg(point.join("inner")));
            must(Command::new("umount").arg(&point));
            assert_eq!(runs.0.code, runs.1.code, "{} {}", runs.0, runs.1);
            let names = |tree: &Snapshot| tree.entries.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&trees.0), names(&trees.1), "{line}");
            assert!(names(&trees.0).iter().any(|name| name.ends_with(b"deep")), "{line}");
        });
    }
    case("cp -ax SRC/usb DST", |c| {
        std::fs::create_dir_all(c.src().join("usb")).unwrap();
        std::fs::create_dir(c.dst()).unwrap();
        let point = c.src().join("usb");
        must(Command::new("mount").arg("--bind").arg(volume.join("usb")).arg(&point));
        let run = c.run();
        must(Command::new("umount").arg(&point));
        run.ok();
        assert!(Snapshot::of(&c.dst()).has("usb/sub/deep"), "{run}");
    });
}
