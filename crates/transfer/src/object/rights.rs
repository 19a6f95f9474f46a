//! Rights to work on the parts of one large object: how many of them there are follows what
//! whoever steers says, at any time. The last one that is given up ends the object.

use super::core::Engine;

/// What the holder of a right does with it after a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Gives it back to the queue, for the next part.
    Again,
    /// Gives it up: nothing more is to be begun, or there are too many of them.
    Leave,
    /// It was the last: ends the object.
    End,
}

impl Turn {
    /// Decides for one of `rights`, of which `rights_max` shall be; counts it out where it is given
    /// up. `goes_on`: there are parts that nobody has begun, and nothing has failed.
    pub fn of(rights: &mut usize, goes_on: bool, rights_max: usize) -> Turn {
        if goes_on && *rights <= rights_max.max(1) {
            return Turn::Again;
        }
        *rights = rights.saturating_sub(1);
        if *rights == 0 { Turn::End } else { Turn::Leave }
    }
}

/// How many more rights to hand out, counted into `rights`: up to `rights_max` of them, and no more
/// than parts that wait. None for an object whose last right was given up.
pub(super) fn more(rights: &mut usize, waiting: usize, rights_max: usize) -> usize {
    if *rights == 0 {
        return 0;
    }
    let count = rights_max.saturating_sub(*rights).min(waiting);
    *rights += count;
    count
}

impl Engine<'_> {
    /// How many parts of one large object may be under way now: what was asked for, else as many
    /// as `fit` into memory; never more than there are jobs.
    pub(super) fn streams(&self, fit: u64) -> usize {
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        let most = self.setup.options.concurrency.unwrap_or(fit);
        most.min(self.setup.helm.gate.jobs()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_follow_what_may_be() {
        let mut rights = 4;
        assert_eq!(Turn::of(&mut rights, true, 4), Turn::Again);
        // Fewer may be: those that come first go, down to what may be, and never the last.
        assert_eq!(Turn::of(&mut rights, true, 2), Turn::Leave);
        assert_eq!(Turn::of(&mut rights, true, 0), Turn::Leave);
        assert_eq!(Turn::of(&mut rights, true, 2), Turn::Again);
        assert_eq!(Turn::of(&mut rights, true, 0), Turn::Leave);
        assert_eq!((Turn::of(&mut rights, true, 0), rights), (Turn::Again, 1));
        assert_eq!((more(&mut rights, 10, 3), rights), (2, 3));
        assert_eq!((more(&mut rights, 1, 9), rights), (1, 4));
        assert_eq!((more(&mut rights, 0, 9), rights), (0, 4));
        for left in [3, 2, 1] {
            assert_eq!((Turn::of(&mut rights, false, 9), rights), (Turn::Leave, left));
        }
        assert_eq!((Turn::of(&mut rights, false, 9), rights), (Turn::End, 0));
        assert_eq!((more(&mut rights, 5, 9), rights), (0, 0), "it has ended");
    }
}
