//! Standard fixture of the option tests: a source with one file for each aspect of an option, and an older
//! target, in the same state for both programs.

use crate::common::case::Case;
use crate::common::grow::set_mtime;
use crate::common::is_root;
use crate::common::snapshot::Snapshot;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

/// The time of everything that is not about time.
pub const T: i64 = 1_600_000_000;

/// Sets the scene: `SRC`, `DST`, the oracle's target, and `OLD` for `--link-dest`.
pub fn set(case: &Case) {
    source(&case.src());
    target(&case.dst());
    target(&case.oracle_dst());
    old(&case.old());
}

fn file(root: &Path, name: &str, content: &str, time: i64) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    set_mtime(&path, time, 0);
}

fn dir(root: &Path, name: &str) {
    std::fs::create_dir_all(root.join(name)).unwrap();
}

fn link(root: &Path, name: &str, to: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(to, &path).unwrap();
    set_mtime(&path, T, 0);
}

fn mode(root: &Path, name: &str, mode: u32) {
    std::fs::set_permissions(root.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
}

fn node(root: &Path, name: &str, kind: rustix::fs::FileType) {
    use rustix::fs::{CWD, Mode};
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let device = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(CWD, &path, kind, Mode::from_raw_mode(0o644), device).unwrap();
    set_mtime(&path, T, 0);
}

/// Times of all directories, deepest first, so that nothing depends on when the scene was set.
fn dir_times(root: &Path, time: i64) {
    for (path, entry) in Snapshot::of(root).entries.iter().rev() {
        if entry.kind == rustix::fs::FileType::Directory {
            set_mtime(&root.join(OsStr::from_bytes(path)), time, 0);
        }
    }
}

pub fn source(root: &Path) {
    use rustix::fs::FileType;
    file(root, "a/same.txt", "the same", T);
    file(root, "a/newer-in-src.txt", "changed content", T + 500);
    file(root, "a/older-in-src.txt", "old content", T);
    file(root, "a/same-size.txt", "content A", T + 7);
    file(root, "a/sneaky.txt", "content A", T);
    file(root, "a/touched.txt", "the same", T + 300);
    file(root, "a/one-second.txt", "the same", T + 1);
    file(root, "a/mode.txt", "the same", T);
    mode(root, "a/mode.txt", 0o600);
    file(root, "a/owner.txt", "the same", T);
    file(root, "a/new.txt", "new", T + 9);
    file(root, "a/module.o", "object", T);
    file(root, "a/backup~", "tilde", T);
    file(root, "a/.git/config", "git", T);
    file(root, "a/core", "core", T);
    file(root, "b/only-src/deep/file", "deep", T);
    dir(root, "b/empty");
    dir(root, "b/empty2/below");
    dir(root, "c/was-file");
    file(root, "c/was-file/inside", "in", T);
    file(root, "c/was-empty-dir", "file now", T);
    file(root, "c/was-link", "file now", T);
    link(root, "c/was-plain", "was-link");
    file(root, "keep/inside", "new inside", T + 5);
    link(root, "l/relative", "../a/same.txt");
    link(root, "l/dangling", "nowhere");
    link(root, "l/absolute", "/proc/self/status-is-not-here");
    link(root, "l/dir", "../b/only-src");
    link(root, "l/outside", "../../../outside");
    link(root, "l/changed", "new-target");
    file(root, "size/1k", &"1".repeat(1024), T);
    file(root, "size/10k", &"2".repeat(10 << 10), T);
    file(root, "size/100k", &"3".repeat(100 << 10), T);
    file(root, "size/0", "", T);
    file(root, "h/one", "linked", T);
    std::fs::hard_link(root.join("h/one"), root.join("h/two")).unwrap();
    std::fs::hard_link(root.join("h/one"), root.join("h/three")).unwrap();
    file(root, "p/setuid", "suid", T);
    mode(root, "p/setuid", 0o4755);
    file(root, "p/read-only", "ro", T);
    mode(root, "p/read-only", 0o444);
    file(root, "p/dir/below", "below", T);
    mode(root, "p/dir", 0o2750);
    file(root, "holes/zeroes", "", T);
    let zeroes = std::fs::File::create(root.join("holes/zeroes")).unwrap();
    zeroes.write_all_at(&vec![0; 300_000], 0).unwrap();
    zeroes.write_all_at(b"end", 300_000).unwrap();
    set_mtime(&root.join("holes/zeroes"), T, 0);
    node(root, "s/fifo", FileType::Fifo);
    node(root, "s/socket", FileType::Socket);
    if is_root() {
        node(root, "s/null", FileType::CharacterDevice);
        std::os::unix::fs::chown(root.join("a/owner.txt"), Some(1000), Some(1001)).unwrap();
        std::os::unix::fs::chown(root.join("size"), Some(1000), Some(0)).unwrap();
    }
    dir_times(root, T + 50);
}

fn target(root: &Path) {
    file(root, "a/same.txt", "the same", T);
    file(root, "a/newer-in-src.txt", "content", T);
    file(root, "a/older-in-src.txt", "newer content here", T + 500);
    file(root, "a/same-size.txt", "content B", T);
    file(root, "a/sneaky.txt", "content B", T);
    file(root, "a/touched.txt", "the same", T);
    file(root, "a/one-second.txt", "the same", T);
    file(root, "a/mode.txt", "the same", T);
    file(root, "a/owner.txt", "the same", T);
    file(root, "a/module.o", "older object", T - 5);
    file(root, "a/stale.o", "extraneous", T);
    dir(root, "b");
    file(root, "c/was-file", "was", T);
    dir(root, "c/was-empty-dir");
    link(root, "c/was-link", "../a/same.txt");
    file(root, "c/was-plain", "plain", T);
    file(root, "kept-elsewhere/inside", "old inside!", T);
    link(root, "keep", "kept-elsewhere");
    link(root, "l/relative", "../a/same.txt");
    link(root, "l/changed", "old-target");
    file(root, "size/10k", &"2".repeat(10 << 10), T);
    file(root, "h/one", "linked", T);
    file(root, "h/two", "other", T);
    file(root, "x/extra.txt", "extra", T);
    file(root, "x/extra-dir/1", "1", T);
    file(root, "x/extra-dir/2", "2", T);
    link(root, "x/extra-link", "../a");
    file(root, "top-extra", "top", T);
    dir_times(root, T);
}

fn old(root: &Path) {
    file(root, "a/same.txt", "the same", T);
    file(root, "a/new.txt", "new", T + 9);
    file(root, "a/newer-in-src.txt", "changed content", T + 500);
    file(root, "b/only-src/deep/file", "deep", T);
    file(root, "size/1k", &"1".repeat(1024), T);
    file(root, "size/100k", &"4".repeat(100 << 10), T);
    link(root, "l/dangling", "nowhere");
    file(root, "p/read-only", "ro", T);
    dir_times(root, T);
}
