//! What is known of a run when it is judged: means over its steady part. What could not be read is
//! `None` and lowers the claim.

use crate::meter::PHASES;

/// Everything that a verdict is made from.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Seconds that the means below span.
    pub span_s: f64,
    /// CPUs that this process may use: affinity and quota.
    pub cpus: f64,
    /// CPUs by affinity alone, without the quota: those that `machine_used` is about. `None`: as
    /// many as `cpus`.
    pub cpus_allowed: Option<f64>,
    /// CPUs that it used, user and system.
    pub cpu_used: f64,
    /// CPUs that all processes of the machine used, of those that this one may use.
    pub machine_used: Option<f64>,
    /// CPUs that the machine has, whoever may use them.
    pub machine_cpus: Option<f64>,
    /// CPUs' worth of time with nothing to run but I/O under way.
    pub iowait: Option<f64>,
    /// Mean number of tasks of the machine that were blocked on I/O (`procs_blocked`).
    pub blocked: Option<f64>,
    /// CPUs' worth of time that a hypervisor took away.
    pub stolen: Option<f64>,
    /// CPUs that its busiest thread used, 0 to 1.
    pub thread_used: Option<f64>,
    /// Share of the time of runnable threads that was waiting for a CPU, 0 to 1 (schedstat).
    pub run_delay: Option<f64>,
    /// Share of the time in which some task waited (PSI), 0 to 1.
    pub pressure: Pressure,
    /// Share of the quota periods that were throttled, 0 to 1 (cgroup).
    pub quota_throttled: Option<f64>,
    /// The disks below the local ends.
    pub disks: Vec<DiskFacts>,
    /// The way to the servers.
    pub network: Option<NetworkFacts>,
    /// Mean number of units in each phase, by [`crate::meter::Phase`].
    pub phases: [f64; PHASES],
    /// Mean number of jobs allowed.
    pub jobs: f64,
    /// The user fixed the number of jobs.
    pub jobs_fixed: bool,
    /// Most jobs that may be.
    pub jobs_max: usize,
    /// Goodput by number of jobs, from the tuner's windows: what adding jobs brought.
    pub curve: Vec<Point>,
    /// Content bytes a second.
    pub bytes_per_s: f64,
    /// Entries a second.
    pub items_per_s: f64,
    /// Operations (local) or requests (store) a second.
    pub operations_per_s: f64,
    /// The least time between the end of a request and the beginning of its answer, milliseconds:
    /// that of a server with nobody in its queue. The mean follows from the phases (Little's law).
    pub answer_min_ms: Option<f64>,
    /// Answers that asked to slow down, and time-outs, a second.
    pub throttled_per_s: f64,
    /// Limits that the user set, and what was reached of them.
    pub limits: Vec<UserLimit>,
    /// Ends that are no local disk and no store: a pipe, a network file system, FUSE.
    pub foreign: Vec<Side>,
    /// The source is a store, the target is one.
    pub stores: (bool, bool),
    /// Locks that threads were seen waiting for in the kernel, share of samples 0 to 1.
    pub lock_waits: Option<f64>,
    /// Results of experiments made during the run.
    pub experiments: Vec<Experiment>,
}

/// An end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where bytes come from.
    Source,
    /// Where they go.
    Target,
}

/// Shares of time, 0 to 1, as /proc/pressure has them.
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
    /// As the kernel calls it: `vda`, `loop3`.
    pub name: String,
    /// Which ends are on it.
    pub sides: Vec<Side>,
    /// Reads a second.
    pub read_iops: f64,
    /// Bytes read a second.
    pub read_bytes_per_s: f64,
    /// Writes a second.
    pub write_iops: f64,
    /// Bytes written a second.
    pub write_bytes_per_s: f64,
    /// Requests in flight, mean.
    pub queue: f64,
    /// Share of the time in which there was one, 0 to 1.
    pub busy: f64,
    /// Milliseconds a request, mean.
    pub latency_ms: f64,
    /// It turns.
    pub rotating: bool,
    /// Ceilings set by cgroups, and what was reached of them (by the cgroup's own counters where
    /// it has some: `blkio.throttle.io_serviced`).
    pub ceilings: Vec<Ceiling>,
    /// Dirty and writeback bytes waiting, and the kernel's threshold for them, machine-wide.
    pub dirty_bytes: Option<(f64, f64)>,
}

/// A ceiling that somebody set for a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Operations rather than bytes.
    pub operations: bool,
    /// Writes rather than reads.
    pub writes: bool,
    /// A second.
    pub limit: f64,
    /// What was reached, a second.
    pub reached: f64,
    /// Where it is set: `blkio.throttle.write_iops_device`, `io.max`.
    pub from: &'static str,
}

/// The network during the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkFacts {
    /// Bytes a second in the busier direction, of the connections' interface.
    pub bytes_per_s: f64,
    /// What the interface can carry, where it says so.
    pub link_bytes_per_s: Option<f64>,
    /// Retransmitted segments among those sent, 0 to 1.
    pub retransmits: Option<f64>,
    /// Smoothed round trip, milliseconds, mean over connections and time (`tcp_info`).
    pub rtt_ms: Option<f64>,
    /// The least that was seen.
    pub rtt_min_ms: Option<f64>,
    /// Mean time of a TCP handshake while data flowed, milliseconds: a round trip that a server's
    /// thinking cannot lengthen, as that of a request can (its ACK may wait for the answer).
    pub handshake_ms: Option<f64>,
    /// The servers run on this machine and share its CPUs.
    pub same_machine: bool,
    /// Share of the sending time in which the peer's window was full, 0 to 1.
    pub peer_window_full: Option<f64>,
    /// Share of our connections' time in which bytes waited to be sent, 0 to 1.
    pub send_queue_full: Option<f64>,
    /// Bytes that queueing disciplines dropped or held back.
    pub backlog_bytes: Option<f64>,
}

/// What a number of jobs brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Units under way.
    pub jobs: f64,
    /// Goodput a second.
    pub rate: f64,
}

/// A limit that the user set.
#[derive(Clone, Debug, PartialEq)]
pub struct UserLimit {
    /// The option.
    pub option: &'static str,
    /// A second.
    pub limit: f64,
    /// What was reached.
    pub reached: f64,
}

/// What an experiment of `--prove` showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// What was changed, and only that.
    pub resource: Resource,
    /// By which factor.
    pub factor: f64,
    /// Relative change of goodput per relative change of the resource, with its interval (95 %).
    pub elasticity: (f64, f64, f64),
    /// Pairs of windows compared.
    pub pairs: usize,
}

use super::Resource;
