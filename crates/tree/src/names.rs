//! A list of names and types that a worker receives as one unit, stored in one buffer: separate allocations would
//! cost as much as handing over the list.

use hakobu_core::unit::Kind;
use std::cell::Cell;
use std::ffi::CStr;

/// Maximum number of names in a list: large enough to make the cost of handing it over negligible, small enough for
/// workers to finish a tree at about the same time.
pub const NAMES_MAX: usize = 64;

/// Names with the types that a listing returned (`Unknown` if it had none).
#[derive(Clone, Debug, Default)]
pub struct NameList {
    /// The names, each terminated by NUL.
    bytes: Vec<u8>,
    kinds: Vec<Kind>,
}

impl NameList {
    /// Adds a name.
    pub fn push(&mut self, name: &CStr, kind: Kind) {
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
        self.kinds.push(kind);
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns whether there are no names.
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
        let end = Position { index: self.kinds.len(), byte: self.bytes.len() };
        Cursor { list: self, next: Cell::default(), end: Cell::new(end) }
    }
}

/// Names of a large directory that are handed over in inode order.
#[derive(Debug, Default)]
pub struct ByInode {
    /// The names, each terminated by NUL.
    bytes: Vec<u8>,
    /// Inode number, offset of the name in `bytes`, type.
    names: Vec<(u64, usize, Kind)>,
}

impl ByInode {
    /// Adds a name.
    pub fn push(&mut self, name: &CStr, kind: Kind, inode: u64) {
        self.names.push((inode, self.bytes.len(), kind));
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes all names, in lists that are full except the last one.
    pub fn take(&mut self) -> impl Iterator<Item = NameList> + use<> {
        let ByInode { bytes, mut names } = std::mem::take(self);
        names.sort_unstable();
        let mut names = names.into_iter();
        std::iter::from_fn(move || {
            let mut list = NameList::default();
            for (_, at, kind) in names.by_ref().take(NAMES_MAX) {
                let name = bytes.get(at..).and_then(|rest| CStr::from_bytes_until_nul(rest).ok());
                list.push(name.unwrap_or_default(), kind);
            }
            (!list.is_empty()).then_some(list)
        })
    }
}

/// A position between two names.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    index: usize,
    byte: usize,
}

/// The remaining names of a list.
#[derive(Debug)]
pub struct Cursor<'a> {
    list: &'a NameList,
    next: Cell<Position>,
    end: Cell<Position>,
}

impl<'a> Cursor<'a> {
    /// Returns the number of remaining names.
    pub fn len(&self) -> usize {
        self.end.get().index - self.next.get().index
    }

    /// Returns whether no name remains.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next name.
    pub fn take(&self) -> Option<(&'a CStr, Kind)> {
        let at = self.next.get();
        let (name, kind, next) = (at.index < self.end.get().index).then(|| self.name(at))??;
        self.next.set(next);
        Some((name, kind))
    }

    /// Takes the last `count` names.
    pub fn split_off(&self, count: usize) -> NameList {
        let end = self.end.get();
        let mut at = self.next.get();
        while end.index - at.index > count {
            let Some((.., next)) = self.name(at) else { break };
            at = next;
        }
        self.end.set(at);
        let NameList { bytes, kinds } = self.list;
        NameList {
            bytes: bytes.get(at.byte..end.byte).unwrap_or_default().to_vec(),
            kinds: kinds.get(at.index..end.index).unwrap_or_default().to_vec(),
        }
    }

    /// Returns the name at a position, and the position after it.
    fn name(&self, at: Position) -> Option<(&'a CStr, Kind, Position)> {
        let kind = *self.list.kinds.get(at.index)?;
        let name = CStr::from_bytes_until_nul(self.list.bytes.get(at.byte..)?).ok()?;
        let next = Position { index: at.index + 1, byte: at.byte + name.count_bytes() + 1 };
        Some((name, kind, next))
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
