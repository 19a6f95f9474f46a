//! Random places of which some parts of a file have more than others (`random_distribution=zoned`).

use super::random::Random;
use crate::job::Share;

/// One part.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Numbers by chance below this, of those that are not below the part before, belong to it.
    below: f64,
    first: u64,
    blocks: u64,
}

/// Parts of a file.
#[derive(Clone, Debug)]
pub(super) struct Shares(Vec<Part>);

impl Shares {
    /// Divides this many blocks. A part that is smaller than a block has one.
    pub(super) fn new(shares: &[Share], blocks: u64) -> Shares {
        let (mut below, mut begin_percent) = (0.0, 0.0);
        let last = blocks.saturating_sub(1);
        let parts = shares.iter().map(|share| {
            let at = |percent: f64| (blocks as f64 * percent / 100.0).round() as u64;
            below += share.access_percent / 100.0;
            let first = at(begin_percent).min(last);
            begin_percent += share.size_percent;
            let end = at(begin_percent).min(blocks);
            Part { below, first, blocks: end.saturating_sub(first).max(1) }
        });
        Shares(parts.collect())
    }

    /// The number of a block.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let chance = random.fraction();
        let part = self.0.iter().find(|part| chance < part.below).or(self.0.last());
        part.map_or(0, |part| part.first + random.below(part.blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_their_shares() {
        let share = |access_percent, size_percent| Share { access_percent, size_percent };
        let shares = Shares::new(&[share(50.0, 5.0), share(30.0, 15.0), share(20.0, 80.0)], 1000);
        let mut random = Random::new(7, 0);
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            let block = shares.draw(&mut random);
            assert!(block < 1000);
            counts[usize::from(block >= 50) + usize::from(block >= 200)] += 1;
        }
        for (count, expected) in counts.into_iter().zip([50_000, 30_000, 20_000u32]) {
            assert!(count.abs_diff(expected) < 1_000, "{counts:?}");
        }
        // Parts of less than a block stay inside.
        let tiny = Shares::new(&[share(50.0, 1.0), share(50.0, 99.0)], 3);
        assert!((0..100).all(|_| tiny.draw(&mut random) < 3));
    }
}
