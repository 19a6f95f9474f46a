//! Text of a plan, and the final report.

use crate::number;
use hakobu_lab::analysis::ranking::Baseline;
use hakobu_lab::analysis::{Lang, analyse};
use hakobu_lab::campaign::run::order::{first_block, runs_max};
use hakobu_lab::campaign::{CampaignPlan, PlannedCell, RunAction, RunCheck};
use hakobu_lab::report::terminal::{TerminalOptions, terminal};
use hakobu_lab::results::Results;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};

/// Default number of characters per line.
const COLUMNS: usize = 100;

/// Returns the report about results, for standard output. Width and colours are those of the terminal, unless `look`
/// overrides them.
///
/// # Errors
/// No setting is the baseline.
pub fn report(
    results: &Results,
    look: &TerminalOptions,
    baseline: Option<&Baseline>,
) -> Result<String, String> {
    let mut analysis = analyse(results);
    if let Some(baseline) = baseline {
        analysis.compare_with(results, baseline, Lang::En)?;
    }
    Ok(terminal(results, &analysis, look))
}

/// Returns the number of characters per line of standard output, and whether it may have colours.
pub fn screen(no_color: bool) -> (usize, bool) {
    let is_terminal = io::stdout().is_terminal();
    // https://no-color.org: any non-empty value disables colours.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
    let columns = hakobu_sys::stdio::columns(io::stdout()).filter(|_| is_terminal);
    (columns.unwrap_or(COLUMNS), is_terminal && !no_color && !is_plain)
}

/// Returns the appearance of a report on standard output.
pub fn look(no_color: bool) -> TerminalOptions {
    let (columns, color) = screen(no_color);
    TerminalOptions::new(columns, color)
}

/// Returns the commands that would be run.
pub fn plan(plan: &CampaignPlan) -> String {
    let mut out = format!("{}: {}\n", plan.header.name, plan.header.title);
    if !plan.header.question.is_empty() {
        let _ = writeln!(out, "{}", plan.header.question);
    }
    let repeat = &plan.repeat;
    let often = match repeat.min == repeat.max {
        true => number::things(u64::from(repeat.min), "run"),
        false => format!("{} to {} runs", repeat.min, repeat.max),
    };
    let _ = write!(
        out,
        "{} of {often} and {} each: at most {}",
        number::things(plan.cells.len() as u64, "cell"),
        number::things(u64::from(repeat.warmup), "warm-up"),
        number::things(runs_max(plan) as u64, "run")
    );
    if let Some(budget) = repeat.budget {
        let _ = write!(out, ", none begun after {} s", budget.as_secs_f64());
    }
    out.push('\n');
    for data in &plan.header.data {
        let (files, bytes) = (number::things(data.files, "file"), number::bytes(data.bytes));
        let _ = writeln!(out, "data set {}: {files}, {bytes}; {}", data.name, data.about);
    }
    for server in &plan.servers {
        let what = server.folder.as_ref().map_or("nothing".into(), |dir| dir.display().to_string());
        let _ = writeln!(out, "server {} on {}: serves {what}", server.label, server.listen);
    }
    for line in &plan.header.left_out {
        let _ = writeln!(out, "left out: {line}");
    }
    for command in &plan.setup {
        let _ = writeln!(out, "setup: {command}");
    }
    out.push('\n');
    for planned in &plan.cells {
        cell(planned, &mut out);
    }
    for command in &plan.teardown {
        let _ = writeln!(out, "cleanup: {command}");
    }
    let order: Vec<String> = first_block(plan).iter().map(u32::to_string).collect();
    let _ = writeln!(out, "\norder of the first block: {}", order.join(" "));
    out
}

fn cell(planned: &PlannedCell, out: &mut String) {
    let cell = &planned.cell;
    let _ = write!(out, "{:>4}  {}", cell.id, cell.series);
    if let Some(x) = cell.x {
        let _ = write!(out, " @{x}");
    }
    for (name, value) in &cell.conditions {
        let _ = write!(out, ", {name} {value}");
    }
    if let Some(of) = cell.control_of {
        let _ = write!(out, ", the same as {of}");
    }
    out.push('\n');
    for action in &planned.prepare {
        let _ = writeln!(out, "      before: {}", words(action));
    }
    let _ = writeln!(out, "      {}", cell.command);
    for command in &planned.conclude {
        let _ = writeln!(out, "      after: {command}");
    }
    let checked = match &planned.check {
        RunCheck::Exit => return,
        RunCheck::Tree { source, target, compare } => {
            let some = if *compare == u64::MAX { "all".to_owned() } else { compare.to_string() };
            let (source, target) = (source.display(), target.display());
            format!("{target} has the files of {source}, contents of {some} compared")
        }
        RunCheck::Count { target, files, bytes } => {
            let bytes = bytes.map_or(String::new(), |bytes| format!(" with {bytes} bytes"));
            format!("{files} files{bytes} in {}", target.display())
        }
    };
    let _ = writeln!(out, "      checked: {checked}");
}

fn words(action: &RunAction) -> String {
    match action {
        RunAction::Empty { own, below } => format!("empty {}", own.join(below).display()),
        RunAction::Cold(path) => format!("{} out of the page cache", path.display()),
        RunAction::Warm(path) => format!("{} into the page cache", path.display()),
        RunAction::Sync => "write everything back".into(),
        RunAction::Shell(command) => command.clone(),
    }
}
