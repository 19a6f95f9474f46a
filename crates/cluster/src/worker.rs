//! One worker: it claims a shard, reads its entries, transfers or verifies them, writes a result, and takes the next
//! shard, until all are done. Everything it does may be done twice.
//!
//! The story of a shard, from top to bottom: [`work`] starts the heartbeats and the loop; [`ShardQueue`] claims and reads
//! the shard, while the one before is still in hand; [`Worker::shard`] hands its entries to an ordinary transfer
//! ([`transfer_entries`]) or to [`verify`]; the queue writes the result.

use crate::claims::{self, ClaimId, Claims};
use crate::folder::{self, RunError, RunFolder};
use crate::heartbeat::{self, Heartbeat, WorkerState};
use crate::plan::{ClusterPlan, Phase, number_text};
use crate::results::ShardVerdict;
use crate::shard::{self, ShardEntry, ShardError};
use crate::verify;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Problem, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_core::meter::Meter;
use hakobu_core::unit::Totals;
use hakobu_sys::host;
use hakobu_transfer::journal::{self, Owner};
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::plan::{EntrySelection, Expected, NOT_AS_PLANNED};
use hakobu_transfer::policy::Delete;
use hakobu_transfer::run::{Layout, Outcome, Spec, transfer};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest time between two looks of a worker that waits for others.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// Time after which a waiting worker sees that the run is asked to stop, at most.
const STOP_SEEN_AFTER: Duration = Duration::from_millis(50);
/// Kinds of problems that a result keeps.
const PROBLEMS_MAX: usize = 64;

pub struct WorkerSetup<'a> {
    pub folder: &'a dyn RunFolder,
    pub plan: &'a ClusterPlan,
    /// The transfer as the plan's command line has it.
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
}

impl WorkerSetup<'_> {
    /// Returns whether names are paths at one end at least: keys of a store may hold `..` and begin with a slash.
    fn has_paths(&self) -> bool {
        let is_local = |root: &String| !journal::bytes(root).starts_with(b"s3://");
        self.plan.local
            || self.spec.target.local().is_some()
            || self.plan.roots.iter().any(is_local)
    }

    /// Gives a shard back. One that cannot be given back is redone when this worker counts as gone.
    fn give_back(&self, claim: ClaimId) {
        drop(claims::give_back(self.folder, &self.phase.claims(), claim));
    }
}

/// Result of a shard that was worked on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardResult {
    pub shard: u32,
    pub worker: String,
    pub host: String,
    /// Number of the try; 0 for the first.
    pub generation: u32,
    pub entries: u64,
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
    over: Mutex<bool>,
    wakes: Condvar,
    beat_error: Mutex<Option<RunError>>,
}

/// Works until nothing is left.
///
/// # Errors
/// Something went wrong, or `control` stopped it.
pub fn work(setup: &WorkerSetup<'_>) -> Result<(), RunError> {
    let (folder, control) = (setup.folder, setup.control);
    let began = Instant::now();
    let name = format!("{:016x}", fastrand::u64(..));
    let (host, owner) = (host::name(), Owner::me().text());
    let stale_s = setup.stale.as_secs_f64();
    let verifies = setup.phase != Phase::Transfer;
    let beat =
        Heartbeat { worker: name.clone(), host, owner, stale_s, verifies, ..Heartbeat::default() };
    match (setup.phase.end_reason(folder)?, &setup.phase) {
        (None, _) => {}
        (Some(_), Phase::Transfer) => return Ok(()),
        (Some(why), Phase::Verify(_)) => return Err(RunError::transient(why)),
    }
    heartbeat::write(folder, &beat, control, setup.stale)?;
    let shared = Shared {
        beat: Mutex::new(beat),
        meter: Mutex::default(),
        over: Mutex::new(false),
        wakes: Condvar::new(),
        beat_error: Mutex::default(),
    };
    let queue = ShardQueue::new(setup, &name);
    let mut worker = Worker {
        setup,
        name,
        began,
        shared: &shared,
        waiting_since: None,
        jobs_before: Cell::default(),
    };
    let mut ended = thread::scope(|scope| {
        let beats = thread::Builder::new().name("beats".into());
        let started = beats.spawn_scoped(scope, || keep_beating(setup, &shared, began));
        let ended = match started {
            Ok(_) => worker.run(queue),
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
    last.state = WorkerState::Ended;
    last.shard = None;
    last.counter += 1;
    last.up_s = began.elapsed().as_secs_f64();
    last.message = ended.as_ref().err().map(|error| error.message.clone());
    // Without it others wait until the counter has stood still for long enough.
    drop(heartbeat::write(folder, &last, control, setup.stale));
    ended
}

/// Beats until the work is over; stops it where its phase has ended meanwhile.
fn keep_beating(setup: &WorkerSetup<'_>, shared: &Shared, began: Instant) {
    let interval = heartbeat::interval(setup.stale);
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
            beat.bytes += shared.meter.lock().as_ref().map_or(0, |meter| meter.counts().bytes);
            beat
        };
        let mut ends = false;
        let beaten = setup.phase.end_reason(setup.folder).and_then(|reason| match reason {
            Some(why) => {
                ends = true;
                Err(RunError::transient(why))
            }
            None => heartbeat::write(setup.folder, &beat, setup.control, setup.stale),
        });
        match beaten {
            Ok(()) => *shared.beat_error.lock() = None,
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

struct Worker<'a> {
    setup: &'a WorkerSetup<'a>,
    name: String,
    began: Instant,
    shared: &'a Shared,
    /// Time from which on nothing was left to claim.
    waiting_since: Option<Instant>,
    /// Number of jobs of the transfer before.
    jobs_before: Cell<Option<usize>>,
}

impl Worker<'_> {
    fn run(&mut self, mut queue: ShardQueue<'_>) -> Result<(), RunError> {
        let mut ahead = None;
        let ended = loop {
            if self.setup.control.is_stopped() {
                break Err(interrupted());
            }
            match self.step(&mut queue, &mut ahead) {
                Ok(true) => {}
                ended => break ended.map(drop),
            }
        };
        if let Some(LoadedShard { claim, .. }) = ahead {
            self.setup.give_back(claim);
        }
        ended.and(queue.write_results())
    }

    /// Does one shard, or waits for a moment; false where nothing is left. `ahead`: the shard that was claimed and read
    /// while the one before was in hand.
    fn step(
        &mut self,
        queue: &mut ShardQueue<'_>,
        ahead: &mut Option<LoadedShard>,
    ) -> Result<bool, RunError> {
        let next = match ahead.take() {
            Some(loaded) => Some(loaded),
            None => queue.next()?,
        };
        if let Some(loaded) = next {
            self.waiting_since = None;
            self.set_state(WorkerState::Working, Some(loaded.claim.0));
            let (worked, next) = thread::scope(|scope| {
                let beside = thread::Builder::new().name("next-shard".into());
                let beside = beside.spawn_scoped(scope, || queue.next_ahead());
                let worked = self.shard(loaded);
                // Without a thread the next one is claimed when its turn comes.
                let joined = beside.map_or(Ok(Ok(None)), thread::ScopedJoinHandle::join);
                (worked, joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            self.set_state(WorkerState::Working, None);
            let (result, ended) = worked;
            if let Some(result) = result {
                queue.results.push(result);
            }
            if ended.is_err() {
                *ahead = next.ok().flatten();
                return ended.map(|()| false);
            }
            *ahead = next?;
            return Ok(true);
        }
        if queue.claims.is_all_done() {
            return Ok(false);
        }
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
        Ok(true)
    }

    fn set_state(&self, state: WorkerState, shard: Option<u32>) {
        let mut beat = self.shared.beat.lock();
        (beat.state, beat.shard) = (state, shard);
    }
}

/// A shard that this worker claimed, as it was read.
struct LoadedShard {
    claim: ClaimId,
    /// Entries of the plan.
    planned: u64,
    /// Its entries by their roots, or why they cannot be used.
    entries: Result<BTreeMap<u32, Vec<ShardEntry>>, String>,
}

/// Shards before and after the work on them: it claims and reads them, and writes their results. All of this waits for
/// the run folder, so most of it happens in a thread beside the work on another shard.
struct ShardQueue<'a> {
    setup: &'a WorkerSetup<'a>,
    claims: Claims<'a>,
    /// Results that the next call writes.
    results: Vec<ShardResult>,
}

impl<'a> ShardQueue<'a> {
    fn new(setup: &'a WorkerSetup<'a>, worker: &str) -> ShardQueue<'a> {
        let (plan, phase) = (setup.plan, &setup.phase);
        let claims = Claims::new(setup.folder, (plan, phase), setup.stale, worker);
        ShardQueue { setup, claims, results: Vec::new() }
    }

    /// Claims and reads a shard; `None` where there is none now.
    fn next(&mut self) -> Result<Option<LoadedShard>, RunError> {
        self.write_results()?;
        let claim = self.claims.next()?;
        self.load(claim)
    }

    /// The same while another shard is in hand: only where so many are left that no other worker will lack one.
    fn next_ahead(&mut self) -> Result<Option<LoadedShard>, RunError> {
        self.write_results()?;
        if self.setup.control.is_stopped() {
            return Ok(None);
        }
        let claim = self.claims.next_ahead(self.setup.workers)?;
        self.load(claim)
    }

    fn load(&self, claim: Option<ClaimId>) -> Result<Option<LoadedShard>, RunError> {
        let Some(claim) = claim else { return Ok(None) };
        let Some(planned) = self.setup.plan.shards.get(claim.0 as usize) else { return Ok(None) };
        let entries = match shard::read(self.setup.folder, planned) {
            Ok(entries) => match shard::outside(&entries).filter(|_| self.setup.has_paths()) {
                Some(entry) => {
                    let name = String::from_utf8_lossy(&entry.name).into_owned();
                    Err(format!("it names {}, outside of the run folder", quoted(name)))
                }
                None => {
                    let mut by_root: BTreeMap<u32, Vec<ShardEntry>> = BTreeMap::new();
                    for entry in entries {
                        by_root.entry(entry.root).or_default().push(entry);
                    }
                    Ok(by_root)
                }
            },
            Err(ShardError::Damaged(why)) => Err(why),
            Err(ShardError::Folder(error)) => {
                self.setup.give_back(claim);
                return Err(error);
            }
        };
        Ok(Some(LoadedShard { claim, planned: planned.entries, entries }))
    }

    /// Writes results. A shard whose result cannot be written is given back: it was done in vain.
    fn write_results(&mut self) -> Result<(), RunError> {
        let folder = self.setup.phase.results();
        while let Some(result) = self.results.pop() {
            let name = format!("{folder}/{}.json", number_text(result.shard));
            let content = folder::json(&result);
            let written = content.and_then(|content| self.setup.folder.create(&name, &content));
            if let Err(error) = written {
                self.setup.give_back((result.shard, result.generation));
                return Err(error);
            }
            self.claims.finished(result.shard);
        }
        Ok(())
    }
}

impl Worker<'_> {
    /// Does a shard that is ours: its result, and an error where the work cannot go on. Without a result it was given
    /// back.
    fn shard(&self, loaded: LoadedShard) -> (Option<ShardResult>, Result<(), RunError>) {
        let LoadedShard { claim: (number, generation), planned, entries } = loaded;
        let mut result = ShardResult {
            shard: number,
            worker: self.name.clone(),
            host: self.shared.beat.lock().host.clone(),
            generation,
            entries: planned,
            from_s: self.began.elapsed().as_secs_f64(),
            ..ShardResult::default()
        };
        let mut ended = Ok(());
        match entries {
            Ok(by_root) => {
                for (root, entries) in by_root {
                    ended = ended.and(self.entries(root, entries, &mut result));
                }
            }
            Err(why) => result.damaged = Some(why),
        }
        if ended.is_err() || self.setup.control.is_stopped() {
            self.setup.give_back((number, generation));
            return (None, ended);
        }
        result.to_s = self.began.elapsed().as_secs_f64();
        {
            let mut beat = self.shared.beat.lock();
            *self.shared.meter.lock() = None;
            beat.shards += 1;
            beat.entries += result.entries;
            beat.bytes += result.bytes;
            beat.failed += result.failed + result.differences;
        }
        let ended = match &result.damaged {
            Some(why) if self.setup.phase == Phase::Transfer => Err(RunError::permanent(format!(
                "cannot use shard {number}: {why}\nhint: collect transfers its entries"
            ))),
            // A verification reports it in its result and continues.
            _ => Ok(()),
        };
        (Some(result), ended)
    }

    fn entries(
        &self,
        root: u32,
        entries: Vec<ShardEntry>,
        result: &mut ShardResult,
    ) -> Result<(), RunError> {
        let text = self.setup.plan.roots.get(root as usize).map(|root| journal::bytes(root));
        let Some(root) = text else {
            result.damaged = Some("it names a root that the plan does not have".into());
            return Ok(());
        };
        let log = ProblemLog::new(self.setup.listener, &self.shared.meter);
        let folder = folder_of(root)?;
        match self.setup.phase {
            Phase::Transfer => {
                transfer_entries(self.setup, log, &self.jobs_before, folder, entries, result)
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
    jobs_before: &Cell<Option<usize>>,
    folder: Location,
    entries: Vec<ShardEntry>,
    result: &mut ShardResult,
) -> Result<(), RunError> {
    let (plan, control) = (setup.plan, setup.control);
    let mut spec = setup.spec.clone();
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
        let why = format!("no request to S3 succeeded{first}: the rest was returned");
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
/// which a later run over everything sets.
fn set_names(
    spec: &mut Spec,
    folder: Location,
    entries: Vec<ShardEntry>,
    local: bool,
) -> Result<(), RunError> {
    spec.sources = Sources::of(vec![folder]).map_err(unfit)?;
    if local {
        let mut chosen = EntrySelection::default();
        for ShardEntry { kind, size, mtime, name, .. } in entries {
            let name = name.into_boxed_slice();
            chosen.names.push((name.clone(), kind));
            chosen.states.insert(name, (kind, size, mtime));
        }
        (spec.chosen, spec.files_from) = (Some(Arc::new(chosen)), None);
    } else {
        let met =
            |entry: &ShardEntry| (entry.name.clone().into_boxed_slice(), (entry.size, entry.mtime));
        spec.objects.expected = Some(Arc::new(Expected(entries.iter().map(met).collect())));
        spec.files_from = Some(entries.into_iter().map(|entry| entry.name).collect());
    }
    spec.layout = Layout::Rsync { relative: true };
    // Keys are used unchanged.
    spec.objects.raw = true;
    spec.check_space = false;
    (spec.items, spec.items_unchanged) = (false, false);
    let policy = &mut spec.policy;
    (policy.recurse, policy.dirs) = (false, true);
    policy.delete = Delete::No;
    policy.delete_excluded = false;
    policy.max_delete = None;
    policy.partial = false;
    policy.leave_dirs = true;
    // The plan has applied the rules.
    policy.filter = None;
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

/// The meter of the shard in hand, for heartbeats.
type CurrentMeter = Mutex<Option<Arc<Meter>>>;

/// Problems by their kinds: how many, and the first one's path.
pub(crate) type ProblemCounts = BTreeMap<String, (u64, String)>;

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
    meter: &'a CurrentMeter,
    problems: Mutex<ProblemCounts>,
    /// Entries that were not what the plan saw, and were left alone.
    changed: AtomicU64,
}

impl<'a> ProblemLog<'a> {
    fn new(listener: &'a dyn Listener, meter: &'a CurrentMeter) -> ProblemLog<'a> {
        ProblemLog { listener, meter, problems: Mutex::default(), changed: AtomicU64::new(0) }
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
                let Problem { operation, source, target, cause, class } = problem;
                if matches!((cause, class), (Cause::Reason(NOT_AS_PLANNED), ErrorClass::Notice)) {
                    self.changed.fetch_add(1, Ordering::Relaxed);
                    return self.add(NOT_AS_PLANNED, source.as_deref().unwrap_or(Path::new("")));
                }
                let path = target.as_deref().or(source.as_deref()).unwrap_or(Path::new(""));
                self.add(&format!("cannot {}: {cause}", operation.words()), path);
            }
            Event::Begins(meter) => *self.meter.lock() = Some(Arc::clone(meter)),
            _ => {}
        }
        self.listener.event(event);
    }
}
