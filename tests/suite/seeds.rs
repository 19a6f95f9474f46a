//! Fuzz checks over their seeds and bytes near them, so that fixed crashes stay fixed without a fuzzer.
//! (`.ci/fuzz` runs the fuzzers. The seeds of `listing` are checked beside the parsers, which other crates
//! cannot call.)

#[path = "../../fuzz/checks/campaign.rs"]
mod campaign;
#[path = "../../fuzz/checks/filter_rules.rs"]
mod filter_rules;
#[path = "../../fuzz/checks/job_file.rs"]
mod job_file;
#[path = "../../fuzz/checks/journal.rs"]
mod journal;
#[path = "../../fuzz/checks/message.rs"]
mod message;
#[path = "../../fuzz/checks/results.rs"]
mod results;
#[path = "../../fuzz/checks/run_file.rs"]
mod run_file;
#[path = "../../fuzz/checks/s3_url.rs"]
mod s3_url;

#[path = "../../src/show/escape.rs"]
#[allow(dead_code, reason = "the file that `run_file` checks uses a part of it in its own tests")]
pub mod escape;

/// Where that file looks for it.
pub mod show {
    pub use super::escape;
}

use fastrand::Rng;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for varying the seeds of one target.
const VARIED: Duration = Duration::from_secs(3);

/// Calls `check` with each seed, and with what becomes of them by small changes.
fn vary(target: &str, more: &[&str], check: fn(&[u8])) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = Vec::new();
    for folder in [&format!("fuzz/seeds/{target}")[..]].iter().chain(more) {
        let mut names: Vec<_> =
            std::fs::read_dir(top.join(folder)).unwrap().map(|name| name.unwrap().path()).collect();
        names.sort();
        seeds.extend(names.iter().map(|name| std::fs::read(name).unwrap()));
    }
    assert!(!seeds.is_empty());
    for seed in &seeds {
        check(seed);
    }
    let (mut random, begun) = (Rng::with_seed(1), Instant::now());
    while begun.elapsed() < VARIED {
        let mut bytes = random.choice(&seeds).unwrap().clone();
        for _ in 0..random.usize(1..5) {
            change(&mut bytes, &seeds, &mut random);
        }
        check(&bytes);
    }
}

/// One small change: another byte, a number at its limits, a piece less, twice, or of another seed.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Rng) {
    let at = random.usize(0..=bytes.len());
    let length = random.usize(0..40).min(bytes.len() - at);
    match random.u8(..6) {
        0 if at < bytes.len() => bytes[at] = random.u8(..),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..at + length)),
        3 => {
            let piece = bytes[at..at + length].to_vec();
            bytes.splice(at..at, piece);
        }
        4 => {
            let other = random.choice(seeds).unwrap();
            let from = random.usize(0..=other.len());
            let until = (from + random.usize(0..60)).min(other.len());
            bytes.splice(at..at, other[from..until].iter().copied());
        }
        _ => {
            let digits = bytes.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count();
            let numbers = ["0", "-1", "1e308", "18446744073709551615", "99999999999999999999", ""];
            let number = random.choice(numbers).unwrap();
            bytes.splice(at..at + digits, number.bytes());
        }
    }
}

#[test]
fn s3_urls() {
    vary("s3_url", &[], s3_url::check);
}

#[test]
fn rules_of_filters() {
    vary("filter_rules", &[], filter_rules::check);
}

#[test]
fn run_files() {
    vary("run_file", &[], run_file::check);
}

#[test]
fn job_files() {
    vary("job_file", &[], job_file::check);
}

#[test]
fn campaigns() {
    vary("campaign", &["campaigns"], campaign::check);
}

#[test]
fn journals() {
    vary("journal", &[], journal::check);
    journal::end();
}

#[test]
fn messages_between_two_ends() {
    vary("message", &[], message::check);
}

#[test]
fn stores_of_results() {
    vary("results", &[], results::check);
}
