//! The last word on a run whose names were cut into ranges: an ordinary run of the ranges in which the look at both ends
//! found something left, and the removal of candidates for deletion, each after another look at both ends. One process
//! does this, the only one that removes anything.

use crate::claims::KnownResults;
use crate::folder::{RunError, RunFolder};
use crate::heartbeat::{self, Heartbeat, WorkerState};
use crate::known::PreviousRun;
use crate::plan::{ClusterPlan, Phase, ShardFile};
use crate::ranges::{KnownRanges, RangePart, parts_folder, read_parts};
use crate::shard::{self, ShardEntry, ShardError};
use crate::worker::{ProblemCounts, WorkerSetup, count_problems, work};
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::{Event, Listener};
use hakobu_core::meter::Meter;
use hakobu_transfer::plan::{self, NameRange};
use hakobu_transfer::policy::Delete;
use hakobu_transfer::run::{self, Candidate, Outcome, Spec, remove_candidates, transfer};
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
    let Ok(first) = Heartbeat::first(setup.stale) else { return collect(setup.listener) };
    let beat = Heartbeat { collects: true, ..first };
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
    let has_leftovers = |part: &RangePart| part.end.as_ref().is_some_and(|end| end.leftovers > 0);
    let left: BTreeSet<u32> = parts
        .iter()
        .filter(|part| is_hidden || !part.shards.is_empty() || has_leftovers(part))
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
    let redone = joined(left.into_iter().filter_map(|number| plan.range(number)));
    for range in &redone {
        if sum.fatal.is_some() || control.is_stopped() {
            break;
        }
        // An ordinary run of the range, as its entries are now: it does what single names cannot, such as objects that
        // stand for directories.
        let mut spec = Spec { range: Some(range.clone()), ..last.clone() };
        // With --delete a directory at the place of a file is removed.
        spec.policy.force |= spec.policy.delete != Delete::No;
        spec.policy.delete = Delete::No;
        sum = sum.merged(transfer(&spec, control, setup.listener)?);
    }
    if !deletes_first {
        remove(setup, &parts, &mut sum)?;
    }
    if plan.local {
        set_directories(setup, &parts, &redone, &mut sum)?;
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
    let candidate = |entry: ShardEntry| {
        let ShardEntry { kind, size, mtime, name, .. } = entry;
        Candidate { name, kind, size, mtime, etag: "".into() }
    };
    let candidates = read_names(setup, files, &mut failure).map(candidate);
    let removed = remove_candidates(setup.spec, candidates, setup.control, setup.listener)?;
    *sum = std::mem::take(sum).merged(removed);
    tell_unread(failure, "candidates for deletion", sum);
    Ok(())
}

/// Reads names that a look wrote down. Where a file cannot be read, `failure` gets the first reason.
fn read_names<'a>(
    setup: &'a CollectSetup<'_>,
    files: impl Iterator<Item = &'a ShardFile> + 'a,
    failure: &'a mut Option<String>,
) -> impl Iterator<Item = ShardEntry> + 'a {
    files.flat_map(|file| match shard::read_file(setup.folder, file) {
        Ok(entries) => entries,
        Err(ShardError::Folder(RunError { message, .. }) | ShardError::Damaged(message)) => {
            failure.get_or_insert(message);
            Vec::new()
        }
    })
}

/// Ends a collect that could not read what a look wrote down: what was done so far is reported, and the next collect begins
/// another look.
fn tell_unread(failure: Option<String>, what: &str, sum: &mut Outcome) {
    let Some(why) = failure else { return };
    let message = format!("cannot read {what}: {why}\nhint: collect again");
    sum.fatal.get_or_insert(Fatal::new(IO, message));
}

/// Directories whose attributes are set together.
const DIRECTORIES: usize = 100_000;

/// Sets the attributes of directories between paths: of those that differed when both ends were looked at, and of those that
/// were written into since, by runs of what was left and by removals.
fn set_directories(
    setup: &CollectSetup<'_>,
    parts: &[RangePart],
    redone: &[NameRange],
    sum: &mut Outcome,
) -> Result<(), Fatal> {
    let CollectSetup { spec, control, listener, .. } = *setup;
    let lead = plan::lead(spec)?;
    let preserve = &spec.policy.preserve;
    let keeps_times = preserve.times && !preserve.omit_dir_times;
    let (mut failure, mut written, mut removed) = (None, BTreeSet::new(), BTreeSet::new());
    for range in redone.iter().filter(|_| keeps_times) {
        // A range does not set those of the directories that it begins in.
        written.extend(folders_of(&[&*lead, &*range.from].concat()));
    }
    let removals = parts.iter().filter(|_| keeps_times).flat_map(|part| &part.removals);
    for ShardEntry { name, .. } in read_names(setup, removals, &mut failure) {
        let own = name.strip_suffix(b"/").unwrap_or(&name);
        written.extend(folders_of(own).into_iter().next());
        if own.len() < name.len() {
            removed.insert(own.to_vec());
        }
    }
    // The target itself is a part of the transfer of a content only.
    let is_set =
        |folder: &Vec<u8>| !removed.contains(folder) && (lead.is_empty() || folder != b".");
    let differing = parts.iter().flat_map(|part| &part.directories);
    let differing = read_names(setup, differing, &mut failure).map(|entry| entry.name);
    let spec = last_transfer(spec, true);
    let mut all = differing.chain(written).filter(is_set).peekable();
    while all.peek().is_some() && sum.fatal.is_none() && !control.is_stopped() {
        let some: Vec<_> = all.by_ref().take(DIRECTORIES).collect();
        let done = run::set_directories(&spec, some.into_iter(), control, listener)?;
        *sum = std::mem::take(sum).merged(done);
    }
    drop(all);
    tell_unread(failure, "directories", sum);
    Ok(())
}

/// Directories that a path in the transfer is in, the nearest one first; the top is `.`.
fn folders_of(path: &[u8]) -> Vec<Vec<u8>> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let above = slashes.map(|(at, _)| path.get(..at).unwrap_or_default().to_vec());
    let mut folders: Vec<Vec<u8>> = std::iter::once(b".".to_vec()).chain(above).collect();
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_end_with_the_top() {
        let of = |path: &str| -> Vec<String> {
            let folders = folders_of(path.as_bytes()).into_iter();
            folders.map(|folder| String::from_utf8(folder).unwrap()).collect()
        };
        assert_eq!(of("a/b/c"), ["a/b", "a", "."]);
        assert_eq!(
            (of("a/"), of("a"), of("")),
            (vec!["a".into(), ".".into()], vec![".".into()], vec![".".into()])
        );
    }

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
