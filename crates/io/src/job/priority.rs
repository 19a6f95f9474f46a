//! I/O priorities of a job and of single blocks (`prio`, `prioclass`, `cmdprio_…`).

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
    /// Percent of them.
    pub percent: u8,
    /// Their priority.
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
    /// Blocks have priorities of their own.
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
