//! Read-ahead of a local tree: workers take the next pieces in the order of keys, within a bound on names; the
//! emitting thread works too, and waits only for a piece that another worker has taken.
//!
//! The number of workers is tuned by throughput. If a listing waits for its reader rather than the file system, its
//! workers are idle, so it gets no more of them. The walk of `tree` has no order, which is why it is not used here.

use super::read::{Entered, Folder, Piece, Reading, Slot};
use hakobu_core::limit::{Gate, Limits, Work};
use hakobu_core::meter::{Doing, Meter, Phase};
use hakobu_core::unit::Jobs;
use hakobu_explain::tune::{Reading as Counted, Tuner};
use hakobu_sys::dir::Reader;
use hakobu_sys::process;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

/// Limit on names read and not emitted yet; beyond it no folder is read ahead.
const NAMES_AHEAD_MAX: usize = 32 << 10;
/// Limit on names examined and not emitted yet.
const LOOKED_AHEAD_MAX: usize = 8 << 10;
/// Maximum number of names of a folder that is read ahead; larger ones are read in turn, one at a time.
const FOLDER_NAMES_MAX: usize = 8 << 10;
/// Maximum depth of folders that are read ahead: each stores its whole path.
const DEPTH_MAX: usize = 256;
/// Interval between adjustments of the number of workers.
const TICK: Duration = Duration::from_millis(10);

/// State shared by the workers of a listing.
pub(super) struct Ahead<'a> {
    pub reading: Reading<'a>,
    gate: Gate,
    /// The number of workers is tuned.
    is_tuned: bool,
    meter: Meter,
    plan: Mutex<Plan>,
    /// More work is available, or the listing has ended.
    more: Condvar,
    /// A piece is done.
    done: Condvar,
}

#[derive(Default)]
struct Plan {
    /// Folders with pieces not taken yet, and the next one, in the order of output. Keys end with a number above all
    /// pieces, so that a folder sorts before the rest of its parent.
    folders: BTreeMap<Vec<u32>, (Arc<Folder>, usize)>,
    names: usize,
    looked: usize,
    over: bool,
}

impl Plan {
    /// Returns the next piece that may be worked on now.
    fn take(&mut self) -> Option<(Arc<Folder>, usize)> {
        while let Some(mut first) = self.folders.first_entry() {
            let (folder, next) = first.get_mut();
            let Some(piece) = folder.pieces.get(*next) else {
                first.remove();
                continue;
            };
            let is_dir = folder.is_dir(piece);
            let mut slot = piece.slot.lock();
            if matches!(*slot, Slot::New) {
                let is_full = match is_dir {
                    true => self.names >= NAMES_AHEAD_MAX,
                    false => self.looked >= LOOKED_AHEAD_MAX,
                };
                if is_full {
                    return None;
                }
                *slot = Slot::Taken;
                self.looked += if is_dir { 0 } else { piece.names.len() };
                let taken = (Arc::clone(folder), *next);
                drop(slot);
                *next += 1;
                return Some(taken);
            }
            drop(slot);
            *next += 1;
        }
        None
    }
}

fn key(folder: &Folder) -> Vec<u32> {
    folder.order.iter().copied().chain([u32::MAX]).collect()
}

impl<'a> Ahead<'a> {
    /// Makes the state for `jobs` workers; `Auto` begins with one.
    pub fn new(reading: Reading<'a>, jobs: Jobs) -> Ahead<'a> {
        // The other half of the descriptors is for connections and files.
        let files = process::raise_open_files_limit() / 2;
        let jobs_max = Limits::new(Work::Walk, jobs, None, files).jobs_max;
        let (seed, is_tuned) = match jobs {
            Jobs::Auto => (1, true),
            Jobs::Fixed(jobs) => (jobs, false),
        };
        Ahead {
            reading,
            gate: Gate::new(seed, jobs_max),
            is_tuned,
            meter: Meter::new(jobs_max),
            plan: Mutex::default(),
            more: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Ends all workers.
    pub fn end(&self) {
        self.plan.lock().over = true;
        self.more.notify_all();
        self.gate.wake();
    }

    /// Makes the pieces of a folder available; its names are known.
    pub fn open(&self, folder: &Arc<Folder>) {
        let mut plan = self.plan.lock();
        plan.names += folder.names.len();
        if folder.order.len() <= DEPTH_MAX {
            plan.folders.insert(key(folder), (Arc::clone(folder), 0));
        }
        drop(plan);
        self.more.notify_all();
    }

    /// Removes a folder whose names were all emitted.
    pub fn close(&self, folder: &Folder) {
        let mut plan = self.plan.lock();
        let was_full = plan.names >= NAMES_AHEAD_MAX;
        plan.names -= folder.names.len();
        if folder.order.len() <= DEPTH_MAX {
            plan.folders.remove(&key(folder));
        }
        drop(plan);
        if was_full {
            self.more.notify_all();
        }
    }

    /// Works on a piece that was taken.
    fn work(
        &self,
        folder: &Arc<Folder>,
        index: usize,
        names_max: Option<usize>,
        (reader, doing): (&mut Reader, &Doing),
    ) {
        doing.turn(Phase::List);
        let mut found = self.reading.work(folder, index, names_max, reader);
        match &found {
            Slot::Entered(Entered::TooLarge) => found = Slot::Large,
            Slot::Entered(Entered::Folder(folder, _)) => self.open(folder),
            _ => {}
        }
        let Some(piece) = folder.pieces.get(index) else { return };
        let lane = doing.lane();
        lane.items(piece.names.len() as u64);
        lane.completions(1);
        *piece.slot.lock() = found;
    }

    /// Runs a worker other than the emitting one.
    fn serve(&self, index: usize) {
        let doing = Doing::new(self.meter.share(index), Phase::Idle);
        let mut reader = Reader::default();
        loop {
            doing.turn(Phase::Idle);
            self.gate.wait_for_turn(index, || self.plan.lock().over);
            let mut plan = self.plan.lock();
            if plan.over {
                return;
            }
            let Some((folder, index)) = plan.take() else {
                self.more.wait(&mut plan);
                continue;
            };
            drop(plan);
            self.work(&folder, index, Some(FOLDER_NAMES_MAX), (&mut reader, &doing));
            // Taking the lock ensures that a thread that checked before is asleep by now.
            drop(self.plan.lock());
            self.done.notify_one();
        }
    }
}

/// The emitting side of a listing: the first worker, which starts the others.
pub(super) struct Lead<'scope, 'env, 'a> {
    scope: &'scope Scope<'scope, 'env>,
    ahead: &'env Ahead<'a>,
    reader: Reader,
    doing: Doing,
    /// `None` if the number of workers is fixed.
    tuner: Option<Tuner>,
    begun: Instant,
    ticked: Instant,
    started: usize,
    /// Time spent on handing over since the last tick.
    handing: Duration,
}

impl<'scope, 'env, 'a> Lead<'scope, 'env, 'a> {
    pub fn new(scope: &'scope Scope<'scope, 'env>, ahead: &'env Ahead<'a>) -> Self {
        let now = Instant::now();
        let mut lead = Lead {
            scope,
            ahead,
            reader: Reader::default(),
            // The emitting thread waits for names, except while it waits for the reader.
            doing: Doing::new(ahead.meter.share(0), Phase::List),
            handing: Duration::ZERO,
            tuner: ahead.is_tuned.then(|| Tuner::new(ahead.gate.jobs_max(), 1, false)),
            begun: now,
            ticked: now,
            started: 1,
        };
        lead.start();
        lead
    }

    /// Returns the result of a piece; works on it, or on others while another worker has it.
    pub fn need(&mut self, folder: &Arc<Folder>, index: usize) -> Option<Slot> {
        let piece = folder.pieces.get(index)?;
        self.tick();
        loop {
            let mut slot = piece.slot.lock();
            match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::New | Slot::Large => {
                    drop(slot);
                    let worker = (&mut self.reader, &self.doing);
                    if !folder.is_dir(piece) {
                        self.ahead.plan.lock().looked += piece.names.len();
                    }
                    self.ahead.work(folder, index, None, worker);
                }
                Slot::Taken => {
                    drop(slot);
                    self.wait(piece);
                }
                found => {
                    drop(slot);
                    if let Slot::Looked(_) = found {
                        self.emitted(piece.names.len());
                    }
                    return Some(found);
                }
            }
        }
    }

    /// Counts names emitted after being examined.
    fn emitted(&self, names: usize) {
        let mut plan = self.ahead.plan.lock();
        let was_full = plan.looked >= LOOKED_AHEAD_MAX;
        plan.looked -= names;
        drop(plan);
        if was_full {
            self.ahead.more.notify_all();
        }
    }

    /// Works on another piece or waits, while another worker has the needed one.
    fn wait(&mut self, piece: &Piece) {
        let mut plan = self.ahead.plan.lock();
        if !matches!(*piece.slot.lock(), Slot::Taken) {
            return;
        }
        match plan.take() {
            Some((folder, index)) => {
                drop(plan);
                let worker = (&mut self.reader, &self.doing);
                self.ahead.work(&folder, index, Some(FOLDER_NAMES_MAX), worker);
            }
            None => drop(self.ahead.done.wait_for(&mut plan, TICK)),
        }
        self.tick();
    }

    /// Hands names to the reader of the listing, which may block.
    pub fn hand_over<T>(&mut self, send: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let sent = {
            let _idle = self.doing.during(Phase::Idle);
            send()
        };
        self.handing += begun.elapsed();
        sent
    }

    /// Adjusts the number of workers at intervals.
    fn tick(&mut self) {
        let now = Instant::now();
        let since = now.duration_since(self.ticked);
        if since < TICK {
            return;
        }
        self.ticked = now;
        let counts = self.ahead.meter.counts();
        let is_waited_for = 2 * std::mem::take(&mut self.handing) < since;
        let counted = Counted {
            items: counts.items,
            completions: counts.completions,
            in_use: counts.in_use().saturating_sub(usize::from(!is_waited_for)),
            ..Counted::default()
        };
        if let Some(tuner) = &mut self.tuner {
            self.ahead.gate.set(tuner.step(now.duration_since(self.begun), &counted));
        }
        self.start();
    }

    /// Starts as many workers as the gate admits.
    fn start(&mut self) {
        let jobs = self.ahead.gate.jobs();
        while self.started < jobs {
            let (ahead, index) = (self.ahead, self.started);
            let thread = Builder::new().name("list-ahead".to_owned());
            // If no thread can be started, the existing ones do all the work.
            if thread.spawn_scoped(self.scope, move || ahead.serve(index)).is_err() {
                break;
            }
            self.started += 1;
        }
        self.ahead.more.notify_all();
    }
}
