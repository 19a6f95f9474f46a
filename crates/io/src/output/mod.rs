//! Results in fio's words and fio's JSON (fio(1), "INTERPRETING THE OUTPUT", "JSON
//! OUTPUT"), log files among them. Pure: texts are made here and written by the caller.

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
mod value;

use disks::DiskUse;
use hakobu_core::unit::Machine;
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
