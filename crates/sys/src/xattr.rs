//! Extended attributes (xattr(7)) of open files, and of names of symlinks and nodes that cannot be opened. They
//! include POSIX ACLs.

use crate::meta::{self, Meta};
use crate::{BorrowedFd, OwnedFd};
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io::Result;
use std::sync::OnceLock;

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

/// How the attributes of a name are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By calls that take a directory and a name (Linux 6.13).
    At,
    /// Through the magic link of an `O_PATH` descriptor.
    Proc,
    /// From a thread with a working directory of its own, where there is no `/proc` either.
    Thread,
}

impl Way {
    /// Determined once.
    fn of_system() -> Way {
        static WAY: OnceLock<Way> = OnceLock::new();
        *WAY.get_or_init(|| match at::is_known() {
            true => Way::At,
            false if std::path::Path::new("/proc/self/fd").exists() => Way::Proc,
            false => Way::Thread,
        })
    }
}

/// An entry given by its name, which need not be one that can be opened: a symlink, a node, a file without read
/// permission. A symlink is not followed.
pub struct Named<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
    way: Way,
    /// With [`Way::Proc`] the entry, and its path.
    proc: Option<(CString, OwnedFd)>,
}

impl<'a> Named<'a> {
    /// Takes a name in a directory.
    ///
    /// # Errors
    /// Before Linux 6.13 those of opening the entry with `O_PATH`.
    pub fn new(dir: BorrowedFd<'a>, name: &'a CStr) -> Result<Named<'a>> {
        Named::by(Way::of_system(), dir, name)
    }

    fn by(way: Way, dir: BorrowedFd<'a>, name: &'a CStr) -> Result<Named<'a>> {
        let proc = match way {
            Way::Proc => {
                let fd = crate::file::open_path(dir, name)?;
                Some((crate::file::proc_path(&fd), fd))
            }
            Way::At | Way::Thread => None,
        };
        Ok(Named { dir, name, way, proc })
    }

    /// Metadata of the entry.
    pub fn meta(&self) -> Result<Meta> {
        match &self.proc {
            Some((_, fd)) => meta::of_fd(fd),
            None => meta::of(self.dir, self.name, false),
        }
    }

    /// As [`list`].
    pub fn list<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        filled(buffer, |space| match &self.proc {
            Some((path, _)) => rustix::fs::listxattr(path.as_c_str(), space),
            None if self.way == Way::At => at::list(self.dir, self.name, space),
            None => within(self.dir, || rustix::fs::llistxattr(self.name, space)),
        })
    }

    /// As [`get`].
    pub fn get<'b>(&self, name: &CStr, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        filled(buffer, |space| match &self.proc {
            Some((path, _)) => rustix::fs::getxattr(path.as_c_str(), name, space),
            None if self.way == Way::At => at::get(self.dir, self.name, name, space),
            None => within(self.dir, || rustix::fs::lgetxattr(self.name, name, space)),
        })
    }

    /// As [`set`].
    pub fn set(&self, name: &CStr, value: &[u8]) -> Result<()> {
        let flags = rustix::fs::XattrFlags::empty();
        Ok(match &self.proc {
            Some((path, _)) => rustix::fs::setxattr(path.as_c_str(), name, value, flags),
            None if self.way == Way::At => at::set(self.dir, self.name, name, value),
            None => within(self.dir, || rustix::fs::lsetxattr(self.name, name, value, flags)),
        }?)
    }

    /// As [`remove`].
    pub fn remove(&self, name: &CStr) -> Result<()> {
        Ok(match &self.proc {
            Some((path, _)) => rustix::fs::removexattr(path.as_c_str(), name),
            None if self.way == Way::At => at::remove(self.dir, self.name, name),
            None => within(self.dir, || rustix::fs::lremovexattr(self.name, name)),
        }?)
    }
}

/// Makes a call in `dir` as the working directory of a thread of its own: unshare(2), `CLONE_FS`.
fn within<T: Send>(
    dir: BorrowedFd<'_>,
    call: impl FnOnce() -> rustix::io::Result<T> + Send,
) -> rustix::io::Result<T> {
    let inside = || {
        // SAFETY: the call takes no pointer, and concerns this thread only, which ends with this closure.
        if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
            // Not a missing entry: the way to it is.
            return Err(Errno::NOSYS);
        }
        rustix::process::fchdir(dir)?;
        call()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, inside);
        let joined = thread.map_err(|_| Errno::AGAIN)?.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Calls that take a directory and a name, which the C library does not have yet: setxattrat(2) and its siblings.
mod at {
    use super::{AsRawFd, BorrowedFd, CStr, Errno};

    /// Numbers of the calls, the same on all architectures.
    const SET: libc::c_long = 463;
    const GET: libc::c_long = 464;
    const LIST: libc::c_long = 465;
    const REMOVE: libc::c_long = 466;

    /// `struct xattr_args` of linux/xattr.h.
    #[repr(C, align(8))]
    struct Args {
        value: u64,
        size: u32,
        flags: u32,
    }

    fn result(done: libc::c_long) -> rustix::io::Result<usize> {
        usize::try_from(done).map_err(|_| {
            let error = std::io::Error::last_os_error();
            Errno::from_io_error(&error).unwrap_or(Errno::IO)
        })
    }

    /// True if the kernel has them, and no filter of calls (seccomp) refuses them.
    pub(crate) fn is_known() -> bool {
        let (here, path, none) = (libc::AT_FDCWD, c".".as_ptr(), std::ptr::null_mut::<u8>());
        // SAFETY: with a size of zero the kernel returns the size of the list and writes nothing.
        let list = result(unsafe { libc::syscall(LIST, here, path, 0, none, 0_usize) });
        // SAFETY: the kernel refuses arguments of size zero with EINVAL before it reads any of them.
        let set = result(unsafe { libc::syscall(SET, here, path, 0, path, none, 0_usize) });
        let lacks = |done| matches!(done, Err(Errno::NOSYS | Errno::PERM));
        !lacks(list) && !lacks(set)
    }

    pub(crate) fn list(
        dir: BorrowedFd<'_>,
        name: &CStr,
        space: &mut [u8],
    ) -> rustix::io::Result<usize> {
        let (dir, flags) = (dir.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: `name` is a live, NUL-terminated string, and the kernel writes at most `len` bytes to `space`.
        result(unsafe {
            libc::syscall(LIST, dir, name.as_ptr(), flags, space.as_mut_ptr(), space.len())
        })
    }

    pub(crate) fn get(
        dir: BorrowedFd<'_>,
        name: &CStr,
        of: &CStr,
        space: &mut [u8],
    ) -> rustix::io::Result<usize> {
        let size = u32::try_from(space.len()).unwrap_or(u32::MAX);
        let mut args = Args { value: space.as_mut_ptr() as u64, size, flags: 0 };
        let (dir, flags) = (dir.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        let args = (&raw mut args, size_of::<Args>());
        // SAFETY: both strings are live and NUL-terminated; `args` lives until the end of the call and names `size`
        // bytes of `space` for the value.
        result(unsafe {
            libc::syscall(GET, dir, name.as_ptr(), flags, of.as_ptr(), args.0, args.1)
        })
    }

    pub(crate) fn set(
        dir: BorrowedFd<'_>,
        name: &CStr,
        of: &CStr,
        value: &[u8],
    ) -> rustix::io::Result<()> {
        let size = u32::try_from(value.len()).map_err(|_| Errno::TOOBIG)?;
        let args = Args { value: value.as_ptr() as u64, size, flags: 0 };
        let (dir, flags) = (dir.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        let args = (&raw const args, size_of::<Args>());
        // SAFETY: both strings are live and NUL-terminated; `args` lives until the end of the call and names the
        // bytes of `value`, which the kernel reads.
        let done = result(unsafe {
            libc::syscall(SET, dir, name.as_ptr(), flags, of.as_ptr(), args.0, args.1)
        });
        done.map(drop)
    }

    pub(crate) fn remove(dir: BorrowedFd<'_>, name: &CStr, of: &CStr) -> rustix::io::Result<()> {
        let (dir, flags) = (dir.as_raw_fd(), libc::AT_SYMLINK_NOFOLLOW);
        // SAFETY: both strings are live and NUL-terminated.
        let done = result(unsafe { libc::syscall(REMOVE, dir, name.as_ptr(), flags, of.as_ptr()) });
        done.map(drop)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsFd;

    #[test]
    fn every_way_leads_to_the_entry_itself() {
        let top = std::env::temp_dir().join(format!("hakobu-xattr-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&top);
        std::fs::create_dir(&top).unwrap();
        std::fs::write(top.join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", top.join("link")).unwrap();
        let here = std::env::current_dir().unwrap();
        let dir = std::fs::File::open(&top).unwrap();
        // Symlinks have attributes of the namespace `trusted` only, which root may set.
        let root = crate::process::euid() == 0;
        for way in [Way::At, Way::Proc, Way::Thread] {
            if way == Way::At && !at::is_known() {
                continue;
            }
            for (entry, name) in [(c"file", c"user.test"), (c"link", c"trusted.test")] {
                let named = Named::by(way, dir.as_fd(), entry).unwrap();
                assert_eq!(named.meta().unwrap().kind == crate::meta::Kind::File, entry == c"file");
                let mut buffer = Vec::new();
                match named.set(name, b"value") {
                    // The file system has none, or this user may not.
                    Err(error) if is_unsupported(&error) || !root => continue,
                    set => set.unwrap(),
                }
                assert_eq!(named.get(name, &mut buffer).unwrap(), b"value", "{way:?}");
                let list = named.list(&mut buffer).unwrap();
                assert!(list.split(|byte| *byte == 0).any(|one| one == name.to_bytes()));
                named.remove(name).unwrap();
                assert!(is_absent(&named.get(name, &mut buffer).unwrap_err()), "{way:?}");
            }
            let gone = Named::by(way, dir.as_fd(), c"gone");
            let error = gone.and_then(|gone| gone.list(&mut Vec::new()).map(drop)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{way:?}");
        }
        assert_eq!(std::env::current_dir().unwrap(), here);
        std::fs::remove_dir_all(&top).unwrap();
    }
}
