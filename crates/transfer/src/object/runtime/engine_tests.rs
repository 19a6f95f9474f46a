//! A panic in one thread of an engine ends the others; too little memory; the effects of the gate are in a file of
//! their own.

mod gate;

use crate::object::runtime::*;
use crate::object::{Entry, Pair, Root, run};
use hakobu_core::event::Event;
use hakobu_core::limit::Controls;
use hakobu_core::unit::{Kind, Meta, Time};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;

/// Panics at the first problem.
struct Panics;

impl Listener for Panics {
    fn event(&self, event: Event<'_>) {
        assert!(!matches!(event, Event::Problem(_)), "this panic is wanted");
    }
}

/// Runs an engine of two cores without stores and returns whether it panicked; fails if it hangs.
fn panicked(plan: impl FnOnce(&ObjectEngine<'_>) + Send + 'static) -> bool {
    let (done, waits) = channel();
    std::thread::spawn(move || {
        let (policy, options) = (Policy::default(), ObjectOptions::default());
        let control = Control::default();
        let controls = Controls::fixed(8);
        let setup = ObjectSetup {
            policy: &policy,
            options: &options,
            source: None,
            target: None,
            listener: &Panics,
            control: &control,
            items: (false, false),
            controls: &controls,
            cores: 2,
            memory_bytes_max: 16 << 20,
            journal: Journal::of_user(),
            ledger: Arc::default(),
            folded: Arc::default(),
            manifests: Arc::default(),
            umask: 0,
        };
        let ended = catch_unwind(AssertUnwindSafe(|| run(setup, plan)));
        done.send(ended.is_err())
    });
    waits.recv_timeout(Duration::from_secs(20)).expect("the engine hangs")
}

/// An object of a missing store: moving it fails.
fn task() -> Task {
    let store = |bucket: &str| Root::Store { bucket: bucket.to_owned(), prefix: Vec::new() };
    let lead = Vec::new();
    let pair = Arc::new(Pair { source: store("a"), target: store("b"), lead });
    let meta = Meta::bare(Kind::File, 1, Time { s: 0, ns: 0 });
    let entry = Entry { name: b"key".as_slice().into(), meta, etag: "".into() };
    let name = entry.name.clone();
    Task {
        pair,
        work: crate::object::Work::Move { entry, name, existing: None, how: How::Transfer },
    }
}

#[test]
fn of_a_core() {
    assert!(panicked(|engine| {
        // More than the queue takes: the planner would wait for room.
        while engine.push((0..100).map(|_| task())) {}
    }));
}

#[test]
fn of_the_planner() {
    assert!(panicked(|_| panic!("this panic is wanted")));
    assert!(!panicked(|_| {}));
}

#[test]
fn memory_that_holds_no_part_is_refused_by_name() {
    let (policy, control, controls) = (Policy::default(), Control::default(), Controls::fixed(1));
    let refused = |memory_bytes_max, part_bytes| {
        let options = ObjectOptions { part_bytes, ..ObjectOptions::default() };
        let setup = ObjectSetup {
            policy: &policy,
            options: &options,
            source: None,
            target: None,
            listener: &Panics,
            control: &control,
            items: (false, false),
            controls: &controls,
            cores: 1,
            memory_bytes_max,
            journal: Journal::of_user(),
            ledger: Arc::default(),
            folded: Arc::default(),
            manifests: Arc::default(),
            umask: 0,
        };
        run(setup, |_| {}).err().map(|fatal| (fatal.code, fatal.message))
    };
    let (code, why) = refused((16 << 20) - 1, None).unwrap();
    assert!(code == 1 && why.ends_with("at least 16 MiB"), "{why}");
    assert_eq!(refused(16 << 20, Some(16 << 20)), None);
    let (code, why) = refused(16 << 20, Some(17 << 20)).unwrap();
    assert!(code == 1 && why.ends_with("at least 17 MiB"), "{why}");
}
