//! The machine without a command: vmstat's lines and numbers.

use super::{run, watch};
use crate::common::{have, must};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn lines_with_a_header_each_twenty() {
    let run = run(&["-i", "0.02", "-c", "22"]);
    run.ok();
    assert_eq!(run.err(), "");
    let text = run.out();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 26, "{text}");
    for at in [0, 22] {
        assert!(
            lines[at].starts_with("procs ---") && lines[at + 1].contains(" bi    bo "),
            "{text}"
        );
    }
    for line in lines.iter().filter(|line| !line.contains("--") && !line.contains("swpd")) {
        assert_eq!(numbers(line).len(), 17, "{line}");
    }
}

#[test]
fn vmstat_says_the_same() {
    if !have("vmstat", "comparing with vmstat(8)") {
        return;
    }
    // Both cover the same three seconds; vmstat's first line is since boot.
    let theirs = Command::new("vmstat").args(["3", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    let ours = run(&["-i", "3", "-c", "1"]);
    let theirs = theirs.wait_with_output().unwrap().stdout;
    let last = |text: &str| numbers(text.lines().last().unwrap());
    let (ours, theirs) = (last(&ours.ok().out()), last(&String::from_utf8(theirs).unwrap()));
    let near = |at: usize, share: f64, plus: f64| {
        let (a, b) = (ours[at], theirs[at]);
        assert!((a - b).abs() <= share * b + plus, "column {at}: {ours:?} and {theirs:?}");
    };
    // Memory agrees within a few MiB, being read a moment later; rates and shares cover the same three
    // seconds.
    for at in [2, 4, 5] {
        near(at, 0.1, 65_536.0);
    }
    for at in [6, 7] {
        near(at, 0.5, 256.0);
    }
    for at in [8, 9] {
        near(at, 0.5, 20_000.0);
    }
    for at in [10, 11] {
        near(at, 0.4, 500.0);
    }
    for at in 12..17 {
        near(at, 0.3, 12.0);
    }
}

#[test]
fn it_ends_by_a_signal_or_when_nobody_reads() {
    let mut child = watch(&["-i", "0.05"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..4 {
        lines.next().unwrap().unwrap();
    }
    must(Command::new("kill").args(["-INT", &child.id().to_string()]));
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child = watch(&["-i", "0.05"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_summary_of_the_machine_goes_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("summary");
    run(&["-i", "0.05", "-c", "5", "-o", file.to_str().unwrap()]).ok();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("5 intervals of 0.05 s") && text.contains("context switches/s"),
        "{text}"
    );
    assert!(!text.contains("command ") && !text.contains("busiest thread"), "{text}");
}
