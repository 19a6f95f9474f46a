//! One worker: it claims a shard, reads its entries, transfers or verifies them, writes a result, and takes the next
//! shard, until all are done; where the plan has ranges, it lists one when it knows of no free shard, and looks at both
//! ends of them once more when all shards are done. Shards that take less time than it takes to begin with one are done
//! together. Everything it does may be done twice.
//!
//! The story of a shard, from top to bottom: [`work`] starts the heartbeats and the loop; [`Queue`] claims and reads the
//! shard, while the ones before are still in hand; [`Worker::shards`] hands its entries to an ordinary transfer
//! ([`transfer_entries`]) or to [`verify`]; the queue writes the result.

use crate::claims::{self, ClaimId};
use crate::collect::after_transfer;
use crate::folder::{RunError, RunFolder};
use crate::heartbeat::{self, Heartbeat, WorkerState};
use crate::known::{HeldManifests, PreviousRun, RunKnowledge};
use crate::plan::{ClusterPlan, Phase, Shard, ShardNumber, parts_of, shown_number};
use crate::planner::list_range;
use crate::queue::{Claimed, Next, UnitQueue};
use crate::ranges::RangePart;
use crate::results::{SegmentWriter, ShardVerdict};
use crate::shard::{self, ShardEntry, ShardError};
use crate::shares::{Share, ShareReport, ShareView};
use crate::submitted;
use crate::verify;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Problem, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::{Controls, Limits};
use hakobu_core::meter::{Meter, Phase as MeterPhase};
use hakobu_core::unit::Totals;
use hakobu_transfer::journal;
use hakobu_transfer::location::Location;
use hakobu_transfer::manifest::ManifestFiles;
use hakobu_transfer::plan::{EntrySelection, Expected, NOT_AS_PLANNED};
use hakobu_transfer::run::{Outcome, Spec, transfer};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest time between two looks of a worker that waits for others.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// Time after which a waiting worker sees that the run is asked to stop, at most.
const STOP_SEEN_AFTER: Duration = Duration::from_millis(50);
/// Time over which a heartbeat tells the rate.
const RATE_OVER: Duration = Duration::from_secs(10);
/// Beats after which a worker counts the others anew: the more they are, the less often each beats.
const WORKERS_COUNTED_EVERY: u64 = 8;
/// Shards are done together that take so long by the pace of those before: each run of the engine starts threads and
/// looks at the machine, which takes some milliseconds. Others wait for no more than this at the end.
const TOGETHER: Duration = Duration::from_millis(100);
/// Kinds of problems that a result keeps.
const PROBLEMS_MAX: usize = 64;

pub struct WorkerSetup<'a> {
    pub folder: &'a dyn RunFolder,
    pub plan: &'a ClusterPlan,
    /// The transfer as the plan's command line has it. Limits of rates are those of the whole run.
    pub spec: Spec,
    /// Stops the worker.
    pub control: &'a Control,
    /// Receives problems and progress.
    pub listener: &'a dyn Listener,
    /// A worker whose counter stands still for so long counts as gone.
    pub stale: Duration,
    /// Workers that are expected, this one included.
    pub workers: u64,
    /// Work on the shards.
    pub phase: Phase,
    /// What an earlier run of the same ends knows of objects.
    pub previous: Option<&'a PreviousRun>,
    /// This process has the last word on the run: it believes only what it sees itself.
    pub last_word: bool,
}

impl WorkerSetup<'_> {
    /// Gives a sign of life. A look publishes nothing: it needs no lease.
    fn beat(&self, beat: &Heartbeat) -> Result<(), RunError> {
        match self.phase {
            Phase::Look(_) => heartbeat::write(self.folder, beat),
            _ => heartbeat::write_and_extend(self.folder, beat, self.control, self.stale),
        }
    }

    /// Returns whether names are paths at one end at least: keys of a store may hold `..` and begin with a slash.
    fn has_paths(&self) -> bool {
        self.plan.local || self.spec.target.local().is_some() || !self.spec.sources.are_s3()
    }

    /// Gives a shard back. One that cannot be given back is redone when this worker counts as gone.
    fn give_back(&self, claim: ClaimId) {
        drop(claims::give_back(self.folder, &self.phase.claims(), claim));
    }
}

/// Result of a shard that was worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardResult {
    pub shard: ShardNumber,
    pub worker: String,
    pub host: String,
    /// Number of the try; 0 for the first.
    pub generation: u32,
    pub entries: u64,
    /// Bytes that the plan had for it.
    #[serde(default)]
    pub planned_bytes: u64,
    /// Cost that the plan had for it.
    #[serde(default)]
    pub cost: u64,
    /// Files transferred.
    pub files: u64,
    /// Bytes of content moved.
    pub bytes: u64,
    /// Entries that needed nothing.
    pub skipped: u64,
    /// Entries that could not be transferred.
    pub failed: u64,
    /// Entries that were gone.
    pub vanished: u64,
    /// Entries that were not what the plan saw, and were left alone.
    pub changed: u64,
    /// Entries that differ at both ends; of a verification, where `files` and `bytes` are those that
    /// were compared.
    #[serde(default)]
    pub differences: u64,
    /// Seconds of the worker's life at which it began and ended.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Jobs in use for most of the time.
    pub jobs: usize,
    /// Its verdict, if it ran long enough for one.
    pub verdict: Option<ShardVerdict>,
    /// Time of the transfer that the verdict is on.
    #[serde(skip)]
    pub(crate) judged_for: Duration,
    /// Problems: a sentence without names, how many, and the first one's path.
    pub problems: Vec<(String, u64, String)>,
    /// The shard cannot be read; `collect` transfers its entries.
    pub damaged: Option<String>,
}

/// State that the heartbeat thread and the work share.
struct Shared {
    beat: Mutex<Heartbeat>,
    meter: CurrentMeter,
    /// Limits of this worker now.
    limits: Mutex<Limits>,
    /// Limiters of the transfer in hand.
    controls: CurrentControls,
    /// Operations of transfers that have ended.
    operations: AtomicU64,
    over: Mutex<bool>,
    wakes: Condvar,
    beat_error: Mutex<Option<RunError>>,
}

impl Shared {
    /// The transfer in hand has ended.
    fn ended(&self) {
        if let Some(meter) = self.meter.lock().take() {
            self.operations.fetch_add(meter.counts().operations, Ordering::Relaxed);
        }
        *self.controls.lock() = None;
    }

    /// Sets limits, also those of the transfer in hand.
    fn set_limits(&self, bytes: Option<u64>, operations: Option<u64>) {
        let mut limits = self.limits.lock();
        limits.bytes_per_s_max = bytes.or(limits.bytes_per_s_max);
        limits.operations_per_s_max = operations.or(limits.operations_per_s_max);
        let controls = self.controls.lock();
        let Some(controls) = &*controls else { return };
        for (limiter, per_s) in [(&controls.bytes, bytes), (&controls.operations, operations)] {
            if let (Some(limiter), Some(per_s)) = (limiter, per_s) {
                limiter.set_per_s(per_s);
            }
        }
    }
}

/// This worker's parts of the limits of the run, decided at each beat.
struct Shares {
    bytes: Option<Share>,
    operations: Option<Share>,
    /// Time, bytes and operations at the beat before.
    before: (Instant, u64, u64),
}

impl Shares {
    /// `None` where nothing is limited, or by a timetable: then each worker has an equal share.
    fn begin(setup: &WorkerSetup<'_>, now: Instant) -> Option<Shares> {
        let limits = setup.spec.limits;
        let is_shared = setup.phase == Phase::Transfer && limits.schedule.is_none();
        if !limits.limits_a_rate() || !is_shared {
            return None;
        }
        let others = others(setup.folder, "").unwrap_or_default();
        let beat = heartbeat::interval(setup.stale);
        let share = |total: Option<u64>, of: fn(&Heartbeat) -> Option<ShareReport>| {
            let reports: Vec<ShareReport> = others.iter().filter_map(of).collect();
            total.map(|total| Share::begin(total, setup.workers, beat, &reports))
        };
        Some(Shares {
            bytes: share(limits.bytes_per_s_max, |beat| beat.byte_share),
            operations: share(limits.operations_per_s_max, |beat| beat.operation_share),
            before: (now, 0, 0),
        })
    }

    fn limits(&self) -> (Option<u64>, Option<u64>) {
        let of = |share: &Option<Share>| share.as_ref().map(Share::limit_per_s);
        (of(&self.bytes), of(&self.operations))
    }

    /// Decides, and adds what the beat reports to it.
    fn decide(&mut self, setup: &WorkerSetup<'_>, shared: &Shared, beat: &mut Heartbeat) {
        let read_at = Instant::now();
        let Ok(others) = others(setup.folder, &beat.worker) else { return };
        let counts = shared.meter.lock().as_ref().map(|meter| meter.counts()).unwrap_or_default();
        let waits = counts.doing.get(MeterPhase::Limit as usize).is_some_and(|units| *units > 0);
        let operations = shared.operations.load(Ordering::Relaxed) + counts.operations;
        let now = Instant::now();
        let took_s = now.duration_since(self.before.0).as_secs_f64().max(0.001);
        let rate = |all: u64, before: u64| (all.saturating_sub(before) as f64 / took_s) as u64;
        let used = (rate(beat.bytes, self.before.1), rate(operations, self.before.2));
        self.before = (now, beat.bytes, operations);
        let decide = |share: &mut Option<Share>,
                      used_per_s: u64,
                      of: fn(&Heartbeat) -> Option<ShareReport>| {
            let share = share.as_mut()?;
            let others: Vec<ShareReport> = others.iter().filter_map(of).collect();
            // It waits at this moment, or has used what it had.
            let is_limited = waits && used_per_s.saturating_mul(2) >= share.limit_per_s()
                || used_per_s.saturating_mul(10) >= share.limit_per_s().saturating_mul(9);
            let age = read_at.elapsed();
            let view = ShareView { used_per_s, is_limited, others: &others, age };
            Some(share.decide(&view, now))
        };
        beat.byte_share = decide(&mut self.bytes, used.0, |beat| beat.byte_share);
        beat.operation_share = decide(&mut self.operations, used.1, |beat| beat.operation_share);
    }
}

/// Beats of the other workers that are alive.
fn others(folder: &dyn RunFolder, me: &str) -> Result<Vec<Heartbeat>, RunError> {
    let seen = heartbeat::see_all(folder)?.into_iter();
    let alive = seen.filter(|seen| seen.is_alive() && seen.beat.worker != me);
    Ok(alive.map(|seen| seen.beat).collect())
}

/// Works until nothing is left.
///
/// # Errors
/// Something went wrong, or `control` stopped it.
pub fn work(setup: &WorkerSetup<'_>) -> Result<(), RunError> {
    let folder = setup.folder;
    let began = Instant::now();
    let verifies = matches!(setup.phase, Phase::Verify(_));
    let (looks, collects) = (matches!(setup.phase, Phase::Look(_)), setup.last_word && !verifies);
    let beat = Heartbeat { verifies, looks, collects, ..Heartbeat::first(setup.stale)? };
    let name = beat.worker.clone();
    match (setup.phase.end_reason(folder)?, &setup.phase) {
        (None, _) => {}
        (Some(_), Phase::Transfer) => return Ok(()),
        (Some(why), _) => return Err(RunError::transient(why)),
    }
    let shares = Shares::begin(setup, began);
    let mut beat = beat;
    if let Some(shares) = &shares {
        let report = |limit_per_s| ShareReport { limit_per_s, ..ShareReport::default() };
        let (bytes, operations) = shares.limits();
        (beat.byte_share, beat.operation_share) = (bytes.map(report), operations.map(report));
    }
    setup.beat(&beat)?;
    let shared = Shared {
        beat: Mutex::new(beat),
        meter: Mutex::default(),
        limits: Mutex::new(setup.spec.limits),
        controls: Mutex::default(),
        operations: AtomicU64::new(0),
        over: Mutex::new(false),
        wakes: Condvar::new(),
        beat_error: Mutex::default(),
    };
    let clock = Instant::now;
    let mut worker = Worker {
        setup,
        knowledge: RunKnowledge::new(folder, &name, setup.previous),
        name,
        began,
        shared: &shared,
        waiting_since: None,
        jobs_before: Cell::default(),
        cost_together: 0,
    };
    let mut ended = thread::scope(|scope| {
        let beats = thread::Builder::new().name("beats".into());
        match &shares {
            Some(shares) => {
                let (bytes, operations) = shares.limits();
                shared.set_limits(bytes, operations);
            }
            None => *shared.limits.lock() = setup.spec.limits.divided(setup.workers),
        }
        let started = beats.spawn_scoped(scope, || keep_beating(setup, &shared, shares, began));
        let ended = match started {
            Ok(_) => worker.run(&clock),
            Err(error) => Err(RunError::transient(format!("cannot start a thread: {error}"))),
        };
        *shared.over.lock() = true;
        shared.wakes.notify_all();
        ended
    });
    if let (Err(RunError { is_transient: true, .. }), Some(error)) =
        (&ended, shared.beat_error.lock().take())
    {
        ended = Err(error);
    }
    let mut last = shared.beat.lock().clone();
    last.bytes_per_s = 0.0;
    last.state = WorkerState::Ended;
    (last.shard, last.range) = (None, None);
    last.counter += 1;
    last.up_s = began.elapsed().as_secs_f64();
    last.message = ended.as_ref().err().map(|error| error.message.clone());
    // Without it others wait until the counter has stood still for long enough.
    drop(setup.beat(&last));
    ended
}

/// Beats until the work is over; stops it where its phase has ended meanwhile.
fn keep_beating(
    setup: &WorkerSetup<'_>,
    shared: &Shared,
    mut shares: Option<Shares>,
    began: Instant,
) {
    let mut interval = heartbeat::interval(setup.stale);
    // Bytes at the last beats, for the rate.
    let mut moved: VecDeque<(Instant, u64)> = VecDeque::from([(began, 0)]);
    let mut over = shared.over.lock();
    while !*over {
        shared.wakes.wait_for(&mut over, interval);
        if *over {
            return;
        }
        drop(over);
        let beat = {
            let mut beat = shared.beat.lock();
            beat.counter += 1;
            beat.up_s = began.elapsed().as_secs_f64();
            let mut beat = beat.clone();
            if let Some(meter) = &*shared.meter.lock() {
                let counts = meter.counts();
                beat.bytes += counts.bytes;
                beat.entries += counts.items;
            }
            beat
        };
        let mut beat = with_rate(beat, &mut moved);
        let before = shares.as_ref().map(Shares::limits);
        if let Some(shares) = &mut shares {
            shares.decide(setup, shared, &mut beat);
            // What holds until the next decision, also where that one cannot be made.
            let mut held = shared.beat.lock();
            (held.byte_share, held.operation_share) = (beat.byte_share, beat.operation_share);
        }
        let after = shares.as_ref().map(Shares::limits);
        // What falls holds before it is reported, what rises after that: the sum of all stays below the limit.
        let least = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.min(b));
        if let (Some(before), Some(after)) = (before, after) {
            shared.set_limits(least(before.0, after.0), least(before.1, after.1));
        }
        if beat.counter % WORKERS_COUNTED_EVERY == 1 {
            let workers = setup.folder.names("workers").map_or(1, |names| names.len());
            interval = heartbeat::interval_of_many(setup.stale, workers);
        }
        let mut ends = false;
        let beaten = setup.phase.end_reason(setup.folder).and_then(|reason| match reason {
            Some(why) => {
                ends = true;
                Err(RunError::transient(why))
            }
            None => setup.beat(&beat),
        });
        match beaten {
            Ok(()) => {
                *shared.beat_error.lock() = None;
                if let Some((bytes, operations)) = after {
                    shared.set_limits(bytes, operations);
                }
            }
            Err(error) => {
                *shared.beat_error.lock() = Some(error);
                // Otherwise the end of the lease stops the work, unless the folder comes back.
                if ends || !setup.control.may_publish() {
                    setup.control.stop();
                }
            }
        }
        over = shared.over.lock();
    }
}

/// Adds the rate of late to a beat.
fn with_rate(mut beat: Heartbeat, moved: &mut VecDeque<(Instant, u64)>) -> Heartbeat {
    let now = Instant::now();
    while moved.len() > 1
        && moved.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= RATE_OVER)
    {
        moved.pop_front();
    }
    if let Some((at, bytes)) = moved.front() {
        let took_s = now.duration_since(*at).as_secs_f64().max(f64::MIN_POSITIVE);
        beat.bytes_per_s = beat.bytes.saturating_sub(*bytes) as f64 / took_s;
    }
    moved.push_back((now, beat.bytes));
    beat
}

struct Worker<'a> {
    setup: &'a WorkerSetup<'a>,
    /// What is known of objects, of a plan with ranges.
    knowledge: RunKnowledge<'a>,
    name: String,
    began: Instant,
    shared: &'a Shared,
    /// Time from which on nothing was left to claim.
    waiting_since: Option<Instant>,
    /// Number of jobs of the transfer before.
    jobs_before: Cell<Option<usize>>,
    /// Cost of shards that takes as long as [`TOGETHER`], by those before; 0 where that is not known.
    cost_together: u64,
}

impl<'a> Worker<'a> {
    fn run(&mut self, clock: claims::Clock<'a>) -> Result<(), RunError> {
        let setup = self.setup;
        self.phase(&setup.phase, clock)?;
        match setup.phase {
            Phase::Transfer if setup.plan.ranges() > 0 => {
                self.shared.beat.lock().looks = true;
                self.phase(&Phase::begin_look(setup.folder)?, clock)
            }
            _ => Ok(()),
        }
    }

    /// Works until nothing of a phase is left.
    fn phase(&mut self, phase: &Phase, clock: claims::Clock<'a>) -> Result<(), RunError> {
        let mut queue = Queue::new(self.setup, phase, &self.name, clock);
        let mut ahead = Vec::new();
        let ended = loop {
            if self.setup.control.is_stopped() {
                break Err(interrupted());
            }
            match self.step(&mut queue, &mut ahead) {
                Ok(true) => {}
                ended => break ended.map(drop),
            }
        };
        ahead.iter().for_each(|loaded| self.setup.give_back(loaded.claim));
        // It is worth something to the others also if this worker ends early.
        let flushed = self.knowledge.flush();
        ended.and(queue.write_results()).and(flushed)
    }

    /// Does one shard, or a few small ones, lists one range, or waits for a moment; false where nothing is left. `ahead`:
    /// shards that were claimed and read while the ones before were in hand.
    fn step(
        &mut self,
        queue: &mut Queue<'_>,
        ahead: &mut Vec<LoadedShard>,
    ) -> Result<bool, RunError> {
        if !ahead.is_empty() {
            let group = std::mem::take(ahead);
            return self.step_shards(queue, group, ahead);
        }
        queue.write_results()?;
        match queue.units.next()? {
            Next::Do(Claimed::Shard(claim)) => {
                let mut group = vec![queue.load(claim)?];
                let added = queue.add_small(&mut group, self.cost_together, &|| false);
                // What is in the group goes to the end of the phase, which gives it back.
                ahead.append(&mut group);
                added.map(|()| true)
            }
            Next::Do(Claimed::Range(claim)) => {
                queue.parts = self.range(claim, &queue.phase)?;
                queue.units.listed(claim, &queue.parts);
                Ok(true)
            }
            Next::Over => Ok(false),
            Next::Wait => {
                self.wait();
                Ok(true)
            }
        }
    }

    fn step_shards(
        &mut self,
        queue: &mut Queue<'_>,
        group: Vec<LoadedShard>,
        ahead: &mut Vec<LoadedShard>,
    ) -> Result<bool, RunError> {
        self.waiting_since = None;
        let cost: u64 = group.iter().map(|loaded| loaded.planned.cost).sum();
        let first = group.first().map(|loaded| loaded.claim.0);
        self.set_state(WorkerState::Working, first);
        let (ended, cost_together, began) =
            (AtomicBool::new(false), self.cost_together, Instant::now());
        let (worked, next) = thread::scope(|scope| {
            let beside = thread::Builder::new().name("next-shard".into());
            let next = || queue.next_ahead(cost_together, &|| ended.load(Ordering::Relaxed));
            let beside = beside.spawn_scoped(scope, next);
            let worked = self.shards(group);
            ended.store(true, Ordering::Relaxed);
            // Without a thread the next one is claimed when its turn comes.
            let joined = beside.map_or(Ok((Vec::new(), Ok(()))), thread::ScopedJoinHandle::join);
            (worked, joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let times = TOGETHER.as_secs_f64() / began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        self.cost_together = (cost as f64 * times) as u64;
        self.set_state(WorkerState::Working, None);
        let (results, ended) = worked;
        queue.results.extend(results);
        let (mut loaded, claimed) = next;
        ahead.append(&mut loaded);
        ended.and(claimed).map(|()| true)
    }

    /// Lists one range; the parts that announce its shards. A claim that was not carried out stays: what was
    /// announced by it does, too, and others claim the range anew when this worker has ended.
    fn range(
        &mut self,
        (number, generation): ClaimId,
        phase: &Phase,
    ) -> Result<Vec<RangePart>, RunError> {
        self.waiting_since = None;
        let range = u32::try_from(number).unwrap_or(u32::MAX);
        self.set_state(WorkerState::Working, None);
        self.shared.beat.lock().range = Some(range);
        let setup = self.setup;
        let looks = matches!(phase, Phase::Look(_));
        let held = Arc::new(match (looks, setup.plan.range(range)) {
            (true, _) => self.knowledge.before_look(range)?,
            (false, names) => self.knowledge.before_listing(&names.unwrap_or_default()),
        });
        let mut spec = match looks {
            true => after_transfer(&setup.spec),
            false => setup.spec.clone(),
        };
        spec.limits = *self.shared.limits.lock();
        spec.objects.manifests = Some(Arc::clone(&held) as Arc<dyn ManifestFiles>);
        let log = ProblemLog::new(setup.listener, self.shared);
        let listed = list_range(
            (setup.folder, setup.control, &log),
            setup.plan,
            &spec,
            phase,
            (range, generation),
            &self.name,
        );
        self.shared.ended();
        self.shared.beat.lock().range = None;
        let (end, parts) = listed?;
        match looks {
            true => self.knowledge.looked(range, &held)?,
            false => self.knowledge.listed((range, generation), &held)?,
        }
        let mut beat = self.shared.beat.lock();
        beat.ranges += 1;
        beat.failed += end.failed;
        Ok(parts)
    }

    /// Waits for the others for a moment.
    fn wait(&mut self) {
        self.set_state(WorkerState::Waiting, None);
        // The end of the others is seen late by a quarter of the wait at most.
        let waited = self.waiting_since.get_or_insert_with(Instant::now).elapsed();
        let gap = (waited / 4).clamp(WAIT_MIN, heartbeat::interval(self.setup.stale));
        let end = Instant::now() + gap;
        let mut over = self.shared.over.lock();
        // In steps: a signal only sets a flag.
        while !*over && !self.setup.control.is_stopped() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            self.shared.wakes.wait_for(&mut over, left.min(STOP_SEEN_AFTER));
        }
    }

    fn set_state(&self, state: WorkerState, shard: Option<ShardNumber>) {
        let mut beat = self.shared.beat.lock();
        (beat.state, beat.shard) = (state, shard);
    }
}

/// A shard that this worker claimed, as it was read.
struct LoadedShard {
    claim: ClaimId,
    /// Entries, bytes and cost of the plan.
    planned: Shard,
    /// Its entries by their roots, or why they cannot be used.
    entries: Result<BTreeMap<Vec<u8>, Vec<ShardEntry>>, String>,
}

/// Shards before and after the work on them: it reads shards and writes their results. All of this waits for the run
/// folder, so most of it happens in a thread beside the work on another shard.
struct Queue<'a> {
    setup: &'a WorkerSetup<'a>,
    phase: Phase,
    units: UnitQueue<'a>,
    /// Parts of the range that was listed last, or the part that the last shard was in.
    parts: Vec<RangePart>,
    /// Results that the next call writes.
    results: Vec<ShardResult>,
    segments: SegmentWriter,
}

impl<'a> Queue<'a> {
    fn new(
        setup: &'a WorkerSetup<'a>,
        phase: &Phase,
        worker: &str,
        clock: claims::Clock<'a>,
    ) -> Queue<'a> {
        let of = (setup.plan, phase);
        Queue {
            setup,
            phase: phase.clone(),
            units: UnitQueue::new(setup.folder, of, clock, setup.stale, worker, setup.last_word),
            parts: Vec::new(),
            results: Vec::new(),
            segments: SegmentWriter::new(phase.results(), worker),
        }
    }

    /// Claims a shard while others are in hand, and reads it, and small ones to be done with it; see
    /// [`Queue::add_small`]. Also where that fails those that were claimed before are returned.
    fn next_ahead(
        &mut self,
        cost_together: u64,
        is_late: &dyn Fn() -> bool,
    ) -> (Vec<LoadedShard>, Result<(), RunError>) {
        let mut group = Vec::new();
        let claimed = self.write_results().and_then(|()| {
            if self.setup.control.is_stopped() {
                return Ok(());
            }
            if let Some(claim) = self.units.next_ahead(self.setup.workers)? {
                group.push(self.load(claim)?);
                self.add_small(&mut group, cost_together, is_late)?;
            }
            Ok(())
        });
        (group, claimed)
    }

    /// Claims more shards to be transferred with those of a group, and reads them, while all of them cost less than
    /// `cost_together`; not where `is_late`: the worker waits for them. Of shards that are so small, none is left for workers
    /// that have not come yet. What a verification finds belongs to one shard.
    fn add_small(
        &mut self,
        group: &mut Vec<LoadedShard>,
        cost_together: u64,
        is_late: &dyn Fn() -> bool,
    ) -> Result<(), RunError> {
        let mut cost: u64 = group.iter().map(|loaded| loaded.planned.cost).sum();
        let unites = self.phase == Phase::Transfer;
        let goes_on = || !is_late() && !self.setup.control.is_stopped();
        // One that cannot be used ends the worker: it is the last of its group.
        let is_usable = |group: &[LoadedShard]| group.iter().all(|loaded| loaded.entries.is_ok());
        while unites && cost < cost_together && is_usable(group) && goes_on() {
            let Some(claim) = self.units.next_ahead(1)? else { break };
            let loaded = self.load(claim)?;
            cost += loaded.planned.cost.max(1);
            group.push(loaded);
        }
        Ok(())
    }

    /// The shard of a number, with the roots of its names; `None` where it is not known.
    fn planned(&mut self, number: ShardNumber) -> Result<Option<(Shard, Vec<String>)>, RunError> {
        if !self.units.has_ranges() {
            let shard = usize::try_from(number).ok().and_then(|at| self.setup.plan.shards.get(at));
            return Ok(shard.map(|shard| (shard.clone(), self.setup.plan.roots.clone())));
        }
        if self.parts.iter().all(|part| part.shard(number).is_none()) {
            self.parts = self.units.read_part(number)?.into_iter().collect();
        }
        let found = self.parts.iter().find_map(|part| Some((part.shard(number)?, &part.roots)));
        Ok(found.map(|(shard, roots)| (shard.clone(), roots.clone())))
    }

    /// Reads a shard that was claimed. One that cannot be read now is given back.
    fn load(&mut self, claim: ClaimId) -> Result<LoadedShard, RunError> {
        let planned = self.planned(claim.0).inspect_err(|_| self.setup.give_back(claim))?;
        let Some((planned, roots)) = planned else {
            let entries = Err("the part of the range that announced it is damaged".to_owned());
            return Ok(LoadedShard { claim, planned: Shard::default(), entries });
        };
        let entries = match shard::read(self.setup.folder, &planned) {
            Ok(entries) => match shard::outside(&entries).filter(|_| self.setup.has_paths()) {
                Some(entry) => {
                    let name = String::from_utf8_lossy(&entry.name).into_owned();
                    Err(format!("it names {}, outside of the run folder", quoted(name)))
                }
                None => by_root(entries, &roots),
            },
            Err(ShardError::Damaged(why)) => Err(why),
            Err(ShardError::Folder(error)) => {
                self.setup.give_back(claim);
                return Err(error);
            }
        };
        Ok(LoadedShard { claim, planned, entries })
    }

    /// Writes results. Shards whose results cannot be written are given back: they were done in vain.
    fn write_results(&mut self) -> Result<(), RunError> {
        if self.results.is_empty() {
            return Ok(());
        }
        let results = std::mem::take(&mut self.results);
        let written = self.segments.write(self.setup.folder, &results);
        for result in results {
            match written {
                Ok(()) => self.units.finished(result.shard),
                Err(_) => self.setup.give_back((result.shard, result.generation)),
            }
        }
        written
    }
}

/// Sorts entries by the roots of their names.
fn by_root(
    entries: Vec<ShardEntry>,
    roots: &[String],
) -> Result<BTreeMap<Vec<u8>, Vec<ShardEntry>>, String> {
    let mut by_root: BTreeMap<Vec<u8>, Vec<ShardEntry>> = BTreeMap::new();
    for entry in entries {
        let root = roots.get(entry.root as usize);
        let root = root.ok_or("it names a root that the plan does not have")?;
        by_root.entry(journal::bytes(root)).or_default().push(entry);
    }
    Ok(by_root)
}

impl Worker<'_> {
    /// Does shards that are ours: their results, and an error where the work cannot go on. Without results they were given
    /// back. What is counted for entries of one root is in the result of the first shard that has some.
    fn shards(&self, group: Vec<LoadedShard>) -> (Vec<ShardResult>, Result<(), RunError>) {
        let claims: Vec<ClaimId> = group.iter().map(|loaded| loaded.claim).collect();
        let host = self.shared.beat.lock().host.clone();
        let from_s = self.began.elapsed().as_secs_f64();
        let mut results = Vec::with_capacity(group.len());
        // By the range that a shard is from, if any, and the root.
        let mut united: BTreeMap<_, (usize, Vec<ShardEntry>)> = BTreeMap::new();
        for (at, LoadedShard { claim, planned, entries }) in group.into_iter().enumerate() {
            let (number, generation) = claim;
            let mut result = ShardResult {
                shard: number,
                worker: self.name.clone(),
                host: host.clone(),
                generation,
                entries: planned.entries,
                planned_bytes: planned.bytes,
                cost: planned.cost,
                ..ShardResult::default()
            };
            match entries {
                Ok(by_root) => {
                    for (root, mut entries) in by_root {
                        let key = (parts_of(number).0, root);
                        united.entry(key).or_insert((at, Vec::new())).1.append(&mut entries);
                    }
                }
                Err(why) => result.damaged = Some(why),
            }
            results.push(result);
        }
        let mut ended = Ok(());
        for ((_, root), (at, entries)) in united {
            if let Some(result) = results.get_mut(at) {
                let number = result.shard;
                ended = ended.and_then(|()| self.entries(root, entries, number, result));
            }
        }
        if ended.is_err() || self.setup.control.is_stopped() {
            claims.into_iter().for_each(|claim| self.setup.give_back(claim));
            return (Vec::new(), ended);
        }
        let to_s = self.began.elapsed().as_secs_f64();
        let mut beat = self.shared.beat.lock();
        self.shared.ended();
        for (at, result) in results.iter_mut().enumerate() {
            // The time of all of them is that of the first one.
            (result.from_s, result.to_s) = (if at == 0 { from_s } else { to_s }, to_s);
            beat.shards += 1;
            beat.entries += result.entries;
            beat.bytes += result.bytes;
            beat.failed += result.failed + result.differences;
        }
        drop(beat);
        let damaged =
            results.iter().find_map(|result| Some((result.shard, result.damaged.as_ref()?)));
        let ended = match damaged {
            Some((number, why)) if self.setup.phase == Phase::Transfer => {
                Err(RunError::permanent(format!(
                    "cannot use shard {}: {why}\nhint: collect transfers its entries",
                    shown_number(number)
                )))
            }
            // A verification reports it in its result and continues.
            _ => Ok(()),
        };
        (results, ended)
    }

    fn entries(
        &self,
        root: Vec<u8>,
        entries: Vec<ShardEntry>,
        number: ShardNumber,
        result: &mut ShardResult,
    ) -> Result<(), RunError> {
        let log = ProblemLog::new(self.setup.listener, self.shared);
        let folder = folder_of(root)?;
        match self.setup.phase {
            // A look has no shards.
            Phase::Transfer | Phase::Look(_) => {
                let (of, _) = parts_of(number);
                let held = of.map(|of| (of, Arc::new(HeldManifests::default())));
                let manifests =
                    held.as_ref().map(|(_, held)| Arc::clone(held) as Arc<dyn ManifestFiles>);
                let jobs_before = &self.jobs_before;
                let of_entries = (folder, entries, manifests);
                let limits = *self.shared.limits.lock();
                transfer_entries(self.setup, log, (jobs_before, limits), of_entries, result)?;
                held.map_or(Ok(()), |(of, held)| self.knowledge.transferred(of, &held))
            }
            Phase::Verify(_) => verify::verify_entries(self.setup, log, &folder, &entries, result),
        }
    }
}

/// The folder that a root of the plan stands for.
fn folder_of(mut root: Vec<u8>) -> Result<Location, RunError> {
    if root.is_empty() {
        root.push(b'.');
    }
    if root.last() != Some(&b'/') {
        root.push(b'/');
    }
    Location::parse_listed(&OsString::from_vec(root)).map_err(unfit)
}

fn unfit(fatal: Fatal) -> RunError {
    RunError::permanent(fatal.message)
}

/// Transfers entries of one root with the ordinary engine.
fn transfer_entries(
    setup: &WorkerSetup<'_>,
    log: ProblemLog<'_>,
    (jobs_before, limits): (&Cell<Option<usize>>, Limits),
    (folder, entries, manifests): (Location, Vec<ShardEntry>, Option<Arc<dyn ManifestFiles>>),
    result: &mut ShardResult,
) -> Result<(), RunError> {
    let (plan, control) = (setup.plan, setup.control);
    let mut spec = setup.spec.clone();
    spec.objects.manifests = manifests;
    spec.limits = limits;
    // The first shard reads and teaches hints; for the others that would be most of their start.
    spec.jobs_before = jobs_before.get();
    set_names(&mut spec, folder, entries, plan.local)?;
    if let [folder] = spec.sources.paths()
        && let Err(error) = std::fs::metadata(folder)
    {
        return Err(RunError::permanent(format!("cannot read {}: {error}", quoted(folder))));
    }
    if let Some(target) = spec.target.local() {
        // Another worker may make it at the same time.
        drop(match spec.mkpath {
            true => std::fs::create_dir_all(target),
            false => std::fs::create_dir(target),
        });
    }
    let outcome = transfer(&spec, control, &log).map_err(|fatal| RunError {
        // The store is away.
        is_transient: !plan.local && fatal.code == 11,
        is_interrupted: false,
        message: fatal.message,
    })?;
    if !plan.local && outcome.totals.failed > 0 && outcome.requests.succeeded == 0 {
        // The same would come of every shard, and collect would have all of them to do.
        let first = log.first().map(|what| format!(" ({what})")).unwrap_or_default();
        let why = format!("{}{first}: the rest was returned", submitted::NO_REQUEST);
        return Err(RunError::transient(why));
    }
    let Totals { files, bytes, skipped, failed, vanished, .. } = outcome.totals;
    result.files += files;
    result.bytes += bytes;
    result.skipped += skipped;
    result.failed += failed;
    result.vanished += vanished;
    result.changed += log.changed.load(Ordering::Relaxed);
    result.jobs = result.jobs.max(outcome.jobs);
    jobs_before.set(Some(outcome.jobs).filter(|jobs| *jobs > 0));
    result.judge(&outcome);
    log.into_problems(result);
    match outcome.fatal {
        Some(fatal) => Err(RunError::transient(fatal.message)),
        None if outcome.stopped => Err(interrupted()),
        None => Ok(()),
    }
}

/// Makes the spec that of single names below a folder: without deletions, and without the attributes of directories,
/// which a later run over everything sets. Entries that are not what was planned are left alone.
fn set_names(
    spec: &mut Spec,
    folder: Location,
    entries: Vec<ShardEntry>,
    local: bool,
) -> Result<(), RunError> {
    spec.limit_to(folder).map_err(unfit)?;
    if local {
        let mut chosen = EntrySelection::default();
        for ShardEntry { kind, size, mtime, name, .. } in entries {
            let name = name.into_boxed_slice();
            chosen.names.push((name.clone(), kind));
            chosen.states.insert(name, (kind, size, mtime));
        }
        spec.chosen = Some(Arc::new(chosen));
    } else {
        let met =
            |entry: &ShardEntry| (entry.name.clone().into_boxed_slice(), (entry.size, entry.mtime));
        spec.objects.expected = Some(Arc::new(Expected(entries.iter().map(met).collect())));
        spec.files_from = Some(entries.into_iter().map(|entry| entry.name).collect());
    }
    spec.policy.leave_dirs = true;
    Ok(())
}

impl ShardResult {
    /// Takes over the verdict of a transfer; of several that of the longest.
    fn judge(&mut self, outcome: &Outcome) {
        if let Some(verdict) = &outcome.findings.verdict
            && outcome.took >= self.judged_for
        {
            self.verdict = Some(ShardVerdict::of(verdict));
            self.judged_for = outcome.took;
        }
    }
}

/// Reason why a worker ended that was stopped.
pub(crate) fn interrupted() -> RunError {
    let message = "interrupted: the rest was returned";
    RunError { is_interrupted: true, ..RunError::transient(message) }
}

/// The limiters of the transfer in hand.
type CurrentControls = Mutex<Option<Arc<Controls>>>;

/// The meter of the shard in hand, for heartbeats.
type CurrentMeter = Mutex<Option<Arc<Meter>>>;

/// Problems by their kinds: how many, and the first one's path.
pub type ProblemCounts = BTreeMap<String, (u64, String)>;

/// Kind of a problem as a sentence without names, and the path that has it.
pub(crate) fn describe(problem: &Problem) -> (String, &Path) {
    let Problem { operation, source, target, cause, .. } = problem;
    let path = target.as_deref().or(source.as_deref()).unwrap_or(Path::new(""));
    (format!("cannot {}: {cause}", operation.words()), path)
}

/// Adds problems of one kind; one of a further kind than the most is left out.
pub(crate) fn count_problems(
    problems: &mut ProblemCounts,
    what: &str,
    more: u64,
    path: impl FnOnce() -> String,
) {
    let known = problems.len();
    match problems.get_mut(what) {
        Some((count, _)) => *count += more,
        None if known < PROBLEMS_MAX => {
            problems.insert(what.to_owned(), (more, path()));
        }
        None => {}
    }
}

/// Listener of the work on a shard: collects problems, passes events on.
pub(crate) struct ProblemLog<'a> {
    listener: &'a dyn Listener,
    shared: &'a Shared,
    problems: Mutex<ProblemCounts>,
    /// Entries that were not what the plan saw, and were left alone.
    changed: AtomicU64,
}

impl<'a> ProblemLog<'a> {
    fn new(listener: &'a dyn Listener, shared: &'a Shared) -> ProblemLog<'a> {
        ProblemLog { listener, shared, problems: Mutex::default(), changed: AtomicU64::new(0) }
    }

    /// Adds a problem: its kind, and the path that has it.
    pub fn add(&self, what: &str, path: &Path) {
        let text = || journal::text(path.as_os_str().as_bytes());
        count_problems(&mut self.problems.lock(), what, 1, text);
    }

    /// One kind of problem.
    fn first(&self) -> Option<String> {
        self.problems.lock().keys().next().cloned()
    }

    /// Puts the problems into a result.
    pub fn into_problems(self, result: &mut ShardResult) {
        let problems = self.problems.into_inner().into_iter();
        result.problems.extend(problems.map(|(what, (count, first))| (what, count, first)));
    }
}

impl Listener for ProblemLog<'_> {
    fn event(&self, event: Event<'_>) {
        match &event {
            Event::Problem(problem) => {
                let Problem { source, cause, class, .. } = problem;
                if matches!((cause, class), (Cause::Reason(NOT_AS_PLANNED), ErrorClass::Notice)) {
                    self.changed.fetch_add(1, Ordering::Relaxed);
                    return self.add(NOT_AS_PLANNED, source.as_deref().unwrap_or(Path::new("")));
                }
                let (what, path) = describe(problem);
                self.add(&what, path);
            }
            Event::Begins(meter) => *self.shared.meter.lock() = Some(Arc::clone(meter)),
            Event::Limited(controls) => *self.shared.controls.lock() = Some(Arc::clone(controls)),
            _ => {}
        }
        self.listener.event(event);
    }
}
