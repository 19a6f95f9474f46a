//! Completions other than that of a whole block: syncs, errors, parts of blocks, blocks to be verified, those of a search for
//! a depth (`latency_target`); and failures in words.

use super::drive::{CloneLoop, InFlight, rest};
use super::pace::DepthResult;
use crate::engine::{Engine, Failure, Submission};
use crate::job::{EngineKind, NameUse};
use crate::pattern::Block;
use hakobu_sys::{blocks, errno};
use std::io::Error;

impl<E: Engine> CloneLoop<'_, E> {
    /// Submits the rest of a block at once, as fio(1) does.
    fn go_on(&mut self, slot: usize) -> Result<(), Failure> {
        let flight = self.flights[slot];
        match self.engine.transfer(slot, rest(&flight)) {
            Submission::Done(result) => {
                let end = if self.meter.timed { self.meter.clock.now() } else { 0 };
                self.complete(slot, result, end)
            }
            Submission::Queued => {
                self.queue(slot);
                self.commit()
            }
        }
    }

    /// Returns whether an error ends the job regularly: no space is left for a job that fills a file system.
    fn ends(&self, flight: &InFlight, errno: i32) -> bool {
        let is_full = errno == errno::ENOSPC || errno == errno::EDQUOT;
        let writes = flight.block.write && !flight.sync && !self.verifying;
        is_full && writes && self.job.fills
    }

    /// Returns whether the job continues after an error of an operation (`continue_on_error`, `ignore_error`), and
    /// counts it in that case. Without a list,
    /// errors of a device are tolerated, as in fio.
    fn tolerates(&mut self, flight: &InFlight, errno: i32) -> bool {
        let of = &self.job.tolerates;
        let kind = usize::from(flight.block.write || flight.sync);
        let listed = &of.ignores[kind];
        let is_meant = match listed.is_empty() {
            true => errno == errno::EIO || errno == errno::EILSEQ,
            false => listed.contains(&errno),
        };
        if self.verifying || !of.goes_on[kind] || !is_meant {
            return false;
        }
        if self.tolerated.0 == 0 {
            self.tolerated.1 = errno;
        }
        self.tolerated.0 += 1;
        true
    }

    /// Truncates each file before its first block that found no space: later blocks in flight may have found some.
    pub(super) fn cut_short(&mut self) -> Result<(), Failure> {
        self.drain()?;
        for (number, file) in self.files.iter().enumerate() {
            let unsent = self.unsent.iter().filter(|block| block.file as usize == number);
            let Some(end) = unsent.map(|block| block.offset).min() else { continue };
            if blocks::is_device(file) {
                continue;
            }
            let said = blocks::cut(file, end);
            if said < 0 {
                let error = Error::from_raw_os_error(i32::try_from(-said).unwrap_or(errno::EIO));
                return Err(
                    self.broken("cutting a file that has no room to its whole blocks", &error)
                );
            }
        }
        Ok(())
    }

    /// Completes a sync, an error, a part of a block, or a block to be verified.
    #[cold]
    #[inline(never)]
    pub(super) fn complete_other(
        &mut self,
        slot: usize,
        result: i64,
        end: u64,
    ) -> Result<(), Failure> {
        let flight = self.flights[slot];
        let errno = i32::try_from(-result).unwrap_or(errno::EIO);
        let ends = result < 0 && self.ends(&flight, errno);
        let tolerated = result < 0 && !ends && self.tolerates(&flight, errno);
        let moved = match u32::try_from(result) {
            Ok(moved) => moved,
            Err(_) if ends || tolerated => 0,
            Err(_) => return Err(self.failure(&flight, Error::from_raw_os_error(errno))),
        };
        if ends {
            self.ended = true;
            self.unsent.push(flight.block);
        } else if tolerated {
            // Counted as an error only.
        } else if flight.sync && self.verifying {
            // Not measured.
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
                self.aim(&flight, end);
            }
        }
        if !E::WAITS {
            self.in_flight -= 1;
            self.idle.push(slot);
        }
        Ok(())
    }

    /// A block landed while a depth is searched for.
    fn aim(&mut self, flight: &InFlight, end: u64) {
        let Some(search) = &mut self.search else { return };
        let latency_ns = self.meter.clock.between_ns(flight.start, end);
        let now_ns = self.meter.clock.between_ns(self.meter.begun, end);
        let found = search.landed(latency_ns, now_ns);
        self.depth = search.depth;
        self.depth_low = self.job.depth_low.clamp(1, self.depth.max(1));
        let Some(found) = found else { return };
        self.found = Some(found);
        if !search.goes_on() {
            self.meter.over = true;
        }
    }

    /// The depth that a search ended with.
    ///
    /// # Errors
    /// No depth keeps the latency.
    pub(super) fn depth_found(&self) -> Result<Option<u32>, Failure> {
        match (self.found, self.job.aim) {
            (Some(DepthResult::Depth(depth)), _) => Ok(Some(depth)),
            (Some(DepthResult::Nothing), Some(aim)) => Err(Failure {
                errno: 0,
                sentence: format!(
                    "latency_target: even one block at a time is not within {:?} for {} percent of \
                     the blocks",
                    aim.latency, aim.percentile
                ),
            }),
            _ => Ok(None),
        }
    }
}

/// Errors of blocks with `atomic=1`.
const NO_ATOMIC: &str = " (atomic=1: the device, its file system or the kernel writes no block as a whole; that takes \
                         Linux 6.11 and a device that promises it)";
const WRONG_ATOMIC: &str = " (atomic=1: sizes have to be powers of 2 within the limits of the device, and offsets \
                            multiples of the size)";

impl<E: Engine> CloneLoop<'_, E> {
    /// The engine as a whole refused.
    #[cold]
    pub(super) fn broken(&self, doing: &str, error: &Error) -> Failure {
        Failure::of(error, format!("{doing}: {error}"))
    }

    #[cold]
    pub(super) fn failure(&self, flight: &InFlight, error: Error) -> Failure {
        let errno = errno::of(&error);
        let mut sentence = format!("{}: {error}", self.what(flight));
        if self.job.direct && errno == errno::EINVAL && !flight.sync && !self.job.atomic {
            sentence += " (O_DIRECT takes offsets and sizes in whole sectors of the device only)";
        }
        if self.job.atomic && flight.block.write && !flight.sync {
            sentence += match errno {
                errno::EOPNOTSUPP => NO_ATOMIC,
                errno::EINVAL => WRONG_ATOMIC,
                _ => "",
            };
        }
        if flight.priority != 0 && errno == errno::EPERM {
            sentence += " (realtime, cmdprio_class=1, needs CAP_SYS_NICE or CAP_SYS_ADMIN)";
        }
        if flight.priority != 0 && errno == errno::EINVAL {
            sentence += " (or the kernel does not know this priority: hints need Linux 6.5)";
        }
        Failure { errno, sentence }
    }

    #[cold]
    pub(super) fn nothing_went(&self, flight: &InFlight) -> Failure {
        let why =
            if flight.block.write { "nothing could be written" } else { "the file ends there" };
        Failure { errno: 0, sentence: format!("{}: {why}", self.what(flight)) }
    }

    /// An operation in words.
    fn what(&self, flight: &InFlight) -> String {
        let path = self.paths.get(flight.block.file as usize);
        let path = path.map_or("nothing".into(), |path| path.display().to_string());
        if flight.sync {
            return format!("syncing {path}");
        }
        let Block { bytes, offset, write, .. } = flight.block;
        if self.job.engine.is_of_names() {
            let verb = match self.job.engine.named() {
                NameUse::Made { .. } => "creating",
                NameUse::Removed { .. } => "removing",
                _ => "looking at",
            };
            return format!("{verb} {path}");
        }
        let verb = match (self.job.engine, write) {
            _ if self.job.trims => "trimming",
            (EngineKind::Falloc, _) => "reserving",
            (EngineKind::Ftruncate, _) => return format!("cutting {path} to {offset} bytes"),
            (_, true) => "writing",
            (_, false) => "reading",
        };
        format!("{verb} {bytes} bytes at {offset} of {path}")
    }
}
