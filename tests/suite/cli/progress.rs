//! Progress compared with the actual transfer: on a terminal, in a pipe, as JSON, and on a signal.

use crate::cli::arguments::{case, files};
use crate::common::case::{Case, Run, on_terminal};
use crate::common::{have, program, side_by_side};
use crate::objects::stage::{Stage, stage};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MB: u64 = 1 << 20;

fn local(c: &Case, line: &str) -> Command {
    let mut command = Command::new(program());
    command.args(c.words(line, &c.dst()));
    command
}

/// So many files of so many bytes.
fn fill(dir: &Path, count: usize, bytes: u64) {
    std::fs::create_dir_all(dir).unwrap();
    for n in 0..count {
        std::fs::write(dir.join(format!("f{n}")), vec![b'x'; bytes as usize]).unwrap();
    }
}

/// The progress events of a run.
fn events(run: &Run) -> Vec<Value> {
    let lines = run.out();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "progress").collect()
}

fn number(event: &Value, name: &str) -> f64 {
    event[name].as_f64().unwrap_or_else(|| panic!("{name} in {event}"))
}

/// Checks what a run at a constant rate told: bytes as they move, a total that holds, and a time left that does.
fn is_true(run: &Run, all: u64, per_s: u64) {
    let events = events(run.ok());
    assert!(events.len() >= 3, "only {} events: {run}", events.len());
    let (all, per_s) = (all as f64, per_s as f64);
    let took = number(&run.summary(), "real_s");
    let mut last = 0.0;
    for event in &events {
        let (elapsed, bytes) = (number(event, "elapsed_s"), number(event, "bytes"));
        assert!(bytes >= last && bytes <= number(event, "bytes_total"), "{event}: {run}");
        last = bytes;
        // Never behind by more than a tenth or a second and a half of the rate, where the machine keeps to it; a rate
        // may begin with what it has saved up.
        let at_least = (elapsed - 1.5) * per_s * 0.9;
        if took < all / per_s * 1.3 {
            assert!(
                bytes >= at_least.min(all * 0.9),
                "{bytes} of {at_least} at {elapsed} s: {run}"
            );
        }
        assert!(bytes <= (elapsed + 1.5) * per_s * 1.1, "{bytes} at {elapsed} s: {run}");
        let listed = event["listed"].as_bool().unwrap();
        if listed && elapsed > took / 2.0 {
            let total = number(event, "bytes_total");
            assert!((total - all).abs() <= all * 0.1, "a total of {total}: {run}");
            let (left, right) = (number(event, "left_s"), took - elapsed);
            assert!(
                (left - right).abs() <= right * 0.25 + 1.5,
                "{left} s left, not {right}: {run}"
            );
        }
        assert!(event["fraction"].is_null() != listed, "{event}");
    }
    assert!(events.iter().any(|event| number(event, "bytes") > all * 0.2), "{run}");
}

#[test]
fn bytes_of_many_files_and_of_a_large_one() {
    for (count, bytes) in [(40, MB / 2), (1, 20 * MB)] {
        case("sync -a --json --bwlimit=4m SRC/ DST", |c| {
            fill(&c.src(), count, bytes);
            is_true(&c.run(), 20 * MB, 4 * MB);
        });
    }
}

#[test]
fn bytes_up_and_down() {
    side_by_side([(40, MB / 2), (1, 20 * MB)], |(count, bytes)| {
        let s = stage();
        fill(&s.src(), count, bytes);
        is_true(&s.run("cp -r --json --bwlimit=4m SRC/ SPOT/"), 20 * MB, 4 * MB);
        is_true(&s.run("cp -r --json --bwlimit=4m SPOT/ DST"), 20 * MB, 4 * MB);
    });
}

#[test]
fn a_bar_comes_by_itself_after_a_second() {
    if !have("script", "a terminal") {
        return;
    }
    let shown = |run: &Run| {
        let text = run.ok().out();
        for word in [" %", "MB of ", " left", "/s (mean ", " files", " job"] {
            assert!(text.contains(word), "no {word:?}: {run}");
        }
        // No colours, and the last bar is gone.
        assert!(!text.contains("\x1b[3") && !text.contains("\x1b[1;"), "{run}");
        let last = text.rsplit("\x1b[2K").next().unwrap_or_default();
        assert!(!last.contains(" left"), "a bar stays: {run}");
    };
    let up = |s: &Stage, line: &str| on_terminal(&s.command(line));
    for line in ["sync -a --bwlimit=4m SRC/ DST", "cp --bwlimit=4m SRC/f0 DST"] {
        case(line, |c| {
            fill(&c.src(), 1, 12 * MB);
            shown(&on_terminal(local(c, &c.line).env("NO_COLOR", "1")));
        });
    }
    let s = stage();
    fill(&s.src(), 12, MB);
    shown(&up(&s, "cp -r --bwlimit=4m SRC/ SPOT/"));
    shown(&up(&s, "cp -r --bwlimit=4m SPOT/ DST"));
}

#[test]
fn nothing_is_drawn_where_nobody_wants_it() {
    if !have("script", "a terminal") {
        return;
    }
    for line in ["sync -a --no-progress --bwlimit=4m SRC/ DST", "sync -aq --bwlimit=4m SRC/ DST"] {
        case(line, |c| {
            fill(&c.src(), 1, 8 * MB);
            let run = on_terminal(&local(c, line));
            assert!(!run.ok().out().contains('\x1b'), "{run}");
        });
    }
    case("sync -aq --bwlimit=4m SRC/ DST", |c| {
        fill(&c.src(), 1, 8 * MB);
        let run = on_terminal(&local(c, &c.line));
        assert_eq!(run.ok().out(), "", "{run}");
    });
}

#[test]
fn a_pipe_has_lines_only_where_they_are_asked_for() {
    case("sync -a --bwlimit=4m SRC/ DST", |c| {
        fill(&c.src(), 1, 12 * MB);
        let run = c.run();
        assert_eq!(run.ok().err(), "", "{run}");
    });
    case("sync -a --progress --bwlimit=4m SRC/ DST", |c| {
        fill(&c.src(), 1, 12 * MB);
        let run = c.run();
        let text = run.ok().err();
        let lines: Vec<&str> =
            text.lines().filter(|line| line.contains(" left, 0/1 files, ")).collect();
        assert!((1..=12).contains(&lines.len()), "{run}");
        assert!(lines.iter().all(|line| line.contains("MB of 12.58 MB, ")), "{run}");
        assert!(!text.contains('\r') && !text.contains('\x1b'), "{run}");
    });
}

#[test]
fn sigusr1_asks() {
    case("sync -aq --bwlimit=4m SRC/ DST", |c| {
        fill(&c.src(), 1, 12 * MB);
        let mut child = local(c, &c.line).stderr(Stdio::piped()).spawn().unwrap();
        // The handler is there when the copy has begun.
        let begun = Instant::now();
        while !c.dst().exists() {
            assert!(begun.elapsed() < Duration::from_secs(20), "nothing is copied");
            std::thread::sleep(Duration::from_millis(10));
        }
        let kill = Command::new("kill").args(["-USR1", &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let status = child.wait().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut text).unwrap();
        assert!(status.success(), "{status}: {text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1, "{text}");
        assert!(lines[0].contains("of 12.58 MB") && lines[0].contains("0/1 files"), "{text}");
    });
}

#[test]
fn the_limit_of_now_is_named_from_five_seconds_on() {
    case("sync -a --json --bwlimit=2m SRC/ DST", |c| {
        fill(&c.src(), 1, 15 * MB);
        let run = c.run();
        let events = events(run.ok());
        let mut early = events.iter().filter(|event| number(event, "elapsed_s") < 5.0);
        assert!(early.all(|event| event["limit"].is_null()), "{run}");
        let late: Vec<&Value> =
            events.iter().filter(|event| number(event, "elapsed_s") >= 6.0).collect();
        // Others may keep the copy below its limit.
        if number(&run.summary(), "real_s") < 9.0 {
            assert!(late.iter().any(|event| event["limit"] == "--bwlimit"), "{run}");
        }
    });
}

#[test]
fn the_first_three_failures_have_names() {
    case("sync -a SRC/ DST", |c| {
        files(&c.src(), &["a", "b", "c", "d", "e"]);
        for name in ["a", "b", "c", "d", "e"] {
            files(&c.dst(), &[&format!("{name}/in/the/way")]);
        }
        let run = c.run();
        let text = run.expect(23).err();
        assert_eq!(text.matches("hakobu: cannot ").count(), 3, "{run}");
        assert!(text.contains("and 2 more like these (-v shows all)"), "{run}");
        assert!(!text.contains("os error"), "{run}");
    });
}

/// Bytes that a process has written so far, by the kernel's count.
fn written(child: &Child) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    line.parse().unwrap()
}

/// Bytes moved in a line such as `33 %, 33.28 MB of 100.00 MB, …`.
fn shown(line: &str) -> u64 {
    let at = line.find(" MB of ").unwrap_or_else(|| panic!("no amount in {line:?}"));
    let start = line[..at].rfind(' ').map_or(0, |space| space + 1);
    (line[start..at].parse::<f64>().unwrap() * 1e6) as u64
}

#[test]
fn what_is_shown_is_what_moved() {
    for (count, bytes) in [(64, MB / 2), (1, 32 * MB)] {
        case("sync -aq --bwlimit=8m SRC/ DST", |c| {
            fill(&c.src(), count, bytes);
            let mut child = local(c, &c.line).stderr(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            // Before that there may be no handler.
            while written(&child) < 3 * MB {
                std::thread::sleep(Duration::from_millis(10));
            }
            for _ in 0..10 {
                let before = written(&child);
                let kill = Command::new("kill").args(["-USR1", &child.id().to_string()]).status();
                assert!(kill.unwrap().success());
                let line = lines.next().unwrap().unwrap();
                let (moved, after) = (shown(&line), written(&child));
                let off = before.saturating_sub(moved).max(moved.saturating_sub(after));
                assert!(
                    off <= (after / 10).max(MB),
                    "{line:?} when between {before} and {after} bytes were written: {}",
                    c.line
                );
                std::thread::sleep(Duration::from_millis(150));
            }
            assert!(child.wait().unwrap().success(), "{}", c.line);
        });
    }
}
