//! Every unit runs once, on as many workers as the gate admits, however the gate changes.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// A tree of numbers: unit n makes n units of n - 1, through producers that are put aside.
struct Tree {
    leaves: AtomicU64,
    queued_max: AtomicUsize,
}

enum Unit {
    Produce { depth: u32, left: u64 },
    Leaf,
}

impl Work for Tree {
    type Unit = Unit;
    type State = u64;

    fn start(&self, _: usize) -> u64 {
        0
    }

    fn run(&self, unit: Unit, ran: &mut u64, queue: &Queue<'_, Unit>) {
        *ran += 1;
        match unit {
            Unit::Leaf => {
                self.leaves.fetch_add(1, Ordering::Relaxed);
            }
            Unit::Produce { depth, mut left } => {
                while left > 0 {
                    if !queue.has_room() {
                        queue.put_aside(Unit::Produce { depth, left });
                        return;
                    }
                    left -= 1;
                    queue.push(match depth {
                        0 => Unit::Leaf,
                        _ => Unit::Produce { depth: depth - 1, left: 20 },
                    });
                    self.queued_max.fetch_max(queue.own.len(), Ordering::Relaxed);
                }
            }
        }
    }
}

#[test]
fn every_unit_runs_once_and_queues_stay_bounded() {
    for jobs in [1, 2, 7] {
        let tree = Tree { leaves: AtomicU64::new(0), queued_max: AtomicUsize::new(0) };
        let states = run(&tree, &Gate::fixed(jobs), [Unit::Produce { depth: 3, left: 20 }]);
        assert_eq!(tree.leaves.into_inner(), 20 * 20 * 20 * 20);
        assert!((1..=jobs).contains(&states.len()));
        assert!(states.iter().sum::<u64>() >= 20 * 20 * 20 * 20);
        assert!(tree.queued_max.into_inner() <= QUEUED_MAX);
    }
}

#[test]
fn nothing_to_do_ends_at_once() {
    let tree = Tree { leaves: AtomicU64::new(0), queued_max: AtomicUsize::new(0) };
    assert_eq!(run(&tree, &Gate::fixed(3), []), [0]);
    // A higher maximum of the gate changes nothing.
    assert_eq!(run(&tree, &Gate::new(1, 9), []), [0]);
}

/// Long units that record how many of them run at once.
struct Together {
    gate: Gate,
    running: AtomicUsize,
    most: AtomicUsize,
    ran: AtomicU64,
    lasts: Duration,
}

impl Together {
    fn new(gate: Gate, lasts: Duration) -> Together {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Together { gate, running, most, ran: AtomicU64::new(0), lasts }
    }
}

impl Work for Together {
    type Unit = ();
    type State = usize;

    fn start(&self, index: usize) -> usize {
        index
    }

    fn run(&self, (): (), index: &mut usize, _: &Queue<'_, ()>) {
        assert!(*index < self.gate.jobs_max());
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(self.lasts);
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.ran.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn no_more_work_than_the_gate_lets() {
    for (jobs, jobs_max) in [(1, 8), (3, 8), (4, 4)] {
        let work = Together::new(Gate::new(jobs, jobs_max), Duration::from_millis(5));
        let states = run(&work, &work.gate, std::iter::repeat_n((), 60));
        assert_eq!(work.ran.into_inner(), 60);
        assert_eq!(work.most.into_inner(), jobs);
        assert_eq!(states.len(), jobs, "who never had a turn has no state");
    }
}

#[test]
fn opening_the_gate_works_while_all_are_busy() {
    let work = Together::new(Gate::new(1, 8), Duration::from_secs(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while work.running.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            work.gate.set(8);
        });
        // The first unit is running when the gate opens: the others must not wait for its end.
        run(&work, &work.gate, std::iter::repeat_n((), 8));
    });
    assert_eq!(work.most.into_inner(), 8);
}

#[test]
fn without_more_threads_the_first_does_it_all() {
    // No address space has room for such a stack.
    let huge = || Builder::new().stack_size(1 << 50);
    let work = Together::new(Gate::new(2, 8), Duration::ZERO);
    assert_eq!(run_on(huge, &work, &work.gate, std::iter::repeat_n((), 50)), [0]);
    assert_eq!(work.ran.into_inner(), 50);
}

#[test]
fn a_unit_of_its_own_needs_no_second_thread() {
    let work = Together::new(Gate::fixed(8), Duration::ZERO);
    assert_eq!(run(&work, &work.gate, [()]), [0]);
}

#[test]
fn an_excluded_sleeper_passes_the_wakeup_on() {
    /// One worker occasionally makes units; the others sleep in between.
    struct Slow<'g>(&'g Gate, AtomicU64);
    impl Work for Slow<'_> {
        type Unit = u32;
        type State = ();
        fn start(&self, _: usize) {}
        fn run(&self, unit: u32, (): &mut (), queue: &Queue<'_, u32>) {
            if unit == 0 {
                std::thread::sleep(Duration::from_micros(300));
                self.1.fetch_add(1, Ordering::SeqCst);
                return;
            }
            self.0.set([4, 1, 2, 3][unit as usize % 4]);
            std::thread::sleep(Duration::from_micros(200));
            for _ in 0..3 {
                queue.push(0);
            }
            queue.push(unit - 1);
        }
    }
    let gate = Gate::new(4, 4);
    let work = Slow(&gate, AtomicU64::new(0));
    run(&work, &gate, [300]);
    assert_eq!(work.1.into_inner(), 901);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn no_unit_is_lost_whatever_the_gate_does(
        jobs_max in 1usize..12,
        settings in prop::collection::vec((1usize..14, 0u64..300), 1..40),
        width in 1u64..12,
    ) {
        let gate = Gate::new(settings[0].0, jobs_max);
        let tree = Tree { leaves: AtomicU64::new(0), queued_max: AtomicUsize::new(0) };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (jobs, pause_us) in settings.iter().cycle() {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    gate.set(*jobs);
                    std::thread::sleep(Duration::from_micros(*pause_us));
                }
            });
            for _ in 0..4 {
                run(&tree, &gate, [Unit::Produce { depth: 2, left: width }]);
            }
            over.store(true, Ordering::SeqCst);
        });
        prop_assert_eq!(tree.leaves.into_inner(), 4 * width * 20 * 20);
    }
}

/// Units of a place that never answers, and of one that does; each unit of the latter makes more units there.
struct Places {
    gate: Gate,
    answers: AtomicBool,
    left: AtomicUsize,
}

enum Waits {
    Stuck,
    Free(u32),
}

impl Work for Places {
    type Unit = Waits;
    type State = ();

    fn start(&self, _: usize) {}

    fn places(&self) -> Vec<u64> {
        vec![70, 90]
    }

    fn place(&self, unit: &Waits) -> u64 {
        match unit {
            Waits::Stuck => 70,
            Waits::Free(_) => 90,
        }
    }

    fn run(&self, unit: Waits, (): &mut (), queue: &Queue<'_, Waits>) {
        match unit {
            Waits::Stuck => {
                while !self.answers.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Waits::Free(depth) => {
                for _ in 0..if depth > 0 { 4 } else { 0 } {
                    queue.push(Waits::Free(depth - 1));
                    // An idle worker would take this.
                    queue.push(Waits::Stuck);
                }
                if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    self.answers.store(true, Ordering::SeqCst);
                }
            }
        }
    }
}

#[test]
fn a_place_that_does_not_answer_never_holds_all_workers() {
    for jobs in [2, 3, 8] {
        let left = AtomicUsize::new(1 + 4 + 16 + 64 + 256);
        let work = Places { gate: Gate::fixed(jobs), answers: AtomicBool::new(false), left };
        let roots = (0..40).map(|_| Waits::Stuck).chain([Waits::Free(4)]);
        // On failure this call would never return.
        run(&work, &work.gate, roots);
        assert_eq!(work.left.into_inner(), 0);
    }
}
