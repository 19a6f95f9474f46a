//! Local names that a wildcard stands for.

use hakobu_core::error::cannot;
use hakobu_transfer::object::list::Pattern;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

fn exists(word: &OsStr) -> bool {
    Path::new(word).symlink_metadata().is_ok()
}

/// Returns all paths that a pattern matches, by name; a star stays within its component.
///
/// # Errors
/// A folder cannot be read: not all names are known. One that is missing, or is none, has no names.
pub fn matching(pattern: &[u8]) -> Result<Vec<OsString>, String> {
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for (at, part) in pattern.split(|byte| *byte == b'/').enumerate() {
        let joined = |base: &[u8], name: &[u8]| match at {
            0 => name.to_vec(),
            _ => [base, b"/", name].concat(),
        };
        let Some(wild) = Pattern::parse(part) else {
            found = found.iter().map(|base| joined(base, part)).collect();
            continue;
        };
        let mut next = Vec::new();
        for base in &found {
            let dir: &[u8] = match (at, base.is_empty()) {
                (0, _) => b".",
                (_, true) => b"/",
                _ => base,
            };
            let names =
                names_in(dir).map_err(|error| cannot("read", OsStr::from_bytes(dir), error))?;
            let names = names.iter().map(|name| name.as_bytes());
            next.extend(names.filter(|name| wild.matches(name)).map(|name| joined(base, name)));
        }
        next.sort();
        found = next;
    }
    let paths = found.into_iter().map(OsString::from_vec);
    Ok(paths.filter(|path| exists(path)).collect())
}

/// Returns the names in a folder; none if it is missing or no folder.
fn names_in(dir: &[u8]) -> io::Result<Vec<OsString>> {
    match std::fs::read_dir(OsStr::from_bytes(dir)) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
