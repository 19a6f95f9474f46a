//! What the commands that move nothing share: how they stop early, how many workers they take, and
//! the JSON line of a path.

use crate::show::json::{Paths, kind_word, push_line};
use hakobu_transfer::unit::{Jobs, Kind};
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many workers look at entries: as many as there are CPUs, unless told otherwise.
pub fn workers(jobs: Jobs) -> usize {
    match jobs {
        Jobs::Auto => hakobu_sys::process::cpus(),
        Jobs::Fixed(jobs) => jobs,
    }
}

/// How many files this process may have open, after asking for as many as it can get.
pub fn open_files_max() -> u64 {
    let max = hakobu_sys::process::raise_open_files_limit();
    hakobu_sys::process::reserve_descriptors(max.min(4096));
    max
}

/// Bytes of a path as a path.
pub fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Appends the line of one entry that something happened to.
pub fn push_event(event: &'static str, bytes: &[u8], kind: Kind, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        kind: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
    }
    let paths = Paths(&[("path", Some(path(bytes)))]);
    push_line(&Line { event, kind: kind_word(kind), paths }, out);
}
