//! Removal of candidates: entries of a target that other processes found extraneous some time ago, and that only one
//! process removes. Nothing of what they found is believed. Every candidate is looked up at both ends by calls and
//! requests that no cache of this program answers, and it is removed only if the source answers that it has no such
//! entry, and the target's entry is the one that was found.
//!
//! What is not certain is kept: after an error of a lookup, which counts as a failure, with `--ignore-errors`, too,
//! because that option is about listings; and after a change, which is reported as a notice. A source that is missing
//! or empty as a whole proves nothing about its names: nothing is removed then.
//!
//! Two gaps remain, of the time between a lookup and its removal, which is that of a few requests. An entry that
//! reappears at the source then is transferred again by the next run. An object that is replaced at the target then is
//! kept if the server supports conditional deletions by ETag, and lost if it does not; a local entry is looked at once
//! more just before it is removed.

use super::objects::StoreSession;
use super::steer::Terms;
use crate::failure::c_string;
use crate::journal::Ledger;
use crate::local::Pass;
use crate::location::Side;
use crate::object::list::NameFilter;
use crate::object::{
    CHANGED_SINCE, Entry, Extraneous, JOBS_SEED, ObjectEngine, Pair, Root, Task, Work, key_of,
    path_of,
};
use crate::plan::objects::{
    Claims, KnownNames, PlannedSource, has_any, name_filter, resolve_sources,
};
use crate::plan::{Layout, Spec};
use crate::policy::filter::Decision;
use crate::policy::{Delete, Symlinks};
use crate::publish::TempNames;
use crate::run::evidence::RunHints;
use crate::run::{Job, Outcome, Resources, Run};
use futures_util::stream::{self, StreamExt};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem, quoted};
use hakobu_core::event::Listener;
use hakobu_core::threads::for_each;
use hakobu_core::unit::{Kind, Meta, Time, Totals};
use hakobu_s3::ops::{Etag, head_object};
use hakobu_s3::{Client, ErrorKind, RequestCounts};
use hakobu_sys::paths::{ancestors, split};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, meta};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::slice;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Candidates that are looked up before any of them is removed: as many as one DeleteObjects takes.
const BATCH: usize = 1000;
/// Names of one folder that a thread looks up at once.
const NAMES: usize = 64;

/// Reasons for refusing the name of a candidate.
const NO_NAME: &str = "no entry of the target can have that name";
const OURS: &str = "it is the name of an unfinished file";
/// Reason for removing nothing.
const NOTHING_THERE: &str =
    "nothing is found in the source, which may not be mounted: nothing is removed";

/// An entry that was found at the target and not at the source.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Name as in the events of a transfer: from the target's root, after the name of a source directory that is made
    /// there; components joined by `/`. A directory, and an object that stands for one, end with a slash.
    pub name: Vec<u8>,
    pub kind: Kind,
    /// Size in bytes; not compared for directories.
    pub size: u64,
    /// mtime of a file, LastModified of an object as listed; not compared for directories.
    pub mtime: Time,
    /// ETag of an object without quotes; empty if it is not known.
    pub etag: Etag,
}

impl Candidate {
    /// Returns the candidate that an entry of a listing of the target is.
    pub fn of(entry: &Entry) -> Candidate {
        let Meta { kind, size, mtime, .. } = entry.meta;
        Candidate { name: entry.name.to_vec(), kind, size, mtime, etag: entry.etag.clone() }
    }
}

/// Removes candidates of a transfer with `--delete` from its one source directory or prefix: those that both ends still
/// confirm, within `--max-delete` over all of them, and as the filter rules allow. Each name is given once; names in the
/// order of a listing need the fewest calls. Events, counts and `--dry-run` are those of an ordinary transfer.
///
/// At most two requests are sent for a candidate, and three for a thousand of them: a look at the source as a whole, the
/// deletion, and its repetition without conditions for servers that refuse them.
///
/// # Errors
/// An error for all of it, and nothing is removed: a transfer that removes nothing or whose names say nothing about its
/// source (`--files-from`, `--flatten`, `--remove-source-files`), ends that cannot be opened or that overlap.
pub fn remove_candidates(
    spec: &Spec,
    candidates: impl Iterator<Item = Candidate>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    refuse_unfit(spec)?;
    let run = Run { hints: RunHints::default(), ..Run::of(spec, control, listener)? };
    let mut candidates = candidates.peekable();
    if candidates.peek().is_none() {
        return Ok(Outcome::default());
    }
    let session = StoreSession::open(spec, &run)?;
    let ends = match resolve_sources(spec, &session.stores, session.umask) {
        Err(_) if control.is_stopped() => return Ok(run.stopped()),
        resolved => Ends::of(resolved?)?,
    };
    run.carry_out(&CandidateRemoval { session, ends, candidates: Mutex::new(Some(candidates)) })
}

/// Rejects transfers whose candidates cannot be judged by their names.
fn refuse_unfit(spec: &Spec) -> Result<(), Fatal> {
    let policy = &spec.policy;
    let between_paths = !spec.has_store();
    let unfit = [
        (policy.delete == Delete::No, "a transfer without --delete"),
        (policy.list_only, "--list-only"),
        (policy.remove_source_files, "--remove-source-files"),
        (policy.backup, "--backup"),
        (spec.objects.flatten, "--flatten"),
        (spec.files_from.is_some() || spec.chosen.is_some(), "--files-from"),
        (spec.remote.is_some(), "another machine"),
        (matches!(spec.layout, Layout::Cp { .. }), "cp"),
        (between_paths && spec.layout == Layout::Rsync { relative: true }, "--relative"),
    ];
    match unfit.iter().find(|(given, _)| *given) {
        Some((_, name)) => {
            let message = format!("extraneous entries of {name} cannot be removed afterwards");
            Err(Fatal::new(1, message))
        }
        None => Ok(()),
    }
}

/// The resolved ends of a removal.
enum Ends {
    /// Both.
    Both(PlannedSource),
    /// The source is missing: nothing is certain.
    NoSource(Vec<Problem>),
}

impl Ends {
    fn of((mut planned, missing): (Vec<PlannedSource>, Vec<Problem>)) -> Result<Ends, Fatal> {
        if !missing.is_empty() {
            return Ok(Ends::NoSource(missing));
        }
        let one = planned.pop().filter(|one| planned.is_empty() && one.may_delete());
        let Some(planned) = one else {
            let message = "extraneous entries are removed afterwards of one source directory only";
            return Err(Fatal::new(1, message));
        };
        let Pair { source, target, .. } = &*planned.pair;
        if let (Root::Local { dir: from, shown }, Root::Local { dir: to, .. }) = (source, target) {
            let failed = |error| {
                let cause = Cause::System(error);
                Fatal::new(11, format!("cannot look at {}: {cause}", quoted(shown)))
            };
            let (source, target) = (identity(from).map_err(failed)?, identity(to).map_err(failed)?);
            let meets = ancestors((**from).as_fd()).map_err(failed)?.contains(&target)
                || ancestors((**to).as_fd()).map_err(failed)?.contains(&source);
            if meets {
                let message = "source and target contain each other: nothing is extraneous";
                return Err(Fatal::new(1, message));
            }
        }
        Ok(Ends::Both(planned))
    }
}

fn identity(dir: &OwnedFd) -> io::Result<(u64, u64)> {
    meta::of_fd(dir).map(|meta| meta.identity())
}

/// A removal whose ends are open.
struct CandidateRemoval<'a, I> {
    session: StoreSession<'a>,
    ends: Ends,
    candidates: Mutex<Option<I>>,
}

impl<I: Iterator<Item = Candidate>> Job for CandidateRemoval<'_, I> {
    fn terms(&self) -> Terms {
        let limits = self.session.spec.limits;
        Terms::of_removal(limits.jobs.fixed_or(JOBS_SEED).max(1), limits.operations_per_s_max)
    }

    fn ledger(&self) -> Ledger {
        Ledger::default()
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass::Delete]
    }

    fn pass(&self, _: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let Some(candidates) = self.candidates.lock().take() else {
            return Ok((Totals::default(), None));
        };
        let jobs = resources.controls.gate.jobs_max();
        self.session.run(resources, |engine| {
            match &self.ends {
                Ends::NoSource(missing) => {
                    for gone in missing {
                        engine.problem(gone);
                        engine.add(&Totals { failed: 1, ..Totals::default() });
                    }
                }
                // It was missing, so that nothing can be there.
                Ends::Both(planned) if planned.target_is_new => {}
                Ends::Both(planned) => {
                    let (spec, stores, claims) =
                        (self.session.spec, &self.session.stores, Claims::default());
                    let one = slice::from_ref(planned);
                    let known = KnownNames::of(spec, one, stores, &claims, None);
                    match Judge::new(&self.session, (planned, &known), engine, jobs) {
                        Ok(mut judge) => judge.run(candidates),
                        Err(fatal) => engine.stop_for(fatal),
                    }
                }
            }
            engine.all_found();
        })
    }

    fn requests(&self) -> RequestCounts {
        self.session.requests()
    }
}

// What becomes of each candidate.

/// Judges candidates, and queues the removal of those that both ends confirm.
struct Judge<'a> {
    session: &'a StoreSession<'a>,
    planned: &'a PlannedSource,
    engine: &'a ObjectEngine<'a>,
    known: &'a KnownNames<'a>,
    /// The filter rules of the source, and the target's own ones.
    rules: [Option<NameFilter>; 2],
    lookups: Lookups<'a>,
    /// Target of the removals; the pair has no source, so that they count as the whole work.
    removals: Arc<Pair>,
    /// The last name of the batch before: a name is taken once.
    last: Vec<u8>,
}

/// How a candidate may exist at the source.
#[derive(Debug, PartialEq, Eq)]
enum AtSource {
    /// By no name, or the rules leave it out there: it is not asked.
    No,
    /// By this name; a directory's ends with a slash.
    Name(Vec<u8>),
}

impl<'a> Judge<'a> {
    fn new(
        session: &'a StoreSession<'a>,
        (planned, known): (&'a PlannedSource, &'a KnownNames<'a>),
        engine: &'a ObjectEngine<'a>,
        jobs: usize,
    ) -> Result<Judge<'a>, Fatal> {
        let policy = engine.policy();
        let rules = |side| name_filter(policy, planned, &session.stores, side);
        let rules = [rules(Side::Source)?, rules(Side::Target)?];
        let Pair { target, lead, .. } = &*planned.pair;
        let removals = Pair { source: Root::Null, target: target.clone(), lead: lead.clone() };
        let lookups = Lookups::new(session, planned, jobs)?;
        let (removals, last) = (Arc::new(removals), Vec::new());
        Ok(Judge { session, planned, engine, known, rules, lookups, removals, last })
    }

    fn run(&mut self, mut candidates: impl Iterator<Item = Candidate>) {
        if let Root::Local { dir, shown } = &self.planned.pair.target
            && !self.engine.policy().dry_run
            && let Ok(top) = meta::of_fd(&**dir)
            && self.engine.setup.folded.has(top.identity(), (**dir).as_fd(), top.dev)
        {
            // The file of a candidate may be that of a source with another spelling.
            let cause = Cause::Reason(
                "it takes different names for one, so that what is extraneous is not certain: nothing is removed",
            );
            let class = ErrorClass::Partial;
            return self.failed(Problem {
                operation: Operation::Remove,
                source: None,
                target: Some(shown.clone()),
                cause,
                class,
            });
        }
        let lead = self.planned.pair.lead.clone();
        loop {
            let mut batch: Vec<Candidate> = candidates.by_ref().take(BATCH).collect();
            for candidate in &mut batch {
                // A name without it is none of the transfer: an empty one is refused.
                let name = candidate.name.strip_prefix(&*lead).unwrap_or_default();
                candidate.name = name.to_vec();
            }
            if batch.is_empty() || self.engine.is_stopped() || self.batch(batch).is_break() {
                return;
            }
        }
    }

    /// Looks up candidates at both ends, and queues the removal of the confirmed ones. Breaks if nothing more can be
    /// confirmed.
    fn batch(&mut self, batch: Vec<Candidate>) -> ControlFlow<()> {
        let asked = self.asked(batch);
        let names: Vec<&[u8]> = asked.iter().map(|(it, _)| &*it.name).collect();
        let found = self.lookups.look(Side::Target, &names);
        let mut there = Vec::with_capacity(found.len());
        for ((candidate, at_source), found) in asked.into_iter().zip(found) {
            match found {
                Ok(Some(now)) if is_same(&candidate, &now, &self.planned.pair.target) => {
                    there.push((now, at_source));
                }
                Ok(Some(_)) => self.changed(&candidate.name),
                // Another program removed it.
                Ok(None) => {}
                Err(error) => self.lookup_failed(Side::Target, &candidate.name, error)?,
            }
        }
        let names: Vec<&[u8]> =
            there.iter().filter_map(|(_, at_source)| at_source.name()).collect();
        let mut found = self.lookups.look(Side::Source, &names).into_iter();
        let mut entries: Vec<Extraneous> = Vec::with_capacity(there.len());
        for (entry, at_source) in there {
            match at_source {
                AtSource::No => entries.push((entry, None)),
                AtSource::Name(name) => match found.next() {
                    Some(Ok(None)) => entries.push((entry, None)),
                    // It is to be transferred, or was just now.
                    Some(Ok(Some(_))) => {}
                    Some(Err(error)) => self.lookup_failed(Side::Source, &name, error)?,
                    None => return ControlFlow::Break(()),
                },
            }
        }
        if entries.is_empty() {
            return ControlFlow::Continue(());
        }
        // After the lookups: a bucket or a mount that vanished meanwhile has none of the names.
        match self.lookups.has_source() {
            Ok(true) => {}
            Ok(false) => {
                let cause = Cause::Reason(NOTHING_THERE);
                self.source_failed(b"", Operation::Remove, cause);
                return ControlFlow::Break(());
            }
            Err(error) => {
                self.lookup_failed(Side::Source, b"", error)?;
                return ControlFlow::Break(());
            }
        }
        let pair = Arc::clone(&self.removals);
        match self.engine.push([Task { pair, work: Work::DeleteUnchanged { entries } }]) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Leaves out the candidates that are not to be looked up; returns the others, with how they may exist at the
    /// source.
    fn asked(&mut self, batch: Vec<Candidate>) -> Vec<(Candidate, AtSource)> {
        let mut seen = HashSet::from([std::mem::take(&mut self.last)]);
        let mut asked = Vec::with_capacity(batch.len());
        for mut candidate in batch {
            if candidate.kind == Kind::Dir && !candidate.name.ends_with(b"/") {
                candidate.name.push(b'/');
            }
            self.last.clone_from(&candidate.name);
            match self.ask(&candidate) {
                Err(why) => self.refused(&candidate.name, why),
                Ok(None) => {}
                Ok(Some(at_source)) => {
                    if seen.insert(candidate.name.clone()) {
                        asked.push((candidate, at_source));
                    }
                }
            }
        }
        asked
    }

    /// Returns how a candidate may exist at the source; `None` if it is not to be removed in any case.
    ///
    /// # Errors
    /// The reason to refuse its name.
    fn ask(&mut self, candidate: &Candidate) -> Result<Option<AtSource>, &'static str> {
        let name = &*candidate.name;
        let encode = self.session.spec.objects.options.encode_names;
        let pair = &self.planned.pair;
        let at_source = source_name(&pair.source, &pair.target, name, encode)?;
        // It lies in the source. There are no single files beside it, whose places would be asked for.
        if self.known.keeps(&pair.target, b"", name) {
            return Ok(None);
        }
        let mut hides = false;
        for (side, rules) in [Side::Source, Side::Target].into_iter().zip(&mut self.rules) {
            let Some(rules) = rules else { continue };
            let decision = rules.decide(name).unwrap_or_else(|error| {
                let cause = Cause::Said(error.to_string());
                let (operation, class) = (Operation::Filter, ErrorClass::Partial);
                let (mut source, mut target) = (Some(pair.root(side).spell(name)), None);
                if side == Side::Target {
                    (source, target) = (target, source);
                }
                let problem = Problem { operation, source, target, cause, class };
                self.engine.problem(&problem);
                self.engine.add(&Totals { failed: 1, ..Totals::default() });
                Decision { hide: true, protect: true }
            });
            if decision.protect {
                return Ok(None);
            }
            hides |= side == Side::Source && decision.hide;
        }
        // As in the transfer, a name that the rules hide and do not protect is extraneous (`--delete-excluded`).
        Ok(Some(if hides { AtSource::No } else { at_source }))
    }

    fn changed(&self, name: &[u8]) {
        self.engine.problem(&Problem {
            operation: Operation::Remove,
            source: None,
            target: Some(self.planned.pair.target.spell(name)),
            cause: Cause::Reason(CHANGED_SINCE),
            class: ErrorClass::Notice,
        });
    }

    fn refused(&self, name: &[u8], why: &'static str) {
        self.failed(Problem {
            operation: Operation::Remove,
            source: None,
            target: Some(self.planned.pair.target.spell(name)),
            cause: Cause::Reason(why),
            class: ErrorClass::Partial,
        });
    }

    fn source_failed(&self, name: &[u8], operation: Operation, cause: Cause) {
        let source = Some(self.planned.pair.source.spell(name));
        self.failed(Problem { operation, source, target: None, cause, class: ErrorClass::Partial });
    }

    /// Reports a failed lookup, whose candidate is kept. Breaks if the next ones would fail as well.
    fn lookup_failed(&self, side: Side, name: &[u8], error: LookupError) -> ControlFlow<()> {
        let cause = match error {
            LookupError::System(error) => Cause::System(error),
            LookupError::Request(error) if error.kind == ErrorKind::Stopped => {
                return ControlFlow::Break(());
            }
            LookupError::Request(error) if error.stops_run() => {
                self.engine.stop_for(Fatal::new(1, error.to_string()));
                return ControlFlow::Break(());
            }
            LookupError::Request(error) => Cause::Said(error.to_string()),
        };
        match side {
            Side::Source => self.source_failed(name, Operation::Stat, cause),
            Side::Target => self.failed(Problem {
                operation: Operation::Stat,
                source: None,
                target: Some(self.planned.pair.target.spell(name)),
                cause,
                class: ErrorClass::Partial,
            }),
        }
        ControlFlow::Continue(())
    }

    fn failed(&self, problem: Problem) {
        self.engine.problem(&problem);
        self.engine.add(&Totals { failed: 1, ..Totals::default() });
    }
}

impl AtSource {
    fn name(&self) -> Option<&[u8]> {
        match self {
            AtSource::No => None,
            AtSource::Name(name) => Some(name),
        }
    }
}

/// Returns the name at the source of an entry of the target.
///
/// # Errors
/// The reason why the target has no such entry: names come from files that others wrote, and must never lead out of
/// the target.
fn source_name(
    source: &Root,
    target: &Root,
    name: &[u8],
    encode: bool,
) -> Result<AtSource, &'static str> {
    let inner = bare(name);
    let slash = name.get(inner.len()..).unwrap_or_default();
    // The entry of the root itself is not extraneous.
    if inner.is_empty() {
        return Err(NO_NAME);
    }
    if matches!(target, Root::Local { .. }) {
        let is_name =
            |component: &[u8]| !matches!(component, b"" | b"." | b"..") && !component.contains(&0);
        if !inner.split(|byte| *byte == b'/').all(is_name) {
            return Err(NO_NAME);
        }
        if TempNames::ends_path(inner) {
            return Err(OURS);
        }
    }
    let mapped = match (source, target) {
        (Root::Store { .. }, Root::Local { .. }) => match key_of(inner, encode) {
            // Every key is UTF-8.
            Err(crate::object::NameError::NotUtf8) => return Ok(AtSource::No),
            Err(error) => return Err(error.words()),
            Ok(key) => key,
        },
        // A key that no file can have, such as `a//b`, is that of no file of the source.
        (Root::Local { .. }, Root::Store { .. }) => match path_of(inner, encode) {
            Err(_) => return Ok(AtSource::No),
            Ok(path) => path,
        },
        _ => inner.to_vec(),
    };
    Ok(AtSource::Name([&*mapped, slash].concat()))
}

/// Returns whether an entry of the target is the one that was found.
fn is_same(candidate: &Candidate, now: &Entry, target: &Root) -> bool {
    let (was, is) = (candidate.mtime, now.meta.mtime);
    let same_size = candidate.size == now.meta.size;
    match target {
        // Listings have milliseconds, and single objects seconds.
        Root::Store { .. } => {
            let same_time = was.s == is.s && (was.ns == 0 || is.ns == 0 || was.ns == is.ns);
            let known = !candidate.etag.is_empty() && !now.etag.is_empty();
            same_size && same_time && (!known || *candidate.etag == *now.etag)
        }
        _ if candidate.kind == Kind::Dir => now.meta.kind == Kind::Dir,
        _ => candidate.kind == now.meta.kind && same_size && was == is,
    }
}

// Lookups of names at one end, in parallel.

/// Reason that an end did not answer.
enum LookupError {
    System(io::Error),
    Request(hakobu_s3::Error),
}

/// An entry, or certainty that there is none.
type Answer = Result<Option<Entry>, LookupError>;

/// Looks at both ends, with as many calls and requests at once as there are jobs.
struct Lookups<'a> {
    planned: &'a PlannedSource,
    source: Option<Client>,
    target: Option<Client>,
    /// How to look at a local source.
    local_source: LocalLookups,
    jobs: usize,
    // Dropped after the clients, whose connections it drives.
    local: LocalSet,
    runtime: Runtime,
}

impl<'a> Lookups<'a> {
    fn new(
        session: &StoreSession<'_>,
        planned: &'a PlannedSource,
        jobs: usize,
    ) -> Result<Lookups<'a>, Fatal> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fatal::new(11, format!("cannot start a runtime: {error}")))?;
        let policy = &session.spec.policy;
        let client = |side| session.stores.of(side).map(Client::new);
        Ok(Lookups {
            planned,
            source: client(Side::Source),
            target: client(Side::Target),
            local_source: LocalLookups {
                follows: policy.symlinks == Symlinks::Follow || policy.copy_dirlinks,
                keys: matches!(planned.pair.target, Root::Store { .. }),
                dir_markers: session.spec.objects.options.dir_markers,
            },
            jobs,
            local: LocalSet::new(),
            runtime,
        })
    }

    /// Looks up names below the root of an end; the answers are in their order.
    fn look(&self, side: Side, names: &[&[u8]]) -> Vec<Answer> {
        if names.is_empty() {
            return Vec::new();
        }
        let client = if side == Side::Source { &self.source } else { &self.target };
        match (self.planned.pair.root(side), client) {
            (Root::Local { dir, .. }, _) => {
                let lookups = match side {
                    Side::Source => self.local_source,
                    Side::Target => LocalLookups::default(),
                };
                lookups.look((**dir).as_fd(), names, self.jobs)
            }
            (Root::Store { bucket, .. }, Some(client)) => {
                let one = |name| self.look_store(client, bucket, side, name);
                let all = stream::iter(names.iter().copied().map(one)).buffered(self.jobs);
                self.local.block_on(&self.runtime, all.collect())
            }
            (Root::Store { .. } | Root::Null, _) => {
                let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
                names.iter().map(|_| Err(LookupError::System(unsupported()))).collect()
            }
        }
    }

    async fn look_store(&self, client: &Client, bucket: &str, side: Side, name: &[u8]) -> Answer {
        let key = self.planned.pair.root(side).key(name);
        let entry = |meta, etag| Some(Entry { name: name.into(), meta, etag });
        // A folder of a bucket exists by the keys below it.
        if side == Side::Source && name.ends_with(b"/") {
            let any = has_any(client, bucket, &key).await.map_err(LookupError::Request)?;
            let dir = Meta::bare(Kind::Dir, 0, Time::default());
            return Ok(entry(dir, "".into()).filter(|_| any));
        }
        match head_object(client, bucket, &key, None).await {
            Ok(head) => {
                let kind = if name.ends_with(b"/") { Kind::Dir } else { Kind::File };
                Ok(entry(Meta::bare(kind, head.size, head.mtime), head.etag.into()))
            }
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LookupError::Request(error)),
        }
    }

    /// Returns whether the source is still the one that was opened, and has any entry.
    fn has_source(&self) -> Result<bool, LookupError> {
        match (&self.planned.pair.source, &self.source) {
            (Root::Store { bucket, prefix }, Some(client)) => {
                let any = has_any(client, bucket, prefix);
                self.local.block_on(&self.runtime, any).map_err(LookupError::Request)
            }
            (Root::Local { dir: opened, shown }, _) => {
                let path = if shown.as_os_str().is_empty() { ".".as_ref() } else { &**shown };
                let again = c_string(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))
                    .and_then(|path| dir::open_root(&path));
                let is_it = again.and_then(|again| {
                    Ok(identity(&again)? == identity(opened)? && has_entries(&again)?)
                });
                is_it.map_err(LookupError::System)
            }
            (Root::Store { .. } | Root::Null, _) => Ok(false),
        }
    }
}

/// How names below a local root are looked up.
#[derive(Clone, Copy, Default)]
struct LocalLookups {
    /// Symlinks above a name are followed, as in the transfer.
    follows: bool,
    /// Names are those of keys: `d/` is an object that stands for a directory.
    keys: bool,
    /// Empty directories have such objects, too.
    dir_markers: bool,
}

impl LocalLookups {
    fn look(self, top: BorrowedFd<'_>, names: &[&[u8]], jobs: usize) -> Vec<Answer> {
        // Pieces of names of one folder, which is entered once for each.
        let mut pieces: Vec<&[&[u8]]> = Vec::new();
        for together in names.chunk_by(|a, b| split(bare(a)).0 == split(bare(b)).0) {
            pieces.extend(together.chunks(NAMES));
        }
        let answers: Mutex<Vec<(usize, Vec<Answer>)>> = Mutex::default();
        for_each(&pieces, jobs, |number, piece| {
            let answer = self.in_folder(top, piece);
            answers.lock().push((number, answer));
        });
        let mut answers = answers.into_inner();
        answers.sort_by_key(|(number, _)| *number);
        answers.into_iter().flat_map(|(_, answers)| answers).collect()
    }

    /// Looks up names of one folder.
    fn in_folder(self, top: BorrowedFd<'_>, names: &[&[u8]]) -> Vec<Answer> {
        let folder = names.first().map(|name| split(bare(name)).0).unwrap_or_default();
        let entered = enter(top, folder, self.follows);
        let again = |error: &io::Error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::from(error.kind()),
        };
        let answer = |name: &&[u8]| match &entered {
            Ok(Some(folder)) => self.one(folder.as_fd(), name).map_err(LookupError::System),
            Ok(None) => Ok(None),
            Err(error) => Err(LookupError::System(again(error))),
        };
        names.iter().map(answer).collect()
    }

    fn one(self, folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<Option<Entry>> {
        let own = c_string(split(bare(name)).1)?;
        let meta = match meta::of_now(folder, &own, false) {
            Err(error) if errno::is(&error, errno::ENOENT) => return Ok(None),
            meta => meta?,
        };
        // The key of a file has no slash at its end, and an empty directory has none unless it is asked for.
        let is_there = match meta.kind {
            _ if !self.keys || !name.ends_with(b"/") => true,
            Kind::Dir => self.dir_markers || has_entries(&dir::open(folder, &own, false)?)?,
            kind => kind != Kind::File,
        };
        Ok(is_there.then(|| Entry { name: name.into(), meta, etag: "".into() }))
    }
}

/// Returns a name without the slash of a directory.
fn bare(name: &[u8]) -> &[u8] {
    name.strip_suffix(b"/").unwrap_or(name)
}

/// Opens a folder below `top` component by component; each directory is asked again for what it holds, also if a network
/// file system remembers that it lacks a name. Returns `None` if it certainly does not exist: a component is missing,
/// or is neither a directory nor a symlink.
fn enter(top: BorrowedFd<'_>, folder: &[u8], follows: bool) -> io::Result<Option<OwnedFd>> {
    let mut here = dir::open(top, c".", true)?;
    meta::of_now(here.as_fd(), c".", true)?;
    for component in folder.split(|byte| *byte == b'/').filter(|one| !one.is_empty()) {
        let name = c_string(component)?;
        match dir::open(here.as_fd(), &name, follows) {
            Ok(next) => here = next,
            Err(error) => match meta::of_now(here.as_fd(), &name, false) {
                Err(gone) if errno::is(&gone, errno::ENOENT) => return Ok(None),
                Ok(there) if !matches!(there.kind, Kind::Dir | Kind::Symlink) => return Ok(None),
                _ => return Err(error),
            },
        }
        meta::of_now(here.as_fd(), c".", true)?;
    }
    Ok(Some(here))
}

/// Returns whether a directory has any entry; it is read through a descriptor of its own.
fn has_entries(dir: &OwnedFd) -> io::Result<bool> {
    let own = dir::open(dir.as_fd(), c".", false)?;
    let first = dir::Reader::default().read_until(own.as_fd(), |_, _, _| ControlFlow::Break(()))?;
    Ok(first.is_some())
}

#[cfg(test)]
mod tests;
