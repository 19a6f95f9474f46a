//! Results side by side: what comes out.

use super::{Interval, Ratio};
use std::collections::BTreeMap;

/// Two or more results, cell by cell.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Compared {
    /// What the results are called: as the user does, else by their machines.
    pub names: Vec<String>,
    /// The metric of the first; those of another metric have no sides.
    pub metric: String,
    /// More of it is better.
    pub more_is_better: bool,
    /// What is swept.
    pub x_name: Option<String>,
    /// Cells that the results have in common, and those that only some have.
    pub rows: Vec<Row>,
    /// What follows from each, and whether that is the same.
    pub changes: Vec<Change>,
    /// What things cost, where a price is known.
    pub costs: Vec<Cost>,
    /// Which one for which need.
    pub best: Vec<Best>,
    /// What to keep in mind.
    pub caveats: Vec<String>,
}

/// One cell in all results.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Row {
    /// Its group; empty where each result has only one.
    pub group: String,
    /// Its tool.
    pub series: String,
    /// The swept number.
    pub x: Option<f64>,
    /// Its other parameters.
    pub parameters: BTreeMap<String, String>,
    /// By result; `None` where it has no such cell, or no run of it that counts.
    pub sides: Vec<Option<Side>>,
}

/// A cell of one result.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Side {
    /// Its number there.
    pub cell: u32,
    /// Runs that count.
    pub runs: usize,
    /// The metric: median with interval.
    pub value: Interval,
    /// The mean, as published studies have it.
    pub mean: f64,
    /// How many times as fast it is as in the first result (from resampling both: runs of two machines
    /// have no blocks in common). `None` for the first itself.
    pub ratio: Option<Ratio>,
}

/// A conclusion, from each result.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Change {
    /// `best tool`, `knee`, `limit`, `rated limit`.
    pub what: String,
    /// Of which group or sweep; empty where there is only one.
    pub of: String,
    /// What each result says; `None` where it says nothing.
    pub said: Vec<Option<String>>,
    /// They do not say the same.
    pub differs: bool,
    /// In words.
    pub sentence: String,
}

/// What something costs on a machine, in the currency of its price.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Cost {
    /// Which result.
    pub name: String,
    /// The group; empty where each result has only one, and for what is rated.
    pub group: String,
    /// Of what: a tool; `rated` for what the machine is sold with.
    pub of: String,
    /// It is what the machine is sold with, not what was measured.
    pub rated: bool,
    /// The price for an hour.
    pub per_hour: f64,
    /// Operations a second, where these are counted.
    pub iops: Option<f64>,
    /// Price for an hour ÷ operations a second × 10⁶.
    pub per_1m_iops: Option<f64>,
    /// For a million operations.
    pub per_million_ios: Option<f64>,
    /// For 10⁹ bytes moved.
    pub per_gb: Option<f64>,
    /// For a million files moved.
    pub per_million_files: Option<f64>,
}

/// Which result for which need.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Best {
    /// `fastest`, `cheapest per GB`, with the group where there are several.
    pub need: String,
    /// Which result.
    pub name: String,
    /// By what: the numbers of it and of the next.
    pub why: String,
    /// The runs tell it from the next. For prices, where the prices differ by more than 2 %.
    pub clear: bool,
}
