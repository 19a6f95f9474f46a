//! Transfers of a command: signal handlers before, display during, exit code after. The first signal asks the run to end
//! cleanly; a second Ctrl-C, or any signal 5 s later, ends the program.

use crate::show::{Line, Show, ShowOptions, UnfinishedFile, output};
use crate::textfile::{TextfileArgs, TransferEnd, TransferEnds};
use crate::{exit, stopped};
use hakobu_core::error::Fatal;
use hakobu_core::unit::Totals;
use hakobu_sys::{process, signals};
use hakobu_transfer::run::{Control, Outcome, Removal, Spec, remove_objects, transfer};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Runs and displays one transfer; `code_of` returns the exit code.
pub fn run_transfer(spec: &Spec, mut wanted: ShowOptions, code_of: fn(&Outcome) -> u8) -> u8 {
    wanted.unfinished = UnfinishedFile::of(spec);
    match Session::start(wanted, code_of) {
        Ok(session) => {
            let outcome = session.run(spec);
            session.end(outcome)
        }
        Err(code) => code,
    }
}

/// Environment of a command's transfers: signal handlers, display, exit code.
pub struct Session {
    pub control: Arc<Control>,
    pub show: Show,
    is_list: bool,
    code_of: fn(&Outcome) -> u8,
    pub start: Instant,
    /// The time limit of the run was reached.
    expired: Arc<AtomicBool>,
    /// Where gauges go, and the command that they are of.
    textfile: (TextfileArgs, &'static str),
    /// Source and target of the first transfer.
    ends: OnceLock<TransferEnds>,
}

impl Session {
    /// Starts a session; the error is an exit code, with its message already printed.
    pub fn start(mut wanted: ShowOptions, code_of: fn(&Outcome) -> u8) -> Result<Session, u8> {
        let start = Instant::now();
        wanted.priority.apply().map_err(|message| {
            output::message(&message);
            code_of(&outcome_of_fatal(Fatal::new(exit::SYNC_USAGE, message), start.elapsed()))
        })?;
        let control = Arc::new(Control::default());
        let interrupted = code_of(&Outcome { stopped: true, ..Outcome::default() });
        stop_on_signals(&control, interrupted, "this run");
        let expired = Arc::new(AtomicBool::new(false));
        if let Some(after) = wanted.stop_after {
            stop_after(after, &control, &expired);
        }
        let is_list = matches!(wanted.line, Line::List { .. });
        // What changes nothing says nothing about the transfer.
        if wanted.dry_run {
            std::mem::take(&mut wanted.textfile).forget();
        }
        let textfile = (wanted.textfile.clone(), wanted.command);
        textfile.0.check().map_err(|message| {
            output::message(&message);
            code_of(&outcome_of_fatal(Fatal::new(exit::SYNC_IO, message), start.elapsed()))
        })?;
        wanted.notes.iter().for_each(|note| output::message(note));
        let told = std::mem::take(&mut wanted.told);
        let show = Show::new(wanted, Arc::clone(&control)).map_err(|message| {
            output::message(&message);
            if control.is_stopped() {
                return interrupted;
            }
            code_of(&outcome_of_fatal(Fatal::new(exit::SYNC_IO, message), start.elapsed()))
        })?;
        told.into_iter().for_each(|line| show.tell(format!("{line}\n").into_bytes()));
        let ends = OnceLock::new();
        Ok(Session { control, show, is_list, code_of, start, expired, textfile, ends })
    }

    /// Runs a transfer. An error before it began is returned as an outcome.
    pub fn run(&self, spec: &Spec) -> Outcome {
        let start = Instant::now();
        self.begins(spec);
        transfer(spec, &self.control, &self.show)
            .unwrap_or_else(|fatal| outcome_of_fatal(fatal, start.elapsed()))
    }

    /// Notes the ends of a transfer, for the gauges.
    pub fn begins(&self, spec: &Spec) {
        self.ends.get_or_init(|| TransferEnds::of(spec));
    }

    /// Removes objects; as [`Session::run`].
    pub fn remove(&self, removal: &Removal) -> Outcome {
        let start = Instant::now();
        remove_objects(removal, None, &self.control, &self.show)
            .unwrap_or_else(|fatal| outcome_of_fatal(fatal, start.elapsed()))
    }

    /// Reports the end, writes the gauges and returns the exit code.
    pub fn end(self, outcome: Outcome) -> u8 {
        let ended = self.report(outcome);
        ended.settle(ended.code)
    }

    /// Reports the end.
    pub fn report(self, mut outcome: Outcome) -> Ended {
        if self.is_list && self.show.is_broken() {
            // The reader is gone (`| head`): that ends a list, and is not an interruption.
            outcome.stopped = false;
        }
        outcome.took = self.start.elapsed();
        let code = match outcome.stopped && self.expired.load(Ordering::Relaxed) {
            true => exit::SYNC_EXPIRED,
            false => (self.code_of)(&outcome),
        };
        let complete = self.show.finish(&outcome, code);
        let code = match complete || code != exit::OK {
            true => code,
            // Everything arrived, but writing the log failed.
            false => code_of_output(self.code_of, outcome.took),
        };
        let Session { code_of, start, textfile, ends, .. } = self;
        Ended {
            code,
            code_of,
            start,
            stopped: outcome.stopped,
            totals: outcome.totals,
            textfile,
            ends,
        }
    }
}

/// A run that was reported, and whose gauges are not written yet.
pub struct Ended {
    /// Exit code of the run.
    pub code: u8,
    code_of: fn(&Outcome) -> u8,
    start: Instant,
    stopped: bool,
    totals: Totals,
    textfile: (TextfileArgs, &'static str),
    ends: OnceLock<TransferEnds>,
}

impl Ended {
    /// Writes the gauges of a command that ends with this exit code: that of the run, or of what followed it. Returns the
    /// code, another one if they could not be written.
    pub fn settle(&self, code: u8) -> u8 {
        let (textfile, command) = &self.textfile;
        let took = self.start.elapsed();
        let end = TransferEnd { code, stopped: self.stopped, took, totals: self.totals };
        match textfile.write(command, self.ends.get(), end) {
            Ok(()) => code,
            Err(message) => {
                output::message(&message);
                if code == exit::OK { code_of_output(self.code_of, took) } else { code }
            }
        }
    }
}

/// Returns the exit code of a run whose work is done, but whose log or gauges could not be written.
fn code_of_output(code_of: fn(&Outcome) -> u8, took: Duration) -> u8 {
    code_of(&outcome_of_fatal(Fatal::new(exit::SYNC_IO, ""), took))
}

/// Stops a run after some time. The thread is not joined.
fn stop_after(after: Duration, control: &Arc<Control>, expired: &Arc<AtomicBool>) {
    let (control, expired) = (Arc::clone(control), Arc::clone(expired));
    let waiting = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(after);
        expired.store(true, Ordering::Relaxed);
        control.stop();
    });
    if let Err(error) = waiting {
        output::message(&format!("this run will not end by itself: {error}"));
    }
}

/// Returns the outcome of a run that ended before it began.
pub fn outcome_of_fatal(fatal: Fatal, took: Duration) -> Outcome {
    Outcome { took, fatal: Some(fatal), ..Outcome::default() }
}

/// Makes signals stop the run of `control`. A second SIGINT, or any signal 5 s after the first, ends the program with the
/// exit code `at_once`, the command's own for an interrupted run; until then SIGTERM and SIGHUP repeat the first one.
/// Handlers only read and set flags: a thread that waits for signals would slow down every growth of the descriptor
/// table. If the system refuses to install them, a message says that signals will end
/// `what` at once.
pub fn stop_on_signals(control: &Control, at_once: u8, what: &str) {
    if let Err(error) = register_handlers(control, at_once) {
        output::message(&format!("signals will end {what} at once: {error}"));
    }
}

fn register_handlers(control: &Control, at_once: u8) -> io::Result<()> {
    let state = Arc::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A signal that nohup(1) or a shell without job control ignores stays ignored.
        if process::ignores_signal(signal) {
            continue;
        }
        signals::end_by(signal, at_once, &state, control.flag())?;
        flag::register(signal, stopped::flag())?;
    }
    Ok(())
}
