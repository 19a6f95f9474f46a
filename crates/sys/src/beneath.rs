//! Opens paths that must stay below a directory: openat2(2) with RESOLVE_BENEATH, which follows symlinks as
//! long as they stay below. If the call is missing or forbidden, components are opened one by one, without
//! following links.

use crate::{AsFd, BorrowedFd, OwnedFd, errno};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use std::ffi::{CStr, CString};
use std::io::{Error, Result};

/// Most retries if names changed while the kernel resolved a path.
const TRIES_MAX: usize = 16;

/// Purpose of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Reading a file; does not wait for the writer of a FIFO.
    Reading,
    /// Listing a directory, or resolving names in it.
    Directory,
    /// Reading metadata of an entry of any kind (`O_PATH`).
    Looking,
    /// Appending to a file, which is created if missing.
    Appending,
}

impl For {
    fn flags(self) -> OFlags {
        // openat2(2) rejects flags that have no effect with O_PATH.
        let flags = match self {
            For::Reading => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            For::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
            For::Looking => OFlags::PATH,
            For::Appending => {
                let how = OFlags::NONBLOCK | OFlags::NOCTTY;
                OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | how
            }
        };
        flags | OFlags::CLOEXEC
    }
}

/// Opens a relative path below a directory; an empty path is the directory itself.
///
/// # Errors
/// EXDEV (or ELOOP) if the path leads out of the directory; those of openat2(2).
pub fn open(dir: BorrowedFd<'_>, path: &CStr, purpose: For) -> Result<OwnedFd> {
    let path = if path.is_empty() { c"." } else { path };
    let mode = match purpose {
        For::Appending => Mode::from_raw_mode(0o644),
        _ => Mode::empty(),
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES_MAX {
        match openat2(dir, path, purpose.flags(), mode, resolve) {
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                return open_each(dir, path, purpose, mode);
            }
            other => return Ok(other?),
        }
    }
    Err(Error::from_raw_os_error(errno::EAGAIN))
}

fn open_each(dir: BorrowedFd<'_>, path: &CStr, purpose: For, mode: Mode) -> Result<OwnedFd> {
    let bytes = path.to_bytes();
    let mut names = bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    if bytes.starts_with(b"/") || names.clone().any(|name| name == b"..") {
        return Err(Error::from_raw_os_error(errno::EXDEV));
    }
    let between = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut above: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let name = CString::new(name)?;
        let here = above.as_ref().map_or(dir, AsFd::as_fd);
        if names.peek().is_none() {
            let last = openat(here, &name, purpose.flags() | OFlags::NOFOLLOW, mode)?;
            // O_PATH opens a symlink itself instead of failing.
            return match rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&last)?.st_mode) {
                rustix::fs::FileType::Symlink => Err(Error::from_raw_os_error(errno::ELOOP)),
                _ => Ok(last),
            };
        }
        above = Some(openat(here, &name, between, Mode::empty())?);
    }
    Err(Error::from_raw_os_error(errno::ENOENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_above_is_reached() {
        let dir = std::env::temp_dir().join(format!("hakobu-beneath-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("root/a/b")).unwrap();
        std::fs::write(dir.join("secret"), "secret").unwrap();
        std::fs::write(dir.join("root/a/b/f"), "f").unwrap();
        for (to, name) in [
            ("../secret", "root/up"),
            ("../../secret", "root/a/up"),
            ("/etc", "root/etc"),
            ("..", "root/out"),
            ("/proc/self/root", "root/magic"),
        ] {
            symlink(to, dir.join(name)).unwrap();
        }
        symlink("a/b", dir.join("root/inside")).unwrap();
        let root = std::fs::File::open(dir.join("root")).unwrap();
        let open_all = |how: &dyn Fn(&CStr, For) -> Result<OwnedFd>| {
            for path in [
                c"up",
                c"a/up",
                c"etc/passwd",
                c"out/secret",
                c"magic/etc/passwd",
                c"../secret",
                c"a/../../secret",
                c"/etc/passwd",
            ] {
                for purpose in [For::Reading, For::Looking, For::Appending] {
                    assert!(how(path, purpose).is_err(), "{path:?} {purpose:?}");
                }
            }
            assert!(how(c"a/b/f", For::Reading).is_ok() && how(c"a", For::Directory).is_ok());
            assert!(how(c"a/b/f", For::Looking).is_ok() && how(c"new", For::Appending).is_ok());
            assert!(how(c"a/b/f", For::Directory).is_err() && how(c"no", For::Looking).is_err());
        };
        open_all(&|path, purpose| open(root.as_fd(), path, purpose));
        open_all(&|path, purpose| open_each(root.as_fd(), path, purpose, Mode::empty()));
        assert!(open(root.as_fd(), c"inside/f", For::Reading).is_ok());
        assert!(open(root.as_fd(), c"", For::Directory).is_ok());
        assert_eq!(std::fs::read(dir.join("secret")).unwrap(), b"secret");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
