//! What was changed, what came of it, and what follows, in words.

use super::Says;
use crate::analysis::say::{number, percent, span, things, times};
use crate::analysis::view::View;
use crate::analysis::{Interval, Lang, Proof};
use crate::results::Cell;

/// `rsync: with half the CPUs 0.51 times the speed (elasticity 0.97, 0.95 to 0.99)`.
pub(super) fn measured(
    view: &View<'_>,
    cell: &Cell,
    changed: &str,
    factor: f64,
    speed: f64,
    of: Interval,
) -> String {
    let lang = view.lang;
    let measure = match changed {
        "source" | "sink" => lang.pick("share of the time", "時間に占める割合"),
        "endpoint" => lang.pick("share of the time saved", "減った時間の割合"),
        _ => lang.pick("elasticity", "弾力性"),
    };
    let mut interval = format!("{measure} {}", times(of.mid));
    if !of.is_point() {
        interval.push_str(lang.pick(", ", "、"));
        interval.push_str(&span(&times(of.low), &times(of.high), lang));
    }
    let (name, change, speed) = (view.name(cell), change(changed, factor, lang), times(speed));
    match lang {
        Lang::En => format!("{name}: {change} {speed} times the speed ({interval})"),
        Lang::Ja => format!("{name}: {change}速さは {speed} 倍（{interval}）"),
    }
}

/// `with half the CPUs`, `without the source`.
fn change(changed: &str, factor: f64, lang: Lang) -> String {
    let noun = noun(changed, lang);
    let is = |wanted: f64| (factor - wanted).abs() < 1e-9;
    match (changed, lang) {
        ("source" | "sink", Lang::En) => format!("without the {noun}"),
        ("source" | "sink", Lang::Ja) => format!("{noun}をなくすと"),
        ("endpoint", Lang::En) => format!("with another {noun}"),
        ("endpoint", Lang::Ja) => format!("別の{noun}では"),
        (_, Lang::En) if is(0.5) => format!("with half the {noun}"),
        (_, Lang::Ja) if is(0.5) => format!("{noun}を半分にすると"),
        (_, Lang::En) if is(2.0) => format!("with twice the {noun}"),
        (_, Lang::En) => format!("with {} times the {noun}", number(factor)),
        (_, Lang::Ja) => format!("{noun}を {} 倍にすると", number(factor)),
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

/// In front of `limits`.
fn subject(changed: &str, lang: Lang) -> String {
    match (changed, lang) {
        ("cpus", Lang::En) => "the CPU".to_owned(),
        ("iops", Lang::En) => "the number of operations (IOPS)".to_owned(),
        ("cpus", Lang::Ja) => "CPU ".to_owned(),
        ("iops", Lang::Ja) => "操作数 (IOPS) ".to_owned(),
        (other, Lang::En) => format!("the {}", noun(other, lang)),
        (other, Lang::Ja) => noun(other, lang).to_owned(),
    }
}

/// What follows from it.
pub(super) fn follows(says: Says, changed: &str, pairs: usize, lang: Lang) -> String {
    let of = subject(changed, lang);
    match (says, lang) {
        (Says::TooFew, Lang::En) => format!("{} are too few to tell", things(pairs, "pair")),
        (Says::TooFew, Lang::Ja) => format!("{pairs} 組では少なすぎて判断できません"),
        (Says::Binds, Lang::En) => format!("{of} limits"),
        (Says::Binds, Lang::Ja) => format!("{of}が制限しています"),
        (Says::Loose, Lang::En) => format!("{of} does not limit"),
        (Says::Loose, Lang::Ja) => format!("{of}は制限していません"),
        (Says::Unclear, Lang::En) => format!("whether {of} limits is not clear"),
        (Says::Unclear, Lang::Ja) => format!("{of}が制限しているかは分かりません"),
    }
}

/// Both in one.
pub(super) fn sentence(measured: &str, follows: &str, lang: Lang) -> String {
    match lang {
        Lang::En => format!("{measured}: {follows}."),
        Lang::Ja => format!("{measured}。{follows}。"),
    }
}

/// As evidence: `97 % of a change of CPUs came through`.
pub(super) fn through(of: &Proof, lang: Lang) -> String {
    let (share, noun) = (percent(of.elasticity.mid), noun(&of.changed, lang));
    match (of.changed.as_str(), lang) {
        ("endpoint", Lang::En) => format!("another endpoint saves {share} of the time"),
        ("endpoint", Lang::Ja) => format!("別のエンドポイントで時間が {share} 減少"),
        (_, Lang::En) => format!("{share} of a change of {noun} came through"),
        (_, Lang::Ja) => format!("{noun}の変化の {share} が速さに反映"),
    }
}
