//! Local removals against a real folder.

use super::*;
use hakobu_core::unit::{Meta, Time};
use std::path::{Path, PathBuf};

struct Folder0(PathBuf);

impl Folder0 {
    fn new(name: &str) -> Folder0 {
        let path =
            std::env::temp_dir().join(format!("hakobu-delete-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder0(path)
    }

    fn file(&self, name: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    fn open(&self) -> OwnedFd {
        open(&self.0)
    }
}

impl Drop for Folder0 {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> OwnedFd {
    dir::open_root(&CString::new(path.to_str().unwrap()).unwrap()).unwrap()
}

fn entry(name: &str) -> Entry {
    let kind = if name.ends_with('/') { Kind::Dir } else { Kind::File };
    let meta = Meta::bare(kind, 0, Time::default());
    Entry { name: name.as_bytes().into(), meta, etag: "".into() }
}

/// Removes names in this order; returns the reported ones.
fn run(root: &OwnedFd, names: &[&str]) -> Vec<String> {
    let (emptied, mut folder, mut removed) = (Emptied::default(), Folder::default(), Vec::new());
    for name in names {
        let mut above = Vec::new();
        let mut on_removed = |path: &[u8]| above.push(String::from_utf8(path.to_vec()).unwrap());
        if remove(root, &entry(name), &mut folder, &emptied, &mut on_removed).unwrap()
            == Outcome::Removed
        {
            removed.push((*name).to_owned());
        }
        removed.extend(above.into_iter().map(|path| format!("{path}/")));
    }
    removed
}

#[test]
fn a_directory_goes_after_what_is_in_it_in_whatever_order() {
    for (number, names) in [
        ["d/", "d/e/", "d/e/f", "d/g"],
        ["d/g", "d/e/f", "d/e/", "d/"],
        ["d/", "d/g", "d/e/f", "d/e/"],
    ]
    .iter()
    .enumerate()
    {
        let folder = Folder0::new(&format!("order-{number}"));
        folder.file("d/e/f");
        folder.file("d/g");
        let mut removed = run(&folder.open(), names);
        removed.sort();
        assert_eq!(removed, ["d/", "d/e/", "d/e/f", "d/g"], "{names:?}");
        assert!(!folder.0.join("d").exists());
    }
}

#[test]
fn a_directory_with_something_kept_stays_and_is_not_told() {
    let folder = Folder0::new("kept");
    folder.file("d/gone");
    folder.file("d/kept");
    assert_eq!(run(&folder.open(), &["d/", "d/gone"]), ["d/gone"]);
    assert!(folder.0.join("d/kept").exists());
}

#[test]
fn a_directory_that_is_not_to_go_stays_though_it_is_empty() {
    let folder = Folder0::new("stays");
    folder.file("d/gone");
    assert_eq!(run(&folder.open(), &["d/gone"]), ["d/gone"]);
    assert!(folder.0.join("d").is_dir());
}

#[test]
fn no_symlink_leads_out() {
    let (inside, outside) = (Folder0::new("inside"), Folder0::new("outside"));
    outside.file("f");
    std::os::unix::fs::symlink(&outside.0, inside.0.join("d")).unwrap();
    let (emptied, mut folder) = (Emptied::default(), Folder::default());
    let removed = remove(&inside.open(), &entry("d/f"), &mut folder, &emptied, &mut |_| {});
    assert!(removed.is_err(), "{removed:?}");
    let up = format!("../{}/f", outside.0.file_name().unwrap().to_str().unwrap());
    let removed = remove(&inside.open(), &entry(&up), &mut folder, &emptied, &mut |_| {});
    assert!(removed.is_err(), "{removed:?}");
    assert!(outside.0.join("f").exists());
}

#[test]
fn a_moved_source_goes_only_as_it_was() {
    let folder = Folder0::new("moved");
    folder.file("d/e/f");
    let root = folder.open();
    let meta = meta::of(root.as_fd(), c"d/e/f", false).unwrap();
    let entry = Entry { name: (*b"d/e/f").into(), meta, etag: "".into() };
    std::fs::write(folder.0.join("d/e/f"), "longer").unwrap();
    assert!(!remove_moved(&root, &entry, false).unwrap());
    let meta = meta::of(root.as_fd(), c"d/e/f", false).unwrap();
    let entry = Entry { meta, ..entry };
    assert!(remove_moved(&root, &entry, true).unwrap());
    assert!(!folder.0.join("d").exists() && folder.0.exists());
    assert!(remove_moved(&root, &entry, false).unwrap(), "what is gone is removed");
}
