//! Failures of operations in words.

use super::{Drive, Failure};
use crate::engine::Engine;
use crate::job::{Engine as Engines, Named};
use crate::pattern::Block;
use crate::run::flight::Flight;
use hakobu_sys::errno;
use std::io::Error;

/// Errors of blocks with `atomic=1`.
const NO_ATOMIC: &str = " (atomic=1: the device, its file system or the kernel writes no block as a whole; that takes \
                         Linux 6.11 and a device that promises it)";
const WRONG_ATOMIC: &str = " (atomic=1: sizes have to be powers of 2 within the limits of the device, and offsets \
                            multiples of the size)";

impl<E: Engine> Drive<'_, E> {
    /// The engine as a whole refused.
    #[cold]
    pub(super) fn broken(&self, doing: &str, error: &Error) -> Failure {
        Failure::of(error, format!("{doing}: {error}"))
    }

    #[cold]
    pub(super) fn failure(&self, flight: &Flight, error: Error) -> Failure {
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
    pub(super) fn nothing_went(&self, flight: &Flight) -> Failure {
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
        if self.job.engine.is_of_names() {
            let verb = match self.job.engine.named() {
                Named::Made { .. } => "creating",
                Named::Removed { .. } => "removing",
                _ => "looking at",
            };
            return format!("{verb} {path}");
        }
        let verb = match (self.job.engine, write) {
            _ if self.job.trims => "trimming",
            (Engines::Falloc, _) => "reserving",
            (Engines::Ftruncate, _) => return format!("cutting {path} to {offset} bytes"),
            (_, true) => "writing",
            (_, false) => "reading",
        };
        format!("{verb} {bytes} bytes at {offset} of {path}")
    }
}
