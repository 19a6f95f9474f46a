//! The main loop: periodic samples, signals, the end; then the summary and the files.

use super::{Subject, WatchOptions, WatchView};
use crate::commands::tool::end_with;
use crate::commands::watch::live_text;
use crate::exit;
use crate::files::Target;
use crate::number::{self, grouped};
use crate::show::screen::ReservedLine;
use crate::show::{output, verdict};
use hakobu_core::error::{Cause, cannot};
use hakobu_explain::observer::Observer;
use hakobu_explain::sample::{Sample, Sampler, Watched};
use hakobu_explain::verdict::{Verdict, judge};
use hakobu_lab::record::columns::RecordTable;
use hakobu_lab::record::output::{CommandUsage, RecordFile, RecordedMachine, picture};
use hakobu_lab::record::summary::{DiskSummary, LoadStat, ProcessSummary, RecordSummary};
use hakobu_lab::record::{RecordRow, Recorder};
use hakobu_sys::start::{self, StartedCommand};
use hakobu_sys::{child, host, process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::fmt::{Display, Write as _};
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

/// Exit code of shells for a command that exec(3) did not find.
const NOT_FOUND: u8 = 127;
/// Exit code of shells for a file that cannot be executed.
const NOT_RUN: u8 = 126;

/// Events of the loop besides the timer.
enum Event {
    /// A signal was received; `to_group`: the terminal sent it to the whole group.
    Signal { number: i32, to_group: bool },
    /// The command has ended.
    Ended(Instant),
}

/// Runs a plan; returns the exit code.
pub fn run(plan: &WatchOptions) -> Result<u8, String> {
    let [output, csv, json, svg] =
        Target::open_all([&plan.output, &plan.csv, &plan.json, &plan.svg])?;
    let (sender, events) = mpsc::channel();
    listen(&sender)
        .map_err(|error| format!("cannot wait for signals: {}", Cause::System(error)))?;
    let of = match &plan.subject {
        Subject::Command(_) => Watched::Children,
        Subject::Pid(pid) => Watched::Tree(*pid),
        Subject::Machine => Watched::Machine,
    };
    let mut sampler = Sampler::new(of);
    let start = jiff::Timestamp::now().to_string();
    let first = sampler.read();
    // The line is reserved before the command can write to the terminal, or be interrupted: ^C discards output that
    // the terminal has not shown yet (termios(3), NOFLSH).
    let mut recording = Recording::begin(plan, sampler, first, csv);
    let started = match &plan.subject {
        Subject::Command(words) => spawn(words, &sender).map(Some),
        Subject::Pid(pid) if process::start_ticks(*pid).is_none() => {
            recording.show_nothing_more();
            return Err(format!("there is no process {pid}"));
        }
        Subject::Pid(_) | Subject::Machine => Ok(None),
    };
    let running = match started {
        Ok(running) => running,
        Err(code) => {
            recording.show_nothing_more();
            return Ok(code);
        }
    };
    let ended = recording.until_end(plan, &events, running);
    let last = recording.sample();
    recording.show_nothing_more();
    let End { summary, kept, csv, verdict } = recording.end(last);
    let files = [output, csv, json, svg];

    let mut code = exit::OK;
    let command = match (&plan.subject, running) {
        (Subject::Command(words), Some(running)) => {
            let (command, ended_with) = collect(words, running, ended)
                .map_err(|error| format!("cannot learn how it ended: {}", Cause::System(error)))?;
            code = ended_with;
            Some(command)
        }
        _ => None,
    };
    let written = write(plan, files, &start, command.as_ref(), verdict.as_ref(), (&summary, &kept));
    Ok(if written || code != exit::OK { code } else { exit::FAILURE })
}

/// Turns signals into events.
fn listen(sender: &Sender<Event>) -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    child::tell_signals(&[SIGINT, SIGQUIT, SIGTERM, SIGHUP], &writer.into())?;
    let sender = sender.clone();
    let read = move || {
        let mut bytes = [0; 2];
        while reader.read_exact(&mut bytes).is_ok() {
            let [number, to_group] = bytes;
            let event = Event::Signal { number: i32::from(number), to_group: to_group != 0 };
            if sender.send(event).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(read).map(drop)
}

/// Starts the command and a thread that waits for its end; the error is an exit code.
fn spawn(words: &[OsString], sender: &Sender<Event>) -> Result<StartedCommand, u8> {
    let name = words.first().ok_or(exit::USAGE)?;
    let started = start::Command::new(words.to_vec()).start().map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
        end_with(code, &cannot("run", name, error))
    })?;
    let pid = started.pid;
    let sender = sender.clone();
    let wait = move || {
        // An error means that it cannot be waited for: then it has ended as well.
        let _ = child::wait_for_end(pid);
        let _ = sender.send(Event::Ended(Instant::now()));
    };
    let waiting = std::thread::Builder::new().name("end".into()).spawn(wait);
    waiting.map_err(|error| {
        end_with(exit::FAILURE, &format!("cannot wait: {}", Cause::System(error)))
    })?;
    Ok(started)
}

/// State of the recording and the display.
struct Recording {
    sampler: Sampler,
    began_ns: u64,
    recorder: Recorder,
    kept: Option<RecordTable>,
    columns: hakobu_lab::record::columns::RecordColumns,
    csv: Option<Target>,
    previous: Sample,
    /// Determines the limiting resource of the command or the process.
    observer: Option<Observer>,
    line: Option<ReservedLine>,
    view: Option<WatchView>,
}

impl Recording {
    fn begin(
        plan: &WatchOptions,
        sampler: Sampler,
        mut first: Sample,
        mut csv: Option<Target>,
    ) -> Recording {
        let began_ns = first.at_ns;
        first.at_ns = 0;
        let watched = plan.subject != Subject::Machine;
        let interval_ns = u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX);
        let recorder = Recorder::new(first.clone(), interval_ns, watched);
        let columns = recorder.columns();
        if let Some(csv) = &mut csv {
            csv.write(&columns.csv_header());
        }
        let mut observer = watched.then(Observer::default);
        if let Some(observer) = &mut observer {
            observer.see(&first);
        }
        let keeps = plan.json.is_some() || plan.svg.is_some();
        Recording {
            sampler,
            began_ns,
            recorder,
            kept: keeps.then(|| RecordTable::new(&columns)),
            columns,
            csv,
            previous: first,
            observer,
            line: if watched && plan.live { ReservedLine::reserve() } else { None },
            view: (!watched && !plan.quiet).then(|| WatchView::start(plan.interval)),
        }
    }

    /// Takes a sample, with its time counted from the first one.
    fn sample(&mut self) -> Sample {
        let mut sample = self.sampler.read();
        sample.at_ns = sample.at_ns.saturating_sub(self.began_ns);
        if let Some(observer) = &mut self.observer {
            observer.see(&sample);
        }
        sample
    }

    /// Samples until the end. Returns the moment in which the command ended, if there is one.
    fn until_end(
        &mut self,
        plan: &WatchOptions,
        events: &Receiver<Event>,
        running: Option<StartedCommand>,
    ) -> Option<Instant> {
        let of_process = match plan.subject {
            Subject::Pid(pid) => Some((pid, process::start_ticks(pid))),
            _ => None,
        };
        let mut intervals = 0;
        let mut next = Instant::now() + plan.interval;
        loop {
            match events.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended(at)) => return Some(at),
                Ok(Event::Signal { number, to_group }) => match running {
                    // The terminal sent it to the command as well.
                    Some(_) if to_group => {}
                    // The command may have ended just now: then there is no receiver.
                    Some(running) => drop(child::send(running.pid, number)),
                    None => return None,
                },
                Err(RecvTimeoutError::Timeout) => {
                    intervals += 1;
                    // The caller takes the last sample.
                    let is_over = plan.count == Some(intervals)
                        || of_process.is_some_and(|(pid, was)| process::start_ticks(pid) != was);
                    if is_over || (self.tick() && running.is_none()) {
                        return None;
                    }
                    next += plan.interval;
                    // After a long pause (a stopped process, a suspended machine) do not catch up.
                    next = next.max(Instant::now());
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Takes a sample and shows it; returns whether the watched process or the reader is gone.
    fn tick(&mut self) -> bool {
        let sample = self.sample();
        self.show(&sample);
        let is_over = match &self.view {
            Some(view) => view.is_broken(),
            None if self.observer.is_none() => false,
            // An exited process that was not waited for still has its process ID.
            None => sample.process.processes == 0,
        };
        self.previous.clone_from(&sample);
        if let Some(row) = self.recorder.push(sample) {
            self.keep(&row);
        }
        is_over
    }

    fn show(&mut self, sample: &Sample) {
        if self.line.is_none() && self.view.is_none() {
            return;
        }
        let row = RecordRow::between(&self.previous, sample);
        if let Some(line) = &mut self.line {
            line.show(|| live_text(&row));
        }
        if let Some(view) = &mut self.view {
            view.draw(&row);
        }
    }

    fn show_nothing_more(&mut self) {
        if let Some(line) = self.line.take() {
            line.release();
        }
    }

    fn keep(&mut self, row: &RecordRow) {
        if let Some(csv) = &mut self.csv {
            csv.write(&self.columns.csv_line(row));
        }
        if let Some(kept) = &mut self.kept {
            kept.push(&self.columns, row);
        }
    }

    fn end(mut self, last: Sample) -> End {
        // The view shows the last interval too, unless it is too short.
        let shown = last.at_ns.saturating_sub(self.previous.at_ns);
        if let Some(interval_ns) = self.view.as_ref().map(WatchView::interval_ns)
            && shown * 2 >= interval_ns
        {
            self.show(&last);
        }
        let recorder = self.recorder.clone();
        let (rows, summary) = recorder.end(last);
        for row in &rows {
            self.keep(row);
        }
        let mut kept = self.kept.take().unwrap_or_else(|| RecordTable::new(&self.columns));
        kept.close();
        let verdict = self.observer.map(|observer| judge(&observer.facts()));
        End { summary, kept, csv: self.csv, verdict }
    }
}

/// A finished recording.
struct End {
    summary: RecordSummary,
    kept: RecordTable,
    csv: Option<Target>,
    verdict: Option<Verdict>,
}

/// Returns how the command ended, its resource usage, and the exit code.
fn collect(
    words: &[OsString],
    running: StartedCommand,
    ended: Option<Instant>,
) -> io::Result<(CommandUsage, u8)> {
    let (end, used) = running.collect()?;
    let ended = ended.unwrap_or_else(Instant::now);
    let real_s = ended.saturating_duration_since(running.began).as_secs_f64();
    let (user_s, sys_s) = (used.user.as_secs_f64(), used.sys.as_secs_f64());
    let (exit_code, signal, code) = match end {
        child::ProcessEnd::Exited(code) => (Some(code), None, code),
        child::ProcessEnd::Killed(signal) => (None, Some(signal), 128 + signal),
    };
    let command = CommandUsage {
        argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        exit_code,
        signal,
        real_s,
        user_s,
        sys_s,
        cpu_percent: if real_s > 0.0 { (user_s + sys_s) / real_s * 100.0 } else { 0.0 },
        max_rss_bytes: used.rss_bytes_max,
        max_rss_is_bound: used.rss_is_bound,
        minor_faults: used.minor_faults,
        major_faults: used.major_faults,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        device_read_bytes: used.device_read_bytes,
        device_write_bytes: used.device_write_bytes,
    };
    Ok((command, u8::try_from(code).unwrap_or(exit::FAILURE)))
}

/// Writes the summary and the files; returns whether all succeeded. Failures are reported.
fn write(
    plan: &WatchOptions,
    [output, csv, json, svg]: [Option<Target>; 4],
    start: &str,
    command: Option<&CommandUsage>,
    verdict: Option<&Verdict>,
    (summary, kept): (&RecordSummary, &RecordTable),
) -> bool {
    let seconds = plan.interval.as_secs_f64();
    let said = verdict.map(|of| verdict::sentence(of, plan.language));
    let text = summary_text(said.as_deref(), summary, command, seconds);
    let mut done = Vec::new();
    match output {
        Some(target) => done.push(target.deliver(&text)),
        None if plan.quiet || plan.subject == Subject::Machine => {}
        None => output::error_text(&text),
    }
    done.extend(csv.map(Target::finish));
    let (kernel, arch) = host::kernel();
    let machine = RecordedMachine {
        kernel,
        arch,
        cpu_model: host::cpu_model(),
        cpus: summary.cpus,
        memory_bytes: summary.memory.total_bytes,
    };
    if let Some(target) = json {
        let verdict = verdict.and_then(|of| serde_json::to_value(verdict::value(of)).ok());
        let document = RecordFile {
            program: concat!("hakobu ", env!("CARGO_PKG_VERSION")),
            start,
            interval_s: seconds,
            machine: &machine,
            command,
            pid: match plan.subject {
                Subject::Pid(pid) => Some(pid),
                _ => None,
            },
            verdict: verdict.as_ref(),
            summary,
            kept,
        };
        done.push(document.json().and_then(|text| target.deliver(&text)));
    }
    if let Some(target) = svg {
        let title = summary_title(command, plan);
        let drawn = picture(&title, kept, summary).svg();
        done.push(drawn.and_then(|text| target.deliver(&text)));
    }
    for message in done.iter().filter_map(|done| done.as_ref().err()) {
        output::message(message);
    }
    done.iter().all(Result::is_ok)
}

/// Maximum number of characters of a command line in a headline.
const COMMAND_CHARS_MAX: usize = 200;

/// Returns a headline for the subject.
pub fn summary_title(command: Option<&CommandUsage>, plan: &WatchOptions) -> String {
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

/// Returns the summary, the verdict first, with the values of time(1) for the command, and of vmstat(8), iostat(1) and others
/// for the machine; `interval_s` is the time between samples.
pub fn summary_text(
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
         time           real {:.3} s, user {:.3} s, sys {:.3} s: {:.1}% of one CPU\n\
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
        "time           watched {sampled_s:.3} s, user {:.2} s, sys {:.2} s: {:.1}% of one CPU\n\
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
    push_row("disk", ["requests", "bytes", "IOPS (peak)", "MB/s (peak)", "ms (peak)"], out);
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
            push_row(&format!("  {} {way}", disk.name), cells, out);
        }
        let _ = writeln!(
            out,
            "  {} busy, % {}, requests in flight {}",
            disk.name,
            pair(disk.busy_percent, 1),
            pair(disk.queue, 2)
        );
    }
}

fn network(summary: &RecordSummary, out: &mut String) {
    if !summary.links.is_empty() {
        let head = ["received", "sent", "in MB/s (peak)", "out MB/s (peak)", "dropped"];
        push_row("network", head, out);
    }
    for link in &summary.links {
        let (received, sent) = (number::bytes(link.rx_bytes), number::bytes(link.tx_bytes));
        let (rx, tx) = (pair(mega(link.rx_bytes_per_s), 1), pair(mega(link.tx_bytes_per_s), 1));
        let cells = [received, sent, rx, tx, grouped(link.drops)];
        push_row(&format!("  {}", link.name), cells, out);
    }
    if let Some(tcp) = summary.tcp.filter(|tcp| tcp.segments_out > 0) {
        let _ = writeln!(
            out,
            "  TCP: {} segments sent, {} retransmitted",
            grouped(tcp.segments_out),
            grouped(tcp.retransmits)
        );
    }
}

/// Appends a row of the tables of disks and of links.
fn push_row<T: Display>(name: &str, [a, b, c, d, e]: [T; 5], out: &mut String) {
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
        let text = summary_text(Some("Bottleneck: CPU."), &summary, Some(&command), 0.1);
        assert!(text.starts_with("\nBottleneck: CPU.\n\ncommand  "), "{text}");
        assert!(text.contains("ended          exit code 0\n"), "{text}");
        assert!(text.contains("max RSS at most 0 bytes"), "{text}");
        for absent in ["CPU user", "PSI", "disk ", "TCP", "swap in (si)", "quota"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
    }
}
