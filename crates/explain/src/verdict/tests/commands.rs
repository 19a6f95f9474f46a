//! Verdicts on commands, observed from outside.

use crate::verdict::tests::*;

/// A command of ten seconds on a machine with two CPUs and an almost idle disk.
pub(crate) fn command() -> Facts {
    Facts {
        about: About::Command,
        span_s: 10.0,
        cpus: 2.0,
        cpus_allowed: Some(2.0),
        machine_cpus: Some(2.0),
        cpu_used: 0.1,
        machine_used: Some(0.2),
        thread_used: Some(0.1),
        run_delay: Some(0.02),
        pressure: Pressure { cpu: Some(0.02), io: Some(0.01), memory: Some(0.0) },
        threads: Some(states(0.0, 0.0)),
        disks: vec![DiskFacts {
            name: "vda".to_owned(),
            busy: 0.01,
            queue: Some(0.01),
            ..DiskFacts::default()
        }],
        network: Some(NetworkFacts { bytes_per_s: 500.0, ..NetworkFacts::default() }),
        ..Facts::default()
    }
}

/// Threads blocked, and the share of samples that wait for the other side.
pub(crate) fn states(blocked: f64, waiting_for_peer: f64) -> ThreadFacts {
    ThreadFacts { blocked, waiting_for_peer: Some(waiting_for_peer), ..ThreadFacts::default() }
}

/// Bound to one CPU, like rsync's three processes.
pub(crate) fn on_one_cpu() -> Facts {
    Facts {
        cpus: 1.0,
        cpus_allowed: Some(1.0),
        cpu_used: 0.96,
        machine_used: Some(0.97),
        busiest_cpu: Some(BusiestCpu { number: Some(0), used: 0.97 }),
        thread_used: Some(0.5),
        run_delay: Some(0.49),
        ..command()
    }
}

#[test]
pub(crate) fn one_cpu() {
    assert_eq!(named(&on_one_cpu()), (Resource::Cpu, Level::AtLimit));
    assert_eq!(
        sentence(&judge(&on_one_cpu()), Language::English),
        "Bottleneck: one CPU (cpu0 97% busy; runnable threads waited 49% of the time; disks idle). \
         More of the machine's 2 CPUs (affinity) would help; faster disks and more processes \
         alone would not."
    );
    // A single thread that always runs would not be faster on two CPUs.
    let alone = Facts { thread_used: Some(0.95), run_delay: Some(0.0), ..on_one_cpu() };
    assert_eq!(named(&alone), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&alone).starts_with("A faster CPU would help, or more CPUs together"));
    // The CPU is half idle.
    let half = Facts { cpu_used: 0.5, machine_used: Some(0.5), ..on_one_cpu() };
    assert_eq!(named(&half), UNKNOWN);
}

#[test]
fn all_cpus_and_one_thread() {
    let mut facts = Facts {
        cpu_used: 1.95,
        machine_used: Some(1.99),
        thread_used: Some(0.6),
        run_delay: Some(0.4),
        ..command()
    };
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert_eq!(judge(&facts).named, BottleneckName::Resource(Resource::Cpu));
    (facts.cpu_used, facts.machine_used) = (1.02, Some(1.1));
    (facts.thread_used, facts.run_delay) = (Some(0.99), Some(0.01));
    assert_eq!(named(&facts), (Resource::Thread, Level::AtLimit));
    assert_eq!(judge(&facts).named, BottleneckName::CommandThread);
    assert!(advice(&facts).starts_with("Only a faster CPU would help"));
    // Other processes use the second CPU, so they may be the limit.
    facts.machine_used = Some(1.98);
    assert_eq!(named(&facts), UNKNOWN);
    // Two active threads.
    (facts.cpu_used, facts.machine_used) = (1.6, Some(1.65));
    assert_eq!(named(&facts), UNKNOWN);
}

#[test]
fn a_quota() {
    let facts = Facts {
        cpus: 0.5,
        cpu_used: 0.49,
        machine_used: Some(0.6),
        quota_throttled: Some(0.95),
        thread_used: Some(0.49),
        run_delay: Some(0.5),
        ..command()
    };
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).starts_with("A larger CPU quota would help"));
    let free = Facts { quota_throttled: Some(0.0), run_delay: Some(0.0), ..facts };
    assert_eq!(named(&free), UNKNOWN);
}

#[test]
fn cpus_that_others_use() {
    // A single thread that always runs or waits for a CPU.
    let mut facts =
        Facts { cpu_used: 0.4, machine_used: Some(1.99), run_delay: Some(0.6), ..command() };
    facts.threads = Some(ThreadFacts { runnable: Some(1.0), ..states(0.0, 0.0) });
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).contains("other processes use 1.6 CPUs"));
    let with = |change: fn(&mut ThreadFacts)| {
        let mut facts = facts.clone();
        change(facts.threads.as_mut().unwrap());
        named(&facts)
    };
    // It sleeps at times, whatever the others do with the CPUs: seen in samples, or by its exact times.
    assert_eq!(with(|threads| threads.runnable = Some(0.85)), UNKNOWN);
    assert_eq!(with(|threads| threads.runnable = None), UNKNOWN);
    for (cpu_used, run_delay) in [(0.07, 0.81), (0.25, 0.5), (0.18, 0.65)] {
        let facts = Facts { cpu_used, run_delay: Some(run_delay), ..facts.clone() };
        assert_eq!(named(&facts), UNKNOWN, "{cpu_used} {run_delay}");
    }
    // Several processes, one of which is nearly always runnable, but each keeps to a rate.
    assert_eq!(with(|threads| threads.asleep = 1.5), UNKNOWN);
    assert_eq!(with(|threads| threads.asleep = 0.5), (Resource::Cpu, Level::AtLimit));
    // Waiting for a connection.
    assert_eq!(with(|threads| threads.waiting_for_peer = Some(0.7)), UNKNOWN);
    // A disk near its ceiling may be the limit as well.
    facts.threads = Some(ThreadFacts { runnable: Some(1.0), ..states(0.35, 0.0) });
    facts.disks[0].ceilings = vec![Ceiling {
        operations: true,
        direction: Direction::Writes,
        limit: 3000.0,
        reached: 2820.0,
        from: "blkio.throttle.write_iops_device",
    }];
    assert_eq!(named(&facts), UNKNOWN);
}

/// Blocked on a disk most of the time.
pub(crate) fn on_disk() -> Facts {
    let mut facts = command();
    facts.pressure.io = Some(0.9);
    facts.threads = Some(states(0.9, 0.0));
    facts.disks[0] = DiskFacts {
        name: "loop3".to_owned(),
        write_iops: 230.0,
        write_bytes_per_s: 1.2e8,
        queue: Some(60.0),
        busy: 1.0,
        ..DiskFacts::default()
    };
    facts
}

#[test]
fn disks() {
    // A ceiling of the command's cgroup.
    let mut facts = on_disk();
    facts.disks[0].ceilings = vec![Ceiling {
        operations: false,
        direction: Direction::Writes,
        limit: 1.25e8,
        reached: 1.24e8,
        from: "io.max",
    }];
    assert_eq!(named(&facts), (Resource::DiskBandwidth, Level::AtLimit));
    assert!(advice(&facts).contains("limit set in io.max"));
    // Reached, but the command does not wait for it.
    let mut idle = facts.clone();
    idle.threads = Some(states(0.05, 0.0));
    assert_eq!(named(&idle), UNKNOWN);
    // Unknown ceiling: always busy, with a queue.
    let mut facts = on_disk();
    assert_eq!(named(&facts), (Resource::DiskBandwidth, Level::Consistent));
    // A single request in flight keeps a disk busy that could do more.
    facts.disks[0].queue = Some(1.0);
    assert_eq!(named(&facts), UNKNOWN);
    // Swapping.
    let mut facts = on_disk();
    facts.pressure.memory = Some(0.6);
    assert_eq!(named(&facts), UNKNOWN);
    let hints = judge(&facts).evidence;
    assert!(hints.iter().any(|of| of.signal == "memory_pressure_share"), "{hints:?}");
}

#[test]
fn links_and_the_other_side() {
    let mut facts = command();
    facts.threads = Some(states(0.0, 0.9));
    // A connection without data is only one signal.
    assert_eq!(named(&facts), UNKNOWN);
    facts.network = Some(NetworkFacts {
        bytes_per_s: 1e6,
        link_bytes_per_s: Some(1.25e8),
        ..NetworkFacts::default()
    });
    assert_eq!(named(&facts), (Resource::Peer, Level::Consistent));
    assert!(
        sentence(&judge(&facts), Language::English)
            .starts_with("Bottleneck: likely the remote side (")
    );
    // Traffic of other processes, while the command computes.
    let busy = Facts { cpu_used: 0.7, machine_used: Some(0.9), ..facts.clone() };
    assert_eq!(named(&busy), UNKNOWN);
    facts.network.as_mut().unwrap().bytes_per_s = 1.22e8;
    assert_eq!(named(&facts), (Resource::Network, Level::AtLimit));
}

#[test]
fn nothing_to_judge() {
    let idle = Facts { cpu_used: 0.001, thread_used: Some(0.001), ..command() };
    assert_eq!(named(&idle), UNKNOWN);
    assert!(advice(&idle).contains("idle"));
    assert_eq!(named(&command()), UNKNOWN);
    let short = Facts { span_s: 1.9, ..on_one_cpu() };
    assert_eq!(named(&short), UNKNOWN);
    assert!(advice(&short).contains("too short to judge"));
    assert!(!advice(&command()).contains("--prove"));
}
