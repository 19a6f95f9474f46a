//! Jobs of a group that end where they are steady (`steadystate`): their rates, second by second.

use super::clone::Task;
use crate::steady::{Sample, Steadiness, Watch};
use std::time::{Duration, Instant};

/// Unit of the time between two looks.
const SECOND: Duration = Duration::from_secs(1);

/// A job that is watched.
struct State {
    job: usize,
    watch: Watch,
    /// Time between two looks.
    every: Duration,
    /// Blocks, bytes and nanoseconds of latency of its clones at the last look, and when that was.
    seen: [u64; 3],
    at: Instant,
    is_over: bool,
}

/// All of them.
pub(super) struct States(Vec<State>);

impl States {
    /// The jobs of a group that begins now.
    pub(super) fn new(tasks: &[Task<'_>]) -> States {
        let at = Instant::now();
        let mut states: Vec<State> = Vec::new();
        for task in tasks {
            let job = task.files.job;
            let Some(steady) = task.job.steady else { continue };
            if !states.iter().any(|known| known.job == job) {
                let watch = Watch::new(steady);
                let (every, seen, is_over) = (SECOND * steady.every_s.max(1), [0; 3], false);
                states.push(State { job, watch, every, seen, at, is_over });
            }
        }
        States(states)
    }

    /// Time of the next look.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().filter(|state| !state.is_over).map(|state| state.at + state.every).min()
    }

    /// Looks at those that are due, and ends those that are steady.
    pub(super) fn look(&mut self, tasks: &[Task<'_>]) {
        let now = Instant::now();
        for state in self.0.iter_mut().filter(|state| !state.is_over) {
            let took = now.saturating_duration_since(state.at);
            if took < state.every {
                continue;
            }
            let job = state.job;
            let of_job = || tasks.iter().filter(move |task| task.files.job == job);
            let mut sums = [0; 3];
            for task in of_job() {
                for (blocks, bytes) in task.lane.sides() {
                    sums[0] += blocks;
                    sums[1] += bytes;
                }
                sums[2] += task.lane.latency_ns();
            }
            let more = |at: usize| sums[at].saturating_sub(state.seen[at]) as f64;
            let sample = Sample {
                blocks_per_s: more(0) / took.as_secs_f64(),
                bytes_per_s: more(1) / took.as_secs_f64(),
                // Without a block there is no latency, and nothing steady.
                latency_ns: if more(0) > 0.0 { more(2) / more(0) } else { 0.0 },
            };
            (state.seen, state.at) = (sums, now);
            if state.watch.add(sample) {
                state.is_over = true;
                of_job().for_each(|task| task.lane.end());
            }
        }
    }

    /// Steadiness of a job; `None` where it was not asked for.
    pub(super) fn of(&self, job: usize) -> Option<Steadiness> {
        self.0.iter().find(|state| state.job == job).map(|state| state.watch.found())
    }
}
