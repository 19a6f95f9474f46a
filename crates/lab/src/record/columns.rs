//! Columns of a recording: vmstat's with its names and units, and further ones; and the table of its rows, bounded
//! regardless of its length. One row per interval; an unknown number is NaN, in CSV an empty cell, in JSON `null`.

use crate::escape;
use crate::record::RecordRow;
use hakobu_explain::sample::{DiskRates, LinkRates, Sample};
use std::fmt::Write;

const KIB: f64 = 1024.0;
const PERCENT: f64 = 100.0;

/// Combination of the numbers of a column over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Last value.
    Level,
    /// Mean.
    Rate,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RecordColumn {
    /// Name: `us`, `vda.r_iops`.
    pub name: String,
    /// Unit: `%`, `KiB/s`.
    pub unit: &'static str,
    /// Level or rate.
    #[serde(skip)]
    pub kind: ColumnKind,
}

type ColumnSource<T> = (&'static str, &'static str, ColumnKind, fn(&T) -> f64);

const MACHINE: &[ColumnSource<RecordRow>] = &[
    ("t", "s", ColumnKind::Level, |row| row.at_s),
    ("r", "tasks", ColumnKind::Level, |row| f64::from(row.rates.running)),
    ("b", "tasks", ColumnKind::Level, |row| f64::from(row.rates.blocked)),
    ("swpd", "KiB", ColumnKind::Level, |row| row.rates.memory.swap_used_bytes as f64 / KIB),
    ("free", "KiB", ColumnKind::Level, |row| row.rates.memory.free_bytes as f64 / KIB),
    ("buff", "KiB", ColumnKind::Level, |row| row.rates.memory.buffers_bytes as f64 / KIB),
    ("cache", "KiB", ColumnKind::Level, |row| row.rates.memory.cached_bytes as f64 / KIB),
    ("si", "KiB/s", ColumnKind::Rate, |row| row.rates.swap_in_bytes_per_s / KIB),
    ("so", "KiB/s", ColumnKind::Rate, |row| row.rates.swap_out_bytes_per_s / KIB),
    ("bi", "KiB/s", ColumnKind::Rate, |row| row.rates.paged_in_bytes_per_s / KIB),
    ("bo", "KiB/s", ColumnKind::Rate, |row| row.rates.paged_out_bytes_per_s / KIB),
    ("in", "1/s", ColumnKind::Rate, |row| row.rates.interrupts_per_s),
    ("cs", "1/s", ColumnKind::Rate, |row| row.rates.switches_per_s),
    ("us", "%", ColumnKind::Rate, |row| percent(row.cpu().map(|cpu| cpu.user))),
    ("sy", "%", ColumnKind::Rate, |row| percent(row.cpu().map(|cpu| cpu.system))),
    ("id", "%", ColumnKind::Rate, |row| percent(row.cpu().map(|cpu| cpu.idle))),
    ("wa", "%", ColumnKind::Rate, |row| percent(row.cpu().map(|cpu| cpu.iowait))),
    ("st", "%", ColumnKind::Rate, |row| percent(row.cpu().map(|cpu| cpu.steal))),
    ("cpu_max", "%", ColumnKind::Rate, |row| percent(row.busiest_cpu().map(|(_, share)| share))),
    ("avail", "KiB", ColumnKind::Level, |row| row.rates.memory.available_bytes as f64 / KIB),
    ("dirty", "KiB", ColumnKind::Level, |row| row.rates.memory.dirty_bytes as f64 / KIB),
    ("writeback", "KiB", ColumnKind::Level, |row| row.rates.memory.writeback_bytes as f64 / KIB),
    ("psi_cpu", "%", ColumnKind::Rate, |row| percent(row.rates.pressure.cpu_some)),
    ("psi_io", "%", ColumnKind::Rate, |row| percent(row.rates.pressure.io_some)),
    ("psi_io_full", "%", ColumnKind::Rate, |row| percent(row.rates.pressure.io_full)),
    ("psi_mem", "%", ColumnKind::Rate, |row| percent(row.rates.pressure.memory_some)),
    ("throttled", "%", ColumnKind::Rate, |row| percent(row.rates.quota_throttled)),
    ("rx", "KiB/s", ColumnKind::Rate, |row| row.network_bytes_per_s().0 / KIB),
    ("tx", "KiB/s", ColumnKind::Rate, |row| row.network_bytes_per_s().1 / KIB),
    ("lo", "KiB/s", ColumnKind::Rate, |row| row.loopback_bytes_per_s() / KIB),
    ("retrans", "1/s", ColumnKind::Rate, |row| row.rates.retransmits_per_s.unwrap_or(f64::NAN)),
];

/// Columns of the watched processes.
const PROCESS: &[ColumnSource<RecordRow>] = &[
    ("p_cpu", "%", ColumnKind::Rate, |row| row.rates.process.cpu() * PERCENT),
    ("p_thread_max", "%", ColumnKind::Rate, |row| row.busiest_thread() * PERCENT),
    ("p_rss", "KiB", ColumnKind::Level, |row| row.rates.process.rss_bytes as f64 / KIB),
    ("p_bi", "KiB/s", ColumnKind::Rate, |row| kib(row.rates.process.device_read_bytes_per_s)),
    ("p_bo", "KiB/s", ColumnKind::Rate, |row| kib(row.rates.process.device_write_bytes_per_s)),
    ("p_majflt", "1/s", ColumnKind::Rate, |row| row.rates.process.major_faults_per_s),
];

/// Columns of each disk, prefixed by its name and a dot.
const DISK: &[ColumnSource<DiskRates>] = &[
    ("r_iops", "1/s", ColumnKind::Rate, |disk| disk.read_iops),
    ("w_iops", "1/s", ColumnKind::Rate, |disk| disk.write_iops),
    ("r_kib", "KiB/s", ColumnKind::Rate, |disk| disk.read_bytes_per_s / KIB),
    ("w_kib", "KiB/s", ColumnKind::Rate, |disk| disk.write_bytes_per_s / KIB),
    ("r_ms", "ms", ColumnKind::Rate, |disk| disk.read_latency_ms.unwrap_or(f64::NAN)),
    ("w_ms", "ms", ColumnKind::Rate, |disk| disk.write_latency_ms.unwrap_or(f64::NAN)),
    ("queue", "requests", ColumnKind::Rate, |disk| disk.queue),
    ("busy", "%", ColumnKind::Rate, |disk| disk.busy * PERCENT),
];

/// Columns of each interface, prefixed by its name and a dot.
const LINK: &[ColumnSource<LinkRates>] = &[
    ("rx", "KiB/s", ColumnKind::Rate, |link| link.rx_bytes_per_s / KIB),
    ("tx", "KiB/s", ColumnKind::Rate, |link| link.tx_bytes_per_s / KIB),
    ("drops", "1/s", ColumnKind::Rate, |link| link.drops_per_s),
];

fn percent(share: Option<f64>) -> f64 {
    share.map_or(f64::NAN, |share| share * PERCENT)
}

fn kib(bytes: Option<f64>) -> f64 {
    bytes.map_or(f64::NAN, |bytes| bytes / KIB)
}

/// Columns of one recording: fixed ones, then those of the disks, interfaces and CPUs that exist at its
/// start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordColumns {
    process: bool,
    disks: Vec<String>,
    links: Vec<String>,
    cpus: Vec<u32>,
}

impl RecordColumns {
    /// Columns for the devices in `first`; those of processes only if `watched`.
    pub fn of(first: &Sample, watched: bool) -> RecordColumns {
        RecordColumns {
            process: watched,
            disks: first.disks.iter().map(|disk| disk.name.clone()).collect(),
            links: first.links.iter().map(|link| link.name.clone()).collect(),
            cpus: first.cpus.iter().map(|(number, _)| *number).collect(),
        }
    }

    /// Names, units and kinds, in order.
    pub fn list(&self) -> Vec<RecordColumn> {
        fn push<T>(cells: &[ColumnSource<T>], prefix: &str, out: &mut Vec<RecordColumn>) {
            out.extend(cells.iter().map(|(name, unit, kind, _)| RecordColumn {
                name: format!("{prefix}{name}"),
                unit,
                kind: *kind,
            }));
        }
        let mut out = Vec::new();
        push(MACHINE, "", &mut out);
        if self.process {
            push(PROCESS, "", &mut out);
        }
        for disk in &self.disks {
            push(DISK, &format!("{disk}."), &mut out);
        }
        for link in &self.links {
            push(LINK, &format!("{link}."), &mut out);
        }
        for cpu in &self.cpus {
            out.push(RecordColumn { name: format!("cpu{cpu}"), unit: "%", kind: ColumnKind::Rate });
        }
        out
    }

    /// Disks that have columns.
    pub fn disks(&self) -> &[String] {
        &self.disks
    }

    /// Numbers of a row, one per column.
    pub fn cells(&self, row: &RecordRow) -> Vec<f64> {
        fn push<T>(cells: &[ColumnSource<T>], of: Option<&T>, out: &mut Vec<f64>) {
            out.extend(cells.iter().map(|(.., cell)| of.map_or(f64::NAN, cell)));
        }
        let mut out = Vec::new();
        push(MACHINE, Some(row), &mut out);
        if self.process {
            push(PROCESS, Some(row), &mut out);
        }
        for name in &self.disks {
            push(DISK, row.rates.disks.iter().find(|disk| disk.name == *name), &mut out);
        }
        for name in &self.links {
            push(LINK, row.rates.links.iter().find(|link| link.name == *name), &mut out);
        }
        for number in &self.cpus {
            let cpu = row.rates.cpus.iter().find(|(cpu, _)| cpu == number);
            let known = cpu.filter(|_| row.cpu().is_some());
            out.push(percent(known.map(|(_, cpu)| cpu.used())));
        }
        out
    }

    /// Header line of the CSV file.
    pub fn csv_header(&self) -> String {
        let names = self.list().into_iter().map(|column| escape::csv_field(&column.name));
        let names: Vec<String> = names.collect();
        names.join(",") + "\n"
    }

    /// CSV line of an interval.
    pub fn csv_line(&self, row: &RecordRow) -> String {
        let mut out = String::new();
        for (i, cell) in self.cells(row).into_iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            if cell.is_finite() {
                let _ = write!(out, "{}", round_number(cell));
            }
        }
        out.push('\n');
        out
    }
}

/// Rounds to three decimals: less than a microsecond, a byte or a thousandth of a percent is noise.
pub(crate) fn round_number(number: f64) -> f64 {
    // Adding zero turns -0 into 0.
    (number * 1e3).round() / 1e3 + 0.0
}

// Bounded store of rows for the JSON file and the chart, regardless of the length of a recording.

/// Most rows. At ten per second neighbours are first merged after 17 minutes.
const ROWS_MAX: usize = 10_000;

/// Table of numbers. When it is full, neighbouring rows are merged, and each row then covers twice the time.
#[derive(Clone, Debug)]
pub struct RecordTable {
    /// Its columns; the first one is the time.
    pub(super) columns: Vec<RecordColumn>,
    rows: Vec<(f64, Vec<f64>)>,
    /// Intervals per row.
    pub(super) each: usize,
    /// Intervals that do not fill a row yet.
    open: Vec<(f64, Vec<f64>)>,
    rows_max: usize,
}

impl RecordTable {
    /// Creates an empty table for a recording.
    pub fn new(columns: &RecordColumns) -> RecordTable {
        RecordTable::of(columns.list(), ROWS_MAX)
    }

    /// Creates an empty table of these columns.
    pub(crate) fn of(columns: Vec<RecordColumn>, rows_max: usize) -> RecordTable {
        RecordTable { columns, rows: Vec::new(), each: 1, open: Vec::new(), rows_max }
    }

    /// Adds an interval.
    pub fn push(&mut self, columns: &RecordColumns, row: &RecordRow) {
        self.add(row.rates.span_s, columns.cells(row));
    }

    /// Adds the numbers of an interval.
    pub(crate) fn add(&mut self, took_s: f64, cells: Vec<f64>) {
        self.open.push((took_s, cells));
        if self.open.len() < self.each {
            return;
        }
        self.close();
        if self.rows.len() >= self.rows_max {
            let rows = std::mem::take(&mut self.rows);
            self.rows = rows.chunks(2).map(|pair| merge_rows(&self.columns, pair)).collect();
            self.each *= 2;
        }
    }

    /// Completes the last row at the end of the recording.
    pub fn close(&mut self) {
        if !self.open.is_empty() {
            self.rows.push(merge_rows(&self.columns, &self.open));
            self.open.clear();
        }
    }

    /// Rows, each with one number per column.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.iter().map(|(_, cells)| cells.as_slice())
    }

    /// Column by name as (seconds, number), without unknown numbers.
    pub fn series(&self, name: &str) -> Vec<(f64, f64)> {
        let Some(at) = self.columns.iter().position(|column| column.name == name) else {
            return Vec::new();
        };
        let points = self.rows().filter_map(|cells| Some((*cells.first()?, *cells.get(at)?)));
        points.filter(|(_, number)| number.is_finite()).collect()
    }
}

/// Merges rows: time-weighted means of rates, last values of levels. Unknown parts are ignored.
fn merge_rows(columns: &[RecordColumn], rows: &[(f64, Vec<f64>)]) -> (f64, Vec<f64>) {
    let cells = columns.iter().enumerate().map(|(at, column)| {
        let known = rows.iter().filter_map(|(took_s, cells)| Some((*took_s, *cells.get(at)?)));
        let mut known = known.filter(|(_, number)| number.is_finite());
        match column.kind {
            ColumnKind::Level => known.next_back().map_or(f64::NAN, |(_, number)| number),
            ColumnKind::Rate => {
                let (sum, time) = known.fold((0.0, 0.0), |(sum, time), (took_s, number)| {
                    (sum + number * took_s, time + took_s)
                });
                if time > 0.0 { sum / time } else { f64::NAN }
            }
        }
    });
    (rows.iter().map(|(took_s, _)| took_s).sum(), cells.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_recording_keeps_its_means_in_few_rows() {
        let column = |name: &str, kind| RecordColumn { name: name.into(), unit: "", kind };
        let columns = vec![column("t", ColumnKind::Level), column("x", ColumnKind::Rate)];
        let mut kept = RecordTable::of(columns, 8);
        for second in 1..=100 {
            let x = if second % 10 == 0 { f64::NAN } else { f64::from(second) };
            kept.add(1.0, vec![f64::from(second), x]);
        }
        kept.close();
        assert_eq!(kept.each, 16);
        let times: Vec<f64> = kept.rows().map(|cells| cells[0]).collect();
        assert_eq!(times, [16.0, 32.0, 48.0, 64.0, 80.0, 96.0, 100.0]);
        let x = kept.series("x");
        // Means of 1 … 16 without 10, and of 97 … 99.
        assert!((x[0].1 - 8.4).abs() < 0.05 && (x[6].1 - 98.0).abs() < 1e-9, "{x:?}");
        assert!(kept.series("y").is_empty());
    }
}
