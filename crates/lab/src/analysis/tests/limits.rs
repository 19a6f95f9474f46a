//! Limiting resources: each one by its signals, none by a single signal.

use crate::analysis::limits::{LimitingResource, stretches};
use crate::analysis::tests::{Signals, campaign, cell, near, normal, run};
use crate::analysis::{Analysis, CellSummary, Sweep, analyse, limits};
use crate::report::{Language, said};
use crate::results::{CounterExperiment, Results};
use hakobu_explain::verdict::{Level, Resource};

/// An idle machine with two CPUs.
fn quiet() -> Signals {
    Signals {
        cpus: 2.0,
        used: 0.3,
        jobs: Some(4.0),
        machine: Some(0.2),
        busiest: Some(0.3),
        iowait: Some(0.02),
        disk_busy: Some(0.2),
        disk_iops: Some(500.0),
        disk_bytes_per_s: Some(2e6),
        net_bytes_per_s: Some(0.0),
        ..Signals::default()
    }
}

fn judge(signals: &Signals) -> LimitingResource {
    limits::judge(&signals.facts())
}

fn named(signals: Signals) -> (Resource, Level) {
    let found = judge(&signals);
    assert_eq!(found.is_determined(), found.resource != Resource::None, "{found:?}");
    if found.is_determined() {
        assert!(found.evidence.len() >= 2, "two signals: {found:?}");
    }
    (found.resource, found.level)
}

const NOTHING: (Resource, Level) = (Resource::None, Level::NotDetermined);

#[test]
fn cpus() {
    let full = Signals { used: 1.96, machine: Some(0.99), ..quiet() };
    assert_eq!(named(full), (Resource::Cpu, Level::AtLimit));
    let nearly = Signals { used: 1.84, machine: Some(0.97), ..quiet() };
    assert_eq!(named(nearly), (Resource::Cpu, Level::Consistent));
    // Its own CPU time is one signal; a flat curve is the second.
    let alone = Signals { used: 1.96, machine: None, ..quiet() };
    assert_eq!(named(alone), NOTHING);
    let flat = Signals { after: Some(0.1), ..alone };
    assert_eq!(named(flat), (Resource::Cpu, Level::AtLimit));
    // A server on the same machine uses the rest.
    let shared = Signals { used: 1.1, machine: Some(0.99), ..quiet() };
    assert_eq!(named(shared), (Resource::Cpu, Level::Consistent));
    // Others use the CPUs, and this tool may as well have slept: its jobs change nothing either way.
    let little = Signals { used: 0.33, after: Some(0.06), ..shared };
    assert_eq!(named(little), NOTHING);
    // CPUs are full, yet more jobs are much faster: not the limit.
    assert_eq!(named(Signals { after: Some(0.9), ..full }), NOTHING);
}

#[test]
fn one_thread() {
    let thread = Signals { used: 1.02, busiest: Some(0.97), machine: Some(0.52), ..quiet() };
    assert_eq!(named(thread), (Resource::Thread, Level::Consistent));
    // A thread that the scheduler migrates: only if more jobs bring nothing and the disk is idle.
    let moved = Signals { busiest: Some(0.6), after: Some(0.05), ..thread };
    assert_eq!(named(moved), (Resource::Thread, Level::Consistent));
    assert_eq!(named(Signals { after: None, ..moved }), NOTHING);
    assert_eq!(named(Signals { disk_busy: Some(0.8), ..moved }), NOTHING);
}

#[test]
fn disks() {
    // A configured ceiling, and CPUs that wait for I/O.
    let capped = Signals {
        disk_iops: Some(2990.0),
        iops_limit: Some(3000.0),
        iowait: Some(0.4),
        disk_busy: Some(0.95),
        ..quiet()
    };
    assert_eq!(named(capped), (Resource::DiskIops, Level::AtLimit));
    // At the ceiling without I/O wait; or at half the ceiling.
    let idle = Signals { iowait: Some(0.0), disk_busy: Some(0.3), ..capped };
    assert_eq!(named(idle), NOTHING);
    let half = Signals { disk_iops: Some(1500.0), disk_busy: Some(0.5), ..capped };
    assert_eq!(named(half), NOTHING);
    let bandwidth = Signals {
        disk_bytes_per_s: Some(124e6),
        bandwidth_limit: Some(125e6),
        after: Some(0.0),
        ..quiet()
    };
    assert_eq!(named(bandwidth), (Resource::DiskBandwidth, Level::AtLimit));
    let wire = Signals { disk_bytes_per_s: None, net_bytes_per_s: Some(124e6), ..bandwidth };
    assert_eq!(named(wire), (Resource::Network, Level::AtLimit));
    // Unknown ceilings: disk always busy with I/O wait; the size of requests decides between IOPS and
    // bandwidth.
    let busy = Signals { disk_busy: Some(0.97), iowait: Some(0.3), ..quiet() };
    assert_eq!(named(busy), (Resource::DiskIops, Level::Consistent));
    let large = Signals { disk_bytes_per_s: Some(500.0 * 524_288.0), ..busy };
    assert_eq!(named(large), (Resource::DiskBandwidth, Level::Consistent));
    let middle = Signals { disk_bytes_per_s: Some(500.0 * 65_536.0), ..busy };
    assert_eq!(named(middle), NOTHING);
    // Busy time alone is not a limit: many disks serve requests in parallel.
    assert_eq!(named(Signals { iowait: Some(0.0), ..busy }), NOTHING);
    let rising = Signals { after: Some(0.9), ..busy };
    assert_eq!(named(rising), (Resource::Latency, Level::Consistent));
    // With full CPUs there is no I/O wait.
    let full = Signals { used: 1.98, machine: Some(0.99), ..busy };
    assert_eq!(named(full), (Resource::Cpu, Level::AtLimit));
}

#[test]
fn latency() {
    let waits = Signals { after: Some(0.95), ..quiet() };
    assert_eq!(named(waits), (Resource::Latency, Level::Consistent));
    // At the end of a sweep the gain of the last step counts.
    let last = Signals { after: None, before: Some(0.9), ..quiet() };
    assert_eq!(named(last), (Resource::Latency, Level::Consistent));
    assert_eq!(named(Signals { before: Some(0.6), ..last }), NOTHING);
    assert_eq!(named(Signals { after: Some(0.3), ..waits }), NOTHING);
    // Jobs that are always running do not wait.
    assert_eq!(named(Signals { jobs: Some(1.0), used: 0.9, ..waits }), NOTHING);
    assert_eq!(named(Signals { jobs: None, ..waits }), NOTHING);
}

#[test]
fn nothing_is_known() {
    assert_eq!(named(Signals::default()), NOTHING);
    assert_eq!(named(quiet()), NOTHING);
    let worded = |limiting: LimitingResource| {
        let cell = CellSummary { limiting, ..CellSummary::default() };
        let analysis = Analysis { cells: vec![cell], ..Analysis::default() };
        said(&campaign(), &analysis, Language::English).limiting.remove(0)
    };
    let sentence = worded(judge(&quiet()));
    assert!(sentence.starts_with("unknown ("), "{sentence}");
    assert_eq!(worded(LimitingResource::default()), "unknown");
    // Two contradicting signals.
    let both = Signals {
        used: 1.02,
        busiest: Some(0.97),
        machine: Some(0.6),
        disk_busy: Some(0.97),
        iowait: Some(0.3),
        ..quiet()
    };
    let found = judge(&both);
    assert!(!found.is_determined() && found.open.len() == 2, "{found:?}");
    assert!(worded(found).contains(" or "));
}

#[test]
fn its_own_verdict_comes_first() {
    let mut results = campaign();
    let id = cell(&mut results, "", "hakobu", None);
    let verdict = |resource: &str, level: &str| {
        // The first name is that of an older version.
        let evidence = serde_json::json!([
            {"signal": "cpu_used_cores", "value": 1.98, "limit": 2},
            {"signal": "run_delay_share", "value": 0.41, "limit": 0.1},
        ]);
        serde_json::json!({"resource": resource, "level": level, "evidence": evidence})
    };
    for (resource, level) in
        [("cpu", "at-limit"), ("cpu", "consistent"), ("none", "not-determined")]
    {
        run(&mut results, id, (2.0, 3.0, 0.9));
        results.runs.last_mut().unwrap().verdict = Some(verdict(resource, level));
    }
    let analysis = analyse(&results);
    let found = analysis.cells[0].limiting.clone();
    assert_eq!((found.resource, found.level, found.own), (Resource::Cpu, Level::Consistent, true));
    let sentence = said(&results, &analysis, Language::English).limiting.remove(0);
    assert!(sentence.starts_with("CPU (likely: reported by 2 of 3 runs, "), "{sentence}");
    assert!(sentence.contains("1.98") && sentence.contains("41"), "{sentence}");
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.starts_with(r#"{"resource":"cpu","level":"consistent","#), "{text}");
    // Without agreement the machine's counters decide.
    results.runs[1].verdict = Some(verdict("latency", "consistent"));
    let found = analyse(&results).cells[0].limiting.clone();
    assert!(!found.own && !found.is_determined(), "{found:?}");
    // Malformed verdicts are ignored.
    for odd in [serde_json::json!(null), serde_json::json!({"resource": 7}), serde_json::json!([])]
    {
        results.runs.iter_mut().for_each(|run| run.verdict = Some(odd.clone()));
        assert!(!analyse(&results).cells[0].limiting.own);
    }
}

#[test]
fn stretches_say_from_where_to_where() {
    let of = |resource| LimitingResource {
        resource,
        level: Level::Consistent,
        ..LimitingResource::default()
    };
    let (latency, cpu, none) =
        (of(Resource::Latency), of(Resource::Cpu), LimitingResource::default());
    let words = |points: &[(f64, &LimitingResource)], name: &str| -> Vec<String> {
        let mut results = campaign();
        results.header.x_name = Some(name.to_owned());
        let sweep = Sweep { stretches: stretches(points), ..Sweep::default() };
        let analysis = Analysis { sweeps: vec![sweep], ..Analysis::default() };
        said(&results, &analysis, Language::English).stretches.remove(0)
    };
    let points =
        [(1.0, &latency), (2.0, &latency), (4.0, &none), (8.0, &cpu), (16.0, &cpu), (32.0, &none)];
    assert_eq!(
        words(&points, "jobs"),
        [
            "latency up to 2 jobs (likely)",
            "unknown with 4 jobs",
            "CPU from 8 to 16 jobs (likely)",
            "unknown from 32 jobs up"
        ]
    );
    assert_eq!(words(&[(1.0, &latency), (2.0, &cpu)], "jobs")[0], "latency with 1 job (likely)");
    assert_eq!(words(&points[3..5], "numjobs"), ["CPU from 8 to 16 jobs (likely)"]);
    assert_eq!(words(&points[..1], "jobs"), ["latency with 1 job (likely)"]);
    assert_eq!(words(&points[..1], "n"), ["latency with n=1 (likely)"]);
    assert!(stretches(&[]).is_empty());
    let strong = LimitingResource { level: Level::AtLimit, ..cpu.clone() };
    let found = stretches(&[(1.0, &strong), (2.0, &cpu)]);
    assert_eq!((found.len(), found[0].limiting.level), (1, Level::Consistent));
}

// Counter-experiments: deliberate ones, and those implied by groups.

/// The sentence about the first experiment.
fn proved(found: &Analysis) -> String {
    said(&campaign(), found, Language::English).proofs.remove(0)
}

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
    let sentence = proved(&found);
    assert_eq!(sentence, "half the CPUs ran 0.51× as fast: the CPU is the bottleneck.");
    let limiting = &found.cells[0].limiting;
    assert_eq!((limiting.resource, limiting.level), (Resource::Cpu, Level::Proven));
    let verdict = said(&campaign(), &found, Language::English).verdict.join(" ");
    let wanted =
        "Bottleneck of rsync: CPU (proven by experiment: half the CPUs ran 0.51× as fast).";
    assert!(verdict.contains(wanted), "{verdict}");
}

#[test]
fn what_changes_nothing_does_not_limit() {
    let found = analyse(&tried("iops", 2.0, &[1.0, 1.01, 0.99, 1.02, 1.0]));
    assert!(
        proved(&found).ends_with("the limit of IOPS is not the bottleneck."),
        "{}",
        proved(&found)
    );
    assert_eq!(found.cells[0].limiting.level, Level::AtLimit);
    // The experiment refutes the signals.
    let found = analyse(&tried("cpus", 2.0, &[1.0, 1.01, 0.99, 1.02, 1.0]));
    assert!(!found.cells[0].limiting.is_determined(), "{:?}", found.cells[0].limiting);
}

#[test]
fn what_is_not_clear_says_so() {
    let found = analyse(&tried("cpus", 0.5, &[0.7, 0.75, 0.72, 0.69, 0.71]));
    assert!(proved(&found).contains("unclear whether"), "{}", proved(&found));
    assert_eq!(found.cells[0].limiting.level, Level::AtLimit);
    let found = analyse(&tried("cpus", 0.5, &[0.5, 0.5]));
    assert!(proved(&found).contains("too few pairs to tell (2)"));
    // Invalid factors and missing ratios give no proof.
    for (factor, ratios) in
        [(1.0, [0.5; 3]), (0.0, [0.5; 3]), (f64::NAN, [0.5; 3]), (0.5, [0.0; 3])]
    {
        let found = analyse(&tried("cpus", factor, &ratios));
        assert!(found.proofs.is_empty(), "{:?}", found.proofs);
    }
    // Reducing a resource that the signals do not name proves nothing.
    let found = analyse(&tried("iops", 0.5, &[0.5, 0.51, 0.49, 0.5]));
    assert!(proved(&found).ends_with("less of it is slower, but more may not be faster."));
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
    assert!(proved(&found).starts_with("a source without cost ran 2.50× as fast"), "{proof:?}");
    assert!(proved(&found).ends_with("the source is the bottleneck."), "{proof:?}");
    let found = analyse(&tried("sink", 1.0, &[1.01, 1.0, 0.99, 1.02]));
    assert!(proved(&found).ends_with("the target is not the bottleneck."), "{:?}", found.proofs);
}

#[test]
fn another_endpoint() {
    for (ratios, follows) in [
        ([1.5, 1.52, 1.48, 1.5], "the endpoint is the bottleneck."),
        ([1.0, 1.01, 0.99, 1.02], "the endpoint is not the bottleneck."),
        // A slower endpoint says nothing about the first.
        ([0.5, 0.51, 0.49, 0.5], "unclear whether the endpoint is the bottleneck."),
    ] {
        let found = analyse(&tried("endpoint", 1.0, &ratios));
        let sentence = proved(&found);
        assert!(
            sentence.starts_with("another endpoint ") && sentence.ends_with(follows),
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
    assert!(proved(&found).ends_with(" as fast as 1: the CPU is the bottleneck."), "{proof:?}");
    // At the knee, here the last point.
    assert_eq!(proof.cell, 2);
    let verdict = said(&campaign(), &found, Language::English).verdict.join(" ");
    assert!(verdict.contains("and the most that was tried; more may be faster"), "{verdict}");
    assert!(verdict.contains("2 CPUs were 2"), "{verdict}");
    let found = analyse(&groups("iops", ["3000", "6k"], [10.0, 10.0]));
    let sentence = proved(&found);
    assert!(sentence.starts_with("IOPS 3000 → 6k changed nothing: "), "{sentence}");
    assert!(sentence.ends_with("is not the bottleneck."), "{sentence}");
    // Conditions without numbers, or with equal ones, are not an experiment.
    assert!(analyse(&groups("iops", ["few", "many"], [10.0, 5.0])).proofs.is_empty());
    assert!(analyse(&groups("bandwidth", ["1MB", "1000KB"], [10.0, 5.0])).proofs.is_empty());
}
