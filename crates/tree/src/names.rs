//! A list of names and types that a worker receives as one unit, stored in one buffer: separate allocations would
//! cost as much as handing over the list.

use hakobu_core::unit::Kind;
use hakobu_sys::dir::Strings;
use std::cell::Cell;
use std::ffi::CStr;

/// Maximum number of names in a list: large enough to make the cost of handing it over negligible, small enough for
/// workers to finish a tree at about the same time.
pub const NAMES_MAX: usize = 64;

/// Room for a usual name and its terminator, in bytes.
const NAME_BYTES: usize = 15;

/// Appends a name to a path: behind a slash, unless the path is empty or ends in one.
pub fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() && path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// Names with the types that a listing returned (`Unknown` if it had none).
#[derive(Clone, Debug, Default)]
pub struct NameList {
    names: Strings,
    kinds: Vec<Kind>,
}

impl NameList {
    /// Adds a name.
    pub fn push(&mut self, name: &CStr, kind: Kind) {
        if self.kinds.is_empty() {
            // Growing step by step would take longer than copying the names.
            self.names.reserve(NAMES_MAX, NAME_BYTES);
            self.kinds.reserve(NAMES_MAX);
        }
        self.names.push(name);
        self.kinds.push(kind);
    }

    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns whether the list has [`NAMES_MAX`] names.
    pub fn is_full(&self) -> bool {
        self.len() >= NAMES_MAX
    }

    /// Returns the types, in the order of the names.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Returns a cursor before the first name.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { list: self, next: Cell::new(0), end: Cell::new(self.len()) }
    }

    fn get(&self, index: usize) -> Option<(&CStr, Kind)> {
        Some((self.names.get(index)?, *self.kinds.get(index)?))
    }
}

/// Names of a large directory that are handed over in inode order.
#[derive(Debug, Default)]
pub struct ByInode {
    names: Strings,
    /// Inode number, index of the name, type.
    order: Vec<(u64, usize, Kind)>,
}

impl ByInode {
    /// Adds a name.
    pub fn push(&mut self, name: &CStr, kind: Kind, inode: u64) {
        self.order.push((inode, self.names.len(), kind));
        self.names.push(name);
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes all names, in lists that are full except the last one.
    pub fn take(&mut self) -> impl Iterator<Item = NameList> + use<> {
        let ByInode { names, mut order } = std::mem::take(self);
        order.sort_unstable();
        let mut order = order.into_iter();
        std::iter::from_fn(move || {
            let mut list = NameList::default();
            for (_, index, kind) in order.by_ref().take(NAMES_MAX) {
                list.push(names.get(index).unwrap_or_default(), kind);
            }
            (!list.is_empty()).then_some(list)
        })
    }
}

/// The remaining names of a list.
#[derive(Debug)]
pub struct Cursor<'a> {
    list: &'a NameList,
    /// Index of the next name.
    next: Cell<usize>,
    /// Index behind the last one.
    end: Cell<usize>,
}

impl<'a> Cursor<'a> {
    /// Returns the number of remaining names.
    pub fn len(&self) -> usize {
        self.end.get() - self.next.get()
    }

    /// Returns whether no name remains.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next name.
    pub fn take(&self) -> Option<(&'a CStr, Kind)> {
        let at = self.next.get();
        let taken = (at < self.end.get()).then(|| self.list.get(at))?;
        self.next.set(at + 1);
        taken
    }

    /// Takes the last `count` names.
    pub fn split_off(&self, count: usize) -> NameList {
        let end = self.end.get();
        let start = end - count.min(self.len());
        self.end.set(start);
        let mut list = NameList::default();
        for (name, kind) in (start..end).filter_map(|index| self.list.get(index)) {
            list.push(name, kind);
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::CString;

    proptest! {
        /// All names are returned, in inode order and in lists of bounded length.
        #[test]
        fn names_come_by_inode(inodes in proptest::collection::vec(0_u64..500, 0..300)) {
            let mut sorted = ByInode::default();
            for (at, inode) in inodes.iter().enumerate() {
                let name = CString::new(format!("{inode:03}-{at:03}")).unwrap();
                sorted.push(&name, Kind::File, *inode);
            }
            let mut seen = Vec::new();
            for list in sorted.take() {
                prop_assert!(!list.is_empty() && list.len() <= NAMES_MAX);
                let names = list.cursor();
                while let Some((name, _)) = names.take() {
                    seen.push(name.to_str().unwrap().to_owned());
                }
            }
            let mut expected: Vec<String> =
                inodes.iter().enumerate().map(|(at, inode)| format!("{inode:03}-{at:03}")).collect();
            expected.sort();
            prop_assert_eq!(seen, expected);
            prop_assert!(sorted.is_empty());
        }

        /// Every name is taken once, by one cursor or by the cursor of a list that was split off.
        #[test]
        fn names_are_taken_once_and_in_order(
            names in proptest::collection::vec("[a-z]{1,20}", 0..80),
            taken in 0_usize..90,
            split in 0_usize..90,
        ) {
            let mut list = NameList::default();
            for (at, name) in names.iter().enumerate() {
                let kind = if at % 3 == 0 { Kind::Dir } else { Kind::File };
                list.push(&CString::new(name.as_str()).unwrap(), kind);
            }
            let text = |name: &CStr| name.to_str().unwrap().to_owned();
            let cursor = list.cursor();
            let mut seen: Vec<_> =
                (0..taken).map_while(|_| cursor.take()).map(|(name, kind)| (text(name), kind)).collect();
            let left = cursor.len();
            let other = cursor.split_off(split);
            prop_assert_eq!(other.len(), split.min(left));
            prop_assert_eq!(cursor.len(), left - other.len());
            while let Some((name, kind)) = cursor.take() {
                seen.push((text(name), kind));
            }
            let rest = other.cursor();
            while let Some((name, kind)) = rest.take() {
                seen.push((text(name), kind));
            }
            let all: Vec<_> = names.iter().cloned().zip(list.kinds().iter().copied()).collect();
            prop_assert_eq!(seen, all);
        }
    }
}
