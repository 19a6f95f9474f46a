//! The experiments of `--prove`: executes the plan of `verdict`, one change at a time, and restores everything in any
//! case.

use hakobu_core::limit::{Controls, Limiter};
use hakobu_explain::verdict::{Experiment, Facts, Progress, Prover, Trial};
use hakobu_sys::task;
use std::sync::Arc;
use std::time::Duration;

/// Maximum duration of all experiments together.
const BUDGET: Duration = Duration::from_secs(12);

/// Experiments in progress. Dropping it restores what was changed.
pub(super) struct Proof {
    prover: Prover,
    controls: Arc<Controls>,
    /// Number of jobs before and after.
    jobs: usize,
    bytes_per_s: Option<u64>,
    operations_per_s: Option<u64>,
    /// CPU numbers that every thread may use.
    cpus: Vec<u32>,
    /// The current change.
    trial: Trial,
}

impl Proof {
    /// Begins: the current settings are the baseline.
    pub fn begin(facts: &Facts, controls: &Arc<Controls>, cpus: &[u32]) -> Proof {
        let jobs = controls.gate.jobs();
        Proof {
            prover: Prover::new(facts, jobs, BUDGET),
            controls: Arc::clone(controls),
            jobs,
            bytes_per_s: controls.bytes.as_deref().map(Limiter::per_s),
            operations_per_s: controls.operations.as_deref().map(Limiter::per_s),
            cpus: cpus.to_vec(),
            trial: Trial::Baseline,
        }
    }

    /// Continues; returns whether more experiments follow.
    pub fn tick(&mut self, now: Duration, progress: Progress) -> bool {
        if let Some(trial) = self.prover.step(now, progress) {
            self.restore();
            self.change(trial);
        }
        !self.prover.is_over()
    }

    /// Returns the results so far.
    pub fn experiments(&self) -> &[Experiment] {
        self.prover.experiments()
    }

    fn change(&mut self, trial: Trial) {
        self.trial = trial;
        match trial {
            Trial::Baseline => {}
            Trial::Jobs(jobs) => self.controls.gate.set(jobs),
            Trial::Cpus(count) => bind(self.cpus.get(..count).unwrap_or_default()),
            Trial::Limits(factor) => {
                let scaled = |per_s: u64| (per_s as f64 * factor).max(1.0) as u64;
                self.limit(self.bytes_per_s.map(scaled), self.operations_per_s.map(scaled));
            }
        }
    }

    fn restore(&mut self) {
        match std::mem::replace(&mut self.trial, Trial::Baseline) {
            Trial::Baseline => {}
            Trial::Jobs(_) => self.controls.gate.set(self.jobs),
            Trial::Cpus(_) => bind(&self.cpus),
            Trial::Limits(_) => self.limit(self.bytes_per_s, self.operations_per_s),
        }
    }

    fn limit(&self, bytes_per_s: Option<u64>, operations_per_s: Option<u64>) {
        let pairs =
            [(&self.controls.bytes, bytes_per_s), (&self.controls.operations, operations_per_s)];
        for (limiter, per_s) in pairs {
            if let (Some(limiter), Some(per_s)) = (limiter, per_s) {
                limiter.set_per_s(per_s);
            }
        }
    }
}

impl Drop for Proof {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Restricts all threads of this process to these CPUs. New threads inherit from the one that starts them, so a
/// second pass finds those, too.
fn bind(cpus: &[u32]) {
    if cpus.is_empty() {
        return;
    }
    for _ in 0..2 {
        for tid in task::own_threads() {
            // A thread that has ended needs nothing.
            let _ = task::set_affinity(tid, cpus);
        }
    }
}

/// Held by tests that set or read the CPUs of threads: [`bind`] sets those of all.
#[cfg(test)]
pub(super) static AFFINITY: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_explain::verdict::UserLimit;

    fn facts() -> Facts {
        let limit = UserLimit { option: "--bwlimit", limit: 1000.0, reached: 1000.0 };
        let mut facts = Facts { span_s: 5.0, cpus: 4.0, cpu_used: 0.1, ..Facts::default() };
        (facts.jobs_max, facts.limits) = (64, vec![limit]);
        facts.phases[hakobu_core::meter::Phase::Limit as usize] = 4.0;
        facts
    }

    fn controls() -> Arc<Controls> {
        Arc::new(Controls {
            gate: hakobu_core::limit::Gate::new(4, 64),
            bytes: Some(Arc::new(Limiter::new(1000))),
            ..Controls::fixed(64)
        })
    }

    #[test]
    fn one_thing_at_a_time_and_everything_back() {
        let controls = controls();
        let mut proof = Proof::begin(&facts(), &controls, &[]);
        let (mut jobs, mut rates) = (Vec::new(), Vec::new());
        let mut goodput = 0.0;
        for tick in 0..4000u64 {
            // The limit determines the rate, whatever the jobs are.
            let per_s = controls.bytes.as_deref().map_or(0, Limiter::per_s);
            goodput += per_s as f64 / 100.0;
            let progress = Progress { goodput, completions: 20 * tick };
            if !proof.tick(Duration::from_millis(10 * tick), progress) {
                break;
            }
            if controls.gate.jobs() != 4 {
                jobs.push(controls.gate.jobs());
                assert_eq!(per_s, 1000, "only one thing is changed");
            }
            rates.push(per_s);
        }
        assert!(jobs.iter().all(|jobs| *jobs == 6) && !jobs.is_empty(), "{jobs:?}");
        assert!(rates.contains(&500) && rates.contains(&1000));
        let found = proof.experiments();
        assert!(
            found.iter().any(|made| made.resource == hakobu_explain::verdict::Resource::UserLimit
                && made.elasticity.0 > 0.9)
        );
        assert_eq!(
            (controls.gate.jobs(), controls.bytes.as_deref().map(Limiter::per_s)),
            (4, Some(1000))
        );
    }

    #[test]
    fn changes_are_restored_at_the_end() {
        let controls = controls();
        let mut proof = Proof::begin(&facts(), &controls, &[]);
        proof.change(Trial::Limits(0.5));
        assert_eq!(controls.bytes.as_deref().map(Limiter::per_s), Some(500));
        drop(proof);
        assert_eq!(controls.bytes.as_deref().map(Limiter::per_s), Some(1000));
        let mut proof = Proof::begin(&facts(), &controls, &[]);
        proof.change(Trial::Jobs(9));
        assert_eq!(controls.gate.jobs(), 9);
        drop(proof);
        assert_eq!(controls.gate.jobs(), 4);
    }

    #[test]
    fn threads_get_their_cpus_back() {
        let _alone = AFFINITY.lock();
        // The process runs other tests, too: check that the set is restored.
        let all = task::affinity(0).unwrap();
        let controls = controls();
        let mut proof = Proof::begin(&facts(), &controls, &all);
        proof.change(Trial::Cpus(1));
        assert_eq!(task::affinity(0).unwrap(), all[..1]);
        drop(proof);
        assert_eq!(task::affinity(0).unwrap(), all);
    }
}
