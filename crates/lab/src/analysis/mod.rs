//! What results mean. All pure: numbers in, numbers and sentences out; chance comes from seeds, so
//! the same results always say the same.

mod bootstrap;
mod caveats;
mod cells;
mod compare;
mod compared;
mod fit;
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
pub use compared::{Best, Change, Compared, Cost, Row, Side};
pub use fit::{Fit, Model, fit};
pub use knee::{Knee, knee};
pub use lang::Lang;
pub use limits::{Limiting, Stretch};
pub use prices::{Prices, Rated, parse_price, parse_rated};
pub use ratio::{Claim, PAIRS_MIN, Ratio, paired, unpaired};
pub(crate) use say::{level as level_words, resource as resource_words};
pub use steady::{Steady, steady};

use std::collections::BTreeMap;

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The median, or the fit.
    pub mid: f64,
    /// The upper end.
    pub high: f64,
}

/// A cell in few numbers. Runs that failed and warm-ups are not among them.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct CellSummary {
    /// Its number.
    pub cell: u32,
    /// Runs that count.
    pub runs: usize,
    /// Runs that failed.
    pub failed: usize,
    /// What failed, each sentence once.
    pub problems: Vec<String>,
    /// The campaign's metric: median and interval. `None` without a run that counts.
    pub value: Option<Interval>,
    /// The mean of the same, as published studies have it.
    pub mean: Option<f64>,
    /// Standard deviation of the same.
    pub deviation: Option<f64>,
    /// Blocks whose value stands out (beyond 1.5 interquartile ranges). They count.
    pub outliers: Vec<u32>,
    /// Wall clock, seconds.
    pub wall_s: Option<Interval>,
    /// CPU time in user space, median, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, median, seconds.
    pub sys_s: f64,
    /// Peak memory, median, bytes.
    pub rss_bytes: f64,
    /// CPU seconds for each 10⁹ bytes moved; `None` without bytes.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU seconds for each 1,000 files moved; `None` without files.
    pub cpu_s_per_1000_files: Option<f64>,
    /// Medians of the load means of its runs.
    pub load: BTreeMap<String, f64>,
    /// Seconds after which its runs are steady (see [`steady()`]): median. `None` without curves, or
    /// where most of its runs never are.
    pub steady_s: Option<f64>,
    /// What limited it.
    pub limiting: Limiting,
}

/// One tool over the swept number.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Sweep {
    /// The group that it belongs to.
    pub group: String,
    /// The tool.
    pub series: String,
    /// Cells in the order of the swept number.
    pub cells: Vec<u32>,
    /// Where more brings no more.
    pub knee: Option<Knee>,
    /// The curve through its points.
    pub fit: Option<Fit>,
    /// What rates of the fit count: `files/s`, `bytes/s`, `runs/s`, or the metric.
    pub rate_unit: String,
    /// What limited it, from where to where.
    pub stretches: Vec<Stretch>,
}

/// Two cells side by side.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// The group.
    pub group: String,
    /// One cell.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// How many times as fast `a` is as `b`.
    pub ratio: Ratio,
}

/// A counter-experiment, read.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Proof {
    /// The cell.
    pub cell: u32,
    /// What was changed.
    pub changed: String,
    /// From what to what.
    pub about: String,
    /// Relative change of speed ÷ relative change of the resource, of logarithms: 1 where speed
    /// follows it wholly, 0 where not at all.
    pub elasticity: Interval,
    /// The sentence that follows.
    pub sentence: String,
}

/// What a campaign says.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Analysis {
    /// The answer in one to four sentences: what is best, the knee, what limits, what would help.
    pub verdict: Vec<String>,
    /// Each cell, by its number.
    pub cells: Vec<CellSummary>,
    /// Each tool over the swept number.
    pub sweeps: Vec<Sweep>,
    /// In each group: the best cell of each tool against the best of hakobu's (or of the first tool).
    pub comparisons: Vec<Comparison>,
    /// A/A controls: no difference should be claimed here.
    pub controls: Vec<Comparison>,
    /// Half the width of the A/A intervals, relative: what this machine could not tell apart.
    pub noise: Option<f64>,
    /// Counter-experiments.
    pub proofs: Vec<Proof>,
    /// What to keep in mind: failed runs, controls that differ, few runs, a busy machine.
    pub caveats: Vec<String>,
}

pub use whole::{analyse, analyse_in};
