//! Making files: their blocks allocated, their content written and on the device, and a mark that tells them from files of
//! others. The mark is an extended attribute that holds the file's inode, size and modification time. Once another program
//! has written to the file, it no longer fits, and the file counts as theirs.

use super::files::FilePlan;
use super::safety::{FileState, explain, try_open};
use crate::content::Filler;
use crate::job::Job;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, blocks, errno, file, meta, xattr};
use std::ffi::CStr;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are written at once.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes after which writeback is started, so that the device is not idle until fsync.
const BATCH_BYTES: u64 = 64 << 20;

/// Creates a file, empty.
pub(super) fn create(plan: &FilePlan<'_>) -> Result<OwnedFd, String> {
    blocks::create_for_io(&plan.path).map_err(|error| explain(&error, false))
}

/// Opens a file that is too short.
pub(super) fn reopen(plan: &FilePlan<'_>) -> Result<OwnedFd, String> {
    let fd = blocks::open_for_io(&plan.path, false, true, false, false);
    fd.map_err(|error| explain(&error, false))
}

/// Makes a file, which is `from` bytes long, as long as it has to be. If a job reads it, what is new
/// has the content that this job's writes would have, on the device: O_DIRECT finds real extents. A
/// file that is only written gets blocks that are reserved, as fio does: the first write to each is
/// part of what is measured. A file that is `ours` is marked as it is then.
pub(super) fn grow(
    plan: &FilePlan<'_>,
    fd: &OwnedFd,
    from: u64,
    stop: &AtomicBool,
) -> Result<(), String> {
    try_open(plan)?;
    let set_len = || file::set_len(fd.as_fd(), plan.need_bytes).map_err(|error| error.to_string());
    if !plan.grows() {
        let reserved = match plan.reserves() {
            true => blocks::allocate(fd, plan.need_bytes).map(|()| true).or_else(|error| {
                if errno::is(&error, errno::EOPNOTSUPP) { Ok(false) } else { Err(error) }
            }),
            false => Ok(false),
        };
        if !reserved.map_err(|error| explain(&error, false))? {
            set_len()?;
        }
        if let Some(job) = plan.reader() {
            fill(fd.as_fd(), from, plan.need_bytes, job, stop)?;
        }
        file::sync(fd.as_fd()).map_err(|error| error.to_string())?;
    } else if plan.reader().is_some() && plan.need_bytes > 0 {
        // It has no blocks, and is empty unless a job reads it, which finds zeros then.
        set_len()?;
    }
    if matches!(plan.found, FileState::Absent | FileState::File { ours: true, .. }) {
        mark(fd.as_fd()).map_err(|error| format!("cannot be marked: {error}"))?;
    }
    Ok(())
}

fn fill(
    fd: BorrowedFd<'_>,
    from: u64,
    to: u64,
    job: &Job,
    stop: &AtomicBool,
) -> Result<(), String> {
    let mut filler = Filler::new(job, 0);
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut at, mut begun) = (from, from);
    while at < to {
        if stop.load(Ordering::Relaxed) {
            return Err("stopped while files were laid out".to_owned());
        }
        let bytes = (to - at).min(PIECE_BYTES as u64);
        let Some(piece) = buffer.get_mut(..bytes as usize) else { break };
        filler.first(piece);
        file::write_all_at(fd, piece, at, false).map_err(|error| explain(&error, false))?;
        at += bytes;
        if at - begun >= BATCH_BYTES {
            // Not every file system can; fsync comes in any case.
            let _ = file::start_writeback(fd, begun, at - begun);
            begun = at;
        }
    }
    Ok(())
}

/// The attribute.
const MARK: &CStr = c"user.hakobu.io";

/// Returns whether the file matches its mark; false for a missing or unreadable mark.
///
/// # Errors
/// Those of fstat(2), and of fgetxattr(2) other than a missing or impossible attribute.
pub(super) fn fits_mark(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut buffer = Vec::new();
    match xattr::get(fd, MARK, &mut buffer) {
        Ok(value) => Ok(value == mark_text(fd)?.as_bytes()),
        Err(error) if has_no_mark(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Marks the file as it is now. A file system without extended attributes is not a reason not to measure
/// it: a later run does not write to the file then.
///
/// # Errors
/// Those of fstat(2), and of fsetxattr(2) other than a file system that has no such attributes.
pub(super) fn mark(fd: BorrowedFd<'_>) -> io::Result<()> {
    match xattr::set(fd, MARK, mark_text(fd)?.as_bytes()) {
        Err(error) if has_no_mark(&error) => Ok(()),
        other => other,
    }
}

fn mark_text(fd: BorrowedFd<'_>) -> io::Result<String> {
    let meta = meta::of_fd(fd)?;
    Ok(format!("2 {} {} {}.{:09}", meta.ino, meta.size, meta.mtime.s, meta.mtime.ns))
}

/// Missing, impossible here, or not permitted: FAT, some FUSE file systems, a full inode.
fn has_no_mark(error: &io::Error) -> bool {
    [errno::ENODATA, errno::EOPNOTSUPP, errno::ENOSYS, errno::EPERM, errno::EACCES, errno::ENOSPC]
        .iter()
        .any(|code| errno::is(error, *code))
}
