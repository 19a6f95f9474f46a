//! All formats, from a folder to a file or standard output.

use super::folder::{LARGE, Recipe, USUAL, make};
use super::report;
use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::{have, must, program, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder with results `a`, and `b` of a slower machine.
fn stage() -> Area {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    make(&area.path().join("b"), &Recipe { machine: "m5.small", slower: 2.0, ..USUAL });
    area
}

/// Parses a file as XML with an independent parser.
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
    // Only the requested file exists.
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
        place(&said.replace('"', "&quot;").replace('\'', "&#39;")) < place("<figure "),
        "the conclusion comes first"
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
    // The file of runs stands for its folder.
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
    // The program under test is only slightly optimised, and other tests run in parallel.
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
    assert!(run.ok().out().contains("The campaign is incomplete"));
    std::fs::remove_file(area.path().join("a/samples.jsonl")).unwrap();
    let run = report(area.path(), &["a", "--format", "html"]);
    let page = run.ok().out();
    assert!(page.contains("The campaign is incomplete") && !page.contains("Runs one after"));
}

#[test]
fn a_png_is_drawn_by_a_program_of_the_machine() {
    let area = stage();
    // Without a renderer: an error that lists them, and no file.
    let tools = area.join("tools");
    std::fs::create_dir(&tools).unwrap();
    let run = |name: &str, path: &Path| {
        let mut command = Command::new(program());
        command.args(["report", "a", "-o", name]).current_dir(area.path()).env("PATH", path);
        Run::new(format!("report a -o {name}"), command.output().unwrap())
    };
    let failed = run("none.png", &tools);
    failed.expect(1).says(&["rsvg-convert, resvg, inkscape, chromium", "or write .svg"]);
    assert!(!area.join("none.png").exists());
    // A renderer that writes something else, and one that fails.
    for (script, said) in [("cat", "did not write a PNG"), ("exit 3", "exit status: 3")] {
        let path = tools.join("rsvg-convert");
        std::fs::write(&path, format!("#!/bin/sh\nPATH=/bin:/usr/bin; {script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        run("wrong.png", &tools).expect(1).says(&[said]);
        assert!(!area.join("wrong.png").exists());
    }
    if !have("chromium", "drawing a PNG") {
        return;
    }
    let made = report(area.path(), &["a", "-o", "report.png"]);
    made.ok();
    let png = std::fs::read(area.join("report.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 10_000, "{}", png.len());
    // Twice the size of the drawing: width and height follow the signature and the name of IHDR.
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let svg = report(area.path(), &["a", "--format", "svg"]);
    let svg = svg.ok().out();
    let height = svg.split(" height=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!((number(16), number(20)), (2000, 2 * height.parse::<u32>().unwrap()));
}

#[test]
fn sigusr1_asks_a_report_how_far_it_is() {
    let area = stage();
    // Load curves from a pipe that is still open make it wait.
    let curves = area.join("a/samples.jsonl");
    let text = std::fs::read(&curves).unwrap();
    std::fs::remove_file(&curves).unwrap();
    must(Command::new("mkfifo").arg(&curves));
    let mut command = Command::new(program());
    command.args(["report", "a", "-o", "report.html"]).current_dir(area.path());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Opening waits for the reader, which listens for the signal by then.
    let mut writer = std::fs::File::options().write(true).open(&curves).unwrap();
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("0 bytes of ") && line.contains("0/1 files"), "{line}");
    writer.write_all(&text).unwrap();
    drop(writer);
    assert!(child.wait().unwrap().success());
    assert!(area.join("report.html").exists());
}

// Unreadable input, unwritable output, and invalid command lines.

#[test]
fn exit_codes() {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    std::fs::create_dir(area.path().join("empty")).unwrap();
    for (line, code, said) in [
        ("none", 1, "cannot read 'none/results.jsonl'"),
        ("empty", 1, "'empty' holds no results: there is no results.jsonl in it"),
        ("a none -o x.html", 1, "cannot read 'none/results.jsonl'"),
        ("a -o no/such/x.html", 1, "cannot write 'no/such/x.html'"),
        ("a -o empty --format md", 1, "cannot write 'empty'"),
        ("", 2, "missing directory of results"),
        ("a --format pdf", 2, "invalid --format 'pdf': give html, md, csv, json, svg or png"),
        ("a --lang fr", 2, "invalid --lang 'fr': give en or ja"),
        ("a -o x", 2, "--output=x: its name does not end in"),
        ("a --nosuch", 2, "--nosuch"),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let run = report(area.path(), &words);
        run.expect(code).says(&[said]);
        assert!(run.stdout.is_empty(), "{run}");
    }
    // No partial file is left.
    assert_eq!(std::fs::read_dir(area.path()).unwrap().count(), 2);
    let run = report(area.path(), &["--help"]);
    assert!(run.ok().out().contains("hakobu report [OPTIONS] RESULT..."));
}

#[test]
fn a_broken_record_is_told_with_its_line() {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    let path = area.path().join("a/results.jsonl");
    let good = std::fs::read_to_string(&path).unwrap();
    let newer = good.replacen("\"schema\":1", "\"schema\":9", 1);
    assert_ne!(newer, good);
    let broken = good.replacen("\"line\":\"run\"", "\"line\":\"ran\"", 1);
    for (text, said) in [
        (newer.as_str(), "'a/results.jsonl', line 1: these results are of schema 9"),
        (broken.as_str(), "'a/results.jsonl', line 2: unknown variant"),
        ("", "'a/results.jsonl' is empty"),
        ("\u{0}\u{1}\n", "'a/results.jsonl', line 1: this is not the header"),
    ] {
        std::fs::write(&path, text).unwrap();
        report(area.path(), &["a"]).expect(1).says(&[said]);
    }
    std::fs::write(&path, good).unwrap();
    std::fs::write(area.path().join("a/samples.jsonl"), "{\"cell\":0}\n").unwrap();
    report(area.path(), &["a"]).expect(1).says(&["'a/samples.jsonl', line 1: missing field"]);
}

#[test]
fn a_full_standard_output_is_an_error() {
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(crate::common::program());
    command.current_dir(area.path()).args(["report", "a"]).stdout(full);
    let run =
        crate::common::case::Run::new("report a >/dev/full".into(), command.output().unwrap());
    run.expect(1).says(&["cannot write to standard output"]);
}

// The page in a real headless browser: light and dark, with and without scripts, and for print. The console
// stays empty, only the page is requested, and content is visible.

/// Command names of this family of browsers.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .filter(|program| program.is_file());
    let found = places.next();
    if found.is_none() {
        skip("the report in a browser: needs chromium");
    }
    found
}

/// The page at 1,280 and 390 pixels, in both languages, light and dark, with all details open: nothing is wider than
/// the page, and no cell of a table is cut or has lines of fewer than four full-width or six Latin characters.
#[test]
fn the_page_fits_wide_and_narrow() {
    let Some(browser) = browser() else { return };
    if !have("python3", "the report in a browser") {
        return;
    }
    let area = Area::tmpfs();
    make(&area.join("a"), &USUAL);
    make(&area.join("b"), &Recipe { machine: "other", slower: 3.0, ..USUAL });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/report/browse.py");
    for line in ["a", "a --lang ja", "a b --lang ja"] {
        let words: Vec<&str> = line.split(' ').chain(["-o", "page.html"]).collect();
        report(area.path(), &words).ok();
        let shots = area.join(&format!("shots of {line}"));
        std::fs::create_dir_all(&shots).unwrap();
        let mut command = Command::new("python3");
        let command = command.arg(script).arg(&browser).arg(area.join("page.html")).arg(&shots);
        let text = String::from_utf8(must(command.arg("layout"))).unwrap();
        let seen: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(seen.len(), 4, "{text}");
        for one in &seen {
            assert_eq!(one["scroll"], one["width"], "{line}: wider than the page: {one}");
            for what in ["wide", "narrow"] {
                assert_eq!(one[what], serde_json::json!([]), "{line}: {what}");
            }
            assert!(one["cells"].as_u64().unwrap() > 100, "{one}");
            // Charts are laid out for the width, not shrunk: their letters stay readable.
            let scales = one["charts"].as_array().unwrap();
            let is_readable = |scale: &serde_json::Value| scale.as_f64().unwrap() > 0.75;
            assert!(!scales.is_empty() && scales.iter().all(is_readable), "{one}");
        }
    }
}

/// A chart is saved by links in the page: as it is on white, also where the page is dark, and with its name.
#[test]
fn charts_are_saved_from_the_page() {
    let Some(browser) = browser() else { return };
    if !have("python3", "the report in a browser") {
        return;
    }
    let area = Area::tmpfs();
    make(&area.join("a"), &USUAL);
    report(area.path(), &["a", "-o", "page.html"]).ok();
    let files = area.join("files");
    std::fs::create_dir_all(&files).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/report/browse.py");
    let mut command = Command::new("python3");
    let command = command.arg(script).arg(&browser).arg(area.join("page.html")).arg(&files);
    let seen: serde_json::Value = serde_json::from_slice(&must(command.arg("save"))).unwrap();
    assert_eq!(seen["names"], serde_json::json!(["small-files.svg", "small-files.png"]));
    assert_eq!(seen["console"], serde_json::json!([]));
    let svg = seen["svg"].as_str().unwrap();
    assert!(svg.contains("viewBox=\"0 -44 1000 "), "{svg}");
    assert!(svg.contains(">Small files between two volumes</text>"), "{svg}");
    // It needs nothing of the page.
    for word in ["var(", "currentColor", "<script", "class="] {
        assert!(!svg.contains(word), "{word}: {svg}");
    }
    let number = |name: &str| seen[name].as_u64().unwrap();
    assert!(number("width") == 2000 && number("height") > 700, "{}", number("height"));
    assert_eq!(seen["corner"], serde_json::json!([255, 255, 255]));
    assert!(number("colours") > 50, "{}", number("colours"));
}

#[test]
fn names_can_be_left_out() {
    let area = stage();
    let plain = report(area.path(), &["a", "--format", "json"]);
    assert!(plain.ok().out().contains("\"m5.large\"") && plain.out().contains("src/ dst/"));
    for format in ["html", "md", "csv", "json"] {
        let run = report(area.path(), &["a", "b", "--redact", "--format", format]);
        let text = run.ok().out();
        for name in ["m5.large", "m5.small", "src/ dst/"] {
            // The published machine is no name of the house.
            let text = text.replace("m5.2xlarge", "");
            assert!(!text.contains(name), "{format}: {name}");
        }
        // The first host is this machine.
        assert!(text.contains("host2") && text.contains("dir1/ dir2/"), "{format}: {text}");
        // The same every time.
        assert_eq!(report(area.path(), &["a", "b", "--redact", "--format", format]).out(), text);
    }
}

#[test]
fn the_page_in_a_browser() {
    let Some(browser) = browser() else { return };
    if !have("python3", "the report in a browser") {
        return;
    }
    let area = Area::tmpfs();
    make(&area.path().join("a"), &USUAL);
    make(&area.path().join("b"), &Recipe { machine: "other", slower: 3.0, ..USUAL });
    for line in ["a -o page.html", "a b -o page.html --lang ja"] {
        report(area.path(), &line.split(' ').collect::<Vec<_>>()).ok();
        // A browser that is killed may still write: every line has its own.
        let shots = area.path().join(format!("shots of {line}"));
        std::fs::create_dir_all(&shots).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/report/browse.py");
        let page = area.path().join("page.html");
        let mut command = Command::new("python3");
        command.arg(script).arg(&browser).arg(&page).arg(&shots);
        let text = String::from_utf8(must(&mut command)).unwrap();
        let seen: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(seen.len(), 5, "{text}");
        for one in &seen {
            let number = |name: &str| one[name].as_f64().unwrap();
            assert_eq!(one["console"], serde_json::json!([]), "{one}");
            let asked = one["asked"].as_array().unwrap();
            assert!(asked.len() == 1 && asked[0].as_str().unwrap().ends_with("page.html"), "{one}");
            // Text and charts on a mostly blank background.
            assert!(number("colours") > 50.0, "a blank page: {one}");
            assert!((0.3..0.98).contains(&number("commonest")), "{one}");
            let is_printed = one["print"] == true;
            let is_dark = one["dark"] == true && !is_printed;
            assert_eq!(number("light") < 0.5, is_dark, "{one}");
            if is_printed {
                // Collapsed sections are expanded, and what cannot be used on paper is hidden.
                assert_eq!((&one["closed"], &one["shown"]), (&0.into(), &0.into()), "{one}");
                continue;
            }
            let cursor = one["cursor"].as_str().unwrap();
            let reads = cursor.contains("user") && cursor.contains(" s · ");
            assert_eq!(reads, one["scripts"] == true, "{one}");
        }
    }
}
