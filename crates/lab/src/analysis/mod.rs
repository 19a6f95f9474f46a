//! Analysis of results. All functions are pure; random numbers come from fixed seeds, so that equal results
//! give equal conclusions.

mod bootstrap;
mod caveats;
mod cells;
mod compare;
mod compared;
mod fit;
mod gains;
mod knee;
mod lang;
mod limits;
mod prices;
mod proofs;
mod quantity;
mod ratio;
mod rivals;
mod say;
mod steady;
mod sweeps;
#[cfg(test)]
mod tests;
mod verdict;
mod view;
mod whole;

pub use bootstrap::{interval, median, quantile};
pub use compare::{compare, names};
pub use compared::{
    BestResult, ComparedCell, ComparedRow, ConclusionChange, MachineCost, ResultsComparison,
};
pub use fit::{CurveFit, FitModel, fit};
pub use gains::{Baseline, BaselineGain};
pub use knee::{Knee, knee};
pub use lang::Lang;
pub use limits::{LimitingResource, SweepStretch};
pub use prices::{PricedMachine, Prices, RatedIops, parse_machines, parse_price, parse_rated};
pub use ratio::{PAIRS_MIN, SpeedClaim, SpeedRatio, paired, unpaired};
pub(crate) use say::{level as level_words, resource as resource_words};
pub use steady::{SteadyPart, steady};

use std::collections::BTreeMap;

/// Most sentences of a verdict.
const SENTENCES_MAX: usize = 4;

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

/// Result of a counter-experiment.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Proof {
    /// Cell.
    pub cell: u32,
    /// Resource that was changed.
    pub changed: String,
    /// Values before and after.
    pub about: String,
    /// ln(speed ratio) ÷ ln(resource ratio): 1 if speed is proportional to the resource, 0 if independent of
    /// it.
    pub elasticity: Interval,
    /// Conclusion as a sentence.
    pub sentence: String,
}

/// Conclusions from a campaign.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Analysis {
    /// One to four sentences: the best tool, the knee, the limit, what would help.
    pub verdict: Vec<String>,
    /// Summaries in the order of cell ids.
    pub cells: Vec<CellSummary>,
    /// Each tool over the swept number.
    pub sweeps: Vec<Sweep>,
    /// In each group: the best cell of each tool compared with hakobu's best (or that of the first tool).
    pub comparisons: Vec<Comparison>,
    /// A/A controls, in which no difference should be claimed.
    pub controls: Vec<Comparison>,
    /// Half width of the A/A intervals, relative: the smallest difference this machine can resolve.
    pub noise: Option<f64>,
    /// Settings compared with a baseline, if one was given.
    pub gains: Vec<BaselineGain>,
    /// Counter-experiments.
    pub proofs: Vec<Proof>,
    /// Caveats: failed runs, controls that differ, few runs, a busy machine.
    pub caveats: Vec<String>,
}

pub use whole::{analyse, analyse_in};
