//! Stages of the tuner, and the next value to try.

use super::ramp::Ramp;

/// First interval between probes, seconds; it grows with each probe without effect.
pub(super) const PROBE_S_MIN: f64 = 0.5;

/// Longest interval between probes, seconds.
const PROBE_S_MAX: f64 = 30.0;

/// Growth of the interval per probe without effect.
const PROBE_GROWTH: f64 = 1.2;

/// Consecutive windows that indicate a change of level.
const SHIFTS: u32 = 3;

/// Smallest change of level beyond noise (natural logarithm).
const SHIFT_LN_MIN: f64 = 0.25;

/// Stage of the search, see the module.
#[derive(Debug)]
pub(super) enum Stage {
    /// Growing.
    Ramp(Ramp),
    /// Half a doubling up: the best may lie between two doublings.
    Bracket,
    /// Decreasing without loss.
    Shrink(Shrink),
    /// Holding, with rare probes.
    Hold(Hold),
}

/// Decrease: every candidate is compared with the best, not with the previous step.
#[derive(Debug)]
pub(super) struct Shrink {
    /// The best value.
    pub anchor: usize,
    /// Fewest units within 3 % of the best.
    pub fewest: usize,
    /// Their deficit (natural logarithm, positive).
    pub deficit_ln: f64,
    /// Largest value known to be worse.
    pub below: usize,
    /// Candidate to try first.
    pub hint: Option<usize>,
    /// True if nothing is known about smaller values: halves before quarters.
    pub halves: bool,
}

impl Shrink {
    /// From a number at which most units wait in a queue.
    pub fn of_queue(jobs: usize, hint: usize) -> Shrink {
        let (anchor, fewest) = (jobs, jobs);
        Shrink { anchor, fewest, deficit_ln: 0.0, below: 0, hint: Some(hint), halves: true }
    }

    /// Next value to try; `None` at the end.
    pub fn next(&mut self) -> Option<usize> {
        let fits = |value: usize, this: &Shrink| value > this.below && value < this.fewest;
        if let Some(hint) = self.hint
            && fits(hint, self)
        {
            return Some(hint);
        }
        let half = self.fewest / 2;
        if self.halves && fits(half, self) {
            return Some(half);
        }
        let quarter = quarter_less(self.fewest);
        fits(quarter, self).then_some(quarter)
    }

    /// Records the comparison of a candidate with the anchor.
    pub fn tried(&mut self, value: usize, taken: bool, ratio_ln: f64) {
        if self.hint.take().is_none() && !taken {
            self.halves = false;
        }
        if !taken {
            self.below = self.below.max(value);
            return;
        }
        self.fewest = value;
        self.deficit_ln = (-ratio_ln).max(0.0);
        if ratio_ln > 0.03 {
            self.anchor = value;
            self.deficit_ln = 0.0;
        }
    }
}

/// A quarter less, at least 1.
pub(super) fn quarter_less(value: usize) -> usize {
    (value * 3 / 4).max(1)
}

/// Half as much again.
pub(super) fn half_more(value: usize) -> usize {
    value.saturating_add(value.div_ceil(2))
}

/// State of the hold stage.
#[derive(Debug)]
pub(super) struct Hold {
    /// Time of the next probe, seconds.
    pub probe_at_s: f64,
    /// Seconds between that probe and the next.
    pub interval_s: f64,
    /// True if the next probe goes up.
    pub up: bool,
    /// Deficit of this setting to the best (natural logarithm, positive).
    pub deficit_ln: f64,
    /// Probes left that have to confirm a remembered seed.
    pub unverified: u32,
    /// True if the level fell below half: the next probe halves.
    pub fallen: bool,
    level_ln: Option<f64>,
    shifts: u32,
}

impl Hold {
    /// Starts to hold.
    pub fn new(now_s: f64, deficit_ln: f64) -> Hold {
        Hold {
            probe_at_s: now_s + PROBE_S_MIN,
            interval_s: PROBE_S_MIN,
            up: true,
            deficit_ln,
            unverified: 0,
            fallen: false,
            level_ln: None,
            shifts: 0,
        }
    }

    /// Holds a seed that has to be verified at once.
    pub fn verify(now_s: f64) -> Hold {
        Hold { unverified: 2, probe_at_s: now_s, ..Hold::new(now_s, 0.0) }
    }

    /// After a probe without effect: the other direction, later.
    pub fn back_off(&mut self, now_s: f64) {
        self.up = !self.up;
        self.unverified = self.unverified.saturating_sub(1);
        if self.unverified > 0 {
            self.probe_at_s = now_s;
            return;
        }
        self.probe_at_s = now_s + self.interval_s;
        self.interval_s = (self.interval_s * PROBE_GROWTH).min(PROBE_S_MAX);
    }

    /// After a successful probe: the same direction again, soon.
    pub fn go_on(&mut self, now_s: f64) {
        self.interval_s = PROBE_S_MIN;
        self.probe_at_s = now_s;
    }

    /// Watches the level of windows with the held setting. After a permanent change earlier results may be
    /// void: probes become frequent.
    pub fn watch(&mut self, now_s: f64, rate_ln: f64, deviation: f64) {
        let Some(level) = self.level_ln else {
            self.level_ln = Some(rate_ln);
            return;
        };
        if (rate_ln - level).abs() <= SHIFT_LN_MIN.max(3.0 * deviation) {
            self.level_ln = Some(level + 0.1 * (rate_ln - level));
            self.shifts = 0;
            return;
        }
        self.shifts += 1;
        if self.shifts < SHIFTS {
            return;
        }
        self.fallen = rate_ln < level - std::f64::consts::LN_2;
        self.up = rate_ln > level;
        self.level_ln = None;
        self.shifts = 0;
        self.go_on(now_s);
    }
}
