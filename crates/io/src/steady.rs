//! Steady state (`steadystate`): a job ends where its rate over a window of time hardly changes any
//! more. Pure: values of seconds in, whether it is steady out.

use std::collections::VecDeque;

/// Metric that has to be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Blocks a second.
    Blocks,
    /// Bytes a second.
    Bytes,
    /// The mean of completion latency, nanoseconds.
    Latency,
}

impl Measure {
    /// fio's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Blocks => "iops",
            Measure::Bytes => "bw",
            Measure::Latency => "lat",
        }
    }
}

/// Condition for a steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// Metric.
    pub of: Measure,
    /// The slope of a line through the rates; otherwise the one that is furthest from their mean.
    pub slope: bool,
    /// Less than this.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
}

/// Steady-state options of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Condition of steadiness.
    pub criterion: Criterion,
    /// Seconds that it looks at (`steadystate_duration`).
    pub window_s: u32,
    /// Seconds that it waits before (`steadystate_ramp_time`).
    pub ramp_s: u32,
    /// Seconds from one value to the next (`steadystate_check_interval`).
    pub every_s: u32,
}

/// Steadiness of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// It became steady.
    pub attained: bool,
    /// The value last compared with the limit.
    pub value: f64,
    /// The mean of the rates of the window.
    pub mean: f64,
}

impl Criterion {
    /// The value to compare with the limit, and the mean. `None` where the mean is 0 or not finite.
    fn value(&self, rates: &VecDeque<f64>) -> Option<(f64, f64)> {
        let count = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / count;
        let middle = (count - 1.0) / 2.0;
        let value = match self.slope {
            false => rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max),
            true => {
                let by = |at: usize, rate: f64| (at as f64 - middle) * (rate - mean);
                let over: f64 = rates.iter().enumerate().map(|(at, rate)| by(at, *rate)).sum();
                let under: f64 = (0..rates.len()).map(|at| (at as f64 - middle).powi(2)).sum();
                (over / under).abs()
            }
        };
        let value = if self.percent { 100.0 * value / mean } else { value };
        (value.is_finite() && mean > 0.0).then_some((value, mean))
    }
}

/// A job that is watched.
#[derive(Clone, Debug)]
pub struct Watch {
    of: Steady,
    left_s: u32,
    rates: VecDeque<f64>,
    /// Steadiness until now.
    pub found: Steadiness,
}

impl Watch {
    /// Creates a watch without samples.
    pub fn new(of: Steady) -> Watch {
        Watch { of, left_s: of.ramp_s, rates: VecDeque::new(), found: Steadiness::default() }
    }

    /// Takes the value of another interval; whether it is steady now.
    pub fn add(&mut self, rate: f64) -> bool {
        let every_s = self.of.every_s.max(1);
        if self.left_s > 0 {
            self.left_s = self.left_s.saturating_sub(every_s);
            return false;
        }
        self.rates.push_back(rate);
        let window = (self.of.window_s / every_s).max(2) as usize;
        if self.rates.len() < window {
            return false;
        }
        if self.rates.len() > window {
            self.rates.pop_front();
        }
        let Some((value, mean)) = self.of.criterion.value(&self.rates) else { return false };
        let attained = value < self.of.criterion.limit;
        self.found = Steadiness { attained, value, mean };
        attained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(slope: bool, limit: f64, percent: bool) -> Watch {
        let criterion = Criterion { of: Measure::Blocks, slope, limit, percent };
        Watch::new(Steady { criterion, window_s: 4, ramp_s: 1, every_s: 1 })
    }

    fn after(watch: &mut Watch, rates: &[f64]) -> Option<usize> {
        rates.iter().position(|rate| watch.add(*rate))
    }

    #[test]
    fn a_window_without_change_is_steady() {
        // The first second does not count, and the window has to be full.
        let mut of = watch(false, 2.0, true);
        assert_eq!(after(&mut of, &[9.0, 100.0, 100.0, 101.0, 99.0]), Some(4));
        assert_eq!(of.found, Steadiness { attained: true, value: 1.0, mean: 100.0 });
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
        assert_eq!(after(&mut watch(true, 1.0, true), &[0.0; 9]), None, "nothing is not steady");
    }
}
