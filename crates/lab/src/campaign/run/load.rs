//! Load of the machine, and of a command that runs on it: means for tables, curves for charts.

use crate::record::columns::{ColumnKind, RecordColumn, RecordTable};
use crate::record::summary::RecordSummary;
use crate::record::{RecordRow, Recorder, columns};
use hakobu_explain::sample::{Sampler, Watched};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Most points of a curve: two minutes at ten per second. For longer runs neighbouring points are merged
/// repeatedly.
const POINTS_MAX: usize = 1200;
/// Nanoseconds between samples.
const INTERVAL_NS: u64 = 100_000_000;

/// Means by the names of [`crate::results::Run::load`]; times and values of curves.
pub(super) type LoadSummary = (BTreeMap<String, f64>, (Vec<f64>, BTreeMap<String, Vec<f64>>));

/// A curve, by the names of [`crate::results::LoadCurves::values`].
type NamedCurve = (&'static str, fn(&RecordRow) -> f64);
const CURVES: [NamedCurve; 11] = [
    ("own_user", |row| of_all_cpus(row, row.rates.process.user)),
    ("own_system", |row| of_all_cpus(row, row.rates.process.system)),
    ("user", |row| row.cpu().map_or(0.0, |cpu| cpu.user * 100.0)),
    ("system", |row| row.cpu().map_or(0.0, |cpu| cpu.system * 100.0)),
    ("iowait", |row| row.cpu().map_or(0.0, |cpu| cpu.iowait * 100.0)),
    ("steal", |row| row.cpu().map_or(0.0, |cpu| cpu.steal * 100.0)),
    ("busiest", |row| row.busiest_cpu().map_or(0.0, |(_, share)| share * 100.0)),
    ("read", |row| disks(row).map(|disk| disk.read_bytes_per_s).sum()),
    ("write", |row| disks(row).map(|disk| disk.write_bytes_per_s).sum()),
    ("iops", |row| disks(row).map(|disk| disk.read_iops + disk.write_iops).sum()),
    ("net", |row| row.network_bytes_per_s().0 + row.network_bytes_per_s().1),
];

/// CPUs in use, in percent of all CPUs.
fn of_all_cpus(row: &RecordRow, used: f64) -> f64 {
    100.0 * used / row.rates.cpus.len().max(1) as f64
}

/// Physical disks: those that do not pass requests on to others.
fn disks(row: &RecordRow) -> impl Iterator<Item = &hakobu_explain::sample::DiskRates> {
    row.rates.disks.iter().filter(|disk| !disk.stacked)
}

/// Samples taken while a command runs.
pub(super) struct LoadRecording {
    sampler: Sampler,
    began_ns: u64,
    recorder: Recorder,
    kept: RecordTable,
}

impl LoadRecording {
    /// Starts with a first sample.
    pub fn begin() -> LoadRecording {
        let mut sampler = Sampler::new(Watched::Machine);
        let mut first = sampler.read();
        let began_ns = std::mem::take(&mut first.at_ns);
        let recorder = Recorder::new(first, INTERVAL_NS, false);
        LoadRecording { sampler, began_ns, recorder, kept: empty_curves() }
    }

    /// Samples a command, too. To be called when it has started, after the first sample: what it used until
    /// then is part of the next interval.
    pub fn follow(&mut self, pid: u32) {
        self.sampler.watch(Watched::CpuOf(pid));
    }

    fn sample(&mut self) -> hakobu_explain::sample::Sample {
        let mut sample = self.sampler.read();
        sample.at_ns = sample.at_ns.saturating_sub(self.began_ns);
        sample
    }

    /// Takes a sample.
    pub fn tick(&mut self) {
        let sample = self.sample();
        if let Some(row) = self.recorder.push(sample) {
            self.kept.add(row.rates.span_s, cells(&row));
        }
    }

    /// Takes the last sample and evaluates all. The command has not been waited for yet.
    pub fn end(mut self) -> LoadSummary {
        let last = self.sample();
        let (rows, summary) = self.recorder.end(last);
        for row in &rows {
            self.kept.add(row.rates.span_s, cells(row));
        }
        self.kept.close();
        (means(&summary), curves(&self.kept))
    }
}

/// Empty table of the time and all curves.
fn empty_curves() -> RecordTable {
    let column = |name: &str, kind| RecordColumn { name: name.to_owned(), unit: "", kind };
    let curves = CURVES.map(|(name, _)| column(name, ColumnKind::Rate));
    RecordTable::of(
        [column("t", ColumnKind::Level)].into_iter().chain(curves).collect(),
        POINTS_MAX,
    )
}

fn cells(row: &RecordRow) -> Vec<f64> {
    std::iter::once(row.at_s).chain(CURVES.map(|(_, of)| of(row))).collect()
}

fn curves(kept: &RecordTable) -> (Vec<f64>, BTreeMap<String, Vec<f64>>) {
    let column = |at: usize| kept.rows().map(|cells| finite_rounded(cells[at])).collect();
    let values = CURVES.iter().enumerate();
    let values = values.map(|(at, (name, _))| ((*name).to_owned(), column(at + 1)));
    (column(0), values.collect())
}

/// Rounds to three decimals.
fn finite_rounded(number: f64) -> f64 {
    Some(columns::round_number(number)).filter(|number| number.is_finite()).unwrap_or(0.0)
}

fn means(summary: &RecordSummary) -> BTreeMap<String, f64> {
    let mut load = BTreeMap::new();
    let mut put = |name: &str, number: f64| {
        load.insert(name.to_owned(), finite_rounded(number));
    };
    if let Some(cpu) = &summary.cpu {
        put("cpu_percent", cpu.user_percent.mean + cpu.system_percent.mean);
        put("iowait_percent", cpu.iowait_percent.mean);
        put("steal_percent", cpu.steal_percent.mean);
    }
    if let Some(busiest) = &summary.busiest_cpu {
        put("busiest_cpu_percent", busiest.percent.mean);
    }
    let disks = || summary.disks.iter().filter(|disk| !disk.stacked);
    put("disk_busy_percent", disks().map(|disk| disk.busy_percent.mean).fold(0.0, f64::max));
    put("disk_iops", disks().map(|disk| disk.read_iops.mean + disk.write_iops.mean).sum());
    let bytes = disks().map(|disk| disk.read_bytes_per_s.mean + disk.write_bytes_per_s.mean);
    put("disk_bytes_per_s", bytes.sum());
    let sum = |is_wanted: fn(&str) -> bool| -> f64 {
        let links = summary.links.iter().filter(|link| is_wanted(&link.name));
        links.map(|link| link.rx_bytes_per_s.mean + link.tx_bytes_per_s.mean).sum()
    };
    put("net_bytes_per_s", sum(|name| name != "lo"));
    // Loopback traffic is counted as sent and as received.
    put("loopback_bytes_per_s", sum(|name| name == "lo") / 2.0);
    let pressure = &summary.pressure;
    for (name, stat) in [
        ("waiting_for_cpu_percent", pressure.cpu_some_percent),
        ("waiting_for_io_percent", pressure.io_some_percent),
        ("waiting_for_memory_percent", pressure.memory_some_percent),
    ] {
        if let Some(stat) = stat {
            put(name, stat.mean);
        }
    }
    load
}

/// Samples the idle machine for a while, or until `stop` is set.
pub(super) fn of_machine(time: Duration, stop: &AtomicBool) -> BTreeMap<String, f64> {
    let mut recording = LoadRecording::begin();
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_nanos(INTERVAL_NS));
        recording.tick();
    }
    recording.end().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_stay_short_and_keep_their_means() {
        let mut kept = empty_curves();
        let count = 5000u32;
        for number in 1..=count {
            let values = [f64::from(number % 7); CURVES.len()];
            let at_s = f64::from(number) / 10.0;
            kept.add(0.1, std::iter::once(at_s).chain(values).collect());
        }
        kept.close();
        let rows: Vec<&[f64]> = kept.rows().collect();
        assert!(rows.len() < POINTS_MAX && rows.len() > POINTS_MAX / 4, "{}", rows.len());
        let mut before = 0.0;
        let sum: f64 =
            rows.iter().map(|row| row[4] * (row[0] - std::mem::replace(&mut before, row[0]))).sum();
        let wanted = (1..=count).map(|number| f64::from(number % 7)).sum::<f64>() / 10.0;
        assert!((sum - wanted).abs() < 1e-6, "{sum} {wanted}");
        assert_eq!(rows.last().unwrap()[0], 500.0);
    }

    #[test]
    fn every_number_can_be_written_down() {
        let (load, (times, curves)) = LoadRecording::begin().end();
        assert_eq!(times.len(), 1);
        assert_eq!(curves.len(), CURVES.len());
        let numbers = load.values().chain(curves.values().flatten()).chain(&times);
        assert!(numbers.into_iter().all(|number| number.is_finite()));
        assert_eq!((finite_rounded(f64::NAN), finite_rounded(1.23456)), (0.0, 1.235));
        assert!(finite_rounded(-0.0).is_sign_positive());
    }
}
