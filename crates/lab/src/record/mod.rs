//! Recording of the load of a machine and of some of its processes: turns samples into rows of rates, a
//! summary, a table and a chart. Does not read counters or write files.

mod columns;
mod json;
mod kept;
mod picture;
mod row;
mod summary;
mod sums;
#[cfg(test)]
mod tests;

pub(crate) use columns::rounded;
pub use columns::{ColumnKind, RecordColumn, RecordColumns};
pub use json::{CommandUsage, RecordFile, RecordedMachine};
pub use kept::RecordTable;
pub use picture::picture;
pub use row::RecordRow;
pub use summary::{
    BusiestCpuSummary, CpuSummary, DiskSummary, LinkSummary, LoadStat, MemorySummary,
    PressureSummary, ProcessSummary, RecordSummary, TcpSummary,
};

use hakobu_explain::sample::{self, Sample};

/// Turns samples into rows.
///
/// A row is returned when the next sample arrives: if that is the last one and comes soon after, it is merged
/// into the row. No rate is then computed over a very short interval, in which a tick of the kernel's clock
/// would dominate.
#[derive(Clone, Debug)]
pub struct Recorder {
    interval_ns: u64,
    watched: bool,
    first: Sample,
    /// Start of the current row.
    start: Sample,
    /// Possible end of the current row.
    held: Option<Sample>,
    sums: sums::SummaryBuilder,
}

impl Recorder {
    /// Starts with a first sample; further ones are expected every `interval_ns` nanoseconds. `watched`:
    /// samples include processes.
    pub fn new(first: Sample, interval_ns: u64, watched: bool) -> Recorder {
        let sums = sums::SummaryBuilder::default();
        Recorder { interval_ns, watched, start: first.clone(), first, held: None, sums }
    }

    /// Columns of this recording.
    pub fn columns(&self) -> RecordColumns {
        RecordColumns::of(&self.first, self.watched)
    }

    /// Adds a sample other than the last. Returns the previous row, if there is one.
    pub fn push(&mut self, sample: Sample) -> Option<RecordRow> {
        let held = self.held.replace(sample)?;
        Some(self.row(held))
    }

    /// Adds the last sample. Returns the remaining rows (one or two) and the summary.
    pub fn end(mut self, last: Sample) -> (Vec<RecordRow>, RecordSummary) {
        let mut rows = Vec::new();
        if let Some(held) = self.held.take()
            && last.at_ns.saturating_sub(held.at_ns) * 2 >= self.interval_ns
        {
            rows.push(self.row(held));
        }
        rows.push(self.row(last));
        let summary = self.sums.end(&self.first, &self.start, self.watched);
        (rows, summary)
    }

    fn row(&mut self, sample: Sample) -> RecordRow {
        // A disk appears with its first request; its earlier counters are zero.
        for disk in &sample.disks {
            for earlier in [&mut self.first, &mut self.start] {
                if !earlier.disks.iter().any(|known| known.dev == disk.dev) {
                    let idle = sample::Disk {
                        name: disk.name.clone(),
                        dev: disk.dev,
                        ..Default::default()
                    };
                    earlier.disks.push(idle);
                }
            }
        }
        let row = RecordRow::between(&self.start, &sample);
        self.sums.see(&row);
        self.start = sample;
        row
    }
}
