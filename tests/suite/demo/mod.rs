//! `hakobu demo` works from end to end, reports correctly, and leaves nothing behind.

use crate::common::area::Area;
use crate::common::case::on_terminal;
use crate::common::have;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A place that is `TMPDIR`, home and state folder at once: whatever is left behind is in it.
struct Stage {
    area: Area,
}

impl Stage {
    fn new() -> Stage {
        Stage { area: Area::tmpfs() }
    }

    /// `hakobu demo` with these words, in an environment that would lead anything else astray.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(crate::common::program());
        command.arg("demo").args(line.split_whitespace());
        let dir = self.area.join("");
        command.env("TMPDIR", &dir).env("HOME", &dir).env("XDG_STATE_HOME", &dir);
        command.env("AWS_PROFILE", "nobody").env("AWS_ACCESS_KEY_ID", "wrong");
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn left(&self) -> Vec<PathBuf> {
        let names = std::fs::read_dir(self.area.join("")).unwrap();
        names.map(|entry| entry.unwrap().path()).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of the row of a step: files, bytes, requests.
fn row(said: &str, step: &str) -> [String; 3] {
    let line = said.lines().find_map(|line| line.strip_prefix(&format!("{step}  ")));
    let line = line.unwrap_or_else(|| panic!("no row for {step} in\n{said}"));
    let fields: Vec<&str> = line.split_whitespace().collect();
    [0, 1, 4].map(|at| fields[at].to_owned())
}

#[test]
fn files_go_up_and_down_and_nothing_is_left() {
    let stage = Stage::new();
    let output = stage.run("--files 120 --size 3000 --large 20M");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    for step in ["make the files", "sync up", "sync down", "verify up", "verify down"] {
        assert_eq!(row(&said, step)[..2], ["121", "21,331,520"], "{step}:\n{said}");
    }
    assert_eq!(row(&said, "sync up again")[..2], ["0", "0"], "{said}");
    let requests: u64 = row(&said, "sync up")[2].parse().unwrap();
    assert!((121..300).contains(&requests), "{said}");
    let last = said.lines().last().unwrap();
    assert_eq!(last, "verified: 121 files, 21,331,520 bytes, 0 differences");
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_terminal_shows_progress_and_a_verdict() {
    if !have("script", "a terminal") {
        return;
    }
    let stage = Stage::new();
    let run = on_terminal(&stage.command(""));
    let said = run.ok().out();
    // What erases a bar stands before the line that follows it.
    let lines = said.replace("\x1b[2K", "\n").replace('\r', "");
    let bars = said.split("\x1b[2K").filter(|part| part.contains(" files") && part.contains('%'));
    assert!(bars.count() >= 2, "no bar: {said}");
    // The sample comes first, and then as many files as the upload takes some seconds for.
    let files = |step| row(&lines, step)[0].replace(',', "").parse::<u64>().unwrap();
    assert_eq!(files("sync a sample"), 201, "{said}");
    assert!((41..=6001).contains(&files("sync up")), "{said}");
    let verdict = lines.lines().find_map(|line| line.strip_prefix("sync up: "));
    assert!(verdict.is_some_and(|verdict| verdict.trim().ends_with('.')), "{said}");
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
}

#[test]
fn what_is_kept_is_what_was_carried() {
    let stage = Stage::new();
    let output = stage.run("--files 3 --size 10 --large 0 --keep");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let kept = said.lines().last().unwrap().strip_prefix("kept: ").unwrap();
    let kept = PathBuf::from(kept);
    assert_eq!(stage.left(), std::slice::from_ref(&kept));
    let read = |name: &str| std::fs::read(kept.join(name).join("0000/000002.bin")).unwrap();
    assert_eq!(read("files").len(), 10);
    assert_eq!(read("files"), read("copy"));
    // The store is a folder whose folders are its buckets.
    assert_eq!(read("files"), read("store/demo/files"));
}

#[test]
fn a_signal_ends_it_cleanly() {
    for signal in [Signal::INT, Signal::TERM] {
        let stage = Stage::new();
        let mut command = stage.command("--files 20000 --size 1K --large 200M");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // In the middle of the upload.
        lines.find(|line| line.as_ref().unwrap().starts_with("make the files")).unwrap().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        kill_process(Pid::from_child(&child), signal).unwrap();
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(1), None), "{told}");
        assert!(!rest.iter().any(|line| line.starts_with("verified")), "{rest:?}");
        assert_eq!(told, "hakobu: interrupted\n");
        assert_eq!(stage.left(), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_cannot_be_written_is_told_and_cleared_away() {
    let stage = Stage::new();
    let program = crate::common::program();
    // A limit of the size of files, in units of 512 or 1024 bytes.
    let script = "ulimit -f 8 && trap '' XFSZ && exec \"$0\" demo --files 2 --size 100K";
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program).env("TMPDIR", stage.area.join(""));
    let output = command.env("XDG_STATE_HOME", stage.area.join("")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let told = text(&output.stderr);
    assert!(told.contains("cannot write") && told.contains("File too large"), "{told}");
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_place_that_does_not_do_is_named() {
    let stage = Stage::new();
    let output = stage.command("").env("TMPDIR", stage.area.join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("cannot create a directory in") && told.contains("none"), "{told}");
    let output = stage.run("--files=1 --large=900000T");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("hint: fewer files"), "{}", text(&output.stderr));
    assert_eq!(stage.left(), Vec::<PathBuf>::new());
    assert_eq!(stage.run("x").status.code(), Some(2));
}
