//! Summary statistics of a cell.

use super::bootstrap::{deviation, interval, mean, quantile};
use super::limits;
use super::steady::steady;
use super::view::ResultsView;
use super::{CellSummary, median};
use crate::results::{Cell, Run};

/// Tukey's fence: a value this many interquartile ranges outside the quartiles is an outlier (Tukey 1977).
const FENCE: f64 = 1.5;
/// Fewer values have no meaningful quartiles.
const VALUES_MIN: usize = 4;
/// Curves that show the speed of a run; the first one that is not 0 throughout is used.
const MOVED: [&str; 4] = ["write", "net", "read", "iops"];

/// Computes all fields of the summary except `limiting`.
pub(super) fn summary(view: &ResultsView<'_>, cell: &Cell) -> CellSummary {
    let id = cell.id;
    let values = view.values(id);
    let (failed, problems) = failures(view, id);
    let of = |number: fn(&Run) -> f64| view.median_of(id, number).unwrap_or(0.0);
    let (user_s, sys_s) = (of(|run| run.user_s), of(|run| run.sys_s));
    let cpu_s = view.median_of(id, |run| run.user_s + run.sys_s);
    let (bytes, files) = view.moved(cell);
    let per = |amount: Option<f64>, unit: f64| {
        let cost = cpu_s? / (amount? / unit);
        cost.is_finite().then_some(cost)
    };
    let value = interval(&values, view.seed(id, 1));
    let wall_s = match view.metric() {
        "wall_s" => value,
        _ => {
            let walls: Vec<f64> = view.runs(id).iter().map(|run| run.wall_s).collect();
            interval(&walls, view.seed(id, 1))
        }
    };
    CellSummary {
        cell: id,
        runs: values.len(),
        failed,
        problems,
        value,
        mean: mean(&values),
        deviation: deviation(&values),
        min: values.iter().copied().reduce(f64::min),
        max: values.iter().copied().reduce(f64::max),
        outliers: outliers(&view.blocks(id)),
        wall_s,
        user_s,
        sys_s,
        rss_bytes: of(|run| run.rss_bytes_max as f64),
        concurrency: view
            .median_of(id, |run| run.metrics.get("concurrency").copied().unwrap_or(0.0))
            .filter(|concurrency| *concurrency > 0.0),
        cpu_s_per_gb: per(bytes, 1e9),
        cpu_s_per_1000_files: per(files, 1e3),
        load: limits::loads(&view.runs(id)),
        steady_s: steady_s(view, id),
        limiting: limits::LimitingResource::default(),
    }
}

/// Number of failed runs, and each distinct problem.
fn failures(view: &ResultsView<'_>, id: u32) -> (usize, Vec<String>) {
    let (mut failed, mut problems) = (0, Vec::new());
    for run in view.results.runs.iter().filter(|run| run.cell == id && !run.warmup) {
        let problem = match &run.problem {
            Some(problem) if !run.ok => problem.clone(),
            None if !run.ok => {
                view.lang.pick("it did not end well", "正常に終わりませんでした").to_owned()
            }
            _ if view.value(run).is_none() => {
                let words = view.lang.pick("it has no {}", "{} がありません");
                words.replace("{}", view.metric())
            }
            _ => continue,
        };
        failed += 1;
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    (failed, problems)
}

/// Blocks whose value is outside Tukey's fences.
pub(super) fn outliers(runs: &[(u32, f64)]) -> Vec<u32> {
    let values: Vec<f64> = runs.iter().map(|(_, value)| *value).collect();
    let quartiles = quantile(&values, 0.25).zip(quantile(&values, 0.75));
    let Some((low, high)) = quartiles.filter(|_| values.len() >= VALUES_MIN) else {
        return Vec::new();
    };
    let reach = FENCE * (high - low);
    // Values that differ only by rounding are not outliers.
    let reach = reach.max(1e-9 * high.abs());
    let out = runs.iter().filter(|(_, value)| *value < low - reach || *value > high + reach);
    out.map(|(block, _)| *block).collect()
}

/// Median time in seconds after which the cell's runs are steady. `None` if most runs never are.
fn steady_s(view: &ResultsView<'_>, id: u32) -> Option<f64> {
    let runs = view.runs(id);
    let counts = |block: u32| runs.iter().any(|run| run.block == block);
    let curves: Vec<_> =
        view.results.curves.iter().filter(|of| of.cell == id && counts(of.block)).collect();
    let from = curves.iter().filter_map(|curve| {
        let mut moved = MOVED.iter().filter_map(|name| {
            curve.values.get(*name).filter(|rates| rates.iter().sum::<f64>() > 0.0)
        });
        Some(steady(&curve.t_s, moved.next()?)?.from_s)
    });
    let from: Vec<f64> = from.collect();
    if 2 * from.len() <= curves.len() { None } else { median(&from) }
}
