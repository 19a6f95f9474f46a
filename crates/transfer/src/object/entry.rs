//! One entry being moved between two roots, the result of its move, and the reporting of failures.

use super::runtime::{Core, ObjectEngine, Parts};
use super::{Entry, Pair, Root, Side, delete};
use crate::location::{Location, s3_path};
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem};
use hakobu_core::event::{Change, Event, Item};
use hakobu_core::unit::{Kind, Totals};
use hakobu_s3::ops::{ObjectHead, head_object};
use hakobu_s3::{Algorithm, Checksum, Client, Error, ErrorKind};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// An entry being moved.
pub(super) struct Moving {
    /// Both ends.
    pub pair: Arc<Pair>,
    /// The source's entry.
    pub entry: Entry,
    /// Target name, relative to the target's root.
    pub name: Box<[u8]>,
    /// The current target entry.
    pub existing: Option<Box<Entry>>,
    /// Start time, if it is reported: monotonic, and in seconds since 1970.
    pub begun: Option<(Instant, f64)>,
}

/// Result of a step of a move.
pub(super) enum Step {
    /// It is complete and checked.
    Done(MoveResult),
    /// It continues in parts, with this many at once.
    Parts(Arc<dyn Parts>, usize),
}

/// Result of a completed move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MoveResult {
    /// Bytes of content moved.
    pub bytes: u64,
    /// Kind of the entry at the target, if it is not a regular file or object.
    pub kind: Option<Kind>,
    /// It was skipped after all (it is the same, or a condition failed).
    pub skipped: bool,
    /// It was skipped although it may differ.
    pub left_out: bool,
    /// Only attributes were set.
    pub metadata: bool,
    /// The moved object is not the one that was listed: the source is kept.
    pub other: bool,
    /// Checksum of the content, if it was computed or received.
    pub sum: Option<KnownSum>,
}

/// A checksum for events, small enough to be handed on by value.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownSum {
    algorithm: Algorithm,
    /// The value, and its length in bytes.
    value: [u8; SUM_BYTES_MAX],
    len: usize,
    parts: u32,
}

/// Bytes of the longest checksum, SHA-256.
const SUM_BYTES_MAX: usize = 32;

impl KnownSum {
    pub fn of(sum: &Checksum) -> Option<KnownSum> {
        let len = sum.value.len();
        let mut value = [0; SUM_BYTES_MAX];
        value.get_mut(..len)?.copy_from_slice(&sum.value);
        Some(KnownSum { algorithm: sum.algorithm, value, len, parts: sum.parts })
    }

    /// Returns the names of algorithm and value in S3.
    fn text(&self) -> (&'static str, String) {
        let KnownSum { algorithm, value, len, parts } = *self;
        let value = value.iter().take(len).copied().collect();
        (algorithm.name(), Checksum { algorithm, value, parts }.encode())
    }
}

impl MoveResult {
    const NOTHING: MoveResult = MoveResult {
        bytes: 0,
        kind: None,
        skipped: false,
        left_out: false,
        metadata: false,
        other: false,
        sum: None,
    };
    /// The result of an entry that was skipped after all.
    pub const SKIPPED: MoveResult = MoveResult { skipped: true, ..MoveResult::NOTHING };
    /// The result of an entry that a condition kept from being written, or that cannot be read now.
    pub const LEFT_OUT: MoveResult = MoveResult { left_out: true, ..MoveResult::SKIPPED };
    /// The result of an entry of which only attributes were set.
    pub const METADATA: MoveResult = MoveResult { metadata: true, ..MoveResult::NOTHING };
}

impl Moving {
    /// Begins a move.
    pub fn new(
        engine: &ObjectEngine<'_>,
        pair: Arc<Pair>,
        entry: Entry,
        name: Box<[u8]>,
        existing: Option<Box<Entry>>,
    ) -> Moving {
        let begun = engine.setup.items.0.then(|| {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH);
            (Instant::now(), unix.map_or(0.0, |time| time.as_secs_f64()))
        });
        Moving { pair, entry, name, existing, begun }
    }

    /// Returns the root of a side, and the name of the entry below it.
    pub fn end(&self, side: Side) -> (&Root, &[u8]) {
        let name = match side {
            Side::Source => &self.entry.name,
            Side::Target => &self.name,
        };
        (self.pair.root(side), name)
    }

    /// Returns the source path, starting as the user typed it.
    pub fn source_path(&self) -> PathBuf {
        self.pair.source.spell(&self.entry.name)
    }

    /// Returns whether only the name of the source is known (it was not listed).
    pub fn is_unknown(&self) -> bool {
        self.entry.etag.is_empty() && self.entry.meta.size == 0
    }

    /// Returns the target path, starting as the user typed it.
    pub fn target_path(&self) -> PathBuf {
        self.pair.target.spell(&self.name)
    }
}

impl Root {
    /// Returns the path or URL of a name below this root.
    pub fn spell(&self, name: &[u8]) -> PathBuf {
        match self {
            Root::Local { shown, .. } => {
                let mut path = shown.as_os_str().as_bytes().to_vec();
                if !path.is_empty() && !path.ends_with(b"/") && !name.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(name);
                PathBuf::from(OsString::from_vec(path))
            }
            Root::Store { bucket, prefix } => s3_path(bucket, &[prefix, name]),
            Root::Null => Location::Null.as_typed(),
        }
    }

    /// Returns the whole key of a name; empty if this is not a store.
    pub fn key(&self, name: &[u8]) -> Vec<u8> {
        match self {
            Root::Store { prefix, .. } => [prefix, name].concat(),
            _ => Vec::new(),
        }
    }
}

impl Core<'_> {
    /// Counts and reports a failure; one that would affect every other entry stops the run.
    pub(super) fn failed(&self, moving: &Moving, failed: Failed, totals: &mut Totals) {
        let mut target = moving.target_path();
        // What could not be made is the directory that the entry was to be in.
        if failed.is_of_folder() && !moving.end(Side::Target).1.ends_with(b"/") {
            target.pop();
        }
        self.engine.failed((Some(moving.source_path()), Some(target)), failed, totals);
    }
}

impl ObjectEngine<'_> {
    /// As [`Core::failed`], with the paths of source and target.
    pub(super) fn failed(
        &self,
        (source, target): (Option<PathBuf>, Option<PathBuf>),
        failed: Failed,
        totals: &mut Totals,
    ) {
        let (operation, side, cause, stops) = match failed {
            Failed::Stopped => return,
            Failed::Request(_, _, error) if error.kind == ErrorKind::Stopped => return,
            Failed::Request(operation, side, error) => {
                let stops = error.stops_run().then_some(1);
                (operation, Some(side), Cause::Said(error.to_string()), stops)
            }
            Failed::File(operation, side, error) => {
                let full = matches!(
                    error.kind(),
                    io::ErrorKind::StorageFull
                        | io::ErrorKind::QuotaExceeded
                        | io::ErrorKind::ReadOnlyFilesystem
                );
                (operation, Some(side), Cause::System(error), full.then_some(11))
            }
            Failed::Reason(operation, side, why) => {
                (operation, Some(side), Cause::Reason(why), None)
            }
            Failed::Vanished(operation) => {
                totals.vanished += 1;
                let cause = Cause::System(io::ErrorKind::NotFound.into());
                let class = ErrorClass::Vanished;
                return self.problem(&Problem { operation, source, target, cause, class });
            }
        };
        totals.failed += 1;
        let (source, target) = match side {
            Some(Side::Source) => (source, None),
            _ => (source, target),
        };
        let exit = self.setup.options.exit_on_error.then_some(1);
        if let Some(code) = stops.or(exit) {
            let named = target.as_ref().or(source.as_ref());
            let name = named.map(hakobu_core::error::quoted).unwrap_or_default();
            let message = format!("cannot {} {name}: {cause}", operation.words());
            self.stop_for(Fatal::new(code, message));
            // The advice about a full or read-only target depends on the error itself.
            if stops.is_some() && matches!(cause, Cause::System(_)) {
                let class = ErrorClass::Fatal;
                self.problem(&Problem { operation, source, target, cause, class });
            }
            return;
        }
        self.problem(&Problem { operation, source, target, cause, class: ErrorClass::Partial });
    }
}

// The objects at both ends of a move, and the failures of reading a source.

/// Message for a source that changed since it was listed.
pub(super) const CHANGED: &str = "it changed since it was listed; the next run transfers it";
/// Message for a source that changed during its move.
pub(super) const CHANGED_WHILE_READ: &str = "it changed while it was read";

/// An object of one of the two stores.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    pub bucket: &'a str,
    /// Its whole key.
    pub key: Vec<u8>,
    /// Its version, if one was requested.
    pub version: Option<&'a str>,
    /// Its ETag, if it is known: only that object is read.
    pub etag: Option<&'a str>,
}

impl<'a> Object<'a> {
    /// Returns the object at one end of a move; `None` if that is not in a store. An empty ETag means unknown.
    pub fn at(
        core: &Core<'a>,
        moving: &'a Moving,
        side: Side,
        etag: &'a str,
    ) -> Option<Object<'a>> {
        let (root, name) = moving.end(side);
        let Root::Store { bucket, .. } = root else { return None };
        let version = core.engine.setup.options.version.as_deref();
        let version = version.filter(|_| side == Side::Source);
        let etag = (!etag.is_empty()).then_some(etag);
        Some(Object { bucket, key: root.key(name), version, etag })
    }

    /// Returns the source of a move.
    ///
    /// # Errors
    /// The source is not in a store.
    pub fn source(core: &Core<'a>, moving: &'a Moving) -> Result<Object<'a>, Failed> {
        let object = Object::at(core, moving, Side::Source, &moving.entry.etag);
        object.ok_or(no_store(Side::Source))
    }

    /// Requests its headers.
    pub async fn head(&self, client: &Client) -> Result<ObjectHead, Error> {
        head_object(client, self.bucket, &self.key, self.version).await
    }
}

/// The object that a move writes, and the client for it.
pub(super) struct MoveTarget<'a> {
    /// The client of the target's store.
    pub client: &'a Client,
    pub bucket: &'a str,
    /// Its whole key.
    pub key: Vec<u8>,
}

impl<'a> MoveTarget<'a> {
    /// Returns the target of a move.
    ///
    /// # Errors
    /// The target is not in a store.
    pub fn of(core: &'a Core<'_>, moving: &'a Moving) -> Result<MoveTarget<'a>, Failed> {
        let Root::Store { bucket, .. } = &moving.pair.target else {
            return Err(no_store(Side::Target));
        };
        let client = core.store(Side::Target)?;
        Ok(MoveTarget { client, bucket, key: moving.pair.target.key(&moving.name) })
    }

    /// Requests the headers of the object that exists now.
    pub async fn head(&self) -> Result<ObjectHead, Failed> {
        let head = head_object(self.client, self.bucket, &self.key, None).await;
        head.map_err(Failed::at_target(Operation::Stat))
    }
}

impl Core<'_> {
    /// Returns the client of a side.
    ///
    /// # Errors
    /// There is none, which the planner prevents.
    pub(super) fn store(&self, side: Side) -> Result<&Client, Failed> {
        let client = match side {
            Side::Source => self.source.as_ref(),
            Side::Target => self.target.as_ref(),
        };
        client.ok_or(no_store(side))
    }
}

fn no_store(side: Side) -> Failed {
    Failed::Reason(Operation::Read, side, "there is no store on this side")
}

/// Returns the failure of reading a source: a missing object has vanished, a changed one is reported as such.
pub(super) fn read_failed(error: Error) -> Failed {
    match error.kind {
        ErrorKind::NotFound => Failed::Vanished(Operation::Read),
        ErrorKind::Precondition => Failed::Reason(Operation::Read, Side::Source, CHANGED),
        _ => Failed::Request(Operation::Read, Side::Source, error),
    }
}

// The end of a move: the only place that counts it, reports it, and removes its source (`mv`) after the target is
// complete and checked.

impl Core<'_> {
    /// Ends a move, or opens the large object as which it continues.
    pub(super) async fn step(&self, moving: &Moving, step: Result<Step, Failed>) {
        match step {
            Ok(Step::Done(done)) => self.finish(moving, Ok(done)).await,
            Ok(Step::Parts(large, streams)) => self.engine.queue.open(&large, streams),
            Err(failed) => self.finish(moving, Err(failed)).await,
        }
    }

    /// Ends a move: counts it, reports it, removes the source if requested.
    pub(super) async fn finish(&self, moving: &Moving, result: Result<MoveResult, Failed>) {
        let mut totals = Totals::default();
        let result = match result {
            Err(Failed::Request(_, _, error))
                if self.engine.setup.options.leave_archived && error.is_archived() =>
            {
                totals.left_out += 1;
                Ok(MoveResult::LEFT_OUT)
            }
            other => other,
        };
        let moved = match &result {
            Ok(done) if !done.skipped && !self.engine.policy().dry_run => done.bytes,
            _ => 0,
        };
        self.doing.lane().settle(moving.entry.meta.size, moved);
        match result {
            Ok(done) => {
                self.count(moving, done, &mut totals);
                let policy = self.engine.policy();
                if policy.remove_source_files && !policy.dry_run && !done.skipped {
                    let removed = match done.other {
                        true => Err(delete::changed()),
                        false => delete::source(self, moving).await,
                    };
                    match removed {
                        Ok(()) => totals.removed_sources += 1,
                        Err(failed) => self.failed(moving, failed, &mut totals),
                    }
                }
                // After a failure of its own.
                self.report(moving, done);
            }
            Err(failed) => self.failed(moving, failed, &mut totals),
        }
        self.doing.lane().done(1);
        self.add(totals);
    }

    fn count(&self, moving: &Moving, done: MoveResult, totals: &mut Totals) {
        if done.skipped {
            totals.skipped += 1;
            totals.bytes_skipped += moving.entry.meta.size;
            return;
        }
        if done.metadata {
            totals.metadata += 1;
            return;
        }
        match done.kind {
            Some(Kind::Dir) => totals.dirs_created += 1,
            Some(Kind::Symlink) => totals.links_created += 1,
            _ => {
                totals.files += 1;
                totals.bytes += done.bytes;
                totals.files_created += u64::from(moving.existing.is_none());
            }
        }
    }

    fn report(&self, moving: &Moving, done: MoveResult) {
        let (items, unchanged) = self.engine.setup.items;
        if !items || (done.skipped && !unchanged) {
            return;
        }
        let change = match (&moving.existing, done) {
            (_, MoveResult { skipped: true, left_out, .. }) => {
                Change { left_out, ..Change::default() }
            }
            (None, _) => Change { created: true, transferred: true, ..Change::default() },
            (Some(old), _) => Change {
                transferred: !done.metadata,
                size: old.meta.size != moving.entry.meta.size,
                time: old.meta.mtime != moving.entry.meta.mtime,
                ..Change::default()
            },
        };
        let meta = &moving.entry.meta;
        let path = [&*moving.pair.lead, &*moving.entry.name].concat();
        self.engine.setup.listener.event(Event::Item(&Item {
            change,
            kind: done.kind.unwrap_or(Kind::File),
            path: Path::new(OsStr::from_bytes(&path)),
            source: Some(moving.source_path()),
            target: Some(moving.target_path()),
            version: None,
            link: None,
            bytes: meta.size,
            bytes_moved: done.bytes,
            start_s: moving.begun.map_or(0.0, |(_, unix_s)| unix_s),
            took: moving.begun.map(|(at, _)| at.elapsed()).unwrap_or_default(),
            mode: meta.mode,
            mtime_s: meta.mtime.s,
            meta,
            digest: None,
            checksum: done.sum.map(|sum| sum.text()),
        }));
    }
}

// Reasons for the failure of one entry's move.

/// Reason that a move failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// A request failed.
    Request(Operation, Side, hakobu_s3::Error),
    /// A call on a local file failed.
    File(Operation, Side, io::Error),
    /// Refused by hakobu itself.
    Reason(Operation, Side, &'static str),
    /// The source is gone.
    Vanished(Operation),
    /// The run was stopped; nothing is reported for the entry.
    Stopped,
}

impl Failed {
    /// Returns whether a directory could not be made at a local target.
    fn is_of_folder(&self) -> bool {
        use Operation::MakeDir;
        matches!(
            self,
            Failed::File(MakeDir, Side::Target, _) | Failed::Reason(MakeDir, Side::Target, _)
        )
    }

    /// Returns a closure for `map_err` of requests to the target's store.
    pub fn at_target(operation: Operation) -> impl Fn(hakobu_s3::Error) -> Failed {
        move |error| Failed::Request(operation, Side::Target, error)
    }
}
