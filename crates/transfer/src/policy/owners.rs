//! Mapping of user and group IDs (`--usermap`, `--groupmap`).

use std::ops::RangeInclusive;

/// Ranges of IDs and their targets. The first range that contains an ID counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdMap {
    ranges: Vec<(RangeInclusive<u32>, u32)>,
}

impl IdMap {
    /// Appends a range.
    pub fn add(&mut self, from: RangeInclusive<u32>, to: u32) {
        self.ranges.push((from, to));
    }

    /// Returns the mapped ID; unmapped IDs are returned as they are.
    pub fn of(&self, id: u32) -> u32 {
        self.ranges.iter().find(|(from, _)| from.contains(&id)).map_or(id, |(_, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_range_counts() {
        let mut map = IdMap::default();
        assert_eq!(map.of(7), 7);
        map.add(5..=9, 100);
        map.add(0..=u32::MAX, 1);
        assert_eq!([map.of(4), map.of(5), map.of(9), map.of(10)], [1, 100, 100, 1]);
    }
}
