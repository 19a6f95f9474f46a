//! Sources several components below an open directory: opening in one call, and reading from the page cache
//! without waiting for a device.

use crate::beneath::open_with;
use crate::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::CString;
use std::io::{IoSliceMut, Result};

/// Does not block on a FIFO and does not acquire a controlling terminal.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const NAME: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Symlinks that a path may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// None.
    Nothing,
    /// Those that stay below the directory.
    Inside,
    /// All.
    Anything,
}

/// Opens a file for reading by a relative path below `dir`: `openat2(2)`, or component by component if that
/// call is missing or forbidden.
///
/// # Errors
/// ELOOP for a symlink that must not be followed, EXDEV for one that leads out.
pub fn open(dir: BorrowedFd<'_>, path: &[u8], through: Through) -> Result<OwnedFd> {
    match through {
        Through::Nothing if !path.contains(&b'/') => {
            let flags = READ.union(OFlags::NOFOLLOW);
            Ok(rustix::fs::openat(dir, path, flags, Mode::empty())?)
        }
        Through::Nothing => open_with(dir, path, READ, Mode::empty(), ResolveFlags::NO_SYMLINKS),
        Through::Inside => open_with(dir, path, READ, Mode::empty(), ResolveFlags::empty()),
        Through::Anything => Ok(rustix::fs::openat(dir, path, READ, Mode::empty())?),
    }
}

/// Opens an entry, usually a symlink, without access to its content (`O_PATH`), by a relative path below
/// `dir` without symlinks.
pub fn open_name(dir: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    open_with(dir, path, NAME, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Target of the symlink opened by [`open_name`].
pub fn link_text(link: BorrowedFd<'_>) -> Result<CString> {
    crate::dir::read_link(link, c"")
}

/// Result of [`read_cached`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// Number of bytes; 0 at the end.
    Got(usize),
    /// Reading would wait for a device.
    WouldWait,
    /// Unsupported by the file system (old tmpfs, FUSE).
    Unknown,
}

/// `preadv2(2)` with RWF_NOWAIT: reads the bytes at `offset` that are available at once. EINTR is retried.
pub fn read_cached(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<Cached> {
    crate::errno::until_uninterrupted(|| {
        let mut space = [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(fd, &mut space, offset, ReadWriteFlags::NOWAIT) {
            Ok(got) => Ok(Cached::Got(got)),
            Err(Errno::AGAIN) => Ok(Cached::WouldWait),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(Cached::Unknown),
            Err(error) => Err(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AsFd;
    use crate::beneath::open_each;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_lead_through_what_is_allowed_only() {
        let top = std::env::temp_dir().join(format!("hakobu-source-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir_all(top.join("in/a/b")).unwrap();
        fs::write(top.join("in/a/b/f"), "inside").unwrap();
        fs::write(top.join("out"), "outside").unwrap();
        symlink("a", top.join("in/dir")).unwrap();
        symlink("../out", top.join("in/away")).unwrap();
        symlink("b/f", top.join("in/a/here")).unwrap();
        let dir = fs::File::open(top.join("in")).unwrap();
        let read = |path: &str, through| {
            let fd = open(dir.as_fd(), path.as_bytes(), through).ok()?;
            let mut buffer = [0; 16];
            let got = crate::file::read_full_at(fd.as_fd(), &mut buffer, 0).unwrap();
            Some(String::from_utf8(buffer[..got].to_vec()).unwrap())
        };
        use Through::{Anything, Inside, Nothing};
        for (path, nothing, inside, anything) in [
            ("a/b/f", true, true, true),
            ("dir/b/f", false, true, true),
            ("a/here", false, true, true),
            ("away", false, false, true),
            ("a/../../out", false, false, true),
            ("absent", false, false, false),
        ] {
            assert_eq!(read(path, Nothing).is_some(), nothing, "{path}");
            assert_eq!(read(path, Inside).is_some(), inside, "{path}");
            assert_eq!(read(path, Anything).is_some(), anything, "{path}");
            let each = open_each(dir.as_fd(), path.as_bytes(), READ, Mode::empty());
            assert_eq!(each.is_ok(), nothing, "{path}");
        }
        assert_eq!(read("away", Anything).as_deref(), Some("outside"));
        let link = open_name(dir.as_fd(), b"a/here").unwrap();
        assert_eq!(link_text(link.as_fd()).unwrap().as_bytes(), b"b/f");
        assert!(open_name(dir.as_fd(), b"dir/here").is_err());
        let link = open_each(dir.as_fd(), b"a/here", NAME, Mode::empty()).unwrap();
        assert_eq!(link_text(link.as_fd()).unwrap().as_bytes(), b"b/f");
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn what_was_just_written_is_cached_or_unknown() {
        let path = std::env::temp_dir().join(format!("hakobu-cached-{}", std::process::id()));
        fs::write(&path, "four").unwrap();
        let file = fs::File::open(&path).unwrap();
        let mut buffer = [0; 16];
        let cached = read_cached(file.as_fd(), &mut buffer, 0).unwrap();
        assert!(matches!(cached, Cached::Got(4) | Cached::Unknown), "{cached:?}");
        fs::remove_file(&path).unwrap();
    }
}
