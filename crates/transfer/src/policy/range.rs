//! A range of names, in the order of keys: a part of a transfer that can be planned by itself. Pure.

use std::borrow::Cow;

/// The names `from <= name < until`, compared by bytes. A directory counts as `name/`, so that it stands before
/// everything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameRange {
    /// The first name that may belong to it; empty for the beginning.
    pub from: Vec<u8>,
    /// The first name behind it; `None` for the end.
    pub until: Option<Vec<u8>>,
}

impl NameRange {
    /// Returns the range of all names.
    pub fn all() -> NameRange {
        NameRange::default()
    }

    /// Returns the adjacent ranges between sorted cut points, one more than there are points; together they contain
    /// every name once.
    pub fn between(cuts: &[Vec<u8>]) -> Vec<NameRange> {
        let from = std::iter::once(Vec::new()).chain(cuts.iter().cloned());
        let until = cuts.iter().cloned().map(Some).chain([None]);
        from.zip(until).map(|(from, until)| NameRange { from, until }).collect()
    }

    /// Returns whether it contains all names.
    pub fn is_all(&self) -> bool {
        self.from.is_empty() && self.until.is_none()
    }

    /// Returns whether no name can be in it.
    pub fn is_empty(&self) -> bool {
        self.until.as_ref().is_some_and(|until| *until <= self.from)
    }

    /// Returns whether a name is in it; that of a directory ends with a slash.
    pub fn contains(&self, name: &[u8]) -> bool {
        *self.from <= *name && self.is_before_end(name)
    }

    /// Returns whether a name at or below a directory may be in it. The directory's name may end with a slash; an empty
    /// one is the root of all names.
    pub fn meets_folder(&self, folder: &[u8]) -> bool {
        let folder = slashed(folder);
        let reaches = *self.from <= *folder || self.from.starts_with(&folder);
        reaches && self.is_before_end(&folder) && !self.is_empty()
    }

    /// Returns whether a directory and all names below it are in it.
    pub fn holds_folder(&self, folder: &[u8]) -> bool {
        let folder = slashed(folder);
        // All of them begin with it, and so does an end among them.
        let is_behind = |until: &Vec<u8>| **until > *folder && !until.starts_with(&folder);
        *self.from <= *folder && self.until.as_ref().is_none_or(is_behind)
    }

    /// Returns whether its end is below a directory: some of the names below it may be in the ranges that follow.
    pub fn ends_in_folder(&self, folder: &[u8]) -> bool {
        let folder = slashed(folder);
        self.until
            .as_ref()
            .is_some_and(|until| until.len() > folder.len() && until.starts_with(&folder))
    }

    /// Returns the names behind it that are below a directory.
    pub fn rest_of_folder(&self, folder: &[u8]) -> NameRange {
        let folder = slashed(folder);
        let from = self.until.clone().unwrap_or_default();
        // The slash is followed by the zero in the order of bytes.
        let until = folder.split_last().map(|(_, inner)| [inner, b"0"].concat());
        NameRange { from: from.max(folder.into_owned()), until }
    }

    /// Returns the range of the same names below a folder, whose name ends with a slash or is empty. The first range has
    /// the folder itself.
    pub fn below(&self, folder: &[u8]) -> NameRange {
        let below = |name: &[u8]| [folder, name].concat();
        let from = if self.from.is_empty() { Vec::new() } else { below(&self.from) };
        NameRange { from, until: self.until.as_deref().map(below) }
    }

    fn is_before_end(&self, name: &[u8]) -> bool {
        self.until.as_ref().is_none_or(|until| *name < **until)
    }
}

/// Returns the name of a directory as the beginning of the names below it.
fn slashed(folder: &[u8]) -> Cow<'_, [u8]> {
    match folder {
        [] | [.., b'/'] => folder.into(),
        _ => [folder, b"/"].concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(from: &str, until: Option<&str>) -> NameRange {
        NameRange { from: from.into(), until: until.map(Into::into) }
    }

    /// Names of few bytes, the neighbours of the slash among them, so that many are close.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop::sample::select(&b"a\0./0\xff"[..]);
        prop::collection::vec(byte, 0..6)
    }

    fn any_range() -> impl Strategy<Value = NameRange> {
        (name(), prop::option::of(name())).prop_map(|(from, until)| NameRange { from, until })
    }

    proptest! {
        #[test]
        fn every_name_is_in_one_of_adjacent_ranges(
            mut cuts in prop::collection::vec(name(), 0..6),
            name in name(),
        ) {
            cuts.sort();
            let ranges = NameRange::between(&cuts);
            prop_assert_eq!(ranges.len(), cuts.len() + 1);
            prop_assert_eq!(ranges.iter().filter(|range| range.contains(&name)).count(), 1);
        }

        #[test]
        fn a_directory_is_met_where_a_name_below_it_may_be_in_the_range(
            range in any_range(),
            folder in name(),
            rest in name(),
        ) {
            let root = folder.is_empty() || folder.ends_with(b"/");
            let top = if root { folder.clone() } else { [&*folder, b"/"].concat() };
            let below = [&*top, &*rest].concat();
            if range.contains(&below) {
                prop_assert!(range.meets_folder(&folder));
            } else {
                prop_assert!(!range.holds_folder(&folder));
            }
            // The name that shows it: the directory itself, or the beginning of the range below it.
            let first = if range.from.starts_with(&top) { &range.from } else { &top };
            prop_assert_eq!(range.meets_folder(&folder), range.contains(first));
            if range.holds_folder(&folder) {
                prop_assert!(!range.ends_in_folder(&folder));
            }
        }

        #[test]
        fn the_rest_of_a_directory_is_what_follows_the_range_in_it(
            range in any_range(),
            folder in name(),
            rest in name(),
        ) {
            prop_assume!(!folder.is_empty());
            let top = if folder.ends_with(b"/") { folder.clone() } else { [&*folder, b"/"].concat() };
            let below = [&*top, &*rest].concat();
            let behind = range.until.as_ref().is_none_or(|until| *until <= below);
            prop_assert_eq!(range.rest_of_folder(&folder).contains(&below), behind);
            prop_assert!(!range.rest_of_folder(&folder).contains(&[&*top, b"\xff"].concat()[..top.len() - 1]));
        }
    }

    #[test]
    fn directories_count_with_their_slash() {
        let range = range("a/", Some("a0"));
        for (name, inside) in
            [("a", false), ("a.txt", false), ("a/", true), ("a/x", true), ("a0", false)]
        {
            assert_eq!(range.contains(name.as_bytes()), inside, "{name}");
        }
        assert!(range.holds_folder(b"a") && range.holds_folder(b"a/b") && range.meets_folder(b""));
        assert!(!range.meets_folder(b"b") && !range.meets_folder(b"a0"));
    }

    #[test]
    fn a_range_inside_a_directory_meets_it_and_does_not_hold_it() {
        let range = range("a/b/m", Some("a/b/p"));
        for folder in ["", "a", "a/b", "a/b/m", "a/b/n"] {
            assert!(range.meets_folder(folder.as_bytes()), "{folder}");
        }
        for folder in ["", "a", "a/b"] {
            assert!(!range.holds_folder(folder.as_bytes()), "{folder}");
            assert!(range.ends_in_folder(folder.as_bytes()), "{folder}");
        }
        for folder in ["a/a", "a/c", "a/b/l", "a/b/p", "b"] {
            assert!(!range.meets_folder(folder.as_bytes()), "{folder}");
        }
        let rest = range.rest_of_folder(b"a/");
        assert_eq!((&*rest.from, rest.until.as_deref()), (&b"a/b/p"[..], Some(&b"a0"[..])));
    }

    #[test]
    fn all_and_nothing() {
        assert!(NameRange::all().is_all() && NameRange::all().holds_folder(b""));
        assert!(range("b", Some("b")).is_empty() && !range("b", Some("b")).meets_folder(b""));
        assert!(!range("b", Some("c")).is_empty() && !range("", Some("c")).is_all());
    }
}
