//! Commands on the command line, in hyperfine's syntax.

use crate::bench::{bench, lines, number, of_kind, run, runs};
use crate::common::area::Area;
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn a_sweep_of_sleeps() {
    let area = Area::tmpfs();
    let ran = bench(
        &area,
        &["-w", "1", "-r", "3", "-L", "time", "0.02,0.06", "-n", "sleeper", "-N", "sleep {time}"],
    );
    ran.ok().says(&["results go to 'out'"]);
    assert!(ran.out().contains("sleeper"), "{ran}");
    let lines = lines(&area.join("out"));
    let header = &lines[0];
    assert_eq!(header["line"], "header");
    assert_eq!((&header["x_name"], &header["metric"]), (&"time".into(), &"wall_s".into()));
    let cells = header["cells"].as_array().unwrap();
    // Two values, and the last one again as a control.
    assert_eq!(cells.len(), 3);
    assert_eq!(cells[2]["control_of"], 1);
    assert_eq!(cells[1]["command"], "sleep 0.06");
    assert_eq!((&cells[1]["series"], &cells[1]["x"]), (&"sleeper".into(), &0.06.into()));
    let tool = &header["tools"][0];
    assert_eq!((&tool["name"], tool["sha256"].as_str().unwrap().len()), (&"sleep".into(), 64));
    assert!(tool["version"].as_str().unwrap().contains("sleep"), "{tool}");
    assert!(number(header, "/start_costs_s/exec") > 0.0);
    assert!(header["idle_load"]["cpu_percent"].is_number(), "{header}");
    let runs = of_kind(&lines, "run");
    assert_eq!(runs.len(), 12);
    for (place, run) in runs.iter().enumerate() {
        assert_eq!(run["block"], place / 3);
        assert_eq!(run["warmup"], place < 3);
        assert_eq!(run["ok"], true);
        let least = [0.02, 0.06, 0.06][run["cell"].as_u64().unwrap() as usize];
        let wall_s = number(run, "/wall_s");
        assert!(wall_s >= least && wall_s < least + 1.0, "{run}");
        assert!(number(run, "/user_s") + number(run, "/sys_s") < wall_s, "{run}");
    }
    // Each cell once in each block, in varying order.
    let orders: BTreeSet<Vec<u64>> = runs
        .chunks(3)
        .map(|block| block.iter().map(|run| run["cell"].as_u64().unwrap()).collect())
        .collect();
    assert!(orders.iter().all(|order| order.iter().collect::<BTreeSet<_>>().len() == 3));
    assert!(orders.len() > 1, "{orders:?}");
    let end = lines.last().unwrap();
    assert_eq!((&end["line"], &end["reason"]), (&"end".into(), &"done".into()));
    assert!(number(end, "/overhead") < 0.5, "{end}");
    let samples = std::fs::read_to_string(area.join("out/samples.jsonl")).unwrap();
    assert_eq!(samples.lines().count(), 12);
    let left: Vec<_> = std::fs::read_dir(area.join("out")).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn what_fails_is_failed() {
    let area = Area::tmpfs();
    let ran = bench(
        &area,
        &[
            "-r",
            "2",
            "--no-control",
            "--timeout",
            "300ms",
            "true",
            "echo no room >&2; exit 4",
            "sleep 100 | cat",
            "kill -9 $$",
            "no-such-program-here",
        ],
    );
    ran.expect(1).says(&["ended with exit code 4; it said: no room", "took longer than 0.3 s"]);
    assert_eq!(ran.err().matches("\nhint: ").count(), 1, "{ran}");
    for run in runs(&area) {
        let problem = run["problem"].as_str().unwrap_or_default();
        let (said, code) = [
            ("", Some(0)),
            ("ended with exit code 4; it said: no room", Some(4)),
            ("took longer than 0.3 s and was killed", None),
            ("was killed by signal 9", None),
            ("ended with exit code 127", Some(127)),
        ][run["cell"].as_u64().unwrap() as usize];
        assert!(problem.contains(said) && problem.is_empty() == said.is_empty(), "{run}");
        assert_eq!(run["exit_code"].as_i64(), code, "{run}");
        assert_eq!(run["ok"], said.is_empty(), "{run}");
        assert!(number(&run, "/wall_s") < 20.0, "{run}");
    }
    // Exit codes can be accepted; a signal is still a failure.
    let area = Area::tmpfs();
    bench(&area, &["-r", "1", "-i", "exit 3"]).ok();
    assert_eq!(runs(&area)[0]["exit_code"], 3);
    let area = Area::tmpfs();
    bench(&area, &["-r", "1", "-i", "kill -TERM $$"]).expect(1);
    let area = Area::tmpfs();
    bench(&area, &["-r", "1", "-N", "/no/such/program"])
        .expect(1)
        .says(&["cannot run '/no/such/program'"]);
}

#[test]
fn an_output_without_end_needs_no_memory() {
    let area = Area::tmpfs();
    let ran = bench(&area, &["-r", "1", "--timeout", "400ms", "-N", "yes"]);
    ran.expect(1).says(&["took longer than 0.4 s and was killed; it said: y"]);
}

#[test]
fn before_and_after() {
    let area = Area::tmpfs();
    let script = |name: &str| format!("echo {name} {{n}} >> log");
    let words = [
        "-r",
        "1",
        "-w",
        "1",
        "--no-control",
        "-L",
        "n",
        "1,2",
        "-s",
        &script("setup"),
        "-p",
        &script("prepare"),
        "-C",
        &script("conclude"),
        "-c",
        &script("cleanup"),
        &script("run"),
    ];
    bench(&area, &words).ok();
    let log = std::fs::read_to_string(area.join("log")).unwrap();
    let log: Vec<&str> = log.lines().collect();
    assert_eq!(log.len(), 2 + 4 * 3 + 2, "{log:?}");
    assert_eq!(
        (&log[..2], &log[14..]),
        (&["setup 1", "setup 2"][..], &["cleanup 1", "cleanup 2"][..])
    );
    for three in log[2..14].chunks(3) {
        let n = three[0].rsplit(' ').next().unwrap();
        let wanted = ["prepare", "run", "conclude"].map(|word| format!("{word} {n}"));
        assert_eq!(three, wanted);
    }
    // A failed command before or after a run fails the run; a failed setup ends everything.
    let area = Area::tmpfs();
    bench(&area, &["-r", "1", "-p", "exit 5", "echo ran >> log"])
        .expect(1)
        .says(&["could not be prepared: 'exit 5' ended with exit code 5"]);
    assert!(!area.join("log").exists());
    let area = Area::tmpfs();
    let ran =
        bench(&area, &["-r", "1", "-s", "exit 6", "-c", "echo cleared >> log", "echo ran >> log"]);
    ran.expect(1).says(&["setup: 'exit 6' ended with exit code 6"]);
    assert_eq!(std::fs::read_to_string(area.join("log")).unwrap(), "cleared\n");
}

#[test]
fn exports_are_hyperfines() {
    let area = Area::tmpfs();
    let words = [
        "-r",
        "2",
        "-L",
        "x",
        "1,2",
        "--export-json",
        "a.json",
        "--export-csv",
        "a.csv",
        "--export-markdown",
        "a.md",
        "-q",
        "true {x}",
    ];
    let ran = bench(&area, &words);
    ran.ok();
    assert_eq!((ran.out(), ran.err()), (String::new(), String::new()));
    let text = std::fs::read_to_string(area.join("a.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let results = value["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for (at, one) in results.iter().enumerate() {
        let keys: BTreeSet<&str> = one.as_object().unwrap().keys().map(String::as_str).collect();
        let wanted = [
            "command",
            "mean",
            "stddev",
            "median",
            "user",
            "system",
            "min",
            "max",
            "times",
            "memory_usage_byte",
            "exit_codes",
            "parameters",
        ];
        assert_eq!(keys, BTreeSet::from(wanted));
        assert_eq!(one["command"], format!("true {}", at + 1));
        assert_eq!(one["parameters"]["x"], (at + 1).to_string());
        let times = one["times"].as_array().unwrap();
        assert_eq!((times.len(), &one["exit_codes"]), (2, &serde_json::json!([0, 0])));
        let mean = times.iter().map(|time| time.as_f64().unwrap()).sum::<f64>() / 2.0;
        assert!((number(one, "/mean") - mean).abs() < 1e-12, "{one}");
        assert!(number(one, "/min") <= number(one, "/median") && number(one, "/stddev") >= 0.0);
    }
    let csv = std::fs::read_to_string(area.join("a.csv")).unwrap();
    assert!(csv.starts_with("command,mean,stddev,median,user,system,min,max,parameter_x\ntrue 1,"));
    let table = std::fs::read_to_string(area.join("a.md")).unwrap();
    assert!(
        table.starts_with("| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n"),
        "{table}"
    );
    // If it cannot be written, the measurement is kept.
    let area = Area::tmpfs();
    bench(&area, &["-r", "1", "--export-json", "/no/such/a.json", "true"])
        .expect(1)
        .says(&["cannot write '/no/such/a.json'"]);
    assert_eq!(runs(&area).len(), 1);
}

#[test]
fn usage() {
    let area = Area::tmpfs();
    for (words, said) in [
        (&["bench"][..], "missing command or campaign"),
        (&["bench", "-r", "0", "true"], "invalid --runs '0': must be at least 1"),
        (&["bench", "none.toml"], "cannot read 'none.toml'"),
        (&["bench", "--style", "loud", "true"], "invalid --style 'loud': give auto, basic"),
        (&["bench", "--only", "7", "true"], "no configuration '7'"),
        (&["results"], "missing subcommand"),
        (&["results", "export", "--format=xml"], "none of csv, hyperfine"),
    ] {
        run(&area, words).expect(2).says(&[said]);
    }
    // Nothing was started.
    assert_eq!(std::fs::read_dir(area.path()).unwrap().count(), 0);
    let dry = bench(&area, &["--dry-run", "-r", "3", "-L", "jobs", "1,2", "echo {jobs} > ran"]);
    dry.ok();
    for said in [
        "3 configurations of 3 runs",
        "at most 9 runs",
        "echo 2 > ran",
        "the same as 1",
        "first block",
    ] {
        assert!(dry.out().contains(said), "{said}: {dry}");
    }
    assert_eq!(std::fs::read_dir(area.path()).unwrap().count(), 0);
}

#[test]
fn enough_is_enough() {
    let area = Area::tmpfs();
    bench(&area, &["-m", "3", "-M", "1000", "--budget", "1s", "sleep 0.2"]).ok();
    let end = lines(&area.join("out")).pop().unwrap();
    let count = runs(&area).len();
    assert!((3..=6).contains(&count), "{count}: {end}");
    assert!(["budget", "tight"].contains(&end["reason"].as_str().unwrap()), "{end}");
}

#[test]
fn experiments_change_one_thing() {
    let area = Area::tmpfs();
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        crate::common::skip("experiments with CPUs: needs two of them");
        return;
    }
    // It takes long because it may not use all CPUs; no other load changes that.
    let script = format!("test $(nproc) -ge {cpus} && sleep 0.05 || sleep 0.5");
    bench(&area, &["-r", "3", "--prove", &script]).ok();
    let experiments = of_kind(&lines(&area.join("out")), "experiment");
    let made = experiments.iter().find(|made| made["changed"] == "cpus").unwrap();
    assert_eq!(made["about"], format!("cpus {cpus} → {}", cpus / 2));
    let ratios: Vec<f64> =
        made["ratios"].as_array().unwrap().iter().map(|ratio| ratio.as_f64().unwrap()).collect();
    assert!(ratios.len() == 5 && ratios.iter().all(|ratio| *ratio < 0.8), "{made}");
}
