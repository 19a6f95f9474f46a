//! Names of backups: with a suffix, or numbered as in GNU cp (`--backup`).

use super::draft::{rename_into_place, unlink_any};
use crate::failure::{Failure, c_string};
use crate::policy::{Numbering, Policy};
use hakobu_core::error::Operation;
use hakobu_sys::{AsFd, BorrowedFd, dir, errno};
use std::ffi::{CStr, CString};
use std::io;

/// Maximum number of backup numbers that are tried while other programs take them.
const NUMBERS_MAX: usize = 8;

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
pub(crate) fn back_up_as(
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
