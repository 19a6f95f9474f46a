//! Advice of a verdict: the change that would help, and changes without effect. Facts only; the words are elsewhere.

use crate::verdict::facts::{CPU_FULL, REACHED, View};
use crate::verdict::rules::RUN_DELAY;
use crate::verdict::{About, Resource};

/// Advice of a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The change that would help.
    pub help: Help,
    /// Changes without effect, because their resource has headroom.
    pub useless: Vec<Useless>,
}

/// A change that would help, or the reason why none is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Help {
    /// A transfer without enough work to judge.
    TooLittleWork,
    /// A command that ended before it could be judged.
    CommandTooShort,
    /// A command that slept.
    CommandIdle,
    /// No bottleneck was identified; `experiments`: `--prove` was not tried and would tell.
    Unknown {
        /// See above.
        experiments: bool,
    },
    /// CPUs.
    Cpus {
        /// The kind of change.
        change: CpuChange,
        /// CPUs that other processes use, if they are many.
        others_cpus: Option<f64>,
        /// The next ceiling, if it is near.
        until: Option<NextCeiling>,
    },
    /// A faster CPU or more threads, for a command with one busy thread.
    FasterCpuOrThreads,
    /// Faster CPUs, not more of them.
    FasterCpus,
    /// More jobs.
    MoreJobs,
    /// More jobs, or less latency.
    MoreJobsOrLessLatency,
    /// More jobs than descriptors and memory allow.
    MoreJobsThanPossible,
    /// More operations per second of the disk; the file that sets the ceiling.
    MoreIops(Option<&'static str>),
    /// More bytes per second of the disk; the file that sets the ceiling.
    MoreDiskBandwidth(Option<&'static str>),
    /// A faster path to the server.
    FasterPath,
    /// A faster link to another machine.
    FasterLink,
    /// A shorter round trip, or more channels of one login.
    MoreChannels,
    /// More CPUs of another machine.
    CpusOf(String),
    /// A cipher that takes less CPU time.
    QuickerCipher,
    /// A server that allows more requests per second.
    ServerAllowingMore,
    /// A server that handles more requests at once.
    ServerHandlingMore,
    /// More directories for the same entries.
    MoreDirectories,
    /// A faster server, or a faster path to it.
    FasterPeer,
    /// A faster source.
    FasterSource,
    /// A faster target.
    FasterTarget,
    /// A higher limit; the option, if it is known.
    HigherLimit(Option<&'static str>),
    /// A larger memory budget.
    MoreMemory,
}

/// A change of the CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CpuChange {
    /// A faster one; more of them only with more processes.
    FasterOrMoreProcesses,
    /// A larger quota.
    Quota,
    /// CPUs that the hypervisor does not share.
    Dedicated,
    /// More of this many CPUs of the machine (affinity).
    Affinity(f64),
    /// More of them, with more jobs.
    MoreWithJobs,
    /// Fewer other processes, or more CPUs.
    FewerOthersOrMore,
    /// More of them.
    More,
}

/// A ceiling of a disk that is reached next.
#[derive(Clone, Debug, PartialEq)]
pub struct NextCeiling {
    /// Kernel name of the disk.
    pub disk: String,
    /// True for operations, false for bytes.
    pub operations: bool,
    /// Multiple of the present rate.
    pub factor: f64,
}

/// A change without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useless {
    /// More CPUs.
    Cpus,
    /// Faster disks.
    Disks,
    /// More bandwidth of the network.
    Bandwidth,
    /// More processes on the same CPUs.
    Processes,
    /// More jobs.
    Jobs,
}

impl Advice {
    /// Returns a reason without further advice.
    pub(crate) fn only(help: Help) -> Advice {
        Advice { help, useless: Vec::new() }
    }

    /// Advice for an identified bottleneck.
    pub(crate) fn on(v: &View<'_>, resource: Resource) -> Advice {
        Advice { help: help(v, resource), useless: useless(v, resource) }
    }

    /// Advice without one.
    pub(crate) fn unknown(v: &View<'_>) -> Advice {
        let experiments = v.f.experiments.is_empty() && v.f.about == About::Transfer;
        Advice { help: Help::Unknown { experiments }, useless: useless(v, Resource::None) }
    }
}

fn help(v: &View<'_>, resource: Resource) -> Help {
    if let (Some(far), Resource::Cpu) = (v.far_cpus_full(), resource) {
        return Help::CpusOf(far.host.clone());
    }
    match resource {
        Resource::Cpu => cpus(v),
        Resource::Thread if v.ssh_full().is_some() => Help::QuickerCipher,
        Resource::Network if v.f.far.is_some() && v.windows_are_full() => Help::MoreChannels,
        Resource::Network if v.f.far.is_some() => Help::FasterLink,
        Resource::Thread if v.f.jobs_fixed && v.f.jobs < 1.5 && !v.jobs_bring_nothing() => {
            Help::MoreJobs
        }
        Resource::Thread if v.f.about == About::Command => Help::FasterCpuOrThreads,
        Resource::Thread => Help::FasterCpus,
        Resource::DiskIops => Help::MoreIops(set_in(v, true)),
        Resource::DiskBandwidth => Help::MoreDiskBandwidth(set_in(v, false)),
        Resource::Network => Help::FasterPath,
        Resource::Server if v.throttled_share() > 0.0 => Help::ServerAllowingMore,
        Resource::Server => Help::ServerHandlingMore,
        Resource::Lock => Help::MoreDirectories,
        Resource::Latency if !v.f.jobs_fixed && v.f.jobs >= 0.9 * v.f.jobs_max as f64 => {
            Help::MoreJobsThanPossible
        }
        Resource::Latency => Help::MoreJobsOrLessLatency,
        Resource::Peer => Help::FasterPeer,
        Resource::Source => Help::FasterSource,
        Resource::Target => Help::FasterTarget,
        Resource::UserLimit => {
            let reached = v.f.limits.iter().find(|limit| limit.is_reached(REACHED));
            Help::HigherLimit(reached.map(|limit| limit.option))
        }
        Resource::Own => Help::MoreMemory,
        Resource::None => Help::Unknown { experiments: false },
    }
}

fn cpus(v: &View<'_>) -> Help {
    let f = v.f;
    let others = f.machine_used.map_or(0.0, |all| all - f.cpu_used);
    let others_cpus = (others >= 0.25 * v.allowed()).then_some(others);
    // A thread that never waits uses one CPU, however many there are.
    let alone = f.about == About::Command && f.thread_used.is_some_and(|used| used >= CPU_FULL);
    let change = if alone && f.run_delay.is_none_or(|delay| delay < RUN_DELAY) {
        CpuChange::FasterOrMoreProcesses
    } else if f.quota_throttled.is_some_and(|share| share >= 0.1) {
        CpuChange::Quota
    } else if f.stolen.is_some_and(|stolen| stolen >= 0.1 * f.cpus) {
        CpuChange::Dedicated
    } else if f.machine_cpus.is_some_and(|all| all >= v.allowed() + 0.5) {
        CpuChange::Affinity(f.machine_cpus.unwrap_or_default())
    } else if f.cpus <= 1.2 && f.jobs_fixed && f.jobs < 1.5 && !v.jobs_bring_nothing() {
        CpuChange::MoreWithJobs
    } else if others_cpus.is_some() {
        CpuChange::FewerOthersOrMore
    } else {
        CpuChange::More
    };
    Help::Cpus { change, others_cpus, until: next_ceiling(v) }
}

/// The next ceiling, if it is near.
fn next_ceiling(v: &View<'_>) -> Option<NextCeiling> {
    let ceilings = v.f.disks.iter().flat_map(|disk| {
        let near = disk.ceilings.iter().filter(|of| of.reached >= 0.5 * of.limit);
        near.map(|of| (of.limit / of.reached, of.operations, &disk.name))
    });
    let (factor, operations, disk) = ceilings.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (factor > 1.05).then(|| NextCeiling { disk: disk.clone(), operations, factor })
}

/// File that sets the reached ceiling.
fn set_in(v: &View<'_>, operations: bool) -> Option<&'static str> {
    let all = v.f.disks.iter().flat_map(|disk| &disk.ceilings);
    let mut reached = all.filter(|of| of.operations == operations && of.reached >= 0.95 * of.limit);
    reached.next().map(|of| of.from)
}

/// Changes without effect: their resource is known to have headroom.
fn useless(v: &View<'_>, resource: Resource) -> Vec<Useless> {
    use Resource::{Cpu, DiskBandwidth, DiskIops, Latency, Network, Source, Target, Thread};
    let f = v.f;
    let mut idle = Vec::new();
    let cpu_named = matches!(resource, Cpu | Thread);
    if resource == Thread && f.about == About::Command && v.cpu_idle() {
        idle.push(Useless::Cpus);
    }
    if !cpu_named && (v.cpu_idle() || f.refutes(Cpu)) {
        idle.push(Useless::Cpus);
    }
    let disk_named = matches!(resource, DiskIops | DiskBandwidth | Source | Target);
    let relaxed = f.disks.iter().all(|disk| {
        disk.ceilings.iter().all(|of| of.reached <= 0.8 * of.limit)
            && (disk.busy <= 0.6 || cpu_named)
    });
    // With more CPUs the next ceiling counts.
    let next = resource == Cpu && next_ceiling(v).is_some();
    let waiting = v.blocked().is_none_or(|share| share > 0.15);
    if !disk_named && !next && !f.disks.is_empty() && relaxed && !waiting {
        idle.push(Useless::Disks);
    }
    let room = f.network.as_ref().is_some_and(|network| {
        let link = network.link_bytes_per_s;
        let slack = link.is_some_and(|link| network.bytes_per_s <= 0.5 * link);
        (slack || v.is_congested() == Some(false)) && !v.is_lossy() && !v.is_link_full()
    });
    // "Bandwidth" without a word is that of the network: not beside that of a disk.
    if !matches!(resource, Network | DiskBandwidth | Resource::None) && room {
        idle.push(Useless::Bandwidth);
    }
    if resource == Cpu && f.about == About::Command {
        idle.push(Useless::Processes);
    }
    if resource != Latency && v.jobs_bring_nothing() {
        idle.push(Useless::Jobs);
    }
    idle
}
