//! What follows from the facts: shares of the units' time, how full the CPUs are, what more jobs
//! brought, whether the way to the server is congested.

use super::judge::{binds, is_loose};
use super::{Experiment, Facts, Point, Resource};
use crate::meter::Phase;

/// CPUs count as full from this share of them on.
pub(super) const CPU_FULL: f64 = 0.9;
/// Something else may only be named while no more than this share of the CPUs is used.
const CPU_FREE: f64 = 0.85;
/// CPUs that others use matter where threads run or wait for a CPU for this share of their time.
pub(super) const CPU_NEED: f64 = 0.5;
/// With a store threads may wait for CPUs all the time and yet do what there is to do in time: then
/// they have to use this share of the CPUs as well.
pub(super) const CPU_PART: f64 = 0.4;
/// A known ceiling counts as reached from this share of it on.
pub(super) const REACHED: f64 = 0.95;
/// Relative gain of goodput per relative gain of jobs up to which more jobs bring nothing.
pub(super) const FLAT: f64 = 0.25;
/// From this one on more jobs would help.
pub(super) const RISING: f64 = 0.7;
/// An ACK may wait 40 ms for the answer that carries it (`TCP_DELACK_MIN`): a round trip that is
/// longer than this beyond the least one is no such ACK.
const DELAYED_ACK_MS: f64 = 60.0;

/// Phases in which a unit keeps the thread it runs on: system calls and computing.
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
/// Local phases that change a target.
pub(super) const WRITES: [Phase; 4] = [Phase::Create, Phase::Write, Phase::Settle, Phase::Remove];

/// Facts, and what follows from them.
pub(super) struct View<'a> {
    pub f: &'a Facts,
    /// Units that do anything, waiting for room left out: mean.
    pub active: f64,
    /// Units that do anything.
    pub busy: f64,
}

impl<'a> View<'a> {
    pub(super) fn new(f: &'a Facts) -> View<'a> {
        let busy: f64 = f.phases.iter().skip(1).sum();
        let active = (busy - f.phases[Phase::Room as usize]).max(0.0);
        View { f, active, busy }
    }

    /// Mean number of units in these phases.
    pub(super) fn units(&self, phases: &[Phase]) -> f64 {
        phases.iter().map(|phase| self.f.phases[*phase as usize]).sum()
    }

    /// Share of the active units' time in these phases; 0 where nothing is active.
    pub(super) fn share(&self, phases: &[Phase]) -> f64 {
        ratio(self.units(phases), self.active)
    }

    /// Share of all busy units' time in this phase.
    pub(super) fn busy_share(&self, phase: Phase) -> f64 {
        ratio(self.units(&[phase]), self.busy)
    }

    /// Share of the units that have nothing to do.
    pub(super) fn idle_share(&self) -> f64 {
        let idle = self.units(&[Phase::Idle]);
        ratio(idle, idle + self.busy)
    }

    /// Of the time in local phases, the share in these.
    pub(super) fn local_share(&self, phases: &[Phase]) -> f64 {
        ratio(self.units(phases), self.units(&LOCAL))
    }

    /// Whether a store is on a side.
    pub(super) fn has_store(&self) -> bool {
        self.f.stores.0 || self.f.stores.1
    }

    /// Share of the threads' time that is neither on a CPU nor waiting for one: blocked in the
    /// kernel by I/O or a lock. Units of local transfers are threads; with stores there is a
    /// thread a CPU, and a unit in a local phase keeps one.
    pub(super) fn blocked(&self) -> Option<f64> {
        let waited = match self.cpus_waited_for() {
            Some(waited) => waited,
            // Nobody waits long for a CPU while some have nothing to do.
            None if self.cpu_free() => 0.0,
            None => return None,
        };
        let (local, threads) = (self.units(&LOCAL), self.threads()?);
        Some(((local - self.f.cpu_used - waited) / threads).clamp(0.0, 1.0))
    }

    /// Threads that have something to do, mean; `None` where there are hardly any.
    fn threads(&self) -> Option<f64> {
        let threads = match self.has_store() {
            true => self.f.cpus.ceil().min(self.f.jobs).max(1.0),
            false => self.units(&LOCAL),
        };
        (threads >= 0.05).then_some(threads)
    }

    /// CPUs' worth of time for which threads that could run had none.
    fn cpus_waited_for(&self) -> Option<f64> {
        let delay = self.f.run_delay?.clamp(0.0, 0.99);
        Some(self.f.cpu_used * delay / (1.0 - delay))
    }

    /// Share of the threads' time on a CPU or waiting for one: how much CPUs matter here, whoever
    /// else uses them.
    pub(super) fn cpu_need(&self) -> Option<f64> {
        Some(((self.f.cpu_used + self.cpus_waited_for()?) / self.threads()?).clamp(0.0, 1.0))
    }

    /// Share of the CPUs that this process may use that it used, or that were taken away.
    pub(super) fn own_cpus(&self) -> f64 {
        ratio(self.f.cpu_used + self.f.stolen.unwrap_or(0.0), self.f.cpus)
    }

    /// The same for all processes together.
    pub(super) fn machine_cpus(&self) -> Option<f64> {
        let used = self.f.machine_used? + self.f.stolen.unwrap_or(0.0);
        Some(ratio(used, self.allowed()))
    }

    /// CPUs that `machine_used` is about.
    pub(super) fn allowed(&self) -> f64 {
        self.f.cpus_allowed.unwrap_or(self.f.cpus)
    }

    fn cpus_gone(&self) -> f64 {
        self.own_cpus().max(self.machine_cpus().unwrap_or(0.0))
    }

    /// CPUs are left, and the quota leaves them to us.
    pub(super) fn cpu_free(&self) -> bool {
        let throttled = self.f.quota_throttled.is_some_and(|share| share >= 0.1);
        self.f.cpus > 0.0 && self.cpus_gone() <= CPU_FREE && !throttled
    }

    /// Much is left: more CPUs would change nothing.
    pub(super) fn cpu_idle(&self) -> bool {
        self.cpu_free() && self.cpus_gone() <= 0.6 && self.f.machine_used.is_some()
    }

    /// Relative gain per relative gain of jobs while there was a CPU for each: about 1 where CPUs
    /// are what is worked with, little where a lock or one thread is.
    pub(super) fn scaling(&self) -> Option<f64> {
        let steps = by_jobs(&self.f.curve);
        let high = steps.iter().rev().find(|step| step.jobs <= self.f.cpus + 0.5)?;
        let low = steps.iter().find(|step| step.jobs <= high.jobs / 1.9)?;
        if low.rate <= 0.0 || high.rate <= 0.0 {
            return None;
        }
        Some((high.rate / low.rate).ln() / (high.jobs / low.jobs).ln())
    }

    /// Relative gain of goodput per relative gain of jobs at the upper end of what was tried;
    /// `None` where too little was tried.
    pub(super) fn elasticity(&self) -> Option<f64> {
        let steps = by_jobs(&self.f.curve);
        let high = steps.last()?;
        // What was tried far below today's setting says nothing about it.
        if high.jobs < 0.7 * self.f.jobs {
            return None;
        }
        let near = |step: &&Point| step.jobs <= high.jobs / 1.4 && step.jobs >= high.jobs / 4.0;
        let low = steps.iter().rev().find(near)?;
        if low.rate <= 0.0 || high.rate <= 0.0 {
            return None;
        }
        Some((high.rate / low.rate).ln() / (high.jobs / low.jobs).ln())
    }

    /// Experiments with the number of jobs.
    fn tried_jobs(&self) -> impl Iterator<Item = &Experiment> {
        self.f.experiments.iter().filter(|made| made.resource == Resource::Latency)
    }

    /// More jobs brought nothing: by the curve, or by an experiment.
    pub(super) fn is_flat(&self) -> bool {
        let by_trial = self.tried_jobs().any(is_loose);
        by_trial || self.elasticity().is_some_and(|elasticity| elasticity <= FLAT)
    }

    /// More jobs brought more, and no experiment says otherwise.
    pub(super) fn is_rising(&self) -> bool {
        let by_trial = self.tried_jobs().any(|made| made.factor > 1.0 && binds(made));
        let by_curve = self.elasticity().is_some_and(|elasticity| elasticity >= RISING);
        by_trial || by_curve && !self.tried_jobs().any(is_loose)
    }

    /// Mean milliseconds between a request and the beginning of its answer (Little's law).
    pub(super) fn answer_ms(&self) -> Option<f64> {
        let rate = self.f.operations_per_s;
        (self.has_store() && rate > 0.0).then(|| self.units(&[Phase::Answer]) / rate * 1000.0)
    }

    /// Mean answer time relative to the least one.
    pub(super) fn answer_growth(&self) -> Option<f64> {
        let least = self.f.answer_min_ms.filter(|least| *least > 0.0)?;
        Some(self.answer_ms()? / least)
    }

    /// Share of the answers that asked to slow down.
    pub(super) fn throttled_share(&self) -> f64 {
        ratio(self.f.throttled_per_s, self.f.operations_per_s)
    }

    /// Units spend most of their time with bytes on the way to the server.
    pub(super) fn is_sending(&self) -> bool {
        let queued = self.f.network.as_ref().and_then(|network| network.send_queue_full);
        self.share(&[Phase::Send]) >= 0.5 || queued.is_some_and(|share| share >= 0.3)
    }

    /// Whether packets queue on the way to the server: round trips are much longer than the least
    /// one. `None` where that cannot be told from a server that takes its time.
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
        // While much is sent, ACKs come at once; else they may wait for the answer.
        let certain = self.is_sending() || rtt - least >= DELAYED_ACK_MS;
        certain.then_some(true)
    }

    /// Segments were lost, and these are ours: we send, or whoever does is on this machine. There
    /// they may also be those of others: not if handshakes find the way free.
    pub(super) fn is_lossy(&self) -> bool {
        self.f.network.as_ref().is_some_and(|network| {
            let free = network.handshake_ms.is_some() && self.is_congested() == Some(false);
            let ours = self.is_sending() || network.same_machine && !free;
            ours && network.retransmits.is_some_and(|share| share >= 0.005)
        })
    }

    /// The link's speed, where it is reached.
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

/// One point for each number of jobs, by jobs: the median of its rates.
fn by_jobs(curve: &[Point]) -> Vec<Point> {
    let mut points: Vec<Point> =
        curve.iter().filter(|point| point.jobs >= 1.0 && point.rate.is_finite()).copied().collect();
    points.sort_by(|a, b| a.jobs.total_cmp(&b.jobs).then(a.rate.total_cmp(&b.rate)));
    points
        .chunk_by(|a, b| (a.jobs - b.jobs).abs() < 0.5)
        .filter_map(|same| same.get(same.len() / 2).copied())
        .collect()
}
