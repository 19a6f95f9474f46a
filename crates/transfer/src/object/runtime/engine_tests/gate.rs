//! The number of requests in flight follows the gate, and the meter's counts are right.

use crate::object::runtime::*;
use crate::object::{Entry, Pair, Root, Work, run};
use hakobu_core::event::Event;
use hakobu_core::limit::Gate;
use hakobu_core::meter::{Counts, Meter, PHASES};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::{Addressing, S3Session, Settings};
use hakobu_testserver::script::{Act, Seen, Server, text};
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// The server's delay before each answer.
const LATENCY: Duration = Duration::from_millis(10);
const BODY: &str = "hello";
const PART: u64 = 1000;

struct Quiet;

impl Listener for Quiet {
    fn event(&self, _: Event<'_>) {}
}

/// Current number of requests, and the maximum since the last query.
#[derive(Default)]
struct Flight {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Flight {
    /// Returns the maximum of concurrent requests during `time`, after earlier ones have ended.
    fn most_during(&self, time: Duration) -> usize {
        std::thread::sleep(5 * LATENCY);
        self.most.store(0, Ordering::Relaxed);
        std::thread::sleep(time);
        self.most.load(Ordering::Relaxed)
    }

    /// Waits until this many requests are in flight.
    fn reaches(&self, count: usize) -> Duration {
        let begun = Instant::now();
        while self.now.load(Ordering::Relaxed) < count {
            assert!(begun.elapsed() < Duration::from_secs(20), "never {count} at once");
            std::thread::sleep(Duration::from_millis(1));
        }
        begun.elapsed()
    }
}

/// Answers every GET after a delay with the requested range of an object of zeros.
fn server(flight: &Arc<Flight>, large_bytes: u64) -> Server {
    let flight = Arc::clone(flight);
    Server::start(move |seen| {
        let now = flight.now.fetch_add(1, Ordering::Relaxed) + 1;
        flight.most.fetch_max(now, Ordering::Relaxed);
        std::thread::sleep(LATENCY);
        flight.now.fetch_sub(1, Ordering::Relaxed);
        answer(seen, large_bytes)
    })
}

fn answer(seen: &Seen, large_bytes: u64) -> Act {
    if seen.line.starts_with("HEAD") {
        return Act::Say(text("200 OK", &format!("content-length: {large_bytes}\r\n"), ""));
    }
    let Some(range) = seen.header("range") else {
        return Act::Say(text("200 OK", "etag: \"e\"\r\n", BODY));
    };
    let (start, end) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let (start, end): (u64, u64) = (start.parse().unwrap(), end.parse().unwrap());
    let headers = format!("etag: \"e\"\r\ncontent-range: bytes {start}-{end}/{large_bytes}\r\n");
    let body = "0".repeat(usize::try_from(end + 1 - start).unwrap());
    Act::Say(text("206 Partial Content", &headers, &body))
}

fn tasks(count: usize, size: u64) -> impl Iterator<Item = Task> {
    let root = Root::Store { bucket: "bucket".to_owned(), prefix: Vec::new() };
    let pair = Arc::new(Pair { source: root, target: Root::Null, lead: Vec::new() });
    (0..count).map(move |number| {
        let name: Box<[u8]> = format!("key{number}").into_bytes().into();
        let meta = Meta::bare(Kind::File, size, Time { s: 1, ns: 0 });
        let entry = Entry { name: name.clone(), meta, etag: "e".into() };
        Task {
            pair: Arc::clone(&pair),
            work: Work::Move { entry, name, existing: None, how: How::Transfer },
        }
    })
}

struct Ran {
    totals: Totals,
    counts: Counts,
    controls: Controls,
    store: Arc<S3Session>,
}

/// Runs an engine of two cores against that server until everything is done, at most a minute.
fn ran(
    server: &Server,
    gate: Gate,
    control: &Control,
    plan: impl FnOnce(&ObjectEngine<'_>, &Gate) + Send,
) -> Ran {
    let settings = Settings {
        endpoint_url: Some(server.url.clone()),
        addressing: Addressing::Path,
        ..Settings::default()
    };
    let store = S3Session::open_with(&settings, &|name| {
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].contains(&name).then(|| "KEY".to_owned())
    });
    let store = store.unwrap();
    store.set_control(control.flag());
    let meter = Arc::new(Meter::new(gate.jobs_max()));
    let controls = Controls { gate, meter, bytes: None, operations: None };
    let policy = Policy::default();
    let options = ObjectOptions { part_bytes: Some(PART), ..ObjectOptions::default() };
    let setup = ObjectSetup {
        policy: &policy,
        options: &options,
        source: Some(Arc::clone(&store)),
        target: None,
        listener: &Quiet,
        control,
        items: (false, false),
        controls: &controls,
        cores: 2,
        memory_bytes_max: 64 << 20,
        journal: Journal::of_user(),
        ledger: Arc::default(),
        folded: Arc::default(),
        manifests: Arc::default(),
        umask: 0,
    };
    let (totals, fatal) = run(setup, |engine| plan(engine, &controls.gate)).unwrap();
    assert!(fatal.is_none());
    let counts = controls.meter.counts();
    Ran { totals, counts, controls, store }
}

#[test]
fn requests_in_flight_follow_the_gate() {
    let flight = Arc::new(Flight::default());
    let server = server(&flight, 0);
    let pushed = AtomicUsize::new(0);
    let ran = ran(&server, Gate::new(1, 64), &Control::default(), |engine, gate| {
        let push = |count| {
            assert!(engine.push(tasks(count, BODY.len() as u64)));
            pushed.fetch_add(count, Ordering::Relaxed);
        };
        push(200);
        flight.reaches(1);
        assert_eq!(flight.most_during(20 * LATENCY), 1);
        push(2000);
        gate.set(24);
        let took = flight.reaches(24);
        assert!(took < Duration::from_secs(2), "{took:?} to grow");
        assert!(flight.most_during(5 * LATENCY) <= 24);
        gate.set(3);
        let most = flight.most_during(20 * LATENCY);
        assert!((2..=3).contains(&most), "{most}");
        gate.set(2);
        assert!(flight.most_during(10 * LATENCY) <= 2);
        gate.set(16);
        flight.reaches(16);
    });
    let count = pushed.load(Ordering::Relaxed) as u64;
    let bytes = count * BODY.len() as u64;
    assert_eq!((ran.totals.files, ran.totals.bytes, ran.totals.failed), (count, bytes, 0));
    // The meter agrees, and no worker is active.
    let Counts { items, operations, completions, throttled, timed_out, doing, .. } = ran.counts;
    assert_eq!((items, ran.counts.bytes), (count, bytes));
    assert_eq!((operations, completions), (server.seen().len() as u64, count));
    assert_eq!((throttled, timed_out, doing), (0, 0, [0; PHASES]));
    // Connections were opened only for workers that ran.
    assert!(ran.store.counts.connections.load(Ordering::Relaxed) <= 24 + 2);
    // Response times and the distance to the server were measured.
    let wire = ran.controls.meter.wire();
    assert_eq!(wire.answers, operations);
    let mean_us = wire.answer_us / wire.answers;
    assert!((9_000..200_000).contains(&mean_us), "{mean_us} us");
    assert!(wire.looks > 0 && wire.rtt_us > 0 && wire.rtt_least_us.is_some(), "{wire:?}");
    assert!(wire.rtt_us / wire.looks < 50_000, "{wire:?}");
}

#[test]
fn parts_in_flight_follow_the_gate() {
    let flight = Arc::new(Flight::default());
    let size = 800 * PART;
    let server = server(&flight, size);
    let ran = ran(&server, Gate::new(1, 16), &Control::default(), |engine, gate| {
        assert!(engine.push(tasks(1, size)));
        flight.reaches(1);
        assert_eq!(flight.most_during(10 * LATENCY), 1);
        gate.set(6);
        flight.reaches(6);
        assert!(flight.most_during(10 * LATENCY) <= 6);
        gate.set(2);
        assert_eq!(flight.most_during(10 * LATENCY), 2);
        gate.set(5);
        flight.reaches(5);
        assert!(flight.most_during(10 * LATENCY) <= 5);
        gate.set(16);
        flight.reaches(16);
    });
    assert_eq!((ran.totals.files, ran.totals.bytes, ran.totals.failed), (1, size, 0));
    assert_eq!((ran.counts.bytes, ran.counts.items, ran.counts.doing), (size, 1, [0; PHASES]));
}

#[test]
fn a_stop_while_the_gate_moves_ends_everything() {
    let flight = Arc::new(Flight::default());
    let size = 500 * PART;
    let server = server(&flight, size);
    for round in 0..20 {
        let control = Control::default();
        let ran = ran(&server, Gate::new(8, 32), &control, |engine, gate| {
            assert!(engine.push(tasks(3, size).chain(tasks(100, BODY.len() as u64))));
            flight.reaches(4);
            gate.set([1, 32, 2][round % 3]);
            std::thread::sleep(Duration::from_millis(round as u64));
            control.stop();
            gate.set([32, 1, 8][round % 3]);
        });
        assert_eq!((ran.totals.failed, ran.counts.doing), (0, [0; PHASES]), "round {round}");
    }
}
