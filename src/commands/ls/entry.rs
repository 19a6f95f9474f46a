//! One entry of a listing: its name, and what else the wanted form needs to know.

use super::{Hidden, Plan, Sign};
use hakobu_sys::dir::Reader;
use hakobu_sys::{BorrowedFd, meta};
use hakobu_transfer::unit::{Kind, Meta};
use std::ffi::{CStr, CString};
use std::io;

/// One entry.
pub struct Entry {
    /// Its name in its directory; of an argument the path as typed.
    pub name: CString,
    /// What `stat` says, where that is needed and could be had.
    pub meta: Option<Meta>,
    /// The type as the directory has it.
    kind: Kind,
}

impl Entry {
    /// An entry that was looked at.
    pub fn with_meta(name: CString, meta: Meta) -> Entry {
        Entry { name, meta: Some(meta), kind: meta.kind }
    }

    /// Its type, as far as known.
    pub fn kind(&self) -> Kind {
        self.meta.map_or(self.kind, |meta| meta.kind)
    }

    /// Looks at it if the plan needs more than its name; the error if that fails.
    pub fn complete(&mut self, dir: BorrowedFd<'_>, plan: &Plan) -> Option<io::Error> {
        let unsure = self.kind == Kind::Unknown && (plan.recursive || plan.sign == Sign::Slash);
        if !(plan.needs_meta() || plan.inode || unsure) {
            return None;
        }
        match meta::of(dir, &self.name, false) {
            Ok(meta) => {
                self.meta = Some(meta);
                None
            }
            Err(error) => Some(error),
        }
    }
}

/// The names of a directory that the plan wants to see.
pub fn read(dir: BorrowedFd<'_>, plan: &Plan) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut add = |name: &CStr, kind| {
        entries.push(Entry { name: name.to_owned(), meta: None, kind });
    };
    if plan.hidden == Hidden::All {
        add(c".", Kind::Dir);
        add(c"..", Kind::Dir);
    }
    Reader::default().for_each(dir, |name, kind, _| {
        if plan.hidden != Hidden::No || !name.to_bytes().starts_with(b".") {
            add(name, kind);
        }
    })?;
    Ok(entries)
}
