//! Signals with their references, and the list of all signals with their meaning.

use crate::verdict::facts::{CPU_FREE, CPU_FULL, FLAT, NOTHING, REACHED, RISING, View};
use crate::verdict::rules::{
    BACKLOG_BYTES, BLOCKED, IOWAIT, LOCKED, PRESSURE, QUOTA, RUN_DELAY, STOLEN, THROTTLED,
    TRAFFIC_BYTES_PER_S,
};
use crate::verdict::{
    About, Ceiling, Direction, DiskFacts, Evidence, Experiment, NetworkFacts, Signal, Statement,
    UserLimit,
};
use hakobu_core::meter::Phase;

/// Smallest share of a phase that has a line of its own.
const PHASE_SHOWN: f64 = 0.01;

fn evidence(signal: &'static str, value: f64, limit: f64) -> Evidence {
    Evidence { signal: signal.into(), of: String::new(), value, limit }
}

/// Signals that may be missing: name of the function, name of the signal, value and reference.
macro_rules! signals {
    ($($(#[$doc:meta])* $function:ident, $signal:literal, |$v:ident| $value:expr, $limit:expr;)*) => {
        impl View<'_> {
            $($(#[$doc])*
            pub(crate) fn $function(&self) -> Option<Evidence> {
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

    pub(crate) fn cpu_used(&self) -> Evidence {
        evidence("cpu_used_cpus", self.f.cpu_used, self.f.cpus)
    }

    /// CPU use by this process and by all.
    pub(crate) fn cpus(&self) -> Vec<Evidence> {
        let full = |of: &Evidence| self.is_one_cpu() && of.value >= of.limit;
        let busiest = self.busiest_cpu().filter(full);
        match (self.f.about, busiest) {
            (About::Command, Some(busiest)) => vec![busiest],
            _ => [Some(self.cpu_used()), self.machine_used()].into_iter().flatten().collect(),
        }
    }

    pub(crate) fn busiest_cpu(&self) -> Option<Evidence> {
        let of = self.f.busiest_cpu?;
        let name = of.number.map_or("one CPU".to_owned(), |number| format!("cpu{number}"));
        Some(Evidence { of: name, ..evidence("cpu_busy_share", of.used, CPU_FULL) })
    }

    pub(crate) fn run_delay(&self) -> Option<Evidence> {
        let of = match self.f.about {
            About::Command => "the command".to_owned(),
            About::Transfer | About::Cell => String::new(),
        };
        Some(Evidence { of, ..evidence("run_delay_share", self.f.run_delay?, RUN_DELAY) })
    }

    /// Share of the busy units' time in a phase, so that the shares of all phases add up to 100 %; for idle units their
    /// share of all units, which is a signal of its own.
    pub(crate) fn phase(&self, phase: Phase) -> Evidence {
        let (value, limit) = match phase {
            Phase::Idle => (self.idle_share(), 0.5),
            Phase::Limit => (self.busy_share(phase), 0.3),
            Phase::Room => (self.busy_share(phase), 0.5),
            // Rules compare with the units that do not wait for room.
            _ => (self.busy_share(phase), 0.5 * self.active_share()),
        };
        evidence(PHASES[phase as usize].1, value, limit)
    }

    /// Those of these phases with at least a tenth of the time, longest first.
    pub(crate) fn phases(&self, phases: &[Phase]) -> Vec<Evidence> {
        let mut all: Vec<_> = phases.iter().map(|phase| self.phase(*phase)).collect();
        all.retain(|phase| phase.value >= 0.1);
        all.sort_by(|a, b| b.value.total_cmp(&a.value));
        all
    }

    /// [`View::phases`] of all phases.
    pub(crate) fn all_phases(&self) -> Vec<Evidence> {
        self.phases(&PHASES.map(|(phase, _)| phase))
    }

    /// Idle units, and the phases of the others, in their order: small ones together, so that they add up to 100 %.
    fn whole(&self) -> Vec<Evidence> {
        let mut all: Vec<_> = PHASES.iter().map(|(phase, _)| self.phase(*phase)).collect();
        all.retain(|phase| phase.value >= PHASE_SHOWN);
        let idle = |of: &Evidence| of.signal == PHASES[Phase::Idle as usize].1;
        let shown: f64 = all.iter().filter(|of| !idle(of)).map(|of| of.value).sum();
        let other = 1.0 - shown;
        if self.busy > 0.0 && other > 0.001 {
            all.push(evidence("phase_other_share", other, 0.5));
        }
        all
    }

    pub(crate) fn throttled(&self) -> Option<Evidence> {
        self.has_store().then(|| evidence("throttled_share", self.throttled_share(), THROTTLED))
    }

    /// Round-trip time: of handshakes if there were any.
    pub(crate) fn round_trip(&self) -> Option<Evidence> {
        let network = self.network()?;
        let least = network.rtt_min_ms?;
        match network.handshake_ms {
            Some(ms) => Some(evidence("handshake_ms", ms, least)),
            None => Some(evidence("rtt_ms", network.rtt_ms?, least)),
        }
    }

    /// All signals with their meaning.
    pub(crate) fn all(&self) -> Vec<Signal> {
        let mut all = vec![self.cpu_used()];
        all.extend(self.machine_used());
        all.extend(self.busiest_cpu());
        all.extend(self.run_delay());
        all.extend(self.cpu_pressure());
        all.extend(self.quota());
        all.extend(self.stolen());
        all.extend(self.thread_used());
        all.extend(self.whole());
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
        all.extend(self.far());
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
        all.into_iter().map(|evidence| Signal { says: self.says(&evidence), evidence }).collect()
    }
}

/// All phases in their order, with the names of their signals.
const PHASES: [(Phase, &str); 16] = [
    (Phase::Idle, "idle_units_share"),
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
pub(crate) fn ceiling(disk: &DiskFacts, of: &Ceiling) -> Evidence {
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

pub(crate) fn busy(disk: &DiskFacts) -> Evidence {
    Evidence { of: disk.name.clone(), ..evidence("disk_busy_share", disk.busy, 0.9) }
}

pub(crate) fn queue(disk: &DiskFacts) -> Option<Evidence> {
    Some(Evidence { of: disk.name.clone(), ..evidence("disk_queue", disk.queue?, 4.0) })
}

pub(crate) fn dirty(disk: &DiskFacts) -> Option<Evidence> {
    let (value, limit) = disk.dirty_bytes?;
    Some(Evidence { of: disk.name.clone(), ..evidence("dirty_bytes", value, limit) })
}

pub(crate) fn user_limit(of: &UserLimit) -> Evidence {
    let signal = match of.option {
        "--bwlimit" => "user_limit_bytes_per_s",
        _ => "user_limit_per_s",
    };
    Evidence { of: of.option.to_owned(), ..evidence(signal, of.reached, of.limit) }
}

pub(crate) fn experiment(made: &Experiment) -> Evidence {
    let of = made.resource.name().to_owned();
    Evidence { of, ..evidence("experiment_elasticity", made.elasticity.0, 0.7) }
}

/// The statement of the first step that `value` reaches, or the last statement.
fn step(value: f64, steps: &[(f64, Statement)], below: Statement) -> Statement {
    steps.iter().find(|(from, _)| value >= *from).map_or(below, |(_, says)| *says)
}

impl View<'_> {
    /// True if a rate limit that the user set holds the transfer back.
    fn limit_reached(&self) -> bool {
        self.f.limits.iter().any(|limit| limit.is_reached(REACHED))
            || self.share(&[Phase::Limit]) >= 0.3
    }

    /// Meaning of a signal for the limit, in a few words. What it says has to be true of the number beside it: between
    /// "always" and "never" there is a third statement.
    fn says(&self, of: &Evidence) -> Statement {
        let share = if of.limit > 0.0 { of.value / of.limit } else { 0.0 };
        let value = of.value;
        match &*of.signal {
            "cpu_used_cpus" => step(
                share,
                &[(REACHED, Statement::AllUsableCpusUsed), (0.5, Statement::MostUsableCpusUsed)],
                Statement::UsableCpusUnused,
            ),
            // What a hypervisor takes away is not idle.
            "machine_used_cpus" => step(
                self.machine_cpus().unwrap_or(share),
                &[(REACHED, Statement::NoCpuIdle), (CPU_FREE, Statement::CpusHardlyIdle)],
                Statement::CpusIdle,
            ),
            "cpu_busy_share" => step(
                value,
                &[(0.99, Statement::OneCpuNeverIdle), (CPU_FULL, Statement::OneCpuHardlyIdle)],
                Statement::EachCpuIdleAtTimes,
            ),
            "run_delay_share" => step(
                value,
                &[
                    (RUN_DELAY, Statement::ThreadsWaitForCpus),
                    (0.01, Statement::ThreadsWaitForCpusAtTimes),
                ],
                Statement::ThreadsGetCpus,
            ),
            "cpu_pressure_share" => step(
                value,
                &[(PRESSURE, Statement::CpuPressure), (0.1, Statement::SomeCpuPressure)],
                Statement::LittleCpuPressure,
            ),
            "quota_throttled_share" => step(
                value,
                &[(QUOTA, Statement::QuotaThrottles), (0.005, Statement::QuotaThrottlesAtTimes)],
                Statement::QuotaFree,
            ),
            "stolen_cpus" => step(share, &[(1.0, Statement::CpusStolen)], Statement::FewCpusStolen),
            "far_used_cpus" => step(
                share,
                &[(REACHED, Statement::NoCpuIdle), (CPU_FREE, Statement::CpusHardlyIdle)],
                Statement::CpusIdle,
            ),
            "far_link_bytes_per_s" => {
                step(share, &[(REACHED, Statement::CeilingReached)], Statement::BelowCeiling)
            }
            "thread_used_cpus" | "ssh_used_cpus" => {
                step(value, &[(REACHED, Statement::ThreadFull)], Statement::NoThreadFull)
            }
            "blocked_share" => step(
                value,
                &[(BLOCKED, Statement::ThreadsBlocked), (0.1, Statement::ThreadsBlockedAtTimes)],
                Statement::ThreadsRarelyBlocked,
            ),
            "io_pressure_share" => step(
                value,
                &[(PRESSURE, Statement::IoPressure), (0.1, Statement::SomeIoPressure)],
                Statement::LittleIoPressure,
            ),
            "io_blocked_tasks" => {
                step(value, &[(1.0, Statement::TasksBlocked)], Statement::FewTasksBlocked)
            }
            "iowait_share" => step(value, &[(IOWAIT, Statement::IoWait)], Statement::LittleIoWait),
            "memory_pressure_share" => step(
                value,
                &[(PRESSURE, Statement::MemoryPressure), (0.1, Statement::SomeMemoryPressure)],
                Statement::LittleMemoryPressure,
            ),
            "traffic_bytes_per_s" => {
                step(share, &[(1.0, Statement::Traffic)], Statement::NoTraffic)
            }
            "peer_wait_share" => step(
                value,
                &[(0.6, Statement::WaitsForPeer), (0.05, Statement::WaitsForPeerAtTimes)],
                Statement::NeverWaitsForPeer,
            ),
            "jobs_waiting_share" => step(
                value,
                &[(0.4, Statement::JobsWait), (0.1, Statement::JobsWaitAtTimes)],
                Statement::JobsHardlyWait,
            ),
            "lock_waits_share" => step(
                value,
                &[(LOCKED, Statement::LockContended), (0.01, Statement::LockContendedAtTimes)],
                Statement::LocksFree,
            ),
            "disk_busy_share" => step(
                value,
                &[(0.99, Statement::DiskNeverIdle), (0.9, Statement::DiskHardlyIdle)],
                Statement::DiskHasPauses,
            ),
            "disk_queue" => step(share, &[(1.0, Statement::DiskQueues)], Statement::DiskQueueShort),
            "dirty_bytes" => {
                step(share, &[(0.7, Statement::WritebackThrottles)], Statement::WritebackFree)
            }
            "link_bytes_per_s" => {
                step(share, &[(0.9, Statement::LinkFull)], Statement::LinkHasRoom)
            }
            // A fraction of a millisecond is no queue.
            "rtt_ms" | "handshake_ms" if value - of.limit >= 2.0 => step(
                share,
                &[(3.0, Statement::RoundTripsLong), (1.5, Statement::RoundTripsLonger)],
                Statement::RoundTripsShort,
            ),
            "rtt_ms" | "handshake_ms" if value - of.limit >= 0.1 => {
                step(share, &[(1.5, Statement::RoundTripsLonger)], Statement::RoundTripsShort)
            }
            "rtt_ms" | "handshake_ms" => Statement::RoundTripsShort,
            "retransmits_share" => {
                step(share, &[(1.0, Statement::SegmentsLost)], Statement::FewSegmentsLost)
            }
            "send_queue_full_share" => step(
                value,
                &[(0.3, Statement::SendQueueBacklog), (0.05, Statement::SendQueueBacklogAtTimes)],
                Statement::NoSendQueueBacklog,
            ),
            "peer_window_full_share" => step(
                value,
                &[
                    (0.9, Statement::ServerReadsNothing),
                    (0.5, Statement::ServerReadsSlowly),
                    (0.1, Statement::ServerReadsSlowlyAtTimes),
                ],
                Statement::ServerReads,
            ),
            "backlog_bytes" => step(
                value,
                &[(BACKLOG_BYTES, Statement::PacketsQueued), (1.0, Statement::FewPacketsQueued)],
                Statement::NoPacketsQueued,
            ),
            // A rate limit of ours holds back what is sent and received between a request and its response.
            "answer_ms" if share >= 1.2 && self.limit_reached() => {
                Statement::ResponsesAwaitOwnLimit
            }
            "answer_ms" => step(
                share,
                &[(2.0, Statement::RequestsQueueAtServer), (1.2, Statement::ResponsesSlower)],
                Statement::ResponsesFast,
            ),
            "throttled_share" => step(
                value,
                &[
                    (THROTTLED, Statement::ServerThrottles),
                    (f64::MIN_POSITIVE, Statement::ServerThrottlesAtTimes),
                ],
                Statement::NoThrottling,
            ),
            "jobs_elasticity" => step(
                value,
                &[(RISING, Statement::MoreJobsGain), (NOTHING, Statement::MoreJobsGainLittle)],
                Statement::MoreJobsNoGain,
            ),
            "experiment_elasticity" => step(
                value,
                &[(0.7, Statement::IsBottleneck), (0.1, Statement::IsPartlyBottleneck)],
                Statement::IsNoBottleneck,
            ),
            "disk_read_iops"
            | "disk_write_iops"
            | "disk_read_bytes_per_s"
            | "disk_write_bytes_per_s"
            | "disk_iops"
            | "disk_bytes_per_s" => {
                step(share, &[(REACHED, Statement::CeilingReached)], Statement::BelowCeiling)
            }
            "user_limit_per_s" | "user_limit_bytes_per_s" => {
                step(share, &[(REACHED, Statement::LimitReached)], Statement::BelowLimit)
            }
            _ => step(
                value,
                &[(0.5, Statement::MostOfTheTime), (0.05, Statement::PartOfTheTime)],
                Statement::HardlyEver,
            ),
        }
    }
}
