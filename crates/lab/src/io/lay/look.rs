//! What is there under a name, whose it is, and what may be done with it.

use super::room::folder_of;
use super::wish::Wish;
use super::{MARK, Safety};
use hakobu_sys::{AsFd, disk, errno, meta, open, xattr};
use std::io::Error;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// A regular file; `ours` if it was laid out by an earlier run.
    File { bytes: u64, allocated_bytes: u64, ours: bool },
    /// A block device and its number.
    Device { bytes: u64, number: u64 },
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
        if !kind.is_file() && !kind.is_block_device() {
            let what = match () {
                () if kind.is_dir() => "a directory",
                () if kind.is_char_device() => "a character device",
                () if kind.is_fifo() => "a named pipe",
                () => "a socket",
            };
            return Err(format!("is {what}, not a file or a block device"));
        }
        let fd = open::open_for_io(path, true, false, false, false).map_err(|e| e.to_string())?;
        let bytes = open::size_bytes(fd.as_fd()).map_err(|error| error.to_string())?;
        let meta = meta::of_fd(&fd).map_err(|error| error.to_string())?;
        if kind.is_block_device() {
            let bytes = bytes.ok_or("the kernel does not say how large this device is")?;
            return Ok(Found::Device { bytes, number: meta.rdev });
        }
        let ours = xattr::get(fd.as_fd(), MARK, &mut Vec::new()).is_ok();
        let allocated_bytes = meta.allocated_bytes();
        Ok(Found::File { bytes: bytes.unwrap_or(0), allocated_bytes, ours })
    }

    /// How long it is; `None` where nothing is.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            Found::Absent => None,
            Found::File { bytes, .. } | Found::Device { bytes, .. } => Some(bytes),
        }
    }
}

/// Nothing is there: whether something may be made.
fn absent(path: &Path) -> Result<Found, String> {
    // A mistyped device would become a file in memory, and what is measured would be memory.
    if path.starts_with("/dev") && !path.starts_with("/dev/shm") {
        return Err("there is no such device, and no file is made below /dev".to_owned());
    }
    let parent = folder_of(path);
    match std::fs::metadata(parent) {
        Ok(entry) if entry.is_dir() => Ok(Found::Absent),
        Ok(_) => Err(format!("{} is not a directory", parent.display())),
        Err(error) => Err(format!("{}: {error}", parent.display())),
    }
}

/// Whether a file may be used as wished for.
///
/// # Errors
/// What would be harmed, and what allows it all the same.
pub(super) fn permit(wish: &Wish, safety: &Safety) -> Result<(), String> {
    let (writes, need) = (wish.writes(), wish.need_bytes);
    let unlink = wish.uses.iter().any(|user| user.unlink);
    match wish.found {
        Found::Absent => Ok(()),
        Found::File { ours: false, .. } if (writes || unlink) && !safety.allow_overwrite => {
            Err(format!(
                "exists, and was not laid out by hakobu: it would be {}; --allow-overwrite permits \
                 that",
                if writes { "overwritten" } else { "removed (unlink=1)" },
            ))
        }
        Found::File { bytes, ours: false, .. } if bytes < need && !safety.allow_overwrite => {
            Err(format!(
                "is too small: {bytes} bytes, and {need} are needed; it was not laid out by \
                 hakobu, so that only --allow-overwrite makes it larger"
            ))
        }
        Found::File { .. } => Ok(()),
        Found::Device { bytes, .. } if bytes < need => {
            Err(format!("this device is too small: {bytes} bytes, and {need} are needed"))
        }
        Found::Device { .. } if writes && !safety.allow_overwrite => {
            Err("is a block device: everything on it would be overwritten; --allow-overwrite \
                 permits that"
                .to_owned())
        }
        Found::Device { number, .. } if writes => match disk::users(number).as_slice() {
            [] => Ok(()),
            users => Err(format!("this device is in use ({}): never written to", users.join(", "))),
        },
        Found::Device { .. } => Ok(()),
    }
}

/// Opens a file as its jobs will, so that what cannot be is said before anything runs.
pub(super) fn try_open(wish: &Wish) -> Result<(), String> {
    for user in &wish.uses {
        // Who writes reads as well: a mapping wants it, and verify.
        let direct = user.direct;
        let opened = open::open_for_io(&wish.path, true, user.writes, direct, false);
        let fd = opened.map_err(|error| explain(&error, direct))?;
        let alignment = if direct { open::direct_alignment(fd.as_fd()) } else { None };
        match alignment.map(|alignment| alignment.offset_bytes) {
            Some(0) => return Err(NO_DIRECT.to_owned()),
            Some(multiple) if user.step_bytes % multiple != 0 => {
                return Err(format!(
                    "with direct=1 offsets and sizes of blocks must be multiples of {multiple} \
                     bytes here"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

const NO_DIRECT: &str = "its file system has no O_DIRECT: leave out direct=1";

/// What an error of open(2) means here.
pub(super) fn explain(error: &Error, direct: bool) -> String {
    match error.raw_os_error() {
        Some(errno::EINVAL) if direct => NO_DIRECT.to_owned(),
        Some(errno::EROFS) => "its file system is mounted read-only".to_owned(),
        Some(errno::EACCES | errno::EPERM) => format!("permission denied ({error})"),
        Some(errno::EBUSY) => "this device is in use: mounted, or claimed by RAID, LVM, swap or \
                               another program"
            .to_owned(),
        Some(errno::ETXTBSY) => "is a program that runs at the moment".to_owned(),
        _ => error.to_string(),
    }
}

/// The pair that names a file on this machine.
pub(super) fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    let entry = std::fs::symlink_metadata(path)?;
    Ok((entry.dev(), entry.ino()))
}
