//! Looks at the entry of a name: its kind, its owner, and what may be done with it.

use super::files::Safety;
use super::found::Found;
use super::wish::Wish;
use crate::job::Named;
use hakobu_sys::{AsFd, blocks, disk, errno};
use std::io::Error;

/// Checks that a file may be used as requested.
///
/// # Errors
/// A sentence: the harm, and the option that allows it.
pub(super) fn permit(wish: &Wish<'_>, safety: &Safety) -> Result<(), String> {
    let (writes, need) = (wish.writes(), wish.need_bytes);
    if wish.must_exist && wish.found == Found::Absent {
        return Err("does not exist, and allow_file_create=0 forbids creating it".to_owned());
    }
    match (wish.is_folder(), wish.found) {
        (_, Found::Absent) => {}
        _ if wish.is_made() => {
            return Err(
                "already exists: engines that create files and folders need new names".to_owned()
            );
        }
        (true, Found::Folder) => return permit_folder(wish, safety),
        (true, _) => return Err("is not a directory".to_owned()),
        (false, Found::Folder) => {
            return Err("is a directory, not a file or a block device".to_owned());
        }
        (false, _) => {}
    }
    let unlink = wish.uses.iter().any(|user| user.unlink);
    match wish.found {
        Found::Absent | Found::Folder => Ok(()),
        Found::File { ours: false, .. } if (writes || unlink) && !safety.allow_overwrite => {
            Err(format!(
                "exists, but is not a file that hakobu laid out, or has changed since: it would be {}; \
                 --allow-overwrite permits that",
                match wish.named {
                    _ if writes => "overwritten",
                    Named::Removed { .. } => "removed",
                    _ => "removed (unlink=1)",
                },
            ))
        }
        Found::File { bytes, ours: false, .. } if bytes < need && !safety.allow_overwrite => {
            Err(format!(
                "is too small: {bytes} bytes, and {need} are needed; it was not laid out by hakobu, \
                 or has changed since, so only --allow-overwrite extends it"
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
        Found::Device { number, .. } if writes => match disk::users(number).as_deref() {
            Ok([]) => Ok(()),
            Ok(users) => {
                Err(format!("this device is in use ({}): never written to", users.join(", ")))
            }
            Err(error) => Err(format!("cannot determine whether this device is in use: {error}")),
        },
        Found::Device { .. } => Ok(()),
    }
}

/// Checks that an existing folder may be used. One that is to be removed was not created by this program.
fn permit_folder(wish: &Wish<'_>, safety: &Safety) -> Result<(), String> {
    let goes = matches!(wish.named, Named::Removed { .. });
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
pub(super) fn try_open(wish: &Wish<'_>) -> Result<(), String> {
    for user in &wish.uses {
        // Writers also need read access: for mappings and for verify.
        let direct = user.direct;
        let opened = blocks::open_for_io(&wish.path, true, user.writes, direct, false);
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
