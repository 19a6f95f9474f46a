//! Permits to work on the parts of one large object: their number follows the tuner at any time. Releasing the last
//! one ends the object.

use super::core::Engine;

/// Next step of a permit's holder after a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Return the permit to the queue, for the next part.
    Again,
    /// Release it: nothing more is to be begun, or there are too many permits.
    Leave,
    /// It was the last one: end the object.
    End,
}

impl Turn {
    /// Decides for one of `permits`, where `permits_max` are wanted; decrements `permits` if it is released.
    /// `goes_on`: there are parts not begun, and nothing has failed.
    pub fn of(permits: &mut usize, goes_on: bool, permits_max: usize) -> Turn {
        if goes_on && *permits <= permits_max.max(1) {
            return Turn::Again;
        }
        *permits = permits.saturating_sub(1);
        if *permits == 0 { Turn::End } else { Turn::Leave }
    }
}

/// Returns how many more permits to hand out, and adds them to `permits`: up to `permits_max`, and no more than parts
/// that wait. None for an object whose last permit was released.
pub(super) fn more(permits: &mut usize, waiting: usize, permits_max: usize) -> usize {
    if *permits == 0 {
        return 0;
    }
    let count = permits_max.saturating_sub(*permits).min(waiting);
    *permits += count;
    count
}

impl Engine<'_> {
    /// Returns how many parts of one large object may be in flight now: the requested number, else as many as `fit`
    /// into memory; never more than there are jobs.
    pub(super) fn streams(&self, fit: u64) -> usize {
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        let most = self.setup.options.concurrency.unwrap_or(fit);
        most.min(self.setup.controls.gate.jobs()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_follow_what_may_be() {
        let mut permits = 4;
        assert_eq!(Turn::of(&mut permits, true, 4), Turn::Again);
        // Fewer are wanted: the first holders release, down to the wanted number, and never the last one.
        assert_eq!(Turn::of(&mut permits, true, 2), Turn::Leave);
        assert_eq!(Turn::of(&mut permits, true, 0), Turn::Leave);
        assert_eq!(Turn::of(&mut permits, true, 2), Turn::Again);
        assert_eq!(Turn::of(&mut permits, true, 0), Turn::Leave);
        assert_eq!((Turn::of(&mut permits, true, 0), permits), (Turn::Again, 1));
        assert_eq!((more(&mut permits, 10, 3), permits), (2, 3));
        assert_eq!((more(&mut permits, 1, 9), permits), (1, 4));
        assert_eq!((more(&mut permits, 0, 9), permits), (0, 4));
        for left in [3, 2, 1] {
            assert_eq!((Turn::of(&mut permits, false, 9), permits), (Turn::Leave, left));
        }
        assert_eq!((Turn::of(&mut permits, false, 9), permits), (Turn::End, 0));
        assert_eq!((more(&mut permits, 5, 9), permits), (0, 0), "it has ended");
    }
}
