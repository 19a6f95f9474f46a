//! Time: when it ends, what does not count, and how fast it may be.

use super::*;
use std::time::Instant;

fn by_time(rw: &str, engine: Engine, folder: &Path, ms: u64) -> Job {
    let runtime = Some(Duration::from_millis(ms));
    Job { runtime, time_based: true, ..sized(rw, engine, folder, 64) }
}

fn ms(outcome: &Outcome) -> f64 {
    outcome.runtime_ns as f64 / 1e6
}

#[test]
fn time_ends_a_job_and_ramp_time_does_not_count() {
    for engine in engines() {
        for clocks in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let mut job = by_time("randread", engine, folder.path(), 120);
            if !clocks {
                (job.clocks.slat, job.clocks.clat, job.clocks.lat) = (false, false, false);
            }
            let outcome = one(&job);
            assert!((120.0..150.0).contains(&ms(&outcome)), "{engine:?} {}", ms(&outcome));
            let [reads, _] = ios(&outcome);
            assert!(reads > 100);
            assert_eq!(outcome.sides[0].clat.count(), if clocks { reads } else { 0 });
            job.ramp = Duration::from_millis(100);
            let mut all = 0;
            let begun = Instant::now();
            let jobs = [job];
            let outcome = go_with(&jobs, &AtomicBool::new(false), |view| {
                all = view.progress.sides[0].0;
            })
            .remove(0);
            assert!(begun.elapsed() >= Duration::from_millis(220));
            assert!((115.0..150.0).contains(&ms(&outcome)), "{engine:?} {}", ms(&outcome));
            let [reads, _] = ios(&outcome);
            let level: u64 = outcome.depths.level.iter().sum();
            assert!(reads > 0 && reads < all + all / 2, "{engine:?}: {reads} of {all}");
            assert!(level.abs_diff(reads) <= 8 && outcome.sides[0].bytes == 4096 * reads);
        }
    }
}

#[test]
fn a_job_may_end_before_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = by_time("read", Engine::Psync, folder.path(), 60_000);
    job.time_based = false;
    assert_eq!(ios(&one(&job)), [16, 0]);
    // All of it was ramp time: nothing was measured.
    job.ramp = Duration::from_secs(60);
    let outcome = one(&job);
    assert_eq!((ios(&outcome), outcome.runtime_ns), ([0, 0], 0));
}

#[test]
fn a_steady_job_ends() {
    use crate::steady::{Criterion, Measure, Steady};
    // A rate that is held is steady: it ends long before its time.
    let criterion = Criterion { of: Measure::Blocks, slope: false, limit: 30.0, percent: true };
    for (limit, attained) in [(50.0, true), (1e-9, false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut job = by_time("randread", Engine::Psync, folder.path(), 60_000);
        job.rate_iops = [Some(200), None];
        let criterion = Criterion { limit, ..criterion };
        job.steady = Some(Steady { criterion, window_s: 2, ramp_s: 1, every_s: 1 });
        if !attained {
            job.runtime = Some(Duration::from_secs(4));
        }
        let outcome = one(&job);
        let found = outcome.steady.clone().unwrap();
        assert_eq!(found.attained, attained, "{found:?}");
        // It takes three seconds at least.
        assert!((2900.0..40_000.0).contains(&ms(&outcome)), "{}", ms(&outcome));
        assert!(found.mean > 20.0 && found.mean < 400.0, "{found:?}");
    }
}

#[test]
fn rates_are_held() {
    for engine in engines() {
        for poisson in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let mut job = by_time("randread", engine, folder.path(), 500);
            (job.rate_iops, job.poisson) = ([Some(4000), None], poisson);
            let outcome = one(&job);
            let rate = ios(&outcome)[0] as f64 * 1000.0 / ms(&outcome);
            // By chance it is some numbers of 2000 ± 45 blocks.
            let apart = if poisson { 0.12 } else { 0.02 };
            assert!((rate / 4000.0 - 1.0).abs() < apart, "{engine:?} {poisson} {rate}");
        }
        let folder = tempfile::tempdir().unwrap();
        let mut job = by_time("randrw", engine, folder.path(), 500);
        job.rate_bytes_per_s = [Some(8 << 20), Some(8 << 20)];
        let outcome = one(&job);
        for side in &outcome.sides {
            let rate = side.bytes as f64 * 1000.0 / ms(&outcome);
            assert!(rate < 1.03 * (8 << 20) as f64, "{engine:?} {rate}");
        }
    }
}

#[test]
fn latency_counts_from_when_a_block_should_have_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = by_time("read", Engine::Psync, folder.path(), 300);
    job.rate_iops = [Some(1000), None];
    // Every 50 ms it does nothing for 25: what was due meanwhile is late.
    (job.think, job.think_blocks) = (Duration::from_millis(25), 50);
    let side = &one(&job).sides[0];
    assert_eq!(side.clat.count(), side.lat.count());
    assert!(side.lat.max_ns() > 20_000_000, "{}", side.lat.max_ns());
    assert!(side.lat.percentile(75.0) > 5 * side.clat.percentile(75.0));
    assert!(side.clat.percentile(50.0) < 2_000_000);
}

#[test]
fn pauses_delays_and_walls_take_their_time() {
    let folder = tempfile::tempdir().unwrap();
    for engine in engines() {
        let mut job = sized("read", engine, folder.path(), 64);
        (job.think, job.think_blocks) = (Duration::from_millis(10), 4);
        assert!(ms(&one(&job)) >= 39.9, "{engine:?}");
    }
    let mut first = sized("read", Engine::Psync, folder.path(), 64);
    first.start_delay = Duration::from_millis(80);
    let mut second = Job { name: "second".into(), stonewall: true, ..first.clone() };
    let begun = Instant::now();
    let outcomes = go(&[first.clone(), second.clone()]);
    assert!(begun.elapsed() >= Duration::from_millis(160));
    assert!(outcomes.iter().all(|outcome| ios(outcome) == [16, 0] && ms(outcome) < 80.0));
    assert_eq!(groups(&[first.clone(), second.clone(), first.clone()]), [0..1, 1..3]);
    second.stonewall = false;
    assert_eq!(groups(&[first, second]), std::slice::from_ref(&(0..2)));
    assert!(groups(&[]).is_empty());
}

#[test]
fn it_stops_when_it_is_told_to() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut job = by_time("randrw", engine, folder.path(), 60_000);
        job.clones = 2;
        let mut late = Job { name: "late".into(), stonewall: true, ..job.clone() };
        late.rate_iops = [Some(1), Some(1)];
        let begun = Instant::now();
        let outcomes = go_with(&[job, late], &stop, |view| {
            let progress = view.progress;
            assert_eq!(progress.running + progress.done, 2);
            if progress.sides[0].0 > 0 && progress.elapsed > Duration::from_millis(100) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(begun.elapsed() < Duration::from_secs(5), "{engine:?}");
        assert_eq!(outcomes.len(), 2, "the second group was not begun");
        assert!(outcomes.iter().all(|outcome| outcome.error.is_none() && ios(outcome)[0] > 0));
    }
    // A job that waits for its turn hears it as well.
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let mut slow = by_time("read", Engine::Psync, folder.path(), 60_000);
    slow.rate_iops = [Some(1), None];
    let delayed =
        Job { name: "delayed".into(), start_delay: slow.runtime.unwrap(), ..slow.clone() };
    let begun = Instant::now();
    let outcomes = go_with(&[slow, delayed], &stop, |_| stop.store(true, Ordering::Relaxed));
    assert!(begun.elapsed() < Duration::from_secs(5) && outcomes.len() == 2);
}

#[test]
fn many_clones_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job { clones: 128, ..by_time("randread", Engine::Psync, folder.path(), 100) };
    let outcomes = go_with(&[job], &AtomicBool::new(false), |view| {
        assert_eq!(view.progress.running + view.progress.done, 128);
    });
    assert_eq!(outcomes.len(), 128);
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none() && ios(outcome)[0] > 0));
}

#[test]
fn whoever_watches_may_see_what_was_measured_so_far() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let first = sized("read", engine, folder.path(), 8);
        let work =
            Job { clones: 2, stonewall: true, ..by_time("randread", engine, folder.path(), 600) };
        let mut seen: Vec<Vec<Outcome>> = Vec::new();
        let last =
            go_with(&[first, work], &AtomicBool::new(false), |view| seen.push(view.outcomes()));
        // The group before, which has ended, and both clones.
        let shape = |outcomes: &[Outcome]| -> Vec<(usize, u32)> {
            outcomes.iter().map(|outcome| (outcome.job, outcome.clone)).collect()
        };
        let whole = seen.iter().filter(|outcomes| outcomes.len() == 3);
        let whole: Vec<&Vec<Outcome>> = whole.collect();
        assert!(whole.len() >= 3, "{engine:?}: {:?}", seen.iter().map(Vec::len));
        for outcomes in &whole {
            assert_eq!(shape(outcomes), shape(&last));
            assert_eq!(ios(&outcomes[0]), ios(&last[0]));
        }
        // It grows, and is whole in itself.
        for (before, after) in whole.iter().zip(&whole[1..]) {
            let sums = [before, after].map(|outcomes| ios(&outcomes[1])[0]);
            assert!(sums[0] <= sums[1] && sums[1] <= ios(&last[1])[0], "{engine:?} {sums:?}");
        }
        let [middle, ..] = &whole[whole.len() / 2..] else { panic!("no middle") };
        let side = &middle[2].sides[0];
        assert_eq!(side.bytes, 4096 * side.ios, "{engine:?}");
        assert_eq!(side.clat.count(), side.ios, "{engine:?}");
        assert!(side.ios > 0 && middle[2].runtime_ns < last[2].runtime_ns, "{engine:?}");
    }
}
