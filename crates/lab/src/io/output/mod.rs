//! What was measured, in fio's words and fio's JSON (fio(1), "INTERPRETING THE OUTPUT", "JSON
//! OUTPUT"), log files among them. Pure: texts are made here and written by whoever runs it.

pub mod disks;
mod entry;
pub mod json;
pub mod live;
pub mod logs;
pub mod normal;
mod number;
mod shares;
#[cfg(test)]
mod tests;

use crate::io::Job;
use crate::results::Machine;
use disks::DiskUse;
use std::time::Duration;

/// What is said besides what was measured.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program and its version, `hakobu-1.2.3`; it stands where fio's does.
    pub program: String,
    /// When the run ended: milliseconds since 1970.
    pub at_ms: u64,
    /// The same as ctime(3) has it: `Fri Jun 14 03:16:08 2024`.
    pub at_text: String,
    /// From the start to the end.
    pub elapsed: Duration,
    /// The process.
    pub pid: u32,
    /// Options of the global section, as they were given.
    pub globals: Vec<(String, String)>,
    /// What somebody who reads the result has to know.
    pub warnings: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// What disks did meanwhile.
    pub disks: Vec<DiskUse>,
    /// Somebody stopped it before its end.
    pub stopped: bool,
}

/// What fio calls an order and a direction: `randread`.
pub fn rw_name(job: &Job) -> &'static str {
    let rw = job.rw;
    match (rw.random, rw.reads, rw.writes) {
        (false, true, true) => "rw",
        (false, _, true) => "write",
        (false, _, false) => "read",
        (true, true, true) => "randrw",
        (true, _, true) => "randwrite",
        (true, _, false) => "randread",
    }
}

/// What fio calls an engine.
pub fn engine_name(job: &Job) -> &'static str {
    use crate::io::Engine::{IoUring, Libaio, Mmap, Null, Psync, Pvsync2, Sync};
    match job.engine {
        Sync => "sync",
        Psync => "psync",
        Pvsync2 => "pvsync2",
        Libaio => "libaio",
        IoUring => "io_uring",
        Mmap => "mmap",
        Null => "null",
    }
}
