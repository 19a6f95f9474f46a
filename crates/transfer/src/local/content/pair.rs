//! Capabilities of a pair of file systems, determined once.

use hakobu_sys::{BorrowedFd, cache, close, disk, volume};

/// Capabilities of a source/target device pair, cached per worker.
#[derive(Clone, Copy, Default)]
pub(in crate::local) struct Pair {
    pub(super) devices: (u64, u64),
    /// Extents cannot be shared, as far as is known.
    pub(super) no_clone: bool,
    /// The kernel cannot copy between the two, or not faster than reads and writes.
    pub(super) no_range: bool,
    /// The target cannot drop pages once they are written.
    pub(super) no_uncached: bool,
    /// Both are on one disk; determined on first use.
    one_disk: Option<bool>,
    /// The target may report failed writes at close(2).
    reports_late: Option<bool>,
    /// Bytes to read ahead at once if the source is on a network or FUSE file system.
    read_ahead: Option<Option<u64>>,
    /// The target is on a network or FUSE file system.
    to_foreign: Option<bool>,
    /// The target is in memory.
    in_memory: Option<bool>,
}

impl Pair {
    /// Switches to this pair; resets the capabilities if it is another one.
    pub(super) fn begin(&mut self, devices: (u64, u64)) {
        if self.devices != devices {
            *self = Pair { devices, ..Pair::default() };
        }
    }

    /// Returns whether the kernel may copy between the two, as far as is known.
    pub(super) fn may_copy_range(&self) -> bool {
        self.devices.0 == self.devices.1 && !self.no_range
    }

    pub(super) fn read_ahead(&mut self, from: BorrowedFd<'_>) -> Option<u64> {
        *self.read_ahead.get_or_insert_with(|| cache::window_bytes(from))
    }

    pub(super) fn writes_to_foreign(&mut self, to: BorrowedFd<'_>) -> bool {
        *self.to_foreign.get_or_insert_with(|| volume::is_foreign_fd(to))
    }

    pub(super) fn in_memory(&mut self, to: BorrowedFd<'_>) -> bool {
        *self.in_memory.get_or_insert_with(|| volume::is_memory(to))
    }

    /// Returns whether writes to one land on the disk that the other is read from.
    pub(super) fn is_one_disk(&mut self) -> bool {
        let (from, to) = self.devices;
        let same = || from == to || disk::below(from).is_some_and(|of| disk::below(to) == Some(of));
        *self.one_disk.get_or_insert_with(same)
    }

    /// Returns whether the file system of `to`, a file on the target device, may report failed writes at close(2).
    pub(in crate::local) fn reports_late(&mut self, to: BorrowedFd<'_>) -> bool {
        *self.reports_late.get_or_insert_with(|| close::reports_late(to))
    }
}
