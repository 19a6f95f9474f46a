//! What the kernel says of a file (`stat`), and the calls that change it: mode, owner, times.

use crate::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid};
use std::ffi::CStr;
use std::io::Result;

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
    /// The kernel did not say (some file systems leave `d_type` empty): ask `stat`.
    Unknown,
}

impl Kind {
    /// Whether this is a device node.
    pub fn is_device(self) -> bool {
        matches!(self, Kind::CharDevice | Kind::BlockDevice)
    }

    /// Whether this is a FIFO or a socket, what rsync calls a special file.
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
    /// The rest, 0 to 999,999,999.
    pub ns: u32,
}

impl Time {
    /// The clock of the file system's time stamps, now.
    pub fn now() -> Time {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Time { s: now.tv_sec, ns: now.tv_nsec as u32 }
    }

    fn timespec(self) -> Timespec {
        Timespec { tv_sec: self.s, tv_nsec: self.ns.into() }
    }
}

/// What `stat` says of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The type.
    pub kind: Kind,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Bytes of content (of a symlink: of its text).
    pub size: u64,
    /// Allocated, in units of 512 bytes.
    pub blocks: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of hard links.
    pub nlink: u64,
    /// Device that holds the entry.
    pub dev: u64,
    /// Inode number on that device.
    pub ino: u64,
    /// Device number of a device node.
    pub rdev: u64,
    /// Last change of the content.
    pub mtime: Time,
    /// Last access.
    pub atime: Time,
    /// Last change of the inode.
    pub ctime: Time,
}

impl Meta {
    fn from_stat(stat: &Stat) -> Meta {
        Meta {
            kind: Kind::from_type(FileType::from_raw_mode(stat.st_mode)),
            mode: stat.st_mode & 0o7777,
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            uid: stat.st_uid,
            gid: stat.st_gid,
            nlink: stat.st_nlink,
            dev: stat.st_dev,
            ino: stat.st_ino,
            rdev: stat.st_rdev,
            mtime: Time { s: stat.st_mtime, ns: stat.st_mtime_nsec as u32 },
            atime: Time { s: stat.st_atime, ns: stat.st_atime_nsec as u32 },
            ctime: Time { s: stat.st_ctime, ns: stat.st_ctime_nsec as u32 },
        }
    }

    /// Bytes that the file occupies, 512 a block.
    pub fn allocated_bytes(&self) -> u64 {
        self.blocks * 512
    }

    /// Whether fewer blocks are allocated than the size needs: the file has holes (or is
    /// compressed, or lives in its inode; then looking for holes finds none and costs one call).
    pub fn may_have_holes(&self) -> bool {
        self.allocated_bytes() < self.size
    }

    /// The pair that names a file on this machine.
    pub fn identity(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

/// `fstat(2)`.
pub fn of_fd(fd: impl AsFd) -> Result<Meta> {
    Ok(Meta::from_stat(&rustix::fs::fstat(fd)?))
}

/// `fstatat(2)` of a name in a directory; `follow` looks through a symlink.
pub fn of(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<Meta> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    Ok(Meta::from_stat(&rustix::fs::statat(dir, name, flags)?))
}

/// `fchmod(2)`.
pub fn set_mode_fd(fd: impl AsFd, mode: u32) -> Result<()> {
    Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?)
}

/// Changes the mode of a name in a directory, never through a symlink: `fchmodat2(2)` where the
/// kernel has it (6.6), else by way of an `O_PATH` descriptor.
pub fn set_mode(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<()> {
    use rustix::fd::AsRawFd;
    // SAFETY: `name` is a live, NUL-terminated string; the call keeps no pointer.
    let done = unsafe {
        libc::syscall(
            libc::SYS_fchmodat2,
            dir.as_raw_fd(),
            name.as_ptr(),
            mode,
            libc::AT_SYMLINK_NOFOLLOW,
        )
    };
    if done == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() != Some(libc::ENOSYS) {
        return Err(error);
    }
    let file = crate::file::open_path(dir, name)?;
    if of_fd(&file)?.kind == Kind::Symlink {
        return Err(std::io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let path = crate::file::proc_path(&file);
    Ok(rustix::fs::chmod(path.as_c_str(), Mode::from_raw_mode(mode))?)
}

/// `fchown(2)`; `None` leaves that half as it is.
pub fn set_owner_fd(fd: impl AsFd, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    Ok(rustix::fs::fchown(fd, uid.map(Uid::from_raw), gid.map(Gid::from_raw))?)
}

/// `fchownat(2)` of the name itself, never of what a symlink names.
pub fn set_owner(
    dir: BorrowedFd<'_>,
    name: &CStr,
    uid: Option<u32>,
    gid: Option<u32>,
) -> Result<()> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    Ok(rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn stamps(atime: Option<Time>, mtime: Time) -> Timestamps {
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT as _ };
    Timestamps {
        last_access: atime.map_or(omit, Time::timespec),
        last_modification: mtime.timespec(),
    }
}

/// `futimens(3)`; no access time leaves that one as it is.
pub fn set_times_fd(fd: impl AsFd, atime: Option<Time>, mtime: Time) -> Result<()> {
    Ok(rustix::fs::futimens(fd, &stamps(atime, mtime))?)
}

/// `utimensat(2)` of the name itself, never of what a symlink names.
pub fn set_times(dir: BorrowedFd<'_>, name: &CStr, atime: Option<Time>, mtime: Time) -> Result<()> {
    Ok(rustix::fs::utimensat(dir, name, &stamps(atime, mtime), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Major and minor of a device number.
pub fn device_numbers(rdev: u64) -> (u32, u32) {
    (rustix::fs::major(rdev), rustix::fs::minor(rdev))
}
