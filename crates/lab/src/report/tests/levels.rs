//! Tools that do not depend on x: horizontal lines, one table row, and a common range for measured and
//! published values.

use super::fixture::{PLAUSIBLE, part, results};
use crate::chart::{Chart, ChartSeries, SeriesForm};
use crate::report::sweep::picture;
use crate::report::words::Lang;
use crate::report::{ReportFormat, ReportPart, render};
use crate::results::PublishedFigure;

/// cp has one setting without jobs, and so have its published figures.
fn with_level() -> ReportPart {
    let mut results = results(&PLAUSIBLE);
    let is_level = |series: &str| series == "cp";
    let first = results.header.cells.iter().find(|cell| is_level(&cell.series)).unwrap().id;
    results.header.cells.retain(|cell| !is_level(&cell.series) || cell.id == first);
    results.runs.retain(|run| results.header.cells.iter().any(|cell| cell.id == run.cell));
    for cell in results.header.cells.iter_mut().filter(|cell| cell.id == first) {
        cell.x = None;
        cell.parameters.clear();
    }
    results.header.published.push(PublishedFigure {
        machine: "m5.large".into(),
        series: "cp".into(),
        group: None,
        x: None,
        value: 9000.0,
    });
    part(results)
}

fn chart(part: &ReportPart) -> Chart {
    picture(&part.facts(), "small files", Lang::En.words()).unwrap().chart
}

#[test]
fn they_are_level_lines_with_their_interval_inside_of_the_axis() {
    let part = with_level();
    let chart = chart(&part);
    let [ours, published] = &chart.panels[..] else { panic!("{:?}", chart.panels.len()) };
    for panel in [ours, published] {
        let is_cp = |series: &&ChartSeries| series.name.ends_with("cp");
        let cp = panel.series.iter().find(is_cp).expect("a line of cp");
        let [(from, a), (to, b)] = cp.points[..] else { panic!("{:?}", cp.points) };
        assert_eq!(((from, to), a), (chart.x, b));
    }
    let level = ours.series.iter().find(|series| series.name == "cp").unwrap();
    let interval = ours.series.iter().find(|series| {
        series.form == SeriesForm::Intervals
            && series.color == level.color
            && series.points.len() == 4
    });
    let bars = &interval.expect("its interval").points;
    assert!(bars[0].1 < level.points[0].1 && level.points[0].1 < bars[1].1, "{bars:?}");
    assert_eq!((bars[0].0, bars[2].0), chart.x);
    // Without x there is no knee.
    assert!(!part.analysis.sweeps.iter().any(|sweep| sweep.series == "cp"));
}

#[test]
fn published_figures_have_the_range_of_ours() {
    let svg = chart(&with_level()).svg().unwrap();
    // The published value is 9,000 s, the largest measured one 115 s: both panels end above 9,000.
    assert_eq!(svg.matches("\n10,000\n").count(), 2, "{svg}");
}

#[test]
fn they_have_one_row_of_the_table() {
    let text = render(&[with_level()], ReportFormat::Markdown, Lang::En).unwrap();
    let row = text.lines().find(|line| line.starts_with("| any | ")).expect("a row for all values");
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    assert_eq!(cells.iter().filter(|text| **text == "–").count(), 4, "{row}");
    assert!(cells[3].starts_with("5") || cells[3].starts_with("6"), "{row}");
}
