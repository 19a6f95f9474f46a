//! Chart of a recording: CPU, disks, network.

use super::{RecordSummary, RecordTable};
use crate::chart::{Chart, ChartColor, ChartPanel, ChartSeries, SeriesForm, color};

/// Most disks to draw: those with the most traffic.
const DISKS_MAX: usize = 3;
/// Columns of bytes are in KiB.
const MB_PER_KIB: f64 = 1024.0 / 1e6;
/// Colours of reads and writes of each disk.
const DISK_COLORS: [(ChartColor, ChartColor); DISKS_MAX] =
    [(color::BLUE, color::RED), (color::GREEN, color::YELLOW), (color::CYAN, color::PURPLE)];

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
    let mut network = vec![
        line("received", "rx", color::BLUE, MB_PER_KIB),
        line("sent", "tx", color::RED, MB_PER_KIB),
    ];
    if summary.links.iter().any(|link| link.name == "lo") {
        network.push(line("loopback", "lo", color::GREEN, MB_PER_KIB));
    }
    let panel = |title: &str, unit: &str, top, series| ChartPanel {
        title: title.to_owned(),
        unit: unit.to_owned(),
        top,
        series,
        ..ChartPanel::default()
    };
    let cpu = vec![
        area("user", "us", color::BLUE),
        area("system", "sy", color::RED),
        area("iowait", "wa", color::YELLOW),
        area("steal", "st", color::PURPLE),
        line("busiest CPU", "cpu_max", color::BLACK, 1.0),
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
