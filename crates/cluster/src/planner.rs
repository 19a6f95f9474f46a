//! Making a plan: an ordinary dry run decides, and what it would do is written into shards while it goes on, by all of
//! its threads. Memory does not grow with the number of entries.

use crate::folder::{self, RunError, RunFolder};
use crate::plan::{BEGUN, ClusterPlan, EndDirectory, FORMAT, PLAN, Shard, ShardFile, number_text};
use crate::shard::{self, ShardFrame};
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::{Change, EntryPaths, Event, Item, Listener, Planned};
use hakobu_core::unit::{Kind, Meta};
use hakobu_transfer::journal;
use hakobu_transfer::location::Location;
use hakobu_transfer::policy::{Append, Basis, Delete, MissingArgs};
use hakobu_transfer::run::{Outcome, Spec, transfer};
use parking_lot::Mutex;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Shards that are filled at the same time: threads of the dry run share them.
const OPEN_MAX: usize = 16;
/// Shards that hard links are spread over, by device and inode: all names of a file meet in one.
const LINK_SHARDS: usize = 128;
/// Shards for each worker that is expected, at the most expensive: the last worker ends at most a
/// sixteenth of its work after the first.
const PER_WORKER: u64 = 16;
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
    let id = format!("{:016x}", fastrand::u64(..));
    let failed = |error: RunError| Fatal::new(11, error.message);
    if !folder.create(BEGUN, format!("{{\"id\":\"{id}\"}}\n").as_bytes()).map_err(failed)? {
        let made = folder.read(PLAN).map_err(failed)?.is_some();
        let what = if made { "a plan" } else { "a plan that is being made, or was not finished" };
        let hint = "hint: give another run folder, or remove this one when no worker needs it";
        let message = format!("cannot plan into {}: it holds {what}\n{hint}", folder.shown());
        return Err(Fatal::new(1, message));
    }
    let PlanRequest { spec, workers, shard_bytes, local, .. } = &request;
    let sizes = (*workers, *shard_bytes);
    let planner = Planner::new((folder, control, listener), spec, sizes, *local);
    let made = make(&planner, request, id, control);
    if made.is_err() {
        // Report the failure that led here.
        planner.remove_files();
        drop(folder.remove(BEGUN));
    }
    made
}

fn make(
    planner: &Planner<'_>,
    request: PlanRequest<'_>,
    id: String,
    control: &Control,
) -> Result<(ClusterPlan, Outcome), Fatal> {
    let PlanRequest { mut spec, words, folder, version, ends, local, .. } = request;
    spec.policy.dry_run = true;
    spec.policy.delete = Delete::No;
    spec.check_space = false;
    (spec.items, spec.items_unchanged, spec.plans) = (false, false, true);
    let outcome = transfer(&spec, control, planner);
    if let Some(error) = planner.failed.lock().take() {
        return Err(Fatal::new(11, error.message));
    }
    let mut outcome = outcome?;
    if let Some(fatal) = outcome.fatal.take() {
        return Err(fatal);
    }
    if outcome.stopped {
        return Err(Fatal::new(20, "interrupted: no plan was written"));
    }
    let failed = |error: RunError| Fatal::new(11, error.message);
    planner.close_all().map_err(failed)?;
    let shards = planner.take_shards();
    let sum = |of: fn(&Shard) -> u64| shards.iter().map(of).sum();
    let plan = ClusterPlan {
        format: FORMAT,
        version: version.to_owned(),
        id,
        words,
        folder,
        ends,
        local,
        entries: sum(|shard| shard.entries),
        bytes: sum(|shard| shard.bytes),
        roots: planner.roots.lock().iter().map(|root| journal::text(root)).collect(),
        problems: outcome.totals.failed + outcome.totals.vanished,
        shards,
    };
    let content = folder::json(&plan).map_err(failed)?;
    match planner.folder.create(PLAN, &content).map_err(failed)? {
        true => Ok((plan, outcome)),
        false => Err(Fatal::new(1, format!("{} holds a plan already", planner.folder.shown()))),
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

/// Listener of the dry run.
struct Planner<'a> {
    folder: &'a dyn RunFolder,
    control: &'a Control,
    /// Hears of all but entries.
    listener: &'a dyn Listener,
    slots: Vec<Mutex<OpenShard>>,
    links: Vec<Mutex<OpenShard>>,
    /// Cost of an operation, in bytes.
    operation_cost: u64,
    /// Least cost of a shard.
    cost_min: u64,
    /// Workers that are expected.
    workers: u64,
    /// Names are the same at both ends.
    same_names: bool,
    /// Both ends are local paths.
    local: bool,
    cost: AtomicU64,
    next: AtomicU32,
    shards: Mutex<Vec<(u32, Shard)>>,
    /// Roots of names, in the order of their numbers.
    roots: Mutex<Vec<Vec<u8>>>,
    files: Mutex<Vec<String>>,
    /// The failure that ended the plan.
    failed: Mutex<Option<RunError>>,
}

impl Listener for Planner<'_> {
    fn event(&self, event: Event<'_>) {
        let added = match event {
            Event::Item(item) => self.item(item),
            Event::Planned(planned) => self.planned(planned),
            other => return self.listener.event(other),
        };
        if let Err(error) = added {
            self.failed.lock().get_or_insert(error);
            self.control.stop();
        }
    }
}

impl<'a> Planner<'a> {
    /// Returns a planner without entries. `shard_bytes`: least cost of a shard; a default where nothing is said.
    fn new(
        (folder, control, listener): (&'a dyn RunFolder, &'a Control, &'a dyn Listener),
        spec: &Spec,
        (workers, shard_bytes): (u64, Option<u64>),
        local: bool,
    ) -> Planner<'a> {
        let slots = |count: usize| (0..count).map(|_| Mutex::default()).collect();
        let (operation_cost, cost_min) = match local {
            // 60 µs at 1 GB/s; a shard of 8,000 small files takes about half a second.
            true => (64 << 10, 512 << 20),
            // 20 ms at 50 MB/s; a shard of small objects takes one worker about a tenth of a second.
            false => (1 << 20, 128 << 20),
        };
        Planner {
            folder,
            control,
            listener,
            slots: slots(OPEN_MAX),
            links: slots(if spec.policy.hard_links { LINK_SHARDS } else { 0 }),
            operation_cost,
            cost_min: shard_bytes.unwrap_or(cost_min).min(COST_MAX),
            workers: workers.max(1),
            same_names: !spec.objects.options.encode_names,
            local,
            cost: AtomicU64::new(0),
            next: AtomicU32::new(0),
            shards: Mutex::default(),
            roots: Mutex::default(),
            files: Mutex::default(),
            failed: Mutex::default(),
        }
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
        // Attributes of directories are set at the end.
        let dir = item.kind == Kind::Dir && !(change.created && self.local);
        if change.deleted || dir || path == b"." {
            return Ok(());
        }
        let Some(source) = &item.source else { return Ok(()) };
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
        let cost = bytes + self.operation_cost;
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
        if slot.uncounted >= self.cost_min / COST_STEPS || slot.limit == 0 {
            let more = std::mem::take(&mut slot.uncounted);
            slot.limit = self.limit(self.cost.fetch_add(more, Ordering::Relaxed) + more);
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

    /// Cost at which a shard is full, from the cost of all entries so far.
    fn limit(&self, seen: u64) -> u64 {
        (seen / (PER_WORKER * self.workers)).clamp(self.cost_min, COST_MAX)
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
            0 => format!("{}.zst", number_text(number)),
            more => format!("{}-{more}.zst", number_text(number)),
        };
        let made = self.folder.create(&format!("shards/{name}"), &slot.packed)?;
        if !made {
            let shown = self.folder.shown();
            return Err(RunError::permanent(format!("{shown} has shards of another plan")));
        }
        self.files.lock().push(name.clone());
        slot.shard.pieces.push(ShardFile { name, crc64: shard::crc64(&slot.packed) });
        slot.packed.clear();
        Ok(())
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
        if let Some(number) = slot.number {
            self.shards.lock().push((number, slot.shard));
        }
        Ok(())
    }

    /// Closes all shards. Small rests are joined.
    fn close_all(&self) -> Result<(), RunError> {
        let slots = self.slots.iter().map(|slot| slot.lock().uncounted);
        let limit = self.limit(self.cost.load(Ordering::Relaxed) + slots.sum::<u64>());
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
