//! From facts to a verdict: the rules' claims, what experiments say about them, and what is said
//! where they disagree.

use super::advice;
use super::rules::{self, Claim};
use super::signals;
use super::view::View;
use super::{Experiment, Facts, Level, Resource, Verdict};

/// Runs shorter than this have no steady part to speak of.
const SPAN_MIN_S: f64 = 0.5;

/// What limits, by what evidence, and how sure that is.
///
/// Goes in: means over the steady part of a run. Comes out: one resource, or
/// [`Resource::None`] at [`Level::NotDetermined`] where fewer than two independent signals name
/// one, where signals disagree, or where there is nothing to judge.
pub fn judge(facts: &Facts) -> Verdict {
    let v = View::new(facts);
    let signals = v.all();
    let experiments = facts.experiments.clone();
    let verdict = |resource, level, evidence, advice| Verdict {
        resource,
        level,
        evidence,
        advice,
        signals: signals.clone(),
        experiments: experiments.clone(),
    };
    if facts.span_s < SPAN_MIN_S || v.busy < 0.05 {
        let advice = "There was too little to do to tell what would make it faster.".to_owned();
        return verdict(Resource::None, Level::NotDetermined, Vec::new(), advice);
    }
    let found = rules::claims(&v);
    if let Some((claim, made)) = proven(facts, &found) {
        let mut evidence = vec![signals::experiment(made)];
        evidence.extend(claim.map(|claim| claim.evidence.clone()).unwrap_or_default());
        let advice = advice::advice(&v, made.resource, Level::Proven);
        return verdict(made.resource, Level::Proven, evidence, advice);
    }
    let left: Vec<Claim> =
        found.into_iter().filter(|claim| !is_refuted(facts, claim.resource)).collect();
    // A limit that the user set and units wait for is no matter of opinion.
    let own_limit = left.iter().position(|claim| claim.resource == Resource::UserLimit);
    if let Some(claim) = own_limit.and_then(|at| left.get(at)).or(single(&left)) {
        let advice = advice::advice(&v, claim.resource, claim.level);
        return verdict(claim.resource, claim.level, claim.evidence.clone(), advice);
    }
    let named: Vec<Resource> = left.iter().map(|claim| claim.resource).collect();
    let mut evidence: Vec<_> = left.into_iter().flat_map(|claim| claim.evidence).collect();
    if evidence.is_empty() {
        evidence = hints(&v);
    }
    let advice = advice::undetermined(&v, &named);
    verdict(Resource::None, Level::NotDetermined, evidence, advice)
}

fn single(claims: &[Claim]) -> Option<&Claim> {
    match claims {
        [one] => Some(one),
        _ => None,
    }
}

/// Whether an experiment shows that its resource binds: 70 % of a change or more come through, and
/// surely more than a tenth.
pub(super) fn binds(made: &Experiment) -> bool {
    let (mean, low, _) = made.elasticity;
    mean >= 0.7 && low >= 0.3
}

/// Whether it shows that its resource does not: a tenth at most, and surely not the half.
pub(super) fn is_loose(made: &Experiment) -> bool {
    let (mean, _, high) = made.elasticity;
    mean <= 0.1 && high <= 0.5
}

pub(super) fn is_refuted(facts: &Facts, resource: Resource) -> bool {
    facts.experiments.iter().any(|made| made.resource == resource && is_loose(made))
}

/// The experiment that proves a resource. Taking something away hurts also where it was not short
/// before (half of the CPUs, of which two thirds were used): that only proves what the signals
/// name as well.
fn proven<'a>(facts: &'a Facts, found: &'a [Claim]) -> Option<(Option<&'a Claim>, &'a Experiment)> {
    let proofs = facts.experiments.iter().filter(|made| binds(made)).filter_map(|made| {
        let claim = found.iter().find(|claim| claim.resource == made.resource);
        let counts = match made.resource {
            Resource::Latency => made.factor > 1.0,
            _ => made.factor > 1.0 || claim.is_some(),
        };
        counts.then_some((claim, made))
    });
    proofs.max_by(|(_, a), (_, b)| a.elasticity.0.total_cmp(&b.elasticity.0))
}

/// What is told where nothing can be named: CPUs, and where the time went.
fn hints(v: &View<'_>) -> Vec<super::Evidence> {
    let mut evidence = vec![v.cpu_used()];
    evidence.extend(v.machine_used());
    let mut phases = v.phases(&signals::PHASES);
    phases.truncate(2);
    evidence.extend(phases);
    evidence.extend(v.blocked_share());
    evidence.extend(v.jobs_elasticity());
    evidence
}
