//! Making a plan: an ordinary dry run decides, and what it would do is written into shards while it
//! goes on. Memory does not grow with the number of entries.

mod filling;

use crate::folder::{self, Folder, Trouble};
use crate::plan::{BEGUN, End, FORMAT, PLAN, Plan, Shard};
use filling::Planner;
use hakobu_core::control::Control;
use hakobu_core::error::Fatal;
use hakobu_core::event::Listener;
use hakobu_transfer::journal;
use hakobu_transfer::location::Location;
use hakobu_transfer::policy::{Append, Basis, Delete, MissingArgs};
use hakobu_transfer::run::{Outcome, Spec, transfer};

/// A plan to make.
pub struct Request<'a> {
    /// The transfer as the command line has it.
    pub spec: Spec,
    /// The command line, encoded.
    pub words: Vec<String>,
    /// The folder in which its relative paths begin, encoded.
    pub folder: String,
    /// Version of the program.
    pub version: &'a str,
    /// Workers that are expected.
    pub workers: u64,
    /// Least cost of a shard; a default where nothing is said.
    pub shard_bytes: Option<u64>,
    /// Directories at both ends.
    pub ends: Vec<End>,
    /// Both ends are local paths.
    pub local: bool,
}

/// Refuses options that two workers on one shard would make unsafe, and those that are not for one
/// transfer on many machines.
///
/// # Errors
/// Code 1 and a sentence that names the option.
pub fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let unfit = [
        (policy.list_only, "a list"),
        (policy.dry_run, "--dry-run"),
        (policy.inplace, "--inplace"),
        (policy.append != Append::No, "--append"),
        (policy.delay_updates, "--delay-updates"),
        (policy.basis != Basis::Link, policy.basis.option()),
        (policy.missing_args != MissingArgs::Tell, "passing over missing arguments"),
        (policy.backup, "--backup"),
        (policy.remove_source_files, "--remove-source-files"),
        (policy.prune_empty_dirs, "--prune-empty-dirs"),
        // The run folder would hold the key.
        (has_customer_key(spec), "--sse-c"),
        (spec.prove, "--prove"),
        (spec.target == Location::Null, "null:"),
    ];
    match unfit.iter().find(|(given, _)| *given) {
        Some((_, name)) => Err(Fatal::new(1, format!("{name} is not supported on many machines"))),
        None => Ok(()),
    }
}

fn has_customer_key(spec: &Spec) -> bool {
    let objects = &spec.objects;
    objects.source.customer_key.is_some() || objects.target.customer_key.is_some()
}

/// Makes a plan and writes it into a folder. The outcome is that of the dry run.
///
/// # Errors
/// The transfer cannot be planned, or the folder cannot be written; nothing of the plan stays then.
pub fn plan(
    request: Request<'_>,
    folder: &dyn Folder,
    control: &Control,
    listener: &dyn Listener,
) -> Result<(Plan, Outcome), Fatal> {
    refuse_unfit(&request.spec)?;
    let id = format!("{:016x}", fastrand::u64(..));
    let failed = |trouble: Trouble| Fatal::new(11, trouble.message);
    if !folder.create(BEGUN, format!("{{\"id\":\"{id}\"}}\n").as_bytes()).map_err(failed)? {
        let made = folder.read(PLAN).map_err(failed)?.is_some();
        let what = if made { "a plan" } else { "a plan that is being made, or was not finished" };
        let hint = "hint: give another folder, or remove this one when no worker needs it";
        let message = format!("cannot plan into {}: it holds {what}\n{hint}", folder.shown());
        return Err(Fatal::new(1, message));
    }
    let Request { spec, workers, shard_bytes, local, .. } = &request;
    let sizes = (*workers, *shard_bytes);
    let planner = Planner::new((folder, control, listener), spec, sizes, *local);
    let made = make(&planner, request, id, control);
    if made.is_err() {
        // Report the failure that led here.
        planner.remove_pieces();
        drop(folder.remove(BEGUN));
    }
    made
}

fn make(
    planner: &Planner<'_>,
    request: Request<'_>,
    id: String,
    control: &Control,
) -> Result<(Plan, Outcome), Fatal> {
    let Request { mut spec, words, folder, version, ends, local, .. } = request;
    spec.policy.dry_run = true;
    spec.policy.delete = Delete::No;
    spec.check_space = false;
    (spec.items, spec.items_unchanged, spec.plans) = (false, false, true);
    let outcome = transfer(&spec, control, planner);
    if let Some(trouble) = planner.failed.lock().take() {
        return Err(Fatal::new(11, trouble.message));
    }
    let mut outcome = outcome?;
    if let Some(fatal) = outcome.fatal.take() {
        return Err(fatal);
    }
    if outcome.stopped {
        return Err(Fatal::new(20, "interrupted: no plan was made"));
    }
    let failed = |trouble: Trouble| Fatal::new(11, trouble.message);
    planner.end().map_err(failed)?;
    let shards = planner.take_shards();
    let sum = |of: fn(&Shard) -> u64| shards.iter().map(of).sum();
    let plan = Plan {
        format: FORMAT,
        version: version.to_owned(),
        id,
        words,
        folder,
        ends,
        local,
        entries: sum(|shard| shard.entries),
        bytes: sum(|shard| shard.bytes),
        roots: planner.roots.lock().iter().map(|root| journal::text(root)).collect(),
        problems: outcome.totals.failed + outcome.totals.vanished,
        shards,
    };
    let content = folder::json(&plan).map_err(failed)?;
    match planner.folder.create(PLAN, &content).map_err(failed)? {
        true => Ok((plan, outcome)),
        false => Err(Fatal::new(1, format!("{} holds a plan already", planner.folder.shown()))),
    }
}
