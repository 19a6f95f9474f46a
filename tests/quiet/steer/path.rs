//! History of the number of jobs in the summary.

use super::files;
use crate::common::case::{Run, case};
use crate::common::machine::Busy;
use crate::server::Stage;
use serde_json::Value;

/// History of a run: increasing times, jobs of at least 1, rates that are numbers or null.
#[track_caller]
fn path(run: &Run) -> Vec<u64> {
    let summary = run.ok().summary();
    let path = summary["jobs_path"].as_array().unwrap_or_else(|| panic!("no path: {summary}"));
    let mut before_s = 0.0;
    let jobs = path.iter().map(|point| {
        let at_s = point["t_s"].as_f64().unwrap();
        assert!(at_s >= before_s, "{summary}");
        before_s = at_s;
        assert!(point["rate"].is_null() || point["rate"].as_f64().unwrap() >= 0.0, "{summary}");
        point["jobs"].as_u64().unwrap()
    });
    let jobs: Vec<u64> = jobs.collect();
    assert!(!jobs.is_empty() && jobs.iter().all(|jobs| *jobs >= 1), "{summary}");
    let verdict = &summary["verdict"];
    assert!(verdict["resource"].is_string() && verdict["level"].is_string(), "{summary}");
    assert!(verdict["evidence"].is_array() && verdict["advice"].is_string(), "{summary}");
    jobs
}

#[test]
fn short_runs_have_one_too() {
    for line in ["sync -a --json SRC/ DST", "cp -r --json SRC DST", "mv --json SRC DST"] {
        case(line, |c| {
            files(&c.src(), 1, 7);
            let run = c.run();
            // A rename transfers nothing, so there is nothing to steer.
            if line.starts_with("mv") {
                assert_eq!(run.ok().summary()["jobs_path"], Value::Null);
            } else {
                path(&run);
                assert_eq!(run.summary()["verdict"]["level"], "not-determined");
            }
        });
    }
}

#[test]
fn a_fixed_number_stays() {
    case("sync -a --json -j 3 --bwlimit=2m SRC/ DST", |c| {
        files(&c.src(), 6, 1 << 20);
        let run = c.run();
        assert_eq!(path(&run), [3]);
        assert_eq!(run.summary()["jobs"], 3);
    });
}

/// A server with a latency of 50 ms: 32 requests at once are far from enough.
#[test]
fn auto_grows_where_that_pays_and_fixed_does_not() {
    let stage = Stage::new();
    let server = stage.null("--keys 6000 --object-size 100 --latency 50ms");
    let run = server.run("sync -r --json s3://bkt/ null:");
    let jobs = path(&run);
    assert!(jobs.iter().max() > Some(&48), "{jobs:?}");
    let fixed = server.run("sync -r --json -j 32 s3://bkt/ null:");
    assert_eq!(path(&fixed), [32]);
    let took = |run: &Run| run.summary()["real_s"].as_f64().unwrap();
    assert!(took(&run) < took(&fixed), "{} s, fixed {} s", took(&run), took(&fixed));
}

/// A server on this machine, whose CPUs others use as well: more requests only wait in its queue.
#[test]
fn auto_does_not_flood_a_server_that_queues() {
    let stage = Stage::new();
    files(&stage.src(), 6000, 10_000);
    let server = stage.serve("");
    let busy = Busy::all_cpus();
    let run = server.run("sync -r --json --no-memory SRC/ s3://bkt/");
    drop(busy);
    let jobs = path(&run);
    let summary = run.summary();
    let steps = summary["jobs_path"].as_array().unwrap();
    let at_s = |step: &Value| step["t_s"].as_f64().unwrap();
    let ends = steps.iter().skip(1).map(at_s).chain([summary["real_s"].as_f64().unwrap()]);
    // The longest stretch with more than twice the first number.
    let (mut longest_s, mut over_s) = (0.0_f64, 0.0);
    for (step, end_s) in steps.iter().zip(ends) {
        let over = step["jobs"].as_u64().unwrap() > 64;
        over_s = if over { over_s + end_s - at_s(step) } else { 0.0 };
        longest_s = longest_s.max(over_s);
    }
    assert!(jobs.iter().max() <= Some(&256), "{jobs:?}");
    assert!(longest_s <= 2.0, "{longest_s:.1} s with more than 64: {jobs:?}");
    assert!(summary["jobs"].as_u64() <= Some(64), "{summary}");
}
