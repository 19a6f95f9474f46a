//! Steps of reserving space and of naming and removing files, shared by local copies and downloads.

use crate::engine::failure::{Failure, c_string};
use crate::policy::{Numbering, Policy};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Time};
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, file, meta, space, volume};
use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;

/// A directory and a name in it.
pub(in crate::engine) type DirName<'a> = (BorrowedFd<'a>, &'a CStr);

/// Maximum size, in bytes, of files that may be created under their final name.
pub(crate) const DIRECT_BYTES_MAX: u64 = 64 << 20;

/// Maximum number of backup numbers that are tried while other programs take them.
const NUMBERS_MAX: usize = 8;

/// Time of unfinished files: older than any source, so that no later run takes them for newer or equal.
pub(crate) const UNFINISHED: Time = Time { s: 0, ns: 0 };

/// Returns whether the policy allows creating files under their final name (see `publish/direct.rs`): the same run,
/// repeated, has to compare sizes and times.
pub(crate) fn allows_direct(policy: &Policy) -> bool {
    !policy.update
        && !policy.existing
        && !policy.ignore_existing
        && !policy.size_only
        && !policy.fsync
        && !policy.partial
        && !policy.delay_updates
        && policy.temp_dir.is_none()
}

/// Returns the failure of a worker that was suspended for longer than its lease.
pub(crate) fn lease_ended() -> io::Error {
    io::Error::other("this worker stood still for too long; others do its work")
}

/// Returns the warning about half-written files that are treated as absent; given once.
pub(crate) fn unfinished(target: &Path) -> String {
    let target = hakobu_core::error::quoted(target);
    format!(
        "{target} is unfinished: the run that was writing it was killed or is still at work; it is \
         replaced, and so are others like it"
    )
}

/// Returns whether cp writes into such an entry instead of replacing it: devices, FIFOs and sockets.
pub(crate) fn is_node(kind: Kind) -> bool {
    !matches!(kind, Kind::File | Kind::Symlink | Kind::Dir)
}

/// Returns whether the error means that the file system has no `O_TMPFILE`: NFS, FUSE and old overlays return
/// different ones.
pub(crate) fn lacks_unnamed(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(errno::EOPNOTSUPP | errno::EISDIR | errno::EINVAL | errno::ENOENT)
    )
}

/// Renames a finished temporary entry to its final name. If nothing existed when we checked (`fresh`), a later entry
/// must not be replaced: EEXIST, if the file system supports that.
pub(crate) fn rename_into_place(
    from: BorrowedFd<'_>,
    temp: &CStr,
    to: BorrowedFd<'_>,
    name: &CStr,
    fresh: bool,
) -> io::Result<()> {
    if fresh {
        match dir::rename_new(from, temp, to, name) {
            Err(error) if errno::is(&error, errno::EINVAL) => {}
            other => return other,
        }
        // FUSE and some network file systems cannot rename without replacing, but link.
        match dir::link(from, temp, to, name) {
            Ok(()) => {
                // A second name that stays is removed by the next run.
                drop(dir::unlink(from, temp));
                return Ok(());
            }
            Err(error) if errno::is(&error, errno::EEXIST) => return Err(error),
            // Without links the name is taken by an empty file first, which no later run takes for finished.
            Err(_) => {
                drop(file::create_new(to, name, 0o600)?);
                drop(meta::set_times(to, name, None, UNFINISHED));
            }
        }
    }
    dir::rename(from, temp, to, name)
}

/// Returns whether the error of link(2) means that a hard link is impossible: another file system, one without them,
/// too many links, or another user's file (`fs.protected_hardlinks`).
pub(crate) fn cannot_link(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(errno::EXDEV | errno::EMLINK | errno::EPERM | errno::EOPNOTSUPP)
    )
}

/// Returns the name of a backup: the name and the suffix.
pub(crate) fn backup_name(policy: &Policy, name: &CStr) -> io::Result<CString> {
    c_string(&[name.to_bytes(), &policy.suffix].concat())
}

/// Returns the name of the next numbered backup of `name` in its directory; `None` if it gets a simple one.
fn numbered(
    numbering: Numbering,
    dir_fd: BorrowedFd<'_>,
    name: &CStr,
) -> io::Result<Option<CString>> {
    if numbering == Numbering::Simple {
        return Ok(None);
    }
    let mut last = 0;
    // A descriptor of its own: the position of the other one may be in use.
    let listed = dir::open(dir_fd, c".", true)?;
    dir::Reader::default().for_each(listed.as_fd(), |other, _, _| {
        last = last.max(number_of(other.to_bytes(), name.to_bytes()).unwrap_or(0));
    })?;
    if last == 0 && numbering == Numbering::Existing {
        return Ok(None);
    }
    let number = format!(".~{}~", last.saturating_add(1));
    c_string(&[name.to_bytes(), number.as_bytes()].concat()).map(Some)
}

/// Returns the number of `backup` if it is a numbered backup of `name`.
fn number_of(backup: &[u8], name: &[u8]) -> Option<u64> {
    let digits = backup.strip_prefix(name)?.strip_prefix(b".~")?.strip_suffix(b"~")?;
    let counts = digits.first().is_some_and(|first| (b'1'..=b'9').contains(first))
        && digits.iter().all(u8::is_ascii_digit);
    counts.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

/// Keeps the entry `name` under its backup name as well, so that the name is always taken; without hard links there
/// is a moment in which it is free.
pub(crate) fn back_up(policy: &Policy, dir_fd: BorrowedFd<'_>, name: &CStr) -> Result<(), Failure> {
    let backup = backup_name(policy, name).map_err(Failure::of(Operation::Rename))?;
    back_up_as(policy, dir_fd, name, &backup)
}

/// As [`back_up`], with the name of a simple backup.
pub(in crate::engine) fn back_up_as(
    policy: &Policy,
    dir_fd: BorrowedFd<'_>,
    name: &CStr,
    backup: &CStr,
) -> Result<(), Failure> {
    let rename = || Failure::of(Operation::Rename);
    let keep = |backup: &CStr| dir::link(dir_fd, name, dir_fd, backup);
    let move_to = |backup: &CStr, new| rename_into_place(dir_fd, name, dir_fd, backup, new);
    let is_numbered = with_number(policy.numbering, dir_fd, name, |backup| {
        keep(backup).or_else(|_| move_to(backup, true))
    });
    if is_numbered.map_err(rename())?.is_some() {
        return Ok(());
    }
    unlink_any(dir_fd, backup).map_err(Failure::of(Operation::Remove))?;
    match keep(backup) {
        Ok(()) => Ok(()),
        Err(_) => move_to(backup, false).map_err(rename()),
    }
}

/// Renames an entry to its backup name, which is returned.
///
/// # Errors
/// Those of the system.
pub(crate) fn set_aside(
    (suffix, numbering): (&[u8], Numbering),
    dir_fd: BorrowedFd<'_>,
    name: &CStr,
) -> io::Result<CString> {
    let to = |backup: &CStr| rename_into_place(dir_fd, name, dir_fd, backup, true);
    if let Some(backup) = with_number(numbering, dir_fd, name, to)? {
        return Ok(backup);
    }
    let backup = c_string(&[name.to_bytes(), suffix].concat())?;
    dir::rename(dir_fd, name, dir_fd, &backup)?;
    Ok(backup)
}

/// Calls `keep` with the name of the next numbered backup, and again if another program takes it. Returns the name;
/// `None` if the backup is a simple one.
fn with_number(
    numbering: Numbering,
    dir_fd: BorrowedFd<'_>,
    name: &CStr,
    keep: impl Fn(&CStr) -> io::Result<()>,
) -> io::Result<Option<CString>> {
    for left in (0..NUMBERS_MAX).rev() {
        let Some(backup) = numbered(numbering, dir_fd, name)? else { return Ok(None) };
        match keep(&backup) {
            Err(error) if errno::is(&error, errno::EEXIST) && left > 0 => {}
            done => return done.map(|()| Some(backup)),
        }
    }
    Ok(None)
}

/// Removes a non-directory, if there is one.
pub(in crate::engine) fn unlink_any(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match dir::unlink(dir, name) {
        Err(error) if errno::is(&error, errno::ENOENT) => Ok(()),
        other => other,
    }
}

/// Removes a file of ours from its final name, so that no later run takes it for finished; returns `false` if it
/// cannot be removed and gets the time of unfinished files instead.
pub(crate) fn disown(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    let is_gone = unlink_any(dir, name).is_ok();
    if !is_gone {
        drop(meta::set_times(dir, name, None, UNFINISHED));
    }
    is_gone
}

/// Reserves blocks for `size` bytes before they are written.
///
/// # Errors
/// ENOSPC, EDQUOT and EFBIG, which writing would return later. Others mean that the file system does not support it.
pub(crate) fn reserve(to: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    match space::reserve(to, size) {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(errno::ENOSPC | errno::EDQUOT | errno::EFBIG)
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Reserves blocks for a large file, as [`reserve`] does, before its first byte moves. Not in memory: that would
/// allocate everything first, which takes a tenth of the time of writing it, and gains nothing.
///
/// # Errors
/// Those of [`reserve`].
pub(crate) fn reserve_ahead(to: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    if volume::is_memory(to) { Ok(()) } else { reserve(to, size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_backups() {
        for (backup, number) in [
            (&b"f.~1~"[..], Some(1)),
            (b"f.~12~", Some(12)),
            (b"f.~01~", None),
            (b"f.~0~", None),
            (b"f.~~", None),
            (b"f.~1", None),
            (b"f.~1x~", None),
            (b"ff.~1~", None),
            (b"f~", None),
            (b"f.~99999999999999999999~", None),
        ] {
            assert_eq!(number_of(backup, b"f"), number, "{}", backup.escape_ascii());
        }
    }
}
