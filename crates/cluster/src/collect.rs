//! The last word on a run whose names were cut into ranges: an ordinary run of the ranges in which the look at both ends
//! found something left, and the removal of candidates for deletion, each after another look at both ends. One process
//! does this, the only one that removes anything.

use crate::claims::KnownResults;
use crate::folder::{RunError, RunFolder};
use crate::heartbeat::{self, Heartbeat, WorkerState};
use crate::known::PreviousRun;
use crate::plan::{ClusterPlan, Phase};
use crate::ranges::{KnownRanges, RangePart, parts_folder, read_parts};
use crate::shard::{self, ShardEntry, ShardError};
use crate::worker::{ProblemCounts, WorkerSetup, count_problems, work};
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::{Event, Listener};
use hakobu_core::meter::Meter;
use hakobu_transfer::plan::NameRange;
use hakobu_transfer::policy::Delete;
use hakobu_transfer::run::{Candidate, Outcome, Spec, remove_candidates, transfer};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the transfer as a look at both ends has it after workers have done it. What they have written is not
/// transferred again: `-I` was heeded, and without `-t` a file has the time at which it was written.
pub(crate) fn after_transfer(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    spec.policy.ignore_times = false;
    // With S3 the times of objects are compared like this anyway, and downloads get them.
    spec.policy.newer_only |= !spec.has_store() && !spec.policy.preserve.times;
    spec
}

/// Returns the transfer for the last run: where `is_done`, all that was planned is known to be transferred, as
/// [`after_transfer`] has it; else as it was asked for, because what workers have left may look as if it were done.
pub fn last_transfer(spec: &Spec, is_done: bool) -> Spec {
    match is_done {
        true => after_transfer(spec),
        false => spec.clone(),
    }
}

/// A run to finish.
#[derive(Clone)]
pub struct CollectSetup<'a> {
    pub folder: &'a dyn RunFolder,
    pub plan: &'a ClusterPlan,
    /// The transfer as the plan's command line has it.
    pub spec: &'a Spec,
    pub control: &'a Control,
    pub listener: &'a dyn Listener,
    /// What an earlier run of the same ends knows of objects.
    pub previous: Option<&'a PreviousRun>,
    /// A worker whose counter stands still for so long counts as gone.
    pub stale: Duration,
    /// All that was planned is known to be transferred.
    pub is_done: bool,
}

/// Calls `collect`, and gives signs of life meanwhile, so that others see that the run is collected, and how far.
/// `collect` gets the listener to use.
pub fn with_beats<R>(setup: &CollectSetup<'_>, collect: impl FnOnce(&dyn Listener) -> R) -> R {
    let began = Instant::now();
    let log = MeterLog { listener: setup.listener, meters: Mutex::default() };
    let over = Mutex::new(false);
    let wakes = Condvar::new();
    let beat = Heartbeat { collects: true, ..Heartbeat::first(setup.stale) };
    let write = |counter: u64, state: WorkerState| {
        let (bytes, entries) = log.counts();
        let up_s = began.elapsed().as_secs_f64();
        let bytes_per_s = bytes as f64 / up_s.max(1.0);
        let beat = Heartbeat { counter, state, bytes, entries, bytes_per_s, up_s, ..beat.clone() };
        // It only informs: without it the run is collected all the same.
        drop(heartbeat::write(setup.folder, &beat));
    };
    thread::scope(|scope| {
        let beats = thread::Builder::new().name("beats".into()).spawn_scoped(scope, || {
            let mut over = over.lock();
            for counter in 1.. {
                if *over {
                    return write(counter, WorkerState::Ended);
                }
                write(counter, WorkerState::Working);
                wakes.wait_for(&mut over, heartbeat::interval(setup.stale));
            }
        });
        let collected = collect(&log);
        *over.lock() = true;
        wakes.notify_all();
        drop(beats.map(|beats| beats.join()));
        collected
    })
}

/// Passes events on, and keeps the meters of all transfers.
struct MeterLog<'a> {
    listener: &'a dyn Listener,
    meters: Mutex<Vec<Arc<Meter>>>,
}

impl MeterLog<'_> {
    /// Bytes and entries of all transfers so far.
    fn counts(&self) -> (u64, u64) {
        let meters = self.meters.lock();
        let counts = meters.iter().map(|meter| meter.counts());
        counts.fold((0, 0), |(bytes, items), one| (bytes + one.bytes, items + one.items))
    }
}

impl Listener for MeterLog<'_> {
    fn event(&self, event: Event<'_>) {
        if let Event::Begins(meter) = &event {
            self.meters.lock().push(Arc::clone(meter));
        }
        self.listener.event(event);
    }
}

/// Code of failures of the run folder, and of stores.
const IO: u8 = 11;

/// Finishes a run with ranges. Ranges that no worker has looked at are looked at here. The outcome is that of an ordinary
/// transfer; problems of the look are counted in it.
///
/// # Errors
/// Those of a transfer as a whole, and of the run folder.
pub fn finish_ranges(setup: &CollectSetup<'_>) -> Result<(Outcome, ProblemCounts), Fatal> {
    let CollectSetup { folder, plan, spec, control, .. } = *setup;
    let began = Instant::now();
    let failed = |error: RunError| Fatal::new(IO, error.message);
    let phase = Phase::begin_look(folder).map_err(failed)?;
    let looked = work(&WorkerSetup {
        folder,
        plan,
        spec: spec.clone(),
        control,
        listener: setup.listener,
        stale: setup.stale,
        workers: 1,
        phase: phase.clone(),
        previous: setup.previous,
        last_word: true,
    });
    // The run is stopped, too, where the run folder failed.
    match looked {
        Err(error) if !error.is_interrupted => return Err(failed(error)),
        _ if control.is_stopped() => return Ok((stopped(began), ProblemCounts::new())),
        looked => looked.map_err(failed)?,
    }
    let mut known = KnownRanges::new(parts_folder(&phase));
    known.update(folder).map_err(failed)?;
    let (parts, damaged) = read_parts(folder, &known.files()).map_err(failed)?;
    if damaged > 0 || known.ended() != plan.ranges() as usize {
        // The next collect begins another look.
        Phase::forget_look(folder).map_err(failed)?;
        let shown = folder.shown();
        return Err(Fatal::new(
            IO,
            format!("the look at both ends in {shown} is damaged\nhint: collect again"),
        ));
    }
    // What a worker has left may look as if it were done where times do not count.
    let last = last_transfer(spec, setup.is_done);
    let is_hidden = last.policy.ignore_times;
    let left: BTreeSet<u32> = parts
        .iter()
        .filter(|part| is_hidden || !part.shards.is_empty())
        .map(|part| part.range)
        .collect();
    let mut sum = Outcome::default();
    let mut problems = ProblemCounts::new();
    // The run of what is left meets its problems itself.
    let others = parts.iter().filter(|part| !left.contains(&part.range));
    for end in others.filter_map(|part| part.end.as_ref()) {
        sum.totals.failed += end.failed;
        sum.totals.vanished += end.vanished;
        for (what, count, first) in &end.problems {
            count_problems(&mut problems, what, *count, || first.clone());
        }
    }
    let deletes_first = spec.policy.delete == Delete::Before;
    if deletes_first {
        remove(setup, &parts, &mut sum)?;
    }
    for range in joined(left.into_iter().filter_map(|number| plan.range(number))) {
        if sum.fatal.is_some() || control.is_stopped() {
            break;
        }
        // An ordinary run of the range, as its entries are now: it does what single names cannot, such as objects that
        // stand for directories.
        let mut spec = Spec { range: Some(range), ..last.clone() };
        spec.policy.delete = Delete::No;
        sum = sum.merged(transfer(&spec, control, setup.listener)?);
    }
    if !deletes_first {
        remove(setup, &parts, &mut sum)?;
    }
    sum.took = began.elapsed();
    sum.stopped = control.is_stopped() && sum.fatal.is_none();
    if !sum.stopped {
        Phase::forget_look(folder).map_err(failed)?;
    }
    Ok((sum, problems))
}

/// Joins ranges that follow on each other.
fn joined(ranges: impl Iterator<Item = NameRange>) -> Vec<NameRange> {
    let mut all: Vec<NameRange> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.until.as_ref() == Some(&range.from) => last.until = range.until,
            _ => all.push(range),
        }
    }
    all
}

fn stopped(began: Instant) -> Outcome {
    Outcome { took: began.elapsed(), stopped: true, ..Outcome::default() }
}

/// Removes candidates for deletion, each after another look at both ends.
fn remove(setup: &CollectSetup<'_>, parts: &[RangePart], sum: &mut Outcome) -> Result<(), Fatal> {
    if sum.fatal.is_some() || setup.control.is_stopped() || setup.spec.policy.delete == Delete::No {
        return Ok(());
    }
    let mut failure = None;
    let files = parts.iter().flat_map(|part| &part.removals);
    let candidates = files.flat_map(|file| match shard::read_file(setup.folder, file) {
        Ok(entries) => entries,
        Err(ShardError::Folder(RunError { message, .. }) | ShardError::Damaged(message)) => {
            failure.get_or_insert(message);
            Vec::new()
        }
    });
    let candidate = |entry: ShardEntry| {
        let ShardEntry { kind, size, mtime, name, .. } = entry;
        Candidate { name, kind, size, mtime, etag: "".into() }
    };
    let removed =
        remove_candidates(setup.spec, candidates.map(candidate), setup.control, setup.listener)?;
    *sum = std::mem::take(sum).merged(removed);
    let Some(why) = failure else { return Ok(()) };
    let message = format!("cannot read candidates for deletion: {why}\nhint: collect again");
    // What was done so far is reported, and the next collect begins another look.
    sum.fatal.get_or_insert(Fatal::new(IO, message));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range() {
        let cuts = ["b", "d", "f", "h"].map(|cut| cut.as_bytes().to_vec());
        let ranges = NameRange::between(&cuts);
        let of = |numbers: &[usize]| joined(numbers.iter().map(|number| ranges[*number].clone()));
        assert_eq!(of(&[0, 1, 2, 3, 4]), [NameRange::all()]);
        assert_eq!(
            of(&[0, 2, 3]),
            [ranges[0].clone(), NameRange { from: b"d".to_vec(), until: Some(b"h".to_vec()) },]
        );
        assert_eq!(of(&[1, 4]), [ranges[1].clone(), ranges[4].clone()]);
        assert!(of(&[]).is_empty());
    }
}
