//! For arbitrary facts: what is said agrees with the numbers beside it, statements agree with each other, and shares add
//! up.

use crate::verdict::tests::slack::anything;
use crate::verdict::tests::*;
use proptest::prelude::*;

/// Whether a statement is true of a value and its reference, as a reader understands it. `None`: not known here, which is
/// an error.
fn is_true(says: &str, signal: &str, value: f64, limit: f64) -> Option<bool> {
    let share = value / limit;
    Some(match says {
        "it uses all CPUs that it may" | "no CPU is idle" => share >= 0.95,
        "it uses most of the CPUs that it may" => (0.5..0.95).contains(&share),
        "it leaves CPUs unused" => share < 0.5,
        "CPUs are hardly idle" => share < 0.95,
        "CPUs are idle" => share <= 0.85,
        "one CPU is never idle" => value >= 0.99,
        "one CPU is hardly idle" => value >= 0.9,
        "each CPU is idle at times" => value < 0.99,
        "one thread is at its limit" => value >= 0.95,
        "no thread is at its limit" => value < 0.95,
        "its threads wait for CPUs" | "CPUs wait for I/O" | "the quota throttles" => value >= 0.1,
        "its threads get CPUs at once" | "the server does not object" => value < 0.01,
        "the quota does not throttle" | "locks are free" => value < 0.01,
        "tasks wait for CPUs" | "tasks wait for I/O" | "tasks wait for memory" => value >= 0.3,
        "few tasks wait for CPUs" | "few tasks wait for I/O" | "few tasks wait for memory" => {
            value < 0.1
        }
        "its threads are blocked in the kernel" => value >= 0.4,
        "its threads rarely block" | "jobs hardly wait" | "CPUs hardly wait for I/O" => value < 0.1,
        "jobs wait" | "threads wait for a lock" => value >= 0.3,
        "it waits for the other side" => value >= 0.5,
        "it does not wait for the other side" | "bytes leave at once" => value < 0.05,
        "the disk always has work" => value >= 0.99,
        "the disk nearly always has work" => (0.9..0.99).contains(&value),
        "the disk has pauses" => value < 0.9,
        "requests queue at the disk" => value >= 4.0,
        "few requests are at the disk" => value < 4.0,
        "the link is full" => share >= 0.9,
        "the link has room" => share < 0.9,
        "bytes come or go" => value >= 65_536.0,
        "almost no network traffic" => value < 65_536.0,
        "the ceiling is reached" | "the limit is reached" => share >= 0.95,
        "below the ceiling" | "below the limit" => share < 0.95,
        "more jobs bring more" => value >= 0.7,
        "more jobs bring a little" => value > 0.0 && value < 0.7,
        "more jobs bring nothing" => value < 0.1,
        "it binds" => value >= 0.7,
        "it binds in part" => (0.1..0.7).contains(&value),
        "it does not bind" => value < 0.1,
        "requests queue at the server" => share >= 2.0,
        "answers take longer than the fastest" => (1.2..2.0).contains(&share),
        "answers come as fast as ever" => share < 1.2,
        "round trips are longer than necessary" => share >= 3.0,
        "round trips are a little longer than necessary" => share >= 1.5,
        "packets do not queue" => share < 1.5 || value - limit < 0.1,
        "segments are lost" => value >= 0.005,
        "almost no segments are lost" => value < 0.005,
        "bytes wait to be sent" => value >= 0.3,
        "the server does not read" => value >= 0.9,
        "the server reads slowly" => value >= 0.5,
        "the server reads" => value < 0.1,
        "the server asks to slow down" => value >= 0.01,
        "packets wait in a queue" => value >= 65_536.0,
        "few packets wait in a queue" => value >= 1.0,
        "no packets wait" => value < 1.0,
        "writers wait for writeback" => share >= 0.7,
        "writers do not wait" => share < 0.7,
        "tasks are blocked on I/O" => value >= 1.0,
        "few tasks are blocked on I/O" => value < 1.0,
        "the hypervisor takes CPUs away" => share >= 1.0,
        "the hypervisor takes little" => share < 1.0,
        "most of the time" => value >= 0.5,
        "a part of the time" => value > 0.0 && value < 0.5,
        "hardly ever" => value < 0.01,
        // Between the two ends of its signal.
        _ if says.ends_with(" at times") => value > 0.0 && signal.ends_with("_share"),
        _ => return None,
    })
}

prop_compose! {
    /// Facts with parts that only transfers have.
    fn more()(
        facts in anything(),
        (answer_min_ms, rtt, least, lost, window) in
            (prop::option::of(0.1..50.0_f64), 0.05..90.0_f64, 0.05..5.0_f64, 0.0..0.02_f64, 0.0..1.0_f64),
        (queued, backlog, throttled, stolen) in (0.0..1.0_f64, 0.0..2e5_f64, 0.0..20.0_f64, 0.0..0.5_f64),
        (rate, operations, reached) in (0.0..2e8_f64, 0.0..3000.0_f64, 0.0..1.1_f64),
        (locks, dirty) in (prop::option::of(0.0..1.0_f64), 0.0..1.0_f64),
        (jobs_fixed, jobs) in (any::<bool>(), prop::option::of(Just(1.0))),
        made in prop::option::of((-0.3..1.3_f64, 0.0..0.4_f64, any::<bool>())),
    ) -> Facts {
        let mut facts = facts;
        facts.answer_min_ms = answer_min_ms;
        if let Some(network) = &mut facts.network {
            (network.rtt_ms, network.rtt_min_ms) = (Some(least + rtt), Some(least));
            (network.retransmits, network.peer_window_full) = (Some(lost), Some(window));
            (network.send_queue_full, network.backlog_bytes) = (Some(queued), Some(backlog));
        }
        let used = facts.machine_used.unwrap_or(0.0);
        facts.stolen = Some((stolen * facts.cpus).min(facts.cpus - used).max(0.0));
        (facts.bytes_per_s, facts.operations_per_s) = (rate, operations);
        facts.throttled_per_s = throttled.min(operations);
        facts.limits = vec![UserLimit { option: "--bwlimit", limit: 1e8, reached: 1e8 * reached }];
        facts.lock_waits = locks;
        for disk in &mut facts.disks {
            disk.dirty_bytes = Some((dirty * 1e9, 1e9));
        }
        facts.jobs_fixed = jobs_fixed;
        facts.jobs = jobs.unwrap_or(facts.jobs);
        if let Some((mean, half, is_cpu)) = made {
            let resource = if is_cpu { Resource::Cpu } else { Resource::Latency };
            let factor = if is_cpu { 0.5 } else { 1.5 };
            facts.experiments = vec![crate::verdict::tests::made(resource, factor, (mean, mean - half, mean + half))];
        }
        facts
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn statements_agree_with_numbers(facts in more()) {
        let found = judge(&facts);
        let says = |text: &str| found.signals.iter().any(|signal| signal.says == text);
        for signal in &found.signals {
            let of = &signal.evidence;
            let gone = facts.stolen.unwrap_or(0.0);
            // What is stolen from CPUs is not idle.
            let value = if of.signal == "machine_used_cpus" { of.value + gone } else { of.value };
            let told = is_true(signal.says, &of.signal, value, of.limit);
            prop_assert_eq!(told, Some(true), "{:?}", signal);
            // The number as it is printed stays on the same side of its statement by a rounding.
            prop_assert!(!measure(of, of.value).is_empty());
        }
        let used = facts.machine_used.unwrap_or(0.0) + facts.stolen.unwrap_or(0.0);
        prop_assert!(!says("CPUs are idle") || used <= 0.85 * facts.cpus + 1e-9);
        prop_assert!(!(says("CPUs are idle") && says("it uses all CPUs that it may")));
        // Phases of busy units add up, and so do their printed shares, by half a percent each.
        let phases: Vec<&Evidence> = found.signals.iter().map(|signal| &signal.evidence)
            .filter(|of| of.signal.starts_with("phase_")).collect();
        if facts.about == About::Transfer && !phases.is_empty() {
            let sum: f64 = phases.iter().map(|of| of.value).sum();
            prop_assert!((sum - 1.0).abs() < 0.002, "{sum}: {phases:?}");
            let printed: f64 = phases.iter().map(|of| {
                measure(of, of.value).trim_end_matches(" %").parse::<f64>().unwrap()
            }).sum();
            prop_assert!((printed - 100.0).abs() <= 0.5 * phases.len() as f64 + 0.2, "{printed}");
        }
        let shares = found.signals.iter().map(|signal| &signal.evidence)
            .filter(|of| of.signal.ends_with("_share") && of.signal != "throttled_share");
        for of in shares {
            prop_assert!((-1e-9..=1.0 + 1e-9).contains(&of.value) || of.signal == "jobs_waiting_share",
                "{of:?}");
        }
    }

    #[test]
    fn sentences_do_not_contradict_themselves(facts in more()) {
        let found = judge(&facts);
        let text = sentence(&found);
        // Every number in it is that of a signal.
        for of in found.evidence.iter().take(3) {
            prop_assert!(text.contains(&words(of)), "{text}: {of:?}");
        }
        let lower = found.advice.to_lowercase();
        let (helps, useless) = match lower.split_once("; ") {
            Some((helps, useless)) => (helps.to_owned(), useless.to_owned()),
            None => (lower.clone(), String::new()),
        };
        for (what, also) in [("more jobs", "jobs (-j)"), ("faster disks", "iops"), ("more bandwidth", "disk bandwidth")] {
            let both = useless.contains(what) && (helps.contains(what) || helps.contains(also));
            prop_assert!(!both, "{text}");
        }
        let used = (facts.machine_used.unwrap_or(0.0) + facts.stolen.unwrap_or(0.0)) / facts.cpus;
        if useless.contains("more cpus") && !facts.refutes(Resource::Cpu) {
            prop_assert!(used <= 0.85, "{used}: {text}");
        }
        if useless.contains("more jobs") {
            let told = found.signals.iter().find(|signal| signal.evidence.signal == "jobs_elasticity");
            let ruled_out = facts.refutes(Resource::Latency);
            prop_assert!(ruled_out || told.is_some_and(|signal| signal.evidence.value <= 0.1), "{text}");
        }
        // The same resource is not both the limit and without effect.
        if found.resource == Resource::Cpu {
            prop_assert!(!useless.contains("more cpus"), "{text}");
        }
    }
}
