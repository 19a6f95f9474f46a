//! Shards while a plan is made: entries of the dry run are added by all of its threads.

use crate::folder::{Folder, Trouble};
use crate::plan::{Piece, Shard, number_text};
use crate::shard::{self, Frame};
use hakobu_core::control::Control;
use hakobu_core::event::{Change, EntryPaths, Event, Item, Listener, Planned};
use hakobu_core::unit::{Kind, Meta};
use hakobu_transfer::run::Spec;
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
const PIECE_BYTES: usize = 1 << 20;
/// The same where many shards are open.
const LINK_PIECE_BYTES: usize = 128 << 10;
/// The most expensive shard.
const COST_MAX: u64 = 16 << 30;
/// Part of its cost from which on a shard ends where a folder does: the names of a folder that other shards wrote into
/// have to be looked up one by one.
const FOLDER_END: u64 = 4;
/// The most entries of a shard: a worker holds their names.
const ENTRIES_MAX: u64 = 100_000;

/// A shard that is being filled.
#[derive(Default)]
struct Slot {
    frame: Frame,
    packed: Vec<u8>,
    number: Option<u32>,
    shard: Shard,
    folder: Option<Folded>,
    /// Cost that the sum of all does not have yet.
    uncounted: u64,
    /// Cost at which the shard is full, from the sum that was known last.
    limit: u64,
}

/// A root of names, and its number.
type Root = (Vec<u8>, u32);

/// The folder of the entry before.
struct Folded {
    /// See [`Planned::folder`]; `None` where entries do not say it.
    of: Option<(u64, usize)>,
    /// Spelling of the root, and its number.
    root: Root,
    /// Path below the root, with the slash at its end.
    path: Vec<u8>,
}

/// One entry, as the plan counts it.
struct Addition<'a> {
    change: Change,
    kind: Kind,
    meta: &'a Meta,
    name: &'a [u8],
}

/// Listener of the dry run.
pub(super) struct Planner<'a> {
    /// The run folder.
    pub folder: &'a dyn Folder,
    control: &'a Control,
    /// Hears of all but entries.
    listener: &'a dyn Listener,
    slots: Vec<Mutex<Slot>>,
    links: Vec<Mutex<Slot>>,
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
    pub roots: Mutex<Vec<Vec<u8>>>,
    pieces: Mutex<Vec<String>>,
    /// The failure that ended the plan.
    pub failed: Mutex<Option<Trouble>>,
}

impl Listener for Planner<'_> {
    fn event(&self, event: Event<'_>) {
        let added = match event {
            Event::Item(item) => self.item(item),
            Event::Planned(planned) => self.planned(planned),
            other => return self.listener.event(other),
        };
        if let Err(trouble) = added {
            self.failed.lock().get_or_insert(trouble);
            self.control.stop();
        }
    }
}

impl<'a> Planner<'a> {
    /// Returns a planner without entries. `shard_bytes`: least cost of a shard; a default where nothing is said.
    pub fn new(
        (folder, control, listener): (&'a dyn Folder, &'a Control, &'a dyn Listener),
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
            pieces: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Takes the shards, in the order of their numbers.
    pub fn take_shards(&self) -> Vec<Shard> {
        let mut shards = std::mem::take(&mut *self.shards.lock());
        shards.sort_by_key(|(number, _)| *number);
        shards.into_iter().map(|(_, shard)| shard).collect()
    }

    /// Removes the files of all shards.
    pub fn remove_pieces(&self) {
        for piece in self.pieces.lock().iter() {
            drop(self.folder.remove(&format!("shards/{piece}")));
        }
    }

    fn item(&self, item: &Item<'_>) -> Result<(), Trouble> {
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
        let addition = Addition { change, kind: item.kind, meta: item.meta, name };
        let paths = || EntryPaths {
            path: path.to_vec(),
            source: source.clone(),
            // An entry without a target has no other name there.
            target: item.target.clone().unwrap_or_else(|| source.clone()),
        };
        self.add(&addition, None, &paths)
    }

    fn planned(&self, planned: &Planned<'_>) -> Result<(), Trouble> {
        let Planned { change, meta, folder, name, renamed, paths } = *planned;
        if renamed && self.same_names {
            return Err(is_renamed());
        }
        self.add(&Addition { change, kind: meta.kind, meta, name }, Some(folder), paths)
    }

    fn add(
        &self,
        entry: &Addition<'_>,
        folder: Option<(u64, usize)>,
        paths: &dyn Fn() -> EntryPaths,
    ) -> Result<(), Trouble> {
        let meta = entry.meta;
        let moves = entry.change.transferred && !entry.change.hard_link;
        let bytes = if moves { meta.size } else { 0 };
        let cost = bytes + self.operation_cost;
        let put = |slot: &mut Slot| -> Result<(), Trouble> {
            let folded = match &mut slot.folder {
                Some(folded) if folder.is_some() && folded.of == folder => folded,
                other => {
                    let known = other.take().map(|folded| folded.root);
                    other.insert(self.fold(entry.name, folder, &paths(), known)?)
                }
            };
            let name = [&*folded.path, entry.name];
            slot.frame.push((entry.kind, meta.size, meta.mtime), folded.root.1, name);
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
            return self.pack(&mut slot, RAW_BYTES / 2, LINK_PIECE_BYTES);
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
            let mut alone = Slot { folder: slot.folder.take(), ..Slot::default() };
            put(&mut alone)?;
            slot.folder = alone.folder.take();
            return self.close(alone);
        }
        let is_next = |folded: &Folded| folder.is_some() && folded.of != folder;
        if slot.shard.cost >= limit - limit / FOLDER_END
            && slot.folder.as_ref().is_some_and(is_next)
        {
            self.turn(&mut slot)?;
        }
        put(&mut slot)?;
        self.pack(&mut slot, RAW_BYTES, PIECE_BYTES)?;
        if slot.shard.cost >= limit || slot.shard.entries >= ENTRIES_MAX {
            self.turn(&mut slot)?;
        }
        Ok(())
    }

    /// Closes a full shard; the next one begins in its place.
    fn turn(&self, slot: &mut Slot) -> Result<(), Trouble> {
        let Slot { folder, uncounted, limit, .. } = slot;
        let folder = folder.take();
        let next = Slot { folder, uncounted: *uncounted, limit: *limit, ..Slot::default() };
        self.close(std::mem::replace(slot, next))
    }

    /// Returns the folder of an entry. `known`: the root that was used last.
    fn fold(
        &self,
        name: &[u8],
        of: Option<(u64, usize)>,
        paths: &EntryPaths,
        known: Option<Root>,
    ) -> Result<Folded, Trouble> {
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
        Ok(Folded { of, root, path: above.to_vec() })
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
    fn pack(&self, slot: &mut Slot, raw_max: usize, piece_max: usize) -> Result<(), Trouble> {
        if slot.frame.len() < raw_max {
            return Ok(());
        }
        slot.frame.pack(&mut slot.packed)?;
        if slot.packed.len() >= piece_max { self.write(slot) } else { Ok(()) }
    }

    /// Writes a file of a shard.
    fn write(&self, slot: &mut Slot) -> Result<(), Trouble> {
        let next = || self.next.fetch_add(1, Ordering::Relaxed);
        let number = *slot.number.get_or_insert_with(next);
        let name = match slot.shard.pieces.len() {
            0 => format!("{}.zst", number_text(number)),
            more => format!("{}-{more}.zst", number_text(number)),
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
    pub fn end(&self) -> Result<(), Trouble> {
        let slots = self.slots.iter().map(|slot| slot.lock().uncounted);
        let limit = self.limit(self.cost.load(Ordering::Relaxed) + slots.sum::<u64>());
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

/// Returns a path without a slash at its end.
fn bare(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

fn is_renamed() -> Trouble {
    Trouble::lasting(
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
