//! The rules: for each resource, the signals that name it together, and those that forbid it. A
//! rule that asks for two signals asks for two that come from different counters.

use super::signals::{BLOCKED, LOCKED, PRESSURE, QUOTA, RUN_DELAY, THROTTLED};
use super::signals::{busy, ceiling, dirty, queue, user_limit};
use super::view::{CPU_FULL, CPU_NEED, CPU_PART, FLAT, REACHED, READS, View, WRITES};
use super::{DiskFacts, Evidence, Level, Resource, Side};
use crate::meter::Phase;

/// Bytes in queueing disciplines from which on packets wait.
pub(super) const BACKLOG_BYTES: f64 = 65_536.0;

/// A resource that the signals name.
#[derive(Debug)]
pub(super) struct Claim {
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

/// Everything that the signals name. One that is alone is the answer.
pub(super) fn claims(v: &View<'_>) -> Vec<Claim> {
    let mut found: Vec<Claim> = [user_limit_(v), cpu(v), thread(v)].into_iter().flatten().collect();
    let disk = disk(v);
    // Behind a known ceiling no number of jobs helps; what the curve says is from before it was hit.
    let capped = disk.as_ref().is_some_and(|claim| claim.level == Level::AtLimit);
    found.extend(disk);
    found.extend([network(v), server(v), lock(v)].into_iter().flatten());
    found.extend(latency(v).filter(|_| !capped));
    // What is said in general only counts where nothing is said in particular.
    if found.is_empty() {
        found.extend([source(v), target(v)].into_iter().flatten());
    }
    if found.is_empty() {
        found.extend(own(v));
    }
    found
}

/// Units wait for the rate that the user set, and it is reached.
fn user_limit_(v: &View<'_>) -> Option<Claim> {
    let waits = v.busy_share(Phase::Limit) >= 0.3;
    let most = |limit: &&super::UserLimit| limit.reached >= REACHED * limit.limit;
    let limit = v.f.limits.iter().filter(|limit| limit.limit > 0.0).find(most)?;
    if !waits {
        return None;
    }
    let evidence = [Some(user_limit(limit)), Some(v.phase(Phase::Limit))];
    claim(Resource::UserLimit, Level::AtLimit, evidence)
}

/// All CPUs that may be used are used, and threads wait for them or none is idle.
fn cpu(v: &View<'_>) -> Option<Claim> {
    let (own, machine) = (v.own_cpus(), v.machine_cpus().unwrap_or(0.0));
    let delay = v.f.run_delay.unwrap_or(0.0);
    let pressed = v.f.pressure.cpu.is_some_and(|share| share >= PRESSURE);
    let throttled = v.f.quota_throttled.is_some_and(|share| share >= QUOTA);
    let level = if own >= CPU_FULL {
        let second = machine >= REACHED || delay >= RUN_DELAY || pressed || throttled;
        match (second, own >= REACHED) {
            (false, _) => return None,
            (true, true) => Level::AtLimit,
            (true, false) => Level::Consistent,
        }
    } else {
        // Others use them: only what runs or waits for CPUs itself for much of its time is limited
        // by that.
        let needs = v.cpu_need().is_some_and(|need| need >= CPU_NEED)
            && (!v.has_store() || own >= CPU_PART);
        let waits = needs && delay >= 2.0 * RUN_DELAY;
        match machine {
            _ if !waits || machine < REACHED => return None,
            0.97.. => Level::AtLimit,
            _ => Level::Consistent,
        }
    };
    // Threads that spin for a lock use CPUs too. Then a second CPU brought nothing.
    let spins = v.scaling().is_some_and(|scaling| scaling <= FLAT);
    let locked = v.f.lock_waits.is_some_and(|share| share >= LOCKED);
    if spins || locked {
        return None;
    }
    let evidence = [
        Some(v.cpu_used()),
        v.machine_used(),
        v.run_delay(),
        v.cpu_pressure().filter(|_| pressed),
        v.quota().filter(|_| throttled),
        v.stolen().filter(|stolen| stolen.value >= stolen.limit),
    ];
    claim(Resource::Cpu, level, evidence)
}

/// One thread does the work, or finds it, and uses a CPU; other CPUs have nothing to do.
fn thread(v: &View<'_>) -> Option<Claim> {
    let used = v.f.thread_used?;
    let alone = v.busy <= 1.2 || v.idle_share() >= 0.5;
    let others = v.f.cpu_used - used;
    if v.f.cpus < 1.5 || used < CPU_FULL || others > 0.4 || !alone || !v.cpu_free() {
        return None;
    }
    let level = if used >= REACHED { Level::AtLimit } else { Level::Consistent };
    let idle = Some(v.phase(Phase::Idle)).filter(|idle| idle.value >= 0.5);
    claim(Resource::Thread, level, [v.thread_used(), Some(v.cpu_used()), v.machine_used(), idle])
}

/// A disk is at a known ceiling, or has more requests than it can answer, and threads wait for it.
fn disk(v: &View<'_>) -> Option<Claim> {
    if v.busy_share(Phase::Limit) >= 0.3 {
        return None;
    }
    let waits = |writes: bool| {
        let phases: &[Phase] = if writes { &WRITES } else { &READS };
        let blocked = match v.blocked() {
            Some(share) => share >= BLOCKED,
            None => v.f.pressure.io.is_some_and(|share| share >= PRESSURE),
        };
        blocked && v.local_share(phases) >= 0.5
    };
    let phases = |writes: bool| match writes {
        true => v.phases(&WRITES),
        false => v.phases(&READS),
    };
    let mut best: Option<(f64, Claim)> = None;
    for disk in &v.f.disks {
        for of in disk.ceilings.iter().filter(|of| of.limit > 0.0) {
            let reached = of.reached / of.limit;
            let better = best.as_ref().is_none_or(|(other, _)| reached > *other);
            if reached < REACHED || !better || !waits(of.writes) {
                continue;
            }
            let resource = if of.operations { Resource::DiskIops } else { Resource::DiskBandwidth };
            let mut evidence = vec![ceiling(disk, of)];
            evidence.extend(v.blocked_share());
            evidence.extend(phases(of.writes));
            evidence.extend(v.io_pressure());
            evidence.extend(dirty(disk).filter(|_| of.writes));
            best = Some((reached, Claim { resource, level: Level::AtLimit, evidence }));
        }
    }
    // A known ceiling is one, however many CPUs others use; else a disk may wait for them.
    if let Some((_, claim)) = best {
        return Some(claim);
    }
    if !v.cpu_free() {
        return None;
    }
    v.f.disks.iter().find_map(|disk| saturated(v, disk, &waits, &phases))
}

/// A disk of unknown ceilings that always has work, on which more jobs brought nothing.
fn saturated(
    v: &View<'_>,
    disk: &DiskFacts,
    waits: &dyn Fn(bool) -> bool,
    phases: &dyn Fn(bool) -> Vec<Evidence>,
) -> Option<Claim> {
    let writes = disk.write_bytes_per_s > disk.read_bytes_per_s;
    let (operations, bytes) = match writes {
        true => (disk.write_iops, disk.write_bytes_per_s),
        false => (disk.read_iops, disk.read_bytes_per_s),
    };
    let queued = disk.queue >= 4.0 || disk.rotating;
    let pressed = v.f.pressure.io.is_none_or(|share| share >= PRESSURE);
    if disk.busy < 0.9 || !queued || !pressed || !v.is_flat() || !waits(writes) || operations <= 0.0
    {
        return None;
    }
    // Small requests run into operations, large ones into bytes; between them it may be either.
    let resource = match bytes / operations {
        size if size <= 32_768.0 => Resource::DiskIops,
        size if size >= 131_072.0 => Resource::DiskBandwidth,
        _ => return None,
    };
    let mut evidence = vec![busy(disk), queue(disk)];
    evidence.extend(v.blocked_share());
    evidence.extend(phases(writes));
    evidence.extend(v.io_pressure());
    evidence.extend(v.jobs_elasticity());
    Some(Claim { resource, level: Level::Consistent, evidence })
}

/// What any rule about the wire asks for: there is a store, its units are what takes the time, and
/// neither CPUs nor the local side keep the threads from serving them.
fn waits_for_wire(v: &View<'_>) -> bool {
    v.has_store()
        && v.cpu_free()
        && v.idle_share() < 0.5
        && v.busy_share(Phase::Limit) < 0.3
        && v.blocked().is_none_or(|share| share < BLOCKED)
}

/// Bytes are on their way most of the time, and packets queue or are lost, or the link is full.
fn network(v: &View<'_>) -> Option<Claim> {
    let congested = v.is_congested() == Some(true);
    let backlog = v.f.network.as_ref()?.backlog_bytes.is_some_and(|bytes| bytes >= BACKLOG_BYTES);
    let moving = v.share(&[Phase::Send, Phase::Receive]) >= 0.5 || v.is_sending();
    // A handshake is answered by the kernel: if it is slow, so is every answer.
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

/// The server asks to slow down, or its answers take longer the more requests there are, or it
/// does not read or send what it might, while the way to it is free.
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
    // Answers that take longer than the quickest one do so for many reasons: what more jobs brought
    // has to agree.
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

/// Units wait, and those that were added brought as much as those before; or no answer ever came
/// faster than they all do.
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
    if v.busy_share(Phase::Limit) >= 0.3 || !v.is_rising() || v.blocked()? < BLOCKED {
        return None;
    }
    let mut evidence: Vec<Evidence> = v.jobs_elasticity().into_iter().collect();
    evidence.extend(v.blocked_share());
    evidence.extend(v.phases(&READS));
    evidence.extend(v.phases(&WRITES));
    Some(Claim { resource: Resource::Latency, level: Level::Consistent, evidence })
}

/// Threads that change names are blocked, and no disk has anything to do with it.
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

/// What the rules about an end have in common: threads are blocked in its phases, and more jobs do
/// not help.
fn end(v: &View<'_>, side: Side, phases: &[Phase], resource: Resource) -> Option<Claim> {
    if !v.cpu_free() || v.is_rising() || v.busy_share(Phase::Limit) >= 0.3 {
        return None;
    }
    if v.blocked()? < 0.5 || v.local_share(phases) < 0.6 {
        return None;
    }
    // A disk in the kernel's books needs more than that: it may only be far away.
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

/// Units wait for room in the program's own budget, and nothing else is in the way.
fn own(v: &View<'_>) -> Option<Claim> {
    if !v.cpu_free() || v.busy_share(Phase::Room) < 0.5 || v.f.machine_used.is_none() {
        return None;
    }
    // Room is also short where others hold it because they wait: for a way or a server that is full.
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
