//! Verifies the entries of a shard: types, sizes, contents and texts of symlinks at both ends. What
//! an ordinary sync is told to do with attributes, and whether it could, is its own to say.

use crate::folder::RunError;
use crate::shard::ShardEntry;
use crate::worker::{ProblemLog, ShardResult, WorkerSetup, interrupted};
use hakobu_core::error::Fatal;
use hakobu_core::limit::Limits;
use hakobu_transfer::location::Location;

use hakobu_transfer::policy::Symlinks;
use hakobu_transfer::run::{Spec, steered};
use hakobu_transfer::verify::{
    self, Aspect, Aspects, Difference, Finding, ObjectSpec, Times, VerifyOutcome, verify_named,
    verify_named_objects,
};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

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

/// Compares entries of one root at both ends.
pub(crate) fn verify_entries(
    setup: &WorkerSetup<'_>,
    log: ProblemLog<'_>,
    source: &Location,
    entries: &[ShardEntry],
    result: &mut ShardResult,
) -> Result<(), RunError> {
    let names: Vec<Vec<u8>> = entries.iter().map(|entry| entry.name.clone()).collect();
    let below = source.as_typed();
    let report = |difference: &Difference<'_>| {
        let path = below.join(OsString::from_vec(difference.path.to_vec()));
        log.add(&words(difference), &path);
    };
    let compared = compare(setup, source, &names, &report, &log);
    if setup.control.is_stopped() {
        return Err(interrupted());
    }
    match compared {
        Ok(VerifyOutcome { counts, .. }) => {
            result.files += counts.files + counts.dirs + counts.others;
            result.bytes += counts.bytes;
            result.differences += counts.differences;
            result.failed += counts.failed;
        }
        Err(fatal) => {
            result.failed += entries.len() as u64;
            log.add(&fatal.message, &below);
        }
    }
    log.into_problems(result);
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

fn compare(
    setup: &WorkerSetup<'_>,
    source: &Location,
    names: &[Vec<u8>],
    report: &(dyn Fn(&Difference<'_>) + Sync),
    log: &ProblemLog<'_>,
) -> Result<VerifyOutcome, Fatal> {
    let spec = &setup.spec;
    let wanted = [Aspect::Type, Aspect::Size, Aspect::Content, Aspect::Link, Aspect::Device];
    let aspects = wanted.into_iter().fold(Aspects::NONE, Aspects::with);
    if let (Some(from), Some(to)) = (source.local(), spec.target.local()) {
        let mut between = verify::VerifySpec {
            source: from.to_owned(),
            target: to.to_owned(),
            aspects,
            times: Times::default(),
            one_way: true,
            filter: None,
            open_dirs_max: 0,
        };
        let (compared, _) =
            steered(&[from, to], Limits::of_jobs(spec.limits.jobs), |controls, capacity| {
                between.open_dirs_max = capacity.open_dirs_max;
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
        limits: Limits::of_jobs(spec.limits.jobs),
    };
    verify_named_objects(&between, names, report, setup.control, log)
}
