//! Tables of a report: tools, sweeps and runs of one campaign, facts from its record, machines side by side.

use crate::analysis::fit::{CurveFit, FitModel};
use crate::analysis::limits::{LimitingResource, SweepStretch};
use crate::analysis::statistics::{SpeedClaim, unpaired_ratio};
use crate::analysis::words::{level, resource};
use crate::analysis::{CellSummary, Interval, Lang};
use crate::distinct;
use crate::report::document::{NONE, ReportTable, or_none};
use crate::report::facts::{ReportFacts, ToolLine};
use crate::report::number::{bytes, digits, percent, range, ratio};
use crate::report::words::{ReportWords, with};
use crate::results::{Cell, PublishedFigure, Run};
use hakobu_core::unit::Machine;
use hakobu_explain::verdict::Level;
use std::collections::BTreeMap;

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
    let heads = [heads.as_slice(), &resource_heads(words)].concat();
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
        row.extend(resource_columns(of, words));
        table.push_as(row, line.own);
    }
    table.without_empty_columns()
}

/// Heads of the columns of [`resource_columns`].
fn resource_heads(words: &ReportWords) -> [String; 8] {
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
fn resource_columns(of: &CellSummary, words: &ReportWords) -> [String; 8] {
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
pub(super) fn published_table(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let header = facts.header();
    let x_name = format!("#{}", header.x_name.as_deref().unwrap_or("x"));
    let published = format!("#{}", words.as_published);
    let here = format!("#{}", words.here);
    let heads: [&str; 5] = [words.study_machine, words.tool, &x_name, &published, &here];
    let mut table = ReportTable::new(words.published_caption, &heads);
    for figure in &header.published {
        let here = matching_cell(facts, figure).map(|cell| facts.value(cell.id));
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
fn matching_cell<'a>(facts: &ReportFacts<'a>, figure: &PublishedFigure) -> Option<&'a Cell> {
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
    let heads = [heads.as_slice(), &resource_heads(words)].concat();
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
            join_or_none(of.outliers.iter().map(u32::to_string)),
        ];
        row.extend(resource_columns(of, words));
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

fn join_or_none(texts: impl Iterator<Item = String>) -> String {
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

// Facts from the record: programs, data, commands, origin.

/// Date and program of the measurement.
pub(super) fn origin(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let header = facts.header();
    let (seed, scale) = (header.seed.to_string(), digits(header.scale));
    with(words.made, &[&header.start, &header.program, &seed, &scale])
}

/// Describes the end of the campaign, if it has ended.
pub(super) fn ending(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    match &facts.results.end {
        None => words.not_whole.to_owned(),
        Some(end) => {
            let (took, overhead) = (digits(end.took_s), percent(end.overhead));
            with(words.ended, &[&end.reason, &took, &overhead])
        }
    }
}

/// Table of programs.
pub(super) fn programs(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let heads = [words.tool, words.version, words.path, "SHA-256"];
    let mut table = ReportTable::new(words.programs_caption, &heads);
    for tool in &facts.header().tools {
        let row = [&tool.name, &tool.version, &tool.path, &tool.sha256];
        table.push(row.map(String::clone).to_vec());
    }
    table.without_empty_columns()
}

/// Table of data sets.
pub(super) fn data(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let (files, size) = (format!("#{}", words.files), format!("#{}", words.bytes));
    let heads: [&str; 4] = [words.name, &files, &size, words.about];
    let mut table = ReportTable::new(words.data_caption, &heads);
    for data in &facts.header().data {
        table.push(vec![
            data.name.clone(),
            digits(data.files as f64),
            bytes(data.bytes as f64),
            data.about.clone(),
        ]);
    }
    table.without_empty_columns()
}

/// Exact command and conditions of each cell.
pub(super) fn commands(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let heads = [words.setting, words.command, words.data, words.conditions];
    let mut table = ReportTable::new(words.commands_caption, &heads);
    for cell in &facts.header().cells {
        let conditions = pairs(&cell.conditions);
        table.push(vec![
            grouped_label(facts, cell),
            cell.command.clone(),
            cell.data.clone(),
            if conditions.is_empty() { NONE.to_owned() } else { conditions },
        ]);
    }
    table.without_empty_columns()
}

/// Formats pairs: `cpus=2, iops=3000`.
pub(super) fn pairs(of: &BTreeMap<String, String>) -> String {
    let each = of.iter().map(|(name, value)| format!("{name}={value}"));
    each.collect::<Vec<_>>().join(", ")
}

// Comparison of results: the best setting of each tool on each machine.

/// Seed of intervals, fixed for reproducible output.
const SEED: u64 = 5;

/// Distinct names of the results.
pub(super) fn names(all: &[ReportFacts<'_>]) -> Vec<String> {
    let plain = |facts: &ReportFacts<'_>| {
        let header = facts.header();
        let machine = &header.machine.name;
        if machine.is_empty() { header.name.clone() } else { machine.clone() }
    };
    let names: Vec<String> = all.iter().map(plain).collect();
    let each = names.iter().enumerate().map(|(i, name)| {
        let is_alone = names.iter().filter(|other| *other == name).count() == 1;
        if is_alone { name.clone() } else { format!("{name} #{}", i + 1) }
    });
    each.collect()
}

/// Best settings side by side, with speeds relative to the first result.
pub(super) fn side_by_side(all: &[ReportFacts<'_>], words: &ReportWords) -> ReportTable {
    let names = names(all);
    let first = names.first().map_or(NONE, String::as_str);
    let mut heads = vec![words.tool.to_owned()];
    heads.extend(names.iter().map(|name| format!("#{name}")));
    let others = names.iter().skip(1);
    heads.extend(others.map(|name| format!("#{}", with(words.times_as_fast, &[name]))));
    let mut table = ReportTable::new(with(words.machines_caption, &[first]), &heads);
    for (group, series) in rows(all) {
        let best: Vec<Option<&Cell>> = all.iter().map(|facts| best(facts, group, series)).collect();
        let label = if group.is_empty() { series.to_owned() } else { format!("{group}: {series}") };
        let mut row = vec![label];
        for (facts, cell) in all.iter().zip(&best) {
            let text = cell.and_then(|cell| {
                let value = facts.unit().interval(facts.value(cell.id)?);
                let setting = facts.setting(cell);
                Some(if setting.is_empty() { value } else { format!("{value} ({setting})") })
            });
            row.push(or_none(text));
        }
        for (facts, cell) in all.iter().zip(&best).skip(1) {
            row.push(or_none(against_first(all, &best, facts, *cell)));
        }
        let is_own = best.iter().flatten().any(|cell| cell.own);
        table.push_as(row, is_own);
    }
    table
}

/// Speed relative to the same tool on the first machine.
fn against_first(
    all: &[ReportFacts<'_>],
    best: &[Option<&Cell>],
    facts: &ReportFacts<'_>,
    cell: Option<&Cell>,
) -> Option<String> {
    let (first, first_cell) = (all.first()?, (*best.first()?)?);
    if facts.metric() != first.metric() {
        return None;
    }
    let (a, b) = (values(facts, cell?.id), values(first, first_cell.id));
    let found = unpaired_ratio(&a, &b, facts.header().more_is_better, SEED)?;
    Some(ratio(&found.ratio))
}

/// Metric of each run that counts.
fn values(facts: &ReportFacts<'_>, cell: u32) -> Vec<f64> {
    facts.counted(cell).filter_map(|run| facts.measured(run)).collect()
}

fn best<'a>(facts: &ReportFacts<'a>, group: &str, series: &str) -> Option<&'a Cell> {
    let lines = facts.lines(group);
    facts.best(&lines.iter().find(|line| line.series == series)?.cells)
}

/// Groups and tools of all results in order of appearance.
fn rows<'a>(all: &[ReportFacts<'a>]) -> Vec<(&'a str, &'a str)> {
    let cells = all.iter().flat_map(|facts| &facts.header().cells);
    let cells = cells.filter(|cell| cell.control_of.is_none());
    distinct(cells.map(|cell| (cell.group.as_str(), cell.series.as_str())))
}

/// Table of the machines' properties.
pub(super) fn fingerprints(all: &[ReportFacts<'_>], words: &ReportWords) -> ReportTable {
    let machines: Vec<&Machine> = all.iter().map(|facts| &facts.header().machine).collect();
    machine_table(&names(all), &machines, words)
}

/// Table of properties of machines with these names.
pub(super) fn machine_table(
    names: &[String],
    machines: &[&Machine],
    words: &ReportWords,
) -> ReportTable {
    let mut heads = vec![words.property];
    heads.extend(names.iter().map(String::as_str));
    let mut table = ReportTable::new(words.machine_caption, &heads);
    let mut row = |name: &str, text: &dyn Fn(&Machine) -> String| {
        let texts: Vec<String> = machines.iter().map(|machine| text(machine)).collect();
        if texts.iter().any(|text| !text.is_empty()) {
            table.push([name.to_owned()].into_iter().chain(texts).collect());
        }
    };
    row(words.cpu, &|machine| machine.cpu_model.clone().unwrap_or_default());
    // Imported results contain no facts about the machine.
    let known = |is_known: bool, text: String| if is_known { text } else { String::new() };
    row(words.cpus, &|machine| {
        let text = format!("{} / {}", digits(machine.cpus), machine.cpus_online);
        known(machine.cpus_online > 0, text)
    });
    row(words.ram, &|machine| known(machine.memory_bytes > 0, bytes(machine.memory_bytes as f64)));
    row(words.kernel, &|machine| format!("{} {}", machine.kernel, machine.arch).trim().to_owned());
    row(words.instance, &|machine| machine.instance_type.clone().unwrap_or_default());
    let mut volumes: Vec<&String> = machines.iter().flat_map(|of| of.volumes.keys()).collect();
    volumes.sort();
    volumes.dedup();
    for volume in volumes {
        let name = with(words.volume, &[volume]);
        row(&name, &|machine| machine.volumes.get(volume).cloned().unwrap_or_default());
    }
    row(words.machine_limit, &|machine| machine.limits.join("; "));
    table
}

// Short forms of conclusions for table cells.

/// ReportWords for a claim about two cells.
pub(super) fn claim(of: SpeedClaim, words: &ReportWords) -> &'static str {
    match of {
        SpeedClaim::Faster => words.faster,
        SpeedClaim::Slower => words.slower,
        SpeedClaim::Same => words.same,
        SpeedClaim::Unclear => words.unclear,
    }
}

/// Limiting resource: `the CPU (at the limit: 1.97 of 2 CPUs used)`.
fn limit_text(of: &LimitingResource, words: &ReportWords) -> String {
    let lang = words.lang;
    if !of.is_determined() {
        return level(Level::NotDetermined, lang).to_owned();
    }
    let (what, sure) = (resource(of.resource, lang), level(of.level, lang));
    let evidence = of.evidence.join(lang.pick(", ", "、"));
    match (lang, evidence.is_empty()) {
        (Lang::En, true) => format!("{what} ({sure})"),
        (Lang::En, false) => format!("{what} ({sure}: {evidence})"),
        (Lang::Ja, true) => format!("{what}（{sure}）"),
        (Lang::Ja, false) => format!("{what}（{sure}: {evidence}）"),
    }
}

/// Limiting resources along a sweep.
pub(super) fn stretches_text(stretches: &[SweepStretch], words: &ReportWords) -> String {
    let each: Vec<&str> = stretches.iter().map(|stretch| stretch.sentence.as_str()).collect();
    each.join(words.lang.pick("; ", "、"))
}

/// Fit of a sweep, with its prediction.
fn fit_text(fit: &CurveFit, facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let unit = facts.unit();
    let x_name = facts.header().x_name.as_deref().unwrap_or("x");
    let curve = match fit.model {
        FitModel::Usl => with(words.usl, &[&ratio(&fit.alpha), &ratio(&fit.beta)]),
        FitModel::Cap => {
            let at = fit.peak_x.map_or_else(String::new, |peak| ratio(&peak));
            with(words.cap, &[&format!("{x_name}={at}")])
        }
    };
    let twice = match fit.work {
        // A time is inverse to the rate, so the ends of the interval are swapped.
        Some(work) => Interval {
            low: work / fit.at_twice.high,
            mid: work / fit.at_twice.mid,
            high: work / fit.at_twice.low,
        },
        None => fit.at_twice,
    };
    let place = format!("{x_name}={}", digits(fit.twice_x));
    with(words.at_twice, &[&curve, &unit.interval(&twice), &place])
}
