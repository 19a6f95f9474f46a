//! The loop of a clone, compiled anew for each engine: which block is next, when it may go, its way there and back.

use super::meter::Meter;
use super::pace::{DepthResult, DepthSearch, RateSchedules};
use super::peers::{FlowSeat, Peers};
use crate::content::Filler;
use crate::engine::{Completion, Engine, Failure, Submission, Transfer};
use crate::job::Job;
use crate::pattern::{Block, Extent, Picker};
use crate::random::{Random, seed_of};
use hakobu_sys::OwnedFd;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// A block, or a sync, between its start and its end. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) block: Block,
    /// Bytes of it that went already.
    pub(super) moved: u32,
    /// It is not a block: fsync(2) or fdatasync(2).
    pub(super) sync: bool,
    /// Its I/O priority; 0 is that of the thread.
    pub(super) priority: u16,
    /// Time when it was ready to go; where a rate is set, when it should have gone.
    pub(super) start: u64,
    /// Time when it had been submitted.
    pub(super) issue: u64,
}

impl InFlight {
    /// Content of an unused slot.
    pub(super) const NONE: InFlight = InFlight {
        block: Block { file: 0, write: false, bytes: 0, offset: 0 },
        moved: 0,
        sync: false,
        priority: 0,
        start: 0,
        issue: 0,
    };
}

/// Purpose of the numbers by chance that priorities are drawn with.
const PRIORITIES: u64 = 5;

/// State of a clone at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct CloneContext<'a> {
    pub(super) job: &'a Job,
    /// Number of the clone, from 0.
    pub(super) clone: u32,
    /// Open; none for the engine `null`.
    pub(super) files: &'a [OwnedFd],
    /// Their names, for errors.
    pub(super) paths: &'a [&'a Path],
    pub(super) extents: &'a [Extent],
    pub(super) peers: &'a Peers,
}

/// A clone at work.
pub(super) struct CloneLoop<'a, E> {
    pub(super) engine: E,
    pub(super) job: &'a Job,
    pub(super) files: &'a [OwnedFd],
    pub(super) paths: &'a [&'a Path],
    pub(super) picker: Picker,
    pub(super) filler: Option<Filler>,
    pub(super) meter: Meter<'a>,
    pub(super) pace: Option<RateSchedules>,
    /// Block of each slot, and the free slots.
    pub(super) flights: Vec<InFlight>,
    pub(super) idle: Vec<usize>,
    pub(super) in_flight: u32,
    /// Queued but not begun, in their order where the moment of that matters.
    pub(super) queued: u32,
    pub(super) waiting: VecDeque<usize>,
    pub(super) landed: Vec<Completion>,
    /// Blocks in flight at most, and to how few they sink before more are queued.
    pub(super) depth: u32,
    pub(super) depth_low: u32,
    /// Number of operations begun at once, and reaped at least and at most.
    pub(super) batch: u32,
    pub(super) least: u32,
    pub(super) most: u32,
    /// Completions are looked for after each block (`iodepth_batch_complete_min=0`).
    pub(super) polls: bool,
    /// The block that fills the queue is begun by the call that waits for one to land.
    pub(super) merges: bool,
    /// Something may follow a block: a sync, or a pause.
    pub(super) has_pacing: bool,
    /// Writes since the last fsync and fdatasync, the file of the last one, blocks since the last
    /// pause.
    pub(super) unsynced: [u32; 2],
    pub(super) written: u32,
    pub(super) unpaused: u32,
    /// Blocks that are read are checked.
    pub(super) checks_reads: bool,
    /// Something is done with each block that landed: it is checked, or its latency looked at.
    pub(super) looks_closely: bool,
    /// The jobs that run with it, its place in a flow while it is at work, and its search for a depth.
    pub(super) peers: &'a Peers,
    pub(super) seat: Option<FlowSeat<'a>>,
    pub(super) search: Option<DepthSearch>,
    pub(super) found: Option<DepthResult>,
    /// For priorities of single blocks.
    pub(super) chance: Option<Random>,
    /// Written blocks that wait to be read again (`verify_backlog`).
    pub(super) backlog: VecDeque<Block>,
    /// A wrong block ends the job, and one was found.
    pub(super) gives_up: bool,
    /// There is no more to do, and that is not a failure: no room is left. And the blocks that did not go any
    /// more.
    pub(super) ended: bool,
    pub(super) unsent: Vec<Block>,
    /// Errors that did not end it, and the first of them.
    pub(super) tolerated: (u64, i32),
    /// Number of the pass: tells blocks from those that were written before.
    pub(super) generation: u64,
    /// Written blocks are being read again.
    pub(super) verifying: bool,
    pub(super) verified: u64,
    pub(super) wrong: u64,
    /// Description of the first wrong block.
    pub(super) first_wrong: Option<String>,
}

impl<'a, E: Engine> CloneLoop<'a, E> {
    /// Makes everything ready but begins nothing.
    pub(super) fn new(
        mut engine: E,
        place: &CloneContext<'a>,
        meter: Meter<'a>,
    ) -> CloneLoop<'a, E> {
        let CloneContext { job, clone, files, paths, extents, peers } = *place;
        let depth = if E::WAITS { 1 } else { job.depth.max(1) };
        let mut filler = job.rw.writes.then(|| Filler::new(job, clone));
        for slot in 0..depth as usize {
            let buffer = engine.buffer(slot);
            // Fault the pages in before anything is measured.
            buffer.fill(0);
            if let Some(filler) = &mut filler {
                filler.first(buffer);
            }
        }
        let within = |count: u32, otherwise| if count == 0 { otherwise } else { count.min(depth) };
        let least = job.batch_complete_min.min(depth);
        let checks_reads = job.verify.is_some() && !job.rw.writes && !job.checks.only_written;
        let search = job.aim.map(|aim| DepthSearch::new(aim, depth));
        CloneLoop {
            depth_low: within(job.depth_low, depth),
            batch: within(job.batch_submit, depth),
            most: within(job.batch_complete_max, 1).max(least).max(1),
            polls: least == 0,
            // The time of submission matters otherwise.
            merges: !meter.clocks.slat,
            has_pacing: (job.rw.writes && job.fsync_every | job.fdatasync_every > 0)
                || !job.think.is_zero(),
            checks_reads,
            looks_closely: checks_reads || search.is_some(),
            peers,
            seat: None,
            found: None,
            chance: job.priorities.of_blocks().then(|| {
                let base = if job.random_repeat { job.seed } else { fastrand::u64(..) };
                Random::new(base ^ seed_of(&job.name) ^ u64::from(clone), PRIORITIES)
            }),
            backlog: VecDeque::new(),
            gives_up: false,
            ended: false,
            unsent: Vec::new(),
            tolerated: (0, 0),
            pace: RateSchedules::new(job, clone),
            flights: vec![InFlight::NONE; depth as usize],
            idle: (0..depth as usize).rev().collect(),
            in_flight: 0,
            queued: 0,
            waiting: VecDeque::with_capacity(depth as usize),
            landed: Vec::with_capacity(depth as usize),
            unsynced: [0; 2],
            written: 0,
            unpaused: 0,
            generation: 0,
            verifying: false,
            verified: 0,
            wrong: 0,
            first_wrong: None,
            engine,
            job,
            files,
            paths,
            picker: Picker::new(job, clone, extents),
            filler,
            meter,
            depth: search.as_ref().map_or(depth, |search| search.depth),
            search,
            least,
        }
    }

    /// Does the job; the depth that a search for one ended with. What was measured is in `meter` afterwards, after a
    /// failure as well.
    pub(super) fn work(&mut self) -> Result<Option<u32>, Failure> {
        self.meter.begin();
        self.seat = self.peers.seat(self.job);
        let done = self.passes();
        if let Some(seat) = self.seat.take() {
            seat.leave();
        }
        done?;
        if let Some(sentence) = self.meter.too_slow.take() {
            return Err(Failure { errno: 0, sentence });
        }
        self.depth_found()
    }

    /// Everything as often as the job says.
    fn passes(&mut self) -> Result<(), Failure> {
        let by_time = self.job.time_based && self.job.runtime.is_some();
        let verifies =
            self.job.verify.is_some() && self.job.rw.writes && !self.job.checks.only_written;
        let mut passes = 0;
        loop {
            let blocks = self.pass(verifies)?;
            if self.ended && self.job.fills {
                self.cut_short()?;
            }
            if verifies && !self.gives_up && !self.meter.over {
                self.verify(blocks)?;
            }
            passes += 1;
            // A pass without a block would be followed by others, for ever.
            let ends = self.meter.over || self.gives_up || self.ended || blocks == 0;
            if ends || !by_time && passes >= self.job.loops.max(1) {
                break;
            }
            self.picker.again();
            self.generation += 1;
        }
        self.drain()?;
        if self.job.end_fsync && self.job.rw.writes {
            self.sync_all()?;
        }
        Ok(())
    }

    /// Everything once, or until it is over; returns the blocks that were begun.
    fn pass(&mut self, verifies: bool) -> Result<u64, Failure> {
        let mut blocks = 0;
        let backlog = self.job.checks.backlog.filter(|_| verifies);
        while !self.meter.over
            && !self.ended
            && let Some(block) = self.picker.next()
        {
            if self.has_pacing {
                self.sync_if_due()?;
            }
            if self.seat.is_some() {
                self.keep_share()?;
                if self.meter.over {
                    break;
                }
            }
            let mut intended = None;
            if self.pace.is_some() {
                intended = self.hold(&block)?;
                if self.meter.over {
                    break;
                }
            }
            self.send(block, intended)?;
            blocks += 1;
            if self.has_pacing {
                self.keep_pace(&block)?;
            }
            if let (Some(most), true) = (backlog, block.write) {
                self.remember(block, most)?;
                if self.gives_up {
                    break;
                }
            }
        }
        Ok(blocks)
    }

    /// Sends a block on its way.
    #[inline(always)]
    pub(super) fn send(&mut self, block: Block, intended: Option<u64>) -> Result<(), Failure> {
        let slot = if E::WAITS { 0 } else { self.free_slot()? };
        if let (true, Some(filler)) = (block.write, &mut self.filler) {
            let buffer = self.engine.buffer(slot);
            if let Some(part) = buffer.get_mut(..block.bytes as usize) {
                filler.before_write(part, &block, self.generation);
            }
        }
        let now = if self.meter.timed { self.meter.clock.now() } else { 0 };
        let start = intended.unwrap_or(now);
        let priority = match &mut self.chance {
            Some(chance) if !self.verifying => {
                let place = chance.below(100);
                self.job.priorities.draw(block.write, u64::from(block.bytes), place)
            }
            _ => 0,
        };
        let flight = InFlight { block, moved: 0, sync: false, priority, start, issue: now };
        self.flights[slot] = flight;
        self.submit(slot, &flight)
    }

    /// Moves a block, or queues it.
    #[inline(always)]
    fn submit(&mut self, slot: usize, flight: &InFlight) -> Result<(), Failure> {
        match self.engine.transfer(slot, rest(flight)) {
            Submission::Done(result) => {
                let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
                self.engine.settle();
                if !E::WAITS {
                    self.in_flight += 1;
                }
                self.complete(slot, result, end)?;
                self.meter.look(end);
                Ok(())
            }
            Submission::Queued => self.enqueued(slot),
        }
    }

    /// An operation is done.
    #[inline(always)]
    pub(super) fn complete(&mut self, slot: usize, result: i64, end: u64) -> Result<(), Failure> {
        let flight = &self.flights[slot];
        let whole = result == i64::from(flight.block.bytes - flight.moved) && !flight.sync;
        if !whole || self.verifying || self.looks_closely {
            return self.complete_other(slot, result, end);
        }
        self.meter.landed(flight, end);
        if !E::WAITS {
            self.in_flight -= 1;
            self.idle.push(slot);
        }
        Ok(())
    }
}

/// The rest of a block.
#[inline(always)]
pub(super) fn rest(flight: &InFlight) -> Transfer {
    Transfer {
        file: flight.block.file,
        write: flight.block.write,
        begin: flight.moved,
        bytes: flight.block.bytes - flight.moved,
        offset: flight.block.offset + u64::from(flight.moved),
        priority: flight.priority,
    }
}

impl<E: Engine> CloneLoop<'_, E> {
    /// A slot in which nothing is in flight.
    #[inline(always)]
    pub(super) fn free_slot(&mut self) -> Result<usize, Failure> {
        if self.idle.is_empty() {
            self.make_room(true)?;
        }
        Ok(self.idle.pop().unwrap_or_default())
    }

    /// An operation was queued: begins a batch, if this was the last of it, and makes room if there
    /// is none.
    #[inline(always)]
    pub(super) fn enqueued(&mut self, slot: usize) -> Result<(), Failure> {
        self.in_flight += 1;
        self.queue(slot);
        let full = self.in_flight >= self.depth;
        if full && !self.merges || !full && self.queued >= self.batch {
            self.commit()?;
        }
        if full || self.polls {
            self.make_room(full)?;
        }
        Ok(())
    }

    /// Blocks in flight wait to be begun.
    #[inline(always)]
    pub(super) fn queue(&mut self, slot: usize) {
        self.queued += 1;
        if !self.merges {
            self.waiting.push_back(slot);
        }
    }

    /// Begins the queued blocks.
    #[inline(always)]
    pub(super) fn commit(&mut self) -> Result<(), Failure> {
        match self.engine.commit() {
            Ok(went) => self.begun(went),
            Err(error) => return Err(self.broken("submitting blocks", &error)),
        }
        Ok(())
    }

    #[inline(always)]
    fn begun(&mut self, went: u32) {
        if went == 0 {
            return;
        }
        self.queued -= went;
        self.meter.depths.submitted(went, self.in_flight);
        if !self.merges {
            let now = self.meter.clock.now();
            for _ in 0..went {
                if let Some(slot) = self.waiting.pop_front() {
                    self.flights[slot].issue = now;
                }
            }
        }
    }

    /// Reaps as much as the job says; where the queue is full, down to the depth at which it is
    /// filled again.
    #[inline(always)]
    pub(super) fn make_room(&mut self, full: bool) -> Result<(), Failure> {
        loop {
            let least = self.least.min(self.in_flight).max(u32::from(full));
            self.reap(least, self.most, None)?;
            if !full || self.in_flight <= self.depth_low && !self.idle.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reaps at least and at most this many, within this time.
    #[inline(always)]
    pub(super) fn reap(
        &mut self,
        least: u32,
        most: u32,
        timeout: Option<Duration>,
    ) -> Result<(), Failure> {
        let mut landed = std::mem::take(&mut self.landed);
        landed.clear();
        match self.engine.reap(least, most.max(least), timeout, &mut landed) {
            Ok(went) => self.begun(went),
            Err(error) => return Err(self.broken("waiting for blocks", &error)),
        }
        let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
        self.meter.depths.completed(landed.len() as u32);
        for (slot, result) in &landed {
            self.complete(*slot, *result, end)?;
        }
        self.landed = landed;
        self.meter.look(end);
        Ok(())
    }

    /// Waits for all that is in flight.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        while !E::WAITS && self.in_flight > 0 {
            self.reap(1, self.depth, None)?;
        }
        Ok(())
    }

    /// Syncs a file, or queues that.
    pub(super) fn sync(&mut self, file: u32, data: bool) -> Result<(), Failure> {
        let slot = if E::WAITS { 0 } else { self.free_slot()? };
        let start = self.meter.clock.now();
        let mut flight = InFlight { sync: true, start, issue: start, ..InFlight::NONE };
        flight.block.file = file;
        self.flights[slot] = flight;
        match self.engine.sync(slot, file, data) {
            Submission::Done(result) => {
                if !E::WAITS {
                    self.in_flight += 1;
                }
                self.complete(slot, result, start)
            }
            Submission::Queued => self.enqueued(slot),
        }
    }
}

/// The kernel wakes a thread that sleeps some microseconds late: the last part of each wait is spent
/// looking at the clock.
const SPIN: Duration = Duration::from_micros(60);

/// Pause of a clone that is ahead of its share, at least.
const PAUSE: Duration = Duration::from_micros(20);

impl<E: Engine> CloneLoop<'_, E> {
    /// Waits until the rate allows a block; returns that moment, in ticks. What lands meanwhile is
    /// reaped at its time. Ends early where all is over.
    pub(super) fn hold(&mut self, block: &Block) -> Result<Option<u64>, Failure> {
        let due_ns = self.pace.as_mut().and_then(|pace| pace.next_ns(block.write, block.bytes));
        let Some(due_ns) = due_ns else { return Ok(None) };
        let due = self.meter.begun.saturating_add(self.meter.clock.ticks(due_ns));
        if self.queued > 0 && self.meter.clock.now() < due {
            self.commit()?;
        }
        self.wait_until(due)?;
        Ok(Some(due))
    }

    /// Waits while this clone is ahead of its share of a flow; what lands meanwhile is reaped.
    pub(super) fn keep_share(&mut self) -> Result<(), Failure> {
        let sleep = self.job.among.flow.map_or(PAUSE, |flow| flow.sleep.max(PAUSE));
        while self.seat.as_ref().is_some_and(|seat| seat.is_ahead()) && !self.meter.over {
            if self.queued > 0 {
                self.commit()?;
            }
            self.wait_until(self.meter.after(sleep))?;
        }
        if let Some(seat) = &mut self.seat {
            seat.advance();
        }
        Ok(())
    }

    /// Waits until a moment, or until all is over.
    pub(super) fn wait_until(&mut self, moment: u64) -> Result<(), Failure> {
        loop {
            let now = self.meter.pass();
            if self.meter.over || now >= moment {
                return Ok(());
            }
            let until = moment.min(self.meter.due);
            let left = Duration::from_nanos(self.meter.clock.between_ns(now, until));
            if self.in_flight > 0 {
                self.reap(1, self.depth, Some(left))?;
            } else if left > SPIN {
                std::thread::sleep(left - SPIN);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Before a block: a sync of the file that was written last, if so many blocks were written
    /// (`fsync`, `fdatasync`). As fio does it: none follows the last block.
    pub(super) fn sync_if_due(&mut self) -> Result<(), Failure> {
        let every = [self.job.fsync_every, self.job.fdatasync_every];
        for (number, every) in every.into_iter().enumerate() {
            if every > 0 && self.unsynced[number] >= every {
                self.unsynced[number] = 0;
                self.sync(self.written, number == 1)?;
            }
        }
        Ok(())
    }

    /// After a block: counts it, and pauses, if so many were done (`thinktime`).
    pub(super) fn keep_pace(&mut self, block: &Block) -> Result<(), Failure> {
        if block.write {
            self.written = block.file;
            self.unsynced = self.unsynced.map(|blocks| blocks.saturating_add(1));
        }
        self.unpaused += 1;
        if !self.job.think.is_zero() && self.unpaused >= self.job.think_blocks.max(1) {
            self.unpaused = 0;
            self.drain()?;
            self.wait_until(self.meter.after(self.job.think))?;
        }
        Ok(())
    }

    /// Syncs all files, one after the other (`end_fsync`).
    pub(super) fn sync_all(&mut self) -> Result<(), Failure> {
        for file in 0..self.paths.len() as u32 {
            self.sync(file, false)?;
        }
        self.drain()
    }
}
