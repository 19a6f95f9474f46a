//! `hakobu cluster plan`: a dry run whose result goes into a run folder.

use super::{VERSION, absolute, end_directories};
use crate::commands::cluster::ClusterArgs;
use crate::commands::session::{Session, outcome_of_fatal};
use crate::commands::sync::read;
use crate::commands::tool::{end_with, refuse};
use crate::exit;
use crate::files::Target;
use crate::number::{Digits, things};
use crate::show::{Line, ShowOptions, output};
use crate::textfile::TextfileArgs;
use hakobu_cluster::known::PreviousRun;
use hakobu_cluster::plan::ClusterPlan;
use hakobu_cluster::{folder, planner};
use hakobu_core::error::{Fatal, quoted};
use hakobu_s3::without_secrets;
use hakobu_transfer::journal::{self, Journal};
use hakobu_transfer::location::{Location, Side};
use hakobu_transfer::object::list::{Inventory, InventoryCounts};
use hakobu_transfer::run::Spec;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Workers that are expected where nothing is said.
const WORKERS: u64 = 16;

/// Runs the subcommand.
pub fn run(arguments: &[OsString]) -> Result<u8, u8> {
    let refused = |refused| refuse(refused, exit::SYNC_USAGE);
    let (spec, wanted, args) = read(arguments).map_err(refused)?;
    if args.cluster.is_some() {
        let message = "--cluster is an option of sync: plan only plans";
        return Err(end_with(exit::SYNC_USAGE, message));
    }
    if args.verify {
        let message = "--verify comes after the transfer: hakobu cluster collect --verify RUN";
        return Err(end_with(exit::SYNC_USAGE, message));
    }
    make(arguments, &spec, wanted, &args).map(|(code, _)| code)
}

/// Makes a plan; the error is an exit code, with its message already told. A plan whose dry run met
/// problems is whole, and has an exit code that says so.
pub fn make(
    arguments: &[OsString],
    spec: &Spec,
    mut wanted: ShowOptions,
    args: &ClusterArgs,
) -> Result<(u8, ClusterPlan), u8> {
    let refused = |message: String| end_with(exit::SYNC_USAGE, &message);
    if wanted.stop_after.is_some() {
        return Err(refused(
            "--stop-after (or --stop-at) is not supported on many machines".into(),
        ));
    }
    let Some(run) = args.run.as_deref().map(absolute) else {
        return Err(refused("missing run folder: --run RUN".into()));
    };
    if let Some(word) = arguments.iter().find(|word| has_secret(word)) {
        let shown = without_secrets(&word.to_string_lossy());
        let hint = "hint: credentials come from the environment or a profile of each machine";
        return Err(refused(format!("{shown}: a run folder takes no passwords\n{hint}")));
    }
    let stdin =
        |word: &OsString| matches!(word.as_bytes(), b"--files-from=-" | b"--exclude-from=-");
    if arguments.iter().any(stdin) {
        return Err(refused("a list from standard input cannot be read again: give a file".into()));
    }
    check_apart(&run, spec).map_err(refused)?;
    let tells = !wanted.json && !wanted.quiet;
    let inventory = |manifest: &Option<OsString>, side| -> Result<_, u8> {
        let Some(manifest) = manifest else { return Ok(None) };
        let read = inventory(manifest, spec, side);
        let read = read.map_err(|Fatal { code, message }| end_with(code, &message))?;
        if tells {
            output::message(&of_rows(&read, side));
        }
        Ok(Some(Arc::new(read)))
    };
    let inventories = [
        inventory(&args.inventory, Side::Source)?,
        inventory(&args.target_inventory, Side::Target)?,
    ];
    let mut spec = spec.clone();
    [spec.objects.inventory, spec.objects.target_inventory] = inventories;
    let spec = &spec;
    let folder = folder::open(&run, &spec.objects.target, true);
    let folder = folder.map_err(|error| end_with(exit::SYNC_IO, &error.message))?;
    let encoded = |word: &OsString| journal::text(word.as_bytes());
    let here = std::env::current_dir().map_err(|error| {
        end_with(exit::SYNC_IO, &format!("cannot tell the working directory: {error}"))
    })?;
    let here = here.into_os_string();
    let previous = match &args.previous {
        Some(given) => {
            let given = absolute(given);
            let opened = folder::open(&given, &spec.objects.target, false);
            if opened.ok().and_then(|folder| PreviousRun::open(folder, VERSION)).is_none() {
                let shown = quoted(&given);
                output::message(&format!(
                    "note: --previous-run {shown} is not used: no run of this version with ranges is there"
                ));
            }
            Some(given)
        }
        None => last_run(spec),
    };
    let request = planner::PlanRequest {
        spec: spec.clone(),
        words: arguments.iter().map(encoded).collect(),
        folder: encoded(&here),
        version: VERSION,
        workers: args.workers.unwrap_or(WORKERS),
        shard_bytes: args.shard_bytes,
        ends: end_directories(spec),
        local: !spec.has_store(),
        previous: previous.map(|run| journal::text(run.as_bytes())),
    };
    (wanted.command, wanted.done) = ("cluster plan", "planned");
    (wanted.line, wanted.dry_run) = (Line::None, true);
    wanted.resume = "no plan was written";
    // They are about the transfer, which comes later.
    wanted.textfile = TextfileArgs::default();
    let json = wanted.json;
    let quiet = wanted.quiet;
    let session = Session::start(wanted, exit::of_sync)?;
    let mut made = None;
    let planned = planner::plan(request, &*folder, &session.control, &session.show);
    let outcome = match planned {
        Ok((plan, outcome)) => {
            made = Some(plan);
            outcome
        }
        Err(fatal) => outcome_of_fatal(fatal, session.start.elapsed()),
    };
    let code = session.end(outcome);
    let Some(plan) = made else { return Err(code) };
    if !json && !quiet {
        let shown = quoted(&run);
        output::message(&match plan.ranges() {
            0 => {
                let (entries, shards) = (things(plan.entries, "name"), plan.shards.len() as u64);
                let size = Digits::default().size(plan.bytes);
                format!("planned {entries}, {size} bytes in {} in {shown}", things(shards, "shard"))
            }
            ranges => format!(
                "cut about {} into {} in {shown}: workers list them",
                things(plan.estimated_names, "name"),
                things(u64::from(ranges), "range")
            ),
        });
    }
    Ok((code, plan))
}

/// The file of the user's state that names the last run of the same ends.
fn last_run_file(spec: &Spec) -> Option<PathBuf> {
    let ends = spec.sources.locations().chain([spec.target.clone()]);
    let ends = ends.map(|end| absolute(end.as_typed().as_os_str()).into_vec());
    let stores = [&spec.objects.source, &spec.objects.target].into_iter();
    let stores = stores.map(|store| store.endpoint_url.clone().unwrap_or_default().into_bytes());
    let fields: Vec<Vec<u8>> = ends.chain(stores).collect();
    let folder = Journal::of_user().folder()?.join("clusters");
    Some(folder.join(journal::hashed_name(fields.iter().map(Vec::as_slice), "run")))
}

/// The last run of the same ends that was collected on this machine.
fn last_run(spec: &Spec) -> Option<OsString> {
    let run = std::fs::read(last_run_file(spec)?).ok()?;
    Some(OsString::from_vec(run)).filter(|run| !run.is_empty())
}

/// Remembers a run that was collected: its manifest is what the next run of the same ends begins with. That only spares
/// requests, so a state folder that cannot be written is no failure.
pub fn remember_run(spec: &Spec, run: &OsStr) {
    let Some(file) = last_run_file(spec).filter(|_| spec.remember) else { return };
    if file.parent().is_none_or(|folder| journal::make_private(folder).is_err()) {
        return;
    }
    if let Ok(target) = Target::open(&file) {
        drop(target.deliver(run.as_bytes()));
    }
}

/// Reads the inventory that the names of an end are taken from.
fn inventory(manifest: &OsStr, spec: &Spec, side: Side) -> Result<Inventory, Fatal> {
    let option = match side {
        Side::Source => "--inventory",
        Side::Target => "--target-inventory",
    };
    let refused = |why: &str| Err(Fatal::new(exit::SYNC_USAGE, format!("{option} {why}")));
    let mut sources = spec.sources.locations();
    let (Some(source), None) = (sources.next(), sources.next()) else {
        return refused("needs one source");
    };
    if spec.files_from.is_some() {
        return refused("cannot be used with --files-from");
    }
    let manifest = &Location::parse(manifest)?;
    match (side, source, spec.target.clone()) {
        (Side::Source, Location::S3(source), _) => {
            Inventory::read(manifest, &spec.objects.source, &source)
        }
        (Side::Source, ..) => refused("needs one source, a bucket or prefix in S3"),
        (Side::Target, source, Location::S3(mut target)) => {
            // The names of the target are those of the source's content.
            let typed = source.as_typed();
            if !is_content(typed.as_os_str().as_bytes(), &source) {
                return refused("needs a source with a slash at its end");
            }
            if !target.key.is_empty() && !target.key.ends_with(b"/") {
                target.key.push(b'/');
            }
            Inventory::read(manifest, &spec.objects.target, &target)
        }
        (Side::Target, ..) => refused("needs a target in S3"),
    }
}

/// Whether a source argument means the content of a directory, prefix or bucket, not the directory.
fn is_content(typed: &[u8], source: &Location) -> bool {
    match source {
        Location::S3(url) => url.key.is_empty() || url.key.ends_with(b"/"),
        _ => matches!(typed.rsplit(|byte| *byte == b'/').next(), Some(b"" | b"." | b"..")),
    }
}

/// Counts of the rows of an inventory, as a sentence.
fn of_rows(inventory: &Inventory, side: Side) -> String {
    let InventoryCounts { kept, outside, old } = inventory.counts;
    let end = if side == Side::Source { "source" } else { "target" };
    let mut text = format!("the inventory has {} below the {end}", things(kept, "object"));
    if outside > 0 {
        text.push_str(&format!(", {} outside of it", things(outside, "object")));
    }
    if old > 0 {
        text.push_str(&format!(", and {old} older versions and delete markers"));
    }
    text
}

/// Whether a word holds a password in a URL.
fn has_secret(word: &OsStr) -> bool {
    let Some(text) = word.to_str() else { return false };
    let url = text.split_once("=").filter(|(name, _)| name.starts_with("--")).map_or(text, |x| x.1);
    let http = url.starts_with("http://") || url.starts_with("https://");
    http && without_secrets(url) != url
}

/// Refuses a run folder inside the source or target: it would be transferred, or deleted.
fn check_apart(run: &OsStr, spec: &Spec) -> Result<(), String> {
    let is_s3 = |path: &Path| path.as_os_str().as_bytes().starts_with(b"s3://");
    let inside = |outer: &Path| {
        if is_s3(outer) || is_s3(Path::new(run)) {
            let mut prefix = outer.as_os_str().as_bytes().to_vec();
            if prefix.last() != Some(&b'/') {
                prefix.push(b'/');
            }
            return is_s3(outer) && run.as_bytes().starts_with(&prefix);
        }
        // The folder need not exist yet: its nearest existing ancestor says where it will be. A relative name has
        // none before it is made absolute.
        let here = std::path::absolute(run)
            .ok()
            .and_then(|run| run.ancestors().find_map(|above| above.canonicalize().ok()));
        let outer = outer.canonicalize();
        outer.is_ok_and(|outer| outer.is_dir() && here.is_some_and(|run| run.starts_with(&outer)))
    };
    let mut all = spec.sources.locations().chain([spec.target.clone()]).map(|end| end.as_typed());
    match all.find(|outer| inside(outer)) {
        Some(outer) => Err(format!(
            "the run folder {} lies inside {}, which is transferred",
            quoted(run),
            quoted(outer)
        )),
        None => Ok(()),
    }
}
