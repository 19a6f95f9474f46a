//! Property tests: no input causes a panic or a non-finite result.

use crate::analysis::compare::compare;
use crate::analysis::fit::fit;
use crate::analysis::limits::judge;
use crate::analysis::prices::{Prices, parse_price, parse_rated};
use crate::analysis::quantity::quantity;
use crate::analysis::statistics::{
    PAIRS_MIN, SpeedClaim, interval, paired_ratio, quantile, unpaired_ratio,
};
use crate::analysis::summary::steady;
use crate::analysis::sweeps::knee;
use crate::analysis::tests::{Signals, campaign, cell, run};
use crate::analysis::{Interval, analyse};
use crate::report::{Language, said, said_of_comparison};
use crate::results::{CounterExperiment, LoadCurves};
use hakobu_explain::verdict::Resource;
use proptest::prelude::*;

/// Any number, often an ordinary one.
fn any() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::ANY,
        -10.0..10.0_f64,
        0.001..1000.0_f64,
        Just(0.0),
        Just(1.0),
        Just(f64::INFINITY),
        Just(f64::NAN),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
    ]
}

/// Positive and finite, including very large and very small values.
fn positive() -> impl Strategy<Value = f64> {
    prop_oneof![prop::num::f64::POSITIVE | prop::num::f64::NORMAL, 0.001..1000.0_f64]
        .prop_map(|value| value.abs().max(f64::MIN_POSITIVE))
}

fn ordered(of: &Interval) -> bool {
    of.low <= of.mid && of.mid <= of.high && of.low.is_finite() && of.high.is_finite()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn intervals(values in prop::collection::vec(any(), 0..12), seed: u64) {
        let found = interval(&values, seed);
        let all = !values.is_empty() && values.iter().all(|value| value.is_finite());
        prop_assert_eq!(found.is_some(), all);
        prop_assert!(found.is_none_or(|of| ordered(&of)), "{found:?}");
    }

    #[test]
    fn quantiles(values in prop::collection::vec(prop::num::f64::NORMAL, 1..12), share in any()) {
        if let Some(of) = quantile(&values, share) {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(least <= of && of <= most, "{of} of {values:?}");
        } else {
            prop_assert!(!share.is_finite());
        }
    }

    #[test]
    fn ratios(
        a in prop::collection::vec((0..6_u32, any()), 0..9),
        b in prop::collection::vec((0..6_u32, any()), 0..9),
        more: bool,
    ) {
        let values = |of: &[(u32, f64)]| -> Vec<f64> { of.iter().map(|(_, v)| *v).collect() };
        let found = [paired_ratio(&a, &b, more, 1), unpaired_ratio(&values(&a), &values(&b), more, 1)];
        for found in found.into_iter().flatten() {
            prop_assert!(ordered(&found.ratio) && found.ratio.low > 0.0, "{found:?}");
            prop_assert!(found.pairs >= PAIRS_MIN || found.claim == SpeedClaim::Unclear);
        }
    }

    #[test]
    fn knees(points in prop::collection::vec((any(), any(), any(), any()), 0..9), more: bool) {
        let points: Vec<_> =
            points.into_iter().map(|(x, low, mid, high)| (x, Interval { low, mid, high })).collect();
        if let Some(found) = knee(&points, more) {
            let known = |x: f64| points.iter().any(|point| point.0 == x);
            prop_assert!(known(found.x) && known(found.best_x));
            prop_assert!(found.share >= 0.94 - 1e-9 && found.share <= 1.0, "{found:?}");
        }
    }

    #[test]
    fn steady_parts(rates in prop::collection::vec(any(), 0..40)) {
        let t_s: Vec<f64> = (0..rates.len()).map(|n| n as f64).collect();
        if let Some(found) = steady(&t_s, &rates) {
            prop_assert!(found.rate.is_finite() && found.rate > 0.0 && found.from < rates.len());
        }
    }

    #[test]
    fn signals(numbers in prop::collection::vec(any(), 12)) {
        let of = |at: usize| Some(numbers[at]);
        let signals = Signals {
            cpus: numbers[0],
            used: numbers[1],
            jobs: of(2),
            machine: of(3),
            busiest: of(4),
            iowait: of(5),
            disk_busy: of(6),
            disk_iops: of(7),
            disk_bytes_per_s: of(8),
            net_bytes_per_s: of(9),
            iops_limit: of(10),
            bandwidth_limit: of(11),
            before: of(2),
            after: of(3),
        };
        let found = judge(&signals.facts());
        prop_assert_eq!(found.is_determined(), found.resource != Resource::None);
    }

    #[test]
    fn words(text in ".{0,12}") {
        prop_assert!(quantity(&text, true).is_none_or(f64::is_finite));
        prop_assert!(parse_price(&text).is_err() || text.contains('='));
        prop_assert!(parse_rated(&text).is_err() || text.contains('='));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn fits(points in prop::collection::vec((1.0..1e6_f64, positive()), 4..12)) {
        if let Some(found) = fit(&points, 1) {
            for of in [found.gamma, found.alpha, found.beta, found.at_twice] {
                prop_assert!(ordered(&of), "{found:?}");
            }
            prop_assert!(found.alpha.low >= 0.0 && found.beta.low >= 0.0);
            prop_assert!(!found.error.is_nan() && !found.aicc_usl.is_nan());
        }
    }

    #[test]
    fn whole_campaigns(
        runs in prop::collection::vec((0..9_u32, any(), any(), any()), 0..40),
        xs in prop::collection::vec(prop::option::of(any()), 0..6),
        ratios in prop::collection::vec(any(), 0..5),
        factor in any(),
        more: bool,
    ) {
        let mut results = campaign();
        results.header.more_is_better = more;
        for x in &xs {
            let id = cell(&mut results, "", "cp", *x);
            let of = &mut results.header.cells[id as usize];
            of.conditions = [("cpus".to_owned(), format!("{factor}"))].into();
            of.control_of = (id == 4).then_some(7);
        }
        for (id, wall_s, user_s, load) in &runs {
            run(&mut results, *id, (*wall_s, *user_s, *load));
            let last = results.runs.last_mut().unwrap();
            last.load = [("cpu_percent".to_owned(), *load), ("disk_busy_percent".to_owned(), *load)].into();
            last.cached = Some(*load);
        }
        let changed = ["cpus", "source", "latency"][runs.len() % 3].to_owned();
        let about = String::new();
        results.experiments = vec![CounterExperiment { cell: 0, changed, about, factor, ratios }];
        let (t_s, values) = (vec![factor; 9], [("write".to_owned(), vec![factor; 7])].into());
        results.curves = vec![LoadCurves { cell: 0, block: 0, t_s, values }];
        let found = analyse(&results);
        prop_assert_eq!(found.cells.len(), xs.len());
        prop_assert!((1..=4).contains(&found.verdict.len()));
        prop_assert!(found.cells.iter().filter_map(|of| of.value).all(|of| ordered(&of)));
        // No sentence contains NaN or infinity, in either language.
        for lang in [Language::English, Language::Japanese] {
            let of = said(&results, &found, lang);
            for sentence in [of.verdict, of.caveats, of.proofs, of.limiting].concat() {
                prop_assert!(!sentence.contains("NaN") && !sentence.contains("inf "), "{}", sentence);
            }
        }
        let other = analyse(&results);
        prop_assert_eq!(serde_json::to_string(&other).ok(), serde_json::to_string(&found).ok());
        let both = [results.clone(), results];
        let found = compare(&both, &Prices::default());
        prop_assert_eq!(found.names.len(), 2);
        prop_assert!(said_of_comparison(&both, &found, Language::Japanese).iter().all(|said| !said.is_empty()));
    }
}

// Parsing of numbers with units.

#[test]
fn quantities() {
    for (text, counts, value) in [
        ("3000", true, 3000.0),
        ("6k", true, 6000.0),
        ("1_000", true, 1000.0),
        ("125 MB/s", false, 125e6),
        ("125MiB/s", false, 125.0 * 1_048_576.0),
        ("64K", false, 65_536.0),
        ("500 KB/s", false, 5e5),
        ("7 bytes", false, 7.0),
        ("20 ms", false, 0.02),
        ("1.5 s", false, 1.5),
        ("50us", false, 5e-5),
    ] {
        let found = quantity(text, counts).unwrap();
        assert!((found - value).abs() <= 1e-12 * value, "{text}: {found}");
    }
    for text in ["", "many", "-1", "1..2", "3 parsecs", "1e999", "ms"] {
        assert_eq!(quantity(text, false), None, "{text}");
    }
}
