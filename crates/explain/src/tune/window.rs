//! Turns readings into windows (goodput, service time, and whether the limit was in use), and keeps their history.

use crate::tune::{TuningStep, WorkCounters};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Weight of an entry besides its content, bytes. Creating a small file takes about 25 µs of system calls on
/// local file systems, in which a core copies about as much: so both a tree of empty files and one large file
/// count as work.
pub const ENTRY_CREDIT_BYTES: u64 = 64 << 10;

/// Shortest window, seconds: five readings, and longer than a time slice of the scheduler.
pub(crate) const WINDOW_S_MIN: f64 = 0.05;

/// Longest window, seconds: content counts as it moves, so that a rate is visible before pieces finish.
const WINDOW_S_MAX: f64 = 4.0;

/// Fewest completions of a window; fewer are random.
const COMPLETIONS_MIN: u64 = 16;

/// Shortest wait after a change, seconds: workers need time to wake.
const SETTLE_S_MIN: f64 = 0.005;

/// Longest wait after a change, seconds.
const SETTLE_S_MAX: f64 = 2.0;

/// Share of the CPUs in use above which more jobs are not tried.
const CPU_FULL: f64 = 0.85;

/// Share that this process itself must use for that, if others use the rest: with less, its jobs mostly wait for
/// something else than a CPU.
const CPU_OWN: f64 = 0.5;

/// Increments since the previous reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Increments {
    /// Pieces of work finished.
    pub completions: u64,
    /// Refused requests and time-outs.
    pub refused: u64,
}

/// Measurement over an interval with one setting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Goodput: bytes and entry credits per second.
    pub rate: f64,
    /// Its parts: bytes and entries per second.
    pub bytes_per_s: f64,
    pub entries_per_s: f64,
    /// Pieces of work finished per second. Content counts as it moves, so goodput includes what units that have just begun
    /// move at once; this does not.
    pub done_per_s: f64,
    /// Share of the units' time that was spent waiting for answers.
    pub answering: f64,
    /// True if the limit was in use in most of its readings.
    pub used: bool,
    /// True if it spans two service times, so that the setting determined all of it.
    pub whole: bool,
    /// True if no CPU was left for more jobs.
    pub is_full: bool,
}

/// State of the gauge, see the module.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    last: Option<(Duration, WorkCounters)>,
    /// Service time in seconds by Little's law; 0 while unknown.
    service_s: f64,
    /// Start of the window: earlier completions belong to another setting.
    from: Duration,
    /// Setting of the current window.
    limit: Option<usize>,
    begun: bool,
    /// Seconds since the start of the window.
    pub elapsed_s: f64,
    bytes: u64,
    items: u64,
    cpu_s: f64,
    /// Idle time at the start of the window, and when it was read.
    idle_from: Option<(Duration, Duration)>,
    /// Pieces of work finished in the window.
    pub completions: u64,
    unit_s: f64,
    answer_unit_s: f64,
    readings: u64,
    used: u64,
}

/// Increment of a counter; 0 if it decreased, because it was reset.
fn since(new: u64, old: u64) -> u64 {
    new.saturating_sub(old)
}

impl Gauge {
    /// Opens a window with this setting, after one service time if the setting changed.
    pub fn open(&mut self, now: Duration, limit: usize, changed: bool) {
        let wait_s = if changed { self.service_s.clamp(SETTLE_S_MIN, SETTLE_S_MAX) } else { 0.0 };
        let last = self.last;
        let service_s = self.service_s;
        let idle_from = last.and_then(|(_, reading)| reading.idle);
        *self = Gauge { last, service_s, idle_from, limit: Some(limit), ..Gauge::default() };
        self.from = now + Duration::from_secs_f64(wait_s);
        self.begun = !changed;
    }

    /// Adds a reading.
    pub fn tick(&mut self, now: Duration, reading: &WorkCounters) -> Increments {
        self.idle_from = self.idle_from.or(reading.idle);
        let Some((then, old)) = self.last.replace((now, *reading)) else {
            return Increments::default();
        };
        let increments = Increments {
            completions: since(reading.completions, old.completions),
            refused: since(reading.throttled, old.throttled)
                .saturating_add(since(reading.timed_out, old.timed_out)),
        };
        if !self.begun {
            // The window starts with this reading.
            self.begun = now >= self.from;
            return increments;
        }
        let Some(limit) = self.limit else { return increments };
        let dt_s = now.saturating_sub(then).as_secs_f64();
        self.elapsed_s += dt_s;
        self.bytes = self.bytes.saturating_add(since(reading.bytes, old.bytes));
        self.items = self.items.saturating_add(since(reading.items, old.items));
        self.cpu_s += reading.cpu.saturating_sub(old.cpu).as_secs_f64();
        self.completions = self.completions.saturating_add(increments.completions);
        self.unit_s += reading.in_use as f64 * dt_s;
        self.answer_unit_s += reading.answering as f64 * dt_s;
        self.readings += 1;
        // Up to an eighth of the units may be between two pieces of work.
        self.used += u64::from(reading.in_use as f64 >= limit as f64 * 7.0 / 8.0);
        increments
    }

    /// Best known service time, seconds.
    pub fn service_s(&self) -> f64 {
        let known = self.service_s > 0.0 && self.completions < COMPLETIONS_MIN;
        if known || self.completions == 0 { self.service_s } else { self.live_service_s() }
    }

    fn live_service_s(&self) -> f64 {
        self.unit_s / self.completions.max(1) as f64
    }

    /// Shortest answer of a server, seconds; `None` if there is none.
    pub fn quickest_s(&self) -> Option<f64> {
        let quickest = self.last?.1.quickest?;
        (!quickest.is_zero()).then_some(quickest.as_secs_f64())
    }

    /// True if the window is complete: 50 ms, two service times and 16 completions.
    pub fn is_full(&self) -> bool {
        let wanted_s = (2.0 * self.service_s()).max(WINDOW_S_MIN);
        self.is_overdue() || self.elapsed_s >= wanted_s && self.completions >= COMPLETIONS_MIN
    }

    /// True if the window has its maximum length, at which its rate is used as it is.
    pub fn is_overdue(&self) -> bool {
        self.elapsed_s >= WINDOW_S_MAX
    }

    /// Seconds from a change to the end of its window.
    pub fn window_s(&self) -> f64 {
        let service_s = self.service_s();
        (service_s + 2.0 * service_s).clamp(WINDOW_S_MIN, SETTLE_S_MAX + WINDOW_S_MAX)
    }

    /// Share of the time since the start of the window in which the CPUs were idle; `None` if it was not read since.
    fn idle_share(&self) -> Option<f64> {
        let (from, idle_before) = self.idle_from?;
        let (at, idle) = self.last?.1.idle?;
        let span_s = at.saturating_sub(from).as_secs_f64();
        (span_s > 0.0).then(|| idle.saturating_sub(idle_before).as_secs_f64() / span_s)
    }

    /// True if the CPUs were used up, given the share that this process used.
    fn is_cpu_full(&self, own: f64) -> bool {
        let full = |used: f64| used >= CPU_FULL;
        full(own) || own >= CPU_OWN && self.idle_share().is_some_and(|idle| full(1.0 - idle))
    }

    /// Ends the window; [`Gauge::open`] starts the next one.
    pub fn close(&mut self) -> Window {
        if self.completions > 0 {
            self.service_s = self.live_service_s();
        }
        let a_second = |sum: f64| if self.elapsed_s > 0.0 { sum / self.elapsed_s } else { 0.0 };
        let goodput = self.bytes as f64 + self.items as f64 * ENTRY_CREDIT_BYTES as f64;
        Window {
            rate: a_second(goodput),
            bytes_per_s: a_second(self.bytes as f64),
            entries_per_s: a_second(self.items as f64),
            done_per_s: a_second(self.completions as f64),
            answering: if self.unit_s > 0.0 { self.answer_unit_s / self.unit_s } else { 0.0 },
            is_full: self.is_cpu_full(a_second(self.cpu_s)),
            used: 2 * self.used > self.readings,
            whole: self.elapsed_s >= 2.0 * self.service_s,
        }
    }
}

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
pub(crate) struct Trace {
    steps: Vec<TuningStep>,
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
        self.steps.push(TuningStep { at, jobs, ..TuningStep::default() });
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

    /// See [`crate::tune::Tuner::path`].
    pub fn steps(&self) -> &[TuningStep] {
        &self.steps
    }

    /// Mean of the middle half of the windows with this number of jobs.
    pub fn mean(&self, jobs: usize) -> Option<f64> {
        self.points.get(&jobs).map(robust)
    }

    /// See [`crate::tune::Tuner::curve`].
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
