//! Medians, intervals and claims: known values and coverage.

use crate::analysis::Interval;
use crate::analysis::fit::{FitModel, fit};
use crate::analysis::statistics::{
    SpeedClaim, interval, median, paired_ratio, quantile, unpaired_ratio,
};
use crate::analysis::summary::steady;
use crate::analysis::sweeps::{Knee, knee};
use crate::analysis::tests::{near, normal};

#[test]
fn medians_and_quantiles_are_those_of_the_books() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    // Type 7 of Hyndman & Fan: the default of R's quantile, here for 1 … 10.
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    assert_eq!(quantile(&ten, 0.25), Some(3.25));
    assert_eq!(quantile(&ten, 0.9), Some(9.1));
    assert_eq!((quantile(&ten, 0.0), quantile(&ten, 1.0)), (Some(1.0), Some(10.0)));
    assert_eq!((median(&[]), median(&[1.0, f64::INFINITY])), (None, None));
    assert_eq!((median(&[1.0, f64::NAN]), quantile(&[1.0], f64::NAN)), (None, None));
    assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    assert_eq!(median(&[f64::MIN, f64::MAX]), Some(0.0));
}

#[test]
fn few_values_have_wide_intervals() {
    let one = interval(&[5.0], 1).unwrap();
    assert!(one.is_point() && one.mid == 5.0);
    let same = interval(&[5.0, 5.0, 5.0], 1).unwrap();
    assert!(same.is_point());
    // Two values 1 % apart: Student's factor for them is 12.7.
    let two = interval(&[10.0, 10.1], 1).unwrap();
    assert!(two.low < 9.5 && two.high > 10.6 && two.mid == 10.05, "{two:?}");
    let five = interval(&[10.0, 10.1, 9.9, 10.2, 9.8], 1).unwrap();
    assert!(five.low < 9.81 && five.high > 10.19, "{five:?}");
    assert!(five.low > 9.7 && five.high < 10.3, "{five:?}");
    assert_eq!((interval(&[], 1), interval(&[1.0, f64::INFINITY], 1)), (None, None));
}

#[test]
fn the_same_seed_says_the_same() {
    let values: Vec<f64> = (0..30).map(|n| f64::from(n * n % 17)).collect();
    assert_eq!(interval(&values, 3), interval(&values, 3));
    assert_ne!(interval(&values, 3).unwrap().low, f64::NAN);
    // Another seed gives nearly the same interval.
    let (a, b) = (interval(&values, 3).unwrap(), interval(&values, 4).unwrap());
    assert!((a.low - b.low).abs() <= 2.0 && (a.high - b.high).abs() <= 2.0, "{a:?} {b:?}");
}

/// Share of the intervals that contain the true median.
fn coverage(count: usize, draw: impl Fn(&mut fastrand::Rng) -> f64, truth: f64) -> f64 {
    let mut random = fastrand::Rng::with_seed(count as u64);
    const TIMES: u32 = 300;
    let held = (0..TIMES).filter(|time| {
        let values: Vec<f64> = (0..count).map(|_| draw(&mut random)).collect();
        let of = interval(&values, u64::from(*time)).unwrap();
        of.low <= truth && truth <= of.high
    });
    held.count() as f64 / f64::from(TIMES)
}

#[test]
fn intervals_hold_the_truth_about_95_times_of_100() {
    for count in [3, 5, 8, 12, 20, 30] {
        let times = coverage(count, |random| 10.0 * (0.1 * normal(random)).exp(), 10.0);
        assert!((0.90..=0.99).contains(&times), "{times} of {count} values");
    }
    // Long tails, as from disturbed runs. The median of an exponential distribution is ln 2.
    let late = |random: &mut fastrand::Rng| 5.0 - random.f64().max(1e-12).ln();
    for count in [5, 10, 25] {
        let times = coverage(count, late, 5.0 + std::f64::consts::LN_2);
        assert!((0.88..=0.99).contains(&times), "{times} of {count} values");
    }
}

/// Share of claimed differences between runs of the same tool, in blocks with random drift.
fn false_claims(blocks: u32, noise: f64, seeds: u64) -> f64 {
    let claimed = (0..seeds).filter(|seed| {
        let mut random = fastrand::Rng::with_seed(1000 + seed);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for block in 0..blocks {
            let weather = 10.0 * (0.2 * normal(&mut random)).exp();
            a.push((block, weather * (noise * normal(&mut random)).exp()));
            b.push((block, weather * (noise * normal(&mut random)).exp()));
        }
        let claim = paired_ratio(&a, &b, false, *seed).unwrap().claim;
        matches!(claim, SpeedClaim::Faster | SpeedClaim::Slower)
    });
    claimed.count() as f64 / seeds as f64
}

#[test]
fn the_same_tool_twice_is_hardly_ever_called_different() {
    let mut all = Vec::new();
    for blocks in [3, 5, 8, 12, 25] {
        for noise in [0.01, 0.05] {
            let claimed = false_claims(blocks, noise, 200);
            assert!(claimed <= 0.085, "{claimed} of {blocks} blocks with noise {noise}");
            all.push(claimed);
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean <= 0.05, "{mean}");
}

#[test]
fn real_differences_are_claimed() {
    let claims = |factor: f64, more_is_better: bool| -> Vec<SpeedClaim> {
        let claims = (0..50).map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let runs = |by: f64, random: &mut fastrand::Rng| -> Vec<(u32, f64)> {
                (0..8).map(|block| (block, by * (0.03 * normal(random)).exp())).collect()
            };
            let (a, b) = (runs(factor, &mut random), runs(1.0, &mut random));
            paired_ratio(&a, &b, more_is_better, seed).unwrap().claim
        });
        claims.collect()
    };
    let count = |claims: &[SpeedClaim], claim| claims.iter().filter(|of| **of == claim).count();
    // A time that is 20 % longer is slower; a rate that is 20 % higher is faster.
    assert!(count(&claims(1.2, false), SpeedClaim::Slower) >= 49);
    assert!(count(&claims(1.2, true), SpeedClaim::Faster) >= 49);
    assert!(count(&claims(0.8, false), SpeedClaim::Faster) >= 49);
    assert_eq!(count(&claims(1.2, false), SpeedClaim::Faster), 0);
}

#[test]
fn small_or_few_differences_are_not_claimed() {
    let runs = |values: &[f64]| -> Vec<(u32, f64)> { (0..).zip(values.iter().copied()).collect() };
    // Certain, but only 1 %.
    let (a, b) = (runs(&[1.0; 9]), runs(&[1.01; 9]));
    let ratio = paired_ratio(&a, &b, false, 1).unwrap();
    assert!(ratio.claim == SpeedClaim::Same && near(ratio.ratio.mid, 1.01, 1e-9), "{ratio:?}");
    // A factor of ten, but only two pairs.
    let ratio = paired_ratio(&runs(&[1.0, 1.0]), &runs(&[10.0, 10.0, 10.0]), false, 1).unwrap();
    assert_eq!((ratio.pairs, ratio.claim), (2, SpeedClaim::Unclear));
    assert!(near(ratio.ratio.mid, 10.0, 1e-9));
    // Three pairs are enough, in common blocks.
    let of_blocks = |blocks: [u32; 4], value: f64| blocks.map(|block| (block, value));
    let (a, b) = (of_blocks([1, 2, 3, 9], 1.0), of_blocks([3, 1, 2, 8], 10.0));
    let ratio = paired_ratio(&a, &b, false, 1).unwrap();
    assert_eq!((ratio.pairs, ratio.claim), (3, SpeedClaim::Faster));
    // Without common blocks there are no pairs, but both sides can be resampled.
    assert_eq!(paired_ratio(&[(1, 1.0)], &[(2, 1.0)], false, 1), None);
    let ratio =
        unpaired_ratio(&[1.0, 1.02, 0.98, 1.01], &[2.0, 2.02, 1.97, 2.01], false, 1).unwrap();
    assert_eq!(ratio.claim, SpeedClaim::Faster);
    assert!(ratio.ratio.low > 1.8 && ratio.ratio.high < 2.2, "{ratio:?}");
    assert_eq!(unpaired_ratio(&[0.0], &[1.0], false, 1), None);
}

#[test]
fn weather_that_all_runs_share_does_not_count() {
    // Blocks that differ by a factor of ten, and a tool that is always 10 % faster.
    let weather = [1.0, 10.0, 3.0, 7.0, 2.0, 5.0];
    let runs = |by: f64| -> Vec<(u32, f64)> {
        (0..).zip(weather).map(|(block, of): (u32, f64)| (block, by * of)).collect()
    };
    let ratio = paired_ratio(&runs(0.9), &runs(1.0), false, 1).unwrap();
    assert_eq!(ratio.claim, SpeedClaim::Faster);
    let values = |by: f64| weather.map(|of| by * of);
    assert_eq!(
        unpaired_ratio(&values(0.9), &values(1.0), false, 1).unwrap().claim,
        SpeedClaim::Unclear
    );
}

#[test]
fn runs_become_steady() {
    let mut random = fastrand::Rng::with_seed(1);
    let t_s: Vec<f64> = (1..=100).map(|n| f64::from(n) / 10.0).collect();
    let mut curve = |rate: &dyn Fn(f64) -> f64| -> Vec<f64> {
        t_s.iter().map(|t| rate(*t) * (1.0 + 0.05 * normal(&mut random))).collect()
    };
    // A ramp of two seconds, then 100 per second.
    let ramp = steady(&t_s, &curve(&|t| (50.0 * t).min(100.0))).unwrap();
    assert!((1.2..=2.6).contains(&ramp.from_s) && near(ramp.rate, 100.0, 0.03), "{ramp:?}");
    assert_eq!(ramp.from, (ramp.from_s * 10.0).round() as usize);
    // A cache that is full after three seconds.
    let step = steady(&t_s, &curve(&|t| if t <= 3.0 { 500.0 } else { 100.0 })).unwrap();
    assert!((2.8..=3.4).contains(&step.from_s) && near(step.rate, 100.0, 0.05), "{step:?}");
    let flat = steady(&t_s, &curve(&|_| 100.0)).unwrap();
    assert!(flat.from_s <= 0.5, "{flat:?}");
    // A rate that always rises is never steady.
    assert_eq!(steady(&t_s, &curve(&|t| 100.0 * t)), None);
    assert_eq!(steady(&t_s, &[0.0; 100]), None);
    assert_eq!(steady(&[1.0, 2.0], &[1.0, 1.0]), None);
    assert_eq!(steady(&t_s, &[f64::NAN; 100]), None);
}

// Fits of synthetic and published curves.

const JOBS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

fn usl(gamma: f64, alpha: f64, beta: f64) -> impl Fn(f64) -> f64 {
    move |x| gamma * x / (1.0 + alpha * (x - 1.0) + beta * x * (x - 1.0))
}

fn runs(curve: &impl Fn(f64) -> f64, noise: f64, each: usize, seed: u64) -> Vec<(f64, f64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut runs = Vec::new();
    for x in JOBS {
        for _ in 0..each {
            runs.push((x, curve(x) * (noise * normal(&mut random)).exp()));
        }
    }
    runs
}

#[test]
fn the_universal_scalability_law_is_found_again() {
    let truths = [
        (100.0, 0.03, 0.0005),
        (3.0e6, 0.1, 0.0),
        (0.02, 0.0, 0.002),
        (7.0, 0.5, 0.001),
        (1.0, 0.0, 0.0),
    ];
    for (gamma, alpha, beta) in truths {
        let found = fit(&runs(&usl(gamma, alpha, beta), 0.0, 1, 1), 1).unwrap();
        assert_eq!(found.model, FitModel::Usl, "{found:?}");
        assert!(near(found.gamma.mid, gamma, 1e-4), "{found:?}");
        assert!((found.alpha.mid - alpha).abs() < 1e-4, "{found:?}");
        assert!((found.beta.mid - beta).abs() < 1e-6, "{found:?}");
        assert!(near(found.at_twice.mid, usl(gamma, alpha, beta)(128.0), 1e-3), "{found:?}");
        assert!(found.error < 1e-4 && found.twice_x == 128.0);
    }
    let found = fit(&runs(&usl(100.0, 0.03, 0.0005), 0.0, 1, 1), 1).unwrap();
    // N* = √((1−α)/β).
    let peak = (0.97_f64 / 0.0005).sqrt();
    assert!(near(found.peak_x.unwrap().mid, peak, 1e-3), "{found:?}");
    assert!(near(found.peak_rate.unwrap(), usl(100.0, 0.03, 0.0005)(peak), 1e-3));
    assert!(near(found.rate(8.0), usl(100.0, 0.03, 0.0005)(8.0), 1e-3));
}

#[test]
fn a_hard_cap_is_found_again() {
    for cap in [300.0, 800.0, 1500.0, 2500.0] {
        let curve = |x: f64| (100.0 * x).min(cap);
        let found = fit(&runs(&curve, 0.0, 1, 1), 1).unwrap();
        assert_eq!(found.model, FitModel::Cap, "{found:?}");
        assert!(near(found.cap.unwrap().mid, cap, 1e-3), "{cap}: {found:?}");
        assert!(near(found.gamma.mid, 100.0, 1e-3), "{cap}: {found:?}");
        assert!(near(found.peak_x.unwrap().mid, cap / 100.0, 2e-3), "{cap}: {found:?}");
        assert!(near(found.at_twice.mid, cap, 1e-3));
    }
    // Flat from the start: one job is enough.
    let found = fit(&runs(&|_| 500.0, 0.0, 1, 1), 1).unwrap();
    assert!(near(found.at_twice.mid, 500.0, 1e-6), "{found:?}");
    assert!(found.peak_x.is_some_and(|peak| peak.mid <= 1.001), "{found:?}");
}

#[test]
fn intervals_of_fits_hold_the_truth() {
    let (alpha, beta) = (0.05, 0.0004);
    let truth = usl(100.0, alpha, beta);
    let mut held = [0; 4];
    for seed in 0..60 {
        let found = fit(&runs(&truth, 0.03, 5, seed), seed).unwrap();
        let holds = |of: Interval, truth: f64| usize::from(of.low <= truth && truth <= of.high);
        assert_eq!(found.model, FitModel::Usl);
        let of = [
            holds(found.gamma, 100.0),
            holds(found.alpha, alpha),
            holds(found.beta, beta),
            holds(found.at_twice, truth(128.0)),
        ];
        held.iter_mut().zip(of).for_each(|(sum, one)| *sum += one);
    }
    // With five runs each the bootstrap interval is slightly too narrow: 85 % coverage or more.
    assert!(held.iter().all(|count| *count >= 51), "{held:?} of 60");
}

#[test]
fn the_right_curve_is_chosen_in_noise() {
    let chosen = |curve: &dyn Fn(f64) -> f64, model: FitModel| {
        let right = (0..40).filter(|seed| {
            fit(&runs(&|x| curve(x), 0.03, 3, *seed), *seed).unwrap().model == model
        });
        right.count()
    };
    assert!(chosen(&|x| (100.0 * x).min(1300.0), FitModel::Cap) >= 38);
    assert!(chosen(&usl(100.0, 0.08, 0.0004), FitModel::Usl) >= 38);
}

/// SPEC SDM91 on a SPARCcenter 2000, the example in Gunther's book: load and throughput. Least squares of
/// throughput itself gave α 0.0277, β 0.000104 and γ 90.0, with a peak at 96.5; least squares of logarithms
/// give more weight to the first point, which is below the law.
#[test]
fn published_loads_give_published_answers() {
    let loads = [
        (1.0, 64.9),
        (18.0, 995.9),
        (36.0, 1652.4),
        (72.0, 1853.2),
        (108.0, 1828.9),
        (144.0, 1775.0),
        (216.0, 1702.2),
    ];
    let found = fit(&loads, 1).unwrap();
    let published = usl(90.0, 0.027_728_5, 0.000_104_4);
    for (x, measured) in &loads[1..] {
        let of = found.rate(*x);
        assert!(near(of, *measured, 0.15) && near(of, published(*x), 0.2), "{x}: {of} {found:?}");
    }
}

#[test]
fn too_little_is_refused() {
    assert_eq!(fit(&[(1.0, 1.0), (2.0, 2.0), (4.0, 3.0)], 1), None);
    let often: Vec<(f64, f64)> =
        [1.0, 2.0, 4.0].into_iter().cycle().take(30).map(|x| (x, x)).collect();
    assert_eq!(fit(&often, 1), None);
    // Values that are not rates are ignored.
    let odd = [(1.0, 1.0), (2.0, 2.0), (4.0, 3.0), (8.0, 0.0), (0.0, 5.0), (16.0, f64::NAN)];
    assert_eq!(fit(&odd, 1), None);
    // Four points with one run each are enough.
    let four = [(1.0, 1.0), (2.0, 1.9), (4.0, 3.6), (8.0, 6.5)];
    assert_eq!(fit(&four, 1).unwrap().twice_x, 16.0);
}

// Knees of known curves.

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
