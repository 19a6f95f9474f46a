//! For arbitrary facts: what is said agrees with the numbers beside it, statements agree with each other, and shares add
//! up.

use crate::verdict::tests::slack::anything;
use crate::verdict::tests::*;
use proptest::prelude::*;

/// Whether a statement is true of a value and its reference, as a reader understands it. `None`: not known here, which is
/// an error.
fn is_true(says: Statement, signal: &str, value: f64, limit: f64) -> Option<bool> {
    let share = value / limit;
    Some(match says {
        Statement::AllUsableCpusUsed | Statement::NoCpuIdle => share >= 0.95,
        Statement::MostUsableCpusUsed => (0.5..0.95).contains(&share),
        Statement::UsableCpusUnused => share < 0.5,
        Statement::CpusHardlyIdle => share < 0.95,
        Statement::CpusIdle => share <= 0.85,
        Statement::OneCpuNeverIdle => value >= 0.99,
        Statement::OneCpuHardlyIdle => value >= 0.9,
        Statement::EachCpuIdleAtTimes => value < 0.99,
        Statement::ThreadFull => value >= 0.95,
        Statement::NoThreadFull => value < 0.95,
        Statement::ThreadsWaitForCpus | Statement::IoWait | Statement::QuotaThrottles => {
            value >= 0.1
        }
        Statement::ThreadsGetCpus | Statement::NoThrottling => value < 0.01,
        Statement::QuotaFree | Statement::LocksFree => value < 0.01,
        Statement::CpuPressure | Statement::IoPressure | Statement::MemoryPressure => value >= 0.3,
        Statement::LittleCpuPressure
        | Statement::LittleIoPressure
        | Statement::LittleMemoryPressure => value < 0.1,
        Statement::ThreadsBlocked => value >= 0.4,
        Statement::ThreadsRarelyBlocked | Statement::JobsHardlyWait | Statement::LittleIoWait => {
            value < 0.1
        }
        Statement::JobsWait | Statement::LockContended => value >= 0.3,
        Statement::WaitsForPeer => value >= 0.5,
        Statement::NeverWaitsForPeer | Statement::NoSendQueueBacklog => value < 0.05,
        Statement::DiskNeverIdle => value >= 0.99,
        Statement::DiskHardlyIdle => (0.9..0.99).contains(&value),
        Statement::DiskHasPauses => value < 0.9,
        Statement::DiskQueues => value >= 4.0,
        Statement::DiskQueueShort => value < 4.0,
        Statement::LinkFull => share >= 0.9,
        Statement::LinkHasRoom => share < 0.9,
        Statement::Traffic => value >= 65_536.0,
        Statement::NoTraffic => value < 65_536.0,
        Statement::CeilingReached | Statement::LimitReached => share >= 0.95,
        Statement::BelowCeiling | Statement::BelowLimit => share < 0.95,
        Statement::MoreJobsGain => value >= 0.7,
        Statement::MoreJobsGainLittle => value > 0.0 && value < 0.7,
        Statement::MoreJobsNoGain => value < 0.1,
        Statement::IsBottleneck => value >= 0.7,
        Statement::IsPartlyBottleneck => (0.1..0.7).contains(&value),
        Statement::IsNoBottleneck => value < 0.1,
        Statement::RequestsQueueAtServer => share >= 2.0,
        Statement::ResponsesAwaitOwnLimit => share >= 1.2,
        Statement::ResponsesSlower => (1.2..2.0).contains(&share),
        Statement::ResponsesFast => share < 1.2,
        Statement::RoundTripsLong => share >= 3.0,
        Statement::RoundTripsLonger => share >= 1.5,
        Statement::RoundTripsShort => share < 1.5 || value - limit < 0.1,
        Statement::SegmentsLost => value >= 0.005,
        Statement::FewSegmentsLost => value < 0.005,
        Statement::SendQueueBacklog => value >= 0.3,
        Statement::ServerReadsNothing => value >= 0.9,
        Statement::ServerReadsSlowly => value >= 0.5,
        Statement::ServerReads => value < 0.1,
        Statement::ServerThrottles => value >= 0.01,
        Statement::PacketsQueued => value >= 65_536.0,
        Statement::FewPacketsQueued => value >= 1.0,
        Statement::NoPacketsQueued => value < 1.0,
        Statement::WritebackThrottles => share >= 0.7,
        Statement::WritebackFree => share < 0.7,
        Statement::TasksBlocked => value >= 1.0,
        Statement::FewTasksBlocked => value < 1.0,
        Statement::CpusStolen => share >= 1.0,
        Statement::FewCpusStolen => share < 1.0,
        Statement::MostOfTheTime => value >= 0.5,
        Statement::PartOfTheTime => (0.05..0.5).contains(&value),
        Statement::HardlyEver => value < 0.05,
        // Between the two ends of its signal.
        _ if statement_words(says, Language::English).ends_with(" at times") => {
            value > 0.0 && signal.ends_with("_share")
        }
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
        let says = |text: Statement| found.signals.iter().any(|signal| signal.says == text);
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
        prop_assert!(!says(Statement::CpusIdle) || used <= 0.85 * facts.cpus + 1e-9);
        prop_assert!(!(says(Statement::CpusIdle) && says(Statement::AllUsableCpusUsed)));
        // Phases of busy units add up, and so do their printed shares, by half a percent each.
        let phases: Vec<&Evidence> = found.signals.iter().map(|signal| &signal.evidence)
            .filter(|of| of.signal.starts_with("phase_")).collect();
        if facts.about == About::Transfer && !phases.is_empty() {
            let sum: f64 = phases.iter().map(|of| of.value).sum();
            prop_assert!((sum - 1.0).abs() < 0.002, "{sum}: {phases:?}");
            let printed: f64 = phases.iter().map(|of| {
                measure(of, of.value).trim_end_matches('%').parse::<f64>().unwrap()
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
        let text = sentence(&found, Language::English);
        prop_assert!(text.starts_with("Bottleneck: "), "{text}");
        let japanese = sentence(&found, Language::Japanese);
        prop_assert!(japanese.starts_with("ボトルネック"), "{japanese}");
        // What is likely or proven is said so, once.
        for (word, level) in [("likely", Level::Consistent), ("proven by", Level::Proven)] {
            prop_assert_eq!(text.matches(word).count(), usize::from(found.level == level), "{}", text);
        }
        // Every number in it is that of a signal.
        let lower = text.to_lowercase();
        let full = found.resource == Resource::Cpu
            && (facts.cpu_used >= 0.95 * facts.cpus
                || !found.evidence.iter().any(|of| of.signal == "machine_used_cpus"));
        for of in found.evidence.iter().take(3) {
            let words = evidence_words(of, Language::English).to_lowercase();
            let (value, limit) = (measure(of, of.value), measure(of, of.limit));
            let told = match &*of.signal {
                "cpu_used_cpus" if full => text.contains(&format!("{value} of {limit} in use")),
                "cpu_used_cpus" => lower.contains(&format!(" used {value} of {limit} cpus")),
                "machine_used_cpus" => full || text.contains(", other processes "),
                "user_limit_bytes_per_s" => text.contains(&format!(" of {limit}")),
                "phase_limit_share" if found.resource == Resource::UserLimit => true,
                // Shares of all workers' time, where some were idle.
                signal if signal.starts_with("phase_") => {
                    let idle = found.evidence.iter().find(|of| of.signal == "idle_units_share");
                    let share = of.value * (1.0 - idle.map_or(0.0, |idle| idle.value));
                    text.contains(&format!("{} ", measure(of, share)))
                }
                "blocked_share" if of.value < 0.05 => !text.contains("blocked"),
                "experiment_elasticity" => {
                    let effects = found.experiments.iter().map(|made| {
                        measure(of, made.factor.powf(made.elasticity.0))
                    });
                    let told = |effect: String| text.contains(&format!("gave {effect} of the throughput"));
                    effects.into_iter().any(told)
                }
                _ => lower.contains(&words),
            };
            prop_assert!(told, "{text}: {of:?}");
        }
        let lower = advice_words(&found, Language::English).to_lowercase();
        let (helps, useless) = match lower.split_once("; ") {
            Some((helps, useless)) => (helps.to_owned(), useless.to_owned()),
            None if lower.contains("would not help") => (String::new(), lower.clone()),
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
