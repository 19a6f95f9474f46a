//! Blocks that are the same as others (`dedupe_percentage`): each block is made of a seed, and copies have the
//! seed of another block.

use crate::job::Dedupe;
use crate::pattern::random::{Random, mix};
use crate::{Amount, Job};
use std::sync::OnceLock;

/// Blocks of a job whose size is not known, to find out how large the set of copies is.
const BLOCKS: u64 = 1000;

/// Seeds of blocks.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    chance: Random,
    percent: u8,
    /// Seeds that copies have: their first, and how many there are; `None`: that of the block before.
    set: Option<(u64, u64)>,
    last: u64,
    /// Blocks of the set that were written as such.
    fresh: u64,
}

impl Copies {
    /// Creates the copies of one clone of a job.
    pub(super) fn new(job: &Job, of: &Dedupe, clone: u32) -> Copies {
        // One for all jobs of a run, and another in the next run.
        static GLOBAL: OnceLock<u64> = OnceLock::new();
        let own = fastrand::u64(..);
        let first = if of.global { *GLOBAL.get_or_init(|| fastrand::u64(..)) } else { own };
        let bytes = match job.size {
            Some(Amount::Bytes(bytes)) => bytes / job.block_bytes[1].max(1),
            _ => BLOCKS,
        };
        let count = |percent: u8| (bytes * u64::from(percent) / 100).max(1);
        let set = of.working_set_percent.map(|percent| (first, count(percent)));
        let mut chance = Random::new(own, u64::from(clone));
        let last = chance.bits();
        Copies { chance, percent: of.percent, set, last, fresh: 0 }
    }

    /// Numbers by chance of which the next block is made.
    pub(super) fn next(&mut self) -> Random {
        let copies = self.chance.below(100) < u64::from(self.percent);
        let seed = match (copies, self.set) {
            (true, Some((first, count))) => mix(first ^ self.chance.below(count)),
            (true, None) => self.last,
            // The first blocks that are not copies are those of the set.
            (false, Some((first, count))) if self.fresh < count => {
                self.fresh += 1;
                mix(first ^ (self.fresh - 1))
            }
            (false, _) => self.chance.bits(),
        };
        self.last = seed;
        Random::new(seed, 5)
    }
}
