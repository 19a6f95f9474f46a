//! JSON file and chart of a recording.

use crate::chart::{
    BLACK, BLUE, CYAN, Chart, ChartColor, ChartPanel, ChartSeries, GREEN, PURPLE, RED, SeriesForm,
    YELLOW,
};
use crate::record::columns::{RecordTable, round_number};
use crate::record::summary::RecordSummary;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Version of the schema, increased by changes other than new fields.
const SCHEMA: u32 = 1;

/// Relevant facts about the machine, without anything that identifies it or its users.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RecordedMachine {
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// Model name of the CPUs.
    pub cpu_model: Option<String>,
    /// Number of online CPUs.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// The command and its resource use, as time(1) reports it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CommandUsage {
    /// Name and arguments; invalid UTF-8 becomes U+FFFD.
    pub argv: Vec<String>,
    /// Exit code, if it exited.
    pub exit_code: Option<i32>,
    /// Signal that killed it.
    pub signal: Option<i32>,
    /// Wall clock time, seconds.
    pub real_s: f64,
    /// CPU time in user space including descendants that were waited for, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub sys_s: f64,
    /// CPU time in percent of one CPU.
    pub cpu_percent: f64,
    /// Peak resident memory of the largest process, bytes.
    pub max_rss_bytes: u64,
    /// True if `max_rss_bytes` is an upper bound only.
    pub max_rss_is_bound: bool,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes read from devices for it.
    pub device_read_bytes: u64,
    /// Bytes that it made dirty, to be written to devices.
    pub device_write_bytes: u64,
}

/// Content of the file.
#[derive(Clone, Debug, Serialize)]
pub struct RecordFile<'a> {
    /// Program and version that made it.
    pub program: &'a str,
    /// Start time, RFC 3339.
    pub start: &'a str,
    /// Seconds between samples.
    pub interval_s: f64,
    /// The machine.
    pub machine: &'a RecordedMachine,
    /// The command, if one was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<&'a CommandUsage>,
    /// Process id, if a running process was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Verdict on the command or process, as in a transfer's summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'a serde_json::Value>,
    /// The summary.
    pub summary: &'a RecordSummary,
    /// The rows.
    #[serde(flatten)]
    pub kept: &'a RecordTable,
}

impl RecordFile<'_> {
    /// Formats it as one JSON object with a newline.
    pub fn json(&self) -> Result<String, String> {
        #[derive(Serialize)]
        struct Whole<'a> {
            schema: u32,
            #[serde(flatten)]
            document: &'a RecordFile<'a>,
        }
        let text = serde_json::to_string(&Whole { schema: SCHEMA, document: self });
        text.map(|text| text + "\n").map_err(|error| error.to_string())
    }
}

impl Serialize for RecordTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = serializer.serialize_struct("Kept", 3)?;
        table.serialize_field("intervals_each_row", &self.each)?;
        table.serialize_field("columns", &self.columns)?;
        table.serialize_field("rows", &RecordRows(self))?;
        table.end()
    }
}

/// Rows as arrays of numbers, `null` for unknown ones.
struct RecordRows<'a>(&'a RecordTable);

impl Serialize for RecordRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = |cell: &f64| cell.is_finite().then(|| round_number(*cell));
        serializer.collect_seq(self.0.rows().map(|row| row.iter().map(known).collect::<Vec<_>>()))
    }
}

/// Most disks to draw: those with the most traffic.
const DISKS_MAX: usize = 3;
/// Columns of bytes are in KiB.
const MB_PER_KIB: f64 = 1024.0 / 1e6;
/// Colours of reads and writes of each disk.
const DISK_COLORS: [(ChartColor, ChartColor); DISKS_MAX] =
    [(BLUE, RED), (GREEN, YELLOW), (CYAN, PURPLE)];

/// Draws CPU, disks and network over time.
pub fn picture(title: &str, kept: &RecordTable, summary: &RecordSummary) -> Chart {
    let draw = |name: &str, column: &str, color, form, scale| ChartSeries {
        name: name.to_owned(),
        color,
        form,
        points: points(kept, column, scale),
    };
    let area = |name, column, color| draw(name, column, color, SeriesForm::Area, 1.0);
    let line =
        |name: &str, column: &str, color, scale| draw(name, column, color, SeriesForm::Line, scale);
    let mut disks: Vec<_> = summary.disks.iter().collect();
    // Stacked devices repeat the I/O of other disks, so they come last.
    disks.sort_by_key(|disk| (disk.stacked, std::cmp::Reverse(disk.read_bytes + disk.write_bytes)));
    let disks: Vec<_> = disks.into_iter().zip(DISK_COLORS).collect();
    let lines = |read: &str, write: &str, scale| -> Vec<ChartSeries> {
        let each = disks.iter().flat_map(|(disk, (blue, red))| {
            let name = &disk.name;
            [
                line(&format!("{name} read"), &format!("{name}.{read}"), *blue, scale),
                line(&format!("{name} write"), &format!("{name}.{write}"), *red, scale),
            ]
        });
        each.collect()
    };
    let mut network =
        vec![line("received", "rx", BLUE, MB_PER_KIB), line("sent", "tx", RED, MB_PER_KIB)];
    if summary.links.iter().any(|link| link.name == "lo") {
        network.push(line("loopback", "lo", GREEN, MB_PER_KIB));
    }
    let panel = |title: &str, unit: &str, top, series| ChartPanel {
        title: title.to_owned(),
        unit: unit.to_owned(),
        top,
        series,
        ..ChartPanel::default()
    };
    let cpu = vec![
        area("user", "us", BLUE),
        area("system", "sy", RED),
        area("iowait", "wa", YELLOW),
        area("steal", "st", PURPLE),
        line("busiest CPU", "cpu_max", BLACK, 1.0),
    ];
    Chart {
        title: title.to_owned(),
        x_label: "seconds".to_owned(),
        x: (0.0, summary.sampled_s),
        panels: vec![
            panel("CPU, all together", "%", Some(100.0), cpu),
            panel("Disk throughput", "MB/s", None, lines("r_kib", "w_kib", MB_PER_KIB)),
            panel("Disk operations", "IOPS", None, lines("r_iops", "w_iops", 1.0)),
            panel("Network", "MB/s", None, network),
        ],
        ..Chart::default()
    }
}

/// Column as points at the ends of its intervals; the first interval starts at 0.
fn points(kept: &RecordTable, column: &str, scale: f64) -> Vec<(f64, f64)> {
    let mut points = kept.series(column);
    if let Some((_, first)) = points.first().copied() {
        points.insert(0, (0.0, first));
    }
    points.into_iter().map(|(x, y)| (x, y * scale)).collect()
}
