//! A server that asks to slow down, and values that are known to do harm.

/// Seconds without upward moves after the first refusals; half as much longer each time.
const FREEZE_S_MIN: f64 = 0.5;

/// At most.
const FREEZE_S_MAX: f64 = 16.0;

/// Seconds without refusals after which they are forgotten.
const CALM_S: f64 = 30.0;

/// One refusal among more completions than this is an accident.
const ACCIDENTS_PER_REFUSAL: u64 = 50;

/// Completions after which older ones count half.
const MEMORY: u64 = 1000;

/// Seconds that a ceiling is respected.
const CEILING_S: f64 = 20.0;

/// Seconds in which refusals belong to what was begun before braking.
const ECHO_S_MIN: f64 = 0.1;

/// See the module.
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
    /// What came since the last reading: whether to brake. While more is being tried
    /// (`probing`), a single refusal is enough.
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

    /// It brakes: nothing goes up for a while. Refusals of the next service time are echoes.
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

    /// Nothing may go up now.
    pub fn is_frozen(&self, now_s: f64) -> bool {
        now_s < self.frozen_until_s
    }

    /// This value did harm.
    pub fn remember(&mut self, now_s: f64, value: usize) {
        self.ceiling = Some((value, now_s + CEILING_S));
    }

    /// The value that did harm not long ago.
    pub fn ceiling(&self, now_s: f64) -> Option<usize> {
        self.ceiling.filter(|(_, until_s)| now_s < *until_s).map(|(value, _)| value)
    }
}
