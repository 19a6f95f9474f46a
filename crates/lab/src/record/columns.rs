//! Columns of a recording: vmstat's with its names and units, and further ones. One row per interval; an
//! unknown number is NaN, in CSV an empty cell, in JSON `null`.

use super::RecordRow;
use crate::csv;
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
        let names = self.list().into_iter().map(|column| csv::field(&column.name));
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
                let _ = write!(out, "{}", rounded(cell));
            }
        }
        out.push('\n');
        out
    }
}

/// Rounds to three decimals: less than a microsecond, a byte or a thousandth of a percent is noise.
pub(crate) fn rounded(number: f64) -> f64 {
    // Adding zero turns -0 into 0.
    (number * 1e3).round() / 1e3 + 0.0
}
