//! Recordings of simulated samples.

use super::*;
use hakobu_explain::sample::{CpuTimes, Process, Tcp as TcpCounters, Thread};
use hakobu_explain::sample::{Disk as DiskCounters, Link as LinkCounters};

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
    assert!(near(cpu.user, 0.25) && near(cpu.system, 0.125) && near(cpu.iowait, 0.125), "{cpu:?}");
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
