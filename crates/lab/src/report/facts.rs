//! Queries over results and analysis that all formats share: lines of a group, best cell of a tool, labels.

use crate::analysis::statistics::SpeedRatio;
use crate::analysis::{Analysis, CellSummary, Comparison, Interval, Sweep};
use crate::distinct;
use crate::report::number::{MetricUnit, setting};
use crate::report::sentences::Sentences;
use crate::report::words::{Language, ReportWords};
use crate::results::hyperfine::TimeUnit;
use crate::results::{Cell, Results, ResultsHeader, Run};
use std::collections::{BTreeMap, BTreeSet};

/// Results with their analysis.
#[derive(Clone, Copy)]
pub(super) struct ReportFacts<'a> {
    pub(super) results: &'a Results,
    pub(super) analysis: &'a Analysis,
    /// Unit of times; `None` to choose one.
    pub(super) time: Option<TimeUnit>,
    /// True to have the best tool first.
    pub(super) is_sorted: bool,
}

/// Cells of one tool in one group, in ascending order of x, without controls.
pub(super) struct ToolLine<'a> {
    pub(super) series: &'a str,
    pub(super) cells: Vec<&'a Cell>,
    /// True for hakobu.
    pub(super) own: bool,
    pub(super) sweep: Option<&'a Sweep>,
}

impl ToolLine<'_> {
    /// x of the knee, where enough runs show it and more was tried.
    pub(super) fn marked_x(&self) -> Option<f64> {
        let knee = self.sweep?.knee.filter(|knee| !knee.at_edge && !knee.few_runs);
        knee.map(|knee| knee.x)
    }
}

impl<'a> ReportFacts<'a> {
    pub(super) fn header(&self) -> &'a ResultsHeader {
        &self.results.header
    }

    /// Title of the campaign.
    pub(super) fn title(&self) -> &'a str {
        let header = self.header();
        if header.title.is_empty() { &header.name } else { &header.title }
    }

    /// Title in a language.
    pub(super) fn title_in(&self, lang: Language) -> &'a str {
        let header = self.header();
        match lang {
            Language::Japanese if !header.title_ja.is_empty() => &header.title_ja,
            _ => self.title(),
        }
    }

    /// Question in a language.
    pub(super) fn question_in(&self, lang: Language) -> &'a str {
        let header = self.header();
        match lang {
            Language::Japanese if !header.question_ja.is_empty() => &header.question_ja,
            _ => &header.question,
        }
    }

    /// Unit of the metric, one for the whole report.
    pub(super) fn unit(&self) -> MetricUnit {
        let unit = MetricUnit::of(self.metric());
        match unit.name == TimeUnit::Seconds.sign() {
            true => self.time_of(|of| of.value),
            false => unit,
        }
    }

    /// Unit of real, user and system time, one for the whole report.
    pub(super) fn time_unit(&self) -> MetricUnit {
        self.time_of(|of| of.wall_s)
    }

    /// The requested unit of times, else milliseconds if no median reaches a second, else seconds.
    fn time_of(&self, value: fn(&CellSummary) -> Option<Interval>) -> MetricUnit {
        let longest = self.analysis.cells.iter().filter_map(value).map(|of| of.mid);
        let longest = longest.reduce(f64::max);
        MetricUnit::of_time(match self.time {
            Some(time) => time,
            None if longest.is_some_and(|longest| longest < 1.0) => TimeUnit::Milliseconds,
            None => TimeUnit::Seconds,
        })
    }

    /// Sentences about it.
    pub(super) fn say(&self, words: &'static ReportWords) -> Sentences<'a> {
        Sentences { words, header: self.header(), unit: self.unit() }
    }

    pub(super) fn cell(&self, id: u32) -> Option<&'a Cell> {
        self.header().cells.iter().find(|cell| cell.id == id)
    }

    pub(super) fn summary(&self, id: u32) -> Option<&'a CellSummary> {
        self.analysis.cells.iter().find(|summary| summary.cell == id)
    }

    /// Groups in the order of description.
    pub(super) fn groups(&self) -> Vec<&'a str> {
        distinct(self.header().cells.iter().map(|cell| cell.group.as_str()))
    }

    /// Lines of a group, in the order of description unless sorted.
    pub(super) fn lines(&self, group: &str) -> Vec<ToolLine<'a>> {
        let mut lines: Vec<ToolLine<'a>> = Vec::new();
        let cells = self.header().cells.iter();
        for cell in cells.filter(|cell| cell.group == group && cell.control_of.is_none()) {
            match lines.iter_mut().find(|line| line.series == cell.series) {
                Some(line) => line.cells.push(cell),
                None => lines.push(ToolLine {
                    series: &cell.series,
                    cells: vec![cell],
                    own: cell.own,
                    sweep: self
                        .analysis
                        .sweeps
                        .iter()
                        .find(|sweep| sweep.group == cell.group && sweep.series == cell.series),
                }),
            }
        }
        for line in &mut lines {
            line.cells.sort_by(|a, b| a.x.unwrap_or(0.0).total_cmp(&b.x.unwrap_or(0.0)));
        }
        if self.is_sorted {
            let turn = if self.header().more_is_better { -1.0 } else { 1.0 };
            let best = |line: &ToolLine<'a>| {
                let value = self.best(&line.cells).and_then(|cell| self.value(cell.id));
                value.map_or(f64::INFINITY, |value| turn * value.mid)
            };
            lines.sort_by(|a, b| best(a).total_cmp(&best(b)));
        }
        lines
    }

    /// Tools of all groups in the order of description; each one has a colour.
    pub(super) fn series(&self) -> Vec<&'a str> {
        distinct(self.header().cells.iter().map(|cell| cell.series.as_str()))
    }

    pub(super) fn value(&self, id: u32) -> Option<&'a Interval> {
        self.summary(id)?.value.as_ref()
    }

    /// Best of some cells by the metric.
    pub(super) fn best(&self, cells: &[&'a Cell]) -> Option<&'a Cell> {
        let turn = if self.header().more_is_better { -1.0 } else { 1.0 };
        let measured = cells.iter().filter_map(|cell| Some((*cell, self.value(cell.id)?.mid)));
        let measured = measured.filter(|(_, value)| value.is_finite());
        measured.min_by(|a, b| (turn * a.1).total_cmp(&(turn * b.1))).map(|(cell, _)| cell)
    }

    /// Parameters that distinguish a cell from others of its line: `jobs=16`.
    pub(super) fn setting(&self, cell: &Cell) -> String {
        let x_name = self.header().x_name.as_deref();
        let mut parts = Vec::new();
        if let (Some(x), Some(name)) = (cell.x, x_name) {
            parts.push(format!("{name}={}", setting(x)));
        }
        let varying = self.varying(&cell.group);
        let is_told = |words: String| cell.series.split(", ").skip(1).any(|part| part == words);
        for (name, value) in &cell.parameters {
            let told = is_told(format!("{} {value}", name.replace('_', " ")));
            if x_name != Some(name.as_str()) && varying.contains(name.as_str()) && !told {
                parts.push(format!("{name}={value}"));
            }
        }
        parts.join(", ")
    }

    /// Line and setting: `rsync, jobs=16`.
    pub(super) fn label(&self, cell: &Cell) -> String {
        let setting = self.setting(cell);
        if setting.is_empty() { cell.series.clone() } else { format!("{}, {setting}", cell.series) }
    }

    /// Parameters that differ between cells of a group.
    fn varying(&self, group: &str) -> BTreeSet<&'a str> {
        let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for cell in self.header().cells.iter().filter(|cell| cell.group == group) {
            for (name, value) in &cell.parameters {
                values.entry(name).or_default().insert(value);
            }
        }
        values.into_iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name).collect()
    }

    /// Speed of `cell` relative to the baseline of its group.
    pub(super) fn ratio_of(&self, cell: u32) -> Option<&'a SpeedRatio> {
        let all = self.analysis.comparisons.iter().chain(&self.analysis.relative);
        all.filter(|of| of.a == cell).map(|comparison| &comparison.ratio).next()
    }

    /// Baseline of a group.
    pub(super) fn reference(&self, group: &str) -> Option<u32> {
        let found = |of: &&Comparison| of.group == group;
        let mut all = self.analysis.comparisons.iter().chain(&self.analysis.relative);
        all.find(found).map(|comparison| comparison.b)
    }

    /// Runs of a cell that count.
    pub(super) fn counted(&self, cell: u32) -> impl Iterator<Item = &'a Run> + use<'a> {
        let runs = self.results.runs.iter();
        runs.filter(move |run| run.cell == cell && run.ok && !run.warmup)
    }

    /// Metric; wall clock seconds by default.
    pub(super) fn metric(&self) -> &'a str {
        let metric = self.header().metric.as_str();
        if metric.is_empty() { "wall_s" } else { metric }
    }

    /// Metric of a run.
    pub(super) fn measured(&self, run: &Run) -> Option<f64> {
        run.measured(self.metric())
    }

    /// True if any cell has an x.
    pub(super) fn has_x(&self, lines: &[ToolLine<'_>]) -> bool {
        lines.iter().any(|line| line.cells.iter().any(|cell| cell.x.is_some()))
    }
}
