//! Sweeps: a matrix of settings as a campaign.

use crate::common::case::Run;
use crate::{area, hakobu, io, names};
use serde_json::Value;
use std::path::Path;

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
    run.ok().says(&["results go to 'out'", "preconditioning: 100 %"]);
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
    // What was laid out is gone, and the record is one of campaigns.
    assert!(!names(area.path()).iter().any(|name| name.starts_with("io.")));
    other(area.path(), &["report", "out", "-o", "page.html"]).ok();
    assert!(std::fs::read_to_string(area.join("page.html")).unwrap().contains("randread"));
    assert!(other(area.path(), &["results", "show", "out"]).ok().out().contains("numjobs"));
}

#[test]
fn one_run_alone_has_its_own_options() {
    let area = area();
    let line = "--name=a --size=64k --numjobs=1,2";
    io(area.path(), &format!("{line} --output-format=json")).expect(2).says(&["--output-format"]);
    io(area.path(), &format!("{line} --status-interval=1")).expect(2).says(&["--status-interval"]);
    // And what sweeps have it has as well.
    let run = io(area.path(), "--name=a --rw=read --size=64k --precondition");
    run.ok().says(&["preconditioning: 100 %"]);
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
