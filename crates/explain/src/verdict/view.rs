//! Quantities derived from facts: shares of the units' time, CPU use, effect of more jobs, congestion.

use super::thresholds::{BLOCKED, IOWAIT, PRESSURE, RUNNABLE};
use super::{About, Ceiling, Direction, DiskFacts, Experiment, Facts, Point, Resource};
use hakobu_core::meter::Phase;

/// Share from which CPUs count as full.
pub(super) const CPU_FULL: f64 = 0.9;
/// Largest CPU share at which another resource may be named.
pub(super) const CPU_FREE: f64 = 0.85;
/// Share of threads' time running or waiting for a CPU from which other processes' CPU use matters.
pub(super) const CPU_NEED: f64 = 0.5;
/// Additional share of the CPUs that must be used with a store, where threads may wait for CPUs without
/// delaying the work.
pub(super) const CPU_PART: f64 = 0.4;
/// Share from which a known ceiling counts as reached.
pub(super) const REACHED: f64 = 0.95;
/// Elasticity of goodput over jobs up to which more jobs bring nothing.
pub(super) const FLAT: f64 = 0.25;
/// Elasticity up to which it may be said that more jobs change nothing: that of an experiment which rules them out.
pub(super) const NOTHING: f64 = 0.1;
/// Elasticity from which more jobs would help.
pub(super) const RISING: f64 = 0.7;
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
pub(super) const READS: [Phase; 3] = [Phase::List, Phase::Look, Phase::Read];
/// Local phases that modify a target.
pub(super) const WRITES: [Phase; 4] = [Phase::Create, Phase::Write, Phase::Settle, Phase::Remove];

/// Facts with derived quantities.
pub(super) struct View<'a> {
    pub f: &'a Facts,
    /// Mean number of active units, excluding those that wait for room.
    pub active: f64,
    /// Mean number of units that are not idle.
    pub busy: f64,
}

impl<'a> View<'a> {
    pub(super) fn new(f: &'a Facts) -> View<'a> {
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
    pub(super) fn units(&self, phases: &[Phase]) -> f64 {
        phases.iter().map(|phase| self.f.phases[*phase as usize]).sum()
    }

    /// Share of the active units' time in these phases; 0 if none is active.
    pub(super) fn share(&self, phases: &[Phase]) -> f64 {
        ratio(self.units(phases), self.active)
    }

    /// Share of the busy units' time in this phase.
    pub(super) fn busy_share(&self, phase: Phase) -> f64 {
        ratio(self.units(&[phase]), self.busy)
    }

    /// Share of the busy units that do not wait for room.
    pub(super) fn active_share(&self) -> f64 {
        ratio(self.active, self.busy)
    }

    /// Share of idle units.
    pub(super) fn idle_share(&self) -> f64 {
        let idle = self.units(&[Phase::Idle]);
        ratio(idle, idle + self.busy)
    }

    /// Share of these phases in the time of local phases.
    pub(super) fn local_share(&self, phases: &[Phase]) -> f64 {
        ratio(self.units(phases), self.units(&LOCAL))
    }

    /// True if the source or target is a store.
    pub(super) fn has_store(&self) -> bool {
        self.f.stores.0 || self.f.stores.1
    }

    /// Share of the threads' time blocked in the kernel by I/O or a lock, neither on a CPU nor waiting for
    /// one. Units of local transfers are threads; with stores there is a thread per CPU, which a unit in a
    /// local phase occupies.
    pub(super) fn blocked(&self) -> Option<f64> {
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
    pub(super) fn cpu_need(&self) -> Option<f64> {
        Some(((self.f.cpu_used + self.cpus_waited_for()?) / self.threads()?).clamp(0.0, 1.0))
    }

    /// True if at nearly every moment a thread is on a CPU or waits for one, and threads sleep of their own will no longer
    /// than they wait for CPUs. Other processes on the CPUs delay work that sleeps, but do not limit it: a program that
    /// keeps to a rate makes up for the delay by sleeping less.
    pub(super) fn is_always_runnable(&self) -> bool {
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
    pub(super) fn own_cpus(&self) -> f64 {
        ratio(self.f.cpu_used + self.f.stolen.unwrap_or(0.0), self.f.cpus)
    }

    /// The same for all processes together.
    pub(super) fn machine_cpus(&self) -> Option<f64> {
        let used = self.f.machine_used? + self.f.stolen.unwrap_or(0.0);
        Some(ratio(used, self.allowed()))
    }

    /// True if at most one CPU may be used.
    pub(super) fn is_one_cpu(&self) -> bool {
        self.f.cpus > 0.0 && self.f.cpus <= 1.2 && self.allowed() <= 1.2
    }

    /// CPUs that `machine_used` refers to.
    pub(super) fn allowed(&self) -> f64 {
        self.f.cpus_allowed.unwrap_or(self.f.cpus)
    }

    fn cpus_gone(&self) -> f64 {
        self.own_cpus().max(self.machine_cpus().unwrap_or(0.0))
    }

    /// True if CPUs are available within the quota.
    pub(super) fn cpu_free(&self) -> bool {
        let throttled = self.f.quota_throttled.is_some_and(|share| share >= 0.1);
        self.f.cpus > 0.0 && self.cpus_gone() <= CPU_FREE && !throttled
    }

    /// True if many CPUs are available: more would change nothing.
    pub(super) fn cpu_idle(&self) -> bool {
        self.cpu_free() && self.cpus_gone() <= 0.6 && self.f.machine_used.is_some()
    }

    /// Elasticity of goodput over jobs while each job had a CPU: about 1 if CPUs do the work, low if a lock
    /// or one thread limits. For transfers only: jobs of other programs may have several threads.
    pub(super) fn scaling(&self) -> Option<f64> {
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
    pub(super) fn elasticity(&self) -> Option<f64> {
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
    pub(super) fn is_rising_beyond(&self) -> bool {
        self.goes_beyond() && self.is_rising()
    }

    /// Experiments with the number of jobs. (Campaigns change the latency itself.)
    fn tried_jobs(&self) -> impl Iterator<Item = &Experiment> {
        let jobs = self.f.about == About::Transfer;
        self.f.experiments.iter().filter(move |made| jobs && made.resource == Resource::Latency)
    }

    /// True if more jobs brought nothing, by the curve or an experiment.
    pub(super) fn is_flat(&self) -> bool {
        let by_trial = self.tried_jobs().any(Experiment::is_loose);
        by_trial || self.elasticity().is_some_and(|elasticity| elasticity <= FLAT)
    }

    /// True if more jobs were tried and changed nothing worth mentioning.
    pub(super) fn jobs_bring_nothing(&self) -> bool {
        let by_trial = self.tried_jobs().any(Experiment::is_loose);
        by_trial || self.elasticity().is_some_and(|elasticity| elasticity <= NOTHING)
    }

    /// True if more jobs brought more, and no experiment contradicts.
    pub(super) fn is_rising(&self) -> bool {
        let by_trial = self.tried_jobs().any(|made| made.factor > 1.0 && made.binds());
        let is_step = self.f.about == About::Cell && self.goes_beyond();
        let enough = if is_step { RISING_STEP } else { RISING };
        let by_curve = self.elasticity().is_some_and(|elasticity| elasticity >= enough);
        by_trial || by_curve && !self.tried_jobs().any(Experiment::is_loose)
    }

    /// Share of its time in which a job of a sweep used no CPU.
    pub(super) fn jobs_waiting(&self) -> Option<f64> {
        let is_swept = self.f.about == About::Cell && self.f.jobs >= 1.0;
        is_swept.then(|| 1.0 - self.f.cpu_used / self.f.jobs)
    }

    /// Share of the machine's CPU time idle with I/O in flight.
    pub(super) fn iowait_share(&self) -> Option<f64> {
        Some(ratio(self.f.iowait?, self.f.machine_cpus?))
    }

    /// Utilisation of the busiest disk.
    pub(super) fn disk_busy(&self) -> Option<f64> {
        self.f.disks.iter().map(|disk| disk.busy).reduce(f64::max)
    }

    /// True if no disk is near its limit.
    pub(super) fn disks_are_quiet(&self) -> bool {
        let near = |of: &Ceiling| of.reached > 0.8 * of.limit;
        let quiet = |disk: &DiskFacts| disk.busy <= 0.6 && !disk.ceilings.iter().any(near);
        self.f.disks.iter().all(quiet)
    }

    /// True if a disk keeps threads waiting with requests in this direction.
    pub(super) fn waits_for_disk(&self, disk: &DiskFacts, direction: Direction) -> bool {
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
    pub(super) fn waits_for_peer(&self) -> bool {
        let waiting = self.f.threads.and_then(|threads| threads.waiting_for_peer);
        waiting.is_some_and(|share| share >= 0.6)
    }

    /// Mean milliseconds from a request to the start of its answer (Little's law).
    pub(super) fn answer_ms(&self) -> Option<f64> {
        let rate = self.f.operations_per_s;
        (self.has_store() && rate > 0.0).then(|| self.units(&[Phase::Answer]) / rate * 1000.0)
    }

    /// Mean answer time relative to the shortest one.
    pub(super) fn answer_growth(&self) -> Option<f64> {
        let least = self.f.answer_min_ms.filter(|least| *least > 0.0)?;
        Some(self.answer_ms()? / least)
    }

    /// Share of the answers that asked to slow down.
    pub(super) fn throttled_share(&self) -> f64 {
        ratio(self.f.throttled_per_s, self.f.operations_per_s)
    }

    /// True if units spend most of their time sending to the server.
    pub(super) fn is_sending(&self) -> bool {
        let queued = self.f.network.as_ref().and_then(|network| network.send_queue_full);
        self.share(&[Phase::Send]) >= 0.5 || queued.is_some_and(|share| share >= 0.3)
    }

    /// True if packets queue on the path to the server: round trips are much longer than the shortest one.
    /// `None` if that cannot be distinguished from a slow server.
    pub(super) fn is_congested(&self) -> Option<bool> {
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
    pub(super) fn is_lossy(&self) -> bool {
        self.f.network.as_ref().is_some_and(|network| {
            let free = network.handshake_ms.is_some() && self.is_congested() == Some(false);
            let ours = self.is_sending() || network.same_machine && !free;
            ours && network.retransmits.is_some_and(|share| share >= 0.005)
        })
    }

    /// True if the link speed is reached.
    pub(super) fn is_link_full(&self) -> bool {
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
