//! Runs jobs: a thread for each clone, all of which are ready before the first begins, group after
//! group. `clone` makes one ready and says what it measured, `drive` is its loop, `meter` what is
//! counted in it and when something is due, `pace` when a block may go.

mod clone;
mod demand;
mod drive;
mod failure;
mod logs;
mod meter;
mod pace;
mod peers;
mod verify;

#[cfg(test)]
mod tests;

use crate::job::{ExitWhat, Job, NameUse, report_group};
use crate::layout::{CloneFiles, Layout};
use crate::outcome::Outcome;
use clone::CloneTask;
pub use demand::check;
use meter::CloneCounters;
use peers::{Peers, StartGate, SteadyStates};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// Blocks and bytes that were read, and that were written, ramp time included.
    pub sides: [(u64, u64); 2],
    /// Clones at work.
    pub running: usize,
    /// Clones that have ended.
    pub done: usize,
}

/// Stack of a clone's thread, of which it touches a small part.
const STACK_BYTES: usize = 256 << 10;

/// Runs all jobs over the files that were laid out for them, and returns what each clone measured, in
/// the order of jobs and clones. Jobs that only lay their files out have no outcome, nor have those
/// that were not begun before `stop` was set; what had begun then ends with what it has. `watch` is
/// called from this thread about every `every` (never if that is zero) with a view of the run under way.
///
/// An error in a clone ends that clone and is reported in its outcome.
pub fn run(
    jobs: &[Job],
    layout: &Layout,
    stop: &AtomicBool,
    every: Duration,
    watch: &mut dyn FnMut(&RunView<'_>),
) -> Result<Vec<Outcome>, String> {
    // Not when the first clone looks at it: the first call takes its time.
    hakobu_sys::clock::Clock::best();
    let (begun, before, ended) = (Instant::now(), Progress::default(), Vec::new());
    let mut round = Round { begun, every, watch, before, ended, jobs, is_over: false };
    for group in groups(jobs) {
        if stop.load(Ordering::Relaxed) || round.is_over {
            break;
        }
        let runs = |clone: &&CloneFiles| {
            group.contains(&clone.job) && jobs.get(clone.job).is_some_and(|job| !job.create_only)
        };
        let clones = || layout.clones.iter().filter(runs);
        let peers = Peers::new(jobs, clones().map(|clone| clone.job));
        let tasks: Vec<CloneTask> = clones()
            .filter_map(|files| {
                let job = jobs.get(files.job)?;
                let nothing = job.engine.named() == NameUse::Nothing;
                let paths = files.files.iter().filter(|_| !nothing);
                let paths = paths.filter_map(|file| Some(layout.files.get(*file)?.path.as_path()));
                let (paths, counters, peers) = (paths.collect(), CloneCounters::default(), &peers);
                Some(CloneTask { job, files, paths, counters, stop, peers })
            })
            .collect();
        round.group(&tasks)?;
    }
    Ok(round.ended)
}

/// Jobs that run together: those from one `stonewall` to the next.
fn groups(jobs: &[Job]) -> Vec<std::ops::Range<usize>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if !job.stonewall => group.end = number + 1,
            _ => groups.push(number..number + 1),
        }
    }
    groups
}

/// The whole run, as reported to watchers.
struct Round<'a> {
    begun: Instant,
    every: Duration,
    watch: &'a mut dyn FnMut(&RunView<'_>),
    /// Work of earlier groups, and measurements of their clones.
    before: Progress,
    ended: Vec<Outcome>,
    jobs: &'a [Job],
    /// A job ended all others, also those that did not begin (`exit_what=all`).
    is_over: bool,
}

impl Round<'_> {
    /// Runs clones together to their ends and keeps their measurements.
    fn group(&mut self, tasks: &[CloneTask]) -> Result<(), String> {
        let gate = StartGate::default();
        let mut outcomes: Vec<Option<Outcome>> = tasks.iter().map(|_| None).collect();
        let mut states = SteadyStates::new(tasks);
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            for (number, task) in tasks.iter().enumerate() {
                let (tell, gate) = (tell.clone(), &gate);
                let name = format!("{}/{}", task.job.name, task.files.clone);
                // The kernel shows 15 bytes of it.
                let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
                let thread = builder.name(name.replace('\0', "")).spawn_scoped(scope, move || {
                    let outcome = task.run(gate);
                    let _ = tell.send((number, outcome));
                });
                if let Err(error) = thread {
                    gate.give_up();
                    return Err(format!(
                        "cannot start a thread for job '{}': {error}",
                        task.job.name
                    ));
                }
            }
            drop(tell);
            gate.open_for(tasks.len());
            self.collect(tasks, &told, &mut outcomes, &mut states);
            Ok(())
        })?;
        for outcome in outcomes.iter_mut().flatten() {
            outcome.steady = states.of(outcome.job);
        }
        self.ended.extend(outcomes.into_iter().flatten());
        self.before = self.progress(tasks, tasks.len());
        Ok(())
    }

    /// Takes outcomes as they come, and tells how far it is meanwhile.
    fn collect(
        &mut self,
        tasks: &[CloneTask],
        told: &mpsc::Receiver<(usize, Outcome)>,
        outcomes: &mut [Option<Outcome>],
        states: &mut SteadyStates,
    ) {
        let mut done = 0;
        let mut next = Instant::now() + self.every;
        while done < tasks.len() {
            states.look(tasks);
            let view = Some(next).filter(|_| !self.every.is_zero());
            let due = view.into_iter().chain(states.due()).min();
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            let wait = left.unwrap_or(Duration::from_secs(3600));
            match told.recv_timeout(wait) {
                Ok((number, outcome)) => {
                    self.end_others(tasks, &outcome);
                    if let Some(place) = outcomes.get_mut(number) {
                        *place = Some(outcome);
                    }
                    done += 1;
                }
                Err(RecvTimeoutError::Timeout) if view.is_none_or(|next| Instant::now() < next) => {
                }
                Err(RecvTimeoutError::Timeout) => {
                    let progress = self.progress(tasks, done);
                    let (ended, done) = (&self.ended[..], &*outcomes);
                    (self.watch)(&RunView { progress, tasks, ended, done });
                    next = (next + self.every).max(Instant::now());
                }
                // A thread that panicked; the scope reports it.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// A clone has ended, and others with it, if its job says so (`exitall`, `exit_what`, `exitall_on_error`).
    fn end_others(&mut self, tasks: &[CloneTask], outcome: &Outcome) {
        let Some(job) = self.jobs.get(outcome.job) else { return };
        let on_error = job.among.exit_on_error && outcome.error.is_some();
        let what = job.among.exit.or(on_error.then_some(ExitWhat::Group));
        let group = report_group(self.jobs, outcome.job);
        for task in tasks {
            let ends = match what {
                None => false,
                Some(ExitWhat::Group) => report_group(self.jobs, task.files.job) == group,
                Some(ExitWhat::Stonewall | ExitWhat::All) => true,
            };
            if ends {
                task.counters.end();
            }
        }
        self.is_over |= what == Some(ExitWhat::All);
    }

    fn progress(&self, tasks: &[CloneTask], done: usize) -> Progress {
        let mut sides = self.before.sides;
        for task in tasks {
            for (sum, (ios, bytes)) in sides.iter_mut().zip(task.counters.sides()) {
                *sum = (sum.0 + ios, sum.1 + bytes);
            }
        }
        let elapsed = self.begun.elapsed();
        Progress { elapsed, sides, running: tasks.len() - done, done: self.before.done + done }
    }
}

/// Time for clones to answer a request for their measurements: twice the time in which each
/// looks around, if no block of it takes longer.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks for answers.
const NAP: Duration = Duration::from_millis(2);

/// A run under way.
pub struct RunView<'a> {
    pub progress: Progress,
    tasks: &'a [CloneTask<'a>],
    /// Measurements of clones of earlier groups.
    pub(super) ended: &'a [Outcome],
    /// Measurements of those of this group that have ended.
    pub(super) done: &'a [Option<Outcome>],
}

impl RunView<'_> {
    /// Measurements so far of all clones that have begun, in the order of jobs and clones; logs are
    /// there when a clone has ended. Takes up to a tenth of a second; a clone that waits for a block
    /// all that time stands there as it was when it was asked before.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let at_work = || self.tasks.iter().zip(self.done).filter(|(_, done)| done.is_none());
        at_work().for_each(|(task, _)| task.counters.ask());
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && at_work().any(|(task, _)| task.counters.is_asked()) {
            std::thread::sleep(NAP);
        }
        let of_group = self.tasks.iter().zip(self.done).filter_map(|(task, done)| match done {
            Some(outcome) => Some(outcome.clone()),
            None => {
                let (job, clone) = (task.files.job, task.files.clone);
                let trims = task.job.trims;
                task.counters.told().map(|outcome| Outcome { job, clone, trims, ..outcome })
            }
        });
        self.ended.iter().cloned().chain(of_group).collect()
    }
}
