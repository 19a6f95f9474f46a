//! Whether local sources still are what the plan saw, looked at just before they are transferred.

use crate::shard::Entry;
use hakobu_core::unit::Kind;
use hakobu_sys::{OwnedFd, dir, errno, meta};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// State of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Now {
    /// It is what the plan saw.
    Same,
    /// It is something else.
    Changed,
    /// It is gone.
    Gone,
}

/// Looks at sources below a root. The folder of the entry before stays open: entries of a shard lie
/// together.
pub struct Looker {
    root: OwnedFd,
    folder: Option<(Vec<u8>, OwnedFd)>,
    follows: bool,
}

impl Looker {
    /// Opens a root. `follows`: symlinks stand for what they name.
    ///
    /// # Errors
    /// The system's.
    pub fn open(root: &[u8], follows: bool) -> io::Result<Looker> {
        let path =
            if root.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(root)) };
        let root = dir::open_root(&CString::new(path.as_os_str().as_bytes())?)?;
        Ok(Looker { root, folder: None, follows })
    }

    /// Looks at an entry.
    ///
    /// # Errors
    /// The system's.
    pub fn look(&mut self, entry: &Entry) -> io::Result<Now> {
        match self.meta(entry) {
            Ok(there) if entry.is_still(&there) => Ok(Now::Same),
            Ok(_) => Ok(Now::Changed),
            Err(error) if errno::is(&error, errno::ENOENT) || errno::is(&error, errno::ENOTDIR) => {
                Ok(Now::Gone)
            }
            Err(error) => Err(error),
        }
    }

    fn meta(&mut self, entry: &Entry) -> io::Result<hakobu_core::unit::Meta> {
        use hakobu_sys::AsFd;
        let name = &entry.name;
        let follow = self.follows && entry.kind != Kind::Symlink;
        let Some(at) = name.iter().rposition(|byte| *byte == b'/') else {
            return meta::of(self.root.as_fd(), &CString::new(name.as_slice())?, follow);
        };
        let (above, last) = (name.get(..at).unwrap_or_default(), name.get(at + 1..));
        let last = CString::new(last.unwrap_or_default())?;
        if let Some((known, fd)) = &self.folder
            && known == above
        {
            return meta::of(fd.as_fd(), &last, follow);
        }
        let path = CString::new(above)?;
        let fd = match self.follows {
            true => dir::open(self.root.as_fd(), &path, true)?,
            false => dir::open_below(self.root.as_fd(), &path)?,
        };
        let found = meta::of(fd.as_fd(), &last, follow);
        self.folder = Some((above.to_vec(), fd));
        found
    }
}
