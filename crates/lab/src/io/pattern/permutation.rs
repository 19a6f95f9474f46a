//! All numbers below a limit, each once, in an order by chance.
//!
//! fio keeps a bit for each block, draws one by chance and looks for a free one nearby: 32 MiB for
//! 2^28 blocks, a cache miss for each draw, and towards the end of a pass no chance at all, but runs
//! of neighbours. Here the order is a *function*: a one-to-one mapping of the numbers below a power of
//! two, made of steps that can each be undone (an odd factor, a shifted exclusive or), with keys that
//! are drawn. Counting through it and leaving out what is beyond the limit gives every number once.
//! The power of two is less than twice the limit, so that it takes less than two steps on average.
//! That needs no memory, and costs the same for 16 blocks and for 2^40. An LFSR would be cheaper, but
//! each of its numbers is half of the one before, or half plus a constant: a disk notices.

use super::random::Random;

/// One order of the numbers below a limit, and how far it has been gone through.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    limit: u64,
    /// The power of two, less one.
    mask: u64,
    /// How far the upper half of the bits is shifted onto the lower one.
    shift: u32,
    /// How many have been tried, the first `mask + 1` of all.
    tried: u64,
    added: u64,
    factors: [u64; 3],
}

impl Permutation {
    /// An order of the numbers below `limit`, by chance from the first [`shuffle`](Self::shuffle) on.
    pub(crate) fn new(limit: u64) -> Permutation {
        let bits = limit.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1).min(63);
        let shift = bits.div_ceil(2).max(1);
        Permutation { limit, mask: (1 << bits) - 1, shift, tried: 0, added: 0, factors: [1; 3] }
    }

    /// Begins again in another order.
    pub(crate) fn shuffle(&mut self, random: &mut Random) {
        self.tried = 0;
        self.added = random.bits();
        // Odd factors can be undone modulo a power of two.
        self.factors = std::array::from_fn(|_| random.bits() | 1);
    }

    /// The next number; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        while self.tried <= self.mask {
            let number = self.at(self.tried);
            self.tried += 1;
            if number < self.limit {
                return Some(number);
            }
        }
        None
    }

    /// Where a number below the power of two goes: one-to-one.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> u64 {
        let mut value = number.wrapping_add(self.added) & self.mask;
        for factor in self.factors {
            value = value.wrapping_mul(factor) & self.mask;
            value ^= value >> self.shift;
        }
        value
    }

    /// Where a number below the limit goes, inside of the limit: as [`at`](Self::at), and on from
    /// what is beyond it until it is inside. One-to-one as well (Black, Rogaway: "Ciphers with
    /// arbitrary finite domains", 2002, "cycle walking"). The limit must not be 0.
    #[inline]
    pub(crate) fn inside(&self, number: u64) -> u64 {
        let mut value = self.at(number);
        // A cycle through `number`, which is inside, comes back inside.
        while value >= self.limit {
            value = self.at(value);
        }
        value
    }
}
