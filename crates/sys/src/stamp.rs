//! Times of entries, on file systems that drop a call which sets only one of the two.
//!
//! Programs made with libfuse 2 (Debian's bindfs and encfs) receive times only in pairs: utimensat(2) with
//! `UTIME_OMIT` succeeds there and changes nothing. Whether a device is one of them is learnt at its first call, by
//! looking at the result; on others than FUSE nothing is looked at.

use crate::meta::{self, Meta, Time};
use crate::{AsFd, BorrowedFd};
use std::ffi::CStr;
use std::io::Result;
use std::sync::{PoisonError, RwLock};

/// `FUSE_SUPER_MAGIC` of linux/magic.h.
const FUSE: u32 = 0x6573_5546;
/// Times this close to now prove nothing, seconds: a dropped call leaves the time of the last write.
const NOW_S: i64 = 5;

/// Devices seen so far, each with whether a single time is dropped there.
static KNOWN: RwLock<Vec<(u64, bool)>> = RwLock::new(Vec::new());

/// Sets the times of an open entry on the device `dev`: futimens(3); `None` leaves a time unchanged.
///
/// # Errors
/// Those of the system.
pub fn set_fd(
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
        || meta::of_fd(fd),
        |(atime, mtime)| meta::set_times_fd(fd, atime, mtime),
    )
}

/// Sets the times of a name itself on the device `dev`: utimensat(2); `None` leaves a time unchanged.
///
/// # Errors
/// Those of the system.
pub fn set(
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
        || meta::of(dir, name, false),
        |(atime, mtime)| meta::set_times(dir, name, atime, mtime),
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
    use crate::meta::Kind;
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
