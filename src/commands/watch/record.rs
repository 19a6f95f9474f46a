//! The loop: samples in time, signals, the end; then the summary and the files.

use super::files::Target;
use super::live::Live;
use super::view::View;
use super::{Plan, Subject, summary};
use crate::exit;
use crate::show::output;
use hakobu_lab::record::{Command, Document, Kept, Machine, Recorder, Row, Summary, picture};
use hakobu_sys::child::{self, End};
use hakobu_sys::{host, process};
use hakobu_transfer::error::{Cause, quoted};
use hakobu_transfer::sample::{Sample, Sampler, Watched};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Instant;

/// exec(3) found nothing, as shells say it.
const NOT_FOUND: u8 = 127;
/// It found something that cannot be run.
const NOT_RUN: u8 = 126;
/// Counters of resident memory lag behind by so much.
const RSS_SLACK_BYTES: u64 = 512 * 1024;

/// What the loop waits for besides the time.
enum Event {
    /// A signal came; whether the terminal sent it to the whole group.
    Signal { number: i32, to_group: bool },
    /// The command has ended.
    Ended(Instant),
}

/// The files that are made.
struct Files {
    output: Option<Target>,
    csv: Option<Target>,
    json: Option<Target>,
    svg: Option<Target>,
}

impl Files {
    fn open(plan: &Plan) -> Result<Files, String> {
        let open = |path: &Option<_>| path.as_deref().map(Target::open).transpose();
        Ok(Files {
            output: open(&plan.output)?,
            csv: open(&plan.csv)?,
            json: open(&plan.json)?,
            svg: open(&plan.svg)?,
        })
    }
}

/// A command that runs.
struct Running {
    pid: u32,
    began: Instant,
    /// The memory that its process had before it became the command.
    rss_bytes_before: u64,
}

/// Does what the plan says; the exit code.
pub fn run(plan: &Plan) -> u8 {
    let mut files = match Files::open(plan) {
        Ok(files) => files,
        Err(message) => return failed(&message),
    };
    let (sender, events) = mpsc::channel();
    if let Err(error) = listen(&sender) {
        return failed(&format!("cannot wait for signals: {}", Cause::System(error)));
    }
    let of = match &plan.subject {
        Subject::Command(_) => Watched::Children,
        Subject::Pid(pid) => Watched::Tree(*pid),
        Subject::Machine => Watched::Machine,
    };
    let mut sampler = Sampler::new(of);
    let start = jiff::Timestamp::now().to_string();
    let first = sampler.read();
    let mut running = None;
    match &plan.subject {
        Subject::Command(words) => match spawn(words, &sender) {
            Ok(started) => running = Some(started),
            Err(code) => return code,
        },
        Subject::Pid(pid) if process::start_ticks(*pid).is_none() => {
            return failed(&format!("there is no process {pid}"));
        }
        Subject::Pid(_) | Subject::Machine => {}
    }
    let mut recording = Recording::begin(plan, sampler, first, files.csv.take());
    let ended = recording.until_end(plan, &events, running.as_ref());
    let last = recording.sample();
    recording.show_nothing_more();
    let (summary, kept, csv) = recording.end(last);
    files.csv = csv;

    let mut code = exit::OK;
    let command = match (&plan.subject, running) {
        (Subject::Command(words), Some(running)) => match collect(words, &running, ended) {
            Ok((command, ended_with)) => {
                code = ended_with;
                Some(command)
            }
            Err(error) => {
                return failed(&format!("cannot learn how it ended: {}", Cause::System(error)));
            }
        },
        _ => None,
    };
    let written = write(plan, files, &start, command.as_ref(), &summary, &kept);
    if written || code != exit::OK { code } else { exit::FAILURE }
}

fn failed(message: &str) -> u8 {
    output::message(message);
    exit::FAILURE
}

/// From now on signals are events.
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

/// Starts the command and whoever waits for its end; the error is an exit code.
fn spawn(words: &[OsString], sender: &Sender<Event>) -> Result<Running, u8> {
    let (name, arguments) = words.split_first().ok_or(exit::USAGE)?;
    let rss_bytes_before = process::usage().rss_bytes_max;
    let began = Instant::now();
    let started = std::process::Command::new(name).args(arguments).spawn();
    let started = started.map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
        output::message(&format!("cannot run {}: {}", quoted(name), Cause::System(error)));
        code
    })?;
    let pid = started.id();
    let sender = sender.clone();
    let wait = move || {
        // An error means that nobody can wait for it: then it has ended as well.
        let _ = child::wait_for_end(pid);
        let _ = sender.send(Event::Ended(Instant::now()));
    };
    let waiting = std::thread::Builder::new().name("end".into()).spawn(wait);
    waiting.map_err(|error| failed(&format!("cannot wait: {}", Cause::System(error))))?;
    Ok(Running { pid, began, rss_bytes_before })
}

/// What is recorded, and shown meanwhile.
struct Recording {
    sampler: Sampler,
    began_ns: u64,
    recorder: Recorder,
    kept: Option<Kept>,
    columns: hakobu_lab::record::Columns,
    csv: Option<Target>,
    previous: Sample,
    live: Option<Live>,
    view: Option<View>,
}

impl Recording {
    fn begin(plan: &Plan, sampler: Sampler, mut first: Sample, csv: Option<Target>) -> Recording {
        let began_ns = first.at_ns;
        first.at_ns = 0;
        let watched = plan.subject != Subject::Machine;
        let interval_ns = u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX);
        let recorder = Recorder::new(first.clone(), interval_ns, watched);
        let columns = recorder.columns();
        let mut csv = csv;
        if let Some(csv) = &mut csv {
            csv.write(&columns.csv_header());
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
            live: if watched && plan.live { Live::start() } else { None },
            view: (!watched).then(|| View::start(plan.interval)),
        }
    }

    /// A sample, its time counted from the first one.
    fn sample(&mut self) -> Sample {
        let mut sample = self.sampler.read();
        sample.at_ns = sample.at_ns.saturating_sub(self.began_ns);
        sample
    }

    /// Samples until it is over. The moment in which the command ended, if there is one.
    fn until_end(
        &mut self,
        plan: &Plan,
        events: &Receiver<Event>,
        running: Option<&Running>,
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
                    // What the terminal sends, the command has got by itself.
                    Some(_) if to_group => {}
                    // The command may have ended this moment: then there is nobody to tell.
                    Some(running) => drop(child::send(running.pid, number)),
                    None => return None,
                },
                Err(RecvTimeoutError::Timeout) => {
                    intervals += 1;
                    // The last sample is taken by the caller.
                    let is_over = plan.count == Some(intervals)
                        || of_process.is_some_and(|(pid, was)| process::start_ticks(pid) != was);
                    if is_over || (self.tick() && running.is_none()) {
                        return None;
                    }
                    next += plan.interval;
                    // After a long sleep (a stopped process, a suspended machine) there is nothing
                    // to catch up with.
                    next = next.max(Instant::now());
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Takes a sample and shows it; whether nobody is there any more to be watched or to look.
    fn tick(&mut self) -> bool {
        let sample = self.sample();
        self.show(&sample);
        let is_over = match &self.view {
            Some(view) => view.is_broken(),
            // A process that ended and that nobody waited for is still there by its number.
            None => sample.process.processes == 0,
        };
        self.previous.clone_from(&sample);
        if let Some(row) = self.recorder.push(sample) {
            self.keep(&row);
        }
        is_over
    }

    fn show(&mut self, sample: &Sample) {
        if self.live.is_none() && self.view.is_none() {
            return;
        }
        let row = Row::between(&self.previous, sample);
        if let Some(live) = &mut self.live {
            live.draw(&row);
        }
        if let Some(view) = &mut self.view {
            view.draw(&row);
        }
    }

    fn show_nothing_more(&mut self) {
        if let Some(live) = self.live.take() {
            live.finish();
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

    fn end(mut self, last: Sample) -> (Summary, Kept, Option<Target>) {
        // The view shows the last interval too, but not a sliver of one.
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
        (summary, kept, self.csv)
    }
}

/// How the command ended, what it used, and the exit code of that.
fn collect(
    words: &[OsString],
    running: &Running,
    ended: Option<Instant>,
) -> io::Result<(Command, u8)> {
    let (end, used) = child::collect(running.pid)?;
    let ended = ended.unwrap_or_else(Instant::now);
    let real_s = ended.saturating_duration_since(running.began).as_secs_f64();
    let (user_s, sys_s) = (used.user.as_secs_f64(), used.sys.as_secs_f64());
    let (exit_code, signal, code) = match end {
        End::Exited(code) => (Some(code), None, code),
        End::Killed(signal) => (None, Some(signal), 128 + signal),
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
        max_rss_is_bound: used.rss_bytes_max <= running.rss_bytes_before + RSS_SLACK_BYTES,
        minor_faults: used.minor_faults,
        major_faults: used.major_faults,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        device_read_bytes: used.device_read_bytes,
        device_write_bytes: used.device_write_bytes,
    };
    Ok((command, u8::try_from(code).unwrap_or(exit::FAILURE)))
}

/// Writes the summary and the files; whether all of them are there. What is not is told.
fn write(
    plan: &Plan,
    files: Files,
    start: &str,
    command: Option<&Command>,
    summary: &Summary,
    kept: &Kept,
) -> bool {
    let seconds = plan.interval.as_secs_f64();
    let text = summary::text(summary, command, seconds);
    let mut done = Vec::new();
    match files.output {
        Some(mut target) => {
            target.write(&text);
            done.push(target.finish());
        }
        None if plan.subject == Subject::Machine => {}
        None => output::error_text(&text),
    }
    done.extend(files.csv.map(Target::finish));
    let (kernel, arch) = host::kernel();
    let machine = Machine {
        kernel,
        arch,
        cpu_model: host::cpu_model(),
        cpus: summary.cpus,
        memory_bytes: summary.memory.total_bytes,
    };
    if let Some(mut target) = files.json {
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
            summary,
            kept,
        };
        done.push(document.json().and_then(|text| {
            target.write(&text);
            target.finish()
        }));
    }
    if let Some(mut target) = files.svg {
        let title = summary::title(command, plan);
        done.push(picture(&title, kept, summary).svg().and_then(|text| {
            target.write(&text);
            target.finish()
        }));
    }
    for message in done.iter().filter_map(|done| done.as_ref().err()) {
        output::message(message);
    }
    done.iter().all(Result::is_ok)
}
