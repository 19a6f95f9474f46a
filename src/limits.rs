//! Options for concurrency, rates, memory and priority, and for the report about them: shared by several commands.

use crate::jobs;
use crate::options::{Blocks, Group, Opt, OptArg, Row, flag, parts, put, titled, value};
use crate::priority::{self, Priority};
use hakobu_core::event::Remarks;
use hakobu_core::limit::Limits;
use hakobu_core::{limit, number};
use hakobu_sys::process;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::policy::Policy;
use hakobu_transfer::run::{Layout, Objects, Spec};

/// Upper bound of a plausible rate of operations per second.
const OPERATIONS_MAX: u64 = 1_000_000_000;

/// The values of these options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitArgs {
    /// `-j`, `--jobs-per-file`, `--bwlimit`, `--memory`; without a limit of operations.
    pub base: Limits,
    /// `--iops-limit`.
    iops_max: Option<u64>,
    /// `--rps-limit`.
    rps_max: Option<u64>,
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
pub fn set_jobs<S: AsMut<LimitArgs>>(state: &mut S, arg: &OptArg) -> Result<(), String> {
    put(&mut state.as_mut().base.jobs, jobs::parse(&arg.value, process::cpus())?)
}

/// Those of commands that transfer.
pub static TRANSFER: Blocks<LimitArgs> =
    Blocks(&[&BWLIMIT, &STEER, &REPORT, &RPS, &MEMORY, &PRIORITY]);

/// Rate of content.
pub static BWLIMIT: Group<LimitArgs> = titled("LimitArgs").with(&[value(
    "bwlimit",
    None,
    "RATE",
    "bytes a second in all; a plain number is KiB",
)
.off(&["no-bwlimit"])
.reads(|args, arg| {
    let rate = if arg.on { number::parse_rate(&arg.value) } else { Ok(None) };
    put(&mut args.base.bytes_per_s_max, rate.map_err(|why| arg.refuse(why))?)
})]);

/// Rate of requests.
pub static RPS: Group<LimitArgs> = titled("LimitArgs").with(&[value(
    "rps-limit",
    None,
    "N",
    "requests a second in all, with s3://",
)
.reads(|args, arg| put(&mut args.rps_max, Some(operations(arg)?)))]);

/// Rate of file operations.
pub static IOPS: Group<LimitArgs> = titled("LimitArgs").with(&[IOPS_LIMIT]);

const IOPS_LIMIT: Opt<LimitArgs> =
    value("iops-limit", None, "N", "operations on files a second in all, without s3://")
        .reads(|args, arg| put(&mut args.iops_max, Some(operations(arg)?)));

/// Rate of file operations, and job hints.
pub static STEER: Group<LimitArgs> = titled("LimitArgs").with(&[
    IOPS_LIMIT,
    value("jobs-per-file", None, "N", "workers that move one file, between paths: N, auto")
        .local("-j is for all files together; --concurrency is for the parts of one")
        .reads(|args, arg| put(&mut args.base.jobs_per_file, jobs::parse_per_file(&arg.value)?)),
    flag("no-memory", None, "-j auto: neither use nor store a remembered number")
        .sets(|args, on| args.forgets = on),
]);

/// Reports about the run.
pub static REPORT: Group<LimitArgs> = titled("Output").with(&[
    flag("explain", None, "report what limits the run, with all evidence")
        .sets(|args, on| args.explain = on),
    flag("prove", None, "experiment during the run to prove what limits it")
        .sets(|args, on| args.prove = on),
]);

/// Memory budget.
pub static MEMORY: Group<LimitArgs> = titled("LimitArgs").with(&[value(
    "memory",
    None,
    "SIZE",
    "limit of bytes in flight and in buffers",
)
.reads(|args, arg| put(&mut args.base.memory_bytes_max, Some(arg.size()?)))]);

/// CPU and I/O priority.
pub static PRIORITY: Group<LimitArgs> = titled("LimitArgs").with(&[
    value("nice", None, "N", "CPU priority: -20 (first) to 19 (last)").reads(|args, arg| {
        let nice = priority::parse_nice(&arg.value).map_err(|why| arg.refuse(why))?;
        put(&mut args.priority.nice, Some(nice))
    }),
    value(
        "ionice",
        None,
        "CLASS[:LEVEL]",
        "I/O priority: none, realtime, best-effort, idle or 0-3, and :0 (first) to :7",
    )
    .reads(|args, arg| {
        let class = priority::parse_ionice(&arg.value).map_err(|why| arg.refuse(why))?;
        put(&mut args.priority.ionice, Some(class))
    }),
]);

parts!(LimitArgs {});

impl LimitArgs {
    /// Checks that `--memory` has room for one request to a store, a part of `part_bytes` if given.
    ///
    /// # Errors
    /// The minimum that it needs.
    pub fn check_memory(&self, part_bytes: Option<u64>) -> Result<(), String> {
        limit::check_memory(self.base.memory_bytes_max, true, part_bytes)
            .map_err(|fatal| fatal.message)
    }

    /// Returns the limits of a run. Operations are requests if a side is in S3 (`with_store`), else calls on files.
    ///
    /// # Errors
    /// The given limit of operations is of the other kind.
    pub fn of_run(&self, with_store: bool) -> Result<Limits, String> {
        let operations_per_s_max = match (self.iops_max, self.rps_max, with_store) {
            (Some(_), _, true) => Err("--iops-limit is for transfers between paths; \
                                       --rps-limit limits requests to s3://"),
            (_, Some(_), false) => Err("--rps-limit is for s3:// locations, and none is given; \
                                        --iops-limit limits operations on files"),
            (iops, rps, _) => Ok(iops.or(rps)),
        }?;
        Ok(Limits { operations_per_s_max, ..self.base })
    }

    /// Returns a transfer within `limits`; all else that these options do not say is off or the default.
    pub fn spec(
        &self,
        limits: Limits,
        (sources, target): (Sources, Location),
        layout: Layout,
        policy: Policy,
    ) -> Spec {
        Spec {
            sources,
            target,
            layout,
            files_from: None,
            chosen: None,
            policy,
            limits,
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

    fn read(options: &[(&'static str, &str)]) -> Result<LimitArgs, String> {
        let mut limits = LimitArgs::default();
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
        assert_eq!((limits.base.bytes_per_s_max, limits.iops_max), (Some(2 << 20), Some(1)));
        assert_eq!(limits.base.memory_bytes_max, Some(64 << 20));
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
        let operations = |args: &LimitArgs, with_store| {
            args.of_run(with_store).map(|limits| limits.operations_per_s_max)
        };
        assert_eq!(operations(&iops, false), Ok(Some(5)));
        assert_eq!(operations(&rps, true), Ok(Some(7)));
        assert_eq!(operations(&LimitArgs::default(), true), Ok(None));
        assert!(operations(&iops, true).unwrap_err().contains("--rps-limit"));
        assert!(operations(&rps, false).unwrap_err().contains("--iops-limit"));
    }
}
