//! One entry on its way between two roots: how it begins, and the one place where its end is
//! counted, told of, and its source removed (`mv`), after the target is complete and checked.

use super::core::{Core, Engine, Large};
use super::{Entry, Pair, Root, Side, copy, delete, get, put, relay};
use crate::error::{Cause, Class, Fatal, Operation, Problem};
use crate::event::{Change, Event, Item};
use crate::s3::{self, Kind as Why};
use crate::unit::{Kind, Totals};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// An entry on its way.
pub(super) struct Moving {
    /// Both ends.
    pub pair: Arc<Pair>,
    /// What is moved.
    pub entry: Entry,
    /// Its name from the target's root.
    pub name: Box<[u8]>,
    /// What is there now.
    pub existing: Option<Box<Entry>>,
    /// When it began, where that is told: on the clock, and seconds since 1970.
    pub begun: Option<(Instant, f64)>,
}

/// What a move came to for now.
pub(super) enum Step {
    /// It is complete and checked.
    Done(Done),
    /// It goes on in parts, so many at once.
    Parts(Arc<Large>, usize),
}

/// A move that is complete.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Bytes of content that were moved.
    pub bytes: u64,
    /// What became of it at the target, where that is not a regular file or object.
    pub kind: Option<Kind>,
    /// It was left alone after all (it is the same, or a condition did not hold).
    pub skipped: bool,
    /// Only attributes were set.
    pub metadata: bool,
}

/// Why a move failed.
pub(super) enum Failed {
    /// A request failed.
    Request(Operation, Side, s3::Error),
    /// A call on a local file failed.
    File(Operation, Side, io::Error),
    /// We refuse.
    Reason(Operation, Side, &'static str),
    /// The source is gone.
    Vanished(Operation),
    /// The run was stopped; nothing is said of the entry.
    Stopped,
}

impl Moving {
    /// Begins.
    pub fn new(
        engine: &Engine<'_>,
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

    /// The source as the user would spell it.
    pub fn source_path(&self) -> PathBuf {
        self.pair.source.spell(&self.entry.name)
    }

    /// Whether both ends have the same bucket and key.
    fn may_be_itself(&self) -> bool {
        match (&self.pair.source, &self.pair.target) {
            (Root::Store { bucket: a, .. }, Root::Store { bucket: b, .. }) => {
                a == b && self.pair.source.key(&self.entry.name) == self.pair.target.key(&self.name)
            }
            _ => false,
        }
    }

    /// The target as the user would spell it.
    pub fn target_path(&self) -> PathBuf {
        self.pair.target.spell(&self.name)
    }
}

impl Root {
    /// The path or URL of a name below this root.
    pub fn spell(&self, name: &[u8]) -> PathBuf {
        let bytes = match self {
            Root::Local { shown, .. } => {
                let mut path = shown.as_os_str().as_bytes().to_vec();
                if !path.is_empty() && !path.ends_with(b"/") && !name.is_empty() {
                    path.push(b'/');
                }
                [&path, name].concat()
            }
            Root::Store { bucket, prefix } => {
                [b"s3://", bucket.as_bytes(), b"/", prefix, name].concat()
            }
            Root::Null => b"null:".to_vec(),
        };
        PathBuf::from(OsStr::from_bytes(&bytes))
    }

    /// The whole key of a name; empty where this is no store.
    pub fn key(&self, name: &[u8]) -> Vec<u8> {
        match self {
            Root::Store { prefix, .. } => [prefix, name].concat(),
            _ => Vec::new(),
        }
    }
}

impl Core<'_> {
    /// Moves an entry, or begins to.
    pub(super) async fn transfer(&self, moving: Moving) {
        if self.engine.policy().dry_run {
            let done = Done { bytes: moving.entry.meta.size, ..Done::default() };
            return self.finish(&moving, Ok(done)).await;
        }
        let moving = Arc::new(moving);
        if self.engine.policy().remove_source_files && moving.may_be_itself() {
            // Two settings can name one endpoint: what was written would be removed as the source.
            let why = "source and target have the same bucket and key, so they may be one object";
            return self
                .finish(&moving, Err(Failed::Reason(Operation::Move, Side::Target, why)))
                .await;
        }
        let step = match (&moving.pair.source, &moving.pair.target) {
            (Root::Local { .. }, Root::Store { .. }) => put::begin(self, &moving).await,
            (Root::Store { .. }, Root::Local { .. } | Root::Null) => {
                get::begin(self, &moving).await
            }
            (Root::Store { .. }, Root::Store { .. }) if self.same_account() => {
                copy::begin(self, &moving).await
            }
            (Root::Store { .. }, Root::Store { .. }) => relay::begin(self, &moving).await,
            _ => Err(Failed::Reason(Operation::Read, Side::Source, "neither end is a store")),
        };
        match step {
            Ok(Step::Done(done)) => self.finish(&moving, Ok(done)).await,
            Ok(Step::Parts(large, streams)) => self.engine.queue.open(&large, streams),
            Err(failed) => self.finish(&moving, Err(failed)).await,
        }
    }

    fn same_account(&self) -> bool {
        let stores = (&self.engine.setup.source, &self.engine.setup.target);
        matches!(stores, (Some(a), Some(b)) if a.same_account(b))
    }

    /// The end of a move: counts it, tells of it, removes the source where that was asked for.
    pub(super) async fn finish(&self, moving: &Moving, result: Result<Done, Failed>) {
        let mut totals = Totals::default();
        match result {
            Ok(done) => {
                self.count(moving, done, &mut totals);
                self.tell(moving, done);
                let policy = self.engine.policy();
                if policy.remove_source_files && !policy.dry_run && !done.skipped {
                    match delete::source(self, moving).await {
                        Ok(()) => totals.removed_sources += 1,
                        Err(failed) => self.failed(moving, failed, &mut totals),
                    }
                }
            }
            Err(failed) => self.failed(moving, failed, &mut totals),
        }
        self.add(totals);
    }

    fn count(&self, moving: &Moving, done: Done, totals: &mut Totals) {
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

    fn tell(&self, moving: &Moving, done: Done) {
        let (items, unchanged) = self.engine.setup.items;
        if !items || (done.skipped && !unchanged) {
            return;
        }
        let change = match (&moving.existing, done) {
            (_, Done { skipped: true, .. }) => Change::default(),
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
            link: None,
            bytes: meta.size,
            bytes_moved: done.bytes,
            start_s: moving.begun.map_or(0.0, |(_, unix_s)| unix_s),
            took: moving.begun.map(|(at, _)| at.elapsed()).unwrap_or_default(),
            mode: meta.mode,
            mtime_s: meta.mtime.s,
        }));
    }

    /// Counts and tells a failure; one that every other entry would meet stops the run.
    pub(super) fn failed(&self, moving: &Moving, failed: Failed, totals: &mut Totals) {
        let paths = (Some(moving.source_path()), Some(moving.target_path()));
        self.engine.failed(paths, failed, totals);
    }
}

impl Engine<'_> {
    /// See [`Core::failed`]; the paths are of source and target.
    pub(super) fn failed(
        &self,
        (source, target): (Option<PathBuf>, Option<PathBuf>),
        failed: Failed,
        totals: &mut Totals,
    ) {
        let (operation, side, cause, stops) = match failed {
            Failed::Stopped => return,
            Failed::Request(_, _, error) if error.kind == Why::Stopped => return,
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
                let class = Class::Vanished;
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
            let name = named.map(crate::error::quoted).unwrap_or_default();
            let message = format!("cannot {} {name}: {cause}", operation.words());
            return self.stop_for(Fatal::new(code, message));
        }
        self.problem(&Problem { operation, source, target, cause, class: Class::Partial });
    }
}
