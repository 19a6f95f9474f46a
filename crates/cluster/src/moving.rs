//! Transfers the entries of a shard with the ordinary engine.

use crate::folder::Trouble;
use crate::problems::{Meters, ProblemLog};
use crate::shard::Entry;
use crate::worker::{Done, Setup, interrupted};
use hakobu_core::error::{Fatal, quoted};
use hakobu_core::unit::Totals;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::plan::{Chosen, Expected};
use hakobu_transfer::policy::Delete;
use hakobu_transfer::run::{Layout, Spec, transfer};
use std::cell::Cell;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

/// Transfers entries of one root. `jobs`: number of jobs of the transfer before.
///
/// # Errors
/// The transfer could not go on.
pub(crate) fn entries(
    setup: &Setup<'_>,
    (meter, jobs): (&Meters, &Cell<Option<usize>>),
    root: Vec<u8>,
    entries: Vec<Entry>,
    done: &mut Done,
) -> Result<(), Trouble> {
    let (plan, control) = (setup.plan, setup.control);
    let mut spec = setup.spec.clone();
    // The first shard reads and teaches hints; for the others that would be most of their start.
    spec.jobs_before = jobs.get();
    let log = ProblemLog::new(setup.listener, meter);
    for_names(&mut spec, root, entries, plan.local)?;
    if let [folder] = spec.sources.paths()
        && let Err(error) = std::fs::metadata(folder)
    {
        return Err(Trouble::lasting(format!("cannot read {}: {error}", quoted(folder))));
    }
    if let Some(target) = spec.target.local() {
        // Another worker may make it at the same time.
        drop(match spec.mkpath {
            true => std::fs::create_dir_all(target),
            false => std::fs::create_dir(target),
        });
    }
    let outcome = transfer(&spec, control, &log).map_err(|fatal| Trouble {
        // The store is away.
        again: !plan.local && fatal.code == 11,
        message: fatal.message,
    })?;
    if !plan.local && outcome.totals.failed > 0 && outcome.requests.succeeded == 0 {
        // The same would come of every shard, and collect would have all of them to do.
        let first = log.first().map(|what| format!(" ({what})")).unwrap_or_default();
        let why = format!("no request to the store succeeded{first}: the rest was returned");
        return Err(Trouble::passing(why));
    }
    let Totals { files, bytes, skipped, failed, vanished, .. } = outcome.totals;
    done.files += files;
    done.bytes += bytes;
    done.skipped += skipped;
    done.failed += failed;
    done.vanished += vanished;
    done.changed += log.changed();
    done.jobs = done.jobs.max(outcome.jobs);
    jobs.set(Some(outcome.jobs).filter(|jobs| *jobs > 0));
    done.judge(&outcome);
    log.into_problems(done);
    match outcome.fatal {
        Some(fatal) => Err(Trouble::passing(fatal.message)),
        None if outcome.stopped => Err(interrupted()),
        None => Ok(()),
    }
}

/// The folder that a root of the plan stands for.
///
/// # Errors
/// It names no bucket.
pub(crate) fn folder_of(mut root: Vec<u8>) -> Result<Location, Trouble> {
    if root.is_empty() {
        root.push(b'.');
    }
    if root.last() != Some(&b'/') {
        root.push(b'/');
    }
    Location::parse_listed(&OsString::from_vec(root)).map_err(unfit)
}

fn unfit(fatal: Fatal) -> Trouble {
    Trouble::lasting(fatal.message)
}

/// The transfer of single names below a root: without deletions, and without the attributes of
/// directories, which a later run over everything sets.
///
/// # Errors
/// The root names no bucket.
fn for_names(
    spec: &mut Spec,
    root: Vec<u8>,
    entries: Vec<Entry>,
    local: bool,
) -> Result<(), Trouble> {
    spec.sources = Sources::of(vec![folder_of(root)?]).map_err(unfit)?;
    if local {
        let mut chosen = Chosen::default();
        for Entry { kind, size, mtime, name, .. } in entries {
            let name = name.into_boxed_slice();
            chosen.names.push((name.clone(), kind));
            chosen.states.insert(name, (kind, size, mtime));
        }
        (spec.chosen, spec.files_from) = (Some(Arc::new(chosen)), None);
    } else {
        let met =
            |entry: &Entry| (entry.name.clone().into_boxed_slice(), (entry.size, entry.mtime));
        spec.objects.expected = Some(Arc::new(Expected(entries.iter().map(met).collect())));
        spec.files_from = Some(entries.into_iter().map(|entry| entry.name).collect());
    }
    spec.layout = Layout::Rsync { relative: true };
    // Keys are used unchanged.
    spec.objects.raw = true;
    spec.check_space = false;
    (spec.items, spec.items_unchanged) = (false, false);
    let policy = &mut spec.policy;
    (policy.recurse, policy.dirs) = (false, true);
    policy.delete = Delete::No;
    policy.delete_excluded = false;
    policy.max_delete = None;
    policy.partial = false;
    policy.leave_dirs = true;
    // The plan has applied the rules.
    policy.filter = None;
    Ok(())
}
