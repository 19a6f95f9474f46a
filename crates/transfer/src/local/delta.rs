//! The target end of a file that is sent as differences from the one that it replaces (`hakobu_remote::delta`): hashes of
//! the blocks that are here go out, and what comes is put together in the draft, or in place.
//!
//! Hashes of the first blocks go with the wish for the content, so that a file of a few megabytes needs no further round
//! trip. Of a larger one the rest goes out when the other end begins to answer, from threads of their own, while patches
//! are applied. The result is hashed as it is made. If it is not what the other end has read, the content comes again
//! as a whole, into the same draft.

use super::content::{Mover, Onto, write_without_zeroes};
use super::engine::{LocalEngine, Station};
use super::entry::Decided;
use super::source::{DeltaBasis, FarEntry, FarPieces, Piece};
use crate::failure::{Failure, Stop, writing};
use crate::policy::{Reflink, Sparse};
use crate::publish::DirName;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_core::unit::Kind;
use hakobu_remote::delta::{Basis, BlockSign, DELTA_BYTES_MIN, PatchOp, weight};
use hakobu_remote::message::{ContentState, Patch};
use hakobu_remote::refine::FINE_BYTES;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, errno, file, meta};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at once.
const READ_BYTES: u64 = 256 << 10;
/// Most threads that hash one file.
const SIGNERS_MAX: usize = 4;

impl LocalEngine<'_> {
    /// Asks for the content of an entry as differences from the file that it replaces, if that may pay.
    pub(super) fn ask_for_delta(&self, decided: &Decided<'_>, entry: &FarEntry) {
        let (source, policy) = (&decided.source, self.context.policy);
        let (Some(there), Some(place)) = (&decided.target, decided.entry.place()) else { return };
        let pays = there.kind == Kind::File && there.size.min(source.size) >= DELTA_BYTES_MIN;
        if policy.whole_file || !pays || policy.appends(source, there) {
            return;
        }
        let seed = RandomState::new().build_hasher().finish();
        let Some(basis) = Basis::of(there.size, seed, policy.inplace) else { return };
        let identity = there.identity();
        // What cannot be read is replaced as a whole.
        let Some(fd) = open_basis(place, (identity, there.size)) else { return };
        let first = basis.segment_blocks().min(basis.blocks());
        let reserved = if entry.reserves_signs(first) { first } else { 0 };
        let signs = sign(fd.as_fd(), &basis, 0..reserved);
        entry.asks_for_delta(DeltaBasis { basis, identity, signed: reserved, reserved }, signs);
    }
}

/// Opens the file that an entry replaces if it is still the one that was looked at.
fn open_basis((dir, name): DirName<'_>, (identity, size): ((u64, u64), u64)) -> Option<OwnedFd> {
    let fd = file::open_read(dir, name, false).ok()?;
    let now = meta::of_fd(&fd).ok()?;
    ((now.identity(), now.size, now.kind) == (identity, size, Kind::File)).then_some(fd)
}

/// Returns the hashes of blocks. Those of what cannot be read match nothing.
fn sign(fd: BorrowedFd<'_>, basis: &Basis, blocks: Range<u64>) -> Vec<BlockSign> {
    let per_read = (READ_BYTES >> basis.log).max(1);
    let mut buffer = vec![0; (per_read << basis.log).min(basis.size) as usize];
    let mut signs = Vec::with_capacity(blocks.end.saturating_sub(blocks.start) as usize);
    for first in blocks.clone().step_by(per_read as usize) {
        let last = (first + per_read).min(blocks.end) - 1;
        let (offset, (last_offset, last_length)) = (basis.range(first).0, basis.range(last));
        let length = (last_offset + last_length - offset) as usize;
        let space = buffer.get_mut(..length).unwrap_or_default();
        let got = file::read_full_at(fd, space, offset).unwrap_or(0);
        for block in first..=last {
            let (at, length) = basis.range(block);
            let begins = (at - offset) as usize;
            let content = space.get(begins..begins + length as usize);
            signs.push(match content.filter(|_| begins + length as usize <= got) {
                Some(content) => basis.sign(content),
                None => BlockSign::default(),
            });
        }
    }
    signs
}

/// Sends the hashes that are left, from several threads.
struct Signer<'a> {
    entry: &'a FarEntry,
    fd: Option<BorrowedFd<'a>>,
    basis: &'a Basis,
    next: AtomicU64,
    stops: AtomicBool,
}

impl Signer<'_> {
    fn run(&self) {
        let (segment, blocks) = (self.basis.segment_blocks(), self.basis.blocks());
        while !self.stops.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(segment, Ordering::Relaxed);
            if first >= blocks {
                break;
            }
            let range = first..(first + segment).min(blocks);
            let signs = match self.fd {
                Some(fd) => sign(fd, self.basis, range),
                None => vec![BlockSign::default(); (range.end - range.start) as usize],
            };
            self.entry.signs(first, signs);
        }
    }
}

/// What came of a file whose differences came.
pub(super) enum Patched {
    /// It is right. Bytes that were here.
    Right { matched: u64 },
    /// The content comes again as a whole.
    Wrong,
}

/// A file that is put together.
struct Patching<'a> {
    at: &'a Station<'a>,
    entry: &'a FarEntry,
    asked: &'a Basis,
    to: BorrowedFd<'a>,
    basis: Option<BorrowedFd<'a>>,
    buffer: &'a mut [u8],
    onto: Onto,
    /// The draft, for reading, if it shares the extents of the basis.
    cloned: Option<OwnedFd>,
    sparse: bool,
    offset: u64,
    matched: u64,
    hash: Xxh3,
    /// What is written is right up to here; `None`: up to the offset.
    right: Option<u64>,
}

impl Mover<'_> {
    /// Puts a file together of what is here and what comes. `basis`: the place of the file that it replaces.
    ///
    /// # Errors
    /// [`Stop`]; the target then holds a part, of a new file from its beginning.
    pub(super) fn patch(
        &mut self,
        at: &Station<'_>,
        (entry, pieces): (&FarEntry, &FarPieces),
        (to, onto): (BorrowedFd<'_>, Onto),
        basis: Option<DirName<'_>>,
    ) -> Result<Patched, Stop> {
        let Some(asked) = entry.delta() else { return Err(Stop::Changed) };
        let DeltaBasis { basis: blocks, identity, signed, .. } = asked;
        let policy = self.context.policy;
        let sparse = policy.sparse == Sparse::Always;
        let fd = basis.and_then(|place| open_basis(place, (*identity, blocks.size)));
        self.pair.begin((identity.0, identity.0));
        let clones = onto == Onto::New
            && !sparse
            && !policy.preallocate
            && policy.reflink != Reflink::Never
            && !self.pair.no_clone;
        let mut cloned = None;
        if let Some(fd) = fd.as_ref().filter(|_| clones) {
            at.step(Phase::Write, 1);
            match file::clone_all(fd.as_fd(), to) {
                // What is read of it later is what is in the draft, even if somebody writes to the basis.
                Ok(()) => cloned = file::reopen_read(to).ok(),
                Err(error) => self.pair.no_clone |= !errno::is(&error, errno::EINVAL),
            }
        }
        let signer = Signer {
            entry,
            fd: fd.as_ref().map(AsFd::as_fd),
            basis: blocks,
            next: AtomicU64::new(*signed),
            stops: AtomicBool::new(false),
        };
        let mut patching = Patching {
            at,
            entry,
            asked: blocks,
            to,
            basis: fd.as_ref().map(AsFd::as_fd),
            buffer: &mut self.buffer,
            onto,
            cloned,
            sparse,
            offset: 0,
            matched: 0,
            hash: Xxh3::new(),
            right: None,
        };
        let complete = std::thread::scope(|scope| {
            if *signed < blocks.blocks() {
                let left = (blocks.blocks() - signed).div_ceil(blocks.segment_blocks());
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                let count =
                    cores.min(SIGNERS_MAX).min(usize::try_from(left).unwrap_or(SIGNERS_MAX));
                let start = |_: &usize| {
                    let thread = std::thread::Builder::new().name("signer".into());
                    thread.spawn_scoped(scope, || signer.run()).is_ok()
                };
                if (0..count).filter(start).count() == 0 {
                    signer.run();
                }
            }
            let complete = patching.take_all(pieces);
            signer.stops.store(true, Ordering::Relaxed);
            complete
        });
        let right = patching.right.unwrap_or(patching.offset);
        let cloned = patching.cloned.is_some();
        let is_right = complete.as_ref().is_ok_and(|hash| {
            let made = patching.hash.digest128();
            patching.right.is_none() && patching.offset == entry.meta.size && *hash == made
        });
        let matched = patching.matched;
        let cut = |length| file::set_len(to, length).map_err(Failure::of(Operation::Write));
        if complete.is_err() && onto == Onto::New && (cloned || right < patching.offset) {
            // What is kept of it is its beginning.
            cut(right)?;
        }
        complete?;
        entry.checked(is_right);
        match (is_right, onto) {
            (true, Onto::New) => cut(entry.meta.size)?,
            (false, Onto::New) => cut(0)?,
            _ => {}
        }
        Ok(if is_right { Patched::Right { matched } } else { Patched::Wrong })
    }
}

impl Patching<'_> {
    /// Applies all patches. Returns the hash of the file at the other end.
    fn take_all(&mut self, pieces: &FarPieces) -> Result<u128, Stop> {
        let mut is_first = true;
        loop {
            self.at.turn(Phase::Receive);
            let patch = match pieces.next(|| self.at.is_over()) {
                None => return Err(Stop::Asked),
                Some(Piece::Lost) => return Err(Stop::Reported),
                Some(Piece::Patch(patch)) => patch,
                // Anything else is not what was asked for.
                Some(_) => return Err(Stop::Changed),
            };
            let Patch { ops, state, hash } = patch;
            if is_first && state == ContentState::Goes {
                pieces.begin();
            }
            let bytes = weight(&ops);
            for op in ops {
                match op {
                    PatchOp::Literal(bytes) => self.write(&bytes)?,
                    PatchOp::Same { from, length } => self.copy(from, length)?,
                    PatchOp::Ask { from, blocks } => self.answer(from, blocks),
                }
            }
            match state {
                ContentState::Complete => return Ok(hash),
                ContentState::Goes => pieces.taken(bytes),
                _ => {}
            }
            is_first = false;
        }
    }

    /// Tells hashes of small blocks of the basis. Those of what cannot be read match nothing.
    fn answer(&mut self, from: u64, blocks: u64) {
        self.at.step(Phase::Read, 1);
        let mut hashes = Vec::with_capacity(blocks as usize);
        let mut piece = [0; FINE_BYTES as usize];
        for block in 0..blocks {
            let offset = from + block * FINE_BYTES;
            let read = self.basis.map(|basis| file::read_full_at(basis, &mut piece, offset));
            let is_read = read.is_some_and(|read| read.is_ok_and(|got| got == piece.len()));
            hashes.push(if is_read { self.asked.strong(&piece) } else { 0 });
        }
        self.entry.fine(hashes);
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.hash.update(bytes);
        self.put(bytes)
    }

    /// Takes over a range of the basis. Where it is lost, the file is wrong.
    fn copy(&mut self, from: u64, length: u64) -> Result<(), Stop> {
        let stays = from == self.offset && (self.cloned.is_some() || self.onto == Onto::Existing);
        self.matched += length;
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut done = 0;
        let copied = loop {
            if done == length {
                break Ok(());
            }
            if self.at.is_over() {
                break Err(Stop::Asked);
            }
            let count = (length - done).min(buffer.len() as u64) as usize;
            let piece = buffer.get_mut(..count).unwrap_or_default();
            self.at.step(Phase::Read, 1);
            let kept = self.cloned.as_ref().filter(|_| stays).map(AsFd::as_fd);
            let from = from + done;
            let read = kept.or(self.basis).map(|basis| file::read_full_at(basis, piece, from));
            if !read.is_some_and(|read| read.is_ok_and(|got| got == count)) {
                self.right.get_or_insert(self.offset);
            }
            self.hash.update(piece);
            let put = match stays || self.right.is_some() {
                true => {
                    self.at.lane.bytes(count as u64);
                    self.offset += count as u64;
                    Ok(())
                }
                false => self.put(piece),
            };
            if put.is_err() {
                break put;
            }
            done += count as u64;
        };
        std::mem::swap(&mut self.buffer, &mut buffer);
        copied
    }

    /// Writes at the end of what is there.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if self.right.is_none() {
            self.at.step(Phase::Write, 1);
            let punches = self.onto == Onto::Existing || self.cloned.is_some();
            let written = match self.sparse {
                true => write_without_zeroes(self.to, bytes, self.offset, punches),
                false => file::write_all_at(self.to, bytes, self.offset, false),
            };
            written.map_err(writing)?;
        }
        self.at.lane.bytes(bytes.len() as u64);
        self.offset += bytes.len() as u64;
        Ok(())
    }
}
