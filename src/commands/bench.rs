//! `hakobu bench`: measures commands, or a whole campaign, side by side.

mod args;
mod flags;
mod live;
mod only;
mod options;
mod read;
mod ready;
pub(super) mod show;
mod values;

use super::tool::carry_out;
use crate::commands::session::stop_on_signals;
use crate::files::{self, is_stdout, write_file};
use crate::show::output;
use crate::{environment, exit, names};
use args::{Args, Source, Task};
use hakobu_core::error::{Cause, cannot, quoted};
use hakobu_lab::campaign::Plan;
use hakobu_lab::campaign::own::{Mark, Own};
use hakobu_lab::campaign::plan::{self, Ground, Wishes};
use hakobu_lab::campaign::run::{self, Local, fingerprint};
use hakobu_lab::campaign::spec::Spec;
use hakobu_lab::results::read::read;
use hakobu_lab::results::store::Store;
use hakobu_lab::results::write;
use hakobu_transfer::run::Control;
pub(super) use options::TABLE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Number of digits in the generated secrets of embedded servers.
const SECRET_DIGITS: usize = 16;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let ready = |typed| Ready::new(read::parse(&typed)?);
    carry_out(TABLE.parse(&arguments), ready, |ready| ready.run())
}

/// A campaign that is ready to run.
struct Ready {
    args: Args,
    plan: Plan,
    scale: f64,
    /// The working folder, if this program must remove it.
    work: Option<PathBuf>,
    /// Path of this program.
    own: PathBuf,
}

impl Ready {
    /// Makes the plan for a command line.
    fn new(args: Args) -> Result<Ready, String> {
        let own = std::env::current_exe()
            .map_err(|error| format!("cannot find this program: {}", Cause::System(error)))?;
        let mut work = None;
        let (mut plan, scale) = match &args.task {
            Task::Commands(commands) => (flags::plan(commands, &args)?, 1.0),
            Task::Print(_) => (Plan::default(), 1.0),
            Task::Campaign(source) => {
                let spec = spec(source)?;
                let wishes = wishes(&args, &spec.header.name, &own)?;
                if args.work.is_none() {
                    work = Some(wishes.work.clone());
                }
                let scale = plan::scale(&spec, &wishes)?;
                (plan::make(&spec, &wishes, &Ground::here())?, scale)
            }
        };
        args.apply(&mut plan.repeat)?;
        for planned in &mut plan.cells {
            if let Some(timeout) = args.timeout {
                planned.launch.timeout = Some(timeout);
            }
        }
        if let Some(wanted) = &args.only {
            only::keep(&mut plan, wanted)?;
        }
        Ok(Ready { args, plan, scale, work, own })
    }

    /// Runs it; returns the exit code.
    fn run(&self) -> Result<u8, String> {
        if let Task::Print(text) = &self.args.task {
            output::text(text);
            return Ok(exit::OK);
        }
        if self.args.dry_run {
            output::text(&show::plan(&self.plan));
            return Ok(exit::OK);
        }
        let control = Control::default();
        stop_on_signals(&control, exit::BENCH_INTERRUPTED, "this");
        let start = now();
        self.check_exports()?;
        let folder = match &self.args.results {
            Some(folder) => folder.clone(),
            None => new_folder(&environment::results_folder()?, &self.plan.header.name, &start)?,
        };
        let facts = fingerprint::Facts {
            program: concat!("hakobu ", env!("CARGO_PKG_VERSION")).into(),
            start: start.clone(),
            scale: self.scale,
            machine_name: self.args.machine.clone(),
        };
        let probe = Local::new(self.own.clone(), None, control.flag());
        let header = fingerprint::header(&self.plan, &facts, environment::instance_type, &probe);
        let mut store = Store::open(&folder, &header, &start)?;
        if !self.args.quiet {
            for line in &self.plan.header.left_out {
                output::message(&format!("left out: {line}"));
            }
            let before = store.runs.len();
            let goes_on = match before {
                0 => String::new(),
                _ => format!(", which has {before} runs already"),
            };
            output::message(&format!("results go to {}{goes_on}", quoted(&folder)));
        }
        let work = match &self.work {
            Some(work) => Some(Own::claim(work, Mark::Inside)?),
            None => None,
        };
        let mut local = Local::new(self.own.clone(), Some(&folder), control.flag());
        let mut live = live::Live::new(self.args.quiet, self.args.style.progress);
        let how = run::How { prove: self.args.prove, cpus: hakobu_sys::process::cpus() };
        let mut show = |event: run::Event<'_>| live.show(&event);
        let outcome = run::run(&self.plan, &how, &mut store, &mut local, &mut show);
        live.end();
        drop(store);
        let outcome = outcome?;
        if let Some(work) = work.filter(|_| !outcome.is_stopped()) {
            // It holds the data sets, which the next campaign makes again.
            if let Err(why) = work.remove() {
                output::message(&why);
            }
        }
        let results = read(&folder)?;
        if !self.args.quiet {
            let baseline = self.args.baseline.as_ref();
            let report = show::report(&results, &self.args.look(), baseline)?;
            // An export to standard output must be the only output there.
            match self.args.exports.iter().any(|(_, path)| is_stdout(path)) {
                true => output::error_text(&report),
                false => output::text(&report),
            }
        }
        for (form, path) in &self.args.exports {
            write_file(path, &write::hyperfine(&results, *form, &self.args.table_look())?)?;
        }
        if outcome.is_stopped() {
            output::message(&format!(
                "stopped; the same command with --results {} continues",
                quoted(&folder)
            ));
            return Ok(exit::BENCH_INTERRUPTED);
        }
        let failed = outcome.failed + outcome.failed_after;
        Ok(if failed > 0 { exit::FAILURE } else { exit::OK })
    }

    fn check_exports(&self) -> Result<(), String> {
        match self.args.exports.iter().filter(|(_, path)| is_stdout(path)).count() {
            0 | 1 => Ok(()),
            _ => Err("only one export can go to standard output (-)".to_owned()),
        }
    }
}

/// Reads the campaign of a source.
fn spec(source: &Source) -> Result<Spec, String> {
    let parsed = match source {
        Source::Builtin(campaign) => Spec::parse(campaign.name, campaign.text),
        Source::File(file) => {
            let text = names::read_text(file)?;
            Spec::parse(&file.to_string_lossy(), &text)
        }
    };
    parsed.map_err(|error| error.to_string())
}

/// Returns the current time, RFC 3339 in UTC, whole seconds.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns a new folder with that name and time.
pub(super) fn new_folder(within: &Path, name: &str, start: &str) -> Result<PathBuf, String> {
    let time: String = start.chars().filter(|c| c.is_ascii_digit()).collect();
    let (day, time) = time.split_at(time.len().min(8));
    let first = format!("{name}-{day}-{time}");
    files::make_folder(within)?;
    for number in 1..1000 {
        let name = if number == 1 { first.clone() } else { format!("{first}-{number}") };
        let folder = within.join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(cannot("make", &folder, error));
            }
        }
    }
    Err(format!("there are too many results in {}", quoted(within)))
}

/// Returns the settings of a campaign from the command line.
fn wishes(args: &Args, name: &str, own: &Path) -> Result<Wishes, String> {
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|error| cannot("use", path, error));
    let folder = |path: &Option<PathBuf>, below: &str| match path {
        Some(path) => absolute(path),
        None => Ok(environment::cache_folder()?.join(below)),
    };
    let secret = match args.dry_run {
        true => "x".repeat(SECRET_DIGITS),
        false => super::tool::random_key()
            .map_err(|error| format!("cannot make up a key: {}", Cause::System(error)))?,
    };
    Ok(Wishes {
        scale: args.scale,
        places: args.places.clone(),
        work: folder(&args.work, &format!("work/{name}"))?,
        cache: folder(&args.cache, "data")?,
        own: own.to_owned(),
        secret_key: secret,
    })
}
