//! Mapping of user and group IDs (`--usermap`, `--groupmap`).

use std::ops::RangeInclusive;

/// Sets of IDs and their targets. The first set that contains an ID counts.
#[derive(Clone, Debug, Default)]
pub struct IdMap {
    sets: Vec<(IdSet, u32)>,
}

/// A set of IDs.
#[derive(Clone, Debug)]
enum IdSet {
    Range(RangeInclusive<u32>),
    /// Those for which the system has no name, which the function looks up.
    Nameless(fn(u32) -> Option<String>),
}

impl IdSet {
    fn contains(&self, id: u32) -> bool {
        match self {
            IdSet::Range(range) => range.contains(&id),
            IdSet::Nameless(name_of) => name_of(id).is_none(),
        }
    }
}

impl IdMap {
    /// Returns whether it maps nothing.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Appends a range.
    pub fn add(&mut self, from: RangeInclusive<u32>, to: u32) {
        self.sets.push((IdSet::Range(from), to));
    }

    /// Appends all IDs for which `name_of` returns no name.
    pub fn add_nameless(&mut self, name_of: fn(u32) -> Option<String>, to: u32) {
        self.sets.push((IdSet::Nameless(name_of), to));
    }

    /// Treats all IDs as nameless (`--numeric-ids`).
    pub fn forget_names(&mut self) {
        for (set, _) in &mut self.sets {
            if matches!(set, IdSet::Nameless(_)) {
                *set = IdSet::Range(0..=u32::MAX);
            }
        }
    }

    /// Returns the mapped ID; unmapped IDs are returned as they are.
    pub fn of(&self, id: u32) -> u32 {
        self.sets.iter().find(|(from, _)| from.contains(id)).map_or(id, |(_, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_without_a_name() {
        let mut map = IdMap::default();
        map.add_nameless(|id| (id == 5).then(|| "five".to_owned()), 100);
        map.add(0..=9, 1);
        assert_eq!([map.of(5), map.of(6), map.of(20)], [1, 100, 100]);
        map.forget_names();
        assert_eq!(map.of(5), 100);
    }

    #[test]
    fn the_first_range_counts() {
        let mut map = IdMap::default();
        assert_eq!(map.of(7), 7);
        map.add(5..=9, 100);
        map.add(0..=u32::MAX, 1);
        assert_eq!([map.of(4), map.of(5), map.of(9), map.of(10)], [1, 100, 100, 1]);
    }
}
