//! Summary statistics of a cell, and the time from which its runs are steady.

use crate::analysis::limits::LimitingResource;
use crate::analysis::statistics::{deviation, interval, mean, median, quantile};
use crate::analysis::view::ResultsView;
use crate::analysis::{CellSummary, Interval, limits, statistics};
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
    let interval_of = |number: fn(&Run) -> f64, seed: u32| {
        let values: Vec<f64> = view.runs(id).iter().map(|run| number(run)).collect();
        // With zeros among them the interval is not one of ratios, and could reach below zero.
        let found = interval(&values, view.seed(id, seed))?;
        Some(Interval { low: found.low.max(0.0), ..found })
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
        user_interval_s: interval_of(|run| run.user_s, 7),
        sys_interval_s: interval_of(|run| run.sys_s, 8),
        rss_bytes: of(|run| run.rss_bytes_max as f64),
        concurrency: view
            .median_of(id, |run| run.metrics.get("concurrency").copied().unwrap_or(0.0))
            .filter(|concurrency| *concurrency > 0.0),
        cpu_s_per_gb: per(bytes, 1e9),
        cpu_s_per_1000_files: per(files, 1e3),
        load: limits::loads(&view.runs(id)),
        steady_s: steady_s(view, id),
        limiting: LimitingResource::default(),
    }
}

/// Number of failed runs, and each distinct problem.
fn failures(view: &ResultsView<'_>, id: u32) -> (usize, Vec<String>) {
    let (mut failed, mut problems) = (0, Vec::new());
    for run in view.results.runs.iter().filter(|run| run.cell == id && !run.warmup) {
        let problem = match &run.problem {
            Some(problem) if !run.ok => problem.clone(),
            None if !run.ok => "it did not end well".to_owned(),
            _ if view.value(run).is_none() => format!("it has no {}", view.metric()),
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

// Steady-state detection: the time from which a run's rate no longer rises or falls beyond noise.

/// Longer curves are reduced to this number of pieces.
const PIECES_MAX: usize = 200;
/// The steady tail needs this number of pieces, and a third of the run.
const PIECES_MIN: usize = 4;
/// Means within this share of each other count as equal.
const NEAR: f64 = 0.05;

/// Steady part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct SteadyPart {
    /// Index of its first value in the curve.
    pub from: usize,
    /// Start of that interval, in seconds since the start of the run.
    pub from_s: f64,
    /// Mean rate from there to the end, in the unit of the curve.
    pub rate: f64,
}

/// Finds the steady part of a curve. Takes the ends of the intervals, in seconds since the start of the run,
/// and the rate in each. `None` if the curve is too short, has no rate above 0, contains NaN or never becomes
/// steady: its mean is then not meaningful.
///
/// The steady part is the longest tail of at least a third of the curve whose halves have the same mean and
/// whose beginning resembles the rest: within 5 %, or within the noise between neighbouring values.
pub fn steady(t_s: &[f64], rates: &[f64]) -> Option<SteadyPart> {
    let count = t_s.len().min(rates.len());
    let (t_s, rates) = (t_s.get(..count)?, rates.get(..count)?);
    let numbers = t_s.iter().chain(rates).all(|value| value.is_finite());
    if !numbers || rates.iter().all(|rate| *rate <= 0.0) {
        return None;
    }
    let size = count.div_ceil(PIECES_MAX).max(1);
    let pieces: Vec<f64> = rates.chunks(size).map(mean_rate).collect();
    let noise = rate_noise(&pieces);
    let shortest = PIECES_MIN.max(pieces.len().div_ceil(3));
    let at = (0..=pieces.len().checked_sub(shortest)?)
        .find(|at| pieces.get(*at..).is_some_and(|tail| is_steady(tail, noise)))?;
    let from = at * size;
    let from_s = from.checked_sub(1).and_then(|before| t_s.get(before)).copied().unwrap_or(0.0);
    let rate = mean_rate(rates.get(from..)?);
    (rate.is_finite() && rate > 0.0).then_some(SteadyPart { from, from_s, rate })
}

fn is_steady(tail: &[f64], noise: f64) -> bool {
    let count = tail.len() as f64;
    let all = mean_rate(tail);
    let (a, b) = tail.split_at(tail.len() / 2);
    // Two standard errors of the difference of the means of two halves.
    let by_chance = 2.0 * noise * 2.0 / count.sqrt();
    let halves = (mean_rate(a) - mean_rate(b)).abs() <= by_chance.max(NEAR * all.abs());
    let head = tail.get(..(tail.len() / 10).clamp(1, 5)).unwrap_or(tail);
    let by_chance = 3.0 * noise / (head.len() as f64).sqrt();
    halves && (mean_rate(head) - all).abs() <= by_chance.max(2.0 * NEAR * all.abs())
}

/// Standard deviation around a slowly varying curve, from differences of neighbours: their median is hardly
/// affected by a ramp or a step (1.4826 converts a median absolute deviation to a standard deviation).
fn rate_noise(values: &[f64]) -> f64 {
    let steps: Vec<f64> =
        values.windows(2).filter_map(|pair| Some((pair.last()? - pair.first()?).abs())).collect();
    statistics::median(&steps).unwrap_or(0.0) * 1.4826 / std::f64::consts::SQRT_2
}

fn mean_rate(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    values.iter().map(|value| value / count).sum()
}
