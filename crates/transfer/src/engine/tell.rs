//! What is told of an entry, where somebody listens.

use super::Engine;
use super::entry::Entry;
use crate::event::Change;
use crate::event::{Event, Item};
use crate::unit::Meta;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What is told of an entry.
pub(super) struct Told {
    pub(super) change: Change,
    pub(super) bytes_moved: u64,
    pub(super) link: Option<PathBuf>,
    pub(super) begun: Option<Begun>,
}

/// When work on an entry began, where somebody wants to know.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    pub(super) instant: Instant,
    pub(super) unix_s: f64,
}

impl Engine<'_> {
    pub(super) fn begin(&self) -> Option<Begun> {
        self.items.then(|| Begun {
            instant: Instant::now(),
            unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64()),
        })
    }

    pub(super) fn tell(&self, entry: &Entry<'_>, source: &Meta, told: Told) {
        if !self.items {
            return;
        }
        let mut path = Vec::new();
        entry.node.push_path(&mut path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.name.to_bytes());
        self.tell_path(&path, source, Some(entry.source_path()), Some(entry.target_path()), told);
    }

    pub(super) fn tell_path(
        &self,
        path: &[u8],
        meta: &Meta,
        source: Option<PathBuf>,
        target: Option<PathBuf>,
        told: Told,
    ) {
        let Told { change, bytes_moved, link, begun } = told;
        self.listener.event(Event::Item(&Item {
            change,
            kind: meta.kind,
            path: Path::new(OsStr::from_bytes(path)),
            source,
            target,
            link,
            bytes: meta.size,
            bytes_moved,
            start_s: begun.map_or(0.0, |begun| begun.unix_s),
            took: begun.map(|begun| begun.instant.elapsed()).unwrap_or_default(),
            mode: meta.mode,
            mtime_s: meta.mtime.s,
        }));
    }

    /// Tells what happened to a directory, or to something that was removed.
    pub(super) fn tell_other(
        &self,
        path: &[u8],
        meta: &Meta,
        source: Option<PathBuf>,
        target: Option<PathBuf>,
        change: Change,
    ) {
        if self.items {
            let told = Told { change, bytes_moved: 0, link: None, begun: self.begin() };
            self.tell_path(path, meta, source, target, told);
        }
    }
}
