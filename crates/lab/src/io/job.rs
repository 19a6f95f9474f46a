//! What one job does: a section of a job file, with all defaults filled in (fio(1), "job file
//! parameters").

use std::path::PathBuf;
use std::time::Duration;

/// Which way, and in which order (`rw`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rw {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// In random order.
    pub random: bool,
}

/// How a block goes (`ioengine`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
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
    /// Nothing happens: what the benchmark itself costs.
    Null,
}

/// Bytes, or a share of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file or device.
    Percent(u8),
}

/// Which blocks are likely (`random_distribution`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf's law with this theta.
    Zipf(f64),
}

/// How written blocks can be told to be right (`verify`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyKind {
    /// CRC-32.
    Crc32,
    /// CRC-32C.
    Crc32c,
    /// CRC-64.
    Crc64,
    /// SHA-256.
    Sha256,
}

/// Which clocks are read.
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

/// A job. Pairs are for reads and writes, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its section's name.
    pub name: String,
    /// Options as they were given, in fio's names, globals apart.
    pub given: Vec<(String, String)>,
    /// Which way and in which order.
    pub rw: Rw,
    /// Share of reads where both, percent (`rwmixread`).
    pub read_percent: u8,
    /// Bytes of a block.
    pub block_bytes: [u64; 2],
    /// Bytes over which it works, over all of its files (`size`).
    pub size: Option<Amount>,
    /// Bytes after which it is done, if other than `size` (`io_size`).
    pub io_bytes: Option<u64>,
    /// Where in each file it begins.
    pub offset: Amount,
    /// How much further each clone begins (`offset_increment`).
    pub offset_increment_bytes: u64,
    /// Bytes of each file (`filesize`).
    pub file_bytes: Option<u64>,
    /// Files of each clone (`nrfiles`).
    pub files: u32,
    /// Files or devices by name, shared by all clones (`filename`).
    pub filenames: Vec<PathBuf>,
    /// Where files are laid out (`directory`); none: where it is run. Of several each clone has one,
    /// in turn.
    pub directories: Vec<PathBuf>,
    /// Clones of it (`numjobs`).
    pub clones: u32,
    /// How blocks go.
    pub engine: Engine,
    /// Blocks in flight (`iodepth`).
    pub depth: u32,
    /// Blocks that are submitted at once (`iodepth_batch_submit`).
    pub batch_submit: u32,
    /// Blocks that are waited for at once, at least (`iodepth_batch_complete_min`).
    pub batch_complete_min: u32,
    /// And at most (`iodepth_batch_complete_max`).
    pub batch_complete_max: u32,
    /// Depth to sink to before blocks are submitted again (`iodepth_low`).
    pub depth_low: u32,
    /// Past the page cache (O_DIRECT).
    pub direct: bool,
    /// After so many writes fsync(2); 0 is never.
    pub fsync_every: u32,
    /// After so many writes fdatasync(2); 0 is never.
    pub fdatasync_every: u32,
    /// fsync(2) at the end.
    pub end_fsync: bool,
    /// Drop what the page cache holds of the files before it begins.
    pub invalidate: bool,
    /// Ends after so long at the latest.
    pub runtime: Option<Duration>,
    /// Begins again until `runtime` is over.
    pub time_based: bool,
    /// Not counted, at the beginning (`ramp_time`).
    pub ramp: Duration,
    /// How often all is done.
    pub loops: u64,
    /// Waits before it begins.
    pub start_delay: Duration,
    /// Bytes a second at most.
    pub rate_bytes_per_s: [Option<u64>; 2],
    /// Blocks a second at most.
    pub rate_iops: [Option<u64>; 2],
    /// Blocks arrive at random with that rate (`rate_process=poisson`), not evenly.
    pub poisson: bool,
    /// Pause after `think_blocks` blocks (`thinktime`).
    pub think: Duration,
    /// See there (`thinktime_blocks`).
    pub think_blocks: u32,
    /// Every block once, none twice (`norandommap=0`).
    pub random_map: bool,
    /// The same sequence at every execution (`randrepeat`).
    pub random_repeat: bool,
    /// Seed of it (`randseed`).
    pub seed: u64,
    /// Which blocks are likely.
    pub distribution: Distribution,
    /// How far written blocks can be compressed, percent.
    pub compress_percent: Option<u8>,
    /// New content for every block (`refill_buffers`).
    pub refill: bool,
    /// All zeros (`zero_buffers`).
    pub zero: bool,
    /// Written blocks carry a checksum, and are read again.
    pub verify: Option<VerifyKind>,
    /// Percentiles to say (`percentile_list`).
    pub percentiles: Vec<f64>,
    /// Of completion latency (`clat_percentiles`).
    pub clat_percentiles: bool,
    /// Of the whole latency (`lat_percentiles`).
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
    /// Which clocks are read (`gtod_reduce`, `disable_…`).
    pub clocks: Clocks,
    /// Logs over time.
    pub logs: Logs,
    /// Only lays its files out (`create_only`).
    pub create_only: bool,
    /// Files are deleted at the end (`unlink`).
    pub unlink: bool,
}

/// Percentiles that fio says unless told otherwise.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Block size without `bs`.
const BLOCK_BYTES: u64 = 4096;

/// Seed where nothing else is said, so that the pattern repeats.
const SEED: u64 = 0x89;

impl Default for Job {
    /// A job of which nothing was said (fio(1), the defaults of its options).
    fn default() -> Job {
        Job {
            name: String::new(),
            given: Vec::new(),
            rw: Rw { reads: true, writes: false, random: false },
            read_percent: 50,
            block_bytes: [BLOCK_BYTES; 2],
            size: None,
            io_bytes: None,
            offset: Amount::Bytes(0),
            offset_increment_bytes: 0,
            file_bytes: None,
            files: 1,
            filenames: Vec::new(),
            directories: Vec::new(),
            clones: 1,
            engine: Engine::Psync,
            depth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            depth_low: 1,
            direct: false,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            invalidate: true,
            runtime: None,
            time_based: false,
            ramp: Duration::ZERO,
            loops: 1,
            start_delay: Duration::ZERO,
            rate_bytes_per_s: [None; 2],
            rate_iops: [None; 2],
            poisson: false,
            think: Duration::ZERO,
            think_blocks: 1,
            random_map: true,
            random_repeat: true,
            seed: SEED,
            distribution: Distribution::Uniform,
            compress_percent: None,
            refill: false,
            zero: false,
            verify: None,
            percentiles: PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            group_reporting: false,
            new_group: false,
            stonewall: false,
            cpus: Vec::new(),
            cpus_split: false,
            fixed_buffers: false,
            register_files: false,
            clocks: Clocks { clat: true, slat: true, lat: true, bandwidth: true },
            logs: Logs::default(),
            create_only: false,
            unlink: false,
        }
    }
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
