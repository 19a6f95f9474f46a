//! Another end that does not keep to the protocol: nothing is written outside of the target, nothing is deleted, and the run
//! ends with an error, whether that end goes on or is silent.

use crate::common::area::Area;
use crate::common::case::Case;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// An agent in Python: greets as the source end, and sends what the test says.
const AGENT: &str = r#"#!/usr/bin/env python3
import json, sys
out = sys.stdout.buffer
def frame(kind, body): out.write(len(body).to_bytes(4, 'little') + bytes([kind]) + body); out.flush()
WIRE
out.write(b'\0hakobu agent\r\n\0'); out.flush()
head = sys.stdin.buffer.read(5)
sys.stdin.buffer.read(int.from_bytes(head[:4], 'little'))
facts = {'has_content': True, 'exists': True, 'is_missing': False, 'takes_new_name': False, 'takes_name': False, 'is_dir': True, 'is_link': False}
hello = {'protocol': 1, 'version': '0', 'task': None, 'facts': facts, 'is_here': False, 'place': None, 'refused': None}
frame(1, json.dumps(hello).encode())
bye = json.dumps({'totals': {}, 'stopped': False, 'fatal': None}).encode()
SEND
sys.stdin.buffer.read()
"#;

/// What a hostile source end sends, one case a line.
const CASES: &[&str] = &[
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'../x', 0, 1, b'x')))",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'a/b', 0, 1, b'x')))",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'..', 0, 1, b'x')))",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'a\\0b', 0, 1, b'x')))",
    "frame(2, directory(1)); frame(2, directory(2, 1, b'..'))",
    "frame(2, directory(1)); frame(2, directory(2, 1, b'a/b'))",
    "frame(2, directory(1, path=b'../..'))",
    "frame(3, entries(7, 1, entry(b'x', 0, 1, b'x')))",
    "frame(2, directory(2, 1, b'x'))",
    "frame(2, directory(1)); frame(2, directory(1))",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 5, b'x')))",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 9)))",
    "frame(2, directory(1)); frame(7, number(1) + bytes([0, 1]) + b'content that nobody asked for')",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 1)))",
    "frame(2, directory(1)); frame(3, entries(1, 1))",
    "frame(2, directory(1)); frame(26, number(1) + bytes([0]) + number(5) + bytes([0]) + b'x'); sys.exit(0)",
    "frame(2, directory(1)); frame(26, number(1) + bytes([0]) + number(5) + bytes([9]) + b'x')",
    "frame(27, bytes([0]))",
    "frame(27, bytes([9]))",
    "frame(27, bytes([1]) + b'../../socket')",
    "frame(27, bytes([1])); frame(11, bye)",
    "frame(28, bytes([2]))",
    "[frame(28, bytes([0])) for n in range(100)]",
    "frame(4, number(3) + b'\\1')",
    "frame(4, number(3) + b'\\7')",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 5))); frame(18, number(1) + bytes([0]) + number(3))",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 5))); frame(18, number(1) + bytes([9]) + number(0))",
    "frame(18, number(1) + bytes([0]) + number(0))",
    "frame(17, number(1) + bytes([0]) + number(3))",
    "frame(19, bytes([0]) + number(5) + text(b'a\\0b'))",
    "frame(19, bytes([7]) + number(5) + text(b'a'))",
    "frame(19, bytes([0]) + number(1 << 40) + text(b'a'))",
    "frame(19, bytes([0]) + number(5) + text(b'a' * 300))",
    "frame(99, b'')",
    "frame(6, number(1))",
    "frame(11, b'no json')",
    "out.write(b'\\xff\\xff\\xff\\xff\\x03'); out.flush()",
    "out.write(b'\\x05\\0'); out.flush(); sys.exit(0)",
    "sys.exit(0)",
    "frame(2, directory(1)); [frame(3, entries(1, n, *[entry(b'f%d-%d' % (n, k)) for k in range(64)])) for n in range(1, 3000)]; sys.exit(0)",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'out', 2, 3, None, b'/dev'))); frame(2, directory(2, 1, b'out')); frame(3, entries(2, 2, entry(b'shm-hakobu-hostile', 0, 1, b'x'))); sys.exit(0)",
];

/// A case whose `h:` is this script.
fn before(script: &str, line: &str) -> Case {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let agent = from.join("agent.py");
    fs::write(&agent, script.replace("WIRE", super::WIRE)).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let shell = super::shell(&from, "");
    let options = format!("sync -e {} --rsync-path={}", shell.display(), agent.display());
    Case::new(&line.replacen("sync", &options, 1), from, to)
}

#[test]
fn nothing_leaves_the_target() {
    for send in CASES {
        let case = before(&AGENT.replace("SEND", send), "sync -a h:SRC/ DST/");
        fs::create_dir(case.dst()).unwrap();
        fs::write(case.place("beside"), "beside").unwrap();
        let run = case.run();
        assert!(run.code != 0 && run.code < 126, "{send}\n{run}");
        let mut there: Vec<_> = fs::read_dir(case.dst().parent().unwrap())
            .unwrap()
            .flatten()
            .map(|it| it.file_name())
            .collect();
        there.sort();
        assert_eq!(there, ["beside", "dst"], "{send}\n{run}");
        assert!(!std::path::Path::new("/dev/shm-hakobu-hostile").exists(), "{send}");
    }
}

/// Content of another length than announced is no file. It is sent after a ping (6 bytes) and two answers, that the directory is new (6 bytes) and
/// that the content is wanted (7).
#[test]
fn content_has_its_size() {
    for send in [
        "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 5))); sys.stdin.buffer.read(19); frame(7, number(1) + bytes([0, 1]) + b'four'); frame(4, number(1) + b'\\1'); frame(11, bye)",
        "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 3))); sys.stdin.buffer.read(19); frame(7, number(1) + bytes([0, 1]) + b'four'); frame(4, number(1) + b'\\1'); frame(11, bye)",
        "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 5))); sys.stdin.buffer.read(19); frame(7, number(1) + bytes([0, 2])); frame(4, number(1) + b'\\1'); frame(11, bye)",
    ] {
        let case = before(&AGENT.replace("SEND", send), "sync -a h:SRC/ DST/");
        fs::create_dir(case.dst()).unwrap();
        let run = case.run();
        assert_eq!(run.code, 23, "{send}\n{run}");
        assert!(!case.dst().join("x").exists(), "{send}\n{run}");
    }
}

/// What follows the greeting where the end is silent afterwards: it does not even notice that it is left.
const SILENT: &str = "os.close(2)
def wait(kind):
    while True:
        head = sys.stdin.buffer.read(5)
        body = sys.stdin.buffer.read(int.from_bytes(head[:4], 'little'))
        if not head: time.sleep(30)
        if head[4] == kind: return body
D = number(1)
SEND
time.sleep(30)
";

fn silent(send: &str) -> String {
    let (greeting, _) = AGENT.split_once("SEND").unwrap();
    let script = greeting.replace("import json, sys", "import json, os, sys, time") + SILENT;
    script.replace("SEND", send)
}

/// Runs a line against an end that sends this and is silent.
fn against(send: &str, line: &str, fill: impl FnOnce(&Case)) -> Case {
    let case = before(&silent(send), line);
    fill(&case);
    let begun = Instant::now();
    let run = case.run();
    assert!(begun.elapsed() < Duration::from_secs(20), "{send}: it was waited for\n{run}");
    assert!(run.code != 0 && run.code < 124, "{send}\n{run}");
    case
}

fn files(at: &std::path::Path, names: &[&str]) {
    for name in names {
        fs::create_dir_all(at.join(name).parent().unwrap()).unwrap();
        fs::write(at.join(name), name).unwrap();
    }
}

/// What a source end sends to have the target's files deleted without having been asked, or leaves out.
const DELETIONS: &[&str] = &[
    "frame(15, D + b'\\1\\377')",
    "frame(2, directory(1)); frame(15, D + b'\\1\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(15, D + b'\\1\\377\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(15, D + b'\\1')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(15, D + b'\\2\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(15, number(2) + b'\\1\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(15, D + b'\\1\\0'); frame(15, D + b'\\1\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(15, D + b'\\0\\0'); frame(15, D + b'\\1\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\0'); frame(15, D + b'\\1\\377')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(4, D + b'\\1')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(2, directory(1)); frame(4, D + b'\\1')",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(2, directory(2, 1, b'old'))",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(3, entries(1, 1, entry(b'x')))",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); frame(11, bye)",
    "frame(2, directory(1)); frame(11, bye)",
    "frame(2, directory(1)); frame(25, b'')",
    "frame(2, directory(1)); frame(25, b'x')",
    "frame(14, D + b'\\1' + text(b'old'))",
    "frame(14, D + b'\\1' + text(b'..'))",
    "frame(16, D + b'\\0\\1')",
    "frame(5, D)",
    "frame(8, D + b'\\0\\0')",
    "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'old', 7)))",
    "frame(2, directory(1)); frame(4, D + b'\\1'); wait(14); os._exit(0)",
];

#[test]
fn nothing_is_deleted_without_an_answer() {
    for (number, send) in DELETIONS.iter().enumerate() {
        let options = ["--delete", "--delete-before", "--delete --force --ignore-errors"];
        // In a pass before the transfer there are no entries, and a pass that ends is none.
        let options =
            options.get(number % 3).filter(|_| !send.contains("frame(3")).unwrap_or(&"--delete");
        let case = against(send, &format!("sync -a {options} h:SRC/ DST/"), |case| {
            files(&case.dst(), &["old", "dir/old"]);
        });
        assert_eq!(fs::read(case.dst().join("old")).unwrap(), b"old", "{send}");
        assert_eq!(fs::read(case.dst().join("dir/old")).unwrap(), b"dir/old", "{send}");
        assert_eq!(fs::read_dir(case.dst()).unwrap().count(), 2, "{send}");
    }
}

/// An end that is done before its part is: no run says that all is well.
#[test]
fn what_does_not_come_is_missing() {
    for send in [
        "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 5))); wait(6); frame(4, D + b'\\1'); frame(11, bye)",
        "frame(2, directory(1)); frame(3, entries(1, 1, entry(b'x', 0, 300000))); wait(6); frame(7, D + b'\\0\\0' + b'x' * 9); frame(4, D + b'\\1'); frame(11, bye)",
        "frame(2, directory(1)); frame(2, directory(2, 1, b'sub')); frame(4, D + b'\\1'); frame(11, bye)",
    ] {
        let case = against(send, "sync -a h:SRC/ DST/", |_| {});
        assert!(!case.dst().join("x").exists(), "{send}");
    }
}

/// A name that comes twice is one entry.
#[test]
fn names_that_are_repeated() {
    for send in [
        "frame(3, entries(1, 1, entry(b'x', 0, 5), entry(b'y'), entry(b'x', 0, 5))); wait(6); frame(7, D + b'\\0\\1' + b'12345')",
        "frame(3, entries(1, 1, entry(b'x', 0, 5), entry(b'y'))); frame(3, entries(1, 2, entry(b'x', 0, 5))); wait(6); wait(6); frame(7, D + b'\\0\\1' + b'12345')",
        "frame(3, entries(1, 1, entry(b'x', 0, 5, b'12345'), entry(b'x', 0, 5, b'67890'), entry(b'y')))",
    ] {
        let send = format!(
            "frame(2, directory(1)); {send}; frame(4, D + b'\\1'); frame(11, bye); sys.exit(0)"
        );
        let case = before(&silent(&send), "sync -a h:SRC/ DST/");
        case.run().expect(0);
        assert_eq!(fs::read(case.dst().join("x")).unwrap(), b"12345", "{send}");
        assert!(case.dst().join("y").exists(), "{send}");
    }
}

/// What a target end sends to have sources removed, or to be told more than it may know.
const REMOVALS: &[&str] = &[
    "frame(16, number(99) + b'\\0\\1')",
    "wait(3); frame(16, D + b'\\77\\1')",
    "wait(3); frame(16, D + b'\\377\\1')",
    "wait(3); frame(16, D + b'\\0\\7')",
    "wait(3); frame(16, D + b'\\0\\0'); frame(16, D + b'\\0\\1')",
    "wait(3); frame(6, number(9))",
    "wait(3); frame(6, D + b'\\77')",
    "wait(3); frame(6, D + b'\\0\\0')",
    "wait(3); frame(6, D + b'\\0'); frame(6, D + b'\\0')",
    "frame(14, number(1 << 40) + b'\\1' + text(b'f'))",
    "wait(2); frame(14, D + b'\\1' + text(b'..'))",
    "wait(2); frame(14, D + b'\\1' + text(b'a/b'))",
    "wait(2); frame(14, D + b'\\1' + text(b'a\\0b'))",
    "wait(2); frame(14, D + b'\\1' + text(b''))",
    "wait(3); frame(6, D); n = wait(4)[:1]; frame(14, n + b'\\0')",
    "wait(3); frame(6, D); n = wait(4)[:1]; frame(14, n + b'\\1'); frame(14, n + b'\\1' + text(b'x'))",
    "wait(3); frame(6, D); n = wait(4)[:1]; frame(14, n + b'\\1' + text(b'x')); frame(14, n + b'\\1' + text(b'x'))",
    "wait(3); frame(6, D); n = wait(4)[:1]; frame(14, n + b'\\1' + text(b'x') * 5000)",
    "wait(3); frame(6, D); n = wait(4)[:1]; frame(14, n + b'\\1' + text(b'x' * 4000) * 30)",
    "frame(15, D + b'\\1\\377')",
    "frame(25, b'')",
    "frame(2, directory(1))",
    "frame(3, entries(1, 1, entry(b'x')))",
    "frame(4, D + b'\\1')",
    "frame(7, D + b'\\0\\1x')",
    "frame(11, bye)",
    "wait(3); frame(11, bye)",
    "frame(1, b'{}')",
    "wait(3); os._exit(0)",
];

#[test]
fn no_source_is_removed_for_a_lie() {
    for send in REMOVALS {
        let line = "sync -a --delete --remove-source-files SRC/ h:DST/";
        let case = against(send, line, |case| files(&case.src(), &["f", "dir/g"]));
        assert_eq!(fs::read(case.src().join("f")).unwrap(), b"f", "{send}");
        assert_eq!(fs::read(case.src().join("dir/g")).unwrap(), b"dir/g", "{send}");
    }
    // Nobody asked whether anything arrived.
    let send = "wait(3); frame(16, D + b'\\0\\1')";
    let case = against(send, "sync -a SRC/ h:DST/", |case| files(&case.src(), &["f"]));
    assert_eq!(fs::read(case.src().join("f")).unwrap(), b"f");
}
