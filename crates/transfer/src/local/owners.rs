//! Users and groups of the other end of a transfer over a remote shell: which numbers they have here. As in rsync a name
//! counts more than a number, which stays where there is no such name here; root is root.

use super::attributes::{is_acl, map_ids};
use crate::policy::IdMap;
use hakobu_core::unit::Meta;
use hakobu_remote::message::{EntryRecord, ProtocolError};
use hakobu_sys::process;
use std::collections::HashMap;
use std::ffi::CString;

/// Most names of users, and of groups, that the other end may tell.
const NAMES_MAX: usize = 1 << 18;

/// The numbers of one kind.
pub struct FarIds {
    map: IdMap,
    id_of: fn(&str) -> Option<u32>,
    /// Those whose names were told.
    known: HashMap<u32, u32>,
    /// The last one, as most files have one owner.
    last: Option<(u32, u32)>,
}

impl FarIds {
    fn new(map: IdMap, id_of: fn(&str) -> Option<u32>) -> FarIds {
        let (known, last) = Default::default();
        FarIds { map, id_of, known, last }
    }

    /// Records the name of a number; an empty one: it has none.
    fn learn(&mut self, id: u32, name: &[u8]) -> Result<(), ProtocolError> {
        if self.known.len() >= NAMES_MAX {
            return Err(ProtocolError("too many names of users are told"));
        }
        let by_name = || match str::from_utf8(name) {
            Ok(name) if id != 0 && !name.is_empty() => (self.id_of)(name),
            _ => None,
        };
        let own = self.map.of_far(id, name).or_else(by_name).unwrap_or(id);
        self.known.insert(id, own);
        self.last = None;
        Ok(())
    }

    /// Returns the number here.
    fn of(&mut self, id: u32) -> u32 {
        match self.last {
            Some((last, own)) if last == id => own,
            _ => {
                let own = self.known.get(&id).copied();
                let own = own.or_else(|| self.map.of_far(id, b"")).unwrap_or(id);
                self.last = Some((id, own));
                own
            }
        }
    }
}

/// The owners of the other end.
pub struct FarOwners {
    users: FarIds,
    groups: FarIds,
}

impl FarOwners {
    /// `users`, `groups`: the maps of the options.
    pub fn new(users: IdMap, groups: IdMap) -> FarOwners {
        FarOwners {
            users: FarIds::new(users, process::uid_of),
            groups: FarIds::new(groups, process::gid_of),
        }
    }

    /// Records the name of a number.
    ///
    /// # Errors
    /// More are told than any system has.
    pub fn learn(&mut self, is_group: bool, id: u32, name: &[u8]) -> Result<(), ProtocolError> {
        match is_group {
            true => self.groups.learn(id, name),
            false => self.users.learn(id, name),
        }
    }

    /// Gives an entry the owner that it has here, and its ACLs their users and groups.
    pub fn settle(&mut self, entry: &mut EntryRecord) {
        let Meta { uid, gid, .. } = entry.meta;
        (entry.meta.uid, entry.meta.gid) = (self.users.of(uid), self.groups.of(gid));
        for (name, value) in &mut entry.xattrs {
            if CString::new(name.as_slice()).is_ok_and(|name| is_acl(&name)) {
                map_ids(value, |id| self.users.of(id), |id| self.groups.of(id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(map: IdMap) -> FarIds {
        FarIds::new(map, |name| match name {
            "alice" => Some(70),
            "root" => Some(0),
            _ => None,
        })
    }

    #[test]
    fn names_count_more_than_numbers() {
        let mut ids = ids(IdMap::default());
        for (id, name) in [(5, "alice"), (6, "nobody-here"), (7, ""), (0, "alice"), (8, "root")] {
            ids.learn(id, name.as_bytes()).unwrap();
        }
        // Root is root, and only a name that is told is one.
        assert_eq!([5, 6, 7, 0, 8, 70].map(|id| ids.of(id)), [70, 6, 7, 0, 0, 70]);
        ids.learn(9, b"alice").unwrap();
        assert_eq!([9, 9, 5].map(|id| ids.of(id)), [70, 70, 70]);
    }

    #[test]
    fn maps_count_more_than_names() {
        let mut map = IdMap::default();
        map.add_named("bob", 1);
        map.add(5..=6, 2);
        map.add_nameless(|_| None, 3);
        let mut ids = ids(map);
        for (id, name) in [(5, "alice"), (6, "bob"), (7, ""), (8, "alice")] {
            ids.learn(id, name.as_bytes()).unwrap();
        }
        assert_eq!([5, 6, 7, 8, 9].map(|id| ids.of(id)), [2, 1, 3, 70, 3]);
    }
}
