//! A recording of what a machine and some of its processes do: samples come in, rows of rates go
//! out, and at the end there is a summary, a table, a picture. Nothing here reads a counter or
//! writes a file.

mod columns;
mod json;
mod kept;
mod picture;
mod row;
mod summary;
mod sums;
#[cfg(test)]
mod tests;

pub use columns::{Column, Columns, Kind};
pub use json::{Command, Document, Machine};
pub use kept::Kept;
pub use picture::picture;
pub use row::Row;
pub use summary::{BusiestCpu, Cpu, Disk, Link, Memory, Pressure, Processes, Stat, Summary, Tcp};

use hakobu_transfer::sample::{self, Sample};

/// Takes samples and makes rows of them.
///
/// A row is given out when the next sample is there: should that be the last one and come soon
/// after, it belongs to the row before. So no rate is that of a sliver of time, in which a tick of
/// the kernel's clock more or less decides.
#[derive(Clone, Debug)]
pub struct Recorder {
    interval_ns: u64,
    watched: bool,
    first: Sample,
    /// Where the open row begins.
    start: Sample,
    /// Where it may end.
    held: Option<Sample>,
    sums: sums::Running,
}

impl Recorder {
    /// Begins with a first sample; others are expected every `interval_ns` nanoseconds. `watched`
    /// says whether they know of processes.
    pub fn new(first: Sample, interval_ns: u64, watched: bool) -> Recorder {
        let sums = sums::Running::default();
        Recorder { interval_ns, watched, start: first.clone(), first, held: None, sums }
    }

    /// The columns of this recording.
    pub fn columns(&self) -> Columns {
        Columns::of(&self.first, self.watched)
    }

    /// Takes the next sample, which is not the last. Gives the row before, if there is one.
    pub fn push(&mut self, sample: Sample) -> Option<Row> {
        let held = self.held.replace(sample)?;
        Some(self.row(held))
    }

    /// Takes the last sample. Gives the rows that were not given yet, at most two and at least one,
    /// and the summary.
    pub fn end(mut self, last: Sample) -> (Vec<Row>, Summary) {
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

    fn row(&mut self, sample: Sample) -> Row {
        // A disk is seen from its first request on: before, it had done nothing.
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
        let row = Row::between(&self.start, &sample);
        self.sums.see(&row);
        self.start = sample;
        row
    }
}
