//! What the thread that steers does at each look: it reads the counters of those who work, asks the
//! tuner, sets the gate, and keeps what a verdict needs.

use super::ceilings::Ceilings;
use super::facts::{self, Subject};
use super::prove::Proof;
use super::record::{Mark, Record, Sums};
use crate::limit::Helm;
use crate::meter::Counts;
use crate::sample::{Sampler, Watched, is_directory_lock};
use crate::tune::{ENTRY_CREDIT_BYTES, Reading, Step, Tuner};
use crate::verdict::{Experiment, Facts, Progress};
use hakobu_sys::task;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks at the machine.
const SAMPLE: Duration = Duration::from_millis(100);
/// The machine is not looked at before: short runs are not to pay for it.
const FIRST_SAMPLE: Duration = Duration::from_millis(500);
/// Experiments begin when the tuner has found something to compare with, but not before this ...
const PROVE_MIN: Duration = Duration::from_secs(2);
/// ... and after this in any case.
const PROVE_MAX: Duration = Duration::from_secs(6);
/// Threads that are looked at together.
const THREADS_MAX: usize = 8;

/// See the module.
pub(super) struct Pilot {
    tuner: Option<Tuner>,
    record: Record,
    sums: Sums,
    sampler: Option<Sampler>,
    ceilings: Ceilings,
    next_sample: Duration,
    /// How often each number of jobs was found in force.
    jobs: Vec<u32>,
    /// Which of its threads comes next.
    turn: usize,
    proving: Proving,
    /// What was known before the experiments, which disturb it.
    before: Option<Facts>,
    experiments: Vec<Experiment>,
    pause: Pause,
}

/// How far `--prove` is.
enum Proving {
    /// Not asked for, or done.
    No,
    /// It begins when there is something to compare with.
    Waits,
    /// It goes on.
    Goes(Box<Proof>),
}

/// The experiments, of which the tuner is not told: when they began, how long they took, and what
/// was done meanwhile.
#[derive(Default)]
struct Pause {
    began: Duration,
    at: Counts,
    took: Duration,
    did: Counts,
}

impl Pilot {
    /// One that has seen nothing yet. Without a tuner the number of jobs stays what it is.
    pub fn new(tuner: Option<Tuner>, proves: bool) -> Pilot {
        Pilot {
            tuner,
            record: Record::default(),
            sums: Sums::default(),
            sampler: None,
            ceilings: Ceilings::default(),
            next_sample: FIRST_SAMPLE,
            jobs: Vec::new(),
            turn: 0,
            proving: if proves { Proving::Waits } else { Proving::No },
            before: None,
            experiments: Vec::new(),
            pause: Pause::default(),
        }
    }

    /// Looks once, `now` after the start of the run.
    pub fn tick(&mut self, now: Duration, helm: &Arc<Helm>, subject: &Subject) {
        let counts = helm.meter.counts();
        if let Proving::Goes(proof) = &mut self.proving {
            let progress = Progress { goodput: goodput(&counts), completions: counts.completions };
            if !proof.tick(now, progress) {
                self.end_proof(now, &counts);
            }
            return;
        }
        self.look(&counts, helm.gate.jobs());
        if let Some(tuner) = &mut self.tuner {
            let reading = reading(&counts, &self.pause.did);
            helm.gate.set(tuner.step(now - self.pause.took, &reading));
        }
        if now >= self.next_sample {
            self.next_sample = now + SAMPLE;
            self.sample(now, counts, helm, subject);
            self.prove(now, &counts, helm, subject);
        }
    }

    /// Adds up what everybody is doing.
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

    /// Looks at the machine.
    fn sample(&mut self, now: Duration, counts: Counts, helm: &Helm, subject: &Subject) {
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
        let (sums, wire) = (self.sums, helm.meter.wire());
        let served = self.ceilings.served();
        self.record.push(Mark { at: now, counts, wire, sums, sample, served });
    }

    /// Looks at what some of the threads wait for, others each time.
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

    /// Begins the experiments, if they are wanted and it is time.
    fn prove(&mut self, now: Duration, counts: &Counts, helm: &Arc<Helm>, subject: &Subject) {
        let settled = self.tuner.as_ref().is_none_or(Tuner::is_settled);
        let due = now >= PROVE_MAX || now >= PROVE_MIN && settled;
        if !due || !matches!(self.proving, Proving::Waits) {
            return;
        }
        let facts = self.facts(helm, subject);
        let proof = Proof::begin(&facts, helm, self.ceilings.affinity());
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
        // Means begin anew: those from before are kept apart.
        self.record = Record::default();
        self.next_sample = now;
    }

    /// Ends everything that goes on. `took` is how long the run took.
    pub fn land(&mut self, took: Duration, helm: &Helm, subject: &Subject, judged: bool) {
        let counts = helm.meter.counts();
        if matches!(self.proving, Proving::Goes(_)) {
            self.end_proof(took, &counts);
        } else if judged {
            self.sample(took, counts, helm, subject);
        }
    }

    /// The facts of the run: of its longest stretch without experiments.
    pub fn judged_facts(&self, helm: &Helm, subject: &Subject) -> Facts {
        let now = self.facts(helm, subject);
        let facts = match &self.before {
            Some(before) if before.span_s > now.span_s => {
                Facts { curve: now.curve, ..before.clone() }
            }
            _ => now,
        };
        Facts { experiments: self.experiments.clone(), ..facts }
    }

    fn facts(&self, helm: &Helm, subject: &Subject) -> Facts {
        let curve = self.tuner.as_ref().map(Tuner::curve).unwrap_or_default();
        facts::facts(subject, helm, &self.record, &self.ceilings, &curve)
    }

    /// The number of jobs that was in force at the middle one of all looks.
    pub fn usual_jobs(&self) -> Option<usize> {
        let all: u64 = self.jobs.iter().copied().map(u64::from).sum();
        let mut seen = 0;
        self.jobs.iter().position(|count| {
            seen += u64::from(*count);
            all > 0 && 2 * seen >= all
        })
    }

    /// The way that the number of jobs went; a fixed one is a single step.
    pub fn path(&self, took: Duration, helm: &Helm) -> Vec<Step> {
        let Some(tuner) = &self.tuner else {
            let rate = goodput(&helm.meter.counts()) / took.as_secs_f64().max(1e-9);
            return vec![Step { at: Duration::ZERO, jobs: helm.gate.jobs(), rate: Some(rate) }];
        };
        let late = |step: &Step| match step.at > self.pause.began {
            true => Step { at: step.at + self.pause.took, ..*step },
            false => *step,
        };
        tuner.path().iter().map(late).collect()
    }

    /// What is worth remembering.
    pub fn best(&self) -> Option<usize> {
        self.tuner.as_ref()?.best().map(|(jobs, _)| jobs)
    }
}

/// What the tuner wants to know; `apart` is not for it.
fn reading(counts: &Counts, apart: &Counts) -> Reading {
    Reading {
        bytes: counts.bytes.saturating_sub(apart.bytes),
        items: counts.items.saturating_sub(apart.items),
        completions: counts.completions.saturating_sub(apart.completions),
        in_use: counts.in_use(),
        // A server may complain a hundred times of one moment: what counts is that it was too much.
        throttled: counts.slowed.saturating_sub(apart.slowed),
        timed_out: counts.timed_out.saturating_sub(apart.timed_out),
    }
}

/// Content and the credit of entries, as the tuner counts it.
fn goodput(counts: &Counts) -> f64 {
    counts.bytes as f64 + counts.items as f64 * ENTRY_CREDIT_BYTES as f64
}
