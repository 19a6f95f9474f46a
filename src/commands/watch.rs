//! `hakobu watch`: runs a command and records its use of the machine, watches a running process, or shows the machine.

mod record;

use super::tool::carry_out;
use crate::cli::{Group, Opt, OptArg, Table, Typed, flag, parts, put, titled, value};
use crate::limits;
use crate::number;
use crate::show::output::Output;
use hakobu_core::language::Language;
use hakobu_lab::record::RecordRow;
use hakobu_sys::stdio;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The command line of `watch`.
pub static TABLE: Table<WatchOptions> = Table {
    command: "watch",
    about: "Run a command and report its bottleneck, or show the load of the machine",
    description: "The command runs with its input and output unchanged while CPUs, memory, disks, \
            network and its processes are sampled. At the end the bottleneck, with evidence, \
            and the statistics of time(1) and vmstat(8) go to standard error. With --pid it \
            watches a running process; with neither it shows the machine until a signal \
            arrives.",
    usage: "hakobu watch [OPTIONS] -- COMMAND [ARGUMENTS]\n       \
            hakobu watch [OPTIONS] --pid PID\n       \
            hakobu watch [OPTIONS]",
    examples: &[
        ("hakobu watch -- cp -a src copy", "Report the bottleneck of a command."),
        (
            "hakobu watch --svg run.svg --csv run.csv -- tar cf src.tar src",
            "Record and draw the load of a command.",
        ),
        ("hakobu watch -c 2 -i 0.2", "Show the load of the machine."),
    ],
    common: &[],
    after: "Files appear under their names when they are complete, at the end. hakobu help \
            watch-guide explains every number.\n\
            Exit codes: the command's own; 128 + N if signal N ended it; 127 not found, 126 \
            could not be run; 2 usage; 1 if a file could not be written (and the command \
            ended with 0, or was not started), or there is no process PID. Without a \
            command, 0.",
    options: &[&OPTIONS, &FILES],
    unbuilt: &[],
    abbreviates: false,
};

/// Range of the sampling interval, in seconds. Below it the kernel's own counters are too coarse.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.01..=3600.0;

/// The subject to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// A command to start: its name and arguments, at least the name.
    Command(Vec<OsString>),
    /// A running process.
    Pid(u32),
    /// The machine.
    #[default]
    Machine,
}

/// The parsed command line.
#[derive(Debug, Default)]
pub struct WatchOptions {
    pub(super) subject: Subject,
    /// `--interval`.
    pub(super) every: Option<Duration>,
    pub(super) interval: Duration,
    /// End after this many intervals.
    pub(super) count: Option<u64>,
    pub(super) live: bool,
    pub(super) quiet: bool,
    pub(super) output: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
    /// `--lang`.
    pub(super) language: Language,
}

parts!(WatchOptions {});

const OPTIONS: &[Opt<WatchOptions>] = &[
    value(
        "interval",
        Some('i'),
        "SECONDS",
        "time between samples, 0.01 to 3600 (default 0.1; 1 without command and --pid)",
    )
    .reads(|plan, arg| put(&mut plan.every, Some(seconds(arg)?))),
    value("count", Some('c'), "N", "without a command: end after N intervals")
        .reads(|plan, arg| put(&mut plan.count, Some(positive(arg)?))),
    value("pid", Some('p'), "PID", "watch a running process and its descendants").reads(
        |plan, arg| {
            if matches!(plan.subject, Subject::Command(_)) {
                return Err("--pid does not go with a command".into());
            }
            let pid = u32::try_from(positive(arg)?).map_err(|_| arg.refuse("not a process"))?;
            put(&mut plan.subject, Subject::Pid(pid))
        },
    ),
    limits::LANG.reads(|plan, arg| put(&mut plan.language, limits::parse_language(arg)?)),
    flag("no-live", None, "no status line while it runs").sets(|plan, _| plan.live = false),
    flag("quiet", Some('q'), "no status line or view; no bottleneck and summary on standard error")
        .sets(|plan, on| plan.quiet = on),
];

static FILES: Group<WatchOptions> = titled("Files").with(&[
    value(
        "output",
        Some('o'),
        "FILE",
        "write bottleneck and summary to FILE, not to standard error",
    )
    .reads(|plan, arg| put(&mut plan.output, Some(arg.path()))),
    value("csv", None, "FILE", "write a row for each interval: vmstat's columns and more")
        .reads(|plan, arg| put(&mut plan.csv, Some(arg.path()))),
    value(
        "json",
        None,
        "FILE",
        "write the bottleneck, the summary, the machine and all rows as one JSON object",
    )
    .reads(|plan, arg| put(&mut plan.json, Some(arg.path()))),
    value("svg", None, "FILE", "write a picture of CPU, disks and network over time")
        .reads(|plan, arg| put(&mut plan.svg, Some(arg.path()))),
]);

fn seconds(arg: &OptArg) -> Result<Duration, String> {
    arg.parsed()
        .filter(|seconds| INTERVAL_S.contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| arg.refuse("give seconds between 0.01 and 3600"))
}

fn positive(arg: &OptArg) -> Result<u64, String> {
    arg.parsed().filter(|n| *n > 0).ok_or_else(|| arg.refuse("not a number of at least 1"))
}

/// Sampling interval of a command.
const OF_COMMAND: Duration = Duration::from_millis(100);
/// Refresh interval of the machine view.
const OF_VIEW: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let plan = |typed| plan(&arguments, typed);
    carry_out(TABLE.parse(&arguments), plan, |plan| record::run(&plan))
}

fn plan(arguments: &[OsString], typed: Typed) -> Result<WatchOptions, String> {
    // Without the two dashes an option of the command would be taken for one of ours.
    let after =
        arguments.iter().position(|word| word == "--").map_or(0, |at| arguments.len() - at - 1);
    if typed.paths.len() > after {
        let name = typed.paths.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        return Err(format!("put -- before the command: hakobu watch [OPTIONS] -- {name} ..."));
    }
    let is_command = !typed.paths.is_empty();
    if !is_command && arguments.last().is_some_and(|word| word == "--") {
        return Err("missing command after --".into());
    }
    let subject = if is_command { Subject::Command(typed.paths.clone()) } else { Subject::Machine };
    let plan = WatchOptions { subject, live: true, ..WatchOptions::default() };
    let mut plan = TABLE.read(&typed, plan)?;
    if plan.quiet {
        plan.live = false;
    }
    if is_command && plan.count.is_some() {
        return Err("--count does not go with a command: it is watched until it ends".into());
    }
    let usual = if plan.subject == Subject::Machine { OF_VIEW } else { OF_COMMAND };
    plan.interval = plan.every.unwrap_or(usual);
    Ok(plan)
}

/// Returns the status line while a command runs: an interval in one line, the most important part first.
pub fn live_text(row: &RecordRow) -> String {
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
        " | command {}%, thread {}%, RSS {}",
        percent(process.cpu()),
        percent(row.busiest_thread()),
        number::bytes(process.rss_bytes)
    );
    let moved = |disk: &hakobu_explain::sample::DiskRates| disk.read_iops + disk.write_iops;
    let disks = rates.disks.iter().filter(|disk| moved(disk) > 0.0);
    if let Some(disk) = disks.max_by(|a, b| a.busy.total_cmp(&b.busy)) {
        let _ = write!(
            out,
            " | {} {}/s read, {}/s written, {} IOPS, {}% busy",
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

/// The live view of the machine: redrawn in place on a terminal, vmstat's lines elsewhere.
pub struct WatchView {
    out: Output,
    interval: Duration,
    /// Number of lines of the current picture.
    height: usize,
    lines: u64,
}

impl WatchView {
    /// Starts the view; nothing is shown yet.
    pub fn start(interval: Duration) -> WatchView {
        WatchView { out: Output::stdout(), interval, height: 0, lines: 0 }
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
        "CPU      user {:5.1}%   system {:5.1}%   iowait {:5.1}%   steal {:5.1}%   idle {:5.1}%",
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
        let _ = writeln!(out, "{name:<8} [{bar}{rest}] {:5.1}%", share * 100.0);
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
            "waiting  for CPU {:.1}%, for I/O {:.1}% (all tasks {:.1}%), for memory {:.1}%",
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
            "{:<12} {:>8.0} {:>8.1} {:>7} {:>9.0} {:>8.1} {:>7} {:>7.1} {:>5.0}%",
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
        let _ = writeln!(out, "TCP segments retransmitted: {again:.0}/s");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<WatchOptions, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let typed = TABLE.parse(&arguments).map_err(|refused| format!("{refused:?}"))?;
        plan(&arguments, typed)
    }

    #[test]
    fn usage() {
        for (line, said) in [
            ("ls", "put -- before the command: hakobu watch [OPTIONS] -- ls"),
            ("ls -- a", "put -- before the command"),
            ("--", "missing command after --"),
            ("-i 0 -- ls", "invalid --interval '0': give seconds between 0.01 and 3600"),
            ("-i nan -- ls", "invalid --interval 'nan': give seconds"),
            ("-i -1", "invalid --interval '-1': give seconds"),
            ("-c 0", "invalid --count '0': not a number of at least 1"),
            ("-c 3 -- ls", "--count does not go with a command"),
            ("-p 1 -- ls", "--pid does not go with a command"),
            ("-p 99999999999", "invalid --pid '99999999999': not a process"),
            ("-p x", "invalid --pid 'x': not a number"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(message.contains(said), "{line}: {message}");
        }
    }

    #[test]
    fn watched_subjects() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect();
        let plan = read("--csv a -i 0.5 -- ls -l -- --svg").unwrap();
        assert_eq!(plan.subject, Subject::Command(words("ls -l -- --svg")));
        assert_eq!((plan.interval, plan.svg), (Duration::from_millis(500), None));
        assert_eq!(read("-- ls").unwrap().interval, OF_COMMAND);
        assert_eq!(read("").unwrap().interval, OF_VIEW);
        let plan = read("-p 7 -c 2 --no-live").unwrap();
        assert_eq!((plan.subject, plan.count, plan.live), (Subject::Pid(7), Some(2), false));
    }
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
            live_text(&RecordRow { at_s: 3.1, rates }),
            " 3.1 s | CPU us 50 sy 0 wa 0 st 0 id 50 | command 120%, thread 99%, RSS 5.00 MB \
             | vda 0 bytes/s read, 12.00 MB/s written, 1,500 IOPS, 50% busy "
        );
    }
    use hakobu_explain::sample::Memory;

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
