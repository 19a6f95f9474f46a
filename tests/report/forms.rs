//! Every form, from a folder to a file or to standard output.

use crate::common::area::Area;
use crate::common::{have, must};
use crate::folder::{LARGE, Recipe, USUAL, make};
use crate::report;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A folder with results `a`, and `b` of a slower machine.
fn stage() -> Area {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    make(&area.path().join("b"), &Recipe { machine: "m5.small", slower: 2.0, ..USUAL });
    area
}

/// Reads a file as XML with a reader that is not ours.
pub fn is_xml(path: &Path) {
    if have("python3", "reading XML") {
        let script = "import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])";
        must(Command::new("python3").args(["-c", script]).arg(path));
    }
}

#[test]
fn the_name_of_the_file_says_the_form() {
    let area = stage();
    let begins = [
        ("html", "<!DOCTYPE html>\n<html lang=\"en\">"),
        ("md", "# Small files between two volumes\n"),
        ("csv", "campaign,machine,group,series,x,"),
        ("json", "{\n  \"schema\": 1,"),
        ("svg", "<svg width=\"1000\""),
    ];
    for (end, begin) in begins {
        let name = format!("report.{end}");
        let run = report(area.path(), &["a", "-o", &name]);
        run.ok();
        assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{run}");
        let text = std::fs::read_to_string(area.path().join(&name)).unwrap();
        assert!(text.starts_with(begin), "{}", text.lines().next().unwrap());
        // The same on standard output.
        let run = report(area.path(), &["a", "--format", end]);
        assert_eq!(run.ok().out(), text, "{end}");
        if end == "html" || end == "svg" {
            is_xml(&area.path().join(&name));
        }
    }
    let run = report(area.path(), &["a"]);
    assert!(run.ok().out().starts_with("# Small files between two volumes\n"));
    // Only what was asked for is there.
    assert_eq!(std::fs::read_dir(area.path()).unwrap().count(), 2 + begins.len());
    let csv = std::fs::read_to_string(area.path().join("report.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 100);
    let json = std::fs::read(area.path().join("report.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let verdict = json["results"][0]["analysis"]["verdict"][0].as_str().unwrap();
    assert!(verdict.contains("hakobu"), "{verdict}");
    let html = std::fs::read_to_string(area.path().join("report.html")).unwrap();
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not there"));
    let said = verdict.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(
        place(&said.replace('"', "&quot;").replace('\'', "&#39;")) < place("<figure>"),
        "the verdict comes first"
    );
}

#[test]
fn several_results_are_compared() {
    let area = stage();
    let run = report(area.path(), &["a", "b", "-o", "both.html", "--lang", "ja"]);
    run.ok();
    let html = std::fs::read_to_string(area.path().join("both.html")).unwrap();
    for part in ["マシンの比較", "m5.large", "m5.small", "結論", "<html lang=\"ja\">"] {
        assert!(html.contains(part), "{part}");
    }
    is_xml(&area.path().join("both.html"));
    // The file of runs names its folder.
    let run = report(area.path(), &["a/results.jsonl", "b/", "--format=csv"]);
    assert_eq!(run.ok().out().lines().count(), 1 + 200);
}

#[test]
fn five_hundred_runs() {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &LARGE);
    let begin = Instant::now();
    report(area.path(), &["a", "-o", "a.html"]).ok();
    let took = begin.elapsed();
    // The program under test is optimised a little, and other tests run beside it.
    assert!(took < Duration::from_secs(15), "{took:?}");
    let size = std::fs::metadata(area.path().join("a.html")).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn a_campaign_that_was_stopped_has_a_report() {
    let area = stage();
    for file in ["a/results.jsonl", "a/samples.jsonl"] {
        let path = area.path().join(file);
        let mut text = std::fs::read(&path).unwrap();
        text.truncate(text.len() * 2 / 3);
        std::fs::write(&path, text).unwrap();
    }
    let run = report(area.path(), &["a", "--format", "html"]);
    assert!(run.ok().out().contains("The campaign did not end"));
    std::fs::remove_file(area.path().join("a/samples.jsonl")).unwrap();
    let run = report(area.path(), &["a", "--format", "html"]);
    assert!(run.ok().out().contains("No load curves were recorded."));
}
