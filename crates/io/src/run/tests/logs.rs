//! Rates over time, logs, and what a thread used.

use super::*;
use crate::job::Logs;

fn logged(average_ms: u64, folder: &Path) -> Job {
    let name = Some("log".into());
    let logs = Logs {
        bandwidth: name.clone(),
        latency: name.clone(),
        iops: name,
        average: Duration::from_millis(average_ms),
    };
    Job { logs, ..sized("randrw", Engine::Psync, folder, 64) }
}

#[test]
fn each_block_has_a_line_or_each_window() {
    let folder = tempfile::tempdir().unwrap();
    let job = logged(0, folder.path());
    let outcome = one(&job);
    let log = &outcome.logged;
    // A call that waits has no time of submission.
    assert_eq!((log.slat.len(), log.clat.len(), log.lat.len()), (0, 16, 16));
    let writes = log.clat.iter().filter(|entry| entry.write).count() as u64;
    assert_eq!(writes, ios(&outcome)[1]);
    let mut offsets: Vec<u64> = log.lat.iter().map(|entry| entry.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, Vec::from_iter((0..16).map(|block| 4096 * block)));
    let slowest = log.clat.iter().map(|entry| entry.value).max();
    let most = outcome.sides.iter().map(|side| side.clat.max_ns()).max();
    assert_eq!(slowest, most);
    assert!(log.clat.iter().all(|entry| entry.bytes == 4096));

    let mut job = logged(50, folder.path());
    (job.runtime, job.time_based) = (Some(Duration::from_millis(210)), true);
    job.rate_iops = [Some(1000), None];
    (job.rw.writes, job.rw.random) = (false, false);
    let log = one(&job).logged;
    assert!((4..=6).contains(&log.iops.len()), "{:?}", log.iops);
    assert_eq!(log.iops.len(), log.bandwidth.len());
    for (number, (iops, bandwidth)) in log.iops.iter().zip(&log.bandwidth).take(4).enumerate() {
        // A busy machine moves some of the 50 blocks from one window to the next.
        assert!((600..1500).contains(&iops.value), "{:?}", log.iops);
        assert!(bandwidth.value.abs_diff(4 * iops.value) <= 4);
        assert!(iops.at_ms.abs_diff(50 * (number as u64 + 1)) < 20 && iops.bytes == 0);
    }
    assert!((4..=6).contains(&log.clat.len()) && log.slat.is_empty());
}

#[test]
fn rates_are_sampled_each_half_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = sized("randread", Engine::Psync, folder.path(), 64);
    (job.runtime, job.time_based) = (Some(Duration::from_millis(1100)), true);
    job.rate_iops = [Some(2000), None];
    let outcome = one(&job);
    let side = &outcome.sides[0];
    assert_eq!(side.iops.samples(), 2);
    assert!((side.iops.mean() / 2000.0 - 1.0).abs() < 0.05, "{:?}", side.iops);
    assert!((side.bandwidth.mean() / side.iops.mean() - 4096.0).abs() < 1.0);
    assert_eq!(outcome.sides[1].iops.samples(), 0);
    job.clocks.bandwidth = false;
    assert_eq!(one(&job).sides[0].iops.samples(), 0);
}

#[test]
fn threads_say_what_they_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = sized("randread", Engine::Psync, folder.path(), 64);
    (job.runtime, job.time_based) = (Some(Duration::from_millis(300)), true);
    let outcome = one(&job);
    let busy = (outcome.user_ns + outcome.sys_ns) as f64 / outcome.runtime_ns as f64;
    assert!((0.05..=1.05).contains(&busy), "{busy}");
    assert!(outcome.sys_ns > 0);
}
