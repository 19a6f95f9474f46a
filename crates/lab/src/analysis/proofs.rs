//! Counter-experiments: what happens to speed where one thing is changed, and only that. Those that
//! a campaign made on purpose, and those that lie in it where two groups differ in one condition.

mod words;

use super::bootstrap::mean_difference;
use super::limits::Limiting;
use super::quantity::quantity;
use super::ratio::{PAIRS_MIN, log_ratios};
use super::sweeps::{Row, others};
use super::view::View;
use super::{CellSummary, Interval, Lang, Proof, knee};
use crate::results::Cell;
use hakobu_transfer::verdict::{Level, Resource};

/// A proof, and what it says of its resource.
pub(super) struct Found {
    pub proof: Proof,
    pub says: Says,
    /// The sentence up to what follows.
    measured: String,
    /// By which factor the resource was changed; an end without cost is infinitely fast.
    pub factor: f64,
}

/// What follows from an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// Speed follows it: 70 % of a change or more come through, and surely more than 30 %.
    Binds,
    /// Speed does not: a tenth at most, and surely not the half.
    Loose,
    /// Neither.
    Unclear,
    /// Fewer than three pairs.
    TooFew,
}

/// The campaign's counter-experiments.
pub(super) fn made(view: &View<'_>) -> Vec<Found> {
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

/// Experiments that lie in the campaign: two groups that differ in one condition, compared at the
/// knee (else the only cell) of each tool that is in both.
pub(super) fn between_groups(
    view: &View<'_>,
    rows: &[Row<'_>],
    cells: &[CellSummary],
) -> Vec<Found> {
    let mut results = Vec::new();
    for base in knees(view, rows, cells) {
        for other in view.cells.iter().filter(|other| is_same_but_for_conditions(view, base, other))
        {
            let Some((name, from, to)) = one_condition(base, other) else { continue };
            let counts = matches!(name, "cpus" | "iops");
            let Some((a, b)) = quantity(from, counts).zip(quantity(to, counts)) else { continue };
            // Each pair once: from less to more.
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

/// The cells to compare at: of each sweep that at its knee; of tools without one, each.
fn knees<'a>(view: &View<'a>, rows: &[Row<'a>], cells: &[CellSummary]) -> Vec<&'a Cell> {
    let value = |id: u32| cells.iter().find(|of| of.cell == id).and_then(|of| of.value);
    let swept = |id: u32| rows.iter().any(|row| row.cells.iter().any(|cell| cell.id == id));
    let mut found: Vec<&Cell> = Vec::new();
    for row in rows {
        let points: Vec<(f64, Interval)> =
            row.cells.iter().filter_map(|cell| Some((cell.x?, value(cell.id)?))).collect();
        let at = knee(&points, view.more_is_better()).map(|knee| knee.x);
        found.extend(row.cells.iter().find(|cell| cell.x == at && at.is_some()));
    }
    let alone = view.cells.iter().copied().filter(|cell| !swept(cell.id));
    found.extend(alone.filter(|cell| cell.control_of.is_none()));
    found
}

fn is_same_but_for_conditions(view: &View<'_>, a: &Cell, b: &Cell) -> bool {
    let same = a.series == b.series && a.x == b.x && a.data == b.data && b.control_of.is_none();
    // A condition may be among the parameters as well, and what a tool does by itself follows the CPUs.
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

/// What comes of the logarithms of ratios of speed. `None` where the factor is none, or nothing was
/// measured.
fn found(
    view: &View<'_>,
    cell: &Cell,
    changed: &str,
    about: &str,
    factor: f64,
    logs: &[f64],
    seed: u64,
) -> Option<Found> {
    let is_share = matches!(changed, "source" | "sink" | "endpoint");
    let each: Vec<f64> = match is_share {
        // Of an end that costs nothing: the share of the time that it took (Amdahl 1967); of another
        // endpoint: the share that it saves.
        true => logs.iter().map(|log| -(-log).exp_m1()).collect(),
        false => {
            // Of latency, less is more.
            let turn = if changed == "latency" { -1.0 } else { 1.0 };
            let by = turn * Some(factor.ln()).filter(|by| by.is_finite() && *by != 0.0)?;
            logs.iter().map(|log| log / by).collect()
        }
    };
    let elasticity = mean_difference(&each, seed)?;
    let speed = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    let says = if each.len() < PAIRS_MIN { Says::TooFew } else { says(changed, elasticity) };
    let measured = words::measured(view, cell, changed, factor, speed, elasticity);
    let follows = words::follows(says, changed, each.len(), view.lang);
    let sentence = words::sentence(&measured, &follows, view.lang);
    let (changed, about) = (changed.to_owned(), about.to_owned());
    let proof = Proof { cell: cell.id, changed, about, elasticity, sentence };
    let factor = if is_share { f64::INFINITY } else { factor };
    Some(Found { proof, says, measured, factor })
}

/// What an elasticity (of ends: a share of the time) says of what was changed.
fn says(changed: &str, Interval { low, mid, high }: Interval) -> Says {
    let is_end = matches!(changed, "source" | "sink");
    match mid {
        // Another endpoint that is surely faster: the first one limits, or the way to it.
        _ if changed == "endpoint" && low >= 0.1 => Says::Binds,
        _ if changed == "endpoint" && low >= -0.1 && high <= 0.1 => Says::Loose,
        _ if changed == "endpoint" => Says::Unclear,
        0.7.. if low >= 0.3 => Says::Binds,
        // Half of the time spent there is more than anything else can have.
        0.5.. if is_end && low >= 0.3 => Says::Binds,
        ..=0.1 if high <= 0.5 => Says::Loose,
        _ => Says::Unclear,
    }
}

/// Whether an experiment with this is about that resource.
fn is_about(changed: &str, resource: Resource) -> bool {
    match changed {
        "cpus" => resource == Resource::Cpu,
        "iops" => resource == Resource::DiskIops,
        "bandwidth" => matches!(resource, Resource::DiskBandwidth | Resource::Network),
        "latency" => resource == Resource::Latency,
        "source" => resource == Resource::Source,
        "sink" => resource == Resource::Target,
        "endpoint" => resource == Resource::Server,
        _ => false,
    }
}

/// What experiments say of what the signals named. What was taken away proves only what the signals
/// name as well: half of the CPUs hurts also where two thirds of them were in use.
pub(super) fn weigh(limiting: &mut Limiting, cell: u32, found: &[Found], lang: Lang) {
    for made in found.iter().filter(|made| made.proof.cell == cell) {
        let named = is_about(&made.proof.changed, limiting.resource);
        let words = || words::through(&made.proof, lang);
        match made.says {
            Says::Binds if named => {
                limiting.level = Level::Proven;
                limiting.evidence.insert(0, words());
            }
            Says::Binds if made.factor > 1.0 && !limiting.is_determined() => {
                if let Some(resource) = alone(&made.proof.changed) {
                    let evidence = vec![words()];
                    *limiting = Limiting { resource, level: Level::Proven, evidence, own: false };
                }
            }
            Says::Loose if named => {
                let refuted =
                    lang.pick("an experiment refutes the signals: ", "実験が手がかりを否定: ");
                let evidence = vec![format!("{refuted}{}", words())];
                *limiting = Limiting { evidence, ..Limiting::default() };
            }
            _ => {}
        }
    }
}

/// Takes back the conclusion of experiments that took something away which the signals do not name.
pub(super) fn settle(found: &mut [Found], cells: &[CellSummary], lang: Lang) {
    let taken = found.iter_mut().filter(|made| made.says == Says::Binds && made.factor < 1.0);
    for made in taken {
        let changed = &made.proof.changed;
        let is_proven = cells.iter().any(|of| {
            let proven = of.limiting.level == Level::Proven;
            of.cell == made.proof.cell && proven && is_about(changed, of.limiting.resource)
        });
        if !is_proven {
            let follows = lang.pick(
                "less of it hurts, but more need not help",
                "減らすと遅くなりますが、増やせば速くなるとは限りません",
            );
            made.proof.sentence = words::sentence(&made.measured, follows, lang);
            made.says = Says::Unclear;
        }
    }
}

/// The one resource that an experiment with this is about.
fn alone(changed: &str) -> Option<Resource> {
    match changed {
        "cpus" => Some(Resource::Cpu),
        "iops" => Some(Resource::DiskIops),
        "latency" => Some(Resource::Latency),
        "source" => Some(Resource::Source),
        "sink" => Some(Resource::Target),
        _ => None,
    }
}
