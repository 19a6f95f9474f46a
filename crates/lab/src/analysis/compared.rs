//! Types of a comparison of several results.

use super::{Interval, SpeedRatio};
use std::collections::BTreeMap;

/// Comparison of two or more results, cell by cell.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ResultsComparison {
    /// Names of the results: given by the user, else those of their machines.
    pub names: Vec<String>,
    /// Metric of the first result; results with another metric have no sides.
    pub metric: String,
    /// True if higher values of the metric are better.
    pub more_is_better: bool,
    /// Name of the swept number.
    pub x_name: Option<String>,
    /// Cells of any of the results.
    pub rows: Vec<ComparedRow>,
    /// Conclusions of each result, and whether they agree.
    pub changes: Vec<ConclusionChange>,
    /// Costs, where a price is known.
    pub costs: Vec<MachineCost>,
    /// Best result for each need.
    pub best: Vec<BestResult>,
    /// Caveats as sentences.
    pub caveats: Vec<String>,
}

/// One cell across all results.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ComparedRow {
    /// Group; empty if each result has only one.
    pub group: String,
    /// Tool.
    pub series: String,
    /// Value of the swept number.
    pub x: Option<f64>,
    /// Other parameters.
    pub parameters: BTreeMap<String, String>,
    /// One per result; `None` if it has no such cell, or no run of it that counts.
    pub sides: Vec<Option<ComparedCell>>,
}

/// A cell of one result.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ComparedCell {
    /// Id of the cell in that result.
    pub cell: u32,
    /// Number of runs that count.
    pub runs: usize,
    /// Median of the metric with interval.
    pub value: Interval,
    /// Mean of the metric, for comparison with published studies.
    pub mean: f64,
    /// Speed relative to the first result, from resampling both: runs of two machines share no blocks. `None`
    /// for the first result.
    pub ratio: Option<SpeedRatio>,
}

/// One conclusion, as drawn from each result.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ConclusionChange {
    /// `best tool`, `knee`, `limit`, `rated limit`.
    pub what: String,
    /// Group or sweep that it refers to; empty if there is only one.
    pub of: String,
    /// Conclusion of each result; `None` if it has none.
    pub said: Vec<Option<String>>,
    /// True if the known conclusions differ.
    pub differs: bool,
    /// The comparison as a sentence.
    pub sentence: String,
}

/// Cost of some work on a machine, in the currency of its price.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct MachineCost {
    /// Name of the result.
    pub name: String,
    /// Group; empty if each result has only one, and for ratings.
    pub group: String,
    /// Tool; `rated` for the rating of the machine.
    pub of: String,
    /// True if computed from the rating of the machine instead of measurements.
    pub rated: bool,
    /// Price per hour.
    pub per_hour: f64,
    /// Operations per second, if counted.
    pub iops: Option<f64>,
    /// Price per hour ÷ operations per second × 10⁶.
    pub per_1m_iops: Option<f64>,
    /// Price per million operations.
    pub per_million_ios: Option<f64>,
    /// Price per 10⁹ bytes moved.
    pub per_gb: Option<f64>,
    /// Price per million files moved.
    pub per_million_files: Option<f64>,
}

/// Best result for one need.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct BestResult {
    /// `fastest`, `cheapest per GB`, with the group if there are several.
    pub need: String,
    /// Name of the result.
    pub name: String,
    /// Its number and that of the runner-up.
    pub why: String,
    /// True if the difference to the runner-up is significant; for prices, if it is more than 2 %.
    pub clear: bool,
}
