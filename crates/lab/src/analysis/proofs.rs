//! Counter-experiments: the effect on speed of changing one resource only. Some are made on purpose; others
//! result from two groups that differ in one condition.

use crate::analysis::quantity::quantity;
use crate::analysis::statistics::{PAIRS_MIN, log_ratios, mean_difference};
use crate::analysis::sweeps::{SweepRow, knee, others};
use crate::analysis::view::ResultsView;
use crate::analysis::{CellSummary, Interval};
use crate::results::Cell;
use hakobu_explain::verdict::{Conclusion, Experiment, Level, Resource};

/// Experiments with a smaller factor prove only a resource that the signals name as well.
const NAMED_FIRST: f64 = 0.5;

/// Result of a counter-experiment.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Proof {
    /// Cell.
    pub cell: u32,
    /// Resource that was changed: `cpus`, `iops`, `bandwidth`, `latency`, `source`, `sink`, `endpoint`.
    pub changed: String,
    /// Values before and after, as recorded.
    pub about: String,
    /// The two values, if two groups differ in them.
    #[serde(skip)]
    pub values: Option<(String, String)>,
    /// Factor by which the resource was changed; infinite if an end was made free of cost.
    #[serde(skip)]
    pub factor: f64,
    /// Speed with the change relative to that without.
    #[serde(skip)]
    pub speed: f64,
    /// ln(speed ratio) ÷ ln(resource ratio): 1 if speed is proportional to the resource, 0 if independent of
    /// it.
    pub elasticity: Interval,
    /// Pairs of runs.
    #[serde(skip)]
    pub pairs: usize,
    /// `None` with fewer than three pairs.
    #[serde(skip)]
    pub says: Option<Conclusion>,
    /// True if less of the resource made it slower, and no signal names the resource: more may not be faster.
    #[serde(skip)]
    pub is_one_sided: bool,
}

/// The campaign's own counter-experiments.
pub(super) fn campaign_experiments(view: &ResultsView<'_>) -> Vec<Proof> {
    let experiments = view.results.experiments.iter().enumerate();
    let found = experiments.filter_map(|(at, made)| {
        let cell = view.cell(made.cell)?;
        let logs: Vec<f64> = made
            .ratios
            .iter()
            .filter(|ratio| ratio.is_finite() && **ratio > 0.0)
            .map(|ratio| ratio.ln())
            .collect();
        let seed = view.seed(made.cell, 1_000_000_u32.wrapping_add(at as u32));
        evaluate(cell, (&made.changed, &made.about), made.factor, &logs, seed)
    });
    found.collect()
}

/// Experiments implied by the campaign: two groups that differ in one condition, compared at the knee (else
/// the only cell) of each tool in both.
pub(super) fn between_groups(
    view: &ResultsView<'_>,
    rows: &[SweepRow<'_>],
    cells: &[CellSummary],
) -> Vec<Proof> {
    let mut results = Vec::new();
    for base in knees(view, rows, cells) {
        for other in view.cells.iter().filter(|other| is_same_but_for_conditions(view, base, other))
        {
            let Some((name, from, to)) = one_condition(base, other) else { continue };
            let counts = matches!(name, "cpus" | "iops");
            let Some((a, b)) = quantity(from, counts).zip(quantity(to, counts)) else { continue };
            // Each pair once, from less to more.
            if b <= a || a <= 0.0 {
                continue;
            }
            let about = format!("{name} {from} → {to}");
            let (less, more) = (view.blocks(base.id), view.blocks(other.id));
            let logs = log_ratios(&more, &less, view.more_is_better());
            let seed = view.seed(base.id, other.id.wrapping_add(2_000_000));
            let values = Some((from.to_owned(), to.to_owned()));
            let found = evaluate(base, (name, &about), b / a, &logs, seed);
            results.extend(found.map(|proof| Proof { values, ..proof }));
        }
    }
    results
}

/// Cells to compare: of each sweep the one at its knee; of tools without a sweep all cells.
fn knees<'a>(
    view: &ResultsView<'a>,
    rows: &[SweepRow<'a>],
    cells: &[CellSummary],
) -> Vec<&'a Cell> {
    let value = |id: u32| cells.iter().find(|of| of.cell == id).and_then(|of| of.value);
    let swept = |id: u32| rows.iter().any(|row| row.cells.iter().any(|cell| cell.id == id));
    let mut found: Vec<&Cell> = Vec::new();
    for row in rows {
        let points: Vec<(f64, Interval)> =
            row.cells.iter().filter_map(|cell| Some((cell.x?, value(cell.id)?))).collect();
        let at = knee(&points, view.more_is_better()).map(|knee| knee.x);
        found.extend(row.cells.iter().find(|cell| cell.x == at && at.is_some()));
    }
    found.extend(view.settings().filter(|cell| !swept(cell.id)));
    found
}

fn is_same_but_for_conditions(view: &ResultsView<'_>, a: &Cell, b: &Cell) -> bool {
    let same = a.series == b.series && a.x == b.x && a.data == b.data && b.control_of.is_none();
    // A condition may also be a parameter, and automatic settings of a tool depend on the CPUs.
    let rest = |cell: &Cell| {
        let mut rest = others(cell, view.x_name());
        let cpus = cell.conditions.get("cpus");
        rest.retain(|name, value| !cell.conditions.contains_key(name) && Some(&*value) != cpus);
        rest
    };
    same && rest(a) == rest(b)
}

/// The one condition in which two cells differ.
fn one_condition<'a>(a: &'a Cell, b: &'a Cell) -> Option<(&'a str, &'a str, &'a str)> {
    let differ = a.conditions.iter().filter_map(|(name, from)| {
        let to = b.conditions.get(name)?;
        (from != to).then_some((name.as_str(), from.as_str(), to.as_str()))
    });
    let differ: Vec<_> = differ.collect();
    match (differ.as_slice(), a.conditions.len() == b.conditions.len()) {
        ([one], true) => Some(*one),
        _ => None,
    }
}

/// Evaluates logarithms of speed ratios. `None` if the factor is 1 or invalid, or there are no ratios.
fn evaluate(
    cell: &Cell,
    (changed, about): (&str, &str),
    factor: f64,
    logs: &[f64],
    seed: u64,
) -> Option<Proof> {
    let is_share = matches!(changed, "source" | "sink" | "endpoint");
    let each: Vec<f64> = match is_share {
        // For an end without cost: its share of the time (Amdahl 1967); for another endpoint: the share of
        // time saved.
        true => logs.iter().map(|log| -(-log).exp_m1()).collect(),
        false => {
            // Lower latency is better.
            let turn = if changed == "latency" { -1.0 } else { 1.0 };
            let by = turn * Some(factor.ln()).filter(|by| by.is_finite() && *by != 0.0)?;
            logs.iter().map(|log| log / by).collect()
        }
    };
    let elasticity = mean_difference(&each, seed)?;
    let speed = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    let pairs = each.len();
    let says = (pairs >= PAIRS_MIN).then(|| says(changed, elasticity));
    let factor = if is_share { f64::INFINITY } else { factor };
    Some(Proof {
        cell: cell.id,
        changed: changed.to_owned(),
        about: about.to_owned(),
        values: None,
        factor,
        speed,
        elasticity,
        pairs,
        says,
        is_one_sided: false,
    })
}

/// Conclusion from an elasticity (for ends: a share of the time).
fn says(changed: &str, Interval { low, mid, high }: Interval) -> Conclusion {
    let is_end = matches!(changed, "source" | "sink");
    match mid {
        // Another endpoint is clearly faster: the first one or its network path limits.
        _ if changed == "endpoint" && low >= 0.1 => Conclusion::Bottleneck,
        _ if changed == "endpoint" && low >= -0.1 && high <= 0.1 => Conclusion::NoEffect,
        _ if changed == "endpoint" => Conclusion::Unclear,
        // If half of the time is spent there, no other resource can account for more.
        0.5.. if is_end && low >= 0.3 => Conclusion::Bottleneck,
        _ => Conclusion::of((mid, low, high)),
    }
}

/// Resources that an experiment can prove. With two candidates (an endpoint may be another server or another
/// path) the signals have to name one first.
fn about(changed: &str) -> &'static [Resource] {
    match changed {
        "cpus" => &[Resource::Cpu],
        "iops" => &[Resource::DiskIops],
        "bandwidth" => &[Resource::DiskBandwidth, Resource::Network],
        "latency" => &[Resource::Latency],
        "source" => &[Resource::Source],
        "sink" => &[Resource::Target],
        "endpoint" => &[Resource::Server],
        _ => &[],
    }
}

/// A cell's experiments as facts for the verdict.
pub(super) fn experiments(cell: u32, found: &[Proof]) -> Vec<Experiment> {
    let of_cell = found.iter().filter(|made| made.cell == cell);
    let each = of_cell.flat_map(|made| {
        let Interval { low, mid, high } = made.elasticity;
        let changed = made.changed.as_str();
        let factor = match changed {
            "bandwidth" | "endpoint" => made.factor.min(NAMED_FIRST),
            "latency" => 1.0 / made.factor,
            _ => made.factor,
        };
        about(changed).iter().filter_map(move |resource| {
            let (resource, elasticity, pairs) = (*resource, (mid, low, high), made.pairs);
            Some(Experiment { resource, factor, elasticity, pairs, says: made.says? })
        })
    });
    each.collect()
}

/// Withdraws the conclusion of experiments that reduced a resource which the signals do not name.
pub(super) fn settle(found: &mut [Proof], cells: &[CellSummary]) {
    let taken = found
        .iter_mut()
        .filter(|made| made.says == Some(Conclusion::Bottleneck) && made.factor < 1.0);
    for made in taken {
        let changed = &made.changed;
        let is_proven = cells.iter().any(|of| {
            let proven = of.limiting.level == Level::Proven;
            of.cell == made.cell && proven && about(changed).contains(&of.limiting.resource)
        });
        if !is_proven {
            (made.says, made.is_one_sided) = (Some(Conclusion::Unclear), true);
        }
    }
}
