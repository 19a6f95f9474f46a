//! Start-up: doubling per service time, until the gain falls below 10 %.

/// A doubling that brings less than this is no gain.
const GAIN_MIN: f64 = 1.10;

/// Less than this of the best is a collapse: no second look.
const COLLAPSE: f64 = 0.5;

/// A doubling that brings less than this says that the cap lies in between, and where.
const LINEAR_MIN: f64 = 1.7;

/// Of the best: as good as that.
const EQUAL: f64 = 0.97;

/// Of the best: if the first doubling brings less than this, the way is down.
const CLEARLY_LESS: f64 = 0.85;

/// Completions that make a round where fewer units are under way.
const COMPLETIONS_MIN: u64 = 4;

/// How the rounds went. A round runs with one value until as many units have completed as it allows;
/// meanwhile, from 50 ms on, each completion allows one unit more.
#[derive(Debug)]
pub(super) struct Ramp {
    /// What the round began with.
    pub round: usize,
    /// Completions in this round after its first 50 ms.
    pub grown: u64,
    /// Something has come out since the beginning.
    pub flowing: bool,
    /// The rate of the round before this one with the same value, which showed no gain.
    pub doubted: Option<f64>,
    /// Rounds that gained: the value and its rate.
    gained: Vec<(usize, f64)>,
    /// A value that is known to lose, from before.
    below: usize,
    /// The first step up lost: it goes down.
    down: bool,
}

/// What is to be done after a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Double.
    Up,
    /// Halve.
    Down,
    /// The same value once more.
    Confirm,
    /// That was all.
    Over(Plateau),
}

/// Where growing ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plateau {
    /// The last value that gained.
    pub base: usize,
    /// A smaller value that is known to bring less; 0 where none is.
    pub below: usize,
    /// Where the cap probably is, between the two.
    pub hint: Option<usize>,
    /// The value above is known to bring less.
    pub lost: bool,
    /// The value above is known to bring less than half.
    pub collapsed: bool,
}

impl Ramp {
    /// Begins with this value; `below` is known to bring less (0: nothing is known).
    pub fn new(round: usize, below: usize) -> Ramp {
        Ramp {
            round,
            grown: 0,
            flowing: false,
            doubted: None,
            gained: Vec::new(),
            below,
            down: false,
        }
    }

    /// So many completions end a round of this value.
    pub fn wanted(value: usize) -> u64 {
        (value as u64).max(COMPLETIONS_MIN)
    }

    /// The round brought this rate.
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

    /// Where it stands if it ends here.
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
