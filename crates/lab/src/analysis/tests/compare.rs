//! Comparison of machines, and their costs.

use crate::analysis::compare::{
    BuyerNeed, ComparisonCaveat, Conclusion, ConclusionKind, ResultsComparison, compare,
};
use crate::analysis::prices::{Prices, RatedIops, parse_price, parse_rated};
use crate::analysis::ranking::Baseline;
use crate::analysis::statistics::SpeedClaim;
use crate::analysis::tests::{campaign, cell, near, normal, run};
use crate::analysis::{Analysis, analyse};
use crate::report::{Language, said, said_of_comparison};
use crate::results::Results;

/// A machine on which all runs take `times` as long.
fn machine(name: &str, times: f64) -> Results {
    let mut results = campaign();
    results.header.machine.name = name.to_owned();
    let mut random = fastrand::Rng::with_seed(name.len() as u64);
    for (tool, wall_s) in [("cp", 3.0), ("hakobu", 2.0)] {
        let id = cell(&mut results, "small", tool, None);
        for _ in 0..6 {
            let wall_s = times * wall_s * (0.01 * normal(&mut random)).exp();
            run(&mut results, id, (wall_s, 0.5, 0.5));
        }
    }
    results
}

#[test]
fn cell_by_cell() {
    let found = compare(&[machine("a", 1.0), machine("slow", 2.0)], &Prices::default());
    assert_eq!(found.names, ["a", "slow"]);
    assert_eq!(found.rows.len(), 2);
    for row in &found.rows {
        let [Some(first), Some(second)] = row.sides.as_slice() else { panic!("{row:?}") };
        assert_eq!((first.ratio, first.runs), (None, 6));
        let ratio = second.ratio.unwrap();
        assert_eq!(ratio.claim, SpeedClaim::Slower);
        assert!(near(ratio.ratio.mid, 0.5, 0.03), "{ratio:?}");
    }
    let best = found.changes.iter().find(|of| of.kind == ConclusionKind::BestTool).unwrap();
    let hakobu = Some(Conclusion::Tools(vec!["hakobu".to_owned()]));
    assert_eq!(best.said, [hakobu.clone(), hakobu]);
    assert!(!best.differs);
    let both = [machine("a", 1.0), machine("slow", 2.0)];
    let words = said_of_comparison(&both, &found, Language::English);
    assert!(words.contains(&"Best tool is the same: hakobu.".to_owned()), "{words:?}");
    assert!(found.costs.is_empty());
    let fastest = &found.best[0];
    assert!(fastest.need == BuyerNeed::Fastest && fastest.name == "a" && fastest.clear);
    assert!(fastest.next == "slow" && near(fastest.factor, 2.0, 0.03), "{fastest:?}");
    assert!(words[0].starts_with("fastest: a (") && words[0].contains(" on slow, "), "{words:?}");
}

#[test]
fn conclusions_that_change() {
    let mut other = machine("other", 1.0);
    // On this machine cp is the better tool.
    for run in other.runs.iter_mut().filter(|run| run.cell == 0) {
        run.wall_s /= 3.0;
    }
    let both = [machine("a", 1.0), other];
    let found = compare(&both, &Prices::default());
    let best = found.changes.iter().find(|of| of.kind == ConclusionKind::BestTool).unwrap();
    assert!(best.differs);
    let words = said_of_comparison(&both, &found, Language::English);
    let wanted = "Best tool differs: hakobu on a, cp on other.";
    assert!(words.contains(&wanted.to_owned()), "{words:?}");
}

#[test]
fn cells_that_only_some_have() {
    let mut more = machine("more", 1.0);
    let id = cell(&mut more, "large", "rsync", None);
    run(&mut more, id, (1.0, 0.1, 0.1));
    let found = compare(&[machine("a", 1.0), more], &Prices::default());
    assert_eq!(found.rows.len(), 3);
    assert_eq!((found.rows[2].sides[0], found.rows[2].group.as_str()), (None, "large"));
    assert!(found.rows[2].sides[1].is_some_and(|side| side.ratio.is_none()));
    // Results with another metric are not compared.
    let mut rates = machine("rates", 1.0);
    (rates.header.metric, rates.header.more_is_better) = ("iops".to_owned(), true);
    let found = compare(&[machine("a", 1.0), rates], &Prices::default());
    assert!(found.rows.iter().all(|row| row.sides[1].is_none()));
    let metric = ComparisonCaveat::Metric("rates".to_owned(), "iops".to_owned());
    assert_eq!(found.caveats[..2], [ComparisonCaveat::NothingShared, metric]);
    assert!(found.best.is_empty() && found.changes.is_empty());
    // A different data set is reported.
    let mut data = machine("data", 1.0);
    data.header.data[0].files = 7;
    let found = compare(&[machine("a", 1.0), data], &Prices::default());
    assert!(found.caveats.contains(&ComparisonCaveat::Data("data".to_owned(), "a".to_owned())));
    assert_eq!(compare(&[], &Prices::default()), ResultsComparison::default());
}

#[test]
fn equal_names_are_numbered() {
    let found = compare(&[machine("a", 1.0), machine("a", 1.0)], &Prices::default());
    assert_eq!(found.names, ["a #1", "a #2"]);
    let mut other = machine("a", 1.0);
    other.header.name = "again".to_owned();
    assert_eq!(compare(&[machine("a", 1.0), other], &Prices::default()).names, ["test", "again"]);
}

#[test]
fn what_things_cost() {
    let results = [machine("a", 1.0), machine("slow", 2.0)];
    let names = ["a".to_owned(), "slow".to_owned()];
    // Twice as fast at three times the price.
    let per_hour = [("a".to_owned(), 0.3), ("slow".to_owned(), 0.1)];
    let prices = Prices::new(&names, &per_hour, &[]).unwrap();
    let found = compare(&results, &prices);
    let cost = found.costs.iter().find(|of| of.name == "a" && of.series == "hakobu").unwrap();
    // 2 s at 0.3 per hour, for 2,000 files of 8,192,000 bytes.
    let price = 0.3 / 3600.0 * 2.0;
    assert!(near(cost.per_million_files.unwrap(), price / 0.002, 0.03), "{cost:?}");
    assert!(near(cost.per_gb.unwrap(), price / 0.008_192, 0.03), "{cost:?}");
    assert_eq!((cost.iops, cost.per_1m_iops), (None, None));
    let cheapest = found.best.iter().find(|of| of.need == BuyerNeed::PerGigabyte).unwrap();
    assert!(cheapest.name == "slow" && cheapest.clear, "{cheapest:?}");
    assert_eq!(cheapest.series, "hakobu");
}

#[test]
fn options_of_prices() {
    assert_eq!(parse_price("A=0.366/h"), Ok(("A".to_owned(), 0.366)));
    let (name, per_hour) = parse_price(" m5.large = $0.01/min").unwrap();
    assert!(name == "m5.large" && near(per_hour, 0.6, 1e-9));
    assert!(near(parse_price("A=73/month").unwrap().1, 0.1, 1e-9));
    assert!(near(parse_price("A=0.0001/s").unwrap().1, 0.36, 1e-9));
    let rated = |reads, writes| Ok(("A".to_owned(), RatedIops { reads, writes }));
    assert_eq!(parse_rated("A=206250"), rated(206_250.0, None));
    assert_eq!(parse_rated("A=3k/1500"), rated(3000.0, Some(1500.0)));
    for (text, part) in [
        ("A=0.366", "write A=0.366/h"),
        ("0.366/h", "write it as A=0.366/h"),
        ("=1/h", "write it as"),
        ("A=1/fortnight", "'fortnight' is not a time"),
        ("A=x/h", "'x' is not a price above 0"),
        ("A=0/h", "is not a price above 0"),
        ("A=-1/h", "is not a price above 0"),
        ("A=inf/h", "is not a price above 0"),
    ] {
        let error = parse_price(text).unwrap_err().to_lowercase();
        assert!(error.starts_with("--price ") && error.contains(&part.to_lowercase()), "{error}");
    }
    for text in ["A", "A=", "A=many", "A=0", "A=nan", "A=1/", "A=1/0", "A=1/2/3"] {
        assert!(parse_rated(text).unwrap_err().starts_with("--rated "), "{text}");
    }
    let names = ["x".to_owned(), "y".to_owned()];
    let price = |name: &str| [(name.to_owned(), 1.0)];
    let one = RatedIops { reads: 1.0, writes: None };
    let prices = Prices::new(&names, &price("B"), &[("x".to_owned(), one)]).unwrap();
    assert_eq!((prices.per_hour.get(&1), prices.rated.get(&0)), (Some(&1.0), Some(&one)));
    let error = Prices::new(&names, &price("C"), &[]).unwrap_err();
    assert_eq!(error, "--price C=…: no result is called C (x, y)");
    let twice = [("A".to_owned(), one), ("x".to_owned(), one)];
    assert_eq!(Prices::new(&names, &[], &twice).unwrap_err(), "--rated x=…: given twice");
}

// Comparison of settings with a baseline.

/// aws s3 of 10 to 64 requests: 59 s, 38 s, 21 s.
fn sweep() -> Results {
    let mut results = campaign();
    results.header.x_name = Some("requests".to_owned());
    for (x, wall_s) in [(10.0, 59.0), (16.0, 37.8), (64.0, 21.0)] {
        let id = cell(&mut results, "", "aws s3", Some(x));
        for block in 0..5 {
            run(&mut results, id, (wall_s * (1.0 + 0.002 * f64::from(block)), 1.0, 1.0));
        }
    }
    results
}

fn compared(results: &Results, baseline: &str) -> Result<Analysis, String> {
    let mut found = analyse(results);
    found.compare_with(results, &Baseline::parse(baseline)?)?;
    Ok(found)
}

#[test]
fn every_setting_is_compared_with_the_baseline() {
    let results = sweep();
    let found = compared(&results, "requests=10").unwrap();
    let words = said(&results, &found, Language::English);
    assert_eq!(words.gains.len(), 2, "{:?}", words.gains);
    assert!(words.gains[0].starts_with("36% shorter"), "{:?}", words.gains);
    assert!(words.gains[1].starts_with("64% shorter"), "{:?}", words.gains);
    assert!(found.verdict.len() <= 4);
    let sentence = &words.verdict[1];
    assert!(sentence.starts_with("aws s3 with 64 requests: 64% shorter"), "{sentence}");
    assert!(sentence.ends_with(" than with requests=10."), "{sentence}");
    let found = compared(&results, "requests=16").unwrap();
    let words = said(&results, &found, Language::Japanese);
    assert!(words.gains[0].starts_with("56% 長い"), "{:?}", words.gains);
    assert!(words.verdict[1].contains("requests=16 より 44% 短い"), "{:?}", words.verdict);
}

#[test]
fn another_tool_can_be_the_baseline() {
    let results = machine("a", 1.0);
    // By default the first tool that is not this program.
    let found = analyse(&results);
    assert_eq!((found.comparisons[0].a, found.comparisons[0].b), (1, 0));
    assert_eq!(found.comparisons[0].ratio.claim, SpeedClaim::Faster);
    let found = compared(&results, "hakobu").unwrap();
    assert_eq!((found.comparisons[0].a, found.comparisons[0].b), (0, 1));
    assert_eq!(found.comparisons[0].ratio.claim, SpeedClaim::Slower);
    // All other settings are compared with it as well.
    let results = sweep();
    let found = analyse(&results);
    assert_eq!((found.comparisons.len(), found.relative.len()), (0, 2));
    assert!(found.relative.iter().all(|of| of.b == 2), "{:?}", found.relative);
}

#[test]
fn what_is_no_baseline_is_an_error() {
    for (text, said) in [
        ("requests=11", "no setting has it; requests is one of 10, 16, 64"),
        ("jobs=1", "nothing has a parameter jobs"),
        ("requests", "--baseline=requests: no such tool; there are aws s3"),
        ("=3", "is neither a tool nor NAME=VALUE"),
        (" ", "is empty"),
    ] {
        let why = compared(&sweep(), text).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn differences_within_noise_are_called_so() {
    let mut results = sweep();
    for (at, run) in results.runs.iter_mut().enumerate() {
        run.wall_s = 10.0 + 0.5 * ((at * 7) % 5) as f64;
    }
    let found = compared(&results, "requests=10").unwrap();
    let words = said(&results, &found, Language::English).gains;
    assert!(words.iter().all(|of| of.ends_with("within noise")), "{words:?}");
}
