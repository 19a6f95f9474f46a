//! Check of the free space before files are laid out.

use super::found::{Found, folder_of};
use super::wish::Wish;
use hakobu_sys::{AsFd, disk};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Demand on one file system.
#[derive(Debug, Default)]
struct Demand {
    bytes: u64,
    files: u64,
    /// Some folder or file on it.
    place: PathBuf,
}

/// Compares required with free space (statvfs(3)), for each file system.
///
/// # Errors
/// It does not fit, or is mounted read-only; the place, and both numbers.
pub(super) fn check(wishes: &[Wish<'_>]) -> Result<(), String> {
    let mut demands: BTreeMap<u64, Demand> = BTreeMap::new();
    for wish in wishes.iter().filter(|wish| wish.lacks_bytes() > 0) {
        let place: &Path = match wish.found {
            Found::Absent => folder_of(&wish.path),
            _ => &wish.path,
        };
        let entry = std::fs::metadata(place);
        let entry = entry.map_err(|error| format!("{}: {error}", place.display()))?;
        let demand = demands.entry(entry.dev()).or_default();
        demand.bytes = demand.bytes.saturating_add(wish.lacks_bytes());
        demand.files += u64::from(wish.found == Found::Absent);
        demand.place = place.to_owned();
    }
    demands.values().try_for_each(fits)
}

fn fits(demand: &Demand) -> Result<(), String> {
    let Demand { bytes, files, place } = demand;
    let place = place.display();
    let space = std::fs::File::open(&demand.place).and_then(|at| disk::space(at.as_fd()));
    let space = space.map_err(|error| format!("{place}: {error}"))?;
    if space.read_only {
        return Err(format!("{place}: its file system is mounted read-only"));
    }
    // Some file systems say nothing at all (ramfs).
    let is_known = space.free_bytes > 0 || space.used_bytes > 0;
    if is_known && *bytes > space.free_bytes {
        let free = space.free_bytes;
        return Err(format!(
            "{place}: files of {bytes} bytes are to be laid out on this file system, and {free} \
             bytes are free"
        ));
    }
    match space.free_inodes {
        Some(free) if *files > free => Err(format!(
            "{place}: {files} files are to be laid out on this file system, and {free} inodes are \
             free"
        )),
        _ => Ok(()),
    }
}
