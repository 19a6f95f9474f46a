//! Verifies the entries of a shard: types, sizes, contents and texts of symlinks at both ends. What
//! an ordinary sync is told to do with attributes, and whether it could, is its own to say.

use crate::folder::Trouble;
use crate::moving::folder_of;
use crate::problems::{Meters, ProblemLog};
use crate::shard::Entry;
use crate::worker::{Done, Setup, interrupted};
use hakobu_core::error::Fatal;
use hakobu_core::unit::Jobs;
use hakobu_transfer::location::Location;
use hakobu_transfer::object::JOBS_SEED;
use hakobu_transfer::policy::Symlinks;
use hakobu_transfer::run::{Rates, Spec, steered};
use hakobu_transfer::verify::{
    self, Aspect, Aspects, Difference, Finding, ObjectSpec, Outcome, Times, verify_named,
    verify_named_objects,
};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Refuses a verification of what has no counterpart of the same form at the other end.
///
/// # Errors
/// Code 1 and a sentence that names the option.
pub fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let local = !spec.has_store();
    let unfit = [
        (local && policy.symlinks == Symlinks::Follow, "--copy-links"),
        (policy.copy_unsafe_links, "--copy-unsafe-links"),
        (policy.copy_dirlinks, "--copy-dirlinks"),
        (policy.keep_dirlinks, "--keep-dirlinks"),
    ];
    match unfit.iter().find(|(given, _)| *given) {
        Some((_, name)) => {
            let message =
                format!("--verify is not supported for a run with {name}\nhint: hakobu verify");
            Err(Fatal::new(1, message))
        }
        None => Ok(()),
    }
}

/// Compares the entries of one root.
///
/// # Errors
/// That could not go on.
pub(crate) fn entries(
    setup: &Setup<'_>,
    meter: &Meters,
    root: Vec<u8>,
    entries: &[Entry],
    done: &mut Done,
) -> Result<(), Trouble> {
    let source = folder_of(root)?;
    let names: Vec<Vec<u8>> = entries.iter().map(|entry| entry.name.clone()).collect();
    let log = ProblemLog::new(setup.listener, meter);
    let below = source.as_typed();
    let report =
        |difference: &Difference<'_>| log.add(&words(difference), &path(&below, difference));
    let compared = compare(setup, &source, &names, &report, &log);
    if setup.control.is_stopped() {
        return Err(interrupted());
    }
    match compared {
        Ok(Outcome { counts, .. }) => {
            done.files += counts.files + counts.dirs + counts.others;
            done.bytes += counts.bytes;
            done.differences += counts.differences;
            done.failed += counts.failed;
        }
        Err(fatal) => {
            done.failed += entries.len() as u64;
            log.add(&fatal.message, &below);
        }
    }
    log.into_problems(done);
    Ok(())
}

fn words(difference: &Difference<'_>) -> String {
    match difference.finding {
        Finding::Missing => "is missing at the target".to_owned(),
        Finding::Extra => "is missing at the source".to_owned(),
        Finding::Differs(set) => {
            let words: Vec<&str> = set.iter().map(Aspect::word).collect();
            format!("differs: {}", words.join(", "))
        }
    }
}

fn path(below: &Path, difference: &Difference<'_>) -> PathBuf {
    below.join(OsString::from_vec(difference.path.to_vec()))
}

fn compare(
    setup: &Setup<'_>,
    source: &Location,
    names: &[Vec<u8>],
    report: &(dyn Fn(&Difference<'_>) + Sync),
    log: &ProblemLog<'_>,
) -> Result<Outcome, Fatal> {
    let spec = &setup.spec;
    let wanted = [Aspect::Type, Aspect::Size, Aspect::Content, Aspect::Link, Aspect::Device];
    let aspects = wanted.into_iter().fold(Aspects::NONE, Aspects::with);
    if let (Some(from), Some(to)) = (source.local(), spec.target.local()) {
        let mut between = verify::Spec {
            source: from.to_owned(),
            target: to.to_owned(),
            aspects,
            times: Times::default(),
            one_way: true,
            filter: None,
            open_dirs_max: 0,
        };
        let (compared, _) =
            steered(&[from, to], spec.jobs, Rates::default(), |controls, limits| {
                between.open_dirs_max = limits.open_dirs_max;
                verify_named(&between, names, setup.control, controls, report, log)
            });
        return compared;
    }
    let between = ObjectSpec {
        source: source.clone(),
        target: spec.target.clone(),
        source_settings: spec.objects.source.clone(),
        target_settings: spec.objects.target.clone(),
        aspects,
        times: Times::default(),
        follow: spec.policy.symlinks == Symlinks::Follow,
        encode_names: spec.objects.options.encode_names,
        one_way: true,
        filter: None,
        jobs: match spec.jobs {
            Jobs::Auto => JOBS_SEED,
            Jobs::Fixed(jobs) => jobs,
        },
        bytes_per_s_max: None,
    };
    verify_named_objects(&between, names, report, setup.control, log)
}
