//! Control of a run: samples its progress, sets the number of jobs, and produces the verdict at the end.

pub(super) use super::evidence::RunHints;
use super::evidence::{Mark, ProofExperiments, SampleMarks, Subject, Sums, facts};
use crate::far::FarLink;
use crate::journal::Ledger;
use crate::location::Location;
use crate::object::JOBS_SEED;
use crate::plan::Spec;
use crate::plan::objects::Stores;
use crate::run::Findings;
use hakobu_core::language::{Bilingual, Language};
use hakobu_core::limit::{Capacity, Controls, Gate, Limiter, Limits, WorkKind};
use hakobu_core::meter::{Counts, Meter, PHASES, Phase};
use hakobu_core::unit::Jobs;
use hakobu_explain::observer::Ceilings;
use hakobu_explain::sample::{IdleTime, Sampler, Watched, is_directory_lock};
use hakobu_explain::tune::{self, ENTRY_CREDIT_BYTES, Medium, Tuner, TuningStep, WorkCounters};
use hakobu_explain::verdict::{
    self, Experiment, Facts, Help, Level, Progress, Resource, Side, Verdict, judge, resource_words,
};
use hakobu_s3::S3Session;
use hakobu_sys::proc::{self, ResourceUsage};
use hakobu_sys::{disk, process};
use parking_lot::{Condvar, Mutex};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Parameters of control: the ends of the run, and the user's limits.
pub(super) struct Terms {
    pub work: WorkKind,
    pub ends: RunEnds,
    pub limits: Limits,
    /// Experiments are made (`--prove`).
    pub proves: bool,
    /// Number of counting threads; `None` for one per job.
    pub lanes: Option<usize>,
    /// Counting threads beside those of jobs.
    pub lanes_beside: usize,
    /// A verdict is requested, so the machine is sampled.
    pub judges: bool,
    /// The link to another machine.
    pub far: Option<Arc<FarLink>>,
}

impl Terms {
    /// Returns the parameters of a transfer.
    pub fn of(spec: &Spec, stores: &Stores) -> Terms {
        let ends = RunEnds::of(spec, stores);
        let with_store = spec.has_store();
        Terms {
            work: if with_store { WorkKind::Store } else { WorkKind::Paths },
            ends,
            limits: spec.limits,
            proves: spec.prove,
            lanes: with_store.then(process::cpus),
            lanes_beside: 0,
            judges: true,
            far: None,
        }
    }

    /// Returns the parameters of a removal of objects, with a fixed number of requests.
    pub fn of_removal(jobs: usize, requests_per_s_max: Option<u64>) -> Terms {
        Terms {
            limits: Limits {
                operations_per_s_max: requests_per_s_max,
                ..Limits::of_jobs(Jobs::Fixed(jobs))
            },
            lanes: Some(process::cpus()),
            ..Terms::of_work(WorkKind::Store, RunEnds::default())
        }
    }

    /// Returns the parameters of work without limits and without a verdict.
    fn of_work(work: WorkKind, ends: RunEnds) -> Terms {
        Terms {
            work,
            ends,
            limits: Limits::default(),
            proves: false,
            lanes: None,
            lanes_beside: 0,
            judges: false,
            far: None,
        }
    }
}

/// Runs `work`, which walks the trees at `paths` within these limits; returns its result, and the number of workers that
/// was set for most of the time.
pub fn steered<T>(
    paths: &[&Path],
    limits: Limits,
    work: impl FnOnce(&Controls, &Capacity) -> T,
) -> (T, usize) {
    let terms = Terms { limits, ..Terms::of_work(WorkKind::Walk, RunEnds::of_paths(paths)) };
    let configuration = Configuration::new(terms, RunHints::default());
    let (controls, capacity) = (Arc::clone(&configuration.controls), configuration.capacity);
    let controller = configuration.begin(&Arc::default());
    let done = work(&controls, &capacity);
    (done, controller.end(false).jobs)
}

/// A run that is about to begin: its controls and initial values.
pub(super) struct Configuration {
    /// Gate, limiters and meter.
    pub controls: Arc<Controls>,
    /// Bounds of concurrency and open files.
    pub capacity: Capacity,
    subject: Subject,
    hints: RunHints,
    seed: usize,
    remembered: bool,
    proves: bool,
    judges: bool,
    /// A controller is needed during the run: to tune, to judge, or to keep a record.
    watches: bool,
}

impl Configuration {
    /// Determines the initial and the maximum number of jobs.
    pub fn new(terms: Terms, hints: RunHints) -> Configuration {
        let Terms { ends, limits, .. } = terms;
        let open_files_max = process::raise_open_files_limit();
        let (jobs, memory) = (limits.jobs, limits.memory_bytes_max);
        let capacity = Capacity::new(terms.work, jobs, memory, open_files_max);
        if terms.work != WorkKind::Store {
            process::reserve_descriptors(capacity.open_dirs_max as u64);
        }
        let auto = jobs == Jobs::Auto;
        let by_rule = match (jobs, ends.has_store()) {
            (Jobs::Auto, true) => JOBS_SEED,
            _ => tune::jobs(jobs, &ends.mediums(), process::cpus()),
        };
        let remembered = if auto { hints.jobs(&ends, by_rule) } else { None };
        let seed = remembered.unwrap_or(by_rule).clamp(1, capacity.jobs_max);
        let limiter = |per_s: Option<u64>| per_s.map(|per_s| Arc::new(Limiter::new(per_s)));
        let controls = Controls {
            gate: Gate::new(seed, capacity.jobs_max),
            meter: Arc::new(Meter::new(
                terms.lanes.unwrap_or(capacity.jobs_max) + terms.lanes_beside,
            )),
            bytes: limits.byte_limiter().map(Arc::new),
            operations: limiter(limits.operations_per_s_max),
        };
        let subject = Subject { ends, limits, far: terms.far };
        Configuration {
            controls: Arc::new(controls),
            capacity,
            subject,
            hints,
            seed,
            remembered: remembered.is_some(),
            proves: terms.proves,
            judges: terms.judges && capacity.samples,
            watches: terms.judges || auto,
        }
    }

    /// Starts the controller, which also writes the heartbeats of the run's record.
    pub fn begin(self, ledger: &Arc<Ledger>) -> ControllerThread {
        let jobs_max = self.controls.gate.jobs_max();
        let tuner =
            (!self.subject.jobs_fixed()).then(|| Tuner::new(jobs_max, self.seed, self.remembered));
        let controller = Controller::new(tuner, self.proves, self.judges);
        ControllerThread::begin(
            (self.controls, Arc::clone(ledger)),
            self.subject,
            self.hints,
            controller,
            self.watches,
        )
    }
}

// The steps of the controller thread at each tick: it reads the workers' counters, asks the tuner, sets the gate,
// and collects data for a verdict.

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
/// Fewest ticks that show how a short run spent its time.
const TICKS_MIN: u64 = 5;
/// Number of threads sampled together.
const THREADS_MAX: usize = 8;

/// Tunes and observes a run; see the module.
pub(super) struct Controller {
    tuner: Option<Tuner>,
    cpus: Option<Cpus>,
    record: SampleMarks,
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
    /// Time of the last tick.
    ticked: Duration,
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
            let before = ResourceUsage::of_thread().cpu();
            self.last = self.idle.read().map(|idle| (now, idle));
            let took = ResourceUsage::of_thread().cpu().saturating_sub(before);
            self.next = now + next_pause(took, (IDLE, IDLE_MAX));
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
    Goes(Box<ProofExperiments>),
}

/// The experiments and stops, which are hidden from the tuner: start, duration, and the work done meanwhile.
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
            record: SampleMarks::default(),
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
            ticked: Duration::ZERO,
            interim: InterimVerdict::default(),
        }
    }

    /// Performs one tick, `now` after the start of the run.
    pub fn tick(&mut self, now: Duration, controls: &Arc<Controls>, subject: &Subject) {
        let late = now.saturating_sub(std::mem::replace(&mut self.ticked, now));
        if late >= STOPPED_MIN && !matches!(self.proving, Proving::Goes(_)) {
            self.skip_stop(now, late.saturating_sub(TICK), controls, subject);
        }
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
            let reading = WorkCounters { idle, quickest, ..reading };
            controls.gate.set(tuner.step(now - self.pause.took, &reading));
        }
        if now >= self.next_sample {
            let before = ResourceUsage::of_thread().cpu();
            self.sample(now, counts, controls, subject);
            let took = ResourceUsage::of_thread().cpu().saturating_sub(before);
            self.next_sample = now + next_pause(took, (SAMPLE, SAMPLE_MAX));
            self.prove(now, &counts, controls, subject);
            if self.interim.is_due(now) {
                let facts = self.facts(controls, subject);
                controls.meter.set_limit(word(&judge(&facts)));
            }
        }
    }

    /// Leaves out the time in which the program was stopped (Ctrl-Z): from means, and for the tuner.
    fn skip_stop(
        &mut self,
        now: Duration,
        stopped: Duration,
        controls: &Controls,
        subject: &Subject,
    ) {
        let facts = self.facts(controls, subject);
        if self.before.as_ref().is_none_or(|before| before.span_s < facts.span_s) {
            self.before = Some(facts);
        }
        // Start new means: earlier ones are kept separately.
        self.record = SampleMarks::default();
        if self.judges() {
            self.next_sample = now;
        }
        if self.pause.took.is_zero() {
            self.pause.began = now.saturating_sub(stopped);
        }
        self.pause.took += stopped;
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
        let far = subject.far.as_ref().and_then(|far| far.mark());
        self.record.push(Mark { at: now, counts, wire, sums, sample, served, far });
    }

    /// Samples what some of the threads wait for, different ones each time.
    fn look_for_locks(&mut self, mut threads: Vec<u32>) {
        let own = proc::own_thread();
        threads.retain(|tid| *tid != own);
        let count = threads.len().min(THREADS_MAX);
        for step in 0..count {
            let Some(tid) = threads.get((self.turn + step) % threads.len()) else { continue };
            self.sums.looks += 1;
            let waits = proc::waiting_in(*tid);
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
        let proof = ProofExperiments::begin(&facts, controls, &self.ceilings.limits.affinity);
        self.before = Some(facts);
        self.pause = Pause { began: now, at: *counts, ..std::mem::take(&mut self.pause) };
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
        self.pause.took += now.saturating_sub(self.pause.began);
        // Start new means: earlier ones are kept separately.
        self.record = SampleMarks::default();
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
        facts(subject, controls, &self.record, &self.ceilings, &curve)
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
    pub fn path(&self, took: Duration, controls: &Controls) -> Vec<TuningStep> {
        let Some(tuner) = &self.tuner else {
            let counts = controls.meter.counts();
            let per_s = |sum: f64| Some(sum / took.as_secs_f64().max(1e-9));
            return vec![TuningStep {
                at: Duration::ZERO,
                jobs: controls.gate.jobs(),
                rate: per_s(goodput(&counts)),
                bytes_per_s: per_s(counts.bytes as f64),
                entries_per_s: per_s(counts.items as f64),
            }];
        };
        let late = |step: &TuningStep| match step.at > self.pause.began {
            true => TuningStep { at: step.at + self.pause.took, ..*step },
            false => *step,
        };
        tuner.path().iter().map(late).collect()
    }

    /// Returns the mean number of workers in each phase over the whole run; zeros for one that was over at once.
    pub fn phases(&self) -> [f64; PHASES] {
        let Sums { ticks, phases, .. } = self.sums;
        let mean = |sum: u64| if ticks >= TICKS_MIN { sum as f64 / ticks as f64 } else { 0.0 };
        phases.map(mean)
    }

    /// Returns the number of jobs to store.
    pub fn best(&self) -> Option<usize> {
        self.tuner.as_ref()?.best().map(|(jobs, _)| jobs)
    }
}

/// Returns the pause before the next tick, by the CPU time that this one took, within bounds.
pub(super) fn next_pause(took: Duration, (min, max): (Duration, Duration)) -> Duration {
    took.saturating_mul(SHARE).clamp(min, max)
}

/// Makes a reading for the tuner, without the counts `apart`.
fn reading(counts: &Counts, apart: &Counts, cpus: u32) -> WorkCounters {
    let cpu = ResourceUsage::of_process().cpu() / cpus.max(1);
    WorkCounters {
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

// The controller thread: ticks a hundred times per second, less often with hundreds of jobs. No worker ever waits
// for it.

/// Minimum interval of ticks ...
const TICK: Duration = Duration::from_millis(10);
/// ... and the maximum while the number of jobs is searched in windows of 50 ms ...
const TUNED_TICK_MAX: Duration = Duration::from_millis(30);
/// ... and where it is fixed.
const TICK_MAX: Duration = Duration::from_millis(100);
/// Delay from which on a tick comes after a stop of the program (Ctrl-Z).
const STOPPED_MIN: Duration = Duration::from_millis(1500);
/// Minimum duration of a run with a verdict.
const JUDGED_MIN: Duration = Duration::from_secs(2);
/// Stack size of the thread, in bytes: it reads small files and adds numbers.
const STACK_BYTES: usize = 256 << 10;

/// State shared by both threads.
struct Shared {
    controls: Arc<Controls>,
    ledger: Arc<Ledger>,
    subject: Subject,
    started: Instant,
    controller: Mutex<Controller>,
    over: Mutex<bool>,
    ended: Condvar,
}

impl Shared {
    fn steer(&self) {
        let mut pause = TICK;
        loop {
            let mut over = self.over.lock();
            self.ended.wait_while_for(&mut over, |over| !*over, pause);
            if *over {
                return;
            }
            let before = ResourceUsage::of_thread().cpu();
            // The lock is held during a tick: the end of the run waits for it, and no tick comes after.
            let mut controller = self.controller.lock();
            controller.tick(self.started.elapsed(), &self.controls, &self.subject);
            let tick_max = if controller.tunes() { TUNED_TICK_MAX } else { TICK_MAX };
            drop((controller, over));
            self.ledger.heartbeat();
            let took = ResourceUsage::of_thread().cpu().saturating_sub(before);
            pause = next_pause(took, (TICK, tick_max));
        }
    }

    fn end(&self) {
        *self.over.lock() = true;
        self.ended.notify_all();
    }
}

/// A controlled run.
pub(in super::super) struct ControllerThread {
    shared: Arc<Shared>,
    hints: RunHints,
}

impl ControllerThread {
    /// Starts the thread, if it is needed (`watches`). If no thread can be started, the initial settings stay.
    pub(super) fn begin(
        (controls, ledger): (Arc<Controls>, Arc<Ledger>),
        subject: Subject,
        hints: RunHints,
        controller: Controller,
        watches: bool,
    ) -> ControllerThread {
        let shared = Arc::new(Shared {
            controls,
            ledger,
            subject,
            started: Instant::now(),
            controller: Mutex::new(controller),
            over: Mutex::new(false),
            ended: Condvar::new(),
        });
        if watches {
            // Not joined: a run of a millisecond must not wait for a thread to end.
            let thread =
                std::thread::Builder::new().name("controller".into()).stack_size(STACK_BYTES);
            let other = Arc::clone(&shared);
            let _ = thread.spawn(move || other.steer());
        }
        ControllerThread { shared, hints }
    }

    /// Ends control and returns the findings. `whole`: the run was neither stopped nor aborted, so that its results
    /// are worth storing.
    pub fn end(mut self, whole: bool) -> Findings {
        self.shared.end();
        let Shared { controls, subject, started, .. } = &*self.shared;
        let took = started.elapsed();
        let mut controller = self.shared.controller.lock();
        let judged = took >= JUDGED_MIN && controller.judges();
        controller.land(took, controls, subject, judged);
        if let Some(jobs) = controller.best().filter(|_| whole) {
            std::mem::take(&mut self.hints).remember(subject, jobs, &controls.meter.counts(), took);
        }
        Findings {
            jobs: controller.usual_jobs().unwrap_or(controls.gate.jobs()),
            path: controller.path(took, controls),
            phases: controller.phases(),
            verdict: judged.then(|| verdict::judge(&controller.judged_facts(controls, subject))),
        }
    }
}

impl Drop for ControllerThread {
    fn drop(&mut self) {
        self.shared.end();
    }
}

// Both ends of a run for its controller: stores, disks and others, and their names in the journal.

/// Maximum number of source arguments examined: further ones are assumed to be in the same place.
const SOURCES_MAX: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct RunEnd {
    pub side: Side,
    pub is_store: bool,
    /// The device number of a path's file system.
    pub dev: Option<u64>,
    /// The kind of the underlying disk.
    pub medium: Medium,
    /// Its name in the journal.
    pub name: String,
}

/// All ends of a run, the first one of each side first.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct RunEnds(pub(super) Vec<RunEnd>);

impl RunEnds {
    /// Determines the ends of a description. Ends that cannot be examined are left out.
    pub(in super::super) fn of(spec: &Spec, stores: &Stores) -> RunEnds {
        let mut ends: Vec<RunEnd> = Vec::new();
        // Paths of another machine say nothing here.
        let far = spec.remote.as_ref();
        let is_here = |side: Side| far.is_none_or(|far| far.side != side);
        ends.extend(far.map(|far| RunEnd {
            side: far.side,
            is_store: false,
            dev: None,
            medium: Medium::Memory,
            name: far.name(),
        }));
        for source in spec.sources.locations().take(SOURCES_MAX).filter(|_| is_here(Side::Source)) {
            ends.extend(end(Side::Source, &source, stores.source.as_deref()));
        }
        if is_here(Side::Target) {
            ends.extend(end(Side::Target, &spec.target, stores.target.as_deref()));
        }
        ends.dedup_by(|a, b| a.side == b.side && a.name == b.name);
        RunEnds(ends)
    }

    /// Determines the ends of walked trees.
    pub(super) fn of_paths(paths: &[&Path]) -> RunEnds {
        let mut ends: Vec<RunEnd> = Vec::new();
        ends.extend(paths.iter().take(SOURCES_MAX).filter_map(|path| local(Side::Source, path)));
        ends.dedup_by(|a, b| a.name == b.name);
        RunEnds(ends)
    }

    /// Returns the device numbers of the file systems of all local ends.
    pub(super) fn devs(&self) -> Vec<u64> {
        self.0.iter().filter_map(|end| end.dev).collect()
    }

    pub(super) fn has_store(&self) -> bool {
        self.0.iter().any(|end| end.is_store)
    }

    pub(super) fn is_store(&self, side: Side) -> bool {
        self.0.iter().any(|end| end.side == side && end.is_store)
    }

    /// Returns the name in the journal of the first end of a side; `-` for `null:`.
    pub(super) fn name(&self, side: Side) -> &str {
        self.0.iter().find(|end| end.side == side).map_or("-", |end| &end.name)
    }

    /// Returns the kinds of the disks of all local ends.
    pub(super) fn mediums(&self) -> Vec<Medium> {
        self.0.iter().filter(|end| !end.is_store).map(|end| end.medium).collect()
    }
}

fn end(side: Side, location: &Location, store: Option<&S3Session>) -> Option<RunEnd> {
    match location {
        Location::S3(url) => Some(RunEnd {
            side,
            is_store: true,
            dev: None,
            medium: Medium::Memory,
            name: format!("{}/{}", store?.endpoint(), url.bucket),
        }),
        Location::Null => None,
        Location::Local(path) => local(side, path),
    }
}

/// Returns the end of a path, or of the folder that it will be created in.
fn local(side: Side, path: &Path) -> Option<RunEnd> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let places = [path, parent.unwrap_or(Path::new("."))];
    let (place, meta) = places.iter().find_map(|place| Some((*place, place.metadata().ok()?)))?;
    let dev = meta.dev();
    let (medium, kind) = match disk::is_rotational(dev) {
        _ if disk::is_foreign(place) => (Medium::Foreign, "foreign"),
        Some(true) => (Medium::Rotating, "rotating"),
        Some(false) => (Medium::Solid, "solid"),
        None => (Medium::Memory, "volume"),
    };
    let name = format!("{kind}:{dev}");
    Some(RunEnd { side, is_store: false, dev: Some(dev), medium, name })
}

// Conditions of a run, as text. A number of jobs is only good under the same conditions: another number is good with
// one CPU allowed, under a quota, a disk limit, or with a low priority.

/// Returns the conditions that the user sets: limits, and the work per entry.
pub(super) fn asked(spec: &Spec) -> String {
    let limits = [
        ("bytes/s", spec.limits.bytes_per_s_max),
        ("operations/s", spec.limits.operations_per_s_max),
        ("memory", spec.limits.memory_bytes_max),
    ];
    let mut parts: Vec<String> =
        limits.into_iter().filter_map(|(name, limit)| Some(format!("{name} {}", limit?))).collect();
    for (name, is_set) in [("checksum", spec.policy.checksum), ("dry run", spec.policy.dry_run)] {
        parts.extend(is_set.then(|| name.to_owned()));
    }
    parts.join(", ")
}

/// Returns all conditions: the kind of work, the user's settings, and the current limits of this machine.
pub(super) fn all(asked: &str, ends: &RunEnds) -> String {
    let ceilings = Ceilings::of(&ends.devs());
    let mut parts = vec![kind(ends).to_owned()];
    parts.extend((!asked.is_empty()).then(|| asked.to_owned()));
    parts.extend(ceilings.words());
    // A priority that cannot be read cannot have been set either.
    let (nice, io) = (process::nice().unwrap_or(0), process::io_priority().unwrap_or(0));
    parts.push(format!("nice {nice}, io priority {io}"));
    parts.join("; ")
}

/// Returns the kind of work: which side is a store.
fn kind(ends: &RunEnds) -> &'static str {
    match (ends.is_store(Side::Source), ends.is_store(Side::Target)) {
        (false, false) => "local",
        (false, true) => "up",
        (true, false) => "down",
        (true, true) => "between stores",
    }
}

// Interim verdicts during a run, in a word or two, for the progress display.

/// Time before which there is too little data.
const FIRST: Duration = Duration::from_secs(5);
/// Interval between two interim verdicts.
const BETWEEN: Duration = Duration::from_secs(1);

/// Time of the next interim verdict.
pub(super) struct InterimVerdict {
    due: Duration,
}

impl Default for InterimVerdict {
    fn default() -> InterimVerdict {
        InterimVerdict { due: FIRST }
    }
}

impl InterimVerdict {
    /// Returns whether one is due `now`, and schedules the next one.
    pub fn is_due(&mut self, now: Duration) -> bool {
        let due = now >= self.due;
        if due {
            self.due = now + BETWEEN;
        }
        due
    }
}

/// Returns the bottleneck that a verdict on these facts names; `None` if it names none.
pub(super) fn word(verdict: &Verdict) -> Option<Bilingual> {
    if verdict.level == Level::NotDetermined {
        return None;
    }
    match (verdict.resource, &verdict.advice.help) {
        (Resource::None, _) => None,
        (Resource::UserLimit, Help::HigherLimit(option)) => option.map(Bilingual::same),
        (resource, _) => {
            let [english, japanese] =
                [Language::English, Language::Japanese].map(|of| resource_words(resource, of));
            Some(Bilingual { english, japanese })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_many_threads_come_less_often() {
        let of = |us| next_pause(Duration::from_micros(us), (SAMPLE, SAMPLE_MAX)).as_micros();
        assert_eq!((of(0), of(150), of(200)), (100_000, 100_000, 100_000));
        // Below 1/500 of the time.
        assert_eq!((of(1000), of(1500)), (500_000, 750_000));
        assert_eq!(of(1_000_000), 1_000_000);
    }
    use crate::run::evidence::AFFINITY;

    #[test]
    fn conditions_of_this_thread() {
        let _alone = AFFINITY.lock();
        let here = || all("", &RunEnds::default());
        let before = here();
        assert!(before.starts_with("local; CPUs ") && before.contains("nice "), "{before}");
        assert_eq!(here(), before);
        assert_ne!(all("bytes/s 5", &RunEnds::default()), before);
        // Priorities and affinity are per thread.
        std::thread::spawn(move || {
            process::set_nice(19).unwrap();
            let nicer = here();
            assert_ne!(nicer, before);
            let one = hakobu_sys::proc::affinity(0).unwrap()[0];
            hakobu_sys::proc::set_affinity(0, &[one]).unwrap();
            assert!(all("", &RunEnds::default()).contains("CPUs 1"));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn from_five_seconds_on_once_a_second() {
        let mut interim = InterimVerdict::default();
        let asked: Vec<u64> =
            (0..80).filter(|tenth| interim.is_due(Duration::from_millis(100 * tenth))).collect();
        assert_eq!(asked, [50, 60, 70]);
    }
}
