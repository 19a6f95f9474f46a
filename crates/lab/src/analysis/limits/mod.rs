//! What limited a cell, from what its runs say of the machine, and how that changes along a sweep.

mod rules;

pub(super) use self::rules::{Signals, judge};

use super::{Lang, say};
use crate::results::Run;
use hakobu_transfer::verdict::{Level, Resource};
use serde_json::Value;
use std::collections::BTreeMap;

/// What limited a cell, by what evidence, and how sure that is.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Limiting {
    /// What. Its name in JSON is that of a transfer's verdict: `cpu`, `disk-iops`, `latency`.
    #[serde(serialize_with = "resource_name")]
    pub resource: Resource,
    /// How sure: `not-determined`, `consistent`, `at-limit`, `proven`.
    #[serde(serialize_with = "level_name")]
    pub level: Level,
    /// The signals, a few words each.
    pub evidence: Vec<String>,
    /// The program that was run said so itself, rather than the machine around it.
    pub own: bool,
}

impl Default for Limiting {
    fn default() -> Limiting {
        Limiting {
            resource: Resource::None,
            level: Level::NotDetermined,
            evidence: Vec::new(),
            own: false,
        }
    }
}

impl Limiting {
    /// Whether something is named.
    pub fn is_determined(&self) -> bool {
        self.level > Level::NotDetermined && self.resource != Resource::None
    }

    /// `Limited by the CPU (at the limit: 1.97 of 2 CPUs used).`
    pub(super) fn sentence(&self, lang: Lang) -> String {
        let evidence = self.evidence.join(lang.pick(", ", "、"));
        let (what, level) = (say::resource(self.resource, lang), say::level(self.level, lang));
        match (self.is_determined(), evidence.is_empty(), lang) {
            (false, true, Lang::En) => "What limits is not determined.".to_owned(),
            (false, true, Lang::Ja) => "制限要因は判定できません。".to_owned(),
            (false, false, Lang::En) => format!("What limits is not determined ({evidence})."),
            (false, false, Lang::Ja) => format!("制限要因は判定できません（{evidence}）。"),
            (true, true, Lang::En) => format!("Limited by {what} ({level})."),
            (true, true, Lang::Ja) => {
                format!("{}（{level}）。", say::beside(&say::beside("制限要因は", what), "です"))
            }
            (true, false, Lang::En) => format!("Limited by {what} ({level}: {evidence})."),
            (true, false, Lang::Ja) => {
                let what = say::beside(&say::beside("制限要因は", what), "です");
                format!("{what}（{level}: {evidence}）。")
            }
        }
    }
}

/// Level as a transfer's JSON has it.
const LEVELS: [(&str, Level); 4] = [
    ("not-determined", Level::NotDetermined),
    ("consistent", Level::Consistent),
    ("at-limit", Level::AtLimit),
    ("proven", Level::Proven),
];

const RESOURCES: [Resource; 13] = [
    Resource::Cpu,
    Resource::Thread,
    Resource::DiskIops,
    Resource::DiskBandwidth,
    Resource::Network,
    Resource::Server,
    Resource::Lock,
    Resource::Latency,
    Resource::Source,
    Resource::Target,
    Resource::UserLimit,
    Resource::Own,
    Resource::None,
];

fn resource_name<S: serde::Serializer>(of: &Resource, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(of.name())
}

fn level_name<S: serde::Serializer>(of: &Level, to: S) -> Result<S::Ok, S::Error> {
    let name = LEVELS.iter().find(|(_, level)| level == of).map_or("", |(name, _)| name);
    to.serialize_str(name)
}

/// What the runs' own verdicts say together: what more than half of them name, as sure as the least
/// sure of those. `None` where they name nothing, or different things.
pub(super) fn own_verdict(runs: &[&Run], lang: Lang) -> Option<Limiting> {
    let read = |value: &Value| -> Option<(Resource, Level)> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let resource = RESOURCES.into_iter().find(|of| Some(of.name()) == text("resource"))?;
        let (_, level) = LEVELS.into_iter().find(|(name, _)| Some(*name) == text("level"))?;
        (resource != Resource::None && level > Level::NotDetermined).then_some((resource, level))
    };
    let verdicts: Vec<&Value> = runs.iter().filter_map(|run| run.verdict.as_ref()).collect();
    let named: Vec<(Resource, Level)> = verdicts.iter().filter_map(|value| read(value)).collect();
    let votes = |of: Resource| named.iter().filter(|(resource, _)| *resource == of).count();
    let resource = RESOURCES.into_iter().find(|of| 2 * votes(*of) > verdicts.len())?;
    let levels = named.iter().filter(|(of, _)| *of == resource).map(|(_, level)| *level);
    let level = levels.min()?;
    let (votes, all) = (votes(resource), verdicts.len());
    let said = match lang {
        Lang::En => format!("its own verdict in {votes} of {all} runs"),
        Lang::Ja => format!("{all} 回のうち {votes} 回で自身がそう判定"),
    };
    let mut evidence = vec![said];
    let of_this = |value: &&&Value| read(value).is_some_and(|(of, _)| of == resource);
    evidence.extend(verdicts.iter().find(of_this).and_then(|value| signals_of(value)));
    Some(Limiting { resource, level, evidence, own: true })
}

/// The first signals of a transfer's verdict: `cpu_used_cores 1.98`.
fn signals_of(verdict: &Value) -> Option<String> {
    let evidence = verdict.get("evidence")?.as_array()?;
    let words = evidence.iter().take(2).filter_map(|signal| {
        let name = signal.get("signal")?.as_str()?.replace('_', " ");
        let of = signal.get("of").and_then(Value::as_str).map(|of| format!(" of {of}"));
        let value = signal.get("value")?.as_f64()?;
        Some(format!("{name}{} {}", of.unwrap_or_default(), say::number(value)))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// A part of a sweep in which the same limits.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Stretch {
    /// Where it begins.
    pub from_x: f64,
    /// Where it ends; the same where it is one point.
    pub to_x: f64,
    /// What limits there, as sure as at its least sure point, with the evidence of its last.
    pub limiting: Limiting,
    /// `up to 8 jobs latency`.
    pub sentence: String,
}

/// Stretches of a sweep. Goes in: x and what limits there, in the order of x, and what x counts.
pub(super) fn stretches(points: &[(f64, &Limiting)], x_name: &str, lang: Lang) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for (x, limiting) in points {
        let here = (*limiting).clone();
        match found.last_mut() {
            Some(last) if last.limiting.resource == here.resource => {
                last.to_x = *x;
                let level = last.limiting.level.min(here.level);
                last.limiting = Limiting { level, ..here };
            }
            _ => {
                let (from_x, to_x, sentence) = (*x, *x, String::new());
                found.push(Stretch { from_x, to_x, limiting: here, sentence });
            }
        }
    }
    let ends = points.first().zip(points.last()).map(|((first, _), (last, _))| (*first, *last));
    for stretch in &mut found {
        let (first, last) = ends.unwrap_or_default();
        stretch.sentence = stretch.words((first, last), x_name, lang);
    }
    found
}

impl Stretch {
    fn words(&self, (first, last): (f64, f64), x_name: &str, lang: Lang) -> String {
        let of = |x| say::of_x(x, x_name, lang);
        let (at_first, at_last) = (self.from_x <= first, self.to_x >= last);
        let is_point = self.from_x >= self.to_x;
        let place = |en: &str, x: &str, ja: &str| match lang {
            Lang::En => en.replace("{}", x),
            Lang::Ja => say::beside(x, ja),
        };
        let place = match (at_first, at_last) {
            _ if first >= last => place("with {}", &of(first), "では"),
            (true, false) if !is_point => place("up to {}", &of(self.to_x), "までは"),
            (false, true) => place("from {} on", &of(self.from_x), "からは"),
            (_, false) if is_point => place("with {}", &of(self.to_x), "では"),
            _ => {
                let range = say::of_range(self.from_x, self.to_x, x_name, lang);
                place("from {}", &range, "では")
            }
        };
        let what = match self.limiting.is_determined() {
            true => say::resource(self.limiting.resource, lang),
            false => lang.pick("not determined", "判定できず"),
        };
        lang.pick(format!("{place} {what}"), say::beside(&place, what))
    }
}

/// What was measured of the machine: medians over the runs, by name.
pub(super) fn loads(runs: &[&Run]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.load) {
        if value.is_finite() {
            values.entry(name).or_default().push(*value);
        }
    }
    let medians = values.into_iter();
    medians.filter_map(|(name, all)| Some((name.to_owned(), super::median(&all)?))).collect()
}
