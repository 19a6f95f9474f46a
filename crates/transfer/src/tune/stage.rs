//! What the tuner is at, and which value it tries next.

use super::ramp::Ramp;

/// Seconds from one probe to the next at first; each that changes nothing makes it longer.
pub(super) const PROBE_S_MIN: f64 = 0.5;

/// Seconds from one probe to the next at most.
const PROBE_S_MAX: f64 = 30.0;

/// How much longer.
const PROBE_GROWTH: f64 = 1.2;

/// Windows in a row that show another level than before.
const SHIFTS: u32 = 3;

/// A change of level is no noise beyond this (natural logarithm).
const SHIFT_LN_MIN: f64 = 0.25;

/// See the module.
#[derive(Debug)]
pub(super) enum Stage {
    /// Growing.
    Ramp(Ramp),
    /// Half a doubling up, as the best may lie between two doublings.
    Bracket,
    /// Going down as long as nothing is lost.
    Shrink(Shrink),
    /// Staying, with rare probes.
    Hold(Hold),
}

/// Going down: all candidates are compared with the best, never with the step before.
#[derive(Debug)]
pub(super) struct Shrink {
    /// The best.
    pub anchor: usize,
    /// The fewest that are as good, but for 3 %.
    pub fewest: usize,
    /// What they lack (natural logarithm, positive).
    pub deficit_ln: f64,
    /// What is known to bring less.
    pub below: usize,
    /// To be tried first.
    pub hint: Option<usize>,
    /// Nothing is known of smaller values: halves before quarters.
    pub halves: bool,
}

impl Shrink {
    /// What to try next; `None` at the end.
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

    /// A candidate was compared with the anchor.
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

/// Staying.
#[derive(Debug)]
pub(super) struct Hold {
    /// When to try something.
    pub probe_at_s: f64,
    /// Seconds to the probe after that.
    pub interval_s: f64,
    /// It goes up, not down.
    pub up: bool,
    /// What this setting lacks to the best (natural logarithm, positive).
    pub deficit_ln: f64,
    /// Probes that have to speak for a remembered seed before it is believed.
    pub unverified: u32,
    /// The level has fallen below half: try the half of it, not a quarter less.
    pub fallen: bool,
    level_ln: Option<f64>,
    shifts: u32,
}

impl Hold {
    /// Staying from now on.
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

    /// With a seed that is to be verified at once.
    pub fn verify(now_s: f64) -> Hold {
        Hold { unverified: 2, probe_at_s: now_s, ..Hold::new(now_s, 0.0) }
    }

    /// Nothing came of a probe: the other direction, later.
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

    /// Something came of it: the same direction again, soon.
    pub fn go_on(&mut self, now_s: f64) {
        self.interval_s = PROBE_S_MIN;
        self.probe_at_s = now_s;
    }

    /// A window with the setting held. Where the level has changed for good, what was found out
    /// before may be void: probes come often again.
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
