//! Counts and events of removals.

use crate::object::core::Engine;
use crate::object::failed::Failed;
use crate::object::{Entry, Pair, Root};
use hakobu_core::event::{Change, Event, Item};
use hakobu_core::unit::Totals;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Counts and reports a removal: of an entry, or of one version of it.
pub(super) fn removed(
    engine: &Engine<'_>,
    pair: &Pair,
    entry: &Entry,
    version: Option<&str>,
    totals: &mut Totals,
) {
    totals.deleted += 1;
    if !engine.setup.items.0 {
        return;
    }
    // The display adds the slash for a directory; in a key it is part of the name.
    let name = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
    let whole = match &pair.target {
        Root::Store { .. } => &entry.name,
        _ => name,
    };
    engine.setup.listener.event(Event::Item(&Item {
        change: Change { deleted: true, ..Change::default() },
        kind: entry.meta.kind,
        path: Path::new(OsStr::from_bytes(&[&*pair.lead, name].concat())),
        source: None,
        target: Some(pair.target.spell(whole)),
        version,
        link: None,
        bytes: 0,
        bytes_moved: 0,
        start_s: 0.0,
        took: Duration::ZERO,
        mode: entry.meta.mode,
        mtime_s: entry.meta.mtime.s,
        meta: &entry.meta,
        digest: None,
    }));
}

/// Counts and reports a failed removal, and returns it to `--max-delete`.
pub(super) fn stays(
    engine: &Engine<'_>,
    pair: &Pair,
    entry: &Entry,
    failed: Failed,
    totals: &mut Totals,
) {
    engine.deletes.fetch_sub(1, Ordering::Relaxed);
    engine.failed((None, Some(pair.target.spell(&entry.name))), failed, totals);
}
