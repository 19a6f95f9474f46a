//! Making a plan: an ordinary dry run decides, and what it would do is written into shards while it
//! goes on. Memory does not grow with the number of entries.

use crate::folder::{Folder, Trouble};
use crate::plan::{BEGUN, End, FORMAT, PLAN, Piece, Plan, Shard, number_text};
use crate::shard::{self, Entry};
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::{Event, Item, Listener};
use hakobu_core::unit::Kind;
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
/// Lines that are compressed together.
const RAW_BYTES: usize = 64 << 10;
/// Largest file of a shard; a shard with more has several.
const PIECE_BYTES: usize = 1 << 20;
/// The same where many shards are open.
const LINK_PIECE_BYTES: usize = 128 << 10;
/// The most expensive shard.
const COST_MAX: u64 = 16 << 30;
/// The most entries of a shard: a worker holds their names.
const ENTRIES_MAX: u64 = 100_000;

/// A plan to make.
pub struct Request<'a> {
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
    pub ends: Vec<End>,
    /// Both ends are local paths.
    pub local: bool,
}

/// Cost of an operation in bytes, and the least cost of a shard.
fn costs(local: bool) -> (u64, u64) {
    match local {
        // 60 µs at 1 GB/s; a shard of small files takes about 50 ms.
        true => (64 << 10, 64 << 20),
        // 20 ms at 50 MB/s; a shard of small objects takes one worker about a tenth of a second.
        false => (1 << 20, 128 << 20),
    }
}

/// A shard that is being filled.
#[derive(Default)]
struct Slot {
    raw: Vec<u8>,
    packed: Vec<u8>,
    number: Option<u32>,
    shard: Shard,
    /// The root that was used last, and its number.
    root: Option<(Vec<u8>, u32)>,
}

struct Planner<'a> {
    folder: &'a dyn Folder,
    control: &'a Control,
    /// Hears of all but items.
    listener: &'a dyn Listener,
    slots: Vec<Mutex<Slot>>,
    links: Vec<Mutex<Slot>>,
    operation_cost: u64,
    cost_min: u64,
    workers: u64,
    same_names: bool,
    local: bool,
    cost: AtomicU64,
    next: AtomicU32,
    shards: Mutex<Vec<(u32, Shard)>>,
    roots: Mutex<Vec<Vec<u8>>>,
    pieces: Mutex<Vec<String>>,
    failed: Mutex<Option<Trouble>>,
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
        Some((_, name)) => Err(Fatal::new(1, format!("{name} is not built for many machines"))),
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
    request: Request<'_>,
    folder: &dyn Folder,
    control: &Control,
    listener: &dyn Listener,
) -> Result<(Plan, Outcome), Fatal> {
    refuse_unfit(&request.spec)?;
    let id = format!("{:016x}", fastrand::u64(..));
    let failed = |trouble: Trouble| Fatal::new(11, trouble.message);
    if !folder.create(BEGUN, format!("{{\"id\":\"{id}\"}}\n").as_bytes()).map_err(failed)? {
        let made = folder.read(PLAN).map_err(failed)?.is_some();
        let what = if made { "a plan" } else { "a plan that is being made, or was not finished" };
        let hint = "hint: give another folder, or remove this one when no worker needs it";
        let message = format!("cannot plan into {}: it holds {what}\n{hint}", folder.shown());
        return Err(Fatal::new(1, message));
    }
    let (operation_cost, cost_min) = costs(request.local);
    let cost_min = request.shard_bytes.unwrap_or(cost_min).min(COST_MAX);
    let slots = |count: usize| (0..count).map(|_| Mutex::default()).collect();
    let planner = Planner {
        folder,
        control,
        listener,
        slots: slots(OPEN_MAX),
        links: slots(if request.spec.policy.hard_links { LINK_SHARDS } else { 0 }),
        operation_cost,
        cost_min,
        workers: request.workers.max(1),
        same_names: !request.spec.objects.options.encode_names,
        local: request.local,
        cost: AtomicU64::new(0),
        next: AtomicU32::new(0),
        shards: Mutex::default(),
        roots: Mutex::default(),
        pieces: Mutex::default(),
        failed: Mutex::default(),
    };
    let made = make(&planner, request, id, control);
    if made.is_err() {
        // The failure that is told is the one that led here.
        for piece in planner.pieces.lock().iter() {
            drop(folder.remove(&format!("shards/{piece}")));
        }
        drop(folder.remove(BEGUN));
    }
    made
}

fn make(
    planner: &Planner<'_>,
    request: Request<'_>,
    id: String,
    control: &Control,
) -> Result<(Plan, Outcome), Fatal> {
    let Request { mut spec, words, folder, version, ends, local, .. } = request;
    spec.policy.dry_run = true;
    spec.policy.delete = Delete::No;
    spec.check_space = false;
    (spec.items, spec.items_unchanged) = (true, false);
    let outcome = transfer(&spec, control, planner);
    if let Some(trouble) = planner.failed.lock().take() {
        return Err(Fatal::new(11, trouble.message));
    }
    let mut outcome = outcome?;
    if let Some(fatal) = outcome.fatal.take() {
        return Err(fatal);
    }
    if outcome.stopped {
        return Err(Fatal::new(20, "interrupted: no plan was made"));
    }
    let failed = |trouble: Trouble| Fatal::new(11, trouble.message);
    planner.end().map_err(failed)?;
    let mut shards = std::mem::take(&mut *planner.shards.lock());
    shards.sort_by_key(|(number, _)| *number);
    let shards: Vec<Shard> = shards.into_iter().map(|(_, shard)| shard).collect();
    let sum = |of: fn(&Shard) -> u64| shards.iter().map(of).sum();
    let plan = Plan {
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
    let content = serde_json::to_vec(&plan);
    let content = content.map_err(|error| Fatal::new(11, format!("cannot write: {error}")))?;
    match planner.folder.create(PLAN, &content).map_err(failed)? {
        true => Ok((plan, outcome)),
        false => Err(Fatal::new(1, format!("{} holds a plan already", planner.folder.shown()))),
    }
}

impl Listener for Planner<'_> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Item(item) => {
                if let Err(trouble) = self.item(item) {
                    self.failed.lock().get_or_insert(trouble);
                    self.control.stop();
                }
            }
            other => self.listener.event(other),
        }
    }
}

impl Planner<'_> {
    fn item(&self, item: &Item<'_>) -> Result<(), Trouble> {
        let change = &item.change;
        let path = item.path.as_os_str().as_bytes();
        // Attributes of directories are set at the end.
        let dir = item.kind == Kind::Dir && !(change.created && self.local);
        if change.deleted || dir || path == b"." {
            return Ok(());
        }
        let Some(source) = &item.source else { return Ok(()) };
        let whole = source.as_os_str().as_bytes();
        let bare = |path: &'_ [u8]| path.strip_suffix(b"/").unwrap_or(path).len();
        let (whole, path) = (&whole[..bare(whole)], &path[..bare(path)]);
        let root = whole.strip_suffix(path);
        let renamed = |target: &std::path::Path| {
            let target = target.as_os_str().as_bytes();
            self.same_names && !target[..bare(target)].ends_with(path)
        };
        let (Some(root), false) = (root, item.target.as_deref().is_some_and(renamed)) else {
            let message = "a transfer that renames a file is not built for many machines: \
                           name a directory as the target";
            return Err(Trouble::lasting(message));
        };
        let moves = change.transferred && !change.hard_link;
        let bytes = if moves { item.meta.size } else { 0 };
        let cost = bytes + self.operation_cost;
        let seen = self.cost.fetch_add(cost, Ordering::Relaxed) + cost;
        let limit = (seen / (PER_WORKER * self.workers)).clamp(self.cost_min, COST_MAX);
        let add = |slot: &mut Slot| -> Result<(), Trouble> {
            let root = match &slot.root {
                Some((known, number)) if *known == root => *number,
                _ => {
                    let number = self.root(root);
                    slot.root = Some((root.to_vec(), number));
                    number
                }
            };
            let meta = item.meta;
            let (kind, size, mtime) = (item.kind, meta.size, meta.mtime);
            let name = path.to_vec();
            shard::push_line(&Entry { kind, size, mtime, root, name }, &mut slot.raw);
            let shard = &mut slot.shard;
            shard.cost += cost;
            shard.entries += 1;
            shard.bytes += bytes;
            Ok(())
        };
        if !self.links.is_empty() && item.meta.nlink > 1 && item.kind != Kind::Dir {
            let mixed =
                (item.meta.ino ^ item.meta.dev.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let at = (mixed >> 32) as usize % self.links.len();
            let Some(slot) = self.links.get(at) else { return Ok(()) };
            let mut slot = slot.lock();
            add(&mut slot)?;
            return self.pack(&mut slot, RAW_BYTES / 2, LINK_PIECE_BYTES);
        }
        if cost >= limit {
            // One file is the largest unit; what was open goes on without it.
            let mut alone = Slot::default();
            add(&mut alone)?;
            return self.close(alone);
        }
        let Some(slot) = self.slots.get(lane() % OPEN_MAX) else { return Ok(()) };
        let mut slot = slot.lock();
        add(&mut slot)?;
        self.pack(&mut slot, RAW_BYTES, PIECE_BYTES)?;
        if slot.shard.cost >= limit || slot.shard.entries >= ENTRIES_MAX {
            let root = slot.root.clone();
            let full = std::mem::replace(&mut *slot, Slot { root, ..Slot::default() });
            self.close(full)?;
        }
        Ok(())
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

    /// Compresses lines when there are enough, and writes what was compressed when it is large.
    fn pack(&self, slot: &mut Slot, raw_max: usize, piece_max: usize) -> Result<(), Trouble> {
        if slot.raw.len() < raw_max {
            return Ok(());
        }
        slot.packed.extend(shard::frame(&slot.raw)?);
        slot.raw.clear();
        if slot.packed.len() >= piece_max { self.write(slot) } else { Ok(()) }
    }

    /// Writes a file of a shard.
    fn write(&self, slot: &mut Slot) -> Result<(), Trouble> {
        let next = || self.next.fetch_add(1, Ordering::Relaxed);
        let number = *slot.number.get_or_insert_with(next);
        let name = match slot.shard.pieces.len() {
            0 => format!("{}.jsonl.zst", number_text(number)),
            more => format!("{}-{more}.jsonl.zst", number_text(number)),
        };
        let made = self.folder.create(&format!("shards/{name}"), &slot.packed)?;
        if !made {
            let shown = self.folder.shown();
            return Err(Trouble::lasting(format!("{shown} has shards of another plan")));
        }
        self.pieces.lock().push(name.clone());
        slot.shard.pieces.push(Piece { name, crc64: shard::crc64(&slot.packed) });
        slot.packed.clear();
        Ok(())
    }

    /// Writes the rest of a shard; it is complete.
    fn close(&self, mut slot: Slot) -> Result<(), Trouble> {
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
    fn end(&self) -> Result<(), Trouble> {
        let seen = self.cost.load(Ordering::Relaxed);
        let limit = (seen / (PER_WORKER * self.workers)).clamp(self.cost_min, COST_MAX);
        let mut rest = Slot::default();
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

/// A number of this thread.
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    LANE.with(|lane| *lane)
}
