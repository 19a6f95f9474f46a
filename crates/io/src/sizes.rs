//! Blocks of several sizes in one job (`bsrange`, `bssplit`): which there are, and which is next.

use super::pattern::random::Random;

/// The sizes of a job's blocks in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Any multiple of the least up to the largest, all alike (`bsrange`).
    Range {
        /// The least.
        least: u64,
        /// The largest.
        largest: u64,
    },
    /// These with their shares in percent, which are 100 together (`bssplit`).
    Split(Vec<(u64, u8)>),
}

impl Sizes {
    /// All of a split, both ends of a range.
    pub fn ends(&self) -> Vec<u64> {
        match self {
            Sizes::Range { least, largest } => vec![*least, *largest],
            Sizes::Split(shares) => shares.iter().map(|(bytes, _)| *bytes).collect(),
        }
    }

    /// The least.
    pub fn least(&self) -> u64 {
        self.ends().into_iter().min().unwrap_or(1)
    }

    /// The largest.
    pub fn largest(&self) -> u64 {
        self.ends().into_iter().max().unwrap_or(1)
    }

    /// The next size.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Sizes::Range { least, largest } => {
                let steps = largest / (*least).max(1);
                least * (1 + random.below(steps.max(1)))
            }
            Sizes::Split(shares) => {
                let mut place = random.below(100);
                for (bytes, percent) in shares {
                    match place.checked_sub(u64::from(*percent)) {
                        Some(left) => place = left,
                        None => return *bytes,
                    }
                }
                self.largest()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_as_often_as_asked() {
        let split = Sizes::Split(vec![(4096, 10), (65_536, 60), (512, 30)]);
        assert_eq!((split.least(), split.largest()), (512, 65_536));
        let mut random = Random::new(7, 4);
        let drawn: Vec<u64> = (0..10_000).map(|_| split.draw(&mut random)).collect();
        for (bytes, percent) in [(4096, 10), (65_536, 60), (512, 30)] {
            let count = drawn.iter().filter(|one| **one == bytes).count();
            assert!(count.abs_diff(percent * 100) < 200, "{bytes}: {count}");
        }
        let range = Sizes::Range { least: 4096, largest: 16_384 };
        let drawn: std::collections::BTreeSet<u64> =
            (0..1000).map(|_| range.draw(&mut random)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [4096, 8192, 12_288, 16_384]);
    }
}
