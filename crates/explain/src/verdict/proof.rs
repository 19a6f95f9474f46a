//! `--prove`: experiments during the run. One resource at a time is changed and restored, in pairs of windows
//! with alternating order (A B, B A, …) to cancel drift. Pure: the caller supplies time and counters, and
//! applies the settings.

use crate::verdict::facts::View;
use crate::verdict::{Conclusion, Experiment, Facts, Resource};
use std::time::Duration;

/// Fewest and most pairs of windows per experiment.
const PAIRS_MIN: usize = 5;
const PAIRS_MAX: usize = 24;
/// A window ends when it has both, or at `WINDOW_MAX`.
const WINDOW_MIN: Duration = Duration::from_millis(200);
const COMPLETIONS_MIN: u64 = 16;
const WINDOW_MAX: Duration = Duration::from_secs(2);
/// Time after a change in which completions belong to the previous setting.
const SETTLE_MIN: Duration = Duration::from_millis(50);
const SETTLE_MAX: Duration = Duration::from_secs(1);
/// Half width at which an interval is narrow enough.
const TIGHT: f64 = 0.1;

/// Cumulative work done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Goodput so far: bytes with entry credits, as in the tuner.
    pub goodput: f64,
    /// Pieces of work finished.
    pub completions: u64,
}

/// Settings from now on. Everything not mentioned is as before the experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProofTrial {
    /// Original settings.
    Baseline,
    /// Number of allowed units.
    Jobs(usize),
    /// Number of usable CPUs (affinity).
    Cpus(usize),
    /// Factor on the user's rate limits.
    Limits(f64),
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    resource: Resource,
    factor: f64,
    trial: ProofTrial,
}

#[derive(Clone, Copy, Debug)]
enum ProofStage {
    Settling { since: Duration, completions: u64 },
    Measuring { since: Duration, from: Progress },
}

/// Plans experiments and evaluates them.
#[derive(Debug)]
pub struct Prover {
    candidates: Vec<Candidate>,
    jobs: usize,
    budget: Duration,
    began: Option<Duration>,
    /// End of the time for the current candidate.
    until: Duration,
    set: ProofTrial,
    stage: Option<ProofStage>,
    /// Rates of the current candidate: baseline and trial, in the order of [`Prover::side`].
    rates: Vec<f64>,
    results: Vec<Experiment>,
    over: bool,
}

impl Prover {
    /// Experiments on what `facts` leave undecided, cheapest first. `jobs` is the current number; all
    /// experiments together take at most `budget`.
    pub fn new(facts: &Facts, jobs: usize, budget: Duration) -> Prover {
        let mut candidates = candidates(facts, jobs);
        candidates.reverse();
        Prover {
            candidates,
            jobs,
            budget,
            began: None,
            until: Duration::ZERO,
            set: ProofTrial::Baseline,
            stage: None,
            rates: Vec::new(),
            results: Vec::new(),
            over: false,
        }
    }

    /// True if no experiment is left and all settings are restored.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Completed experiments.
    pub fn experiments(&self) -> &[Experiment] {
        &self.results
    }

    /// Call every few milliseconds with the time since the start of the run; returns new settings when they
    /// change.
    pub fn step(&mut self, now: Duration, progress: Progress) -> Option<ProofTrial> {
        if self.over {
            return None;
        }
        if self.began.is_none() {
            self.began = Some(now);
            self.begin(now);
            if self.over {
                return None;
            }
        }
        match self.stage {
            None => self.next_window(now, progress),
            Some(ProofStage::Settling { since, completions }) => {
                let took = now.saturating_sub(since);
                let done = progress.completions.saturating_sub(completions);
                if took >= SETTLE_MAX || took >= SETTLE_MIN && done >= self.jobs as u64 {
                    self.stage = Some(ProofStage::Measuring { since: now, from: progress });
                }
                None
            }
            Some(ProofStage::Measuring { since, from }) => {
                let took = now.saturating_sub(since);
                let done = progress.completions.saturating_sub(from.completions);
                if took < WINDOW_MIN || done < COMPLETIONS_MIN && took < WINDOW_MAX {
                    return None;
                }
                self.rates.push((progress.goodput - from.goodput) / took.as_secs_f64());
                self.conclude(now);
                self.next_window(now, progress)
            }
        }
    }

    /// Starts the next candidate, with an equal share of the remaining time.
    fn begin(&mut self, now: Duration) {
        self.rates.clear();
        let left = self.candidates.len() as u32;
        let end = self.began.unwrap_or(now) + self.budget;
        match end.checked_sub(now) {
            Some(rest) if left > 0 && !rest.is_zero() => self.until = now + rest / left,
            _ => self.candidates.clear(),
        }
        self.over = self.candidates.is_empty();
    }

    /// True if window `index` belongs to the trial: A B, B A, A B, …
    fn is_trial(index: usize) -> bool {
        matches!(index % 4, 1 | 2)
    }

    fn next_window(&mut self, now: Duration, progress: Progress) -> Option<ProofTrial> {
        let wanted = match self.candidates.last() {
            Some(candidate) if Self::is_trial(self.rates.len()) => candidate.trial,
            _ => ProofTrial::Baseline,
        };
        if self.stage.is_some() && wanted == self.set {
            self.stage = Some(ProofStage::Measuring { since: now, from: progress });
            return None;
        }
        let changes = wanted != self.set;
        self.set = wanted;
        self.stage = Some(ProofStage::Settling { since: now, completions: progress.completions });
        changes.then_some(wanted)
    }

    /// Ends the experiment if its pairs are conclusive, or its time is over.
    fn conclude(&mut self, now: Duration) {
        let Some(candidate) = self.candidates.last().copied() else { return };
        let late = now >= self.until;
        if !self.rates.len().is_multiple_of(2) && !late {
            return;
        }
        let found = elasticities(&self.rates, candidate.factor);
        let of = |confidence| {
            let elasticity = interval(&found, confidence)?;
            let (resource, factor) = (candidate.resource, candidate.factor);
            let (pairs, says) = (found.len(), Conclusion::of(elasticity));
            Some(Experiment { resource, factor, elasticity, pairs, says })
        };
        // Repeated testing finds effects by chance: an early end requires a higher confidence.
        let clear = of(PERCENT_99).is_some_and(|made| {
            let (_, low, high) = made.elasticity;
            made.says != Conclusion::Unclear || high - low <= 2.0 * TIGHT
        });
        if found.len() < PAIRS_MIN && !late || !clear && !late && found.len() < PAIRS_MAX {
            return;
        }
        if found.len() >= PAIRS_MIN {
            self.results.extend(of(PERCENT_95));
        }
        self.candidates.pop();
        self.begin(now);
    }
}

/// Possible trials, cheapest first.
fn candidates(facts: &Facts, jobs: usize) -> Vec<Candidate> {
    let v = View::new(facts);
    let mut found = Vec::new();
    let mut add = |resource, factor, trial| found.push(Candidate { resource, factor, trial });
    // More jobs if possible, else fewer, if units wait and CPUs are available.
    let more = (jobs + jobs.div_ceil(2)).min(facts.jobs_max);
    let other = if more as f64 >= 1.2 * jobs as f64 { more } else { jobs / 2 };
    if v.cpu_free() && jobs > 0 && other > 0 {
        add(Resource::Latency, other as f64 / jobs as f64, ProofTrial::Jobs(other));
    }
    if facts.limits.iter().any(|limit| limit.is_reached(0.9)) {
        add(Resource::UserLimit, 0.5, ProofTrial::Limits(0.5));
    }
    let cpus = v.allowed() as usize;
    let used = v.own_cpus().max(v.machine_cpus().unwrap_or(0.0));
    // A quota below the affinity would hide the loss of CPUs.
    let quota = facts.cpus < v.allowed() - 0.05;
    if cpus >= 2 && used >= 0.5 && !quota {
        add(Resource::Cpu, (cpus / 2) as f64 / cpus as f64, ProofTrial::Cpus(cpus / 2));
    }
    found
}

/// For each pair of windows: ln(ratio of goodputs) ÷ ln(factor).
fn elasticities(rates: &[f64], factor: f64) -> Vec<f64> {
    let pairs = rates.chunks_exact(2).enumerate();
    let ratios = pairs.filter_map(|(index, pair)| match *pair {
        [a, b] if a > 0.0 && b > 0.0 => {
            let (base, trial) = if index % 2 == 0 { (a, b) } else { (b, a) };
            Some((trial / base).ln() / factor.ln())
        }
        _ => None,
    });
    ratios.collect()
}

/// Student's t for degrees of freedom from 4 on, within a few percent and never too small: coefficients of 1, 1 ÷ freedom
/// and 1 ÷ freedom².
const PERCENT_95: [f64; 3] = [1.96, 2.5, 3.0];
const PERCENT_99: [f64; 3] = [2.576, 6.0, 10.0];

/// Mean with its t interval.
fn interval(values: &[f64], [one, linear, square]: [f64; 3]) -> Option<(f64, f64, f64)> {
    let count = values.len() as f64;
    let freedom = count - 1.0;
    if freedom < 1.0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom;
    let t = one + linear / freedom + square / freedom.powi(2);
    let half = t * (variance / count).sqrt();
    Some((mean, mean - half, mean + half))
}

#[cfg(test)]
mod tests;
