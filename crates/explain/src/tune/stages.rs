//! Stages of the tuner, and the next value to try: start-up, shrink and hold; trials that compare two settings; and the
//! reaction to refusals and time-outs.

/// First interval between probes, seconds; it grows with each probe without effect.
pub(crate) const PROBE_S_MIN: f64 = 0.5;

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
pub(crate) enum Stage {
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
pub(crate) struct Shrink {
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
pub(crate) fn quarter_less(value: usize) -> usize {
    (value * 3 / 4).max(1)
}

/// Half as much again.
pub(crate) fn half_more(value: usize) -> usize {
    value.saturating_add(value.div_ceil(2))
}

/// State of the hold stage.
#[derive(Debug)]
pub(crate) struct Hold {
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

/// Gain below which a doubling does not count.
const GAIN_MIN: f64 = 1.10;

/// Share of the best below which a round has collapsed and is not repeated.
const COLLAPSE: f64 = 0.5;

/// Gain below which the cap lies between two rounds.
const LINEAR_MIN: f64 = 1.7;

/// Gain below which a round is doubtful: it may be noise, or the value before was measured while connections opened.
const SURE_GAIN: f64 = 1.33;

/// The same where units queue at a server: there a doubling gains nothing, or something else had slowed it before.
const SURE_GAIN_QUEUED: f64 = 1.8;

/// Share of the best that counts as equal.
const EQUAL: f64 = 0.97;

/// Share of the best below which the first doubling changes the direction to down.
const CLEARLY_LESS: f64 = 0.85;

/// Fewest completions of a round.
const COMPLETIONS_MIN: u64 = 4;

/// History of the rounds. A round lasts until as many units have completed as it allows; from 50 ms on each
/// completion allows one more unit.
#[derive(Debug, Default)]
pub(crate) struct Ramp {
    /// Value at the start of the round.
    pub round: usize,
    /// Completions in this round after its first 50 ms.
    pub grown: u64,
    /// True after the first completion.
    pub flowing: bool,
    /// Rates of the previous round with the same value, which showed no gain.
    pub doubted: Option<RampRates>,
    /// A value whose gain is doubtful, and its rates, while the value before it is measured again.
    claimed: Option<(usize, RampRates)>,
    /// Rounds that gained: value and rates.
    gained: Vec<(usize, RampRates)>,
    /// Largest value known to be worse, from before.
    below: usize,
    /// True if the first doubling lost and values are halved.
    down: bool,
}

/// Rates of a round: of goodput, which counts content as it moves, and, where units wait for a server, of finished units.
/// Units in its queue have moved their content and are not finished, so there a gain has to be one in both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RampRates {
    pub goodput: f64,
    pub done_per_s: Option<f64>,
}

impl RampRates {
    /// Smaller of the gains over other rates.
    fn over(&self, other: &RampRates) -> f64 {
        let of = |one: f64, other: f64| if other > 0.0 { one / other } else { f64::INFINITY };
        let done = self.done_per_s.zip(other.done_per_s);
        let done = done.map_or(f64::INFINITY, |(one, other)| of(one, other));
        of(self.goodput, other.goodput).min(done)
    }

    fn merge(&self, other: &RampRates, with: fn(f64, f64) -> f64) -> RampRates {
        let done = self.done_per_s.zip(other.done_per_s).map(|(one, other)| with(one, other));
        RampRates {
            goodput: with(self.goodput, other.goodput),
            done_per_s: done.or(self.done_per_s).or(other.done_per_s),
        }
    }

    fn most(&self, other: &RampRates) -> RampRates {
        self.merge(other, f64::max)
    }

    fn mean(&self, other: &RampRates) -> RampRates {
        self.merge(other, |one, other| (one + other) / 2.0)
    }
}

/// Decision after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RampOutcome {
    /// Double.
    Up,
    /// Halve.
    Down,
    /// Repeat the value.
    Confirm,
    /// Measure the value before again.
    Back,
    /// End of the stage.
    Over(Plateau),
}

/// Result of the stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plateau {
    /// Last value that gained.
    pub base: usize,
    /// Smaller value known to be worse; 0 if there is none.
    pub below: usize,
    /// Expected position of the cap, between the two.
    pub hint: Option<usize>,
    /// True if the value above is known to be worse.
    pub lost: bool,
    /// True if the value above is known to reach less than half.
    pub collapsed: bool,
}

impl Ramp {
    /// Starts with this value; `below` is known to be worse (0 if unknown).
    pub fn new(round: usize, below: usize) -> Ramp {
        Ramp { round, below, ..Ramp::default() }
    }

    /// Completions that end a round of this value.
    pub fn wanted(value: usize) -> u64 {
        (value as u64).max(COMPLETIONS_MIN)
    }

    /// True while a round may grow: not while values are compared.
    pub fn grows(&self) -> bool {
        self.doubted.is_none() && self.claimed.is_none()
    }

    /// Judges the rates of a round; `queued` if its units evidently queued at a server.
    pub fn judge(&mut self, rates: RampRates, queued: bool) -> RampOutcome {
        let best =
            self.gained.iter().fold(RampRates::default(), |best, (_, rates)| best.most(rates));
        let first = self.gained.is_empty();
        if self.down {
            if rates.goodput >= best.goodput {
                self.gained.push((self.round, rates));
                return RampOutcome::Down;
            }
            let mut plateau = self.plateau();
            let worse = rates.goodput < EQUAL * best.goodput;
            plateau.below = if worse { self.round } else { self.below };
            plateau.lost = true;
            return RampOutcome::Over(plateau);
        }
        if let Some((value, claim)) = self.claimed.take() {
            return self.judge_claim(rates, value, claim);
        }
        let rates = self.doubted.map_or(rates, |before| before.mean(&rates));
        let gain = rates.over(&best);
        if first || gain >= GAIN_MIN {
            self.doubted = None;
            let sure = if queued { SURE_GAIN_QUEUED } else { SURE_GAIN };
            let before = self.gained.last().map(|(value, _)| *value);
            if let Some(before) = before.filter(|before| gain < sure && *before < self.round) {
                if queued {
                    // A later comparison of many windows decides.
                    return RampOutcome::Over(Plateau { lost: true, ..self.plateau() });
                }
                self.claimed = Some((self.round, rates));
                self.round = before;
                return RampOutcome::Back;
            }
            self.gained.push((self.round, rates));
            return RampOutcome::Up;
        }
        let share = if best.goodput > 0.0 { rates.goodput / best.goodput } else { 1.0 };
        let collapsed = share < COLLAPSE;
        if self.doubted.is_none() && !collapsed && !queued {
            self.doubted = Some(rates);
            return RampOutcome::Confirm;
        }
        let mut plateau = self.plateau();
        plateau.lost = share < EQUAL;
        if share < CLEARLY_LESS && self.gained.len() == 1 && self.below == 0 {
            self.down = true;
            self.round = plateau.base;
            return RampOutcome::Down;
        }
        plateau.collapsed = collapsed;
        RampOutcome::Over(plateau)
    }

    /// Judges a doubtful gain by another round with the value before.
    fn judge_claim(&mut self, again: RampRates, value: usize, claim: RampRates) -> RampOutcome {
        if let Some((_, before)) = self.gained.last_mut() {
            // What slows only the first round must not count, and one lucky round not alone.
            *before = before.mean(&again).most(&again);
            if claim.over(before) >= GAIN_MIN {
                self.gained.push((value, claim));
                self.round = value;
                return RampOutcome::Up;
            }
        }
        let mut plateau = self.plateau();
        plateau.lost = self.gained.last().is_some_and(|(_, best)| claim.over(best) < EQUAL);
        RampOutcome::Over(plateau)
    }

    /// Result if the stage ends now.
    pub fn plateau(&self) -> Plateau {
        let base = self.gained.last().map_or(self.round, |(value, _)| *value);
        let mut plateau =
            Plateau { base, below: self.below, hint: None, lost: false, collapsed: false };
        if let [.., (low, before), (high, rates)] = self.gained.as_slice() {
            let (low, high) = (*low, *high);
            if low < high {
                plateau.below = low;
                let gain = rates.goodput / before.goodput.max(f64::MIN_POSITIVE);
                let cap = (low as f64 * gain * 1.05).ceil() as usize;
                plateau.hint = (gain < LINEAR_MIN && cap < high).then_some(cap);
            }
        }
        plateau
    }
}

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
pub(crate) struct Noise {
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
pub(crate) struct Trial {
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
pub(crate) enum TrialOutcome {
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
    pub fn missed(&mut self) -> TrialOutcome {
        self.misses += 1;
        if self.misses < MISSES_MAX { TrialOutcome::Next } else { TrialOutcome::GivenUp }
    }

    /// Adds a window that counts, with the logarithm of its rate.
    pub fn window(&mut self, now_s: f64, rate_ln: f64, noise: &Noise) -> TrialOutcome {
        if self.on_b {
            self.b_ln = rate_ln;
            self.on_b = false;
            return TrialOutcome::Next;
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
            return TrialOutcome::Decided(distance > 0.0, mean);
        }
        let over = self.ratios_ln.len() >= PAIRS_MAX || now_s >= self.until_s;
        if over {
            let doubt = match (self.threshold_ln > 0.0, self.queues) {
                (true, true) => UP_DOUBT_QUEUED,
                (true, false) => UP_DOUBT,
                (false, true) => -SPARED_DOUBT,
                (false, false) => 0.0,
            };
            return TrialOutcome::Decided(distance > doubt * error, mean);
        }
        TrialOutcome::Next
    }
}

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
pub(crate) struct Brake {
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
