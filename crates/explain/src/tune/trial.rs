//! Comparison of two settings as A/B/A/B/A …, until their ratio is clearly on one side of a threshold, or
//! time is up. Drift affects the windows before and after each B alike and cancels out.

/// Limit for logarithms of ratios, so that one stall does not dominate.
const RATIO_LN_MAX: f64 = 0.7;

/// If the windows before and after differ by more than this (natural logarithm), something else changed, and
/// the pair is ignored.
const DRIFT_LN_MAX: f64 = 0.5;

/// Standard errors from the threshold for an early decision.
const SURE: f64 = 1.6;

/// Standard errors above the threshold required for more units when time is up, so that noise does not raise
/// the number step by step on a plateau.
const UP_DOUBT: f64 = 1.0;

/// The same where units queue.
const UP_DOUBT_QUEUED: f64 = 2.5;

/// Standard errors below the threshold up to which fewer units are taken if most of them still queue.
const SPARED_DOUBT: f64 = 1.0;

/// Pairs after which a trial ends.
const PAIRS_MAX: usize = 24;

/// Ignored windows after which a trial is given up.
const MISSES_MAX: u32 = 3;

/// Initial estimate of the noise of rates: 10 %.
const NOISE_LN: f64 = 0.1;

/// Estimated scatter of the ratio of a pair.
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
    /// Learns from two consecutive windows with the same setting. The ratio of B to the mean of two A has
    /// three quarters of the variance of their difference.
    pub fn learn(&mut self, before_ln: f64, after_ln: f64) {
        let difference = (after_ln - before_ln).clamp(-RATIO_LN_MAX, RATIO_LN_MAX);
        let sample = 0.75 * difference * difference;
        self.variance = (self.variance * self.weight + sample) / (self.weight + 1.0);
        // Exponential average over about forty windows.
        self.weight = (self.weight + 1.0).min(40.0);
    }

    /// Standard deviation, natural logarithm.
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt().max(0.005)
    }
}

/// A comparison, see the module.
#[derive(Debug)]
pub(super) struct Trial {
    /// Value A, in force before and after.
    pub a: usize,
    /// Value B, to be tried.
    pub b: usize,
    /// B is taken if the logarithm of its ratio to A is above this.
    pub threshold_ln: f64,
    /// Latest end, seconds since the start of the run.
    pub until_s: f64,
    /// True if the current window is one of B.
    pub on_b: bool,
    /// True if most of the units queue even with the lower of the two: then fewer are taken unless clearly worse, and more
    /// only if clearly better.
    pub queues: bool,
    before_ln: f64,
    b_ln: f64,
    ratios_ln: Vec<f64>,
    misses: u32,
}

/// Result after a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The next window uses [`Trial::value`].
    Next,
    /// B is taken or not; logarithm of its ratio to A.
    Decided(bool, f64),
    /// No work was waiting, so no conclusion is possible.
    GivenUp,
}

impl Trial {
    /// Starts with a window of B; `before_ln` is the rate of the preceding window of A.
    pub fn new(a: usize, b: usize, threshold_ln: f64, until_s: f64, before_ln: f64) -> Trial {
        let (b_ln, ratios_ln) = (before_ln, Vec::new());
        let (on_b, queues, misses) = (true, false, 0);
        Trial { a, b, threshold_ln, until_s, on_b, queues, before_ln, b_ln, ratios_ln, misses }
    }

    /// Value of the current window.
    pub fn value(&self) -> usize {
        if self.on_b { self.b } else { self.a }
    }

    /// Records a window that does not count.
    pub fn missed(&mut self) -> Outcome {
        self.misses += 1;
        if self.misses < MISSES_MAX { Outcome::Next } else { Outcome::GivenUp }
    }

    /// Adds a window that counts, with the logarithm of its rate.
    pub fn window(&mut self, now_s: f64, rate_ln: f64, noise: &Noise) -> Outcome {
        if self.on_b {
            self.b_ln = rate_ln;
            self.on_b = false;
            return Outcome::Next;
        }
        let (before_ln, after_ln) = (self.before_ln, rate_ln);
        self.before_ln = after_ln;
        self.on_b = true;
        let deviation = noise.deviation();
        if (after_ln - before_ln).abs() > DRIFT_LN_MAX.max(4.0 * deviation) {
            return self.missed();
        }
        let ratio = self.b_ln - (before_ln + after_ln) / 2.0;
        self.ratios_ln.push(ratio.clamp(-RATIO_LN_MAX, RATIO_LN_MAX));
        let count = self.ratios_ln.len() as f64;
        let mean = self.ratios_ln.iter().sum::<f64>() / count;
        // The prior estimate of the noise counts as three pairs.
        let scatter: f64 = self.ratios_ln.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let variance = (3.0 * deviation * deviation + scatter) / (3.0 + count - 1.0);
        let error = (variance / count).sqrt();
        let distance = mean - self.threshold_ln;
        if distance.abs() > SURE * error {
            return Outcome::Decided(distance > 0.0, mean);
        }
        let over = self.ratios_ln.len() >= PAIRS_MAX || now_s >= self.until_s;
        if over {
            let doubt = match (self.threshold_ln > 0.0, self.queues) {
                (true, true) => UP_DOUBT_QUEUED,
                (true, false) => UP_DOUBT,
                (false, true) => -SPARED_DOUBT,
                (false, false) => 0.0,
            };
            return Outcome::Decided(distance > doubt * error, mean);
        }
        Outcome::Next
    }
}
