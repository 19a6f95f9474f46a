//! Logs over time (`write_bw_log`, `write_iops_log`, `write_lat_log`), kept until the end.

use crate::job::Job;
use crate::outcome::{DirectionStats, LogEntries, LogEntry};
use std::time::Duration;

/// Rates over time are taken so often (`bwavgtime`, `iopsavgtime`).
pub(super) const SAMPLE: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LatencyKind {
    Slat = 0,
    Clat = 1,
    Lat = 2,
}

/// The logs of a clone.
#[derive(Debug)]
pub(super) struct LogRecorder {
    pub(super) logged: LogEntries,
    bandwidth: bool,
    iops: bool,
    pub(super) latency: bool,
    /// Means over windows, not each block.
    means: bool,
    /// Length of a window.
    pub(super) window: Duration,
    /// Blocks and bytes of both sides when this window began.
    before: [(u64, u64); 2],
    /// Number and sum of the latencies of this window.
    sums: [[(u64, u128); 3]; 2],
}

impl LogRecorder {
    /// The logs that a job asks for; `None` for one that asks for none.
    pub(super) fn new(job: &Job) -> Option<Box<LogRecorder>> {
        let logs = &job.logs;
        let (bandwidth, iops) = (logs.bandwidth.is_some(), logs.iops.is_some());
        let latency = logs.latency.is_some();
        let means = !logs.average.is_zero();
        (bandwidth || iops || latency).then(|| {
            Box::new(LogRecorder {
                logged: LogEntries::default(),
                bandwidth,
                iops,
                latency,
                means,
                window: if means { logs.average } else { SAMPLE },
                before: [(0, 0); 2],
                sums: Default::default(),
            })
        })
    }

    /// Forgets everything: ramp time is over.
    pub(super) fn reset(&mut self) {
        self.logged = LogEntries::default();
        self.before = [(0, 0); 2];
        self.sums = Default::default();
    }

    fn log(&mut self, which: LatencyKind) -> &mut Vec<LogEntry> {
        match which {
            LatencyKind::Slat => &mut self.logged.slat,
            LatencyKind::Clat => &mut self.logged.clat,
            LatencyKind::Lat => &mut self.logged.lat,
        }
    }

    /// A block had a latency: `entry.value`.
    pub(super) fn block(&mut self, which: LatencyKind, entry: LogEntry) {
        if self.means {
            let sum = &mut self.sums[usize::from(entry.write)][which as usize];
            *sum = (sum.0 + 1, sum.1 + u128::from(entry.value));
        } else {
            self.log(which).push(entry);
        }
    }

    /// A window is over that took so long; sides are as they are now.
    pub(super) fn close(&mut self, at_ms: u64, took_ns: u64, sides: &[DirectionStats; 2]) {
        for write in [false, true] {
            let number = usize::from(write);
            let mean = |value| LogEntry { at_ms, value, write, bytes: 0, offset: 0, priority: 0 };
            let (side, before) = (&sides[number], self.before[number]);
            let (ios, bytes) = (side.ios - before.0, side.bytes - before.1);
            self.before[number] = (side.ios, side.bytes);
            let rate = |count: u64| count as f64 * 1e9 / took_ns.max(1) as f64;
            if ios > 0 && self.bandwidth {
                self.logged.bandwidth.push(mean((rate(bytes) / 1024.0).round() as u64));
            }
            if ios > 0 && self.iops {
                self.logged.iops.push(mean(rate(ios).round() as u64));
            }
            for which in [LatencyKind::Slat, LatencyKind::Clat, LatencyKind::Lat] {
                let (count, sum) = std::mem::take(&mut self.sums[number][which as usize]);
                if count > 0 {
                    self.log(which).push(mean((sum / u128::from(count)) as u64));
                }
            }
        }
    }
}
