//! Opens paths that must stay below a directory: openat2(2) with RESOLVE_BENEATH, which follows symlinks as
//! long as they stay below. If the call is missing or forbidden, components are opened one by one, without
//! following links.

use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::CStr;
use std::io::Result;

/// Most tries if a concurrent rename keeps the kernel from resolving a path with `..` (EAGAIN, openat2(2)).
const TRIES_MAX: usize = 100;

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
    open_with(dir, path, purpose.flags(), mode, ResolveFlags::NO_MAGICLINKS)
}

/// Opens a relative path that must stay below a directory, with further conditions on the way. Without
/// openat2(2) it cannot be verified where a symlink leads: none is followed.
pub(crate) fn open_with<P: Arg + Copy>(
    dir: BorrowedFd<'_>,
    path: P,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    for _ in 0..TRIES_MAX {
        match openat2(dir, path, flags, mode, ResolveFlags::BENEATH | resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => {
                return open_each(dir, path.as_cow_c_str()?.to_bytes(), flags, mode);
            }
            other => return Ok(other?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// As [`open_with`], component by component. Directories on the way need not be readable.
pub(crate) fn open_each(
    dir: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let mut names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    if path.starts_with(b"/") || names.clone().any(|name| name == b"..") {
        return Err(Errno::XDEV.into());
    }
    let between = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut above: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let here = above.as_ref().map_or(dir, AsFd::as_fd);
        if names.peek().is_some() {
            above = Some(openat(here, name, between, Mode::empty())?);
            continue;
        }
        let last = openat(here, name, flags | OFlags::NOFOLLOW, mode)?;
        // O_PATH opens a symlink itself instead of failing, unless that was asked for.
        let links = !flags.contains(OFlags::PATH) || flags.contains(OFlags::NOFOLLOW);
        return match links || meta::of_fd(&last)?.kind != Kind::Symlink {
            true => Ok(last),
            false => Err(Errno::LOOP.into()),
        };
    }
    Err(Errno::NOENT.into())
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
        open_all(&|path, purpose| {
            open_each(root.as_fd(), path.to_bytes(), purpose.flags(), Mode::empty())
        });
        assert!(open(root.as_fd(), c"inside/f", For::Reading).is_ok());
        assert!(open(root.as_fd(), c"", For::Directory).is_ok());
        assert_eq!(std::fs::read(dir.join("secret")).unwrap(), b"secret");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
