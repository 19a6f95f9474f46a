//! Counter-experiments: deliberate ones, and those implied by groups.

use super::{campaign, cell, near, normal, run};
use crate::analysis::*;
use crate::results::{CounterExperiment, Results};
use hakobu_explain::verdict::{Level, Resource};

/// A cell with full CPUs and an experiment.
fn tried(changed: &str, factor: f64, ratios: &[f64]) -> Results {
    let mut results = campaign();
    let id = cell(&mut results, "", "rsync", None);
    for wall_s in [2.0, 2.02, 1.98, 2.01, 1.99] {
        run(&mut results, id, (wall_s, 3.0, 0.95));
        let load = &mut results.runs.last_mut().unwrap().load;
        load.insert("cpu_percent".to_owned(), 99.0);
    }
    results.experiments.push(CounterExperiment {
        cell: id,
        changed: changed.to_owned(),
        about: "2 → 1".to_owned(),
        factor,
        ratios: ratios.to_vec(),
    });
    results
}

#[test]
fn half_the_cpus_prove_what_the_signals_name() {
    let found = analyse(&tried("cpus", 0.5, &[0.52, 0.5, 0.51, 0.53, 0.49]));
    let [proof] = found.proofs.as_slice() else { panic!("{:?}", found.proofs) };
    // ln 0.51 ÷ ln 0.5.
    assert!(near(proof.elasticity.mid, 0.971, 0.01), "{proof:?}");
    assert!(proof.elasticity.low > 0.9 && proof.elasticity.high < 1.05, "{proof:?}");
    assert!(
        proof.sentence.starts_with("half the CPUs gave 0.51 × the speed (elasticity 0.97, ")
            && proof.sentence.ends_with(": the CPU limits."),
        "{}",
        proof.sentence
    );
    let limiting = &found.cells[0].limiting;
    assert_eq!((limiting.resource, limiting.level), (Resource::Cpu, Level::Proven));
    let verdict = found.verdict.join(" ");
    assert!(verdict.contains("The CPU limits rsync: half the CPUs gave 0.51 ×."), "{verdict}");
}

#[test]
fn what_changes_nothing_does_not_limit() {
    let found = analyse(&tried("iops", 2.0, &[1.0, 1.01, 0.99, 1.02, 1.0]));
    assert!(found.proofs[0].sentence.ends_with("the number of IOPS does not limit."));
    assert_eq!(found.cells[0].limiting.level, Level::AtLimit);
    // The experiment refutes the signals.
    let found = analyse(&tried("cpus", 2.0, &[1.0, 1.01, 0.99, 1.02, 1.0]));
    assert!(!found.cells[0].limiting.is_determined(), "{:?}", found.cells[0].limiting);
}

#[test]
fn what_is_not_clear_says_so() {
    let found = analyse(&tried("cpus", 0.5, &[0.7, 0.75, 0.72, 0.69, 0.71]));
    assert!(found.proofs[0].sentence.contains("not clear"), "{}", found.proofs[0].sentence);
    assert_eq!(found.cells[0].limiting.level, Level::AtLimit);
    let found = analyse(&tried("cpus", 0.5, &[0.5, 0.5]));
    assert!(found.proofs[0].sentence.contains("2 pairs are too few to tell"));
    // Invalid factors and missing ratios give no proof.
    for (factor, ratios) in
        [(1.0, [0.5; 3]), (0.0, [0.5; 3]), (f64::NAN, [0.5; 3]), (0.5, [0.0; 3])]
    {
        let found = analyse(&tried("cpus", factor, &ratios));
        assert!(found.proofs.is_empty(), "{:?}", found.proofs);
    }
    // Reducing a resource that the signals do not name proves nothing.
    let found = analyse(&tried("iops", 0.5, &[0.5, 0.51, 0.49, 0.5]));
    assert!(
        found.proofs[0].sentence.ends_with("less of it is slower, but more may not be faster.")
    );
    assert_eq!(found.cells[0].limiting.level, Level::AtLimit);
    // Other resources prove nothing about CPUs.
    let found = analyse(&tried("latency", 2.0, &[0.5, 0.51, 0.49, 0.5]));
    assert!(near(found.proofs[0].elasticity.mid, 1.0, 0.02), "{:?}", found.proofs);
    assert_eq!(found.cells[0].limiting.resource, Resource::Cpu);
}

#[test]
fn an_end_without_cost() {
    // Without the source 2.5 times as fast: it took 60 % of the time.
    let found = analyse(&tried("source", f64::INFINITY, &[2.5, 2.45, 2.55, 2.5]));
    let proof = &found.proofs[0];
    assert!(near(proof.elasticity.mid, 0.6, 0.01), "{proof:?}");
    assert!(proof.sentence.contains("a source without cost gave 2.50 × the speed"), "{proof:?}");
    assert!(proof.sentence.ends_with("the source limits."), "{proof:?}");
    let found = analyse(&tried("sink", 1.0, &[1.01, 1.0, 0.99, 1.02]));
    assert!(found.proofs[0].sentence.ends_with("the target does not limit."), "{:?}", found.proofs);
}

#[test]
fn another_endpoint() {
    for (ratios, follows) in [
        ([1.5, 1.52, 1.48, 1.5], "the endpoint limits."),
        ([1.0, 1.01, 0.99, 1.02], "the endpoint does not limit."),
        // A slower endpoint says nothing about the first.
        ([0.5, 0.51, 0.49, 0.5], "not clear whether the endpoint limits."),
    ] {
        let found = analyse(&tried("endpoint", 1.0, &ratios));
        let sentence = &found.proofs[0].sentence;
        assert!(
            sentence.contains("another endpoint gave ") && sentence.ends_with(follows),
            "{sentence}"
        );
        // The proof is about the server, not the CPUs.
        assert_eq!(found.cells[0].limiting.resource, Resource::Cpu);
    }
    // A third of the time is saved.
    let found = analyse(&tried("endpoint", 1.0, &[1.5, 1.52, 1.48, 1.5]));
    assert!(near(found.proofs[0].elasticity.mid, 1.0 / 3.0, 0.02), "{:?}", found.proofs);
}

/// One tool under two conditions, five blocks.
fn groups(condition: &str, values: [&str; 2], wall_s: [f64; 2]) -> Results {
    let mut results = campaign();
    let mut random = fastrand::Rng::with_seed(5);
    for (value, wall_s) in values.into_iter().zip(wall_s) {
        for jobs in [1.0, 2.0, 4.0] {
            let id = cell(&mut results, value, "rsync", Some(jobs));
            let of = &mut results.header.cells[id as usize];
            of.conditions.insert(condition.to_owned(), value.to_owned());
            of.parameters.insert(condition.to_owned(), value.to_owned());
            for _ in 0..5 {
                let wall_s = wall_s * (4.0 / jobs) * (0.01 * normal(&mut random)).exp();
                run(&mut results, id, (wall_s, 0.1, 0.1));
            }
        }
    }
    results
}

#[test]
fn groups_that_differ_in_one_condition_are_an_experiment() {
    let found = analyse(&groups("cpus", ["1", "2"], [10.0, 5.0]));
    let [proof] = found.proofs.as_slice() else { panic!("{:?}", found.proofs) };
    assert_eq!((proof.changed.as_str(), proof.about.as_str()), ("cpus", "cpus 1 → 2"));
    assert!(near(proof.elasticity.mid, 1.0, 0.03), "{proof:?}");
    assert!(proof.sentence.ends_with("the CPU limits."), "{proof:?}");
    // At the knee, here the last point.
    assert_eq!(proof.cell, 2);
    let verdict = found.verdict.join(" ");
    assert!(
        verdict.contains("4 jobs are best, at the end of the sweep, so more may be faster."),
        "{verdict}"
    );
    assert!(verdict.contains("The CPU limits: twice the CPUs gave "), "{verdict}");
    let found = analyse(&groups("iops", ["3000", "6k"], [10.0, 10.0]));
    assert!(
        found.proofs[0].sentence.contains("twice the IOPS gave 1.00 × the speed")
            || found.proofs[0].sentence.contains("twice the IOPS gave 0.99 × the speed")
            || found.proofs[0].sentence.contains("twice the IOPS gave 1.01 × the speed")
    );
    assert!(found.proofs[0].sentence.ends_with("does not limit."), "{:?}", found.proofs);
    // Conditions without numbers, or with equal ones, are not an experiment.
    assert!(analyse(&groups("iops", ["few", "many"], [10.0, 5.0])).proofs.is_empty());
    assert!(analyse(&groups("bandwidth", ["1MB", "1000KB"], [10.0, 5.0])).proofs.is_empty());
}
