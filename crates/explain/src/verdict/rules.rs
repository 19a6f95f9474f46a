//! The rules: for each resource, the signals that together name it, and those that exclude it. Two signals
//! have to come from different counters.

use crate::verdict::facts::{CPU_FULL, CPU_NEED, CPU_PART, FLAT, REACHED, READS, View, WRITES};
use crate::verdict::far;
use crate::verdict::signals::{busy, ceiling, dirty, queue, user_limit};
use crate::verdict::{About, Direction, DiskFacts, Evidence, Level, OwnVerdict, Resource, Side};
use hakobu_core::meter::Phase;

/// A resource named by the signals.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub resource: Resource,
    pub level: Level,
    pub evidence: Vec<Evidence>,
}

fn claim<const N: usize>(
    resource: Resource,
    level: Level,
    evidence: [Option<Evidence>; N],
) -> Option<Claim> {
    let evidence = evidence.into_iter().flatten().collect();
    Some(Claim { resource, level, evidence })
}

/// All claims. A single one is the answer.
pub(crate) fn claims(v: &View<'_>) -> Vec<Claim> {
    // The measured program knows more than the machine's counters show.
    if let Some(own_verdict) = &v.f.own_verdict {
        let OwnVerdict { resource, level, evidence } = own_verdict.clone();
        return vec![Claim { resource, level, evidence }];
    }
    let mut found: Vec<Claim> = [user_limit_(v), cpu(v), thread(v)].into_iter().flatten().collect();
    let disk = disk(v);
    // At a known ceiling more jobs cannot help; the curve is from before it was reached.
    let capped = disk.as_ref().is_some_and(|claim| claim.level == Level::AtLimit);
    found.extend(disk);
    found.extend([network(v), link(v), server(v), peer(v), lock(v)].into_iter().flatten());
    found.extend([far::cpu(v), far::cipher(v), far::path(v)].into_iter().flatten());
    found.extend(latency(v).filter(|_| !capped));
    // General claims count only without specific ones.
    if found.is_empty() {
        found.extend([source(v), target(v)].into_iter().flatten());
    }
    if found.is_empty() {
        found.extend(own(v));
    }
    found
}

/// Share of the busy workers' time in which they wait for a rate limit that is reached ...
const LIMIT_WAITS: f64 = 0.3;
/// ... and from which a limit that is nearly reached counts as well.
const LIMIT_WAITS_MOST: f64 = 0.5;
const NEARLY_REACHED: f64 = 0.85;

/// Units wait for the user's rate limit, and it is reached.
fn user_limit_(v: &View<'_>) -> Option<Claim> {
    let waits = v.busy_share(Phase::Limit);
    if waits < LIMIT_WAITS {
        return None;
    }
    // While the number of jobs is tried out, there may be too few of them at times. Where CPUs are short, it may be these.
    let has_cpus = v.f.run_delay.unwrap_or(0.0) < RUN_DELAY;
    let least = if waits >= LIMIT_WAITS_MOST && has_cpus { NEARLY_REACHED } else { REACHED };
    let limit = v.f.limits.iter().find(|limit| limit.is_reached(least))?;
    let evidence = [Some(user_limit(limit)), Some(v.phase(Phase::Limit))];
    claim(Resource::UserLimit, Level::AtLimit, evidence)
}

/// All usable CPUs are in use, and threads wait for them, none is idle, or more jobs bring nothing.
fn cpu(v: &View<'_>) -> Option<Claim> {
    let (own, machine) = (v.own_cpus(), v.machine_cpus().unwrap_or(0.0));
    let delay = v.f.run_delay.unwrap_or(0.0);
    let pressed = v.f.pressure.cpu.is_some_and(|share| share >= PRESSURE);
    let throttled = v.f.quota_throttled.is_some_and(|share| share >= QUOTA);
    let level = if own >= CPU_FULL {
        let machine_full = machine >= REACHED || delay >= RUN_DELAY || pressed;
        let second = machine_full || throttled || v.is_flat();
        match (second, own >= REACHED) {
            (false, _) => return None,
            (true, true) => Level::AtLimit,
            (true, false) => Level::Consistent,
        }
    } else {
        // Other processes use the CPUs: that limits only work that always runs or waits for CPUs.
        let waits = match v.f.about {
            About::Cell => own >= 0.5 || own >= 0.1 && v.is_flat(),
            About::Transfer | About::Command => {
                v.cpu_need().is_some_and(|need| need >= CPU_NEED)
                    && (!v.has_store() || own >= CPU_PART)
                    && (v.f.about == About::Transfer || v.disks_are_quiet() && !v.waits_for_peer())
                    && delay >= 2.0 * RUN_DELAY
            }
        };
        match machine {
            _ if !waits || !v.is_always_runnable() || machine < REACHED => return None,
            0.97.. if v.f.about != About::Cell => Level::AtLimit,
            _ => Level::Consistent,
        }
    };
    // Threads spinning on a lock use CPUs too: then a second CPU brought nothing.
    let spins = v.scaling().is_some_and(|scaling| scaling <= FLAT);
    let locked = v.f.lock_waits.is_some_and(|share| share >= LOCKED);
    // More jobs than now were faster, so there was room.
    if spins || locked || v.is_rising_beyond() {
        return None;
    }
    let is = |about: About| v.f.about == about;
    let mut evidence = v.cpus();
    evidence.extend(v.quota().filter(|_| throttled));
    evidence.extend(v.run_delay());
    evidence.extend(v.disks_busy().filter(|_| is(About::Command)));
    evidence.extend(v.cpu_pressure().filter(|_| pressed));
    evidence.extend(v.stolen().filter(|stolen| stolen.value >= stolen.limit));
    evidence.extend(v.jobs_elasticity().filter(|_| is(About::Cell) && v.is_flat()));
    if evidence.len() < 2 {
        evidence.push(v.cpu_used());
    }
    Some(Claim { resource: Resource::Cpu, level, evidence })
}

/// One thread does or schedules the work and uses a CPU; other CPUs are idle.
fn thread(v: &View<'_>) -> Option<Claim> {
    if v.f.cpus < 1.5 || !v.cpu_free() {
        return None;
    }
    if v.f.about == About::Cell {
        return thread_of_runs(v);
    }
    let used = v.f.thread_used?;
    let alone = v.f.about == About::Command || v.busy <= 1.2 || v.idle_share() >= 0.5;
    let others = v.f.cpu_used - used;
    if used < CPU_FULL || others > 0.4 || !alone {
        return None;
    }
    let level = if used >= REACHED { Level::AtLimit } else { Level::Consistent };
    let idle = Some(v.phase(Phase::Idle)).filter(|idle| idle.value >= 0.5);
    claim(Resource::Thread, level, [v.thread_used(), Some(v.cpu_used()), v.machine_used(), idle])
}

/// The same without facts about threads: about one CPU is used, always the same one. A thread that migrates
/// leaves none full: then more jobs must bring nothing, with idle disks.
fn thread_of_runs(v: &View<'_>) -> Option<Claim> {
    let used = v.f.cpu_used;
    let full = v.f.busiest_cpu.is_some_and(|of| of.used >= CPU_FULL);
    let quiet = v.disk_busy().is_some_and(|busy| busy <= 0.6);
    let stuck = (REACHED..=1.1).contains(&used) && v.is_flat() && quiet;
    if !(CPU_FULL..=1.15).contains(&used) || !full && !stuck {
        return None;
    }
    let busiest = v.busiest_cpu().filter(|_| full);
    let flat = v.jobs_elasticity().filter(|_| v.is_flat());
    claim(Resource::Thread, Level::Consistent, [Some(v.cpu_used()), busiest, flat])
}

/// A disk is at a known ceiling, or saturated, and threads wait for it.
fn disk(v: &View<'_>) -> Option<Claim> {
    if v.busy_share(Phase::Limit) >= 0.3 {
        return None;
    }
    let mut best: Option<(f64, Claim)> = None;
    for disk in &v.f.disks {
        for of in disk.ceilings.iter().filter(|of| of.limit > 0.0) {
            let reached = of.reached / of.limit;
            let better = best.as_ref().is_none_or(|(other, _)| reached > *other);
            if reached < REACHED || !better || !v.waits_for_disk(disk, of.direction) {
                continue;
            }
            let resource = if of.operations { Resource::DiskIops } else { Resource::DiskBandwidth };
            let mut evidence = vec![ceiling(disk, of)];
            if v.f.about != About::Transfer {
                evidence.push(busy(disk));
            }
            evidence.extend(waiting(v, of.direction));
            evidence.extend(dirty(disk).filter(|_| of.direction == Direction::Writes));
            best = Some((reached, Claim { resource, level: Level::AtLimit, evidence }));
        }
    }
    // A known ceiling counts regardless of CPU use; otherwise the disk may be waiting for CPUs.
    if let Some((_, claim)) = best {
        return Some(claim);
    }
    if !v.cpu_free() {
        return None;
    }
    v.f.disks.iter().find_map(|disk| saturated(v, disk))
}

/// Signals of threads that wait for a disk.
fn waiting(v: &View<'_>, direction: Direction) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> = v.blocked_share().into_iter().collect();
    evidence.extend(match direction {
        Direction::Reads => v.phases(&READS),
        Direction::Writes => v.phases(&WRITES),
        Direction::Both => Vec::new(),
    });
    evidence.extend(v.io_pressure());
    if v.f.about == About::Cell {
        evidence.extend(v.iowait().filter(|of| of.value >= IOWAIT));
        evidence.extend(v.jobs_elasticity().filter(|_| v.is_flat()));
    }
    evidence
}

/// A disk of unknown ceilings that is always busy, on which more jobs brought nothing. Without data on more
/// jobs: with I/O wait, or, for a command, with blocked threads and a queue.
fn saturated(v: &View<'_>, disk: &DiskFacts) -> Option<Claim> {
    let (reads, writes) = (disk.read_bytes_per_s, disk.write_bytes_per_s);
    let (direction, operations, bytes) = match v.f.about {
        About::Cell => (Direction::Both, disk.read_iops + disk.write_iops, reads + writes),
        _ if writes > reads => (Direction::Writes, disk.write_iops, writes),
        _ => (Direction::Reads, disk.read_iops, reads),
    };
    let queued = disk.queue.is_none_or(|queue| queue >= 4.0) || disk.rotating;
    let pressed = v.f.pressure.io.is_none_or(|share| share >= PRESSURE);
    let more = match v.f.about {
        About::Transfer => v.is_flat(),
        About::Command => disk.queue.is_some(),
        About::Cell => {
            let iowait = v.iowait_share().is_some_and(|share| share >= 1.5 * IOWAIT);
            v.is_flat() || iowait && !v.is_rising()
        }
    };
    let waits = v.waits_for_disk(disk, direction);
    if disk.busy < 0.9 || !queued || !pressed || !more || !waits || operations <= 0.0 {
        return None;
    }
    // Small requests are limited by operations, large ones by bytes; in between it may be either.
    let resource = match bytes / operations {
        size if size <= 32_768.0 => Resource::DiskIops,
        size if size >= 131_072.0 => Resource::DiskBandwidth,
        _ => return None,
    };
    let mut evidence = vec![busy(disk)];
    evidence.extend(queue(disk));
    evidence.extend(waiting(v, direction));
    evidence.extend(v.jobs_elasticity().filter(|_| v.f.about == About::Transfer));
    Some(Claim { resource, level: Level::Consistent, evidence })
}

/// Common conditions of the network rules: there is a store, units spend most time on it, and neither CPUs
/// nor the local side keep threads from serving them.
fn waits_for_wire(v: &View<'_>) -> bool {
    v.has_store()
        && v.cpu_free()
        && v.idle_share() < 0.5
        && v.busy_share(Phase::Limit) < 0.3
        && v.blocked().is_none_or(|share| share < BLOCKED)
}

/// Most time is spent sending or receiving, and packets queue or are lost, or the link is full.
fn network(v: &View<'_>) -> Option<Claim> {
    let congested = v.is_congested() == Some(true);
    let backlog = v.f.network.as_ref()?.backlog_bytes.is_some_and(|bytes| bytes >= BACKLOG_BYTES);
    let moving = v.share(&[Phase::Send, Phase::Receive]) >= 0.5 || v.is_sending();
    // The kernel answers handshakes, so a slow handshake means a slow path.
    let slow = congested
        && v.share(&[Phase::Answer, Phase::Send, Phase::Receive]) >= 0.5
        && v.f.network.as_ref()?.handshake_ms.is_some();
    let full = v.is_link_full();
    let second = congested || v.is_lossy() || backlog || full;
    if !waits_for_wire(v) || !(moving || slow) || !second || v.is_rising() {
        return None;
    }
    let level = if full { Level::AtLimit } else { Level::Consistent };
    let mut evidence: Vec<Evidence> = v.link().filter(|_| full).into_iter().collect();
    evidence.extend(v.phases(&[Phase::Send, Phase::Receive, Phase::Answer]));
    evidence.extend(v.round_trip().filter(|_| congested));
    evidence.extend(v.retransmits().filter(|_| v.is_lossy()));
    evidence.extend(v.send_queue().filter(|queue| queue.value >= queue.limit));
    evidence.extend(v.backlog().filter(|_| backlog));
    evidence.extend(v.jobs_elasticity());
    Some(Claim { resource: Resource::Network, level, evidence })
}

/// The link is full, observed from outside, and neither CPUs nor disks prevent more.
fn link(v: &View<'_>) -> Option<Claim> {
    let waits = match v.f.about {
        About::Transfer => false,
        About::Cell => {
            let iowait = v.iowait_share().is_some_and(|share| share >= IOWAIT);
            iowait || v.is_flat() || v.disk_busy().is_some_and(|busy| busy >= CPU_FULL)
        }
        About::Command => v.disks_are_quiet(),
    };
    if !waits || !v.cpu_free() || !v.is_link_full() {
        return None;
    }
    let evidence = [v.link(), Some(v.cpu_used()), v.disks_busy(), v.jobs_elasticity()];
    claim(Resource::Network, Level::AtLimit, evidence)
}

/// A command that sleeps on a connection while bytes move over the network, and does nothing else. From
/// outside a slow server cannot be distinguished from a slow path.
fn peer(v: &View<'_>) -> Option<Claim> {
    let is_command = v.f.about == About::Command;
    if !is_command || !v.waits_for_peer() || !v.cpu_free() || !v.disks_are_quiet() || v.busy > 0.5 {
        return None;
    }
    let traffic = v.traffic().filter(|of| of.value >= of.limit && !v.is_link_full())?;
    let evidence = [v.peer_waits(), Some(traffic), Some(v.cpu_used()), v.disks_busy()];
    claim(Resource::Peer, Level::Consistent, evidence)
}

/// The server asks to slow down, or answers more slowly the more requests there are, or reads or sends slowly
/// over an idle path.
fn server(v: &View<'_>) -> Option<Claim> {
    if !waits_for_wire(v) {
        return None;
    }
    let waits = v.share(&[Phase::Answer]) + v.share(&[Phase::Pause]);
    if v.throttled_share() >= THROTTLED && waits >= 0.3 {
        let phase = v.phases(&[Phase::Pause, Phase::Answer]).into_iter().next();
        return claim(
            Resource::Server,
            Level::AtLimit,
            [v.throttled(), phase, v.jobs_elasticity()],
        );
    }
    let free = v.is_congested() == Some(false) && !v.is_lossy() && !v.is_link_full();
    if !free || v.is_rising() {
        return None;
    }
    // Answers can be slower than the fastest one for many reasons, so the effect of more jobs has to agree.
    let quick = v.answer_growth().is_some_and(|growth| growth <= 1.3);
    let answer = v.share(&[Phase::Answer]) >= 0.6 && v.is_flat() && !quick;
    let shut = v.f.network.as_ref()?.peer_window_full.is_some_and(|share| share >= 0.5);
    let unread = v.share(&[Phase::Send]) >= 0.5 && shut;
    let trickles = v.f.stores.0 && v.share(&[Phase::Receive]) >= 0.6;
    if !(answer || unread || trickles) {
        return None;
    }
    let mut evidence = v.phases(&[Phase::Answer, Phase::Send, Phase::Receive]);
    evidence.extend(v.round_trip());
    evidence.extend(v.answer());
    evidence.extend(v.peer_window().filter(|_| unread));
    evidence.extend(v.jobs_elasticity());
    Some(Claim { resource: Resource::Server, level: Level::Consistent, evidence })
}

/// Units wait, and more jobs brought proportionally more; or no answer was ever faster than the mean.
fn latency(v: &View<'_>) -> Option<Claim> {
    if v.throttled_share() >= THROTTLED || !v.cpu_free() || v.idle_share() >= 0.5 {
        return None;
    }
    if v.has_store() {
        let wire = [Phase::Answer, Phase::Connect, Phase::Send, Phase::Receive];
        let quick = v.answer_growth().is_some_and(|growth| growth <= 1.3);
        let alone = quick && !v.is_flat() && v.share(&[Phase::Answer]) >= 0.7;
        if !waits_for_wire(v) || v.share(&wire) < 0.6 || !(v.is_rising() || alone) {
            return None;
        }
        let mut evidence = v.phases(&wire);
        evidence.extend(v.jobs_elasticity());
        evidence.extend(v.answer());
        evidence.push(v.cpu_used());
        return Some(Claim { resource: Resource::Latency, level: Level::Consistent, evidence });
    }
    if v.busy_share(Phase::Limit) >= 0.3 || !v.is_rising() {
        return None;
    }
    if v.f.about == About::Cell {
        let waits = v.jobs_wait().filter(|of| of.value >= of.limit)?;
        let evidence = [Some(waits), v.jobs_elasticity(), Some(v.cpu_used())];
        return claim(Resource::Latency, Level::Consistent, evidence)
            .filter(|_| v.own_cpus() <= 0.7);
    }
    if v.blocked()? < BLOCKED {
        return None;
    }
    let mut evidence: Vec<Evidence> = v.jobs_elasticity().into_iter().collect();
    evidence.extend(v.blocked_share());
    evidence.extend(v.phases(&READS));
    evidence.extend(v.phases(&WRITES));
    Some(Claim { resource: Resource::Latency, level: Level::Consistent, evidence })
}

/// Threads that change names are blocked without disk activity.
fn lock(v: &View<'_>) -> Option<Claim> {
    let names = [Phase::Create, Phase::Remove, Phase::Settle];
    if v.has_store() || !v.cpu_free() || v.local_share(&names) < 0.5 || v.is_rising() {
        return None;
    }
    let quiet = |disk: &DiskFacts| {
        disk.busy <= 0.5 && disk.ceilings.iter().all(|of| of.reached < 0.8 * of.limit)
    };
    let quiet = v.f.disks.iter().all(quiet) && v.f.pressure.io.is_some_and(|share| share <= 0.1);
    let blocked = v.blocked().is_some_and(|share| share >= BLOCKED);
    let seen = v.f.lock_waits.is_some_and(|share| share >= LOCKED);
    if !quiet || v.f.foreign.contains(&Side::Target) || !(seen && (blocked || v.is_flat())) {
        return None;
    }
    let phase = v.phases(&names).into_iter().next();
    claim(
        Resource::Lock,
        Level::Consistent,
        [v.lock_waits(), phase, v.blocked_share(), v.io_pressure(), v.jobs_elasticity()],
    )
}

/// Common conditions of the rules about an end: threads are blocked in its phases, and more jobs do not help.
fn end(v: &View<'_>, side: Side, phases: &[Phase], resource: Resource) -> Option<Claim> {
    if !v.cpu_free() || v.is_rising() || v.busy_share(Phase::Limit) >= 0.3 {
        return None;
    }
    if v.blocked()? < 0.5 || v.local_share(phases) < 0.6 {
        return None;
    }
    // A local disk needs more evidence: it may only have a high latency.
    let foreign = v.f.foreign.contains(&side);
    let pressed = v.f.pressure.io.is_some_and(|share| share >= PRESSURE);
    let stuck = v.is_flat() && pressed;
    if !foreign && !stuck {
        return None;
    }
    let mut evidence = v.phases(phases);
    evidence.extend(v.blocked_share());
    evidence.push(v.cpu_used());
    evidence.extend(v.io_pressure().filter(|_| !foreign));
    evidence.extend(v.jobs_elasticity());
    Some(Claim { resource, level: Level::Consistent, evidence })
}

fn source(v: &View<'_>) -> Option<Claim> {
    end(v, Side::Source, &READS, Resource::Source).filter(|_| !v.f.stores.0)
}

fn target(v: &View<'_>) -> Option<Claim> {
    end(v, Side::Target, &WRITES, Resource::Target).filter(|_| !v.f.stores.1)
}

/// Units wait for the program's own budget, and nothing else limits.
fn own(v: &View<'_>) -> Option<Claim> {
    if !v.cpu_free() || v.busy_share(Phase::Room) < 0.5 || v.f.machine_used.is_none() {
        return None;
    }
    // The budget is also exhausted by units that wait for a full path or server.
    let full = v.is_congested() == Some(true) || v.is_lossy() || v.is_link_full();
    if full || v.answer_growth().is_some_and(|growth| growth >= 2.0) {
        return None;
    }
    claim(
        Resource::Own,
        Level::Consistent,
        [Some(v.phase(Phase::Room)), Some(v.cpu_used()), v.machine_used()],
    )
}

/// Share of time waiting for a CPU from which threads lack CPUs.
pub(crate) const RUN_DELAY: f64 = 0.1;
/// The same for pressure, which includes threads of other processes.
pub(crate) const PRESSURE: f64 = 0.3;
/// Share of the time in which a thread has to be on a CPU or waiting for one, if others' use of CPUs limits the work: it
/// is never left to itself.
pub(crate) const RUNNABLE: f64 = 0.9;
/// Throttled share of quota periods.
pub(crate) const QUOTA: f64 = 0.1;
/// Stolen share of each CPU.
pub(crate) const STOLEN: f64 = 0.1;
/// Share of the threads' time blocked.
pub(crate) const BLOCKED: f64 = 0.4;
/// Share of the CPUs' time idle with I/O in flight.
pub(crate) const IOWAIT: f64 = 0.1;
/// Traffic from which a command may be limited by the network.
pub(crate) const TRAFFIC_BYTES_PER_S: f64 = 65_536.0;
/// Share of samples with a thread that waits for a lock.
pub(crate) const LOCKED: f64 = 0.3;
/// Share of answers that ask to slow down.
pub(crate) const THROTTLED: f64 = 0.01;
/// Bytes in queueing disciplines from which packets count as queued.
pub(crate) const BACKLOG_BYTES: f64 = 65_536.0;
