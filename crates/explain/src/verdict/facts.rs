//! Facts about a run, which are means over its steady part, and quantities derived from them: shares of the units' time, CPU
//! use, effect of more jobs, congestion. Unknown facts are `None` and lower the level of the verdict.

use crate::verdict::rules::{BLOCKED, IOWAIT, PRESSURE, RUNNABLE};
use crate::verdict::{Evidence, FarFacts, Level, Resource};
use hakobu_core::meter::{PHASES, Phase};

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
    /// The other end of a transfer over a remote shell, and the link to it.
    pub far: Option<FarFacts>,
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

pub use hakobu_core::unit::Side;

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

impl UserLimit {
    /// Returns whether the rate is at least this share of the limit.
    pub(crate) fn is_reached(&self, share: f64) -> bool {
        self.limit > 0.0 && self.reached >= share * self.limit
    }
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
    pub says: Conclusion,
}

/// Conclusion of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Speed follows the resource: at least 70 % of a change, and certainly more than 30 %.
    Bottleneck,
    /// Speed does not follow: at most a tenth, and certainly less than half.
    NoEffect,
    /// Undecided.
    Unclear,
}

impl Conclusion {
    /// Conclusion from an elasticity with its interval.
    pub fn of((mean, low, high): (f64, f64, f64)) -> Conclusion {
        match mean {
            0.7.. if low >= 0.3 => Conclusion::Bottleneck,
            ..=0.1 if high <= 0.5 => Conclusion::NoEffect,
            _ => Conclusion::Unclear,
        }
    }
}

impl Experiment {
    /// True if it shows that its resource limits.
    pub(crate) fn is_bottleneck(&self) -> bool {
        self.says == Conclusion::Bottleneck
    }

    /// True if it shows that its resource does not limit.
    pub(crate) fn has_no_effect(&self) -> bool {
        self.says == Conclusion::NoEffect
    }
}

impl Facts {
    /// True if an experiment shows that this resource does not limit.
    pub(crate) fn refutes(&self, resource: Resource) -> bool {
        self.experiments.iter().any(|made| made.resource == resource && made.has_no_effect())
    }
}

/// Share from which CPUs count as full.
pub(crate) const CPU_FULL: f64 = 0.9;
/// Largest CPU share at which another resource may be named.
pub(crate) const CPU_FREE: f64 = 0.85;
/// Share of threads' time running or waiting for a CPU from which other processes' CPU use matters.
pub(crate) const CPU_NEED: f64 = 0.5;
/// Additional share of the CPUs that must be used with a store, where threads may wait for CPUs without
/// delaying the work.
pub(crate) const CPU_PART: f64 = 0.4;
/// Share from which a known ceiling counts as reached.
pub(crate) const REACHED: f64 = 0.95;
/// Elasticity of goodput over jobs up to which more jobs bring nothing.
pub(crate) const FLAT: f64 = 0.25;
/// Elasticity up to which it may be said that more jobs change nothing: that of an experiment which rules them out.
pub(crate) const NOTHING: f64 = 0.1;
/// Elasticity from which more jobs would help.
pub(crate) const RISING: f64 = 0.7;
/// The same for a step upwards in a sweep: steps are large, and the next limit may begin within one.
const RISING_STEP: f64 = 0.5;
/// A delayed ACK waits up to 40 ms for the answer (`TCP_DELACK_MIN`); a round trip longer than the smallest
/// one by this is not explained by that.
const DELAYED_ACK_MS: f64 = 60.0;

/// Phases in which a unit occupies its thread: system calls and computation.
const LOCAL: [Phase; 8] = [
    Phase::List,
    Phase::Look,
    Phase::Read,
    Phase::Create,
    Phase::Write,
    Phase::Settle,
    Phase::Remove,
    Phase::Compute,
];
/// Local phases that read a source.
pub(crate) const READS: [Phase; 3] = [Phase::List, Phase::Look, Phase::Read];
/// Local phases that modify a target.
pub(crate) const WRITES: [Phase; 4] = [Phase::Create, Phase::Write, Phase::Settle, Phase::Remove];

/// Facts with derived quantities.
pub(crate) struct View<'a> {
    pub f: &'a Facts,
    /// Mean number of active units, excluding those that wait for room.
    pub active: f64,
    /// Mean number of units that are not idle.
    pub busy: f64,
}

impl<'a> View<'a> {
    pub(crate) fn new(f: &'a Facts) -> View<'a> {
        let mut view = View { f, active: 0.0, busy: 0.0 };
        view.busy = match f.about {
            About::Transfer => f.phases.iter().skip(1).sum(),
            About::Cell => f.cpu_used,
            About::Command => view.command_threads(),
        };
        view.active = (view.busy - f.phases[Phase::Room as usize]).max(0.0);
        view
    }

    /// Mean number of a command's threads that run, wait for a CPU or are blocked in the kernel.
    fn command_threads(&self) -> f64 {
        let blocked = self.f.threads.map_or(0.0, |threads| threads.blocked);
        self.f.cpu_used + self.cpus_waited_for().unwrap_or(0.0) + blocked
    }

    /// Mean number of units in these phases.
    pub(crate) fn units(&self, phases: &[Phase]) -> f64 {
        phases.iter().map(|phase| self.f.phases[*phase as usize]).sum()
    }

    /// Share of the active units' time in these phases; 0 if none is active.
    pub(crate) fn share(&self, phases: &[Phase]) -> f64 {
        ratio(self.units(phases), self.active)
    }

    /// Share of the busy units' time in this phase.
    pub(crate) fn busy_share(&self, phase: Phase) -> f64 {
        ratio(self.units(&[phase]), self.busy)
    }

    /// Share of the busy units that do not wait for room.
    pub(crate) fn active_share(&self) -> f64 {
        ratio(self.active, self.busy)
    }

    /// Share of idle units.
    pub(crate) fn idle_share(&self) -> f64 {
        let idle = self.units(&[Phase::Idle]);
        ratio(idle, idle + self.busy)
    }

    /// Share of these phases in the time of local phases.
    pub(crate) fn local_share(&self, phases: &[Phase]) -> f64 {
        ratio(self.units(phases), self.units(&LOCAL))
    }

    /// True if the source or target is a store.
    pub(crate) fn has_store(&self) -> bool {
        self.f.stores.0 || self.f.stores.1
    }

    /// Share of the threads' time blocked in the kernel by I/O or a lock, neither on a CPU nor waiting for
    /// one. Units of local transfers are threads; with stores there is a thread per CPU, which a unit in a
    /// local phase occupies.
    pub(crate) fn blocked(&self) -> Option<f64> {
        match self.f.about {
            About::Transfer => {}
            About::Cell => return None,
            About::Command => return Some(ratio(self.f.threads?.blocked, self.busy)),
        }
        let waited = match self.cpus_waited_for() {
            Some(waited) => waited,
            // No thread waits long for a CPU while some are idle.
            None if self.cpu_free() => 0.0,
            None => return None,
        };
        let (local, threads) = (self.units(&LOCAL), self.threads()?);
        Some(((local - self.f.cpu_used - waited) / threads).clamp(0.0, 1.0))
    }

    /// Mean number of threads with work; `None` if there is hardly any.
    fn threads(&self) -> Option<f64> {
        let threads = match self.has_store() {
            _ if self.f.about == About::Command => self.busy,
            true => self.f.cpus.ceil().min(self.f.jobs).max(1.0),
            false => self.units(&LOCAL),
        };
        (threads >= 0.05).then_some(threads)
    }

    /// Mean number of runnable threads without a CPU.
    fn cpus_waited_for(&self) -> Option<f64> {
        let delay = self.f.run_delay?.clamp(0.0, 0.99);
        Some(self.f.cpu_used * delay / (1.0 - delay))
    }

    /// Share of the threads' time on a CPU or waiting for one: how much CPUs matter here, regardless of other
    /// processes.
    pub(crate) fn cpu_need(&self) -> Option<f64> {
        Some(((self.f.cpu_used + self.cpus_waited_for()?) / self.threads()?).clamp(0.0, 1.0))
    }

    /// True if at nearly every moment a thread is on a CPU or waits for one, and threads sleep of their own will no longer
    /// than they wait for CPUs. Other processes on the CPUs delay work that sleeps, but do not limit it: a program that
    /// keeps to a rate makes up for the delay by sleeping less.
    pub(crate) fn is_always_runnable(&self) -> bool {
        let waited = self.cpus_waited_for();
        // The mean number of such threads is exact, samples are not, so both have to agree.
        let mean = self.f.cpu_used + waited.unwrap_or(0.0);
        let (seen, asleep) = match (self.f.about, self.f.threads) {
            (About::Command, Some(threads)) => {
                (threads.runnable.is_some_and(|share| share >= RUNNABLE), threads.asleep)
            }
            (About::Command, None) => (false, 0.0),
            (About::Transfer | About::Cell, _) => (true, self.units(&[Phase::Limit, Phase::Pause])),
        };
        // Runs of a campaign have only their CPU time: nobody saw how long they waited.
        let rests = self.f.about != About::Cell && waited.is_none_or(|waited| asleep > waited);
        mean >= RUNNABLE && seen && !rests
    }

    /// Share of the usable CPUs that this process used, or that were stolen.
    pub(crate) fn own_cpus(&self) -> f64 {
        ratio(self.f.cpu_used + self.f.stolen.unwrap_or(0.0), self.f.cpus)
    }

    /// The same for all processes together.
    pub(crate) fn machine_cpus(&self) -> Option<f64> {
        let used = self.f.machine_used? + self.f.stolen.unwrap_or(0.0);
        Some(ratio(used, self.allowed()))
    }

    /// True if at most one CPU may be used.
    pub(crate) fn is_one_cpu(&self) -> bool {
        self.f.cpus > 0.0 && self.f.cpus <= 1.2 && self.allowed() <= 1.2
    }

    /// CPUs that `machine_used` refers to.
    pub(crate) fn allowed(&self) -> f64 {
        self.f.cpus_allowed.unwrap_or(self.f.cpus)
    }

    fn cpus_gone(&self) -> f64 {
        self.own_cpus().max(self.machine_cpus().unwrap_or(0.0))
    }

    /// True if CPUs are available within the quota.
    pub(crate) fn cpu_free(&self) -> bool {
        let throttled = self.f.quota_throttled.is_some_and(|share| share >= 0.1);
        self.f.cpus > 0.0 && self.cpus_gone() <= CPU_FREE && !throttled
    }

    /// True if many CPUs are available: more would change nothing.
    pub(crate) fn cpu_idle(&self) -> bool {
        self.cpu_free() && self.cpus_gone() <= 0.6 && self.f.machine_used.is_some()
    }

    /// Elasticity of goodput over jobs while each job had a CPU: about 1 if CPUs do the work, low if a lock
    /// or one thread limits. For transfers only: jobs of other programs may have several threads.
    pub(crate) fn scaling(&self) -> Option<f64> {
        if self.f.about != About::Transfer {
            return None;
        }
        let steps = by_jobs(&self.f.curve);
        let high = steps.iter().rev().find(|step| step.jobs <= self.f.cpus + 0.5)?;
        let low = steps.iter().find(|step| step.jobs <= high.jobs / 1.9)?;
        if low.rate <= 0.0 || high.rate <= 0.0 {
            return None;
        }
        Some((high.rate / low.rate).ln() / (high.jobs / low.jobs).ln())
    }

    /// Elasticity of goodput over jobs at the upper end of the tried numbers; `None` if too few were tried.
    pub(crate) fn elasticity(&self) -> Option<f64> {
        let steps = by_jobs(&self.f.curve);
        let high = steps.last()?;
        // Numbers far below the current one say nothing about it.
        if high.jobs < 0.7 * self.f.jobs {
            return None;
        }
        // For a sweep the previous step is the nearest.
        let is_sweep = self.f.about == About::Cell;
        let near = |step: &&Point| {
            step.jobs < high.jobs && is_sweep
                || step.jobs <= high.jobs / 1.4 && step.jobs >= high.jobs / 4.0
        };
        let low = steps.iter().rev().find(near)?;
        if low.rate <= 0.0 || high.rate <= 0.0 {
            return None;
        }
        let gain = (high.rate / low.rate).ln() / (high.jobs / low.jobs).ln();
        gain.is_finite().then_some(gain)
    }

    /// True if more jobs than now were tried.
    fn goes_beyond(&self) -> bool {
        let most = self.f.curve.iter().map(|point| point.jobs).fold(0.0, f64::max);
        self.f.jobs > 0.0 && most >= 1.4 * self.f.jobs
    }

    /// True if more jobs than now were tried and brought more.
    pub(crate) fn is_rising_beyond(&self) -> bool {
        self.goes_beyond() && self.is_rising()
    }

    /// Experiments with the number of jobs. (Campaigns change the latency itself.)
    fn tried_jobs(&self) -> impl Iterator<Item = &Experiment> {
        let jobs = self.f.about == About::Transfer;
        self.f.experiments.iter().filter(move |made| jobs && made.resource == Resource::Latency)
    }

    /// True if more jobs brought nothing, by the curve or an experiment.
    pub(crate) fn is_flat(&self) -> bool {
        let by_trial = self.tried_jobs().any(Experiment::has_no_effect);
        by_trial || self.elasticity().is_some_and(|elasticity| elasticity <= FLAT)
    }

    /// True if more jobs were tried and changed nothing worth mentioning.
    pub(crate) fn jobs_bring_nothing(&self) -> bool {
        let by_trial = self.tried_jobs().any(Experiment::has_no_effect);
        by_trial || self.elasticity().is_some_and(|elasticity| elasticity <= NOTHING)
    }

    /// True if more jobs brought more, and no experiment contradicts.
    pub(crate) fn is_rising(&self) -> bool {
        let by_trial = self.tried_jobs().any(|made| made.factor > 1.0 && made.is_bottleneck());
        let is_step = self.f.about == About::Cell && self.goes_beyond();
        let enough = if is_step { RISING_STEP } else { RISING };
        let by_curve = self.elasticity().is_some_and(|elasticity| elasticity >= enough);
        by_trial || by_curve && !self.tried_jobs().any(Experiment::has_no_effect)
    }

    /// Share of its time in which a job of a sweep used no CPU.
    pub(crate) fn jobs_waiting(&self) -> Option<f64> {
        let is_swept = self.f.about == About::Cell && self.f.jobs >= 1.0;
        is_swept.then(|| 1.0 - self.f.cpu_used / self.f.jobs)
    }

    /// Share of the machine's CPU time idle with I/O in flight.
    pub(crate) fn iowait_share(&self) -> Option<f64> {
        Some(ratio(self.f.iowait?, self.f.machine_cpus?))
    }

    /// Utilisation of the busiest disk.
    pub(crate) fn disk_busy(&self) -> Option<f64> {
        self.f.disks.iter().map(|disk| disk.busy).reduce(f64::max)
    }

    /// True if no disk is near its limit.
    pub(crate) fn disks_are_quiet(&self) -> bool {
        let near = |of: &Ceiling| of.reached > 0.8 * of.limit;
        let quiet = |disk: &DiskFacts| disk.busy <= 0.6 && !disk.ceilings.iter().any(near);
        self.f.disks.iter().all(quiet)
    }

    /// True if a disk keeps threads waiting with requests in this direction.
    pub(crate) fn waits_for_disk(&self, disk: &DiskFacts, direction: Direction) -> bool {
        let pressed = self.f.pressure.io.is_some_and(|share| share >= PRESSURE);
        match self.f.about {
            About::Transfer => {
                let phases: &[Phase] =
                    if direction == Direction::Writes { &WRITES } else { &READS };
                let blocked = self.blocked().map_or(pressed, |share| share >= BLOCKED);
                blocked && self.local_share(phases) >= 0.5
            }
            // A small share is not enough: threads have to be blocked most of the time.
            About::Command => {
                let threads = self.f.threads.is_some_and(|threads| threads.blocked >= BLOCKED);
                let short = self.f.pressure.memory.is_some_and(|share| share >= PRESSURE);
                threads && self.blocked().is_some_and(|share| share >= BLOCKED) && !short
            }
            About::Cell => {
                let iowait = self.iowait_share().is_some_and(|share| share >= IOWAIT);
                (iowait || disk.busy >= CPU_FULL || self.is_flat()) && self.cpu_free()
            }
        }
    }

    /// True if a command mostly sleeps waiting for a connection.
    pub(crate) fn waits_for_peer(&self) -> bool {
        let waiting = self.f.threads.and_then(|threads| threads.waiting_for_peer);
        waiting.is_some_and(|share| share >= 0.6)
    }

    /// Mean milliseconds from a request to the start of its answer (Little's law).
    pub(crate) fn answer_ms(&self) -> Option<f64> {
        let rate = self.f.operations_per_s;
        (self.has_store() && rate > 0.0).then(|| self.units(&[Phase::Answer]) / rate * 1000.0)
    }

    /// Mean answer time relative to the shortest one.
    pub(crate) fn answer_growth(&self) -> Option<f64> {
        let least = self.f.answer_min_ms.filter(|least| *least > 0.0)?;
        Some(self.answer_ms()? / least)
    }

    /// Share of the answers that asked to slow down.
    pub(crate) fn throttled_share(&self) -> f64 {
        ratio(self.f.throttled_per_s, self.f.operations_per_s)
    }

    /// True if units spend most of their time sending to the server.
    pub(crate) fn is_sending(&self) -> bool {
        let queued = self.f.network.as_ref().and_then(|network| network.send_queue_full);
        self.share(&[Phase::Send]) >= 0.5 || queued.is_some_and(|share| share >= 0.3)
    }

    /// True if packets queue on the path to the server: round trips are much longer than the shortest one.
    /// `None` if that cannot be distinguished from a slow server.
    pub(crate) fn is_congested(&self) -> Option<bool> {
        let network = self.f.network.as_ref()?;
        let least = network.rtt_min_ms?;
        let longer = |ms: f64| ms >= 3.0 * least && ms - least >= 2.0;
        if let Some(handshake) = network.handshake_ms {
            return Some(longer(handshake));
        }
        let rtt = network.rtt_ms?;
        if !longer(rtt) {
            return Some(false);
        }
        // During heavy sending ACKs come at once; otherwise they may be delayed until the answer.
        let certain = self.is_sending() || rtt - least >= DELAYED_ACK_MS;
        certain.then_some(true)
    }

    /// True if our segments were lost: we send, or the sender is on this machine. In the latter case they may
    /// belong to others if handshakes are fast.
    pub(crate) fn is_lossy(&self) -> bool {
        self.f.network.as_ref().is_some_and(|network| {
            let free = network.handshake_ms.is_some() && self.is_congested() == Some(false);
            let ours = self.is_sending() || network.same_machine && !free;
            ours && network.retransmits.is_some_and(|share| share >= 0.005)
        })
    }

    /// True if the link speed is reached.
    pub(crate) fn is_link_full(&self) -> bool {
        self.f.network.as_ref().is_some_and(|network| {
            network.link_bytes_per_s.is_some_and(|link| network.bytes_per_s >= CPU_FULL * link)
        })
    }
}

/// `part / whole`, 0 where there is no whole.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// One point per number of jobs, ascending: the median of its rates.
fn by_jobs(curve: &[Point]) -> Vec<Point> {
    let mut points: Vec<Point> =
        curve.iter().filter(|point| point.jobs >= 1.0 && point.rate.is_finite()).copied().collect();
    points.sort_by(|a, b| a.jobs.total_cmp(&b.jobs).then(a.rate.total_cmp(&b.rate)));
    points
        .chunk_by(|a, b| (a.jobs - b.jobs).abs() < 0.5)
        .filter_map(|same| same.get(same.len() / 2).copied())
        .collect()
}
