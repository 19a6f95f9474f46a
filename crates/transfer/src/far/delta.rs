//! The source end of files that are sent as differences: hashes of what the other end has come in, and what it lacks goes
//! out (`hakobu_remote::delta`).
//!
//! A file is done when the other end says that it is right. One that is wrong there is sent as a whole, by a sender of its
//! own: the other end waits for it while it handles nothing else, so that it must not stand behind files that the
//! other end has not begun.

use super::source_end::{FileNumber, SentEntry, SentFiles, SourceEnd, State};
use crate::local::AnnouncedReader;
use hakobu_core::error::Operation;
use hakobu_remote::delta::{
    BLOCKS_MAX, Basis, BlockSign, PatchOp, ScanEnds, Scanned, Signatures, scan, weight,
};
use hakobu_remote::message::{ContentState, Message, Patch, ProtocolError, Signs};
use std::collections::{HashMap, HashSet, VecDeque};

/// Blocks whose hashes may wait to be used: as many as the other end may send ahead, and those of files in progress.
const WAITING_MAX: u64 = 2 * BLOCKS_MAX;

/// What is known of files that are sent as differences.
#[derive(Default)]
pub(super) struct Deltas {
    asked: HashMap<FileNumber, Asked>,
    /// Blocks whose hashes have come and are not used yet.
    waiting: u64,
    /// Blocks of files in progress.
    reserved: u64,
    /// Files that were sent and not checked by the other end.
    unchecked: HashSet<FileNumber>,
}

/// A file that is asked for.
#[derive(Default)]
struct Asked {
    basis: Option<Basis>,
    signs: VecDeque<(u64, Vec<BlockSign>)>,
    /// Blocks whose hashes have come.
    came: u64,
    /// Numbers of hashes that questions are about, of those without an answer, and answers that are not used yet.
    questions: VecDeque<u64>,
    answers: VecDeque<Vec<u64>>,
}

impl Deltas {
    /// Records that a file is asked for; its hashes may have come before.
    pub(super) fn ask(&mut self, of: FileNumber) {
        self.asked.entry(of).or_default();
    }

    pub(super) fn is_asked(&self, of: FileNumber) -> bool {
        self.asked.contains_key(&of)
    }

    /// Adds hashes that have come. Those of a file that is done are dropped: they were on the way.
    pub(super) fn add(&mut self, signs: Signs, may_be_asked: bool) -> Result<(), ProtocolError> {
        let Signs { chunk, index, basis, first, blocks } = signs;
        let of = (chunk, index);
        if basis.is_some() {
            let asked = self.asked.entry(of).or_default();
            if !may_be_asked || asked.basis.is_some() {
                return Err(ProtocolError("content that is none was asked for"));
            }
            asked.basis = basis;
        }
        let Some(asked) = self.asked.get_mut(&of) else { return Ok(()) };
        let count = blocks.len() as u64;
        let most = asked.basis.map_or(0, |basis| basis.blocks());
        asked.came += count;
        self.waiting += count;
        let is_within = first.checked_add(count).is_some_and(|end| end <= most);
        if !is_within || asked.came > most || self.waiting > WAITING_MAX {
            return Err(ProtocolError("hashes are sent of more than there is"));
        }
        asked.signs.push_back((first, blocks));
        Ok(())
    }

    /// Adds the answer to a question.
    pub(super) fn answer(&mut self, of: FileNumber, hashes: Vec<u64>) -> Result<(), ProtocolError> {
        // Those of a file that is done were on the way.
        let Some(asked) = self.asked.get_mut(&of) else { return Ok(()) };
        if asked.questions.pop_front() != Some(hashes.len() as u64) {
            return Err(ProtocolError("hashes are sent that were not asked for"));
        }
        asked.answers.push_back(hashes);
        Ok(())
    }

    /// Records what the other end found of a file. Returns whether it was sent as differences.
    pub(super) fn checked(&mut self, of: FileNumber) -> bool {
        self.unchecked.remove(&of)
    }

    fn end(&mut self, of: FileNumber) {
        if let Some(asked) = self.asked.remove(&of) {
            let left: usize = asked.signs.iter().map(|(_, blocks)| blocks.len()).sum();
            self.waiting -= left as u64;
        }
    }
}

/// How sending differences ended.
pub(super) enum DeltaEnd {
    /// The file is done.
    Done,
    /// The other end checks it.
    Unchecked,
}

/// Why a scan is given up.
enum Failed {
    /// The run is over, or the other end wants it no longer.
    Over,
    Read(std::io::Error),
}

/// The ends of a scan.
struct Ends<'a, 'b, F> {
    end: &'a SourceEnd<'b>,
    of: FileNumber,
    entry: &'a SentEntry,
    reader: AnnouncedReader,
    /// A first patch was sent.
    has_begun: bool,
    sends: F,
}

impl<F: FnMut(u64, u64)> Ends<'_, '_, F> {
    fn send(&mut self, patch: Patch) -> Result<(), Failed> {
        let Ends { end, of, .. } = *self;
        let (mut literal, mut all, mut questions) = (0, 0, Vec::new());
        for op in &patch.ops {
            all += op.bytes();
            match op {
                PatchOp::Literal(bytes) => literal += bytes.len() as u64,
                PatchOp::Ask { blocks, .. } => questions.push(*blocks),
                PatchOp::Same { .. } => {}
            }
        }
        (self.sends)(literal, all);
        if !questions.is_empty()
            && let Some(asked) = end.state.lock().deltas.asked.get_mut(&of)
        {
            asked.questions.extend(questions);
        }
        let bytes = weight(&patch.ops);
        let room = match self.has_begun {
            true => end.take_window(of, bytes),
            false => end.take_unasked(bytes),
        };
        room.ok_or(Failed::Over)?;
        if !self.has_begun {
            end.open_window(of);
        }
        self.has_begun = true;
        let (chunk, index) = of;
        let sent = end.send_of(self.entry, Message::Patch { chunk, index, patch });
        sent.map_err(|_| Failed::Over)
    }
}

impl<F: FnMut(u64, u64)> ScanEnds for Ends<'_, '_, F> {
    type Error = Failed;

    fn read(&mut self, offset: u64, space: &mut [u8]) -> Result<usize, Failed> {
        self.reader.read_at(offset, space).map_err(Failed::Read)
    }

    fn wait(&mut self, signatures: &mut Signatures) -> Result<(), Failed> {
        let (end, of) = (self.end, self.of);
        let came = end.wait_for(|state| {
            let signs = state.deltas.asked.get_mut(&of)?.signs.pop_front();
            if let Some((_, blocks)) = &signs {
                state.deltas.waiting -= blocks.len() as u64;
            }
            let is_cancelled = state.is_cancelled(of);
            if is_cancelled { Some(None) } else { signs.map(Some) }
        });
        let (first, blocks) = came.flatten().ok_or(Failed::Over)?;
        signatures.add(first, &blocks);
        Ok(())
    }

    fn answer(&mut self, waits: bool) -> Result<Option<Vec<u64>>, Failed> {
        let (end, of) = (self.end, self.of);
        let came = end.wait_for(|state| {
            if state.is_cancelled(of) {
                return Some(Err(Failed::Over));
            }
            let answer = state.deltas.asked.get_mut(&of)?.answers.pop_front();
            (answer.is_some() || !waits).then_some(Ok(answer))
        });
        came.unwrap_or(Err(Failed::Over))
    }

    fn send(&mut self, ops: Vec<PatchOp>) -> Result<(), Failed> {
        Ends::send(self, Patch { ops, state: ContentState::Goes, hash: 0 })
    }
}

impl SourceEnd<'_> {
    /// Sends a file as differences. `sends` gets the bytes that are sent, and those that they stand for with the others.
    pub(super) fn send_delta(
        &self,
        of: FileNumber,
        (files, entry): (&SentFiles, &SentEntry),
        sends: impl FnMut(u64, u64),
    ) -> DeltaEnd {
        let basis = self.wait_for(|state| match state.is_cancelled(of) {
            true => Some(None),
            false => state.deltas.asked.get(&of)?.basis.map(Some),
        });
        let Some(basis) = basis.flatten() else {
            self.state.lock().deltas.end(of);
            return DeltaEnd::Done;
        };
        // Before anything is sent: what the other end has begun never waits for a file that it has not.
        let blocks = basis.blocks();
        let reserved = self.wait_for(|state| {
            let has_room =
                state.deltas.reserved == 0 || state.deltas.reserved + blocks <= BLOCKS_MAX;
            has_room.then(|| state.deltas.reserved += blocks)
        });
        if reserved.is_none() {
            return DeltaEnd::Done;
        }
        let done = self.scan(of, (files, entry), basis, sends);
        let mut state = self.state.lock();
        state.deltas.end(of);
        state.deltas.reserved -= blocks;
        drop(state);
        self.changed.notify_all();
        done
    }

    fn scan(
        &self,
        of: FileNumber,
        (files, entry): (&SentFiles, &SentEntry),
        basis: Basis,
        sends: impl FnMut(u64, u64),
    ) -> DeltaEnd {
        let failed = |error| {
            self.fail_to_send((files, entry), Operation::Read, error);
            ContentState::Failed
        };
        let end_with = |state| {
            let (chunk, index) = of;
            let patch = Patch { ops: Vec::new(), state, hash: 0 };
            let _ = self.out.send(Message::Patch { chunk, index, patch });
            DeltaEnd::Done
        };
        let (dir, name) = ((&*files.node, files.side), (&*entry.name, entry.opening));
        let reader = match AnnouncedReader::open(dir, name, entry.size) {
            Ok(reader) => reader,
            Err(error) => return end_with(failed(error)),
        };
        let mut signatures = Signatures::new(basis);
        let mut ends = Ends { end: self, of, entry, reader, has_begun: false, sends };
        // The other end sends the hashes that are missing once it has begun.
        let is_long = basis.blocks() > basis.segment_blocks();
        let begun = if is_long { ScanEnds::send(&mut ends, Vec::new()) } else { Ok(()) };
        let scanned = begun.and_then(|()| scan(&mut ends, &mut signatures, entry.size));
        let last = match scanned {
            Ok(Scanned::Complete { ops, hash }) => {
                // Its answer may come at once.
                self.state.lock().deltas.unchecked.insert(of);
                ends.send(Patch { ops, state: ContentState::Complete, hash })
            }
            Ok(Scanned::Shorter) => return end_with(ContentState::Changed),
            Err(failed) => Err(failed),
        };
        let mut state = self.state.lock();
        match last {
            // A file that was given up meanwhile gets no answer.
            Ok(()) if state.is_cancelled(of) => match state.deltas.unchecked.remove(&of) {
                true => DeltaEnd::Done,
                false => DeltaEnd::Unchecked,
            },
            Ok(()) => DeltaEnd::Unchecked,
            Err(Failed::Over) => {
                state.deltas.unchecked.remove(&of);
                DeltaEnd::Done
            }
            Err(Failed::Read(error)) => {
                drop(state);
                end_with(failed(error))
            }
        }
    }

    /// Waits until something is found in the state; `None`: the run is over.
    fn wait_for<T>(&self, mut find: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if self.is_over(&state) {
                return None;
            }
            if let Some(found) = find(&mut state) {
                return Some(found);
            }
            self.changed.wait_for(&mut state, super::source_end::LOOK);
        }
    }

    /// Waits until so many bytes may be sent unasked.
    pub(super) fn take_unasked(&self, bytes: u64) -> Option<()> {
        self.wait_for(|state| {
            let has_room = state.unasked + bytes <= super::source_end::UNASKED_BYTES_MAX;
            has_room.then(|| state.unasked += bytes)
        })
    }

    /// Waits until so many bytes more of a file may be sent.
    fn take_window(&self, of: FileNumber, bytes: u64) -> Option<()> {
        let taken = self.wait_for(|state| match state.windows.get_mut(&of) {
            None => Some(false),
            Some(window) if *window >= bytes => {
                *window -= bytes;
                Some(true)
            }
            Some(_) => None,
        });
        taken.filter(|taken| *taken).map(|_| ())
    }

    /// Records that a first piece of a file is sent: the other end says how much more may be.
    fn open_window(&self, of: FileNumber) {
        let mut state = self.state.lock();
        if !state.is_cancelled(of) {
            state.windows.entry(of).or_insert(0);
        }
    }
}
