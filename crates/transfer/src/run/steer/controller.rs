//! The steps of the controller thread at each tick: it reads the workers' counters, asks the tuner, sets the gate,
//! and collects data for a verdict.

use super::facts::{self, Subject};
use super::interim::{self, InterimVerdict};
use super::prove::Proof;
use super::record::{Mark, Record, Sums};
use hakobu_core::limit::Controls;
use hakobu_core::meter::{Counts, Phase};
use hakobu_explain::ceilings::Ceilings;
use hakobu_explain::sample::{IdleTime, Sampler, Watched, is_directory_lock};
use hakobu_explain::tune::{ENTRY_CREDIT_BYTES, Reading, Step, Tuner};
use hakobu_explain::verdict::{Experiment, Facts, Progress, judge};
use hakobu_sys::usage::Used;
use hakobu_sys::{process, task};
use std::sync::Arc;
use std::time::Duration;

/// Minimum interval of samples of the machine ...
const SAMPLE: Duration = Duration::from_millis(100);
/// ... and the maximum: a verdict needs some of them.
const SAMPLE_MAX: Duration = Duration::from_secs(1);
/// Ticks and samples each use at most this fraction (1/n) of a CPU. With hundreds of jobs, each with counters and a
/// file to read, they become less frequent.
const SHARE: u32 = 500;
/// Time of the first sample of the machine: short runs must not pay for it.
const FIRST_SAMPLE: Duration = Duration::from_millis(500);
/// Minimum time before experiments begin, when the tuner has found a baseline ...
const PROVE_MIN: Duration = Duration::from_secs(2);
/// ... and the maximum time.
const PROVE_MAX: Duration = Duration::from_secs(6);
/// Minimum interval of looks at the idle time of the CPUs: each window of the tuner (50 ms) has one at its end ...
const IDLE: Duration = Duration::from_millis(40);
/// ... and the maximum: with hundreds of CPUs the kernel takes long to add it up.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// Number of threads sampled together.
const THREADS_MAX: usize = 8;

/// Tunes and observes a run; see the module.
pub(super) struct Controller {
    tuner: Option<Tuner>,
    cpus: Option<Cpus>,
    record: Record,
    sums: Sums,
    sampler: Option<Sampler>,
    ceilings: Ceilings,
    next_sample: Duration,
    /// Number of ticks at each number of jobs.
    jobs: Vec<u32>,
    /// Index of its thread to sample next.
    turn: usize,
    proving: Proving,
    /// The facts before the experiments, which disturb them.
    before: Option<Facts>,
    experiments: Vec<Experiment>,
    pause: Pause,
    interim: InterimVerdict,
}

/// The CPUs that this process may use, opened at the first tick.
struct Cpus {
    count: u32,
    idle: IdleTime,
    /// Last idle time, and when it was read.
    last: Option<(Duration, Duration)>,
    next: Duration,
}

impl Cpus {
    fn open() -> Cpus {
        Cpus {
            count: process::cpus() as u32,
            idle: IdleTime::open(),
            last: None,
            next: Duration::ZERO,
        }
    }

    /// Returns the idle time for the tuner, read again if that is due.
    fn idle(&mut self, now: Duration) -> Option<(Duration, Duration)> {
        if now >= self.next {
            let before = Used::of_thread().cpu();
            self.last = self.idle.read().map(|idle| (now, idle));
            let took = Used::of_thread().cpu().saturating_sub(before);
            self.next = now + pause(took, (IDLE, IDLE_MAX));
        }
        self.last
    }
}

/// State of `--prove`.
enum Proving {
    /// Not requested, or done.
    No,
    /// Waits for a baseline.
    Waits,
    /// In progress.
    Goes(Box<Proof>),
}

/// The experiments, which are hidden from the tuner: start, duration, and the work done meanwhile.
#[derive(Default)]
struct Pause {
    began: Duration,
    at: Counts,
    took: Duration,
    did: Counts,
}

impl Controller {
    /// Makes a controller without data. Without a tuner the number of jobs is fixed; the machine is sampled only for
    /// a verdict (`judges`).
    pub fn new(tuner: Option<Tuner>, proves: bool, judges: bool) -> Controller {
        Controller {
            tuner,
            cpus: None,
            record: Record::default(),
            sums: Sums::default(),
            sampler: None,
            ceilings: Ceilings::default(),
            next_sample: if judges { FIRST_SAMPLE } else { Duration::MAX },
            jobs: Vec::new(),
            turn: 0,
            proving: if proves { Proving::Waits } else { Proving::No },
            before: None,
            experiments: Vec::new(),
            pause: Pause::default(),
            interim: InterimVerdict::default(),
        }
    }

    /// Performs one tick, `now` after the start of the run.
    pub fn tick(&mut self, now: Duration, controls: &Arc<Controls>, subject: &Subject) {
        let counts = controls.meter.counts();
        if let Proving::Goes(proof) = &mut self.proving {
            let progress = Progress { goodput: goodput(&counts), completions: counts.completions };
            if !proof.tick(now, progress) {
                self.end_proof(now, &counts);
            }
            return;
        }
        self.look(&counts, controls.gate.jobs());
        if let Some(tuner) = &mut self.tuner {
            let cpus = self.cpus.get_or_insert_with(Cpus::open);
            let idle = cpus.idle(now);
            let quickest = match subject.ends.has_store() {
                true => controls.meter.wire().answer_least_us.map(Duration::from_micros),
                false => None,
            };
            let reading = reading(&counts, &self.pause.did, cpus.count);
            let reading = Reading { idle, quickest, ..reading };
            controls.gate.set(tuner.step(now - self.pause.took, &reading));
        }
        if now >= self.next_sample {
            let before = Used::of_thread().cpu();
            self.sample(now, counts, controls, subject);
            let took = Used::of_thread().cpu().saturating_sub(before);
            self.next_sample = now + pause(took, (SAMPLE, SAMPLE_MAX));
            self.prove(now, &counts, controls, subject);
            if self.interim.is_due(now) {
                let verdict = judge(&self.facts(controls, subject));
                controls.meter.set_limit(interim::word(&verdict));
            }
        }
    }

    /// Adds up the state of all workers.
    fn look(&mut self, counts: &Counts, jobs: usize) {
        if self.jobs.len() <= jobs {
            self.jobs.resize(jobs + 1, 0);
        }
        if let Some(count) = self.jobs.get_mut(jobs) {
            *count = count.saturating_add(1);
        }
        self.sums.ticks += 1;
        self.sums.jobs += jobs as u64;
        for (sum, doing) in self.sums.phases.iter_mut().zip(counts.doing) {
            *sum += u64::from(doing);
        }
    }

    /// Samples the machine.
    fn sample(&mut self, now: Duration, counts: Counts, controls: &Controls, subject: &Subject) {
        if self.sampler.is_none() {
            self.ceilings = Ceilings::of(&subject.ends.devs());
        }
        let sampler = self.sampler.get_or_insert_with(|| Sampler::new(Watched::ThisProcess));
        let sample = sampler.read();
        self.sums.samples += 1;
        self.sums.blocked += u64::from(sample.blocked);
        let memory = &sample.memory;
        self.sums.dirty_bytes += (memory.dirty_bytes + memory.writeback_bytes) as f64;
        if !subject.ends.has_store() {
            self.look_for_locks(sample.process.threads.iter().map(|thread| thread.tid).collect());
        }
        let (sums, wire) = (self.sums, controls.meter.wire());
        let served = self.ceilings.served();
        self.record.push(Mark { at: now, counts, wire, sums, sample, served });
    }

    /// Samples what some of the threads wait for, different ones each time.
    fn look_for_locks(&mut self, mut threads: Vec<u32>) {
        let own = task::own_thread();
        threads.retain(|tid| *tid != own);
        let count = threads.len().min(THREADS_MAX);
        for step in 0..count {
            let Some(tid) = threads.get((self.turn + step) % threads.len()) else { continue };
            self.sums.looks += 1;
            let waits = task::waiting_in(*tid);
            self.sums.locked += u64::from(waits.as_deref().is_some_and(is_directory_lock));
        }
        self.turn = self.turn.wrapping_add(count);
    }

    /// Begins the experiments, if they are requested and due.
    fn prove(
        &mut self,
        now: Duration,
        counts: &Counts,
        controls: &Arc<Controls>,
        subject: &Subject,
    ) {
        let settled = self.tuner.as_ref().is_none_or(Tuner::is_settled);
        let due = now >= PROVE_MAX || now >= PROVE_MIN && settled;
        if !due || !matches!(self.proving, Proving::Waits) {
            return;
        }
        let facts = self.facts(controls, subject);
        let proof = Proof::begin(&facts, controls, &self.ceilings.limits.affinity);
        self.before = Some(facts);
        self.pause = Pause { began: now, at: *counts, ..Pause::default() };
        self.proving = Proving::Goes(Box::new(proof));
    }

    fn end_proof(&mut self, now: Duration, counts: &Counts) {
        if let Proving::Goes(proof) = std::mem::replace(&mut self.proving, Proving::No) {
            self.experiments = proof.experiments().to_vec();
        }
        let (from, did) = (&self.pause.at, &mut self.pause.did);
        did.bytes = counts.bytes.saturating_sub(from.bytes);
        did.items = counts.items.saturating_sub(from.items);
        did.completions = counts.completions.saturating_sub(from.completions);
        did.slowed = counts.slowed.saturating_sub(from.slowed);
        did.timed_out = counts.timed_out.saturating_sub(from.timed_out);
        self.pause.took = now.saturating_sub(self.pause.began);
        // Start new means: earlier ones are kept separately.
        self.record = Record::default();
        self.next_sample = now;
    }

    /// Returns whether the number of jobs is searched.
    pub fn tunes(&self) -> bool {
        self.tuner.is_some()
    }

    /// Returns whether there will be facts to judge.
    pub fn judges(&self) -> bool {
        self.next_sample < Duration::MAX
    }

    /// Ends all activity. `took` is the duration of the run.
    pub fn land(&mut self, took: Duration, controls: &Controls, subject: &Subject, judged: bool) {
        let counts = controls.meter.counts();
        if matches!(self.proving, Proving::Goes(_)) {
            self.end_proof(took, &counts);
        } else if judged {
            self.sample(took, counts, controls, subject);
        }
    }

    /// Returns the facts of the run: of its longest part without experiments.
    pub fn judged_facts(&self, controls: &Controls, subject: &Subject) -> Facts {
        let now = self.facts(controls, subject);
        let facts = match &self.before {
            Some(before) if before.span_s > now.span_s => {
                Facts { curve: now.curve, ..before.clone() }
            }
            _ => now,
        };
        Facts { experiments: self.experiments.clone(), ..facts }
    }

    fn facts(&self, controls: &Controls, subject: &Subject) -> Facts {
        let curve = self.tuner.as_ref().map(Tuner::curve).unwrap_or_default();
        facts::facts(subject, controls, &self.record, &self.ceilings, &curve)
    }

    /// Returns the median number of jobs of all ticks.
    pub fn usual_jobs(&self) -> Option<usize> {
        let all: u64 = self.jobs.iter().copied().map(u64::from).sum();
        let mut seen = 0;
        self.jobs.iter().position(|count| {
            seen += u64::from(*count);
            all > 0 && 2 * seen >= all
        })
    }

    /// Returns the history of the number of jobs; a fixed one is a single step.
    pub fn path(&self, took: Duration, controls: &Controls) -> Vec<Step> {
        let Some(tuner) = &self.tuner else {
            let counts = controls.meter.counts();
            let per_s = |sum: f64| Some(sum / took.as_secs_f64().max(1e-9));
            return vec![Step {
                at: Duration::ZERO,
                jobs: controls.gate.jobs(),
                rate: per_s(goodput(&counts)),
                bytes_per_s: per_s(counts.bytes as f64),
                entries_per_s: per_s(counts.items as f64),
            }];
        };
        let late = |step: &Step| match step.at > self.pause.began {
            true => Step { at: step.at + self.pause.took, ..*step },
            false => *step,
        };
        tuner.path().iter().map(late).collect()
    }

    /// Returns the number of jobs to store.
    pub fn best(&self) -> Option<usize> {
        self.tuner.as_ref()?.best().map(|(jobs, _)| jobs)
    }
}

/// Returns the pause before the next tick, by the CPU time that this one took, within bounds.
pub(super) fn pause(took: Duration, (min, max): (Duration, Duration)) -> Duration {
    took.saturating_mul(SHARE).clamp(min, max)
}

/// Makes a reading for the tuner, without the counts `apart`.
fn reading(counts: &Counts, apart: &Counts, cpus: u32) -> Reading {
    let cpu = Used::of_process().cpu() / cpus.max(1);
    Reading {
        bytes: counts.bytes.saturating_sub(apart.bytes),
        items: counts.items.saturating_sub(apart.items),
        completions: counts.completions.saturating_sub(apart.completions),
        in_use: counts.in_use(),
        // A server may complain a hundred times in one moment: count the moments.
        throttled: counts.slowed.saturating_sub(apart.slowed),
        timed_out: counts.timed_out.saturating_sub(apart.timed_out),
        cpu,
        idle: None,
        quickest: None,
        answering: counts.doing[Phase::Answer as usize] as usize,
    }
}

/// Returns content and the credit of entries, as the tuner counts it.
fn goodput(counts: &Counts) -> f64 {
    counts.bytes as f64 + counts.items as f64 * ENTRY_CREDIT_BYTES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_many_threads_come_less_often() {
        let of = |us| pause(Duration::from_micros(us), (SAMPLE, SAMPLE_MAX)).as_micros();
        assert_eq!((of(0), of(150), of(200)), (100_000, 100_000, 100_000));
        // Below 1/500 of the time.
        assert_eq!((of(1000), of(1500)), (500_000, 750_000));
        assert_eq!(of(1_000_000), 1_000_000);
    }
}
