//! Analysis of results. All functions are pure; random numbers come from fixed seeds, so that equal results give equal
//! conclusions. It returns numbers and names, never sentences. This file holds the types that reports read, and the order of the steps.

pub(crate) mod caveats;
pub mod compare;
pub(crate) mod fit;
pub(crate) mod limits;
pub mod prices;
pub(crate) mod proofs;
pub(crate) mod quantity;
pub mod ranking;
pub mod statistics;
mod summary;
mod sweeps;
#[cfg(test)]
mod tests;
pub(crate) mod verdict;
mod view;

use crate::analysis::caveats::Caveat;
use crate::analysis::fit::CurveFit;
use crate::analysis::limits::{LimitingResource, SweepStretch};
use crate::analysis::proofs::Proof;
use crate::analysis::ranking::BaselineGain;
use crate::analysis::statistics::SpeedRatio;
use crate::analysis::sweeps::Knee;
use crate::analysis::verdict::Finding;
use crate::analysis::view::ResultsView;
use crate::results::Results;
use std::collections::BTreeMap;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Median or fitted value.
    pub mid: f64,
    /// Upper end.
    pub high: f64,
}

/// Summary statistics of a cell, without failed runs and warm-ups.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CellSummary {
    /// Id of the cell.
    pub cell: u32,
    /// Number of runs that count.
    pub runs: usize,
    /// Number of failed runs.
    pub failed: usize,
    /// Distinct problems of failed runs.
    pub problems: Vec<String>,
    /// Median of the campaign's metric with interval. `None` without a run that counts.
    pub value: Option<Interval>,
    /// Mean of the metric, for comparison with published studies.
    pub mean: Option<f64>,
    /// Standard deviation of the metric.
    pub deviation: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Blocks with outliers (beyond 1.5 interquartile ranges). They are not excluded.
    pub outliers: Vec<u32>,
    /// Wall clock, seconds.
    pub wall_s: Option<Interval>,
    /// CPU time in user space, median, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, median, seconds.
    pub sys_s: f64,
    /// The same with intervals; `None` without runs.
    pub user_interval_s: Option<Interval>,
    /// See [`CellSummary::user_interval_s`].
    pub sys_interval_s: Option<Interval>,
    /// Peak memory, median, bytes.
    pub rss_bytes: f64,
    /// Effective concurrency: sum of the times of items ÷ time of the run, median. `None` if item times are
    /// unknown.
    pub concurrency: Option<f64>,
    /// CPU seconds per 10⁹ bytes moved; `None` without bytes.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU seconds per 1,000 files moved; `None` without files.
    pub cpu_s_per_1000_files: Option<f64>,
    /// Medians of the mean loads of its runs.
    pub load: BTreeMap<String, f64>,
    /// Median time in seconds after which its runs are steady (see [`steady()`]). `None` without curves, or
    /// if most of its runs never are.
    pub steady_s: Option<f64>,
    /// Limiting resource.
    #[serde(skip)]
    pub limiting: LimitingResource,
}

/// One tool over the swept number.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Sweep {
    /// Group.
    pub group: String,
    /// Tool.
    pub series: String,
    /// Cells in ascending order of the swept number.
    pub cells: Vec<u32>,
    /// Knee of the curve.
    pub knee: Option<Knee>,
    /// Fitted curve.
    pub fit: Option<CurveFit>,
    /// Unit of the rates of the fit: `files/s`, `bytes/s`, `runs/s`, or the metric.
    pub rate_unit: String,
    /// Limiting resources along the sweep.
    #[serde(skip)]
    pub stretches: Vec<SweepStretch>,
}

/// Comparison of two cells.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// Group.
    pub group: String,
    /// First cell.
    pub a: u32,
    /// Second cell.
    pub b: u32,
    /// Speed of `a` relative to `b`.
    pub ratio: SpeedRatio,
}

/// Conclusions from a campaign.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Analysis {
    /// One to four conclusions, the most important first.
    #[serde(skip)]
    pub verdict: Vec<Finding>,
    /// Summaries in the order of cell ids.
    #[serde(skip)]
    pub cells: Vec<CellSummary>,
    /// Each tool over the swept number.
    #[serde(skip)]
    pub sweeps: Vec<Sweep>,
    /// In each group: the best cell of each tool compared with the baseline.
    pub comparisons: Vec<Comparison>,
    /// In each group: the other settings compared with the baseline.
    pub relative: Vec<Comparison>,
    /// A/A controls, in which no difference should be claimed.
    pub controls: Vec<Comparison>,
    /// Half width of the A/A intervals, relative: the smallest difference this machine can resolve.
    pub noise: Option<f64>,
    /// Settings compared with a baseline, if one was given.
    #[serde(skip)]
    pub gains: Vec<BaselineGain>,
    /// Counter-experiments.
    #[serde(skip)]
    pub proofs: Vec<Proof>,
    /// Caveats: failed runs, controls that differ, few runs, a busy machine.
    #[serde(skip)]
    pub caveats: Vec<Caveat>,
}

/// Analyses results. Deterministic.
pub fn analyse(results: &Results) -> Analysis {
    let view = ResultsView::new(results);
    let mut summaries: Vec<_> =
        view.cells.iter().map(|cell| summary::summary(&view, cell)).collect();
    let rows = sweeps::rows(&view);
    let mut proofs = proofs::campaign_experiments(&view);
    proofs.extend(proofs::between_groups(&view, &rows, &summaries));
    let limiting = view.cells.iter().map(|cell| {
        let row = rows.iter().find(|row| row.cells.iter().any(|of| of.id == cell.id));
        sweeps::limiting(&view, row, cell, &summaries, proofs::experiments(cell.id, &proofs))
    });
    let limiting: Vec<_> = limiting.collect();
    for (of, limiting) in summaries.iter_mut().zip(limiting) {
        of.limiting = limiting;
    }
    proofs::settle(&mut proofs, &summaries);
    let sweeps: Vec<_> = rows.iter().map(|row| sweeps::sweep(&view, row, &summaries)).collect();
    let controls = ranking::controls(&view);
    let (comparisons, relative) = ranking::comparisons(&view, &summaries, None);
    let noise = ranking::noise(&controls);
    let (verdict, gains, caveats) = (Vec::new(), Vec::new(), Vec::new());
    let cells = summaries;
    let mut analysis = Analysis {
        verdict,
        cells,
        sweeps,
        comparisons,
        relative,
        controls,
        noise,
        gains,
        proofs,
        caveats,
    };
    analysis.caveats = caveats::caveats(&view, &analysis);
    analysis.verdict = verdict::verdict(&view, &analysis);
    analysis
}
