//! Load charts: CPU, disk and network during runs, thinned to the resolution of the chart, with the values that the cursor
//! reads.

use crate::chart::{
    BLACK, BLUE, CYAN, Chart, ChartColor, ChartPanel, ChartSeries, GREEN, PURPLE, RED, SeriesForm,
    YELLOW,
};
use crate::escape;
use crate::report::facts::ReportFacts;
use crate::report::number::{digits, percent, significant};
use crate::report::sweep_chart::look;
use crate::report::tables::grouped_label;
use crate::report::words::{ReportWords, with};
use crate::results::{Cell, LoadCurves, Run};
use std::collections::{BTreeMap, VecDeque};

/// Points of the timeline, and of the curves of one run.
const TIMELINE_PLACES: usize = 400;
const RUN_PLACES: usize = 200;
/// Shorter runs have no curve worth drawing: ten samples are a second.
const SAMPLES_MIN: usize = 10;
/// More runs than this in one line cannot be distinguished.
const TIMELINE_RUNS_MAX: usize = 1000;
/// Heights in pixels: of each row of runs, of the rest of their panel, of the other panels.
const ROW_PX: u32 = 16;
const ROWS_REST_PX: u32 = 60;
const PANEL_PX: u32 = 150;

/// A curve of a load chart.
struct LoadCurveKind {
    /// Names in the record; their values are added up.
    keys: &'static [&'static str],
    name: fn(&ReportWords) -> &'static str,
    color: ChartColor,
    form: SeriesForm,
    /// A curve that stays below this is left out.
    least: f64,
}

const fn kind(
    keys: &'static [&'static str],
    name: fn(&ReportWords) -> &'static str,
    color: ChartColor,
    form: SeriesForm,
    least: f64,
) -> LoadCurveKind {
    LoadCurveKind { keys, name, color, form, least }
}

type LoadKinds = &'static [LoadCurveKind];

const OWN_USER: &[&str] = &["own_user"];
/// CPU: the command's own use as areas, that of the machine as lines.
const OWN_CPU: LoadKinds = &[
    kind(OWN_USER, |words| words.curve_own_user, BLUE, SeriesForm::Area, 0.0),
    kind(&["own_system"], |words| words.curve_own_system, RED, SeriesForm::Area, 0.0),
    kind(&["iowait"], |words| words.curve_iowait, YELLOW, SeriesForm::Line, 0.5),
    kind(&["steal"], |words| words.curve_steal, PURPLE, SeriesForm::Line, 0.5),
    kind(&["user", "system"], |words| words.curve_all, GREEN, SeriesForm::Line, 0.0),
    kind(&["busiest"], |words| words.curve_busiest, BLACK, SeriesForm::Thin, 0.0),
];
/// CPU in records that do not have the command's own.
const MACHINE_CPU: LoadKinds = &[
    kind(&["user"], |words| words.curve_user, BLUE, SeriesForm::Area, 0.0),
    kind(&["system"], |words| words.curve_system, RED, SeriesForm::Area, 0.0),
    kind(&["iowait"], |words| words.curve_iowait, YELLOW, SeriesForm::Area, 0.5),
    kind(&["steal"], |words| words.curve_steal, PURPLE, SeriesForm::Area, 0.5),
    kind(&["busiest"], |words| words.curve_busiest, BLACK, SeriesForm::Line, 0.0),
];
const DISK: LoadKinds = &[
    kind(&["read"], |words| words.curve_read, BLUE, SeriesForm::Line, 5e4),
    kind(&["write"], |words| words.curve_write, RED, SeriesForm::Line, 5e4),
];
const OPERATIONS: LoadKinds =
    &[kind(&["iops"], |words| words.curve_iops, GREEN, SeriesForm::Line, 1.0)];
const NETWORK: LoadKinds = &[kind(&["net"], |words| words.curve_net, CYAN, SeriesForm::Line, 5e4)];

/// True if the command's own use of CPUs was recorded.
fn has_own(curves: &LoadCurves) -> bool {
    OWN_USER.iter().all(|key| curves.values.contains_key(*key))
}

/// Data for the cursor: values at equidistant positions.
#[derive(Debug, Default, PartialEq, serde::Serialize)]
pub(super) struct LoadCursor {
    /// Range of the x axis, seconds.
    from: f64,
    to: f64,
    /// Name and unit of each list of values.
    names: Vec<(String, &'static str)>,
    values: Vec<Vec<f64>>,
    /// Runs: start, end, label.
    runs: Vec<(f64, f64, String)>,
}

/// A chart with its text.
pub(super) struct LoadChart {
    pub(super) chart: Chart,
    pub(super) cursor: LoadCursor,
    /// What it shows, for the name of a file.
    pub(super) name: String,
    pub(super) caption: String,
    pub(super) description: String,
}

/// A run with its curves.
struct RunWithCurves<'a> {
    run: &'a Run,
    cell: &'a Cell,
    curves: &'a LoadCurves,
}

/// Curves of the runs that count, in order. Runs and curves of a cell and block are matched in order; if
/// there are fewer curves than runs, warm-ups have none.
fn runs_with_curves<'a>(facts: &ReportFacts<'a>) -> Vec<RunWithCurves<'a>> {
    let mut curves: BTreeMap<(u32, u32), VecDeque<&LoadCurves>> = BTreeMap::new();
    for curve in &facts.results.curves {
        curves.entry((curve.cell, curve.block)).or_default().push_back(curve);
    }
    let mut runs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for run in &facts.results.runs {
        *runs.entry((run.cell, run.block)).or_default() += 1;
    }
    let mut found = Vec::new();
    for run in &facts.results.runs {
        let key = (run.cell, run.block);
        let Some(waiting) = curves.get_mut(&key) else { continue };
        let left = runs.entry(key).or_default();
        let has_none = run.warmup && waiting.len() < *left;
        *left = left.saturating_sub(1);
        if has_none {
            continue;
        }
        let Some(curves) = waiting.pop_front() else { continue };
        let is_usable = curves.t_s.len() >= SAMPLES_MIN
            && curves.t_s.last().is_some_and(|end| *end > 0.0 && end.is_finite());
        if let Some(cell) = facts.cell(run.cell).filter(|_| is_usable && !run.warmup) {
            found.push(RunWithCurves { run, cell, curves });
        }
    }
    found
}

impl RunWithCurves<'_> {
    /// Duration, seconds.
    fn length(&self) -> f64 {
        let end = self.curves.t_s.last().copied().unwrap_or_default();
        if self.run.wall_s > 0.0 { self.run.wall_s.max(end) } else { end }
    }
}

/// Timeline of all runs. `None` if no curves were recorded.
pub(super) fn timeline(facts: &ReportFacts<'_>, words: &ReportWords) -> Option<LoadChart> {
    let all = runs_with_curves(facts);
    let shown = &all[..all.len().min(TIMELINE_RUNS_MAX)];
    let total: f64 = shown.iter().map(RunWithCurves::length).sum();
    if shown.is_empty() || total <= 0.0 || !total.is_finite() {
        return None;
    }
    let names = facts.series();
    let mut rows: Vec<Vec<(f64, f64)>> = vec![Vec::new(); names.len()];
    let mut cursor = LoadCursor { to: round(total), ..LoadCursor::default() };
    let mut pieces = Vec::new();
    let mut at = 0.0;
    for one in shown {
        let end = at + one.length();
        pieces.push((at, one.curves));
        let row = names.iter().position(|name| *name == one.cell.series).unwrap_or(0);
        // First tool on top, as in the tables.
        let foot = (names.len() - row - 1) as f64;
        // A run is drawn at least one pixel wide.
        let seen = end.max(at + total / 800.0).min(total);
        rows[row].extend([(at, foot + 0.1), (seen, foot + 0.9)]);
        let label =
            format!("{}, {} {}", grouped_label(facts, one.cell, words), words.block, one.run.block);
        cursor.runs.push((round(at), round(end), escape::terminal(&label)));
        at = end;
    }
    let mut panels = panels(&pieces, total, TIMELINE_PLACES, words, &mut cursor);
    let boxes = rows.into_iter().enumerate().map(|(i, points)| ChartSeries {
        name: String::new(),
        color: look(i).0,
        form: SeriesForm::Boxes,
        points,
    });
    let height = ROWS_REST_PX.saturating_add(ROW_PX * u32::try_from(names.len()).unwrap_or(1));
    let tick = |(i, name): (usize, &&str)| ((names.len() - i) as f64 - 0.5, (*name).to_owned());
    panels.push(ChartPanel {
        title: words.runs_panel.to_owned(),
        top: Some(names.len() as f64),
        ticks: names.iter().enumerate().map(tick).collect(),
        height_px: Some(height),
        series: boxes.collect(),
        ..ChartPanel::default()
    });
    let [count, whole] = [shown.len(), all.len()].map(|count| count.to_string());
    let caption = match shown.len() == all.len() {
        true => with(words.load_title, &[&count]),
        false => with(words.load_some, &[&count, &whole]),
    };
    Some(LoadChart {
        chart: Chart {
            x_label: words.load_label.to_owned(),
            x: (0.0, total),
            panels,
            ..Chart::default()
        },
        description: means(&pieces, words),
        name: format!("{} load", facts.header().name),
        cursor,
        caption,
    })
}

/// Charts of the best settings of all tools, each by the run closest to the median time; at most `count`.
pub(super) fn typical(
    facts: &ReportFacts<'_>,
    count: usize,
    words: &ReportWords,
) -> Vec<LoadChart> {
    let all = runs_with_curves(facts);
    let mut found = Vec::new();
    for group in facts.groups() {
        for line in facts.lines(group) {
            let Some(cell) = facts.best(&line.cells).filter(|_| found.len() < count) else {
                continue;
            };
            let median = facts.summary(cell.id).and_then(|summary| summary.wall_s);
            let far = |one: &&RunWithCurves<'_>| {
                median.map_or(0.0, |median| (one.run.wall_s - median.mid).abs())
            };
            let of_cell = all.iter().filter(|one| one.run.cell == cell.id && one.run.ok);
            let nearest = of_cell.min_by(|a, b| far(a).total_cmp(&far(b)));
            found.extend(nearest.map(|one| of_run(facts, one, words)));
        }
    }
    found
}

fn of_run(facts: &ReportFacts<'_>, one: &RunWithCurves<'_>, words: &ReportWords) -> LoadChart {
    let total = one.length();
    let mut cursor = LoadCursor { to: round(total), ..LoadCursor::default() };
    let places = one.curves.t_s.len().clamp(1, RUN_PLACES);
    let pieces = [(0.0, one.curves)];
    let mut panels = panels(&pieces, total, places, words, &mut cursor);
    if let Some(panel) = panels.first_mut() {
        panel.series.extend(level(facts, one, total, words));
    }
    let label = grouped_label(facts, one.cell, words);
    let took = format!("{} s", digits(one.run.wall_s));
    LoadChart {
        chart: Chart {
            x_label: words.run_seconds.to_owned(),
            x: (0.0, total),
            panels,
            ..Chart::default()
        },
        description: means(&pieces, words),
        cursor,
        name: format!("{} load {} {}", facts.header().name, one.cell.group, facts.label(one.cell)),
        caption: with(words.load_run, &[&label, &took]),
    }
}

/// Dashed line in the panel of CPUs: the CPUs that the run was confined to; in older records what it used on
/// average, as the curves are those of the whole machine.
fn level(
    facts: &ReportFacts<'_>,
    one: &RunWithCurves<'_>,
    total: f64,
    words: &ReportWords,
) -> Option<ChartSeries> {
    let online = facts.header().machine.cpus_online as f64;
    let (name, cpus) = match has_own(one.curves) {
        true => {
            let set = one.cell.conditions.get("cpus")?;
            let cpus = set.parse::<f64>().ok().filter(|cpus| *cpus < online)?;
            (with(words.curve_limit, &[&words.group(&format!("{set} CPUs"))]), cpus)
        }
        false => (words.curve_own.to_owned(), (one.run.user_s + one.run.sys_s) / one.run.wall_s),
    };
    let percent = Some(100.0 * cpus / online).filter(|percent| percent.is_finite())?.min(100.0);
    let points = vec![(0.0, percent), (total, percent)];
    Some(ChartSeries { name, color: BLACK, form: SeriesForm::Level, points })
}

/// Panels of CPU, disk and network, without those of which nothing was used; their data are added to the cursor.
fn panels(
    pieces: &[(f64, &LoadCurves)],
    total: f64,
    places: usize,
    words: &ReportWords,
    cursor: &mut LoadCursor,
) -> Vec<ChartPanel> {
    let is_own = pieces.iter().all(|(_, curves)| has_own(curves));
    let cpu = if is_own { OWN_CPU } else { MACHINE_CPU };
    let groups = [
        (words.cpu_panel, "%", 1.0, Some(100.0), cpu),
        (words.disk_panel, "MB/s", 1e6, None, DISK),
        (words.operations_panel, "IOPS", 1.0, None, OPERATIONS),
        (words.network_panel, "MB/s", 1e6, None, NETWORK),
    ];
    let mut panels = Vec::new();
    for (title, unit, per, top, kinds) in groups {
        let mut series = Vec::new();
        for kind in kinds {
            let values = mean_values(pieces, kind.keys, total, places);
            let is_used = |values: &Vec<f64>| values.iter().any(|value| *value >= kind.least);
            let Some(values) = values.filter(is_used) else { continue };
            let values: Vec<f64> = values.into_iter().map(|value| value / per).collect();
            let name = (kind.name)(words).to_owned();
            let points = points(&values, total);
            series.push(ChartSeries {
                name: name.clone(),
                color: kind.color,
                form: kind.form,
                points,
            });
            cursor.names.push((name, unit));
            cursor.values.push(values.into_iter().map(round).collect());
        }
        if !series.is_empty() {
            panels.push(ChartPanel {
                title: title.to_owned(),
                unit: unit.to_owned(),
                top,
                height_px: Some(PANEL_PX),
                series,
                ..ChartPanel::default()
            });
        }
    }
    panels
}

/// Mean loads in words.
fn means(pieces: &[(f64, &LoadCurves)], words: &ReportWords) -> String {
    let end = pieces.iter().filter_map(|(begin, curves)| Some(begin + curves.t_s.last()?));
    let end = end.fold(0.0, f64::max);
    let mean = |keys: &[&str]| {
        let all = mean_values(pieces, keys, end, 1);
        all.and_then(|values| values.first().copied()).unwrap_or(0.0)
    };
    let cpus = |keys: &[&str]| percent(mean(keys) / 100.0);
    let rate = |keys: &[&str]| {
        let rate = mean(keys) / 1e6;
        if rate < 0.05 { "0".to_owned() } else { digits(rate) }
    };
    let [iowait, disk, net] = [cpus(&["iowait"]), rate(&["read", "write"]), rate(&["net"])];
    match pieces.iter().all(|(_, curves)| has_own(curves)) {
        true => {
            let own = [&["own_user", "own_system"][..], OWN_USER, &["own_system"]].map(cpus);
            let [own, user, system] = own;
            let all = cpus(&["user", "system"]);
            with(words.load_text_own, &[&own, &user, &system, &all, &iowait, &disk, &net])
        }
        false => {
            let [user, system] = [cpus(&["user"]), cpus(&["system"])];
            with(words.load_text, &[&user, &system, &iowait, &disk, &net])
        }
    }
}

/// Points at the ends of equal parts of the axis; the first value also holds at its start.
fn points(values: &[f64], total: f64) -> Vec<(f64, f64)> {
    let step = total / values.len().max(1) as f64;
    let first = values.first().map(|value| (0.0, *value));
    let rest = values.iter().enumerate().map(|(i, value)| ((i + 1) as f64 * step, *value));
    first.into_iter().chain(rest).collect()
}

/// Means over equal parts of the axis, over the time with data, of curves that are added up. `None` if no piece has
/// all of them.
fn mean_values(
    pieces: &[(f64, &LoadCurves)],
    keys: &[&str],
    total: f64,
    places: usize,
) -> Option<Vec<f64>> {
    let mut sums = vec![(0.0f64, 0.0f64); places.max(1)];
    let step = total / sums.len() as f64;
    let mut is_there = false;
    for (begin, curves) in pieces {
        let lists: Option<Vec<_>> = keys.iter().map(|key| curves.values.get(*key)).collect();
        let Some(lists) = lists else { continue };
        is_there = true;
        let mut from = *begin;
        for (at, t) in curves.t_s.iter().enumerate() {
            let Some(value) = lists.iter().map(|list| list.get(at)).sum::<Option<f64>>() else {
                break;
            };
            let to = begin + t;
            let is_interval = to.is_finite() && to > from && value.is_finite();
            if is_interval {
                let first = ((from / step) as usize).min(sums.len() - 1);
                let last = ((to / step) as usize).min(sums.len() - 1);
                for (place, sum) in sums.iter_mut().enumerate().take(last + 1).skip(first) {
                    let (left, right) = (place as f64 * step, (place + 1) as f64 * step);
                    let covered = (to.min(right) - from.max(left)).max(0.0);
                    *sum = (sum.0 + value * covered, sum.1 + covered);
                }
                from = to;
            }
        }
    }
    // Rounding errors at the edge of a gap are not data.
    let mean = |(sum, time): &(f64, f64)| if *time > step * 1e-6 { sum / time } else { 0.0 };
    is_there.then(|| sums.iter().map(mean).collect())
}

/// Rounds to four digits: enough for the cursor, and the page stays small.
fn round(value: f64) -> f64 {
    significant(value, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(values: &[f64]) -> LoadCurves {
        let t_s = (1..=values.len()).map(|i| i as f64 * 0.1).collect();
        let values = BTreeMap::from([("user".to_owned(), values.to_vec())]);
        LoadCurves { cell: 0, block: 0, t_s, values }
    }

    #[test]
    fn means_of_the_time_that_is_covered() {
        let (one, two) = (curves(&[10.0, 30.0]), curves(&[50.0]));
        let seen = |pieces: &[(f64, &LoadCurves)], total, places| {
            let values = mean_values(pieces, &["user"], total, places).unwrap();
            values.iter().map(|value| value.round()).collect::<Vec<_>>()
        };
        assert_eq!(seen(&[(0.0, &one)], 0.2, 2), [10.0, 30.0]);
        assert_eq!(seen(&[(0.0, &one)], 0.2, 1), [20.0]);
        // More points than intervals: each interval yields several equal points.
        assert_eq!(seen(&[(0.0, &one)], 0.2, 4), [10.0, 10.0, 30.0, 30.0]);
        // A gap between two runs belongs to neither.
        assert_eq!(seen(&[(0.0, &one), (0.3, &two)], 0.4, 4), [10.0, 30.0, 0.0, 50.0]);
        assert_eq!(mean_values(&[(0.0, &one)], &["read"], 0.2, 2), None);
        // Curves that are added up.
        assert_eq!(mean_values(&[(0.0, &one)], &["user", "user"], 0.2, 2), Some(vec![20.0, 60.0]));
        assert_eq!(mean_values(&[(0.0, &one)], &["user", "read"], 0.2, 2), None);
    }
}
