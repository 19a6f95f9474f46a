//! Orders that are given: numbers of blocks (`random_distribution=sequence`), and zones of a sequence
//! (`zonemode=strided`).

use crate::job::Zones;
use std::sync::Arc;

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
