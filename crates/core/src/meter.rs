//! The work of a run, done and under way: counters with one writer each, a worker (a thread, or a core with its
//! requests), which the controller of the run adds up. No clock is read for it: mean durations follow from the number
//! of operations under way (Little's law), and the distribution of time from frequent samples of all workers.

use crate::language::Bilingual;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::cell::Cell;
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
    completing: AtomicU64,
    wire: ConnectionCounters,
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

    /// All parts of an upload have arrived, and the server puts them together from now on, until `completed`.
    pub fn completing(&self) {
        add(&self.completing, 1);
    }

    /// See [`Lane::completing`].
    pub fn completed(&self) {
        add(&self.completing, u64::MAX);
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

    pub fn wire(&self) -> &ConnectionCounters {
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
struct PlannedCounts {
    found: AtomicU64,
    done: AtomicU64,
    bytes_ahead: AtomicU64,
}

/// The counters of all workers of a run.
#[derive(Debug)]
pub struct Meter {
    /// Beside each other: adding them up reads ahead.
    lanes: Arc<[CachePadded<Lane>]>,
    planned: CachePadded<PlannedCounts>,
    /// Everything has been found.
    listed: AtomicBool,
    /// What is going to be found, where that was counted.
    ahead: Mutex<Option<CountedAhead>>,
    /// The present limit, where it is known.
    limit: Mutex<Option<Bilingual>>,
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
            ahead: Mutex::default(),
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
    pub fn wire(&self) -> ConnectionCounts {
        let mut sum = ConnectionCounts::default();
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

/// One unit under way. It stays on the thread that writes the lane.
#[derive(Debug)]
pub struct Activity {
    lane: SharedLane,
    phase: Cell<Phase>,
}

impl Activity {
    /// A unit that begins with `phase`.
    pub fn new(lane: SharedLane, phase: Phase) -> Activity {
        lane.enter(phase);
        Activity { lane, phase: Cell::new(phase) }
    }

    /// The counters of its worker.
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Sets the current activity and returns the previous one.
    pub fn turn(&self, to: Phase) -> Phase {
        let from = self.phase.replace(to);
        if from != to {
            self.lane.turn(from, to);
        }
        from
    }

    /// Sets the current activity until the guard is dropped, which restores the previous one.
    pub fn during(&self, phase: Phase) -> ActivityGuard<'_> {
        ActivityGuard { doing: self, before: self.turn(phase) }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.lane.leave(self.phase.get());
    }
}

/// See [`Activity::during`].
#[derive(Debug)]
pub struct ActivityGuard<'a> {
    doing: &'a Activity,
    before: Phase,
}

impl Drop for ActivityGuard<'_> {
    fn drop(&mut self) {
        self.doing.turn(self.before);
    }
}

/// A batch of entries that a planner found, with their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundEntries {
    pub found: u64,
    /// Those of them for which nothing is left to do: up to date, left out, refused.
    pub done: u64,
    /// Content of the others, in bytes.
    pub bytes_ahead: u64,
}

/// What a run is going to find, from a count ahead of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedAhead {
    /// Entries, without directories.
    pub found: u64,
    /// Content that is going to be moved, in bytes; `None` where that is not known.
    pub bytes: Option<u64>,
}

impl CountedAhead {
    /// Completes what the run itself has found so far. Sizes count until the run knows all of its own.
    fn complete(self, now: &mut Progress) {
        if !now.listed {
            // A source may have grown.
            now.found = now.found.max(self.found);
            now.listed = true;
        }
        if let Some(bytes) = self.bytes.filter(|_| now.sized < now.found) {
            now.bytes_ahead = now.bytes_ahead.max(bytes);
            now.sized = now.found;
        }
    }
}

/// Progress of a run. The counters are read one after the other while the workers go on: a sum may be a few entries
/// ahead of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries found so far, without directories.
    pub found: u64,
    /// Those whose bytes to move are part of `bytes_ahead`, or which have none.
    pub sized: u64,
    /// Those that are finished: moved, up to date, left out, failed.
    pub done: u64,
    /// Content moved, in bytes, as it moves.
    pub bytes: u64,
    /// Content that is known to have to be moved, in bytes, from the beginning: at least `bytes` at rest.
    pub bytes_ahead: u64,
    /// Bytes of large files that are written and not on the device, where the kernel says.
    pub undrained: u64,
    /// Uploads whose parts a server puts together now.
    pub completing: u64,
    /// Units under way now.
    pub jobs: u64,
    /// All entries were found, or counted ahead.
    pub listed: bool,
    /// The present bottleneck, in a word or two, where it is known.
    pub limit: Option<Bilingual>,
}

impl Meter {
    /// Counts a batch that a planner found. Any thread may call it.
    pub fn found(&self, entries: FoundEntries) {
        let add = |counter: &AtomicU64, more| {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        // Add found entries before done ones, so that done never exceeds found.
        add(&self.planned.found, entries.found);
        add(&self.planned.bytes_ahead, entries.bytes_ahead);
        add(&self.planned.done, entries.done);
    }

    /// Notes that nothing more will be found.
    pub fn all_found(&self) {
        self.listed.store(true, Ordering::Release);
    }

    /// Notes what is going to be found.
    pub fn counted_ahead(&self, ahead: CountedAhead) {
        *self.ahead.lock() = Some(ahead);
    }

    /// Notes what limits the run now.
    pub fn set_limit(&self, limit: Option<Bilingual>) {
        *self.limit.lock() = limit;
    }

    /// Progress of the run.
    pub fn progress(&self) -> Progress {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let listed = self.listed.load(Ordering::Acquire);
        let planned = &self.planned;
        let mut sum = Progress { listed, limit: *self.limit.lock(), ..Progress::default() };
        // Read done before found, so that done never exceeds found.
        sum.done = load(&planned.done);
        for lane in &*self.lanes {
            add_up!(lane => sum, done bytes);
        }
        for lane in &*self.lanes {
            add_up!(lane => sum, sized bytes_ahead undrained completing found);
            for (phase, count) in lane.doing.iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if phase != Phase::Idle as usize && count <= u32::MAX / 2 {
                    sum.jobs += u64::from(count);
                }
            }
        }
        let by_planners = load(&planned.found);
        sum.found = positive(sum.found.wrapping_add(by_planners)).max(sum.done);
        sum.sized = positive(sum.sized.wrapping_add(by_planners)).clamp(sum.done, sum.found);
        let bytes_ahead = sum.bytes_ahead.wrapping_add(load(&planned.bytes_ahead));
        sum.bytes_ahead = positive(bytes_ahead).max(sum.bytes);
        sum.completing = positive(sum.completing);
        if let Some(ahead) = *self.ahead.lock() {
            ahead.complete(&mut sum);
        }
        sum
    }
}

/// A sum of which a part was seen that takes away what another part adds, before that part was.
fn positive(sum: u64) -> u64 {
    if sum > u64::MAX / 2 { 0 } else { sum }
}

impl std::ops::AddAssign for Progress {
    /// Adds another run that goes on at the same time, or after this one.
    fn add_assign(&mut self, other: Progress) {
        self.found += other.found;
        self.sized += other.sized;
        self.done += other.done;
        self.bytes += other.bytes;
        self.bytes_ahead += other.bytes_ahead;
        self.undrained += other.undrained;
        self.completing += other.completing;
        self.jobs += other.jobs;
        self.listed &= other.listed;
        self.limit = other.limit.or(self.limit);
    }
}

/// The counters of one core. One thread writes, others read.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    answers: AtomicU64,
    answer_us: AtomicU64,
    answer_least_us: AtomicU64,
    handshakes: AtomicU64,
    handshake_us: AtomicU64,
    looks: AtomicU64,
    rtt_us: AtomicU64,
    rtt_least_us: AtomicU64,
    unsent: AtomicU64,
    delivery_bytes_per_s: AtomicU64,
    busy_us: AtomicU64,
    receiver_us: AtomicU64,
    buffer_us: AtomicU64,
    retransmits: AtomicU64,
}

/// One look at a busy connection: states of now, and what grew since the look before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSample {
    /// Smoothed round-trip time, microseconds; 0 where it is not known.
    pub rtt_us: u64,
    /// The least round-trip time of the connection, microseconds; 0 where it is not known.
    pub rtt_least_us: u64,
    /// Bytes wait in the kernel that were not sent once.
    pub unsent: bool,
    /// The rate at which the peer acknowledged last, bytes a second; 0 where it is not known.
    pub delivery_bytes_per_s: u64,
    /// Time in which there was something to send, microseconds.
    pub busy_us: u64,
    /// Part of `busy_us` spent waiting for the receive window of the peer.
    pub receiver_us: u64,
    /// Part of `busy_us` spent waiting for space in our send buffer.
    pub buffer_us: u64,
    /// Segments that were sent again.
    pub retransmits: u64,
}

/// A sum over all cores, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Requests that were answered.
    pub answers: u64,
    /// From the last byte of a request being handed to the kernel to the head of its answer: the
    /// sum over those, microseconds.
    pub answer_us: u64,
    /// The least of those of requests for content that succeeded, microseconds; `None` where there
    /// was none.
    pub answer_least_us: Option<u64>,
    /// Handshakes that were timed.
    pub handshakes: u64,
    /// Round trips that the kernel saw in them, the sum, microseconds.
    pub handshake_us: u64,
    /// Looks at busy connections.
    pub looks: u64,
    /// Smoothed round-trip times, the sum over looks, microseconds.
    pub rtt_us: u64,
    /// The least round-trip time of any connection, microseconds; `None` where none is known.
    pub rtt_least_us: Option<u64>,
    /// Looks that found bytes waiting in the kernel that were not sent once.
    pub unsent: u64,
    /// Rates at which peers acknowledged, the sum over looks, bytes a second.
    pub delivery_bytes_per_s: u64,
    /// Time in which there was something to send, the sum over the connections looked at,
    /// microseconds.
    pub busy_us: u64,
    /// Part of `busy_us` spent waiting for the receive windows of peers.
    pub receiver_us: u64,
    /// Part of `busy_us` spent waiting for space in our send buffers.
    pub buffer_us: u64,
    /// Segments that were sent again on the connections looked at.
    pub retransmits: u64,
}

impl ConnectionCounters {
    /// A request was answered so long after it was sent.
    pub fn answered(&self, after_us: u64) {
        add(&self.answers, 1);
        add(&self.answer_us, after_us);
    }

    /// Records a request for content that succeeded `after_us` after it was sent. Other answers come faster and are no
    /// basis for comparison.
    pub fn succeeded(&self, after_us: u64) {
        lower(&self.answer_least_us, after_us);
    }

    /// A TCP handshake took so long, as the kernel measured it.
    pub fn handshake(&self, rtt_us: u64) {
        add(&self.handshakes, 1);
        add(&self.handshake_us, rtt_us);
    }

    pub fn sampled(&self, look: &ConnectionSample) {
        add(&self.looks, 1);
        add(&self.rtt_us, look.rtt_us);
        add(&self.unsent, u64::from(look.unsent));
        add(&self.delivery_bytes_per_s, look.delivery_bytes_per_s);
        add(&self.busy_us, look.busy_us);
        add(&self.receiver_us, look.receiver_us);
        add(&self.buffer_us, look.buffer_us);
        add(&self.retransmits, look.retransmits);
        if look.rtt_least_us > 0 {
            lower(&self.rtt_least_us, look.rtt_least_us);
        }
    }

    pub(crate) fn add_to(&self, sum: &mut ConnectionCounts) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        add_up!(self => sum, answers answer_us handshakes handshake_us looks rtt_us unsent
            delivery_bytes_per_s busy_us receiver_us buffer_us retransmits);
        sum.answer_least_us = least(sum.answer_least_us, load(&self.answer_least_us));
        sum.rtt_least_us = least(sum.rtt_least_us, load(&self.rtt_least_us));
    }
}

/// Keeps the lower one. Only the owner writes. Complements are kept, so that the zero of the beginning means none.
fn lower(least: &AtomicU64, us: u64) {
    if !us > least.load(Ordering::Relaxed) {
        least.store(!us, Ordering::Relaxed);
    }
}

/// The smallest known value, of one that [`lower`] kept, too.
fn least(known: Option<u64>, kept: u64) -> Option<u64> {
    known.into_iter().chain((kept > 0).then_some(!kept)).min()
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

    #[test]
    fn a_unit_is_in_one_phase_until_it_ends() {
        let meter = Meter::new(1);
        let of = |phase: Phase| meter.counts().doing[phase as usize];
        let doing = Activity::new(meter.share(0), Phase::Idle);
        assert_eq!((of(Phase::Idle), meter.counts().in_use()), (1, 0));
        assert_eq!(doing.turn(Phase::Send), Phase::Idle);
        {
            let _limit = doing.during(Phase::Limit);
            assert_eq!((of(Phase::Limit), of(Phase::Send)), (1, 0));
        }
        assert_eq!((of(Phase::Limit), of(Phase::Send)), (0, 1));
        drop(doing);
        assert_eq!(meter.counts().doing, [0; super::PHASES]);
    }

    #[test]
    fn workers_and_planners_add_up() {
        let meter = Meter::new(2);
        meter.lane(0).found(10);
        meter.lane(1).found(5);
        meter.lane(1).lost();
        meter.lane(0).sized();
        meter.lane(0).ahead(1000);
        meter.lane(0).bytes(400);
        meter.lane(0).enter(Phase::Write);
        meter.lane(1).enter(Phase::Idle);
        meter.found(FoundEntries { found: 6, done: 2, bytes_ahead: 50 });
        let expected = Progress {
            found: 20,
            sized: 7,
            done: 2,
            bytes: 400,
            bytes_ahead: 1050,
            jobs: 1,
            ..Progress::default()
        };
        assert_eq!(meter.progress(), expected);
        // It was shorter than it said, and another worker knows of that.
        meter.lane(1).settle(1000, 400);
        meter.lane(0).done(1);
        meter.set_limit(Some(Bilingual::same("CPU")));
        meter.all_found();
        let after = meter.progress();
        assert_eq!((after.bytes_ahead, after.done, after.listed), (450, 3, true));
        assert_eq!(after.limit, Some(Bilingual::same("CPU")));
    }

    #[test]
    fn a_count_ahead_tells_what_is_not_found_yet() {
        let meter = Meter::new(1);
        let lane = meter.lane(0);
        lane.found(4);
        lane.sized();
        lane.ahead(10);
        lane.bytes(10);
        lane.done(1);
        meter.counted_ahead(CountedAhead { found: 9, bytes: None });
        let now = meter.progress();
        assert_eq!((now.found, now.listed, now.sized, now.bytes_ahead), (9, true, 1, 10));
        meter.counted_ahead(CountedAhead { found: 9, bytes: Some(90) });
        let now = meter.progress();
        assert_eq!((now.found, now.listed, now.sized, now.bytes_ahead), (9, true, 9, 90));
        // What the run finds itself counts in the end.
        lane.found(4);
        meter.all_found();
        assert_eq!((meter.progress().found, meter.progress().bytes_ahead), (8, 90));
        (0..7).for_each(|_| lane.sized());
        lane.ahead(70);
        assert_eq!(meter.progress().bytes_ahead, 80);
    }

    #[test]
    fn uploads_are_completed() {
        let meter = Meter::new(2);
        meter.lane(0).completing();
        assert_eq!(meter.progress().completing, 1);
        meter.lane(0).completed();
        assert_eq!(meter.progress().completing, 0);
    }

    #[test]
    fn sums_never_contradict_each_other() {
        let meter = Meter::new(1);
        meter.lane(0).done(3);
        meter.lane(0).bytes(100);
        meter.lane(0).settle(50, 0);
        let now = meter.progress();
        assert!(now.found >= now.done && now.sized >= now.done && now.bytes_ahead >= now.bytes);
    }

    #[test]
    fn looks_of_all_cores_add_up() {
        let meter = Meter::new(2);
        assert_eq!(meter.wire(), ConnectionCounts::default());
        let look = ConnectionSample {
            rtt_us: 300,
            rtt_least_us: 200,
            unsent: true,
            ..ConnectionSample::default()
        };
        meter.lane(0).wire().sampled(&look);
        meter.lane(1).wire().sampled(&ConnectionSample {
            rtt_us: 100,
            rtt_least_us: 90,
            busy_us: 7,
            ..look
        });
        meter.lane(1).wire().sampled(&ConnectionSample::default());
        meter.lane(1).wire().answered(50);
        let wire = meter.wire();
        assert_eq!((wire.looks, wire.rtt_us, wire.unsent, wire.busy_us), (3, 400, 2, 7));
        assert_eq!((wire.rtt_least_us, wire.answers, wire.answer_us), (Some(90), 1, 50));
        assert_eq!(wire.answer_least_us, None);
    }

    #[test]
    fn answers_that_succeeded_have_a_least_and_handshakes_a_sum() {
        let meter = Meter::new(2);
        for (lane, us) in [(0, 70), (0, 60), (0, 80), (1, 65)] {
            meter.lane(lane).wire().succeeded(us);
            meter.lane(lane).wire().handshake(us);
        }
        let wire = meter.wire();
        assert_eq!((wire.answer_least_us, wire.answers), (Some(60), 0));
        assert_eq!((wire.handshakes, wire.handshake_us), (4, 275));
    }
}
