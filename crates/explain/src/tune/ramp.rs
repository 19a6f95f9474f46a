//! Start-up stage: doubling per service time while the gain is at least 10 %.

/// Gain below which a doubling does not count.
const GAIN_MIN: f64 = 1.10;

/// Share of the best below which a round has collapsed and is not repeated.
const COLLAPSE: f64 = 0.5;

/// Gain below which the cap lies between two rounds.
const LINEAR_MIN: f64 = 1.7;

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
    /// Rate of the previous round with the same value, which showed no gain.
    pub doubted: Option<f64>,
    /// Rounds that gained: value and rate.
    gained: Vec<(usize, f64)>,
    /// Largest value known to be worse, from before.
    below: usize,
    /// True if the first doubling lost and values are halved.
    down: bool,
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

    /// Judges the rate of a round.
    pub fn judge(&mut self, rate: f64) -> Verdict {
        let best = self.gained.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let first = self.gained.is_empty();
        if self.down {
            if rate >= best {
                self.gained.push((self.round, rate));
                return Verdict::Down;
            }
            let mut plateau = self.plateau();
            plateau.below = if rate < EQUAL * best { self.round } else { self.below };
            plateau.lost = true;
            return Verdict::Over(plateau);
        }
        let rate = self.doubted.map_or(rate, |before| (before + rate) / 2.0);
        if first || rate >= GAIN_MIN * best {
            self.doubted = None;
            self.gained.push((self.round, rate));
            return Verdict::Up;
        }
        let collapsed = rate < COLLAPSE * best;
        if self.doubted.is_none() && !collapsed {
            self.doubted = Some(rate);
            return Verdict::Confirm;
        }
        let mut plateau = self.plateau();
        plateau.lost = rate < EQUAL * best;
        if rate < CLEARLY_LESS * best && self.gained.len() == 1 && self.below == 0 {
            self.down = true;
            self.round = plateau.base;
            return Verdict::Down;
        }
        plateau.collapsed = collapsed;
        Verdict::Over(plateau)
    }

    /// Result if the stage ends now.
    pub fn plateau(&self) -> Plateau {
        let base = self.gained.last().map_or(self.round, |(value, _)| *value);
        let mut plateau =
            Plateau { base, below: self.below, hint: None, lost: false, collapsed: false };
        if let [.., (low, before_rate), (high, rate)] = self.gained.as_slice() {
            let (low, high) = (*low, *high);
            if low < high {
                plateau.below = low;
                let gain = rate / before_rate.max(f64::MIN_POSITIVE);
                let cap = (low as f64 * gain * 1.05).ceil() as usize;
                plateau.hint = (gain < LINEAR_MIN && cap < high).then_some(cap);
            }
        }
        plateau
    }
}
