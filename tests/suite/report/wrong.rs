//! Unreadable input, unwritable output, and invalid command lines.

use crate::common::area::Area;
use crate::report::folder::{USUAL, make};
use crate::report::report;

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
        ("", 2, "give a folder of results"),
        ("a --format pdf", 2, "--format=pdf: give html, md, csv, json, svg or png"),
        ("a --lang fr", 2, "--lang=fr: give en or ja"),
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
