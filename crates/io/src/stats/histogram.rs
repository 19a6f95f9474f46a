//! Latencies, counted in classes whose width grows with the value.

/// Classes for each power of two: what is read off a class is wrong by at most one in 256 (a class
/// is 1/128 of its value wide, and its middle is reported). fio has 64 of them.
const FINE_BITS: u32 = 7;
/// As a number: values below twice this have a class of their own.
const FINE: u64 = 1 << FINE_BITS;
/// Classes that are allocated at first: up to 4 ms.
const FIRST: usize = (15 + 1) << FINE_BITS;

/// Latencies in nanoseconds.
///
/// Log-linear, as HdrHistogram is: `2^n` is followed by 128 classes of equal width up to `2^(n+1)`.
/// Number, smallest, largest, mean and deviation are exact. Nothing is allocated before the first
/// value, and no more than the largest one needs: 16 KiB up to 4 ms, 24 KiB up to a second.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    /// Sum of the values, and of their squares, without any rounding. Modulo 2^128: right for all
    /// times that can pass.
    sum: u128,
    squares: u128,
}

impl Default for Histogram {
    /// An empty one.
    fn default() -> Histogram {
        Histogram { counts: Vec::new(), count: 0, min_ns: u64::MAX, max_ns: 0, sum: 0, squares: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let class = class(ns);
        match self.counts.get_mut(class) {
            Some(count) => *count += 1,
            None => self.grow(class),
        }
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let wide = u128::from(ns);
        self.sum = self.sum.wrapping_add(wide);
        self.squares = self.squares.wrapping_add(wide * wide);
    }

    /// Counts the first value of a class beyond all that there is room for.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, class: usize) {
        let whole = (class + 1).next_multiple_of(FINE as usize).max(FIRST);
        self.counts.reserve_exact(whole - self.counts.len());
        self.counts.resize(whole, 0);
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
    }

    /// Adds all values of another.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to += from;
        }
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum = self.sum.wrapping_add(other.sum);
        self.squares = self.squares.wrapping_add(other.squares);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value, exactly; 0 if there is none.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// The largest value, exactly; 0 if there is none.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The arithmetic mean; 0 if there is no value.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The sample's standard deviation (divided by n − 1); 0 for fewer than two values.
    pub fn deviation_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = u128::from(self.count);
        let (near, rest) = (self.sum / count, self.sum % count);
        // Squares of the distances to the whole number `near` below the mean, in integers:
        // Σ(x − q)² = Σx² − q(2Σx − nq), and nq = Σx − r. Floating point would lose a small
        // deviation of large values here.
        let crossed = near.wrapping_mul(self.sum.wrapping_add(rest));
        let around = self.squares.wrapping_sub(crossed);
        let (count, rest) = (self.count as f64, rest as f64);
        ((around as f64 - rest * rest / count).max(0.0) / (count - 1.0)).sqrt()
    }

    /// The smallest value that at least this percentage of the values does not exceed (nearest rank),
    /// to the precision of classes: the middle of its class, but never outside the recorded range.
    /// 0 if there is no value.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = percent * self.count as f64 / 100.0;
        // Percentages are decimal fractions: 99.9 of 1000 must not become the 1000th by a last bit.
        let rank = (wanted * (1.0 - 1e-13)).ceil().max(1.0) as u64;
        if rank >= self.count {
            return self.max_ns;
        }
        let mut below = 0;
        for (value, count) in self.buckets() {
            below += count;
            if below >= rank {
                return value.clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// All classes in which there is something, in ascending order: the value in the middle and how
    /// many values there are.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(|(class, count)| {
            let (begin, width) = range(class);
            (begin + width / 2, *count)
        })
    }

    /// Number of values below `ns`. Exact where a class begins there, as at all powers of two; in
    /// the middle of a class its values are taken as evenly spread.
    pub fn below(&self, ns: u64) -> u64 {
        if ns > self.max_ns {
            return self.count;
        }
        let last = class(ns);
        let whole: u64 = self.counts.iter().take(last).sum();
        let (begin, width) = range(last);
        let here = self.counts.get(last).copied().unwrap_or(0);
        whole + (u128::from(here) * u128::from(ns - begin) / u128::from(width)) as u64
    }
}

/// Class that a value is counted in.
#[inline]
fn class(ns: u64) -> usize {
    // The lowest bits that do not count. None of them for values that have their own class.
    let coarse = 63 - FINE_BITS - (ns | FINE).leading_zeros();
    ((coarse as usize) << FINE_BITS) + (ns >> coarse) as usize
}

/// The smallest value of a class, and how many values it is wide.
fn range(class: usize) -> (u64, u64) {
    let class = class as u64;
    if class < 2 * FINE {
        return (class, 1);
    }
    let coarse = (class >> FINE_BITS) - 1;
    (((class & (FINE - 1)) + FINE) << coarse, 1 << coarse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_without_gaps() {
        let mut next = 0u64;
        for number in 0..=class(u64::MAX) {
            let (begin, width) = range(number);
            assert_eq!(begin, next, "class {number}");
            assert_eq!((class(begin), class(begin + (width - 1))), (number, number));
            assert!(width == 1 || width * 128 <= begin, "class {number} is {width} wide");
            next = begin.wrapping_add(width);
        }
        // The last one ends where 64 bits do.
        assert_eq!(next, 0);
    }
}
