//! Parts of a job that few jobs say anything about, each with the options that belong together.

use hakobu_sys::memory::MemoryPolicy;
use std::path::PathBuf;
use std::time::Duration;

/// Share of the operations that goes to a share of the file (`random_distribution=zoned`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Percent of the operations.
    pub access_percent: f64,
    /// Percent of the file.
    pub size_percent: f64,
}

/// Zones that are worked on one after the other (`zonemode=strided`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    /// Bytes that are moved before the next zone begins (`zonesize`).
    pub work_bytes: u64,
    /// Bytes of a zone (`zonerange`).
    pub range_bytes: u64,
    /// Bytes between the end of a zone and the beginning of the next (`zoneskip`).
    pub skip_bytes: u64,
}

/// Order of blocks beyond `rw` and a law of chance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Shares of reads and of writes; empty without `random_distribution=zoned`.
    pub shares: [Vec<Share>; 2],
    /// Numbers of blocks, repeated (`random_distribution=sequence`); empty without it.
    pub sequence: Vec<u64>,
    /// Each repetition begins that many blocks further (`random_sequence_stride`).
    pub strides: bool,
    /// Zones.
    pub zones: Option<Zones>,
}

/// Jobs that end with a job (`exit_what`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of its group.
    Group,
    /// Those that run; the next after a `stonewall` begin.
    Stonewall,
    /// All, also those that did not begin yet.
    All,
}

/// Weight of a job among those of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Weight (`flow`).
    pub weight: u32,
    /// Number of the flow (`flow_id`).
    pub id: u32,
    /// Pause of a job that is ahead of its share (`flow_sleep`).
    pub sleep: Duration,
}

/// A job among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Among {
    /// Name of the job that has to end before this one begins (`wait_for`).
    pub after: Option<String>,
    /// Jobs that end when one of its clones has ended (`exitall`, `exit_what`).
    pub exit: Option<ExitWhat>,
    /// The same where a clone ended with an error (`exitall_on_error`).
    pub exit_on_error: bool,
    /// Its share of a flow.
    pub flow: Option<Flow>,
}

defaulted! {
    /// Work of the engine `cpuio`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Cpu {
        /// Percent of the time in which it computes (`cpuload`).
        pub load_percent: u8,
        /// Length of a stretch of computing (`cpuchunks`).
        pub chunk: Duration = Duration::from_millis(50),
        /// It sorts numbers; otherwise it only waits busily (`cpumode`).
        pub sorts: bool,
        /// It ends when all jobs of other engines have ended (`exit_on_io_done`).
        pub ends_with_others: bool,
    }
}

/// Call of the engine `filestat` (`stat_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatCall {
    /// stat(2).
    #[default]
    Stat,
    /// lstat(2).
    Lstat,
    /// statx(2).
    Statx,
}

/// Details of `verify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Written blocks are not read again (`do_verify=0`).
    pub only_written: bool,
    /// Number of written blocks after which they are read again (`verify_backlog`).
    pub backlog: Option<u32>,
    /// So many of them at once (`verify_backlog_batch`).
    pub backlog_batch: Option<u32>,
    /// Distance between headers in a block, in bytes (`verify_interval`).
    pub interval_bytes: Option<u32>,
    /// The first wrong block ends the job (`verify_fatal`).
    pub fatal: bool,
    /// Wrong blocks are kept in files (`verify_dump`).
    pub dump: bool,
    /// A block of an earlier pass is right as well (`verify_write_sequence=0`).
    pub any_pass: bool,
}

/// Repetition of written blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// Percent of the blocks that are copies (`dedupe_percentage`).
    pub percent: u8,
    /// Size of the set that copies are taken from, in percent of the job's blocks
    /// (`dedupe_working_set_percentage`); `None`: of the block before (`dedupe_mode=repeat`).
    pub working_set_percent: Option<u8>,
    /// All jobs have one set (`dedupe_global`).
    pub global: bool,
}

/// Written content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes that are repeated (`buffer_pattern`, `verify_pattern`); none is content by chance.
    pub pattern: Vec<u8>,
    /// Copies among the blocks.
    pub dedupe: Option<Dedupe>,
}

/// Search for the greatest depth with a latency (`latency_target`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// The latency.
    pub latency: Duration,
    /// Time at each depth (`latency_window`).
    pub window: Duration,
    /// Percent of the blocks that have to be as fast (`latency_percentile`).
    pub percentile: f64,
    /// It goes on when the depth is found (`latency_run`).
    pub goes_on: bool,
}

defaulted! {
    /// Least rates; a job that is slower ends with an error.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Least {
        /// Bytes a second (`rate_min`).
        pub bytes_per_s: [Option<u64>; 2],
        /// Blocks a second (`rate_iops_min`).
        pub iops: [Option<u64>; 2],
        /// Time over which a rate is looked at (`rate_cycle`).
        pub cycle: Duration = Duration::from_secs(1),
    }
}

/// Nodes of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Nodes on whose CPUs it runs (`numa_cpu_nodes`); empty is all.
    pub cpus: Vec<u32>,
    /// Policy of its memory (`numa_mem_policy`).
    pub policy: MemoryPolicy,
    /// Nodes of the policy.
    pub memory: Vec<u32>,
}

/// Errors that do not end a job: of reads, of writes, of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// Any error of the device or of a check (`continue_on_error`).
    pub goes_on: [bool; 3],
    /// These errors, by their numbers (`ignore_error`).
    pub ignores: [Vec<i32>; 3],
}

/// Clocks that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Time from submission to completion (`disable_clat=0`).
    pub clat: bool,
    /// Time to submit (`disable_slat=0`).
    pub slat: bool,
    /// Both together (`disable_lat=0`).
    pub lat: bool,
    /// Bandwidth and operations over time (`disable_bw_measurement=0`).
    pub bandwidth: bool,
}

/// Logs over time (`write_bw_log` and its like): the prefix of the file's name, if wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Bandwidth.
    pub bandwidth: Option<PathBuf>,
    /// Latency.
    pub latency: Option<PathBuf>,
    /// Operations.
    pub iops: Option<PathBuf>,
    /// One entry is the mean over so long (`log_avg_msec`); zero is an entry for each operation, for
    /// bandwidth and operations one for each 500 ms.
    pub average: Duration,
}
