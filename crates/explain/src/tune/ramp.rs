//! Start-up stage: doubling per service time while the gain is at least 10 %.

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
pub(super) struct Ramp {
    /// Value at the start of the round.
    pub round: usize,
    /// Completions in this round after its first 50 ms.
    pub grown: u64,
    /// True after the first completion.
    pub flowing: bool,
    /// Rates of the previous round with the same value, which showed no gain.
    pub doubted: Option<Rates>,
    /// A value whose gain is doubtful, and its rates, while the value before it is measured again.
    claimed: Option<(usize, Rates)>,
    /// Rounds that gained: value and rates.
    gained: Vec<(usize, Rates)>,
    /// Largest value known to be worse, from before.
    below: usize,
    /// True if the first doubling lost and values are halved.
    down: bool,
}

/// Rates of a round: of goodput, which counts content as it moves, and, where units wait for a server, of finished units.
/// Units in its queue have moved their content and are not finished, so there a gain has to be one in both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub goodput: f64,
    pub done_per_s: Option<f64>,
}

impl Rates {
    /// Smaller of the gains over other rates.
    fn over(&self, other: &Rates) -> f64 {
        let of = |one: f64, other: f64| if other > 0.0 { one / other } else { f64::INFINITY };
        let done = self.done_per_s.zip(other.done_per_s);
        let done = done.map_or(f64::INFINITY, |(one, other)| of(one, other));
        of(self.goodput, other.goodput).min(done)
    }

    fn merge(&self, other: &Rates, with: fn(f64, f64) -> f64) -> Rates {
        let done = self.done_per_s.zip(other.done_per_s).map(|(one, other)| with(one, other));
        Rates {
            goodput: with(self.goodput, other.goodput),
            done_per_s: done.or(self.done_per_s).or(other.done_per_s),
        }
    }

    fn most(&self, other: &Rates) -> Rates {
        self.merge(other, f64::max)
    }

    fn mean(&self, other: &Rates) -> Rates {
        self.merge(other, |one, other| (one + other) / 2.0)
    }
}

/// Decision after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
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
pub(super) struct Plateau {
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
    pub fn judge(&mut self, rates: Rates, queued: bool) -> Verdict {
        let best = self.gained.iter().fold(Rates::default(), |best, (_, rates)| best.most(rates));
        let first = self.gained.is_empty();
        if self.down {
            if rates.goodput >= best.goodput {
                self.gained.push((self.round, rates));
                return Verdict::Down;
            }
            let mut plateau = self.plateau();
            let worse = rates.goodput < EQUAL * best.goodput;
            plateau.below = if worse { self.round } else { self.below };
            plateau.lost = true;
            return Verdict::Over(plateau);
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
                    return Verdict::Over(Plateau { lost: true, ..self.plateau() });
                }
                self.claimed = Some((self.round, rates));
                self.round = before;
                return Verdict::Back;
            }
            self.gained.push((self.round, rates));
            return Verdict::Up;
        }
        let share = if best.goodput > 0.0 { rates.goodput / best.goodput } else { 1.0 };
        let collapsed = share < COLLAPSE;
        if self.doubted.is_none() && !collapsed && !queued {
            self.doubted = Some(rates);
            return Verdict::Confirm;
        }
        let mut plateau = self.plateau();
        plateau.lost = share < EQUAL;
        if share < CLEARLY_LESS && self.gained.len() == 1 && self.below == 0 {
            self.down = true;
            self.round = plateau.base;
            return Verdict::Down;
        }
        plateau.collapsed = collapsed;
        Verdict::Over(plateau)
    }

    /// Judges a doubtful gain by another round with the value before.
    fn judge_claim(&mut self, again: Rates, value: usize, claim: Rates) -> Verdict {
        if let Some((_, before)) = self.gained.last_mut() {
            // What slows only the first round must not count, and one lucky round not alone.
            *before = before.mean(&again).most(&again);
            if claim.over(before) >= GAIN_MIN {
                self.gained.push((value, claim));
                self.round = value;
                return Verdict::Up;
            }
        }
        let mut plateau = self.plateau();
        plateau.lost = self.gained.last().is_some_and(|(_, best)| claim.over(best) < EQUAL);
        Verdict::Over(plateau)
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
