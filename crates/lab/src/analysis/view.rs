//! Index of results for the analysis: cells, runs that count, and the work of a run.

use crate::analysis::statistics;
use crate::distinct;
use crate::results::{Cell, CheckedFiles, Results, Run};
use std::collections::BTreeMap;

/// Results, sorted and indexed.
pub(super) struct ResultsView<'a> {
    pub results: &'a Results,
    /// Ordered by id.
    pub cells: Vec<&'a Cell>,
    /// Runs that count with their metric, by cell.
    counted: BTreeMap<u32, Vec<(&'a Run, f64)>>,
}

impl<'a> ResultsView<'a> {
    pub(super) fn new(results: &'a Results) -> ResultsView<'a> {
        let mut cells: Vec<&Cell> = results.header.cells.iter().collect();
        cells.sort_by_key(|cell| cell.id);
        let mut view = ResultsView { results, cells, counted: BTreeMap::new() };
        for run in results.runs.iter().filter(|run| run.ok && !run.warmup) {
            if let Some(value) = view.value(run) {
                view.counted.entry(run.cell).or_default().push((run, value));
            }
        }
        view
    }

    /// Metric of a run; `None` unless it is above 0.
    pub(super) fn value(&self, run: &Run) -> Option<f64> {
        let value = run.measured(self.metric())?;
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// Name of the metric.
    pub(super) fn metric(&self) -> &'a str {
        let metric = self.results.header.metric.as_str();
        if metric.is_empty() { "wall_s" } else { metric }
    }

    /// True if higher values of the metric are better.
    pub(super) fn more_is_better(&self) -> bool {
        self.results.header.more_is_better
    }

    /// True if `a` is better than `b`.
    pub(super) fn is_better(&self, a: f64, b: f64) -> bool {
        if self.more_is_better() { a > b } else { a < b }
    }

    /// Runs of a cell that count.
    pub(super) fn runs(&self, cell: u32) -> Vec<&'a Run> {
        self.counted.get(&cell).into_iter().flatten().map(|(run, _)| *run).collect()
    }

    /// Metric of each run of a cell.
    pub(super) fn values(&self, cell: u32) -> Vec<f64> {
        self.counted.get(&cell).into_iter().flatten().map(|(_, value)| *value).collect()
    }

    /// Block and metric of each run of a cell.
    pub(super) fn blocks(&self, cell: u32) -> Vec<(u32, f64)> {
        let counted = self.counted.get(&cell).into_iter().flatten();
        counted.map(|(run, value)| (run.block, *value)).collect()
    }

    /// Median over the runs of a cell; `None` without runs.
    pub(super) fn median_of(&self, cell: u32, of: impl Fn(&Run) -> f64) -> Option<f64> {
        let runs = self.counted.get(&cell)?;
        statistics::median(&runs.iter().map(|(run, _)| of(run)).collect::<Vec<f64>>())
    }

    /// Cell by id.
    pub(super) fn cell(&self, id: u32) -> Option<&'a Cell> {
        self.cells.iter().find(|cell| cell.id == id).copied()
    }

    /// Cells other than A/A controls.
    pub(super) fn settings(&self) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().copied().filter(|cell| cell.control_of.is_none())
    }

    /// Seed for a computation, derived from the campaign's seed.
    pub(super) fn seed(&self, of: u32, what: u32) -> u64 {
        let mixed = ((u64::from(what) << 32) | u64::from(of)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.results.header.seed ^ mixed
    }

    /// Bytes and files moved by a run of a cell: of its data set, else as counted at the target. `None` if
    /// unknown or 0.
    pub(super) fn moved(&self, cell: &Cell) -> (Option<f64>, Option<f64>) {
        let some = |value: f64| (value > 0.0).then_some(value);
        if let Some(data) = self.results.header.data.iter().find(|data| data.name == cell.data) {
            return (some(data.bytes as f64), some(data.files as f64));
        }
        let found = |of: &dyn Fn(&CheckedFiles) -> u64| {
            let median =
                self.median_of(cell.id, |run| run.checked.as_ref().map_or(0.0, |c| of(c) as f64));
            median.and_then(some)
        };
        (found(&|checked| checked.bytes), found(&|checked| checked.files))
    }

    /// Work of a run of a cell and its unit: bytes for large files, files for small ones, else runs.
    pub(super) fn work(&self, cell: &Cell) -> (f64, &'static str) {
        match self.moved(cell) {
            (Some(bytes), Some(files)) if bytes >= files * 1_048_576.0 => (bytes, "bytes/s"),
            (_, Some(files)) => (files, "files/s"),
            (Some(bytes), None) => (bytes, "bytes/s"),
            (None, None) => (1.0, "runs/s"),
        }
    }

    /// Work of a run of a cell, if the metric is a time; `None` if it is a rate.
    pub(super) fn work_for(&self, cell: &Cell) -> Option<f64> {
        (!self.more_is_better()).then(|| match self.metric() {
            "wall_s" => self.work(cell).0,
            _ => 1.0,
        })
    }

    /// Converts a value of the metric to a rate.
    pub(super) fn rate(&self, cell: &Cell, value: f64) -> f64 {
        self.work_for(cell).map_or(value, |work| work / value)
    }

    /// Unit of [`ResultsView::rate`].
    pub(super) fn rate_unit(&self, cell: &Cell) -> String {
        match (self.more_is_better(), self.metric()) {
            (true, metric) => metric.to_owned(),
            (false, "wall_s") => self.work(cell).1.to_owned(),
            (false, metric) => format!("1/{metric}"),
        }
    }

    /// Unit of the swept number: `jobs`.
    pub(super) fn x_name(&self) -> &'a str {
        self.results.header.x_name.as_deref().unwrap_or("jobs")
    }

    /// True if the swept number is a degree of parallelism, not a size or limit.
    pub(super) fn is_parallel(&self) -> bool {
        const OTHERS: [&str; 7] = ["size", "byte", "block", "limit", "latency", "level", "scale"];
        let name = self.x_name().to_ascii_lowercase();
        name != "bs" && !OTHERS.iter().any(|other| name.contains(other))
    }

    /// Groups in the order of description.
    pub(super) fn groups(&self) -> Vec<&'a str> {
        distinct(self.cells.iter().map(|cell| cell.group.as_str()))
    }
}
