//! One entry of a listing: its name, and the metadata that the requested format needs.

use super::options::{Hidden, Plan, Sign};
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::dir::Reader;
use hakobu_sys::{BorrowedFd, meta};
use std::ffi::{CStr, CString};
use std::io;

/// One entry.
pub struct Entry {
    /// Its name in its directory; for an argument the path as typed.
    pub name: CString,
    /// Its metadata, if needed and available.
    pub meta: Option<Meta>,
    /// The type from the directory.
    kind: Kind,
}

impl Entry {
    /// Makes an examined entry.
    pub fn with_meta(name: CString, meta: Meta) -> Entry {
        Entry { name, meta: Some(meta), kind: meta.kind }
    }

    /// Returns its type, if known.
    pub fn kind(&self) -> Kind {
        self.meta.map_or(self.kind, |meta| meta.kind)
    }

    /// Examines it if the plan needs more than its name; returns the error if that fails.
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

/// Returns whether a name of a type is left out.
pub type Excludes<'a> = &'a dyn Fn(&CStr, Kind) -> bool;

/// Returns the names of a directory that the plan shows, except those for which `excludes` returns true.
pub fn read(
    dir: BorrowedFd<'_>,
    plan: &Plan,
    excludes: Option<Excludes<'_>>,
) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut add = |name: &CStr, kind| {
        entries.push(Entry { name: name.to_owned(), meta: None, kind });
    };
    if plan.hidden == Hidden::All {
        add(c".", Kind::Dir);
        add(c"..", Kind::Dir);
    }
    Reader::default().for_each(dir, |name, kind, _| {
        if plan.hidden == Hidden::No && name.to_bytes().starts_with(b".") {
            return;
        }
        if let Some(excludes) = excludes {
            let looked = || meta::of(dir, name, false).map_or(Kind::Unknown, |meta| meta.kind);
            let kind = if kind == Kind::Unknown { looked() } else { kind };
            if excludes(name, kind) {
                return;
            }
        }
        add(name, kind);
    })?;
    Ok(entries)
}
