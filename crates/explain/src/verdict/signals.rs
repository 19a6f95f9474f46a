//! Signals with their references, and the list of all signals with their meaning.

use super::thresholds::{
    BACKLOG_BYTES, BLOCKED, IOWAIT, LOCKED, PRESSURE, QUOTA, RUN_DELAY, STOLEN, THROTTLED,
    TRAFFIC_BYTES_PER_S,
};
use super::view::{CPU_FULL, FLAT, REACHED, View};
use super::{
    About, Ceiling, Direction, DiskFacts, Evidence, Experiment, NetworkFacts, Signal, UserLimit,
};
use hakobu_core::meter::Phase;

fn evidence(signal: &'static str, value: f64, limit: f64) -> Evidence {
    Evidence { signal: signal.into(), of: String::new(), value, limit }
}

/// Signals that may be missing: name of the function, name of the signal, value and reference.
macro_rules! signals {
    ($($(#[$doc:meta])* $function:ident, $signal:literal, |$v:ident| $value:expr, $limit:expr;)*) => {
        impl View<'_> {
            $($(#[$doc])*
            pub(super) fn $function(&self) -> Option<Evidence> {
                let $v = self;
                Some(evidence($signal, $value, $limit))
            })*
        }
    };
}

signals! {
    machine_used, "machine_used_cpus", |v| v.f.machine_used?, v.allowed();
    stolen, "stolen_cpus", |v| v.f.stolen?, STOLEN * v.f.cpus;
    cpu_pressure, "cpu_pressure_share", |v| v.f.pressure.cpu?, PRESSURE;
    quota, "quota_throttled_share", |v| v.f.quota_throttled?, QUOTA;
    thread_used, "thread_used_cpus", |v| v.f.thread_used?, 1.0;
    blocked_share, "blocked_share", |v| v.blocked()?, BLOCKED;
    io_pressure, "io_pressure_share", |v| v.f.pressure.io?, PRESSURE;
    tasks_blocked, "io_blocked_tasks", |v| v.f.blocked?, 1.0;
    iowait, "iowait_share", |v| v.iowait_share()?, IOWAIT;
    memory_pressure, "memory_pressure_share", |v| v.f.pressure.memory?, PRESSURE;
    peer_waits, "peer_wait_share", |v| v.f.threads?.waiting_for_peer?, 0.6;
    /// Bytes over the machine's busiest interface during a command.
    traffic, "traffic_bytes_per_s",
        |v| v.network().filter(|_| v.f.about == About::Command)?.bytes_per_s, TRAFFIC_BYTES_PER_S;
    lock_waits, "lock_waits_share", |v| v.f.lock_waits?, LOCKED;
    /// From outside: busiest of all disks, used by any process.
    disks_busy, "disks_busy_share",
        |v| v.disk_busy().filter(|_| v.f.about != About::Transfer)?, 0.9;
    link, "link_bytes_per_s", |v| v.network()?.bytes_per_s, v.network()?.link_bytes_per_s?;
    retransmits, "retransmits_share", |v| v.network()?.retransmits?, 0.005;
    send_queue, "send_queue_full_share", |v| v.network()?.send_queue_full?, 0.3;
    peer_window, "peer_window_full_share", |v| v.network()?.peer_window_full?, 0.5;
    backlog, "backlog_bytes", |v| v.network()?.backlog_bytes?, BACKLOG_BYTES;
    answer, "answer_ms", |v| v.answer_ms()?, v.f.answer_min_ms?;
    jobs_wait, "jobs_waiting_share", |v| v.jobs_waiting()?, 0.4;
    jobs_elasticity, "jobs_elasticity", |v| v.elasticity()?, FLAT;
}

impl View<'_> {
    fn network(&self) -> Option<&NetworkFacts> {
        self.f.network.as_ref()
    }

    pub(super) fn cpu_used(&self) -> Evidence {
        evidence("cpu_used_cpus", self.f.cpu_used, self.f.cpus)
    }

    /// CPU use by this process and by all.
    pub(super) fn cpus(&self) -> Vec<Evidence> {
        let full = |of: &Evidence| self.is_one_cpu() && of.value >= of.limit;
        let busiest = self.busiest_cpu().filter(full);
        match (self.f.about, busiest) {
            (About::Command, Some(busiest)) => vec![busiest],
            _ => [Some(self.cpu_used()), self.machine_used()].into_iter().flatten().collect(),
        }
    }

    pub(super) fn busiest_cpu(&self) -> Option<Evidence> {
        let of = self.f.busiest_cpu?;
        let name = of.number.map_or("one CPU".to_owned(), |number| format!("cpu{number}"));
        Some(Evidence { of: name, ..evidence("cpu_busy_share", of.used, CPU_FULL) })
    }

    pub(super) fn run_delay(&self) -> Option<Evidence> {
        let of = match self.f.about {
            About::Command => "the command".to_owned(),
            About::Transfer | About::Cell => String::new(),
        };
        Some(Evidence { of, ..evidence("run_delay_share", self.f.run_delay?, RUN_DELAY) })
    }

    /// Share of the active units' time in a phase.
    pub(super) fn phase(&self, phase: Phase) -> Evidence {
        let (value, limit) = match phase {
            Phase::Idle => (self.idle_share(), 0.5),
            Phase::Limit => (self.busy_share(phase), 0.3),
            Phase::Room => (self.busy_share(phase), 0.5),
            _ => (self.share(&[phase]), 0.5),
        };
        evidence(PHASES[phase as usize].1, value, limit)
    }

    /// Those of these phases with at least a tenth of the time, longest first.
    pub(super) fn phases(&self, phases: &[Phase]) -> Vec<Evidence> {
        let mut all: Vec<_> = phases.iter().map(|phase| self.phase(*phase)).collect();
        all.retain(|phase| phase.value >= 0.1);
        all.sort_by(|a, b| b.value.total_cmp(&a.value));
        all
    }

    /// [`View::phases`] of all phases.
    pub(super) fn all_phases(&self) -> Vec<Evidence> {
        self.phases(&PHASES.map(|(phase, _)| phase))
    }

    pub(super) fn throttled(&self) -> Option<Evidence> {
        self.has_store().then(|| evidence("throttled_share", self.throttled_share(), THROTTLED))
    }

    /// Round-trip time: of handshakes if there were any.
    pub(super) fn round_trip(&self) -> Option<Evidence> {
        let network = self.network()?;
        let least = network.rtt_min_ms?;
        match network.handshake_ms {
            Some(ms) => Some(evidence("handshake_ms", ms, least)),
            None => Some(evidence("rtt_ms", network.rtt_ms?, least)),
        }
    }

    /// All signals with their meaning.
    pub(super) fn all(&self) -> Vec<Signal> {
        let mut all = vec![self.cpu_used()];
        all.extend(self.machine_used());
        all.extend(self.busiest_cpu());
        all.extend(self.run_delay());
        all.extend(self.cpu_pressure());
        all.extend(self.quota());
        all.extend(self.stolen());
        all.extend(self.thread_used());
        all.extend(self.all_phases());
        all.extend(self.blocked_share());
        all.extend(self.io_pressure());
        all.extend(self.tasks_blocked());
        all.extend(self.iowait());
        all.extend(self.memory_pressure());
        all.extend(self.peer_waits());
        all.extend(self.traffic());
        all.extend(self.lock_waits());
        for disk in &self.f.disks {
            all.extend(disk.ceilings.iter().map(|of| ceiling(disk, of)));
            all.push(busy(disk));
            all.extend(queue(disk));
            all.extend(dirty(disk));
        }
        all.extend(self.link());
        all.extend(self.round_trip());
        all.extend(self.retransmits());
        all.extend(self.send_queue());
        all.extend(self.peer_window());
        all.extend(self.backlog());
        all.extend(self.answer());
        all.extend(self.throttled());
        all.extend(self.f.limits.iter().map(user_limit));
        all.extend(self.jobs_wait());
        all.extend(self.jobs_elasticity());
        all.extend(self.f.experiments.iter().map(experiment));
        all.into_iter().map(|evidence| Signal { says: says(&evidence), evidence }).collect()
    }
}

/// All phases in their order, with the names of their signals.
const PHASES: [(Phase, &str); 16] = [
    (Phase::Idle, "phase_idle_share"),
    (Phase::List, "phase_list_share"),
    (Phase::Look, "phase_look_share"),
    (Phase::Read, "phase_read_share"),
    (Phase::Create, "phase_create_share"),
    (Phase::Write, "phase_write_share"),
    (Phase::Settle, "phase_settle_share"),
    (Phase::Remove, "phase_remove_share"),
    (Phase::Compute, "phase_compute_share"),
    (Phase::Connect, "phase_connect_share"),
    (Phase::Send, "phase_send_share"),
    (Phase::Answer, "phase_answer_share"),
    (Phase::Receive, "phase_receive_share"),
    (Phase::Limit, "phase_limit_share"),
    (Phase::Pause, "phase_pause_share"),
    (Phase::Room, "phase_room_share"),
];

const _: () = {
    let mut at = 0;
    while at < PHASES.len() {
        assert!(PHASES[at].0 as usize == at, "they are looked up by number");
        at += 1;
    }
};

/// A disk's ceiling, and the rate reached.
pub(super) fn ceiling(disk: &DiskFacts, of: &Ceiling) -> Evidence {
    let signal = match (of.operations, of.direction) {
        (true, Direction::Reads) => "disk_read_iops",
        (true, Direction::Writes) => "disk_write_iops",
        (true, Direction::Both) => "disk_iops",
        (false, Direction::Reads) => "disk_read_bytes_per_s",
        (false, Direction::Writes) => "disk_write_bytes_per_s",
        (false, Direction::Both) => "disk_bytes_per_s",
    };
    Evidence { signal: signal.into(), of: disk.name.clone(), value: of.reached, limit: of.limit }
}

pub(super) fn busy(disk: &DiskFacts) -> Evidence {
    Evidence { of: disk.name.clone(), ..evidence("disk_busy_share", disk.busy, 0.9) }
}

pub(super) fn queue(disk: &DiskFacts) -> Option<Evidence> {
    Some(Evidence { of: disk.name.clone(), ..evidence("disk_queue", disk.queue?, 4.0) })
}

pub(super) fn dirty(disk: &DiskFacts) -> Option<Evidence> {
    let (value, limit) = disk.dirty_bytes?;
    Some(Evidence { of: disk.name.clone(), ..evidence("dirty_bytes", value, limit) })
}

pub(super) fn user_limit(of: &UserLimit) -> Evidence {
    let signal = match of.option {
        "--bwlimit" => "user_limit_bytes_per_s",
        _ => "user_limit_per_s",
    };
    Evidence { of: of.option.to_owned(), ..evidence(signal, of.reached, of.limit) }
}

pub(super) fn experiment(made: &Experiment) -> Evidence {
    let of = made.resource.name().to_owned();
    Evidence { of, ..evidence("experiment_elasticity", made.elasticity.0, 0.7) }
}

/// Meaning of a signal for the limit, in a few words.
fn says(of: &Evidence) -> &'static str {
    let full = of.value >= REACHED * of.limit;
    let over = of.value >= of.limit;
    let (is_so, yes, no) = match &*of.signal {
        "cpu_used_cpus" => (full, "it uses all CPUs that it may", "it leaves CPUs unused"),
        "machine_used_cpus" => (full, "no CPU is idle", "CPUs are idle"),
        "run_delay_share" => (over, "its threads wait for CPUs", "its threads get CPUs at once"),
        "cpu_pressure_share" => (over, "tasks wait for CPUs", "few tasks wait for CPUs"),
        "quota_throttled_share" => (over, "the quota throttles", "the quota does not throttle"),
        "stolen_cpus" => (over, "the hypervisor takes CPUs away", "the hypervisor takes little"),
        "thread_used_cpus" => (full, "one thread is at its limit", "no thread is at its limit"),
        "blocked_share" => {
            (over, "its threads are blocked in the kernel", "its threads rarely block")
        }
        "io_pressure_share" => (over, "tasks wait for I/O", "few tasks wait for I/O"),
        "io_blocked_tasks" => (over, "tasks are blocked on I/O", "few tasks are blocked on I/O"),
        "cpu_busy_share" => (over, "one CPU is never idle", "each CPU is idle at times"),
        "iowait_share" => (over, "CPUs wait for I/O", "CPUs hardly wait for I/O"),
        "memory_pressure_share" => (over, "tasks wait for memory", "few tasks wait for memory"),
        "traffic_bytes_per_s" => (over, "bytes come or go", "almost no network traffic"),
        "peer_wait_share" => {
            (over, "it waits for the other side", "it does not wait for the other side")
        }
        "jobs_waiting_share" => (over, "jobs wait", "jobs hardly wait"),
        "lock_waits_share" => (over, "threads wait for a lock", "locks are free"),
        "disk_busy_share" => (over, "the disk always has work", "the disk has pauses"),
        "disk_queue" => (over, "requests queue at the disk", "few requests are at the disk"),
        "dirty_bytes" => {
            (of.value >= 0.7 * of.limit, "writers wait for writeback", "writers do not wait")
        }
        "link_bytes_per_s" => (of.value >= 0.9 * of.limit, "the link is full", "the link has room"),
        "rtt_ms" | "handshake_ms" => (
            of.value >= 3.0 * of.limit && of.value - of.limit >= 2.0,
            "round trips are longer than necessary",
            "packets do not queue",
        ),
        "retransmits_share" => (over, "segments are lost", "almost no segments are lost"),
        "send_queue_full_share" => (over, "bytes wait to be sent", "bytes leave at once"),
        "peer_window_full_share" => (over, "the server does not read", "the server reads"),
        "backlog_bytes" => (over, "packets wait in a queue", "no packets wait"),
        "answer_ms" => (
            of.value >= 2.0 * of.limit,
            "requests queue at the server",
            "answers come as fast as ever",
        ),
        "throttled_share" => (over, "the server asks to slow down", "the server does not object"),
        "jobs_elasticity" => (
            of.value > of.limit,
            if of.value >= super::view::RISING {
                "more jobs bring more"
            } else {
                "more jobs bring a little"
            },
            "more jobs bring nothing",
        ),
        "experiment_elasticity" => (
            over,
            "it binds",
            if of.value <= 0.1 { "it does not bind" } else { "it binds in part" },
        ),
        "disk_read_iops"
        | "disk_write_iops"
        | "disk_read_bytes_per_s"
        | "disk_write_bytes_per_s"
        | "disk_iops"
        | "disk_bytes_per_s" => (full, "the ceiling is reached", "below the ceiling"),
        "user_limit_per_s" | "user_limit_bytes_per_s" => {
            (full, "the limit is reached", "below the limit")
        }
        _ => (over, "most of the time", "a part of the time"),
    };
    if is_so { yes } else { no }
}
