//! Jobs that run together: who has ended (`wait_for`), and how the work of a flow is shared (`flow`).

use crate::{Engine, Job};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The jobs of a group.
#[derive(Debug)]
pub(super) struct Peers {
    /// Clones of each job of the run that have not ended; none of jobs of other groups.
    left: Vec<AtomicUsize>,
    /// The job that each waits for.
    after: Vec<Option<usize>>,
    /// Jobs of the engine `cpuio`, for which no job waits.
    burns: Vec<bool>,
    flows: Vec<Flow>,
}

/// Blocks and weights of the clones of a flow that are at work.
#[derive(Debug)]
struct Flow {
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
        let mut flows: Vec<Flow> = Vec::new();
        for flow in jobs.iter().filter_map(|job| job.among.flow) {
            if !flows.iter().any(|known| known.id == flow.id) {
                let (blocks, weights) = (AtomicU64::new(0), AtomicU64::new(0));
                flows.push(Flow { id: flow.id, blocks, weights });
            }
        }
        Peers {
            left: left.into_iter().map(AtomicUsize::new).collect(),
            after: jobs.iter().enumerate().map(after).collect(),
            burns: jobs.iter().map(|job| job.engine == Engine::CpuIo).collect(),
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
    pub(super) fn seat(&self, job: &Job) -> Option<Seat<'_>> {
        let own = job.among.flow?;
        let flow = self.flows.iter().find(|flow| flow.id == own.id)?;
        let weight = u64::from(own.weight);
        flow.weights.fetch_add(weight, Ordering::Relaxed);
        Some(Seat { flow, weight, blocks: 0 })
    }
}

/// A clone in a flow.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    flow: &'a Flow,
    weight: u64,
    blocks: u64,
}

impl Seat<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::job;
    use crate::job::{Among, Flow};
    use std::time::Duration;

    #[test]
    fn a_flow_is_shared_by_weight() {
        let of = |weight| {
            let flow = Some(Flow { weight, id: 3, sleep: Duration::ZERO });
            Job { among: Among { flow, ..Among::default() }, ..job("read") }
        };
        let jobs = [of(3), of(2), of(1), job("read")];
        let peers = Peers::new(&jobs, 0..4);
        assert!(peers.seat(&jobs[3]).is_none());
        let mut seats: Vec<Seat<'_>> = jobs.iter().filter_map(|job| peers.seat(job)).collect();
        for round in 0..6000 {
            assert!(!seats.iter().all(Seat::is_ahead), "nobody may go in round {round}");
            let at = (0..3).find(|at| !seats[*at].is_ahead()).unwrap();
            seats[at].advance();
        }
        for (seat, expected) in seats.iter().zip([3000, 2000, 1000u64]) {
            assert!(seat.blocks.abs_diff(expected) < 5, "{seats:?}");
        }
        // The last seat does not wait.
        let last = seats.pop().unwrap();
        seats.into_iter().for_each(Seat::leave);
        assert!(!last.is_ahead());
    }

    #[test]
    fn jobs_wait_for_those_before() {
        let after = |name: &str| {
            let among = Among { after: Some(name.to_owned()), ..Among::default() };
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
