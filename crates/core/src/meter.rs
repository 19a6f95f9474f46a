//! The work of a run, done and under way: counters with one writer each, a worker (a thread, or a core with its
//! requests), which the controller of the run adds up. No clock is read for it: mean durations follow from the number
//! of operations under way (Little's law), and the distribution of time from frequent samples of all workers.

mod doing;
mod progress;
mod wire;

pub use doing::{Doing, During};
pub use progress::{Entries, Progress};
pub use wire::{Look, Wire, WireCounts};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The occupation of a worker, or the wait of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Phase {
    /// Idle: it could work, and there is no work.
    Idle,
    /// Finding work: reading directories or listings.
    List,
    /// Looking at entries: stat, open, HEAD.
    Look,
    /// Reading content of the source.
    Read,
    /// Making names at the target: create, mkdir, link, rename.
    Create,
    /// Writing content to the target.
    Write,
    /// Owner, mode, times, attributes; syncing and closing.
    Settle,
    /// Removing.
    Remove,
    /// Computing: hashes, signatures.
    Compute,
    /// Getting a connection.
    Connect,
    /// Sending a request and its body.
    Send,
    /// Everything is sent: the server has not begun to answer.
    Answer,
    /// Receiving an answer's body.
    Receive,
    /// Waiting for a rate that the user set.
    Limit,
    /// Waiting for a server that asked to slow down, or before a second try.
    Pause,
    /// Waiting for room in the budget of memory or descriptors.
    Room,
}

/// Number of phases.
pub const PHASES: usize = Phase::Room as usize + 1;

/// The counters of one worker. One thread writes, others read.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Lane {
    // What [`Meter::counts`] reads many times a second is in two cache lines: another CPU has written them.
    bytes: AtomicU64,
    items: AtomicU64,
    completions: AtomicU64,
    operations: AtomicU64,
    throttled: AtomicU64,
    timed_out: AtomicU64,
    slowed: AtomicU64,
    found: AtomicU64,
    doing: [AtomicU32; PHASES],
    sized: AtomicU64,
    done: AtomicU64,
    bytes_ahead: AtomicU64,
    undrained: AtomicU64,
    wire: Wire,
}

/// Adds without a locked instruction: only the owner writes.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// Adds counters to the fields of a sum that have their names.
macro_rules! add_up {
    ($from:expr => $sum:expr, $($field:ident)*) => {
        $($sum.$field = $sum.$field.wrapping_add($from.$field.load(Ordering::Relaxed));)*
    };
}
use add_up;

impl Lane {
    /// Content moved, in bytes, as it moves.
    pub fn bytes(&self, count: u64) {
        add(&self.bytes, count);
    }

    /// Finished entries, with any result.
    pub fn items(&self, count: u64) {
        add(&self.items, count);
    }

    /// Content moved so far.
    pub fn bytes_moved(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// So many entries (no directories) are known to be ahead; see [`Progress::found`].
    pub fn found(&self, entries: u64) {
        add(&self.found, entries);
    }

    /// Uncounts a found entry, which proved to be a directory.
    pub fn lost(&self) {
        add(&self.found, u64::MAX);
    }

    /// Counts an entry whose size was determined; see [`Progress::sized`].
    pub fn sized(&self) {
        add(&self.sized, 1);
    }

    /// Counts finished entries, with any result.
    pub fn done(&self, entries: u64) {
        add(&self.done, entries);
    }

    /// Content that is going to be moved; see [`Progress::bytes_ahead`].
    pub fn ahead(&self, bytes: u64) {
        add(&self.bytes_ahead, bytes);
    }

    /// Content of an entry that was ahead came to `moved` bytes in the end instead of `expected`.
    pub fn settle(&self, expected: u64, moved: u64) {
        add(&self.bytes_ahead, moved.wrapping_sub(expected));
    }

    /// Content that this worker counted as ahead and has not moved, modulo 2^64.
    pub fn outstanding(&self) -> u64 {
        self.bytes_ahead.load(Ordering::Relaxed).wrapping_sub(self.bytes_moved())
    }

    /// Reduces what was ahead since [`Lane::outstanding`] gave that answer to what was moved.
    pub fn settle_to(&self, outstanding: u64) {
        self.bytes_ahead.store(self.bytes_moved().wrapping_add(outstanding), Ordering::Relaxed);
    }

    /// Bytes of the large file at hand that are written and not on the device.
    pub fn undrained(&self, bytes: u64) {
        self.undrained.store(bytes, Ordering::Relaxed);
    }

    /// Pieces of work finished: an entry, a segment of a large file, a request.
    pub fn completions(&self, count: u64) {
        add(&self.completions, count);
    }

    /// Operations sent to a file system or store, as a limit of operations counts them.
    pub fn operations(&self, count: u64) {
        add(&self.operations, count);
    }

    /// The server asked to slow down (503, 429).
    pub fn throttled(&self) {
        add(&self.throttled, 1);
    }

    /// A request ran into a time-out.
    pub fn timed_out(&self) {
        add(&self.timed_out, 1);
    }

    /// Answers that asked to slow down made us do it: the rate of requests was cut for the first
    /// time, or by half.
    pub fn slowed(&self) {
        add(&self.slowed, 1);
    }

    /// Counters of its connections.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// One more unit of this worker is in this phase.
    pub fn enter(&self, phase: Phase) {
        self.change(phase, 1);
    }

    /// It has left it.
    pub fn leave(&self, phase: Phase) {
        self.change(phase, u32::MAX);
    }

    /// From one phase to another.
    pub fn turn(&self, from: Phase, to: Phase) {
        self.leave(from);
        self.enter(to);
    }

    fn change(&self, phase: Phase, by: u32) {
        // The index is in range: one element for each phase.
        if let Some(count) = self.doing.get(phase as usize) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        }
    }
}

/// The counters of one worker, from [`Meter::share`].
#[derive(Clone, Debug)]
pub struct SharedLane {
    lanes: Arc<[CachePadded<Lane>]>,
    /// Less than the number of lanes.
    index: usize,
}

impl Deref for SharedLane {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        &self.lanes[self.index]
    }
}

/// Entries and bytes that were counted by threads that plan work for others.
#[derive(Debug, Default)]
struct Planned {
    found: AtomicU64,
    done: AtomicU64,
    bytes_ahead: AtomicU64,
}

/// The counters of all workers of a run.
#[derive(Debug)]
pub struct Meter {
    /// Beside each other: adding them up reads ahead.
    lanes: Arc<[CachePadded<Lane>]>,
    planned: CachePadded<Planned>,
    /// Everything has been found.
    listed: AtomicBool,
    /// The present limit, where it is known.
    limit: Mutex<Option<&'static str>>,
}

/// A sum over all lanes, since the beginning but for `doing`, which is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Content moved, in bytes.
    pub bytes: u64,
    /// Entries finished.
    pub items: u64,
    /// Pieces of work finished.
    pub completions: u64,
    /// Operations sent.
    pub operations: u64,
    /// Times that a server asked to slow down.
    pub throttled: u64,
    /// Requests that ran into a time-out.
    pub timed_out: u64,
    /// Times that complaints of a server made us cut the rate of requests for the first time, or
    /// by half: less often than `throttled`, which counts every complaint.
    pub slowed: u64,
    /// Number of units in each phase now, by [`Phase`].
    pub doing: [u32; PHASES],
}

impl Counts {
    /// Units under way: in any phase but [`Phase::Idle`] .
    pub fn in_use(&self) -> usize {
        self.doing.iter().skip(1).map(|count| *count as usize).sum()
    }
}

impl Meter {
    /// Creates the counters of `lanes` workers.
    pub fn new(lanes: usize) -> Meter {
        Meter {
            lanes: (0..lanes.max(1)).map(|_| CachePadded::default()).collect(),
            planned: CachePadded::default(),
            listed: AtomicBool::default(),
            limit: Mutex::default(),
        }
    }

    /// Returns the counters of a worker; those of the last one if `index` is too large.
    pub fn lane(&self, index: usize) -> &Lane {
        &self.lanes[index.min(self.lanes.len() - 1)]
    }

    /// The same, to be kept by what outlives a borrow.
    pub fn share(&self, index: usize) -> SharedLane {
        SharedLane { lanes: Arc::clone(&self.lanes), index: index.min(self.lanes.len() - 1) }
    }

    /// Counters of connections, the sum of all.
    pub fn wire(&self) -> WireCounts {
        let mut sum = WireCounts::default();
        self.lanes.iter().for_each(|lane| lane.wire.add_to(&mut sum));
        sum
    }

    /// The sum of all.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for lane in &*self.lanes {
            add_up!(lane => sum, bytes items completions operations throttled timed_out slowed);
            for (total, count) in sum.doing.iter_mut().zip(&lane.doing) {
                // Leaving is seen before entering at times: never below zero for long.
                let count = count.load(Ordering::Relaxed);
                *total += if count > u32::MAX / 2 { 0 } else { count };
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_add_up() {
        let meter = Meter::new(2);
        meter.lane(0).bytes(5);
        meter.lane(1).bytes(7);
        // A worker more than there are lanes shares the last one.
        meter.lane(9).items(1);
        meter.lane(0).enter(Phase::Idle);
        meter.lane(1).enter(Phase::Read);
        let counts = meter.counts();
        assert_eq!((counts.bytes, counts.items, counts.in_use()), (12, 1, 1));
        meter.lane(1).turn(Phase::Read, Phase::Idle);
        assert_eq!(meter.counts().in_use(), 0);
        assert_eq!(meter.counts().doing[Phase::Idle as usize], 2);
    }
}
