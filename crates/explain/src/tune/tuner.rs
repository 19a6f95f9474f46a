//! The state machine that combines the stages.

use crate::tune::stages::{
    Brake, Hold, Noise, PROBE_S_MIN, Plateau, Ramp, RampOutcome, RampRates, Shrink, Stage, Trial,
    TrialOutcome, half_more, quarter_less,
};
use crate::tune::window::{Gauge, Trace, WINDOW_S_MIN, Window};
use crate::tune::{TuningStep, WorkCounters};
use std::time::Duration;

/// Accepted deficit to the best for fewer units: 3 %.
const EQUAL: f64 = 0.03;

/// Gain of a probe that restarts doubling (natural logarithm of 1.1).
const RAMP_LN: f64 = 0.0953;

/// Loss of an upward probe after which it is not repeated soon (natural logarithm of 0.7).
const COLLAPSE_LN: f64 = -0.3567;

/// Largest share of the run so far that a downward probe may cost.
const COST: f64 = 0.1;

/// The same from a number that was found to be good.
const COST_HELD: f64 = 0.04;

/// The same while the CPUs are used up: then fewer jobs are hardly as good, unless they wait for each other spinning.
const COST_FULL: f64 = 0.02;

/// Share of the units' time waiting for answers from which its length tells whether they queue.
const ANSWERING: f64 = 0.5;

/// Jobs, as a multiple of those that a server needs without a queue, from which units evidently queue ...
const QUEUED: f64 = 4.0;

/// ... and the fewest.
const QUEUED_MIN: f64 = 4.0;

/// Factor on the permitted cost of a downward probe if units queue even with the lower number: it hardly costs anything.
const CHEAPER: f64 = 16.0;

/// Bounds of the duration of a trial, seconds: an eighth of the run so far.
const TRIAL_S: (f64, f64) = (0.4, 3.0);

/// True if so many jobs are evidently more than a server works on at a time, which would need `needed` of them if nothing
/// queued: most of them queue.
fn queue(jobs: usize, needed: f64) -> bool {
    jobs as f64 >= (QUEUED * needed).max(QUEUED_MIN)
}

/// Number with which units still queue, if it is clearly less than `jobs`: the first candidate where most of these only
/// wait.
fn enough(jobs: usize, needed: f64) -> Option<usize> {
    let enough = (QUEUED * needed).max(QUEUED_MIN).ceil() as usize;
    Some(enough).filter(|enough| *enough <= quarter_less(jobs))
}

/// Finds the number of jobs, see the module.
#[derive(Debug)]
pub struct Tuner {
    jobs_max: usize,
    now: Duration,
    /// Current number.
    jobs: usize,
    /// Number in force outside trials.
    base: usize,
    stage: Stage,
    trial: Option<Trial>,
    gauge: Gauge,
    noise: Noise,
    trace: Trace,
    brake: Brake,
    /// Logarithm of the rate of the previous window with the base.
    before_ln: Option<f64>,
    /// True if no CPU was left in the last window with the base.
    is_full: bool,
    /// Units finished per second in the last window that counted, and the share of their time spent waiting for answers.
    done_per_s: f64,
    answering: f64,
}

impl Tuner {
    /// Starts with `seed` jobs, verified first if `remembered`, else grown from. Never exceeds `jobs_max`
    /// (descriptors, bytes, connections).
    pub fn new(jobs_max: usize, seed: usize, remembered: bool) -> Tuner {
        let jobs_max = jobs_max.max(1);
        let seed = seed.clamp(1, jobs_max);
        let stage = match remembered {
            true => Stage::Hold(Hold::verify(0.0)),
            false => Stage::Ramp(Ramp::new(seed, 0)),
        };
        let mut tuner = Tuner {
            jobs_max,
            now: Duration::ZERO,
            jobs: seed,
            base: seed,
            stage,
            trial: None,
            gauge: Gauge::default(),
            noise: Noise::default(),
            trace: Trace::default(),
            brake: Brake::default(),
            before_ln: None,
            is_full: false,
            done_per_s: 0.0,
            answering: 0.0,
        };
        tuner.trace.set(Duration::ZERO, seed);
        tuner.gauge.open(Duration::ZERO, seed, false);
        tuner
    }

    /// Returns the number of jobs from now on. `now` is the time since the start of the run; call about every
    /// 10 ms.
    pub fn step(&mut self, now: Duration, reading: &WorkCounters) -> usize {
        self.now = self.now.max(now);
        let news = self.gauge.tick(self.now, reading);
        let now_s = self.now_s();
        let up = |trial: &Trial| trial.on_b && trial.b > trial.a;
        let probing = self.trial.as_ref().is_some_and(up);
        if self.brake.notices(now_s, news.completions, news.refused, probing) {
            self.slow_down();
        } else if matches!(self.stage, Stage::Ramp(_)) {
            self.grow(news.completions);
        } else if self.gauge.is_full() {
            let window = self.gauge.close();
            self.window(window);
        }
        self.jobs
    }

    /// Numbers of jobs in order of use, with measured goodput; at most 500, older ones thinned out.
    pub fn path(&self) -> &[TuningStep] {
        self.trace.steps()
    }

    /// Fewest jobs within 3 % of the best, with their goodput, to be remembered. `None` if nothing was
    /// measured.
    pub fn best(&self) -> Option<(usize, f64)> {
        let jobs = match &self.stage {
            Stage::Ramp(ramp) => ramp.plateau().base,
            Stage::Shrink(shrink) => shrink.fewest,
            Stage::Bracket | Stage::Hold(_) => self.base,
        };
        let measured = self.path().iter().rev().find(|step| step.jobs == jobs);
        let rate = self.trace.mean(jobs).or(measured.and_then(|step| step.rate))?;
        Some((jobs, rate))
    }

    /// True if the search is over and the number is held, except for rare probes.
    pub fn is_settled(&self) -> bool {
        matches!(&self.stage, Stage::Hold(hold) if hold.unverified == 0)
    }

    /// Mean of the middle half of the windows that counted, for each number of jobs.
    pub fn curve(&self) -> Vec<(f64, f64)> {
        self.trace.curve()
    }

    fn now_s(&self) -> f64 {
        self.now.as_secs_f64()
    }

    /// Jobs that a server needs for the present rate if nothing queues (Little's law with its shortest answer); `None` if
    /// that is unknown, or if units mostly do something else than wait for answers.
    fn needed(&self) -> Option<f64> {
        let at_work = self.gauge.quickest_s()? * self.done_per_s;
        (self.answering >= ANSWERING).then(|| at_work / self.answering)
    }

    /// Most jobs allowed now.
    fn most(&self) -> usize {
        let ceiling = self.brake.ceiling(self.now_s()).unwrap_or(usize::MAX);
        self.jobs_max.min(ceiling.saturating_sub(1)).max(1)
    }

    fn apply(&mut self, jobs: usize) {
        let changed = jobs != self.jobs;
        self.jobs = jobs;
        self.trace.set(self.now, jobs);
        self.gauge.open(self.now, jobs, changed);
        self.before_ln = None;
    }

    /// Start-up: each completion allows one more unit, until the round ends.
    fn grow(&mut self, completions: u64) {
        let (most, needed) = (self.most(), self.needed());
        let Stage::Ramp(ramp) = &mut self.stage else { return };
        let value = ramp.round;
        let queued = needed.is_some_and(|needed| queue(value, needed));
        let enough = self.gauge.elapsed_s >= WINDOW_S_MIN;
        if !ramp.flowing && completions > 0 {
            // Nothing can complete before the first completion, so the time until then is not slowness. If all
            // complete at once, this is their service time.
            ramp.flowing = true;
            if completions < Ramp::wanted(value) {
                ramp.grown = ramp.grown.saturating_add(completions);
                self.gauge.open(self.now, ramp.round, false);
                return;
            }
        }
        let done = self.gauge.completions >= Ramp::wanted(value);
        if !(enough && done || self.gauge.is_overdue()) {
            if enough && ramp.grows() && !queued {
                ramp.grown = ramp.grown.saturating_add(completions);
                let more = usize::try_from(ramp.grown).unwrap_or(usize::MAX);
                self.jobs = value.saturating_add(more).min(2 * value).min(most).max(value);
            }
            return;
        }
        let window = self.gauge.close();
        let round = ramp.round;
        if !window.used {
            // No work was waiting: the round gives no information.
            ramp.grown = 0;
            return self.apply(round);
        }
        self.record(&window, round);
        let needed = self.needed();
        let queued = needed.is_some_and(|needed| queue(round, needed));
        let Stage::Ramp(ramp) = &mut self.stage else { return };
        let done_per_s = needed.map(|_| window.done_per_s);
        let rates = RampRates { goodput: window.rate, done_per_s };
        match ramp.judge(rates, queued) {
            RampOutcome::Up => {
                // After a doubtful gain it is not the value of this round.
                let value = ramp.round;
                let next = value.saturating_mul(2).min(most);
                if next <= value || window.is_full {
                    let plateau = Plateau { lost: window.is_full, ..ramp.plateau() };
                    return self.level_off(plateau);
                }
                (ramp.round, ramp.grown) = (next, 0);
                self.jobs = next;
                self.trace.set(self.now, next);
                // As in any round, the first completions belong to the previous one.
                self.gauge.open(self.now, next, false);
            }
            RampOutcome::Down => {
                let value = ramp.round;
                if value <= 1 {
                    let plateau = Plateau { lost: true, ..ramp.plateau() };
                    return self.level_off(plateau);
                }
                let next = value / 2;
                (ramp.round, ramp.grown, ramp.doubted) = (next, 0, Some(RampRates::default()));
                self.apply(next);
            }
            RampOutcome::Back => {
                ramp.grown = 0;
                let value = ramp.round;
                self.apply(value);
            }
            RampOutcome::Confirm => {
                let grown = self.jobs != round;
                self.apply(round);
                self.gauge.open(self.now, round, grown);
            }
            RampOutcome::Over(plateau) => {
                if plateau.collapsed {
                    self.brake.remember(self.now.as_secs_f64(), round);
                }
                self.level_off(plateau);
            }
        }
    }

    /// Ends start-up.
    fn level_off(&mut self, mut plateau: Plateau) {
        let value = plateau.base;
        self.base = value;
        if let Some(needed) = self.needed().filter(|needed| queue(value, *needed)) {
            // Rounds of a queue differ by chance, so none is known to be worse.
            (plateau.below, plateau.hint) = (0, enough(value, needed));
            plateau.lost = true;
        }
        let shrink = Shrink {
            anchor: value,
            fewest: value,
            deficit_ln: 0.0,
            below: plateau.below,
            hint: plateau.hint,
            halves: plateau.below == 0,
        };
        // If more is worse, the best lies below, not in between.
        let down = plateau.lost && plateau.below == 0;
        let bracket = !down && !plateau.collapsed && plateau.hint.is_none() && self.most() > value;
        self.stage = if bracket { Stage::Bracket } else { Stage::Shrink(shrink) };
        self.apply(plateau.base);
    }

    /// Records the result of a window.
    fn record(&mut self, window: &Window, jobs: usize) {
        if !window.used {
            return;
        }
        (self.done_per_s, self.answering) = (window.done_per_s, window.answering);
        self.trace.window(window);
        if window.whole {
            self.trace.point(jobs, window.rate);
        }
    }

    /// Handles a window after start-up.
    fn window(&mut self, window: Window) {
        self.record(&window, self.jobs);
        let rate_ln = window.rate.max(1.0).ln();
        if let Some(mut trial) = self.trial.take() {
            let outcome = match window.used {
                true => trial.window(self.now_s(), rate_ln, &self.noise),
                false => trial.missed(),
            };
            match outcome {
                TrialOutcome::Next => {
                    self.apply(trial.value());
                    self.trial = Some(trial);
                }
                TrialOutcome::Decided(taken, ratio_ln) => self.conclude(&trial, taken, ratio_ln),
                TrialOutcome::GivenUp => {
                    match &mut self.stage {
                        Stage::Hold(hold) => hold.back_off(self.now.as_secs_f64()),
                        // The same would be tried without end.
                        Stage::Shrink(shrink) => shrink.hint = None,
                        Stage::Ramp(_) | Stage::Bracket => {}
                    }
                    self.apply(self.base);
                }
            }
            return;
        }
        let before_ln = self.before_ln;
        self.is_full = window.is_full;
        self.apply(self.base);
        if !window.used {
            return;
        }
        if let Some(before_ln) = before_ln {
            self.noise.learn(before_ln, rate_ln);
        }
        let now_s = self.now_s();
        if let Stage::Hold(hold) = &mut self.stage {
            hold.watch(now_s, rate_ln, self.noise.deviation());
        }
        self.before_ln = Some(rate_ln);
        self.consider(rate_ln);
    }

    /// Starts a trial if one is due. The window that just ended is the first A.
    fn consider(&mut self, rate_ln: f64) {
        let (now_s, most) = (self.now_s(), self.most());
        let frozen = self.brake.is_frozen(now_s);
        let window_s = self.gauge.window_s();
        let share_max = if self.is_full { COST_FULL } else { COST };
        let needed = self.needed();
        let queues = |jobs: usize| needed.is_some_and(|needed| queue(jobs, needed));
        let cheap = |from: usize, to: usize, share: f64| {
            let (lost, share) = (1.0 - to as f64 / from as f64, share.min(share_max));
            let lost = if queues(to) { lost / CHEAPER } else { lost };
            lost * window_s <= share * now_s
        };
        let base = self.base;
        // A remembered number, or one from before the server became slower: most of its units only wait.
        let doubted =
            matches!(&self.stage, Stage::Hold(hold) if hold.unverified > 0 || hold.fallen);
        if let Some(hint) = needed.and_then(|needed| enough(base, needed)).filter(|_| doubted) {
            self.stage = Stage::Shrink(Shrink::of_queue(base, hint));
        }
        let (value, threshold_ln) = match &mut self.stage {
            Stage::Ramp(_) => return,
            Stage::Bracket => {
                let value = (base as f64 * std::f64::consts::SQRT_2).round() as usize;
                if frozen || self.is_full || queues(base) || value > most || value <= base {
                    return self.shrink(base, base, 0);
                }
                (value, EQUAL)
            }
            Stage::Shrink(shrink) => match shrink.next() {
                None => {
                    let (fewest, deficit_ln) = (shrink.fewest, shrink.deficit_ln);
                    self.base = fewest;
                    self.stage = Stage::Hold(Hold::new(now_s, deficit_ln));
                    return self.apply(self.base);
                }
                Some(value) if cheap(base, value, COST) => (value, -EQUAL),
                Some(_) => return,
            },
            Stage::Hold(hold) => {
                if now_s < hold.probe_at_s {
                    return;
                }
                let mut up = half_more(base);
                if let Some(ceiling) = self.brake.ceiling(now_s) {
                    let between = ((base * ceiling) as f64).sqrt();
                    up = up.min((between as usize).max(base + 1));
                }
                let up = up.min(most);
                let down = if hold.fallen { (base / 2).max(1) } else { quarter_less(base) };
                let can_go_up = up > base && !frozen && !self.is_full;
                if hold.up && can_go_up {
                    (up, if queues(base) { RAMP_LN } else { EQUAL })
                } else if hold.up && frozen && up > base {
                    return;
                } else if !hold.up && down < base {
                    let doubted = hold.unverified > 0 || hold.fallen;
                    if !cheap(base, down, if doubted { COST } else { COST_HELD }) {
                        return;
                    }
                    (down, -(EQUAL - hold.deficit_ln).max(0.0))
                } else {
                    return hold.back_off(now_s);
                }
            }
        };
        let until_s = now_s + (now_s / 8.0).clamp(TRIAL_S.0, TRIAL_S.1);
        let mut trial = Trial::new(base, value, threshold_ln, until_s, rate_ln);
        trial.queues = queues(value.min(base));
        self.apply(value);
        self.trial = Some(trial);
    }

    /// Shrinks from `anchor`; `below` is known to be worse.
    fn shrink(&mut self, anchor: usize, fewest: usize, below: usize) {
        let halves = below == 0 && !self.known_to_gain(fewest);
        let deficit_ln = 0.0;
        self.stage =
            Stage::Shrink(Shrink { anchor, fewest, deficit_ln, below, hint: None, halves });
        self.base = anchor;
        self.apply(self.base);
    }

    /// True if half of this value is known to be clearly worse.
    fn known_to_gain(&self, value: usize) -> bool {
        let rate = |value: usize| self.path().iter().rev().find(|step| step.jobs == value)?.rate;
        matches!((rate(value), rate(value / 2)), (Some(one), Some(half)) if one > 1.1 * half)
    }

    /// Handles the end of a trial.
    fn conclude(&mut self, trial: &Trial, taken: bool, ratio_ln: f64) {
        let now_s = self.now_s();
        let Trial { a, b, .. } = *trial;
        match &mut self.stage {
            Stage::Ramp(_) => {}
            Stage::Bracket if taken => {
                self.base = trial.b;
            }
            Stage::Bracket => {
                let below = if self.known_to_gain(a) { a / 2 } else { 0 };
                return self.shrink(a, a, below);
            }
            Stage::Shrink(shrink) => {
                shrink.tried(b, taken, ratio_ln);
                self.base = shrink.anchor;
            }
            Stage::Hold(hold) => match (b > a, taken) {
                (true, true) if ratio_ln > RAMP_LN && self.brake.ceiling(now_s).is_none() => {
                    self.base = trial.b;
                    self.stage = Stage::Ramp(Ramp::new(trial.b, a));
                }
                (true, true) => {
                    self.base = trial.b;
                    hold.deficit_ln = 0.0;
                    hold.go_on(now_s);
                }
                (false, true) if hold.unverified > 0 || hold.fallen => {
                    if ratio_ln > RAMP_LN {
                        self.brake.remember(now_s, a);
                    }
                    // Far from the best: continue by halves from the better of the two.
                    return match ratio_ln > 0.0 {
                        true => self.shrink(b, b, 0),
                        false => self.shrink(a, b, 0),
                    };
                }
                (false, true) => {
                    self.base = trial.b;
                    hold.deficit_ln = (hold.deficit_ln - ratio_ln).max(0.0);
                    hold.go_on(now_s);
                }
                (up, false) => {
                    // The best may have moved: the gain of the probe is the deficit of this setting.
                    if up {
                        hold.deficit_ln = ratio_ln.clamp(0.0, EQUAL);
                    }
                    if up && ratio_ln < COLLAPSE_LN {
                        self.brake.remember(now_s, b);
                    }
                    hold.fallen = false;
                    hold.back_off(now_s);
                }
            },
        }
        self.apply(self.base);
    }

    /// Reacts to refusals: back to the previous number, or to half; no increases for a while.
    fn slow_down(&mut self) {
        let now_s = self.now_s();
        let value = self.jobs;
        let before = match (&self.stage, &self.trial) {
            (Stage::Ramp(ramp), _) => ramp.plateau().base,
            (_, Some(trial)) => trial.a,
            _ => value,
        };
        let lower = if before < value { before } else { value / 2 };
        self.trial = None;
        self.brake.remember(now_s, value);
        self.brake.freeze(now_s, self.gauge.service_s());
        self.base = lower.max(1);
        let mut hold = Hold::new(now_s, 0.0);
        hold.probe_at_s = now_s + PROBE_S_MIN / 2.0;
        self.stage = Stage::Hold(hold);
        self.apply(self.base);
    }
}
