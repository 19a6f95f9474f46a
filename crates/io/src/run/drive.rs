//! The loop of a clone, compiled anew for each engine: which block is next, when it may go, its way
//! there and back.

mod aim;
mod odd;
mod pacing;
mod queue;
mod sentence;
mod verify;

use super::flight::Flight;
use super::meter::Meter;
use super::pace::Pace;
use super::peers::{Peers, Seat};
use crate::Job;
use crate::content::Filler;
use crate::engine::{Engine, Failure, Landed, Queued, Transfer};
use crate::pattern::random::{Random, seed_of};
use crate::pattern::{Block, Extent, Picker};
use aim::{Found, Search};
use hakobu_sys::OwnedFd;
use std::collections::VecDeque;
use std::path::Path;

/// Purpose of the numbers by chance that priorities are drawn with.
const PRIORITIES: u64 = 5;

/// State of a clone at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
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
pub(super) struct Drive<'a, E> {
    pub(super) engine: E,
    job: &'a Job,
    files: &'a [OwnedFd],
    paths: &'a [&'a Path],
    picker: Picker,
    filler: Option<Filler>,
    pub(super) meter: Meter<'a>,
    pace: Option<Pace>,
    /// Block of each slot, and the free slots.
    flights: Vec<Flight>,
    idle: Vec<usize>,
    in_flight: u32,
    /// Queued but not begun, in their order where the moment of that matters.
    queued: u32,
    waiting: VecDeque<usize>,
    landed: Vec<Landed>,
    /// Blocks in flight at most, and to how few they sink before more are queued.
    depth: u32,
    depth_low: u32,
    /// Number of operations begun at once, and reaped at least and at most.
    batch: u32,
    least: u32,
    most: u32,
    /// Completions are looked for after each block (`iodepth_batch_complete_min=0`).
    polls: bool,
    /// The block that fills the queue is begun by the call that waits for one to land.
    merges: bool,
    /// Something may follow a block: a sync, or a pause.
    has_pacing: bool,
    /// Writes since the last fsync and fdatasync, the file of the last one, blocks since the last
    /// pause.
    unsynced: [u32; 2],
    written: u32,
    unpaused: u32,
    /// Blocks that are read are checked.
    checks_reads: bool,
    /// Something is done with each block that landed: it is checked, or its latency looked at.
    looks_closely: bool,
    /// The jobs that run with it, its place in a flow while it is at work, and its search for a depth.
    peers: &'a Peers,
    seat: Option<Seat<'a>>,
    search: Option<Search>,
    found: Option<Found>,
    /// For priorities of single blocks.
    chance: Option<Random>,
    /// Written blocks that wait to be read again (`verify_backlog`).
    backlog: VecDeque<Block>,
    /// A wrong block ends the job, and one was found.
    gives_up: bool,
    /// There is no more to do, and that is not a failure: no room is left. And the blocks that did not go any
    /// more.
    ended: bool,
    unsent: Vec<Block>,
    /// Errors that did not end it, and the first of them.
    pub(super) tolerated: (u64, i32),
    /// Number of the pass: tells blocks from those that were written before.
    generation: u64,
    /// Written blocks are being read again.
    verifying: bool,
    pub(super) verified: u64,
    pub(super) wrong: u64,
    /// Description of the first wrong block.
    pub(super) first_wrong: Option<String>,
}

impl<'a, E: Engine> Drive<'a, E> {
    /// Makes everything ready but begins nothing.
    pub(super) fn new(mut engine: E, place: &Place<'a>, meter: Meter<'a>) -> Drive<'a, E> {
        let Place { job, clone, files, paths, extents, peers } = *place;
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
        let search = job.aim.map(|aim| Search::new(aim, depth));
        Drive {
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
            pace: Pace::new(job, clone),
            flights: vec![Flight::NONE; depth as usize],
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
    fn send(&mut self, block: Block, intended: Option<u64>) -> Result<(), Failure> {
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
        let flight = Flight { block, moved: 0, sync: false, priority, start, issue: now };
        self.flights[slot] = flight;
        self.take_off(slot, &flight)
    }

    /// Moves a block, or queues it.
    #[inline(always)]
    fn take_off(&mut self, slot: usize, flight: &Flight) -> Result<(), Failure> {
        match self.engine.transfer(slot, rest(flight)) {
            Queued::Done(result) => {
                let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
                self.engine.settle();
                if !E::WAITS {
                    self.in_flight += 1;
                }
                self.land(slot, result, end)?;
                self.meter.look(end);
                Ok(())
            }
            Queued::Later => self.enqueued(slot),
        }
    }

    /// An operation is done.
    #[inline(always)]
    pub(super) fn land(&mut self, slot: usize, result: i64, end: u64) -> Result<(), Failure> {
        let flight = &self.flights[slot];
        let whole = result == i64::from(flight.block.bytes - flight.moved) && !flight.sync;
        if !whole || self.verifying || self.looks_closely {
            return self.land_oddly(slot, result, end);
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
fn rest(flight: &Flight) -> Transfer {
    Transfer {
        file: flight.block.file,
        write: flight.block.write,
        begin: flight.moved,
        bytes: flight.block.bytes - flight.moved,
        offset: flight.block.offset + u64::from(flight.moved),
        priority: flight.priority,
    }
}
