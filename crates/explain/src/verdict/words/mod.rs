//! Words of verdicts: names of bottlenecks and levels, signals, the sentence, the advice. The texts of a language are in a
//! file of its own; here is what does not depend on one: which signals a sentence mentions, and how numbers look.

mod en;
mod ja;

use crate::verdict::words::en::English;
use crate::verdict::words::ja::Japanese;
use crate::verdict::{
    About, Advice, BottleneckName, Evidence, Help, Level, Resource, Statement, Verdict,
};
use hakobu_core::language::Language;
use hakobu_core::number::{bytes, grouped};

/// Most clauses in a sentence.
const CLAUSES_MAX: usize = 3;
/// Share of the time from which a sentence says that threads were blocked.
const BLOCKED_TOLD: f64 = 0.05;

/// Share of what the windows of channels allow from which a sentence compares the rate with it.
const WINDOWS_TOLD: f64 = 0.5;

/// Texts of one language.
trait VerdictWords {
    /// Name of a bottleneck: `CPU`.
    fn resource(&self, of: Resource) -> &'static str;
    /// Certainty: `likely`.
    fn level(&self, of: Level) -> &'static str;
    /// Meaning of a signal.
    fn statement(&self, of: Statement) -> &'static str;
    /// Name of a signal.
    fn signal(&self, of: &Evidence) -> String;
    /// A signal with its value.
    fn evidence(&self, of: &Evidence) -> String;
    /// A part of the evidence of a sentence.
    fn clause(&self, of: &Clause<'_>, about: About) -> String;
    /// Name of a bottleneck in a sentence.
    fn bottleneck(&self, of: &BottleneckName) -> String;
    /// The sentence on an identified bottleneck.
    fn identified(&self, verdict: &Verdict, clauses: &[String], advice: &str) -> String;
    /// The sentences on too little to judge, and what was seen of it.
    fn too_little(&self, clauses: &[String], advice: &str) -> String;
    /// The sentence on an unknown one.
    fn unknown(&self, clauses: &[String], advice: &str) -> String;
    /// What would help, and what would not.
    fn advice(&self, of: &Advice, open: &[Resource]) -> String;
}

fn texts(language: Language) -> &'static dyn VerdictWords {
    match language {
        Language::English => &English,
        Language::Japanese => &Japanese,
    }
}

/// Names a bottleneck: `CPU`.
pub fn resource_words(of: Resource, language: Language) -> &'static str {
    texts(language).resource(of)
}

/// Names the bottleneck of a verdict, more precisely than its resource where the facts allow it: `--bwlimit`.
pub fn bottleneck_words(verdict: &Verdict, language: Language) -> String {
    texts(language).bottleneck(&verdict.named)
}

/// Words for a certainty: `likely`.
pub fn level_words(level: Level, language: Language) -> &'static str {
    texts(language).level(level)
}

/// Words for the meaning of a signal: `no gain from more jobs`.
pub fn statement_words(statement: Statement, language: Language) -> &'static str {
    texts(language).statement(statement)
}

/// Words for a signal without its value: `CPUs used`.
pub fn signal_words(evidence: &Evidence, language: Language) -> String {
    texts(language).signal(evidence)
}

/// Words for a signal with its value: `1.98 of 2 CPUs used`.
pub fn evidence_words(evidence: &Evidence, language: Language) -> String {
    texts(language).evidence(evidence)
}

/// The advice of a verdict: what would help, and what would not. One or two sentences.
pub fn advice_words(verdict: &Verdict, language: Language) -> String {
    texts(language).advice(&verdict.advice, &verdict.open)
}

/// The verdict: `Bottleneck: WHAT (evidence). What would help.`
pub fn sentence(verdict: &Verdict, language: Language) -> String {
    let texts = texts(language);
    let found = clauses(verdict);
    let mut advice = verdict.advice.clone();
    if let Help::Cpus { others_cpus, .. } = &mut advice.help
        && found.iter().any(|clause| matches!(clause, Clause::Cpus { others: Some(_), .. }))
    {
        // The evidence says how much other processes use.
        *others_cpus = None;
    }
    let advice = texts.advice(&advice, &verdict.open);
    let clauses: Vec<String> =
        found.iter().map(|clause| texts.clause(clause, verdict.about)).collect();
    match (verdict.resource, &verdict.advice.help) {
        (Resource::None, Help::Unknown { .. }) => texts.unknown(&clauses, &advice),
        (Resource::None, _) => texts.too_little(&clauses, &advice),
        _ => texts.identified(verdict, &clauses, &advice),
    }
}

/// A part of the evidence of a sentence, which may join signals.
#[derive(Debug, PartialEq)]
enum Clause<'a> {
    /// CPUs used by the work, where they are the bottleneck.
    OwnCpus { used: f64, of: f64 },
    /// CPUs used by the work and by other processes.
    Cpus { used: f64, of: f64, others: Option<f64> },
    /// Phases of the workers with their shares of the time of all workers, longest first; the share in which they were
    /// idle; `its`: whose workers was said before.
    Phases { idle: Option<f64>, phases: Vec<(&'a str, f64)>, its: bool },
    /// An experiment: throughput changed by `effect` when the resource changed by `factor`.
    Experiment { changed: Resource, factor: f64, effect: f64 },
    /// Rate under a limit that the user set.
    Limit(&'a Evidence),
    /// A signal by itself.
    Signal(&'a Evidence),
}

/// The parts of a sentence: signals that the others imply are left out, and those that belong together are joined.
fn clauses(verdict: &Verdict) -> Vec<Clause<'_>> {
    let evidence = &verdict.evidence;
    let find = |signal: &str| evidence.iter().find(|of| of.signal == signal);
    let is_limit = verdict.resource == Resource::UserLimit;
    // Phases are shares of the busy workers' time: beside the idle ones they become shares of all.
    let idle = find("idle_units_share").map(|of| of.value);
    let busy = 1.0 - idle.unwrap_or_default();
    let mut phases: Vec<(&str, f64)> = Vec::new();
    for (name, share) in evidence.iter().filter_map(|of| Some((phase(of)?, busy * of.value))) {
        let is_known = phases.iter().any(|(known, _)| *known == name);
        // The rate under the limit implies that workers wait for it.
        let is_implied = is_limit && name == "limit";
        if !is_known && !is_implied && phases.len() < CLAUSES_MAX {
            phases.push((name, share));
        }
    }
    let mut phases = Some(phases).filter(|phases| !phases.is_empty() || idle.is_some());
    let mut found: Vec<Clause<'_>> = Vec::new();
    for of in evidence {
        let clause = match &*of.signal {
            "cpu_used_cpus" => {
                let machine = find("machine_used_cpus");
                let others = machine.map(|all| (all.value - of.value).max(0.0));
                let full = of.value >= 0.95 * of.limit;
                match verdict.resource == Resource::Cpu && (full || machine.is_none()) {
                    true => Clause::OwnCpus { used: of.value, of: of.limit },
                    false => Clause::Cpus { used: of.value, of: of.limit, others },
                }
            }
            "machine_used_cpus" if find("cpu_used_cpus").is_some() => continue,
            "user_limit_per_s" | "user_limit_bytes_per_s" if is_limit => Clause::Limit(of),
            _ if phase(of).is_some() || of.signal == "idle_units_share" => match phases.take() {
                Some(phases) => {
                    let its = matches!(found.last(), Some(Clause::Cpus { .. }));
                    Clause::Phases { idle, phases, its }
                }
                None => continue,
            },
            // That they hardly ever were rules disks out, which is no news beside what rules them in.
            "blocked_share" if of.value < BLOCKED_TOLD => continue,
            "experiment_elasticity" => {
                let made = verdict
                    .experiments
                    .iter()
                    .find(|made| made.resource.name() == of.of && made.elasticity.0 == of.value);
                match made {
                    Some(made) => Clause::Experiment {
                        changed: made.resource,
                        factor: made.factor,
                        effect: made.factor.powf(of.value),
                    },
                    None => Clause::Signal(of),
                }
            }
            _ => Clause::Signal(of),
        };
        // Claims that disagree may share evidence.
        if !found.contains(&clause) {
            found.push(clause);
        }
    }
    found.truncate(CLAUSES_MAX);
    found
}

/// Phase of the workers that a signal is about.
fn phase(of: &Evidence) -> Option<&str> {
    of.signal.strip_prefix("phase_")?.strip_suffix("_share")
}

/// Formats a value with the unit in the signal's name.
pub fn measure(of: &Evidence, value: f64) -> String {
    let signal = &*of.signal;
    if !value.is_finite() {
        return "?".to_owned();
    }
    if signal == "jobs_elasticity" {
        return percent(gain(value));
    }
    if signal.ends_with("_share") || signal.ends_with("_elasticity") {
        return percent(value);
    }
    if signal.ends_with("_bytes_per_s") {
        return format!("{}/s", bytes(value.max(0.0) as u64));
    }
    if signal.ends_with("bytes") {
        return bytes(value.max(0.0) as u64);
    }
    if signal.ends_with("_ms") {
        return format!("{} ms", short(value));
    }
    short(value)
}

/// Gain of twice as many jobs, as a share, from the elasticity.
fn gain(elasticity: f64) -> f64 {
    elasticity.exp2() - 1.0
}

/// `98%`, `0.4%`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(percent != 0.0 && percent.abs() < 1.0);
    format!("{percent:.digits$}%")
}

/// Formats a value and its limit with their unit: `4.18`, `4.19 MB/s`.
fn against_limit(of: &Evidence) -> (String, String) {
    let (value, limit) = (measure(of, of.value), measure(of, of.limit));
    let unit = limit.rsplit_once(' ').map(|(_, unit)| format!(" {unit}"));
    let value = unit.and_then(|unit| value.strip_suffix(&unit).map(str::to_owned)).unwrap_or(value);
    (value, limit)
}

/// Formats at least three digits, without trailing zeros.
fn short(value: f64) -> String {
    if value.abs() >= 100.0 {
        let whole = grouped(value.abs().round() as u64);
        return if value < 0.0 { format!("-{whole}") } else { whole };
    }
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
