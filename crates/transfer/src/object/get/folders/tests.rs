//! Folders: created once, found again, and never through a symlink.

use super::*;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

impl Folders {
    /// Returns the folder at `path`, and the number of folders created.
    fn open(
        &mut self,
        root: &Arc<OwnedFd>,
        path: &[u8],
        rules: Rules,
    ) -> Result<(Folder, u64), Failed> {
        match self.look(root, path, rules) {
            Look::Open(folder) => Ok((folder, 0)),
            Look::Way(way) => {
                let reached = way.go();
                self.reached(root, &reached);
                reached.end.map(|folder| (folder, reached.made))
            }
            Look::Opening(_) => panic!("nobody else opens it"),
        }
    }
}

const RULES: Rules = Rules { follow: false, umask: 0o022 };

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let unique = format!("hakobu-folders-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir(&path).expect("a folder for the test");
        Scratch(path)
    }

    fn root(&self) -> Arc<OwnedFd> {
        let path = CString::new(self.0.as_os_str().as_bytes()).expect("no NUL");
        Arc::new(dir::open_root(&path).expect("open"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn made(folders: &mut Folders, root: &Arc<OwnedFd>, path: &str) -> u64 {
    match folders.open(root, path.as_bytes(), RULES) {
        Ok((_, made)) => made,
        Err(_) => panic!("{path} failed"),
    }
}

fn refusal(folders: &mut Folders, root: &Arc<OwnedFd>, path: &str, rules: Rules) -> String {
    match folders.open(root, path.as_bytes(), rules) {
        Ok(_) => "opened".to_owned(),
        Err(Failed::Reason(_, _, why)) => why.to_owned(),
        Err(Failed::File(_, _, error)) => error.to_string(),
        Err(_) => "?".to_owned(),
    }
}

#[test]
fn each_folder_is_made_once() {
    let scratch = Scratch::new("once");
    let root = scratch.root();
    let mut folders = Folders::default();
    assert_eq!(made(&mut folders, &root, ""), 0);
    assert_eq!(made(&mut folders, &root, "a/b/c"), 3);
    assert_eq!(made(&mut folders, &root, "a/b/c"), 0);
    assert_eq!(made(&mut folders, &root, "a/b/d"), 1);
    assert_eq!(made(&mut folders, &root, "a"), 0);
    // Another core finds the existing ones.
    assert_eq!(made(&mut Folders::default(), &root, "a/b/c/e"), 1);
    assert!(scratch.0.join("a/b/c/e").is_dir() && scratch.0.join("a/b/d").is_dir());
}

#[test]
fn a_folder_is_the_same_one_every_time() {
    let scratch = Scratch::new("same");
    let root = scratch.root();
    let mut folders = Folders::default();
    // More than are kept open, twice.
    for round in 0..2 {
        for number in 0..OPEN_MAX * 2 {
            let path = format!("d{number}/e");
            let (folder, made) = folders.open(&root, path.as_bytes(), RULES).expect("open");
            assert_eq!(made, if round == 0 { 2 } else { 0 });
            let here = meta::of_fd(&folder.fd).expect("stat").identity();
            let there = std::fs::metadata(scratch.0.join(&path)).expect("stat");
            assert_eq!(here.1, std::os::unix::fs::MetadataExt::ino(&there), "{path}");
        }
        assert!(folders.roots[0].open.len() <= OPEN_MAX);
    }
}

#[test]
fn obstacles_are_not_followed() {
    let scratch = Scratch::new("way");
    std::fs::create_dir(scratch.0.join("real")).expect("mkdir");
    std::os::unix::fs::symlink("real", scratch.0.join("link")).expect("symlink");
    std::fs::write(scratch.0.join("file"), b"x").expect("write");
    let root = scratch.root();
    let mut folders = Folders::default();
    assert!(refusal(&mut folders, &root, "link/a", RULES).starts_with("a symlink"));
    assert!(refusal(&mut folders, &root, "file/a", RULES).starts_with("a file"));
    assert!(!scratch.0.join("real/a").exists());
    let follow = Rules { follow: true, ..RULES };
    assert_eq!(refusal(&mut folders, &root, "link/a", follow), "opened");
    assert!(scratch.0.join("real/a").is_dir());
    assert!(refusal(&mut folders, &root, "file/a", follow).starts_with("a file"));
}

#[test]
fn removed_folders_are_created_again() {
    let scratch = Scratch::new("gone");
    let root = scratch.root();
    let mut folders = Folders::default();
    made(&mut folders, &root, "a/b/c");
    made(&mut folders, &root, "ab");
    std::fs::remove_dir_all(scratch.0.join("a")).expect("remove");
    folders.forget(&root, b"a");
    assert_eq!(made(&mut folders, &root, "a/b/c"), 3);
    folders.forget(&root, b"a/b");
    assert_eq!(folders.roots[0].open.len(), 3, "the root, a, ab");
}

#[test]
fn many_make_the_same_folders_at_once() {
    let scratch = Scratch::new("race");
    let root = scratch.root();
    let total = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut folders = Folders::default();
                for number in 0..200 {
                    let made = made(&mut folders, &root, &format!("{}/{number}/x", number % 7));
                    total.fetch_add(made, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(total.into_inner(), 7 + 400, "each was counted by one of them");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for path in ["", ".", "..", "a/..", "../a", "a//b", "/a", "a/", "a/./b", "a\0b"] {
        assert!(split(path.as_bytes()).is_err(), "{path:?}");
    }
    for (path, above, last) in [("a", "", "a"), ("a/b", "a", "b"), ("a/...", "a", "...")] {
        let (found, name) = split(path.as_bytes()).expect("good");
        assert_eq!((found, name.to_bytes()), (above.as_bytes(), last.as_bytes()));
    }
}
