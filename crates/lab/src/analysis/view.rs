//! Results as analysis looks at them: cells with the runs that count, and what a run's work is.

use super::Lang;
use crate::results::{Cell, Results, Run};
use std::collections::BTreeMap;

/// Results, sorted.
pub(super) struct View<'a> {
    pub results: &'a Results,
    /// What sentences about them are said in.
    pub lang: Lang,
    /// In the order of their numbers.
    pub cells: Vec<&'a Cell>,
    /// Runs that count, with the value of the metric, by cell.
    counted: BTreeMap<u32, Vec<(&'a Run, f64)>>,
}

impl<'a> View<'a> {
    pub(super) fn new(results: &'a Results, lang: Lang) -> View<'a> {
        let mut cells: Vec<&Cell> = results.header.cells.iter().collect();
        cells.sort_by_key(|cell| cell.id);
        let mut view = View { results, lang, cells, counted: BTreeMap::new() };
        for run in results.runs.iter().filter(|run| run.ok && !run.warmup) {
            if let Some(value) = view.value(run) {
                view.counted.entry(run.cell).or_default().push((run, value));
            }
        }
        view
    }

    /// The campaign's metric of a run; `None` where it has none that is above 0.
    pub(super) fn value(&self, run: &Run) -> Option<f64> {
        let value = match self.metric() {
            "wall_s" => run.wall_s,
            "user_s" => run.user_s,
            "sys_s" => run.sys_s,
            metric => *run.metrics.get(metric)?,
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// Its name.
    pub(super) fn metric(&self) -> &'a str {
        let metric = self.results.header.metric.as_str();
        if metric.is_empty() { "wall_s" } else { metric }
    }

    /// More of it is better.
    pub(super) fn more_is_better(&self) -> bool {
        self.results.header.more_is_better
    }

    /// What is better of two values.
    pub(super) fn is_better(&self, a: f64, b: f64) -> bool {
        if self.more_is_better() { a > b } else { a < b }
    }

    /// Runs that count.
    pub(super) fn runs(&self, cell: u32) -> Vec<&'a Run> {
        self.counted.get(&cell).into_iter().flatten().map(|(run, _)| *run).collect()
    }

    /// Their values.
    pub(super) fn values(&self, cell: u32) -> Vec<f64> {
        self.counted.get(&cell).into_iter().flatten().map(|(_, value)| *value).collect()
    }

    /// Their blocks and values.
    pub(super) fn blocks(&self, cell: u32) -> Vec<(u32, f64)> {
        let counted = self.counted.get(&cell).into_iter().flatten();
        counted.map(|(run, value)| (run.block, *value)).collect()
    }

    /// The median of a number of its runs; `None` without any.
    pub(super) fn median_of(&self, cell: u32, of: impl Fn(&Run) -> f64) -> Option<f64> {
        let runs = self.counted.get(&cell)?;
        super::median(&runs.iter().map(|(run, _)| of(run)).collect::<Vec<f64>>())
    }

    /// A cell by its number.
    pub(super) fn cell(&self, id: u32) -> Option<&'a Cell> {
        self.cells.iter().find(|cell| cell.id == id).copied()
    }

    /// A seed for a number of this campaign.
    pub(super) fn seed(&self, of: u32, what: u32) -> u64 {
        let mixed = ((u64::from(what) << 32) | u64::from(of)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.results.header.seed ^ mixed
    }

    /// Bytes and files that a run of a cell moves: those of its data set, else what was found at the
    /// target. `None` for what is unknown or nothing.
    pub(super) fn moved(&self, cell: &Cell) -> (Option<f64>, Option<f64>) {
        let some = |value: f64| (value > 0.0).then_some(value);
        if let Some(data) = self.results.header.data.iter().find(|data| data.name == cell.data) {
            return (some(data.bytes as f64), some(data.files as f64));
        }
        let found = |of: &dyn Fn(&crate::results::Checked) -> u64| {
            let median =
                self.median_of(cell.id, |run| run.checked.as_ref().map_or(0.0, |c| of(c) as f64));
            median.and_then(some)
        };
        (found(&|checked| checked.bytes), found(&|checked| checked.files))
    }

    /// What a run of a cell does, and what is counted a second of that: bytes of large files, files
    /// where they are small, else runs.
    pub(super) fn work(&self, cell: &Cell) -> (f64, &'static str) {
        match self.moved(cell) {
            (Some(bytes), Some(files)) if bytes >= files * 1_048_576.0 => (bytes, "bytes/s"),
            (_, Some(files)) => (files, "files/s"),
            (Some(bytes), None) => (bytes, "bytes/s"),
            (None, None) => (1.0, "runs/s"),
        }
    }

    /// What a run of a cell does, where the metric is what it takes for that; `None` where the metric
    /// is a rate.
    pub(super) fn work_for(&self, cell: &Cell) -> Option<f64> {
        (!self.more_is_better()).then(|| match self.metric() {
            "wall_s" => self.work(cell).0,
            _ => 1.0,
        })
    }

    /// A value of the metric as a rate.
    pub(super) fn rate(&self, cell: &Cell, value: f64) -> f64 {
        self.work_for(cell).map_or(value, |work| work / value)
    }

    /// The unit of that.
    pub(super) fn rate_unit(&self, cell: &Cell) -> String {
        match (self.more_is_better(), self.metric()) {
            (true, metric) => metric.to_owned(),
            (false, "wall_s") => self.work(cell).1.to_owned(),
            (false, metric) => format!("1/{metric}"),
        }
    }

    /// What the swept number counts: `jobs`.
    pub(super) fn x_name(&self) -> &'a str {
        self.results.header.x_name.as_deref().unwrap_or("jobs")
    }

    /// It counts what is done at the same time, rather than sizes or limits.
    pub(super) fn is_parallel(&self) -> bool {
        const OTHERS: [&str; 7] = ["size", "byte", "block", "limit", "latency", "level", "scale"];
        let name = self.x_name().to_ascii_lowercase();
        name != "bs" && !OTHERS.iter().any(|other| name.contains(other))
    }

    /// `rsync with 8 jobs`, `rsync（8 ジョブ）`.
    pub(super) fn name(&self, cell: &Cell) -> String {
        match (cell.x.map(|x| self.of_x(x)), self.lang) {
            (Some(x), Lang::En) => format!("{} with {x}", cell.series),
            (Some(x), Lang::Ja) => format!("{}（{x}）", cell.series),
            (None, _) => cell.series.clone(),
        }
    }

    /// The swept number with what it counts: `8 jobs`.
    pub(super) fn of_x(&self, x: f64) -> String {
        super::say::of_x(x, self.x_name(), self.lang)
    }

    /// A value with its unit.
    pub(super) fn measured(&self, value: f64) -> String {
        super::say::measured(self.metric(), value)
    }

    /// Groups in the order of description.
    pub(super) fn groups(&self) -> Vec<&'a str> {
        let mut groups: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !groups.contains(&cell.group.as_str()) {
                groups.push(&cell.group);
            }
        }
        groups
    }
}
