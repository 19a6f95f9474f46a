//! A matrix of settings: files laid out once for all cells, runs interleaved, a record as campaigns have it, a table of
//! medians that fills meanwhile, a report.

use super::IoArgs;
use super::options::Word;
use super::single::{lay_out_jobs, precondition_jobs, remove, target_places};
use crate::commands::bench::{new_folder, now, report_text, terminal_look};
use crate::commands::session::stop_on_signals;
use crate::show::progress::{Progress, ProgressForm};
use crate::show::{output, screen};
use crate::{environment, exit, number};
use hakobu_core::error::{Cause, quoted};
use hakobu_core::language::Language;
use hakobu_io::job::Job;
use hakobu_io::layout::Layout;
use hakobu_io::run::check;
use hakobu_io::spec::{self, Request, lists};
use hakobu_lab::analysis::statistics::median;
use hakobu_lab::campaign::CampaignPlan;
use hakobu_lab::campaign::run::local::LocalBench;
use hakobu_lab::campaign::run::{self, CampaignEvent, fingerprint};
use hakobu_lab::campaign::template::line;
use hakobu_lab::results::Cell;
use hakobu_lab::results::read::read;
use hakobu_lab::results::store::ResultsStore;
use hakobu_lab::sweep::{SweepMatrix, SweepSetting, plan, settings};
use hakobu_sys::stdio;
use hakobu_transfer::run::Control;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// The seed of the order of runs.
const SEED: u64 = 1;
/// Options that are the sweep's, not those of a cell.
const OF_SWEEP: [&str; 5] = ["output", "output-format", "repeat", "precondition", "keep"];

/// Runs it; the exit code.
///
/// # Errors
/// A sentence: it could not begin, or results could not be written.
pub fn run_sweep(args: &IoArgs) -> Result<u8, String> {
    let request = &args.request;
    let control = Control::default();
    stop_on_signals(&control, exit::IO_INTERRUPTED, "this");
    let jobs = jobs_of_all(request)?;
    let Some(mut layout) = lay_out_jobs(&jobs, &request.run.safety, &control)? else {
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

fn measure(args: &IoArgs, jobs: &[Job], layout: &Layout, control: &Control) -> Result<u8, String> {
    let request = &args.request;
    if request.run.precondition && !precondition_jobs(jobs, layout, control)? {
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
    let facts = fingerprint::HeaderFacts {
        program: concat!("hakobu ", env!("CARGO_PKG_VERSION")).into(),
        start: start.clone(),
        scale: 1.0,
        machine_name: None,
    };
    let probe = LocalBench::new(program.clone(), None, control.flag());
    let header = fingerprint::header(&plan, &facts, environment::instance_type, &probe);
    let mut store = ResultsStore::open(&folder, &header, &start)?;
    output::message(&format!("results go to {}", quoted(&folder)));
    let mut local = LocalBench::new(program, Some(&folder), control.flag());
    let mut table = MedianTable::new(&plan);
    let how = run::SessionOptions { prove: false, cpus: hakobu_sys::process::cpus() };
    let mut show = |event: run::CampaignEvent<'_>| table.show(&event);
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

fn planned(args: &IoArgs, layout: &Layout, program: &Path) -> Result<CampaignPlan, String> {
    let request = &args.request;
    let typed: Vec<String> = args.words.iter().map(word).collect();
    let all = ["hakobu", "io"].into_iter().chain(typed.iter().map(String::as_str));
    let line = line(all.chain(args.files.iter().map(String::as_str)));
    let matrix = SweepMatrix {
        axes: &request.sweep,
        repeat: request.run.repeat.max(1),
        seed: SEED,
        program,
        line: &line,
        places: target_places(layout),
    };
    // Files that the sweep laid out may be written to, even if the file system cannot store the mark.
    let is_ours = layout.files.iter().all(|file| file.laid_out);
    plan(&matrix, &|setting| cell_words(args, setting, is_ours))
}

/// The arguments of this program for one cell: what was typed, with one value in the place of each
/// list.
fn cell_words(args: &IoArgs, setting: &SweepSetting, is_ours: bool) -> Vec<String> {
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
fn in_cell(name: &str, value: Option<&str>, setting: &SweepSetting) -> Option<String> {
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

/// Widest name of a group that is not cut.
const NAME_MAX: usize = 28;
/// Columns of a number.
const COLUMN: usize = 9;

/// The table.
struct MedianTable {
    metric: String,
    groups: Vec<String>,
    xs: Vec<f64>,
    /// Values by group and place of the swept number.
    values: BTreeMap<(usize, usize), Vec<f64>>,
    is_drawn: bool,
    told: BTreeSet<String>,
    progress: Progress,
}

impl MedianTable {
    /// An empty one.
    fn new(plan: &CampaignPlan) -> MedianTable {
        let mut groups: Vec<String> = Vec::new();
        let mut xs: Vec<f64> = Vec::new();
        for planned in &plan.cells {
            if !groups.contains(&planned.cell.group) {
                groups.push(planned.cell.group.clone());
            }
            let x = planned.cell.x.unwrap_or(0.0);
            if !xs.contains(&x) {
                xs.push(x);
            }
        }
        MedianTable {
            metric: plan.header.metric.clone(),
            groups,
            xs,
            values: BTreeMap::new(),
            is_drawn: screen::redraws(),
            told: BTreeSet::new(),
            progress: Progress::start(ProgressForm::OnSignal, Language::English, |_| {}),
        }
    }

    /// Shows what happened.
    fn show(&mut self, event: &CampaignEvent<'_>) {
        match event {
            CampaignEvent::Begins { cell, done, most, at_s, .. } => {
                let swept = cell.x.map_or(String::new(), |x| format!(" @{x}"));
                let left = match *done {
                    0 => String::new(),
                    done => {
                        let left_s = at_s / done as f64 * most.saturating_sub(done) as f64;
                        format!(", {left_s:.0} s left")
                    }
                };
                let state = format!("run {} of {most}{left}: {}{swept}", done + 1, cell.group);
                self.progress.says(&state);
                self.draw(&state);
            }
            CampaignEvent::Ended { cell, run } => {
                if let Some(value) = run.metrics.get(&self.metric).filter(|_| run.ok) {
                    self.add(cell, *value);
                }
                if let Some(problem) = &run.problem {
                    self.tell(&format!("{}: {problem}", cell.group));
                }
            }
            CampaignEvent::Teardown(why) => self.tell(&format!("cleanup: {why}")),
            CampaignEvent::Data(_) | CampaignEvent::Setup(_) | CampaignEvent::Experiment { .. } => {
            }
        }
    }

    fn tell(&mut self, message: &str) {
        if self.told.insert(message.to_owned()) {
            output::message(message);
        }
    }

    fn add(&mut self, cell: &Cell, value: f64) {
        // A control repeats a cell: it says the same.
        let x = cell.x.unwrap_or(0.0);
        let group = self.groups.iter().position(|group| *group == cell.group);
        let column = self.xs.iter().position(|known| *known == x);
        if let Some(at) = group.zip(column) {
            self.values.entry(at).or_default().push(value);
        }
    }

    fn draw(&self, state: &str) {
        if !self.is_drawn {
            return;
        }
        let columns = stdio::columns(io::stderr()).unwrap_or(80);
        let lines = self.lines(columns.saturating_sub(1), state);
        screen::show(&lines.join("\n"));
    }

    /// The table with what happens at the moment; where it is too wide, the last columns stay.
    fn lines(&self, width: usize, state: &str) -> Vec<String> {
        let longest = self.groups.iter().map(|group| group.chars().count()).max().unwrap_or(0);
        let name = longest.max(self.metric.len()).min(NAME_MAX);
        let fit = (width.saturating_sub(name) / COLUMN).max(1);
        let first = self.xs.len().saturating_sub(fit);
        let row = |name_of: &str, cells: &mut dyn Iterator<Item = String>| {
            let short: String = name_of.chars().take(name).collect();
            let cells: String = cells.map(|cell| format!("{cell:>COLUMN$}")).collect();
            let line = format!("{short:name$}{cells}");
            line.chars().take(width).collect::<String>()
        };
        let shown = first..self.xs.len();
        let mut heads = shown.clone().map(|at| self.xs[at].to_string());
        let mut lines = vec![row(&self.metric, &mut heads)];
        for (at, group) in self.groups.iter().enumerate() {
            let mut cells = shown.clone().map(|column| {
                let values = self.values.get(&(at, column));
                let mid = values.and_then(|values| median(values));
                mid.map_or("-".to_owned(), |mid| number::grouped(mid.round() as u64))
            });
            lines.push(row(group, &mut cells));
        }
        lines.push(state.chars().take(width).collect());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_lab::campaign::PlannedCell;
    use hakobu_lab::results::ResultsHeader;

    fn cell(group: &str, x: f64) -> Cell {
        Cell { group: group.into(), x: Some(x), ..Cell::default() }
    }

    fn table() -> MedianTable {
        let cells = [("rw read", 1.0), ("rw read", 8.0), ("rw randread", 1.0)];
        let planned = |(group, x)| PlannedCell { cell: cell(group, x), ..PlannedCell::default() };
        let header = ResultsHeader { metric: "iops".into(), ..ResultsHeader::default() };
        let plan =
            CampaignPlan { header, cells: cells.map(planned).to_vec(), ..CampaignPlan::default() };
        MedianTable::new(&plan)
    }

    #[test]
    fn medians_stand_in_their_places() {
        let mut table = table();
        for value in [1000.0, 3000.0, 2000.4] {
            table.add(&cell("rw read", 8.0), value);
        }
        table.add(&cell("rw randread", 1.0), 512.0);
        assert_eq!(
            table.lines(60, "run 5 of 6"),
            [
                "iops               1        8",
                "rw read            -    2,000",
                "rw randread      512        -",
                "run 5 of 6",
            ]
        );
        // The last columns stay.
        assert_eq!(table.lines(21, "run 5 of 6")[1], "rw read        2,000");
    }
}
