//! The work of one worker: it claims a shard, transfers or verifies it, writes what came of it, and
//! takes the next. Everything it does may be done twice.

use crate::beat::{self, Beat, State};
use crate::folder::Trouble;
use crate::phase::Phase;
use crate::problems::Meters;
use crate::queue::{Loaded, Queue, give_back};
use crate::shard::Entry;
pub use crate::worker::Setup;
use crate::worker::{Done, interrupted};
use crate::{comparing, moving};
use hakobu_sys::host;
use hakobu_transfer::journal::{self, Owner};
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// The shortest time between two looks of a worker that waits for others.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// Time after which a waiting worker sees that the run is asked to stop, at most.
const STOP_SEEN_AFTER: Duration = Duration::from_millis(50);

/// State of a worker, shared by the thread of beats and the work.
struct Shared {
    beat: Mutex<Beat>,
    meter: Meters,
    over: Mutex<bool>,
    wakes: Condvar,
    trouble: Mutex<Option<Trouble>>,
}

struct Worker<'a> {
    setup: &'a Setup<'a>,
    name: String,
    began: Instant,
    shared: &'a Shared,
    /// Nothing was left to claim since then.
    waits: Option<Instant>,
    /// Number of jobs of the transfer before.
    jobs: Cell<Option<usize>>,
}

/// Works until nothing is left.
///
/// # Errors
/// Something went wrong, or `control` stopped it.
pub fn work(setup: &Setup<'_>) -> Result<(), Trouble> {
    let (folder, control) = (setup.folder, setup.control);
    let began = Instant::now();
    let name = format!("{:016x}", fastrand::u64(..));
    let (host, owner) = (host::name(), Owner::me().text());
    let stale_s = setup.stale.as_secs_f64();
    let verifies = setup.phase != Phase::Transfer;
    let beat = Beat { worker: name.clone(), host, owner, stale_s, verifies, ..Beat::default() };
    match (setup.phase.over(folder)?, &setup.phase) {
        (None, _) => {}
        (Some(_), Phase::Transfer) => return Ok(()),
        (Some(why), Phase::Verify(_)) => return Err(Trouble::passing(why)),
    }
    beat::write(folder, &beat, control, setup.stale)?;
    let shared = Shared {
        beat: Mutex::new(beat),
        meter: Mutex::default(),
        over: Mutex::new(false),
        wakes: Condvar::new(),
        trouble: Mutex::default(),
    };
    let queue = Queue::new(setup, &name);
    let mut worker =
        Worker { setup, name, began, shared: &shared, waits: None, jobs: Cell::default() };
    let mut ended = thread::scope(|scope| {
        let beats = thread::Builder::new().name("beats".into());
        let started = beats.spawn_scoped(scope, || keep_beating(setup, &shared, began));
        let ended = match started {
            Ok(_) => worker.run(queue),
            Err(error) => Err(Trouble::passing(format!("cannot start a thread: {error}"))),
        };
        *shared.over.lock() = true;
        shared.wakes.notify_all();
        ended
    });
    if let (Err(Trouble { again: true, .. }), Some(trouble)) =
        (&ended, shared.trouble.lock().take())
    {
        ended = Err(trouble);
    }
    let mut last = shared.beat.lock().clone();
    last.state = State::Ended;
    last.shard = None;
    last.counter += 1;
    last.up_s = began.elapsed().as_secs_f64();
    last.message = ended.as_ref().err().map(|trouble| trouble.message.clone());
    // Without it others wait until the counter has stood still for long enough.
    drop(beat::write(folder, &last, control, setup.stale));
    ended
}

/// Beats until the work is over; stops it where its phase has ended meanwhile.
fn keep_beating(setup: &Setup<'_>, shared: &Shared, began: Instant) {
    let interval = beat::interval(setup.stale);
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
        let beaten = setup.phase.over(setup.folder).and_then(|over| match over {
            Some(why) => {
                ends = true;
                Err(Trouble::passing(why))
            }
            None => beat::write(setup.folder, &beat, setup.control, setup.stale),
        });
        match beaten {
            Ok(()) => *shared.trouble.lock() = None,
            Err(trouble) => {
                *shared.trouble.lock() = Some(trouble);
                // Otherwise the end of the lease stops the work, unless the folder comes back.
                if ends || !setup.control.may_publish() {
                    setup.control.stop();
                }
            }
        }
        over = shared.over.lock();
    }
}

impl Worker<'_> {
    fn run(&mut self, mut queue: Queue<'_>) -> Result<(), Trouble> {
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
        if let Some(Loaded { claimed, .. }) = ahead {
            give_back(self.setup, claimed);
        }
        ended.and(queue.record())
    }

    /// Does one shard, or waits for a moment; false where nothing is left. `ahead`: the shard that was claimed and read
    /// while the one before was in hand.
    fn step(&mut self, queue: &mut Queue<'_>, ahead: &mut Option<Loaded>) -> Result<bool, Trouble> {
        let next = match ahead.take() {
            Some(loaded) => Some(loaded),
            None => queue.next()?,
        };
        if let Some(loaded) = next {
            self.waits = None;
            self.state(State::Working, Some(loaded.claimed.0));
            let (worked, next) = thread::scope(|scope| {
                let beside = thread::Builder::new().name("next-shard".into());
                let beside = beside.spawn_scoped(scope, || queue.ahead());
                let worked = self.shard(loaded);
                // Without a thread the next one is claimed when its turn comes.
                let joined = beside.map_or(Ok(Ok(None)), thread::ScopedJoinHandle::join);
                (worked, joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            self.state(State::Working, None);
            let (done, ended) = worked;
            if let Some(done) = done {
                queue.finished(done);
            }
            if ended.is_err() {
                *ahead = next.ok().flatten();
                return ended.map(|()| false);
            }
            *ahead = next?;
            return Ok(true);
        }
        if queue.is_all_done() {
            return Ok(false);
        }
        self.state(State::Waiting, None);
        // The end of the others is seen late by a quarter of the wait at most.
        let waited = self.waits.get_or_insert_with(Instant::now).elapsed();
        let gap = (waited / 4).clamp(WAIT_MIN, beat::interval(self.setup.stale));
        let end = Instant::now() + gap;
        let mut over = self.shared.over.lock();
        // In steps: a signal only sets a flag.
        while !*over && !self.setup.control.is_stopped() && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            self.shared.wakes.wait_for(&mut over, left.min(STOP_SEEN_AFTER));
        }
        Ok(true)
    }

    fn state(&self, state: State, shard: Option<u32>) {
        let mut beat = self.shared.beat.lock();
        (beat.state, beat.shard) = (state, shard);
    }

    /// Does a shard that is ours: its result, and trouble where the work cannot go on. Without a result it was given
    /// back.
    fn shard(&self, loaded: Loaded) -> (Option<Done>, Result<(), Trouble>) {
        let Loaded { claimed: (number, generation), planned, entries } = loaded;
        let mut done = Done {
            shard: number,
            worker: self.name.clone(),
            host: self.shared.beat.lock().host.clone(),
            generation,
            entries: planned,
            from_s: self.began.elapsed().as_secs_f64(),
            ..Done::default()
        };
        let mut ended = Ok(());
        match entries {
            Ok(by_root) => {
                for (root, entries) in by_root {
                    ended = ended.and(self.entries(root, entries, &mut done));
                }
            }
            Err(why) => done.damaged = Some(why),
        }
        if ended.is_err() || self.setup.control.is_stopped() {
            give_back(self.setup, (number, generation));
            return (None, ended);
        }
        done.to_s = self.began.elapsed().as_secs_f64();
        {
            let mut beat = self.shared.beat.lock();
            *self.shared.meter.lock() = None;
            beat.shards += 1;
            beat.entries += done.entries;
            beat.bytes += done.bytes;
            beat.failed += done.failed + done.differences;
        }
        let ended = match &done.damaged {
            Some(why) if self.setup.phase == Phase::Transfer => Err(Trouble::lasting(format!(
                "cannot use shard {number}: {why}\nhint: collect transfers its entries"
            ))),
            // A verification reports it in its result and continues.
            _ => Ok(()),
        };
        (Some(done), ended)
    }

    /// Does the entries of one root.
    fn entries(&self, root: u32, entries: Vec<Entry>, done: &mut Done) -> Result<(), Trouble> {
        let text = self.setup.plan.roots.get(root as usize).map(|root| journal::bytes(root));
        let Some(root) = text else {
            done.damaged = Some("it names a root that the plan does not have".into());
            return Ok(());
        };
        let meter = &self.shared.meter;
        match self.setup.phase {
            Phase::Transfer => {
                moving::entries(self.setup, (meter, &self.jobs), root, entries, done)
            }
            Phase::Verify(_) => comparing::entries(self.setup, meter, root, &entries, done),
        }
    }
}
