//! As an ordinary user: unreadable files are errors; attributes that cannot be set are omitted and counted,
//! and are errors only if requested explicitly.

use crate::common::area::Area;
use crate::common::case::{Case, Run, case, run_command};
use crate::common::diff::Fields;
use crate::common::grow::{age, set_mtime};
use crate::common::snapshot::Snapshot;
use crate::common::{have, have_root, must, program};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const NOBODY: &str = "65534";

/// Gives a tree to the ordinary user.
pub fn give_away(path: &Path) {
    must(Command::new("chown").args(["-hR", "65534:65534"]).arg(path));
}

/// A copy of the program where everybody may run it: build folders are often private.
fn open_program() -> &'static Path {
    static COPY: OnceLock<(Area, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let area = Area::tmpfs();
        let path = area.join("hakobu");
        std::fs::copy(program(), &path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        (area, path)
    });
    path
}

/// Runs a line of a case as uid and gid 65534, without other groups or capabilities.
pub fn run_as_nobody(case: &Case, line: &str) -> Run {
    let mut words: Vec<OsString> =
        ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"].map(OsString::from).into();
    words.push(open_program().into());
    words.extend(case.words(line, &case.dst()));
    run_command(Path::new("setpriv"), &words)
}

fn ordinary(line: &str, body: impl FnOnce(&Case)) {
    if have_root("an ordinary user") && have("setpriv", "an ordinary user") {
        case(line, |c| {
            std::fs::create_dir(c.src()).unwrap();
            std::fs::create_dir(c.dst()).unwrap();
            give_away(&c.dst());
            set_mtime(&c.dst(), 1_400_000_000, 0);
            body(c);
        });
    }
}

#[test]
fn owners_are_left_out_of_an_archive() {
    ordinary("sync -a SRC/ DST", |c| {
        std::fs::write(c.src().join("roots"), "root's file").unwrap();
        std::fs::write(c.src().join("own"), "own").unwrap();
        std::os::unix::fs::lchown(c.src().join("own"), Some(65_534), Some(65_534)).unwrap();
        age(&c.src());
        run_as_nobody(c, &c.line).ok();
        c.target_is_source(&Fields { owner: false, ..Fields::ALL });
        let target = Snapshot::of(&c.dst());
        assert_eq!(target.get("roots").unwrap().uid, 65_534);
        // And again: nothing to do, although the owners still differ.
        let run = run_as_nobody(c, "sync -a -i SRC/ DST");
        assert!(run.ok().items().iter().all(|line| !line.starts_with('>')), "{run}");
    });
}

#[test]
fn setuid_bits_of_others_are_not_kept() {
    ordinary("sync -a SRC/ DST", |c| {
        std::fs::write(c.src().join("tool"), "x").unwrap();
        std::fs::set_permissions(c.src().join("tool"), PermissionsExt::from_mode(0o4755)).unwrap();
        age(&c.src());
        run_as_nobody(c, &c.line);
        let mut other = Command::new("setpriv");
        other.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "rsync", "-a"]);
        std::fs::create_dir(c.oracle_dst()).unwrap();
        give_away(&c.oracle_dst());
        set_mtime(&c.oracle_dst(), 1_400_000_000, 0);
        must(other.arg(c.src().join("")).arg(c.oracle_dst()));
        c.target_is_oracles(&Fields::ALL);
    });
}

#[test]
fn an_unreadable_source_is_an_error_and_the_rest_goes_on() {
    ordinary("sync -a SRC/ DST", |c| {
        for name in ["a", "closed", "z"] {
            std::fs::write(c.src().join(name), name).unwrap();
        }
        std::fs::set_permissions(c.src().join("closed"), PermissionsExt::from_mode(0o600)).unwrap();
        let run = run_as_nobody(c, &c.line);
        run.expect(23).says(&["closed", "Permission denied"]);
        let target = Snapshot::of(&c.dst());
        assert!(target.has("a") && target.has("z") && !target.has("closed"), "{run}");
        run_as_nobody(c, "cp -r SRC/closed SRC/a DST/").expect(1).says(&["closed"]);
    });
}

#[test]
fn an_unwritable_target_stops_at_once() {
    ordinary("sync -a SRC/ DST", |c| {
        for n in 0..200 {
            std::fs::write(c.src().join(format!("f{n}")), "x").unwrap();
        }
        must(Command::new("chown").arg("0:0").arg(c.dst()));
        let run = run_as_nobody(c, &c.line);
        assert!([11, 23].contains(&run.code), "{run}");
        run.says(&["Permission denied"]);
        assert!(run.err().lines().count() <= 10, "one cause, one message: {run}");
    });
}

#[test]
fn a_read_only_directory_is_filled_by_its_owner() {
    ordinary("sync -a SRC/ DST", |c| {
        std::fs::create_dir(c.src().join("ro")).unwrap();
        std::fs::write(c.src().join("ro/file"), "x").unwrap();
        std::fs::set_permissions(c.src().join("ro"), PermissionsExt::from_mode(0o555)).unwrap();
        give_away(&c.src());
        age(&c.src());
        run_as_nobody(c, &c.line).ok();
        c.target_is_source(&Fields::ALL);
        // A change inside, and the directory is read-only at the target by now.
        std::fs::write(c.src().join("ro/file"), "changed").unwrap();
        std::fs::write(c.src().join("ro/more"), "more").unwrap();
        give_away(&c.src());
        set_mtime(&c.src().join("ro/file"), 1_550_000_000, 0);
        set_mtime(&c.src().join("ro"), 1_550_000_000, 0);
        run_as_nobody(c, &c.line).ok();
        c.target_is_source(&Fields::ALL);
    });
}

/// The directory at the target is named, not the entry of the source that needs it.
#[test]
fn a_directory_that_cannot_be_made_is_named() {
    ordinary("sync -a SRC/ DST", |c| {
        std::fs::create_dir_all(c.src().join("a/b")).unwrap();
        std::fs::write(c.src().join("a/b/file"), "x").unwrap();
        std::fs::write(c.list(), "a/b/file\n").unwrap();
        give_away(&c.src());
        std::fs::set_permissions(c.dst(), PermissionsExt::from_mode(0o555)).unwrap();
        let root = |command: &mut Command| must(command.arg("root:root").arg(c.dst()));
        root(&mut Command::new("chown"));
        let (target, from) = (c.dst().join("a"), c.src().join("a/b/file"));
        let cannot = format!("cannot create directory '{}'", target.display());
        let typed = c.src().join("./a/b/file").display().to_string();
        let typed = typed.replace("/src/a/", "/src/./a/");
        for (line, from) in [
            ("sync -r --files-from=LIST SRC/ DST", from.display().to_string()),
            ("sync -rR SRC/./a/b/file DST", typed),
        ] {
            let whole = format!("{cannot} (from '{from}'): Permission denied");
            run_as_nobody(c, line).expect(23).says(&[&whole]);
        }
        run_as_nobody(c, "sync -r SRC/ DST").expect(23).says(&[&cannot]);
        run_as_nobody(c, "cp -r SRC/a DST/").expect(1).says(&[&cannot]);
    });
}

#[test]
fn devices_are_left_out_aloud_by_those_who_may_not_make_them() {
    ordinary("sync -a SRC/ DST", |c| {
        must(Command::new("mknod").arg(c.src().join("null")).args(["c", "1", "3"]));
        std::fs::write(c.src().join("file"), "x").unwrap();
        let run = run_as_nobody(c, &c.line);
        assert!(Snapshot::of(&c.dst()).has("file"), "{run}");
        assert!(!Snapshot::of(&c.dst()).has("null"));
        // As rsync: no failure, but not passed over in silence.
        run.ok().says(&["null", "requires root"]);
        assert!(run_as_nobody(c, "sync -aq SRC/ DST").ok().stderr.is_empty());
        // The source of one that was left out stays.
        give_away(&c.src());
        run_as_nobody(c, "sync -a --remove-source-files SRC/ DST").ok();
        let source = Snapshot::of(&c.src());
        assert!(source.has("null") && !source.has("file"), "{run}");
        // cp was asked for each of them.
        run_as_nobody(c, "cp -a SRC/null DST/").expect(1).says(&["null"]);
    });
}

/// A user may set attributes of a file that is read-only, as rsync does: its owner may open it.
#[test]
fn read_only_files_keep_their_attributes() {
    ordinary("sync -aX SRC/ DST", |c| {
        let set = |path: PathBuf, value: &[u8]| {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(path, "user.mark", value, flags).unwrap();
        };
        for (name, mode) in [("ro", 0o444), ("closed", 0o400), ("rw", 0o644)] {
            let path = c.src().join(name);
            std::fs::write(&path, name).unwrap();
            set(path.clone(), b"one");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(c.src().join("dir")).unwrap();
        set(c.src().join("dir"), b"one");
        std::fs::set_permissions(c.src().join("dir"), PermissionsExt::from_mode(0o555)).unwrap();
        give_away(&c.src());
        age(&c.src());
        run_as_nobody(c, &c.line).ok();
        c.target_is_source(&Fields::ALL);
        // An attribute that changes alone, of files that are there.
        for name in ["ro", "closed", "rw", "dir"] {
            set(c.src().join(name), b"two");
        }
        run_as_nobody(c, &c.line).ok();
        c.target_is_source(&Fields::ALL);
        let options = ["-u", "--inplace", "--temp-dir=DST"];
        for option in options {
            crate::common::remove_tree(&c.dst());
            std::fs::create_dir(c.dst()).unwrap();
            give_away(&c.dst());
            run_as_nobody(c, &format!("sync -aX {option} SRC/ DST")).ok();
            c.target_is_source(&Fields::ALL);
        }
    });
}

/// With `-c`, a target that cannot be read is replaced, as rsync does.
#[test]
fn unreadable_targets_are_transferred_with_checksums() {
    ordinary("sync -rtc SRC/ DST", |c| {
        for dir in [c.src(), c.dst()] {
            std::fs::write(dir.join("same"), "content").unwrap();
            std::fs::write(dir.join("closed"), "content").unwrap();
        }
        std::fs::write(c.dst().join("closed"), "CONTENT").unwrap();
        std::fs::set_permissions(c.dst().join("closed"), PermissionsExt::from_mode(0o000)).unwrap();
        give_away(&c.src());
        give_away(&c.dst());
        age(&c.src());
        for name in ["same", "closed"] {
            let mtime = std::fs::metadata(c.src().join(name)).unwrap().modified().unwrap();
            let time = rustix::fs::Timespec {
                tv_sec: mtime.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64,
                tv_nsec: 0,
            };
            set_mtime(&c.dst().join(name), time.tv_sec, 0);
        }
        run_as_nobody(c, &c.line).ok();
        assert_eq!(std::fs::read(c.dst().join("closed")).unwrap(), b"content");
    });
}

#[test]
fn explicit_wishes_that_cannot_be_granted_are_errors() {
    ordinary("sync -r --chown=1000:1000 SRC/ DST", |c| {
        std::fs::write(c.src().join("file"), "x").unwrap();
        run_as_nobody(c, &c.line).expect(23).says(&["owner"]);
        run_as_nobody(c, "cp --preserve=ownership SRC/file DST/owned").expect(1);
    });
}

/// Removal lends itself permissions where `--delete` was asked for, as rsync does, and `rm` none.
#[test]
fn read_only_directories_go_with_delete_and_stay_with_rm() {
    ordinary("sync -a --delete SRC/ DST", |c| {
        let locked = |name: &str| {
            let dir = c.dst().join("old").join(name);
            std::fs::create_dir_all(dir.join("sub")).unwrap();
            std::fs::write(dir.join("file"), "x").unwrap();
            std::fs::write(dir.join("sub/file"), "x").unwrap();
            std::fs::set_permissions(dir.join("sub"), PermissionsExt::from_mode(0o100)).unwrap();
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o500)).unwrap();
        };
        locked("one");
        locked("two");
        give_away(&c.dst());
        std::fs::write(c.src().join("a"), "a").unwrap();
        give_away(&c.src());
        age(&c.src());
        let before = Snapshot::of(&c.dst());
        let run = run_as_nobody(c, "rm -rf DST/old");
        run.expect(1).says(&["Permission denied"]);
        assert_eq!(Snapshot::of(&c.dst()).entries.len(), before.entries.len(), "{run}");
        run_as_nobody(c, &c.line).ok();
        c.target_is_source(&Fields::ALL);
    });
}
