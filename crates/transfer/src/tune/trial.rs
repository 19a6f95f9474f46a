//! Two settings compared as A/B/A/B/A …, until it is clear which side of a threshold their ratio is
//! on, or time is up. What drifts while the trial goes on is in both windows around each B as well,
//! and cancels out.

/// Natural logarithms of ratios beyond this are taken for this: one stall is not ten proofs.
const RATIO_LN_MAX: f64 = 0.7;

/// Where the windows before and after differ by more than this (natural logarithm), something else
/// changed in between, and the pair tells nothing.
const DRIFT_LN_MAX: f64 = 0.5;

/// How many standard errors make a decision before time is up.
const SURE: f64 = 1.6;

/// How many standard errors above the threshold more units have to be when time is up: noise that
/// lifts them step by step on a plateau is to be held off.
const UP_DOUBT: f64 = 1.0;

/// Pairs of windows that are enough whatever they say.
const PAIRS_MAX: usize = 24;

/// Windows that do not count before a trial is given up.
const MISSES_MAX: u32 = 3;

/// What the noise of rates is taken for before it is known: 10 %.
const NOISE_LN: f64 = 0.1;

/// How much the ratio of one pair scatters, learned on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    variance: f64,
    weight: f64,
}

impl Default for Noise {
    fn default() -> Noise {
        Noise { variance: NOISE_LN * NOISE_LN, weight: 3.0 }
    }
}

impl Noise {
    /// Two windows with the same setting, one after the other. B against the mean of two A has
    /// three quarters of the variance of their difference.
    pub fn learn(&mut self, before_ln: f64, after_ln: f64) {
        let difference = (after_ln - before_ln).clamp(-RATIO_LN_MAX, RATIO_LN_MAX);
        let sample = 0.75 * difference * difference;
        self.variance = (self.variance * self.weight + sample) / (self.weight + 1.0);
        // The last forty or so count.
        self.weight = (self.weight + 1.0).min(40.0);
    }

    /// Standard deviation, natural logarithm.
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt().max(0.005)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Trial {
    /// What is in force, before and after.
    pub a: usize,
    /// What is tried.
    pub b: usize,
    /// B is taken where the logarithm of its rate to that of A is above this.
    pub threshold_ln: f64,
    /// When it must have ended, seconds since the start of the run.
    pub until_s: f64,
    /// The window under way is one of B.
    pub on_b: bool,
    before_ln: f64,
    b_ln: f64,
    ratios_ln: Vec<f64>,
    misses: u32,
}

/// What a trial says after a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The next window is to be with the other setting.
    Swap,
    /// The same once more.
    Again,
    /// B is taken or not; the logarithm of its rate to that of A.
    Decided(bool, f64),
    /// Work did not wait, so that nothing can be said.
    GivenUp,
}

impl Trial {
    /// Begins with a window of B; `before_ln` is the rate of the window of A that just ended.
    pub fn new(a: usize, b: usize, threshold_ln: f64, until_s: f64, before_ln: f64) -> Trial {
        let (b_ln, ratios_ln) = (before_ln, Vec::new());
        Trial { a, b, threshold_ln, until_s, on_b: true, before_ln, b_ln, ratios_ln, misses: 0 }
    }

    /// What is to be in force now.
    pub fn value(&self) -> usize {
        if self.on_b { self.b } else { self.a }
    }

    /// A window did not count.
    pub fn missed(&mut self) -> Outcome {
        self.misses += 1;
        if self.misses < MISSES_MAX { Outcome::Again } else { Outcome::GivenUp }
    }

    /// A window that counts has ended, with this logarithm of its rate.
    pub fn window(&mut self, now_s: f64, rate_ln: f64, noise: &Noise) -> Outcome {
        if self.on_b {
            self.b_ln = rate_ln;
            self.on_b = false;
            return Outcome::Swap;
        }
        let (before_ln, after_ln) = (self.before_ln, rate_ln);
        self.before_ln = after_ln;
        self.on_b = true;
        let deviation = noise.deviation();
        if (after_ln - before_ln).abs() > DRIFT_LN_MAX.max(4.0 * deviation) {
            self.misses += 1;
            return if self.misses < MISSES_MAX { Outcome::Swap } else { Outcome::GivenUp };
        }
        let ratio = self.b_ln - (before_ln + after_ln) / 2.0;
        self.ratios_ln.push(ratio.clamp(-RATIO_LN_MAX, RATIO_LN_MAX));
        let count = self.ratios_ln.len() as f64;
        let mean = self.ratios_ln.iter().sum::<f64>() / count;
        // What was known of the noise counts as three pairs.
        let scatter: f64 = self.ratios_ln.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let variance = (3.0 * deviation * deviation + scatter) / (3.0 + count - 1.0);
        let error = (variance / count).sqrt();
        let distance = mean - self.threshold_ln;
        if distance.abs() > SURE * error {
            return Outcome::Decided(distance > 0.0, mean);
        }
        let over = self.ratios_ln.len() >= PAIRS_MAX || now_s >= self.until_s;
        if over {
            let doubt = if self.threshold_ln > 0.0 { UP_DOUBT } else { 0.0 };
            return Outcome::Decided(distance > doubt * error, mean);
        }
        Outcome::Swap
    }
}
