//! Paths below an open directory, resolved component by component without following symlinks.

use crate::{AsFd, BorrowedFd, OwnedFd, dir};
use std::ffi::{CStr, CString};
use std::io::Result;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Splits a path or key before its last name: the folder with its slash (empty at the top), and the name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1))
}

/// A name in an open directory.
#[derive(Debug)]
pub struct Below<'a> {
    top: BorrowedFd<'a>,
    folder: Option<OwnedFd>,
    name: CString,
}

impl Below<'_> {
    /// Opens the directory of `path` below `top`. A single name needs no system call.
    ///
    /// # Errors
    /// The directory does not exist, is behind a symlink or above `top`; the path contains a NUL.
    pub fn find<'a>(top: BorrowedFd<'a>, path: &[u8]) -> Result<Below<'a>> {
        let (folder, name) = split(path);
        let folder = match folder.strip_suffix(b"/") {
            Some(folder) => Some(dir::open_below(top, &CString::new(folder)?)?),
            None => None,
        };
        Ok(Below { top, folder, name: CString::new(name)? })
    }

    /// Opens the directory of a path given by the user, following symlinks.
    ///
    /// # Errors
    /// The directory does not exist; the path contains a NUL.
    pub fn typed(path: &Path) -> Result<Below<'static>> {
        let (folder, name) = split(path.as_os_str().as_bytes());
        let folder = if folder.is_empty() { b"." } else { folder };
        let folder = Some(dir::open_root(&CString::new(folder)?)?);
        Ok(Below { top: dir::cwd(), folder, name: CString::new(name)? })
    }

    /// The directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.folder.as_ref().map_or(self.top, AsFd::as_fd)
    }

    /// The name in the directory.
    pub fn name(&self) -> &CStr {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta;

    #[test]
    fn paths_are_divided_before_the_last_name() {
        for (path, folder, name) in [
            ("a", "", "a"),
            ("a/b/c", "a/b/", "c"),
            ("a/", "a/", ""),
            ("/a", "/", "a"),
            ("", "", ""),
        ] {
            assert_eq!(split(path.as_bytes()), (folder.as_bytes(), name.as_bytes()), "{path}");
        }
    }

    #[test]
    fn names_are_found_through_no_symlink() {
        let path = std::env::temp_dir().join(format!("hakobu-below-{}", std::process::id()));
        std::fs::create_dir_all(path.join("d")).unwrap();
        std::fs::write(path.join("d/f"), "x").unwrap();
        std::os::unix::fs::symlink("d", path.join("l")).unwrap();
        let top = dir::open_root(&CString::new(path.to_str().unwrap()).unwrap()).unwrap();
        let size = |path: &[u8]| {
            let below = Below::find(top.as_fd(), path).ok()?;
            Some(meta::of(below.dir(), below.name(), false).ok()?.size)
        };
        assert_eq!(size(b"d/f"), Some(1));
        assert!(size(b"d").is_some());
        for path in [&b"l/f"[..], b"../d/f", b"e/f", b"d/g", b"d\0/f"] {
            assert_eq!(size(path), None);
        }
        let typed = Below::typed(&path.join("l/f")).unwrap();
        assert_eq!(meta::of(typed.dir(), typed.name(), false).unwrap().size, 1);
        std::fs::remove_dir_all(path).unwrap();
    }
}
