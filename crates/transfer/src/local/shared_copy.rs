//! The content of one large file, moved in segments by its owner and by idle workers.
//!
//! Only the owner opens, creates, settles and publishes the file. The others come through a unit of the pool
//! ([`Helpers::call`]), which waits in the owner's queue as long as more workers pay, and take segments
//! (`content/segments.rs`) until none is left, until they slow each other down, or until the gate excludes them. They
//! also start the writeback of written data, so that the copying worker does not wait for it.

use super::content::{
    CopyMethod, LARGE_BYTES_MIN, LazyBuffer, Mover, Watch, still_holds, write_without_zeroes,
};
use super::engine::{Station, TargetMode};
use crate::failure::{Stop, reading, writing};
use hakobu_core::meter::Phase;
use hakobu_core::unit::Jobs;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, cache, errno, file};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Instant;

/// Dirty bytes of a large file whose writeback is started at once.
const WRITEBACK_BYTES: u64 = 8 << 20;
/// Size, in bytes, of the first step of a copy in the kernel on a file system that may implement it by reading and
/// writing.
const TRIED_BYTES: u64 = 1 << 20;
/// Number of workers of a file whose writes wait for answers, if more do not pay: one reads ahead of the other's
/// writes.
const BESIDE_WRITES: usize = 2;
/// Limit on the bytes in all segments of a file, unless the number of its workers is set.
const HELD_BYTES_MAX: usize = 32 << 20;

/// The kernel is queried for at most this fraction (1/n) of the time.
const ASKED_SHARE: u32 = 50;

/// Progress of a large file: written, reported, and with writeback started.
#[derive(Default)]
struct Progress {
    told: u64,
    /// Time before which the kernel is not queried for the bytes on the device.
    ask_after: Option<Instant>,
    undrained: u64,
    /// Writeback was started up to this offset.
    flushed: u64,
    /// A worker was asked to start writeback up to this offset.
    to_flush: u64,
}

impl Progress {
    /// Returns the bytes not on the device yet, if the kernel can tell. It inspects every page of the file for that,
    /// so it is queried rarely.
    fn undrained(&mut self, to: BorrowedFd<'_>) -> Option<u64> {
        let begun = Instant::now();
        if self.ask_after.is_some_and(|after| begun < after) {
            return Some(self.undrained);
        }
        let bytes = cache::undrained_bytes(to);
        self.undrained = bytes.unwrap_or(0);
        self.ask_after = Some(begun + ASKED_SHARE * begun.elapsed());
        bytes
    }
}

/// Idle workers that may help with a large file.
pub(super) trait Helpers {
    /// Asks one idle worker to help with a file.
    fn call(&self, shared: Arc<SharedCopy>);

    /// Returns whether the current worker is about to park.
    fn is_shut_out(&self) -> bool;
}

/// A file whose content is being moved.
pub struct SharedCopy {
    segments: Segments,
    size: u64,
    large: bool,
    way: CopyMethod,
    devices: (u64, u64),
    in_kernel: AtomicBool,
    uncached: AtomicBool,
    /// More workers pay, as far as is known.
    pays: AtomicBool,
    /// A unit for helpers waits in a queue.
    offered: AtomicBool,
    /// Number of workers that move segments, including the owner.
    workers: AtomicUsize,
    workers_max: usize,
    /// Workers leave if they slow each other down.
    measured: bool,
    progress: Mutex<Progress>,
    /// Bytes that helpers moved or found to be holes, as counted on their lanes.
    by_helpers: AtomicU64,
}

impl SharedCopy {
    /// Returns the device that it is read from.
    pub(super) fn source_device(&self) -> u64 {
        self.devices.0
    }

    /// Returns how many workers pay, including the owner, as far as is known.
    fn crew(&self) -> usize {
        match self.pays.load(Relaxed) {
            true => self.workers_max,
            false if self.way.to_foreign => BESIDE_WRITES.min(self.workers_max),
            false => 1,
        }
    }

    fn comes(&self) -> bool {
        // A copy inside the kernel is not divided.
        !self.in_kernel.load(Relaxed)
            && self.segments.has_more()
            && self
                .workers
                .fetch_update(Relaxed, Relaxed, |now| (now < self.crew()).then_some(now + 1))
                .is_ok()
    }
}

/// A worker's part in moving a file.
struct Participant<'a> {
    at: &'a Station<'a>,
    shared: &'a Arc<SharedCopy>,
    from: BorrowedFd<'a>,
    to: BorrowedFd<'a>,
    helpers: Option<&'a dyn Helpers>,
    owns: bool,
}

impl Participant<'_> {
    /// Counts bytes that the owner of the file has not moved itself.
    fn count(&self, bytes: u64) {
        if !self.owns {
            self.shared.by_helpers.fetch_add(bytes, Relaxed);
        }
    }
}

impl Mover<'_> {
    /// Moves the content of a file of `size` bytes in segments. Sets `by_helpers` to the bytes that others moved or
    /// found to be holes, as counted on their lanes.
    ///
    /// # Errors
    /// [`Stop`]; the target then holds a prefix of the source.
    pub(super) fn copy_shared(
        &mut self,
        at: &Station<'_>,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        size: u64,
        way: CopyMethod,
        helpers: Option<&dyn Helpers>,
        by_helpers: &mut u64,
    ) -> Result<(), Stop> {
        let (workers_max, measured) = match self.jobs_per_file {
            Jobs::Fixed(jobs) => (jobs, false),
            Jobs::Auto => ((HELD_BYTES_MAX / way.segment.max(1)).max(2), true),
        };
        let shared = Arc::new(SharedCopy {
            segments: Segments::new(size),
            size,
            large: size >= LARGE_BYTES_MIN,
            devices: self.pair.devices,
            in_kernel: AtomicBool::new(way.in_kernel),
            uncached: AtomicBool::new(way.uncached),
            pays: AtomicBool::new(!measured || way.read_ahead.is_some()),
            offered: AtomicBool::new(false),
            workers: AtomicUsize::new(1),
            workers_max,
            measured,
            progress: Mutex::default(),
            by_helpers: AtomicU64::new(0),
            way,
        });
        let helpers = helpers.filter(|_| shared.way.shared);
        let participant = Participant { at, shared: &shared, from, to, helpers, owns: true };
        if shared.way.in_kernel {
            self.copy_in_kernel(&participant);
        }
        self.pull(&participant);
        let (fds, stop) = shared.segments.close();
        // Only closing this duplicate of the target may report a failed write.
        let closed = fds.map_or(Ok(()), |fds| file::close(fds.to));
        *by_helpers = shared.by_helpers.load(Relaxed);
        if let Some(stop) = stop {
            return Err(stop);
        }
        closed.map_err(writing)?;
        // Possibly no helper came for the last step.
        self.flush_rest(&participant);
        match shared.way.in_kernel {
            true => still_holds(from, size),
            false => Ok(()),
        }
    }

    /// Helps with a file: starts the requested writeback, then moves segments.
    pub(super) fn help(
        &mut self,
        at: &Station<'_>,
        shared: &Arc<SharedCopy>,
        helpers: &dyn Helpers,
    ) {
        shared.offered.store(false, Relaxed);
        let Some(fds) = shared.segments.enter() else { return };
        let (from, to) = (fds.from.as_fd(), fds.to.as_fd());
        let helpers = Some(helpers);
        let participant = Participant { at, shared, from, to, helpers, owns: false };
        self.flush_asked(&participant);
        if shared.comes() {
            self.pair.begin(shared.devices);
            self.pull(&participant);
            shared.workers.fetch_sub(1, Relaxed);
        }
        shared.segments.leave(fds);
    }

    /// Moves segments until none is left for this worker.
    fn pull(&mut self, participant: &Participant<'_>) {
        let Participant { at, shared, .. } = participant;
        let mut watch = Watch::new();
        loop {
            if at.is_over() {
                return shared.segments.stop(Stop::Asked);
            }
            if !participant.owns && participant.helpers.is_some_and(|helpers| helpers.is_shut_out())
            {
                return;
            }
            let segment = at.stride(shared.way.segment) as u64;
            let Some(segment) = self.take(participant, segment) else { return };
            if shared.workers.load(Relaxed) < shared.crew() {
                self.offer(participant);
            }
            if let Err(stop) = self.segment(participant, segment, &mut watch) {
                return shared.segments.stop(stop);
            }
            if shared.measured
                && let Some(pays) = watch.judge()
            {
                shared.pays.store(pays, Relaxed);
                if !participant.owns && shared.workers.load(Relaxed) > shared.crew() {
                    return;
                }
            }
        }
    }

    fn take(&mut self, participant: &Participant<'_>, len_max: u64) -> Option<Segment> {
        let Participant { at, shared, from, .. } = participant;
        shared.segments.take(len_max, |offset| {
            if !shared.way.holes {
                return Ok(Some((offset, shared.size)));
            }
            at.step(Phase::Read, 1);
            match file::next_data(*from, offset) {
                Ok(None) => {
                    // SEEK_DATA finds nothing past the end either: the file may have shrunk.
                    still_holds(*from, shared.size)?;
                    self.passed_hole(participant, shared.size - offset);
                    Ok(None)
                }
                Ok(Some((start, end))) => {
                    self.passed_hole(participant, start.min(shared.size).saturating_sub(offset));
                    Ok(Some((start, end)))
                }
                // The file system does not support it: treat everything as data.
                Err(_) => Ok(Some((offset, shared.size))),
            }
        })
    }

    /// Asks for one more worker, unless a request is pending.
    fn offer(&self, participant: &Participant<'_>) {
        let Participant { shared, from, to, .. } = participant;
        let Some(helpers) = participant.helpers else { return };
        if shared.offered.load(Relaxed) || !shared.segments.has_more() {
            return;
        }
        let duplicate = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().ok();
        let opened =
            shared.segments.open(|| Some(FileFds { from: duplicate(*from)?, to: duplicate(*to)? }));
        if opened && !shared.offered.swap(true, Relaxed) {
            helpers.call(Arc::clone(shared));
        }
    }

    /// Reads a segment, waits for its turn and writes it.
    fn segment(
        &mut self,
        participant: &Participant<'_>,
        segment: Segment,
        watch: &mut Watch,
    ) -> Result<(), Stop> {
        let Participant { at, shared, from, .. } = participant;
        let len = segment.len as usize;
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.len() < len {
            // Keep the buffer: the next file is probably similar.
            buffer = LazyBuffer::zeroed(len.max(shared.way.segment));
        }
        let space = &mut buffer[..len];
        let moved = (|| {
            at.step(Phase::Read, 1);
            let begun = Instant::now();
            if let Some(window) = shared.way.read_ahead {
                cache::read_ahead(*from, segment.offset, segment.len, window);
            }
            let got = file::read_full_at(*from, space, segment.offset).map_err(reading)?;
            watch.read(begun);
            if got < len {
                return Err(Stop::Changed);
            }
            let begun = Instant::now();
            let waits = |writes| {
                if writes {
                    at.turn(Phase::Write);
                }
            };
            let is_ours = shared.segments.turn(segment, waits);
            watch.queued(begun);
            if !is_ours {
                return Ok(());
            }
            self.write(participant, space, segment.offset)?;
            self.has_moved(participant, segment.offset + segment.len, segment.len);
            shared.segments.done();
            Ok(())
        })();
        self.buffer = buffer;
        moved
    }

    fn write(
        &mut self,
        participant: &Participant<'_>,
        content: &[u8],
        offset: u64,
    ) -> Result<(), Stop> {
        let Participant { at, shared, to, .. } = participant;
        at.pace(content.len() as u64);
        if self.context.mode != TargetMode::Real {
            return Ok(());
        }
        at.step(Phase::Write, 1);
        if shared.way.zeroes_to_holes {
            let punches = shared.way.punches;
            return write_without_zeroes(*to, content, offset, punches).map_err(writing);
        }
        let uncached = shared.uncached.load(Relaxed);
        match file::write_all_at(*to, content, offset, uncached) {
            Err(error) if uncached && errno::is(&error, errno::EOPNOTSUPP) => {
                shared.uncached.store(false, Relaxed);
                self.pair.no_uncached = true;
                file::write_all_at(*to, content, offset, false).map_err(writing)
            }
            other => other.map_err(writing),
        }
    }

    /// Lets the kernel copy as far as it can. No other worker helps meanwhile.
    fn copy_in_kernel(&mut self, participant: &Participant<'_>) {
        let Participant { at, shared, to, .. } = participant;
        let mut tried = !shared.way.to_foreign;
        while shared.in_kernel.load(Relaxed) {
            if at.is_over() {
                return shared.segments.stop(Stop::Asked);
            }
            let most = if tried { WRITEBACK_BYTES } else { TRIED_BYTES };
            let most = at.stride(most as usize) as u64;
            let Some(segment) = self.take(participant, most) else { return };
            if let Err(stop) = self.segment_in_kernel(participant, segment) {
                return shared.segments.stop(stop);
            }
            if !tried && shared.in_kernel.load(Relaxed) {
                tried = true;
                // The copy went through this machine's cache, so the file system reads and writes locally, in small
                // sequential steps. A server-side copy caches nothing.
                if cache::cached_bytes(*to).is_some_and(|bytes| bytes >= segment.len / 2) {
                    self.pair.no_range = true;
                    shared.in_kernel.store(false, Relaxed);
                }
            }
        }
    }

    fn segment_in_kernel(
        &mut self,
        participant: &Participant<'_>,
        segment: Segment,
    ) -> Result<(), Stop> {
        let Participant { at, shared, from, to, .. } = participant;
        let (mut offset, end) = (segment.offset, segment.offset + segment.len);
        while offset < end && shared.in_kernel.load(Relaxed) {
            at.pace(end - offset);
            at.step(Phase::Write, 1);
            match file::copy_range(*from, *to, offset, (end - offset) as usize) {
                // Some file systems return 0 for what they cannot copy: fall back to reading.
                Ok(0) => shared.in_kernel.store(false, Relaxed),
                Ok(moved) => {
                    offset += moved as u64;
                    self.has_moved(participant, offset, moved as u64);
                }
                Err(error) => match error.raw_os_error() {
                    Some(errno::EIO) => return Err(reading(error)),
                    Some(errno::ENOSPC | errno::EDQUOT | errno::EFBIG) => {
                        return Err(writing(error));
                    }
                    _ => {
                        self.pair.no_range = true;
                        shared.in_kernel.store(false, Relaxed);
                    }
                },
            }
        }
        // Copy the rest by reading and writing.
        let mut buffer = std::mem::take(&mut self.buffer);
        let rest = (|| {
            while offset < end {
                let len = (end - offset).min(at.stride(buffer.len()) as u64) as usize;
                let space = &mut buffer[..len];
                at.step(Phase::Read, 1);
                if file::read_full_at(*from, space, offset).map_err(reading)? < len {
                    return Err(Stop::Changed);
                }
                self.write(participant, space, offset)?;
                offset += len as u64;
                self.has_moved(participant, offset, len as u64);
            }
            Ok(())
        })();
        self.buffer = buffer;
        shared.segments.done();
        rest
    }

    /// Records a hole in the source, in bytes.
    fn passed_hole(&self, participant: &Participant<'_>, bytes: u64) {
        participant.at.lane.settle(bytes, 0);
        participant.count(bytes);
    }

    /// Records `bytes` more in place, up to `reached`: reports them and requests writeback.
    fn has_moved(&self, participant: &Participant<'_>, reached: u64, bytes: u64) {
        let Participant { at, shared, to, .. } = participant;
        at.lane.bytes(bytes);
        at.lane.completions(1);
        participant.count(bytes);
        if !shared.large {
            return;
        }
        let mut progress = shared.progress.lock();
        if reached - progress.told < WRITEBACK_BYTES && reached < shared.size {
            return;
        }
        progress.told = reached;
        let on_disk = self.context.mode == TargetMode::Real && !shared.way.in_memory;
        // On the owner's lane, which is cleared at the end of the file.
        if participant.owns && on_disk {
            let undrained = progress.undrained(*to).unwrap_or(0);
            at.lane.undrained(undrained);
        }
        if !on_disk || shared.uncached.load(Relaxed) || !shared.way.drains {
            return;
        }
        // The worker asked last time has not come: all others are busy.
        let is_late = progress.flushed < progress.to_flush;
        progress.to_flush = reached;
        drop(progress);
        match is_late || participant.helpers.is_none() {
            true => self.flush_rest(participant),
            false => self.offer(participant),
        }
    }

    /// Starts writeback on a copying worker if no other came. For a network or FUSE file system it might wait for
    /// answers: there writeback starts by itself, at close(2) at the latest.
    fn flush_rest(&self, participant: &Participant<'_>) {
        if !participant.shared.way.to_foreign {
            self.flush_asked(participant);
        }
    }

    /// Starts the requested writeback.
    fn flush_asked(&self, participant: &Participant<'_>) {
        let mut progress = participant.shared.progress.lock();
        let (from, to) = (progress.flushed, progress.to_flush);
        progress.flushed = to;
        drop(progress);
        if from < to {
            participant.at.turn(Phase::Write);
            // An optimisation only: a failure affects nothing but time.
            drop(file::start_writeback(participant.to, from, to - from));
        }
    }
}

// The segments of one file: assigns byte ranges to readers and orders the writes.
//
// Several workers read at once, each its own segment. Writes are in order: a worker that has read its segment waits
// until all earlier ones are written. So the target grows from beginning to end as with one worker, and always holds
// a prefix of the source: the guarantees for killed runs and `--partial` do not depend on the number of workers, and
// file systems that only take writes in order (many in front of object stores) work. It costs little, as a buffered
// write holds the lock of its inode on nearly all file systems.

/// Number of condition variables for turns: the end of a segment wakes one of them.
const TURNS: usize = 16;

/// Source and target descriptors of a file, shared by its workers.
pub(super) struct FileFds {
    pub from: OwnedFd,
    pub to: OwnedFd,
}

/// A range of a file that one worker moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Number of segments before it.
    pub number: u64,
    pub offset: u64,
    pub len: u64,
}

/// State of a file's segments; see the module.
pub(super) struct Segments {
    size: u64,
    order: Mutex<Order>,
    turns: [Condvar; TURNS],
    left: Condvar,
}

#[derive(Default)]
struct Order {
    /// Start of the next segment, and end of its data range.
    next: u64,
    data_end: u64,
    /// Number of segments taken.
    taken: u64,
    /// Number of finished segments; they are the first ones.
    done: u64,
    /// The segment whose turn it is is being written.
    is_writing: bool,
    /// No further segment may be taken or written.
    is_over: bool,
    /// Reason, if that is not the end of the file.
    stop: Option<Stop>,
    /// Number of workers besides the owner.
    others: usize,
    /// Descriptors that they use; `None` before helpers are allowed, and after the end.
    fds: Option<Arc<FileFds>>,
}

impl Segments {
    /// Returns the segments of a file of `size` bytes.
    pub(super) fn new(size: u64) -> Segments {
        Segments { size, order: Mutex::default(), turns: Default::default(), left: Condvar::new() }
    }

    /// Takes the next segment, of at most `len_max` bytes; `None` if none is left. `find` returns the range of the
    /// next data at or after an offset, `None` if only a hole is left.
    pub(super) fn take(
        &self,
        len_max: u64,
        find: impl FnOnce(u64) -> Result<Option<(u64, u64)>, Stop>,
    ) -> Option<Segment> {
        let mut order = self.order.lock();
        if order.is_over || order.next >= self.size {
            return None;
        }
        if order.next >= order.data_end {
            match find(order.next) {
                Ok(Some((start, end))) => {
                    order.next = start.max(order.next);
                    order.data_end = end.min(self.size);
                }
                Ok(None) => order.next = self.size,
                Err(stop) => {
                    drop(order);
                    self.stop(stop);
                    return None;
                }
            }
        }
        let len = order.data_end.saturating_sub(order.next).min(len_max.max(1));
        if len == 0 {
            return None;
        }
        let segment = Segment { number: order.taken, offset: order.next, len };
        order.next += len;
        order.taken += 1;
        Some(segment)
    }

    /// Returns whether segments are left to take.
    pub(super) fn has_more(&self) -> bool {
        let order = self.order.lock();
        !order.is_over && order.next < self.size
    }

    /// Waits until all earlier segments are done; returns `false` if this one must not be written any more. `waits` is
    /// called before a wait, with whether another segment is being written.
    pub(super) fn turn(&self, segment: Segment, waits: impl FnOnce(bool)) -> bool {
        let mut order = self.order.lock();
        if order.done < segment.number && !order.is_over {
            waits(order.is_writing);
        }
        while order.done < segment.number && !order.is_over {
            self.turns[segment.number as usize % TURNS].wait(&mut order);
        }
        order.is_writing = true;
        !order.is_over
    }

    /// Records that the current segment is done.
    pub(super) fn done(&self) {
        let mut order = self.order.lock();
        order.done += 1;
        order.is_writing = false;
        self.turns[order.done as usize % TURNS].notify_all();
    }

    /// Ends everything early; the first reason counts.
    pub(super) fn stop(&self, stop: Stop) {
        let mut order = self.order.lock();
        order.is_over = true;
        order.stop.get_or_insert(stop);
        for turn in &self.turns {
            turn.notify_all();
        }
    }

    /// Allows helpers; `make` makes the descriptors they use.
    pub(super) fn open(&self, make: impl FnOnce() -> Option<FileFds>) -> bool {
        let mut order = self.order.lock();
        if order.fds.is_none() {
            order.fds = make().map(Arc::new);
        }
        order.fds.is_some()
    }

    /// Registers a helper. Returns `None` if nothing is left for it.
    pub(super) fn enter(&self) -> Option<Arc<FileFds>> {
        let mut order = self.order.lock();
        let fds = order.fds.clone()?;
        order.others += 1;
        Some(fds)
    }

    /// Unregisters a helper.
    pub(super) fn leave(&self, fds: Arc<FileFds>) {
        let mut order = self.order.lock();
        drop(fds);
        order.others -= 1;
        if order.others == 0 {
            self.left.notify_all();
        }
    }

    /// Called by the owner when no segment is left: waits until the helpers are gone, admits no more, and returns
    /// their descriptors and the reason of an early end.
    pub(super) fn close(&self) -> (Option<FileFds>, Option<Stop>) {
        let mut order = self.order.lock();
        while order.others > 0 {
            self.left.wait(&mut order);
        }
        order.is_over = true;
        (order.fds.take().and_then(Arc::into_inner), order.stop.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns ranges of data and the size of a file, from alternating lengths of data and holes.
    fn stretches(lengths: &[(u64, u64)]) -> (Vec<(u64, u64)>, u64) {
        let mut at = 0;
        let mut found = Vec::new();
        for (data, hole) in lengths {
            found.push((at, at + data));
            at += data + hole;
        }
        (found, at)
    }

    proptest! {
        /// Every byte of data is assigned once, no hole is, and writes are in order, for any assignment and any
        /// durations.
        #[test]
        fn segments_cover_the_data_once_and_in_order(
            lengths in proptest::collection::vec((1u64..40, 0u64..9), 0..8),
            len_max in 1u64..17,
            workers in 1usize..5,
        ) {
            let (data, size) = stretches(&lengths);
            let segments = Segments::new(size);
            let find = |offset: u64| Ok(data
                .iter()
                .find(|(_, end)| offset < *end)
                .map(|(start, end)| (offset.max(*start), *end)));
            let written = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(|| {
                        while let Some(segment) = segments.take(len_max, find) {
                            assert!((1..=len_max).contains(&segment.len));
                            assert!(segments.turn(segment, |_| ()));
                            written.lock().push((segment.offset, segment.offset + segment.len));
                            segments.done();
                        }
                    });
                }
            });
            let mut joined: Vec<(u64, u64)> = Vec::new();
            for (start, end) in written.into_inner() {
                match joined.last_mut() {
                    Some(last) if last.1 == start && !data.iter().any(|(begin, _)| *begin == start) => {
                        last.1 = end;
                    }
                    _ => joined.push((start, end)),
                }
            }
            prop_assert_eq!(joined, data);
            prop_assert!(!segments.has_more());
            let (fds, stop) = segments.close();
            prop_assert!(fds.is_none() && stop.is_none());
        }
    }

    #[test]
    fn a_stop_ends_all_waiting_and_the_first_reason_counts() {
        let segments = Segments::new(100);
        let find = |offset| Ok(Some((offset, 100)));
        let first = segments.take(10, find).unwrap();
        let second = segments.take(10, find).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| segments.turn(second, |_| ()));
            segments.stop(Stop::Changed);
            segments.stop(Stop::Asked);
            assert!(!waiting.join().unwrap());
        });
        assert!(!segments.turn(first, |_| ()));
        assert_eq!(segments.take(10, find), None);
        assert!(matches!(segments.close(), (None, Some(Stop::Changed))));
    }

    #[test]
    fn data_that_cannot_be_found_is_a_reason() {
        let segments = Segments::new(100);
        assert_eq!(segments.take(10, |_| Err(Stop::Changed)), None);
        assert!(matches!(segments.close(), (None, Some(Stop::Changed))));
    }

    #[test]
    fn others_come_and_go_and_none_comes_after_the_end() {
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let segments = Segments::new(10);
        assert!(segments.enter().is_none());
        assert!(!segments.open(|| None));
        assert!(segments.open(|| Some(FileFds { from: file(), to: file() })));
        let fds = segments.enter().unwrap();
        std::thread::scope(|scope| {
            let closed = scope.spawn(|| segments.close());
            segments.leave(fds);
            assert!(closed.join().unwrap().0.is_some(), "the owner gets them back");
        });
        assert!(segments.enter().is_none());
    }
}
