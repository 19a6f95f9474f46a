//! Runs jobs: a thread for each clone, all of which are ready before the first begins, group after
//! group. `clone` makes one ready and says what it measured, `drive` is its loop, `meter` what is
//! counted in it and when something is due, `pace` when a block may go.

mod clone;
mod drive;
mod flight;
mod gate;
mod logs;
mod meter;
mod pace;
mod view;

#[cfg(test)]
mod tests;

use super::lay::Layout;
use super::outcome::Outcome;
use super::{Engine, Job};
use clone::Task;
use flight::Lane;
use gate::Gate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
pub use view::View;

/// How far a run is.
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
/// What goes wrong in a clone ends that clone, and is in its outcome.
///
/// # Errors
/// A thread could not be started.
pub fn run(
    jobs: &[Job],
    layout: &Layout,
    stop: &AtomicBool,
    every: Duration,
    watch: &mut dyn FnMut(&View<'_>),
) -> Result<Vec<Outcome>, String> {
    // Not when the first clone looks at it: the first call takes its time.
    hakobu_sys::clock::Clock::best();
    let (begun, before, ended) = (Instant::now(), Progress::default(), Vec::new());
    let mut round = Round { begun, every, watch, before, ended };
    for group in groups(jobs) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let clones = layout.clones.iter().filter(|clone| {
            group.contains(&clone.job) && jobs.get(clone.job).is_some_and(|job| !job.create_only)
        });
        let tasks: Vec<Task> = clones
            .filter_map(|files| {
                let job = jobs.get(files.job)?;
                let null = job.engine == Engine::Null;
                let paths = files.files.iter().filter(|_| !null);
                let paths = paths.filter_map(|file| Some(layout.files.get(*file)?.path.as_path()));
                Some(Task { job, files, paths: paths.collect(), lane: Lane::default(), stop })
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

/// The run as a whole, as it is told to who watches.
struct Round<'a> {
    begun: Instant,
    every: Duration,
    watch: &'a mut dyn FnMut(&View<'_>),
    /// What earlier groups did, and what their clones measured.
    before: Progress,
    ended: Vec<Outcome>,
}

impl Round<'_> {
    /// Runs clones together, to their ends, and keeps what they measured.
    fn group(&mut self, tasks: &[Task]) -> Result<(), String> {
        let gate = Gate::default();
        let mut outcomes: Vec<Option<Outcome>> = tasks.iter().map(|_| None).collect();
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
            self.collect(tasks, &told, &mut outcomes);
            Ok(())
        })?;
        self.ended.extend(outcomes.into_iter().flatten());
        self.before = self.progress(tasks, tasks.len());
        Ok(())
    }

    /// Takes outcomes as they come, and tells how far it is meanwhile.
    fn collect(
        &mut self,
        tasks: &[Task],
        told: &mpsc::Receiver<(usize, Outcome)>,
        outcomes: &mut [Option<Outcome>],
    ) {
        let mut done = 0;
        let mut next = Instant::now() + self.every;
        while done < tasks.len() {
            let wait = match self.every.is_zero() {
                true => Duration::from_secs(3600),
                false => next.saturating_duration_since(Instant::now()),
            };
            match told.recv_timeout(wait) {
                Ok((number, outcome)) => {
                    if let Some(place) = outcomes.get_mut(number) {
                        *place = Some(outcome);
                    }
                    done += 1;
                }
                Err(RecvTimeoutError::Timeout) if self.every.is_zero() => {}
                Err(RecvTimeoutError::Timeout) => {
                    let progress = self.progress(tasks, done);
                    let (ended, done) = (&self.ended[..], &*outcomes);
                    (self.watch)(&View { progress, tasks, ended, done });
                    next = (next + self.every).max(Instant::now());
                }
                // A thread that panicked; the scope tells of it.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn progress(&self, tasks: &[Task], done: usize) -> Progress {
        let mut sides = self.before.sides;
        for task in tasks {
            for (sum, (ios, bytes)) in sides.iter_mut().zip(task.lane.sides()) {
                *sum = (sum.0 + ios, sum.1 + bytes);
            }
        }
        let elapsed = self.begun.elapsed();
        Progress { elapsed, sides, running: tasks.len() - done, done: self.before.done + done }
    }
}
