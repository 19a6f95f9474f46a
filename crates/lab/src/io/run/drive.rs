//! The loop of a clone, compiled anew for each engine: which block is next, when it may go, its way
//! there and back.

mod chores;
mod queue;
mod verify;

use super::flight::Flight;
use super::meter::Meter;
use super::pace::Pace;
use crate::io::Job;
use crate::io::content::Filler;
use crate::io::engine::{Engine, Landed, Queued, Transfer};
use crate::io::pattern::{Block, Extent, Picker};
use hakobu_sys::{OwnedFd, errno};
use std::collections::VecDeque;
use std::io::Error;
use std::path::Path;

/// What ends a clone early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) errno: i32,
    pub(super) sentence: String,
}

/// What a clone works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) job: &'a Job,
    /// Which clone, from 0.
    pub(super) clone: u32,
    /// Open; none for the engine `null`.
    pub(super) files: &'a [OwnedFd],
    /// Their names, for errors.
    pub(super) paths: &'a [&'a Path],
    pub(super) extents: &'a [Extent],
}

/// A clone at work.
pub(super) struct Drive<'a, E> {
    engine: E,
    job: &'a Job,
    files: &'a [OwnedFd],
    paths: &'a [&'a Path],
    picker: Picker,
    filler: Option<Filler>,
    pub(super) meter: Meter<'a>,
    pace: Option<Pace>,
    /// What each slot is about, and which of them are free.
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
    /// How many are begun at once, and how many are reaped at least and at most.
    batch: u32,
    least: u32,
    most: u32,
    /// Completions are looked for after each block (`iodepth_batch_complete_min=0`).
    polls: bool,
    /// The block that fills the queue is begun by the call that waits for one to land.
    merges: bool,
    /// Something may follow a block: a sync, or a pause.
    has_chores: bool,
    /// Writes since the last fsync and fdatasync, the file of the last one, blocks since the last
    /// pause.
    unsynced: [u32; 2],
    written: u32,
    unpaused: u32,
    /// What is read has to be right.
    checks_reads: bool,
    /// Which pass it is: what is written can be told from what was written before.
    generation: u64,
    /// Written blocks are being read again.
    verifying: bool,
    pub(super) verified: u64,
    pub(super) wrong: u64,
    /// What the first wrong block was like.
    pub(super) first_wrong: Option<String>,
}

impl<'a, E: Engine> Drive<'a, E> {
    /// Makes everything ready but begins nothing.
    pub(super) fn new(mut engine: E, place: &Place<'a>, meter: Meter<'a>) -> Drive<'a, E> {
        let Place { job, clone, files, paths, extents } = *place;
        let depth = if E::WAITS { 1 } else { job.depth.max(1) };
        let mut filler = job.rw.writes.then(|| Filler::new(job, clone));
        for slot in 0..depth as usize {
            let buffer = engine.buffer(slot);
            // Whatever comes in: the pages are there before anything is measured.
            buffer.fill(0);
            if let Some(filler) = &mut filler {
                filler.first(buffer);
            }
        }
        let within = |count: u32, otherwise| if count == 0 { otherwise } else { count.min(depth) };
        let least = job.batch_complete_min.min(depth);
        Drive {
            depth_low: within(job.depth_low, depth),
            batch: within(job.batch_submit, depth),
            most: within(job.batch_complete_max, 1).max(least).max(1),
            polls: least == 0,
            merges: !meter.needs_issue(),
            has_chores: (job.rw.writes && job.fsync_every | job.fdatasync_every > 0)
                || !job.think.is_zero(),
            checks_reads: job.verify.is_some() && !job.rw.writes,
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
            depth,
            least,
        }
    }

    /// Does the job. What was measured is in `meter` afterwards, after a failure as well.
    pub(super) fn work(&mut self) -> Result<(), Failure> {
        self.meter.begin();
        let by_time = self.job.time_based && self.job.runtime.is_some();
        let mut passes = 0;
        loop {
            let blocks = self.pass()?;
            if self.job.verify.is_some() && self.job.rw.writes {
                self.verify(blocks)?;
            }
            passes += 1;
            // A pass without a block would be followed by others, for ever.
            if self.meter.over || blocks == 0 || !by_time && passes >= self.job.loops.max(1) {
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
    fn pass(&mut self) -> Result<u64, Failure> {
        let mut blocks = 0;
        while !self.meter.over
            && let Some(block) = self.picker.next()
        {
            if self.has_chores {
                self.sync_if_due()?;
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
            if self.has_chores {
                self.do_chores(&block)?;
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
        let flight = Flight { block, moved: 0, sync: false, start, issue: now };
        self.flights[slot] = flight;
        self.take_off(slot, &flight)
    }

    /// Moves a block, or queues it.
    #[inline(always)]
    fn take_off(&mut self, slot: usize, flight: &Flight) -> Result<(), Failure> {
        match self.engine.transfer(slot, rest(flight)) {
            Queued::Done(result) => {
                let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
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

    /// What is left of a block follows at once, as fio(1) does it.
    fn go_on(&mut self, slot: usize) -> Result<(), Failure> {
        let flight = self.flights[slot];
        match self.engine.transfer(slot, rest(&flight)) {
            Queued::Done(result) => {
                let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
                self.land(slot, result, end)
            }
            Queued::Later => {
                self.queue(slot);
                self.commit()
            }
        }
    }

    /// An operation is done.
    #[inline(always)]
    fn land(&mut self, slot: usize, result: i64, end: u64) -> Result<(), Failure> {
        let flight = &self.flights[slot];
        let whole = result == i64::from(flight.block.bytes - flight.moved) && !flight.sync;
        if !whole || self.verifying || self.checks_reads {
            return self.land_oddly(slot, result, end);
        }
        self.meter.landed(flight, end);
        if !E::WAITS {
            self.in_flight -= 1;
            self.idle.push(slot);
        }
        Ok(())
    }

    /// A sync, an error, a part of a block, or a block to be looked at.
    #[cold]
    #[inline(never)]
    fn land_oddly(&mut self, slot: usize, result: i64, end: u64) -> Result<(), Failure> {
        let flight = self.flights[slot];
        let Ok(moved) = u32::try_from(result) else {
            return Err(self.failure(&flight, Error::from_raw_os_error(-result as i32)));
        };
        if flight.sync && self.verifying {
            // It is part of no measurement.
        } else if flight.sync {
            let now = self.meter.clock.now();
            self.meter.sync.record(self.meter.clock.between_ns(flight.start, now));
        } else if moved == 0 {
            return Err(Failure { errno: errno::EIO, ..self.nothing_went(&flight) });
        } else if moved < flight.block.bytes - flight.moved {
            if !self.verifying && flight.moved == 0 {
                self.meter.sides[usize::from(flight.block.write)].short += 1;
            }
            self.flights[slot].moved += moved;
            return self.go_on(slot);
        } else {
            if self.verifying || self.checks_reads {
                self.check(slot, &flight.block);
            }
            if !self.verifying {
                self.meter.landed(&flight, end);
            }
        }
        if !E::WAITS {
            self.in_flight -= 1;
            self.idle.push(slot);
        }
        Ok(())
    }

    /// The engine as a whole refused.
    #[cold]
    fn broken(&self, doing: &str, error: &Error) -> Failure {
        let errno = error.raw_os_error().unwrap_or_default();
        Failure { errno, sentence: format!("{doing}: {error}") }
    }

    #[cold]
    fn failure(&self, flight: &Flight, error: Error) -> Failure {
        let errno = error.raw_os_error().unwrap_or_default();
        let mut sentence = format!("{}: {error}", self.what(flight));
        if self.job.direct && errno == errno::EINVAL && !flight.sync {
            sentence += " (O_DIRECT takes offsets and sizes in whole sectors of the device only)";
        }
        Failure { errno, sentence }
    }

    #[cold]
    fn nothing_went(&self, flight: &Flight) -> Failure {
        let why =
            if flight.block.write { "nothing could be written" } else { "the file ends there" };
        Failure { errno: 0, sentence: format!("{}: {why}", self.what(flight)) }
    }

    /// An operation in words.
    fn what(&self, flight: &Flight) -> String {
        let path = self.paths.get(flight.block.file as usize);
        let path = path.map_or("nothing".into(), |path| path.display().to_string());
        if flight.sync {
            return format!("syncing {path}");
        }
        let Block { bytes, offset, write, .. } = flight.block;
        let verb = if write { "writing" } else { "reading" };
        format!("{verb} {bytes} bytes at {offset} of {path}")
    }
}

/// What is left of a block.
#[inline(always)]
fn rest(flight: &Flight) -> Transfer {
    Transfer {
        file: flight.block.file,
        write: flight.block.write,
        begin: flight.moved,
        bytes: flight.block.bytes - flight.moved,
        offset: flight.block.offset + u64::from(flight.moved),
    }
}
