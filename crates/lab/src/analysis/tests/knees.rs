//! Knees of known curves.

use super::{near, normal};
use crate::analysis::*;

fn point(x: f64, value: f64) -> (f64, Interval) {
    (x, Interval { low: value, mid: value, high: value })
}

#[test]
fn the_fewest_within_three_percent() {
    let rates = [(1.0, 10.0), (2.0, 20.0), (4.0, 39.0), (8.0, 40.0), (16.0, 39.9)];
    let points = rates.map(|(x, rate)| point(x, rate));
    let found = knee(&points, true).unwrap();
    assert_eq!((found.x, found.best_x, found.at_edge), (4.0, 8.0, false));
    assert!(near(found.share, 0.975, 1e-9) && found.value == 39.0);
    // The same points as times, in any order.
    let mut times = rates.map(|(x, rate)| point(x, 1.0 / rate));
    times.reverse();
    let found = knee(&times, false).unwrap();
    assert_eq!((found.x, found.best_x), (4.0, 8.0));
    assert!(near(found.share, 0.975, 1e-9) && near(found.value, 1.0 / 39.0, 1e-9));
}

#[test]
fn the_edge_of_the_sweep() {
    let still = [1.0, 2.0, 4.0, 8.0].map(|x| point(x, 10.0 * x));
    let found = knee(&still, true).unwrap();
    assert!(found.at_edge && found.x == 8.0 && found.share == 1.0);
    // The last point is the best, but equal to the one before within 3 %.
    let plateau = [(1.0, 10.0), (2.0, 40.0), (4.0, 40.2)].map(|(x, rate)| point(x, rate));
    let found = knee(&plateau, true).unwrap();
    assert_eq!((found.x, found.best_x, found.at_edge), (2.0, 4.0, false));
    // More jobs are slower from the start.
    let falling = [(1.0, 40.0), (2.0, 20.0), (4.0, 10.0)].map(|(x, rate)| point(x, rate));
    assert_eq!(knee(&falling, true).unwrap().x, 1.0);
    // Equal values: the fewest.
    let equal = [1.0, 2.0, 4.0].map(|x| point(x, 7.0));
    assert_eq!(knee(&equal, true).unwrap().best_x, 1.0);
    assert_eq!(knee(&equal[..1], true), None);
    assert_eq!(knee(&[point(1.0, 1.0), point(1.0, 2.0)], true), None);
    assert_eq!(knee(&[point(1.0, 0.0), point(2.0, f64::NAN)], true), None);
}

#[test]
fn noise_lends_a_little_and_no_more() {
    let wide = |x: f64, mid: f64| (x, Interval { low: 0.5 * mid, mid, high: 2.0 * mid });
    // 5 % below the best, with overlapping intervals: it counts.
    let points = [wide(1.0, 20.0), wide(2.0, 95.0), wide(4.0, 100.0)];
    assert_eq!(knee(&points, true).unwrap().x, 2.0);
    // As times, in which lower is faster.
    let times = points.map(|(x, of)| (x, of.map(|rate| 1.0 / rate)));
    assert_eq!(knee(&times, false).unwrap().x, 2.0);
    // With narrow intervals it does not count; nor do 10 %, however wide the intervals.
    let points = [point(1.0, 20.0), point(2.0, 95.0), point(4.0, 100.0)];
    assert_eq!(knee(&points, true).unwrap().x, 4.0);
    let points = [wide(1.0, 20.0), wide(2.0, 90.0), wide(4.0, 100.0)];
    assert_eq!(knee(&points, true).unwrap().x, 4.0);
}

#[test]
fn the_knee_of_noisy_sweeps() {
    let jobs = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let found: Vec<Knee> = (0..100)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let points = jobs.map(|x| {
                let rate = 100.0 * f64::min(x, 14.0);
                let runs: Vec<f64> =
                    (0..5).map(|_| 2000.0 / rate * (0.02 * normal(&mut random)).exp()).collect();
                (x, interval(&runs, seed).unwrap())
            });
            knee(&points, false).unwrap()
        })
        .collect();
    let right = found.iter().filter(|of| of.x == 16.0).count();
    assert!(right >= 98, "{right} of 100");
    assert!(found.iter().all(|of| of.share > 0.93 && of.share <= 1.0));
}
