//! Steady state (`steadystate`): a job ends where its rate over a window of time hardly changes any
//! more. Pure: values of seconds in, whether it is steady out.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyMetric {
    /// Blocks a second.
    Blocks,
    /// Bytes a second.
    Bytes,
    /// The mean of completion latency, nanoseconds.
    Latency,
}

impl SteadyMetric {
    /// fio's name of it.
    pub fn name(self) -> &'static str {
        match self {
            SteadyMetric::Blocks => "iops",
            SteadyMetric::Bytes => "bw",
            SteadyMetric::Latency => "lat",
        }
    }
}

/// Condition for a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyCriterion {
    pub of: SteadyMetric,
    /// The slope of a line through the rates; otherwise the one that is furthest from their mean.
    pub slope: bool,
    /// Less than this.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
}

/// Steady-state options of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// Condition of steadiness.
    pub criterion: SteadyCriterion,
    /// Seconds that it looks at (`steadystate_duration`).
    pub window_s: u32,
    /// Seconds that it waits before (`steadystate_ramp_time`).
    pub ramp_s: u32,
    /// Seconds from one value to the next (`steadystate_check_interval`).
    pub every_s: u32,
}

/// What is measured in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SteadySample {
    /// Blocks a second.
    pub blocks_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// The mean of completion latency, nanoseconds; 0 without a block.
    pub latency_ns: f64,
}

impl SteadySample {
    pub fn of(&self, measure: SteadyMetric) -> f64 {
        match measure {
            SteadyMetric::Blocks => self.blocks_per_s,
            SteadyMetric::Bytes => self.bytes_per_s,
            SteadyMetric::Latency => self.latency_ns,
        }
    }
}

/// Steadiness of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyResult {
    /// It became steady.
    pub attained: bool,
    /// The value last compared with the limit: a slope may be negative.
    pub value: f64,
    /// The mean of the rates of the window.
    pub mean: f64,
    /// The same as `value`, but never in percent.
    pub change: f64,
    /// The window so far, the oldest interval first.
    pub samples: Vec<SteadySample>,
}

impl SteadyState {
    /// Intervals that it looks at.
    pub fn window(&self) -> usize {
        (self.window_s / self.every_s.max(1)).max(2) as usize
    }
}

impl SteadyCriterion {
    /// The change of the rates, the value to compare with the limit, and the mean. `None` where the mean is 0 or not
    /// finite.
    fn value(&self, rates: &[f64]) -> Option<[f64; 3]> {
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let middle = (count - 1.0) / 2.0;
        let change = match self.slope {
            false => rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max),
            true => {
                let by = |at: usize, rate: f64| (at as f64 - middle) * (rate - mean);
                let over: f64 = rates.iter().enumerate().map(|(at, rate)| by(at, *rate)).sum();
                let under: f64 = (0..rates.len()).map(|at| (at as f64 - middle).powi(2)).sum();
                over / under
            }
        };
        let value = if self.percent { 100.0 * change / mean } else { change };
        (value.is_finite() && mean > 0.0).then_some([change, value, mean])
    }
}

/// A job that is watched.
#[derive(Clone, Debug)]
pub struct SteadyWatch {
    of: SteadyState,
    left_s: u32,
    samples: VecDeque<SteadySample>,
    found: SteadyResult,
}

impl SteadyWatch {
    /// Creates a watch without samples.
    pub fn new(of: SteadyState) -> SteadyWatch {
        SteadyWatch {
            of,
            left_s: of.ramp_s,
            samples: VecDeque::new(),
            found: SteadyResult::default(),
        }
    }

    /// Takes the values of another interval; whether it is steady now.
    pub fn add(&mut self, sample: SteadySample) -> bool {
        if self.left_s > 0 {
            self.left_s = self.left_s.saturating_sub(self.of.every_s.max(1));
            return false;
        }
        self.samples.push_back(sample);
        let window = self.of.window();
        if self.samples.len() < window {
            return false;
        }
        if self.samples.len() > window {
            self.samples.pop_front();
        }
        let criterion = self.of.criterion;
        let rates: Vec<f64> = self.samples.iter().map(|sample| sample.of(criterion.of)).collect();
        let Some([change, value, mean]) = criterion.value(&rates) else { return false };
        let attained = value.abs() < criterion.limit;
        self.found = SteadyResult { attained, value, mean, change, samples: Vec::new() };
        attained
    }

    /// Steadiness until now.
    pub fn found(&self) -> SteadyResult {
        SteadyResult { samples: self.samples.iter().copied().collect(), ..self.found.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(slope: bool, limit: f64, percent: bool) -> SteadyWatch {
        let criterion = SteadyCriterion { of: SteadyMetric::Blocks, slope, limit, percent };
        SteadyWatch::new(SteadyState { criterion, window_s: 4, ramp_s: 1, every_s: 1 })
    }

    fn after(watch: &mut SteadyWatch, rates: &[f64]) -> Option<usize> {
        let sample = |rate: &f64| SteadySample { blocks_per_s: *rate, ..SteadySample::default() };
        rates.iter().position(|rate| watch.add(sample(rate)))
    }

    #[test]
    fn a_window_without_change_is_steady() {
        // The first second does not count, and the window has to be full.
        let mut of = watch(false, 2.0, true);
        assert_eq!(after(&mut of, &[9.0, 100.0, 100.0, 101.0, 99.0]), Some(4));
        let found = of.found();
        assert!(found.attained && (found.value, found.mean, found.change) == (1.0, 100.0, 1.0));
        let kept: Vec<f64> = found.samples.iter().map(|sample| sample.blocks_per_s).collect();
        assert_eq!(kept, [100.0, 100.0, 101.0, 99.0]);
        let mut of = watch(false, 2.0, true);
        let rates = [9.0, 50.0, 100.0, 100.0, 101.0, 99.0];
        assert_eq!(after(&mut of, &rates), Some(5), "what is too old goes");
        let mut of = watch(false, 0.5, false);
        assert_eq!(after(&mut of, &[9.0, 100.0, 100.0, 101.0, 99.0, 100.0]), None);
        assert!(!of.found.attained && of.found.value == 1.0);
    }

    #[test]
    fn a_window_has_as_many_values_as_intervals() {
        let mut of = watch(false, 2.0, true);
        (of.of.window_s, of.of.ramp_s, of.of.every_s, of.left_s) = (30, 20, 10, 20);
        assert_eq!(after(&mut of, &[9.0, 9.0, 100.0, 100.0, 101.0, 5.0]), Some(4));
    }

    #[test]
    fn a_slope_is_not_noise() {
        let noisy = [0.0, 110.0, 90.0, 90.0, 110.0];
        assert_eq!(after(&mut watch(true, 1.0, true), &noisy), Some(4));
        assert_eq!(after(&mut watch(false, 1.0, true), &noisy), None);
        let rising = [0.0, 100.0, 104.0, 108.0, 112.0, 116.0];
        assert_eq!(after(&mut watch(true, 1.0, true), &rising), None);
        assert_eq!(after(&mut watch(true, 4.1, false), &rising), Some(4));
        let mut falling = watch(true, 4.1, false);
        assert_eq!(after(&mut falling, &[0.0, 116.0, 112.0, 108.0, 104.0]), Some(4));
        assert_eq!((falling.found().change, falling.found().attained), (-4.0, true));
        assert_eq!(after(&mut watch(true, 1.0, true), &[0.0; 9]), None, "nothing is not steady");
    }
}
