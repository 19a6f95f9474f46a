//! Load charts: CPU, disk and network during runs, thinned to the resolution of the chart, with the values that the cursor
//! reads.

use crate::chart::{
    BLACK, BLUE, CYAN, Chart, ChartColor, ChartPanel, ChartSeries, GREEN, PURPLE, RED, SeriesForm,
    YELLOW,
};
use crate::escape;
use crate::report::facts::ReportFacts;
use crate::report::number::digits;
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

type LoadKinds = &'static [LoadCurveKind];

const fn kind(
    key: &'static str,
    unit: &'static str,
    color: ChartColor,
    form: SeriesForm,
    per: f64,
) -> LoadCurveKind {
    LoadCurveKind { key, unit, color, form, per }
}

const CPU: LoadKinds = &[
    kind("user", "%", BLUE, SeriesForm::Area, 1.0),
    kind("system", "%", RED, SeriesForm::Area, 1.0),
    kind("iowait", "%", YELLOW, SeriesForm::Area, 1.0),
    kind("steal", "%", PURPLE, SeriesForm::Area, 1.0),
    kind("busiest", "%", BLACK, SeriesForm::Line, 1.0),
];
const DISK: LoadKinds = &[
    kind("read", "MB/s", BLUE, SeriesForm::Line, 1e6),
    kind("write", "MB/s", RED, SeriesForm::Line, 1e6),
];
const OPERATIONS: LoadKinds = &[kind("iops", "IOPS", GREEN, SeriesForm::Line, 1.0)];
const NETWORK: LoadKinds = &[kind("net", "MB/s", CYAN, SeriesForm::Line, 1e6)];

/// Name of a curve.
fn curve_name(key: &str, words: &ReportWords) -> &'static str {
    match key {
        "user" => words.curve_user,
        "system" => words.curve_system,
        "iowait" => words.curve_iowait,
        "steal" => words.curve_steal,
        "busiest" => words.curve_busiest,
        "read" => words.curve_read,
        "write" => words.curve_write,
        "iops" => words.curve_iops,
        _ => words.curve_net,
    }
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
            format!("{}, {} {}", grouped_label(facts, one.cell), words.block, one.run.block);
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
    let mut caption = words.load_title.to_owned();
    if all.len() > shown.len() {
        let parts = [shown.len().to_string(), all.len().to_string()];
        caption = format!("{caption}. {}", with(words.load_some, &[&parts[0], &parts[1]]));
    }
    Some(LoadChart {
        chart: Chart {
            x_label: words.load_label.to_owned(),
            x: (0.0, total),
            panels,
            ..Chart::default()
        },
        description: chart_description(&cursor, shown.len(), words),
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
    let mut panels = panels(&[(0.0, one.curves)], total, places, words, &mut cursor);
    own_level(facts, one, total, words, &mut panels);
    let label = grouped_label(facts, one.cell);
    let took = format!("{} s", digits(one.run.wall_s));
    let caption = with(words.load_run, &[&label, &took]);
    LoadChart {
        chart: Chart {
            x_label: words.run_seconds.to_owned(),
            x: (0.0, total),
            panels,
            ..Chart::default()
        },
        description: chart_description(&cursor, 1, words),
        cursor,
        caption,
    }
}

/// Adds what the command itself used to the panel of CPUs: the curves are those of the whole machine.
fn own_level(
    facts: &ReportFacts<'_>,
    one: &RunWithCurves<'_>,
    total: f64,
    words: &ReportWords,
    panels: &mut [ChartPanel],
) {
    let cpus = facts.header().machine.cpus_online as f64;
    let used = 100.0 * (one.run.user_s + one.run.sys_s) / (one.run.wall_s * cpus);
    let Some(panel) = panels.first_mut().filter(|_| used.is_finite()) else { return };
    panel.series.push(ChartSeries {
        name: words.curve_own.to_owned(),
        color: GREEN,
        form: SeriesForm::Level,
        points: vec![(0.0, used.min(100.0)), (total, used.min(100.0))],
    });
}

/// Panels of CPU, disk and network; their data are added to the cursor.
fn panels(
    pieces: &[(f64, &LoadCurves)],
    total: f64,
    places: usize,
    words: &ReportWords,
    cursor: &mut LoadCursor,
) -> Vec<ChartPanel> {
    let groups = [
        (words.cpu_panel, "%", Some(100.0), CPU),
        (words.disk_panel, "MB/s", None, DISK),
        (words.operations_panel, "IOPS", None, OPERATIONS),
        (words.network_panel, "MB/s", None, NETWORK),
    ];
    let mut panels = Vec::new();
    for (title, unit, top, kinds) in groups {
        let mut series = Vec::new();
        for kind in kinds {
            let Some(values) = mean_values(pieces, kind, total, places) else { continue };
            // Omit steal time where it is zero, as on most machines.
            if kind.key == "steal" && values.iter().all(|value| *value < 0.5) {
                continue;
            }
            series.push(ChartSeries {
                name: curve_name(kind.key, words).to_owned(),
                color: kind.color,
                form: kind.form,
                points: points(&values, total),
            });
            cursor.names.push((curve_name(kind.key, words).to_owned(), kind.unit));
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

/// Description of the chart with mean values.
fn chart_description(cursor: &LoadCursor, runs: usize, words: &ReportWords) -> String {
    let mean = |name: &str| {
        let at = cursor.names.iter().position(|(known, _)| known == name);
        let values = at.and_then(|at| cursor.values.get(at)).filter(|values| !values.is_empty());
        values.map_or(0.0, |values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let [user, system, iowait] =
        [words.curve_user, words.curve_system, words.curve_iowait].map(|name| digits(mean(name)));
    let disk = digits(mean(words.curve_read) + mean(words.curve_write));
    let network = digits(mean(words.curve_net));
    let parts = [&runs.to_string(), &user, &system, &iowait, &disk, &network];
    with(words.load_text, &parts.map(String::as_str))
}

/// A curve of a load chart.
pub(super) struct LoadCurveKind {
    /// Key in the record.
    pub(super) key: &'static str,
    pub(super) unit: &'static str,
    pub(super) color: ChartColor,
    pub(super) form: SeriesForm,
    /// Divisor of its values.
    pub(super) per: f64,
}

/// Points at the ends of equal parts of the axis; the first value also holds at its start.
pub(super) fn points(values: &[f64], total: f64) -> Vec<(f64, f64)> {
    let step = total / values.len().max(1) as f64;
    let first = values.first().map(|value| (0.0, *value));
    let rest = values.iter().enumerate().map(|(i, value)| ((i + 1) as f64 * step, *value));
    first.into_iter().chain(rest).collect()
}

/// Means over equal parts of the axis, over the time with data. `None` if no curve has this key.
pub(super) fn mean_values(
    pieces: &[(f64, &LoadCurves)],
    kind: &LoadCurveKind,
    total: f64,
    places: usize,
) -> Option<Vec<f64>> {
    let mut sums = vec![(0.0f64, 0.0f64); places.max(1)];
    let step = total / sums.len() as f64;
    let mut is_there = false;
    for (begin, curves) in pieces {
        let Some(values) = curves.values.get(kind.key) else { continue };
        is_there = true;
        let mut from = *begin;
        for (t, value) in curves.t_s.iter().zip(values) {
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
    let mean =
        |(sum, time): &(f64, f64)| if *time > step * 1e-6 { sum / time / kind.per } else { 0.0 };
    is_there.then(|| sums.iter().map(mean).collect())
}

/// Rounds to four significant digits, enough for the cursor, to keep the page small.
pub(super) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let power = 10f64.powi(3 - value.abs().log10().floor().clamp(-300.0, 300.0) as i32);
    let rounded = (value * power).round() / power;
    if rounded.is_finite() { rounded } else { value }
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
        let kind = &CPU[0];
        let seen = |pieces: &[(f64, &LoadCurves)], total, places| {
            let values = mean_values(pieces, kind, total, places).unwrap();
            values.iter().map(|value| value.round()).collect::<Vec<_>>()
        };
        assert_eq!(seen(&[(0.0, &one)], 0.2, 2), [10.0, 30.0]);
        assert_eq!(seen(&[(0.0, &one)], 0.2, 1), [20.0]);
        // More points than intervals: each interval yields several equal points.
        assert_eq!(seen(&[(0.0, &one)], 0.2, 4), [10.0, 10.0, 30.0, 30.0]);
        // A gap between two runs belongs to neither.
        assert_eq!(seen(&[(0.0, &one), (0.3, &two)], 0.4, 4), [10.0, 30.0, 0.0, 50.0]);
        assert_eq!(mean_values(&[(0.0, &one)], &DISK[0], 0.2, 2), None);
    }

    #[test]
    fn four_digits() {
        assert_eq!(
            [0.0, 12.3456, 0.000_123_456, 98765.4].map(round),
            [0.0, 12.35, 0.000_123_5, 98770.0]
        );
    }
}
