//! The new regular files of a chunk, in steps instead of one after the other: open all sources,
//! create all targets, fill all.
//!
//! Creating a name holds the lock of its directory, and on XFS that is most of the work of a small
//! file (57 %). Workers that take turns at every file spend their time spinning on that lock and
//! moving its cache lines; here a worker creates its whole chunk while the others fill theirs.
//! Other file systems lose by it (BENCHMARKS.md), and so do small directories.

use super::data::Stop;
use super::entry::{Done, Entry};
use super::node::{Fds, TargetDir};
use super::pool::{Queue, lock};
use super::regular::{Draft, Shape};
use super::sweep::Pass;
use super::tell::{Begun, Told};
use super::walk::{CHUNK_NAMES, Chunk, Rest, Unit};
use super::{Engine, State, TargetMode};
use crate::event::Change;
use crate::meter::Phase;
use crate::policy::{Action, Content, decide};
use crate::unit::{Kind, Meta};
use hakobu_sys::{BorrowedFd, OwnedFd, errno, file, meta};
use std::ffi::CStr;

/// Larger files are copied on their own: what is gained at their creation does not show.
const BATCHED_BYTES_MAX: u64 = 1 << 20;

/// A file whose source is open and whose target is to be created.
struct Waiting<'c> {
    name: &'c CStr,
    from: OwnedFd,
    source: Meta,
    begun: Option<Begun>,
}

/// A file whose target is filled and has no name yet.
struct Filled<'c, 'd> {
    file: Waiting<'c>,
    draft: Draft<'d>,
    done: Done,
}

/// What all files of a batch share.
struct Place<'a> {
    chunk: &'a Chunk,
    rest: &'a Rest<'a>,
    fds: &'a Fds,
    target: (BorrowedFd<'a>, TargetDir),
    queue: &'a Queue<'a, Unit>,
}

impl<'a> Place<'a> {
    fn entry<'c: 'e, 'e>(&'e self, name: &'c CStr) -> Entry<'e>
    where
        'a: 'e,
    {
        Entry {
            node: &self.chunk.node,
            fds: self.fds,
            side: self.chunk.side,
            name,
            target_name: name,
            follow: false,
            target: Some(self.target),
            rest: Some(self.rest),
        }
    }
}

impl Engine<'_> {
    /// Whether new files of a chunk are copied in steps.
    pub(super) fn batches(&self, chunk: &Chunk) -> bool {
        let full = chunk.kinds.len() == CHUNK_NAMES;
        self.batch_max > 1
            && (full || !self.direct)
            && self.pass == Pass::Transfer
            && !chunk.seed
            && self.mode == TargetMode::Real
            && self.policy.content == Content::Copy
            && self.policy.link_dest.is_empty()
    }

    /// Handles a chunk of a directory in which nothing is yet.
    pub(super) fn batch(
        &self,
        state: &mut State,
        rest: &Rest<'_>,
        fds: &Fds,
        target: (BorrowedFd<'_>, TargetDir),
        queue: &Queue<'_, Unit>,
    ) {
        let place = Place { chunk: rest.chunk, rest, fds, target, queue };
        let mut waiting = Vec::with_capacity(self.batch_max);
        while let Some((name, kind)) = rest.next() {
            if self.is_over() {
                break;
            }
            if kind == Kind::File {
                self.step(&state.station, Phase::Look, 1);
            }
            match self.open_new(&place, name, kind) {
                Some(file) => {
                    self.see(state, &file.source);
                    waiting.push(file);
                }
                None => self.entry(state, &mut place.entry(name), kind, true, Some(queue)),
            }
            if waiting.len() >= self.batch_max {
                self.copy_together(state, &place, &mut waiting);
            }
            if queue.is_shut_out() {
                self.hand_over(rest, queue);
            }
        }
        self.copy_together(state, &place, &mut waiting);
    }

    /// Opens a source that is a small regular file to be created; everything else, and every
    /// failure, takes the way of single entries.
    fn open_new<'c>(&self, place: &Place<'_>, name: &'c CStr, kind: Kind) -> Option<Waiting<'c>> {
        if kind != Kind::File {
            return None;
        }
        let begun = self.begin();
        let from = file::open_read(place.fds.source(place.chunk.side).ok()?, name, false).ok()?;
        let source = meta::of_fd(&from).ok()?;
        let fits = source.kind == Kind::File
            && source.size <= BATCHED_BYTES_MAX
            && !self.is_grouped(&source);
        let creates = decide(&source, None, self.policy) == Action::Create;
        (fits && creates).then_some(Waiting { name, from, source, begun })
    }

    fn copy_together(&self, state: &mut State, place: &Place<'_>, waiting: &mut Vec<Waiting<'_>>) {
        let (target_dir, dir_info) = place.target;
        let mut drafts = Vec::with_capacity(waiting.len());
        // Who waits for a limit does not hold the lock meanwhile.
        self.step(&state.station, Phase::Create, waiting.len() as u64);
        {
            let _turn = lock(&place.chunk.node.creating);
            for file in waiting.drain(..) {
                let shape = self.shape(&dir_info, &file.source, None);
                let entry = place.entry(file.name);
                let (source, mode) = (&file.source, shape.mode);
                let draft = self.open_draft(&entry, target_dir, &dir_info, source, None, mode);
                drafts.push((file, shape, draft));
            }
        }
        let mut filled = Vec::new();
        for (file, shape, draft) in drafts {
            match draft.map_err(Stop::from) {
                Ok(draft) => filled.extend(self.fill_one(state, place, file, draft, &shape)),
                Err(stop) => self.again(state, place, &file, stop),
            }
        }
        if filled.is_empty() {
            return;
        }
        let mut published = Vec::with_capacity(filled.len());
        self.step(&state.station, Phase::Create, filled.len() as u64);
        {
            let _turn = lock(&place.chunk.node.creating);
            for Filled { file, draft, done } in filled {
                let entry = place.entry(file.name);
                published.push((self.publish(&entry, target_dir, draft, None), file, done));
            }
        }
        for (result, file, done) in published {
            match result {
                Ok(()) => self.has_arrived(state, place, &file, done),
                Err(stop) => self.again(state, place, &file, stop),
            }
        }
    }

    /// Fills one draft. Returns it where it still has to get its name.
    fn fill_one<'c, 'd>(
        &self,
        state: &mut State,
        place: &Place<'_>,
        file: Waiting<'c>,
        draft: Draft<'d>,
        shape: &Shape,
    ) -> Option<Filled<'c, 'd>> {
        let entry = place.entry(file.name);
        let result = match self.is_over() {
            true => Err(Stop::Asked),
            false => self.fill(state, &entry, &file.from, &file.source, None, &draft, shape),
        };
        match result {
            Ok(done) if draft.is_public() => {
                self.has_arrived(state, place, &file, done);
                None
            }
            Ok(done) => Some(Filled { file, draft, done }),
            Err(stop) => {
                self.give_up(&entry, place.target.0, draft, &stop);
                self.again(state, place, &file, stop);
                None
            }
        }
    }

    fn has_arrived(&self, state: &mut State, place: &Place<'_>, file: &Waiting<'_>, done: Done) {
        let change = Change { created: true, transferred: true, ..Change::default() };
        let told = Told { change, bytes_moved: done.bytes, link: None, begun: file.begun };
        self.arrived(state, &place.entry(file.name), &file.source, told, done);
        self.finished(state);
    }

    /// A name that appeared in the meantime, or a source that changed, is looked at anew on its
    /// own; other failures are told.
    fn again(&self, state: &mut State, place: &Place<'_>, file: &Waiting<'_>, stop: Stop) {
        let mut entry = place.entry(file.name);
        let anew = match &stop {
            Stop::Changed => true,
            Stop::Failed(failure) => errno::is(&failure.error, errno::EEXIST),
            Stop::Asked => false,
        };
        if anew {
            self.unsee(state, &file.source);
            self.entry(state, &mut entry, Kind::Unknown, false, Some(place.queue));
        } else {
            self.stopped(state, &entry, stop);
        }
    }
}
