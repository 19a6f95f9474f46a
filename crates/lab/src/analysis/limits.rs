//! Limiting resource of a cell, by the rules of a transfer's verdict, and how it changes along a sweep.

use crate::analysis::words::{Conjunction, enumeration};
use crate::analysis::{Lang, statistics, words};
use crate::results::Run;
use hakobu_explain::verdict;
use hakobu_explain::verdict::{Evidence, Facts, Level, OwnVerdict, Resource, measure};
use serde_json::Value;
use std::collections::BTreeMap;

/// Limiting resource of a cell with evidence and confidence.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LimitingResource {
    /// Named in JSON as in a transfer's verdict: `cpu`, `disk-iops`, `latency`.
    #[serde(serialize_with = "resource_name")]
    pub resource: Resource,
    /// Confidence: `not-determined`, `consistent`, `at-limit`, `proven`.
    #[serde(serialize_with = "level_name")]
    pub level: Level,
    /// Signals, a few words each.
    pub evidence: Vec<String>,
    /// True if the measured program reported it itself; false if it follows from the machine's counters.
    pub own: bool,
}

impl Default for LimitingResource {
    fn default() -> LimitingResource {
        LimitingResource {
            resource: Resource::None,
            level: Level::NotDetermined,
            evidence: Vec::new(),
            own: false,
        }
    }
}

/// Judges facts and words the result in `lang`.
pub(super) fn judge(facts: &Facts, lang: Lang) -> LimitingResource {
    let found = verdict::judge(facts);
    let own = facts
        .own_verdict
        .as_ref()
        .is_some_and(|own_verdict| own_verdict.resource == found.resource);
    let open: Vec<String> =
        found.open.iter().map(|of| words::resource(*of, lang).to_owned()).collect();
    let evidence = match open.is_empty() {
        true => found.evidence.iter().map(|of| signal(of, lang)).collect(),
        false => {
            let names = enumeration(&open, Conjunction::Or, lang);
            vec![lang.pick("it may be {}", "{} の可能性").replace("{}", &names)]
        }
    };
    LimitingResource { resource: found.resource, level: found.level, evidence, own }
}

/// Words for a signal. Signals that cells cannot have are in English only.
fn signal(of: &Evidence, lang: Lang) -> String {
    let (value, limit) = (measure(of, of.value), measure(of, of.limit));
    match (&*of.signal, lang) {
        ("cpu_used_cpus", Lang::Ja) => format!("{limit} CPU 中 {value} を使用"),
        ("machine_used_cpus", Lang::Ja) => format!("全プロセスで {limit} CPU 中 {value}"),
        ("cpu_busy_share", Lang::Ja) => format!("1 つの CPU の使用率 {value}"),
        ("iowait_share", Lang::Ja) => format!("CPU の I/O 待ち {value}"),
        ("disk_busy_share" | "disks_busy_share", Lang::Ja) => format!("ディスクの使用率 {value}"),
        ("disk_iops", Lang::Ja) => format!("上限 {limit} IOPS 中 {value}"),
        ("disk_bytes_per_s" | "link_bytes_per_s", Lang::Ja) => format!("上限 {limit} 中 {value}"),
        ("jobs_waiting_share", Lang::Ja) => format!("各ジョブは時間の {value} を待機"),
        ("jobs_elasticity", Lang::Ja) if of.value < 0.0 => {
            "ジョブ数を増やしても向上せず".to_owned()
        }
        ("jobs_elasticity", Lang::Ja) => format!("ジョブ数を 100 % 増やすと {value} 向上"),
        ("experiment_elasticity", Lang::Ja) => format!("{} の変化の {value} が速さに反映", of.of),
        ("told_runs", Lang::Ja) => format!("{limit} 回中 {value} 回の自身の判定"),
        _ => verdict::evidence_words(of, hakobu_core::language::Language::English),
    }
}

impl LimitingResource {
    /// True if a resource is named.
    pub fn is_determined(&self) -> bool {
        self.level > Level::NotDetermined && self.resource != Resource::None
    }

    /// Sentence about the limit of a setting, with its evidence.
    pub(super) fn sentence(&self, name: &str, lang: Lang) -> String {
        let evidence = self.evidence.join(lang.pick(", ", "、"));
        let said = match (self.is_determined(), lang) {
            (true, Lang::En) => format!("{name} is limited by {}", by(self, "", lang)),
            (true, Lang::Ja) => format!("{name} の制限要因: {}", by(self, "", lang)),
            (false, Lang::En) => format!("The limit of {name} is not determined"),
            (false, Lang::Ja) => format!("{name} の制限要因は判定できません"),
        };
        match (evidence.is_empty(), lang) {
            (true, Lang::En) => format!("{said}."),
            (true, Lang::Ja) => format!("{said}。"),
            (false, Lang::En) => format!("{said}: {evidence}."),
            (false, Lang::Ja) => format!("{said}（{evidence}）。"),
        }
    }
}

/// Part of a sentence: `the CPU from 8 jobs on (at the limit)`; `place` may be empty.
pub(super) fn by(of: &LimitingResource, place: &str, lang: Lang) -> String {
    if !of.is_determined() {
        return match (place.is_empty(), lang) {
            (true, _) => lang.pick("an unknown limit", "判定できず").to_owned(),
            (false, Lang::En) => format!("an unknown limit {place}"),
            (false, Lang::Ja) => words::beside(place, "判定できず"),
        };
    }
    let (what, level) = (words::resource(of.resource, lang), words::level(of.level, lang));
    match (place.is_empty(), lang) {
        (true, Lang::En) => format!("{what} ({level})"),
        (false, Lang::En) => format!("{what} {place} ({level})"),
        (_, Lang::Ja) => format!("{}（{level}）", words::beside(place, what)),
    }
}

fn resource_name<S: serde::Serializer>(of: &Resource, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(of.name())
}

fn level_name<S: serde::Serializer>(of: &Level, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(of.name())
}

/// Combines the verdicts of the runs: the resource that more than half of them name, with their lowest
/// confidence. `None` without a majority.
pub(super) fn own_verdict(runs: &[&Run]) -> Option<OwnVerdict> {
    let read = |value: &Value| -> Option<(Resource, Level)> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let resource = Resource::ALL.into_iter().find(|of| Some(of.name()) == text("resource"))?;
        let level = Level::ALL.into_iter().find(|of| Some(of.name()) == text("level"))?;
        (resource != Resource::None && level > Level::NotDetermined).then_some((resource, level))
    };
    let verdicts: Vec<&Value> = runs.iter().filter_map(|run| run.verdict.as_ref()).collect();
    let named: Vec<(Resource, Level)> = verdicts.iter().filter_map(|value| read(value)).collect();
    let votes = |of: Resource| named.iter().filter(|(resource, _)| *resource == of).count();
    let resource = Resource::ALL.into_iter().find(|of| 2 * votes(*of) > verdicts.len())?;
    let levels = named.iter().filter(|(of, _)| *of == resource).map(|(_, level)| *level);
    let (value, limit) = (votes(resource) as f64, verdicts.len() as f64);
    let mut evidence =
        vec![Evidence { signal: "told_runs".into(), of: String::new(), value, limit }];
    let of_this = |value: &&&Value| read(value).is_some_and(|(of, _)| of == resource);
    evidence.extend(verdicts.iter().find(of_this).into_iter().flat_map(|value| signals_of(value)));
    Some(OwnVerdict { resource, level: levels.min()?, evidence })
}

/// First signals of a transfer's verdict, as recorded.
fn signals_of(verdict: &Value) -> Vec<Evidence> {
    let evidence = verdict.get("evidence").and_then(Value::as_array);
    let signals = evidence.into_iter().flatten().take(2).filter_map(|signal| {
        let name = signal.get("signal")?.as_str()?.to_owned();
        let of = signal.get("of").and_then(Value::as_str).unwrap_or_default().to_owned();
        let limit = signal.get("limit").and_then(Value::as_f64).unwrap_or_default();
        Some(Evidence { signal: name.into(), of, value: signal.get("value")?.as_f64()?, limit })
    });
    signals.collect()
}

/// Part of a sweep with the same limiting resource.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct SweepStretch {
    /// First x.
    pub from_x: f64,
    /// Last x; equal to `from_x` for a single point.
    pub to_x: f64,
    /// Limiting resource, with the lowest confidence in the stretch and the evidence of its last point.
    pub limiting: LimitingResource,
    /// `up to 8 jobs`.
    pub place: String,
    /// `latency up to 8 jobs`.
    pub sentence: String,
}

/// Splits a sweep into stretches. Takes x and its limit in ascending order of x, and the name of x.
pub(super) fn stretches(
    points: &[(f64, &LimitingResource)],
    x_name: &str,
    lang: Lang,
) -> Vec<SweepStretch> {
    let mut found: Vec<SweepStretch> = Vec::new();
    for (x, limiting) in points {
        let here = (*limiting).clone();
        match found.last_mut() {
            Some(last) if last.limiting.resource == here.resource => {
                last.to_x = *x;
                let level = last.limiting.level.min(here.level);
                last.limiting = LimitingResource { level, ..here };
            }
            _ => {
                let (from_x, to_x) = (*x, *x);
                found.push(SweepStretch {
                    from_x,
                    to_x,
                    limiting: here,
                    ..SweepStretch::default()
                });
            }
        }
    }
    let ends = points.first().zip(points.last()).map(|((first, _), (last, _))| (*first, *last));
    for stretch in &mut found {
        let (first, last) = ends.unwrap_or_default();
        stretch.place = stretch.place((first, last), x_name, lang);
        let what = match stretch.limiting.is_determined() {
            true => words::resource(stretch.limiting.resource, lang),
            false => lang.pick("not determined", "判定できず"),
        };
        let place = &stretch.place;
        stretch.sentence = lang.pick(format!("{what} {place}"), words::beside(place, what));
    }
    found
}

impl SweepStretch {
    fn place(&self, (first, last): (f64, f64), x_name: &str, lang: Lang) -> String {
        let of = |x| words::of_x(x, x_name, lang);
        let (at_first, at_last) = (self.from_x <= first, self.to_x >= last);
        let is_point = self.from_x >= self.to_x;
        let place = |en: &str, x: &str, ja: &str| match lang {
            Lang::En => en.replace("{}", x),
            Lang::Ja => words::beside(x, ja),
        };
        match (at_first, at_last) {
            _ if first >= last => place("with {}", &of(first), "では"),
            (true, false) if !is_point => place("up to {}", &of(self.to_x), "までは"),
            (false, true) => place("from {} on", &of(self.from_x), "からは"),
            (_, false) if is_point => place("with {}", &of(self.to_x), "では"),
            _ => {
                let range = words::of_range(self.from_x, self.to_x, x_name, lang);
                place("from {}", &range, "では")
            }
        }
    }
}

/// Median load values of the runs, by name.
pub(super) fn loads(runs: &[&Run]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.load) {
        if value.is_finite() {
            values.entry(name).or_default().push(*value);
        }
    }
    let medians = values.into_iter();
    medians.filter_map(|(name, all)| Some((name.to_owned(), statistics::median(&all)?))).collect()
}
