//! History of the tuner: numbers of jobs with their goodput.

use super::Step;
use super::gauge::Window;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most steps kept.
const STEPS_MAX: usize = 500;

/// Newest steps that are never thinned out.
const STEPS_NEW: usize = 100;

/// Newest windows kept per number of jobs.
const WINDOWS_MAX: usize = 32;

/// Most numbers of jobs with windows.
const POINTS_MAX: usize = 256;

/// History, see the module.
#[derive(Debug, Default)]
pub(super) struct Trace {
    steps: Vec<Step>,
    /// Windows in the last step's mean.
    windows: u32,
    points: BTreeMap<usize, VecDeque<f64>>,
}

impl Trace {
    /// Records a new number of jobs.
    pub fn set(&mut self, at: Duration, jobs: usize) {
        if self.steps.last().is_some_and(|last| last.jobs == jobs) {
            return;
        }
        if self.steps.len() >= STEPS_MAX {
            let old = self.steps.len() - STEPS_NEW;
            let mut index = 0;
            self.steps.retain(|_| {
                index += 1;
                index > old || index % 2 == 1
            });
        }
        self.steps.push(Step { at, jobs, ..Step::default() });
        self.windows = 0;
    }

    /// Adds a window to the last step.
    pub fn window(&mut self, window: &Window) {
        if let Some(last) = self.steps.last_mut() {
            self.windows += 1;
            let windows = f64::from(self.windows);
            let add = |mean: &mut Option<f64>, value: f64| {
                let old = mean.unwrap_or(0.0);
                *mean = Some(old + (value - old) / windows);
            };
            add(&mut last.rate, window.rate);
            add(&mut last.bytes_per_s, window.bytes_per_s);
            add(&mut last.entries_per_s, window.entries_per_s);
        }
    }

    /// Adds a window with this number of jobs in use.
    pub fn point(&mut self, jobs: usize, rate: f64) {
        if self.points.len() >= POINTS_MAX && !self.points.contains_key(&jobs) {
            let least = self.points.iter().min_by_key(|(_, rates)| rates.len());
            if let Some(least) = least.map(|(jobs, _)| *jobs) {
                self.points.remove(&least);
            }
        }
        let rates = self.points.entry(jobs).or_default();
        if rates.len() >= WINDOWS_MAX {
            rates.pop_front();
        }
        rates.push_back(rate);
    }

    /// See [`super::Tuner::path`].
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Mean of the middle half of the windows with this number of jobs.
    pub fn mean(&self, jobs: usize) -> Option<f64> {
        self.points.get(&jobs).map(robust)
    }

    /// See [`super::Tuner::curve`].
    pub fn curve(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|(jobs, rates)| (*jobs as f64, robust(rates))).collect()
    }
}

/// Mean without the lowest and the highest quarter.
fn robust(rates: &VecDeque<f64>) -> f64 {
    let mut sorted: Vec<f64> = rates.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let off = sorted.len() / 4;
    let middle = sorted.get(off..sorted.len() - off).unwrap_or_default();
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_stays_short_and_keeps_its_ends() {
        let mut trace = Trace::default();
        for index in 0..5000_u64 {
            trace.set(Duration::from_millis(index), 1 + index as usize % 2);
            for rate in [2.0, 4.0] {
                let (bytes_per_s, entries_per_s) = (rate / 2.0, rate / 4.0);
                trace.window(&Window { rate, bytes_per_s, entries_per_s, ..Window::default() });
            }
        }
        let steps = trace.steps();
        assert!((250..=STEPS_MAX).contains(&steps.len()), "{}", steps.len());
        assert_eq!(steps.first().unwrap().at, Duration::ZERO);
        assert_eq!(steps.last().unwrap().at, Duration::from_millis(4999));
        let last = steps.last().unwrap();
        let rates = (last.rate, last.bytes_per_s, last.entries_per_s);
        assert_eq!(rates, (Some(3.0), Some(1.5), Some(0.75)));
        assert!(steps.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    #[test]
    fn the_curve_leaves_out_what_stands_out() {
        let mut trace = Trace::default();
        for rate in [0.0, 10.0, 11.0, 9.0, 10.0, 1000.0, 10.0, 10.0] {
            trace.point(4, rate);
        }
        for jobs in 0..1000 {
            trace.point(jobs, 1.0);
        }
        assert!(trace.curve().len() <= POINTS_MAX);
        let mean = trace.mean(4).unwrap();
        assert!((9.0..=10.5).contains(&mean), "{mean}");
    }
}
