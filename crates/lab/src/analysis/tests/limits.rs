//! Limiting resources: each one by its signals, none by a single signal.

use super::{Signals, campaign, cell, run};
use crate::analysis::limits::{self, stretches};
use crate::analysis::*;
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
    limits::judge(&signals.facts(), Lang::En)
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
    let sentence = judge(&quiet()).sentence("cp", Lang::En);
    assert!(sentence.starts_with("The limit of cp is not determined: "), "{sentence}");
    let nothing = LimitingResource::default().sentence("cp", Lang::En);
    assert_eq!(nothing, "The limit of cp is not determined.");
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
    assert!(!found.is_determined() && found.evidence[0].contains(" or "), "{found:?}");
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
    let found = analyse(&results).cells[0].limiting.clone();
    assert_eq!((found.resource, found.level, found.own), (Resource::Cpu, Level::Consistent, true));
    assert_eq!(
        found.sentence("hakobu", Lang::En),
        "hakobu is limited by the CPU (consistent): its own verdict in 2 of 3 runs, cpu used cores 1.98, \
         41 % of runnable time waiting."
    );
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
        stretches(points, name, Lang::En).into_iter().map(|of| of.sentence).collect()
    };
    let points =
        [(1.0, &latency), (2.0, &latency), (4.0, &none), (8.0, &cpu), (16.0, &cpu), (32.0, &none)];
    assert_eq!(
        words(&points, "jobs"),
        [
            "latency up to 2 jobs",
            "not determined with 4 jobs",
            "the CPU from 8 to 16 jobs",
            "not determined from 32 jobs on"
        ]
    );
    assert_eq!(words(&[(1.0, &latency), (2.0, &cpu)], "jobs")[0], "latency with 1 job");
    assert_eq!(words(&points[3..5], "numjobs"), ["the CPU from numjobs 8 to 16"]);
    assert_eq!(words(&points[..1], "jobs"), ["latency with 1 job"]);
    assert!(stretches(&[], "jobs", Lang::En).is_empty());
    let strong = LimitingResource { level: Level::AtLimit, ..cpu.clone() };
    let found = stretches(&[(1.0, &strong), (2.0, &cpu)], "jobs", Lang::En);
    assert_eq!((found.len(), found[0].limiting.level), (1, Level::Consistent));
}
