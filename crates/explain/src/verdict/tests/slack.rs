//! For arbitrary facts: no resource is named that has headroom by the same facts.

use crate::verdict::tests::*;
use proptest::prelude::*;

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1.0_f64, Just(0.0), Just(0.95), Just(1.0), 0.85..1.0_f64]
}

fn maybe() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(share())
}

fn disk() -> impl Strategy<Value = DiskFacts> {
    (share(), 0.0..40.0_f64, 1.0..9000.0_f64, 512.0..1e6_f64, any::<bool>(), maybe()).prop_map(
        |(busy, queue, iops, size, writes, reached)| {
            let direction = if writes { Direction::Writes } else { Direction::Reads };
            let ceiling = |reached: f64| Ceiling {
                operations: true,
                direction,
                limit: 3000.0,
                reached: 3000.0 * reached,
                from: "io.max",
            };
            let (reads, writes) = if writes { (0.0, iops) } else { (iops, 0.0) };
            DiskFacts {
                name: "vda".to_owned(),
                read_iops: reads,
                read_bytes_per_s: reads * size,
                write_iops: writes,
                write_bytes_per_s: writes * size,
                queue: Some(queue),
                busy,
                ceilings: reached.map(ceiling).into_iter().collect(),
                ..DiskFacts::default()
            }
        },
    )
}

prop_compose! {
    pub(crate) fn anything()(
        about in prop_oneof![Just(About::Transfer), Just(About::Cell), Just(About::Command)],
        (own, others, cpus) in (share(), share(), 1..9_u8),
        (thread, delay, quota) in (maybe(), maybe(), maybe()),
        (cpu, io, memory, iowait) in (maybe(), maybe(), maybe(), maybe()),
        (blocked, peer) in (0.0..4.0_f64, maybe()),
        (runnable, asleep) in (maybe(), 0.0..3.0_f64),
        disks in prop::collection::vec(disk(), 0..3),
        (moved, speed) in (0.0..1.25e8_f64, prop::option::of(Just(1.25e8))),
        gains in prop::collection::vec(0.5..2.0_f64, 0..4),
        phases in prop::collection::vec(0.0..4.0_f64, hakobu_core::meter::PHASES),
        stores in any::<(bool, bool)>(),
        busiest in maybe(),
    ) -> Facts {
        let cpus = f64::from(cpus);
        let jobs = (1 << gains.len()) as f64;
        let mut rate = 1.0;
        let curve = gains.iter().enumerate().map(|(step, gain)| {
            rate *= gain;
            Point { jobs: f64::from(1 << step), rate }
        });
        let mut facts = Facts {
            about,
            span_s: 10.0,
            cpus,
            cpus_allowed: Some(cpus),
            machine_cpus: Some(cpus),
            cpu_used: own * cpus,
            machine_used: Some((own + others).min(1.0) * cpus),
            busiest_cpu: busiest.map(|used| BusiestCpu { number: None, used }),
            iowait: iowait.map(|share| share * cpus),
            thread_used: thread.map(|share| share.min(own * cpus)),
            run_delay: delay,
            quota_throttled: quota,
            pressure: Pressure { cpu, io, memory },
            threads: Some(ThreadFacts { blocked, waiting_for_peer: peer, runnable, asleep }),
            disks,
            network: Some(NetworkFacts {
                bytes_per_s: moved,
                link_bytes_per_s: speed,
                ..NetworkFacts::default()
            }),
            jobs,
            jobs_max: 64,
            stores,
            curve: curve.collect(),
            ..Facts::default()
        };
        if about == About::Transfer {
            facts.phases.copy_from_slice(&phases);
        }
        facts
    }
}

/// True if others use the CPUs, and by the facts there were moments without a thread that needed one.
fn rests(facts: &Facts) -> bool {
    if facts.cpu_used >= 0.9 * facts.cpus || facts.own_verdict.is_some() {
        return false;
    }
    let delay = facts.run_delay.unwrap_or(0.0).clamp(0.0, 0.99);
    let waited = facts.cpu_used * delay / (1.0 - delay);
    let seen = facts.threads.is_some_and(|threads| {
        threads.runnable.is_none_or(|share| share < 0.9) || threads.asleep > waited
    });
    facts.cpu_used + waited < 0.9 || facts.about == About::Command && seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn nothing_is_named_that_has_room(facts in anything()) {
        let found = judge(&facts);
        let machine = facts.machine_used.unwrap_or(0.0) / facts.cpus;
        let near = |disk: &DiskFacts| {
            disk.busy >= 0.9 || disk.ceilings.iter().any(|of| of.reached >= 0.95 * of.limit)
        };
        let named = found.resource;
        let has_room = match named {
            // Some CPU is idle for a tenth of the time, and no quota applies.
            // Others use the CPUs, and it does not always need one.
            Resource::Cpu => machine < 0.9 || rests(&facts),
            Resource::Thread => facts.cpus < 1.5 || machine > 0.85 || facts.cpu_used < 0.9,
            Resource::DiskIops | Resource::DiskBandwidth => !facts.disks.iter().any(near),
            Resource::Network | Resource::Server | Resource::Peer | Resource::Latency => {
                machine > 0.85
            }
            _ => false,
        };
        prop_assert!(!has_room, "{named:?} {:?}", found.evidence);
        if named == Resource::None {
            prop_assert_eq!(found.level, Level::NotDetermined);
        } else {
            prop_assert!(found.evidence.len() >= 2, "{:?}", found.evidence);
        }
        // Without an external limit a command has no named resource.
        if facts.about == About::Command {
            use Resource::{Latency, Lock, Own, Server, Source, Target, UserLimit};
            let inside = [Latency, Lock, Own, Server, Source, Target, UserLimit];
            prop_assert!(!inside.contains(&named), "{:?}", named);
        }
    }
}
