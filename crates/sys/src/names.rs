//! Names in a small folder, by path.

use crate::AsFd;
use crate::dir::{self, Reader};
use crate::meta::Kind;
use std::ffi::{CString, OsStr};
use std::io::Result;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Paths of at most `most` entries of a folder, unordered. Unlike the standard library's iterator, which
/// panics, it survives a failing close(2).
///
/// # Errors
/// The folder cannot be opened or read.
pub fn paths_in(folder: &Path, most: usize) -> Result<Vec<PathBuf>> {
    let fd = dir::open(dir::cwd(), &CString::new(folder.as_os_str().as_bytes())?, true)?;
    let mut paths = Vec::new();
    Reader::default().read_until(fd.as_fd(), |name, _: Kind, _| {
        paths.push(folder.join(OsStr::from_bytes(name.to_bytes())));
        if paths.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let all = paths_in(&folder, usize::MAX).unwrap();
        assert!(all.contains(&folder.join("names.rs")) && all.len() > 20);
        assert_eq!(paths_in(&folder, 3).unwrap().len(), 3);
        assert!(paths_in(&folder.join("none"), 3).is_err());
    }
}
