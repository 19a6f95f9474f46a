//! A matrix of settings: files laid out once for all cells, runs interleaved, a record as campaigns
//! have it, a report.

use super::args::Args;
use super::options::Word;
use super::single::{laid, places, preconditioned, remove};
use super::table::Table;
use crate::commands::bench::{new_folder, now};
use crate::commands::bench::{report_text, terminal_look};
use crate::commands::session::stop_on_signals;
use crate::show::{output, screen};
use crate::{environment, exit};
use hakobu_core::error::{Cause, quoted};
use hakobu_io::Job;
use hakobu_io::layout::Layout;
use hakobu_io::run::check;
use hakobu_io::spec::{self, Request, lists};
use hakobu_lab::campaign::Plan;
use hakobu_lab::campaign::run::{self, Local, fingerprint};
use hakobu_lab::campaign::tools::line;
use hakobu_lab::results::read::read;
use hakobu_lab::results::store::Store;
use hakobu_lab::sweep::{Matrix, Setting, plan, settings};
use hakobu_transfer::run::Control;
use std::path::Path;

/// The seed of the order of runs.
const SEED: u64 = 1;
/// Options that are the sweep's, not those of a cell.
const OF_SWEEP: [&str; 5] = ["output", "output-format", "repeat", "precondition", "keep"];

/// Runs it; the exit code.
///
/// # Errors
/// A sentence: it could not begin, or results could not be written.
pub fn run(args: &Args) -> Result<u8, String> {
    let request = &args.request;
    let control = Control::default();
    stop_on_signals(&control, exit::IO_INTERRUPTED, "this");
    let jobs = jobs_of_all(request)?;
    let Some(mut layout) = laid(&jobs, &request.run.safety, &control)? else {
        return Ok(exit::IO_INTERRUPTED);
    };
    // Each run claims the devices that it writes to.
    layout.release();
    let done = measure(args, &jobs, &layout, &control);
    remove(&layout);
    done
}

/// The jobs of all cells, one after the other: what has to be laid out. What is written before the
/// first run has to be such as may be written to.
fn jobs_of_all(request: &Request) -> Result<Vec<Job>, String> {
    let mut jobs: Vec<Job> = Vec::new();
    for setting in settings(&request.sweep)? {
        let cell = spec::cell(request, &setting)?.jobs;
        check(&cell)?;
        for mut job in cell {
            job.rw.writes |= request.run.precondition;
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
    Ok(jobs)
}

fn measure(args: &Args, jobs: &[Job], layout: &Layout, control: &Control) -> Result<u8, String> {
    let request = &args.request;
    if request.run.precondition && !preconditioned(jobs, layout, control)? {
        return Ok(exit::IO_INTERRUPTED);
    }
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find this program: {}", Cause::System(error)))?;
    let plan = planned(args, layout, &program)?;
    let start = now();
    let folder = match &request.run.output {
        Some(folder) => folder.clone(),
        None => new_folder(&environment::results_folder()?, &plan.header.name, &start)?,
    };
    let facts = fingerprint::Facts {
        program: concat!("hakobu ", env!("CARGO_PKG_VERSION")).into(),
        start: start.clone(),
        scale: 1.0,
        machine_name: None,
    };
    let probe = Local::new(program.clone(), None, control.flag());
    let header = fingerprint::header(&plan, &facts, environment::instance_type, &probe);
    let mut store = Store::open(&folder, &header, &start)?;
    output::message(&format!("results go to {}", quoted(&folder)));
    let mut local = Local::new(program, Some(&folder), control.flag());
    let mut table = Table::new(&plan);
    let how = run::How { prove: false, cpus: hakobu_sys::process::cpus() };
    let mut show = |event: run::Event<'_>| table.show(&event);
    let outcome = run::run(&plan, &how, &mut store, &mut local, &mut show);
    screen::clear();
    drop(store);
    let outcome = outcome?;
    output::text(&report_text(&read(&folder)?, &terminal_look(false), None)?);
    if outcome.is_stopped() {
        output::message(&format!(
            "stopped; the same command with --output {} continues",
            quoted(&folder)
        ));
        return Ok(exit::IO_INTERRUPTED);
    }
    Ok(if outcome.failed > 0 { exit::FAILURE } else { exit::OK })
}

fn planned(args: &Args, layout: &Layout, program: &Path) -> Result<Plan, String> {
    let request = &args.request;
    let typed: Vec<String> = args.words.iter().map(word).collect();
    let all = ["hakobu", "io"].into_iter().chain(typed.iter().map(String::as_str));
    let line = line(all.chain(args.files.iter().map(String::as_str)));
    let matrix = Matrix {
        axes: &request.sweep,
        repeat: request.run.repeat.max(1),
        seed: SEED,
        program,
        line: &line,
        places: places(layout),
    };
    // Files that the sweep laid out may be written to, even if the file system cannot store the mark.
    let is_ours = layout.files.iter().all(|file| file.laid_out);
    plan(&matrix, &|setting| cell_words(args, setting, is_ours))
}

/// The arguments of this program for one cell: what was typed, with one value in the place of each
/// list.
fn cell_words(args: &Args, setting: &Setting, is_ours: bool) -> Vec<String> {
    let mut words = vec!["io".to_owned()];
    for (name, value) in &args.words {
        if OF_SWEEP.contains(&name.as_str()) {
            continue;
        }
        words.push(word(&(name.clone(), in_cell(name, value.as_deref(), setting))));
    }
    words.extend(["--output-format=json", "--keep"].map(str::to_owned));
    let has = |name: &str| args.words.iter().any(|(known, _)| known == name);
    if is_ours && !has("allow-overwrite") {
        words.push("--allow-overwrite".into());
    }
    let jobs = args.words.iter().filter(|(known, _)| known == "name").count();
    if !has("group_reporting") && args.files.is_empty() && jobs < 2 {
        // Report all clones as one, so that percentiles cover all of them.
        words.push("--group_reporting".into());
    }
    words.extend(args.files.iter().cloned());
    words
}

/// Returns the value of an option in a cell.
fn in_cell(name: &str, value: Option<&str>, setting: &Setting) -> Option<String> {
    let chosen = |option: &str| setting.iter().find(|(known, _)| known == option);
    if let (true, Some((option, _))) = (name == "sweep", value.and_then(|v| v.split_once('='))) {
        let canonical = spec::options().find(|known| known.is(option.trim()));
        let (option, value) = chosen(canonical.map_or(option, |known| known.name))?;
        return Some(format!("{option}={value}"));
    }
    let known = spec::options().find(|known| known.is(name) && known.sweeps);
    let swept = known.filter(|_| value.is_some_and(lists::is_list));
    let of_cell = swept.and_then(|known| chosen(known.name)).map(|(_, value)| value.clone());
    of_cell.or_else(|| value.map(str::to_owned))
}

/// An option as it is typed.
fn word((name, value): &Word) -> String {
    match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    }
}
