//! The new regular files of a chunk, handled step by step instead of file by file: open all sources, create all
//! targets, fill all.
//!
//! Creating a name holds the lock of its directory, and on XFS that is most of the work for a small file (57 %).
//! Workers that take the lock for each file spend their time spinning on it and moving its cache lines; here a worker
//! creates a whole chunk while the others fill theirs. Other file systems and small directories are slower with it
//! (BENCHMARKS.md).

use super::context::{Pass, TargetMode};
use super::decide::CLASH;
use super::entry::{Decided, Done, Entry, Outcome};
use super::file::Copying;
use super::report::Report;
use super::state::Engine;
use super::unit::{Chunk, Rest};
use super::worker::Worker;
use crate::failure::{Failure, Stop};
use crate::policy::Content;
use hakobu_core::error::Operation;
use hakobu_core::event::Change;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Kind;
use hakobu_sys::errno;
use std::ops::ControlFlow::{self, Break, Continue};

/// Maximum size of a file in a batch, in bytes; for larger files the gain at creation is negligible.
const BATCHED_BYTES_MAX: u64 = 1 << 20;

impl Engine<'_> {
    /// Returns whether new files of a chunk are copied in steps.
    pub(super) fn batches(&self, chunk: &Chunk) -> bool {
        let full = chunk.names.is_full();
        self.batch_max > 1
            && (full || !self.publisher.drafts.direct.is_allowed())
            && self.context.pass == Pass::Transfer
            && !chunk.is_root
            && self.context.mode == TargetMode::Real
            && self.context.policy.content == Content::Copy
            && self.context.policy.basis_dirs.is_empty()
    }

    /// Handles a chunk of an empty target directory; `of` makes the entry of a name.
    pub(super) fn batch<'e>(
        &'e self,
        worker: &mut Worker<'_>,
        rest: &'e Rest<'e>,
        of: impl Fn(&'e std::ffi::CStr) -> Entry<'e>,
    ) {
        let mut waiting = Vec::with_capacity(self.batch_max);
        while let Some((name, kind)) = rest.next() {
            if self.is_over() {
                break;
            }
            let mut decided = Decided::new(of(name));
            match self.join_batch(worker, &mut decided, kind) {
                Ok(Continue(())) => waiting.push(decided),
                Ok(Break(outcome)) => self.ended(worker, &decided.entry, Ok(outcome)),
                Err(stop) => self.ended(worker, &decided.entry, Err(stop)),
            }
            if waiting.len() >= self.batch_max {
                self.copy_together(worker, &mut waiting);
            }
            if rest.queue.is_shut_out() {
                self.hand_over(rest);
            }
        }
        self.copy_together(worker, &mut waiting);
    }

    /// Examines a new name and decides; continues if it is to be copied together with others.
    fn join_batch(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        kind: Kind,
    ) -> Result<ControlFlow<Outcome>, Stop> {
        if let Break(outcome) = self.look(worker, decided, kind, true)? {
            return Ok(Break(outcome));
        }
        match self.is_batched(decided) {
            true => self.decide(worker, decided, true),
            false => self.transfer(worker, decided, true).map(Break),
        }
    }

    /// Returns whether a source is a small regular file that is open.
    fn is_batched(&self, decided: &Decided<'_>) -> bool {
        let Decided { source, opened, .. } = decided;
        opened.is_some()
            && source.kind == Kind::File
            && source.size <= BATCHED_BYTES_MAX
            && !self.is_grouped(&decided.entry, source)
    }

    /// Performs each step of a copy for all files before the next step.
    fn copy_together<'e>(&'e self, worker: &mut Worker<'_>, waiting: &mut Vec<Decided<'e>>) {
        let Some(node) = waiting.first().map(|decided| decided.entry.node) else { return };
        let mut created = Vec::with_capacity(waiting.len());
        // Wait for the limits before taking the lock.
        worker.at.step(Phase::Create, waiting.len() as u64);
        {
            let _turn = node.creating.lock();
            for mut decided in waiting.drain(..) {
                let Some(from) = decided.opened.take() else { continue };
                let (entry, source) = (&decided.entry, &decided.source);
                let copying = self.files.create(worker, entry, from, source, None);
                created.push((decided, copying));
            }
        }
        let mut filled = Vec::new();
        for (mut decided, copying) in created {
            let missing = || Failure::code(Operation::MakeDir, errno::ENOENT);
            let copying = copying.and_then(|copying| copying.ok_or_else(missing));
            let copied = copying.map_err(Stop::from).and_then(|it| self.fill(worker, it));
            match copied {
                Ok((copying, done)) if copying.is_public() => {
                    let result = self.files.publish(copying);
                    self.published(worker, &mut decided, result, done);
                }
                Ok((copying, done)) => filled.push((decided, copying, done)),
                Err(stop) => self.again(worker, &mut decided, stop),
            }
        }
        if filled.is_empty() {
            return;
        }
        let mut published = Vec::with_capacity(filled.len());
        worker.at.step(Phase::Create, filled.len() as u64);
        {
            let _turn = node.creating.lock();
            for (decided, copying, done) in filled {
                published.push((decided, self.files.publish(copying), done));
            }
        }
        for (mut decided, result, done) in published {
            self.published(worker, &mut decided, result, done);
        }
    }

    fn fill<'e>(
        &self,
        worker: &mut Worker<'_>,
        copying: Copying<'e>,
    ) -> Result<(Copying<'e>, Done), Stop> {
        let filled = match self.is_over() {
            true => Err(Stop::Asked),
            false => self.files.fill(worker, &copying),
        };
        match filled {
            Ok(done) => Ok((copying, done)),
            Err(stop) => Err(self.files.give_up(copying, stop)),
        }
    }

    fn published(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        result: Result<(), Stop>,
        done: Done,
    ) {
        match result {
            Ok(()) => {
                let change = Change { created: true, transferred: true, ..Change::default() };
                let bytes_moved = done.bytes;
                let begun = decided.begun;
                let report = Report { change, bytes_moved, begun, ..Report::default() };
                self.arrived(worker, decided, report, done);
                self.ended(worker, &decided.entry, Ok(Outcome::Finished));
            }
            Err(stop) => self.again(worker, decided, stop),
        }
    }

    /// Retries a name that appeared in the meantime or a source that changed, on its own; reports other failures.
    fn again(&self, worker: &mut Worker<'_>, decided: &mut Decided<'_>, stop: Stop) {
        let anew = match &stop {
            Stop::Changed => true,
            Stop::Failed(failure) => errno::is(&failure.error, errno::EEXIST),
            Stop::Asked => false,
        };
        let outcome = match anew {
            true => self.transfer_again(worker, decided, &stop),
            false => Err(stop),
        };
        self.ended(worker, &decided.entry, outcome);
    }

    fn transfer_again(
        &self,
        worker: &mut Worker<'_>,
        decided: &mut Decided<'_>,
        stop: &Stop,
    ) -> Result<Outcome, Stop> {
        if matches!(stop, Stop::Failed(_))
            && let Some(place) = decided.entry.place()
            && self.may_be_ours(place)?
        {
            return Err(Failure::reason(Operation::Overwrite, CLASH).into());
        }
        self.transfer(worker, decided, false)
    }
}
