//! Comparison of settings with a baseline.

use super::{campaign, cell, run};
use crate::analysis::*;
use crate::results::Results;

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

fn compared(results: &Results, baseline: &str, lang: Lang) -> Result<Analysis, String> {
    let mut found = analyse_in(results, lang);
    found.compare_with(results, &Baseline::parse(baseline)?, lang)?;
    Ok(found)
}

#[test]
fn every_setting_is_compared_with_the_baseline() {
    let results = sweep();
    let found = compared(&results, "requests=10", Lang::En).unwrap();
    let words: Vec<_> = found.gains.iter().map(|of| (of.cell, of.words.as_str())).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words[0].1.starts_with("36 % shorter"), "{words:?}");
    assert!(words[1].1.starts_with("64 % shorter"), "{words:?}");
    assert!(found.verdict.len() <= 4);
    let said = &found.verdict[1];
    assert!(said.starts_with("aws s3 with 64 requests: 64 % shorter"), "{said}");
    assert!(said.ends_with(" than with requests=10."), "{said}");
    let found = compared(&results, "requests=16", Lang::Ja).unwrap();
    assert!(found.gains[0].words.starts_with("56 % 長い"), "{:?}", found.gains);
    assert!(found.verdict[1].contains("requests=16 より 44 % 短い"), "{:?}", found.verdict);
}

#[test]
fn what_is_no_baseline_is_an_error() {
    for (text, said) in [
        ("requests=11", "no setting has it; requests is one of 10, 16, 64"),
        ("jobs=1", "nothing has a parameter jobs"),
        ("requests", "is not NAME=VALUE"),
        ("=3", "is not NAME=VALUE"),
    ] {
        let why = compared(&sweep(), text, Lang::En).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn differences_within_noise_are_called_so() {
    let mut results = sweep();
    for (at, run) in results.runs.iter_mut().enumerate() {
        run.wall_s = 10.0 + 0.5 * ((at * 7) % 5) as f64;
    }
    let found = compared(&results, "requests=10", Lang::En).unwrap();
    assert!(found.gains.iter().all(|of| of.words.ends_with("within noise")), "{:?}", found.gains);
}
