//! Verdicts on transfers between volumes.

use crate::verdict::tests::*;

/// One CPU by affinity, small files between file systems in memory.
pub(crate) fn one_cpu() -> Facts {
    let mut facts = local(&[(Phase::Create, 0.5), (Phase::Write, 0.4), (Phase::Settle, 0.3)]);
    facts.cpus = 1.0;
    facts.cpu_used = 0.98;
    facts.machine_used = Some(0.99);
    facts.thread_used = Some(0.5);
    facts.run_delay = Some(0.19);
    facts.jobs = 1.3;
    facts
}

#[test]
fn one_cpu_by_affinity() {
    let facts = one_cpu();
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).starts_with("More of the machine's 2 CPUs (affinity) would help"));
    // One job on one CPU: no thread waits, but the CPU is never idle.
    let single = Facts { run_delay: Some(0.01), thread_used: Some(0.97), ..facts.clone() };
    assert_eq!(named(&single), (Resource::Cpu, Level::AtLimit));
    // Only the process's own times are known: one signal.
    let poor = Facts { run_delay: None, machine_used: None, ..facts.clone() };
    assert_eq!(named(&poor), UNKNOWN);
    let near = Facts { cpu_used: 0.7, machine_used: Some(0.72), ..facts };
    assert_eq!(named(&near), UNKNOWN);
}

#[test]
fn a_quota_and_a_hypervisor_take_cpus_away() {
    let mut facts = one_cpu();
    facts.cpus = 0.5;
    facts.cpus_allowed = Some(2.0);
    facts.cpu_used = 0.49;
    facts.machine_used = Some(0.6);
    facts.quota_throttled = Some(0.9);
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).starts_with("A larger CPU quota would help"));
    // A container within its quota on a machine filled by others.
    facts.cpu_used = 0.2;
    facts.machine_used = Some(1.95);
    facts.quota_throttled = Some(0.0);
    facts.run_delay = Some(0.02);
    assert_eq!(named(&facts), UNKNOWN);
    let mut facts = one_cpu();
    facts.cpus = 2.0;
    facts.cpu_used = 1.3;
    facts.machine_used = Some(1.35);
    facts.stolen = Some(0.6);
    // 1.3 used and 0.6 stolen of 2 CPUs are 95 %.
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).starts_with("CPUs not shared by the hypervisor"));
}

#[test]
fn cpus_that_others_use() {
    let mut facts = local(&[(Phase::Create, 2.0), (Phase::Write, 2.0)]);
    facts.cpu_used = 0.9;
    facts.machine_used = Some(1.99);
    facts.run_delay = Some(0.6);
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    assert!(advice(&facts).contains("other processes use 1.1 CPUs"));
    // Others fill the CPUs, but this process waits for something else.
    facts.run_delay = Some(0.03);
    assert_eq!(named(&facts), UNKNOWN);
    // Workers that wait for a CPU after each pause which a limit makes; the limit is not quite reached.
    let mut facts = local(&[(Phase::Limit, 3.0), (Phase::Create, 0.5), (Phase::Write, 0.5)]);
    (facts.cpu_used, facts.machine_used, facts.run_delay) = (0.4, Some(1.99), Some(0.6));
    facts.limits = vec![UserLimit { option: "--bwlimit", limit: 1e7, reached: 9.3e6 }];
    assert_eq!(named(&facts), UNKNOWN);
    // With CPUs to spare it is the limit, of which the search for a number of jobs left a part.
    (facts.machine_used, facts.run_delay) = (Some(0.6), Some(0.02));
    assert_eq!(named(&facts), (Resource::UserLimit, Level::AtLimit));
    // A worker that rests a third of the time.
    let mut facts = local(&[(Phase::Create, 0.7)]);
    (facts.cpu_used, facts.machine_used, facts.run_delay) = (0.3, Some(1.99), Some(0.57));
    assert_eq!(named(&facts), UNKNOWN);
    // More jobs brought more as long as there was room for dirty pages.
    let mut facts = throttled(6000.0, true);
    facts.curve = points(&[(1.0, 10.0), (2.0, 40.0), (4.0, 90.0)]);
    assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
    // It rarely needs a CPU, and waits when it does: the disk at its ceiling is the limit.
    let mut facts = throttled(3000.0, true);
    (facts.cpu_used, facts.machine_used, facts.run_delay) = (0.12, Some(2.0), Some(0.48));
    assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
    facts.disks.clear();
    assert_eq!(named(&facts), UNKNOWN);
}

#[test]
fn threads_that_spin_for_a_lock_are_no_lack_of_cpus() {
    let mut facts = local(&[(Phase::Create, 3.6), (Phase::Write, 0.4)]);
    facts.cpu_used = 1.95;
    facts.machine_used = Some(1.98);
    facts.run_delay = Some(0.4);
    facts.curve = points(&[(1.0, 100.0), (2.0, 188.0), (4.0, 190.0)]);
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    // Two CPUs are hardly faster than one.
    facts.curve = points(&[(1.0, 100.0), (2.0, 108.0), (4.0, 105.0)]);
    assert_eq!(named(&facts), UNKNOWN);
}

/// Small files to ext4 on a disk throttled to `limit` writes per second: writers wait in
/// `balance_dirty_pages` and for the journal.
pub(crate) fn throttled(limit: f64, operations: bool) -> Facts {
    let mut facts = local(&[
        (Phase::Read, 0.2),
        (Phase::Create, 1.3),
        (Phase::Write, 2.0),
        (Phase::Settle, 0.3),
    ]);
    facts.cpu_used = 0.45;
    facts.machine_used = Some(0.6);
    facts.run_delay = Some(0.04);
    facts.thread_used = Some(0.15);
    facts.pressure = Pressure { cpu: Some(0.03), io: Some(0.85), memory: Some(0.0) };
    facts.blocked = Some(3.5);
    let from = match operations {
        true => "blkio.throttle.write_iops_device",
        false => "blkio.throttle.write_bps_device",
    };
    facts.disks = vec![DiskFacts {
        name: "loop3".to_owned(),
        sides: vec![Side::Target],
        write_iops: if operations { limit } else { limit / 524_288.0 },
        write_bytes_per_s: if operations { limit * 16_384.0 } else { limit },
        queue: Some(120.0),
        busy: 1.0,
        latency_ms: 40.0,
        ceilings: vec![Ceiling {
            operations,
            direction: Direction::Writes,
            limit,
            reached: 0.995 * limit,
            from,
        }],
        dirty_bytes: Some((3.1e8, 3.6e8)),
        ..DiskFacts::default()
    }];
    facts
}

#[test]
fn a_throttled_disk_below_buffered_writes() {
    for limit in [3000.0, 6000.0] {
        let facts = throttled(limit, true);
        assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
        let verdict = judge(&facts);
        assert_eq!(verdict.evidence[0].signal, "disk_write_iops");
        assert_eq!(
            advice(&facts),
            "More IOPS would help (limit set in blkio.throttle.write_iops_device); more \
             CPUs would not."
        );
    }
    assert_eq!(named(&throttled(125e6, false)), (Resource::DiskBandwidth, Level::AtLimit));
    // Without run delay and pressure, disk and workers still agree.
    let mut poor = throttled(3000.0, true);
    (poor.run_delay, poor.pressure, poor.blocked) = (None, Pressure::default(), None);
    assert_eq!(named(&poor), (Resource::DiskIops, Level::AtLimit));
}

#[test]
fn a_disk_that_nobody_waits_for() {
    // Everything fits into the page cache: writeback is at the ceiling, the workers at the CPU's limit.
    let mut facts = throttled(3000.0, true);
    facts.cpu_used = 1.93;
    facts.machine_used = Some(1.99);
    facts.run_delay = Some(0.45);
    facts.disks[0].dirty_bytes = Some((1.1e8, 3.6e8));
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    // The same with one job: the thread is on a CPU, so the disk is not the limit.
    let mut facts = throttled(3000.0, true);
    facts.phases = [0.0; hakobu_core::meter::PHASES];
    facts.phases[Phase::Write as usize] = 1.0;
    facts.jobs = 1.0;
    facts.cpu_used = 0.8;
    facts.machine_used = Some(1.0);
    facts.run_delay = Some(0.02);
    assert_eq!(named(&facts), UNKNOWN);
    // At half of the ceiling.
    let mut facts = throttled(3000.0, true);
    facts.disks[0].ceilings[0].reached = 1500.0;
    assert_eq!(named(&facts), UNKNOWN);
    // Writes are at their ceiling, but reading takes the time.
    let mut facts = throttled(3000.0, true);
    facts.phases = [0.0; hakobu_core::meter::PHASES];
    facts.phases[Phase::Read as usize] = 3.0;
    facts.phases[Phase::Write as usize] = 0.8;
    assert_eq!(named(&facts), UNKNOWN);
}

/// Cold reads of small files.
pub(crate) fn cold(jobs: f64, iops: f64) -> Facts {
    let mut facts = local(&[(Phase::Read, 0.8 * jobs), (Phase::Look, 0.2 * jobs)]);
    facts.jobs = jobs;
    facts.cpu_used = 0.35;
    facts.machine_used = Some(0.5);
    facts.run_delay = Some(0.02);
    facts.pressure = Pressure { cpu: Some(0.02), io: Some(0.95), memory: Some(0.0) };
    facts.disks = vec![DiskFacts {
        name: "loop4".to_owned(),
        sides: vec![Side::Source],
        read_iops: iops,
        read_bytes_per_s: iops * 4096.0,
        queue: Some(jobs),
        busy: 0.99,
        latency_ms: jobs / iops * 1000.0,
        ..DiskFacts::default()
    }];
    facts
}

#[test]
fn cold_reads() {
    let mut facts = cold(16.0, 2995.0);
    facts.disks[0].ceilings = vec![Ceiling {
        operations: true,
        direction: Direction::Reads,
        limit: 3000.0,
        reached: 2995.0,
        from: "blkio.throttle.read_iops_device",
    }];
    assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
    // A disk of unknown ceilings: more jobs bring nothing, requests queue.
    let mut facts = cold(32.0, 9000.0);
    facts.curve = points(&[(8.0, 30.0), (16.0, 36.0), (32.0, 37.0)]);
    assert_eq!(named(&facts), (Resource::DiskIops, Level::Consistent));
    facts.disks[0].read_bytes_per_s = 9000.0 * 262_144.0;
    assert_eq!(named(&facts), (Resource::DiskBandwidth, Level::Consistent));
    // Requests of medium size: only the source can be named.
    facts.disks[0].read_bytes_per_s = 9000.0 * 65_536.0;
    assert_eq!(named(&facts), (Resource::Source, Level::Consistent));
    // More jobs bring more: latency, although the disk is never idle.
    let mut facts = cold(4.0, 5000.0);
    facts.curve = points(&[(1.0, 10.0), (2.0, 19.5), (4.0, 38.0)]);
    assert_eq!(named(&facts), (Resource::Latency, Level::Consistent));
    // A fixed number of jobs and no ceiling: the effect of more is unknown.
    assert_eq!(named(&Facts { curve: Vec::new(), ..facts }), UNKNOWN);
}

#[test]
fn a_slow_source_that_is_no_disk() {
    let mut facts = local(&[(Phase::Idle, 3.0), (Phase::Read, 0.99), (Phase::Write, 0.01)]);
    facts.cpu_used = 0.02;
    facts.machine_used = Some(0.1);
    facts.run_delay = Some(0.0);
    facts.foreign = vec![Side::Source];
    assert_eq!(named(&facts), (Resource::Source, Level::Consistent));
    // The producer of the bytes uses all CPUs, and this process waits for none.
    facts.machine_used = Some(1.99);
    assert_eq!(named(&facts), UNKNOWN);
    facts.machine_used = Some(0.1);
    facts.foreign.clear();
    assert_eq!(named(&facts), UNKNOWN);
    facts.foreign = vec![Side::Target];
    facts.phases.swap(Phase::Read as usize, Phase::Write as usize);
    assert_eq!(named(&facts), (Resource::Target, Level::Consistent));
    // A source with a fixed speed per job.
    let mut facts = local(&[(Phase::Read, 7.9), (Phase::Write, 0.1)]);
    (facts.jobs, facts.cpu_used, facts.machine_used) = (8.0, 0.1, Some(0.3));
    facts.run_delay = Some(0.0);
    facts.foreign = vec![Side::Source];
    facts.curve = points(&[(2.0, 10.0), (4.0, 20.0), (8.0, 39.0)]);
    assert_eq!(named(&facts), (Resource::Latency, Level::Consistent));
}

#[test]
fn a_limit_that_the_user_set() {
    for (option, limit) in [("--bwlimit", 20_971_520.0), ("--iops-limit", 500.0)] {
        let mut facts = local(&[(Phase::Limit, 3.7), (Phase::Write, 0.2)]);
        (facts.cpu_used, facts.machine_used) = (0.1, Some(0.3));
        facts.limits = vec![UserLimit { option, limit, reached: 0.99 * limit }];
        assert_eq!(named(&facts), (Resource::UserLimit, Level::AtLimit));
        assert!(advice(&facts).starts_with("Raise it to go faster"));
        facts.limits[0].reached = 0.6 * limit;
        assert_eq!(named(&facts), UNKNOWN);
        // Reached by chance: no unit waits for it.
        let mut facts = throttled(3000.0, true);
        facts.limits = vec![UserLimit { option, limit, reached: 0.99 * limit }];
        assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
    }
}

#[test]
fn one_hot_directory() {
    let mut facts = local(&[(Phase::Create, 7.0), (Phase::Write, 0.6), (Phase::Settle, 0.4)]);
    (facts.jobs, facts.cpus, facts.machine_cpus) = (8.0, 8.0, Some(8.0));
    (facts.cpu_used, facts.machine_used) = (1.6, Some(2.0));
    facts.run_delay = Some(0.03);
    facts.pressure = Pressure { cpu: Some(0.05), io: Some(0.01), memory: Some(0.0) };
    facts.curve = points(&[(2.0, 95.0), (4.0, 100.0), (8.0, 98.0)]);
    facts.lock_waits = Some(0.7);
    assert_eq!(named(&facts), (Resource::Lock, Level::Consistent));
    // Without lock samples the cause of sleeping is unknown.
    assert_eq!(named(&Facts { lock_waits: None, ..facts.clone() }), UNKNOWN);
    // A disk at its write ceiling.
    facts.disks = throttled(3000.0, true).disks;
    facts.pressure.io = Some(0.8);
    assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
}

#[test]
fn one_thread() {
    let mut facts = local(&[(Phase::Read, 0.4), (Phase::Write, 0.59)]);
    (facts.jobs, facts.jobs_fixed) = (1.0, true);
    (facts.cpu_used, facts.machine_used) = (0.98, Some(1.05));
    (facts.thread_used, facts.run_delay) = (Some(0.97), Some(0.01));
    assert_eq!(named(&facts), (Resource::Thread, Level::AtLimit));
    assert!(advice(&facts).starts_with("More jobs (-j) would help"));
    assert_eq!(named(&Facts { thread_used: Some(0.6), cpu_used: 0.62, ..facts.clone() }), UNKNOWN);
    // Two active threads are not limited by one.
    let mut two = facts.clone();
    two.phases[Phase::Read as usize] = 1.2;
    assert_eq!(named(&two), UNKNOWN);
    // The scheduling thread, and idle workers.
    let mut planner = upload(&[(Phase::Idle, 24.0), (Phase::Answer, 5.0), (Phase::Send, 1.0)]);
    (planner.cpu_used, planner.machine_used) = (1.2, Some(1.4));
    planner.thread_used = Some(0.97);
    planner.curve = points(&[(8.0, 10.0), (16.0, 10.1), (32.0, 10.0)]);
    assert_eq!(named(&planner), (Resource::Thread, Level::AtLimit));
    planner.thread_used = Some(0.5);
    assert_eq!(named(&planner), UNKNOWN);
}

#[test]
fn too_little_to_tell() {
    let mut facts = one_cpu();
    facts.span_s = 0.3;
    assert_eq!(named(&facts), UNKNOWN);
    assert_eq!(named(&Facts::default()), UNKNOWN);
    assert_eq!(named(&local(&[(Phase::Idle, 4.0)])), UNKNOWN);
    // Impossible values must neither name a resource nor panic.
    let odd = Facts {
        cpus: f64::NAN,
        cpu_used: f64::INFINITY,
        run_delay: Some(1.0),
        curve: points(&[(0.0, f64::NAN), (1.0, 0.0), (2.0, -1.0)]),
        ..local(&[(Phase::Read, f64::NAN)])
    };
    assert_eq!(judge(&odd).resource, Resource::None);
}

#[test]
fn experiments_prove_and_rule_out() {
    let mut facts = one_cpu();
    facts.cpus = 2.0;
    (facts.cpu_used, facts.machine_used) = (1.96, Some(1.99));
    facts.experiments = vec![made(Resource::Cpu, 0.5, (0.93, 0.85, 1.02))];
    assert_eq!(named(&facts), (Resource::Cpu, Level::Proven));
    // Half of the CPUs change nothing: this refutes the CPU, regardless of the counters.
    facts.experiments = vec![made(Resource::Cpu, 0.5, (0.04, -0.03, 0.1))];
    assert_eq!(named(&facts), UNKNOWN);
    assert!(advice(&facts).contains("More CPUs would not help"));
    // A wide interval proves nothing.
    facts.experiments = vec![made(Resource::Cpu, 0.5, (0.8, 0.05, 1.6))];
    assert_eq!(named(&facts), (Resource::Cpu, Level::AtLimit));
    // A disk limits, two thirds of the CPUs are used, and half of them are slower.
    let mut facts = throttled(3000.0, true);
    facts.experiments = vec![made(Resource::Cpu, 0.5, (0.75, 0.6, 0.9))];
    assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
    facts.experiments = vec![made(Resource::Latency, 1.5, (0.02, -0.1, 0.15))];
    assert!(advice(&facts).ends_with("more CPUs and more jobs would not."));
    // Half of the jobs do half of the work: that does not prove that more do more.
    facts.experiments = vec![made(Resource::Latency, 0.5, (0.95, 0.8, 1.1))];
    assert_eq!(named(&facts), (Resource::DiskIops, Level::AtLimit));
}
