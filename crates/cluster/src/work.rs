//! The work of one worker: it claims a shard, transfers or verifies it, writes what came of it, and
//! takes the next. Everything it does may be done twice.

use crate::beat::{self, Beat, State};
use crate::choice::Choice;
use crate::claim;
pub use crate::done::{Done, Ended};
use crate::folder::{self, Trouble};
use crate::phase::Phase;
use crate::plan::number_text;
use crate::problems::Meters;
pub use crate::setup::Setup;
use crate::shard::{self, Broken, Entry};
use crate::{comparing, moving};
use hakobu_sys::host;
use hakobu_transfer::journal::{self, Owner};
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The shortest time between two looks of a worker that waits for others.
const WAIT_MIN: Duration = Duration::from_millis(50);

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
    choice: Choice<'a>,
    /// Nothing was left to claim since then.
    waits: Option<Instant>,
    /// Number of jobs of the transfer before.
    jobs: Cell<Option<usize>>,
}

/// Works until nothing is left, something goes wrong, or `control` stops it.
pub fn work(setup: &Setup<'_>) -> Ended {
    let (folder, control) = (setup.folder, setup.control);
    let began = Instant::now();
    let name = format!("{:016x}", fastrand::u64(..));
    let (host, owner) = (host::name(), Owner::me().text());
    let stale_s = setup.stale.as_secs_f64();
    let verifies = setup.phase != Phase::Transfer;
    let beat = Beat { worker: name.clone(), host, owner, stale_s, verifies, ..Beat::default() };
    match (setup.phase.over(folder), &setup.phase) {
        (Ok(None), _) => {}
        (Ok(Some(_)), Phase::Transfer) => return Ended::Done,
        (Ok(Some(why)), Phase::Verify(_)) => return Ended::Again(why.to_owned()),
        (Err(trouble), _) => return trouble.into(),
    }
    if let Err(trouble) = beat::write(folder, &beat, control, setup.stale) {
        return trouble.into();
    }
    let shared = Shared {
        beat: Mutex::new(beat),
        meter: Mutex::default(),
        over: Mutex::new(false),
        wakes: Condvar::new(),
        trouble: Mutex::default(),
    };
    let choice = Choice::new(folder, (setup.plan, &setup.phase), setup.stale, &name);
    let mut worker =
        Worker { setup, name, began, shared: &shared, choice, waits: None, jobs: Cell::default() };
    let mut ended = std::thread::scope(|scope| {
        let beats = std::thread::Builder::new().name("beats".into());
        let started = beats.spawn_scoped(scope, || keep_beating(setup, &shared, began));
        let ended = match started {
            Ok(_) => worker.run(),
            Err(error) => Ended::Again(format!("cannot start a thread: {error}")),
        };
        *shared.over.lock() = true;
        shared.wakes.notify_all();
        ended
    });
    if let (Ended::Again(_), Some(trouble)) = (&ended, shared.trouble.lock().take()) {
        ended = trouble.into();
    }
    let mut last = shared.beat.lock().clone();
    last.state = State::Ended;
    last.shard = None;
    last.counter += 1;
    last.up_s = began.elapsed().as_secs_f64();
    last.message = match &ended {
        Ended::Done => None,
        Ended::Again(why) | Ended::Never(why) => Some(why.clone()),
    };
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
                Err(Trouble { again: true, message: why.to_owned() })
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
    fn run(&mut self) -> Ended {
        loop {
            if self.setup.control.is_stopped() {
                return Ended::Again("interrupted: the rest was returned".into());
            }
            let stepped = self.step();
            match stepped {
                Ok(Some(ended)) => return ended,
                Ok(None) => {}
                Err(trouble) => return trouble.into(),
            }
        }
    }

    /// Does one shard, or waits for a moment; the end where nothing is left.
    fn step(&mut self) -> Result<Option<Ended>, Trouble> {
        if let Some((number, generation)) = self.choice.next()? {
            self.waits = None;
            self.state(State::Working, Some(number));
            let ended = self.shard(number, generation)?;
            self.state(State::Working, None);
            return Ok(ended);
        }
        if self.choice.is_all_done() {
            return Ok(Some(Ended::Done));
        }
        self.state(State::Waiting, None);
        // The end of the others is seen late by a quarter of the wait at most.
        let waited = self.waits.get_or_insert_with(Instant::now).elapsed();
        let gap = (waited / 4).clamp(WAIT_MIN, beat::interval(self.setup.stale));
        let mut over = self.shared.over.lock();
        self.shared.wakes.wait_for(&mut over, gap);
        Ok(None)
    }

    fn state(&self, state: State, shard: Option<u32>) {
        let mut beat = self.shared.beat.lock();
        (beat.state, beat.shard) = (state, shard);
    }

    fn give_back(&self, number: u32, generation: u32) {
        // What cannot be given back is redone when this worker counts as gone.
        let claims = self.setup.phase.claims();
        drop(claim::give_back(self.setup.folder, &claims, number, generation));
    }

    /// Does a shard that is ours and writes what came of it.
    fn shard(&mut self, number: u32, generation: u32) -> Result<Option<Ended>, Trouble> {
        let (folder, plan, control) = (self.setup.folder, self.setup.plan, self.setup.control);
        let Some(planned) = plan.shards.get(number as usize) else { return Ok(None) };
        let mut done = Done {
            shard: number,
            worker: self.name.clone(),
            host: self.shared.beat.lock().host.clone(),
            generation,
            entries: planned.entries,
            from_s: self.began.elapsed().as_secs_f64(),
            ..Done::default()
        };
        let mut ended = None;
        match shard::read(folder, planned) {
            Ok(entries) => {
                let mut by_root: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
                for entry in entries {
                    by_root.entry(entry.root).or_default().push(entry);
                }
                for (root, entries) in by_root {
                    ended = ended.or(self.entries(root, entries, &mut done));
                }
            }
            Err(Broken::Folder(trouble)) => ended = Some(trouble.into()),
            Err(Broken::Damaged(why)) => done.damaged = Some(why),
        }
        let stopped = control.is_stopped();
        if ended.is_some() || stopped {
            self.give_back(number, generation);
            return Ok(ended);
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
        let recorded = folder::json(&done).and_then(|content| {
            let results = self.setup.phase.results();
            folder.create(&format!("{results}/{}.json", number_text(number)), &content)
        });
        if let Err(trouble) = recorded {
            self.give_back(number, generation);
            return Err(trouble);
        }
        self.choice.finished(number);
        // A verification tells of it in its result, and goes on.
        let damaged = done.damaged.filter(|_| self.setup.phase == Phase::Transfer);
        let damaged = damaged.map(|why| format!("cannot use shard {number}: {why}"));
        Ok(damaged.map(|why| Ended::Never(format!("{why}\nhint: collect transfers what it holds"))))
    }

    /// Does the entries of one root. An end is returned where that could not go on.
    fn entries(&self, root: u32, entries: Vec<Entry>, done: &mut Done) -> Option<Ended> {
        let text = self.setup.plan.roots.get(root as usize).map(|root| journal::bytes(root));
        let Some(root) = text else {
            done.damaged = Some("it names a root that the plan does not have".into());
            return None;
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
