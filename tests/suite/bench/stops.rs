//! Interrupted campaigns, and resuming.

use crate::bench::{bench, hakobu, lines, of_kind, runs};
use crate::common::area::Area;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const WORDS: [&str; 9] = [
    "-r",
    "8",
    "-L",
    "n",
    "1,2",
    "--seed",
    "5",
    "--no-control",
    "echo $$ >> pids; sleep 0.15 # {n}",
];

/// Starts it and waits for this number of recorded runs.
fn start(area: &Area, words: &[&str], count: usize) -> Child {
    let words = [&["bench", "-o", "out"], words].concat();
    let child = hakobu(area, &words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait("runs", || {
        let text = std::fs::read_to_string(area.join("out/results.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("{\"line\":\"run\"")).count() >= count
    });
    child
}

#[track_caller]
fn wait(what: &str, is_there: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// True if a shell of the campaign still runs.
fn runs_still(area: &Area) -> bool {
    let pids = std::fs::read_to_string(area.join("pids")).unwrap_or_default();
    pids.lines().any(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("echo $$ >> pids")
    })
}

/// Blocks, places and cells of all runs, which depend on the seed only.
fn order(area: &Area) -> Vec<(u64, u64, u64)> {
    let number = |run: &serde_json::Value, name: &str| run[name].as_u64().unwrap();
    let of =
        |run: &serde_json::Value| (number(run, "block"), number(run, "place"), number(run, "cell"));
    runs(area).iter().map(of).collect()
}

#[test]
fn killed_and_gone_on_with() {
    let whole = Area::tmpfs();
    bench(&whole, &WORDS).ok();
    assert_eq!(order(&whole).len(), 16);

    let area = Area::tmpfs();
    let mut child = start(&area, &WORDS, 5);
    // While a command runs, so that it is left behind.
    wait("a command", || area.join("out/running").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = runs(&area);
    assert!(before.len() < 16, "{}", before.len());
    // State after a kill in the middle of a write.
    let path = area.join("out/results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap() + "{\"line\":\"run\",\"cell\":1,\"blo";
    std::fs::write(&path, text).unwrap();

    let again = bench(&area, &WORDS);
    again.ok().says(&["results go to 'out', which has", "runs already"]);
    assert_eq!(order(&area), order(&whole));
    assert_eq!(runs(&area)[..before.len()], before[..]);
    let lines = lines(&area.join("out"));
    assert_eq!(of_kind(&lines, "resumed").len(), 1);
    assert_eq!(of_kind(&lines, "header").len(), 1);
    assert_eq!(lines.last().unwrap()["reason"], "done");
    assert!(!area.join("out/running").exists());
    // A complete campaign is unchanged.
    bench(&area, &WORDS).ok();
    assert_eq!(runs(&area).len(), 16);
    // Another campaign is refused.
    bench(&area, &["-r", "8", "true"])
        .expect(1)
        .says(&["holds other results", "give a new directory"]);
    bench(&area, &[&["--seed", "6"], &WORDS[..5], &WORDS[7..]].concat())
        .expect(1)
        .says(&["their seed is '5', not '6'"]);
}

#[test]
fn an_interruption_is_clean() {
    use rustix::process::Signal;
    for stop in [Signal::INT, Signal::TERM] {
        let area = Area::tmpfs();
        let child = start(&area, &WORDS, 3);
        signal(&child, stop);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(
            said.contains("stopped; the same command with --results 'out' continues"),
            "{said}"
        );
        assert!(!runs_still(&area));
        let before = runs(&area);
        assert!(before.len() >= 3 && before.len() < 16, "{}", before.len());
        assert!(before.iter().all(|run| run["ok"] == true));
        assert_eq!(lines(&area.join("out")).last().unwrap()["reason"], "stopped");
        bench(&area, &WORDS).ok();
        assert_eq!(runs(&area).len(), 16);
    }
}

#[test]
fn two_at_once_do_not_mix() {
    let area = Area::tmpfs();
    let words = ["-r", "100", "-N", "sleep 0.3"];
    let child = start(&area, &words, 1);
    bench(&area, &words).expect(1).says(&["another hakobu writes to 'out'"]);
    // It was left alone.
    let count = runs(&area).len();
    wait("another run", || runs(&area).len() > count);
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert!(runs(&area).iter().all(|run| run["ok"] == true));
    let full = Area::tmpfs();
    std::fs::create_dir(full.join("out")).unwrap();
    std::fs::write(full.join("out/thesis.txt"), "").unwrap();
    bench(&full, &["-r", "1", "true"]).expect(1).says(&["is not empty (thesis.txt)"]);
}
