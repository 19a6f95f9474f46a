//! `--fake-super`, compared with rsync: both sides, the target alone (`-M--fake-super`), the source alone
//! (`-M--super`).

use super::meanings::{T, agree, file};
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::{have, have_root, must};
use std::fs::{create_dir_all, hard_link, read, set_permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

const FIELDS: Fields = Fields { dir_times: false, link_times: false, ..Fields::ALL };

fn mode(path: &Path, bits: u32) {
    set_permissions(path, PermissionsExt::from_mode(bits)).unwrap();
}

fn set(path: &Path, name: &str, value: &str) {
    must(Command::new("setfattr").args(["-h", "-n", name, "-v", value]).arg(path));
}

fn stat_of(path: &Path) -> Option<String> {
    let out = Command::new("getfattr")
        .args(["-h", "--only-values", "-n", "user.rsync.%stat"])
        .arg(path)
        .output()
        .unwrap();
    out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
}

/// Makes a source that only root can make.
fn real_tree(root: &Path) {
    for name in ["set", "closed", "owned", "acl", "plain", "dir/linked"] {
        file(&root.join(name), name, T);
    }
    mode(&root.join("set"), 0o4755);
    chown(root.join("owned"), Some(5), Some(6)).unwrap();
    mode(&root.join("closed"), 0o400);
    symlink("set", root.join("link")).unwrap();
    hard_link(root.join("dir/linked"), root.join("dir/other")).unwrap();
    must(Command::new("mkfifo").arg(root.join("fifo")));
    must(Command::new("mknod").arg(root.join("char")).args(["c", "41", "67"]));
    must(Command::new("mknod").arg(root.join("block")).args(["b", "7", "300"]));
    must(Command::new("setfacl").args(["-m", "u:77:r,g:9:rwx"]).arg(root.join("acl")));
    must(Command::new("setfacl").args(["-d", "-m", "u:8:rwx"]).arg(root.join("dir")));
    set(&root.join("plain"), "user.own", "x");
    set(&root.join("plain"), "trusted.own", "y");
    for name in ["fifo", "char", "block"] {
        set_mtime(&root.join(name), T, 0);
    }
    mode(&root.join("dir"), 0o3555);
}

/// Turns the source of a case into one of `--fake-super`, as rsync writes it.
fn fake_tree(c: &Case) {
    let real = c.src().with_file_name("real");
    real_tree(&real);
    let mut from = real.into_os_string();
    from.push("/");
    must(Command::new("rsync").args(["-aHAX", "-M--fake-super"]).arg(from).arg(c.src()));
}

#[test]
fn attributes_of_root_are_kept_in_xattrs() {
    if !have_root("devices") || !have("rsync", "--fake-super beside rsync") {
        return;
    }
    for line in [
        "sync -a --fake-super SRC/ DST",
        "sync -aHAX --fake-super SRC/ DST",
        "sync -aHAX -M--fake-super SRC/ DST",
        "sync -aX -M --fake-super SRC/ DST",
        "sync -aA --fake-super --chmod=a= SRC/ DST",
        "sync -a --fake-super --super SRC/ DST",
        "sync -aH --fake-super --delete SRC/ DST",
        "sync -aH --fake-super --inplace --chown=9:9 SRC/ DST",
    ] {
        case(line, |c| {
            real_tree(&c.src());
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("set"), "old", T - 9);
                file(&root.join("extra"), "x", T);
            }
            agree(c, &FIELDS).ok();
            // A second run has nothing to do.
            let again = c.run_line(&line.replace("sync", "sync -i"));
            assert_eq!(again.ok().out(), "", "{line}");
        });
    }
}

#[test]
fn attributes_come_back() {
    if !have_root("devices") || !have("rsync", "--fake-super beside rsync") {
        return;
    }
    for line in [
        "sync -aHAX --fake-super -M--super SRC/ DST",
        "sync -a --fake-super SRC/ DST",
        "sync -aHAX --fake-super SRC/ DST",
        "sync -aX SRC/ DST",
        "sync -aXX SRC/ DST",
        "sync -rlpt --fake-super -M--super SRC/ DST",
    ] {
        case(line, |c| {
            fake_tree(c);
            agree(c, &FIELDS).ok();
        });
    }
    case("sync -aHAX --fake-super -M--super SRC/ DST", |c| {
        fake_tree(c);
        c.run().ok();
        let of = |name: &str| c.dst().join(name).symlink_metadata().unwrap();
        assert!(of("char").file_type().is_char_device() && of("fifo").file_type().is_fifo());
        assert_eq!(std::fs::read_link(c.dst().join("link")).unwrap(), Path::new("set"));
        assert_eq!((of("owned").uid(), of("owned").gid()), (5, 6));
        assert_eq!(of("set").mode() & 0o7777, 0o4755);
    });
}

#[test]
fn what_a_file_stands_for_is_compared() {
    if !have_root("devices") || !have("rsync", "--fake-super beside rsync") {
        return;
    }
    case("sync -ai --fake-super SRC/ DST", |c| {
        fake_tree(c);
        create_dir_all(c.dst()).unwrap();
        c.run().ok();
        assert_eq!(stat_of(&c.dst().join("char")).as_deref(), Some("20644 41,67 0:0"));
        assert_eq!(read(c.dst().join("link")).unwrap(), b"set");
        set(&c.dst().join("owned"), "user.rsync.%stat", "100600 0,0 7:6");
        set(&c.dst().join("char"), "user.rsync.%stat", "20644 41,68 0:0");
        let run = c.run();
        let mut lines: Vec<String> = run.ok().out().lines().map(str::to_owned).collect();
        lines.retain(|line| !line.contains("./"));
        lines.sort();
        assert_eq!(lines, [".f...po.... owned", "cDc........ char"], "{run}");
    });
    case("sync -a --fake-super SRC/ DST", |c| {
        for name in ["bad", "good"] {
            file(&c.src().join(name), name, T);
        }
        set(&c.src().join("bad"), "user.rsync.%stat", "zzz");
        c.run().expect(23).says(&["bad", "user.rsync.%stat is not in the format"]);
        assert!(!c.dst().join("bad").exists() && c.dst().join("good").exists());
    });
}
