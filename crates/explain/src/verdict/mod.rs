//! The verdict: the resource that limits a transfer, with evidence and level. Pure.

mod advice;
mod facts;
mod far;
mod proof;
mod rules;
mod signals;
mod statement;
mod words;

use crate::verdict::facts::View;
use crate::verdict::rules::Claim;
pub use advice::{Advice, CpuChange, Help, NextCeiling, Useless};
pub use facts::*;
pub use far::FarFacts;
pub use proof::{Progress, ProofTrial, Prover};
pub use statement::Statement;
use std::borrow::Cow;
pub use words::{
    advice_words, bottleneck_words, evidence_words, level_words, measure, resource_words, sentence,
    signal_words, statement_words,
};

/// The limiting resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// All CPUs that the program may use.
    Cpu,
    /// One thread, while other CPUs are idle.
    Thread,
    /// Operations per second of a disk.
    DiskIops,
    /// Bytes per second of a disk.
    DiskBandwidth,
    /// Network path to the server.
    Network,
    /// The server.
    Server,
    /// A kernel lock, for example of a directory.
    Lock,
    /// Latency: units wait, and more jobs would help.
    Latency,
    /// The peer of a command's connections: a server, or the network path to it.
    Peer,
    /// The source.
    Source,
    /// The target.
    Target,
    /// A limit set by the user.
    UserLimit,
    /// This program: its planner or memory budget.
    Own,
    /// No resource can be named.
    None,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 14] = [
        Resource::Cpu,
        Resource::Thread,
        Resource::DiskIops,
        Resource::DiskBandwidth,
        Resource::Network,
        Resource::Server,
        Resource::Lock,
        Resource::Latency,
        Resource::Peer,
        Resource::Source,
        Resource::Target,
        Resource::UserLimit,
        Resource::Own,
        Resource::None,
    ];

    /// Name in JSON: `disk-iops`.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Thread => "thread",
            Resource::DiskIops => "disk-iops",
            Resource::DiskBandwidth => "disk-bandwidth",
            Resource::Network => "network",
            Resource::Server => "server",
            Resource::Lock => "lock",
            Resource::Latency => "latency",
            Resource::Peer => "peer",
            Resource::Source => "source",
            Resource::Target => "target",
            Resource::UserLimit => "user-limit",
            Resource::Own => "self",
            Resource::None => "none",
        }
    }
}

/// Confidence of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Fewer than two independent signals, or signals that disagree.
    NotDetermined,
    /// Two independent signals.
    Consistent,
    /// A known ceiling is reached.
    AtLimit,
    /// Shown by an experiment that changed only this resource.
    Proven,
}

impl Level {
    /// All levels, least certain first.
    pub const ALL: [Level; 4] =
        [Level::NotDetermined, Level::Consistent, Level::AtLimit, Level::Proven];

    /// Name in JSON: `at-limit`.
    pub fn name(self) -> &'static str {
        match self {
            Level::NotDetermined => "not-determined",
            Level::Consistent => "consistent",
            Level::AtLimit => "at-limit",
            Level::Proven => "proven",
        }
    }
}

/// A signal: measured value and reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Name with its unit as suffix: `cpu_used_cores`, `disk_write_iops`.
    pub signal: Cow<'static, str>,
    /// Device or side that it refers to; may be empty.
    pub of: String,
    /// Measured value.
    pub value: f64,
    /// Ceiling or threshold for comparison.
    pub limit: f64,
}

/// Result of [`judge()`].
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The limiting resource.
    pub resource: Resource,
    /// The bottleneck, more precisely where the facts allow it.
    pub named: BottleneckName,
    /// Kind of work.
    pub about: About,
    /// Confidence.
    pub level: Level,
    /// Signals that support it.
    pub evidence: Vec<Evidence>,
    /// Changes that would help and changes without effect.
    pub advice: Advice,
    /// Candidates between which the signals did not decide; else empty.
    pub open: Vec<Resource>,
    /// All signals, including those that name nothing.
    pub signals: Vec<Signal>,
    /// Experiments made.
    pub experiments: Vec<Experiment>,
}

/// A signal with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Measured value.
    pub evidence: Evidence,
    /// Its meaning.
    pub says: Statement,
}

/// A bottleneck to be named in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BottleneckName {
    /// The resource.
    Resource(Resource),
    /// The only CPU that a command may use.
    OneCpu,
    /// One thread of a command.
    CommandThread,
    /// The option that sets a rate limit.
    Option(String),
    /// The link to another machine.
    Link,
    /// The CPUs of another machine.
    CpuOf(String),
    /// The encryption of ssh, on another machine or, without a name, on this one.
    Ssh(String),
}

/// Shorter transfers have no steady part.
const SPAN_MIN_S: f64 = 0.5;
/// Shorter commands consist mostly of start-up and exit.
const COMMAND_SPAN_MIN_S: f64 = 2.0;
/// Fewest active units or threads (mean) for a verdict.
const BUSY_MIN: f64 = 0.05;

/// Determines the limiting resource, its evidence and the level.
///
/// Takes means over the steady part of a run. Returns one resource, or [`Resource::None`] at
/// [`Level::NotDetermined`] if fewer than two independent signals name one, if signals disagree, or if there
/// is too little to judge.
pub fn judge(facts: &Facts) -> Verdict {
    let v = View::new(facts);
    let mut verdict = Verdict {
        resource: Resource::None,
        named: BottleneckName::Resource(Resource::None),
        about: facts.about,
        level: Level::NotDetermined,
        evidence: Vec::new(),
        advice: Advice::unknown(&v),
        open: Vec::new(),
        signals: v.all(),
        experiments: facts.experiments.clone(),
    };
    if let Some(why) = too_little(&v) {
        verdict.advice = Advice::only(why);
        // Where the time went is worth knowing even so.
        verdict.evidence = v.all_phases();
        verdict.evidence.truncate(2);
        return verdict;
    }
    let found = rules::claims(&v);
    if let Some((claim, made)) = proven(facts, &found) {
        let mut evidence = vec![signals::experiment(made)];
        evidence.extend(claim.map(|claim| claim.evidence.clone()).unwrap_or_default());
        return verdict.naming(&v, made.resource, Level::Proven, evidence);
    }
    let (refuted, left): (Vec<Claim>, Vec<Claim>) =
        found.into_iter().partition(|claim| facts.refutes(claim.resource));
    // A user's limit that units wait for is certain.
    let own_limit = left.iter().find(|claim| claim.resource == Resource::UserLimit);
    if let Some(Claim { resource, level, evidence }) = own_limit.or(single(&left)).cloned() {
        return verdict.naming(&v, resource, level, evidence);
    }
    verdict.open = left.iter().map(|claim| claim.resource).collect();
    verdict.evidence = left.into_iter().flat_map(|claim| claim.evidence).collect();
    if verdict.evidence.is_empty() {
        let against = |made: &&Experiment| {
            made.has_no_effect() && refuted.iter().any(|claim| claim.resource == made.resource)
        };
        verdict.evidence.extend(facts.experiments.iter().filter(against).map(signals::experiment));
        verdict.evidence.extend(hints(&v));
    }
    verdict
}

impl Verdict {
    fn naming(
        self,
        v: &View<'_>,
        resource: Resource,
        level: Level,
        evidence: Vec<Evidence>,
    ) -> Verdict {
        let named = name(v, resource, &evidence);
        Verdict { resource, named, level, evidence, advice: Advice::on(v, resource), ..self }
    }
}

/// Name of an identified bottleneck.
fn name(v: &View<'_>, resource: Resource, evidence: &[Evidence]) -> BottleneckName {
    let option = evidence.iter().find(|of| of.signal.starts_with("user_limit_"));
    if let (Some(far), Resource::Cpu) = (v.far_cpus_full(), resource) {
        return BottleneckName::CpuOf(far.host.clone());
    }
    if let (Some((place, _)), Resource::Thread) = (v.ssh_full(), resource) {
        return BottleneckName::Ssh(place);
    }
    match (resource, option) {
        (Resource::Network, _) if v.f.far.is_some() => BottleneckName::Link,
        (Resource::Cpu, _) if v.f.about == About::Command && v.is_one_cpu() => {
            BottleneckName::OneCpu
        }
        (Resource::Thread, _) if v.f.about == About::Command => BottleneckName::CommandThread,
        (Resource::UserLimit, Some(limit)) => BottleneckName::Option(limit.of.clone()),
        _ => BottleneckName::Resource(resource),
    }
}

/// Reason why there is too little to judge.
fn too_little(v: &View<'_>) -> Option<Help> {
    let (span_s, idle) = (v.f.span_s, v.busy < BUSY_MIN);
    match v.f.about {
        About::Transfer if span_s < SPAN_MIN_S || idle => Some(Help::TooLittleWork),
        About::Command if span_s < COMMAND_SPAN_MIN_S => Some(Help::CommandTooShort),
        About::Command if idle && !v.waits_for_peer() => Some(Help::CommandIdle),
        _ => None,
    }
}

/// The only claim, or the only one at a known ceiling.
fn single(claims: &[Claim]) -> Option<&Claim> {
    let mut reached = claims.iter().filter(|claim| claim.level == Level::AtLimit);
    match (claims, reached.next(), reached.next()) {
        ([one], ..) => Some(one),
        (_, at_limit, None) => at_limit,
        _ => None,
    }
}

/// The experiment that proves a resource. Reducing a resource can also hurt if it was not scarce before (half
/// of the CPUs, of which two thirds were used), so that proves only resources that the signals name as well.
fn proven<'a>(facts: &'a Facts, found: &'a [Claim]) -> Option<(Option<&'a Claim>, &'a Experiment)> {
    let proofs = facts.experiments.iter().filter(|made| made.is_bottleneck()).filter_map(|made| {
        let claim = found.iter().find(|claim| claim.resource == made.resource);
        let counts = match made.resource {
            Resource::Latency if facts.about == About::Transfer => made.factor > 1.0,
            _ => made.factor > 1.0 || claim.is_some(),
        };
        counts.then_some((claim, made))
    });
    proofs.max_by(|(_, a), (_, b)| a.elasticity.0.total_cmp(&b.elasticity.0))
}

/// Evidence if no resource can be named: CPUs, and where the time went.
fn hints(v: &View<'_>) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> =
        Some(v.cpu_used()).filter(|_| v.f.cpus > 0.0).into_iter().collect();
    evidence.extend(v.machine_used());
    let mut phases = v.all_phases();
    phases.truncate(2);
    evidence.extend(phases);
    evidence.extend(v.blocked_share());
    evidence.extend(v.disks_busy());
    evidence.extend(v.memory_pressure().filter(|of| of.value >= of.limit));
    evidence.extend(v.jobs_elasticity());
    evidence
}

#[cfg(test)]
mod tests;
