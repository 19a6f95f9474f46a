//! Trees of many shapes are removed, kept if requested, and reported.

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Default)]
struct Recorder {
    keep: BTreeSet<Vec<u8>>,
    removed: Vec<Vec<u8>>,
    stayed: Vec<(Vec<u8>, RemovalOutcome)>,
    failed: Vec<(Vec<u8>, Operation)>,
    inside: usize,
    inside_max: usize,
}

impl Removal for Recorder {
    fn keep(&mut self, entry: &RemovalEntry<'_>) -> bool {
        self.keep.contains(entry.path)
    }
    fn enter(&mut self, _: &RemovalEntry<'_>, _: BorrowedFd<'_>) {
        self.inside += 1;
        self.inside_max = self.inside_max.max(self.inside);
    }
    fn leave(&mut self) {
        self.inside -= 1;
    }
    fn removed(&mut self, entry: &RemovalEntry<'_>) {
        self.removed.push(entry.path.to_vec());
    }
    fn stays(&mut self, entry: &RemovalEntry<'_>, left: RemovalOutcome) {
        self.stayed.push((entry.path.to_vec(), left));
    }
    fn failed(&mut self, entry: &RemovalEntry<'_>, operation: Operation, _: Cause) {
        self.failed.push((entry.path.to_vec(), operation));
    }
}

fn scratch(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("hakobu-remove-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn open(path: &Path) -> OwnedFd {
    dir::open_root(&CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
}

fn sample(base: &Path) {
    fs::create_dir_all(base.join("t/a/b")).unwrap();
    fs::create_dir_all(base.join("t/empty")).unwrap();
    for name in ["t/1", "t/a/2", "t/a/b/3", "t/a/b/line\nbreak"] {
        fs::write(base.join(name), name).unwrap();
    }
    fs::create_dir(base.join("outside")).unwrap();
    fs::write(base.join("outside/precious"), "x").unwrap();
    std::os::unix::fs::symlink("../outside", base.join("t/link")).unwrap();
}

#[test]
fn a_tree_goes_and_what_its_links_name_stays() {
    let base = scratch("plain");
    sample(&base);
    let mut seen = Recorder::default();
    let left = remove_tree(
        open(&base).as_fd(),
        c"t",
        Kind::Unknown,
        b"x/t",
        RemoveOptions::default(),
        &mut seen,
    );
    assert_eq!((left, seen.removed.len(), seen.failed.len()), (RemovalOutcome::Nothing, 9, 0));
    assert_eq!(seen.removed.last().unwrap(), b"x/t");
    assert_eq!((seen.inside, seen.inside_max), (0, 3));
    assert!(!base.join("t").exists() && base.join("outside/precious").exists());
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn a_kept_entry_keeps_its_parents_and_nothing_else() {
    let base = scratch("keep");
    sample(&base);
    let mut seen = Recorder { keep: [b"t/a/2".to_vec()].into(), ..Recorder::default() };
    let left = remove_tree(
        open(&base).as_fd(),
        c"t",
        Kind::Dir,
        b"t",
        RemoveOptions::default(),
        &mut seen,
    );
    assert_eq!(left, RemovalOutcome::Kept);
    assert_eq!(
        seen.stayed,
        [(b"t/a".to_vec(), RemovalOutcome::Kept), (b"t".to_vec(), RemovalOutcome::Kept)]
    );
    assert!(base.join("t/a/2").exists());
    assert_eq!(fs::read_dir(base.join("t/a")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(base.join("t")).unwrap().count(), 1);
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn a_dry_run_tells_the_same_and_does_nothing() {
    let base = scratch("dry");
    sample(&base);
    let options = RemoveOptions { dry_run: true, ..RemoveOptions::default() };
    let mut dry = Recorder { keep: [b"t/1".to_vec()].into(), ..Recorder::default() };
    assert_eq!(
        remove_tree(open(&base).as_fd(), c"t", Kind::Dir, b"t", options, &mut dry),
        RemovalOutcome::Kept
    );
    assert!(base.join("t/a/b/3").exists() && base.join("t/link").is_symlink());
    let mut done = Recorder { keep: dry.keep.clone(), ..Recorder::default() };
    remove_tree(open(&base).as_fd(), c"t", Kind::Dir, b"t", RemoveOptions::default(), &mut done);
    assert_eq!(dry.removed, done.removed);
    assert_eq!(dry.stayed, done.stayed);
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn depth_is_bound_neither_by_path_max_nor_by_descriptors() {
    let base = scratch("deep");
    let name = CString::new(vec![b'd'; 200]).unwrap();
    let mut here = open(&base);
    for level in 0..300 {
        dir::create(here.as_fd(), &name, 0o755).unwrap();
        dir::create(here.as_fd(), c"side", 0o755).unwrap();
        if level % 50 == 0 {
            dir::symlink(c"..", here.as_fd(), c"up").unwrap();
        }
        here = dir::open(here.as_fd(), &name, false).unwrap();
    }
    let (parent, last) = (base.parent().unwrap(), base.file_name().unwrap());
    let last = CString::new(last.as_bytes()).unwrap();
    let mut seen = Recorder::default();
    let left = remove_tree(
        open(parent).as_fd(),
        &last,
        Kind::Dir,
        b"top",
        RemoveOptions::default(),
        &mut seen,
    );
    assert_eq!((left, seen.failed.len(), seen.removed.len()), (RemovalOutcome::Nothing, 0, 607));
    assert!(!base.exists());
}
