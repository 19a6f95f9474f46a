//! Clones that run together: the barrier before their start, who has ended (`wait_for`), how the work of a flow is shared
//! (`flow`), and jobs that end where they are steady (`steadystate`).

use super::clone::CloneTask;
use crate::job::{EngineKind, Job};
use crate::steady::{SteadyResult, SteadySample, SteadyWatch};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Closed at first.
#[derive(Debug, Default)]
pub(super) struct StartGate {
    state: Mutex<GateState>,
    /// Tells who opens it that the last one is ready. Thousands that wait are woken once only.
    all_ready: Condvar,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    ready: usize,
    /// So many are waited for.
    wanted: Option<usize>,
    /// Whether it is open; stays false if one of them could not be started.
    open: Option<bool>,
}

impl StartGate {
    /// Says that one more is ready and waits for the others. False if there is nothing to begin.
    pub(super) fn pass(&self) -> bool {
        let mut state = self.state.lock();
        state.ready += 1;
        if state.wanted.is_some_and(|wanted| state.ready >= wanted) {
            self.all_ready.notify_one();
        }
        loop {
            match state.open {
                Some(open) => return open,
                None => {
                    self.opened.wait(&mut state);
                }
            }
        }
    }

    /// Waits until this many are ready, and releases them.
    pub(super) fn open_for(&self, count: usize) {
        let mut state = self.state.lock();
        state.wanted = Some(count);
        while state.ready < count {
            self.all_ready.wait(&mut state);
        }
        state.open = Some(true);
        self.opened.notify_all();
    }

    /// Lets everybody go home.
    pub(super) fn give_up(&self) {
        self.state.lock().open = Some(false);
        self.opened.notify_all();
    }
}

/// The jobs of a group.
#[derive(Debug)]
pub(super) struct Peers {
    /// Clones of each job of the run that have not ended; none of jobs of other groups.
    left: Vec<AtomicUsize>,
    /// The job that each waits for.
    after: Vec<Option<usize>>,
    /// Jobs of the engine `cpuio`, for which no job waits.
    burns: Vec<bool>,
    flows: Vec<FlowCounters>,
}

/// Blocks and weights of the clones of a flow that are at work.
#[derive(Debug)]
struct FlowCounters {
    id: u32,
    blocks: AtomicU64,
    weights: AtomicU64,
}

impl Peers {
    /// Creates the counts for all jobs of a run; `clones` are the job numbers of the clones that run now.
    pub(super) fn new(jobs: &[Job], clones: impl Iterator<Item = usize>) -> Peers {
        let mut left: Vec<usize> = vec![0; jobs.len()];
        for job in clones {
            if let Some(count) = left.get_mut(job) {
                *count += 1;
            }
        }
        let after = |(number, job): (usize, &Job)| {
            let name = job.among.after.as_ref()?;
            jobs.iter().take(number).position(|other| other.name == *name)
        };
        let mut flows: Vec<FlowCounters> = Vec::new();
        for flow in jobs.iter().filter_map(|job| job.among.flow) {
            if !flows.iter().any(|known| known.id == flow.id) {
                let (blocks, weights) = (AtomicU64::new(0), AtomicU64::new(0));
                flows.push(FlowCounters { id: flow.id, blocks, weights });
            }
        }
        Peers {
            left: left.into_iter().map(AtomicUsize::new).collect(),
            after: jobs.iter().enumerate().map(after).collect(),
            burns: jobs.iter().map(|job| job.engine == EngineKind::CpuIo).collect(),
            flows,
        }
    }

    /// A clone of a job has ended.
    pub(super) fn end(&self, job: usize) {
        if let Some(left) = self.left.get(job) {
            left.fetch_sub(1, Ordering::Release);
        }
    }

    fn has_ended(&self, job: usize) -> bool {
        self.left.get(job).is_none_or(|left| left.load(Ordering::Acquire) == 0)
    }

    /// A job waits for another one that is still at work.
    pub(super) fn waits(&self, job: usize) -> bool {
        let after = self.after.get(job).copied().flatten();
        after.is_some_and(|other| !self.has_ended(other))
    }

    /// All jobs that do more than keep the CPU busy have ended.
    pub(super) fn work_has_ended(&self) -> bool {
        let burns = |job: usize| self.burns.get(job).copied().unwrap_or(false);
        (0..self.left.len()).all(|job| burns(job) || self.has_ended(job))
    }

    /// A place in the flow of a job; `None` for one that is in none.
    pub(super) fn seat(&self, job: &Job) -> Option<FlowSeat<'_>> {
        let own = job.among.flow?;
        let flow = self.flows.iter().find(|flow| flow.id == own.id)?;
        let weight = u64::from(own.weight);
        flow.weights.fetch_add(weight, Ordering::Relaxed);
        Some(FlowSeat { flow, weight, blocks: 0 })
    }
}

/// A clone in a flow.
#[derive(Debug)]
pub(super) struct FlowSeat<'a> {
    flow: &'a FlowCounters,
    weight: u64,
    blocks: u64,
}

impl FlowSeat<'_> {
    /// It has done more than its share: others come first. Never so for all at once, as their shares are one
    /// together.
    pub(super) fn is_ahead(&self) -> bool {
        let (all, weights) =
            (self.flow.blocks.load(Ordering::Relaxed), self.flow.weights.load(Ordering::Relaxed));
        u128::from(self.blocks) * u128::from(weights) > u128::from(all) * u128::from(self.weight)
    }

    /// One more block.
    pub(super) fn advance(&mut self) {
        self.blocks += 1;
        self.flow.blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended; the others share the remaining blocks.
    pub(super) fn leave(self) {
        self.flow.blocks.fetch_sub(self.blocks, Ordering::Relaxed);
        self.flow.weights.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

/// Unit of the time between two looks.
const SECOND: Duration = Duration::from_secs(1);

struct WatchedJob {
    job: usize,
    watch: SteadyWatch,
    /// Time between two looks.
    every: Duration,
    /// Blocks, bytes and nanoseconds of latency of its clones at the last look, and when that was.
    seen: [u64; 3],
    at: Instant,
    is_over: bool,
}

pub(super) struct SteadyStates(Vec<WatchedJob>);

impl SteadyStates {
    /// The jobs of a group that begins now.
    pub(super) fn new(tasks: &[CloneTask<'_>]) -> SteadyStates {
        let at = Instant::now();
        let mut states: Vec<WatchedJob> = Vec::new();
        for task in tasks {
            let job = task.files.job;
            let Some(steady) = task.job.steady else { continue };
            if !states.iter().any(|known| known.job == job) {
                let watch = SteadyWatch::new(steady);
                let (every, seen, is_over) = (SECOND * steady.every_s.max(1), [0; 3], false);
                states.push(WatchedJob { job, watch, every, seen, at, is_over });
            }
        }
        SteadyStates(states)
    }

    /// Time of the next look.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().filter(|state| !state.is_over).map(|state| state.at + state.every).min()
    }

    /// Looks at those that are due, and ends those that are steady.
    pub(super) fn look(&mut self, tasks: &[CloneTask<'_>]) {
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
                for (blocks, bytes) in task.counters.sides() {
                    sums[0] += blocks;
                    sums[1] += bytes;
                }
                sums[2] += task.counters.latency_ns();
            }
            let more = |at: usize| sums[at].saturating_sub(state.seen[at]) as f64;
            let sample = SteadySample {
                blocks_per_s: more(0) / took.as_secs_f64(),
                bytes_per_s: more(1) / took.as_secs_f64(),
                // Without a block there is no latency, and nothing steady.
                latency_ns: if more(0) > 0.0 { more(2) / more(0) } else { 0.0 },
            };
            (state.seen, state.at) = (sums, now);
            if state.watch.add(sample) {
                state.is_over = true;
                of_job().for_each(|task| task.counters.end());
            }
        }
    }

    /// Steadiness of a job; `None` where it was not asked for.
    pub(super) fn of(&self, job: usize) -> Option<SteadyResult> {
        self.0.iter().find(|state| state.job == job).map(|state| state.watch.found())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::job;
    use crate::job::{FlowShare, JobRelations};

    #[test]
    fn a_flow_is_shared_by_weight() {
        let of = |weight| {
            let flow = Some(FlowShare { weight, id: 3, sleep: Duration::ZERO });
            Job { among: JobRelations { flow, ..JobRelations::default() }, ..job("read") }
        };
        let jobs = [of(3), of(2), of(1), job("read")];
        let peers = Peers::new(&jobs, 0..4);
        assert!(peers.seat(&jobs[3]).is_none());
        let mut seats: Vec<FlowSeat<'_>> = jobs.iter().filter_map(|job| peers.seat(job)).collect();
        for round in 0..6000 {
            assert!(!seats.iter().all(FlowSeat::is_ahead), "nobody may go in round {round}");
            let at = (0..3).find(|at| !seats[*at].is_ahead()).unwrap();
            seats[at].advance();
        }
        for (seat, expected) in seats.iter().zip([3000, 2000, 1000u64]) {
            assert!(seat.blocks.abs_diff(expected) < 5, "{seats:?}");
        }
        // The last seat does not wait.
        let last = seats.pop().unwrap();
        seats.into_iter().for_each(FlowSeat::leave);
        assert!(!last.is_ahead());
    }

    #[test]
    fn jobs_wait_for_those_before() {
        let after = |name: &str| {
            let among = JobRelations { after: Some(name.to_owned()), ..JobRelations::default() };
            Job { name: "b".to_owned(), among, ..job("read") }
        };
        let jobs = [Job { name: "a".to_owned(), ..job("read") }, after("a")];
        let peers = Peers::new(&jobs, [0, 0, 1].into_iter());
        peers.end(0);
        assert!(peers.waits(1) && !peers.waits(0) && !peers.work_has_ended());
        peers.end(0);
        assert!(!peers.waits(1));
        peers.end(1);
        assert!(peers.work_has_ended());
        // One of an earlier group has ended.
        assert!(!Peers::new(&jobs, [1].into_iter()).waits(1));
    }
}
