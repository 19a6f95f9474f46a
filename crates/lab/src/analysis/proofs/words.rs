//! Sentences about counter-experiments.

use crate::analysis::say::{beside, number, span, things, times};
use crate::analysis::{Interval, Lang};
use hakobu_explain::verdict::Conclusion;

/// Smaller differences of speed are worded as no change, if the experiment found none.
const NOTHING: f64 = 0.03;

/// `half the CPUs gave 0.51 × the speed (elasticity 0.97, 0.95 to 0.99)`.
pub(super) fn measured(changed: &str, factor: f64, speed: f64, of: Interval, lang: Lang) -> String {
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
