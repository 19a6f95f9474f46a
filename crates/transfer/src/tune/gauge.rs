//! From readings to windows: goodput, service time, and whether the limit was really in use.

use super::Reading;
use std::time::Duration;

/// What an entry counts for besides its content, in bytes. Making a small file takes about 25 µs of
/// system calls on local file systems, in which a core copies about as much: so a tree of empty files
/// and one large file both show as work, and neither hides the other.
pub const ENTRY_CREDIT_BYTES: u64 = 64 << 10;

/// No window is shorter: five readings, and longer than a time slice of the scheduler.
pub(super) const WINDOW_S_MIN: f64 = 0.05;

/// No window is longer: content counts as it moves, so that a rate shows before pieces finish.
const WINDOW_S_MAX: f64 = 4.0;

/// Fewer completions than this are chance.
const COMPLETIONS_MIN: u64 = 16;

/// Workers need a moment to wake, however short a service is.
const SETTLE_S_MIN: f64 = 0.005;

/// Nothing is awaited longer than this after a change.
const SETTLE_S_MAX: f64 = 2.0;

/// What is new since the reading before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// Pieces of work finished.
    pub completions: u64,
    /// Requests that were refused or ran into a time-out.
    pub refused: u64,
}

/// What was measured between two moments with one setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Bytes and credits a second.
    pub rate: f64,
    /// As many units as allowed were under way in most of its readings.
    pub used: bool,
    /// It spans two service times, so that all of it was brought by this setting.
    pub whole: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    last: Option<(Duration, Reading)>,
    /// Seconds that a unit takes, by Little's law; 0 as long as nobody knows.
    service_s: f64,
    /// Not before: what comes in until then was begun with another setting.
    from: Duration,
    /// Of the window under way.
    limit: Option<usize>,
    begun: bool,
    elapsed_s: f64,
    goodput: f64,
    completions: u64,
    unit_s: f64,
    readings: u64,
    used: u64,
}

/// What came since; a counter that went back was reset and says nothing this once.
fn since(new: u64, old: u64) -> u64 {
    new.saturating_sub(old)
}

impl Gauge {
    /// Begins a window with this setting in force, after one service time where it is a new one.
    pub fn open(&mut self, now: Duration, limit: usize, changed: bool) {
        let wait_s = if changed { self.service_s.clamp(SETTLE_S_MIN, SETTLE_S_MAX) } else { 0.0 };
        let last = self.last;
        let service_s = self.service_s;
        *self = Gauge { last, service_s, limit: Some(limit), ..Gauge::default() };
        self.from = now + Duration::from_secs_f64(wait_s);
        self.begun = !changed;
    }

    /// Takes in a reading.
    pub fn tick(&mut self, now: Duration, reading: &Reading) -> News {
        let Some((then, old)) = self.last.replace((now, *reading)) else { return News::default() };
        let news = News {
            completions: since(reading.completions, old.completions),
            refused: since(reading.throttled, old.throttled)
                .saturating_add(since(reading.timed_out, old.timed_out)),
        };
        if !self.begun {
            // This reading is where the window starts from.
            self.begun = now >= self.from;
            return news;
        }
        let Some(limit) = self.limit else { return news };
        let dt_s = now.saturating_sub(then).as_secs_f64();
        self.elapsed_s += dt_s;
        let credit = since(reading.items, old.items) as f64 * ENTRY_CREDIT_BYTES as f64;
        self.goodput += since(reading.bytes, old.bytes) as f64 + credit;
        self.completions = self.completions.saturating_add(news.completions);
        self.unit_s += reading.in_use as f64 * dt_s;
        self.readings += 1;
        // An eighth may be between two pieces of work at the moment of looking.
        self.used += u64::from(reading.in_use as f64 >= limit as f64 * 7.0 / 8.0);
        news
    }

    /// Seconds that a unit takes; the best that is known so far.
    pub fn service_s(&self) -> f64 {
        let known = self.service_s > 0.0 && self.completions < COMPLETIONS_MIN;
        if known || self.completions == 0 { self.service_s } else { self.live_service_s() }
    }

    fn live_service_s(&self) -> f64 {
        self.unit_s / self.completions.max(1) as f64
    }

    /// Seconds since the window began.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    /// Pieces of work finished in the window.
    pub fn completions(&self) -> u64 {
        self.completions
    }

    /// The window is long enough: 50 ms, two service times and 16 completions.
    pub fn is_full(&self) -> bool {
        let wanted_s = (2.0 * self.service_s()).max(WINDOW_S_MIN);
        self.elapsed_s >= WINDOW_S_MAX
            || self.elapsed_s >= wanted_s && self.completions >= COMPLETIONS_MIN
    }

    /// It is so long that its rate is taken as it is.
    pub fn is_overdue(&self) -> bool {
        self.elapsed_s >= WINDOW_S_MAX
    }

    /// How long a window will take from a change to its end, in seconds.
    pub fn window_s(&self) -> f64 {
        let service_s = self.service_s();
        (service_s + 2.0 * service_s).clamp(WINDOW_S_MIN, SETTLE_S_MAX + WINDOW_S_MAX)
    }

    /// Ends the window; [`Gauge::open`] begins the next.
    pub fn close(&mut self) -> Window {
        if self.completions > 0 {
            self.service_s = self.live_service_s();
        }
        Window {
            rate: if self.elapsed_s > 0.0 { self.goodput / self.elapsed_s } else { 0.0 },
            used: 2 * self.used > self.readings,
            whole: self.elapsed_s >= 2.0 * self.service_s,
        }
    }
}
