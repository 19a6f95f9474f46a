//! Trees are copied while jobs and limits change: the meter's counts agree with the totals, and limits hold.

use super::guard::Guard;
use super::{ArgumentEnds, LocalEngine, LocalSetup, Pass, SEGMENT_BYTES_MAX, TargetMode};
use crate::journal::{Journal, Ledger, LedgerScope};
use crate::policy::{Delete, Policy, Preserve};
use hakobu_core::control::Control;
use hakobu_core::event::{Event, Listener, Remarks};
use hakobu_core::limit::{Controls, Gate, Limiter};
use hakobu_core::meter::{Counts, Meter};
use hakobu_core::unit::{Jobs, Totals};
use hakobu_sys::OwnedFd;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Quiet;

impl Listener for Quiet {
    fn event(&self, event: Event<'_>) {
        assert!(!matches!(event, Event::Problem(_)), "nothing fails here");
    }
}

/// A folder that is removed at the end.
struct Area(PathBuf);

impl Area {
    fn new(name: &str) -> Area {
        let name = format!("hakobu-engine-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("src")).unwrap();
        fs::create_dir_all(dir.join("dst")).unwrap();
        Area(dir)
    }

    fn src(&self) -> PathBuf {
        self.0.join("src")
    }

    fn dst(&self) -> PathBuf {
        self.0.join("dst")
    }

    /// Makes `dirs` directories of `files` files of `size` bytes.
    fn fill(&self, dirs: usize, files: usize, size: usize) {
        for dir in 0..dirs {
            let dir = self.src().join(format!("d{dir}"));
            fs::create_dir_all(&dir).unwrap();
            for file in 0..files {
                fs::write(dir.join(file.to_string()), vec![file as u8; size]).unwrap();
            }
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> OwnedFd {
    hakobu_sys::dir::open_root(&CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
}

fn policy() -> Policy {
    let preserve = Preserve { mode: true, times: true, ..Preserve::default() };
    Policy {
        recurse: true,
        symlinks: crate::policy::Symlinks::Keep,
        hard_links: true,
        preserve,
        delete: Delete::During,
        ..Policy::default()
    }
}

/// Copies the whole of `src` to `dst`.
fn copy(area: &Area, controls: &Controls, control: &Control, target: TargetMode) -> Totals {
    let policy = policy();
    let ledger = Arc::new(Ledger::new(&Journal::at(area.0.join("state")), LedgerScope::default()));
    let guard = Guard::default();
    let engine = LocalEngine::new(LocalSetup {
        carried: None,
        announcer: None,
        arrivals: None,
        guard: &guard,
        policy: &policy,
        pass: Pass::Transfer,
        listener: &Quiet,
        control,
        items: (false, false),
        plans: false,
        remarks: Remarks::default(),
        digest: None,
        chosen: None,
        range: None,
        controls,
        target,
        deletes: true,
        temp_dir: None,
        backup_dir: None,
        sources: Arc::default(),
        open_dirs_max: 64,
        sorts: false,
        jobs_per_file: Jobs::Auto,
        segment_bytes_max: SEGMENT_BYTES_MAX,
        batch_max: 8,
        umask: 0o022,
        ledger: &ledger,
    });
    let ends = ArgumentEnds {
        sources: vec![(open(&area.src()), area.src(), None)],
        target: (target == TargetMode::Real).then(|| open(&area.dst())),
        target_path: area.dst(),
        created: false,
        path: Vec::new(),
        first: Vec::new(),
        provided: Vec::new(),
        bases: Vec::new(),
        owner: None,
    };
    let base = engine.base(ends, true).map_err(|failure| failure.error).unwrap();
    let units = engine.list_base(&base);
    engine.release_hold(&base);
    hakobu_tree::pool::run(&engine, &controls.gate, units);
    assert!(Arc::try_unwrap(base).is_ok(), "nobody holds the top any more");
    engine.totals()
}

fn controls(jobs: usize, jobs_max: usize) -> Controls {
    Controls {
        gate: Gate::new(jobs, jobs_max),
        meter: Arc::new(Meter::new(jobs_max)),
        ..Controls::fixed(1)
    }
}

/// Checks the invariants of every run that was not stopped.
fn agree(counts: &Counts, totals: &Totals) {
    assert_eq!((counts.in_use(), counts.doing), (0, Default::default()));
    assert_eq!(counts.bytes, totals.bytes);
    let Totals { seen_files, seen_links, seen_dirs, deleted, .. } = totals;
    assert_eq!(counts.items, seen_files + seen_links + seen_dirs + deleted, "{totals:?}");
    assert!(counts.completions >= counts.items);
}

/// Checks that the progress counters balance: all names were found, examined and done, and all expected bytes moved.
fn balances(controls: &Controls, totals: &Totals) {
    let Totals { seen_files, seen_links, bytes, .. } = *totals;
    let seen = seen_files + seen_links;
    let now = controls.meter.progress();
    assert_eq!((now.found, now.sized, now.done), (seen, seen, seen), "{now:?} {totals:?}");
    assert_eq!((now.bytes, now.bytes_ahead), (bytes, bytes), "{now:?} {totals:?}");
    assert_eq!((now.listed, now.jobs, now.undrained), (true, 0, 0), "{now:?}");
}

#[test]
fn the_meter_tells_what_was_done() {
    let area = Area::new("meter");
    area.fill(3, 100, 4096);
    fs::write(area.src().join("large"), vec![1; 9 << 20]).unwrap();
    fs::write(area.src().join("medium"), vec![1; 600 << 10]).unwrap();
    fs::write(area.src().join("empty"), "").unwrap();
    fs::hard_link(area.src().join("medium"), area.src().join("d0/again")).unwrap();
    fs::hard_link(area.src().join("medium"), area.src().join("d1/again")).unwrap();
    std::os::unix::fs::symlink("nowhere", area.src().join("link")).unwrap();
    let control = Control::default();
    for jobs in [1, 2, 5] {
        fs::remove_dir_all(area.dst()).unwrap();
        fs::create_dir(area.dst()).unwrap();

        let first = controls(jobs, jobs);
        let totals = copy(&area, &first, &control, TargetMode::Real);
        assert_eq!((totals.files, totals.links_created), (303, 3), "{totals:?}");
        let counts = first.meter.counts();
        agree(&counts, &totals);
        balances(&first, &totals);
        // Open, create, move, settle at least; far below double counting.
        let files = totals.files;
        assert!((4 * files..10 * files).contains(&counts.operations), "{counts:?}");

        // The second run only examines.
        let again = controls(jobs, jobs);
        let totals = copy(&area, &again, &control, TargetMode::Real);
        assert_eq!((totals.files, totals.bytes, totals.failed), (0, 0, 0));
        let counts = again.meter.counts();
        agree(&counts, &totals);
        balances(&again, &totals);
        assert!(counts.operations > totals.seen_files);

        // Extraneous entries are counted, too.
        fs::create_dir(area.dst().join("x")).unwrap();
        fs::write(area.dst().join("x/y"), "y").unwrap();
        let third = controls(jobs, jobs);
        let totals = copy(&area, &third, &control, TargetMode::Real);
        assert_eq!(totals.deleted, 2);
        agree(&third.meter.counts(), &totals);
        balances(&third, &totals);

        let null = controls(jobs, jobs);
        let totals = copy(&area, &null, &control, TargetMode::Null);
        agree(&null.meter.counts(), &totals);
        balances(&null, &totals);
    }
}

#[test]
fn the_gate_may_change_at_any_time() {
    let area = Area::new("gate");
    area.fill(40, 70, 100);
    let control = Control::default();
    for seed in 0..6 {
        fs::remove_dir_all(area.dst()).unwrap();
        fs::create_dir(area.dst()).unwrap();
        let controls = controls(1, 9);
        let over = AtomicBool::new(false);
        let totals = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(seed);
                while !over.load(Ordering::Relaxed) {
                    controls.gate.set(random.usize(0..=9));
                    std::thread::sleep(Duration::from_micros(random.u64(0..2000)));
                }
            });
            let totals = copy(&area, &controls, &control, TargetMode::Real);
            over.store(true, Ordering::Relaxed);
            totals
        });
        assert_eq!((totals.files, totals.bytes), (2800, 280_000));
        agree(&controls.meter.counts(), &totals);
        for dir in 0..40 {
            let there = fs::read_dir(area.dst().join(format!("d{dir}"))).unwrap().count();
            assert_eq!(there, 70);
        }
    }
}

#[test]
fn large_files_of_one_directory_are_shared() {
    let area = Area::new("large");
    for n in 0..4 {
        fs::write(area.src().join(n.to_string()), vec![n; 9 << 20]).unwrap();
    }
    // One second of work each: concurrent if each has a worker of its own.
    let controls = Controls { bytes: Some(Limiter::new(36 << 20).into()), ..controls(4, 4) };
    let all_busy = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let totals = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let busy = controls.meter.counts().in_use() >= 4;
                all_busy.fetch_add(usize::from(busy), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let totals = copy(&area, &controls, &Control::default(), TargetMode::Real);
        over.store(true, Ordering::Relaxed);
        totals
    });
    agree(&controls.meter.counts(), &totals);
    assert_eq!(totals.files, 4);
    assert!(all_busy.into_inner() > 10, "each file had a worker for most of the second");
}

/// Runs a copy; returns its duration in seconds and the largest increase of the meter's `count` within any second.
fn watched(area: &Area, controls: &Controls, count: fn(&Counts) -> u64) -> (f64, u64) {
    let control = Control::default();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen: Vec<(Duration, u64)> = vec![(Duration::ZERO, 0)];
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                // Read the clock first: the count is from that moment or slightly later.
                let at = begun.elapsed();
                seen.push((at, count(&controls.meter.counts())));
                // Change the gate as a tuner would.
                controls.gate.set(1 + seen.len() / 20 % 5);
            }
            let rose = |(from, before): &(Duration, u64)| {
                let within =
                    seen.iter().rev().find(|(at, _)| *at <= *from + Duration::from_secs(1));
                within.map_or(0, |(_, after)| after - before)
            };
            seen.iter().map(rose).max().unwrap()
        });
        copy(area, controls, &control, TargetMode::Real);
        let took_s = begun.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        (took_s, watching.join().unwrap())
    })
}

/// Checks that a limit of two seconds' work holds on average and in any second, with a changing number of workers and
/// files larger and smaller than one grant. On a busy machine the best of three may be late; none may be too fast.
fn holds(area: &Area, rate: u64, controls: impl Fn() -> Controls, count: fn(&Counts) -> u64) {
    let mut took = Vec::new();
    for _ in 0..3 {
        fs::remove_dir_all(area.dst()).unwrap();
        fs::create_dir(area.dst()).unwrap();
        let controls = controls();
        let (took_s, most) = watched(area, &controls, count);
        let due_s = count(&controls.meter.counts()) as f64 / rate as f64;
        assert!(due_s > 1.8, "{due_s:.3} s of work");
        assert!(most as f64 <= 1.1 * rate as f64, "{most} in a second at {rate}/s");
        assert!(took_s >= 0.97 * due_s, "{took_s:.3} s instead of {due_s:.3} s");
        if took_s <= 1.04 * due_s {
            return;
        }
        took.push(took_s / due_s);
    }
    panic!("{took:.3?} of the time that is due");
}

#[test]
fn a_limit_of_bytes_holds() {
    let area = Area::new("bytes");
    area.fill(4, 100, 2048);
    fs::write(area.src().join("large"), vec![1; 1 << 20]).unwrap();
    fs::write(area.src().join("medium"), vec![1; 200 << 10]).unwrap();
    let rate = 1 << 20;
    let limited = || Controls { bytes: Some(Limiter::new(rate).into()), ..controls(4, 5) };
    holds(&area, rate, limited, |counts| counts.bytes);
}

#[test]
fn a_limit_of_operations_holds() {
    let area = Area::new("operations");
    area.fill(4, 50, 100);
    let free = controls(1, 1);
    copy(&area, &free, &Control::default(), TargetMode::Real);
    let rate = free.meter.counts().operations / 2;
    let limited = || Controls { operations: Some(Limiter::new(rate).into()), ..controls(4, 5) };
    holds(&area, rate, limited, |counts| counts.operations);
}

#[test]
fn a_stop_ends_the_waiting_for_a_limit() {
    let area = Area::new("stop");
    // 160 s of work.
    area.fill(8, 1, 10_000);
    let controls = Controls { bytes: Some(Limiter::new(512).into()), ..controls(8, 8) };
    let control = Control::default();
    std::thread::scope(|scope| {
        let copying = scope.spawn(|| copy(&area, &controls, &control, TargetMode::Real));
        let waiting = || controls.meter.counts().doing[hakobu_core::meter::Phase::Limit as usize];
        let begun = Instant::now();
        while waiting() < 7 {
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", controls.meter.counts());
            std::thread::sleep(Duration::from_millis(1));
        }
        control.stop();
        let begun = Instant::now();
        copying.join().unwrap();
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    });
    assert_eq!(controls.meter.counts().in_use(), 0);
}
