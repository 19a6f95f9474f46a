//! A job: a section of a job file, with all defaults filled in (fio(1), "job file
//! parameters").

mod blocks;

use crate::steady::SteadyState;
pub use blocks::{BlockSizes, Ioprio, Priorities, PriorityShare};
pub use hakobu_sys::blocks::Sync;
use hakobu_sys::memory::MemoryPolicy;
use std::path::PathBuf;
use std::time::Duration;

/// Direction and order (`rw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    pub reads: bool,
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
    /// By shares of the file ([`BlockOrder::shares`]).
    Zoned,
    /// In a given order ([`BlockOrder::sequence`]).
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
        pub sizes: [Option<BlockSizes>; 2],
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
        pub engine: EngineKind = EngineKind::Psync,
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
        pub steady: Option<SteadyState>,
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
        pub logs: LogPrefixes,
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
        pub spread: BlockOrder,
        /// Its place among other jobs.
        pub among: JobRelations,
        /// Threads of their own submit its blocks (`io_submit_mode=offload`).
        pub offload: bool,
        /// Names of files without `filename` (`filename_format`).
        pub name_format: Option<String>,
        /// Work of the engine `cpuio`.
        pub cpu: CpuBurn,
        /// Call of the engine `filestat`.
        pub stat: StatCall,
        /// Details of `verify`.
        pub checks: VerifyOptions,
        pub written: BufferContent,
        /// Search for a depth.
        pub aim: Option<LatencyTarget>,
        pub least: MinimumRates,
        /// Nodes of the machine.
        pub nodes: NumaNodes,
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

/// The engine of blocks (`ioengine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// lseek(2), read(2) and write(2).
    Sync,
    /// pread(2) and pwrite(2).
    Psync,
    /// preadv2(2) and pwritev2(2).
    Pvsync2,
    /// Linux's asynchronous I/O, io_submit(2).
    Libaio,
    /// io_uring(7).
    IoUring,
    /// mmap(2) and a copy.
    Mmap,
    /// A copy from and to memory of its own, which is first touched by that.
    PageFault,
    /// No operation: measures the cost of the benchmark itself.
    Null,
    /// fallocate(2).
    Falloc,
    /// ftruncate(2) to the beginning of each block.
    Ftruncate,
    /// Files are created.
    FileCreate,
    /// stat(2) of files.
    FileStat,
    /// Files are removed.
    FileDelete,
    /// Folders are created.
    DirCreate,
    /// stat(2) of folders.
    DirStat,
    /// Folders are removed.
    DirDelete,
    /// The CPU is kept busy.
    CpuIo,
}

/// Use of a file's name by an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameUse {
    /// Its content is moved.
    Content,
    /// It is never opened.
    Nothing,
    /// It is made.
    Made { folder: bool },
    /// It is looked at.
    Seen { folder: bool },
    /// It is removed.
    Removed { folder: bool },
}

impl EngineKind {
    /// fio's names of all of them; of several for one the first is said.
    pub const NAMES: &[(&str, EngineKind)] = &[
        ("sync", EngineKind::Sync),
        ("psync", EngineKind::Psync),
        ("pvsync2", EngineKind::Pvsync2),
        ("libaio", EngineKind::Libaio),
        // Both are other names of it in fio.
        ("linuxaio", EngineKind::Libaio),
        ("aio", EngineKind::Libaio),
        ("io_uring", EngineKind::IoUring),
        ("mmap", EngineKind::Mmap),
        ("page_fault", EngineKind::PageFault),
        ("null", EngineKind::Null),
        // fio's example of an engine in C++, which does nothing as well.
        ("cpp_null", EngineKind::Null),
        ("falloc", EngineKind::Falloc),
        ("ftruncate", EngineKind::Ftruncate),
        ("filecreate", EngineKind::FileCreate),
        ("filestat", EngineKind::FileStat),
        ("filedelete", EngineKind::FileDelete),
        ("dircreate", EngineKind::DirCreate),
        ("dirstat", EngineKind::DirStat),
        ("dirdelete", EngineKind::DirDelete),
        ("cpuio", EngineKind::CpuIo),
    ];

    /// fio's name of it.
    pub fn name(self) -> &'static str {
        EngineKind::NAMES.iter().find(|(_, engine)| *engine == self).map_or("", |(name, _)| name)
    }

    /// Its use of the names of its files.
    pub fn named(self) -> NameUse {
        match self {
            EngineKind::Null | EngineKind::PageFault | EngineKind::CpuIo => NameUse::Nothing,
            EngineKind::FileCreate => NameUse::Made { folder: false },
            EngineKind::DirCreate => NameUse::Made { folder: true },
            EngineKind::FileStat => NameUse::Seen { folder: false },
            EngineKind::DirStat => NameUse::Seen { folder: true },
            EngineKind::FileDelete => NameUse::Removed { folder: false },
            EngineKind::DirDelete => NameUse::Removed { folder: true },
            _ => NameUse::Content,
        }
    }

    /// Each operation is about a name, not about content.
    pub fn is_of_names(self) -> bool {
        !matches!(self.named(), NameUse::Content | NameUse::Nothing)
    }
}

/// Method of checking written blocks (`verify`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyKind {
    /// CRC-32.
    Crc32,
    /// CRC-32C.
    Crc32c,
    /// CRC-64.
    Crc64,
    /// MD5.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512; its first half.
    Sha512,
    /// xxHash, 64 bits.
    Xxhash,
    /// None: only where a block belongs and which pass wrote it.
    Meta,
    /// The bytes of the pattern, without a header.
    Pattern,
}

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
pub struct BlockOrder {
    /// Shares of reads and of writes; empty without `random_distribution=zoned`.
    pub shares: [Vec<Share>; 2],
    /// Numbers of blocks, repeated (`random_distribution=sequence`); empty without it.
    pub sequence: Vec<u64>,
    /// Each repetition begins that many blocks further (`random_sequence_stride`).
    pub strides: bool,
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
pub struct FlowShare {
    /// Weight (`flow`).
    pub weight: u32,
    /// Number of the flow (`flow_id`).
    pub id: u32,
    /// Pause of a job that is ahead of its share (`flow_sleep`).
    pub sleep: Duration,
}

/// A job among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRelations {
    /// Name of the job that has to end before this one begins (`wait_for`).
    pub after: Option<String>,
    /// Jobs that end when one of its clones has ended (`exitall`, `exit_what`).
    pub exit: Option<ExitWhat>,
    /// The same where a clone ended with an error (`exitall_on_error`).
    pub exit_on_error: bool,
    pub flow: Option<FlowShare>,
}

defaulted! {
    /// Work of the engine `cpuio`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CpuBurn {
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
pub struct VerifyOptions {
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
pub struct DedupeOptions {
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
pub struct BufferContent {
    /// Bytes that are repeated (`buffer_pattern`, `verify_pattern`); none is content by chance.
    pub pattern: Vec<u8>,
    /// Copies among the blocks.
    pub dedupe: Option<DedupeOptions>,
}

/// Search for the greatest depth with a latency (`latency_target`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
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
    pub struct MinimumRates {
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
pub struct NumaNodes {
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
pub struct LogPrefixes {
    pub bandwidth: Option<PathBuf>,
    pub latency: Option<PathBuf>,
    /// Operations.
    pub iops: Option<PathBuf>,
    /// One entry is the mean over so long (`log_avg_msec`); zero is an entry for each operation, for
    /// bandwidth and operations one for each 500 ms.
    pub average: Duration,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A job as fio's defaults have it, with this `rw`, for the tests of other modules.
    pub(crate) fn job(rw: &str) -> Job {
        let random = rw.starts_with("rand");
        let way = rw.trim_start_matches("rand");
        Job {
            name: "job".to_owned(),
            rw: Rw { reads: way != "write", writes: way != "read", random },
            percentiles: vec![50.0, 99.0],
            ..Job::default()
        }
    }
}
