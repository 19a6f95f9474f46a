//! Output of `status`: once, as JSON, for Prometheus, and live on a terminal.

use super::{Stage, soon, tree};
use crate::common::grow::set_mtime;
use crate::common::have;
use crate::common::terminal::on_terminal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

#[test]
fn status_says_how_far_a_run_is() {
    let stage = Stage::new();
    tree(&stage.src(), 4);
    stage.ok("cluster plan -a --shard-size=1M --run RUN SRC/ DST");
    let status = |stage: &Stage| -> Value {
        let run = stage.ok("cluster status --json RUN");
        serde_json::from_str(run.out().trim()).unwrap()
    };
    let shards = stage.plan()["shards"].as_array().unwrap().len();
    let before = status(&stage);
    assert_eq!((&before["shards"], &before["done"]["shards"]), (&shards.into(), &0.into()));
    stage.workers(2);
    let after = status(&stage);
    assert_eq!(after["done"]["shards"], shards);
    assert_eq!(after["workers"].as_array().unwrap().len(), 2);
    assert!(after["workers"].as_array().unwrap().iter().all(|w| w["state"] == "ended"), "{after}");
    assert_eq!(after["collected"], false);
    let text = stage.area.join("metrics.prom");
    let line = format!("cluster status --textfile={} RUN", text.display());
    assert!(stage.ok(&line).out().contains(&format!("{shards} of {shards} shards")));
    let metrics = std::fs::read_to_string(&text).unwrap();
    assert!(metrics.contains("# TYPE hakobu_cluster_shards_done gauge\n"), "{metrics}");
    let done = metrics.lines().find(|line| line.starts_with("hakobu_cluster_shards_done{"));
    assert!(done.unwrap().ends_with(&format!(" {shards}")), "{metrics}");
    assert_eq!(std::fs::metadata(stage.run()).unwrap().permissions().mode() & 0o777, 0o700);
    stage.ok("cluster collect RUN");
    assert_eq!(status(&stage)["collected"], true);
}

#[test]
fn status_is_live_on_a_terminal() {
    if !have("script", "a terminal") {
        return;
    }
    let stage = Stage::new();
    for name in ["a", "b", "c"] {
        std::fs::write(stage.src().join(name), vec![7; 3_000_000]).unwrap();
        set_mtime(&stage.src().join(name), 1_700_000_000, 0);
    }
    stage.ok("cluster plan -a --bwlimit=1M --shard-size=1M --run RUN SRC/ DST");
    let worker = stage.start("cluster work --stale-after=2s RUN");
    assert!(soon(|| stage.dst().exists()));
    // It ends when all shards are done.
    let shown = on_terminal(&stage.command("cluster status RUN", None));
    let screens: Vec<String> =
        shown.ok().out().split("\x1b[H\x1b[J").skip(1).map(str::to_owned).collect();
    assert!(screens.len() >= 3, "{shown}");
    assert!(screens.iter().any(|screen| screen.contains(" s left")), "{shown}");
    assert!(screens.iter().any(|screen| screen.contains("  shard ")), "{shown}");
    assert!(screens.last().unwrap().contains("3 of 3 shards"), "{shown}");
    worker.end().ok();
    stage.ok("cluster collect RUN");
}
