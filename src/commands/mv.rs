//! `hakobu mv`: renames if possible, else copies, checks and removes. Names and meanings of options are those of mv(1), and
//! hakobu's own.

use super::cp::{
    NO_FOLLOW, PROGRESS, QUIET, SIZE_ONLY, STRIP, UPDATE, Update, attributes, update_of,
};
use super::operands::{Operands, operands, without_slashes};
use super::session::{Session, run_transfer};
use super::tool::{carry_out, end_with};
use crate::cli::{Group, JSON, OptArg, Refused, Table, Typed, flag, parts, put, titled, value};
use crate::filters::{self, Filters};
use crate::limits::{self, LimitArgs};
use crate::objects::{self, Concerned, ObjectArgs};
use crate::show::{Line, ShowOptions, UnfinishedFile, ask};
use crate::{backups, exit, names};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_sys::meta::identity;
use hakobu_transfer::local::Carried;
use hakobu_transfer::location::{Location, Sources};
use hakobu_transfer::plan::mv::{
    Existing, Moves, RenameOptions, RenameResult, name_in, rename_or_copy,
};
use hakobu_transfer::policy::{Policy, Preserve, Symlinks};
use hakobu_transfer::run::{Layout, Outcome, Spec};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The command line of `mv`.
pub static TABLE: Table<MvArgs> = Table {
    command: "mv",
    about: "Rename SRC to DST, or move several into a directory, as mv does",
    description: "Within a file system it renames. Across file systems and with s3:// it copies, \
            checks the copy, and only then removes the source.",
    usage: "hakobu mv [OPTIONS] SRC... DST\n       hakobu mv [OPTIONS] -t DIR SRC...",
    examples: &[
        ("hakobu mv src /mnt/new/", "Move a tree to another file system, checked."),
        ("hakobu mv big.iso s3://data/", "Upload a file and remove it here."),
        ("hakobu mv -n list.txt names.txt", "Rename, but never replace a file."),
    ],
    common: &[
        "no-clobber",
        "update",
        "interactive",
        "target-directory",
        "dry-run",
        "verbose",
        "jobs",
        "json",
        "explain",
    ],
    after: "Of -n, -f and -i the last one counts.\n\
            Exit codes: 0 done, 1 something failed, 2 usage.",
    options: &[
        &EXISTING,
        &MOVED,
        &WORK,
        &OUTPUT,
        &backups::OPTIONS,
        &objects::COMMON,
        &objects::DEBUG,
        &objects::SIDES,
        &objects::RAW,
        &objects::STAT,
        &objects::TRANSFER,
        &objects::FLATTEN,
        &objects::NAMES,
        &objects::CASES,
        &objects::STOP,
        &filters::NAMED,
        &limits::TRANSFER,
        &names::LINKS,
    ],
    unbuilt: &[UNBUILT, objects::UNBUILT],
    abbreviates: true,
};

/// The options read so far.
#[derive(Default)]
pub struct MvArgs {
    pub(super) options: RenameOptions,
    pub(super) wanted: ShowOptions,
    pub(super) backups: backups::BackupArgs,
    pub(super) links: names::LinkArgs,
    /// `--strip-trailing-slashes`.
    pub(super) strips: bool,
    /// One of `-n`, `-f`, `-i` was given.
    pub(super) decided: bool,
    pub(super) no_target_dir: bool,
    pub(super) target_dir: Option<OsString>,
    pub(super) limits: LimitArgs,
    /// Hard links between arguments that are copied.
    pub(super) carried: Arc<Carried>,
    /// What the run may take, from `limits`.
    pub(super) run_limits: hakobu_core::limit::Limits,
    pub(super) verbose: bool,
    pub(super) dry_run: bool,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    pub(super) symlinks: Option<Symlinks>,
    pub(super) size_only: bool,
}

parts!(MvArgs {
    objects: ObjectArgs,
    limits: LimitArgs,
    filters: Filters,
    links: names::LinkArgs,
    backups: backups::BackupArgs
});

impl MvArgs {
    /// Applies `-n`, `-f` or `-i`.
    fn decide(&mut self, existing: Existing) {
        (self.options.existing, self.decided) = (existing, true);
    }
}

static EXISTING: Group<MvArgs> = titled("Existing files").with(&[
    flag("no-clobber", Some('n'), "skip existing files")
        .alias(&["no-overwrite"])
        .sets(|it, _| it.decide(Existing::Keep)),
    flag("force", Some('f'), "do not ask before overwriting")
        .sets(|it, _| it.decide(Existing::Replace)),
    flag("interactive", Some('i'), "ask before overwriting")
        .local("--no-clobber keeps existing files")
        .sets(|it, _| it.decide(Existing::Ask(ask("mv", "overwrite")))),
    UPDATE.reads(|it, arg| {
        let update = update_of(arg)?;
        if update == Update::Missing {
            it.decide(Existing::Keep);
        }
        put(&mut it.options.update, update == Update::Older)
    }),
    SIZE_ONLY
        .with_help("with s3://: skip existing files of the same size")
        .stored()
        .sets(|it, on| it.size_only = on),
]);

static MOVED: Group<MvArgs> = titled("What is moved").with(&[
    // Directories are always moved with their content.
    flag("recursive", Some('r'), "move directories and prefixes (always so)").sets(|_, _| {}),
    value("target-directory", Some('t'), "DIR", "move everything into DIR")
        .reads(|it, arg| put(&mut it.target_dir, Some(arg.value.clone()))),
    flag(
        "no-target-directory",
        Some('T'),
        "treat DST as the new name, never as a directory to move into",
    )
    .sets(|it, on| it.no_target_dir = on),
    STRIP.sets(|it, on| it.strips = on),
    NO_FOLLOW.stored().sets(|it, on| {
        it.symlinks = Some(if on { Symlinks::Skip } else { Symlinks::Follow });
    }),
    flag("no-copy", None, "rename only: fail across file systems")
        .local("")
        .sets(|it, on| it.options.no_copy = on),
    value(
        "no-preserve",
        None,
        "LIST",
        "across file systems: do not keep mode, ownership, timestamps, links, xattr",
    )
    .local("")
    .reads(|it, arg| {
        let dropped = &mut it.options.dropped;
        attributes(&arg.value.to_string_lossy(), |attribute| match attribute {
            "mode" => dropped.mode = true,
            "ownership" => dropped.ownership = true,
            "timestamps" => dropped.timestamps = true,
            "links" => dropped.links = true,
            _ => dropped.xattrs = true,
        })
    }),
]);

static WORK: Group<MvArgs> = titled("Work").with(&[
    limits::JOBS.reads(limits::set_jobs),
    value(
        "joblog",
        None,
        "FILE",
        "write a line per copied file to FILE, in GNU parallel's columns",
    )
    .reads(|it, arg| put(&mut it.wanted.joblog, Some(arg.value.clone()))),
    value(
        "manifest",
        None,
        "FILE",
        "write a JSON line per entry and its result to FILE (-: stdout)",
    )
    .reads(|it, arg| put(&mut it.wanted.manifest, Some(arg.value.clone()))),
    flag("dry-run", None, "with s3://: show what would be moved; change nothing")
        .alias(&["dryrun"])
        .stored()
        .sets(|it, on| it.dry_run = on),
]);

static OUTPUT: Group<MvArgs> = titled("Output").with(&[
    flag("verbose", Some('v'), "print what is moved").sets(|it, on| it.verbose = on),
    QUIET.sets(|it, on| it.wanted.hush(on)),
    PROGRESS.sets(|it, on| it.wanted.progress = Some(on)),
    JSON.sets(|it, on| it.wanted.json = on),
]);

const UNBUILT: &[(&str, &str)] = &[("--exchange --context -Z", "")];

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(
        TABLE.parse(&arguments),
        |typed| parse_work(&typed),
        |work| {
            Ok(match work {
                MvWork::Local(reading, places) => move_all(*reading, &places),
                MvWork::Objects(spec, wanted) => run_transfer(&spec, *wanted, exit::of_copy),
            })
        },
    )
}

/// Kind of work.
enum MvWork {
    /// Renames if possible.
    Local(Box<MvArgs>, Operands),
    /// One transfer that removes its sources.
    Objects(Box<Spec>, Box<ShowOptions>),
}

/// Describes a move with a store on a side: its options and its spec.
///
/// # Errors
/// An invalid command line.
pub fn parse_objects(arguments: &[OsString]) -> Result<(Vec<OptArg>, Spec, ShowOptions), Refused> {
    let typed = TABLE.parse(arguments)?;
    match parse_work(&typed).map_err(Refused::Usage)? {
        MvWork::Objects(spec, wanted) => Ok((typed.options, *spec, *wanted)),
        MvWork::Local(..) => Err(Refused::Usage("neither side is in s3://".into())),
    }
}

fn parse_work(typed: &Typed) -> Result<MvWork, String> {
    let (mut reading, places) = parse_args(typed)?;
    let concerned = Concerned::of(&places.sources, &places.target);
    reading.run_limits = reading.limits.of_run(concerned.any())?;
    if concerned.any() {
        let target = places.target.local();
        let mut paths = places.sources.paths().iter().map(PathBuf::as_path).chain(target);
        if paths.any(|path| path.as_os_str() == "-") {
            let message = "'-' stands for standard input or output with cp only; a file of that \
                           name is ./-";
            return Err(message.to_owned());
        }
        TABLE.check_places(typed, true, concerned.target)?;
        let spec = object_spec(&mut reading, &places, concerned)?;
        return Ok(MvWork::Objects(Box::new(spec), Box::new(reading.wanted)));
    }
    TABLE.check_places(typed, false, false)?;
    Ok(MvWork::Local(Box::new(reading), places))
}

fn parse_args(typed: &Typed) -> Result<(MvArgs, Operands), String> {
    let mut reading = TABLE.read(typed, MvArgs::default())?;
    let stripped;
    let paths = match reading.strips {
        false => &typed.paths,
        true => {
            stripped = without_slashes(&typed.paths, reading.target_dir.is_some());
            &stripped
        }
    };
    let places =
        operands(paths, Vec::new(), reading.target_dir.as_deref(), reading.no_target_dir, false)?;
    if places.far.is_some() {
        return Err("mv does not move to or from another machine\n\
                    hint: hakobu sync -a --remove-source-files copies, and removes each source whose copy is complete"
            .into());
    }
    reading.finish()?;
    Ok((reading, places))
}

impl MvArgs {
    fn finish(&mut self) -> Result<(), String> {
        if !self.decided && std::io::stdin().is_terminal() {
            self.options.existing = Existing::AskIfReadOnly(ask("mv", "replace read-only"));
        }
        let keeps = matches!(self.options.existing, Existing::Keep);
        self.options.backup = std::mem::take(&mut self.backups).backup(keeps)?;
        let wanted = &mut self.wanted;
        wanted.links = std::mem::take(&mut self.links).links()?;
        (wanted.command, wanted.done) = ("mv", "moved");
        wanted.stat = self.objects.stat;
        (wanted.explain, wanted.proves) = (self.limits.explain, self.limits.prove);
        wanted.priority = self.limits.priority;
        wanted.resume = "each file is complete, at its source or its target; move the rest with \
                         hakobu sync -aHAX --remove-source-files";
        wanted.unfinished = UnfinishedFile::Discarded;
        wanted.language = self.limits.language;
        wanted.textfile = self.limits.textfile.clone();
        wanted.line = match (self.verbose, wanted.json) {
            (false, _) => Line::None,
            (true, false) => Line::Arrow("copied"),
            (true, true) => Line::Json,
        };
        (wanted.problems, wanted.totals) = (self.verbose, wanted.progress == Some(true));
        wanted.check_manifest()
    }

    fn spec(&self, from: &Path, to: &Path, policy: Policy) -> Spec {
        let sources = Sources::Paths(vec![from.to_owned()]);
        let layout = Layout::Cp { no_target_dir: true, target_is_dir: false, parents: false };
        Spec {
            items: self.wanted.items(),
            items_unchanged: self.wanted.items_unchanged(),
            check_space: true,
            carried: Some(Arc::clone(&self.carried)),
            ..self.limits.spec(
                self.run_limits,
                (sources, Location::Local(to.to_owned())),
                layout,
                policy,
            )
        }
    }
}

fn move_all(reading: MvArgs, places: &Operands) -> u8 {
    let target = places.target.as_typed();
    let into_dir = !reading.no_target_dir && target.is_dir();
    if places.is_dir && !into_dir {
        return end_with(exit::FAILURE, &format!("{} is not a directory", quoted(&target)));
    }
    let session = match Session::start(reading.wanted.clone(), exit::of_copy) {
        Ok(session) => session,
        Err(code) => return code,
    };
    let mut outcome = Outcome::default();
    let mut moves = Moves::new(places.sources.paths(), &target);
    for from in places.sources.paths() {
        let to = if into_dir { name_in(from, &target) } else { target.clone() };
        outcome = outcome.merged(move_one(&reading, &session, from, &to, &mut moves));
        // A signal was the answer to a question.
        outcome.stopped |= outcome.totals.skipped > 0 && session.control.is_stopped();
        if outcome.stopped || outcome.fatal.is_some() {
            break;
        }
    }
    session.end(outcome)
}

/// Moves one entry.
fn move_one(
    reading: &MvArgs,
    session: &Session,
    from: &Path,
    to: &Path,
    moves: &mut Moves,
) -> Outcome {
    let mut outcome = Outcome::default();
    match rename_or_copy(from, to, &reading.options, moves) {
        Ok(RenameResult::Renamed { identity, backup, warning }) => {
            moves.add(identity);
            if let Some(text) = warning {
                session.show.event(Event::Warning(text));
            }
            session.show.renamed(from, to, backup.as_deref());
            outcome.totals.files = 1;
        }
        Ok(RenameResult::Left) => (outcome.totals.skipped, outcome.totals.left_out) = (1, 1),
        Ok(RenameResult::OtherVolume(policy)) => {
            outcome = session.run(&reading.spec(from, to, *policy));
            if outcome.totals.failed == 0
                && let Ok(there) = identity(to)
            {
                moves.add(there);
            }
            // A move whose source still exists did not happen, whatever the engine reports.
            if outcome.totals.failed == 0
                && outcome.totals.vanished == 0
                && !outcome.stopped
                && outcome.fatal.is_none()
                && from.symlink_metadata().is_ok()
            {
                session.show.event(Event::Problem(&Problem {
                    operation: Operation::Move,
                    source: Some(from.to_owned()),
                    target: Some(to.to_owned()),
                    cause: Cause::Reason("it was copied, but the source is still there"),
                    class: ErrorClass::Partial,
                }));
                outcome.totals.failed += 1;
            }
        }
        Err(problem) => {
            session.show.event(Event::Problem(&problem));
            outcome.totals.failed = 1;
        }
    }
    outcome
}

/// Describes a move with `s3://` on a side: a copy that removes each source once its target is complete and checked.
pub fn object_spec(
    reading: &mut MvArgs,
    places: &Operands,
    concerned: Concerned,
) -> Result<Spec, String> {
    let mut policy = Policy {
        recurse: true,
        symlinks: reading.symlinks.unwrap_or(Symlinks::Keep),
        filter: reading.filters.of_names()?,
        preserve: Preserve { mode: true, times: true, ..Preserve::default() },
        ignore_times: true,
        modify_window_s: Some(-1),
        ignore_existing: matches!(reading.options.existing, Existing::Keep),
        update: reading.options.update,
        update_same: reading.options.update,
        size_only: reading.size_only,
        remove_source_files: true,
        remove_source_dirs: true,
        cp_targets: true,
        dry_run: reading.dry_run,
        suffix: b"~".to_vec(),
        ..Policy::default()
    };
    let args = std::mem::take(&mut reading.objects);
    let objects = args.fit(concerned, &mut policy)?;
    let wanted = &mut reading.wanted;
    wanted.notes.extend(reading.filters.note(true)?);
    wanted.styled = reading.filters.is_styled();
    wanted.dry_run = policy.dry_run;
    wanted.resume = "each file is complete, at its source or its target; run the same command again \
                     to continue";
    wanted.line = match (reading.verbose || policy.dry_run, wanted.json) {
        (false, _) => Line::None,
        _ if wanted.quiet => Line::None,
        (true, true) => Line::Json,
        (true, false) if policy.dry_run => Line::Mapping("mv"),
        (true, false) => Line::Arrow("moved"),
    };
    let layout = Layout::Cp {
        no_target_dir: reading.no_target_dir,
        target_is_dir: places.is_dir,
        parents: false,
    };
    wanted.check_manifest()?;
    Ok(Spec {
        items: wanted.items(),
        items_unchanged: wanted.items_unchanged(),
        objects,
        ..reading.limits.spec(
            reading.run_limits,
            (places.sources.clone(), places.target.clone()),
            layout,
            policy,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<MvArgs, String> {
        let typed = TABLE.parse_line(line)?;
        parse_args(&typed).map(|(reading, _)| reading)
    }

    #[test]
    fn the_last_of_three_counts() {
        for (line, expected) in [
            ("-n a b", "keep"),
            ("-n -f a b", "replace"),
            ("-f -i a b", "ask"),
            ("-nfi -n a b", "keep"),
        ] {
            let existing = match read(line).map(|reading| reading.options.existing) {
                Ok(Existing::Keep) => "keep",
                Ok(Existing::Replace) => "replace",
                Ok(Existing::Ask(_)) => "ask",
                Ok(Existing::AskIfReadOnly(_)) => "ask if read-only",
                Err(_) => "error",
            };
            assert_eq!(existing, expected, "{line}");
        }
    }

    #[test]
    fn backups() {
        let suffix = |line| {
            let backup = read(line).map(|reading| reading.options.backup).unwrap_or_default();
            backup.map(|backup| backup.suffix)
        };
        assert_eq!(suffix("--backup=simple a b"), Some(b"~".to_vec()));
        assert_eq!(suffix("-S .old a b"), Some(b".old".to_vec()));
        assert_eq!(suffix("a b"), None);
        assert_eq!(suffix("-b --backup=none a b"), None);
        assert_eq!(read("-bn a b").err().as_deref(), Some("-b and -n cannot be used together"));
        assert!(read("-b --suffix=a/b a b").is_err());
    }
    #[test]
    fn file_options_are_refused_with_objects() {
        let refused = |line: &str| parse_work(&TABLE.parse_line(line).unwrap()).err();
        assert_eq!(refused("-f a s3://abc/b"), None);
        let message = refused("-b a s3://abc/b");
        assert_eq!(message.as_deref(), Some("-b is not supported for s3://"));
        let message = refused("--dry-run a b");
        let expected = "--dry-run is for s3:// locations, and none is given";
        assert_eq!(message.as_deref(), Some(expected));
    }
}
