//! Recording of the load of a machine and of some of its processes: turns samples into rows of rates, a summary, a table
//! and a chart. Does not read counters or write files.

pub mod columns;
pub mod output;
pub mod summary;

use crate::record::columns::RecordColumns;
use crate::record::summary::{RecordSummary, SummaryBuilder};
use hakobu_explain::sample;
use hakobu_explain::sample::{CpuRates, Rates, Sample};

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
    sums: SummaryBuilder,
}

impl Recorder {
    /// Starts with a first sample; further ones are expected every `interval_ns` nanoseconds. `watched`:
    /// samples include processes.
    pub fn new(first: Sample, interval_ns: u64, watched: bool) -> Recorder {
        let sums = SummaryBuilder::default();
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

/// One interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordRow {
    /// End of the interval, seconds since the start.
    pub at_s: f64,
    /// Rates of the sampler.
    pub rates: Rates,
}

impl RecordRow {
    /// Rates between two samples of one sampler; `new` is the later one.
    pub fn between(old: &Sample, new: &Sample) -> RecordRow {
        RecordRow { at_s: new.at_ns as f64 / 1e9, rates: Rates::between(old, new) }
    }

    /// CPU time as shares of all CPUs together, 0 to 1; `None` if the kernel has counted no time yet (it
    /// counts in ticks, usually of 10 ms).
    pub fn cpu(&self) -> Option<CpuRates> {
        let sum = &self.rates.cpu;
        let all = sum.used() + sum.iowait + sum.steal + sum.idle;
        (all > 0.0).then(|| CpuRates {
            user: sum.user / all,
            system: sum.system / all,
            iowait: sum.iowait / all,
            idle: sum.idle / all,
            steal: sum.steal / all,
        })
    }

    /// Busiest CPU: number and share, 0 to 1.
    pub fn busiest_cpu(&self) -> Option<(u32, f64)> {
        self.cpu()?;
        let used = self.rates.cpus.iter().map(|(number, cpu)| (*number, cpu.used()));
        used.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Share of the busiest watched thread, 0 to 1.
    pub fn busiest_thread(&self) -> f64 {
        self.rates.process.busiest.map_or(0.0, |(_, share)| share)
    }

    /// Bytes per second received and sent by all interfaces except loopback.
    pub fn network_bytes_per_s(&self) -> (f64, f64) {
        let links = self.rates.links.iter().filter(|link| link.name != "lo");
        links
            .fold((0.0, 0.0), |(rx, tx), link| (rx + link.rx_bytes_per_s, tx + link.tx_bytes_per_s))
    }

    /// Bytes per second over loopback, counted once.
    pub fn loopback_bytes_per_s(&self) -> f64 {
        let lo = self.rates.links.iter().find(|link| link.name == "lo");
        lo.map_or(0.0, |link| link.tx_bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns::RecordTable;
    use crate::record::output::{CommandUsage, RecordFile, RecordedMachine, picture};
    use crate::record::summary::TcpSummary;
    use hakobu_explain::sample::{
        CpuTimes, Disk as DiskCounters, Link as LinkCounters, Process, Tcp as TcpCounters, Thread,
    };

    const SECOND: u64 = 1_000_000_000;

    /// A machine with two CPUs, of which the second is busy; a disk that writes 100 × 4 KiB per tenth of a
    /// second; a process that uses one CPU.
    fn sample(tenths: u64) -> Sample {
        let busy = CpuTimes {
            user_ns: tenths * SECOND / 20,
            system_ns: tenths * SECOND / 40,
            iowait_ns: tenths * SECOND / 40,
            ..CpuTimes::default()
        };
        let idle = CpuTimes { idle_ns: tenths * SECOND / 10, ..CpuTimes::default() };
        Sample {
            at_ns: tenths * SECOND / 10,
            cpus: vec![(0, idle), (3, busy)],
            running: 2,
            blocked: u32::from(tenths == 5),
            switches: tenths * 50,
            disks: vec![DiskCounters {
                name: "vda".into(),
                writes: tenths * 100,
                write_bytes: tenths * 409_600,
                write_ms: tenths * 50,
                busy_ms: tenths * 80,
                queue_ms: tenths * 50,
                ..DiskCounters::default()
            }],
            links: vec![
                LinkCounters { name: "lo".into(), tx_bytes: tenths * 7, ..LinkCounters::default() },
                LinkCounters {
                    name: "eth0".into(),
                    rx_bytes: tenths * 1000,
                    ..LinkCounters::default()
                },
            ],
            tcp: Some(TcpCounters { segments_out: tenths * 10, retransmits: tenths }),
            process: Process {
                user_ns: tenths * SECOND / 10,
                threads: vec![Thread { tid: 7, ran_ns: tenths * SECOND / 10, waited_ns: 0 }],
                rss_bytes: 1 << 20,
                minor_faults: tenths,
                ..Process::default()
            },
            paged_bytes: (0, tenths * 409_600),
            ..Sample::default()
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let row = RecordRow::between(&sample(3), &sample(5));
        let cpu = row.cpu().unwrap();
        assert!(
            near(cpu.user, 0.25) && near(cpu.system, 0.125) && near(cpu.iowait, 0.125),
            "{cpu:?}"
        );
        assert!(near(cpu.idle, 0.5) && near(cpu.used(), 0.375), "{cpu:?}");
        assert_eq!(row.busiest_cpu(), Some((3, 0.75)));
        let disk = &row.rates.disks[0];
        assert!(near(disk.write_iops, 1000.0) && near(disk.write_bytes_per_s, 4_096_000.0));
        assert_eq!((disk.read_latency_ms, disk.write_latency_ms), (None, Some(0.5)));
        assert!(near(disk.busy, 0.8) && near(disk.queue, 0.5), "{disk:?}");
        assert_eq!(row.network_bytes_per_s(), (10_000.0, 0.0));
        assert!(near(row.loopback_bytes_per_s(), 70.0));
        assert!(near(row.rates.process.cpu(), 1.0) && near(row.busiest_thread(), 1.0));
        assert_eq!(row.rates.retransmits_per_s, Some(10.0));
        // Intervals of zero or negative length give no rates.
        let none = RecordRow::between(&sample(5), &sample(5));
        assert_eq!((none.cpu(), none.rates.switches_per_s), (None, 0.0));
        assert_eq!(RecordRow::between(&sample(5), &sample(3)).rates.switches_per_s, 0.0);
    }

    #[test]
    fn a_sliver_at_the_end_belongs_to_the_row_before() {
        for (last_ns, ends) in [
            (2 * SECOND / 10 + 1, vec![1, 2]),
            (24 * SECOND / 100, vec![1, 2]),
            (26 * SECOND / 100, vec![1, 2, 3]),
        ] {
            let mut recorder = Recorder::new(sample(0), SECOND / 10, true);
            let mut rows = Vec::new();
            rows.extend(recorder.push(sample(1)));
            rows.extend(recorder.push(sample(2)));
            let (more, summary) = recorder.end(Sample { at_ns: last_ns, ..sample(2) });
            rows.extend(more);
            let count = ends.len();
            assert_eq!(rows.len(), count, "{last_ns}");
            assert!(near(rows[count - 1].at_s, last_ns as f64 / 1e9) && near(rows[0].at_s, 0.1));
            assert_eq!(summary.intervals, count as u64);
        }
        let (rows, summary) = Recorder::new(sample(0), SECOND, false).end(sample(1));
        assert_eq!((rows.len(), summary.intervals, summary.processes), (1, 1, None));
    }

    fn recording() -> (RecordTable, RecordSummary, String) {
        let mut recorder = Recorder::new(sample(0), SECOND / 10, true);
        let columns = recorder.columns();
        let mut kept = RecordTable::new(&columns);
        let mut csv = columns.csv_header();
        let mut rows: Vec<RecordRow> =
            (1..10).filter_map(|tenths| recorder.push(sample(tenths))).collect();
        let (more, summary) = recorder.end(sample(10));
        rows.extend(more);
        for row in &rows {
            kept.push(&columns, row);
            csv.push_str(&columns.csv_line(row));
        }
        kept.close();
        (kept, summary, csv)
    }

    #[test]
    fn sums_are_exact_and_peaks_those_of_rows() {
        let (_, summary, _) = recording();
        assert!(near(summary.sampled_s, 1.0) && summary.intervals == 10);
        let cpu = summary.cpu.unwrap();
        assert!(near(cpu.user_percent.mean, 25.0) && near(cpu.user_percent.peak, 25.0), "{cpu:?}");
        assert!(near(summary.blocked.mean, 0.1) && near(summary.blocked.peak, 1.0));
        assert_eq!(summary.busiest_cpu.unwrap().cpu, 3);
        let disk = &summary.disks[0];
        assert_eq!((disk.writes, disk.write_bytes, disk.reads), (1000, 4_096_000, 0));
        assert_eq!(disk.read_ms, None);
        assert!(near(disk.write_ms.unwrap().mean, 0.5) && near(disk.busy_percent.peak, 80.0));
        assert!(near(summary.paged_out_bytes_per_s.mean, 4_096_000.0));
        assert_eq!(summary.tcp, Some(TcpSummary { segments_out: 100, retransmits: 10 }));
        let processes = summary.processes.unwrap();
        assert!(near(processes.user_s, 1.0) && near(processes.cpu_percent.mean, 100.0));
        assert_eq!((processes.minor_faults, processes.rss_bytes_max), (10, 1 << 20));
        assert!(near(processes.busiest_thread_percent.mean, 100.0));
    }

    #[test]
    fn columns_hold_vmstats_numbers() {
        let (kept, _, csv) = recording();
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let vmstat = "t r b swpd free buff cache si so bi bo in cs us sy id wa st";
        assert_eq!(header[..18].join(" "), vmstat);
        assert_eq!(lines.clone().count(), 10);
        let cell = |line: &str, name: &str| {
            let at = header.iter().position(|column| *column == name).unwrap_or(usize::MAX);
            line.split(',').nth(at).unwrap_or_default().to_owned()
        };
        for line in lines {
            assert_eq!(line.split(',').count(), header.len());
            for (name, number) in [
                ("r", "2"),
                ("bo", "4000"),
                ("cs", "500"),
                ("us", "25"),
                ("sy", "12.5"),
                ("wa", "12.5"),
                ("id", "50"),
                ("st", "0"),
                ("vda.w_iops", "1000"),
                ("vda.w_ms", "0.5"),
                ("vda.r_ms", ""),
                ("vda.busy", "80"),
                ("psi_io", ""),
                ("cpu3", "75"),
                ("p_cpu", "100"),
                ("eth0.rx", "9.766"),
            ] {
                assert_eq!(cell(line, name), number, "{name}");
            }
        }
        assert_eq!(kept.series("us").len(), 10);
    }

    #[test]
    fn the_json_file_is_one_object() {
        let (kept, summary, _) = recording();
        let document = RecordFile {
            program: "hakobu",
            start: "2026-01-01T00:00:00Z",
            interval_s: 0.1,
            machine: &RecordedMachine::default(),
            command: Some(&CommandUsage { argv: vec!["true".into()], ..CommandUsage::default() }),
            pid: None,
            verdict: None,
            summary: &summary,
            kept: &kept,
        };
        let value: serde_json::Value = serde_json::from_str(&document.json().unwrap()).unwrap();
        let columns = value["columns"].as_array().unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["rows"].as_array().unwrap().len(), 10);
        let at = columns.iter().position(|column| column["name"] == "psi_cpu").unwrap();
        for row in value["rows"].as_array().unwrap() {
            assert_eq!(row.as_array().unwrap().len(), columns.len());
            assert!(row[at].is_null() && row[0].is_f64(), "{row}");
        }
        assert_eq!(value["summary"]["disks"][0]["writes"], 1000);
    }

    #[test]
    fn the_picture_shows_all_four() {
        let (kept, summary, _) = recording();
        let picture = picture("true", &kept, &summary).svg().unwrap();
        for part in ["true", "CPU", "vda write", "IOPS", "Network", "steal"] {
            assert!(picture.contains(part), "{part}");
        }
    }
}
