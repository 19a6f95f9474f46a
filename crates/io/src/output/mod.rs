//! Results in fio's words and fio's JSON (fio(1), "INTERPRETING THE OUTPUT", "JSON
//! OUTPUT"), log files among them. Pure: texts are made here and written by the caller.

pub mod disks;
mod entry;
pub mod json;
pub mod live;
pub mod logs;
pub mod normal;
mod number;
mod record;
mod shares;
#[cfg(test)]
mod tests;

use crate::Job;
use disks::DiskUse;
use hakobu_core::machine::Machine;
use std::time::Duration;

/// Texts besides the measurements.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program and its version, `hakobu-1.2.3`; it stands where fio's does.
    pub program: String,
    /// End of the run: milliseconds since 1970.
    pub at_ms: u64,
    /// The same as ctime(3) has it: `Fri Jun 14 03:16:08 2024`.
    pub at_text: String,
    /// From the start to the end.
    pub elapsed: Duration,
    /// The process.
    pub pid: u32,
    /// Options of the global section, as they were given.
    pub globals: Vec<(String, String)>,
    /// Warnings for readers of the result.
    pub warnings: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// Work of disks meanwhile.
    pub disks: Vec<DiskUse>,
    /// Somebody stopped it before its end.
    pub stopped: bool,
}

/// fio's name of an order and a direction: `randread`.
pub fn rw_name(job: &Job) -> &'static str {
    let rw = job.rw;
    match (rw.random, rw.reads, rw.writes) {
        (false, ..) if job.trims => "trim",
        (true, ..) if job.trims => "randtrim",
        (false, true, true) => "rw",
        (false, _, true) => "write",
        (false, _, false) => "read",
        (true, true, true) => "randrw",
        (true, _, true) => "randwrite",
        (true, _, false) => "randread",
    }
}

/// fio's name of an engine.
pub fn engine_name(job: &Job) -> &'static str {
    use crate::Engine;
    match job.engine {
        Engine::Sync => "sync",
        Engine::Psync => "psync",
        Engine::Pvsync2 => "pvsync2",
        Engine::Libaio => "libaio",
        Engine::IoUring => "io_uring",
        Engine::Mmap => "mmap",
        Engine::PageFault => "page_fault",
        Engine::Null => "null",
        Engine::Falloc => "falloc",
        Engine::Ftruncate => "ftruncate",
        Engine::FileCreate => "filecreate",
        Engine::FileStat => "filestat",
        Engine::FileDelete => "filedelete",
        Engine::DirCreate => "dircreate",
        Engine::DirStat => "dirstat",
        Engine::DirDelete => "dirdelete",
        Engine::Net => "net",
        Engine::Http => "http",
        Engine::Nbd => "nbd",
        Engine::Exec => "exec",
        Engine::E4defrag => "e4defrag",
        Engine::CpuIo => "cpuio",
    }
}
