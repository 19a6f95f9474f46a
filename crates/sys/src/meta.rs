//! Metadata of a file (`stat`), and calls that change mode, owner and times; types of entries, and time stamps.

use crate::{AsFd, BorrowedFd};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, Statx, StatxFlags, Timespec, Timestamps, Uid,
};
use std::ffi::CStr;
use std::io::Result;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// Metadata of one entry, from `stat`.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// The type.
    pub kind: Kind,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Size in bytes (of a symlink: of its target path).
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
    /// Last modification of the content.
    pub mtime: Time,
    /// Last access.
    pub atime: Time,
    /// Last change of the inode.
    pub ctime: Time,
}

impl Meta {
    #[allow(clippy::useless_conversion, reason = "nlink has 32 bits on some architectures")]
    fn from_stat(stat: &Stat) -> Meta {
        Meta {
            kind: Kind::from_type(FileType::from_raw_mode(stat.st_mode)),
            mode: stat.st_mode & 0o7777,
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            uid: stat.st_uid,
            gid: stat.st_gid,
            nlink: stat.st_nlink.into(),
            dev: stat.st_dev,
            ino: stat.st_ino,
            rdev: stat.st_rdev,
            mtime: Time { s: stat.st_mtime, ns: stat.st_mtime_nsec as u32 },
            atime: Time { s: stat.st_atime, ns: stat.st_atime_nsec as u32 },
            ctime: Time { s: stat.st_ctime, ns: stat.st_ctime_nsec as u32 },
        }
    }

    fn from_statx(found: &Statx) -> Meta {
        let time = |time: rustix::fs::StatxTimestamp| Time { s: time.tv_sec, ns: time.tv_nsec };
        Meta {
            kind: Kind::from_type(FileType::from_raw_mode(found.stx_mode.into())),
            mode: u32::from(found.stx_mode) & 0o7777,
            size: found.stx_size,
            blocks: found.stx_blocks,
            uid: found.stx_uid,
            gid: found.stx_gid,
            nlink: found.stx_nlink.into(),
            dev: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            rdev: rustix::fs::makedev(found.stx_rdev_major, found.stx_rdev_minor),
            mtime: time(found.stx_mtime),
            atime: time(found.stx_atime),
            ctime: time(found.stx_ctime),
        }
    }

    /// Metadata with only kind, size and time known.
    pub const fn bare(kind: Kind, size: u64, mtime: Time) -> Meta {
        let mode = if matches!(kind, Kind::Dir) { 0o777 } else { 0o666 };
        let (blocks, atime, ctime) = (size.div_ceil(512), mtime, mtime);
        let (uid, gid, nlink, dev, ino, rdev) = (0, 0, 1, 0, 0, 0);
        Meta { kind, mode, size, blocks, uid, gid, nlink, dev, ino, rdev, mtime, atime, ctime }
    }

    pub fn allocated_bytes(&self) -> u64 {
        self.blocks * 512
    }

    /// True if fewer blocks are allocated than the size needs: the file has holes, or is compressed or stored
    /// inline (then a search for holes finds none, at the cost of one call).
    pub fn may_have_holes(&self) -> bool {
        self.allocated_bytes() < self.size
    }

    /// Device and inode, which identify a file on this machine.
    pub fn identity(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

/// Device and inode of a path that may be a symlink.
pub fn identity(path: &Path) -> Result<(u64, u64)> {
    Ok(Meta::from_stat(&rustix::fs::lstat(path)?).identity())
}

/// `fstat(2)`.
pub fn of_fd(fd: impl AsFd) -> Result<Meta> {
    Ok(Meta::from_stat(&rustix::fs::fstat(fd)?))
}

/// `fstatat(2)` of a name in a directory; `follow` resolves a symlink.
pub fn of(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<Meta> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    Ok(Meta::from_stat(&rustix::fs::statat(dir, name, flags)?))
}

/// As [`of`], but a network or FUSE file system is asked again instead of a cache (`AT_STATX_FORCE_SYNC`, statx(2)).
pub fn of_now(dir: BorrowedFd<'_>, name: &CStr, follow: bool) -> Result<Meta> {
    let mut flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    flags |= AtFlags::STATX_FORCE_SYNC;
    match rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS) {
        Ok(found) => Ok(Meta::from_statx(&found)),
        // Kernels before 4.11, and sandboxes that do not know the call.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => of(dir, name, follow),
        Err(error) => Err(error.into()),
    }
}

/// Type, mode, owner and group of a file that was just created, as the file system told them then: no network or FUSE
/// file system is asked (`AT_STATX_DONT_SYNC`, statx(2)). The other fields mean nothing.
pub fn of_created(fd: impl AsFd) -> Result<Meta> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID | StatxFlags::GID;
    match rustix::fs::statx(&fd, c"", flags, wanted) {
        Ok(found) => Ok(Meta::from_statx(&found)),
        // As above.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => of_fd(fd),
        Err(error) => Err(error.into()),
    }
}

/// Creation time of an entry; `None` if the file system does not record it (NFS before 4.2, most FUSE file
/// systems). Symlinks are not followed.
pub fn born(dir: BorrowedFd<'_>, name: &CStr) -> Result<Option<Time>> {
    let found = rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME)?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    Ok(known.then_some(Time { s: found.stx_btime.tv_sec, ns: found.stx_btime.tv_nsec }))
}

/// `statx(2)` of a name in a directory, through a symlink: whether it can be looked at.
pub fn look(dir: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    rustix::fs::statx(dir, name, AtFlags::empty(), StatxFlags::BASIC_STATS)?;
    Ok(())
}

/// `fchmod(2)`.
pub fn set_mode_fd(fd: impl AsFd, mode: u32) -> Result<()> {
    Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?)
}

/// System call number of fchmodat2(2), the same on all architectures.
const FCHMODAT2: libc::c_long = 452;

/// Changes the mode of a name in a directory, not through a symlink: `fchmodat2(2)` (Linux 6.6), else through
/// an `O_PATH` descriptor.
pub fn set_mode(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<()> {
    use rustix::fd::AsRawFd;
    // SAFETY: `name` is a live, NUL-terminated string; the call keeps no pointer to it.
    let done = unsafe {
        libc::syscall(FCHMODAT2, dir.as_raw_fd(), name.as_ptr(), mode, libc::AT_SYMLINK_NOFOLLOW)
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
    match rustix::fs::chmod(path.as_c_str(), Mode::from_raw_mode(mode)) {
        // Without /proc: what can be opened needs no path. The rest fails, and not as a missing entry would.
        Err(rustix::io::Errno::NOENT) => {
            let open = crate::file::open_read(dir, name, false);
            let opened = open.map_err(|_| std::io::Error::from_raw_os_error(libc::ENOSYS))?;
            if of_fd(&opened)?.identity() != of_fd(&file)?.identity() {
                return Err(std::io::Error::from_raw_os_error(libc::ESTALE));
            }
            set_mode_fd(opened, mode)
        }
        done => Ok(done?),
    }
}

/// `fchown(2)`; `None` leaves the value unchanged.
pub fn set_owner_fd(fd: impl AsFd, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    Ok(rustix::fs::fchown(fd, uid.map(Uid::from_raw), gid.map(Gid::from_raw))?)
}

/// `fchownat(2)` of the name itself; symlinks are not followed.
pub fn set_owner(
    dir: BorrowedFd<'_>,
    name: &CStr,
    uid: Option<u32>,
    gid: Option<u32>,
) -> Result<()> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    Ok(rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn stamps(atime: Option<Time>, mtime: Option<Time>) -> Timestamps {
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT as _ };
    let stamp = |time: Option<Time>| time.map_or(omit, Time::timespec);
    Timestamps { last_access: stamp(atime), last_modification: stamp(mtime) }
}

/// `futimens(3)`; `None` leaves a time unchanged.
pub fn set_times_fd(
    fd: impl AsFd,
    atime: Option<Time>,
    mtime: impl Into<Option<Time>>,
) -> Result<()> {
    Ok(rustix::fs::futimens(fd, &stamps(atime, mtime.into()))?)
}

/// `utimensat(2)` of the name itself; symlinks are not followed.
pub fn set_times(
    dir: BorrowedFd<'_>,
    name: &CStr,
    atime: Option<Time>,
    mtime: impl Into<Option<Time>>,
) -> Result<()> {
    let stamps = stamps(atime, mtime.into());
    Ok(rustix::fs::utimensat(dir, name, &stamps, AtFlags::SYMLINK_NOFOLLOW)?)
}

pub fn device(major: u32, minor: u32) -> u64 {
    rustix::fs::makedev(major, minor)
}

/// Major and minor of a device number.
pub fn device_numbers(rdev: u64) -> (u32, u32) {
    (rustix::fs::major(rdev), rustix::fs::minor(rdev))
}

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
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Not reported (some file systems leave `d_type` empty): use `stat`.
    Unknown,
}

impl Kind {
    /// Those that an entry can have, in the order of their numbers in records that are stored or sent.
    pub const KNOWN: [Kind; 7] = [
        Kind::File,
        Kind::Dir,
        Kind::Symlink,
        Kind::Fifo,
        Kind::Socket,
        Kind::BlockDevice,
        Kind::CharDevice,
    ];

    /// Returns its number in records; [`Kind::Unknown`] has the one behind [`Kind::KNOWN`].
    pub fn number(self) -> u8 {
        Kind::KNOWN.iter().position(|known| *known == self).unwrap_or(Kind::KNOWN.len()) as u8
    }

    /// Returns the type of a number; `None`: it is that of none.
    pub fn of_number(number: u8) -> Option<Kind> {
        let is_unknown = usize::from(number) == Kind::KNOWN.len();
        let known = Kind::KNOWN.get(usize::from(number)).copied();
        known.or_else(|| is_unknown.then_some(Kind::Unknown))
    }

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

/// `FUSE_SUPER_MAGIC` of linux/magic.h.
const FUSE: u32 = 0x6573_5546;
/// Times this close to now prove nothing, seconds: a dropped call leaves the time of the last write.
const NOW_S: i64 = 5;

/// Devices seen so far, each with whether a single time is dropped there.
static KNOWN: RwLock<Vec<(u64, bool)>> = RwLock::new(Vec::new());

/// Sets the times of an open entry on the device `dev`: futimens(3); `None` leaves a time unchanged.
pub fn stamp_fd(
    dev: u64,
    fd: impl AsFd,
    atime: Option<Time>,
    mtime: impl Into<Option<Time>>,
) -> Result<()> {
    let fd = fd.as_fd();
    set_by(
        dev,
        (atime, mtime.into()),
        || is_fuse(fd),
        || of_fd(fd),
        |(atime, mtime)| set_times_fd(fd, atime, mtime),
    )
}

/// Sets the times of a name itself on the device `dev`: utimensat(2); `None` leaves a time unchanged.
pub fn stamp(
    dev: u64,
    dir: BorrowedFd<'_>,
    name: &CStr,
    atime: Option<Time>,
    mtime: impl Into<Option<Time>>,
) -> Result<()> {
    set_by(
        dev,
        (atime, mtime.into()),
        || is_fuse(dir),
        || of(dir, name, false),
        |(atime, mtime)| set_times(dir, name, atime, mtime),
    )
}

fn is_fuse(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|fs| fs.f_type as u32 == FUSE)
}

type Pair = (Option<Time>, Option<Time>);

fn set_by(
    dev: u64,
    wanted: Pair,
    is_fuse: impl FnOnce() -> bool,
    look: impl Fn() -> Result<Meta>,
    set: impl Fn(Pair) -> Result<()>,
) -> Result<()> {
    let one = match wanted {
        (Some(time), None) | (None, Some(time)) => time,
        _ => return set(wanted),
    };
    let both = |there: &Meta| {
        (Some(wanted.0.unwrap_or(there.atime)), Some(wanted.1.unwrap_or(there.mtime)))
    };
    match known(dev) {
        Some(true) => return set(both(&look()?)),
        Some(false) => return set(wanted),
        None => {}
    }
    if !is_fuse() {
        learn(dev, false);
        return set(wanted);
    }
    set(wanted)?;
    let is_set = |there: &Meta| match wanted.1 {
        Some(mtime) => there.mtime == mtime,
        None => there.atime == one,
    };
    let first = look()?;
    let is_near_now = (Time::now().s.saturating_sub(one.s)).unsigned_abs() < NOW_S.unsigned_abs();
    if is_set(&first) {
        if !is_near_now {
            learn(dev, false);
        }
        return Ok(());
    }
    set(both(&first))?;
    if !is_near_now {
        let second = look()?;
        // Unchanged, it is what the file system makes of this time: it has a granularity, or no times at all.
        learn(dev, (second.mtime, second.atime) != (first.mtime, first.atime));
    }
    Ok(())
}

fn known(dev: u64) -> Option<bool> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().find(|(other, _)| *other == dev).map(|(_, drops)| *drops)
}

fn learn(dev: u64, drops: bool) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if known.iter().all(|(other, _)| *other != dev) {
        known.push((dev, drops));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const OLD: Time = Time { s: 1_000_000_000, ns: 7 };

    /// A file system that drops single times, or keeps times in whole steps; counts its calls.
    struct Simulated {
        drops: bool,
        step_s: i64,
        mtime: Cell<Time>,
        calls: Cell<(u32, u32)>,
    }

    impl Simulated {
        fn new(drops: bool, step_s: i64) -> Simulated {
            let (mtime, calls) = (Cell::new(Time::now()), Cell::default());
            Simulated { drops, step_s, mtime, calls }
        }

        fn set(&self, dev: u64, is_fuse: bool, mtime: Time) -> (Time, (u32, u32)) {
            self.mtime.set(Time::now());
            self.calls.set((0, 0));
            let look = || {
                self.calls.set((self.calls.get().0 + 1, self.calls.get().1));
                Ok(Meta::bare(Kind::File, 0, self.mtime.get()))
            };
            let set = |(atime, mtime): Pair| {
                self.calls.set((self.calls.get().0, self.calls.get().1 + 1));
                if let Some(Time { s, ns }) = mtime.filter(|_| !self.drops || atime.is_some()) {
                    let ns = if self.step_s > 0 { 0 } else { ns };
                    self.mtime.set(Time { s: s - s % self.step_s.max(1), ns });
                }
                Ok(())
            };
            set_by(dev, (None, Some(mtime)), || is_fuse, look, set).unwrap();
            (self.mtime.get(), self.calls.get())
        }
    }

    #[test]
    fn a_device_is_learnt_once() {
        let drops = Simulated::new(true, 0);
        assert_eq!(drops.set(u64::MAX, true, OLD), (OLD, (2, 2)));
        assert_eq!(drops.set(u64::MAX, true, OLD), (OLD, (1, 1)));
        let sets = Simulated::new(false, 0);
        assert_eq!(sets.set(u64::MAX - 1, true, OLD), (OLD, (1, 1)));
        assert_eq!(sets.set(u64::MAX - 1, true, OLD), (OLD, (0, 1)));
        let local = Simulated::new(false, 0);
        assert_eq!(local.set(u64::MAX - 2, false, OLD), (OLD, (0, 1)));
        let coarse = Simulated::new(false, 2);
        let kept = Time { s: OLD.s, ns: 0 };
        assert_eq!(coarse.set(u64::MAX - 3, true, OLD), (kept, (2, 2)));
        assert_eq!(coarse.set(u64::MAX - 3, true, OLD), (kept, (0, 1)));
        let coarse = Simulated::new(true, 2);
        assert_eq!(coarse.set(u64::MAX - 4, true, OLD), (kept, (2, 2)));
        assert_eq!(coarse.set(u64::MAX - 4, true, OLD), (kept, (1, 1)));
    }

    #[test]
    fn times_of_now_prove_nothing() {
        let drops = Simulated::new(true, 1);
        let now = Time { s: Time::now().s, ns: 0 };
        drops.set(u64::MAX - 5, true, now);
        assert_eq!(known(u64::MAX - 5), None);
        assert_eq!(drops.set(u64::MAX - 5, true, OLD).0.s, OLD.s);
        assert_eq!(known(u64::MAX - 5), Some(true));
    }
}
