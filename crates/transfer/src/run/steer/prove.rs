//! The experiments of `--prove`: does what the plan of `verdict` says, one change at a time, and puts
//! everything back, whatever happens.

use crate::limit::{Helm, Limiter};
use crate::verdict::{Experiment, Facts, Progress, Prover, Trial};
use hakobu_sys::task;
use std::sync::Arc;
use std::time::Duration;

/// All experiments together take no longer.
const BUDGET: Duration = Duration::from_secs(12);

/// A run in its experiments. Dropping it puts back what is changed.
pub(super) struct Proof {
    prover: Prover,
    helm: Arc<Helm>,
    /// In force before and after.
    jobs: usize,
    bytes_per_s: Option<u64>,
    operations_per_s: Option<u64>,
    /// CPUs that every thread may use, by number.
    cpus: Vec<u32>,
    /// What is changed now.
    trial: Trial,
}

impl Proof {
    /// Begins: what is in force now is what everything is compared with.
    pub fn begin(facts: &Facts, helm: &Arc<Helm>, cpus: &[u32]) -> Proof {
        let jobs = helm.gate.jobs();
        Proof {
            prover: Prover::new(facts, jobs, BUDGET),
            helm: Arc::clone(helm),
            jobs,
            bytes_per_s: helm.bytes.as_deref().map(Limiter::per_s),
            operations_per_s: helm.operations.as_deref().map(Limiter::per_s),
            cpus: cpus.to_vec(),
            trial: Trial::Baseline,
        }
    }

    /// Goes on; whether there is more to come.
    pub fn tick(&mut self, now: Duration, progress: Progress) -> bool {
        if let Some(trial) = self.prover.step(now, progress) {
            self.restore();
            self.change(trial);
        }
        !self.prover.is_over()
    }

    /// What was found out so far.
    pub fn experiments(&self) -> &[Experiment] {
        self.prover.experiments()
    }

    fn change(&mut self, trial: Trial) {
        self.trial = trial;
        match trial {
            Trial::Baseline => {}
            Trial::Jobs(jobs) => self.helm.gate.set(jobs),
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
            Trial::Jobs(_) => self.helm.gate.set(self.jobs),
            Trial::Cpus(_) => bind(&self.cpus),
            Trial::Limits(_) => self.limit(self.bytes_per_s, self.operations_per_s),
        }
    }

    fn limit(&self, bytes_per_s: Option<u64>, operations_per_s: Option<u64>) {
        let pairs = [(&self.helm.bytes, bytes_per_s), (&self.helm.operations, operations_per_s)];
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

/// Lets all threads of this process use these CPUs only. Threads that are started while it goes on
/// inherit from the one that starts them, so a second look finds those, too.
fn bind(cpus: &[u32]) {
    if cpus.is_empty() {
        return;
    }
    for _ in 0..2 {
        for tid in task::own_threads() {
            // One that has ended meanwhile needs nothing.
            let _ = task::set_affinity(tid, cpus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::UserLimit;

    fn facts() -> Facts {
        let limit = UserLimit { option: "--bwlimit", limit: 1000.0, reached: 1000.0 };
        let mut facts = Facts { span_s: 5.0, cpus: 4.0, cpu_used: 0.1, ..Facts::default() };
        (facts.jobs_max, facts.limits) = (64, vec![limit]);
        facts.phases[crate::meter::Phase::Limit as usize] = 4.0;
        facts
    }

    fn helm() -> Arc<Helm> {
        Arc::new(Helm {
            gate: crate::limit::Gate::new(4, 64),
            bytes: Some(Arc::new(Limiter::new(1000))),
            ..Helm::fixed(64)
        })
    }

    #[test]
    fn one_thing_at_a_time_and_everything_back() {
        let helm = helm();
        let mut proof = Proof::begin(&facts(), &helm, &[]);
        let (mut jobs, mut rates) = (Vec::new(), Vec::new());
        let mut goodput = 0.0;
        for tick in 0..4000u64 {
            // The rate is what the limit makes it, whatever the jobs are.
            let per_s = helm.bytes.as_deref().map_or(0, Limiter::per_s);
            goodput += per_s as f64 / 100.0;
            let progress = Progress { goodput, completions: 20 * tick };
            if !proof.tick(Duration::from_millis(10 * tick), progress) {
                break;
            }
            if helm.gate.jobs() != 4 {
                jobs.push(helm.gate.jobs());
                assert_eq!(per_s, 1000, "only one thing is changed");
            }
            rates.push(per_s);
        }
        assert!(jobs.iter().all(|jobs| *jobs == 6) && !jobs.is_empty(), "{jobs:?}");
        assert!(rates.contains(&500) && rates.contains(&1000));
        let found = proof.experiments();
        assert!(
            found.iter().any(|made| made.resource == crate::verdict::Resource::UserLimit
                && made.elasticity.0 > 0.9)
        );
        assert_eq!((helm.gate.jobs(), helm.bytes.as_deref().map(Limiter::per_s)), (4, Some(1000)));
    }

    #[test]
    fn what_is_changed_when_it_ends_is_put_back() {
        let helm = helm();
        let mut proof = Proof::begin(&facts(), &helm, &[]);
        proof.change(Trial::Limits(0.5));
        assert_eq!(helm.bytes.as_deref().map(Limiter::per_s), Some(500));
        drop(proof);
        assert_eq!(helm.bytes.as_deref().map(Limiter::per_s), Some(1000));
        let mut proof = Proof::begin(&facts(), &helm, &[]);
        proof.change(Trial::Jobs(9));
        assert_eq!(helm.gate.jobs(), 9);
        drop(proof);
        assert_eq!(helm.gate.jobs(), 4);
    }

    #[test]
    fn threads_get_their_cpus_back() {
        // In a process of its own threads would be bound for others, too: the set is what it was.
        let all = task::affinity(0).unwrap();
        let helm = helm();
        let mut proof = Proof::begin(&facts(), &helm, &all);
        proof.change(Trial::Cpus(1));
        assert_eq!(task::affinity(0).unwrap(), all[..1]);
        drop(proof);
        assert_eq!(task::affinity(0).unwrap(), all);
    }
}
