//! Changed files are sent as differences from what the target has.

use super::shell;
use crate::common::area::{Area, state_home};
use crate::common::case::{Case, Run};
use crate::common::diff::Fields;
use crate::common::program;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes without repetition.
fn random(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed << 1 | 1;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// A case whose line has `SHELL` in it.
fn far(line: &str) -> Case {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let shell = shell(&from, "").display().to_string();
    let case = Case::new(&line.replace("SHELL", &shell), from, to);
    fs::create_dir_all(case.src()).unwrap();
    fs::create_dir_all(case.dst()).unwrap();
    case
}

/// Writes a file of the target, older than any of the source.
fn old(case: &Case, name: &str, content: &[u8]) {
    let path = case.dst().join(name);
    fs::write(&path, content).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Returns the numbers of bytes that `--stats` calls literal and matched.
fn data(run: &Run) -> (u64, u64) {
    let text = run.out();
    let of = |label: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(label));
        let line = line.unwrap_or_else(|| panic!("no {label:?} in {run}"));
        line.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    (of("Literal data: "), of("Matched data: "))
}

/// Changes by their names.
fn changed(content: &[u8], how: usize) -> Vec<u8> {
    let mut new = content.to_vec();
    let (length, middle) = (new.len(), new.len() / 2);
    match how {
        0 => new[middle] ^= 1,
        1 => new.insert(0, b'x'),
        2 => drop(new.drain(1000..1007)),
        3 => new.rotate_left(length / 3),
        4 => new.truncate(length - 4097),
        5 => new.extend(random(70_000, 3)),
        6 => new[middle..].fill(0),
        7 => new = random(length, 77),
        8 => drop(new.splice(middle..middle, vec![0; 40_000])),
        _ => {}
    }
    new
}

#[test]
fn changes_arrive_in_both_directions() {
    let sizes = [65_535, 65_536, 65_537, 131_072, 700_001, 8_388_608, 8_388_609, 17_000_000];
    for (number, options) in [
        "",
        "--inplace",
        "-S",
        "--partial",
        "--inplace -S -b",
        "-j 1 -b",
        "--delay-updates --preallocate",
        "--partial-dir=.kept --no-whole-file",
        "--inplace --no-whole-file -z",
    ]
    .into_iter()
    .enumerate()
    {
        for places in ["SRC/ h:DST", "h:SRC/ DST"] {
            let case = far(&format!("sync -a --stats {options} -e SHELL {places}"));
            for (at, size) in sizes.into_iter().enumerate() {
                for how in 0..10 {
                    // The large ones with some changes only.
                    if size > 1_000_000 && (how + at + number) % 5 != 0 {
                        continue;
                    }
                    let (name, content) = (format!("{size}-{how}"), random(size, at as u64 + 1));
                    fs::write(case.src().join(&name), changed(&content, how)).unwrap();
                    old(&case, &name, &content);
                }
            }
            let kept = if options.contains("-b") { 1 } else { 0 };
            let before = fs::read_dir(case.dst()).unwrap().count();
            let run = case.run();
            let (_, matched) = data(run.ok());
            assert!(matched > 10_000_000, "{run}");
            for entry in fs::read_dir(case.src()).unwrap().flatten() {
                let there = fs::read(case.dst().join(entry.file_name())).unwrap();
                assert!(
                    there == fs::read(entry.path()).unwrap(),
                    "{:?} differs: {run}",
                    entry.file_name()
                );
            }
            assert_eq!(fs::read_dir(case.dst()).unwrap().count(), before * (1 + kept), "{run}");
            let again = case.run();
            assert_eq!(data(again.ok()), (0, 0), "{again}");
        }
    }
}

/// What is literal is little more than what has changed.
#[test]
fn unchanged_parts_are_not_sent() {
    for places in ["SRC/ h:DST", "h:SRC/ DST"] {
        for (how, options, most) in [
            (0, "", 4096),
            (0, "--inplace", 4096),
            (1, "", 4097),
            (2, "", 8192),
            (2, "--inplace", 8192),
            (3, "", 12_288),
            (4, "", 4096),
            (5, "", 74_096),
            (9, "", 0),
            (9, "-W", 20_000_000),
            (9, "--no-W", 0),
        ] {
            let case = far(&format!("sync -a --stats {options} -e SHELL {places}"));
            let content = random(20_000_000, 5);
            let new = changed(&content, how);
            fs::write(case.src().join("f"), &new).unwrap();
            old(&case, "f", &content);
            let run = case.run();
            let (literal, matched) = data(run.ok());
            assert_eq!(literal + matched, new.len() as u64, "{run}");
            assert!(literal <= most && (options != "-W" || matched == 0), "{how} {run}");
            case.target_is_source(&Fields::ALL);
        }
    }
}

/// Content that repeats itself costs no more than its length.
#[test]
fn shifted_zeroes_are_found_at_once() {
    let case = far("sync -a --stats -e SHELL SRC/ h:DST");
    let size = 96 << 20;
    File::create(case.src().join("f")).unwrap().set_len(size).unwrap();
    File::options()
        .write(true)
        .open(case.src().join("f"))
        .unwrap()
        .write_all_at(b"shifted", 0)
        .unwrap();
    old(&case, "f", b"");
    File::options().write(true).open(case.dst().join("f")).unwrap().set_len(size - 5).unwrap();
    let begun = Instant::now();
    let run = case.run();
    let (literal, _) = data(run.ok());
    assert!(literal <= 2 * 8192, "{run}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{run}");
    case.target_is_source(&Fields { holes: false, ..Fields::ALL });
}

/// Returns whether the target's file is as it was, or as the source's: whatever looks finished is.
fn is_whole(case: &Case) -> bool {
    let (from, to) = (case.src().join("f"), case.dst().join("f"));
    let (source, target) = (fs::metadata(&from).unwrap(), fs::metadata(&to).unwrap());
    let looks_finished =
        source.modified().unwrap() == target.modified().unwrap() && source.len() == target.len();
    !looks_finished || fs::read(from).unwrap() == fs::read(to).unwrap()
}

#[test]
fn killed_amid_differences() {
    let content = random(24 << 20, 9);
    let mut new = content.clone();
    new.iter_mut().step_by(50_000).for_each(|byte| *byte ^= 1);
    new.splice(0..0, random(1_000_000, 8));
    for line in [
        "sync -a -e SHELL SRC/ h:DST",
        "sync -a --inplace -e SHELL h:SRC/ DST",
        "sync -a --partial -e SHELL SRC/ h:DST",
        "sync -a --inplace --partial -e SHELL SRC/ h:DST",
    ] {
        let case = far(line);
        fs::write(case.src().join("f"), &new).unwrap();
        old(&case, "f", &content);
        for round in 0..6_u64 {
            let mut child = Command::new(program())
                .args(case.words(&case.line, &case.dst()))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .env("XDG_STATE_HOME", state_home())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(15 + 19 * round));
            if round % 2 == 0 {
                let children = format!("/proc/{0}/task/{0}/children", child.id());
                let agents = fs::read_to_string(children).unwrap_or_default();
                let mut kill = Command::new("kill");
                kill.arg("-9").args(agents.split_whitespace()).stderr(Stdio::null());
                drop(kill.status());
            } else {
                drop(child.kill());
            }
            child.wait().unwrap();
            assert!(is_whole(&case), "{line}: it looks finished and is torn");
        }
        case.run().ok();
        case.target_is_source(&Fields::ALL);
    }
}

/// An end in Python. `SEND` is what it does after both have greeted.
const END: &str = r#"#!/usr/bin/env python3
import json, sys
out, into = sys.stdout.buffer, sys.stdin.buffer
def frame(kind, body): out.write(len(body).to_bytes(4, 'little') + bytes([kind]) + body); out.flush()
WIRE
def until(wanted):
    while True:
        head = into.read(5)
        if len(head) < 5: sys.exit(0)
        body = into.read(int.from_bytes(head[:4], 'little'))
        if head[4] == wanted: return body
def source(size):
    frame(2, directory(1)); frame(3, entries(1, 1, entry(b'f', 0, size)))
    until(6)
def patch(state, *ops, hash=None): frame(21, number(1) + bytes([0, state]) + (hash or b'') + b''.join(ops))
def same(at, length): return number(length << 1 | 1) + number(at)
def ask(at, blocks): return number(1) + number(at) + number(blocks)
def literal(content): return number(len(content) << 1) + content
def signs(chunk, index, flags, basis, first, count):
    frame(20, number(chunk) + bytes([index, flags]) + basis + number(first) + bytes(12 * count))
def basis(size, log): return number(size) + bytes([log]) + bytes(8)
def finish():
    frame(4, number(1) + b'\1'); frame(11, json.dumps({'totals': {}, 'stopped': False, 'fatal': None}).encode())
out.write(b'\0hakobu agent\r\n\0'); out.flush()
until(1)
facts = {'has_content': True, 'exists': True, 'is_missing': False, 'takes_new_name': False, 'takes_name': False, 'is_dir': True, 'is_link': False}
frame(1, json.dumps({'protocol': PROTOCOL, 'version': '0', 'task': None, 'facts': facts, 'is_here': False, 'place': None, 'refused': None}).encode())
SEND
into.read()
"#;

/// Runs against an end in Python. Returns the run and what the target has.
fn against(places: &str, send: &str) -> (Run, Vec<u8>) {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let agent = from.join("agent.py");
    let protocol = hakobu_transfer::far::PROTOCOL.to_string();
    fs::write(
        &agent,
        END.replace("WIRE", super::WIRE).replace("SEND", send).replace("PROTOCOL", &protocol),
    )
    .unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let shell = shell(&from, "");
    let (shell, agent) = (shell.display(), agent.display());
    let line = format!("sync -a -e {shell} --rsync-path={agent} {places}");
    let case = Case::new(&line, from, to);
    for dir in [case.src(), case.dst()] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(case.src().join("f"), vec![7; 200_000]).unwrap();
    old(&case, "f", &vec![b'o'; 100_000]);
    let run = case.run();
    assert_eq!(names(&case.dst()), ["f"], "{send}\n{run}");
    (run, fs::read(case.dst().join("f")).unwrap())
}

fn names(dir: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    fs::read_dir(dir).unwrap().flatten().map(name).collect()
}

/// A source end that sends differences that are none: the file stays.
#[test]
fn a_hostile_source_changes_nothing() {
    for send in [
        "source(100000); patch(0, same(0, 100001)); finish()",
        "source(100000); patch(0, same(2 ** 64 - 1, 5)); finish()",
        "source(100000); patch(0, same(99999, 2)); finish()",
        "source(100000); patch(0, same(0, 60000), same(0, 60000)); finish()",
        "source(100000); patch(0, same(0, 60000)); patch(0, same(0, 60000)); finish()",
        "source(100000); patch(0, same(0, 2 ** 62)); finish()",
        "source(100000); patch(0, literal(b'')); finish()",
        // Questions about more than there is, or than one may be about.
        "source(100000); patch(0, ask(0, 25)); finish()",
        "source(100000); patch(0, ask(2 ** 64 - 1, 1)); finish()",
        "source(100000); patch(0, ask(2 ** 64 - 4096, 1)); finish()",
        "source(100000); patch(0, ask(0, 0)); finish()",
        "source(100000); patch(0, ask(0, 65)); finish()",
        "source(100000); patch(0, ask(0, 2 ** 63)); finish()",
        "source(100000); patch(0, *[ask(0, 1)] * 1025); finish()",
        "source(100000); patch(0, ask(0, 24), ask(1696, 24)); until(29); until(29); sys.exit(0)",
        "source(100000); patch(0, number(2 ** 40)); finish()",
        "source(100000); patch(1, same(0, 99999), hash=bytes(16)); finish()",
        "source(100000); patch(1, same(0, 100000), hash=b'short'); finish()",
        "source(100000); patch(9); finish()",
        // It cannot be read, and yet nothing has failed.
        "source(100000); patch(3); finish()",
        "source(100000); patch(2); finish()",
        "source(100000); patch(0); frame(7, number(1) + bytes([0, 1]) + b'content'); finish()",
        "source(100000); patch(0, same(0, 5)); sys.exit(0)",
        "source(100000); patch(1, same(0, 100000), hash=bytes(16)); sys.exit(0)",
        // Not asked for: too small to be worth it, and never announced.
        "source(1000); patch(1, literal(b'x' * 1000), hash=bytes(16)); finish()",
        "source(100000); frame(21, number(9) + bytes([0, 0])); finish()",
        "source(100000); frame(21, number(1) + bytes([7, 0])); finish()",
        "source(100000); signs(1, 0, 0, b'', 0, 1)",
    ] {
        let (run, there) = against("h:SRC/ DST/", send);
        assert!(run.code != 0 && run.code < 126, "{send}\n{run}");
        assert!(there == vec![b'o'; 100_000], "{send}\n{run}");
    }
}

/// A file that is not what the other end has read comes again as a whole.
#[test]
fn what_is_wrong_is_sent_whole() {
    for options in ["", "--inplace "] {
        let send = "source(100000); patch(0, same(0, 90000)); until(8); patch(1, literal(b'n' * 10000), hash=bytes(16))\n\
                    if until(22)[-1] != 0: sys.exit(1)\n\
                    until(8)\n\
                    frame(26, number(1) + bytes([0]) + number(0) + bytes([1]) + b'w' * 100000); finish()";
        let (run, there) = against(&format!("{options}h:SRC/ DST/"), send);
        run.ok();
        assert!(there == vec![b'w'; 100_000], "{run}");
    }
}

/// What comes as a whole then, and cannot be read to its end, is an error, and the old file stays.
#[test]
fn what_is_wrong_twice_is_an_error() {
    let send = "source(100000); patch(1, literal(b'n' * 100000), hash=bytes(16))\n\
                if until(22)[-1] != 0: sys.exit(1)\n\
                until(8)\n\
                frame(26, number(1) + bytes([0]) + number(0) + bytes([2])); finish()";
    let (run, there) = against("h:SRC/ DST/", send);
    assert_eq!((run.code, there == vec![b'o'; 100_000]), (23, true), "{run}");
}

/// Somebody writes to the file that is replaced, while it is: the copy is the source's all the same.
#[test]
fn a_target_that_changes_meanwhile() {
    for (places, size) in [("SRC/ h:DST", 40 << 20), ("h:SRC/ DST", 9 << 20)] {
        let case = far(&format!("sync -a --bwlimit=20m -e SHELL {places}"));
        let content = random(size, 5);
        let mut new = content.clone();
        new.iter_mut().step_by(30_000).for_each(|byte| *byte ^= 1);
        fs::write(case.src().join("f"), &new).unwrap();
        old(&case, "f", &content);
        let there = File::options().write(true).open(case.dst().join("f")).unwrap();
        let is_over = AtomicBool::new(false);
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                // The new version, the old one, and something else, block by block.
                for at in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let from = at * 7919 % (size / 4096) * 4096;
                    let other = random(4096, at as u64);
                    let whole = [&new, &content][at / 3 % 2];
                    let block = if at % 3 == 0 { &*other } else { &whole[from..from + 4096] };
                    there.write_all_at(block, from as u64).unwrap();
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            let run = case.run();
            is_over.store(true, Ordering::Relaxed);
            run
        });
        run.ok();
        assert!(fs::read(case.dst().join("f")).unwrap() == new, "{run}");
        assert_eq!(names(&case.dst()), ["f"]);
    }
}

/// A target end whose hashes are none ends the run with an error.
#[test]
fn a_hostile_target_is_refused() {
    for send in [
        "until(3); signs(1, 0, 1, basis(200000, 40), 0, 0)",
        "until(3); signs(1, 0, 1, basis(2 ** 60, 12), 0, 0)",
        "until(3); signs(1, 0, 1, basis(0, 12), 0, 0)",
        "until(3); signs(1, 0, 9, basis(200000, 12), 0, 0)",
        "until(3); signs(7, 0, 1, basis(200000, 12), 0, 0)",
        "until(3); signs(1, 9, 1, basis(200000, 12), 0, 0)",
        "until(3); signs(1, 0, 1, basis(200000, 12), 0, 0); signs(1, 0, 1, basis(200000, 12), 0, 0)",
        "until(3); signs(1, 0, 1, basis(65536, 12), 16, 1)",
        "until(3); signs(1, 0, 1, basis(65536, 12), 2 ** 64 - 1, 1)",
        "until(3); signs(1, 0, 1, basis(65536, 12), 0, 9); signs(1, 0, 0, b'', 0, 9)",
        "until(3); frame(20, number(1) + bytes([0, 1]) + basis(65536, 12) + number(0) + bytes(7))",
        "until(3); frame(6, number(1) + bytes([0x42]))",
        "until(3); frame(22, number(1) + bytes([0, 7]))",
        // Answers to no question, and of another length.
        "until(3); signs(1, 0, 1, basis(200000, 12), 0, 0); frame(29, number(1) + bytes([0]) + bytes(8))",
        "until(3); signs(1, 0, 1, basis(200000, 14), 0, 13); frame(6, number(1) + bytes([0x40])); frame(8, number(1) + bytes([0]) + number(2 ** 40)); until(21); frame(29, number(1) + bytes([0]) + bytes(8))",
        "until(3); frame(29, number(1) + bytes([0]) + bytes(7))",
        "until(3); frame(29, number(1) + bytes([0]) + bytes(8 * 65))",
        "until(3); frame(6, number(1) + bytes([0x40])); sys.exit(0)",
        "until(3); signs(1, 0, 1, basis(2 ** 40, 20), 0, 0); frame(6, number(1) + bytes([0x40])); until(21); sys.exit(0)",
    ] {
        let (run, _) = against("SRC/ h:DST/", send);
        assert!(run.code != 0 && run.code < 126, "{send}\n{run}");
    }
}
