//! Shares of a limit: what one worker does not use, others may. Each worker decides for itself, at each heartbeat, from
//! what all of them last reported, and no worker asks another one.
//!
//! What keeps the sum of all limits below the total: a limit is lowered at once, and raised only into what the reports
//! leave free, divided among all workers that ask for more. A worker asks for two beats before it takes, and takes no
//! more often than every second beat, so that all that take at about the same time know of each other; and it takes
//! nothing from a view that is older than a beat. The sum exceeds the total only
//! - when workers join, by the floor of each until the others have given it up: an eighth of an equal share;
//! - by the limit of a worker that counted as gone (its beats stayed out) and still moves, until its next beat;
//! - while more workers than expected begin within the same beat: each has the share of an expected one until then.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The floor of an idle worker: this part of an equal share.
const FLOOR_PARTS: u64 = 8;
/// What a worker that does not ask for more keeps, in percent of its use.
const HEADROOM_PERCENT: u64 = 125;
/// Beats for which a worker asks before it takes, and between two times that it takes.
const PATIENCE_BEATS: u32 = 2;

/// A worker's part of a limit, as its heartbeat reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareReport {
    /// Units a second that it may use until its next beat.
    pub limit_per_s: u64,
    /// Units a second that it used since the beat before.
    pub used_per_s: u64,
    /// The limit held it back: it asks for more.
    pub asks: bool,
}

/// One worker's use since its last beat, and its view of the others.
#[derive(Clone, Copy, Debug)]
pub struct ShareView<'a> {
    /// Units a second that this worker used.
    pub used_per_s: u64,
    /// Its limiter was what held it back.
    pub is_limited: bool,
    /// The last reports of all other workers that have neither ended nor count as gone.
    pub others: &'a [ShareReport],
    /// Time since the first of these reports was read.
    pub age: Duration,
}

/// The share of this worker.
#[derive(Debug)]
pub struct Share {
    total_per_s: u64,
    /// Time between two beats, the longest of any worker.
    beat: Duration,
    limit_per_s: u64,
    /// Time of the first of the successive beats that asked for more.
    asked: Option<Instant>,
    raised: Option<Instant>,
}

impl Share {
    /// Begins with an equal share of `expected` workers as far as the others leave it, or with the floor if one of them
    /// asks for more: what is free may be taken already. `others` were read within the last beat.
    pub fn begin(total_per_s: u64, expected: u64, beat: Duration, others: &[ShareReport]) -> Share {
        let is_sought = others.iter().any(|report| report.asks);
        let equal = if is_sought { 0 } else { total_per_s / expected.max(1) };
        let free = total_per_s.saturating_sub(sum(others));
        let floor = floor(total_per_s, expected.max(others.len() as u64 + 1));
        let limit_per_s = equal.min(free).max(floor).max(1);
        Share { total_per_s, beat, limit_per_s, asked: None, raised: None }
    }

    /// Returns the limit, in units a second.
    pub fn limit_per_s(&self) -> u64 {
        self.limit_per_s
    }

    /// Replaces the total, as when a slot of a timetable begins. All shares change in the same proportion.
    pub fn set_total(&mut self, total_per_s: u64) {
        let scaled = u128::from(self.limit_per_s) * u128::from(total_per_s)
            / u128::from(self.total_per_s.max(1));
        self.limit_per_s = u64::try_from(scaled).unwrap_or(u64::MAX).max(1);
        self.total_per_s = total_per_s;
    }

    /// Decides at a beat, and returns what the beat reports. The caller writes the beat and then sets the limiter if the
    /// limit rises, and the other way round if it falls.
    pub fn decide(&mut self, view: &ShareView<'_>, now: Instant) -> ShareReport {
        let own = ShareReport {
            limit_per_s: self.limit_per_s,
            used_per_s: view.used_per_s,
            asks: view.is_limited,
        };
        let since = |then: Instant| now.saturating_duration_since(then);
        let patience = self.beat * PATIENCE_BEATS;
        let has_asked = self.asked.is_some_and(|asked| since(asked) >= patience);
        let has_waited = self.raised.is_none_or(|raised| since(raised) >= patience);
        let may_raise = has_asked && has_waited && view.age <= self.beat;
        let limit = decided(self.total_per_s, own, view.others, may_raise);
        if limit > self.limit_per_s {
            self.raised = Some(now);
        }
        self.asked = if own.asks { self.asked.or(Some(now)) } else { None };
        self.limit_per_s = limit;
        ShareReport { limit_per_s: limit, ..own }
    }
}

/// Limit that even an idle worker of `workers` keeps.
fn floor(total_per_s: u64, workers: u64) -> u64 {
    total_per_s / workers.max(1).saturating_mul(FLOOR_PARTS)
}

fn sum(reports: &[ShareReport]) -> u64 {
    reports.iter().fold(0, |sum, report| sum.saturating_add(report.limit_per_s))
}

/// Returns the new limit of a worker: max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2) with what is known.
fn decided(total: u64, own: ShareReport, others: &[ShareReport], may_raise: bool) -> u64 {
    let workers = others.len() as u64 + 1;
    let floor = floor(total, workers).max(1);
    let all = || others.iter().copied().chain([own]);
    let asking = all().filter(|report| report.asks).count() as u64;
    let kept = all().filter(|report| !report.asks).map(|report| report.limit_per_s);
    let kept: u64 = kept.fold(0, u64::saturating_add);
    let held = sum(others).saturating_add(own.limit_per_s);
    // What each worker that asks has in the end.
    let level = (total.saturating_sub(kept) / asking.max(1)).max(floor);
    if !own.asks {
        let needed = (own.used_per_s.saturating_mul(HEADROOM_PERCENT) / 100).max(floor);
        let fair = (total / workers).max(floor);
        let most = match (asking > 0, held > total) {
            // Nobody wants the rest.
            (false, false) => own.limit_per_s,
            (false, true) => fair,
            (true, false) => needed,
            (true, true) => needed.min(fair),
        };
        return own.limit_per_s.min(most).max(1);
    }
    if own.limit_per_s >= level {
        return level;
    }
    if !may_raise {
        return own.limit_per_s;
    }
    let lacks = |report: ShareReport| u128::from(level.saturating_sub(report.limit_per_s));
    let lacking: u128 = all().filter(|report| report.asks).map(lacks).sum();
    let free = u128::from(total.saturating_sub(held));
    let part = free * lacks(own) / lacking.max(1);
    own.limit_per_s.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)).min(level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEAT_MS: u64 = 1000;
    /// Beats after which a silent worker counts as gone.
    const STALE_BEATS: u64 = 6;

    /// A worker of the simulation: its share, and what it wants.
    struct Worker {
        share: Share,
        demand: u64,
        next_ms: u64,
        /// Age of the reports that it decides from.
        lag_ms: u64,
        is_alive: bool,
        /// Every report with the time of its beat.
        beats: Vec<(u64, ShareReport)>,
    }

    struct Fleet {
        total: u64,
        start: Instant,
        now_ms: u64,
        workers: Vec<Worker>,
    }

    impl Fleet {
        fn new(total: u64) -> Fleet {
            Fleet { total, start: Instant::now(), now_ms: 0, workers: Vec::new() }
        }

        fn join(&mut self, expected: u64, demand: u64, phase_ms: u64, lag_ms: u64) {
            let others = self.seen(usize::MAX, self.now_ms);
            let beat = Duration::from_millis(BEAT_MS);
            let share = Share::begin(self.total, expected, beat, &others);
            let first =
                ShareReport { limit_per_s: share.limit_per_s(), used_per_s: 0, asks: false };
            self.workers.push(Worker {
                share,
                demand,
                next_ms: self.now_ms + 1 + phase_ms % BEAT_MS,
                lag_ms,
                is_alive: true,
                beats: vec![(self.now_ms, first)],
            });
        }

        /// The reports of others that were there at a time, without those that count as gone.
        fn seen(&self, index: usize, at_ms: u64) -> Vec<ShareReport> {
            let others = self.workers.iter().enumerate().filter(|(other, _)| *other != index);
            let last = others.filter_map(|(_, worker)| {
                let beat = worker.beats.iter().rev().find(|(when, _)| *when <= at_ms)?;
                (at_ms - beat.0 < STALE_BEATS * BEAT_MS).then_some(beat.1)
            });
            last.collect()
        }

        /// Runs until a time; returns the largest sum of limits.
        fn run(&mut self, until_ms: u64) -> u64 {
            let mut most = self.sum();
            loop {
                let alive = self.workers.iter().enumerate().filter(|(_, worker)| worker.is_alive);
                let Some((index, next_ms)) =
                    alive.map(|(index, worker)| (index, worker.next_ms)).min_by_key(|it| it.1)
                else {
                    break;
                };
                if next_ms > until_ms {
                    break;
                }
                self.now_ms = next_ms;
                let lag_ms = self.workers[index].lag_ms;
                let others = self.seen(index, next_ms.saturating_sub(lag_ms));
                let now = self.start + Duration::from_millis(next_ms);
                let worker = &mut self.workers[index];
                let limit = worker.share.limit_per_s();
                let view = ShareView {
                    used_per_s: worker.demand.min(limit),
                    is_limited: worker.demand > limit,
                    others: &others,
                    age: Duration::from_millis(lag_ms),
                };
                let report = worker.share.decide(&view, now);
                worker.beats.push((next_ms, report));
                worker.next_ms += BEAT_MS;
                most = most.max(self.sum());
            }
            self.now_ms = until_ms;
            most
        }

        fn sum(&self) -> u64 {
            let alive = self.workers.iter().filter(|worker| worker.is_alive);
            alive.map(|worker| worker.share.limit_per_s()).sum()
        }

        fn used(&self) -> u64 {
            let alive = self.workers.iter().filter(|worker| worker.is_alive);
            alive.map(|worker| worker.demand.min(worker.share.limit_per_s())).sum()
        }
    }

    #[test]
    fn an_unused_share_goes_to_others_within_two_beats() {
        let mut fleet = Fleet::new(1_000_000);
        fleet.join(4, 10_000_000, 500, 0);
        for phase in [0, 200, 700] {
            fleet.join(4, 0, phase, 0);
        }
        // The first beat asks, the second one after it takes.
        fleet.run(501);
        assert_eq!(fleet.workers[0].share.limit_per_s(), 250_000);
        assert!(fleet.workers[0].beats.last().unwrap().1.asks);
        let most = fleet.run(501 + 2 * BEAT_MS);
        assert!(most <= 1_000_000, "{most}");
        // Three floors of an eighth of an equal share remain.
        assert_eq!(fleet.workers[0].share.limit_per_s(), 1_000_000 - 3 * 31_250);
        // An idle one wants its share again: the other one gives at its next beat.
        fleet.workers[1].demand = 10_000_000;
        let most = fleet.run(fleet.now_ms + 4 * BEAT_MS);
        assert!(most <= 1_000_000, "{most}");
        let level = (1_000_000 - 2 * 31_250) / 2;
        assert_eq!(fleet.workers[0].share.limit_per_s(), level);
        assert_eq!(fleet.workers[1].share.limit_per_s(), level);
    }

    #[test]
    fn nothing_changes_while_nobody_asks() {
        let idle = ShareReport { limit_per_s: 250, used_per_s: 10, asks: false };
        assert_eq!(decided(1000, idle, &[idle; 3], false), 250);
        let busy = ShareReport { limit_per_s: 250, used_per_s: 250, asks: true };
        assert_eq!(decided(1000, busy, &[busy; 3], true), 250);
        // An old view takes nothing, but gives.
        assert_eq!(decided(1000, ShareReport { limit_per_s: 100, ..busy }, &[idle], false), 100);
        assert_eq!(decided(1000, idle, &[busy; 3], false), 31);
    }

    #[test]
    fn a_dead_worker_leaves_its_share() {
        let mut fleet = Fleet::new(900_000);
        for phase in [0, 300, 600] {
            fleet.join(3, 10_000_000, phase, 100);
        }
        fleet.run(5 * BEAT_MS);
        fleet.workers[2].is_alive = false;
        fleet.run((5 + STALE_BEATS + 3) * BEAT_MS);
        assert_eq!(fleet.sum(), 900_000);
        assert_eq!(fleet.workers[0].share.limit_per_s(), 450_000);
    }

    #[test]
    fn another_total_keeps_the_proportion() {
        let mut share = Share::begin(1000, 4, Duration::from_secs(1), &[]);
        share.set_total(2000);
        assert_eq!(share.limit_per_s(), 500);
        share.set_total(0);
        assert_eq!(share.limit_per_s(), 1);
    }

    /// What happens at a beat: a worker wants something else, one joins, one dies.
    #[derive(Clone, Debug)]
    enum Change {
        Demand(usize, u64),
        Join(u64, u64, u64),
        Death(usize),
    }

    fn change() -> impl Strategy<Value = Change> {
        let demand = prop_oneof![Just(0u64), 0..300_000u64, Just(u64::MAX >> 8)];
        prop_oneof![
            4 => (0..12usize, demand.clone()).prop_map(|(who, what)| Change::Demand(who, what)),
            1 => (demand, 0..BEAT_MS, 0..2 * BEAT_MS)
                .prop_map(|(what, phase, lag)| Change::Join(what, phase, lag)),
            1 => (0..12usize).prop_map(Change::Death),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Workers that want, idle, join, die and look late: the sum of the limits stays below the bound, no worker
        /// falls below the floor, and when nothing changes any more, what is wanted is used.
        #[test]
        fn the_sum_is_bounded_and_nothing_is_lost(
            first in proptest::collection::vec((0..2_000_000u64, 0..BEAT_MS, 0..2 * BEAT_MS), 2..8),
            changes in proptest::collection::vec((change(), 1..3 * BEAT_MS), 0..40),
        ) {
            let total = 1_000_000;
            let expected = first.len() as u64;
            let mut fleet = Fleet::new(total);
            for (demand, phase, lag) in first {
                fleet.join(expected, demand, phase, lag);
            }
            // Ten workers join at most: 1/3 + 1/4 + ... + 1/12 of an eighth, and a unit each for rounding.
            let bound = total + total / FLOOR_PARTS * 161 / 100 + 12;
            for (change, then_ms) in changes {
                let count = fleet.workers.len();
                match change {
                    Change::Demand(who, what) => fleet.workers[who % count].demand = what,
                    Change::Join(what, phase, lag) if count < 12 => {
                        fleet.join(expected, what, phase, lag);
                    }
                    Change::Join(..) => {}
                    Change::Death(who) => {
                        let alive = fleet.workers.iter().filter(|worker| worker.is_alive).count();
                        if alive > 1 {
                            fleet.workers[who % count].is_alive = false;
                        }
                    }
                }
                let most = fleet.run(fleet.now_ms + then_ms);
                prop_assert!(most <= bound, "{} of {}", most, total);
            }
            // All of them look in time now, and the dead are forgotten.
            for worker in &mut fleet.workers {
                worker.lag_ms = worker.lag_ms.min(BEAT_MS / 2);
            }
            let most = fleet.run(fleet.now_ms + (STALE_BEATS + 14) * BEAT_MS);
            prop_assert!(most <= bound, "{} of {}", most, total);
            let alive: Vec<&Worker> = fleet.workers.iter().filter(|worker| worker.is_alive).collect();
            // A floor does not rise when others leave: an idle worker asks for what it needs.
            let lowest = floor(total, fleet.workers.len() as u64);
            for worker in &alive {
                prop_assert!(worker.share.limit_per_s() + 1 >= lowest);
            }
            let wanted = alive.iter().map(|worker| worker.demand).fold(0, u64::saturating_add);
            let (used, floors) = (fleet.used(), total / FLOOR_PARTS);
            // Headroom and floors of those that do not ask stay unused.
            let least = wanted.min((total - floors) * 100 / HEADROOM_PERCENT) * 95 / 100;
            prop_assert!(used >= least, "{} of {} wanted: {} used", wanted, total, used);
            prop_assert!(fleet.sum() <= total + alive.len() as u64);
        }
    }
}
