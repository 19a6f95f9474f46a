//! Sweeps: a matrix of settings as a campaign.

use crate::common::case::Run;
use crate::io::{area, hakobu, io, names};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn lines(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn other(folder: &Path, words: &[&str]) -> Run {
    Run::new(words.join(" "), hakobu(folder, words).output().unwrap())
}

#[test]
fn a_matrix_is_a_record_that_reports_read() {
    let area = area();
    let line = "--name=io --numjobs=1,2..4 --rw=read,randread --size=256k --bs=4k --repeat=3 --output=out \
        --precondition";
    let run = io(area.path(), line);
    run.ok().says(&["results go to 'out'", "preconditioning: 100%"]);
    assert!(run.out().contains("rw randread"), "{run}");
    let lines = lines(&area.join("out"));
    let header = &lines[0];
    for (key, value) in [("name", "io"), ("metric", "iops"), ("x_name", "numjobs")] {
        assert_eq!(header[key], value);
    }
    assert_eq!(header["more_is_better"], true);
    // Three numbers of jobs, two orders, and one of each order twice.
    let cells = header["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    let runs: Vec<&Value> = lines.iter().filter(|line| line["line"] == "run").collect();
    assert_eq!(runs.len(), 8 * 3);
    for run in &runs {
        assert_eq!(run["ok"], true, "{run}");
        for metric in ["iops", "bw_bytes_per_s", "clat_p50_ns", "clat_p99_ns", "clat_p999_ns"] {
            assert!(run["metrics"][metric].as_f64().unwrap() > 0.0, "{metric} in {run}");
        }
    }
    // Interleaved: each cell once in each block, in an order of its own.
    let order = |block: u64| {
        let of = runs.iter().filter(|run| run["block"] == block);
        of.map(|run| run["cell"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let sorted = |block| {
        let mut order = order(block);
        order.sort_unstable();
        order
    };
    assert_eq!((sorted(0), sorted(1)), ((0..8).collect(), (0..8).collect()));
    assert_ne!(order(0), order(1));
    assert_eq!(lines.last().unwrap()["reason"], "done");
    // The laid out files are gone, and the record is that of a campaign.
    assert!(!names(area.path()).iter().any(|name| name.starts_with("io.")));
    other(area.path(), &["report", "out", "-o", "page.html"]).ok();
    assert!(std::fs::read_to_string(area.join("page.html")).unwrap().contains("randread"));
    assert!(other(area.path(), &["results", "show", "out"]).ok().out().contains("numjobs"));
    // The output of each run is kept, that of controls separately.
    for (folder, cells) in [("0", 0..6), ("2", 0..6), ("2-control", 6..8)] {
        let folder = area.join("out/outputs").join(folder);
        let wanted: Vec<String> = cells.map(|cell| format!("{cell}.json")).collect();
        assert_eq!(names(&folder), wanted);
    }
    let text = std::fs::read_to_string(area.join("out/outputs/1/0.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let run = runs.iter().find(|run| run["cell"] == 0 && run["block"] == 1).unwrap();
    assert_eq!(document["jobs"][0]["read"]["iops"], run["metrics"]["iops"]);
    other(area.path(), &["results", "rm", "--force", "out"]).ok();
    assert_eq!(names(area.path()).iter().filter(|name| *name == "out").count(), 0);
}

#[test]
fn one_run_alone_has_its_own_options() {
    let area = area();
    let line = "--name=a --size=64k --numjobs=1,2";
    io(area.path(), &format!("{line} --output-format=json")).expect(2).says(&["--output-format"]);
    io(area.path(), &format!("{line} --status-interval=1")).expect(2).says(&["--status-interval"]);
    // And what sweeps have it has as well.
    let run = io(area.path(), "--name=a --rw=read --size=64k --precondition");
    run.ok().says(&["preconditioning: 100%"]);
    assert_eq!(names(area.path()), Vec::<String>::new());
}

#[test]
fn a_job_file_is_swept() {
    let area = area();
    std::fs::write(
        area.join("j.fio"),
        "[a]\nrw=randread\nsize=128k\niodepth=1\nioengine=io_uring\n",
    )
    .unwrap();
    io(area.path(), "j.fio --sweep=iodepth=1,4 --output=out").ok();
    let lines = lines(&area.join("out"));
    assert_eq!(lines[0]["x_name"], "iodepth");
    let commands =
        lines[0]["cells"].as_array().unwrap().iter().map(|cell| cell["command"].as_str());
    let commands: Vec<&str> = commands.map(Option::unwrap).collect();
    assert!(commands[1].contains("--sweep=iodepth=4"), "{commands:?}");
    assert!(lines.iter().filter(|line| line["line"] == "run").all(|run| run["ok"] == true));
}

#[test]
fn what_was_there_is_not_preconditioned() {
    let area = area();
    std::fs::write(area.join("thesis"), vec![9u8; 1 << 20]).unwrap();
    let line = "--name=io --numjobs=1,2 --rw=read --size=256k --filename=thesis --output=out";
    io(area.path(), &format!("{line} --precondition")).expect(1).says(&["thesis"]);
    io(area.path(), line).ok();
    assert!(std::fs::read(area.join("thesis")).unwrap() == vec![9u8; 1 << 20]);
}

#[test]
fn a_stopped_sweep_goes_on_and_can_be_compared() {
    let area = area();
    let line = "io --name=a --rw=randread --size=256k --numjobs=1,2 --time_based --runtime=300ms \
                --repeat=3 --output=out";
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = hakobu(area.path(), &words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let results = area.join("out/results.jsonl");
    let runs = || {
        let text = std::fs::read_to_string(&results).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("{\"line\":\"run\"")).count()
    };
    while runs() < 2 {
        assert!(Instant::now() < until, "no runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = Run::new(line.to_owned(), child.wait_with_output().unwrap());
    run.expect(130).says(&["stopped", "--output 'out' continues"]);
    assert_eq!(names(area.path()), ["out"], "what was laid out is gone");
    let before = runs();
    assert!((2..9).contains(&before), "{before}");
    other(area.path(), &words).ok();
    let lines = lines(&area.join("out"));
    let kinds = |kind: &str| lines.iter().filter(|line| line["line"] == kind).count();
    assert_eq!((kinds("run"), kinds("resumed"), kinds("end")), (9, 1, 2));
    assert_eq!(lines.last().unwrap()["reason"], "done");
    let mut made: Vec<_> = lines
        .iter()
        .filter(|line| line["line"] == "run")
        .map(|run| (run["block"].as_u64().unwrap(), run["cell"].as_u64().unwrap()))
        .collect();
    made.sort_unstable();
    let all: Vec<_> = (0..3).flat_map(|block| (0..3).map(move |cell| (block, cell))).collect();
    assert_eq!(made, all, "each cell once in each block");
    // Another one beside it.
    let again: Vec<&str> =
        words.iter().map(|w| if *w == "--output=out" { "--output=b" } else { w }).collect();
    other(area.path(), &again).ok();
    let said =
        other(area.path(), &["compare", "A=out", "B=b", "--price=A=0.1/h", "--price=B=0.2/h"]);
    let text = said.ok().out();
    assert!(["numjobs", "1M IOPS"].iter().all(|words| text.contains(words)), "{said}");
}
