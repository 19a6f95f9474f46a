//! The system calls of hakobu: thin, typed wrappers without policy.
//!
//! Only this crate has `unsafe` code, paths below `/proc` and `/sys`, and errno values. Calls that take a
//! name work relative to an open directory, so that no component above it can be replaced by another process
//! meanwhile. Names are C strings, as returned by `getdents64`, and are passed on without copies.

#![allow(unsafe_code, reason = "the only crate with unsafe code")]

pub mod aio;
pub mod blocks;
pub mod cache;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod dir;
pub mod disk;
pub mod file;
pub mod host;
pub mod memory;
pub mod meta;
pub mod paths;
pub mod proc;
pub mod process;
pub mod ring;
pub mod signals;
pub mod socket;
pub mod start;
pub mod stdio;
pub mod xattr;

pub use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// errno values that callers distinguish, named as in errno(3).
pub mod errno {
    pub use libc::{
        E2BIG, EACCES, EAGAIN, EBADF, EBADMSG, EBUSY, ECANCELED, ECONNRESET, EDQUOT, EEXIST, EFBIG,
        EILSEQ, EINVAL, EIO, EISDIR, ELOOP, EMFILE, EMLINK, EMSGSIZE, ENAMETOOLONG, ENFILE,
        ENODATA, ENOENT, ENOMEM, ENOSPC, ENOSYS, ENOTCONN, ENOTDIR, ENOTEMPTY, ENOTTY, ENXIO,
        EOPNOTSUPP, EPERM, EPIPE, ERANGE, EREMOTE, EROFS, ESTALE, ETIMEDOUT, ETXTBSY, EXDEV,
    };

    /// errno of an error; EIO if it has none, so that no error looks like success.
    pub fn of(error: &std::io::Error) -> i32 {
        error.raw_os_error().unwrap_or(EIO)
    }

    /// Result of a system call that returns zero on success.
    pub(crate) fn check(done: impl Into<i64>) -> std::io::Result<()> {
        if done.into() == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }

    /// Repetitions of a call that signals interrupt. Far more than signals arrive during one call, and a bound
    /// where a file system (FUSE) returns EINTR by itself.
    const INTERRUPTIONS_MAX: u32 = 1000;

    /// Repeats a call that returns EINTR.
    pub(crate) fn until_uninterrupted<T, E: Into<std::io::Error>>(
        mut call: impl FnMut() -> Result<T, E>,
    ) -> std::io::Result<T> {
        let mut left = INTERRUPTIONS_MAX;
        loop {
            match call().map_err(Into::into) {
                Err(error) if is(&error, libc::EINTR) && left > 0 => left -= 1,
                other => return other,
            }
        }
    }

    /// True if `error` has the given errno.
    pub fn is(error: &std::io::Error, code: i32) -> bool {
        error.raw_os_error() == Some(code)
    }

    /// True if there is no such name.
    pub fn is_gone(error: &std::io::Error) -> bool {
        is(error, ENOENT)
    }

    /// True if opening a directory failed because its name is a symlink or another non-directory.
    pub fn is_no_dir(error: &std::io::Error) -> bool {
        is(error, ENOTDIR) || is(error, ELOOP)
    }

    /// True if removing a directory failed because it is not empty.
    pub fn is_not_empty(error: &std::io::Error) -> bool {
        is(error, ENOTEMPTY) || is(error, EEXIST)
    }
}
