//! Cases with a known limit and realistic numbers, and near misses that must not be named.

mod catalogue;
mod commands;
mod far;
mod local;
mod slack;
mod statements;
mod stores;

use crate::verdict::*;
use hakobu_core::language::Language;
use hakobu_core::meter::Phase;

/// A local transfer with two CPUs and no further facts.
fn local(phases: &[(Phase, f64)]) -> Facts {
    let mut facts = Facts {
        span_s: 10.0,
        cpus: 2.0,
        machine_cpus: Some(2.0),
        jobs: 4.0,
        jobs_max: 64,
        bytes_per_s: 1e8,
        operations_per_s: 24_000.0,
        ..Facts::default()
    };
    for (phase, units) in phases {
        facts.phases[*phase as usize] = *units;
    }
    facts
}

/// An upload with 32 jobs over a fast path.
fn upload(phases: &[(Phase, f64)]) -> Facts {
    let mut facts = local(phases);
    facts.stores = (false, true);
    facts.jobs = 32.0;
    facts.jobs_max = 256;
    facts.operations_per_s = 600.0;
    facts.network = Some(NetworkFacts {
        bytes_per_s: 2e7,
        retransmits: Some(0.0),
        rtt_ms: Some(0.08),
        rtt_min_ms: Some(0.04),
        peer_window_full: Some(0.0),
        send_queue_full: Some(0.0),
        same_machine: true,
        ..NetworkFacts::default()
    });
    facts.cpu_used = 0.3;
    facts.machine_used = Some(0.7);
    facts.run_delay = Some(0.03);
    facts
}

fn points(curve: &[(f64, f64)]) -> Vec<Point> {
    curve.iter().map(|(jobs, rate)| Point { jobs: *jobs, rate: *rate }).collect()
}

fn named(facts: &Facts) -> (Resource, Level) {
    let verdict = judge(facts);
    if verdict.resource != Resource::None {
        let counters = verdict.evidence.len();
        assert!(counters >= 2, "{counters} signals name {:?}", verdict.resource);
    } else {
        assert_eq!(verdict.level, Level::NotDetermined);
    }
    let said = advice_words(&verdict, Language::English);
    assert!(said.ends_with('.'), "{said}");
    (verdict.resource, verdict.level)
}

/// The advice for facts, in English.
fn advice(facts: &Facts) -> String {
    advice_words(&judge(facts), Language::English)
}

const UNKNOWN: (Resource, Level) = (Resource::None, Level::NotDetermined);

/// A result of `--prove`.
fn made(resource: Resource, factor: f64, elasticity: (f64, f64, f64)) -> Experiment {
    Experiment { resource, factor, elasticity, pairs: 6, says: Conclusion::of(elasticity) }
}
