//! The content of one large file, moved in segments by its owner and by idle workers.
//!
//! Only the owner opens, creates, settles and publishes the file. The others come through a unit of the pool
//! ([`Helpers::call`]), which waits in the owner's queue as long as more workers pay, and take segments
//! (`content/segments.rs`) until none is left, until they slow each other down, or until the gate excludes them. They
//! also start the writeback of written data, so that the copying worker does not wait for it.

use super::buffer::Buffer;
use super::mover::{LARGE_BYTES_MIN, Mover, Way, still_holds, write_without_zeroes};
use super::segments::{Fds, Segment, Segments};
use super::waits::Watch;
use crate::local::context::TargetMode;
use crate::local::pace::Station;
use crate::failure::{Stop, reading, writing};
use hakobu_core::meter::Phase;
use hakobu_core::unit::Jobs;
use hakobu_sys::{AsFd, BorrowedFd, cache, close, errno, file, space};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
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
pub(in crate::local) trait Helpers {
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
    way: Way,
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
    pub(in crate::local) fn source_device(&self) -> u64 {
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
        way: Way,
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
        let closed = fds.map_or(Ok(()), |fds| close::close(fds.to));
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
    pub(in crate::local) fn help(
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
            match space::next_data(*from, offset) {
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
            shared.segments.open(|| Some(Fds { from: duplicate(*from)?, to: duplicate(*to)? }));
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
            buffer = Buffer::zeroed(len.max(shared.way.segment));
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
