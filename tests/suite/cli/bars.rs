//! Progress of commands that are no transfers, on a terminal: `verify`, `rm`, `du`, `cat`, `pipe`, `report`, `bench`, `io`.

use crate::common::area::Area;
use crate::common::case::{Run, on_terminal};
use crate::common::{have, must, program, side_by_side};
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
            &[" of at least ", "%, ", "/2,000 files", " left", "/s (avg "],
        ),
        ("rm -r -j 4 slow/t", "", &[" files", "files/s", "4 jobs"]),
    ];
    side_by_side(lines, |(line, before, words)| {
        let Some(slow) = Slow::new(before) else { return };
        let run = script(slow.place.path(), &format!("exec $H {line}"));
        drawn(&run, words);
        // The same, told not to.
        if line.starts_with("verify") {
            let run = script(slow.place.path(), &format!("exec $H {line} -q"));
            assert_eq!(run.ok().out(), "", "{run}");
        }
    });
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
    drawn(&run("$H cat s3://bkt/key >/dev/null"), &["MB", "MB/s (avg "]);
    drawn(&run("head -c 20000000 /dev/zero | $H pipe s3://bkt/key"), &["MB", "MB/s (avg "]);
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

/// Returns the final content of a terminal of so many columns: text, `\r`, `\n`, and the sequences that a display uses.
fn screen(text: &str, columns: usize) -> String {
    let (mut lines, mut at, mut column) = (vec![Vec::new()], 0, 0);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        lines.resize(lines.len().max(at + 1), Vec::new());
        match c {
            '\r' => column = 0,
            '\n' => at += 1,
            '\x1b' => {
                assert_eq!(rest.next(), Some('['), "{text:?}");
                let mut number = String::new();
                while let Some(digit) = rest.next_if(|c| c.is_ascii_digit() || *c == ';') {
                    number.push(digit);
                }
                let count = number.parse().unwrap_or(0);
                match rest.next() {
                    Some('A') => at = at.checked_sub(count.max(1)).expect("above the first line"),
                    Some('B') => at += count.max(1),
                    Some('K') if count == 2 => lines[at].clear(),
                    Some('m') => {}
                    other => panic!("{other:?} in {text:?}"),
                }
            }
            c => {
                // A full line goes on below, but only when there is more.
                if column == columns {
                    (at, column) = (at + 1, 0);
                }
                lines.resize(lines.len().max(at + 1), Vec::new());
                let line: &mut Vec<char> = &mut lines[at];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
    }
    let lines = lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs of `bench` and fio's state are shown where other commands have their bar, and go as it does.
#[test]
fn lines_of_bench_and_io() {
    if !have("script", "a terminal") {
        return;
    }
    let area = Area::tmpfs();
    let run = script(area.path(), "exec $H bench -w 0 -r 3 -o out 'sleep 0.1' 'sleep 0.2'");
    let text = run.ok().out();
    assert!(text.contains("run 2 of at most ") && text.contains(" left | "), "{run}");
    assert!(!screen(&text, 80).contains(" of at most "), "the line stays: {run}");
    // A message has a line of its own above, and the next run is shown below it.
    let run = script(area.path(), "exec $H bench -w 0 -r 2 -o bad 'exit 3' 'sleep 0.3'");
    let (text, shown) = (run.out(), screen(&run.out(), 80));
    let message = text.find("exit 3: ").unwrap_or_else(|| panic!("no message: {run}"));
    assert!(text[message..].contains(" of at most "), "{run}");
    let alone = |line: &str| line.starts_with("hakobu: exit 3: ") && !line.contains(" of at most ");
    assert!(shown.lines().any(alone) && !shown.contains(" of at most "), "{shown}\n{run}");
    let line =
        "exec $H io --name=a --ioengine=null --rw=read --bs=4k --size=1G --time_based --runtime=2";
    let run = script(area.path(), line);
    let text = run.ok().out();
    assert!(text.contains("Jobs: 1") && text.contains("IOPS][eta 00m:0"), "{run}");
    assert!(!screen(&text, 80).contains("[eta "), "the line stays: {run}");
}

/// The table of a sweep has several lines, which all go.
#[test]
fn the_table_of_a_sweep() {
    if !have("script", "a terminal") {
        return;
    }
    let area = Area::tmpfs();
    let line = "exec $H io --name=a --ioengine=null --rw=read,randread --bs=4k --size=1M \
                --numjobs=1,2 --time_based --runtime=1 --repeat=1 --output=out";
    let run = script(area.path(), line);
    let (text, shown) = (run.ok().out(), screen(&run.out(), 80));
    for words in ["run 2 of ", "rw randread ", "iops "] {
        assert!(text.contains(words), "no {words:?}: {run}");
    }
    assert!(!shown.contains(" left: rw "), "{shown}\n{run}");
}

/// Where lines cannot be redrawn they follow one another, if they are asked for.
#[test]
fn lines_of_bench_and_io_in_a_pipe() {
    let area = Area::tmpfs();
    let mut bench = Command::new(program());
    bench.args(["bench", "-w", "0", "-r", "2", "-o", "out", "--style=full", "true"]);
    let run = crate::common::case::run_fed(bench.current_dir(area.path()), b"");
    assert!(run.ok().err().lines().any(|line| line.starts_with("run 2 of at most 2 | ")), "{run}");
    assert!(!run.err().contains(['\r', '\x1b']), "{run}");
    let mut io = Command::new(program());
    io.args(["io", "--name=a", "--ioengine=null", "--rw=read", "--bs=4k", "--size=1G"]);
    io.args(["--time_based", "--runtime=2", "--eta=always"]);
    let run = crate::common::case::run_fed(io.current_dir(area.path()), b"");
    assert!(run.ok().err().lines().any(|line| line.starts_with("Jobs: 1")), "{run}");
    assert!(!run.err().contains(['\r', '\x1b']), "{run}");
}
