//! Load of the machine, and CPU time of the command that runs on it: means for tables, curves for charts.

use crate::record::columns::{ColumnKind, RecordColumn, RecordTable};
use crate::record::summary::RecordSummary;
use crate::record::{RecordRow, Recorder, columns};
use hakobu_explain::sample::{Sampler, TreeCpuTime, Watched};
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
const CURVES: [NamedCurve; 9] = [
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
    /// Number of CPUs of the machine.
    cpus: usize,
    began: Instant,
    own: Option<OwnCpu>,
}

impl LoadRecording {
    /// Starts with a first sample.
    pub fn begin() -> LoadRecording {
        let mut sampler = Sampler::new(Watched::Machine);
        let mut first = sampler.read();
        let began_ns = std::mem::take(&mut first.at_ns);
        let cpus = first.cpus.len();
        let recorder = Recorder::new(first, INTERVAL_NS, false);
        let (kept, began) = (empty_curves(), Instant::now());
        LoadRecording { sampler, began_ns, recorder, kept, cpus, began, own: None }
    }

    /// Follows a command that has just started.
    pub fn follow(&mut self, pid: u32) {
        self.own = Some(OwnCpu::new(pid, self.began.elapsed()));
    }

    fn sample(&mut self) -> hakobu_explain::sample::Sample {
        let mut sample = self.sampler.read();
        sample.at_ns = sample.at_ns.saturating_sub(self.began_ns);
        sample
    }

    /// Takes a sample.
    pub fn tick(&mut self) {
        if let Some(own) = &mut self.own {
            own.tick(self.began);
        }
        let sample = self.sample();
        if let Some(row) = self.recorder.push(sample) {
            self.kept.add(row.rates.span_s, cells(&row));
        }
    }

    /// Takes the last sample and evaluates all. The command has ended and was not waited for yet.
    pub fn end(mut self) -> LoadSummary {
        if let Some(own) = &mut self.own {
            own.read(self.began);
        }
        let last = self.sample();
        let (rows, summary) = self.recorder.end(last);
        for row in &rows {
            self.kept.add(row.rates.span_s, cells(row));
        }
        self.kept.close();
        let (t_s, mut values) = curves(&self.kept);
        if let Some(own) = &self.own {
            values.extend(own.curves(&t_s, self.cpus));
        }
        (means(&summary), (t_s, values))
    }
}

/// Readings of the command's CPU time cost at most this share of a CPU: the intervals between them grow with the number
/// of its processes, so that a command of many processes is not measured slower than one of few.
const OWN_COST: u32 = 500;
/// Most readings; of more every second one is dropped.
const READINGS_MAX: usize = 8192;

/// CPU time of a command and its descendants over time.
struct OwnCpu {
    tree: TreeCpuTime,
    /// Seconds since the recording began, and CPU seconds in user space and in the kernel so far.
    readings: Vec<(f64, [f64; 2])>,
    /// Time of the next reading.
    due: Duration,
}

impl OwnCpu {
    fn new(pid: u32, at: Duration) -> OwnCpu {
        let readings = vec![(at.as_secs_f64(), [0.0; 2])];
        OwnCpu { tree: TreeCpuTime::of(pid), readings, due: at }
    }

    /// Reads, if it is time to.
    fn tick(&mut self, began: Instant) {
        if began.elapsed() >= self.due {
            self.read(began);
        }
    }

    fn read(&mut self, began: Instant) {
        let at = began.elapsed();
        let (user_ns, system_ns) = self.tree.read();
        if self.readings.len() >= READINGS_MAX {
            let mut is_kept = false;
            self.readings.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.readings.push((at.as_secs_f64(), [user_ns, system_ns].map(|ns| ns as f64 / 1e9)));
        self.due = at + began.elapsed().saturating_sub(at).saturating_mul(OWN_COST);
    }

    /// CPU seconds until a time, with an even rate between two readings.
    fn until(&self, t_s: f64) -> [f64; 2] {
        let after = self.readings.partition_point(|(at, _)| *at < t_s);
        let last = self.readings.last().map_or([0.0; 2], |(_, used)| *used);
        let Some((to, used)) = self.readings.get(after) else { return last };
        let Some((from, before)) = after.checked_sub(1).and_then(|at| self.readings.get(at)) else {
            return *used;
        };
        let share = (t_s - from) / (to - from);
        [0, 1].map(|at| before[at] + share * (used[at] - before[at]))
    }

    /// Curves in percent of all CPUs, at the ends of these intervals.
    fn curves(&self, t_s: &[f64], cpus: usize) -> [(String, Vec<f64>); 2] {
        let mut before = (0.0, [0.0; 2]);
        let mut rates = [Vec::new(), Vec::new()];
        for t_s in t_s {
            let (from_s, used_before) = std::mem::replace(&mut before, (*t_s, self.until(*t_s)));
            for (at, rates) in rates.iter_mut().enumerate() {
                let used = (before.1[at] - used_before[at]) / (t_s - from_s);
                rates.push(finite_rounded(100.0 * used / cpus.max(1) as f64));
            }
        }
        let [user, system] = rates;
        [("own_user".to_owned(), user), ("own_system".to_owned(), system)]
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
    fn readings_that_are_rare_lose_no_cpu_time() {
        let mut own = OwnCpu::new(u32::MAX, Duration::from_millis(50));
        own.readings.extend([(0.25, [0.1, 0.0]), (1.05, [0.9, 0.4])]);
        let t_s: Vec<f64> = (1..=11).map(|tenth| f64::from(tenth) / 10.0).collect();
        let [(_, user), (_, system)] = own.curves(&t_s, 2);
        // Half of one CPU, then one, of two; nothing after the end.
        assert_eq!([user[0], user[1], user[5], user[10]], [12.5, 25.0, 50.0, 25.0]);
        for (rates, used_s) in [(&user, 0.9), (&system, 0.4)] {
            let sum: f64 = rates.iter().map(|percent| percent / 100.0 * 2.0 * 0.1).sum();
            assert!((sum - used_s).abs() < 1e-3, "{sum} {rates:?}");
        }
        own.readings = (0..READINGS_MAX).map(|at| (at as f64, [at as f64; 2])).collect();
        own.read(Instant::now());
        assert_eq!(own.readings.len(), READINGS_MAX / 2 + 1);
        assert!(own.readings.windows(2).all(|pair| pair[0].0 < pair[1].0 || pair[1].1 == [0.0; 2]));
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
