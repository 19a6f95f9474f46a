//! Hard-link groups: checks that names of one file on one side are names of one file on the other.

use std::collections::HashMap;

/// Device and inode.
type Identity = (u64, u64);

/// The incomplete groups: a pair of source and target file is stored from its first name until all of its names were
/// seen. Groups with names outside the trees stay until the end.
#[derive(Default)]
pub struct Groups {
    by_source: HashMap<Identity, (Identity, u64)>,
    by_target: HashMap<Identity, (Identity, u64)>,
}

impl Groups {
    /// Records a name that is `source` (with its number of links) on one side and `target` on the other; returns
    /// whether that agrees with earlier names.
    pub fn agrees(&mut self, source: (Identity, u64), target: (Identity, u64)) -> bool {
        // Record both, whatever the first result is.
        let forth = note(&mut self.by_source, source, target.0);
        let back = note(&mut self.by_target, target, source.0);
        forth && back
    }
}

fn note(
    map: &mut HashMap<Identity, (Identity, u64)>,
    (from, links): (Identity, u64),
    to: Identity,
) -> bool {
    if links < 2 {
        return true;
    }
    let (partner, left) = map.entry(from).or_insert((to, links));
    let same = *partner == to;
    *left -= 1;
    if *left == 0 {
        map.remove(&from);
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> Identity {
        (1, n)
    }

    #[test]
    fn the_same_grouping_agrees_and_is_forgotten_when_complete() {
        let mut groups = Groups::default();
        for _ in 0..3 {
            assert!(groups.agrees((id(1), 3), (id(11), 3)));
            assert!(groups.agrees((id(2), 3), (id(12), 3)));
        }
        assert!(groups.by_source.is_empty() && groups.by_target.is_empty());
    }

    #[test]
    fn split_and_joined_groups_do_not_agree() {
        let mut groups = Groups::default();
        assert!(groups.agrees((id(1), 2), (id(11), 1)));
        assert!(!groups.agrees((id(1), 2), (id(12), 1)));
        assert!(groups.agrees((id(3), 1), (id(13), 2)));
        assert!(!groups.agrees((id(4), 1), (id(13), 2)));
    }

    #[test]
    fn names_outside_the_trees_do_no_harm() {
        let mut groups = Groups::default();
        assert!(groups.agrees((id(1), 5), (id(11), 2)));
        assert!(groups.agrees((id(1), 5), (id(11), 2)));
        assert!(groups.agrees((id(2), 1), (id(12), 7)));
    }
}
