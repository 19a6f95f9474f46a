//! Whole runs on real files: what was counted, what was written, when it ended, what went wrong.

mod blocks;
mod faults;
mod logs;
mod time;

use super::{View, groups, run};
use crate::job::tests::job;
use crate::layout::{Safety, lay_out};
use crate::{Amount, Engine, Job, Outcome};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEEP: Safety = Safety { allow_overwrite: true, keep: true };
const ENGINES: [Engine; 7] = [
    Engine::Sync,
    Engine::Psync,
    Engine::Pvsync2,
    Engine::Libaio,
    Engine::IoUring,
    Engine::Mmap,
    Engine::Null,
];

/// A job with a file of so many KiB for each clone.
fn sized(rw: &str, engine: Engine, folder: &Path, kib: u64) -> Job {
    let size = Some(Amount::Bytes(kib << 10));
    let depth = if matches!(engine, Engine::IoUring | Engine::Libaio) { 8 } else { 1 };
    let directories = vec![folder.to_owned()];
    Job { engine, size, directories, depth, depth_low: depth, ..job(rw) }
}

/// Runs jobs and keeps their files.
#[track_caller]
fn go(jobs: &[Job]) -> Vec<Outcome> {
    go_with(jobs, &AtomicBool::new(false), |_| {})
}

#[track_caller]
fn go_with(jobs: &[Job], stop: &AtomicBool, mut watch: impl FnMut(&View<'_>)) -> Vec<Outcome> {
    let layout = lay_out(jobs, &KEEP, stop).unwrap();
    run(jobs, &layout, stop, Duration::from_millis(20), &mut watch).unwrap()
}

/// Runs one job of one clone, without an error.
#[track_caller]
fn one(job: &Job) -> Outcome {
    let outcome = go(std::slice::from_ref(job)).remove(0);
    assert_eq!(outcome.error, None, "{:?}", job.engine);
    outcome
}

/// Returns whether this machine does not support the engine; the test is skipped then.
fn is_missing(engine: Engine) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let outcome = go(&[sized("read", engine, folder.path(), 4)]).remove(0);
    outcome.error.is_some_and(|(_, why)| why.starts_with("ioengine="))
}

fn engines() -> impl Iterator<Item = Engine> {
    ENGINES.into_iter().filter(|engine| !is_missing(*engine))
}

fn ios(outcome: &Outcome) -> [u64; 2] {
    [outcome.sides[0].ios, outcome.sides[1].ios]
}
