//! Transfers the entries of a shard with the ordinary engine.

use crate::done::{Done, Ended};
use crate::problems::{Meters, ProblemLog};
use crate::setup::Setup;
use crate::shard::Entry;
use crate::source::{Looker, Now};
use hakobu_core::error::{Fatal, quoted};
use hakobu_core::unit::Totals;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::plan::Expected;
use hakobu_transfer::policy::Delete;
use hakobu_transfer::run::{Layout, Spec, transfer};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Transfers entries of one root. An end is returned where the transfer could not go on.
pub(crate) fn entries(
    setup: &Setup<'_>,
    meter: &Meters,
    root: Vec<u8>,
    entries: Vec<Entry>,
    done: &mut Done,
) -> Option<Ended> {
    let (plan, control) = (setup.plan, setup.control);
    let mut spec = setup.spec.clone();
    let log = ProblemLog::new(setup.listener, meter);
    let entries = match plan.local {
        true => match check(&root, entries, &spec, &log, done) {
            Ok(entries) => entries,
            Err(error) => {
                let shown = quoted(OsString::from_vec(root));
                return Some(Ended::Never(format!("cannot read {shown}: {error}")));
            }
        },
        false => {
            let met =
                |entry: &Entry| (entry.name.clone().into_boxed_slice(), (entry.size, entry.mtime));
            spec.objects.expected = Some(Arc::new(Expected(entries.iter().map(met).collect())));
            entries
        }
    };
    if entries.is_empty() {
        log.into_problems(done);
        return None;
    }
    if let Err(fatal) = for_names(&mut spec, root, entries) {
        return Some(Ended::Never(fatal.message));
    }
    if let Some(target) = spec.target.local() {
        // Another worker may make it at the same time.
        drop(match spec.mkpath {
            true => std::fs::create_dir_all(target),
            false => std::fs::create_dir(target),
        });
    }
    let outcome = match transfer(&spec, control, &log) {
        Ok(outcome) => outcome,
        // The store is away.
        Err(fatal) if !plan.local && fatal.code == 11 => return Some(Ended::Again(fatal.message)),
        Err(fatal) => return Some(Ended::Never(fatal.message)),
    };
    if !plan.local && outcome.totals.failed > 0 && outcome.requests.answered == 0 {
        // The same would come of every shard, and collect would have all of them to do.
        let first = log.first().map(|what| format!(" ({what})")).unwrap_or_default();
        let why = format!("no request to the store succeeded{first}: the rest was returned");
        return Some(Ended::Again(why));
    }
    let Totals { files, bytes, skipped, failed, vanished, .. } = outcome.totals;
    done.files += files;
    done.bytes += bytes;
    done.skipped += skipped;
    done.failed += failed;
    done.vanished += vanished;
    done.jobs = done.jobs.max(outcome.jobs);
    done.judge(&outcome);
    log.into_problems(done);
    let fatal = outcome.fatal.map(|fatal| Ended::Again(fatal.message));
    let stopped = (outcome.stopped && fatal.is_none())
        .then(|| Ended::Again("interrupted: the rest was returned".into()));
    fatal.or(stopped)
}

/// Looks at local sources; what changed since the plan is told and left out.
fn check(
    root: &[u8],
    entries: Vec<Entry>,
    spec: &Spec,
    log: &ProblemLog<'_>,
    done: &mut Done,
) -> std::io::Result<Vec<Entry>> {
    use hakobu_transfer::policy::Symlinks;
    let follows = spec.policy.symlinks == Symlinks::Follow || spec.policy.copy_dirlinks;
    let mut looker = Looker::open(root, follows)?;
    let mut same = Vec::with_capacity(entries.len());
    for entry in entries {
        let why = match looker.look(&entry) {
            // The engine looks itself, and says what is wrong.
            Ok(Now::Same | Now::Gone) | Err(_) => {
                same.push(entry);
                continue;
            }
            Ok(Now::Changed) => "it has changed since the plan was made",
        };
        done.changed += 1;
        log.add(why.to_owned(), path_of(root, &entry.name));
    }
    Ok(same)
}

fn path_of(root: &[u8], name: &[u8]) -> PathBuf {
    Path::new(&OsString::from_vec(root.to_vec())).join(OsString::from_vec(name.to_vec()))
}

/// The folder that a root of the plan stands for.
///
/// # Errors
/// It names no bucket.
pub(crate) fn folder_of(mut root: Vec<u8>) -> Result<Location, Fatal> {
    if root.is_empty() {
        root.push(b'.');
    }
    if root.last() != Some(&b'/') {
        root.push(b'/');
    }
    Location::parse_listed(&OsString::from_vec(root))
}

/// The transfer of single names below a root: without deletions, and without the attributes of
/// directories, which a later run over everything sets.
///
/// # Errors
/// The root names no bucket.
fn for_names(spec: &mut Spec, root: Vec<u8>, entries: Vec<Entry>) -> Result<(), Fatal> {
    spec.sources = Sources::of(vec![folder_of(root)?])?;
    spec.files_from = Some(entries.into_iter().map(|entry| entry.name).collect());
    spec.layout = Layout::Rsync { relative: true };
    // Keys are what they are.
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
