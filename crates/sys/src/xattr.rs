//! Extended attributes (xattr(7)) of open files, and through `/proc` of symlinks and nodes that cannot be
//! opened. They include POSIX ACLs.

use crate::{AsFd, BorrowedFd, OwnedFd};
use std::ffi::{CStr, CString};
use std::io::Result;

/// Access ACL of a file or directory.
pub const ACL_ACCESS: &CStr = c"system.posix_acl_access";
/// Default ACL, inherited by new entries of a directory.
pub const ACL_DEFAULT: &CStr = c"system.posix_acl_default";

/// What `call` puts into `buffer`, which grows as needed.
fn filled(
    buffer: &mut Vec<u8>,
    mut call: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> Result<&[u8]> {
    if buffer.len() < 1024 {
        buffer.resize(1024, 0);
    }
    loop {
        match call(buffer.as_mut_slice()) {
            // The kernel's limit is 64 KiB for a list and for a value.
            Err(rustix::io::Errno::RANGE) if buffer.len() < 65536 => buffer.resize(65536, 0),
            length => return Ok(&buffer[..length?]),
        }
    }
}

/// Names of all attributes, each terminated by NUL, in `buffer` (which grows as needed).
///
/// # Errors
/// EOPNOTSUPP if the file system has no attributes.
pub fn list<'a>(fd: BorrowedFd<'_>, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    filled(buffer, |space| rustix::fs::flistxattr(fd, space))
}

/// Value of an attribute; ENODATA if absent.
pub fn get<'a>(fd: BorrowedFd<'_>, name: &CStr, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    filled(buffer, |space| rustix::fs::fgetxattr(fd, name, space))
}

/// Sets an attribute of an open file.
pub fn set(fd: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> Result<()> {
    Ok(rustix::fs::fsetxattr(fd, name, value, rustix::fs::XattrFlags::empty())?)
}

/// Removes an attribute of an open file.
pub fn remove(fd: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    Ok(rustix::fs::fremovexattr(fd, name)?)
}

/// An entry opened with `O_PATH`: a symlink, a node, a file without read permission.
pub struct Named {
    path: CString,
    /// Keeps the target of the path alive.
    fd: OwnedFd,
}

impl Named {
    /// Takes an `O_PATH` descriptor.
    pub fn new(fd: OwnedFd) -> Named {
        Named { path: crate::file::proc_path(&fd), fd }
    }

    /// Returns the descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// As [`list`].
    pub fn list<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        filled(buffer, |space| rustix::fs::listxattr(self.path.as_c_str(), space))
    }

    /// As [`get`].
    pub fn get<'a>(&self, name: &CStr, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        filled(buffer, |space| rustix::fs::getxattr(self.path.as_c_str(), name, space))
    }

    /// As [`set`].
    pub fn set(&self, name: &CStr, value: &[u8]) -> Result<()> {
        let flags = rustix::fs::XattrFlags::empty();
        Ok(rustix::fs::setxattr(self.path.as_c_str(), name, value, flags)?)
    }

    /// As [`remove`].
    pub fn remove(&self, name: &CStr) -> Result<()> {
        Ok(rustix::fs::removexattr(self.path.as_c_str(), name)?)
    }
}

/// True if the error means that the attribute is absent.
pub fn is_absent(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENODATA)
}

/// True if the file system or kind of entry does not support attributes.
pub fn is_unsupported(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc::EOPNOTSUPP)
}
