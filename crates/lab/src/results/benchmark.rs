//! Cells in hyperfine's form: one benchmark per command, with its mean.

use super::{Cell, Results, Run};
use crate::analysis::median;
use serde::Serialize;
use std::collections::BTreeMap;

/// A command as exported by hyperfine, in seconds and bytes. Field names are hyperfine's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct HyperfineBenchmark {
    pub(super) command: String,
    pub(super) mean: f64,
    /// Null for a single run.
    pub(super) stddev: Option<f64>,
    pub(super) median: f64,
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) times: Vec<f64>,
    pub(super) memory_usage_byte: Vec<u64>,
    pub(super) exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) parameters: BTreeMap<String, String>,
}

/// Benchmarks of all cells that have successful runs, without warm-ups and A/A controls.
pub(super) fn benchmarks(results: &Results) -> Vec<HyperfineBenchmark> {
    let cells = results.header.cells.iter().filter(|cell| cell.control_of.is_none());
    let of = |cell: &Cell| {
        let id = cell.id;
        let runs = results.runs.iter().filter(|run| run.cell == id && run.ok && !run.warmup);
        let found = benchmark(cell, &runs.collect::<Vec<_>>())?;
        Some(HyperfineBenchmark { command: name(results, cell), ..found })
    };
    cells.filter_map(of).collect()
}

/// hyperfine's name of a command: the given name, with parameters inserted. A series is such a name only if
/// commands were given on the command line.
fn name(results: &Results, cell: &Cell) -> String {
    if !results.header.text.is_empty() || cell.series.is_empty() {
        return cell.command.clone();
    }
    cell.parameters.iter().fold(cell.series.clone(), |name, (parameter, value)| {
        name.replace(&format!("{{{parameter}}}"), value)
    })
}

fn benchmark(cell: &Cell, runs: &[&Run]) -> Option<HyperfineBenchmark> {
    let times: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
    let median = median(&times)?;
    let count = times.len();
    let mean_of =
        |take: fn(&Run) -> f64| runs.iter().map(|run| take(run)).sum::<f64>() / count as f64;
    let mean = mean_of(|run| run.wall_s);
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    Some(HyperfineBenchmark {
        command: String::new(),
        mean,
        stddev: (count > 1).then(|| (squares / (count - 1) as f64).sqrt()),
        median,
        user: mean_of(|run| run.user_s),
        system: mean_of(|run| run.sys_s),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        times,
        memory_usage_byte: runs.iter().map(|run| run.rss_bytes_max).collect(),
        exit_codes: runs.iter().map(|run| run.exit_code).collect(),
        parameters: cell.parameters.clone(),
    })
}
