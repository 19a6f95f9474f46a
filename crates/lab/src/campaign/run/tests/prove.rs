//! Counter-experiments on the simulated machine.

use super::*;
use crate::campaign::DiskLimits;
use crate::campaign::plan::DiskThrottle;

#[test]
fn experiments_are_made_in_pairs_and_once() {
    let mut plan = plan(&["a"], repeat(0, 3, 3));
    let server = ServerPlan {
        label: "s3".into(),
        listen: "127.0.0.1:4000".into(),
        latency: Duration::from_millis(1),
        ..ServerPlan::default()
    };
    plan.servers = vec![server];
    plan.cells[0].launch.env.insert("URL".into(), "http://127.0.0.1:4000".into());
    let dir = TestFolder::new();
    let mut fake = FakeBench::default();
    let how = SessionOptions { prove: true, cpus: 4 };
    let go = |fake: &mut FakeBench| {
        let mut store = ResultsStore::open(&dir.0, &header(&plan), "later").unwrap();
        run(&plan, &how, &mut store, fake, &mut |_| {}).unwrap()
    };
    // Stopped in the second pair of the first experiment, which stays incomplete.
    fake.stop_at = Some(6);
    assert!(go(&mut fake).is_stopped());
    assert!(read(&dir.0).unwrap().experiments.is_empty());
    fake.stopped = false;
    fake.log.clear();
    assert_eq!(go(&mut fake).end.reason, "done");
    let experiments = read(&dir.0).unwrap().experiments;
    let found: Vec<_> = experiments
        .iter()
        .map(|made| (made.changed.as_str(), made.factor, made.ratios.len()))
        .collect();
    assert_eq!(found, [("cpus", 0.5, 5), ("latency", 2.0, 5)]);
    assert!(
        experiments.iter().flat_map(|made| &made.ratios).all(|ratio| (ratio - 1.0).abs() < 0.01)
    );
    // Two runs per pair; the server is replaced for each changed run, and restored after it.
    assert_eq!(fake.log.iter().filter(|line| line.starts_with("run ")).count(), 20);
    assert_eq!(fake.log.iter().filter(|line| *line == "serve s3").count(), 1 + 2 * 5);
    let before = fake.log.len();
    go(&mut fake);
    assert_eq!(fake.log.len(), before);
    assert_eq!(read(&dir.0).unwrap().runs.len(), 3);
}

#[test]
fn experiments_with_disks_and_endpoints_leave_the_cell_as_it_was() {
    let mut plan = plan(&["up http://a"], repeat(0, 3, 3));
    plan.other_endpoint = Some("http://longer.example".into());
    let cell = &mut plan.cells[0];
    cell.endpoint = Some("http://a".into());
    let throttle = DiskThrottle::of_group("8:0", "/g");
    let (iops, bandwidth_bytes_per_s) = (None, Some(1000));
    cell.prepare =
        throttle.begin(iops, bandwidth_bytes_per_s).into_iter().map(RunAction::Shell).collect();
    cell.conclude = throttle.end();
    cell.disk = Some(DiskLimits { throttle, iops, bandwidth_bytes_per_s });
    let dir = TestFolder::new();
    let mut fake = FakeBench::default();
    let how = SessionOptions { prove: true, cpus: 1 };
    let mut store = ResultsStore::open(&dir.0, &header(&plan), "later").unwrap();
    run(&plan, &how, &mut store, &mut fake, &mut |_| {}).unwrap();
    let experiments = read(&dir.0).unwrap().experiments;
    let found: Vec<_> = experiments
        .iter()
        .map(|made| (made.changed.as_str(), made.factor, made.ratios.len()))
        .collect();
    assert_eq!(found, [("bandwidth", 0.5, 5), ("endpoint", 1.0, 5)]);
    // The longer command takes longer; speed is the inverse.
    let slower = "up http://a".len() as f64 / "up http://longer.example".len() as f64;
    assert!(experiments[1].ratios.iter().all(|ratio| (ratio - slower).abs() < 0.01));
    let count = |text: &str| fake.log.iter().filter(|line| line.contains(text)).count();
    // Three runs, then pairs: the cell's own limit before each, half of it before five.
    assert_eq!(count("8:0 1000'"), 2 * (3 + 10 + 10));
    assert_eq!(count("8:0 500'"), 2 * 5);
    assert_eq!(count("run up http://longer"), 5);
    // Limits are removed after each run.
    assert_eq!(count("8:0 0'"), 4 * (3 + 10 + 10));
}
