//! Limits: rates shared by all workers, the number of active workers, and the maximum numbers.

use crate::error::Fatal;
use crate::meter::{Activity, Meter, Phase};
use crate::timetable::Schedule;
use crate::unit::Jobs;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Controls of a run: the number of jobs, the rates, and the counters that show their effect. An engine obeys and
/// counts; the controller reads and sets.
#[derive(Debug)]
pub struct Controls {
    /// Units under way.
    pub gate: Gate,
    /// Work done and under way.
    pub meter: Arc<Meter>,
    /// Bytes of content a second, all workers together.
    pub bytes: Option<Arc<Limiter>>,
    /// Operations (local) or requests (stores) a second, all workers together.
    pub operations: Option<Arc<Limiter>>,
}

impl Controls {
    /// Always `jobs` units, without limits of rates.
    pub fn fixed(jobs: usize) -> Controls {
        let meter = Arc::new(Meter::new(jobs));
        Controls { gate: Gate::fixed(jobs), meter, bytes: None, operations: None }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Gate {
    jobs: AtomicUsize,
    jobs_max: usize,
    changing: Mutex<()>,
    changed: Condvar,
    told: Notify,
}

impl Gate {
    /// `jobs` units may be under way, and never more than `jobs_max`.
    pub fn new(jobs: usize, jobs_max: usize) -> Gate {
        let jobs_max = jobs_max.max(1);
        Gate {
            jobs: AtomicUsize::new(jobs.clamp(1, jobs_max)),
            jobs_max,
            changing: Mutex::default(),
            changed: Condvar::new(),
            told: Notify::new(),
        }
    }

    /// Always `jobs`.
    pub fn fixed(jobs: usize) -> Gate {
        Gate::new(jobs, jobs)
    }

    /// Units that may be under way now, at least 1.
    pub fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Units that may ever be under way.
    pub fn jobs_max(&self) -> usize {
        self.jobs_max
    }

    /// Sets it and wakes those that wait for more. Workers at work are not interrupted.
    pub fn set(&self, jobs: usize) {
        let jobs = jobs.clamp(1, self.jobs_max);
        if self.jobs.swap(jobs, Ordering::Relaxed) != jobs {
            self.wake();
        }
    }

    /// Wakes all waiting threads, so that they check again, as at the end of a run.
    pub fn wake(&self) {
        drop(self.changing.lock());
        self.changed.notify_all();
        self.told.notify_waiters();
    }

    /// For threads: waits until worker `index` may work, or `over` says that there is nothing more
    /// to wait for (then call [`Gate::wake`]).
    pub fn wait_for_turn(&self, index: usize, over: impl Fn() -> bool) {
        let mut guard = self.changing.lock();
        while index >= self.jobs() && !over() {
            self.changed.wait(&mut guard);
        }
    }

    /// For futures: resolves at the next change after its first poll (or `enable`).
    pub fn change(&self) -> impl Future<Output = ()> + '_ {
        self.told.notified()
    }
}

/// Delay that may be caught up: late grants do not shift later ones, or the mean would be below the rate. Longer pauses
/// are not saved up.
const TOLERANCE: Duration = Duration::from_millis(40);
/// The largest grant, in parts of a second.
const GRANTS_PER_S: u64 = 40;
/// Shorter sleeps are skipped; units that became due meanwhile are caught up.
const SLEEP_MIN: Duration = Duration::from_millis(5);
/// After so long, a longer wait is interrupted to see whether the run stops or the rate has changed.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Time after which a limiter with a timetable looks at the clock again.
const LOOK: Duration = Duration::from_secs(1);

/// A rate in units a second, shared by all callers.
#[derive(Debug)]
pub struct Limiter {
    per_s: AtomicU64,
    /// Rates by time of day.
    follows: Option<Follows>,
    /// Nanoseconds after the start at which the last grant is paid for.
    paid_ns: AtomicU64,
    started: Instant,
    /// Threads that wait, in the order in which they came: the first sleeps until it gets its
    /// grant, the others until it is their turn to be first.
    line: Mutex<Line>,
    waiting: AtomicUsize,
}

/// A timetable, and how far a limiter has followed it. Grants look at the clock, so that no thread has to: without
/// grants no rate is needed.
#[derive(Debug)]
struct Follows {
    schedule: Schedule,
    /// Nanoseconds after the start of the limiter at which the clock was looked at.
    looked_ns: AtomicU64,
    /// The rate that the timetable had then.
    per_s: AtomicU64,
}

#[derive(Debug, Default)]
struct Line {
    threads: VecDeque<(u64, Thread)>,
    next: u64,
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Limiter {
    /// At most `per_s` units (bytes, operations) a second; zero counts as one, and `u64::MAX` is
    /// no limit.
    pub fn new(per_s: u64) -> Limiter {
        Limiter {
            per_s: AtomicU64::new(per_s.max(1)),
            follows: None,
            paid_ns: AtomicU64::new(0),
            started: Instant::now(),
            line: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Returns a limiter whose rate follows a timetable: within a second after a slot begins, grants are at its rate.
    pub fn following(schedule: Schedule) -> Limiter {
        let per_s = schedule.per_s_now();
        let (looked_ns, at_first) = (AtomicU64::new(0), AtomicU64::new(per_s));
        let follows = Some(Follows { schedule, looked_ns, per_s: at_first });
        Limiter { follows, ..Limiter::new(per_s) }
    }

    /// Takes the rate of the timetable at `now` (since the start) if it has changed.
    fn follow(&self, now: Duration) {
        let Some(Follows { schedule, looked_ns, per_s }) = &self.follows else { return };
        let (now_ns, last_ns) = (ns(now), looked_ns.load(Ordering::Relaxed));
        let is_due = now_ns.saturating_sub(last_ns) >= ns(LOOK);
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        if !is_due || looked_ns.compare_exchange(last_ns, now_ns, order.0, order.1).is_err() {
            return;
        }
        let new = schedule.per_s_now();
        if per_s.swap(new, Ordering::Relaxed) != new {
            self.set_per_s_at(new, now);
        }
    }

    /// The rate, in units a second.
    pub fn per_s(&self) -> u64 {
        self.per_s.load(Ordering::Relaxed)
    }

    /// Sets another rate, for all that is granted from now on. What was granted ahead is paid for
    /// at the new rate, too. Threads that wait in [`Limiter::wait`] notice within 100 ms.
    pub fn set_per_s(&self, per_s: u64) {
        self.set_per_s_at(per_s, self.elapsed());
    }

    fn set_per_s_at(&self, per_s: u64, now: Duration) {
        let (new, now_ns) = (per_s.max(1), ns(now));
        let old = self.per_s.swap(new, Ordering::Relaxed);
        let rescaled = |paid: u64| {
            let ahead = u128::from(paid.checked_sub(now_ns)?) * u128::from(old) / u128::from(new);
            Some(now_ns.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX)))
        };
        // `None`: nothing was granted ahead.
        let _ = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rescaled);
    }

    /// Time since this limiter was made: the `now` of its other functions.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn cost_ns(&self, count: u64) -> u64 {
        match self.per_s() {
            u64::MAX => 0,
            per_s => {
                let cost = u128::from(count) * 1_000_000_000 / u128::from(per_s);
                u64::try_from(cost).unwrap_or(u64::MAX)
            }
        }
    }

    /// Takes `count` units at `now` (since the start) and returns how long to wait before using
    /// them: first come, first served, for callers that must not block. Idle time is not saved up
    /// beyond 40 ms: a burst after a pause is no larger than that and one grant.
    pub fn take(&self, count: u64, now: Duration) -> Duration {
        self.follow(now);
        let (now_ns, cost_ns) = (ns(now), self.cost_ns(count));
        let floor_ns = now_ns.saturating_sub(ns(TOLERANCE));
        let next = |paid: u64| Some(paid.max(floor_ns).saturating_add(cost_ns));
        let paid = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        Duration::from_nanos(paid.unwrap_or_default().saturating_sub(now_ns))
    }

    /// Takes `count` units if they may be used at `now`; otherwise says how long that will take
    /// if no other worker comes first, and takes nothing.
    ///
    /// # Errors
    /// The time to wait.
    pub fn try_take(&self, count: u64, now: Duration) -> Result<(), Duration> {
        self.follow(now);
        let (now_ns, cost_ns) = (ns(now), self.cost_ns(count));
        let floor_ns = now_ns.saturating_sub(ns(TOLERANCE));
        let next = |paid: u64| (paid <= now_ns).then(|| paid.max(floor_ns).saturating_add(cost_ns));
        match self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(_) => Ok(()),
            Err(paid) => Err(Duration::from_nanos(paid - now_ns)),
        }
    }

    /// Takes `count` units, at most [`Limiter::grant_max`], if they may be used now and no
    /// thread waits.
    fn take_now(&self, count: u64) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0 && self.try_take(count, self.elapsed()).is_ok()
    }

    /// For threads: takes `count` units, at most [`Limiter::grant_max`], and returns when they may
    /// be used, or `false` without them soon after `stopped` is true. Threads are served in order of arrival; only
    /// the first sleeps by the clock.
    pub fn wait(&self, count: u64, stopped: impl Fn() -> bool) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut line = self.line.lock();
        let ticket = line.next;
        line.next += 1;
        line.threads.push_back((ticket, std::thread::current()));
        while line.threads.front().is_some_and(|(first, _)| *first != ticket) {
            drop(line);
            std::thread::park();
            line = self.line.lock();
        }
        drop(line);
        let granted = loop {
            if stopped() {
                break false;
            }
            match self.try_take(count, self.elapsed()) {
                Ok(()) => break true,
                Err(wait) => std::thread::sleep(wait.clamp(SLEEP_MIN, SLEEP_MAX)),
            }
        };
        let mut line = self.line.lock();
        line.threads.pop_front();
        if let Some((_, next)) = line.threads.front() {
            next.unpark();
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        granted
    }

    /// For threads: takes `count` units, in grants of at most [`Limiter::grant_max`], and returns when they may be used,
    /// or without the rest soon after `stopped` is true. Calls `waits` before each wait.
    pub fn take_all(&self, count: u64, stopped: impl Fn() -> bool, mut waits: impl FnMut()) {
        let mut left = count;
        while left > 0 && !stopped() {
            let grant = left.min(self.grant_max());
            if !self.take_now(grant) {
                waits();
                self.wait(grant, &stopped);
            }
            left -= grant;
        }
    }

    /// As [`Limiter::take_all`] to the end; `doing` is in [`Phase::Limit`] from the first wait on.
    pub fn pace(&self, count: u64, doing: &Activity) {
        let mut limited = None;
        self.take_all(
            count,
            || false,
            || {
                limited.get_or_insert_with(|| doing.during(Phase::Limit));
            },
        );
    }

    /// The largest grant that keeps the rate smooth: what is due in 25 ms, at least one unit.
    pub fn grant_max(&self) -> u64 {
        (self.per_s() / GRANTS_PER_S).max(1)
    }
}

/// Most workers on paths that are tried: beyond, threads only wait for each other.
const PATHS_JOBS_MAX: usize = 64;
/// Most requests in flight that are tried.
const STORES_JOBS_MAX: usize = 512;
/// Memory of one worker on paths: a buffer of 256 KiB, and about as much in queues and stack.
const WORKER_BYTES: u64 = 512 << 10;
/// Memory of one request besides its body: buffers of a connection and a listing's share.
const REQUEST_BYTES: u64 = 256 << 10;
/// The least budget between paths: two workers.
const PATHS_BYTES_MIN: u64 = 2 * WORKER_BYTES;
/// The least budget with a store: the largest part that is cut by default.
const STORES_BYTES_MIN: u64 = 16 << 20;

/// Descriptors that the program needs besides those of workers and directories.
const RESERVED_FILES: u64 = 32;
/// Minimum number of descriptors for sampling the machine. Its counters need about 20 of the reserved ones; with fewer
/// descriptors than this, all are left to the work.
const SAMPLED_FILES_MIN: u64 = 2 * RESERVED_FILES;
/// Descriptors that one worker on paths has open besides directories.
const OWN_FILES: u64 = 8;
/// Descriptors reserved for one worker on paths if the number of jobs is tuned: its own, directories of both sides, and
/// a batch of new files.
const WORKER_FILES: u64 = 32;
/// The same if the user gives the number: half for the worker, half for directories.
const ASKED_WORKER_FILES: u64 = 2 * OWN_FILES;
/// Descriptors of one request: a connection, a file, with room for listings.
const REQUEST_FILES: u64 = 4;

/// Directories (pairs between paths) that are kept open at most: beyond, closing and opening again costs little.
const OPEN_DIRS_MAX: u64 = 4096;
/// Directories of a local tree that are kept open while it is listed for a store.
const LISTED_DIRS_MAX: u64 = 128;
/// New files that one worker creates in one turn at most.
const BATCH_MAX: u64 = 64;

/// The kind of a run's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Trees that are walked: each directory has one descriptor.
    Walk,
    /// Paths to paths: each directory has two.
    Paths,
    /// A store is on a side.
    Store,
}

/// What the user allows a run to take: one value from the options to the gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Workers (`-j`): transfers of files, requests to S3.
    pub jobs: Jobs,
    /// Workers that move the content of one file, between paths (`--jobs-per-file`).
    pub jobs_per_file: Jobs,
    /// Content in bytes per second, for all workers together (`--bwlimit`).
    pub bytes_per_s_max: Option<u64>,
    /// The timetable of `--bwlimit`, if it has one: `bytes_per_s_max` is its rate when the run began.
    pub schedule: Option<Schedule>,
    /// Operations on files (`--iops-limit`), or requests where a side is in S3 (`--rps-limit`), per second.
    pub operations_per_s_max: Option<u64>,
    /// Bytes in flight and in buffers (`--memory`); 256 MiB by default.
    pub memory_bytes_max: Option<u64>,
}

impl Limits {
    /// Limits of a run whose only limit is the number of workers.
    pub fn of_jobs(jobs: Jobs) -> Limits {
        Limits { jobs, ..Limits::default() }
    }

    pub fn limits_a_rate(&self) -> bool {
        self.bytes_per_s_max.is_some() || self.operations_per_s_max.is_some()
    }

    /// Returns the share of one of `workers` machines; rates are divided, never to 0.
    #[must_use]
    pub fn divided(self, workers: u64) -> Limits {
        let share = |per_s: Option<u64>| per_s.map(|per_s| (per_s / workers.max(1)).max(1));
        let schedule = self.schedule.map(|schedule| schedule.divided(workers));
        let bytes_per_s_max = match schedule {
            Some(schedule) => Some(schedule.per_s_now()),
            None => share(self.bytes_per_s_max),
        };
        let operations_per_s_max = share(self.operations_per_s_max);
        Limits { bytes_per_s_max, schedule, operations_per_s_max, ..self }
    }

    /// Returns the limiter of content; `None` without a limit.
    pub fn byte_limiter(&self) -> Option<Limiter> {
        match self.schedule {
            Some(schedule) => Some(Limiter::following(schedule)),
            None => self.bytes_per_s_max.map(Limiter::new),
        }
    }
}

/// What this machine has room for: descriptors and memory divided among workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Jobs that may ever be under way, at least 1.
    pub jobs_max: usize,
    /// Directories (between paths: pairs of them) that are kept open.
    pub open_dirs_max: usize,
    /// New files that a worker may create in one turn, at least 1.
    pub batch_max: usize,
    /// Whether descriptors are left for the counters of the machine, which a verdict needs.
    pub samples: bool,
}

impl Capacity {
    /// Divides the descriptors and the memory.
    pub fn new(
        work: WorkKind,
        jobs: Jobs,
        memory_bytes_max: Option<u64>,
        open_files_max: u64,
    ) -> Capacity {
        let spare = open_files_max.saturating_sub(RESERVED_FILES);
        let (most, bytes, files) = match (work, jobs) {
            (WorkKind::Store, Jobs::Auto) => (STORES_JOBS_MAX, REQUEST_BYTES, REQUEST_FILES),
            (_, Jobs::Auto) => (PATHS_JOBS_MAX, WORKER_BYTES, WORKER_FILES),
            // A requested number is used, within descriptors and memory.
            (WorkKind::Store, Jobs::Fixed(jobs)) => (jobs, REQUEST_BYTES, REQUEST_FILES),
            (_, Jobs::Fixed(jobs)) => (jobs, WORKER_BYTES, ASKED_WORKER_FILES),
        };
        let by_memory = memory_bytes_max.map_or(u64::MAX, |budget| budget / bytes);
        let jobs_max = (most as u64).min(by_memory).min(spare / files).max(1);
        let unused = spare.saturating_sub(OWN_FILES * jobs_max);
        let open_dirs_max = match work {
            WorkKind::Walk => unused.clamp(2, OPEN_DIRS_MAX),
            WorkKind::Paths => (unused / 2).clamp(8, OPEN_DIRS_MAX),
            WorkKind::Store => (spare / 4).clamp(2, LISTED_DIRS_MAX),
        };
        let left = unused.saturating_sub(RESERVED_FILES + open_dirs_max);
        let batch_max = (left / (2 * jobs_max)).clamp(1, BATCH_MAX);
        // No limit exceeds its upper bound.
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Capacity {
            jobs_max: count(jobs_max),
            open_dirs_max: count(open_dirs_max),
            batch_max: count(batch_max),
            samples: open_files_max >= SAMPLED_FILES_MIN,
        }
    }
}

/// The least `--memory` that a transfer can do with, in bytes: with a store on a side, that of one
/// part, `part_bytes` where the user said so.
fn memory_bytes_min(with_store: bool, part_bytes: Option<u64>) -> u64 {
    match with_store {
        true => STORES_BYTES_MIN.max(part_bytes.unwrap_or(0)),
        false => PATHS_BYTES_MIN,
    }
}

/// Refuses a budget of memory that nothing could move in.
///
/// # Errors
/// Code 1, with the least that is needed.
pub fn check_memory(
    bytes_max: Option<u64>,
    with_store: bool,
    part_bytes: Option<u64>,
) -> Result<(), Fatal> {
    let least = memory_bytes_min(with_store, part_bytes.filter(|_| with_store));
    match bytes_max {
        Some(bytes) if bytes < least => {
            let mib = least.div_ceil(1 << 20);
            let why = format!("--memory is too small: this transfer needs at least {mib} MiB");
            Err(Fatal::new(1, why))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bounds_hold() {
        let gate = Gate::new(5, 8);
        assert_eq!(gate.jobs(), 5);
        gate.set(0);
        assert_eq!(gate.jobs(), 1);
        gate.set(100);
        assert_eq!(gate.jobs(), 8);
        gate.wait_for_turn(7, || false);
    }

    #[test]
    fn who_waits_is_woken() {
        let gate = Gate::new(1, 4);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for_turn(3, || false));
            gate.set(4);
            waiting.join().unwrap();
        });
    }

    #[test]
    fn the_mean_rate_is_the_rate() {
        let limiter = Limiter::new(1000);
        let mut now = Duration::ZERO;
        for _ in 0..100 {
            now += limiter.take(50, now);
        }
        // 100 grants of 50 at 1000/s: the last one begins when 99 are paid for.
        assert_eq!(now, Duration::from_millis(99 * 50));
    }

    #[test]
    fn idle_time_is_hardly_saved_up() {
        let limiter = Limiter::new(1000);
        let later = Duration::from_secs(3600);
        assert_eq!(limiter.take(100, later), Duration::ZERO);
        assert_eq!(limiter.take(100, later), Duration::from_millis(60));
    }

    #[test]
    fn what_comes_late_is_caught_up() {
        let limiter = Limiter::new(1000);
        let (mut now, mut granted) = (Duration::ZERO, 0);
        while now < Duration::from_secs(10) {
            match limiter.try_take(20, now) {
                Ok(()) => granted += 20,
                // Every sleep takes 30 ms longer than asked for.
                Err(wait) => now += wait + Duration::from_millis(30),
            }
        }
        assert!((9_950..=10_050).contains(&granted), "{granted} in 10 s");
    }

    #[test]
    fn the_rate_follows_the_clock() {
        use crate::timetable::{Timetable, UNLIMITED};
        use std::sync::atomic::AtomicU16;
        static MINUTE: AtomicU16 = AtomicU16::new(0);
        let clock = || MINUTE.load(Ordering::Relaxed);
        let table = Timetable::parse("00:00,1000K 00:01,100K 00:02,off 00:03,1000K", clock);
        let limiter = Limiter::following(Schedule::new(table.unwrap()));
        let mut now = Duration::ZERO;
        // A minute is 10 s here. Returns what is granted in it, in KiB.
        let mut minute = |number: u16| {
            MINUTE.store(number, Ordering::Relaxed);
            let (end, mut granted) = (now + Duration::from_secs(10), 0u64);
            while now < end {
                match limiter.try_take(1024, now) {
                    Ok(()) if limiter.per_s() == UNLIMITED => {
                        granted += 1;
                        now += Duration::from_millis(100);
                    }
                    Ok(()) => granted += 1,
                    Err(wait) => now += wait,
                }
            }
            granted
        };
        assert!((9_900..=10_100).contains(&minute(0)));
        // The old rate lasts for a second at most.
        let slow = minute(1);
        assert!((900..=2_100).contains(&slow), "{slow}");
        // Every request is granted.
        let free = minute(2);
        assert!((90..=205).contains(&free), "{free}");
        let fast = minute(3);
        assert!((8_900..=10_100).contains(&fast), "{fast}");
    }

    #[test]
    fn absurd_counts_do_not_wrap() {
        let limiter = Limiter::new(1);
        limiter.take(u64::MAX, Duration::ZERO);
        assert!(limiter.take(1, Duration::ZERO) > Duration::from_secs(1 << 30));
        let none = Limiter::new(u64::MAX);
        for _ in 0..1000 {
            assert!(none.take_now(1 << 40));
        }
    }

    #[test]
    fn another_rate_holds_at_once() {
        let limiter = Limiter::new(1000);
        assert_eq!(limiter.take(10_000, Duration::ZERO), Duration::ZERO);
        limiter.set_per_s_at(100_000, Duration::ZERO);
        assert_eq!((limiter.per_s(), limiter.grant_max()), (100_000, 2500));
        // Ten seconds' worth are a tenth of one now.
        assert_eq!(limiter.take(1000, Duration::ZERO), Duration::from_millis(100));
        limiter.set_per_s_at(50_000, Duration::from_millis(10));
        assert_eq!(limiter.take(1, Duration::from_millis(10)), Duration::from_millis(200));
    }

    #[test]
    fn those_who_wait_get_equal_shares_and_stop_soon() {
        let limiter = Limiter::new(4000);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let stopped = || stop.load(Ordering::Relaxed);
        let begun = Instant::now();
        let counts = std::thread::scope(|scope| {
            let one = || {
                let mut count = 0;
                while limiter.wait(20, stopped) {
                    count += 20;
                }
                count
            };
            let workers: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
            std::thread::sleep(Duration::from_millis(900));
            stop.store(true, Ordering::Relaxed);
            workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<u64>>()
        });
        let took_s = begun.elapsed().as_secs_f64();
        assert!(took_s < 1.5, "stopped after {took_s:.2} s");
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        // One that the scheduler forgets for a moment misses a turn.
        assert!(least * 10 >= most * 7, "{counts:?}");
        let all = counts.iter().sum::<u64>() as f64;
        assert!(all <= 4000.0 * (took_s + 0.04) + 120.0, "{all} in {took_s:.3} s");
    }

    proptest! {
        /// Takers that come at any times, ask for any allowed count, and wake late by any time:
        /// no second has more than its share.
        #[test]
        fn no_second_is_above_the_rate(
            per_s in prop_oneof![40u64..2000, 2000u64..10_000_000_000],
            asks in prop::collection::vec((0usize..8, 1u64..=100, 0u64..60_000), 50..600),
            reserves in any::<bool>(),
        ) {
            let limiter = Limiter::new(per_s);
            let grant_max = limiter.grant_max();
            // When each of the takers is free again.
            let mut free = [Duration::ZERO; 8];
            let mut used = Vec::new();
            for (taker, percent, late_us) in asks {
                let count = (grant_max * percent / 100).max(1);
                let mut now = free[taker];
                if reserves {
                    now += limiter.take(count, now);
                } else {
                    while let Err(wait) = limiter.try_take(count, now) {
                        now += wait;
                    }
                }
                used.push((now, count));
                free[taker] = now + Duration::from_micros(late_us);
            }
            used.sort_unstable();
            let second = Duration::from_secs(1);
            let (mut sum, mut first) = (0, 0);
            for (at, count) in &used {
                sum += count;
                while used[first].0 + second <= *at {
                    sum -= used[first].1;
                    first += 1;
                }
                let most = per_s as f64 * 1.04 + grant_max as f64;
                prop_assert!(sum as f64 <= most + 1.0, "{sum} of {per_s} up to {at:?}");
            }
        }

        /// A caller that always asks gets no less than the rate.
        #[test]
        fn who_always_asks_gets_the_rate(
            per_s in 1u64..1_000_000_000, takers in 1usize..20, late_us in 0u64..30_000,
        ) {
            let limiter = Limiter::new(per_s);
            let count = limiter.grant_max();
            let (mut now, mut granted) = (Duration::ZERO, 0u64);
            let end = Duration::from_secs(20).max(Duration::from_secs(50 * count / per_s));
            let mut taker = 0;
            while now < end {
                taker = (taker + 1) % takers;
                match limiter.try_take(count, now) {
                    Ok(()) => granted += count,
                    Err(wait) => now += wait + Duration::from_micros(late_us),
                }
            }
            let mean = granted as f64 / end.as_secs_f64() / per_s as f64;
            let slack = 2.0 * count as f64 / (per_s as f64 * end.as_secs_f64());
            prop_assert!((mean - 1.0).abs() <= 0.01 + slack, "{mean}");
        }
    }

    fn walk(jobs: usize, open_files_max: u64) -> (usize, usize) {
        let capacity = Capacity::new(WorkKind::Walk, Jobs::Fixed(jobs), None, open_files_max);
        (capacity.jobs_max, capacity.open_dirs_max)
    }

    #[test]
    fn few_descriptors_are_divided_between_workers_and_directories() {
        assert_eq!(walk(64, 256), (14, 112));
        assert_eq!(walk(8, 20_000), (8, 4096));
        assert_eq!(walk(8, 10), (1, 2));
    }

    #[test]
    fn memory_and_the_kind_of_work_bound_the_jobs() {
        let most = |work, memory| Capacity::new(work, Jobs::Auto, memory, 1 << 20).jobs_max;
        assert_eq!((most(WorkKind::Walk, None), most(WorkKind::Paths, None)), (64, 64));
        assert_eq!(most(WorkKind::Store, None), 512);
        assert_eq!(most(WorkKind::Paths, Some(4 << 20)), 8);
        assert_eq!(most(WorkKind::Store, Some(16 << 20)), 64);
        assert_eq!(most(WorkKind::Store, Some(0)), 1);
    }

    #[test]
    fn one_least_budget_for_each_kind() {
        assert_eq!(memory_bytes_min(false, Some(1 << 30)), 1 << 20);
        assert_eq!(memory_bytes_min(true, None), 16 << 20);
        assert_eq!(memory_bytes_min(true, Some(5 << 20)), 16 << 20);
        assert_eq!(memory_bytes_min(true, Some(64 << 20)), 64 << 20);
        assert!(check_memory(None, true, Some(1 << 40)).is_ok());
        assert!(check_memory(Some(16 << 20), true, None).is_ok());
        let refused = check_memory(Some((64 << 20) - 1), true, Some(64 << 20)).unwrap_err();
        assert_eq!((refused.code, refused.message.contains("at least 64 MiB")), (1, true));
    }

    proptest! {
        /// The sum for workers and directories never exceeds the limit of open files.
        #[test]
        fn descriptors_go_round(
            open_files_max in 128..1_u64 << 20,
            jobs in prop_oneof![Just(Jobs::Auto), (1_usize..5000).prop_map(Jobs::Fixed)],
            memory in proptest::option::of(0..1_u64 << 40),
        ) {
            for (work, each) in [(WorkKind::Walk, 1), (WorkKind::Paths, 2)] {
                let capacity = Capacity::new(work, jobs, memory, open_files_max);
                let jobs = capacity.jobs_max as u64;
                let dirs = each * capacity.open_dirs_max as u64;
                prop_assert!(RESERVED_FILES + OWN_FILES * jobs + dirs <= open_files_max);
                prop_assert!(capacity.batch_max >= 1 && jobs >= 1);
            }
        }
    }
}
