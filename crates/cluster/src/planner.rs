//! Making a plan: the names of a transfer are cut into ranges, which workers list while others move already; where it has
//! few names, or cannot be cut, the plan lists both ends itself. Either way an ordinary dry run decides, and what it would
//! do is written into shards while it goes on, by all of its threads. Memory does not grow with the number of entries.

use crate::folder::{self, RunError, RunFolder};
use crate::plan::{
    BEGUN, ClusterPlan, EndDirectory, FORMAT, LISTINGS_MAX, PLAN, Phase, Shard, ShardFile,
    number_text, range_text,
};
use crate::ranges::{RangeEnd, RangePart};
use crate::shard::{self, ShardFrame};
use crate::submitted::NOT_LISTED;
use crate::worker::{ProblemCounts, count_problems, describe};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, Fatal, Problem};
use hakobu_core::event::{Change, EntryPaths, Event, Item, Listener, Planned};
use hakobu_core::unit::{Kind, Meta};
use hakobu_transfer::journal;
use hakobu_transfer::location::Location;
use hakobu_transfer::plan::{Cuts, can_be_cut};
use hakobu_transfer::policy::{Append, Basis, Delete, MissingArgs};
use hakobu_transfer::publish::LEFT_OUT;
use hakobu_transfer::run::{Outcome, Spec, cut, transfer};
use parking_lot::Mutex;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Shards that are filled at the same time: threads of the dry run share them.
const OPEN_MAX: usize = 16;
/// Shards that hard links are spread over, by device and inode: all names of a file meet in one.
const LINK_SHARDS: usize = 128;
/// Shards for each worker that is expected, at the most expensive: the last worker ends at most a
/// sixteenth of its work after the first.
const PER_WORKER: u64 = 16;
/// The smallest shard of a range, as a part of its first ones. Between paths no shard is smaller than the least one: it is
/// done in less time than it takes to begin another one.
const LAST_SHARDS: u64 = 4;
/// Part of the least cost of a shard that a thread adds up before the others learn of it.
const COST_STEPS: u64 = 64;
/// Records that are compressed together, in bytes.
const RAW_BYTES: usize = 64 << 10;
/// Largest file of a shard; a shard with more has several.
const FILE_BYTES: usize = 1 << 20;
/// The same where many shards are open.
const LINK_FILE_BYTES: usize = 128 << 10;
/// The most expensive shard.
const COST_MAX: u64 = 16 << 30;
/// Part of its cost from which on a shard ends where a folder does: the names of a folder that other shards wrote into
/// have to be looked up one by one.
const FOLDER_END: u64 = 4;
/// The most entries of a shard: a worker holds their names.
const ENTRIES_MAX: u64 = 100_000;
/// Ranges for each worker that is expected: workers list at different speeds, and ranges differ in their names.
const RANGES_PER_WORKER: u64 = 8;
/// The fewest names of a range, as far as samples tell: each range costs a claim and a result.
const RANGE_NAMES_MIN: u64 = 4000;
/// The most ranges: numbers of shards have room for more.
const RANGES_MAX: u64 = 1 << 16;
/// Shards of a range that are announced together, and the time after which fewer of them are: others can take them.
const PART_SHARDS: usize = 64;
const PART_AFTER: Duration = Duration::from_secs(1);

/// A plan to make.
pub struct PlanRequest<'a> {
    /// The transfer as the command line has it.
    pub spec: Spec,
    /// The command line, encoded.
    pub words: Vec<String>,
    /// The folder in which its relative paths begin, encoded.
    pub folder: String,
    /// Version of the program.
    pub version: &'a str,
    /// Workers that are expected.
    pub workers: u64,
    /// Least cost of a shard; a default where nothing is said.
    pub shard_bytes: Option<u64>,
    /// Directories at both ends.
    pub ends: Vec<EndDirectory>,
    /// Both ends are local paths.
    pub local: bool,
    /// Run folder of an earlier run of the same ends, encoded.
    pub previous: Option<String>,
}

/// Refuses options that two workers on one shard would make unsafe, and those that are not for one
/// transfer on many machines.
///
/// # Errors
/// Code 1 and a sentence that names the option.
pub fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let unfit = [
        (policy.list_only, "a list"),
        (policy.dry_run, "--dry-run"),
        (policy.inplace, "--inplace"),
        (policy.append != Append::No, "--append"),
        (policy.delay_updates, "--delay-updates"),
        (policy.basis != Basis::Link, policy.basis.option()),
        (policy.missing_args != MissingArgs::Tell, "passing over missing arguments"),
        (policy.backup, "--backup"),
        (policy.remove_source_files, "--remove-source-files"),
        (policy.prune_empty_dirs, "--prune-empty-dirs"),
        // The run folder would hold the key.
        (has_customer_key(spec), "--sse-c"),
        (spec.prove, "--prove"),
        (spec.target == Location::Null, "null:"),
    ];
    match unfit.iter().find(|(given, _)| *given) {
        Some((_, name)) => Err(Fatal::new(1, format!("{name} is not supported on many machines"))),
        None => Ok(()),
    }
}

fn has_customer_key(spec: &Spec) -> bool {
    let objects = &spec.objects;
    objects.source.customer_key.is_some() || objects.target.customer_key.is_some()
}

/// Makes a plan and writes it into a folder. The outcome is that of the dry run.
///
/// # Errors
/// The transfer cannot be planned, or the folder cannot be written; nothing of the plan stays then.
pub fn plan(
    request: PlanRequest<'_>,
    folder: &dyn RunFolder,
    control: &Control,
    listener: &dyn Listener,
) -> Result<(ClusterPlan, Outcome), Fatal> {
    refuse_unfit(&request.spec)?;
    let failed = |error: RunError| Fatal::new(11, error.message);
    let id = folder::random_name().map_err(failed)?;
    if !folder.create(BEGUN, format!("{{\"id\":\"{id}\"}}\n").as_bytes()).map_err(failed)? {
        let made = folder.read(PLAN).map_err(failed)?.is_some();
        let what = if made { "a plan" } else { "a plan that is being made, or was not finished" };
        let hint = "hint: give another run folder, or remove this one when no worker needs it";
        let message = format!("cannot plan into {}: it holds {what}\n{hint}", folder.shown());
        return Err(Fatal::new(1, message));
    }
    let made = make(request, id, folder, control, listener);
    if made.is_err() {
        // Report the failure that led here.
        drop(folder.remove(BEGUN));
    }
    made
}

/// Number of ranges of a plan with so many names.
pub(crate) fn range_count(names: u64, workers: u64) -> u64 {
    (names / RANGE_NAMES_MIN).min(ranges_max(workers)).max(1)
}

fn ranges_max(workers: u64) -> u64 {
    workers.max(1).saturating_mul(RANGES_PER_WORKER).min(RANGES_MAX)
}

/// Ranges to cut a transfer into; `None` where the plan lists both ends itself: the names cannot be cut, or are few.
fn cuts(
    request: &PlanRequest<'_>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Option<Cuts>, Fatal> {
    // The rows of an inventory are read in order, by one reader.
    let objects = &request.spec.objects;
    let is_listed = objects.inventory.is_some() || objects.target_inventory.is_some();
    // Deletions are counted by collect, which removes all of them.
    let mut spec = request.spec.clone();
    spec.policy.max_delete = None;
    if can_be_cut(&spec).is_err() || is_listed {
        return Ok(None);
    }
    let cuts = cut(&spec, control, listener, ranges_max(request.workers) as usize)?;
    let ranges = cuts.points.len() as u64 + 1;
    let wanted = range_count(cuts.names, request.workers);
    if cuts.whole || ranges < 2 || wanted < 2 {
        return Ok(None);
    }
    // Neighbours are joined.
    let every = ranges.div_ceil(wanted);
    let points = cuts.points.iter().enumerate();
    let kept = points.filter(|(at, _)| (*at as u64 + 1).is_multiple_of(every));
    let points = kept.map(|(_, point)| point.clone()).collect();
    Ok(Some(Cuts { points, ..cuts }))
}

fn make(
    request: PlanRequest<'_>,
    id: String,
    folder: &dyn RunFolder,
    control: &Control,
    listener: &dyn Listener,
) -> Result<(ClusterPlan, Outcome), Fatal> {
    let cuts = cuts(&request, control, listener)?;
    let stopped = || Fatal::new(20, "interrupted: no plan was written");
    if control.is_stopped() {
        return Err(stopped());
    }
    let failed = |error: RunError| Fatal::new(11, error.message);
    let PlanRequest {
        spec,
        words,
        folder: here,
        version,
        workers,
        shard_bytes,
        ends,
        local,
        previous,
    } = request;
    let costs = Costs::of(local, workers, shard_bytes, spec.limits.bytes_per_s_max);
    let mut plan = ClusterPlan {
        format: FORMAT,
        version: version.to_owned(),
        id,
        words,
        folder: here,
        ends,
        local,
        workers,
        ..ClusterPlan::default()
    };
    let outcome = match cuts {
        Some(cuts) => {
            let cost = cuts
                .names
                .saturating_mul(costs.operation)
                .saturating_add(cuts.names.saturating_mul(cuts.mean_bytes));
            plan.shard_cost = costs.limit(cost);
            plan.range_cost = cost / (cuts.points.len() as u64 + 1);
            plan.estimated_names = cuts.names;
            plan.previous = previous;
            plan.cuts = cuts.points.iter().map(|point| journal::text(point)).collect();
            Outcome::default()
        }
        None => {
            // Only a look at both ends after the transfer finds candidates for deletion.
            let planner = Planner::new((folder, control, listener), &spec, costs, local, None);
            let listed = planner.list(&spec, false);
            let listed = planner.failure().map_or(listed, |error| Err(failed(error)));
            let outcome = listed.and_then(|outcome| {
                if outcome.stopped {
                    return Err(stopped());
                }
                planner.close_all().map_err(failed)?;
                Ok(outcome)
            });
            let outcome = outcome.inspect_err(|_| planner.remove_files())?;
            plan.shards = planner.take_shards();
            let sum = |of: fn(&Shard) -> u64| plan.shards.iter().map(of).sum();
            (plan.entries, plan.bytes) = (sum(|shard| shard.entries), sum(|shard| shard.bytes));
            plan.roots = planner.roots();
            plan.problems = outcome.totals.failed + outcome.totals.vanished;
            outcome
        }
    };
    let content = folder::json(&plan).map_err(failed)?;
    match folder.create(PLAN, &content).map_err(failed)? {
        true => Ok((plan, outcome)),
        false => Err(Fatal::new(1, format!("{} holds a plan already", folder.shown()))),
    }
}

/// Lists both ends of one range and writes what an ordinary run would do there into shards, which are announced in parts
/// while the listing goes on. In a look, names that only the target has are written down as candidates for deletion, if
/// the listing was whole. Returns how that ended, and the parts.
///
/// # Errors
/// The run folder cannot be written, an end cannot be listed at all, or `control` was stopped. What was announced stays:
/// the range is listed anew by a later claim.
pub(crate) fn list_range(
    (folder, control, listener): (&dyn RunFolder, &Control, &dyn Listener),
    plan: &ClusterPlan,
    spec: &Spec,
    phase: &Phase,
    (range, generation): (u32, u32),
    worker: &str,
) -> Result<(RangeEnd, Vec<RangePart>), RunError> {
    let began = Instant::now();
    if generation >= LISTINGS_MAX {
        return Err(RunError::permanent(format!(
            "range {range} was listed {LISTINGS_MAX} times without an end\nhint: collect looks at it itself"
        )));
    }
    let Some(names) = plan.range(range) else {
        return Err(RunError::permanent(format!("the plan has no range {range}")));
    };
    let costs = Costs::of_range(plan);
    let looks = *phase != Phase::Transfer;
    let part = PartWriter {
        folder: match phase {
            Phase::Transfer => "ranges".to_owned(),
            other => other.results(),
        },
        prefix: match phase {
            Phase::Look(id) => format!("{id}-"),
            _ => String::new(),
        },
        of: (range, generation),
        looks,
        pending: Mutex::new((Vec::new(), 0, Instant::now())),
        announced: Mutex::default(),
    };
    let planner = Planner::new((folder, control, listener), spec, costs, plan.local, Some(part));
    let spec = Spec { range: Some(names), ..spec.clone() };
    let listed = planner.list(&spec, looks);
    if let Some(error) = planner.failure() {
        return Err(error);
    }
    let outcome = listed.map_err(|Fatal { code, message }| RunError {
        // The store is away.
        is_transient: code == 11 && !plan.local,
        is_interrupted: false,
        message: format!("{NOT_LISTED} {range}: {message}"),
    })?;
    if outcome.stopped {
        return Err(crate::worker::interrupted());
    }
    planner.close_all()?;
    let (removals, count) = planner.take(&planner.removals)?;
    let (directories, _) = planner.take(&planner.directories)?;
    let (totals, roots) = (outcome.totals, planner.roots());
    let is_whole = totals.failed == 0;
    let keeps = is_whole || spec.policy.ignore_errors;
    let end = RangeEnd {
        worker: worker.to_owned(),
        failed: totals.failed,
        vanished: totals.vanished,
        removals: if keeps { count } else { 0 },
        leftovers: planner.leftovers.load(Ordering::Relaxed),
        problems: planner
            .problems
            .into_inner()
            .into_iter()
            .map(|(what, (count, first))| (what, count, first))
            .collect(),
        took_s: began.elapsed().as_secs_f64(),
    };
    let Some(part) = planner.part else { return Ok((end, Vec::new())) };
    let removals = if keeps { removals } else { Vec::new() };
    part.announce(folder, roots, Some((end.clone(), removals, directories)))?;
    Ok((end, part.announced.into_inner()))
}

/// Announces shards of a range.
struct PartWriter {
    folder: String,
    /// Beginning of the names of its files, which a look does not share with the transfer.
    prefix: String,
    of: (u32, u32),
    /// It looks at both ends after the transfer.
    looks: bool,
    /// Shards that were not announced yet, the place of the first of them, and the time of the last announcement.
    pending: Mutex<(Vec<Shard>, u32, Instant)>,
    /// Parts that were announced.
    announced: Mutex<Vec<RangePart>>,
}

impl PartWriter {
    /// Adds a shard; whether there are enough to announce.
    fn push(&self, shard: Shard) -> bool {
        let mut pending = self.pending.lock();
        pending.0.push(shard);
        pending.0.len() >= PART_SHARDS || pending.2.elapsed() >= PART_AFTER
    }

    fn announce(
        &self,
        folder: &dyn RunFolder,
        roots: Vec<String>,
        end: Option<(RangeEnd, Vec<ShardFile>, Vec<ShardFile>)>,
    ) -> Result<(), RunError> {
        let mut pending = self.pending.lock();
        let shards = std::mem::take(&mut pending.0);
        if shards.is_empty() && end.is_none() {
            return Ok(());
        }
        let first = pending.1;
        let (end, removals, directories) = match end {
            Some((end, removals, directories)) => (Some(end), removals, directories),
            None => Default::default(),
        };
        let part = RangePart {
            range: self.of.0,
            generation: self.of.1,
            first,
            shards,
            roots,
            removals,
            directories,
            end,
        };
        pending.1 += part.shards.len() as u32;
        pending.2 = Instant::now();
        let name = format!("{}/{}", self.folder, part.name());
        match folder.create(&name, &part.content()?)? {
            true => {
                self.announced.lock().push(part);
                Ok(())
            }
            false => Err(RunError::permanent(format!("{} holds {name} already", folder.shown()))),
        }
    }
}

/// A shard that is being filled.
#[derive(Default)]
struct OpenShard {
    frame: ShardFrame,
    packed: Vec<u8>,
    number: Option<u32>,
    shard: Shard,
    folder: Option<EntryFolder>,
    /// Cost that the sum of all does not have yet.
    uncounted: u64,
    /// Cost at which the shard is full, from the sum that was known last.
    limit: u64,
}

type Root = (Vec<u8>, u32);

/// Costs of entries, and when a shard is full.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Cost of an operation, in bytes.
    pub operation: u64,
    /// Least cost of a shard.
    min: u64,
    /// Workers that are expected.
    workers: u64,
    /// Both ends are local paths.
    local: bool,
    /// Of a range: cost at which a shard is full, and about how much all of its entries cost.
    range: Option<(u64, u64)>,
}

impl Costs {
    /// `shard_bytes`: least cost of a shard; a default where nothing is said. `limit_per_s`: `--bwlimit` of the run.
    pub fn of(
        local: bool,
        workers: u64,
        shard_bytes: Option<u64>,
        limit_per_s: Option<u64>,
    ) -> Costs {
        let workers = workers.max(1);
        let (operation, min) = match local {
            // 60 µs at 1 GB/s; a shard of 256 small files takes about a hundredth of a second, as much as its claim and its
            // result on a network file system.
            true => (64 << 10, 16 << 20),
            // 20 ms at 50 MB/s; a shard of small objects takes one worker about a tenth of a second.
            false => (1 << 20, 128 << 20),
        };
        // What one worker may move in a second.
        let slow = limit_per_s.map_or(u64::MAX, |limit| (limit / workers).max(operation));
        let min = shard_bytes.unwrap_or(min.min(slow)).min(COST_MAX);
        Costs { operation, min, workers, local, range: None }
    }

    /// Those of a range of a plan.
    pub fn of_range(plan: &ClusterPlan) -> Costs {
        let range = Some((plan.shard_cost, plan.range_cost));
        Costs { range, ..Costs::of(plan.local, plan.workers, None, None) }
    }

    /// Cost at which a shard is full, from the cost of all entries so far: a sixteenth of what one worker will have to
    /// do, within bounds. Those of a range become smaller towards its end, as far as that is known: workers take the most
    /// expensive ones first, and the last ones to end are small.
    pub fn limit(&self, seen: u64) -> u64 {
        let Some((shard, range)) = self.range else {
            let share = seen / PER_WORKER.saturating_mul(self.workers);
            return share.clamp(self.min, COST_MAX);
        };
        let half = range.div_ceil(2).max(1);
        let left = range.saturating_sub(seen);
        match left {
            // A range that is larger than it was taken for would have small shards only.
            0 => shard,
            _ if left >= half => shard,
            _ => {
                let part = u128::from(shard) * u128::from(left) / u128::from(half);
                let least = if self.local { self.min.min(shard) } else { shard / LAST_SHARDS };
                u64::try_from(part).unwrap_or(shard).max(least).max(1)
            }
        }
    }
}

/// The folder of the entry before.
struct EntryFolder {
    /// See [`Planned::folder`]; `None` where entries do not say it.
    of: Option<(u64, usize)>,
    /// Spelling of the root, and its number.
    root: Root,
    /// Path below the root, with the slash at its end.
    path: Vec<u8>,
}

/// One entry, as the plan counts it.
struct PlannedEntry<'a> {
    change: Change,
    kind: Kind,
    meta: &'a Meta,
    name: &'a [u8],
}

/// Names that are written down.
#[derive(Default)]
struct NameList {
    frame: ShardFrame,
    packed: Vec<u8>,
    files: Vec<ShardFile>,
    count: u64,
}

/// Listener of the dry run.
struct Planner<'a> {
    folder: &'a dyn RunFolder,
    control: &'a Control,
    /// Hears of all but entries.
    listener: &'a dyn Listener,
    slots: Vec<Mutex<OpenShard>>,
    links: Vec<Mutex<OpenShard>>,
    costs: Costs,
    /// Names are the same at both ends.
    same_names: bool,
    /// Both ends are local paths.
    local: bool,
    /// The target, where it is a path.
    target: Option<PathBuf>,
    cost: AtomicU64,
    next: AtomicU32,
    shards: Mutex<Vec<(u32, Shard)>>,
    /// Roots of names, in the order of their numbers.
    roots: Mutex<Vec<Vec<u8>>>,
    files: Mutex<Vec<String>>,
    /// Where the shards of a range are announced.
    part: Option<PartWriter>,
    /// Candidates for deletion.
    removals: Mutex<NameList>,
    /// Directories between paths whose attributes differ after the transfer.
    directories: Mutex<NameList>,
    /// Unfinished files of other runs at the target, after the transfer.
    leftovers: AtomicU64,
    problems: Mutex<ProblemCounts>,
    /// The failure that ended the plan.
    failed: Mutex<Option<RunError>>,
}

impl Listener for Planner<'_> {
    fn event(&self, event: Event<'_>) {
        let added = match event {
            Event::Item(item) => self.item(item),
            Event::Planned(planned) => self.planned(planned),
            other => {
                if let Event::Problem(problem) = &other
                    && self.is_leftover(problem)
                {
                    // After a look collect removes what it may.
                    self.leftovers.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                if let (Event::Problem(problem), Some(_)) = (&other, &self.part) {
                    let (what, path) = describe(problem);
                    let text = || journal::text(path.as_os_str().as_bytes());
                    count_problems(&mut self.problems.lock(), &what, 1, text);
                }
                return self.listener.event(other);
            }
        };
        if let Err(error) = added {
            self.failed.lock().get_or_insert(error);
            self.control.stop();
        }
    }
}

impl<'a> Planner<'a> {
    /// Returns whether a problem is an unfinished file at the target.
    fn is_leftover(&self, problem: &Problem) -> bool {
        let Problem { source, target, cause, .. } = problem;
        // A listing of the target names it as its source.
        let path = target.as_ref().or(source.as_ref());
        let is_there =
            path.zip(self.target.as_ref()).is_some_and(|(path, top)| path.starts_with(top));
        is_there && matches!(cause, Cause::Reason(LEFT_OUT))
    }

    /// Returns a planner without entries. `part`: what announces the shards of a range.
    fn new(
        (folder, control, listener): (&'a dyn RunFolder, &'a Control, &'a dyn Listener),
        spec: &Spec,
        costs: Costs,
        local: bool,
        part: Option<PartWriter>,
    ) -> Planner<'a> {
        let slots = |count: usize| (0..count).map(|_| Mutex::default()).collect();
        Planner {
            folder,
            control,
            listener,
            slots: slots(OPEN_MAX),
            links: slots(if spec.policy.hard_links { LINK_SHARDS } else { 0 }),
            costs,
            same_names: !spec.objects.options.encode_names,
            local,
            target: spec.target.local().map(Path::to_owned),
            cost: AtomicU64::new(0),
            next: AtomicU32::new(0),
            shards: Mutex::default(),
            roots: Mutex::default(),
            files: Mutex::default(),
            part,
            removals: Mutex::default(),
            directories: Mutex::default(),
            leftovers: AtomicU64::new(0),
            problems: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Runs the dry run. `deletes`: with the deletions that the transfer asks for.
    ///
    /// # Errors
    /// Those of the transfer. Where the run folder failed, [`Planner::failure`] says why it ended.
    fn list(&self, spec: &Spec, deletes: bool) -> Result<Outcome, Fatal> {
        let mut spec = spec.clone();
        spec.policy.dry_run = true;
        if !deletes {
            spec.policy.delete = Delete::No;
        }
        // All candidates count, whatever is deleted in the end.
        spec.policy.max_delete = None;
        spec.check_space = false;
        (spec.items, spec.items_unchanged, spec.plans) = (deletes, false, true);
        let mut outcome = transfer(&spec, self.control, self)?;
        match outcome.fatal.take() {
            Some(fatal) => Err(fatal),
            None => Ok(outcome),
        }
    }

    /// Returns the failure of the run folder that ended the plan.
    fn failure(&self) -> Option<RunError> {
        self.failed.lock().take()
    }

    fn roots(&self) -> Vec<String> {
        self.roots.lock().iter().map(|root| journal::text(root)).collect()
    }

    /// Takes the shards, in the order of their numbers.
    fn take_shards(&self) -> Vec<Shard> {
        let mut shards = std::mem::take(&mut *self.shards.lock());
        shards.sort_by_key(|(number, _)| *number);
        shards.into_iter().map(|(_, shard)| shard).collect()
    }

    /// Removes the files of all shards.
    fn remove_files(&self) {
        for name in self.files.lock().iter() {
            drop(self.folder.remove(&format!("shards/{name}")));
        }
    }

    fn item(&self, item: &Item<'_>) -> Result<(), RunError> {
        let change = item.change;
        let path = item.path.as_os_str().as_bytes();
        if change.deleted {
            return if self.part.is_some() { self.removal(item) } else { Ok(()) };
        }
        let looks = self.part.as_ref().is_some_and(|part| part.looks);
        // Attributes of directories are set at the end.
        let dir = item.kind == Kind::Dir && !(change.created && self.local);
        if dir || path == b"." {
            return match looks && self.local {
                true => self.note(&self.directories, item.meta, [bare(path), b""]),
                false => Ok(()),
            };
        }
        let Some(source) = &item.source else { return Ok(()) };
        // An object that stands for a directory has no name without its slash: collect makes it.
        if source.as_os_str().as_bytes().ends_with(b"/") && !looks {
            return Ok(());
        }
        let bare = bare(path);
        let at = bare.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let name = bare.get(at..).unwrap_or_default();
        let planned_entry = PlannedEntry { change, kind: item.kind, meta: item.meta, name };
        let paths = || EntryPaths {
            path: path.to_vec(),
            source: source.clone(),
            // An entry without a target has no other name there.
            target: item.target.clone().unwrap_or_else(|| source.clone()),
        };
        self.add(&planned_entry, None, &paths)
    }

    /// Writes down a candidate for deletion.
    fn removal(&self, item: &Item<'_>) -> Result<(), RunError> {
        let path = bare(item.path.as_os_str().as_bytes());
        let slash: &[u8] = if item.kind == Kind::Dir { b"/" } else { b"" };
        self.note(&self.removals, item.meta, [path, slash])
    }

    /// Writes a name down.
    fn note(&self, list: &Mutex<NameList>, meta: &Meta, name: [&[u8]; 2]) -> Result<(), RunError> {
        let mut list = list.lock();
        let NameList { frame, packed, files, count } = &mut *list;
        frame.push((meta.kind, meta.size, meta.mtime), 0, name);
        *count += 1;
        if frame.len() >= RAW_BYTES {
            frame.pack(packed)?;
        }
        if packed.len() >= FILE_BYTES {
            let file = self.write_file(packed)?;
            files.push(file);
        }
        Ok(())
    }

    /// Takes the files of a list, and the number of its names.
    fn take(&self, list: &Mutex<NameList>) -> Result<(Vec<ShardFile>, u64), RunError> {
        let mut list = list.lock();
        let NameList { frame, packed, files, count } = &mut *list;
        if frame.len() > 0 {
            frame.pack(packed)?;
        }
        if !packed.is_empty() {
            let file = self.write_file(packed)?;
            files.push(file);
        }
        Ok((std::mem::take(files), *count))
    }

    fn planned(&self, planned: &Planned<'_>) -> Result<(), RunError> {
        let Planned { change, meta, folder, name, renamed, paths } = *planned;
        if renamed && self.same_names {
            return Err(is_renamed());
        }
        self.add(&PlannedEntry { change, kind: meta.kind, meta, name }, Some(folder), paths)
    }

    fn add(
        &self,
        entry: &PlannedEntry<'_>,
        folder: Option<(u64, usize)>,
        paths: &dyn Fn() -> EntryPaths,
    ) -> Result<(), RunError> {
        let meta = entry.meta;
        let moves = entry.change.transferred && !entry.change.hard_link;
        let bytes = if moves { meta.size } else { 0 };
        let cost = bytes + self.costs.operation;
        let put = |slot: &mut OpenShard| -> Result<(), RunError> {
            let entry_folder = match &mut slot.folder {
                Some(entry_folder) if folder.is_some() && entry_folder.of == folder => entry_folder,
                other => {
                    let known = other.take().map(|entry_folder| entry_folder.root);
                    other.insert(self.folder_of(entry.name, folder, &paths(), known)?)
                }
            };
            let name = [&*entry_folder.path, entry.name];
            slot.frame.push((entry.kind, meta.size, meta.mtime), entry_folder.root.1, name);
            let shard = &mut slot.shard;
            shard.cost += cost;
            shard.entries += 1;
            shard.bytes += bytes;
            Ok(())
        };
        if !self.links.is_empty() && meta.nlink > 1 && entry.kind != Kind::Dir {
            self.cost.fetch_add(cost, Ordering::Relaxed);
            let mixed = (meta.ino ^ meta.dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let at = (mixed >> 32) as usize % self.links.len();
            let Some(slot) = self.links.get(at) else { return Ok(()) };
            let mut slot = slot.lock();
            put(&mut slot)?;
            return self.pack(&mut slot, RAW_BYTES / 2, LINK_FILE_BYTES);
        }
        let Some(slot) = self.slots.get(lane() % OPEN_MAX) else { return Ok(()) };
        let mut slot = slot.lock();
        slot.uncounted += cost;
        // The sum is one cache line for all threads.
        if slot.uncounted >= self.costs.min / COST_STEPS || slot.limit == 0 {
            let more = std::mem::take(&mut slot.uncounted);
            slot.limit = self.costs.limit(self.cost.fetch_add(more, Ordering::Relaxed) + more);
        }
        let limit = slot.limit;
        if cost >= limit {
            // One file is the largest unit; the open shard goes on without it.
            let mut alone = OpenShard { folder: slot.folder.take(), ..OpenShard::default() };
            put(&mut alone)?;
            slot.folder = alone.folder.take();
            return self.close(alone);
        }
        let is_next = |entry_folder: &EntryFolder| folder.is_some() && entry_folder.of != folder;
        if slot.shard.cost >= limit - limit / FOLDER_END
            && slot.folder.as_ref().is_some_and(is_next)
        {
            self.turn(&mut slot)?;
        }
        put(&mut slot)?;
        self.pack(&mut slot, RAW_BYTES, FILE_BYTES)?;
        if slot.shard.cost >= limit || slot.shard.entries >= ENTRIES_MAX {
            self.turn(&mut slot)?;
        }
        Ok(())
    }

    /// Closes a full shard; the next one begins in its place.
    fn turn(&self, slot: &mut OpenShard) -> Result<(), RunError> {
        let OpenShard { folder, uncounted, limit, .. } = slot;
        let folder = folder.take();
        let next =
            OpenShard { folder, uncounted: *uncounted, limit: *limit, ..OpenShard::default() };
        self.close(std::mem::replace(slot, next))
    }

    /// Returns the folder of an entry. `known`: the root that was used last.
    fn folder_of(
        &self,
        name: &[u8],
        of: Option<(u64, usize)>,
        paths: &EntryPaths,
        known: Option<Root>,
    ) -> Result<EntryFolder, RunError> {
        let (path, source) = (bare(&paths.path), bare(paths.source.as_os_str().as_bytes()));
        let target = bare(paths.target.as_os_str().as_bytes());
        let root = source.strip_suffix(path).filter(|_| !self.same_names || target.ends_with(path));
        let (Some(root), Some(above)) = (root, path.strip_suffix(name)) else {
            return Err(is_renamed());
        };
        let root = match known {
            Some(known) if known.0 == root => known,
            _ => (root.to_vec(), self.root(root)),
        };
        Ok(EntryFolder { of, root, path: above.to_vec() })
    }

    /// Number of a root; a transfer has few of them.
    fn root(&self, root: &[u8]) -> u32 {
        let mut roots = self.roots.lock();
        let at = roots.iter().position(|known| known == root).unwrap_or_else(|| {
            roots.push(root.to_vec());
            roots.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Compresses records when there are enough, and writes what was compressed when it is large.
    fn pack(&self, slot: &mut OpenShard, raw_max: usize, file_max: usize) -> Result<(), RunError> {
        if slot.frame.len() < raw_max {
            return Ok(());
        }
        slot.frame.pack(&mut slot.packed)?;
        if slot.packed.len() >= file_max { self.write(slot) } else { Ok(()) }
    }

    /// Writes a file of a shard.
    fn write(&self, slot: &mut OpenShard) -> Result<(), RunError> {
        let next = || self.next.fetch_add(1, Ordering::Relaxed);
        let number = *slot.number.get_or_insert_with(next);
        let name = match slot.shard.pieces.len() {
            0 => self.file_name(number),
            more => format!("{}-{more}", self.file_name(number)),
        };
        let file = self.write_named(format!("{name}.zst"), &mut slot.packed)?;
        slot.shard.pieces.push(file);
        Ok(())
    }

    /// Writes a file of candidates for deletion.
    fn write_file(&self, packed: &mut Vec<u8>) -> Result<ShardFile, RunError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.write_named(format!("{}.zst", self.file_name(number)), packed)
    }

    /// The name of a file, without its end.
    fn file_name(&self, number: u32) -> String {
        match &self.part {
            None => number_text(u64::from(number)),
            Some(part) => format!("{}{}-{number:06}", part.prefix, range_text(part.of)),
        }
    }

    /// Writes a file below `shards/`; what was written is cleared.
    fn write_named(&self, name: String, packed: &mut Vec<u8>) -> Result<ShardFile, RunError> {
        let made = self.folder.create(&format!("shards/{name}"), packed)?;
        if !made {
            let shown = self.folder.shown();
            return Err(RunError::permanent(format!("{shown} has shards of another plan")));
        }
        self.files.lock().push(name.clone());
        let file = ShardFile { name, crc64: shard::crc64(packed) };
        packed.clear();
        Ok(file)
    }

    /// Writes the rest of a shard; it is complete.
    fn close(&self, mut slot: OpenShard) -> Result<(), RunError> {
        if slot.shard.entries == 0 {
            return Ok(());
        }
        self.pack(&mut slot, 1, usize::MAX)?;
        if !slot.packed.is_empty() {
            self.write(&mut slot)?;
        }
        match (&self.part, slot.number) {
            (Some(part), _) if part.push(slot.shard.clone()) => {
                part.announce(self.folder, self.roots(), None)?;
            }
            (None, Some(number)) => self.shards.lock().push((number, slot.shard)),
            _ => {}
        }
        Ok(())
    }

    /// Closes all shards. Small rests are joined.
    fn close_all(&self) -> Result<(), RunError> {
        let slots = self.slots.iter().map(|slot| slot.lock().uncounted);
        let limit = self.costs.limit(self.cost.load(Ordering::Relaxed) + slots.sum::<u64>());
        let mut rest = OpenShard::default();
        for slot in &self.slots {
            let mut slot = std::mem::take(&mut *slot.lock());
            self.pack(&mut slot, 1, usize::MAX)?;
            if slot.number.is_some() {
                self.close(slot)?;
                continue;
            }
            if rest.shard.cost + slot.shard.cost > limit {
                self.close(std::mem::take(&mut rest))?;
            }
            rest.packed.append(&mut slot.packed);
            rest.shard.cost += slot.shard.cost;
            rest.shard.entries += slot.shard.entries;
            rest.shard.bytes += slot.shard.bytes;
        }
        self.close(rest)?;
        self.links.iter().try_for_each(|slot| self.close(std::mem::take(&mut *slot.lock())))
    }
}

/// Returns a path without a slash at its end.
fn bare(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

fn is_renamed() -> RunError {
    RunError::permanent(
        "a transfer that renames a file is not supported on many machines: name a directory as the target",
    )
}

/// A number of this thread.
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    LANE.with(|lane| *lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The costs of the shards of a range of `entries` entries of cost 1 that was taken for one of `expected`.
    fn shards(entries: u64, expected: u64, shard: u64) -> Vec<u64> {
        let plan =
            ClusterPlan { shard_cost: shard, range_cost: expected, ..ClusterPlan::default() };
        let costs = Costs::of_range(&plan);
        let (mut shards, mut seen) = (Vec::new(), 0);
        while seen < entries {
            let cost = costs.limit(seen).min(entries - seen);
            shards.push(cost);
            seen += cost;
        }
        shards
    }

    #[test]
    fn the_last_shards_of_a_range_are_small() {
        let all = shards(4000, 4000, 128);
        assert_eq!(all.iter().sum::<u64>(), 4000);
        assert_eq!(all.first(), Some(&128));
        assert!(all.is_sorted_by(|a, b| a >= b), "{all:?}");
        assert!(all.iter().rev().take(8).all(|cost| *cost <= 32), "{all:?}");
        // Few more than equal ones.
        assert!(all.len() <= 2 * 4000 / 128, "{}", all.len());
    }

    #[test]
    fn wrong_estimates_cost_little() {
        // Taken for small: the rest has large shards.
        let all = shards(400_000, 4000, 128);
        assert!(all.len() <= 400_000 / 128 + 40, "{}", all.len());
        // Taken for large: no shard becomes small.
        assert!(shards(4000, 400_000, 128).iter().rev().skip(1).all(|cost| *cost == 128));
        // Nothing was known.
        assert_eq!(shards(10, 0, 4), [4, 4, 2]);
        assert_eq!(shards(3, 3, 1), [1, 1, 1]);
    }
}
