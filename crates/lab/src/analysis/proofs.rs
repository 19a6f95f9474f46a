//! Counter-experiments: the effect on speed of changing one resource only. Some are made on purpose; others
//! result from two groups that differ in one condition.

use crate::analysis::statistics::{PAIRS_MIN, log_ratios, mean_difference};
use crate::analysis::sweeps::{SweepRow, knee, others};
use crate::analysis::view::ResultsView;
use crate::analysis::words::{beside, number, quantity, span, things, times};
use crate::analysis::{CellSummary, Interval, Lang, Proof};
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
pub(super) fn campaign_experiments(view: &ResultsView<'_>) -> Vec<ProofFinding> {
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
        evaluate(view, cell, &made.changed, &made.about, made.factor, &logs, seed)
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
            results.extend(evaluate(view, base, name, &about, b / a, &logs, seed));
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
    let short = short(changed, factor, speed, says, view.lang);
    let subject = limits(changed, view.lang);
    let measured = measurement_text(changed, factor, speed, elasticity, view.lang);
    let follows = follows(says, changed, pairs, view.lang);
    let sentence = sentence(&measured, &follows, view.lang);
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
            made.proof.sentence = sentence(&made.measured, follows, lang);
            made.says = Some(Conclusion::Unclear);
        }
    }
}

// Sentences about counter-experiments.

/// Smaller differences of speed are worded as no change, if the experiment found none.
const NOTHING: f64 = 0.03;

/// `half the CPUs gave 0.51 × the speed (elasticity 0.97, 0.95 to 0.99)`.
pub(super) fn measurement_text(
    changed: &str,
    factor: f64,
    speed: f64,
    of: Interval,
    lang: Lang,
) -> String {
    let measure = match changed {
        "source" | "sink" => lang.pick("share of the time", "時間に占める割合"),
        "endpoint" => lang.pick("share of the time saved", "短縮された時間の割合"),
        _ => lang.pick("elasticity", "弾力性"),
    };
    let mut interval = format!("{measure} {}", times(of.mid));
    if !of.is_point() {
        interval.push_str(lang.pick(", ", "、"));
        interval.push_str(&span(&times(of.low), &times(of.high), lang));
    }
    let (change, speed) = (change(changed, factor, lang), times(speed));
    match lang {
        Lang::En => format!("{change} gave {speed} × the speed ({interval})"),
        Lang::Ja => format!("{change}と速さは {speed} 倍（{interval}）"),
    }
}

/// Short form: `half the CPUs gave 0.51 ×`, `twice the IOPS changed nothing`.
pub(super) fn short(
    changed: &str,
    factor: f64,
    speed: f64,
    says: Option<Conclusion>,
    lang: Lang,
) -> String {
    let change = change(changed, factor, lang);
    let is_nothing = says == Some(Conclusion::NoEffect) && (speed - 1.0).abs() < NOTHING;
    match (is_nothing, lang) {
        (true, Lang::En) => format!("{change} changed nothing"),
        (true, Lang::Ja) => format!("{change}と変化なし"),
        (false, Lang::En) => format!("{change} gave {} ×", times(speed)),
        (false, Lang::Ja) => format!("{change}と {} 倍", times(speed)),
    }
}

/// `half the CPUs`, `no cost for the source`; `CPU 数を半分にする`.
fn change(changed: &str, factor: f64, lang: Lang) -> String {
    let noun = noun(changed, lang);
    let is = |wanted: f64| (factor - wanted).abs() < 1e-9;
    match (changed, lang) {
        ("source" | "sink", Lang::En) => format!("a {noun} without cost"),
        ("source" | "sink", Lang::Ja) => format!("{noun}の処理をなくす"),
        ("endpoint", Lang::En) => format!("another {noun}"),
        ("endpoint", Lang::Ja) => format!("別の{noun}にする"),
        (_, Lang::En) if is(0.5) => format!("half the {noun}"),
        (_, Lang::Ja) if is(0.5) => format!("{noun}を半分にする"),
        (_, Lang::En) if is(2.0) => format!("twice the {noun}"),
        (_, Lang::En) => format!("{} × the {noun}", number(factor)),
        (_, Lang::Ja) => format!("{noun}を {} 倍にする", number(factor)),
    }
}

fn noun(changed: &str, lang: Lang) -> &str {
    match changed {
        "cpus" => lang.pick("CPUs", "CPU 数"),
        "iops" => lang.pick("IOPS", "IOPS の上限"),
        "bandwidth" => lang.pick("bandwidth", "帯域"),
        "latency" => lang.pick("latency", "レイテンシー"),
        "source" => lang.pick("source", "コピー元"),
        "sink" => lang.pick("target", "コピー先"),
        "endpoint" => lang.pick("endpoint", "エンドポイント"),
        other => other,
    }
}

/// Subject of the verb `limits`.
fn subject(changed: &str, lang: Lang) -> String {
    match (changed, lang) {
        ("cpus", Lang::En) => "the CPU".to_owned(),
        ("iops", Lang::En) => "the number of IOPS".to_owned(),
        ("cpus", Lang::Ja) => "CPU ".to_owned(),
        ("iops", Lang::Ja) => "IOPS ".to_owned(),
        (other, Lang::En) => format!("the {}", noun(other, lang)),
        (other, Lang::Ja) => noun(other, lang).to_owned(),
    }
}

/// `the CPU limits`.
pub(super) fn limits(changed: &str, lang: Lang) -> String {
    let of = subject(changed, lang);
    lang.pick(format!("{of} limits"), format!("{}です", beside("制限要因は", &of)))
}

/// Conclusion as a sentence.
pub(super) fn follows(says: Option<Conclusion>, changed: &str, pairs: usize, lang: Lang) -> String {
    let of = subject(changed, lang);
    match (says, lang) {
        (None, Lang::En) => format!("{} are too few to tell", things(pairs, "pair")),
        (None, Lang::Ja) => format!("{pairs} 組では少なすぎて判断できません"),
        (Some(Conclusion::Bottleneck), _) => limits(changed, lang),
        (Some(Conclusion::NoEffect), Lang::En) => format!("{of} does not limit"),
        (Some(Conclusion::NoEffect), Lang::Ja) => format!("{of}は制限要因ではありません"),
        (Some(Conclusion::Unclear), Lang::En) => format!("not clear whether {of} limits"),
        (Some(Conclusion::Unclear), Lang::Ja) => format!("{of}が制限要因かどうかは判断できません"),
    }
}

/// Joins measurement and conclusion.
pub(super) fn sentence(measured: &str, follows: &str, lang: Lang) -> String {
    match lang {
        Lang::En => format!("{measured}: {follows}."),
        Lang::Ja => format!("{measured}。{follows}。"),
    }
}
