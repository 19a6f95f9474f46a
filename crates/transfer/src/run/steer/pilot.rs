//! The thread that steers a run while others do it. It looks at their counters a hundred times a
//! second and at the machine's ten times, and nobody ever waits for it.

use super::facts::{self, Watched};
use super::record::{Mark, Record, Sums};
use super::{Course, Findings, ceilings};
use crate::limit::Helm;
use crate::meter::Counts;
use crate::sample::{Sampler, Watched as Whose};
use crate::tune::{ENTRY_CREDIT_BYTES, Reading, Setting, Step, Tuner};
use crate::verdict;
use hakobu_sys::task;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at the counters.
const TICK: Duration = Duration::from_millis(10);
/// Between two looks at the machine.
const SAMPLE: Duration = Duration::from_millis(100);
/// The machine is not looked at before: short runs are not to pay for it.
const FIRST_SAMPLE: Duration = Duration::from_millis(500);
/// Shorter runs are not judged.
const JUDGED_MIN: Duration = Duration::from_secs(2);
/// Threads that are looked at together.
const THREADS_MAX: usize = 8;
/// What the thread needs: it reads small files and adds numbers.
const STACK_BYTES: usize = 256 << 10;

/// What the thread knows.
pub(super) struct Pilot {
    tuner: Option<Tuner>,
    /// Locks of the kernel are looked for.
    looks_for_locks: bool,
    record: Record,
    sums: Sums,
    sampler: Option<Sampler>,
    ceilings: ceilings::Ceilings,
    next_sample: Duration,
    /// How often each number of jobs was found in force.
    jobs: Vec<u32>,
    /// Which of its threads comes next.
    turn: usize,
}

impl Pilot {
    /// One that has seen nothing yet. Without a tuner the number of jobs stays what it is.
    pub fn new(tuner: Option<Tuner>, looks_for_locks: bool) -> Pilot {
        Pilot {
            tuner,
            looks_for_locks,
            record: Record::default(),
            sums: Sums::default(),
            sampler: None,
            ceilings: ceilings::Ceilings::default(),
            next_sample: FIRST_SAMPLE,
            jobs: Vec::new(),
            turn: 0,
        }
    }

    fn tick(&mut self, now: Duration, helm: &Helm, course: &Sides) {
        let counts = helm.meter.counts();
        let jobs = helm.gate.jobs();
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
        if let Some(tuner) = &mut self.tuner {
            let Setting { jobs, streams } = tuner.step(now, &reading(&counts));
            helm.gate.set(jobs, streams);
        }
        if now >= self.next_sample {
            self.next_sample = now + SAMPLE;
            self.sample(now, counts, helm, course);
        }
    }

    fn sample(&mut self, now: Duration, counts: Counts, helm: &Helm, sides: &Sides) {
        if self.sampler.is_none() {
            self.ceilings = ceilings::Ceilings::of(&sides.devs);
        }
        let sampler = self.sampler.get_or_insert_with(|| Sampler::new(Whose::ThisProcess));
        let sample = sampler.read();
        self.sums.samples += 1;
        self.sums.blocked += u64::from(sample.blocked);
        let memory = &sample.memory;
        self.sums.dirty_bytes += (memory.dirty_bytes + memory.writeback_bytes) as f64;
        if self.looks_for_locks {
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
            self.sums.locked += u64::from(waits.is_some_and(|name| facts::is_lock(&name)));
        }
        self.turn = self.turn.wrapping_add(count);
    }

    /// The number of jobs that was in force at the middle one of all looks.
    fn usual_jobs(&self) -> Option<usize> {
        let all: u64 = self.jobs.iter().copied().map(u64::from).sum();
        let mut seen = 0;
        self.jobs.iter().position(|count| {
            seen += u64::from(*count);
            all > 0 && 2 * seen >= all
        })
    }
}

/// What the tuner wants to know.
fn reading(counts: &Counts) -> Reading {
    Reading {
        bytes: counts.bytes,
        items: counts.items,
        completions: counts.completions,
        in_use: counts.in_use(),
        throttled: counts.throttled,
        timed_out: counts.timed_out,
    }
}

/// What the thread is told of the ends.
struct Sides {
    /// Device numbers of local file systems.
    devs: Vec<u64>,
}

/// What both threads hold.
struct Shared {
    helm: Arc<Helm>,
    sides: Sides,
    started: Instant,
    pilot: Mutex<Pilot>,
    over: Mutex<bool>,
    told: Condvar,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn steer(&self) {
        loop {
            let over = lock(&self.over);
            let waited = self.told.wait_timeout_while(over, TICK, |over| !*over);
            let (over, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if *over {
                return;
            }
            drop(over);
            lock(&self.pilot).tick(self.started.elapsed(), &self.helm, &self.sides);
        }
    }

    fn end(&self) {
        *lock(&self.over) = true;
        self.told.notify_all();
    }
}

/// A run that is being steered.
pub(in super::super) struct Flight<'a> {
    course: Course<'a>,
    shared: Arc<Shared>,
}

impl<'a> Flight<'a> {
    /// Starts the thread. Where there are no threads left, nobody steers, and everything stays as
    /// it began.
    pub(super) fn begin(course: Course<'a>, pilot: Pilot) -> Flight<'a> {
        let devs = course.ends.0.iter().filter_map(|end| end.dev).collect();
        let shared = Arc::new(Shared {
            helm: Arc::clone(&course.helm),
            sides: Sides { devs },
            started: Instant::now(),
            pilot: Mutex::new(pilot),
            over: Mutex::new(false),
            told: Condvar::new(),
        });
        let other = Arc::clone(&shared);
        // Nobody waits for its end: a run that takes a millisecond is not to wait for a thread.
        let thread = std::thread::Builder::new().name("pilot".into()).stack_size(STACK_BYTES);
        let _ = thread.spawn(move || other.steer());
        Flight { course, shared }
    }

    /// Ends the steering and says what was found out. `whole`: the run was neither stopped nor
    /// given up, so that what was good for it is worth remembering.
    pub fn end(self, whole: bool) -> Findings {
        self.shared.end();
        let took = self.shared.started.elapsed();
        let helm = &self.shared.helm;
        let mut pilot = lock(&self.shared.pilot);
        let counts = helm.meter.counts();
        let path = match &pilot.tuner {
            Some(tuner) => tuner.path().to_vec(),
            None => vec![Step {
                at: Duration::ZERO,
                setting: Setting { jobs: helm.gate.jobs(), streams: helm.gate.streams() },
                rate: Some(goodput(&counts) / took.as_secs_f64().max(1e-9)),
            }],
        };
        let jobs = pilot.usual_jobs().unwrap_or(helm.gate.jobs());
        if let Some((setting, _)) = pilot.tuner.as_ref().filter(|_| whole).and_then(Tuner::best) {
            self.course.notes.remember(&self.course.ends, setting, &counts, took);
        }
        let verdict = (took >= JUDGED_MIN).then(|| {
            pilot.sample(took, counts, helm, &self.shared.sides);
            let watched = Watched {
                spec: self.course.spec,
                ends: &self.course.ends,
                helm,
                record: &pilot.record,
                ceilings: &pilot.ceilings,
                curve: pilot.tuner.as_ref().map(Tuner::curve).unwrap_or_default(),
                experiments: Vec::new(),
            };
            verdict::judge(&facts::facts(&watched))
        });
        Findings { jobs, path, verdict }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Content and the credit of entries, as the tuner counts it.
fn goodput(counts: &Counts) -> f64 {
    counts.bytes as f64 + counts.items as f64 * ENTRY_CREDIT_BYTES as f64
}
