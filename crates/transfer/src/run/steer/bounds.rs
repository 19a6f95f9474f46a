//! How many jobs a run may have at most, and how much memory it needs at least.

use super::ends::Ends;
use crate::error::Fatal;
use crate::plan::Spec;
use crate::unit::Jobs;

/// Most workers between paths that are tried: beyond, threads only wait for each other.
const PATHS_JOBS_MAX: usize = 64;
/// Most requests in flight that are tried.
const STORES_JOBS_MAX: usize = 512;
/// What one worker between paths has: a buffer of 256 KiB, and about as much in queues and stack.
const WORKER_BYTES: u64 = 512 << 10;
/// What one request has besides its body: buffers of a connection and a listing's share.
const REQUEST_BYTES: u64 = 256 << 10;
/// Descriptors that one worker between paths may have open: folders and files of both sides, and a
/// batch of new files.
const WORKER_FILES: u64 = 32;
/// Descriptors of one request: a connection, a file, with room for listings.
const REQUEST_FILES: u64 = 4;
/// The least budget between paths: two workers.
const PATHS_BYTES_MIN: u64 = 2 * WORKER_BYTES;
/// The least budget with a store: the largest part that is cut where nobody says.
const STORES_BYTES_MIN: u64 = 16 << 20;

/// The least `--memory` that a transfer can do with, in bytes: with a store on a side, that of one
/// part, `part_bytes` where the user said so.
pub fn memory_bytes_min(with_store: bool, part_bytes: Option<u64>) -> u64 {
    match with_store {
        true => STORES_BYTES_MIN.max(part_bytes.unwrap_or(0)),
        false => PATHS_BYTES_MIN,
    }
}

/// What is said where `--memory` is less than `least` bytes.
pub fn too_little_memory(least: u64) -> String {
    format!("--memory is too small: this transfer needs at least {} MiB", least.div_ceil(1 << 20))
}

/// Refuses a budget that nothing could move in.
pub(in super::super) fn check(spec: &Spec, with_store: bool) -> Result<(), Fatal> {
    let part_bytes = spec.objects.options.part_bytes.filter(|_| with_store);
    let least = memory_bytes_min(with_store, part_bytes);
    match spec.memory_bytes_max {
        Some(bytes) if bytes < least => Err(Fatal::new(1, too_little_memory(least))),
        _ => Ok(()),
    }
}

/// The most jobs that may be under way, at least 1.
pub(super) fn jobs_max(spec: &Spec, ends: &Ends, open_files_max: u64) -> usize {
    let (most, bytes, files) = match ends.has_store() {
        true => (STORES_JOBS_MAX, REQUEST_BYTES, REQUEST_FILES),
        false => (PATHS_JOBS_MAX, WORKER_BYTES, WORKER_FILES),
    };
    let (most, files) = match spec.jobs {
        // Who asks for a number gets it, as far as descriptors go round at all.
        Jobs::Fixed(jobs) => (jobs, files.min(16)),
        Jobs::Auto => (most, files),
    };
    let by_memory = spec.memory_bytes_max.map_or(u64::MAX, |budget| budget / bytes);
    let room = by_memory.min(open_files_max / files);
    most.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1)
}
