//! Progress of commands that are no transfers, on a terminal: `verify`, `rm`, `du`, `cat`, `pipe`, `report`, `bench`, `io`.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::terminal::on_terminal;
use crate::common::{have, must, program};
use crate::report::folder::{USUAL, make};
use crate::server::client::Served;
use crate::tools::slow::Slow;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Checks that a bar with these words was drawn, and that it is gone at the end.
#[track_caller]
fn drawn(run: &Run, words: &[&str]) {
    let text = run.ok().out();
    let bars: Vec<&str> = text.split("\x1b[2K").filter(|part| part.contains(" files")).collect();
    assert!(bars.len() >= 2, "no bar: {run}");
    for word in words {
        assert!(bars.iter().any(|bar| bar.contains(word)), "no {word:?}: {run}");
    }
    // Afterwards there is the line of totals at most.
    let last = text.rsplit("\x1b[2K").next().unwrap_or_default();
    let totals = last.contains("hakobu: ");
    assert!(totals || !last.contains(" files"), "a bar stays: {run}");
}

/// Runs a script with `$H` in a folder, on a terminal.
fn script(folder: &Path, text: &str) -> Run {
    let mut command = Command::new("bash");
    command.args(["-c", text]).current_dir(folder).env("H", program());
    command.env("XDG_STATE_HOME", folder.join("state"));
    on_terminal(&command)
}

/// On a file system with slow operations: 2,000 files, some seconds.
#[test]
fn trees_that_are_compared_measured_and_removed() {
    if !have("script", "a terminal") {
        return;
    }
    let lines = [
        ("du -s -j 4 slow/t", "", &[" files", "files/s", "4 jobs"][..]),
        (
            "verify --no-times -j 4 slow/t copy",
            "cp -a slow/t copy",
            &[" of at least ", " %", "/2,000 files", " left", "/s (mean "],
        ),
        ("rm -r -j 4 slow/t", "", &[" files", "files/s", "4 jobs"]),
    ];
    for (line, before, words) in lines {
        let Some(slow) = Slow::new(before) else { return };
        let run = script(slow.place.path(), &format!("exec $H {line}"));
        drawn(&run, words);
        // The same, told not to.
        if line.starts_with("verify") {
            let run = script(slow.place.path(), &format!("exec $H {line} -q"));
            assert_eq!(run.ok().out(), "", "{run}");
        }
    }
}

#[test]
fn objects_in_a_pipe() {
    if !have("script", "a terminal") {
        return;
    }
    let server = Served::start("null --bandwidth 8MB --object-size 20MB");
    let area = Area::tmpfs();
    let run = |line: &str| {
        let names = "AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_EC2_METADATA_DISABLED=true";
        let text = format!("export {names} AWS_ENDPOINT_URL={}; {line}", server.url());
        script(area.path(), &text)
    };
    drawn(&run("$H cat s3://bkt/key >/dev/null"), &["MB", "MB/s (mean "]);
    drawn(&run("head -c 20000000 /dev/zero | $H pipe s3://bkt/key"), &["MB", "MB/s (mean "]);
    // A bar among the content would be part of what one reads.
    let run = run("$H cat --range 0-9 s3://bkt/key");
    assert!(!run.ok().out().contains("\x1b["), "{run}");
}

#[test]
fn a_report_that_waits_for_its_load_curves() {
    if !have("script", "a terminal") {
        return;
    }
    let area = Area::tmpfs();
    make(&area.join("a"), &USUAL);
    let curves = area.join("a/samples.jsonl");
    let text = std::fs::read(&curves).unwrap();
    std::fs::remove_file(&curves).unwrap();
    must(Command::new("mkfifo").arg(&curves));
    let writer = std::thread::spawn(move || {
        let mut pipe = std::fs::File::options().write(true).open(&curves).unwrap();
        std::thread::sleep(Duration::from_millis(2500));
        pipe.write_all(&text).unwrap();
    });
    let run = script(area.path(), "exec $H report a -o a.html");
    writer.join().unwrap();
    drawn(&run, &["0/1 files", "bytes of "]);
}

/// These have lines of their own: the state of runs, and fio's.
#[test]
fn lines_of_bench_and_io() {
    if !have("script", "a terminal") {
        return;
    }
    let area = Area::tmpfs();
    let run = script(area.path(), "exec $H bench -w 0 -r 3 -o out 'sleep 0.1' 'sleep 0.2'");
    let text = run.ok().out();
    assert!(text.contains("run 2 of at most ") && text.contains(" left | "), "{run}");
    let last = text.rsplit("\r\x1b[K").next().unwrap_or_default();
    assert!(!last.contains(" of at most "), "the line stays: {run}");
    let line =
        "exec $H io --name=a --ioengine=null --rw=read --bs=4k --size=1G --time_based --runtime=2";
    let run = script(area.path(), line);
    let text = run.ok().out();
    assert!(text.contains("Jobs: 1") && text.contains("IOPS][eta 00m:0"), "{run}");
}
