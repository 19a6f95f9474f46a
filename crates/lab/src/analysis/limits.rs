//! Limiting resource of a cell, by the rules of a transfer's verdict, and how it changes along a sweep.

use crate::analysis::statistics;
use crate::results::Run;
use hakobu_explain::verdict;
use hakobu_explain::verdict::{Evidence, Facts, Level, OwnVerdict, Resource};
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
    /// Signals.
    #[serde(skip)]
    pub evidence: Vec<Evidence>,
    /// Candidates between which the signals did not decide; else empty.
    #[serde(skip)]
    pub open: Vec<Resource>,
    /// True if the measured program reported it itself; false if it follows from the machine's counters.
    pub own: bool,
}

impl Default for LimitingResource {
    fn default() -> LimitingResource {
        LimitingResource {
            resource: Resource::None,
            level: Level::NotDetermined,
            evidence: Vec::new(),
            open: Vec::new(),
            own: false,
        }
    }
}

/// Judges facts.
pub(super) fn judge(facts: &Facts) -> LimitingResource {
    let found = verdict::judge(facts);
    let own = facts
        .own_verdict
        .as_ref()
        .is_some_and(|own_verdict| own_verdict.resource == found.resource);
    let (evidence, open) = (found.evidence, found.open);
    LimitingResource { resource: found.resource, level: found.level, evidence, open, own }
}

impl LimitingResource {
    /// True if a resource is named.
    pub fn is_determined(&self) -> bool {
        self.level > Level::NotDetermined && self.resource != Resource::None
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
    /// The numbers for which it holds.
    #[serde(skip)]
    pub range: XRange,
}

/// Part of the swept numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum XRange {
    /// All that are not named otherwise.
    #[default]
    Elsewhere,
    /// One number.
    At(f64),
    /// From the first one to this.
    UpTo(f64),
    /// From this to the last one.
    From(f64),
    /// From the first to the second.
    Between(f64, f64),
}

/// Splits a sweep into stretches. Takes x and its limit in ascending order of x.
pub(super) fn stretches(points: &[(f64, &LimitingResource)]) -> Vec<SweepStretch> {
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
                let range = XRange::At(*x);
                found.push(SweepStretch { from_x: *x, to_x: *x, limiting: here, range });
            }
        }
    }
    let ends = points.first().zip(points.last()).map(|((first, _), (last, _))| (*first, *last));
    let (first, last) = ends.unwrap_or_default();
    for stretch in &mut found {
        let (from, to) = (stretch.from_x, stretch.to_x);
        stretch.range = match (from <= first, to >= last) {
            _ if first >= last => XRange::At(from),
            (true, false) if from < to => XRange::UpTo(to),
            (false, true) => XRange::From(from),
            _ if from < to => XRange::Between(from, to),
            _ => XRange::At(from),
        };
    }
    found
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
