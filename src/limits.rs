//! Options for concurrency, rates, memory and priority, and for the report about them: shared by several commands.

use crate::jobs;
use crate::options::{Blocks, Group, Opt, OptArg, Row, flag, parts, put, titled, value};
use crate::priority::{self, Priority};
use hakobu_core::event::Remarks;
use hakobu_core::unit::Jobs;
use hakobu_core::{limit, number};
use hakobu_sys::process;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::{Layout, Objects, Rates, Spec};

/// Upper bound of a plausible rate of operations per second.
const OPERATIONS_MAX: u64 = 1_000_000_000;

/// The values of these options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `-j`.
    pub jobs: Jobs,
    /// `--jobs-per-file`.
    pub jobs_per_file: Jobs,
    /// `--bwlimit`, in bytes per second.
    pub bytes_per_s_max: Option<u64>,
    /// `--iops-limit`.
    iops_max: Option<u64>,
    /// `--rps-limit`.
    rps_max: Option<u64>,
    /// `--memory`, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// `--no-memory`.
    forgets: bool,
    /// `--explain`.
    pub explain: bool,
    /// `--prove`.
    pub prove: bool,
    /// `--nice`, `--ionice`.
    pub priority: Priority,
}

/// `-j`, for commands that list it in their own table.
pub const JOBS: Row = value("jobs", Some('j'), "N", "workers: N, +N, -N, N%, 0 (many), auto");

/// Sets the number of jobs.
///
/// # Errors
/// It is not a number of jobs.
pub fn set_jobs<S: AsMut<Limits>>(state: &mut S, arg: &OptArg) -> Result<(), String> {
    put(&mut state.as_mut().jobs, jobs::parse(&arg.value, process::cpus())?)
}

/// Those of commands that transfer.
pub static TRANSFER: Blocks<Limits> =
    Blocks(&[&BWLIMIT, &STEER, &REPORT, &RPS, &MEMORY, &PRIORITY]);

/// Rate of content.
pub static BWLIMIT: Group<Limits> = titled("Limits").with(&[value(
    "bwlimit",
    None,
    "RATE",
    "bytes a second in all; a plain number is KiB",
)
.off(&["no-bwlimit"])
.reads(|limits, arg| {
    let rate = if arg.on { number::parse_rate(&arg.value) } else { Ok(None) };
    put(&mut limits.bytes_per_s_max, rate.map_err(|why| arg.refuse(why))?)
})]);

/// Rate of requests.
pub static RPS: Group<Limits> =
    titled("Limits").with(&[value("rps-limit", None, "N", "requests a second in all, with s3://")
        .reads(|limits, arg| put(&mut limits.rps_max, Some(operations(arg)?)))]);

/// Rate of file operations.
pub static IOPS: Group<Limits> = titled("Limits").with(&[IOPS_LIMIT]);

const IOPS_LIMIT: Opt<Limits> =
    value("iops-limit", None, "N", "operations on files a second in all, without s3://")
        .reads(|limits, arg| put(&mut limits.iops_max, Some(operations(arg)?)));

/// Rate of file operations, and job hints.
pub static STEER: Group<Limits> = titled("Limits").with(&[
    IOPS_LIMIT,
    value("jobs-per-file", None, "N", "workers that move one file, between paths: N, auto")
        .local("-j is for all files together; --concurrency is for the parts of one")
        .reads(|limits, arg| put(&mut limits.jobs_per_file, jobs::parse_per_file(&arg.value)?)),
    flag("no-memory", None, "-j auto: neither use nor store a remembered number")
        .sets(|limits, on| limits.forgets = on),
]);

/// Reports about the run.
pub static REPORT: Group<Limits> = titled("Output").with(&[
    flag("explain", None, "report what limits the run, with all evidence")
        .sets(|limits, on| limits.explain = on),
    flag("prove", None, "experiment during the run to prove what limits it")
        .sets(|limits, on| limits.prove = on),
]);

/// Memory budget.
pub static MEMORY: Group<Limits> = titled("Limits").with(&[value(
    "memory",
    None,
    "SIZE",
    "limit of bytes in flight and in buffers",
)
.reads(|limits, arg| put(&mut limits.memory_bytes_max, Some(arg.size()?)))]);

/// CPU and I/O priority.
pub static PRIORITY: Group<Limits> = titled("Limits").with(&[
    value("nice", None, "N", "CPU priority: -20 (first) to 19 (last)").reads(|limits, arg| {
        let nice = priority::parse_nice(&arg.value).map_err(|why| arg.refuse(why))?;
        put(&mut limits.priority.nice, Some(nice))
    }),
    value(
        "ionice",
        None,
        "CLASS[:LEVEL]",
        "I/O priority: none, realtime, best-effort, idle or 0-3, and :0 (first) to :7",
    )
    .reads(|limits, arg| {
        let class = priority::parse_ionice(&arg.value).map_err(|why| arg.refuse(why))?;
        put(&mut limits.priority.ionice, Some(class))
    }),
]);

parts!(Limits {});

impl Limits {
    /// Checks that `--memory` has room for one request to a store, a part of `part_bytes` if given.
    ///
    /// # Errors
    /// The minimum that it needs.
    pub fn check_memory(&self, part_bytes: Option<u64>) -> Result<(), String> {
        limit::check_memory(self.memory_bytes_max, true, part_bytes).map_err(|fatal| fatal.message)
    }

    /// Returns the limits of a walk over trees.
    ///
    /// # Errors
    /// As [`Limits::operations_per_s_max`].
    pub fn rates(&self) -> Result<Rates, String> {
        let operations_per_s_max = self.operations_per_s_max(false)?;
        Ok(Rates { bytes_per_s_max: self.bytes_per_s_max, operations_per_s_max })
    }

    /// Returns the limit of operations per second: requests if a side is in S3 (`with_store`), else operations on
    /// files.
    ///
    /// # Errors
    /// The given limit is of the other kind.
    pub fn operations_per_s_max(&self, with_store: bool) -> Result<Option<u64>, String> {
        match (self.iops_max, self.rps_max, with_store) {
            (Some(_), _, true) => Err("--iops-limit is for transfers between paths; \
                                       --rps-limit limits requests to s3://"
                .into()),
            (_, Some(_), false) => Err("--rps-limit is for s3:// locations, and none is given; \
                                        --iops-limit limits operations on files"
                .into()),
            (iops, rps, _) => Ok(iops.or(rps)),
        }
    }

    /// Returns a transfer under these limits except for that of operations; all else is off or the default.
    pub fn spec(&self, sources: Sources, target: Location, layout: Layout, policy: Policy) -> Spec {
        Spec {
            sources,
            target,
            layout,
            files_from: None,
            chosen: None,
            policy,
            jobs: self.jobs,
            jobs_per_file: self.jobs_per_file,
            bytes_per_s_max: self.bytes_per_s_max,
            operations_per_s_max: None,
            memory_bytes_max: self.memory_bytes_max,
            remember: !self.forgets,
            jobs_before: None,
            prove: self.prove,
            items: false,
            items_unchanged: false,
            plans: false,
            ordered: false,
            remarks: Remarks::default(),
            digest: None,
            mkpath: false,
            carried: None,
            check_space: false,
            log_file: None,
            objects: Objects::default(),
        }
    }
}

/// Parses a number of operations per second.
fn operations(arg: &OptArg) -> Result<u64, String> {
    arg.parsed()
        .filter(|number| (1..=OPERATIONS_MAX).contains(number))
        .ok_or_else(|| arg.refuse("is not a whole number from 1 to 1000000000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&'static str, &str)]) -> Result<Limits, String> {
        let mut limits = Limits::default();
        let all = [&[JOBS.reads(set_jobs)], BWLIMIT.1, STEER.1, RPS.1, MEMORY.1];
        for (name, value) in options {
            let arg = OptArg { name, on: true, count: 1, value: value.into() };
            let option = all.iter().copied().flatten().find(|option| option.row.name == *name);
            option.expect("an option").set(&mut limits, &arg)?;
        }
        Ok(limits)
    }

    #[test]
    fn limits() {
        let limits = read(&[("bwlimit", "2m"), ("iops-limit", "1"), ("memory", "64M")]).unwrap();
        assert_eq!((limits.bytes_per_s_max, limits.iops_max), (Some(2 << 20), Some(1)));
        assert_eq!(limits.memory_bytes_max, Some(64 << 20));
        for (name, value) in [
            ("iops-limit", "0"),
            ("iops-limit", "-1"),
            ("iops-limit", "1.5"),
            ("rps-limit", "1k"),
            ("rps-limit", ""),
            ("rps-limit", "1000000001"),
            ("rps-limit", "99999999999999999999"),
            ("memory", "much"),
            ("bwlimit", "1b"),
            ("jobs", "x"),
            ("jobs-per-file", "0"),
            ("jobs-per-file", "50%"),
        ] {
            let message = read(&[(name, value)]).unwrap_err();
            assert!(message.contains(value), "{message}");
        }
    }

    #[test]
    fn each_limit_of_operations_has_its_place() {
        let (iops, rps) =
            (read(&[("iops-limit", "5")]).unwrap(), read(&[("rps-limit", "7")]).unwrap());
        assert_eq!(iops.operations_per_s_max(false), Ok(Some(5)));
        assert_eq!(rps.operations_per_s_max(true), Ok(Some(7)));
        assert_eq!(Limits::default().operations_per_s_max(true), Ok(None));
        assert!(iops.operations_per_s_max(true).unwrap_err().contains("--rps-limit"));
        assert!(rps.operations_per_s_max(false).unwrap_err().contains("--iops-limit"));
    }
}
