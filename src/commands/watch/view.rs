//! The live view of the machine: redrawn in place on a terminal, vmstat's lines elsewhere.

use crate::number;
use crate::show::output::Output;
use hakobu_lab::record::RecordRow;
use hakobu_sys::stdio;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// Number of lines between two headers.
const HEADER_EACH: u64 = 20;
/// Maximum number of CPUs shown; of more, the busiest.
const CPUS_MAX: usize = 16;
/// Number of characters of a full bar.
const BAR: usize = 40;

/// vmstat's header.
const HEADER: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
";

/// The view on standard output.
pub struct View {
    out: Output,
    interval: Duration,
    /// Number of lines of the current picture.
    height: usize,
    lines: u64,
}

impl View {
    /// Starts the view; nothing is shown yet.
    pub fn start(interval: Duration) -> View {
        View { out: Output::stdout(), interval, height: 0, lines: 0 }
    }

    /// Returns the refresh interval in nanoseconds.
    pub fn interval_ns(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns whether the reader is gone.
    pub fn is_broken(&self) -> bool {
        self.out.is_broken()
    }

    /// Shows an interval.
    pub fn draw(&mut self, row: &RecordRow) {
        let mut text = String::new();
        if self.out.is_terminal() {
            let columns = stdio::columns(io::stdout()).unwrap_or(80);
            let rows = stdio::rows(io::stdout()).unwrap_or(24);
            if self.height > 0 {
                let _ = write!(text, "\x1b[{}A\x1b[J", self.height);
            }
            let picture = picture(row, self.interval);
            let lines = picture.lines().take(rows.saturating_sub(1));
            self.height = 0;
            for line in lines {
                text.extend(line.chars().take(columns.saturating_sub(1)));
                text.push('\n');
                self.height += 1;
            }
        } else {
            if self.lines.is_multiple_of(HEADER_EACH) {
                text.push_str(HEADER);
            }
            text.push_str(&line(row));
            self.lines += 1;
        }
        self.out.write(text.as_bytes());
        if !self.out.is_terminal() {
            self.out.flush();
        }
    }
}

/// Returns an interval as vmstat(8) writes it.
fn line(row: &RecordRow) -> String {
    let rates = &row.rates;
    let memory = &rates.memory;
    let kib = |bytes: u64| bytes / 1024;
    let per_s = |bytes: f64| (bytes / 1024.0).round() as u64;
    let cpu = row.cpu().unwrap_or_default();
    let percent = |share: f64| (share * 100.0).round() as u64;
    format!(
        "{:>2} {:>2} {:>6} {:>6} {:>6} {:>6} {:>4} {:>4} {:>5} {:>5} {:>4} {:>4} {:>2} {:>2} {:>2} {:>2} {:>2}\n",
        rates.running,
        rates.blocked,
        kib(memory.swap_used_bytes),
        kib(memory.free_bytes),
        kib(memory.buffers_bytes),
        kib(memory.cached_bytes),
        per_s(rates.swap_in_bytes_per_s),
        per_s(rates.swap_out_bytes_per_s),
        per_s(rates.paged_in_bytes_per_s),
        per_s(rates.paged_out_bytes_per_s),
        rates.interrupts_per_s.round() as u64,
        rates.switches_per_s.round() as u64,
        percent(cpu.user),
        percent(cpu.system),
        percent(cpu.idle),
        percent(cpu.iowait),
        percent(cpu.steal),
    )
}

/// Returns an interval as a text picture.
fn picture(row: &RecordRow, interval: Duration) -> String {
    let rates = &row.rates;
    let mut out = format!(
        "{:.0} s, every {} s; Ctrl-C ends\n\n",
        row.at_s,
        (interval.as_secs_f64() * 100.0).round() / 100.0
    );
    let cpu = row.cpu().unwrap_or_default();
    let _ = writeln!(
        out,
        "CPU      user {:5.1} %   system {:5.1} %   iowait {:5.1} %   steal {:5.1} %   idle {:5.1} %",
        cpu.user * 100.0,
        cpu.system * 100.0,
        cpu.iowait * 100.0,
        cpu.steal * 100.0,
        cpu.idle * 100.0
    );
    let mut cpus: Vec<_> = rates.cpus.iter().map(|(number, cpu)| (*number, cpu.used())).collect();
    if cpus.len() > CPUS_MAX {
        cpus.sort_by(|a, b| b.1.total_cmp(&a.1));
        cpus.truncate(CPUS_MAX);
    }
    for (number, share) in cpus {
        let full = ((share * BAR as f64).round() as usize).min(BAR);
        let name = format!("cpu{number}");
        let (bar, rest) = ("#".repeat(full), ".".repeat(BAR - full));
        let _ = writeln!(out, "{name:<8} [{bar}{rest}] {:5.1} %", share * 100.0);
    }
    let _ = writeln!(
        out,
        "tasks    {} running, {} blocked, {} switches/s, {} interrupts/s",
        rates.running,
        rates.blocked,
        number::grouped(rates.switches_per_s.round() as u64),
        number::grouped(rates.interrupts_per_s.round() as u64)
    );
    let pressure = &rates.pressure;
    if let (Some(cpu), Some(io), Some(memory)) =
        (pressure.cpu_some, pressure.io_some, pressure.memory_some)
    {
        let _ = writeln!(
            out,
            "waiting  for CPU {:.1} %, for I/O {:.1} % (all tasks {:.1} %), for memory {:.1} %",
            cpu * 100.0,
            io * 100.0,
            pressure.io_full.unwrap_or(0.0) * 100.0,
            memory * 100.0
        );
    }
    let memory = &rates.memory;
    let _ = writeln!(
        out,
        "memory   {} of {} available, {} cached, {} dirty, {} in writeback, {} swap in use\n",
        number::bytes(memory.available_bytes),
        number::bytes(memory.total_bytes),
        number::bytes(memory.cached_bytes),
        number::bytes(memory.dirty_bytes),
        number::bytes(memory.writeback_bytes),
        number::bytes(memory.swap_used_bytes)
    );
    out.push_str(
        "disk          reads/s     MB/s      ms  writes/s     MB/s      ms   queue   busy\n",
    );
    let ms = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
    for disk in &rates.disks {
        let _ = writeln!(
            out,
            "{:<12} {:>8.0} {:>8.1} {:>7} {:>9.0} {:>8.1} {:>7} {:>7.1} {:>4.0} %",
            disk.name,
            disk.read_iops,
            disk.read_bytes_per_s / 1e6,
            ms(disk.read_latency_ms),
            disk.write_iops,
            disk.write_bytes_per_s / 1e6,
            ms(disk.write_latency_ms),
            disk.queue,
            disk.busy * 100.0
        );
    }
    out.push_str("\nnetwork       MB/s in  MB/s out   drops/s\n");
    for link in &rates.links {
        let _ = writeln!(
            out,
            "{:<12} {:>8.1} {:>9.1} {:>9.0}",
            link.name,
            link.rx_bytes_per_s / 1e6,
            link.tx_bytes_per_s / 1e6,
            link.drops_per_s
        );
    }
    if let Some(again) = rates.retransmits_per_s {
        let _ = writeln!(out, "TCP segments sent again: {again:.0}/s");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_explain::sample::{CpuRates, Memory, Rates};

    #[test]
    fn lines_are_vmstats() {
        let rates = Rates {
            span_s: 1.0,
            cpu: CpuRates { user: 0.5, idle: 1.5, ..CpuRates::default() },
            running: 3,
            memory: Memory { free_bytes: 2_048_000, ..Memory::default() },
            paged_out_bytes_per_s: 1024.0 * 700.0,
            switches_per_s: 12.4,
            ..Rates::default()
        };
        let line = line(&RecordRow { at_s: 1.0, rates });
        assert_eq!(
            line,
            " 3  0      0   2000      0      0    0    0     0   700    0   12 25  0 75  0  0\n"
        );
        let header = HEADER.lines().last().unwrap_or_default();
        assert_eq!(header.split_whitespace().count(), line.split_whitespace().count());
    }
}
