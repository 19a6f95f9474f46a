//! The system calls of hakobu, and nothing else: thin, typed wrappers that never decide anything.
//!
//! This is the only room with `unsafe` code, with paths below `/proc` and `/sys`, and with errno
//! values. Every call that takes a name works relative to an open directory, so that no component
//! above it can be swapped by somebody else while we work. Names are C strings: they come from
//! `getdents64` that way and go back that way, without a copy.

pub mod about;
pub mod aio;
pub mod blocks;
pub mod cache;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod counters;
pub mod dir;
pub mod disk;
pub mod file;
pub mod gather;
pub mod host;
pub mod memory;
pub mod meta;
pub mod open;
pub mod priority;
pub mod process;
pub mod ring;
mod slots;
pub mod socket;
pub mod source;
pub mod task;
pub mod terminal;
pub mod user;
pub mod volume;
pub mod xattr;

pub use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// The errno values that callers tell apart, under the names of errno(3).
pub mod errno {
    pub use libc::{
        EACCES, EAGAIN, EBADF, EBUSY, EDQUOT, EEXIST, EFBIG, EILSEQ, EINVAL, EIO, EISDIR, ELOOP,
        EMFILE, EMLINK, ENAMETOOLONG, ENFILE, ENOENT, ENOMEM, ENOSPC, ENOSYS, ENOTDIR, ENOTEMPTY,
        EOPNOTSUPP, EPERM, EROFS, ESTALE, ETXTBSY, EXDEV,
    };

    /// Whether `error` carries the given errno.
    pub fn is(error: &std::io::Error, code: i32) -> bool {
        error.raw_os_error() == Some(code)
    }
}
