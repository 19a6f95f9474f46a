//! The status line while a command runs: the last line of the terminal, protected from the command's output by a
//! scrolling region above it (DECSTBM; ECMA-48, VT100).

use crate::number;
use hakobu_lab::record::Row;
use hakobu_sys::terminal;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Minimum interval between two updates.
const PAUSE: Duration = Duration::from_millis(90);
/// Minimum number of rows of the terminal.
const ROWS_MIN: usize = 4;

/// The status line.
pub struct Live {
    rows: usize,
    drawn: Option<Instant>,
}

impl Live {
    /// Reserves the last line of the terminal behind standard error; returns `None` if it is not a terminal.
    pub fn start() -> Option<Live> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let rows = terminal::rows(io::stderr()).filter(|rows| *rows >= ROWS_MIN)?;
        write(&reserve(rows));
        Some(Live { rows, drawn: None })
    }

    /// Shows an interval, if an update is due.
    pub fn draw(&mut self, row: &Row) {
        if self.drawn.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.drawn = Some(Instant::now());
        let Some(rows) = terminal::rows(io::stderr()).filter(|rows| *rows >= ROWS_MIN) else {
            return;
        };
        if rows != self.rows {
            self.rows = rows;
            write(&reserve(rows));
        }
        let columns = terminal::columns(io::stderr()).unwrap_or(80);
        let text: String = words(row).chars().take(columns.saturating_sub(1)).collect();
        write(&format!("\x1b7\x1b[{rows};1H\x1b[7m{text}\x1b[0m\x1b[K\x1b8"));
    }

    /// Releases the line.
    pub fn finish(self) {
        write(&format!("\x1b7\x1b[r\x1b[{};1H\x1b[2K\x1b8", self.rows));
    }
}

/// Returns the sequence that moves the cursor out of the last line, and excludes that line from scrolling.
fn reserve(rows: usize) -> String {
    format!("\x1bD\x1b[A\x1b7\x1b[1;{}r\x1b8", rows - 1)
}

/// Writes in one call, so that it does not mix with the command's output.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns an interval in one line, the most important part first.
pub fn words(row: &Row) -> String {
    let rates = &row.rates;
    let percent = |share: f64| (share * 100.0).round() as u64;
    let mut out = format!(" {:.1} s", row.at_s);
    if let Some(cpu) = row.cpu() {
        let _ = write!(
            out,
            " | CPU us {} sy {} wa {} st {} id {}",
            percent(cpu.user),
            percent(cpu.system),
            percent(cpu.iowait),
            percent(cpu.steal),
            percent(cpu.idle)
        );
    }
    let process = &rates.process;
    let _ = write!(
        out,
        " | own {} %, thread {} %, RSS {}",
        percent(process.cpu()),
        percent(row.busiest_thread()),
        number::bytes(process.rss_bytes)
    );
    let moved = |disk: &hakobu_explain::sample::DiskRates| disk.read_iops + disk.write_iops;
    let disks = rates.disks.iter().filter(|disk| moved(disk) > 0.0);
    if let Some(disk) = disks.max_by(|a, b| a.busy.total_cmp(&b.busy)) {
        let _ = write!(
            out,
            " | {} {}/s read, {}/s written, {} IOPS, {} % busy",
            disk.name,
            number::bytes(disk.read_bytes_per_s as u64),
            number::bytes(disk.write_bytes_per_s as u64),
            number::grouped(moved(disk).round() as u64),
            percent(disk.busy)
        );
    }
    let (rx, tx) = row.network_bytes_per_s();
    if rx + tx >= 1.0 {
        let (rx, tx) = (number::bytes(rx as u64), number::bytes(tx as u64));
        let _ = write!(out, " | net {rx}/s in, {tx}/s out");
    }
    out.push(' ');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_explain::sample::{CpuRates, DiskRates, ProcessRates, Rates};

    #[test]
    fn one_line_says_it() {
        let rates = Rates {
            span_s: 0.1,
            cpu: CpuRates { user: 1.0, idle: 1.0, ..CpuRates::default() },
            disks: vec![
                DiskRates { name: "vdb".into(), busy: 1.0, ..DiskRates::default() },
                DiskRates {
                    name: "vda".into(),
                    busy: 0.5,
                    write_iops: 1500.0,
                    write_bytes_per_s: 12_000_000.0,
                    ..DiskRates::default()
                },
            ],
            process: ProcessRates {
                user: 1.2,
                busiest: Some((7, 0.99)),
                rss_bytes: 5_000_000,
                ..ProcessRates::default()
            },
            ..Rates::default()
        };
        assert_eq!(
            words(&Row { at_s: 3.1, rates }),
            " 3.1 s | CPU us 50 sy 0 wa 0 st 0 id 50 | own 120 %, thread 99 %, RSS 5.00 MB \
             | vda 0 bytes/s read, 12.00 MB/s written, 1,500 IOPS, 50 % busy "
        );
    }
}
