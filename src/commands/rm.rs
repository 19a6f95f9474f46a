//! `hakobu rm`: rm(1)'s command line on the parallel remover; of `s3://` in `s3`.

mod s3;

use super::remote;
use super::tool::{self, carry_out};
use crate::cli::{
    Group, JSON, Noted, OptArg, Refused, Table, Takes, Typed, flag, parts, put, titled, value,
};
use crate::exit;
use crate::filters::{self, ArgumentFilters, Filters};
use crate::limits::{self, LimitArgs};
use crate::names::strip_slashes;
use crate::objects::{self, ObjectArgs, are_s3};
use crate::show::json::{Paths, kind_word, push_line};
use crate::show::lines::push_local_removal;
use crate::show::{Show, ShowOptions, confirmed};
use hakobu_core::error::{Cause, ErrorClass, Operation, Problem};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::Limiter;
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_sys::dir::{self, Reader};
use hakobu_sys::{AsFd, BorrowedFd, errno, meta};
use hakobu_transfer::run::{Outcome, steered};
use hakobu_tree::remove::{
    ParallelRemoval, Removal, RemovalEntry, RemovalPath, RemoveOptions, remove_all, remove_tree,
};
use parking_lot::Mutex;
use serde::Serialize;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// The command line of `rm`.
pub static TABLE: Table<RmOptions> = Table {
    command: "rm",
    about: "Remove files and, with -r, directories, as rm does, in parallel",
    description: "Symlinks are removed, not followed. Objects and prefixes are removed with s3:// \
            paths, which may contain '*' and '?'.",
    usage: "hakobu rm [OPTIONS] PATH...",
    examples: &[
        ("hakobu rm -rf old", "Remove a tree with several workers."),
        ("hakobu rm -rn s3://data/photos/", "Show which objects would be removed."),
        ("hakobu rm -r --exclude='*.txt' old", "Remove a tree except for some files."),
    ],
    common: &[
        "recursive",
        "force",
        "dry-run",
        "keep-dirs",
        "exclude",
        "one-file-system",
        "verbose",
        "jobs",
        "json",
    ],
    after: "Symlinks are removed, not followed. Excluded entries stay, and so do the \
            directories above them; patterns match names as in cp -r: from the last component of \
            PATH on, or below it if PATH ends with a slash. Of -f, -i, -I and --interactive the \
            last one counts.\n\
            Exit codes: 0 done, 1 something could not be removed, 2 usage.",
    options: &[
        &REMOVED,
        &ASKED,
        &WORK,
        &OUTPUT,
        &objects::ONE,
        &objects::ALL_VERSIONS,
        &objects::STAT,
        &filters::CHOSEN,
        &QUIET,
        &limits::IOPS,
        &limits::RPS,
        &limits::PRIORITY,
    ],
    unbuilt: &[objects::UNBUILT],
    abbreviates: true,
};

/// When to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    Never,
    /// Only before removing write-protected entries, and only on a terminal.
    #[default]
    Protected,
    Once,
    Always,
}

/// The parsed command line.
#[derive(Clone, Debug, Default)]
pub struct RmOptions {
    /// Whether paths are in `s3://`.
    pub(super) in_store: bool,
    pub(super) recursive: bool,
    pub(super) empty_dirs: bool,
    /// Remove only the contents of directories.
    pub(super) keep_dirs: bool,
    /// A missing argument is not an error.
    pub(super) force: bool,
    pub(super) dry_run: bool,
    pub(super) ask: Ask,
    pub(super) one_file_system: bool,
    pub(super) preserve_root: bool,
    /// Refuse tops that are mount points, too.
    pub(super) preserve_mounts: bool,
    pub(super) verbose: bool,
    pub(super) json: bool,
    pub(super) limits: LimitArgs,
    /// What the run may take, from `limits`.
    pub(super) run_limits: hakobu_core::limit::Limits,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// Rules for local arguments: entries that they exclude stay.
    pub(super) kept: ArgumentFilters,
    pub(super) paths: Vec<OsString>,
}

impl RmOptions {
    /// Returns the defaults.
    pub(super) fn new(in_store: bool) -> RmOptions {
        let ask = if in_store { Ask::Never } else { Ask::Protected };
        RmOptions { in_store, ask, preserve_root: true, ..RmOptions::default() }
    }

    /// Returns whether a line is printed for each removed entry.
    pub(super) fn tells(&self) -> bool {
        self.verbose || self.dry_run
    }

    /// Returns the options of the walk.
    pub(super) fn removal(&self) -> RemoveOptions {
        let RmOptions { one_file_system, dry_run, keep_dirs, .. } = *self;
        RemoveOptions { one_file_system, dry_run, keep_dirs, ..RemoveOptions::default() }
    }
}

parts!(RmOptions { objects: ObjectArgs, limits: LimitArgs, filters: Filters });

static REMOVED: Group<RmOptions> = titled("What is removed").with(&[
    flag("recursive", Some('r'), "remove directories and their contents")
        .sets(|it, on| it.recursive = on),
    flag("R", Some('R'), "same as -r").short_only().sets(|it, on| it.recursive = on),
    flag("dir", Some('d'), "also remove empty directories")
        .local("")
        .sets(|it, on| it.empty_dirs = on),
    flag("keep-dirs", None, "remove the contents of directories but no directory")
        .local("there are none")
        .sets(|it, on| it.keep_dirs = on),
    flag("one-file-system", None, "skip directories on other file systems")
        .local("")
        .sets(|it, on| it.one_file_system = on),
    value(
        "preserve-root",
        None,
        "all",
        "never remove '/' (the default); 'all': nor other mounted ones",
    )
    .takes(Takes::Perhaps("all"))
    .local("")
    .reads(|it, arg| {
        it.preserve_mounts = match arg.value.to_str() {
            Some("") => false,
            Some("all") => true,
            _ => return Err(arg.refuse("'all' is the only value")),
        };
        put(&mut it.preserve_root, true)
    }),
    flag("no-preserve-root", None, "allow '/'")
        .local("")
        .sets(|it, _| (it.preserve_root, it.preserve_mounts) = (false, false)),
]);

static ASKED: Group<RmOptions> = titled("When to ask").with(&[
    flag("force", Some('f'), "never ask; ignore files that do not exist")
        .sets(|it, _| (it.force, it.ask) = (true, Ask::Never)),
    flag("i", Some('i'), "ask before each removal")
        .short_only()
        .local("")
        .sets(|it, _| (it.force, it.ask) = (false, Ask::Always)),
    flag("I", Some('I'), "ask once before removing more than three, or with -r")
        .short_only()
        .sets(|it, _| (it.force, it.ask) = (false, Ask::Once)),
    value("interactive", None, "WHEN", "ask: never, once or always (the default)")
        .takes(Takes::Perhaps("WHEN"))
        .words(&["never", "once", "always"])
        .reads(|it, arg| {
            it.ask = match arg.value.to_str() {
                Some("once") => Ask::Once,
                Some("never") => Ask::Never,
                _ if it.in_store => return Err("--interactive is not supported for s3://".into()),
                Some("" | "always" | "yes") => Ask::Always,
                Some("no" | "none") => Ask::Never,
                _ => return Err(arg.refuse("give never, once or always")),
            };
            put(&mut it.force, false)
        }),
]);

static WORK: Group<RmOptions> = titled("Work").with(&[
    limits::JOBS.reads(limits::set_jobs),
    flag("dry-run", Some('n'), "show what would be removed; remove nothing")
        .alias(&["dryrun"])
        .sets(|it, on| it.dry_run = on),
]);

static OUTPUT: Group<RmOptions> = titled("Output").with(&[
    flag("verbose", Some('v'), "print what is removed").sets(|it, on| it.verbose = on),
    JSON.sets(|it, on| it.json = on),
]);

/// Options of aws.
const QUIET: Noted = Noted(&[flag("quiet", None, "say nothing")
    .alias(&["only-show-errors"])
    .noted("only -v prints what is removed")]);

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    carry_out(
        TABLE.parse(&arguments),
        |typed| parse_work(&typed),
        |what| match what {
            RmWork::Local(plan) => remove(&plan),
            RmWork::Objects(plan) => Ok(s3::remove(*plan)),
        },
    )
}

/// Kind of locations.
enum RmWork {
    Local(Box<RmOptions>),
    Objects(Box<s3::ObjectRemoval>),
}

/// Describes a removal of objects: its options and its plan.
///
/// # Errors
/// An invalid command line.
pub fn parse_objects(arguments: &[OsString]) -> Result<(Vec<OptArg>, s3::ObjectRemoval), Refused> {
    let typed = TABLE.parse(arguments)?;
    let plan = s3::plan(&typed).map_err(Refused::Usage)?;
    Ok((typed.options, plan))
}

fn parse_work(typed: &Typed) -> Result<RmWork, String> {
    if !are_s3(&typed.paths)? {
        return plan(typed).map(|plan| RmWork::Local(Box::new(plan)));
    }
    let planned = s3::plan(typed)?;
    Ok(RmWork::Objects(Box::new(planned)))
}

/// Refuses rules of which one changes nothing: more would be removed than was meant.
fn refuse_idle(filters: &Filters) -> Result<(), String> {
    match filters.note(true)? {
        Some(note) => Err(note.trim_start_matches("note: ").to_owned()),
        None => Ok(()),
    }
}

fn plan(typed: &Typed) -> Result<RmOptions, String> {
    let mut plan = TABLE.read(typed, RmOptions::new(false))?;
    TABLE.check_places(typed, false, false)?;
    plan.run_limits = plan.limits.of_run(false)?;
    plan.paths.clone_from(&typed.paths);
    // With -f, names that are not there are no error.
    if let Some(message) = remote::elsewhere(&typed.paths, "hakobu rm").filter(|_| !plan.force) {
        return Err(message);
    }
    if plan.paths.is_empty() && !plan.force {
        return Err("missing path".into());
    }
    if plan.keep_dirs && plan.empty_dirs && !plan.recursive {
        return Err("-d and --keep-dirs contradict each other".into());
    }
    if plan.dry_run {
        plan.ask = Ask::Never;
    }
    refuse_idle(&plan.filters)?;
    if let Some(filter) = plan.filters.of_names()? {
        plan.kept = ArgumentFilters::new(&filter, &plan.paths)?;
    }
    Ok(plan)
}

/// Removes the arguments of a plan; returns the exit code.
fn remove(plan: &RmOptions) -> Result<u8, String> {
    let started = Instant::now();
    plan.limits.priority.apply()?;
    let (json, problems, dry_run) = (plan.json, plan.tells(), plan.dry_run);
    // With a line or a question for each entry no bar is needed.
    let progress = (plan.tells() || plan.ask == Ask::Always).then_some(false);
    let wanted = ShowOptions {
        command: "rm",
        json,
        problems,
        progress,
        dry_run,
        quiet: true,
        ..ShowOptions::default()
    };
    let show = Show::new(wanted, Arc::default())?;
    if plan.ask == Ask::Once && (plan.recursive || plan.paths.len() > 3) {
        let count = plan.paths.len();
        let things = if count == 1 { "argument" } else { "arguments" };
        let how = if plan.recursive { " recursively" } else { "" };
        if !confirmed(&format!("hakobu rm: remove {count} {things}{how}? ")) {
            return Ok(exit::OK);
        }
    }
    let mut totals = Totals::default();
    let tops = check_tops(plan, &show, &mut totals);
    let jobs = match plan.ask {
        Ask::Always => {
            remove_asking(plan, &tops, &show, &mut totals);
            1
        }
        _ => remove_parallel(plan, &tops, &show, &mut totals),
    };
    let code = if totals.failed > 0 { exit::FAILURE } else { exit::OK };
    let outcome = Outcome { totals, took: started.elapsed(), jobs, ..Outcome::default() };
    let complete = show.finish(&outcome, code);
    Ok(if complete { code } else { exit::FAILURE })
}

/// An argument to be removed: its path without trailing slashes, and its metadata.
pub struct Top {
    pub path: CString,
    pub kind: Kind,
}

/// Returns the valid arguments: never `.`, `..` or `/`, directories only with `-r` or `-d`, missing ones are errors without
/// `-f`. The others are reported and counted.
pub fn check_tops(plan: &RmOptions, show: &Show, totals: &mut Totals) -> Vec<Top> {
    let root = meta::of(dir::cwd(), c"/", false).ok().map(|meta| meta.identity());
    let mut tops = Vec::with_capacity(plan.paths.len());
    for path in &plan.paths {
        match check_top(plan, path, root) {
            Ok(Some(top)) => tops.push(top),
            Ok(None) => {}
            Err(cause) => {
                totals.failed += 1;
                report_failure(show, path.as_bytes(), Operation::Remove, cause);
            }
        }
    }
    tops
}

fn system(code: i32) -> Cause {
    Cause::System(io::Error::from_raw_os_error(code))
}

fn check_top(
    plan: &RmOptions,
    typed: &OsStr,
    root: Option<(u64, u64)>,
) -> Result<Option<Top>, Cause> {
    let bytes = strip_slashes(typed.as_bytes());
    // --keep-dirs keeps both.
    if plan.recursive && !plan.keep_dirs && is_dot(bytes) {
        return Err(Cause::Reason("'.' and '..' are never removed"));
    }
    let path = CString::new(bytes).map_err(|_| system(errno::EINVAL))?;
    let meta = match meta::of(dir::cwd(), &path, false) {
        Ok(meta) => meta,
        Err(error)
            if plan.force
                && (errno::is(&error, errno::ENOENT) || errno::is(&error, errno::ENOTDIR)) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(Cause::System(error)),
    };
    if plan.kept.excludes(bytes, b"", meta.kind) {
        return Ok(None);
    }
    if meta.kind != Kind::Dir {
        return match bytes.len() == typed.len() {
            true => Ok(Some(Top { path, kind: meta.kind })),
            // A trailing slash requires a directory, which does not exist.
            false if plan.force && meta.kind != Kind::Symlink => Ok(None),
            // A symlink is never followed, and is not the requested directory either.
            false => Err(system(errno::ENOTDIR)),
        };
    }
    if !plan.recursive && !plan.empty_dirs {
        return Err(Cause::Reason("is a directory (use -r)"));
    }
    if plan.recursive {
        guard(plan, &path, &meta, root)?;
    }
    Ok(Some(Top { path, kind: meta.kind }))
}

/// Refuses the root of the system, and with `--preserve-root=all` of every file system.
fn guard(
    plan: &RmOptions,
    path: &CString,
    meta: &Meta,
    root: Option<(u64, u64)>,
) -> Result<(), Cause> {
    if plan.preserve_root && Some(meta.identity()) == root {
        return Err(Cause::Reason("this is the root of the system (--no-preserve-root allows it)"));
    }
    if plan.preserve_mounts {
        let above = [path.to_bytes(), b"/.."].concat();
        let above = CString::new(above).map_err(|_| system(errno::EINVAL))?;
        let above = meta::of(dir::cwd(), &above, true).map_err(Cause::System)?;
        if above.dev != meta.dev {
            return Err(Cause::Reason("a file system is mounted there (--preserve-root=all)"));
        }
    }
    Ok(())
}

fn is_dot(path: &[u8]) -> bool {
    matches!(path.rsplit(|&byte| byte == b'/').next(), Some(b"." | b".."))
}

struct Watcher<'a> {
    plan: &'a RmOptions,
    show: &'a Show,
    /// Locked during a question; `None` if nothing is asked.
    question: Option<Mutex<()>>,
}

/// Removes the tops on many workers: asks at most about write-protected entries. Returns the number of workers.
pub fn remove_parallel(plan: &RmOptions, tops: &[Top], show: &Show, totals: &mut Totals) -> usize {
    let asks = plan.ask == Ask::Protected && std::io::stdin().is_terminal();
    let paths: Vec<CString> = tops
        .iter()
        .filter(|top| plan.recursive || top.kind != Kind::Dir)
        .map(|top| top.path.clone())
        .collect();
    for top in tops.iter().filter(|top| !plan.recursive && top.kind == Kind::Dir) {
        match remove_empty(plan, &top.path) {
            Ok(()) => {
                totals.deleted += 1;
                report_removed(plan, show, top.path.to_bytes(), Kind::Dir);
            }
            Err(error) => {
                totals.failed += 1;
                report_failure(show, top.path.to_bytes(), Operation::Remove, Cause::System(error));
            }
        }
    }
    let roots: Vec<&Path> = paths.iter().map(|path| tool::path(path.to_bytes())).collect();
    let (removed, jobs) = steered(&roots, plan.run_limits, |controls, capacity| {
        show.event(Event::Begins(&controls.meter));
        let watcher = Watcher { plan, show, question: asks.then(Mutex::default) };
        remove_all(&paths, plan.removal(), controls, capacity.open_dirs_max, &watcher)
    });
    totals.deleted += removed.files + removed.dirs;
    totals.failed += removed.failed;
    jobs
}

/// Removes an empty directory; in a dry run only finds out whether it is one.
fn remove_empty(plan: &RmOptions, path: &CStr) -> io::Result<()> {
    if !plan.dry_run {
        return dir::rmdir(dir::cwd(), path);
    }
    match is_empty_dir(dir::cwd(), path)? {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(errno::ENOTEMPTY)),
    }
}

impl ParallelRemoval for Watcher<'_> {
    fn keep(&self, place: &RemovalPath<'_>) -> bool {
        if !self.plan.kept.is_empty() {
            let (top, below) = place.below_top();
            if self.plan.kept.excludes(top.to_bytes(), &below, place.kind) {
                return true;
            }
        }
        let Some(question) = &self.question else { return false };
        // The mode of a symlink has no effect.
        if place.kind == Kind::Symlink || dir::may_write(place.dir, place.name) {
            return false;
        }
        let _one = question.lock();
        let what = kind_words(place.kind, false);
        let shown = shown_path(&place.path());
        let rest = if place.kind == Kind::Dir { " and its contents" } else { "" };
        !confirmed(&format!("hakobu rm: remove write-protected {what} {shown}{rest}? "))
    }

    fn removed(&self, place: &RemovalPath<'_>) {
        if self.plan.tells() {
            report_removed(self.plan, self.show, &place.path(), place.kind);
        }
    }

    fn failed(&self, place: &RemovalPath<'_>, operation: Operation, cause: Cause) {
        report_failure(self.show, &place.path(), operation, cause);
    }
}

struct Asker<'a> {
    plan: &'a RmOptions,
    show: &'a Show,
    totals: &'a mut Totals,
    /// The argument that is being removed.
    top: &'a CStr,
    /// The empty directory that was confirmed before it was entered.
    asked: Vec<u8>,
    /// Removals a second.
    limiter: Option<Limiter>,
}

/// Removes the tops one entry after the other, each after a question (`-i`).
pub fn remove_asking(plan: &RmOptions, tops: &[Top], show: &Show, totals: &mut Totals) {
    let limiter = plan.run_limits.operations_per_s_max.map(Limiter::new);
    let mut asking = Asker { plan, show, totals, top: c"", asked: Vec::new(), limiter };
    let options = plan.removal();
    for top in tops {
        let path = top.path.to_bytes();
        asking.top = &top.path;
        if top.kind == Kind::Dir && !plan.recursive {
            asking.empty_dir(&top.path);
        } else {
            remove_tree(dir::cwd(), &top.path, top.kind, path, options, &mut asking);
        }
    }
}

impl Asker<'_> {
    /// Handles `-d` without `-r`.
    fn empty_dir(&mut self, path: &CStr) {
        let entry =
            RemovalEntry { dir: dir::cwd(), name: path, path: path.to_bytes(), kind: Kind::Dir };
        if !confirmed(&format!("hakobu rm: remove directory {}? ", shown_path(entry.path))) {
            return;
        }
        match dir::rmdir(entry.dir, path) {
            Ok(()) => self.removed(&entry),
            Err(error) => self.failed(&entry, Operation::Remove, Cause::System(error)),
        }
    }
}

impl Removal for Asker<'_> {
    fn keep(&mut self, entry: &RemovalEntry<'_>) -> bool {
        let below = entry.path.get(self.top.count_bytes() + 1..).unwrap_or_default();
        if self.plan.kept.excludes(self.top.to_bytes(), below, entry.kind) {
            return true;
        }
        if self.plan.keep_dirs && entry.kind == Kind::Dir {
            return false;
        }
        let protected = entry.kind != Kind::Symlink && !dir::may_write(entry.dir, entry.name);
        let protected = if protected { "write-protected " } else { "" };
        let is_empty = match entry.kind {
            Kind::Dir => is_empty_dir(entry.dir, entry.name).unwrap_or(false),
            _ => meta::of(entry.dir, entry.name, false).is_ok_and(|meta| meta.size == 0),
        };
        let verb = if entry.kind == Kind::Dir && !is_empty { "descend into" } else { "remove" };
        let what = kind_words(entry.kind, is_empty);
        let question = format!("hakobu rm: {verb} {protected}{what} {}? ", shown_path(entry.path));
        let keep = !confirmed(&question);
        if entry.kind == Kind::Dir && is_empty {
            self.asked = entry.path.to_vec();
        }
        keep
    }

    fn keep_emptied(&mut self, entry: &RemovalEntry<'_>) -> bool {
        std::mem::take(&mut self.asked) != entry.path
            && !confirmed(&format!("hakobu rm: remove directory {}? ", shown_path(entry.path)))
    }

    fn removed(&mut self, entry: &RemovalEntry<'_>) {
        if let Some(limiter) = &self.limiter {
            limiter.wait(1, || false);
        }
        self.totals.deleted += 1;
        report_removed(self.plan, self.show, entry.path, entry.kind);
    }

    fn failed(&mut self, entry: &RemovalEntry<'_>, operation: Operation, cause: Cause) {
        self.totals.failed += 1;
        report_failure(self.show, entry.path, operation, cause);
    }
}

/// Returns whether a directory has no entries.
pub fn is_empty_dir(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    let fd = dir::open(dir, name, false)?;
    let mut any = false;
    Reader::default().for_each(fd.as_fd(), |_, _, _| any = true)?;
    Ok(!any)
}

/// Returns the words for a type in a question.
pub fn kind_words(kind: Kind, is_empty: bool) -> &'static str {
    match kind {
        Kind::File if is_empty => "regular empty file",
        Kind::File => "regular file",
        Kind::Dir => "directory",
        Kind::Symlink => "symbolic link",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::CharDevice => "character special file",
        Kind::BlockDevice => "block special file",
        Kind::Unknown => "entry",
    }
}

/// Returns a path for a question.
pub fn shown_path(path: &[u8]) -> String {
    let mut out = Vec::new();
    crate::show::escape::push_quoted(path, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Reports that an entry was removed, or would be in a dry run.
pub fn report_removed(plan: &RmOptions, show: &Show, path: &[u8], kind: Kind) {
    if !plan.tells() {
        return;
    }
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        kind: &'static str,
        #[serde(flatten)]
        paths: Paths<'a>,
    }
    let mut out = Vec::with_capacity(64);
    if plan.json {
        let paths = Paths(&[("path", Some(tool::path(path)))]);
        push_line(&Line { event: "removed", kind: kind_word(kind), paths }, &mut out);
    } else if plan.dry_run {
        push_local_removal(path, kind, &mut out);
    } else {
        out.extend_from_slice(match kind {
            Kind::Dir => b"removed directory ",
            _ => b"removed ",
        });
        crate::show::escape::push_quoted(path, &mut out);
        out.push(b'\n');
    }
    show.print(&out);
}

/// Reports that an entry could not be removed.
pub fn report_failure(show: &Show, path: &[u8], operation: Operation, cause: Cause) {
    let target = Some(PathBuf::from(OsString::from_vec(path.to_vec())));
    let problem = Problem { operation, source: None, target, cause, class: ErrorClass::Partial };
    show.event(Event::Problem(&problem));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Refused;

    fn planned(line: &str) -> Result<RmOptions, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        TABLE.parse(&arguments).and_then(|typed| plan(&typed).map_err(Refused::Usage)).map_err(
            |reason| match reason {
                Refused::Help(_) => "help".into(),
                Refused::Usage(message) | Refused::Failed { message, .. } => message,
            },
        )
    }

    #[test]
    fn the_last_one_says_when_to_ask() {
        for (line, ask, force) in [
            ("a", Ask::Protected, false),
            ("-f a", Ask::Never, true),
            ("-i -f a", Ask::Never, true),
            ("-fi a", Ask::Always, false),
            ("-fI a", Ask::Once, false),
            ("--interactive a", Ask::Always, false),
            ("-i --interactive=never a", Ask::Never, false),
            ("-f --interactive=once a", Ask::Once, false),
        ] {
            let plan = planned(line).unwrap();
            assert_eq!((plan.ask, plan.force), (ask, force), "{line}");
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        for (line, start) in [
            ("", "missing path"),
            ("-r", "missing path"),
            ("--interactive=perhaps a", "invalid --interactive 'perhaps'"),
            ("--preserve-root=some a", "invalid --preserve-root 'some'"),
            ("-j x a", "invalid -j 'x'"),
            ("--nosuch a", "unexpected argument"),
            ("-d --keep-dirs a", "-d and --keep-dirs"),
            ("-r --include=*.txt a", "--include '*.txt' changes nothing"),
            ("-r --filter=nosuch a", ""),
            ("-r --filter=:_.rules a", "per-directory filter files"),
        ] {
            assert!(planned(line).unwrap_err().starts_with(start), "{line}");
        }
        assert!(planned("-f").is_ok());
        assert!(planned("-r --include=*.txt --exclude=* a").is_ok());
        assert!(planned("-rd --keep-dirs --filter-style=aws --exclude=x a").is_ok());
    }

    #[test]
    fn the_root_is_safe_unless_told_otherwise() {
        let roots = |line| planned(line).map(|plan| (plan.preserve_root, plan.preserve_mounts));
        assert_eq!(roots("-r a"), Ok((true, false)));
        assert_eq!(roots("-r --no-preserve-root a"), Ok((false, false)));
        assert_eq!(roots("-r --no-preserve-root --preserve-root a"), Ok((true, false)));
        assert_eq!(roots("-r --preserve-root=all a"), Ok((true, true)));
    }

    #[test]
    fn the_root_is_refused() {
        let here = meta::of(dir::cwd(), c"/tmp", true).unwrap();
        let plan = |preserve_root| RmOptions {
            recursive: true,
            force: true,
            ask: Ask::Never,
            preserve_root,
            ..RmOptions::new(false)
        };
        // Nothing is removed here, so any directory can act as the root.
        let root = Some(here.identity());
        for spelled in ["/tmp", "/tmp/", "/tmp//", "/../tmp", "//tmp"] {
            assert!(check_top(&plan(true), OsStr::new(spelled), root).is_err(), "{spelled}");
            assert!(check_top(&plan(false), OsStr::new(spelled), root).is_ok(), "{spelled}");
        }
    }

    #[test]
    fn slashes_and_dots() {
        for (path, stripped, dot) in [
            ("a", "a", false),
            ("a///", "a", false),
            ("/", "/", false),
            ("//", "/", false),
            (".", ".", true),
            ("a/..//", "a/..", true),
            ("a/.b", "a/.b", false),
            ("...", "...", false),
            ("", "", false),
        ] {
            let found = strip_slashes(path.as_bytes());
            assert_eq!((found, is_dot(found)), (stripped.as_bytes(), dot), "{path}");
        }
    }
}
