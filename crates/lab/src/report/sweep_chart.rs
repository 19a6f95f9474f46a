//! Chart of a group: its tools over the swept number, with intervals, knee and fit, and tools that do not depend on it as
//! dashed lines; or its settings side by side, if nothing is swept.

use crate::chart::{ALL, AxisScale, BLACK, Chart, ChartColor, ChartPanel, ChartSeries, SeriesForm};
use crate::report::facts::{ReportFacts, ToolLine};
use crate::report::number::setting;
use crate::report::tables;
use crate::report::words::{ReportWords, with};
use crate::results::Cell;

/// Height of the panel in pixels.
const HEIGHT_PX: u32 = 340;
/// Values with a larger ratio are drawn on a logarithmic scale.
const SPREAD: f64 = 30.0;
/// Steps of the swept number with at least this ratio count as multiplication.
const DOUBLING: f64 = 1.5;
/// Points of a fitted curve.
const FIT_POINTS: u32 = 80;

/// Forms of markers, by which tools are told apart without their colours.
const FORMS: [SeriesForm; 4] =
    [SeriesForm::Dots, SeriesForm::Triangles, SeriesForm::Squares, SeriesForm::Crosses];

/// Colour and form of the n-th tool. The numbers of both have a common multiple of twelve, and of two tools with
/// the same form at most one has the other's colour.
pub(super) fn look(number: usize) -> (ChartColor, SeriesForm) {
    (ALL[number % ALL.len()], FORMS[(number + number / 12) % FORMS.len()])
}

/// A chart with its description.
pub(super) struct DescribedChart {
    pub(super) chart: Chart,
    /// Name of the chart, which is not drawn: the page has it as a heading.
    pub(super) title: String,
    /// What it shows, for the name of a file.
    pub(super) name: String,
    pub(super) description: String,
    /// How to read it.
    pub(super) legend: String,
}

/// Chart of a group. `None` if nothing was measured.
pub(super) fn picture(
    facts: &ReportFacts<'_>,
    group: &str,
    words: &'static ReportWords,
) -> Option<DescribedChart> {
    let lines = facts.lines(group);
    let measured = lines.iter().flat_map(|line| &line.cells);
    if !measured.into_iter().any(|cell| display_interval(facts, cell).is_some()) {
        return None;
    }
    let is_swept = facts.has_x(&lines);
    let chart = if is_swept { swept(facts, &lines, words) } else { settings(facts, &lines, words) };
    let metric = y_label(facts, words);
    let x_name = words.swept(facts.header().x_name.as_deref().unwrap_or("x"));
    let said = text_description(facts, &lines, words);
    let (description, legend) = match is_swept {
        true => {
            (with(words.sweep_text, &[&metric, x_name, &said]), with(words.sweep_legend, &[x_name]))
        }
        false => (with(words.settings_text, &[&metric, &said]), words.settings_legend.to_owned()),
    };
    let (title, name) = (facts.title_in(words.lang), &facts.header().name);
    let (title, name) = match facts.groups().len() {
        0 | 1 => (title.to_owned(), name.clone()),
        _ => (format!("{title}: {}", words.group(group)), format!("{name} {group}")),
    };
    Some(DescribedChart { chart, title, name, description, legend })
}

fn y_label(facts: &ReportFacts<'_>, words: &'static ReportWords) -> String {
    words.in_unit(words.metric(facts.metric()), facts.unit().name)
}

/// Description for readers who cannot see the chart.
fn text_description(
    facts: &ReportFacts<'_>,
    lines: &[ToolLine<'_>],
    words: &'static ReportWords,
) -> String {
    let unit = facts.unit();
    let each = lines.iter().filter_map(|line| {
        let values = line.cells.iter().filter_map(|cell| facts.value(cell.id));
        let values: Vec<f64> = values.map(|value| value.mid).collect();
        let (first, last) = (values.first()?, values.last()?);
        Some(match values.len() {
            1 => format!("{} {}", line.series, unit.text(*first)),
            _ => with(words.from_to, &[line.series, &unit.text(*first), &unit.text(*last)]),
        })
    });
    each.collect::<Vec<_>>().join("; ")
}

/// Median and interval of a cell, in the display unit.
fn display_interval(facts: &ReportFacts<'_>, cell: &Cell) -> Option<(f64, f64, f64)> {
    let value = facts.value(cell.id)?;
    let [low, mid, high] = [value.low, value.mid, value.high].map(|of| facts.unit().scaled(of));
    [low, mid, high].iter().all(|of| of.is_finite()).then_some((low, mid, high))
}

fn swept(facts: &ReportFacts<'_>, lines: &[ToolLine<'_>], words: &'static ReportWords) -> Chart {
    let names = facts.series();
    let mids =
        lines.iter().flat_map(|line| &line.cells).filter_map(|cell| display_interval(facts, cell));
    let values: Vec<f64> = mids.map(|(_, mid, _)| mid).collect();
    let y_scale = scale_of(&values);
    let places = tables::places(lines);
    let scale = doubling(&places);
    let axis = ends(&places, scale);
    let mut series = Vec::new();
    let mut knees = Vec::new();
    for line in lines {
        let at = names.iter().position(|name| *name == line.series).unwrap_or(0);
        let (color, form) = look(at);
        let points =
            line.cells.iter().filter_map(|cell| Some((cell.x?, display_interval(facts, cell)?)));
        let points: Vec<(f64, (f64, f64, f64))> =
            points.filter(|(x, (_, mid, _))| fits(*x, *mid, y_scale)).collect();
        if let Some(curve) = fit_points(facts, line, &points) {
            series.push(series_without_name(color, SeriesForm::Thin, curve));
        }
        let bars = points.iter().flat_map(|(x, of)| bar(*x, *of, y_scale)).collect();
        if !points.is_empty() {
            series.push(series_without_name(color, SeriesForm::Intervals, bars));
        }
        let knee = line.marked_x();
        let at_knee = points.iter().filter(|(x, _)| knee == Some(*x));
        knees.extend(at_knee.map(|(x, (_, mid, _))| (*x, *mid)));
        let points: Vec<(f64, f64)> = points.iter().map(|(x, (_, mid, _))| (*x, *mid)).collect();
        // A tool that does not depend on x is a horizontal line.
        let levels = line.cells.iter().filter(|cell| cell.x.is_none());
        let levels = levels.filter_map(|cell| display_interval(facts, cell));
        let levels: Vec<(f64, f64, f64)> =
            levels.filter(|(_, mid, _)| fits(axis.0, *mid, y_scale)).collect();
        let mut name = line.series.to_owned();
        if !points.is_empty() {
            series.push(ChartSeries { name: std::mem::take(&mut name), color, form, points });
        }
        for (_, mid, _) in levels {
            let name = std::mem::take(&mut name);
            let points = vec![(axis.0, mid), (axis.1, mid)];
            series.push(ChartSeries { name, color, form: SeriesForm::Level, points });
        }
    }
    if !knees.is_empty() {
        knees.sort_by(|a, b| a.0.total_cmp(&b.0));
        let name = words.knee.to_owned();
        series.push(ChartSeries { name, color: BLACK, form: SeriesForm::Rings, points: knees });
    }
    let x_name = words.swept(facts.header().x_name.as_deref().unwrap_or("x"));
    let unit = y_label(facts, words);
    let panels = vec![panel(unit, y_scale, series)];
    let x_label = match scale {
        AxisScale::Logarithmic => with(words.logarithmic, &[x_name]),
        AxisScale::Linear => x_name.to_owned(),
    };
    Chart {
        x_label,
        x: axis,
        scale,
        ticks: places.iter().map(|x| (*x, setting(*x))).collect(),
        panels,
        ..Chart::default()
    }
}

/// Series that is not in the legend.
fn series_without_name(
    color: ChartColor,
    form: SeriesForm,
    points: Vec<(f64, f64)>,
) -> ChartSeries {
    ChartSeries { name: String::new(), color, form, points }
}

/// Ends of an interval at x. Logarithmic axes need a positive lower end.
fn bar(x: f64, (low, mid, high): (f64, f64, f64), scale: AxisScale) -> [(f64, f64); 2] {
    let low = if scale == AxisScale::Logarithmic { low.max(mid / 10.0) } else { low };
    [(x, low), (x, high)]
}

/// Panel of a group. The page says which one it is.
fn panel(unit: String, scale: AxisScale, series: Vec<ChartSeries>) -> ChartPanel {
    ChartPanel { unit, scale, height_px: Some(HEIGHT_PX), series, ..ChartPanel::default() }
}

fn fits(x: f64, y: f64, scale: AxisScale) -> bool {
    x.is_finite() && (scale == AxisScale::Linear || y > 0.0)
}

/// Fitted curve between the first and the last point.
fn fit_points(
    facts: &ReportFacts<'_>,
    line: &ToolLine<'_>,
    points: &[(f64, (f64, f64, f64))],
) -> Option<Vec<(f64, f64)>> {
    let fit = line.sweep?.fit.as_ref()?;
    let (first, last) = (points.first()?.0, points.last()?.0);
    if first <= 0.0 || last <= first {
        return None;
    }
    let step = (last / first).ln() / f64::from(FIT_POINTS);
    let xs = (0..=FIT_POINTS).map(|i| first * (step * f64::from(i)).exp());
    let curve: Vec<(f64, f64)> = xs.map(|x| (x, facts.unit().scaled(fit.value(x)))).collect();
    curve.iter().all(|(_, y)| y.is_finite() && *y > 0.0).then_some(curve)
}

/// Chart of settings side by side, if nothing is swept.
fn settings(facts: &ReportFacts<'_>, lines: &[ToolLine<'_>], words: &'static ReportWords) -> Chart {
    let names = facts.series();
    let cells = lines.iter().flat_map(|line| &line.cells);
    let cells: Vec<(&Cell, (f64, f64, f64))> =
        cells.filter_map(|cell| Some((*cell, display_interval(facts, cell)?))).collect();
    let y_scale = scale_of(&cells.iter().map(|(_, (_, mid, _))| *mid).collect::<Vec<_>>());
    let (mut series, mut ticks) = (Vec::new(), Vec::new());
    for (i, (cell, of)) in cells.iter().enumerate() {
        let place = (i + 1) as f64;
        let at = names.iter().position(|name| *name == cell.series).unwrap_or(0);
        let (color, form) = look(at);
        series.push(series_without_name(
            color,
            SeriesForm::Intervals,
            bar(place, *of, y_scale).to_vec(),
        ));
        series.push(series_without_name(color, form, vec![(place, of.1)]));
        ticks.push((place, facts.label(cell)));
    }
    Chart {
        x_label: words.setting.to_owned(),
        x: (0.5, cells.len() as f64 + 0.5),
        scale: AxisScale::Linear,
        ticks,
        panels: vec![panel(y_label(facts, words), y_scale, series)],
        ..Chart::default()
    }
}

/// Scale for values: logarithmic if they are far apart.
fn scale_of(values: &[f64]) -> AxisScale {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(0.0, f64::max);
    let is_far = smallest > 0.0 && largest / smallest >= SPREAD;
    if is_far { AxisScale::Logarithmic } else { AxisScale::Linear }
}

/// Scale of x: logarithmic if values are multiplied from step to step.
fn doubling(places: &[f64]) -> AxisScale {
    let mut steps: Vec<f64> = places.windows(2).map(|pair| pair[1] / pair[0]).collect();
    steps.sort_by(f64::total_cmp);
    let middle = steps.get(steps.len().saturating_sub(1) / 2).copied().unwrap_or(1.0);
    let all_above_nought = places.iter().all(|x| *x > 0.0);
    if all_above_nought && middle >= DOUBLING { AxisScale::Logarithmic } else { AxisScale::Linear }
}

/// Range of the axis, with a small margin.
fn ends(places: &[f64], scale: AxisScale) -> (f64, f64) {
    let (first, last) = match (places.first(), places.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => return (0.0, 1.0),
    };
    match scale {
        AxisScale::Logarithmic => {
            let room = (last / first).powf(0.04).max(1.05);
            (first / room, last * room)
        }
        AxisScale::Linear => {
            let room = ((last - first) * 0.04).max(first.abs() * 0.05).max(1e-6);
            (first - room, last + room)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales() {
        assert_eq!(doubling(&[1.0, 4.0, 8.0, 16.0, 32.0]), AxisScale::Logarithmic);
        assert_eq!(doubling(&[10.0, 16.0, 32.0, 64.0]), AxisScale::Logarithmic);
        assert_eq!(doubling(&[1.0, 2.0, 3.0, 4.0, 5.0]), AxisScale::Linear);
        assert_eq!(doubling(&[0.0, 1.0, 2.0, 4.0]), AxisScale::Linear);
        assert_eq!(doubling(&[3.0]), AxisScale::Linear);
        assert_eq!(scale_of(&[0.03, 114.0]), AxisScale::Logarithmic);
        assert_eq!(scale_of(&[6.0, 114.0]), AxisScale::Linear);
        assert_eq!(scale_of(&[0.0, 114.0]), AxisScale::Linear);
        let (low, high) = ends(&[1.0, 32.0], AxisScale::Logarithmic);
        assert!(low > 0.8 && low < 1.0 && high > 32.0 && high < 40.0);
        let (low, high) = ends(&[5.0], AxisScale::Linear);
        assert!(low < 5.0 && high > 5.0);
    }

    #[test]
    fn looks_are_different() {
        let looks: Vec<_> = (0..12).map(look).collect();
        for (i, one) in looks.iter().enumerate() {
            assert!(!looks[..i].contains(one));
        }
    }
}
