//! Counters of a clone, and what is due between blocks: the end, the end of ramp time,
//! samples, logs, and telling how far it is. For each block there is one comparison with the moment
//! at which the next of these is due; where no latencies are wanted, not even a clock is read for
//! each.

use super::drive::InFlight;
use super::logs::{LatencyKind, LogRecorder, SAMPLE};
use crate::job::{Clocks, Job};
use crate::outcome::{DepthCounts, DirectionStats, LogEntry, Outcome};
use crate::stats::Histogram;
use hakobu_sys::clock::Clock;
use hakobu_sys::proc::ResourceUsage;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Counters of a running clone for other threads: blocks and bytes, read and written, and, asked for it,
/// all that it has measured.
#[derive(Debug, Default)]
pub(super) struct CloneCounters {
    /// And the sums of their latencies, nanoseconds.
    sums: [AtomicU64; 6],
    asked: AtomicBool,
    over: AtomicBool,
    answer: Mutex<Option<Outcome>>,
}

impl CloneCounters {
    /// Blocks and bytes of both sides.
    pub(super) fn sides(&self) -> [(u64, u64); 2] {
        let [a, b, c, d, ..] = &self.sums;
        let get = |place: &AtomicU64| place.load(Ordering::Relaxed);
        [(get(a), get(b)), (get(c), get(d))]
    }

    /// Sum of the latencies of both sides, ramp time apart, nanoseconds.
    pub(super) fn latency_ns(&self) -> u64 {
        let [.., reads, writes] = &self.sums;
        reads.load(Ordering::Relaxed) + writes.load(Ordering::Relaxed)
    }

    /// Takes new sums, in the same order.
    pub(super) fn show(&self, sums: impl Iterator<Item = u64>) {
        for (place, sum) in self.sums.iter().zip(sums) {
            place.store(sum, Ordering::Relaxed);
        }
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// It is to end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Asks for all that was measured.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// That was not answered yet.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Answers.
    pub(super) fn tell(&self, measured: Outcome) {
        *self.answer.lock() = Some(measured);
        self.asked.store(false, Ordering::Release);
    }

    /// The last answer.
    pub(super) fn told(&self) -> Option<Outcome> {
        self.answer.lock().clone()
    }
}

/// Maximum interval of progress reports and of checks whether to stop.
const TELL: Duration = Duration::from_millis(50);
/// Blocks between two looks at the clock, at most, where it is not read for each. Looking costs less
/// than a hundredth of the fastest block then.
const STRIDE_MAX: u32 = 16;
/// If looks are closer than this, every second one is spared; if they are farther apart than ten
/// times this, there are twice as many.
const LOOK: Duration = Duration::from_micros(20);

/// The counters of a clone.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    pub(super) clock: Clock,
    pub(super) clocks: Clocks,
    /// Times are taken of each block.
    pub(super) timed: bool,
    /// Submission and completion are different moments, or blocks have a time at which they should
    /// have gone: otherwise both latencies are the same, and one is recorded.
    apart: bool,
    /// Its engine waits for each block.
    waits: bool,
    /// Each block is logged, or counted by its priority.
    closely: bool,
    /// It is time to end.
    pub(super) over: bool,
    /// The job ends as it is slower than it may be (`rate_min`).
    pub(super) too_slow: Option<String>,
    pub(super) sides: [DirectionStats; 2],
    pub(super) depths: DepthCounts,
    pub(super) sync: Histogram,
    job: &'a Job,
    counters: &'a CloneCounters,
    stop: &'a AtomicBool,
    logs: Option<Box<LogRecorder>>,
    /// In ticks: its beginning, that of what is counted, the end of ramp time (`None`: it is over),
    /// and of everything.
    pub(super) begun: u64,
    counted: u64,
    ramp_end: Option<u64>,
    deadline: u64,
    /// Time when something is due, at the earliest.
    pub(super) due: u64,
    sample_due: u64,
    sampled: u64,
    log_due: u64,
    logged: u64,
    /// Time of the next look at least rates, time of the last, and blocks and bytes then.
    least_due: u64,
    least_seen: (u64, [(u64, u64); 2]),
    /// Blocks and bytes at the last sample, and those of ramp time.
    before: [(u64, u64); 2],
    ramp: [(u64, u64); 2],
    used: ResourceUsage,
    /// Blocks until the next look at the clock, how many these are, and when the last one was.
    left: u32,
    stride: u32,
    looked: u64,
}

impl<'a> Meter<'a> {
    /// Counters for a job. `waits`: its engine waits for each block.
    pub(super) fn new(
        job: &'a Job,
        counters: &'a CloneCounters,
        stop: &'a AtomicBool,
        waits: bool,
    ) -> Meter<'a> {
        let clocks = Clocks { slat: job.clocks.slat && !waits, ..job.clocks };
        let rated = job.rate_bytes_per_s.iter().chain(&job.rate_iops).any(Option::is_some);
        let logs = LogRecorder::new(job);
        Meter {
            clock: Clock::best(),
            clocks,
            timed: clocks.clat || clocks.slat || clocks.lat,
            apart: !waits || rated,
            waits,
            closely: logs.is_some() || job.priorities.of_blocks(),
            over: false,
            too_slow: None,
            sides: Default::default(),
            depths: DepthCounts::default(),
            sync: Histogram::default(),
            job,
            counters,
            stop,
            logs,
            begun: 0,
            counted: 0,
            ramp_end: None,
            deadline: u64::MAX,
            due: 0,
            sample_due: u64::MAX,
            sampled: 0,
            log_due: u64::MAX,
            logged: 0,
            least_due: u64::MAX,
            least_seen: (0, [(0, 0); 2]),
            before: [(0, 0); 2],
            ramp: [(0, 0); 2],
            used: ResourceUsage::default(),
            left: 1,
            stride: 1,
            looked: 0,
        }
    }

    fn ticks(&self, time: Duration) -> u64 {
        self.clock.ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The moment after so long.
    pub(super) fn after(&self, span: Duration) -> u64 {
        self.clock.now().saturating_add(self.ticks(span))
    }

    /// The time, at which what is due has been done.
    pub(super) fn pass(&mut self) -> u64 {
        let now = self.clock.now();
        if now >= self.due {
            self.run_due(now);
        }
        now
    }

    /// It begins now.
    pub(super) fn begin(&mut self) {
        let now = self.clock.now();
        self.begun = now;
        self.looked = now;
        let ramp = self.ticks(self.job.ramp);
        self.ramp_end = (ramp > 0).then(|| now.saturating_add(ramp));
        if let Some(runtime) = self.job.runtime {
            self.deadline = now.saturating_add(ramp).saturating_add(self.ticks(runtime));
        }
        self.count_from(now);
        self.begin_least(now);
        self.tell(now);
    }

    /// Begins to count.
    fn count_from(&mut self, now: u64) {
        self.counted = now;
        self.used = ResourceUsage::of_thread();
        self.before = [(0, 0); 2];
        (self.sampled, self.logged) = (now, now);
        if self.clocks.bandwidth {
            self.sample_due = now.saturating_add(self.ticks(SAMPLE));
        }
        if let Some(logs) = &mut self.logs {
            logs.reset();
            let window = logs.window;
            self.log_due = now.saturating_add(self.ticks(window));
        }
    }

    /// A block has landed whole, at `end`.
    #[inline(always)]
    pub(super) fn landed(&mut self, flight: &InFlight, end: u64) {
        let side = &mut self.sides[usize::from(flight.block.write)];
        side.ios += 1;
        side.bytes += u64::from(flight.block.bytes);
        if self.timed {
            let completion_ns = self.clock.between_ns(flight.issue, end);
            if self.apart {
                if self.clocks.clat {
                    side.clat.record(completion_ns);
                }
                if self.clocks.slat {
                    side.slat.record(self.clock.between_ns(flight.start, flight.issue));
                }
                if self.clocks.lat {
                    side.lat.record(self.clock.between_ns(flight.start, end));
                }
            } else {
                side.clat.record(completion_ns);
            }
            if self.closely {
                self.look_closely(flight, end);
            }
        }
    }

    #[cold]
    fn look_closely(&mut self, flight: &InFlight, end: u64) {
        if self.job.priorities.of_blocks() {
            let from = if self.job.lat_percentiles { flight.start } else { flight.issue };
            let latency_ns = self.clock.between_ns(from, end);
            let priority = self.effective(flight);
            let side = &mut self.sides[usize::from(flight.block.write)];
            side.by_priority(priority).record(latency_ns);
        }
        self.log(flight, end);
    }

    /// Number of the priority that a block has, be it that of the thread.
    fn effective(&self, flight: &InFlight) -> u16 {
        match flight.priority {
            0 => self.job.priorities.own_value(),
            own => own,
        }
    }

    fn log(&mut self, flight: &InFlight, end: u64) {
        let priority = self.effective(flight);
        let Some(logs) = self.logs.as_mut().filter(|logs| logs.latency) else { return };
        let (clock, block) = (self.clock, &flight.block);
        let at_ms = clock.between_ns(self.counted, end) / 1_000_000;
        let mut log = |which, value, wanted| {
            let (write, bytes) = (block.write, u64::from(block.bytes));
            if wanted {
                let offset = block.offset;
                logs.block(which, LogEntry { at_ms, value, write, bytes, offset, priority });
            }
        };
        log(LatencyKind::Slat, clock.between_ns(flight.start, flight.issue), self.clocks.slat);
        log(LatencyKind::Clat, clock.between_ns(flight.issue, end), self.clocks.clat);
        log(LatencyKind::Lat, clock.between_ns(flight.start, end), self.clocks.lat);
    }

    /// After one or more blocks: runs due actions. `end` is now, if times are taken.
    #[inline(always)]
    pub(super) fn look(&mut self, end: u64) {
        if self.timed {
            if end >= self.due {
                self.run_due(end);
            }
        } else {
            self.left -= 1;
            if self.left == 0 {
                self.look_up();
            }
        }
    }

    /// Reads the clock, and adapts how often that is.
    #[inline(never)]
    fn look_up(&mut self) {
        let now = self.clock.now();
        let gap = Duration::from_nanos(self.clock.between_ns(self.looked, now));
        if gap < LOOK {
            self.stride = (2 * self.stride).min(STRIDE_MAX);
        } else if gap > 10 * LOOK {
            self.stride = (self.stride / 2).max(1);
        }
        (self.looked, self.left) = (now, self.stride);
        if now >= self.due {
            self.run_due(now);
        }
    }

    /// Returns whether the job is to end, while its count is interrupted.
    pub(super) fn is_late(&self) -> bool {
        let stops = self.stop.load(Ordering::Relaxed) || self.counters.is_over();
        stops || self.clock.now() >= self.deadline
    }

    /// Interrupts the count, and nothing is due meanwhile; the time of the job goes on. Returns the time of the
    /// interruption.
    pub(super) fn pause(&mut self) -> u64 {
        self.due = u64::MAX;
        self.clock.now()
    }

    /// What is counted goes on as if no time had passed since `paused`.
    pub(super) fn resume(&mut self, paused: u64) {
        let now = self.clock.now();
        let gap = now.saturating_sub(paused);
        for time in [
            &mut self.begun,
            &mut self.counted,
            &mut self.sample_due,
            &mut self.sampled,
            &mut self.log_due,
            &mut self.logged,
            &mut self.looked,
            &mut self.least_due,
            &mut self.least_seen.0,
        ] {
            *time = time.saturating_add(gap);
        }
        // Ramp time and the time of the job are times of the clock.
        self.over |= now >= self.deadline;
        self.tell(now);
    }

    /// Runs the actions that are due at `now`.
    #[cold]
    #[inline(never)]
    fn run_due(&mut self, now: u64) {
        if self.ramp_end.is_some_and(|end| now >= end) {
            self.end_ramp(now);
        }
        if now >= self.deadline {
            self.over = true;
        }
        if now >= self.sample_due {
            self.sample(now);
        }
        if now >= self.log_due {
            self.close_window(now);
        }
        if now >= self.least_due {
            self.look_at_rates(now);
        }
        self.tell(now);
    }

    /// Ends the ramp time: nothing before now is counted.
    fn end_ramp(&mut self, now: u64) {
        self.ramp_end = None;
        for (ramp, side) in self.ramp.iter_mut().zip(&mut self.sides) {
            *ramp = (ramp.0 + side.ios, ramp.1 + side.bytes);
            *side = DirectionStats::default();
        }
        self.depths = DepthCounts::default();
        self.sync = Histogram::default();
        self.count_from(now);
    }

    fn sample(&mut self, now: u64) {
        let seconds = self.clock.between_ns(self.sampled, now) as f64 / 1e9;
        let works = [self.job.rw.reads, self.job.rw.writes];
        for ((side, before), works) in self.sides.iter_mut().zip(&mut self.before).zip(works) {
            if works {
                side.iops.push((side.ios - before.0) as f64 / seconds);
                side.bandwidth.push((side.bytes - before.1) as f64 / seconds);
            }
            *before = (side.ios, side.bytes);
        }
        self.sampled = now;
        self.sample_due = next(self.sample_due, self.ticks(SAMPLE), now);
    }

    fn close_window(&mut self, now: u64) {
        let at_ms = self.clock.between_ns(self.counted, now) / 1_000_000;
        let took_ns = self.clock.between_ns(self.logged, now);
        if let Some(logs) = &mut self.logs {
            logs.close(at_ms, took_ns, &self.sides);
            let window = logs.window;
            self.log_due = next(self.log_due, self.ticks(window), now);
        }
        self.logged = now;
    }

    /// Reports progress, checks whether to stop, and determines the next due action.
    fn tell(&mut self, now: u64) {
        self.show();
        if self.counters.is_asked() {
            self.answer(now);
        }
        if self.stop.load(Ordering::Relaxed) || self.counters.is_over() {
            self.over = true;
        }
        let told = now.saturating_add(self.ticks(TELL));
        let due = [self.deadline, self.sample_due, self.log_due, self.least_due, told];
        self.due = due.into_iter().fold(self.ramp_end.unwrap_or(u64::MAX), u64::min);
    }

    fn show(&self) {
        let sums = self.sides.iter().zip(&self.ramp);
        let latency_ns =
            |side: &DirectionStats| (side.clat.mean_ns() * side.clat.count() as f64) as u64;
        let latencies = self.sides.iter().map(latency_ns);
        let sums = sums.flat_map(|(side, ramp)| [side.ios + ramp.0, side.bytes + ramp.1]);
        self.counters.show(sums.chain(latencies));
    }
}

/// Next time of something that was due at `due` and is so every `step`: as many steps later as
/// it takes to be after now.
fn next(due: u64, step: u64, now: u64) -> u64 {
    let step = step.max(1);
    due.saturating_add((now.saturating_sub(due) / step + 1).saturating_mul(step))
}

/// Counts of blocks and syncs.
type Counted = ([DirectionStats; 2], Histogram, DepthCounts);

impl Meter<'_> {
    /// It ends now: fills in all that is counted here.
    pub(super) fn finish(mut self, outcome: &mut Outcome) {
        let now = self.clock.now();
        self.show();
        // A clone that ends in ramp time has measured nothing.
        if self.ramp_end.is_some() {
            self.end_ramp(now);
        } else if self.logs.is_some() {
            self.close_window(now);
        }
        let depths = std::mem::take(&mut self.depths);
        let counted = (std::mem::take(&mut self.sides), std::mem::take(&mut self.sync), depths);
        self.measured(now, counted, outcome);
        outcome.logged = self.logs.map(|logs| logs.logged).unwrap_or_default();
    }

    /// Sends the counters so far to the requester; during ramp time there are none.
    pub(super) fn answer(&self, now: u64) {
        let mut outcome = Outcome::default();
        if self.ramp_end.is_none() {
            let counted = (self.sides.clone(), self.sync.clone(), self.depths.clone());
            self.measured(now, counted, &mut outcome);
        }
        self.counters.tell(outcome);
    }

    /// Fills in the counters so far, without logs.
    fn measured(&self, now: u64, counted: Counted, outcome: &mut Outcome) {
        let used = ResourceUsage::of_thread().since(&self.used);
        outcome.runtime_ns = self.clock.between_ns(self.counted, now);
        outcome.user_ns = used.user.as_nanos() as u64;
        outcome.sys_ns = used.sys.as_nanos() as u64;
        outcome.switches = used.voluntary_switches + used.involuntary_switches;
        outcome.faults = [used.major_faults, used.minor_faults];
        (outcome.sides, outcome.sync, outcome.depths) = counted;
        for side in &mut outcome.sides {
            if !self.apart {
                if self.clocks.lat {
                    side.lat = side.clat.clone();
                }
                if !self.clocks.clat {
                    side.clat = Histogram::default();
                }
            }
        }
        if self.waits {
            // One after the other: this need not be counted.
            let blocks = outcome.sides.iter().map(|side| side.ios).sum();
            outcome.depths.level[0] = blocks;
            outcome.depths.submit[1] = blocks;
            outcome.depths.complete[1] = blocks;
        }
    }
}

/// Rates are not checked before this time, as in fio.
const SETTLE: Duration = Duration::from_secs(2);

impl Meter<'_> {
    /// The job begins now.
    pub(super) fn begin_least(&mut self, now: u64) {
        let least = &self.job.least;
        if least.bytes_per_s.iter().chain(&least.iops).any(Option::is_some) {
            let settled = SETTLE.saturating_sub(least.cycle);
            self.least_seen = (now.saturating_add(self.ticks(settled)), [(0, 0); 2]);
            self.least_due = now.saturating_add(self.ticks(SETTLE.max(least.cycle)));
        }
    }

    /// Blocks and bytes of both sides, ramp time included.
    fn moved(&self) -> [(u64, u64); 2] {
        let of = |at: usize| {
            let (side, ramp) = (&self.sides[at], self.ramp[at]);
            (side.ios + ramp.0, side.bytes + ramp.1)
        };
        [of(0), of(1)]
    }

    /// Compares the rates since the last look with those that there have to be.
    pub(super) fn look_at_rates(&mut self, now: u64) {
        let (since, before) = self.least_seen;
        let moved = self.moved();
        let seconds = self.clock.between_ns(since, now) as f64 / 1e9;
        let least = &self.job.least;
        let works = [self.job.rw.reads, self.job.rw.writes];
        for (at, name) in ["read", "write"].into_iter().enumerate().filter(|(at, _)| works[*at]) {
            // The first cycle also includes the settling time.
            let from = before[at];
            let rate = |count: u64| count as f64 / seconds.max(1e-9);
            let (iops, bytes) = (rate(moved[at].0 - from.0), rate(moved[at].1 - from.1));
            let wanted =
                [(least.bytes_per_s[at], bytes, "bytes"), (least.iops[at], iops, "blocks")];
            for (wanted, found, unit) in wanted {
                if let Some(wanted) = wanted.filter(|wanted| found < *wanted as f64) {
                    self.over = true;
                    self.too_slow = Some(format!(
                        "{name}: {found:.0} {unit} per second, less than the minimum of {wanted} \
                         (rate_min, rate_iops_min)"
                    ));
                }
            }
        }
        self.least_seen = (now, moved);
        let cycle = self.ticks(least.cycle);
        self.least_due = next(self.least_due, cycle, now);
    }
}
