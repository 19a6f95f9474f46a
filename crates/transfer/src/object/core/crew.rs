//! The workers of one core: as many as the gate gives it, begun when it opens and ended when it
//! closes. The workers of all cores are numbered in turn (core 0, core 1, …, core 0 …), so that few
//! of them are spread evenly too, and the first one always is.

use super::{Core, Engine, Large, Unsaid, say};
use crate::meter::{Doing, Phase};
use crate::object::Side;
use crate::object::budget::set_idle_bytes_max;
use crate::object::get::Folders;
use crate::object::queue::{Next, Taken};
use crate::s3::{Client, Flow, Store};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a stop may go unnoticed.
const WATCH: Duration = Duration::from_millis(20);
/// In how many of those rounds connections are looked at once.
const LOOK_ROUNDS: u32 = 5;
/// In how many of them the first core times a handshake: once a second.
const HANDSHAKE_ROUNDS: u32 = 50;
/// Threads of a core for file calls that would block it, and for look-ups of names. They begin
/// when they are needed.
const BLOCKING_THREADS: (usize, usize) = (4, 32);

/// One core.
pub(super) struct Crew<'a> {
    engine: &'a Engine<'a>,
    /// Its number, of so many.
    number: usize,
    cores: usize,
    source: Option<Client>,
    target: Option<Client>,
    /// The rates that those keep.
    flows: Vec<Rc<Flow>>,
    folders: Rc<RefCell<Folders>>,
    unsaid: Rc<Unsaid>,
}

impl<'a> Crew<'a> {
    /// Works on this thread until everything is done.
    ///
    /// # Errors
    /// The system gives no runtime; then the run is stopped.
    pub fn serve(engine: &'a Engine<'a>, number: usize, cores: usize) -> std::io::Result<()> {
        let _alarm = super::Alarm(&engine.queue);
        set_idle_bytes_max(engine.setup.memory_bytes_max);
        let threads = engine.setup.helm.gate.jobs_max() / cores;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(threads.clamp(BLOCKING_THREADS.0, BLOCKING_THREADS.1))
            .build();
        // Without this core the others might wait for ever.
        let runtime = runtime.inspect_err(|_| engine.queue.stop())?;
        let mut flows = Vec::new();
        let mut client = |store: &Option<Arc<Store>>, side| {
            let client = Client::new(store.as_ref()?);
            let Some(all) = &engine.flows else { return Some(client) };
            let flow = all.of(side);
            let client = client.keeping(&flow);
            flows.push(flow);
            Some(client)
        };
        let source = client(&engine.setup.source, Side::Source);
        let target = client(&engine.setup.target, Side::Target);
        let crew = Crew {
            engine,
            number,
            cores,
            source,
            target,
            flows,
            folders: Rc::default(),
            unsaid: Rc::default(),
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            tokio::select! {
                () = crew.work() => {}
                () = crew.watch() => {}
            }
        });
        say(engine, &crew.unsaid);
        Ok(())
    }

    /// Looks whether the run shall stop, and now and then at a few connections, for as long as
    /// there is work.
    async fn watch(&self) {
        let lane = self.engine.setup.helm.meter.lane(self.number);
        for round in 1_u32.. {
            tokio::time::sleep(WATCH).await;
            if round % LOOK_ROUNDS == 0 {
                let clients = self.source.iter().chain(&self.target);
                clients.for_each(|client| client.look_at_some(lane));
            }
            if self.number == 0 && round % HANDSHAKE_ROUNDS == 0 {
                let lane = self.engine.setup.helm.meter.share(self.number);
                let clients = self.source.iter().chain(&self.target);
                clients.for_each(|client| client.shake_hands(&lane));
            }
            if self.engine.setup.control.is_stopped() {
                self.engine.queue.stop();
            }
        }
    }

    /// How many of all workers are this core's.
    fn places(&self) -> usize {
        let jobs = self.engine.setup.helm.gate.jobs();
        jobs / self.cores + usize::from(self.number < jobs % self.cores)
    }

    /// Keeps as many workers at work as there shall be.
    async fn work(&self) {
        let Engine { queue, setup, .. } = self.engine;
        let mut workers = FuturesUnordered::new();
        let mut at_work: Vec<bool> = Vec::new();
        let mut over = false;
        loop {
            // Both hear of whatever happens from here on.
            let (change, ending) = (setup.helm.gate.change(), queue.ending());
            self.flows.iter().for_each(|flow| flow.set_jobs(setup.helm.gate.jobs()));
            let places = if over || queue.is_over() { 0 } else { self.places() };
            at_work.resize(at_work.len().max(places), false);
            for (place, is_taken) in at_work.iter_mut().enumerate().take(places) {
                if !std::mem::replace(is_taken, true) {
                    workers.push(self.worker(place));
                }
            }
            if self.number == 0 {
                queue.widen(|large| large.widen(self.engine));
            }
            if workers.is_empty() && (over || queue.is_over()) {
                return;
            }
            tokio::select! {
                Some((place, ended)) = workers.next() => {
                    at_work[place] = false;
                    over |= ended;
                }
                () = change => {}
                () = ending, if workers.is_empty() => {}
            }
        }
    }

    /// One worker: one thing at a time until nothing is left, or until it shall not be any more.
    /// Returns its place, and whether nothing is left.
    async fn worker(&self, place: usize) -> (usize, bool) {
        let Engine { queue, setup, .. } = self.engine;
        let doing = Rc::new(Doing::new(setup.helm.meter.share(self.number), Phase::Idle));
        let client = |of: &Option<Client>| of.as_ref().map(|client| client.telling(&doing));
        let core = Core {
            engine: self.engine,
            source: client(&self.source),
            target: client(&self.target),
            doing: Rc::clone(&doing),
            folders: Rc::clone(&self.folders),
            unsaid: Rc::clone(&self.unsaid),
        };
        loop {
            match queue.next(&doing, || place < self.places()).await {
                Next::Take(Taken::Task(task)) => {
                    doing.turn(Phase::Look);
                    core.task(task).await;
                    queue.finished();
                }
                Next::Take(Taken::Part(large)) => {
                    doing.turn(Phase::Look);
                    core.part(large).await;
                }
                Next::Leave => return (place, false),
                Next::Over => return (place, true),
            }
        }
    }
}

impl Large {
    /// Counts as many more rights as may be handed out by now, and returns how many.
    fn widen(&self, engine: &Engine<'_>) -> usize {
        match self {
            Large::Put(put) => put.widen(engine),
            Large::Get(get) => get.widen(engine),
            Large::Copy(copy) => copy.widen(engine),
            Large::Relay(relay) => relay.widen(engine),
        }
    }
}
