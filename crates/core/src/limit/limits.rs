//! The most that may be under way at a time: jobs, open directories, new files of one turn. All follow from the
//! descriptors of this process, from the memory that a run may use, and from what it works on. Pure.

use crate::error::Fatal;
use crate::unit::Jobs;

/// Most workers on paths that are tried: beyond, threads only wait for each other.
const PATHS_JOBS_MAX: usize = 64;
/// Most requests in flight that are tried.
const STORES_JOBS_MAX: usize = 512;
/// Memory of one worker on paths: a buffer of 256 KiB, and about as much in queues and stack.
const WORKER_BYTES: u64 = 512 << 10;
/// Memory of one request besides its body: buffers of a connection and a listing's share.
const REQUEST_BYTES: u64 = 256 << 10;
/// The least budget between paths: two workers.
const PATHS_BYTES_MIN: u64 = 2 * WORKER_BYTES;
/// The least budget with a store: the largest part that is cut by default.
const STORES_BYTES_MIN: u64 = 16 << 20;

/// Descriptors that the program needs besides those of workers and directories.
const RESERVED_FILES: u64 = 32;
/// Minimum number of descriptors for sampling the machine. Its counters need about 20 of the reserved ones; with fewer
/// descriptors than this, all are left to the work.
const SAMPLED_FILES_MIN: u64 = 2 * RESERVED_FILES;
/// Descriptors that one worker on paths has open besides directories.
const OWN_FILES: u64 = 8;
/// Descriptors reserved for one worker on paths if the number of jobs is tuned: its own, directories of both sides, and
/// a batch of new files.
const WORKER_FILES: u64 = 32;
/// The same if the user gives the number: half for the worker, half for directories.
const ASKED_WORKER_FILES: u64 = 2 * OWN_FILES;
/// Descriptors of one request: a connection, a file, with room for listings.
const REQUEST_FILES: u64 = 4;

/// Directories (pairs between paths) that are kept open at most: beyond, closing and opening again costs little.
const OPEN_DIRS_MAX: u64 = 4096;
/// Directories of a local tree that are kept open while it is listed for a store.
const LISTED_DIRS_MAX: u64 = 128;
/// New files that one worker creates in one turn at most.
const BATCH_MAX: u64 = 64;

/// The kind of a run's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Trees that are walked: each directory has one descriptor.
    Walk,
    /// Paths to paths: each directory has two.
    Paths,
    /// A store is on a side.
    Store,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that may ever be under way, at least 1.
    pub jobs_max: usize,
    /// Directories (between paths: pairs of them) that are kept open.
    pub open_dirs_max: usize,
    /// New files that a worker may create in one turn, at least 1.
    pub batch_max: usize,
    /// Whether descriptors are left for the counters of the machine, which a verdict needs.
    pub samples: bool,
}

impl Limits {
    /// Divides the descriptors and the memory.
    pub fn new(
        work: Work,
        jobs: Jobs,
        memory_bytes_max: Option<u64>,
        open_files_max: u64,
    ) -> Limits {
        let spare = open_files_max.saturating_sub(RESERVED_FILES);
        let (most, bytes, files) = match (work, jobs) {
            (Work::Store, Jobs::Auto) => (STORES_JOBS_MAX, REQUEST_BYTES, REQUEST_FILES),
            (_, Jobs::Auto) => (PATHS_JOBS_MAX, WORKER_BYTES, WORKER_FILES),
            // A requested number is used, within descriptors and memory.
            (Work::Store, Jobs::Fixed(jobs)) => (jobs, REQUEST_BYTES, REQUEST_FILES),
            (_, Jobs::Fixed(jobs)) => (jobs, WORKER_BYTES, ASKED_WORKER_FILES),
        };
        let by_memory = memory_bytes_max.map_or(u64::MAX, |budget| budget / bytes);
        let jobs_max = (most as u64).min(by_memory).min(spare / files).max(1);
        let unused = spare.saturating_sub(OWN_FILES * jobs_max);
        let open_dirs_max = match work {
            Work::Walk => unused.clamp(2, OPEN_DIRS_MAX),
            Work::Paths => (unused / 2).clamp(8, OPEN_DIRS_MAX),
            Work::Store => (spare / 4).clamp(2, LISTED_DIRS_MAX),
        };
        let left = unused.saturating_sub(RESERVED_FILES + open_dirs_max);
        let batch_max = (left / (2 * jobs_max)).clamp(1, BATCH_MAX);
        // No limit exceeds its upper bound.
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Limits {
            jobs_max: count(jobs_max),
            open_dirs_max: count(open_dirs_max),
            batch_max: count(batch_max),
            samples: open_files_max >= SAMPLED_FILES_MIN,
        }
    }
}

/// The least `--memory` that a transfer can do with, in bytes: with a store on a side, that of one
/// part, `part_bytes` where the user said so.
fn memory_bytes_min(with_session: bool, part_bytes: Option<u64>) -> u64 {
    match with_session {
        true => STORES_BYTES_MIN.max(part_bytes.unwrap_or(0)),
        false => PATHS_BYTES_MIN,
    }
}

/// Refuses a budget of memory that nothing could move in.
///
/// # Errors
/// Code 1, with the least that is needed.
pub fn check_memory(
    bytes_max: Option<u64>,
    with_session: bool,
    part_bytes: Option<u64>,
) -> Result<(), Fatal> {
    let least = memory_bytes_min(with_session, part_bytes.filter(|_| with_session));
    match bytes_max {
        Some(bytes) if bytes < least => {
            let mib = least.div_ceil(1 << 20);
            let why = format!("--memory is too small: this transfer needs at least {mib} MiB");
            Err(Fatal::new(1, why))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walk(jobs: usize, open_files_max: u64) -> (usize, usize) {
        let limits = Limits::new(Work::Walk, Jobs::Fixed(jobs), None, open_files_max);
        (limits.jobs_max, limits.open_dirs_max)
    }

    #[test]
    fn few_descriptors_are_divided_between_workers_and_directories() {
        assert_eq!(walk(64, 256), (14, 112));
        assert_eq!(walk(8, 20_000), (8, 4096));
        assert_eq!(walk(8, 10), (1, 2));
    }

    #[test]
    fn memory_and_the_kind_of_work_bound_the_jobs() {
        let most = |work, memory| Limits::new(work, Jobs::Auto, memory, 1 << 20).jobs_max;
        assert_eq!((most(Work::Walk, None), most(Work::Paths, None)), (64, 64));
        assert_eq!(most(Work::Store, None), 512);
        assert_eq!(most(Work::Paths, Some(4 << 20)), 8);
        assert_eq!(most(Work::Store, Some(16 << 20)), 64);
        assert_eq!(most(Work::Store, Some(0)), 1);
    }

    #[test]
    fn one_least_budget_for_each_kind() {
        assert_eq!(memory_bytes_min(false, Some(1 << 30)), 1 << 20);
        assert_eq!(memory_bytes_min(true, None), 16 << 20);
        assert_eq!(memory_bytes_min(true, Some(5 << 20)), 16 << 20);
        assert_eq!(memory_bytes_min(true, Some(64 << 20)), 64 << 20);
        assert!(check_memory(None, true, Some(1 << 40)).is_ok());
        assert!(check_memory(Some(16 << 20), true, None).is_ok());
        let refused = check_memory(Some((64 << 20) - 1), true, Some(64 << 20)).unwrap_err();
        assert_eq!((refused.code, refused.message.contains("at least 64 MiB")), (1, true));
    }

    proptest! {
        /// The sum for workers and directories never exceeds the limit of open files.
        #[test]
        fn descriptors_go_round(
            open_files_max in 128..1_u64 << 20,
            jobs in prop_oneof![Just(Jobs::Auto), (1_usize..5000).prop_map(Jobs::Fixed)],
            memory in proptest::option::of(0..1_u64 << 40),
        ) {
            for (work, each) in [(Work::Walk, 1), (Work::Paths, 2)] {
                let limits = Limits::new(work, jobs, memory, open_files_max);
                let jobs = limits.jobs_max as u64;
                let dirs = each * limits.open_dirs_max as u64;
                prop_assert!(RESERVED_FILES + OWN_FILES * jobs + dirs <= open_files_max);
                prop_assert!(limits.batch_max >= 1 && jobs >= 1);
            }
        }
    }
}
