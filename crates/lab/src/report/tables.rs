//! Tables of a report about one campaign.

use super::facts::{ReportFacts, ToolLine};
use super::number::{bytes, digits, percent, range, ratio};
use super::sentences::{claim, fit_text, limit_text, stretches_text};
use super::table::{NONE, ReportTable, or_none};
use super::words::{ReportWords, with};
use crate::analysis::CellSummary;
use crate::results::{Cell, PublishedFigure, Run};

/// Most rows of the table of raw runs.
const RUNS_MAX: usize = 1200;

/// Best setting of each tool in a group.
pub(super) fn tools(facts: &ReportFacts<'_>, group: &str, words: &ReportWords) -> ReportTable {
    let reference = facts.reference(group);
    let name = reference.and_then(|id| facts.cell(id)).map(|cell| facts.label(cell));
    let against = with(words.compared_with, &[name.as_deref().unwrap_or(NONE)]);
    let median = with(words.median, &[words.metric(facts.metric())]);
    let number = |name: &str| format!("#{name}");
    let heads =
        [words.tool.to_owned(), words.setting.to_owned(), number(&median), number(&against)];
    let heads = [heads.as_slice(), &used_heads(words)].concat();
    let mut table = ReportTable::new(with(words.tools_caption, &[words.group(group)]), &heads);
    for line in facts.lines(group) {
        let best = facts.best(&line.cells).or(line.cells.first().copied());
        let Some((cell, of)) = best.and_then(|cell| Some((cell, facts.summary(cell.id)?))) else {
            continue;
        };
        let is_reference = reference == Some(cell.id);
        let against = facts
            .ratio_of(cell.id)
            .map(|found| format!("{} ({})", ratio(&found.ratio), claim(found.claim, words)));
        let mut row = vec![line.series.to_owned(), facts.setting(cell)];
        row.push(or_none(of.value.as_ref().map(|value| facts.unit().interval(value))));
        row.push(if is_reference { "1".to_owned() } else { or_none(against) });
        row.extend(used(of, words));
        table.push_as(row, line.own);
    }
    table.without_empty_columns()
}

/// Heads of the columns of [`used`].
fn used_heads(words: &ReportWords) -> [String; 8] {
    let numbers = [
        words.real,
        words.user,
        words.sys,
        words.concurrency,
        words.cpu_gb,
        words.cpu_files,
        words.memory,
    ];
    let [real, user, sys, concurrency, cpu_gb, cpu_files, memory] =
        numbers.map(|name| format!("#{name}"));
    [real, user, sys, concurrency, cpu_gb, cpu_files, memory, words.limits.to_owned()]
}

/// Columns real, user, sys, concurrency, CPU per GB and per 1,000 files, memory, limits.
fn used(of: &CellSummary, words: &ReportWords) -> [String; 8] {
    let real = or_none(of.wall_s.as_ref().map(|wall| digits(wall.mid)));
    let limits = limit_text(&of.limiting, words);
    let [user, sys, concurrency, cpu_gb, cpu_files, memory] = match of.runs {
        0 => [NONE; 6].map(str::to_owned),
        _ => [
            digits(of.user_s),
            digits(of.sys_s),
            or_none(of.concurrency.map(digits)),
            or_none(of.cpu_s_per_gb.map(digits)),
            or_none(of.cpu_s_per_1000_files.map(digits)),
            bytes(of.rss_bytes),
        ],
    };
    [real, user, sys, concurrency, cpu_gb, cpu_files, memory, limits]
}

/// Table of a sweep: x down, tools across. Empty if nothing is swept.
pub(super) fn sweep(facts: &ReportFacts<'_>, group: &str, words: &ReportWords) -> ReportTable {
    let lines = facts.lines(group);
    let x_name = facts.header().x_name.as_deref().unwrap_or("x");
    let names = lines.iter().map(|line| format!("#{}", line.series));
    let heads: Vec<String> = [format!("#{x_name}")].into_iter().chain(names).collect();
    let caption =
        with(words.sweep_caption, &[words.group(group), words.metric(facts.metric()), x_name]);
    let mut table = ReportTable::new(caption, &heads);
    for x in places(&lines) {
        let mut row = vec![digits(x)];
        for line in &lines {
            let knee = line.sweep.and_then(|sweep| sweep.knee.as_ref()).filter(|k| !k.at_edge);
            let at = line.cells.iter().filter(|cell| cell.x == Some(x));
            let each = at.filter_map(|cell| facts.value(cell.id));
            let texts: Vec<String> = each.map(|value| facts.unit().interval(value)).collect();
            let mark = if knee.is_some_and(|knee| knee.x == x) && !texts.is_empty() {
                format!(" ◂ {}", words.knee)
            } else {
                String::new()
            };
            row.push(if texts.is_empty() { NONE.into() } else { texts.join(" / ") + &mark });
        }
        table.push(row);
    }
    // Tools that do not depend on x have one row.
    let level = |line: &ToolLine<'_>| {
        let cells = line.cells.iter().filter(|cell| cell.x.is_none());
        let values = cells.filter_map(|cell| facts.value(cell.id));
        values.map(|value| facts.unit().interval(value)).collect::<Vec<_>>().join(" / ")
    };
    let levels: Vec<String> = lines.iter().map(level).collect();
    if !table.is_empty() && levels.iter().any(|text| !text.is_empty()) {
        let row = levels.into_iter().map(|text| or_none(Some(text).filter(|t| !t.is_empty())));
        table.push([words.any_value.to_owned()].into_iter().chain(row).collect());
    }
    table
}

/// All values of x, ascending.
pub(super) fn places(lines: &[ToolLine<'_>]) -> Vec<f64> {
    let cells = lines.iter().flat_map(|line| &line.cells);
    let mut places: Vec<f64> = cells.filter_map(|cell| cell.x).filter(|x| x.is_finite()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// Knee, fit and limits of each tool of a group.
pub(super) fn lines(facts: &ReportFacts<'_>, group: &str, words: &ReportWords) -> ReportTable {
    let caption = with(words.lines_caption, &[words.group(group)]);
    let heads = [words.tool, words.knee, words.fit, words.limits];
    let mut table = ReportTable::new(caption, &heads);
    for line in facts.lines(group) {
        let Some(sweep) = line.sweep else { continue };
        let knee = sweep.knee.as_ref().map(|knee| {
            if knee.at_edge {
                return with(words.more_at_edge, &[&digits(knee.x)]);
            }
            with(words.at_share, &[&digits(knee.x), &percent(knee.share)])
        });
        let fit = sweep.fit.as_ref().map(|fit| fit_text(fit, facts, words));
        let limits = stretches_text(&sweep.stretches, words);
        let row = vec![line.series.to_owned(), or_none(knee), or_none(fit), limits];
        table.push_as(row, line.own);
    }
    table.without_empty_columns()
}

/// Published figures beside the measured values of the same tool and x.
pub(super) fn published(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let header = facts.header();
    let x_name = format!("#{}", header.x_name.as_deref().unwrap_or("x"));
    let published = format!("#{}", words.as_published);
    let here = format!("#{}", words.here);
    let heads: [&str; 5] = [words.study_machine, words.tool, &x_name, &published, &here];
    let mut table = ReportTable::new(words.published_caption, &heads);
    for figure in &header.published {
        let here = measured(facts, figure).map(|cell| facts.value(cell.id));
        let row = vec![
            figure.machine.clone(),
            figure.label(),
            or_none(figure.x.map(digits)),
            facts.unit().text(figure.value),
            or_none(here.flatten().map(|value| facts.unit().interval(value))),
        ];
        table.push(row);
    }
    table.without_empty_columns()
}

/// Cell that corresponds to a published figure.
fn measured<'a>(facts: &ReportFacts<'a>, figure: &PublishedFigure) -> Option<&'a Cell> {
    let mut cells = facts.header().cells.iter().filter(|cell| cell.control_of.is_none());
    cells.find(|cell| {
        cell.series == figure.series && cell.x == figure.x && figure.is_of(&cell.group)
    })
}

/// Table of all cells.
pub(super) fn settings(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let median = format!("#{}", with(words.median, &[words.metric(facts.metric())]));
    let number = |name: &str| format!("#{name}");
    let heads = [
        words.setting.to_owned(),
        number(words.runs),
        number(words.failed),
        median,
        number(words.mean),
        number(words.deviation),
        number(words.least),
        number(words.most),
        gain_head(facts, words),
        number(words.outliers),
    ];
    let heads = [heads.as_slice(), &used_heads(words)].concat();
    let mut table = ReportTable::new(words.cells_caption, &heads);
    for cell in &facts.header().cells {
        let Some(of) = facts.summary(cell.id) else { continue };
        let unit = facts.unit();
        let mut row = vec![
            grouped_label(facts, cell),
            of.runs.to_string(),
            if of.failed > 0 { of.failed.to_string() } else { NONE.to_owned() },
            or_none(of.value.as_ref().map(|value| unit.interval(value))),
            or_none(of.mean.map(|mean| unit.text(mean))),
            or_none(of.deviation.map(|deviation| unit.text(deviation))),
            or_none(of.min.map(|min| unit.text(min))),
            or_none(of.max.map(|max| unit.text(max))),
            gain(facts, cell),
            joined(of.outliers.iter().map(u32::to_string)),
        ];
        row.extend(used(of, words));
        table.push_as(row, cell.own);
    }
    table.without_empty_columns()
}

/// Header of the column of gains; empty without a baseline.
pub(super) fn gain_head(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let base = facts.analysis.gains.first().and_then(|gain| facts.cell(gain.base));
    let base = base.map(|cell| facts.setting(cell)).unwrap_or_default();
    format!("#{}", with(words.gain, &[&base]))
}

/// Gain of a setting relative to the baseline.
pub(super) fn gain(facts: &ReportFacts<'_>, cell: &Cell) -> String {
    let gain = facts.analysis.gains.iter().find(|gain| gain.cell == cell.id);
    or_none(gain.map(|gain| gain.words.clone()))
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    let text = texts.collect::<Vec<_>>().join(", ");
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// Label of a cell with its group, if there are several, and a mark for controls.
pub(super) fn grouped_label(facts: &ReportFacts<'_>, cell: &Cell) -> String {
    let mut label = facts.label(cell);
    if facts.groups().len() > 1 {
        label = format!("{}: {label}", cell.group);
    }
    if cell.control_of.is_some() { label + " (A/A)" } else { label }
}

/// A/A controls.
pub(super) fn controls(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let (ratio_head, pairs) = (format!("#{}", words.ratio), format!("#{}", words.pairs));
    let heads: [&str; 4] = [words.setting, &ratio_head, &pairs, words.claim];
    let mut table = ReportTable::new(words.controls_caption, &heads);
    for control in &facts.analysis.controls {
        let Some(cell) = facts.cell(control.a) else { continue };
        table.push(vec![
            grouped_label(facts, cell),
            ratio(&control.ratio.ratio),
            control.ratio.pairs.to_string(),
            claim(control.ratio.claim, words).to_owned(),
        ]);
    }
    table
}

/// Counter-experiments.
pub(super) fn proofs(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let elasticity = format!("#{}", words.elasticity);
    let heads: [&str; 5] = [words.setting, words.changed, words.about, &elasticity, words.follows];
    let mut table = ReportTable::new(words.proofs_caption, &heads);
    for proof in &facts.analysis.proofs {
        let Some(cell) = facts.cell(proof.cell) else { continue };
        let of = &proof.elasticity;
        table.push(vec![
            grouped_label(facts, cell),
            proof.changed.clone(),
            proof.about.clone(),
            format!("{} {}", digits(of.mid), range(of.low, of.high)),
            proof.sentence.clone(),
        ]);
    }
    table
}

/// Table of runs, up to a limit, and the total number of runs.
pub(super) fn runs(facts: &ReportFacts<'_>, words: &ReportWords) -> (ReportTable, usize) {
    let metric = facts.metric();
    // These metrics have their own columns.
    let is_shown = ["wall_s", "user_s", "sys_s"].contains(&metric);
    let own_metric = format!("#{metric}");
    let number = |name: &str| format!("#{name}");
    let mut heads = vec![
        number(words.number),
        words.setting.to_owned(),
        number(words.block),
        number(words.start_at),
        number(words.real),
        number(words.user),
        number(words.sys),
        number(words.memory),
        number(words.read),
        number(words.written),
        number(words.switches),
        number(words.cached),
        words.checked.to_owned(),
        words.outcome.to_owned(),
    ];
    if !is_shown {
        heads.insert(4, own_metric);
    }
    let mut table = ReportTable::new(words.raw_caption, &heads);
    for (i, run) in facts.results.runs.iter().take(RUNS_MAX).enumerate() {
        let mut row = run_row(facts, run, words);
        row.insert(0, (i + 1).to_string());
        if !is_shown {
            let value = facts.measured(run).map(|value| facts.unit().text(value));
            row.insert(4, or_none(value));
        }
        table.push(row);
    }
    (table.without_empty_columns(), facts.results.runs.len())
}

fn run_row(facts: &ReportFacts<'_>, run: &Run, words: &ReportWords) -> Vec<String> {
    let label = facts.cell(run.cell).map(|cell| grouped_label(facts, cell));
    let checked = run.checked.as_ref().map(|checked| {
        with(words.checked_text, &[&checked.files.to_string(), &checked.compared.to_string()])
    });
    let outcome = match (&run.problem, run.ok, run.warmup) {
        (Some(problem), _, _) => problem.clone(),
        (None, false, _) => words.failed.to_owned(),
        (None, true, true) => words.warmup.to_owned(),
        (None, true, false) => words.ok.to_owned(),
    };
    vec![
        label.unwrap_or_default(),
        run.block.to_string(),
        digits(run.at_s),
        digits(run.wall_s),
        digits(run.user_s),
        digits(run.sys_s),
        bytes(run.rss_bytes_max as f64),
        bytes(run.read_bytes as f64),
        bytes(run.write_bytes as f64),
        run.voluntary_switches.saturating_add(run.involuntary_switches).to_string(),
        or_none(run.cached.map(percent)),
        or_none(checked),
        outcome,
    ]
}
