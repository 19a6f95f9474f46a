//! `hakobu bench`: measures commands, or a whole campaign, side by side.

mod asked;
mod flags;
mod live;
mod only;
pub(super) mod show;

use super::refuse;
use crate::options::Refused;
use crate::options::bench::TABLE;
use crate::show::output;
use crate::{exit, instance, places, signals};
use asked::{Asked, What};
use hakobu_lab::campaign::plan::{self, Ground, Wishes};
use hakobu_lab::campaign::run::{self, Local, fingerprint};
use hakobu_lab::campaign::spec::Spec;
use hakobu_lab::campaign::{Plan, Repeat};
use hakobu_lab::results::read::read;
use hakobu_lab::results::store::Store;
use hakobu_lab::results::{Results, write};
use hakobu_transfer::error::{Cause, quoted};
use hakobu_transfer::run::Control;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The keys of embedded servers are made up of so many.
const SECRET_DIGITS: usize = 16;

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    let typed = TABLE.parse(&arguments);
    let asked = typed.and_then(|typed| asked::asked(&typed).map_err(Refused::Usage));
    match asked.and_then(|asked| Ready::new(asked).map_err(Refused::Usage)) {
        Ok(ready) => ready.run().into(),
        Err(refused) => refuse(refused, exit::USAGE),
    }
}

/// A campaign that can begin.
struct Ready {
    asked: Asked,
    plan: Plan,
    scale: f64,
    /// The folder to work in, where it is ours to remove.
    work: Option<PathBuf>,
    /// This program.
    own: PathBuf,
}

impl Ready {
    /// Makes the plan of what was asked for.
    fn new(asked: Asked) -> Result<Ready, String> {
        let own = std::env::current_exe()
            .map_err(|error| format!("cannot find this program: {}", Cause::System(error)))?;
        let mut work = None;
        let (mut plan, scale) = match &asked.what {
            What::Commands(commands) => (flags::plan(commands, &asked)?, 1.0),
            What::Campaign(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    format!("cannot read {}: {}", quoted(file), Cause::System(error))
                })?;
                let spec = Spec::parse(&file.to_string_lossy(), &text)
                    .map_err(|error| error.to_string())?;
                let wishes = wishes(&asked, &spec.name, &own)?;
                if asked.work.is_none() {
                    work = Some(wishes.work.clone());
                }
                let scale = plan::scale(&spec, &wishes)?;
                (plan::make(&spec, &wishes, &Ground::here())?, scale)
            }
        };
        asked.apply(&mut plan.repeat)?;
        for planned in &mut plan.cells {
            if let Some(timeout) = asked.timeout {
                planned.launch.timeout = Some(timeout);
            }
        }
        if let Some(wanted) = &asked.only {
            only::keep(&mut plan, wanted)?;
        }
        Ok(Ready { asked, plan, scale, work, own })
    }

    /// Does it; the exit code.
    fn run(&self) -> u8 {
        if self.asked.dry_run {
            output::text(&show::plan(&self.plan));
            return exit::OK;
        }
        self.measure().unwrap_or_else(|message| {
            output::message(&message);
            exit::FAILURE
        })
    }

    fn measure(&self) -> Result<u8, String> {
        let control = Control::default();
        if let Err(error) = signals::stop(&control, exit::BENCH_INTERRUPTED) {
            output::message(&format!("signals will end this at once: {error}"));
        }
        let start = now();
        let folder = match &self.asked.output {
            Some(folder) => folder.clone(),
            None => new_folder(&places::results()?, &self.plan.name, &start)?,
        };
        let facts = fingerprint::Facts {
            program: concat!("hakobu ", env!("CARGO_PKG_VERSION")).into(),
            start: start.clone(),
            scale: self.scale,
            machine_name: self.asked.machine.clone(),
        };
        let probe = Local::new(self.own.clone(), None, control.flag());
        let header = fingerprint::header(&self.plan, &facts, instance::kind, &probe);
        let mut store = Store::open(&folder, &header, &start)?;
        if !self.asked.quiet {
            for line in &self.plan.left_out {
                output::message(&format!("left out: {line}"));
            }
            let before = store.runs_before();
            let goes_on = match before {
                0 => String::new(),
                _ => format!(", which has {before} runs already"),
            };
            output::message(&format!("results go to {}{goes_on}", quoted(&folder)));
        }
        let mut local = Local::new(self.own.clone(), Some(&folder), control.flag());
        let mut live = live::Live::new(self.asked.quiet);
        let how = run::How { prove: self.asked.prove, cpus: hakobu_sys::process::cpus() };
        let mut show = |event: run::Event<'_>| live.show(&event);
        let outcome = run::run(&self.plan, &how, &mut store, &mut local, &mut show);
        live.end();
        drop(store);
        let outcome = outcome?;
        if let Some(work) = self.work.as_ref().filter(|_| !outcome.is_stopped()) {
            // Only what was moved to and fro in it: what is there again at the next time.
            let _ = std::fs::remove_dir_all(work);
        }
        let results = read(&folder)?;
        if !self.asked.quiet {
            output::text(&show::report(&results, self.asked.no_color));
        }
        self.export(&results)?;
        if outcome.is_stopped() {
            output::message(&format!(
                "stopped; the same command with --output {} goes on",
                quoted(&folder)
            ));
            return Ok(exit::BENCH_INTERRUPTED);
        }
        Ok(if outcome.failed > 0 { exit::FAILURE } else { exit::OK })
    }

    fn export(&self, results: &Results) -> Result<(), String> {
        let put = |path: &Option<PathBuf>, text: String| match path {
            Some(path) => write_file(path, &text),
            None => Ok(()),
        };
        put(&self.asked.export_json, write::hyperfine_json(results)?)?;
        put(&self.asked.export_csv, write::hyperfine_csv(results))?;
        put(&self.asked.export_markdown, write::hyperfine_markdown(results))
    }
}

/// Writes a file whole.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|error| format!("cannot write {}: {}", quoted(path), Cause::System(error)))
}

/// The time, RFC 3339 in UTC, whole seconds.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A folder of that name and time that is not there yet.
pub(super) fn new_folder(within: &Path, name: &str, start: &str) -> Result<PathBuf, String> {
    let time: String = start.chars().filter(|c| c.is_ascii_digit()).collect();
    let (day, time) = time.split_at(time.len().min(8));
    let first = format!("{name}-{day}-{time}");
    std::fs::create_dir_all(within)
        .map_err(|error| format!("cannot make {}: {}", quoted(within), Cause::System(error)))?;
    for number in 1..1000 {
        let name = if number == 1 { first.clone() } else { format!("{first}-{number}") };
        let folder = within.join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(format!("cannot make {}: {}", quoted(&folder), Cause::System(error)));
            }
        }
    }
    Err(format!("there are too many results in {}", quoted(within)))
}

/// What is asked of a campaign besides its text.
fn wishes(asked: &Asked, name: &str, own: &Path) -> Result<Wishes, String> {
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|error| format!("cannot use {}: {}", quoted(path), Cause::System(error)))
    };
    let folder = |given: &Option<PathBuf>, below: &str| match given {
        Some(path) => absolute(path),
        None => Ok(places::cache()?.join(below)),
    };
    let secret = match asked.dry_run {
        true => "x".repeat(SECRET_DIGITS),
        false => super::tool::random_key()
            .map_err(|error| format!("cannot make up a key: {}", Cause::System(error)))?,
    };
    Ok(Wishes {
        scale: asked.scale,
        places: asked.places.clone(),
        work: folder(&asked.work, &format!("work/{name}"))?,
        cache: folder(&asked.cache, "data")?,
        own: own.to_owned(),
        secret_key: secret,
    })
}

/// How often commands are run that say nothing else.
const REPEAT: Repeat = Repeat { warmup: 0, min: 5, max: 20, tight: 0.02, budget: None, seed: 1 };
