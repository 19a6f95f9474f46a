//! Measurements of one clone of one job. Raw: what fio prints is worked out in `output`.

use super::stats::{Histogram, Series};
use super::steady::SteadyResult;

/// One way: reads, or writes.
#[derive(Clone, Debug, Default)]
pub struct DirectionStats {
    /// Blocks that went, ramp time apart.
    pub ios: u64,
    /// Bytes that went.
    pub bytes: u64,
    /// Blocks that went in part.
    pub short: u64,
    /// Time to submit, nanoseconds.
    pub slat: Histogram,
    /// From submission to completion.
    pub clat: Histogram,
    /// From the start, or where a rate is set from the intended start, to completion.
    pub lat: Histogram,
    /// Bytes a second, one value for each 500 ms.
    pub bandwidth: Series,
    /// Blocks a second, likewise.
    pub iops: Series,
    /// Latencies by the number of the I/O priority, where blocks have priorities of their own: of completion, or with
    /// `lat_percentiles` the whole.
    pub by_priority: Vec<(u16, Histogram)>,
}

impl DirectionStats {
    /// The latencies of a priority.
    pub fn by_priority(&mut self, priority: u16) -> &mut Histogram {
        let known = self.by_priority.iter().position(|(of, _)| *of == priority);
        let at = known.unwrap_or_else(|| {
            self.by_priority.push((priority, Histogram::default()));
            self.by_priority.len() - 1
        });
        &mut self.by_priority[at].1
    }
}

/// Number of blocks in flight, and of those that went at once: fio's `iodepth_level`,
/// `iodepth_submit`, `iodepth_complete`, as counts for powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DepthCounts {
    /// Blocks that were submitted at a depth of 1, 2, 4, 8, 16, 32, 64 and more.
    pub level: [u64; 7],
    /// Calls that submitted 0, 4, 8, 16, 32, 64 or more blocks (each up to).
    pub submit: [u64; 7],
    /// Calls by the number of reaped blocks.
    pub complete: [u64; 7],
}

impl DepthCounts {
    /// Records a call that began this many blocks, and the number in flight afterwards.
    #[inline]
    pub fn submitted(&mut self, blocks: u32, in_flight: u32) {
        self.level[in_flight.max(1).ilog2().min(6) as usize] += u64::from(blocks);
        self.submit[at_once(blocks)] += 1;
    }

    /// Records a call that reaped this many blocks.
    #[inline]
    pub fn completed(&mut self, blocks: u32) {
        self.complete[at_once(blocks)] += 1;
    }
}

/// The place of a number of blocks among 0, 4, 8, 16, 32, 64 and more.
#[inline]
fn at_once(blocks: u32) -> usize {
    match blocks {
        0 => 0,
        1..=4 => 1,
        _ => ((blocks - 1).ilog2() as usize).min(6),
    }
}

/// A line of one of fio's logs (fio(1), "log file formats").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Milliseconds since its first block, ramp time apart.
    pub at_ms: u64,
    /// Bandwidth in KiB a second, blocks a second, or a latency in nanoseconds.
    pub value: u64,
    /// About writes.
    pub write: bool,
    /// Bytes of the block; 0 for a mean.
    pub bytes: u64,
    /// Offset in its file; 0 for a mean.
    pub offset: u64,
    /// Its I/O priority as the kernel has it; 0 for a mean.
    pub priority: u16,
}

/// Entries for `write_bw_log` and its like; empty without them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEntries {
    pub bandwidth: Vec<LogEntry>,
    /// Operations.
    pub iops: Vec<LogEntry>,
    /// Latencies of submission, of completion, and both together.
    pub slat: Vec<LogEntry>,
    pub clat: Vec<LogEntry>,
    pub lat: Vec<LogEntry>,
}

/// One clone.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its job's place in the list.
    pub job: usize,
    /// Number of the clone, from 0.
    pub clone: u32,
    /// Reads and writes.
    pub sides: [DirectionStats; 2],
    /// Its writes are trims.
    pub trims: bool,
    /// Latency of fsync and fdatasync.
    pub sync: Histogram,
    /// Nanoseconds from its first block, ramp time apart, to its end.
    pub runtime_ns: u64,
    /// CPU time of its thread in user space, nanoseconds.
    pub user_ns: u64,
    /// In the kernel.
    pub sys_ns: u64,
    /// Context switches, both kinds.
    pub switches: u64,
    /// Page faults with and without a read from a device.
    pub faults: [u64; 2],
    pub depths: DepthCounts,
    /// Logs over time.
    pub logged: LogEntries,
    /// Steadiness of its job, where that ends it.
    pub steady: Option<SteadyResult>,
    /// Written blocks that were read again and looked at; they are not among the reads.
    pub verified: u64,
    /// Blocks with wrong content.
    pub verify_errors: u64,
    /// Errors that did not end it (`continue_on_error`, `ignore_error`), and the first of them: errno.
    pub tolerated: (u64, i32),
    /// Depth that a search for one ended with (`latency_target`).
    pub depth_found: Option<u32>,
    /// Failure that ended it early: errno and a sentence. Zero errno for a failure that is not the system's.
    pub error: Option<(i32, String)>,
}
