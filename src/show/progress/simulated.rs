//! The remaining time of simulated runs: files of any sizes in any order, with a clock of its own.

use super::pace::Pace;
use hakobu_core::meter::Progress;
use std::time::Duration;

/// Time of a file beside its content, in seconds.
const FILE_S: f64 = 0.002;
/// Rate of content.
const BYTES_PER_S: f64 = 200e6;
/// Interval of samples, in seconds.
const TICK_S: f64 = 0.1;

/// A pseudorandom number below one, the same for the same seed (splitmix64).
fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Sizes of files that take so many seconds together, of two kinds.
fn sizes(seconds: f64, small: bool, seed: &mut u64) -> Vec<f64> {
    let (mut sizes, mut taken) = (Vec::new(), 0.0);
    while taken < seconds {
        let bytes = match small {
            true => 500.0 + random(seed) * 8e3,
            false => 5e6 + random(seed) * 25e6,
        };
        taken += FILE_S + bytes / BYTES_PER_S;
        sizes.push(bytes.floor());
    }
    sizes
}

/// Returns how many of the estimates from a third of the run on are within a quarter or half a second, and their
/// number. `speed`: work done in a second at a moment, as a part of the usual.
fn estimates(sizes: &[f64], speed: impl Fn(f64) -> f64) -> (usize, usize) {
    let total: f64 = sizes.iter().sum();
    let (mut pace, mut seconds, mut worked) = (Pace::default(), 0.0, 0.0);
    // Work at which the file at hand ends, and bytes of those before.
    let (mut done, mut before, mut begins) = (0, 0.0, 0.0);
    let mut said = Vec::new();
    while done < sizes.len() {
        seconds += TICK_S;
        worked += TICK_S * speed(seconds);
        while done < sizes.len() && begins + FILE_S + sizes[done] / BYTES_PER_S <= worked {
            begins += FILE_S + sizes[done] / BYTES_PER_S;
            before += sizes[done];
            done += 1;
        }
        let of_this = sizes
            .get(done)
            .map_or(0.0, |bytes| ((worked - begins - FILE_S) * BYTES_PER_S).clamp(0.0, *bytes));
        let at = Progress {
            found: sizes.len() as u64,
            sized: sizes.len() as u64,
            done: done as u64,
            bytes: (before + of_this) as u64,
            bytes_ahead: total as u64,
            jobs: u64::from(done < sizes.len()),
            listed: true,
            ..Progress::default()
        };
        said.push((seconds, pace.look(at, 0, Duration::from_secs_f64(seconds)).left));
    }
    let late = said.iter().filter(|(at, _)| *at > seconds / 3.0 && *at < seconds);
    let good = late.clone().filter(|(at, left)| {
        let right = seconds - at;
        let off = left.map_or(f64::MAX, |left| (left.as_secs_f64() - right).abs());
        off <= (right / 4.0).max(0.5)
    });
    (good.count(), late.count())
}

/// Checks a share of good estimates over ten runs.
fn wanted(share: f64, speed: impl Fn(f64) -> f64, sizes: impl Fn(&mut u64) -> Vec<f64>) {
    let (mut good, mut all) = (0, 0);
    for seed in 0..10 {
        let (of_run, number) = estimates(&sizes(&mut seed.clone()), &speed);
        (good, all) = (good + of_run, all + number);
    }
    let part = good as f64 / all as f64;
    assert!(part >= share, "{good} of {all}: {part:.2}, not {share}");
}

/// Folders of small files and of large ones in turn: the mixture of what is left is not that of what is done.
#[test]
fn folders_of_small_and_of_large_files() {
    for seconds in [12.0, 40.0] {
        let folders = |seed: &mut u64| -> Vec<f64> {
            (0..20)
                .flat_map(|_| {
                    let small = random(seed) < 0.5;
                    sizes(seconds / 20.0, small, seed)
                })
                .collect()
        };
        wanted(0.95, |_| 1.0, folders);
    }
}

#[test]
fn small_files_after_large_ones() {
    let halves = |seed: &mut u64| [sizes(10.0, false, seed), sizes(10.0, true, seed)].concat();
    // Until small files have been seen, nobody knows their cost.
    wanted(0.7, |_| 1.0, halves);
}

#[test]
fn one_kind_of_files_at_a_rate_that_changes() {
    for small in [false, true] {
        // Slow in the beginning, then up and down by a fifth.
        let speed = |at: f64| (0.2 + at / 3.0).min(1.0 + 0.2 * (at * 2.0).sin());
        wanted(0.9, speed, |seed: &mut u64| sizes(12.0, small, seed));
    }
}

/// A disk whose cache is full, a network that others use as well: right again soon after the change.
#[test]
fn a_rate_that_changes_for_good() {
    for (small, factor) in [(false, 0.25), (true, 0.25), (false, 3.0), (true, 3.0)] {
        // The change comes after a quarter; the share of the estimates is of those from a third of the run on.
        let speed = |at: f64| if at < 6.0 { 1.0 } else { factor };
        wanted(0.85, speed, |seed: &mut u64| sizes(6.0 + 18.0 * factor, small, seed));
        // The same with a rate that fluctuates.
        let speed = |at: f64| speed(at) * (1.0 + 0.5 * (at * 20.0).sin());
        wanted(0.8, speed, |seed: &mut u64| sizes(6.0 + 18.0 * factor, small, seed));
    }
}

/// A machine that others use too: each second has a rate of its own.
#[test]
fn a_rate_that_is_another_each_second() {
    for small in [false, true] {
        let speed = |at: f64| 0.5 + random(&mut (at as u64));
        wanted(0.8, speed, |seed: &mut u64| sizes(30.0, small, seed));
    }
}
