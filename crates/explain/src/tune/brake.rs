//! Reaction to refusals (503, 429) and time-outs, and ceilings that they leave.

/// Seconds without increases after the first refusals; each further time 1.5 times as long.
const FREEZE_S_MIN: f64 = 0.5;

/// Longest time without increases, seconds.
const FREEZE_S_MAX: f64 = 16.0;

/// Seconds without refusals after which the history is cleared.
const CALM_S: f64 = 30.0;

/// A single refusal among more completions than this is ignored.
const ACCIDENTS_PER_REFUSAL: u64 = 50;

/// Completions after which older counts are halved.
const MEMORY: u64 = 1000;

/// Seconds for which a ceiling is respected.
const CEILING_S: f64 = 20.0;

/// Shortest time in which refusals are attributed to work begun before braking, seconds.
const ECHO_S_MIN: f64 = 0.1;

/// State of the brake, see the module.
#[derive(Debug)]
pub(super) struct Brake {
    good: u64,
    bad: u64,
    deaf_until_s: f64,
    frozen_until_s: f64,
    freeze_s: f64,
    last_s: f64,
    ceiling: Option<(usize, f64)>,
}

impl Default for Brake {
    fn default() -> Brake {
        Brake {
            good: 0,
            bad: 0,
            deaf_until_s: 0.0,
            frozen_until_s: 0.0,
            freeze_s: FREEZE_S_MIN,
            last_s: 0.0,
            ceiling: None,
        }
    }
}

impl Brake {
    /// Decides from the latest counts whether to brake. While a higher number is tried (`probing`), a single
    /// refusal is enough.
    pub fn notices(&mut self, now_s: f64, completions: u64, refused: u64, probing: bool) -> bool {
        if now_s < self.deaf_until_s {
            return false;
        }
        self.good = self.good.saturating_add(completions);
        self.bad = self.bad.saturating_add(refused);
        if self.good > MEMORY {
            self.good /= 2;
            self.bad /= 2;
        }
        refused > 0 && (probing || self.bad.saturating_mul(ACCIDENTS_PER_REFUSAL) >= self.good)
    }

    /// Forbids increases for a while. Refusals within the next service time are attributed to earlier work.
    pub fn freeze(&mut self, now_s: f64, service_s: f64) {
        if now_s - self.last_s > CALM_S {
            self.freeze_s = FREEZE_S_MIN;
        }
        self.last_s = now_s;
        (self.good, self.bad) = (0, 0);
        self.deaf_until_s = now_s + (1.5 * service_s).clamp(ECHO_S_MIN, 2.0);
        self.frozen_until_s = now_s + self.freeze_s;
        self.freeze_s = (1.5 * self.freeze_s).min(FREEZE_S_MAX);
    }

    /// True while increases are forbidden.
    pub fn is_frozen(&self, now_s: f64) -> bool {
        now_s < self.frozen_until_s
    }

    /// Records a value that was refused or collapsed.
    pub fn remember(&mut self, now_s: f64, value: usize) {
        self.ceiling = Some((value, now_s + CEILING_S));
    }

    /// Smallest harmful value of the recent past.
    pub fn ceiling(&self, now_s: f64) -> Option<usize> {
        self.ceiling.filter(|(_, until_s)| now_s < *until_s).map(|(value, _)| value)
    }
}
