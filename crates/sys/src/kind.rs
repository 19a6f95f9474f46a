//! Types of entries, and time stamps.

use rustix::fs::{FileType, Timespec};

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Not reported (some file systems leave `d_type` empty): use `stat`.
    Unknown,
}

impl Kind {
    /// True for a device node.
    pub fn is_device(self) -> bool {
        matches!(self, Kind::CharDevice | Kind::BlockDevice)
    }

    /// True for a FIFO or socket, which rsync calls special files.
    pub fn is_special(self) -> bool {
        matches!(self, Kind::Fifo | Kind::Socket)
    }

    pub(crate) fn from_type(kind: FileType) -> Kind {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice => Kind::CharDevice,
            FileType::BlockDevice => Kind::BlockDevice,
            FileType::Unknown => Kind::Unknown,
        }
    }
}

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub s: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub ns: u32,
}

impl Time {
    /// Current time by the clock of file time stamps.
    pub fn now() -> Time {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Time { s: now.tv_sec, ns: now.tv_nsec as u32 }
    }

    pub(crate) fn timespec(self) -> Timespec {
        Timespec { tv_sec: self.s, tv_nsec: self.ns.into() }
    }
}
