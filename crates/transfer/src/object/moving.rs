//! One entry being moved between two roots, the result of its move, and the reporting of failures.

use super::core::{Core, Engine, Parts};
use super::failed::Failed;
use super::{Entry, Pair, Root, Side};
use crate::location::{Location, s3_path};
use hakobu_core::error::{Cause, Class, Fatal, Problem};
use hakobu_core::unit::{Kind, Totals};
use hakobu_s3::ErrorKind;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
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
    Done(Done),
    /// It continues in parts, with this many at once.
    Parts(Arc<dyn Parts>, usize),
}

/// Result of a completed move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Bytes of content moved.
    pub bytes: u64,
    /// Kind of the entry at the target, if it is not a regular file or object.
    pub kind: Option<Kind>,
    /// It was skipped after all (it is the same, or a condition failed).
    pub skipped: bool,
    /// Only attributes were set.
    pub metadata: bool,
    /// The moved object is not the one that was listed: the source is kept.
    pub other: bool,
}

impl Done {
    const NOTHING: Done =
        Done { bytes: 0, kind: None, skipped: false, metadata: false, other: false };
    /// The result of an entry that was skipped after all.
    pub const SKIPPED: Done = Done { skipped: true, ..Done::NOTHING };
    /// The result of an entry of which only attributes were set.
    pub const METADATA: Done = Done { metadata: true, ..Done::NOTHING };
}

impl Moving {
    /// Begins a move.
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
        let paths = (Some(moving.source_path()), Some(moving.target_path()));
        self.engine.failed(paths, failed, totals);
    }
}

impl Engine<'_> {
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
            let name = named.map(hakobu_core::error::quoted).unwrap_or_default();
            let message = format!("cannot {} {name}: {cause}", operation.words());
            return self.stop_for(Fatal::new(code, message));
        }
        self.problem(&Problem { operation, source, target, cause, class: Class::Partial });
    }
}
