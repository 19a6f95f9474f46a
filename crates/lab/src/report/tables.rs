//! Tables of a report: times, sweeps, resources and runs of one campaign, facts from its record, machines side by side.

use crate::analysis::caveats::Caveat;
use crate::analysis::fit::{CurveFit, FitModel};
use crate::analysis::statistics::{PAIRS_MIN, SpeedClaim, unpaired_ratio};
use crate::analysis::{CellSummary, Interval};
use crate::distinct;
use crate::report::document::{NONE, ReportTable, or_none};
use crate::report::facts::{ReportFacts, ToolLine};
use crate::report::number::{
    MetricUnit, bytes, digits, percent, ratio, seconds, sensitivity, setting, significant,
};
use crate::report::words::{ReportWords, with};
use crate::results::{Cell, PublishedFigure, Run};
use hakobu_core::unit::Machine;
use std::collections::BTreeMap;

/// Most rows of the table of raw runs.
const RUNS_MAX: usize = 1200;
/// CPU time per GB means nothing for less data than this.
const GB_BYTES_MIN: u64 = 100_000_000;

/// Extent of the table of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimesExtent {
    /// All settings, every number with its interval.
    Full,
    /// All settings, with the interval of the metric only, and the range of its values.
    Brief,
    /// The best setting of each tool, likewise.
    Best,
}

/// The table that studies print: a row for each setting, with real, user and system time, and the speed
/// relative to the baseline.
pub(super) fn times(
    facts: &ReportFacts<'_>,
    group: &str,
    words: &'static ReportWords,
    extent: TimesExtent,
) -> ReportTable {
    let lines = facts.lines(group);
    let (unit, time) = (facts.unit(), facts.time_unit());
    let is_time = facts.metric() == "wall_s";
    let x_name = facts.header().x_name.as_deref();
    let is_swept = facts.has_x(&lines);
    let in_unit = |name: &str, unit: &str| format!("#{}", words.in_unit(name, unit));
    let first = if is_swept { words.swept(x_name.unwrap_or("x")) } else { words.setting };
    let mut heads = vec![words.tool.to_owned(), first.to_owned()];
    let is_full = extent == TimesExtent::Full;
    heads.push(match is_time {
        true => in_unit(words.real, time.name),
        false => in_unit(words.metric(facts.metric()), unit.name),
    });
    if !is_full {
        heads.extend([format!("#{}", words.least), format!("#{}", words.most)]);
    }
    if !is_time {
        heads.push(in_unit(words.real, time.name));
    }
    heads.extend([words.user, words.sys].map(|name| in_unit(name, time.name)));
    heads.extend([format!("#{}", words.speed), gain_head(facts, words)]);
    let reference = facts.reference(group);
    let caption = with(words.times_caption, &[&words.group(group)]);
    let caption = match reference.and_then(|id| facts.cell(id)) {
        Some(cell) => with(words.baseline_caption, &[&caption, &facts.label(cell)]),
        None => caption,
    };
    let mut table = ReportTable { is_compact: true, ..ReportTable::new(caption, &heads) };
    for line in &lines {
        let knee = line.marked_x();
        let best = facts.best(&line.cells).map(|cell| cell.id);
        for cell in &line.cells {
            let is_shown = extent != TimesExtent::Best || Some(cell.id) == best;
            let counts = |of: &&CellSummary| of.runs > 0 && is_shown;
            let Some(of) = facts.summary(cell.id).filter(counts) else { continue };
            let setting = match cell.x.filter(|_| is_swept) {
                Some(x) => {
                    let rest = facts.setting(cell);
                    let rest = rest.split_once(", ").map_or("", |(_, rest)| rest);
                    let x = setting(x);
                    if rest.is_empty() { x } else { format!("{x}, {rest}") }
                }
                None if is_swept => NONE.to_owned(),
                None => facts.setting(cell),
            };
            let mark = knee.is_some() && knee == cell.x;
            let setting = if mark { format!("{setting} ◂") } else { setting };
            let mut row = vec![line.series.to_owned(), setting];
            let shown = |unit: &MetricUnit, value: &Interval| enough_runs(of.runs, unit, value);
            row.push(or_none(of.value.as_ref().map(|value| shown(&unit, value))));
            if !is_full {
                let ends = [of.min, of.max].map(|end| end.filter(|_| of.runs > 1));
                row.extend(ends.map(|of| or_none(of.map(|of| digits(unit.scaled(of))))));
            }
            if !is_time {
                row.push(or_none(of.wall_s.as_ref().map(|wall| shown(&time, wall))));
            }
            for (median, interval) in
                [(of.user_s, of.user_interval_s), (of.sys_s, of.sys_interval_s)]
            {
                row.push(match interval {
                    Some(interval) if is_full => shown(&time, &interval),
                    _ => digits(time.scaled(median)),
                });
            }
            row.push(match facts.ratio_of(cell.id) {
                _ if reference == Some(cell.id) => words.baseline_row.to_owned(),
                Some(found) if of.runs < PAIRS_MIN => speed(&Interval::point(found.ratio.mid)),
                Some(found) => speed(&found.ratio),
                None => NONE.to_owned(),
            });
            row.push(gain(facts, cell, words));
            table.push_as(row, line.own);
        }
    }
    table.without_empty_columns()
}

/// A median with its interval, which of very few runs would say nothing.
fn enough_runs(runs: usize, unit: &MetricUnit, of: &Interval) -> String {
    match runs < PAIRS_MIN {
        true => digits(unit.scaled(of.mid)),
        false => unit.bare(of),
    }
}

/// Speed relative to the baseline: `36% [34, 38]`.
pub(super) fn speed(of: &Interval) -> String {
    // Of large ones three digits: 14,500% and not 14,518%.
    let share = |of: f64| match of {
        9.995.. => format!("{}%", digits(significant(100.0 * of, 3))),
        of => percent(of),
    };
    let [low, mid, high] = [of.low, of.mid, of.high].map(share);
    if of.is_point() {
        return mid;
    }
    format!("{mid} [{}, {}]", low.trim_end_matches('%'), high.trim_end_matches('%'))
}

/// Resources that the best setting of each tool took, and its bottleneck.
pub(super) fn resources(
    facts: &ReportFacts<'_>,
    group: &str,
    words: &'static ReportWords,
) -> ReportTable {
    let number = |name: &str| format!("#{name}");
    let heads = [
        words.tool.to_owned(),
        words.setting.to_owned(),
        number(words.concurrency),
        number(words.cpu_gb),
        number(words.cpu_files),
        number(words.memory),
        words.bottleneck.to_owned(),
    ];
    let caption = with(words.resources_caption, &[&words.group(group)]);
    let mut table = ReportTable::new(caption, &heads);
    for line in facts.lines(group) {
        let best = facts.best(&line.cells);
        let Some((cell, of)) = best.and_then(|cell| Some((cell, facts.summary(cell.id)?))) else {
            continue;
        };
        let data = facts.header().data.iter().find(|data| data.name == cell.data);
        let is_large = data.is_some_and(|data| data.bytes >= GB_BYTES_MIN);
        let row = vec![
            line.series.to_owned(),
            facts.setting(cell),
            or_none(of.concurrency.map(digits)),
            or_none(of.cpu_s_per_gb.filter(|_| is_large).map(digits)),
            or_none(of.cpu_s_per_1000_files.map(digits)),
            if of.rss_bytes > 0.0 { bytes(of.rss_bytes) } else { NONE.to_owned() },
            facts.say(words).limiting(&of.limiting),
        ];
        table.push_as(row, line.own);
    }
    table.without_empty_columns()
}

/// All values of x, ascending.
pub(super) fn places(lines: &[ToolLine<'_>]) -> Vec<f64> {
    let cells = lines.iter().flat_map(|line| &line.cells);
    let mut places: Vec<f64> = cells.filter_map(|cell| cell.x).filter(|x| x.is_finite()).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// Knee, fit and bottlenecks of each tool of a group.
pub(super) fn lines(
    facts: &ReportFacts<'_>,
    group: &str,
    words: &'static ReportWords,
) -> ReportTable {
    let caption = with(words.lines_caption, &[&words.group(group)]);
    let heads = [words.tool, words.knee, words.fit, words.bottleneck];
    let mut table = ReportTable::new(caption, &heads);
    let say = facts.say(words);
    for line in facts.lines(group) {
        let Some(sweep) = line.sweep else { continue };
        let knee = sweep.knee.as_ref().map(|knee| match knee.at_edge {
            true => with(words.at_edge, &[&say.x(knee.x)]),
            false => with(words.at_share, &[&say.x(knee.x), &percent(knee.share)]),
        });
        let fit = sweep.fit.as_ref().map(|fit| fit_text(fit, facts, words));
        let stretches = say.stretches(&sweep.stretches);
        let row = vec![line.series.to_owned(), or_none(knee), or_none(fit), stretches];
        table.push_as(row, line.own);
    }
    table.without_empty_columns()
}

/// Figures of the published study, machine by number, and below a machine what was measured here with as many
/// CPUs. With other data times are scaled to the study's.
pub(super) fn published(facts: &ReportFacts<'_>, words: &ReportWords) -> ReportTable {
    let header = facts.header();
    let mut places: Vec<Option<f64>> = distinct(header.published.iter().map(|of| of.x));
    places.sort_by(|a, b| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
    let mut heads = vec![words.published_machine.to_owned(), words.tool.to_owned()];
    let x_name = words.swept(header.x_name.as_deref().unwrap_or("x"));
    heads.extend(places.iter().map(|x| match x {
        Some(x) => format!("#{x_name}={}", setting(*x)),
        None => format!("#{}", facts.unit().name),
    }));
    let unit = study_unit(facts);
    let mut caption = with(words.published_caption, &[unit.name]);
    let factor = if header.more_is_better || header.scale <= 0.0 { 1.0 } else { header.scale };
    if (factor - 1.0).abs() > 1e-9 {
        caption = words.sentences(&[caption, with(words.published_scaled, &[&percent(factor)])]);
    }
    let mut table = ReportTable::new(caption, &heads);
    let machines = distinct(header.published.iter().map(|of| (of.machine.as_str(), of.label())));
    for (machine, label) in machines {
        let of: Vec<&PublishedFigure> = header
            .published
            .iter()
            .filter(|of| of.machine == machine && of.label() == label)
            .collect();
        let mut row = vec![machine.to_owned(), label.clone()];
        row.extend(places.iter().map(|x| {
            let figure = of.iter().find(|of| of.x == *x);
            or_none(figure.map(|of| digits(unit.scaled(of.value))))
        }));
        table.push(row);
    }
    // Like with like only: as many CPUs, the same data.
    let mut here: Vec<(&str, &str)> = Vec::new();
    for figure in header.published.iter().filter(|_| (factor - 1.0).abs() <= 1e-9) {
        let cells = header.cells.iter().filter(|cell| {
            cell.control_of.is_none() && cell.series == figure.series && figure.is_of(&cell.group)
        });
        let cells = cells.filter(|cell| virtual_cpus(&figure.machine) == cpus_of(facts, cell));
        here.extend(cells.map(|cell| (cell.group.as_str(), cell.series.as_str())));
    }
    for (group, series) in distinct(here) {
        let mut row = vec![with(words.published_here, &[&words.group(group)]), series.to_owned()];
        row.extend(places.iter().map(|x| {
            let cell = header
                .cells
                .iter()
                .find(|cell| cell.group == group && cell.series == series && cell.x == *x);
            or_none(cell.and_then(|cell| facts.value(cell.id)).map(|value| unit.bare(value)))
        }));
        table.push_as(row, true);
    }
    table.without_empty_columns()
}

/// Unit of published figures: a study in seconds stays in seconds.
fn study_unit(facts: &ReportFacts<'_>) -> MetricUnit {
    MetricUnit::of(facts.metric())
}

/// CPUs in the description of a machine: `m5.large, 2 vCPU`.
fn virtual_cpus(machine: &str) -> Option<f64> {
    let parts = machine.split(", ").filter_map(|part| part.strip_suffix(" vCPU"));
    parts.filter_map(|count| count.parse().ok()).next()
}

/// CPUs that the runs of a cell may use.
fn cpus_of(facts: &ReportFacts<'_>, cell: &Cell) -> Option<f64> {
    let set = cell.conditions.get("cpus").and_then(|text| text.parse().ok());
    set.or(Some(facts.header().machine.cpus).filter(|cpus| *cpus > 0.0))
}

/// Table of all settings: the spread of their runs.
pub(super) fn settings(facts: &ReportFacts<'_>, words: &'static ReportWords) -> ReportTable {
    let unit = facts.unit();
    let number = |name: &str| format!("#{}", words.in_unit(name, unit.name));
    let heads = [
        words.setting.to_owned(),
        format!("#{}", words.runs),
        format!("#{}", words.failed),
        number(words.median),
        number(words.mean),
        number(words.deviation),
        number(words.least),
        number(words.most),
        gain_head(facts, words),
        format!("#{}", words.outliers),
    ];
    let mut table = ReportTable::new(words.cells_caption, &heads);
    for cell in &facts.header().cells {
        let Some(of) = facts.summary(cell.id) else { continue };
        let number = |value: Option<f64>| or_none(value.map(|value| digits(unit.scaled(value))));
        let row = vec![
            grouped_label(facts, cell, words),
            of.runs.to_string(),
            if of.failed > 0 { of.failed.to_string() } else { NONE.to_owned() },
            or_none(of.value.as_ref().map(|value| enough_runs(of.runs, &unit, value))),
            number(of.mean),
            number(of.deviation),
            number(of.min),
            number(of.max),
            gain(facts, cell, words),
            join_or_none(of.outliers.iter().map(u32::to_string)),
        ];
        table.push_as(row, cell.own);
    }
    table.without_empty_columns()
}

/// Header of the column of gains.
pub(super) fn gain_head(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let base = facts.analysis.gains.first().and_then(|gain| facts.cell(gain.base));
    let base = base.map(|cell| facts.setting(cell)).unwrap_or_default();
    format!("#{}", with(words.gain, &[&base]))
}

/// Gain of a setting relative to the baseline.
pub(super) fn gain(facts: &ReportFacts<'_>, cell: &Cell, words: &'static ReportWords) -> String {
    let gain = facts.analysis.gains.iter().find(|gain| gain.cell == cell.id);
    or_none(gain.map(|gain| facts.say(words).gain(gain)))
}

fn join_or_none(texts: impl Iterator<Item = String>) -> String {
    let text = texts.collect::<Vec<_>>().join(", ");
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// Label of a cell with its group, if there are several, and a mark for controls.
pub(super) fn grouped_label(facts: &ReportFacts<'_>, cell: &Cell, words: &ReportWords) -> String {
    let mut label = facts.label(cell);
    if facts.groups().len() > 1 {
        label = format!("{}: {label}", words.group(&cell.group));
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
            grouped_label(facts, cell, words),
            ratio(&control.ratio.ratio),
            control.ratio.pairs.to_string(),
            claim(control.ratio.claim, words).to_owned(),
        ]);
    }
    table
}

/// Counter-experiments.
pub(super) fn proofs(facts: &ReportFacts<'_>, words: &'static ReportWords) -> ReportTable {
    let [effect, felt] = [words.effect, words.sensitivity].map(|name| format!("#{name}"));
    let heads: [&str; 5] = [words.setting, words.changed, &effect, &felt, words.follows];
    let say = facts.say(words);
    let mut table = ReportTable::new(words.proofs_caption, &heads);
    for proof in &facts.analysis.proofs {
        let Some(cell) = facts.cell(proof.cell) else { continue };
        table.push(vec![
            grouped_label(facts, cell, words),
            say.change(proof),
            percent(proof.speed),
            sensitivity(&proof.elasticity),
            say.follows(proof),
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
    let time = facts.time_unit();
    let in_unit = |name: &str| format!("#{}", words.in_unit(name, time.name));
    let mut heads = vec![
        number(words.number),
        words.setting.to_owned(),
        number(words.block),
        number(words.start_at),
        in_unit(words.real),
        in_unit(words.user),
        in_unit(words.sys),
        number(words.memory),
        number(words.read),
        number(words.written),
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
    let label = facts.cell(run.cell).map(|cell| grouped_label(facts, cell, words));
    let checked = run.checked.as_ref().map(|checked| {
        with(words.checked_text, &[&checked.files.to_string(), &checked.compared.to_string()])
    });
    let outcome = match (&run.problem, run.ok, run.warmup) {
        (Some(problem), _, _) => problem.clone(),
        (None, false, _) => words.failed.to_owned(),
        (None, true, true) => words.warmup.to_owned(),
        (None, true, false) => words.ok.to_owned(),
    };
    let time = facts.time_unit();
    vec![
        label.unwrap_or_default(),
        run.block.to_string(),
        digits(run.at_s),
        digits(time.scaled(run.wall_s)),
        digits(time.scaled(run.user_s)),
        digits(time.scaled(run.sys_s)),
        bytes(run.rss_bytes_max as f64),
        bytes(run.read_bytes as f64),
        bytes(run.write_bytes as f64),
        or_none(checked),
        outcome,
    ]
}

// Facts from the record: programs, data, commands, origin.

/// Date and program of the measurement.
pub(super) fn origin(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    let header = facts.header();
    let (seed, scale) = (header.seed.to_string(), setting(header.scale));
    // 2026-01-02T03:04:05Z
    let start = header.start.get(..16).map(|start| start.replace('T', " ") + " UTC");
    let start = start.unwrap_or_else(|| header.start.clone());
    with(words.made, &[&start, &header.program, &seed, &scale])
}

/// The machine in one line.
pub(super) fn machine_line(facts: &ReportFacts<'_>, words: &ReportWords) -> Option<String> {
    let machine = &facts.header().machine;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(machine.instance_type.clone().filter(|kind| *kind != machine.name));
    if machine.cpus_online > 0 {
        let model = machine.cpu_model.as_deref().unwrap_or(&machine.arch);
        let count = machine.cpus_online.to_string();
        // A machine without a name has that of its CPU.
        parts.push(match (machine.cpus_online, model == machine.name) {
            (1, true) => with(words.group_cpu, &[&count]),
            (_, true) => with(words.group_cpus, &[&count]),
            (1, false) => with(words.machine_cpu, &[&count, model]),
            (_, false) => with(words.machine_cpus, &[&count, model]),
        });
    }
    if machine.memory_bytes > 0 {
        parts.push(bytes(machine.memory_bytes as f64));
    }
    if !machine.kernel.is_empty() {
        parts.push(format!("Linux {} {}", machine.kernel, machine.arch).trim().to_owned());
    }
    let mut volumes: Vec<(String, String)> = Vec::new();
    for (name, volume) in &machine.volumes {
        let volume = brief_volume(volume);
        match volumes.iter_mut().find(|(_, known)| *known == volume) {
            Some((names, _)) => *names = with(words.list_and, &[names, name]),
            None => volumes.push((name.clone(), volume)),
        }
    }
    parts.extend(volumes.into_iter().map(|(names, volume)| format!("{names}: {volume}")));
    if !machine.name.is_empty() {
        parts.insert(0, machine.name.clone());
    }
    (!parts.is_empty()).then(|| with(words.machine_line, &[&parts.join(words.list_comma)]))
}

/// A volume without its mount options and fill: `ext4 on vda, scheduler mq-deadline`.
fn brief_volume(volume: &str) -> String {
    let volume = volume.split(';').next().unwrap_or(volume);
    match volume.split_once(" (").and_then(|(kind, rest)| Some((kind, rest.split_once(") ")?.1))) {
        Some((kind, rest)) => format!("{kind} {rest}"),
        None => volume.to_owned(),
    }
}

/// The command of the best setting of each tool, in the order of description.
pub(super) fn best_commands(facts: &ReportFacts<'_>) -> Vec<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in facts.groups().into_iter().flat_map(|group| facts.lines(group)) {
        let best = facts.best(&line.cells).or(line.cells.first().copied());
        let Some(cell) = best.filter(|cell| !cell.command.is_empty()) else { continue };
        if !found.iter().any(|(series, _)| *series == line.series) {
            found.push((line.series, cell.command.clone()));
        }
    }
    found.into_iter().map(|(_, command)| command).collect()
}

/// Describes the end of the campaign, if it has ended.
pub(super) fn ending(facts: &ReportFacts<'_>, words: &ReportWords) -> String {
    match &facts.results.end {
        None => words.not_whole.to_owned(),
        // A caveat says more of it.
        Some(end) if facts.analysis.caveats.iter().any(|of| matches!(of, Caveat::Overhead(_))) => {
            with(words.took, &[&seconds(end.took_s)])
        }
        Some(end) => with(words.ended, &[&seconds(end.took_s), &percent(end.overhead)]),
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
            grouped_label(facts, cell, words),
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
    Some(speed(&found.ratio))
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
    // A machine without a name of its own is called by its CPU, in the head of its column.
    let called =
        |machine: &Machine| names.iter().any(|name| Some(name) == machine.cpu_model.as_ref());
    let is_told = machines.iter().all(|machine| called(machine));
    row(words.cpu, &|machine| match is_told {
        true => String::new(),
        false => machine.cpu_model.clone().unwrap_or_default(),
    });
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

/// Words for a claim about two cells.
pub(super) fn claim(of: SpeedClaim, words: &ReportWords) -> &'static str {
    match of {
        SpeedClaim::Faster => words.faster,
        SpeedClaim::Slower => words.slower,
        SpeedClaim::Same => words.same,
        SpeedClaim::Unclear => words.unclear,
    }
}

/// Fit of a sweep, with its prediction.
fn fit_text(fit: &CurveFit, facts: &ReportFacts<'_>, words: &'static ReportWords) -> String {
    let say = facts.say(words);
    let curve = match fit.model {
        FitModel::Usl => with(words.usl, &[&ratio(&fit.alpha), &ratio(&fit.beta)]),
        FitModel::Cap => {
            // Between two numbers that were tried: a tenth says enough.
            let at = fit.peak_x.map(|peak| say.x((10.0 * peak.mid).round() / 10.0));
            let at = at.unwrap_or_default();
            with(words.cap, &[&at])
        }
    };
    let predicted = facts.unit().interval(&fit.value_at_twice());
    with(words.at_twice, &[&curve, &predicted, &say.x(fit.twice_x)])
}
