//! A job while its options are read: what holds where nothing is said (fio's defaults), and the
//! values that depend on each other and wait for the end.

use super::super::job::{Distribution, Engine, Job, Rw, VerifyKind};
use super::units::{self, Bare, Base};
use std::path::PathBuf;
use std::time::Duration;

/// A job with defaults, and what is still open.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The values that stand by themselves.
    pub job: Job,
    /// What `k` means.
    pub base: Base,
    /// `io_size` as percent of `size`.
    pub io_percent: Option<u8>,
    /// `iodepth_batch_submit`; 0 is as many as `iodepth`.
    pub batch_submit: u32,
    /// `iodepth_batch_complete_max`, if said.
    pub batch_complete_max: Option<u32>,
    /// `iodepth_low`, if said.
    pub depth_low: Option<u32>,
    /// Logs that were asked for without a name, and are called like the job: bandwidth, latency,
    /// operations.
    pub unnamed_logs: [bool; 3],
    /// First names of the options that were given, for what is said about them.
    pub given: Vec<&'static str>,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft {
            job: Job::default(),
            base: Base::default(),
            io_percent: None,
            batch_submit: 1,
            batch_complete_max: None,
            depth_low: None,
            unnamed_logs: [false; 3],
            given: Vec::new(),
        }
    }
}

/// Engines that fio has and we do not.
const ENGINES: &[&str] = &[
    "vsync",
    "pvsync",
    "io_uring_cmd",
    "posixaio",
    "solarisaio",
    "windowsaio",
    "splice",
    "sg",
    "libzbc",
    "net",
    "netsplice",
    "cpuio",
    "rdma",
    "falloc",
    "ftruncate",
    "e4defrag",
    "rados",
    "rbd",
    "http",
    "gfapi",
    "gfapi_async",
    "libhdfs",
    "mtd",
    "pmemblk",
    "dev-dax",
    "external",
    "filecreate",
    "filestat",
    "filedelete",
    "libpmem",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "libiscsi",
    "nbd",
    "libcufile",
    "dfs",
    "nfs",
    "exec",
    "xnvme",
    "libblkio",
    "guasi",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
];

/// Checksums that fio has and we do not.
const CHECKSUMS: &[&str] = &[
    "md5", "crc16", "crc7", "xxhash", "sha512", "sha1", "sha3-224", "sha3-256", "sha3-384",
    "sha3-512", "meta", "pattern", "null",
];

/// `rw`.
pub fn rw(text: &str) -> Result<Rw, String> {
    let (name, steps) = text.split_once(':').map_or((text, None), |(name, by)| (name, Some(by)));
    let rw = |reads, writes, random| Rw { reads, writes, random };
    let known = match name {
        "read" => rw(true, false, false),
        "write" => rw(false, true, false),
        "rw" | "readwrite" => rw(true, true, false),
        "randread" => rw(true, false, true),
        "randwrite" => rw(false, true, true),
        "randrw" => rw(true, true, true),
        "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
            return Err("trims are fio's and not supported here".to_owned());
        }
        _ => return Err("is none of read, write, randread, randwrite, rw, randrw".to_owned()),
    };
    match steps {
        None => Ok(known),
        Some(_) => Err("a step after ':' is fio's and not supported here".to_owned()),
    }
}

/// `ioengine`.
pub fn engine(text: &str) -> Result<Engine, String> {
    Ok(match text {
        "sync" => Engine::Sync,
        "psync" => Engine::Psync,
        "pvsync2" => Engine::Pvsync2,
        // Both are other names of it in fio.
        "libaio" | "linuxaio" | "aio" => Engine::Libaio,
        "io_uring" => Engine::IoUring,
        "mmap" => Engine::Mmap,
        "null" => Engine::Null,
        _ => {
            let name = text.split(':').next().unwrap_or(text);
            let ours = "sync, psync, pvsync2, libaio, io_uring, mmap and null are";
            return Err(if ENGINES.contains(&name) {
                format!("an engine of fio's that is not supported here ({ours})")
            } else {
                format!("no such engine ({ours} supported)")
            });
        }
    })
}

/// `verify`.
pub fn verify(text: &str) -> Result<Option<VerifyKind>, String> {
    Ok(match text {
        "0" => None,
        "crc32" => Some(VerifyKind::Crc32),
        "crc32c" | "crc32c-intel" => Some(VerifyKind::Crc32c),
        "crc64" => Some(VerifyKind::Crc64),
        "sha256" => Some(VerifyKind::Sha256),
        _ => {
            let ours = "crc32, crc32c, crc64, sha256 are";
            return Err(if CHECKSUMS.contains(&text) {
                format!("a checksum of fio's that is not supported here ({ours})")
            } else {
                format!("no such checksum ({ours} supported)")
            });
        }
    })
}

/// Zipf's theta without a value, as in fio.
const THETA: f64 = 1.1;

/// `random_distribution`.
pub fn distribution(text: &str) -> Result<Distribution, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(name, v)| (name, Some(v)));
    match (name, value) {
        ("random", None) => Ok(Distribution::Uniform),
        ("zipf", None) => Ok(Distribution::Zipf(THETA)),
        ("zipf", Some(theta)) => {
            if theta.contains([':', ',']) {
                return Err("a centre, and another theta for each side, are fio's and not \
                            supported here"
                    .to_owned());
            }
            let theta = theta.parse::<f64>().ok().filter(|theta| theta.is_finite());
            let theta = theta.filter(|theta| *theta > 0.0 && *theta != 1.0);
            let wrong = "theta must be a number above 0 other than 1";
            theta.map(Distribution::Zipf).ok_or_else(|| wrong.to_owned())
        }
        ("pareto" | "normal" | "gauss" | "zoned" | "zoned_abs", _) => {
            Err("a distribution of fio's that is not supported here (random, zipf:THETA are)"
                .to_owned())
        }
        _ => Err("is neither random nor zipf:THETA".to_owned()),
    }
}

/// A time, as the duration it is.
pub fn time(text: &str, bare: Bare) -> Result<Duration, String> {
    units::time_us(text, bare).map(Duration::from_micros)
}

/// A size for all files of a job, or a range of which both ends are the same.
pub fn one_size(text: &str, base: Base) -> Result<u64, String> {
    match text.split_once(['-', ':']) {
        None => units::size(text, base),
        Some((least, most)) => {
            let (least, most) = (units::size(least, base)?, units::size(most, base)?);
            let wrong = "a range of sizes is fio's and not supported here";
            (least == most).then_some(least).ok_or_else(|| wrong.to_owned())
        }
    }
}

/// The name of a log's files, or that it has the job's.
pub fn log(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}
