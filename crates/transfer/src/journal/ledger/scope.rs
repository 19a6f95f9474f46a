//! The scope of a run: its targets and sources.

use hakobu_sys::{BorrowedFd, file, meta};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fs, io};

/// A directory that a run fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its absolute path, without symlinks.
    pub path: PathBuf,
    /// Its device and inode.
    pub identity: (u64, u64),
}

impl Target {
    /// Returns the target of an open directory.
    ///
    /// # Errors
    /// The error of examining it.
    pub fn of(dir: BorrowedFd<'_>) -> io::Result<Target> {
        Ok(Target { path: path_of(dir)?, identity: meta::of_fd(dir)?.identity() })
    }
}

/// Scope of a run.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The directories that it fills.
    pub targets: Vec<Target>,
    /// Sources of its entries, absolute.
    pub sources: Vec<Vec<u8>>,
    /// It descends into directories.
    pub recurse: bool,
    /// It skips entries by rules, lists or sizes.
    pub partial: bool,
}

/// Returns the path of an open directory, without symlinks.
///
/// # Errors
/// The error of examining it.
pub(super) fn path_of(dir: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(OsStr::from_bytes(file::proc_path(dir).to_bytes()))
}
