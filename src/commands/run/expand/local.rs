//! Local names that a wildcard or a folder stands for.

use hakobu_transfer::object::list::Pattern;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

fn exists(word: &OsStr) -> bool {
    Path::new(word).symlink_metadata().is_ok()
}

/// Returns all paths that a pattern matches, by name; a star stays within its component.
pub fn matching(pattern: &[u8]) -> Vec<OsString> {
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
            let Ok(entries) = std::fs::read_dir(OsStr::from_bytes(dir)) else { continue };
            let names = entries.flatten().map(|entry| entry.file_name());
            next.extend(
                names
                    .filter(|name| wild.matches(name.as_bytes()))
                    .map(|name| joined(base, name.as_bytes())),
            );
        }
        next.sort();
        found = next;
    }
    let paths = found.into_iter().map(OsString::from_vec);
    paths.filter(|path| exists(path)).collect()
}

/// Returns everything below a folder except folders, by name. Symlinks are not followed. A folder that cannot be read
/// is returned itself, so that the command reports it.
pub fn below(folder: &OsStr) -> Vec<OsString> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(folder).to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            found.push(folder.into_os_string());
            continue;
        };
        for entry in entries.flatten() {
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push(entry.path()),
                false => found.push(entry.path().into_os_string()),
            }
        }
    }
    found.sort();
    found
}
