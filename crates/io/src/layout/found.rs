//! The entry that has a file's name before anything is laid out.

use super::mark;
use hakobu_sys::{AsFd, blocks, errno, meta};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// A regular file; `ours` if it is as an earlier run laid it out and left it.
    File { bytes: u64, allocated_bytes: u64, ours: bool },
    /// A block device and its number.
    Device { bytes: u64, number: u64 },
    /// A folder.
    Folder,
}

impl Found {
    /// Looks, through symbolic links.
    pub(super) fn look(path: &Path) -> Result<Found, String> {
        let entry = match std::fs::metadata(path) {
            Ok(entry) => entry,
            Err(error) if errno::is(&error, errno::ENOENT) => return absent(path),
            Err(error) => return Err(error.to_string()),
        };
        let kind = entry.file_type();
        if kind.is_dir() {
            return Ok(Found::Folder);
        }
        if !kind.is_file() && !kind.is_block_device() {
            let what = match () {
                () if kind.is_char_device() => "a character device",
                () if kind.is_fifo() => "a named pipe",
                () => "a socket",
            };
            return Err(format!("is {what}, not a file or a block device"));
        }
        let fd = blocks::open_for_io(path, true, false, false, false).map_err(|e| e.to_string())?;
        let bytes = blocks::size_bytes(fd.as_fd()).map_err(|error| error.to_string())?;
        let meta = meta::of_fd(&fd).map_err(|error| error.to_string())?;
        if kind.is_block_device() {
            let bytes = bytes.ok_or("the kernel does not say how large this device is")?;
            return Ok(Found::Device { bytes, number: meta.rdev });
        }
        let ours = mark::fits(fd.as_fd()).map_err(|error| error.to_string())?;
        let allocated_bytes = meta.allocated_bytes();
        Ok(Found::File { bytes: bytes.unwrap_or(0), allocated_bytes, ours })
    }

    /// Its length; `None` where nothing is there.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            Found::Absent | Found::Folder => None,
            Found::File { bytes, .. } | Found::Device { bytes, .. } => Some(bytes),
        }
    }
}

/// Checks that a missing file may be created.
fn absent(path: &Path) -> Result<Found, String> {
    // A mistyped device would become a file in memory, and the run would measure memory.
    if path.starts_with("/dev") && !path.starts_with("/dev/shm") {
        return Err("the device does not exist, and no file is created below /dev".to_owned());
    }
    let parent = folder_of(path);
    match std::fs::metadata(parent) {
        Ok(entry) if entry.is_dir() => Ok(Found::Absent),
        Ok(_) => Err(format!("{} is not a directory", parent.display())),
        Err(error) => Err(format!("{}: {error}", parent.display())),
    }
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
