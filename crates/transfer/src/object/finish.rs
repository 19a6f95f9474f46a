//! The end of a move: the only place that counts it, reports it, and removes its source (`mv`) after the target is
//! complete and checked.

use super::core::Core;
use super::delete;
use super::failed::Failed;
use super::moving::{Done, Moving, Step};
use hakobu_core::event::{Change, Event, Item};
use hakobu_core::unit::{Kind, Totals};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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
    pub(super) async fn finish(&self, moving: &Moving, result: Result<Done, Failed>) {
        let mut totals = Totals::default();
        let result = match result {
            Err(Failed::Request(_, _, error))
                if self.engine.setup.options.leave_archived && error.is_archived() =>
            {
                Ok(Done::SKIPPED)
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
                self.report(moving, done);
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
            }
            Err(failed) => self.failed(moving, failed, &mut totals),
        }
        self.doing.lane().done(1);
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

    fn report(&self, moving: &Moving, done: Done) {
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
        }));
    }
}
