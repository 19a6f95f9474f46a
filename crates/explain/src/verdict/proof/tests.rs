//! Simulated machines whose limit is known, with noise.

use super::*;
use crate::verdict::{NetworkFacts, UserLimit, judge};
use hakobu_core::meter::Phase;

/// Goodput per second, by jobs, CPUs and the factor of the limits.
type Machine = fn(f64, f64, f64) -> f64;

/// Experiments on a machine for at most a minute; also checks that settings are restored.
fn run(machine: Machine, facts: &Facts, jobs: usize, noise: f64, seed: u64) -> Vec<Experiment> {
    let budget = Duration::from_secs(30);
    let mut prover = Prover::new(facts, jobs, budget);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut now, mut done) = (Duration::ZERO, 0.0);
    let mut set = ProofTrial::Baseline;
    let mut factor = 1.0;
    let tick = Duration::from_millis(10);
    for turn in 0.. {
        if turn % 20 == 0 {
            // The sum of twelve uniform numbers is nearly normal with a deviation of 1.
            let normal: f64 = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            factor = (noise * normal).exp();
        }
        if let Some(trial) = prover.step(now, Progress { goodput: done, completions: done as u64 })
        {
            set = trial;
        }
        if prover.is_over() {
            break;
        }
        let (mut at, mut cpus, mut limit) = (jobs as f64, facts.cpus, 1.0);
        match set {
            ProofTrial::Baseline => {}
            ProofTrial::Jobs(count) => at = count as f64,
            ProofTrial::Cpus(count) => cpus = count as f64,
            ProofTrial::Limits(share) => limit = share,
        }
        // Drift of a tenth in ten seconds.
        let drift = 1.0 + 0.01 * now.as_secs_f64();
        done += machine(at, cpus, limit) * factor * drift * tick.as_secs_f64();
        now += tick;
        assert!(now < budget + Duration::from_secs(5), "it ends");
    }
    assert_eq!(set, ProofTrial::Baseline);
    prover.results
}

fn facts(phase: Phase, units: f64) -> Facts {
    let mut facts = Facts { span_s: 5.0, cpus: 4.0, jobs: 8.0, jobs_max: 64, ..Facts::default() };
    facts.phases[phase as usize] = units;
    facts.run_delay = Some(0.05);
    facts
}

/// Number of experiments per resource that prove it, and that refute it.
fn counts(machine: Machine, facts: &Facts, noise: f64) -> impl Fn(Resource) -> (usize, usize) {
    let made: Vec<Experiment> =
        (0..100).flat_map(|seed| run(machine, facts, 8, noise, seed)).collect();
    move |resource| {
        let of = made.iter().filter(|made| made.resource == resource);
        (
            of.clone().filter(|made| made.says == Conclusion::Bottleneck).count(),
            of.filter(|made| made.says == Conclusion::NoEffect).count(),
        )
    }
}

#[test]
fn cpus_are_proven() {
    let mut facts = facts(Phase::Write, 8.0);
    (facts.cpu_used, facts.machine_used, facts.run_delay) = (3.9, Some(3.95), Some(0.5));
    for noise in [0.05, 0.15] {
        let of = counts(|_, cpus, _| 500.0 * cpus, &facts, noise);
        assert!(of(Resource::Cpu).0 >= 98, "{:?}", of(Resource::Cpu));
        // With full CPUs more jobs are not tried.
        assert_eq!(of(Resource::Latency), (0, 0));
    }
    facts.experiments = run(|_, cpus, _| 500.0 * cpus, &facts, 8, 0.05, 7);
    assert_eq!(judge(&facts).resource, Resource::Cpu);
    assert_eq!(judge(&facts).level, crate::verdict::Level::Proven);
}

#[test]
fn a_disk_rules_out_cpus_and_jobs() {
    let mut facts = facts(Phase::Write, 8.0);
    (facts.cpu_used, facts.machine_used) = (2.1, Some(2.2));
    // Two of the four CPUs suffice for the disk.
    let disk: Machine = |jobs, cpus, _| (1500.0_f64).min(400.0 * jobs).min(800.0 * cpus);
    for noise in [0.05, 0.15] {
        let of = counts(disk, &facts, noise);
        assert_eq!((of(Resource::Cpu).0, of(Resource::Latency).0), (0, 0), "at {noise}");
        let least = if noise < 0.1 { 98 } else { 60 };
        assert!(of(Resource::Cpu).1 >= least, "{:?} at {noise}", of(Resource::Cpu));
        let least = if noise < 0.1 { 90 } else { 45 };
        assert!(of(Resource::Latency).1 >= least, "{:?} at {noise}", of(Resource::Latency));
    }
}

#[test]
fn latency_is_proven() {
    let mut facts = facts(Phase::Answer, 7.9);
    (facts.cpu_used, facts.machine_used) = (2.1, Some(2.2));
    facts.stores = (false, true);
    facts.network = Some(NetworkFacts::default());
    let far: Machine = |jobs, cpus, _| (100.0 * jobs).min(1000.0 * cpus);
    for (noise, least) in [(0.05, 95), (0.15, 70)] {
        let of = counts(far, &facts, noise);
        assert!(of(Resource::Latency).0 >= least, "{:?} at {noise}", of(Resource::Latency));
        assert_eq!((of(Resource::Latency).1, of(Resource::Cpu).0), (0, 0), "at {noise}");
    }
}

#[test]
fn a_limit_is_proven() {
    let mut facts = facts(Phase::Limit, 7.9);
    (facts.cpu_used, facts.machine_used) = (0.2, Some(0.3));
    facts.limits = vec![UserLimit { option: "--bwlimit", limit: 900.0, reached: 899.0 }];
    let of = counts(|_, _, limit| 900.0 * limit, &facts, 0.05);
    assert!(of(Resource::UserLimit).0 >= 98);
    // Fewer than half of the CPUs are used, so reducing them is not tried.
    assert_eq!(of(Resource::Cpu), (0, 0));
    assert_eq!(of(Resource::Latency).0, 0);
}

#[test]
fn nothing_to_try_or_no_time() {
    let mut facts = facts(Phase::Write, 1.0);
    (facts.cpus, facts.jobs_max, facts.cpu_used) = (1.0, 1, 0.97);
    let mut prover = Prover::new(&facts, 1, Duration::from_secs(9));
    assert_eq!(prover.step(Duration::ZERO, Progress::default()), None);
    assert!(prover.is_over() && prover.experiments().is_empty());
    // Without progress it ends after its time, and settings are restored.
    facts.jobs_max = 8;
    facts.cpu_used = 0.1;
    let mut prover = Prover::new(&facts, 4, Duration::from_secs(9));
    let mut set = ProofTrial::Baseline;
    for turn in 0..2000 {
        let now = Duration::from_millis(10 * turn);
        set = prover.step(now, Progress::default()).unwrap_or(set);
    }
    assert!(prover.is_over() && prover.experiments().is_empty());
    assert_eq!(set, ProofTrial::Baseline);
}
