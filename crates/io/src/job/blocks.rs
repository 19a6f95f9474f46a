//! What single blocks of a job may have of their own: sizes (`bsrange`, `bssplit`) and I/O priorities (`prio`, `prioclass`,
//! `cmdprio_…`).

use crate::random::Random;

/// The sizes of a job's blocks in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// Any multiple of the least up to the largest, all alike (`bsrange`).
    Range { least: u64, largest: u64 },
    /// These with their shares in percent, which are 100 together (`bssplit`).
    Split(Vec<(u64, u8)>),
}

impl BlockSizes {
    /// All of a split, both ends of a range.
    pub fn ends(&self) -> Vec<u64> {
        match self {
            BlockSizes::Range { least, largest } => vec![*least, *largest],
            BlockSizes::Split(shares) => shares.iter().map(|(bytes, _)| *bytes).collect(),
        }
    }

    pub fn least(&self) -> u64 {
        self.ends().into_iter().min().unwrap_or(1)
    }

    pub fn largest(&self) -> u64 {
        self.ends().into_iter().max().unwrap_or(1)
    }

    /// The next size.
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            BlockSizes::Range { least, largest } => {
                let steps = largest / (*least).max(1);
                least * (1 + random.below(steps.max(1)))
            }
            BlockSizes::Split(shares) => {
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

/// An I/O priority, ioprio_set(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ioprio {
    /// IOPRIO_CLASS_…: 0 none, 1 realtime, 2 best-effort, 3 idle.
    pub class: u8,
    /// From 0, the highest, to 7.
    pub level: u8,
    /// IOPRIO_HINT_… (Linux 6.5): a limit of its duration.
    pub hint: u16,
}

impl Ioprio {
    /// The number that the kernel has for it (linux/ioprio.h): the class in the highest 3 bits, then 10 of the hint.
    pub fn value(self) -> u16 {
        u16::from(self.class) << 13 | (self.hint & 0x3ff) << 3 | u16::from(self.level & 7)
    }

    /// The priority that a number stands for.
    pub fn of(value: u16) -> Ioprio {
        let (class, level) = ((value >> 13) as u8, (value & 7) as u8);
        Ioprio { class, level, hint: value >> 3 & 0x3ff }
    }

    /// Short name of its class.
    pub fn class_name(self) -> &'static str {
        match self.class {
            1 => "RT",
            2 => "BE",
            3 => "IDLE",
            _ => "NONE",
        }
    }
}

/// Share of a direction's blocks that have a priority of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityShare {
    /// Size of these blocks; `None`: all sizes.
    pub block_bytes: Option<u64>,
    pub percent: u8,
    pub priority: Ioprio,
}

/// Priorities of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priorities {
    /// That of its thread (`prioclass`, `prio`); `None`: as the program has it.
    pub own: Option<Ioprio>,
    /// Those of single blocks, for reads and writes (`cmdprio_percentage`, `cmdprio_bssplit`).
    pub blocks: [Vec<PriorityShare>; 2],
}

impl Priorities {
    pub fn of_blocks(&self) -> bool {
        self.blocks.iter().any(|shares| !shares.is_empty())
    }

    /// Number of the priority of its thread; 0 is that of the program.
    pub fn own_value(&self) -> u16 {
        self.own.map_or(0, Ioprio::value)
    }

    /// Number of the priority of a block of this many bytes; 0 is that of the thread. `place` is a number by chance
    /// below 100.
    pub(crate) fn draw(&self, write: bool, bytes: u64, place: u64) -> u16 {
        let mut place = place;
        let shares = &self.blocks[usize::from(write)];
        for share in shares.iter().filter(|share| share.block_bytes.is_none_or(|of| of == bytes)) {
            match place.checked_sub(u64::from(share.percent)) {
                Some(left) => place = left,
                None => return share.priority.value(),
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_as_often_as_asked() {
        let split = BlockSizes::Split(vec![(4096, 10), (65_536, 60), (512, 30)]);
        assert_eq!((split.least(), split.largest()), (512, 65_536));
        let mut random = Random::new(7, 4);
        let drawn: Vec<u64> = (0..10_000).map(|_| split.draw(&mut random)).collect();
        for (bytes, percent) in [(4096, 10), (65_536, 60), (512, 30)] {
            let count = drawn.iter().filter(|one| **one == bytes).count();
            assert!(count.abs_diff(percent * 100) < 200, "{bytes}: {count}");
        }
        let range = BlockSizes::Range { least: 4096, largest: 16_384 };
        let drawn: std::collections::BTreeSet<u64> =
            (0..1000).map(|_| range.draw(&mut random)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [4096, 8192, 12_288, 16_384]);
    }

    #[test]
    fn numbers_are_those_of_the_kernel() {
        for (class, level, hint, value) in [
            (0, 0, 0, 0),
            (1, 0, 0, 0x2000),
            (2, 7, 0, 0x4007),
            (3, 0, 0, 0x6000),
            (2, 0, 3, 0x4018),
        ] {
            let priority = Ioprio { class, level, hint };
            assert_eq!((priority.value(), Ioprio::of(value)), (value, priority));
        }
    }

    #[test]
    fn blocks_have_the_shares_of_their_sizes() {
        let share = |block_bytes, percent, class| PriorityShare {
            block_bytes,
            percent,
            priority: Ioprio { class, ..Ioprio::default() },
        };
        let of_sizes = vec![share(Some(4096), 25, 1), share(Some(4096), 50, 3)];
        let of = Priorities { own: None, blocks: [of_sizes, vec![share(None, 20, 1)]] };
        let classes = |write, bytes| {
            let drawn = (0..100).map(|place| of.draw(write, bytes, place) >> 13);
            drawn.fold([0; 4], |mut counts, class| {
                counts[usize::from(class)] += 1;
                counts
            })
        };
        assert_eq!(classes(false, 4096), [25, 25, 0, 50]);
        assert_eq!(classes(false, 8192), [100, 0, 0, 0]);
        assert_eq!(classes(true, 8192), [80, 20, 0, 0]);
    }
}
