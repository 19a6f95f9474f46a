//! The summary as text: the values of time(1) for the command, and of vmstat(8), iostat(1) and others for the
//! machine.

use super::options::{Plan, Subject};
use crate::number::{self, grouped};
use hakobu_lab::record::output::CommandUsage;
use hakobu_lab::record::summary::{DiskSummary, LoadStat, ProcessSummary, RecordSummary};
use std::fmt::{Display, Write as _};

/// Maximum number of characters of a command line in a headline.
const COMMAND_CHARS_MAX: usize = 200;

/// Returns a headline for the subject.
pub fn title(command: Option<&CommandUsage>, plan: &Plan) -> String {
    match (command, &plan.subject) {
        (Some(command), _) => typed(&command.argv),
        (None, Subject::Pid(pid)) => format!("process {pid}"),
        (None, _) => "the machine".to_owned(),
    }
}

/// Returns a command line in shell syntax.
fn typed(argv: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    let word = |word: &String| {
        let shown: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        if !shown.is_empty() && shown.chars().all(plain) {
            shown
        } else {
            format!("'{}'", shown.replace('\'', "'\\''"))
        }
    };
    let line = argv.iter().map(word).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(COMMAND_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns the summary, the verdict first; `interval_s` is the time between samples.
pub fn text(
    verdict: Option<&str>,
    summary: &RecordSummary,
    command: Option<&CommandUsage>,
    interval_s: f64,
) -> String {
    let mut out = String::from("\n");
    if let Some(verdict) = verdict {
        let _ = writeln!(out, "{verdict}\n");
    }
    if let Some(command) = command {
        of_command(command, &mut out);
    } else if let Some(processes) = &summary.processes {
        of_processes(processes, summary.sampled_s, &mut out);
    }
    if summary.processes.is_some() {
        out.push('\n');
    }
    machine(summary, interval_s, &mut out);
    disks(&summary.disks, &mut out);
    network(summary, &mut out);
    out
}

fn of_command(command: &CommandUsage, out: &mut String) {
    let end = match (command.exit_code, command.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("killed by signal {}", signal.unwrap_or(0)),
    };
    let bound = if command.max_rss_is_bound { "at most " } else { "" };
    let _ = write!(
        out,
        "command        {}\n\
         ended          {end}\n\
         time           real {:.3} s, user {:.3} s, sys {:.3} s: {:.1} % of one CPU\n\
         memory         max RSS {bound}{}; {} minor, {} major faults\n\
         switches       {} voluntary, {} involuntary\n\
         device I/O     {} read, {} to be written\n",
        typed(&command.argv),
        command.real_s,
        command.user_s,
        command.sys_s,
        command.cpu_percent,
        number::bytes(command.max_rss_bytes),
        grouped(command.minor_faults),
        grouped(command.major_faults),
        grouped(command.voluntary_switches),
        grouped(command.involuntary_switches),
        number::bytes(command.device_read_bytes),
        number::bytes(command.device_write_bytes),
    );
}

fn of_processes(processes: &ProcessSummary, sampled_s: f64, out: &mut String) {
    let bytes = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), number::bytes);
    let _ = write!(
        out,
        "time           watched {sampled_s:.3} s, user {:.2} s, sys {:.2} s: {:.1} % of one CPU\n\
         memory         max RSS {} (all together); {} minor, {} major faults\n\
         switches       {} voluntary, {} involuntary\n\
         device I/O     {} read, {} to be written\n",
        processes.user_s,
        processes.sys_s,
        processes.cpu_percent.mean,
        number::bytes(processes.rss_bytes_max),
        grouped(processes.minor_faults),
        grouped(processes.major_faults),
        grouped(processes.voluntary_switches),
        grouped(processes.involuntary_switches),
        bytes(processes.device_read_bytes),
        bytes(processes.device_write_bytes),
    );
}

fn machine(summary: &RecordSummary, interval_s: f64, out: &mut String) {
    let intervals = number::things(summary.intervals, "interval");
    let head = format!("machine: {} CPUs, {intervals} of {interval_s} s", summary.cpus);
    let _ = writeln!(out, "{head:<44} {:>12} {:>12}", "mean", "peak");
    let mut line = |name: &str, stat: Option<LoadStat>, digits: usize| {
        if let Some(LoadStat { mean, peak }) = stat {
            let _ = writeln!(
                out,
                "  {name:<42} {:>12} {:>12}",
                decimal(mean, digits),
                decimal(peak, digits)
            );
        }
    };
    let cpu = summary.cpu.as_ref();
    line("CPU user, %", cpu.map(|cpu| cpu.user_percent), 1);
    line("CPU system, %", cpu.map(|cpu| cpu.system_percent), 1);
    line("CPU iowait, %", cpu.map(|cpu| cpu.iowait_percent), 1);
    line("CPU steal, %", cpu.map(|cpu| cpu.steal_percent), 1);
    line("CPU idle, %", cpu.map(|cpu| cpu.idle_percent), 1);
    if let Some(busiest) = &summary.busiest_cpu {
        line(&format!("busiest CPU (cpu{}), %", busiest.cpu), Some(busiest.percent), 1);
    }
    let processes = summary.processes.as_ref();
    line("busiest thread watched, % of a CPU", processes.map(|p| p.busiest_thread_percent), 1);
    line("tasks running", Some(summary.running), 1);
    line("tasks blocked", Some(summary.blocked), 1);
    line("context switches/s", Some(summary.switches_per_s), 0);
    line("interrupts/s", Some(summary.interrupts_per_s), 0);
    line("some waited for CPU (PSI), %", summary.pressure.cpu_some_percent, 1);
    line("some waited for I/O, %", summary.pressure.io_some_percent, 1);
    line("all waited for I/O, %", summary.pressure.io_full_percent, 1);
    line("some waited for memory, %", summary.pressure.memory_some_percent, 1);
    let kib =
        |stat: LoadStat| Some(LoadStat { mean: stat.mean / 1024.0, peak: stat.peak / 1024.0 });
    line("blocks in (bi), KiB/s", kib(summary.paged_in_bytes_per_s), 0);
    line("blocks out (bo), KiB/s", kib(summary.paged_out_bytes_per_s), 0);
    for (name, stat) in [
        ("swap in (si), KiB/s", summary.swapped_in_bytes_per_s),
        ("swap out (so), KiB/s", summary.swapped_out_bytes_per_s),
    ] {
        line(name, kib(stat).filter(|stat| stat.peak > 0.0), 0);
    }
    let memory = &summary.memory;
    let _ = writeln!(
        out,
        "  memory: at least {} of {} available, at most {} dirty, {} in writeback, {} swap in use",
        number::bytes(memory.available_bytes_min),
        number::bytes(memory.total_bytes),
        number::bytes(memory.dirty_bytes_max),
        number::bytes(memory.writeback_bytes_max),
        number::bytes(memory.swap_used_bytes_max),
    );
    if let Some((periods, throttled)) = summary.quota_periods.filter(|(periods, _)| *periods > 0) {
        let _ = writeln!(
            out,
            "  CPU quota: {} of {} periods throttled",
            grouped(throttled),
            grouped(periods)
        );
    }
}

fn disks(disks: &[DiskSummary], out: &mut String) {
    if disks.is_empty() {
        return;
    }
    row("disk", ["requests", "bytes", "IOPS (peak)", "MB/s (peak)", "ms (peak)"], out);
    for disk in disks {
        for (way, requests, bytes, iops, rate, ms) in [
            (
                "read",
                disk.reads,
                disk.read_bytes,
                disk.read_iops,
                disk.read_bytes_per_s,
                disk.read_ms,
            ),
            (
                "write",
                disk.writes,
                disk.write_bytes,
                disk.write_iops,
                disk.write_bytes_per_s,
                disk.write_ms,
            ),
        ] {
            let (requests, bytes) = (grouped(requests), number::bytes(bytes));
            let ms = ms.map_or("-".to_owned(), |ms| pair(ms, 2));
            let cells = [requests, bytes, pair(iops, 0), pair(mega(rate), 1), ms];
            row(&format!("  {} {way}", disk.name), cells, out);
        }
        let _ = writeln!(
            out,
            "  {} busy {} %, requests in flight {}",
            disk.name,
            pair(disk.busy_percent, 1),
            pair(disk.queue, 2)
        );
    }
}

fn network(summary: &RecordSummary, out: &mut String) {
    if !summary.links.is_empty() {
        let head = ["received", "sent", "in MB/s (peak)", "out MB/s (peak)", "dropped"];
        row("network", head, out);
    }
    for link in &summary.links {
        let (received, sent) = (number::bytes(link.rx_bytes), number::bytes(link.tx_bytes));
        let (rx, tx) = (pair(mega(link.rx_bytes_per_s), 1), pair(mega(link.tx_bytes_per_s), 1));
        let cells = [received, sent, rx, tx, grouped(link.drops)];
        row(&format!("  {}", link.name), cells, out);
    }
    if let Some(tcp) = summary.tcp.filter(|tcp| tcp.segments_out > 0) {
        let _ = writeln!(
            out,
            "  TCP: {} segments sent, {} of them again",
            grouped(tcp.segments_out),
            grouped(tcp.retransmits)
        );
    }
}

/// Appends a row of the tables of disks and of links.
fn row<T: Display>(name: &str, [a, b, c, d, e]: [T; 5], out: &mut String) {
    let _ = writeln!(out, "{name:<14} {a:>10} {b:>12} {c:>17} {d:>17} {e:>17}");
}

/// Returns a rate in units of a million.
fn mega(stat: LoadStat) -> LoadStat {
    LoadStat { mean: stat.mean / 1e6, peak: stat.peak / 1e6 }
}

/// Returns the mean, and the peak in parentheses.
fn pair(stat: LoadStat, digits: usize) -> String {
    format!("{} ({})", decimal(stat.mean, digits), decimal(stat.peak, digits))
}

/// Formats a number with this many decimals and grouping commas.
fn decimal(number: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", number.max(0.0));
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), grouped);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let line = |words: &[&str]| {
            typed(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(line(&["dd", "if=/dev/zero", "a b", ""]), "dd if=/dev/zero 'a b' ''");
        assert_eq!(line(&["sh", "-c", "echo 'x'\n"]), "sh -c 'echo '\\''x'\\''?'");
        assert_eq!(line(&["é".repeat(300).as_str()]).chars().count(), COMMAND_CHARS_MAX + 1);
    }

    #[test]
    fn numbers_have_commas_and_digits() {
        assert_eq!(decimal(1_234_567.891, 1), "1,234,567.9");
        assert_eq!((decimal(0.0, 0), decimal(-0.01, 2)), ("0".into(), "0.00".into()));
        assert_eq!(pair(LoadStat { mean: 1.25, peak: 1000.0 }, 1), "1.2 (1,000.0)");
    }

    #[test]
    fn unknown_values_are_omitted() {
        let command = CommandUsage {
            argv: vec!["true".into()],
            exit_code: Some(0),
            max_rss_is_bound: true,
            ..CommandUsage::default()
        };
        let summary = RecordSummary {
            processes: Some(ProcessSummary::default()),
            ..RecordSummary::default()
        };
        let text = text(Some("Limited by the CPU."), &summary, Some(&command), 0.1);
        assert!(text.starts_with("\nLimited by the CPU.\n\ncommand  "), "{text}");
        assert!(text.contains("ended          exit code 0\n"), "{text}");
        assert!(text.contains("max RSS at most 0 bytes"), "{text}");
        for absent in ["CPU user", "PSI", "disk ", "TCP", "swap in (si)", "quota"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
    }
}
