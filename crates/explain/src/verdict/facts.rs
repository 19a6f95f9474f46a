//! Facts about a run: means over its steady part. Unknown facts are `None` and lower the level of the
//! verdict.

use hakobu_core::meter::PHASES;

/// Kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum About {
    /// A transfer of this program, observed from inside by the phases of its units.
    #[default]
    Transfer,
    /// Runs of a campaign's cell: means over several runs, observed from outside.
    Cell,
    /// A command and its descendants, observed by the kernel's counters of their threads.
    Command,
}

/// Inputs of a verdict.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Kind of work. It determines which signals exist, not their meaning.
    pub about: About,
    /// Duration of the observation, seconds.
    pub span_s: f64,
    /// CPUs that this process may use, by affinity and quota.
    pub cpus: f64,
    /// CPUs by affinity without quota, to which `machine_used` refers. `None` if equal to `cpus`.
    pub cpus_allowed: Option<f64>,
    /// CPUs that it used, in user space and the kernel.
    pub cpu_used: f64,
    /// CPUs used by all processes of the machine, of those that this one may use.
    pub machine_used: Option<f64>,
    /// All CPUs of the machine.
    pub machine_cpus: Option<f64>,
    /// The busiest usable CPU.
    pub busiest_cpu: Option<BusiestCpu>,
    /// CPUs idle with I/O in flight, over all CPUs of the machine.
    pub iowait: Option<f64>,
    /// Mean number of the machine's tasks blocked on I/O (`procs_blocked`).
    pub blocked: Option<f64>,
    /// CPUs stolen by a hypervisor.
    pub stolen: Option<f64>,
    /// Share of a CPU used by its busiest thread, 0 to 1.
    pub thread_used: Option<f64>,
    /// Share of runnable threads' time spent waiting for a CPU, 0 to 1 (schedstat).
    pub run_delay: Option<f64>,
    /// Shares of time in which some task waited (PSI), 0 to 1.
    pub pressure: Pressure,
    /// Throttled share of the quota's periods, 0 to 1 (cgroup).
    pub quota_throttled: Option<f64>,
    /// Disks of the local ends.
    pub disks: Vec<DiskFacts>,
    /// Network path to the servers.
    pub network: Option<NetworkFacts>,
    /// States of a command's threads.
    pub threads: Option<ThreadFacts>,
    /// Mean number of units in each phase of a transfer, by [`hakobu_core::meter::Phase`].
    pub phases: [f64; PHASES],
    /// Mean number of allowed jobs; 0 if unknown.
    pub jobs: f64,
    /// True if the user fixed the number of jobs.
    pub jobs_fixed: bool,
    /// Most jobs possible.
    pub jobs_max: usize,
    /// Goodput by number of jobs: from the tuner's windows, or from neighbours in a sweep.
    pub curve: Vec<Point>,
    /// Content bytes per second.
    pub bytes_per_s: f64,
    /// Operations (local) or requests (store) per second.
    pub operations_per_s: f64,
    /// Shortest time from the end of a request to the start of its answer, milliseconds: that of an unloaded
    /// server. The mean follows from the phases (Little's law).
    pub answer_min_ms: Option<f64>,
    /// Answers that asked to slow down, and time-outs, per second.
    pub throttled_per_s: f64,
    /// Limits set by the user, and rates reached.
    pub limits: Vec<UserLimit>,
    /// Ends other than local disks and stores: a pipe, a network file system, FUSE.
    pub foreign: Vec<Side>,
    /// True if the source, and if the target, is a store.
    pub stores: (bool, bool),
    /// Share of samples in which a thread waited for a kernel lock, 0 to 1.
    pub lock_waits: Option<f64>,
    /// Results of experiments, made during the run or by a campaign.
    pub experiments: Vec<Experiment>,
    /// Verdict of the measured program itself, if it gave one.
    pub own_verdict: Option<OwnVerdict>,
}

/// The busiest CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusiestCpu {
    /// Number, if known.
    pub number: Option<u32>,
    /// Share of time in use, 0 to 1.
    pub used: f64,
}

/// Threads of a command and its descendants: means over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadFacts {
    /// Threads in uninterruptible waits (`D`).
    pub blocked: f64,
    /// Share of samples, 0 to 1, in which a thread waits for a network connection and none runs or is
    /// blocked.
    pub waiting_for_peer: Option<f64>,
    /// Share of samples, 0 to 1, in which a thread is runnable: on a CPU or waiting for one.
    pub runnable: Option<f64>,
    /// Threads that sleep of their own will, until a time that they chose, as to keep to a rate.
    pub asleep: f64,
}

/// Verdict of a measured program on its own runs.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnVerdict {
    /// Resource named by more than half of the runs.
    pub resource: Resource,
    /// Lowest level among those.
    pub level: Level,
    /// Number of those runs and of all, and signals of one of them.
    pub evidence: Vec<Evidence>,
}

/// An end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The source of bytes.
    Source,
    /// Their target.
    Target,
}

/// Pressure stall information: shares of time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Some task waited for a CPU.
    pub cpu: Option<f64>,
    /// Some task waited for I/O.
    pub io: Option<f64>,
    /// Some task waited for memory.
    pub memory: Option<f64>,
}

/// A disk during the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFacts {
    /// Kernel name: `vda`, `loop3`.
    pub name: String,
    /// Ends of the transfer on it.
    pub sides: Vec<Side>,
    /// Reads per second.
    pub read_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Mean queue depth: requests in flight.
    pub queue: Option<f64>,
    /// Utilisation: share of time with a request in flight, 0 to 1.
    pub busy: f64,
    /// Mean latency of requests, milliseconds.
    pub latency_ms: f64,
    /// True for a spinning disk.
    pub rotating: bool,
    /// Ceilings set by cgroups, and rates reached (by the cgroup's own counters if available:
    /// `blkio.throttle.io_serviced`).
    pub ceilings: Vec<Ceiling>,
    /// Dirty and writeback bytes, and the kernel's threshold for them, machine-wide.
    pub dirty_bytes: Option<(f64, f64)>,
}

/// Direction of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Both together.
    Both,
}

/// A configured ceiling of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// True for operations, false for bytes.
    pub operations: bool,
    /// Direction of the requests that it counts.
    pub direction: Direction,
    /// Ceiling per second.
    pub limit: f64,
    /// Rate reached, per second.
    pub reached: f64,
    /// File that sets it: `blkio.throttle.write_iops_device`, `io.max`.
    pub from: &'static str,
}

/// The network during the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkFacts {
    /// Bytes per second in the busier direction, on the connections' interface.
    pub bytes_per_s: f64,
    /// Link speed of the interface in bytes per second, if known.
    pub link_bytes_per_s: Option<f64>,
    /// Retransmitted share of the sent segments, 0 to 1.
    pub retransmits: Option<f64>,
    /// Smoothed round-trip time in milliseconds, mean over connections and time (`tcp_info`).
    pub rtt_ms: Option<f64>,
    /// Smallest round-trip time seen.
    pub rtt_min_ms: Option<f64>,
    /// Mean time of a TCP handshake during the transfer, milliseconds: a round trip without the server's
    /// processing time, unlike that of a request (its ACK may be delayed until the answer).
    pub handshake_ms: Option<f64>,
    /// True if the servers run on this machine and share its CPUs.
    pub same_machine: bool,
    /// Share of the sending time in which the peer's window was full, 0 to 1.
    pub peer_window_full: Option<f64>,
    /// Share of our connections' time in which bytes waited to be sent, 0 to 1.
    pub send_queue_full: Option<f64>,
    /// Bytes dropped or held back by queueing disciplines.
    pub backlog_bytes: Option<f64>,
}

/// Goodput at a number of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Units in flight.
    pub jobs: f64,
    /// Goodput per second.
    pub rate: f64,
}

/// A limit set by the user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserLimit {
    /// The option.
    pub option: &'static str,
    /// Limit per second.
    pub limit: f64,
    /// Rate reached.
    pub reached: f64,
}

/// Result of an experiment that changed one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The changed resource.
    pub resource: Resource,
    /// Factor of the change: above 1 for more of it, below 1 for less.
    pub factor: f64,
    /// Relative change of goodput per relative change of the resource, with its 95 % interval.
    pub elasticity: (f64, f64, f64),
    /// Number of compared pairs of windows or runs.
    pub pairs: usize,
    /// Conclusion.
    pub says: Says,
}

/// Conclusion of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// Speed follows the resource: at least 70 % of a change, and certainly more than 30 %.
    Binds,
    /// Speed does not follow: at most a tenth, and certainly less than half.
    Loose,
    /// Undecided.
    Unclear,
}

impl Says {
    /// Conclusion from an elasticity with its interval.
    pub fn of((mean, low, high): (f64, f64, f64)) -> Says {
        match mean {
            0.7.. if low >= 0.3 => Says::Binds,
            ..=0.1 if high <= 0.5 => Says::Loose,
            _ => Says::Unclear,
        }
    }
}

use super::{Evidence, Level, Resource};

impl Experiment {
    /// True if it shows that its resource limits.
    pub(super) fn binds(&self) -> bool {
        self.says == Says::Binds
    }

    /// True if it shows that its resource does not limit.
    pub(super) fn is_loose(&self) -> bool {
        self.says == Says::Loose
    }
}

impl Facts {
    /// True if an experiment shows that this resource does not limit.
    pub(super) fn refutes(&self, resource: Resource) -> bool {
        self.experiments.iter().any(|made| made.resource == resource && made.is_loose())
    }
}
