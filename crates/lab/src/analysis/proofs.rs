//! Counter-experiments: the effect on speed of changing one resource only. Some are made on purpose; others
//! result from two groups that differ in one condition.

mod words;

use super::bootstrap::mean_difference;
use super::quantity::quantity;
use super::ratio::{PAIRS_MIN, log_ratios};
use super::sweeps::{SweepRow, others};
use super::view::ResultsView;
use super::{CellSummary, Interval, Lang, Proof, knee};
use crate::results::Cell;
use hakobu_explain::verdict::{Conclusion, Experiment, Level, Resource};

/// Experiments with a smaller factor prove only a resource that the signals name as well.
const NAMED_FIRST: f64 = 0.5;

/// A proof, and its conclusion about the resource.
pub(super) struct ProofFinding {
    pub proof: Proof,
    /// `None` with fewer than three pairs.
    pub says: Option<Conclusion>,
    pairs: usize,
    /// First part of the sentence: the measurement.
    measured: String,
    /// `twice the CPUs gave 1.66 ×`, `twice the IOPS changed nothing`.
    pub short: String,
    /// `the CPU limits`.
    pub subject: String,
    /// Factor by which the resource was changed; infinite if an end was made free of cost.
    pub factor: f64,
}

/// The campaign's own counter-experiments.
pub(super) fn made(view: &ResultsView<'_>) -> Vec<ProofFinding> {
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
        found(view, cell, &made.changed, &made.about, made.factor, &logs, seed)
    });
    found.collect()
}

/// Experiments implied by the campaign: two groups that differ in one condition, compared at the knee (else
/// the only cell) of each tool in both.
pub(super) fn between_groups(
    view: &ResultsView<'_>,
    rows: &[SweepRow<'_>],
    cells: &[CellSummary],
) -> Vec<ProofFinding> {
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
            results.extend(found(view, base, name, &about, b / a, &logs, seed));
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
fn found(
    view: &ResultsView<'_>,
    cell: &Cell,
    changed: &str,
    about: &str,
    factor: f64,
    logs: &[f64],
    seed: u64,
) -> Option<ProofFinding> {
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
    let short = words::short(changed, factor, speed, says, view.lang);
    let subject = words::limits(changed, view.lang);
    let measured = words::measured(changed, factor, speed, elasticity, view.lang);
    let follows = words::follows(says, changed, pairs, view.lang);
    let sentence = words::sentence(&measured, &follows, view.lang);
    let (changed, about) = (changed.to_owned(), about.to_owned());
    let proof = Proof { cell: cell.id, changed, about, elasticity, sentence };
    let factor = if is_share { f64::INFINITY } else { factor };
    Some(ProofFinding { proof, says, pairs, measured, short, subject, factor })
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
pub(super) fn experiments(cell: u32, found: &[ProofFinding]) -> Vec<Experiment> {
    let of_cell = found.iter().filter(|made| made.proof.cell == cell);
    let each = of_cell.flat_map(|made| {
        let Interval { low, mid, high } = made.proof.elasticity;
        let changed = made.proof.changed.as_str();
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
pub(super) fn settle(found: &mut [ProofFinding], cells: &[CellSummary], lang: Lang) {
    let taken = found
        .iter_mut()
        .filter(|made| made.says == Some(Conclusion::Bottleneck) && made.factor < 1.0);
    for made in taken {
        let changed = &made.proof.changed;
        let is_proven = cells.iter().any(|of| {
            let proven = of.limiting.level == Level::Proven;
            of.cell == made.proof.cell && proven && about(changed).contains(&of.limiting.resource)
        });
        if !is_proven {
            let follows = lang.pick(
                "less of it is slower, but more may not be faster",
                "減らすと遅くなりますが、増やせば速くなるとは限りません",
            );
            made.proof.sentence = words::sentence(&made.measured, follows, lang);
            made.says = Some(Conclusion::Unclear);
        }
    }
}
