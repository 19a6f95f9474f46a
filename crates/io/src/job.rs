//! A job: a section of a job file, with all defaults filled in (fio(1), "job file
//! parameters").

mod engine;
mod parts;
mod priority;

pub use super::sizes::Sizes;
use super::steady::Steady;
pub use engine::{Engine, Named, VerifyKind};
pub use hakobu_sys::blocks::Sync;
pub use parts::{
    Aim, Among, Checks, Clocks, Cpu, Dedupe, ExitWhat, Flow, Least, Logs, Nodes, Share, Spread,
    StatCall, Tolerance, Written, Zones,
};
pub use priority::{Ioprio, Priorities, PriorityShare};
use std::path::PathBuf;
use std::time::Duration;

/// Direction and order (`rw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// In random order.
    pub random: bool,
}

impl Rw {
    const fn new(reads: bool, writes: bool, random: bool) -> Rw {
        Rw { reads, writes, random }
    }

    /// fio's names, and whether what is written are trims; of two names for one the first is said.
    pub const NAMES: &[(&str, Rw, bool)] = &[
        ("read", Rw::new(true, false, false), false),
        ("write", Rw::new(false, true, false), false),
        ("rw", Rw::new(true, true, false), false),
        ("readwrite", Rw::new(true, true, false), false),
        ("randread", Rw::new(true, false, true), false),
        ("randwrite", Rw::new(false, true, true), false),
        ("randrw", Rw::new(true, true, true), false),
        ("trim", Rw::new(false, true, false), true),
        ("randtrim", Rw::new(false, true, true), true),
    ];
}

/// Bytes, or a share of the existing size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file or device.
    Percent(u8),
}

/// Distribution of blocks (`random_distribution`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf's law with this theta.
    Zipf(f64),
    /// By shares of the file ([`Spread::shares`]).
    Zoned,
    /// In a given order ([`Spread::sequence`]).
    Sequence,
}

defaulted! {
    /// A job. Pairs are for reads and writes, in this order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Job {
        /// Its section's name.
        pub name: String,
        /// Options as they were given, in fio's names, globals apart.
        pub given: Vec<(String, String)>,
        /// Direction and order.
        pub rw: Rw = Rw { reads: true, writes: false, random: false },
        /// Share of reads where both, percent (`rwmixread`).
        pub read_percent: u8 = 50,
        /// Bytes of a block; of several sizes the largest.
        pub block_bytes: [u64; 2] = [4096; 2],
        /// Its sizes, where there are several (`bsrange`, `bssplit`).
        pub sizes: [Option<Sizes>; 2],
        /// Bytes that are left out after each block of a sequence, or gone back (`rw=read:8k`).
        pub skip_bytes: i64,
        /// Blocks that follow each other at each random place (`rw=randread:8`).
        pub run_blocks: u32 = 1,
        /// Blocks after which each clone is done (`number_ios`).
        pub blocks_max: Option<u64>,
        /// Bytes over which it works, over all of its files (`size`).
        pub size: Option<Amount>,
        /// Bytes after which it is done, if other than `size` (`io_size`).
        pub io_bytes: Option<u64>,
        /// Offset in each file.
        pub offset: Amount = Amount::Bytes(0),
        /// Distance between the beginnings of clones (`offset_increment`).
        pub offset_increment: Amount = Amount::Bytes(0),
        /// Bytes of each file (`filesize`); of a range the least.
        pub file_bytes: Option<u64>,
        /// The most bytes of a file, where `filesize` is a range.
        pub file_bytes_max: Option<u64>,
        /// Files of each clone (`nrfiles`).
        pub files: u32 = 1,
        /// Files or devices by name, shared by all clones (`filename`).
        pub filenames: Vec<PathBuf>,
        /// Folders of files (`directory`); none: the working directory. Of several each clone has one,
        /// in turn.
        pub directories: Vec<PathBuf>,
        /// Clones of it (`numjobs`).
        pub clones: u32 = 1,
        /// The engine.
        pub engine: Engine = Engine::Psync,
        /// Blocks in flight (`iodepth`).
        pub depth: u32 = 1,
        /// Blocks that are submitted at once (`iodepth_batch_submit`).
        pub batch_submit: u32 = 1,
        /// Blocks that are waited for at once, at least (`iodepth_batch_complete_min`).
        pub batch_complete_min: u32 = 1,
        /// And at most (`iodepth_batch_complete_max`).
        pub batch_complete_max: u32 = 1,
        /// Depth to sink to before blocks are submitted again (`iodepth_low`).
        pub depth_low: u32 = 1,
        /// Past the page cache (O_DIRECT).
        pub direct: bool,
        /// Each write waits for the device (`sync`).
        pub sync: Sync = Sync::None,
        /// Blocks of files are reserved before (`fallocate`).
        pub reserve: bool = true,
        /// Files are written before they are written to (`overwrite`).
        pub overwrite: bool,
        /// Number of writes between two fsync(2) calls; 0 means never.
        pub fsync_every: u32,
        /// Number of writes between two fdatasync(2) calls; 0 means never.
        pub fdatasync_every: u32,
        /// fsync(2) at the end.
        pub end_fsync: bool,
        /// Drop what the page cache holds of the files before it begins.
        pub invalidate: bool = true,
        /// Ends after so long at the latest.
        pub runtime: Option<Duration>,
        /// Begins again until `runtime` is over.
        pub time_based: bool,
        /// Ends where it is steady (`steadystate`).
        pub steady: Option<Steady>,
        /// Not counted, at the beginning (`ramp_time`).
        pub ramp: Duration,
        /// Number of repetitions.
        pub loops: u64 = 1,
        /// Waits before it begins.
        pub start_delay: Duration,
        /// The longest such wait, where it is a range: each clone has its own.
        pub start_delay_max: Option<Duration>,
        /// Bytes a second at most.
        pub rate_bytes_per_s: [Option<u64>; 2],
        /// Blocks a second at most.
        pub rate_iops: [Option<u64>; 2],
        /// Blocks arrive at random with that rate (`rate_process=poisson`), not evenly.
        pub poisson: bool,
        /// Pause after `think_blocks` blocks (`thinktime`).
        pub think: Duration,
        /// See there (`thinktime_blocks`).
        pub think_blocks: u32 = 1,
        /// Every block once, none twice (`norandommap=0`).
        pub random_map: bool = true,
        /// The same sequence at every execution (`randrepeat`).
        pub random_repeat: bool = true,
        /// Seed of it (`randseed`); without one the pattern repeats as well.
        pub seed: u64 = 0x89,
        /// Distribution of blocks.
        pub distribution: Distribution = Distribution::Uniform,
        /// Compressibility of written blocks, percent.
        pub compress_percent: Option<u8>,
        /// New content for every block (`refill_buffers`).
        pub refill: bool,
        /// All zeros (`zero_buffers`).
        pub zero: bool,
        /// Written blocks carry a checksum, and are read again.
        pub verify: Option<VerifyKind>,
        /// Percentiles to report (`percentile_list`).
        pub percentiles: Vec<f64> = PERCENTILES.to_vec(),
        /// Report percentiles of completion latency (`clat_percentiles`).
        pub clat_percentiles: bool = true,
        /// Report percentiles of total latency (`lat_percentiles`).
        pub lat_percentiles: bool,
        /// One report for all clones, and all jobs up to the next group (`group_reporting`).
        pub group_reporting: bool,
        /// Begins a group of its own (`new_group`).
        pub new_group: bool,
        /// Waits for all jobs before it (`stonewall`).
        pub stonewall: bool,
        /// CPUs that it may use; empty is all.
        pub cpus: Vec<u32>,
        /// One of these CPUs for each clone (`cpus_allowed_policy=split`).
        pub cpus_split: bool,
        /// Buffers are registered with io_uring.
        pub fixed_buffers: bool,
        /// Files are registered with io_uring.
        pub register_files: bool,
        /// Clocks that are read (`gtod_reduce`, `disable_…`).
        pub clocks: Clocks = Clocks { clat: true, slat: true, lat: true, bandwidth: true },
        /// Logs over time.
        pub logs: Logs,
        /// Log files have a column of offsets (`log_offset`).
        pub log_offset: bool,
        /// Their column of priorities has the whole number (`log_prio`).
        pub log_priority: bool,
        /// I/O priorities.
        pub priorities: Priorities,
        /// Each block is written as a whole or not at all (`atomic`).
        pub atomic: bool,
        /// Its files begin empty and grow (`create_on_open`).
        pub grows: bool,
        /// It writes until there is no room left (`fill_device`).
        pub fills: bool,
        /// Only lays its files out (`create_only`).
        pub create_only: bool,
        /// Its files have to be there (`allow_file_create=0`).
        pub must_exist: bool,
        /// Files are deleted at the end (`unlink`).
        pub unlink: bool,
        /// Its writes are trims: they give ranges back (`rw=trim`).
        pub trims: bool,
        /// Alignment of random blocks, if other than their size (`blockalign`).
        pub align_bytes: [Option<u64>; 2],
        /// Order of blocks beyond `rw`.
        pub spread: Spread,
        /// Its place among other jobs.
        pub among: Among,
        /// Threads of their own submit its blocks (`io_submit_mode=offload`).
        pub offload: bool,
        /// Names of files without `filename` (`filename_format`).
        pub name_format: Option<String>,
        /// Work of the engine `cpuio`.
        pub cpu: Cpu,
        /// Call of the engine `filestat`.
        pub stat: StatCall,
        /// Details of `verify`.
        pub checks: Checks,
        /// Written content.
        pub written: Written,
        /// Search for a depth.
        pub aim: Option<Aim>,
        /// Least rates.
        pub least: Least,
        /// Nodes of the machine.
        pub nodes: Nodes,
        /// Errors that do not end it.
        pub tolerates: Tolerance,
    }
}

/// Percentiles that fio says unless told otherwise.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Job {
    /// fio's name of its order and direction: `randread`.
    pub fn rw_name(&self) -> &'static str {
        let is = |(_, rw, trims): &&(&str, Rw, bool)| *rw == self.rw && *trims == self.trims;
        Rw::NAMES.iter().find(is).map_or("read", |(name, ..)| name)
    }
}

/// Number of the group that a job is reported in: one with `stonewall` or `new_group` begins a group, unless it is
/// the first (fio(1), "group_reporting", "new_group").
pub(crate) fn report_group(jobs: &[Job], job: usize) -> usize {
    jobs.iter().take(job + 1).skip(1).filter(|job| job.stonewall || job.new_group).count()
}

#[cfg(test)]
pub(crate) mod tests;
