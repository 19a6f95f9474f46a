//! The main loop: periodic samples, signals, the end; then the summary and the files.

use super::live;
use super::options::{Plan, Subject};
use super::summary;
use super::view::View;
use crate::commands::tool::end_with;
use crate::exit;
use crate::files::Target;
use crate::show::screen::ReservedLine;
use crate::show::{output, verdict};
use hakobu_core::error::{Cause, cannot};
use hakobu_explain::observer::Observer;
use hakobu_explain::sample::{Sample, Sampler, Watched};
use hakobu_explain::verdict::{Verdict, judge};
use hakobu_lab::record::{Command, Document, Kept, Machine, Recorder, Row, Summary, picture};
use hakobu_sys::start::{self, StartedCommand};
use hakobu_sys::{child, host, process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
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
pub fn run(plan: &Plan) -> Result<u8, String> {
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
    kept: Option<Kept>,
    columns: hakobu_lab::record::Columns,
    csv: Option<Target>,
    previous: Sample,
    /// Determines the limiting resource of the command or the process.
    observer: Option<Observer>,
    line: Option<ReservedLine>,
    view: Option<View>,
}

impl Recording {
    fn begin(
        plan: &Plan,
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
            kept: keeps.then(|| Kept::new(&columns)),
            columns,
            csv,
            previous: first,
            observer,
            line: if watched && plan.live { ReservedLine::reserve() } else { None },
            view: (!watched && !plan.quiet).then(|| View::start(plan.interval)),
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
        plan: &Plan,
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
        let row = Row::between(&self.previous, sample);
        if let Some(line) = &mut self.line {
            line.show(|| live::words(&row));
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

    fn keep(&mut self, row: &Row) {
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
        if let Some(interval_ns) = self.view.as_ref().map(View::interval_ns)
            && shown * 2 >= interval_ns
        {
            self.show(&last);
        }
        let recorder = self.recorder.clone();
        let (rows, summary) = recorder.end(last);
        for row in &rows {
            self.keep(row);
        }
        let mut kept = self.kept.take().unwrap_or_else(|| Kept::new(&self.columns));
        kept.close();
        let verdict = self.observer.map(|observer| judge(&observer.facts()));
        End { summary, kept, csv: self.csv, verdict }
    }
}

/// A finished recording.
struct End {
    summary: Summary,
    kept: Kept,
    csv: Option<Target>,
    verdict: Option<Verdict>,
}

/// Returns how the command ended, its resource usage, and the exit code.
fn collect(
    words: &[OsString],
    running: StartedCommand,
    ended: Option<Instant>,
) -> io::Result<(Command, u8)> {
    let (end, used) = running.collect()?;
    let ended = ended.unwrap_or_else(Instant::now);
    let real_s = ended.saturating_duration_since(running.began).as_secs_f64();
    let (user_s, sys_s) = (used.user.as_secs_f64(), used.sys.as_secs_f64());
    let (exit_code, signal, code) = match end {
        child::ProcessEnd::Exited(code) => (Some(code), None, code),
        child::ProcessEnd::Killed(signal) => (None, Some(signal), 128 + signal),
    };
    let command = Command {
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
    plan: &Plan,
    [output, csv, json, svg]: [Option<Target>; 4],
    start: &str,
    command: Option<&Command>,
    verdict: Option<&Verdict>,
    (summary, kept): (&Summary, &Kept),
) -> bool {
    let seconds = plan.interval.as_secs_f64();
    let said = verdict.map(verdict::sentence);
    let text = summary::text(said.as_deref(), summary, command, seconds);
    let mut done = Vec::new();
    match output {
        Some(target) => done.push(target.deliver(&text)),
        None if plan.quiet || plan.subject == Subject::Machine => {}
        None => output::error_text(&text),
    }
    done.extend(csv.map(Target::finish));
    let (kernel, arch) = host::kernel();
    let machine = Machine {
        kernel,
        arch,
        cpu_model: host::cpu_model(),
        cpus: summary.cpus,
        memory_bytes: summary.memory.total_bytes,
    };
    if let Some(target) = json {
        let verdict = verdict.and_then(|of| serde_json::to_value(verdict::value(of)).ok());
        let document = Document {
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
        let title = summary::title(command, plan);
        let drawn = picture(&title, kept, summary).svg();
        done.push(drawn.and_then(|text| target.deliver(&text)));
    }
    for message in done.iter().filter_map(|done| done.as_ref().err()) {
        output::message(message);
    }
    done.iter().all(Result::is_ok)
}
