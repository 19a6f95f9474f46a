//! What has the name of a file before anything is laid out, and whether it may be used: existing content is never lost
//! without permission, nothing begins that the file system has no space for.

use super::files::FilePlan;
use super::{Safety, make};
use crate::job::NameUse;
use hakobu_sys::{AsFd, blocks, disk, errno, meta};
use std::collections::BTreeMap;
use std::io::Error;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// Nothing.
    Absent,
    /// A regular file; `ours` if it is as an earlier run laid it out and left it.
    File {
        bytes: u64,
        allocated_bytes: u64,
        ours: bool,
    },
    /// A block device and its number.
    Device {
        bytes: u64,
        number: u64,
    },
    Folder,
}

impl FileState {
    /// Looks, through symbolic links.
    pub(super) fn look(path: &Path) -> Result<FileState, String> {
        let entry = match std::fs::metadata(path) {
            Ok(entry) => entry,
            Err(error) if errno::is(&error, errno::ENOENT) => return absent(path),
            Err(error) => return Err(error.to_string()),
        };
        let kind = entry.file_type();
        if kind.is_dir() {
            return Ok(FileState::Folder);
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
            return Ok(FileState::Device { bytes, number: meta.rdev });
        }
        let ours = make::fits_mark(fd.as_fd()).map_err(|error| error.to_string())?;
        let allocated_bytes = meta.allocated_bytes();
        Ok(FileState::File { bytes: bytes.unwrap_or(0), allocated_bytes, ours })
    }

    /// Its length; `None` where nothing is there.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            FileState::Absent | FileState::Folder => None,
            FileState::File { bytes, .. } | FileState::Device { bytes, .. } => Some(bytes),
        }
    }
}

/// Checks that a missing file may be created.
fn absent(path: &Path) -> Result<FileState, String> {
    // A mistyped device would become a file in memory, and the run would measure memory.
    if path.starts_with("/dev") && !path.starts_with("/dev/shm") {
        return Err("the device does not exist, and no file is created below /dev".to_owned());
    }
    let parent = folder_of(path);
    match std::fs::metadata(parent) {
        Ok(entry) if entry.is_dir() => Ok(FileState::Absent),
        Ok(_) => Err(format!("{} is not a directory", parent.display())),
        Err(error) => Err(format!("{}: {error}", parent.display())),
    }
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Checks that a file may be used as requested.
///
/// # Errors
/// A sentence: the harm, and the option that allows it.
pub(super) fn permit(plan: &FilePlan<'_>, safety: &Safety) -> Result<(), String> {
    let (writes, need) = (plan.writes(), plan.need_bytes);
    if plan.must_exist && plan.found == FileState::Absent {
        return Err("does not exist, and allow_file_create=0 forbids creating it".to_owned());
    }
    match (plan.is_folder(), plan.found) {
        (_, FileState::Absent) => {}
        _ if plan.is_made() => {
            return Err("already exists: engines that create files and directories need new names"
                .to_owned());
        }
        (true, FileState::Folder) => return permit_folder(plan, safety),
        (true, _) => return Err("is not a directory".to_owned()),
        (false, FileState::Folder) => {
            return Err("is a directory, not a file or a block device".to_owned());
        }
        (false, _) => {}
    }
    let unlink = plan.uses.iter().any(|user| user.unlink);
    match plan.found {
        FileState::Absent | FileState::Folder => Ok(()),
        FileState::File { ours: false, .. } if (writes || unlink) && !safety.allow_overwrite => {
            Err(format!(
                "exists, but is not a file that hakobu laid out, or has changed since: it would be {}; \
                 --allow-overwrite permits that",
                match plan.named {
                    _ if writes => "overwritten",
                    NameUse::Removed { .. } => "removed",
                    _ => "removed (unlink=1)",
                },
            ))
        }
        FileState::File { bytes, ours: false, .. } if bytes < need && !safety.allow_overwrite => {
            Err(format!(
                "is too small: {bytes} bytes, and {need} are needed; it was not laid out by hakobu, \
                 or has changed since, so only --allow-overwrite extends it"
            ))
        }
        FileState::File { .. } => Ok(()),
        FileState::Device { bytes, .. } if bytes < need => {
            Err(format!("this device is too small: {bytes} bytes, and {need} are needed"))
        }
        FileState::Device { .. } if writes && !safety.allow_overwrite => {
            Err("is a block device: everything on it would be overwritten; --allow-overwrite \
                 permits that"
                .to_owned())
        }
        FileState::Device { number, .. } if writes => match disk::users(number).as_deref() {
            Ok([]) => Ok(()),
            Ok(users) => {
                Err(format!("this device is in use ({}): never written to", users.join(", ")))
            }
            Err(error) => Err(format!("cannot determine whether this device is in use: {error}")),
        },
        FileState::Device { .. } => Ok(()),
    }
}

/// Checks that an existing folder may be used. One that is to be removed was not created by this program.
fn permit_folder(plan: &FilePlan<'_>, safety: &Safety) -> Result<(), String> {
    let goes = matches!(plan.named, NameUse::Removed { .. });
    if goes && !safety.allow_overwrite {
        return Err(
            "is a directory that was not created here: it would be removed; --allow-overwrite \
                    permits that if it is empty"
                .to_owned(),
        );
    }
    Ok(())
}

/// Opens a file as its jobs will, so that failures are reported before anything runs.
pub(super) fn try_open(plan: &FilePlan<'_>) -> Result<(), String> {
    for user in &plan.uses {
        // Writers also need read access: for mappings and for verify.
        let direct = user.direct;
        let opened = blocks::open_for_io(&plan.path, true, user.writes, direct, false);
        let fd = opened.map_err(|error| explain(&error, direct))?;
        let alignment = if direct { blocks::direct_alignment(fd.as_fd()) } else { None };
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

/// Meaning of an error of open(2).
pub(super) fn explain(error: &Error, direct: bool) -> String {
    match error.raw_os_error() {
        Some(errno::EINVAL) if direct => NO_DIRECT.to_owned(),
        Some(errno::EROFS) => "its file system is mounted read-only".to_owned(),
        Some(errno::EACCES | errno::EPERM) => format!("permission denied ({error})"),
        Some(errno::EBUSY) => "this device is in use: mounted, or claimed by RAID, LVM, swap or \
                               another program"
            .to_owned(),
        Some(errno::ETXTBSY) => "is a running program".to_owned(),
        _ => error.to_string(),
    }
}

/// Demand on one file system.
#[derive(Debug, Default)]
struct Demand {
    bytes: u64,
    files: u64,
    /// Some folder or file on it.
    place: PathBuf,
}

/// Compares required with free space (statvfs(3)), for each file system.
///
/// # Errors
/// It does not fit, or is mounted read-only; the place, and both numbers.
pub(super) fn check_room(plans: &[FilePlan<'_>]) -> Result<(), String> {
    let mut demands: BTreeMap<u64, Demand> = BTreeMap::new();
    for plan in plans.iter().filter(|plan| plan.lacks_bytes() > 0) {
        let place: &Path = match plan.found {
            FileState::Absent => folder_of(&plan.path),
            _ => &plan.path,
        };
        let entry = std::fs::metadata(place);
        let entry = entry.map_err(|error| format!("{}: {error}", place.display()))?;
        let demand = demands.entry(entry.dev()).or_default();
        demand.bytes = demand.bytes.saturating_add(plan.lacks_bytes());
        demand.files += u64::from(plan.found == FileState::Absent);
        demand.place = place.to_owned();
    }
    demands.values().try_for_each(fits_room)
}

fn fits_room(demand: &Demand) -> Result<(), String> {
    let Demand { bytes, files, place } = demand;
    let place = place.display();
    let space = std::fs::File::open(&demand.place).and_then(|at| disk::space(at.as_fd()));
    let space = space.map_err(|error| format!("{place}: {error}"))?;
    if space.read_only {
        return Err(format!("{place}: its file system is mounted read-only"));
    }
    // Some file systems say nothing at all (ramfs).
    let is_known = space.free_bytes > 0 || space.used_bytes > 0;
    if is_known && *bytes > space.free_bytes {
        let free = space.free_bytes;
        return Err(format!(
            "{place}: files of {bytes} bytes are to be laid out on this file system, and {free} \
             bytes are free"
        ));
    }
    match space.free_inodes {
        Some(free) if *files > free => Err(format!(
            "{place}: {files} files are to be laid out on this file system, and {free} inodes are \
             free"
        )),
        _ => Ok(()),
    }
}
