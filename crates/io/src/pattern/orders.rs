//! Orders of blocks: all of them once in random order, by Zipf's law, by shares of the file, in a given order, in zones.

use crate::job::{Share, Zones};
use crate::random::Random;
use std::sync::Arc;

/// All numbers below a limit, each once, in random order, and how far it has been gone through.
///
/// fio keeps a bit for each block, draws one by chance and looks for a free one nearby: 32 MiB for
/// 2^28 blocks, a cache miss for each draw, and towards the end of a pass no chance at all, but runs
/// of neighbours. Here the order is a *function*: a one-to-one mapping of the numbers below a power of
/// two, made of steps that can each be undone (a key that is added, an odd factor, a shifted exclusive
/// or). The keys are drawn. The factors are not: among those that are drawn there are too many after
/// which successive numbers keep their distance. With four rounds of this no such thing was found in
/// 300 orders of each of six sizes by chi square; three are too few. Counting through it and leaving out what is beyond the limit gives every number once.
/// The power of two is less than twice the limit, so that it takes less than two steps on average.
/// That needs no memory, and costs the same for 16 blocks and for 2^40. An LFSR would be cheaper, but
/// each of its numbers is half of the one before, or half plus a constant: a disk notices.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    limit: u64,
    /// The power of two, less one.
    mask: u64,
    /// Shift of the upper half of the bits onto the lower one.
    shift: u32,
    /// Numbers that have been tried, the first `mask + 1` of all.
    tried: u64,
    keys: [u64; ROUNDS],
    factors: [u64; ROUNDS],
    /// Numbers that come next, how many there are and how many of them are gone.
    ready: [u64; BATCH],
    count: usize,
    gone: usize,
}

/// Numbers that are worked out at once: the CPU overlaps them, and whether one is left out is no
/// branch that it could guess wrong. That halves the time where nearly half are left out.
const BATCH: usize = 16;

const ROUNDS: usize = 4;

/// As many of their highest bits as there are: factors of splitmix64, the golden ratio, and one that
/// mixes as well.
const FACTORS: [u64; ROUNDS] =
    [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

impl Permutation {
    /// An order of the numbers below `limit`, by chance from the first [`shuffle`](Self::shuffle) on.
    pub(crate) fn new(limit: u64) -> Permutation {
        let bits = limit.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1).min(63);
        let shift = bits.div_ceil(2).max(1);
        // Odd factors can be undone modulo a power of two.
        let factors = FACTORS.map(|factor| (factor >> (64 - bits.max(1))) | 1);
        Permutation {
            limit,
            mask: (1 << bits) - 1,
            shift,
            tried: 0,
            keys: [0; ROUNDS],
            factors,
            ready: [0; BATCH],
            count: 0,
            gone: 0,
        }
    }

    /// Begins again in another order.
    pub(crate) fn shuffle(&mut self, random: &mut Random) {
        (self.tried, self.count, self.gone) = (0, 0, 0);
        self.keys = std::array::from_fn(|_| random.bits());
    }

    /// The next number; `None` after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        while self.gone >= self.count {
            if self.tried > self.mask {
                return None;
            }
            self.fill();
        }
        let number = self.ready.get(self.gone).copied();
        self.gone += 1;
        number
    }

    /// Tries the next few numbers.
    #[inline(never)]
    fn fill(&mut self) {
        let until = (self.tried + BATCH as u64).min(self.mask + 1);
        (self.count, self.gone) = (0, 0);
        for tried in self.tried..until {
            let number = self.at(tried);
            // No more than were tried: the place is always there.
            if let Some(place) = self.ready.get_mut(self.count) {
                *place = number;
            }
            self.count += usize::from(number < self.limit);
        }
        self.tried = until;
    }

    /// Image of a number below the power of two: one-to-one.
    #[inline]
    pub(crate) fn at(&self, number: u64) -> u64 {
        let mut value = number;
        for (key, factor) in self.keys.into_iter().zip(self.factors) {
            value = value.wrapping_add(key).wrapping_mul(factor) & self.mask;
            value ^= value >> self.shift;
        }
        value
    }

    /// Image of a number below the limit, inside of the limit: as [`at`](Self::at), and on from
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

/// Draws ranks by rejection-inversion (Hörmann, Derflinger: "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6, 1996). Exact for every theta above 0 and every
/// number of ranks, also where theta is 1, in the same time and without a table or a sum over them;
/// the approximation of Gray et al. (SIGMOD 1994) needs the sum, and is exact for two ranks only.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    theta: f64,
    ranks: f64,
    /// The integral up to the middle after the first rank, less its weight; and up to the end.
    begin: f64,
    end: f64,
    /// Draws no further than this to the left of their rank are always taken.
    squeeze: f64,
}

impl Zipf {
    /// Creates the distribution over this many ranks, at least one; `theta` is above 0.
    pub(crate) fn new(theta: f64, ranks: u64) -> Zipf {
        let ranks = ranks.max(1) as f64;
        let mut zipf = Zipf { theta, ranks, begin: 0.0, end: 0.0, squeeze: 0.0 };
        zipf.begin = zipf.integral(1.5) - 1.0;
        zipf.end = zipf.integral(ranks + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank, from 0 on.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.end + random.fraction() * (self.begin - self.end);
            let place = self.inverse(area);
            let rank = (place + 0.5).floor().clamp(1.0, self.ranks);
            // Taken without looking, or if it lies below the bar of its rank.
            if rank - place <= self.squeeze || area >= self.integral(rank + 0.5) - self.weight(rank)
            {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, place: f64) -> f64 {
        (-self.theta * place.ln()).exp()
    }

    /// ∫ x^-theta from 1 on: (x^(1−theta) − 1) ÷ (1 − theta), or ln x where theta is 1. Written so
    /// that it is right near 1 as well.
    fn integral(&self, place: f64) -> f64 {
        let log = place.ln();
        let power = (1.0 - self.theta) * log;
        if power.abs() < 1e-8 {
            log * (1.0 + power / 2.0)
        } else {
            power.exp_m1() / (1.0 - self.theta)
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.theta)).max(-1.0);
        let log = if power.abs() < 1e-8 {
            area * (1.0 - power / 2.0)
        } else {
            power.ln_1p() / (1.0 - self.theta)
        };
        log.exp()
    }
}

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

/// Numbers of blocks, repeated.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    numbers: Arc<[u64]>,
    strides: bool,
    at: usize,
    base: u64,
}

impl Sequence {
    /// With `strides` each repetition begins behind the one before.
    pub(super) fn new(numbers: &[u64], strides: bool) -> Sequence {
        Sequence { numbers: numbers.into(), strides, at: 0, base: 0 }
    }

    /// From its beginning.
    pub(super) fn rewind(&mut self) {
        (self.at, self.base) = (0, 0);
    }

    /// The next number; `None` where there is no sequence.
    pub(super) fn next(&mut self) -> Option<u64> {
        let number = self.numbers.get(self.at)?.checked_add(self.base)?;
        self.at += 1;
        if self.at == self.numbers.len() {
            self.at = 0;
            if self.strides {
                self.base = self.base.saturating_add(self.numbers.len() as u64);
            }
        }
        Some(number)
    }
}

/// The zone that is worked on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strides {
    begin_bytes: u64,
    done_bytes: u64,
}

impl Strides {
    /// The first zone, which begins here.
    pub(super) fn new(begin_bytes: u64) -> Strides {
        Strides { begin_bytes, done_bytes: 0 }
    }

    /// Place of the next block of this many bytes, which would be at `place` without zones: in the next zone
    /// when enough was moved in this one, and at its beginning again when its end was reached before.
    pub(super) fn place(&mut self, zones: &Zones, place: u64, bytes: u64) -> u64 {
        let mut place = place;
        if self.done_bytes >= zones.work_bytes {
            let step = zones.range_bytes.saturating_add(zones.skip_bytes);
            self.begin_bytes = self.begin_bytes.saturating_add(step);
            self.done_bytes = 0;
            place = self.begin_bytes;
        } else if place.saturating_add(bytes) > self.begin_bytes.saturating_add(zones.range_bytes) {
            place = self.begin_bytes;
        }
        self.done_bytes = self.done_bytes.saturating_add(bytes);
        place
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

    #[test]
    fn sequences_repeat_or_go_on() {
        let first = |strides| {
            let mut sequence = Sequence::new(&[2, 0, 1], strides);
            (0..6).map(|_| sequence.next().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(first(false), [2, 0, 1, 2, 0, 1]);
        assert_eq!(first(true), [2, 0, 1, 5, 3, 4]);
        assert_eq!(Sequence::new(&[], true).next(), None);
    }

    #[test]
    fn zones_follow_each_other() {
        let places = |work_bytes, range_bytes, skip_bytes| {
            let zones = Zones { work_bytes, range_bytes, skip_bytes };
            let (mut strides, mut next) = (Strides::new(100), 100);
            let place = |_| {
                let place = strides.place(&zones, next, 4);
                next = place + 4;
                place
            };
            (0..6).map(place).collect::<Vec<_>>()
        };
        assert_eq!(places(8, 8, 12), [100, 104, 120, 124, 140, 144]);
        // A part of each zone, and each zone several times.
        assert_eq!(places(4, 8, 12), [100, 120, 140, 160, 180, 200]);
        assert_eq!(places(12, 8, 12), [100, 104, 100, 120, 124, 120]);
    }
}
