//! Differences between two versions of a file at two ends. The target end tells hashes of the blocks of its version (the
//! *basis*); the source end compares its own version with them ([`scan`]) and sends what the other one lacks, and for the rest
//! where it is in the basis ([`PatchOp`]).
//!
//! Blocks are large, so that their hashes are few. What has no block is looked at again with small ones (`refine`), whose
//! hashes the target end tells only of ranges that it is asked about.
//!
//! A block at its old place costs one hash, and so does each one of a run that moved together. Only where neither is equal, a
//! rolling hash looks for blocks byte by byte. What the search may spend on candidates that prove to be none grows with the
//! bytes it has passed, so that no content makes it more than linear.

use crate::message::CONTENT_BYTES_MAX;
use crate::refine::{FINE_BYTES, Refining, refines};
use crate::rolling::{Rolling, weak_of};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Smallest files, at both ends, that are worth it.
pub const DELTA_BYTES_MIN: u64 = 64 << 10;
/// Bytes of the basis whose hashes are computed at once.
pub const SEGMENT_BYTES: u64 = 8 << 20;
/// Most blocks of a basis: their hashes and the index take some 25 MiB.
pub const BLOCKS_MAX: u64 = 1 << 20;
/// Most blocks in one message.
pub const SIGN_BLOCKS_MAX: usize = 2048;
/// Smallest and usually largest blocks, and those that anybody may ask for, as powers of two.
const LOG_MIN: u8 = 12;
const LOG_USUAL_MAX: u8 = 17;
/// Smallest blocks of files that are larger than so many bytes.
const LOG_REFINED: u8 = 14;
const SMALL_BLOCKS_BYTES_MAX: u64 = 16 << 20;
const LOG_MAX: u8 = 24;
/// Most parts of one patch.
pub const PATCH_OPS_MAX: usize = 1024;
/// Matched bytes after which a patch is sent, so that the other end has something to do.
const PATCH_SPAN_BYTES: u64 = 4 << 20;
/// Bytes beyond a difference in which a block at its old place makes it a change in place.
const LOOK_AHEAD_BYTES: u64 = 1 << 20;
/// Bytes that may be hashed in vain for each byte passed, and at most at once.
const CREDIT_PER_BYTE: u64 = 16;
const CREDIT_MAX: u64 = 64 << 20;
/// Fewest bits of the filter, as a power of two: they stay in a core's first cache.
const FILTER_LOG_MIN: u32 = 16;
/// Most candidates of a slot.
const CHAIN_MAX: usize = 16;
/// Bytes that are read at once.
const READ_BYTES: usize = 2 << 20;

/// The basis: what its hashes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Its size in bytes.
    pub size: u64,
    /// Size of a block as a power of two; the last one may be shorter.
    pub log: u8,
    /// Seed of the hashes.
    pub seed: u64,
    /// It is overwritten: of what lies before the current position, nothing is left.
    pub in_place: bool,
}

impl Basis {
    /// Chooses the size of blocks: small ones, or such that are looked at again, of some two times the root of the file's
    /// size. `None` for a file that is too large.
    pub fn of(size: u64, seed: u64, in_place: bool) -> Option<Basis> {
        let mut log = if size > SMALL_BLOCKS_BYTES_MAX { LOG_REFINED } else { LOG_MIN };
        while size > SMALL_BLOCKS_BYTES_MAX && log < LOG_USUAL_MAX && (1 << (2 * log)) / 4 < size {
            log += 1;
        }
        while log < LOG_MAX && size.div_ceil(1 << log) > BLOCKS_MAX {
            log += 1;
        }
        Some(Basis { size, log, seed, in_place }).filter(Basis::is_valid)
    }

    /// Returns whether its numbers are in their ranges.
    pub fn is_valid(&self) -> bool {
        (LOG_MIN..=LOG_MAX).contains(&self.log) && self.size > 0 && self.blocks() <= BLOCKS_MAX
    }

    /// Returns the bytes of a block but the last one.
    pub fn block_bytes(&self) -> u64 {
        1 << self.log
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.size.div_ceil(self.block_bytes())
    }

    /// Returns the number of blocks that are hashed at once.
    pub fn segment_blocks(&self) -> u64 {
        (SEGMENT_BYTES >> self.log).max(1)
    }

    /// Returns the offset and the length of a block.
    pub fn range(&self, block: u64) -> (u64, u64) {
        let offset = block.saturating_mul(self.block_bytes());
        (offset, self.size.saturating_sub(offset).min(self.block_bytes()))
    }

    /// Returns the hashes of a block.
    pub fn sign(&self, block: &[u8]) -> BlockSign {
        BlockSign { weak: weak_of(block), strong: self.strong(block) }
    }

    /// Returns the hash of a block of any size.
    pub fn strong(&self, block: &[u8]) -> u64 {
        xxh3_64_with_seed(block, self.seed)
    }
}

/// Hashes of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockSign {
    pub weak: u32,
    pub strong: u64,
}

/// What the new version is made of, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchOp {
    Literal(Vec<u8>),
    /// A range of the basis.
    Same {
        from: u64,
        length: u64,
    },
    /// No part of it: hashes of so many blocks of [`FINE_BYTES`] of the basis are asked for.
    Ask {
        from: u64,
        blocks: u64,
    },
}

impl PatchOp {
    /// Returns the end of the range of the basis that it names; `None` if there is no such number.
    pub fn basis_end(&self) -> Option<u64> {
        match self {
            PatchOp::Literal(_) => Some(0),
            PatchOp::Same { from, length } => from.checked_add(*length),
            PatchOp::Ask { from, blocks } => from.checked_add(blocks.checked_mul(FINE_BYTES)?),
        }
    }

    /// Returns the bytes of the new version that it stands for.
    pub fn bytes(&self) -> u64 {
        match self {
            PatchOp::Literal(bytes) => bytes.len() as u64,
            PatchOp::Same { length, .. } => *length,
            PatchOp::Ask { .. } => 0,
        }
    }
}

/// Returns the bytes that parts of a patch count against what may be on the way.
pub fn weight(ops: &[PatchOp]) -> u64 {
    let literal = |op: &PatchOp| match op {
        PatchOp::Literal(bytes) => bytes.len() as u64,
        PatchOp::Same { .. } | PatchOp::Ask { .. } => 0,
    };
    ops.iter().map(|op| 16 + literal(op)).sum()
}

/// Hashes of the basis that have come, and where each one is.
pub struct Signatures {
    basis: Basis,
    weak: Vec<u32>,
    strong: Vec<u64>,
    /// Bits of those that have come.
    known: Vec<u64>,
    unknown: u64,
    /// First block of each slot, and the next one of the same slot; one more than its number, 0: none.
    slots: Vec<u32>,
    next: Vec<u32>,
    /// A bit for each weak hash that there is, by its upper bits: most windows are told apart here.
    filter: Vec<u64>,
    slot_shift: u32,
    filter_shift: u32,
}

impl Signatures {
    /// `basis` is valid.
    pub fn new(basis: Basis) -> Signatures {
        let blocks = basis.blocks() as usize;
        let slot_log = (blocks * 2).next_power_of_two().ilog2().clamp(6, 30);
        let filter_log = (slot_log + 2).max(FILTER_LOG_MIN);
        Signatures {
            basis,
            weak: vec![0; blocks],
            strong: vec![0; blocks],
            known: vec![0; blocks.div_ceil(64)],
            unknown: blocks as u64,
            slots: vec![0; 1 << slot_log],
            next: vec![0; blocks],
            filter: vec![0; 1 << (filter_log - 6)],
            slot_shift: 32 - slot_log,
            filter_shift: 32 - filter_log,
        }
    }

    /// Adds hashes of blocks from `first` on. Those that are known or beyond the end are left out.
    pub fn add(&mut self, first: u64, signs: &[BlockSign]) {
        for (block, sign) in (first..self.basis.blocks()).zip(signs) {
            let at = block as usize;
            let bit = 1 << (at % 64);
            let (Some(known), Some(weak), Some(strong)) =
                (self.known.get_mut(at / 64), self.weak.get_mut(at), self.strong.get_mut(at))
            else {
                continue;
            };
            if *known & bit != 0 {
                continue;
            }
            *known |= bit;
            (*weak, *strong) = (sign.weak, sign.strong);
            self.unknown -= 1;
            if self.basis.range(block).1 == self.basis.block_bytes() {
                self.index(at as u32, *sign);
            }
        }
    }

    fn index(&mut self, block: u32, sign: BlockSign) {
        let slot = (sign.weak >> self.slot_shift) as usize;
        let mut chain = 0;
        for other in self.chain(slot) {
            let same = self.weak.get(other) == Some(&sign.weak)
                && self.strong.get(other) == Some(&sign.strong);
            chain += 1;
            if same && !self.basis.in_place || chain == CHAIN_MAX {
                return;
            }
        }
        let (Some(first), Some(next)) =
            (self.slots.get_mut(slot), self.next.get_mut(block as usize))
        else {
            return;
        };
        *next = std::mem::replace(first, block + 1);
        let bit = (sign.weak >> self.filter_shift) as usize;
        if let Some(bits) = self.filter.get_mut(bit / 64) {
            *bits |= 1 << (bit % 64);
        }
    }

    fn chain(&self, slot: usize) -> impl Iterator<Item = usize> {
        let at = |number: u32| (number > 0).then(|| number as usize - 1);
        let first = self.slots.get(slot).copied().and_then(at);
        std::iter::successors(first, move |block| self.next.get(*block).copied().and_then(at))
    }

    /// Returns whether the hashes of a block have come.
    pub fn is_known(&self, block: u64) -> bool {
        let at = block as usize;
        self.known.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }

    /// Returns whether all have come.
    pub fn is_complete(&self) -> bool {
        self.unknown == 0
    }

    fn may_have(&self, weak: u32) -> bool {
        let bit = (weak >> self.filter_shift) as usize;
        self.filter.get(bit / 64).is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
    }

    /// Returns whether a whole block has a weak hash.
    fn has(&self, weak: u32) -> bool {
        let mut chain = self.chain((weak >> self.slot_shift) as usize);
        chain.any(|block| self.weak.get(block) == Some(&weak))
    }

    /// Returns a whole block with these hashes whose content is left when `at` is the next byte to be written.
    fn find(&self, weak: u32, strong: u64, at: u64) -> Option<u64> {
        self.chain((weak >> self.slot_shift) as usize)
            .find(|block| {
                self.weak.get(*block) == Some(&weak)
                    && self.strong.get(*block) == Some(&strong)
                    && self.is_left(*block as u64, at)
            })
            .map(|block| block as u64)
    }

    fn is_left(&self, block: u64, at: u64) -> bool {
        !self.basis.in_place || self.basis.range(block).0 >= at
    }
}

/// What a scan needs.
pub trait ScanEnds {
    /// Why a scan is given up.
    type Error;

    /// Reads the new version; fewer bytes than there is space for only at its end.
    ///
    /// # Errors
    /// Those of reading.
    fn read(&mut self, offset: u64, space: &mut [u8]) -> Result<usize, Self::Error>;

    /// Waits for further hashes of the basis and adds them.
    ///
    /// # Errors
    /// None will come.
    fn wait(&mut self, signatures: &mut Signatures) -> Result<(), Self::Error>;

    /// Sends parts of the new version.
    ///
    /// # Errors
    /// They cannot be sent.
    fn send(&mut self, ops: Vec<PatchOp>) -> Result<(), Self::Error>;

    /// Returns the answer to the first question of those sent that has none yet, if it has come; `waits`: waits for it.
    ///
    /// # Errors
    /// None will come.
    fn answer(&mut self, waits: bool) -> Result<Option<Vec<u64>>, Self::Error>;
}

/// How a scan ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// The last parts, and the hash of the whole new version.
    Complete { ops: Vec<PatchOp>, hash: u128 },
    /// The new version is shorter than its size says.
    Shorter,
}

enum Ended<E> {
    Shorter,
    Failed(E),
}

impl<E> From<E> for Ended<E> {
    fn from(error: E) -> Ended<E> {
        Ended::Failed(error)
    }
}

/// Compares a new version of `size` bytes with the hashes of a basis.
///
/// # Errors
/// Those of its ends.
pub fn scan<S: ScanEnds>(
    ends: &mut S,
    signatures: &mut Signatures,
    size: u64,
) -> Result<Scanned, S::Error> {
    let basis = signatures.basis;
    let most = size.min(basis.block_bytes());
    let whole = usize::try_from(size).unwrap_or(usize::MAX);
    let buffer = vec![0; whole.min(READ_BYTES + 2 * most as usize)];
    let mut scan = Scan {
        ends,
        signatures,
        basis,
        size,
        buffer,
        begins: 0,
        filled: 0,
        at: 0,
        literal_from: 0,
        ops: Vec::new(),
        literal_bytes: 0,
        span: 0,
        refining: refines(&basis).then(|| Refining::new(basis)),
        out: Vec::new(),
        out_bytes: 0,
        hash: Xxh3::new(),
        following: None,
        credit: CREDIT_MAX,
    };
    match scan.run() {
        Ok(()) => Ok(Scanned::Complete { hash: scan.hash.digest128(), ops: scan.out }),
        Err(Ended::Shorter) => Ok(Scanned::Shorter),
        Err(Ended::Failed(error)) => Err(error),
    }
}

struct Scan<'a, S> {
    ends: &'a mut S,
    signatures: &'a mut Signatures,
    basis: Basis,
    size: u64,
    /// The new version from `begins` on.
    buffer: Vec<u8>,
    begins: u64,
    filled: usize,
    /// Everything before is matched or literal.
    at: u64,
    /// What is literal begins here.
    literal_from: u64,
    ops: Vec<PatchOp>,
    literal_bytes: usize,
    /// Bytes that the parts stand for.
    span: u64,
    refining: Option<Refining>,
    /// Parts of the next message, and literal bytes in them.
    out: Vec<PatchOp>,
    out_bytes: usize,
    hash: Xxh3,
    /// The block after the last one that matched.
    following: Option<u64>,
    credit: u64,
}

impl<S: ScanEnds> Scan<'_, S> {
    fn run(&mut self) -> Result<(), Ended<S::Error>> {
        while self.at < self.size {
            let place = self.at >> self.basis.log;
            let is_place = self.at == self.basis.range(place).0;
            let candidates = [self.following.take(), is_place.then_some(place)];
            let (blocks, mut matched) = (self.basis.blocks(), None);
            for block in candidates.into_iter().flatten().filter(|block| *block < blocks) {
                if matched.is_some() {
                    break;
                }
                while !self.signatures.is_known(block) {
                    self.ends.wait(self.signatures)?;
                }
                if self.matches(block, self.at)? {
                    matched = Some(block);
                }
            }
            match matched {
                Some(block) => self.take(block)?,
                None => self.search()?,
            }
        }
        self.end_literal()?;
        // What is at hand then goes with the end.
        self.hand_on(true)
    }

    /// Looks for blocks from here to where blocks are at their places again.
    fn search(&mut self) -> Result<(), Ended<S::Error>> {
        if !self.signatures.is_complete() {
            if let Some(end) = self.next_in_place()? {
                return self.roll(end);
            }
            // They may have come from anywhere.
            while !self.signatures.is_complete() {
                self.ends.wait(self.signatures)?;
            }
        }
        self.roll(self.size)
    }

    /// Returns where the next block is at its place, if that is near.
    fn next_in_place(&mut self) -> Result<Option<u64>, Ended<S::Error>> {
        let first = (self.at >> self.basis.log) + 1;
        let count = (LOOK_AHEAD_BYTES >> self.basis.log).max(1);
        for block in first..(first + count).min(self.basis.blocks()) {
            if !self.signatures.is_known(block) {
                break;
            }
            let place = self.basis.range(block).0;
            if self.matches(block, place)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Moves a window from here to `end` until it is a block of the basis. What it leaves behind is literal.
    fn roll(&mut self, end: u64) -> Result<(), Ended<S::Error>> {
        let length = self.basis.block_bytes();
        let from = self.at;
        if let Some(last) = self.size.checked_sub(length).filter(|last| self.at <= *last) {
            self.fill(self.at + length)?;
            let mut rolling = Rolling::of(self.window(self.at, length));
            loop {
                if self.signatures.may_have(rolling.weak())
                    && let Some(block) = self.find(rolling.weak())
                {
                    return self.take(block);
                }
                if self.at >= end {
                    return Ok(());
                }
                if self.at == from && self.is_one_block_changed()? {
                    self.at += length;
                    return Ok(());
                }
                let place = self.at >> self.basis.log;
                if self.at > from
                    && self.at == self.basis.range(place).0
                    && self.signatures.is_known(place)
                    && self.matches(place, self.at)?
                {
                    return Ok(());
                }
                if self.at >= last {
                    break;
                }
                if self.at - self.literal_from >= CONTENT_BYTES_MAX as u64 {
                    self.end_literal()?;
                }
                self.fill(self.at + length + 1)?;
                let most = CONTENT_BYTES_MAX as u64;
                let there = (self.begins + self.filled as u64).saturating_sub(length);
                let stop = end.min(last).min(there).min(self.at + most);
                // The place of a block is looked at.
                let stop = stop.min(((self.at >> self.basis.log) + 1) << self.basis.log);
                let count = stop.saturating_sub(self.at);
                let (old, new) =
                    (self.window(self.at, count), self.window(self.at + length, count));
                let steps = rolling.roll(old, new, |weak| self.signatures.may_have(weak)) as u64;
                self.at += steps;
                self.credit = CREDIT_MAX.min(self.credit + steps * CREDIT_PER_BYTE);
            }
        }
        // Fewer bytes than a block are left, or the end of a change is near the end.
        let shorter = self.basis.blocks() - 1;
        let place = self.size.saturating_sub(self.basis.range(shorter).1);
        if self.basis.range(shorter).1 < length
            && (self.at..=end).contains(&place)
            && self.signatures.is_known(shorter)
            && self.matches(shorter, place)?
        {
            self.at = place;
            return self.take(shorter);
        }
        self.fill(end)?;
        self.at = end;
        Ok(())
    }

    /// Returns whether this block is at its place and has changed, and the next one has not: a second look at it is worth more
    /// than a search.
    fn is_one_block_changed(&mut self) -> Result<bool, Ended<S::Error>> {
        let place = self.at >> self.basis.log;
        let is_near = self.at == self.basis.range(place).0
            && place + 1 < self.basis.blocks()
            && self.signatures.is_known(place + 1);
        Ok(is_near && self.matches(place + 1, self.at + self.basis.block_bytes())?)
    }

    fn find(&mut self, weak: u32) -> Option<u64> {
        let length = self.basis.block_bytes();
        if !self.signatures.has(weak) || self.credit < length {
            return None;
        }
        let strong = self.basis.strong(self.window(self.at, length));
        let found = self.signatures.find(weak, strong, self.at);
        if found.is_none() {
            self.credit -= length;
        }
        found
    }

    /// Returns whether a block, whose hashes are known, is at a place from `at` on.
    fn matches(&mut self, block: u64, place: u64) -> Result<bool, Ended<S::Error>> {
        let (_, length) = self.basis.range(block);
        if place + length > self.size || !self.signatures.is_left(block, place) {
            return Ok(false);
        }
        self.fill(place + length)?;
        let strong = self.basis.strong(self.window(place, length));
        Ok(self.signatures.strong.get(block as usize) == Some(&strong))
    }

    /// Takes a block that is here.
    fn take(&mut self, block: u64) -> Result<(), Ended<S::Error>> {
        self.end_literal()?;
        let (from, length) = self.basis.range(block);
        let begins = self.offset(self.at);
        let window = self.buffer.get(begins..begins + length as usize).unwrap_or_default();
        self.hash.update(window);
        match self.ops.last_mut() {
            Some(PatchOp::Same { from: other, length: run }) if *other + *run == from => {
                *run += length
            }
            _ => self.ops.push(PatchOp::Same { from, length }),
        }
        self.at += length;
        self.literal_from = self.at;
        self.following = Some(block + 1);
        self.span += length;
        if self.span >= PATCH_SPAN_BYTES || self.ops.len() >= PATCH_OPS_MAX {
            self.hand_on(false)?;
        }
        Ok(())
    }

    /// Makes what is literal up to here a part.
    fn end_literal(&mut self) -> Result<(), Ended<S::Error>> {
        while self.literal_from < self.at {
            if self.literal_bytes >= CONTENT_BYTES_MAX || self.ops.len() >= PATCH_OPS_MAX {
                self.hand_on(false)?;
            }
            let room = (CONTENT_BYTES_MAX - self.literal_bytes) as u64;
            let length = (self.at - self.literal_from).min(room);
            let bytes = self.window(self.literal_from, length).to_vec();
            self.hash.update(&bytes);
            self.literal_bytes += bytes.len();
            self.span += length;
            self.ops.push(PatchOp::Literal(bytes));
            self.literal_from += length;
        }
        Ok(())
    }

    /// Sends what has been found; `is_last`: all but what goes with the end.
    fn hand_on(&mut self, is_last: bool) -> Result<(), Ended<S::Error>> {
        (self.literal_bytes, self.span) = (0, 0);
        let ops = std::mem::take(&mut self.ops);
        let Some(mut refining) = self.refining.take() else {
            for op in ops {
                self.push(op)?;
            }
            return if is_last { Ok(()) } else { self.send() };
        };
        let asks = refining.take(ops, is_last);
        if !asks.is_empty() {
            for ask in asks {
                self.push(ask)?;
            }
            self.send()?;
        }
        loop {
            let waits = is_last || refining.is_full();
            let ready = refining.next(|| self.ends.answer(waits))?;
            if ready.is_empty() {
                break;
            }
            for op in ready {
                self.push(op)?;
            }
        }
        self.refining = Some(refining);
        if is_last { Ok(()) } else { self.send() }
    }

    /// Adds a part to the next message.
    fn push(&mut self, op: PatchOp) -> Result<(), Ended<S::Error>> {
        if let (Some(PatchOp::Same { from, length }), PatchOp::Same { from: next, length: more }) =
            (self.out.last_mut(), &op)
            && *from + *length == *next
        {
            *length += more;
            return Ok(());
        }
        let bytes = if let PatchOp::Literal(bytes) = &op { bytes.len() } else { 0 };
        if self.out.len() >= PATCH_OPS_MAX || self.out_bytes + bytes > CONTENT_BYTES_MAX {
            self.send()?;
        }
        self.out_bytes += bytes;
        self.out.push(op);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Ended<S::Error>> {
        self.out_bytes = 0;
        let ops = std::mem::take(&mut self.out);
        if !ops.is_empty() {
            self.ends.send(ops)?;
        }
        Ok(())
    }

    fn offset(&self, of: u64) -> usize {
        of.saturating_sub(self.begins) as usize
    }

    fn window(&self, from: u64, length: u64) -> &[u8] {
        let begins = self.offset(from);
        self.buffer.get(begins..begins + length as usize).unwrap_or_default()
    }

    /// Reads the new version up to `end`, which is at most a block and [`READ_BYTES`] ahead.
    fn fill(&mut self, end: u64) -> Result<(), Ended<S::Error>> {
        let end = end.min(self.size);
        if end <= self.begins + self.filled as u64 {
            return Ok(());
        }
        if end - self.begins > self.buffer.len() as u64 {
            self.end_literal()?;
            let kept = self.offset(self.at).min(self.filled);
            self.buffer.copy_within(kept..self.filled, 0);
            self.filled -= kept;
            self.begins = self.at;
        }
        let reads_from = self.begins + self.filled as u64;
        let most = usize::try_from(self.size - reads_from).unwrap_or(usize::MAX);
        let space = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let most = most.min(space.len());
        let space = space.get_mut(..most).unwrap_or_default();
        self.filled += self.ends.read(reads_from, space)?;
        match end <= self.begins + self.filled as u64 {
            true => Ok(()),
            false => Err(Ended::Shorter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refine::ASK_BLOCKS_MAX;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::time::{Duration, Instant};

    /// Both ends in memory; hashes come in segments, one a wait, in some order, and answers late.
    struct Ends<'a> {
        new: &'a [u8],
        coming: Vec<(u64, Vec<BlockSign>)>,
        target: Target,
        answers: VecDeque<Vec<u64>>,
        looks: usize,
    }

    /// What the target end has and makes.
    struct Target {
        basis: Basis,
        there: Vec<u8>,
        made: Vec<u8>,
        literal: u64,
    }

    impl Target {
        /// Applies a part. Returns the answer to a question.
        fn apply(&mut self, op: PatchOp) -> Option<Vec<u64>> {
            assert!(op.basis_end().unwrap() <= self.basis.size, "{op:?}");
            let at = self.made.len();
            match op {
                PatchOp::Literal(bytes) => {
                    self.literal += bytes.len() as u64;
                    self.made.extend(bytes);
                }
                PatchOp::Same { from, length } => {
                    let (from, length) = (from as usize, length as usize);
                    for at in from..from + length {
                        self.made.push(self.there[at]);
                        if self.basis.in_place {
                            // What was overwritten is gone.
                            let last = self.made.len() - 1;
                            self.there[last] = self.made[last];
                        }
                    }
                }
                PatchOp::Ask { from, blocks } => {
                    assert!((1..=ASK_BLOCKS_MAX).contains(&blocks));
                    let bytes = FINE_BYTES as usize;
                    let range = &self.there[from as usize..from as usize + blocks as usize * bytes];
                    return Some(range.chunks(bytes).map(|part| self.basis.strong(part)).collect());
                }
            }
            if self.basis.in_place {
                self.there[at..self.made.len()].copy_from_slice(&self.made[at..]);
            }
            None
        }
    }

    /// Reads of a file in memory.
    fn read_at(file: &[u8], offset: u64, space: &mut [u8]) -> usize {
        let rest = &file[file.len().min(offset as usize)..];
        let count = rest.len().min(space.len());
        space[..count].copy_from_slice(&rest[..count]);
        count
    }

    impl ScanEnds for Ends<'_> {
        type Error = Infallible;

        fn read(&mut self, offset: u64, space: &mut [u8]) -> Result<usize, Infallible> {
            Ok(read_at(self.new, offset, space))
        }

        fn wait(&mut self, signatures: &mut Signatures) -> Result<(), Infallible> {
            let (first, signs) = self.coming.remove(0);
            signatures.add(first, &signs);
            Ok(())
        }

        fn send(&mut self, ops: Vec<PatchOp>) -> Result<(), Infallible> {
            assert!(
                ops.len() <= PATCH_OPS_MAX
                    && weight(&ops) <= (CONTENT_BYTES_MAX + 16 * PATCH_OPS_MAX) as u64
            );
            for op in ops {
                self.answers.extend(self.target.apply(op));
            }
            Ok(())
        }

        fn answer(&mut self, waits: bool) -> Result<Option<Vec<u64>>, Infallible> {
            self.looks += 1;
            assert!(!waits || !self.answers.is_empty(), "waits for an answer to no question");
            let has_come = waits || self.looks.is_multiple_of(7);
            Ok(if has_come { self.answers.pop_front() } else { None })
        }
    }

    /// Returns the literal bytes that make `new` of `old`, having checked that they do.
    fn literal(old: &[u8], new: &[u8], in_place: bool, segment: u64, backwards: bool) -> u64 {
        let basis = Basis::of(old.len() as u64, 7, in_place).unwrap();
        literal_of(basis, (old, new), segment, backwards)
    }

    fn literal_of(basis: Basis, (old, new): (&[u8], &[u8]), segment: u64, backwards: bool) -> u64 {
        let signs: Vec<BlockSign> =
            old.chunks(basis.block_bytes() as usize).map(|block| basis.sign(block)).collect();
        let mut coming: Vec<_> = signs
            .chunks(segment as usize)
            .enumerate()
            .map(|(at, signs)| (at as u64 * segment, signs.to_vec()))
            .collect();
        if backwards {
            coming.reverse();
        }
        let mut there = old.to_vec();
        there.resize(old.len().max(new.len()), 0);
        let target = Target { basis, there, made: Vec::new(), literal: 0 };
        let mut ends = Ends { new, coming, target, answers: VecDeque::new(), looks: 0 };
        let Ok(scanned) = scan(&mut ends, &mut Signatures::new(basis), new.len() as u64);
        let Scanned::Complete { ops, hash } = scanned else { panic!("shorter") };
        for op in ops {
            assert_eq!(ends.target.apply(op), None, "asked with the end");
        }
        assert!(ends.answers.is_empty());
        assert!(ends.target.made == new, "another file was made");
        let mut whole = Xxh3::new();
        whole.update(new);
        assert_eq!(whole.digest128(), hash);
        ends.target.literal
    }

    /// Bytes without repetition.
    fn random(count: usize, mut seed: u64) -> Vec<u8> {
        seed |= 1;
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            bytes.extend(seed.to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    #[derive(Clone, Debug)]
    enum Change {
        Set(usize, usize, u64),
        Insert(usize, usize, u64),
        Delete(usize, usize),
        Swap(usize, usize, usize),
        Append(usize, u64),
        Truncate(usize),
        Zero(usize, usize),
    }

    fn change() -> impl Strategy<Value = Change> {
        let length = prop_oneof![0..40_usize, Just(4096), Just(4095), 0..20_000_usize];
        (0..7, any::<usize>(), any::<usize>(), length, any::<u64>()).prop_map(
            |(kind, a, b, length, seed)| match kind {
                0 => Change::Set(a, length, seed),
                1 => Change::Insert(a, length, seed),
                2 => Change::Delete(a, length),
                3 => Change::Swap(a, b, length),
                4 => Change::Append(length, seed),
                5 => Change::Truncate(length),
                _ => Change::Zero(a, length),
            },
        )
    }

    fn changed(old: &[u8], changes: &[Change]) -> Vec<u8> {
        let mut new = old.to_vec();
        for change in changes {
            let place = |at: usize| at % (new.len() + 1);
            match *change {
                Change::Set(at, length, seed) => {
                    let at = place(at);
                    let length = length.min(new.len() - at);
                    new.splice(at..at + length, random(length, seed));
                }
                Change::Insert(at, length, seed) => {
                    let at = place(at);
                    new.splice(at..at, random(length, seed));
                }
                Change::Delete(at, length) => {
                    let at = place(at);
                    let length = length.min(new.len() - at);
                    new.drain(at..at + length);
                }
                Change::Swap(a, b, length) => {
                    let (a, b) = (place(a).min(place(b)), place(a).max(place(b)));
                    let length = length.min(b - a).min(new.len() - b);
                    let (left, right) = new.split_at_mut(b);
                    left[a..a + length].swap_with_slice(&mut right[..length]);
                }
                Change::Append(length, seed) => new.extend(random(length, seed)),
                Change::Truncate(length) => new.truncate(new.len().saturating_sub(length)),
                Change::Zero(at, length) => {
                    let at = place(at);
                    let length = length.min(new.len() - at);
                    new[at..at + length].fill(0);
                }
            }
        }
        new
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn any_change_arrives(
            size in prop_oneof![
                1..3_usize,
                1..400_000_usize,
                (1..40_usize).prop_map(|blocks| blocks * 4096),
                (1..7_usize).prop_map(|blocks| blocks << 16),
            ],
            log in prop_oneof![Just(12_u8), Just(13), Just(14), Just(15), Just(16), Just(24)],
            period in prop_oneof![Just(0_usize), 1..9000_usize],
            changes in proptest::collection::vec(change(), 0..6),
            in_place: bool, segment in 1..20_u64, backwards: bool,
        ) {
            let unit = random(if period == 0 { size } else { period }, 99);
            let old: Vec<u8> = unit.iter().copied().cycle().take(size).collect();
            let new = changed(&old, &changes);
            let basis = Basis { size: size as u64, log, seed: 7, in_place };
            let sent = literal_of(basis, (&old, &new), segment, backwards);
            prop_assert!(sent <= new.len() as u64);
            if changes.is_empty() {
                prop_assert_eq!(sent, 0);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Whatever an end says of its file, what is sent is of the size of the new one and names ranges that there are.
        #[test]
        fn hashes_may_lie(
            size in 1..400_000_usize,
            basis_size in 1..400_000_u64,
            log in prop_oneof![Just(12_u8), Just(14), Just(16)],
            places in proptest::collection::vec(any::<usize>(), 1..30),
            answers in proptest::collection::vec(0..70_usize, 1..9),
            in_place: bool,
        ) {
            let new = random(size, 3);
            let basis = Basis { size: basis_size, log, seed: 7, in_place };
            // Hashes of pieces of the new version, in any order, as often as they are named.
            let bytes = (1 << log).min(size);
            let sign = |at: &usize| basis.sign(&new[at % (size - bytes + 1)..][..bytes]);
            let known: Vec<BlockSign> = places.iter().map(sign).collect();
            let blocks = basis.blocks() as usize;
            let signs = known.iter().copied().cycle().take(blocks).collect();
            let mut ends = Liar { new: &new, signs: Some(signs), basis, sent: 0, open: 0, answers };
            let Ok(scanned) = scan(&mut ends, &mut Signatures::new(basis), size as u64);
            let Scanned::Complete { ops, hash } = scanned else { panic!("shorter") };
            let Ok(()) = ends.send(ops);
            prop_assert_eq!(ends.sent, size as u64);
            let mut whole = Xxh3::new();
            whole.update(&new);
            prop_assert_eq!(whole.digest128(), hash);
        }
    }

    /// A target end whose hashes are of anything.
    struct Liar<'a> {
        new: &'a [u8],
        signs: Option<Vec<BlockSign>>,
        basis: Basis,
        sent: u64,
        open: usize,
        answers: Vec<usize>,
    }

    impl ScanEnds for Liar<'_> {
        type Error = Infallible;

        fn read(&mut self, offset: u64, space: &mut [u8]) -> Result<usize, Infallible> {
            Ok(read_at(self.new, offset, space))
        }

        fn wait(&mut self, signatures: &mut Signatures) -> Result<(), Infallible> {
            signatures.add(0, &self.signs.take().unwrap());
            Ok(())
        }

        fn send(&mut self, ops: Vec<PatchOp>) -> Result<(), Infallible> {
            for op in ops {
                assert!(op.basis_end().unwrap() <= self.basis.size, "{op:?}");
                self.sent += op.bytes();
                self.open += usize::from(matches!(op, PatchOp::Ask { .. }));
            }
            Ok(())
        }

        fn answer(&mut self, _: bool) -> Result<Option<Vec<u64>>, Infallible> {
            assert!(self.open > 0);
            self.open -= 1;
            self.answers.rotate_left(1);
            let of = |at: usize| self.new.get(at * 4096..at * 4096 + 4096);
            let hash = |at| of(at).map_or(at as u64, |block| self.basis.strong(block));
            Ok(Some((0..self.answers[0]).map(hash).collect()))
        }
    }

    /// What is sent, for the usual changes of a file without repetitions.
    #[test]
    fn only_differences_are_literal() {
        let old = random(3_000_000, 5);
        let block = 4096;
        for in_place in [false, true] {
            assert_eq!(literal(&old, &old, in_place, 100, false), 0);
            let mut new = old.clone();
            (0..20).for_each(|at| new[at * 140_000] ^= 1);
            assert!(literal(&old, &new, in_place, 100, false) <= 20 * block);
            // Deleted: what follows moves towards the front, which can be done in place, too.
            let new = changed(&old, &[Change::Delete(70_001, 5_555)]);
            assert!(literal(&old, &new, in_place, 100, false) <= 2 * block);
            let new = changed(&old, &[Change::Append(9_000, 3)]);
            assert!(literal(&old, &new, in_place, 100, false) <= 9_000 + block);
            let new = changed(&old, &[Change::Truncate(1_000_001)]);
            assert!(literal(&old, &new, in_place, 100, false) <= block);
        }
        let new = [b"x", &*old].concat();
        assert!(literal(&old, &new, false, 100, false) <= block + 1);
        assert!(literal(&old, &new, true, 100, false) > 2_900_000);
        let new = [&old[2_000_000..], &old[..2_000_000]].concat();
        assert!(literal(&old, &new, false, 100, false) <= 3 * block);
        let new = changed(&old, &[Change::Swap(300_001, 2_100_007, 200_000)]);
        assert!(literal(&old, &new, false, 100, false) <= 6 * block);
    }

    /// Of large blocks, too, little more than the changes is literal.
    #[test]
    fn differences_are_looked_at_again() {
        let (old, fine) = (random(6_000_000, 5), FINE_BYTES);
        let sent = |new: &[u8], in_place| {
            let basis = Basis { size: old.len() as u64, log: 16, seed: 7, in_place };
            literal_of(basis, (&old, new), 30, false)
        };
        for in_place in [false, true] {
            let mut new = old.clone();
            (0..20).for_each(|at| new[at * 290_000] ^= 1);
            assert!(sent(&new, in_place) <= 20 * fine);
            // Every block has changed.
            let mut new = old.clone();
            new.iter_mut().step_by(50_000).for_each(|byte| *byte ^= 1);
            assert!(sent(&new, in_place) <= 120 * fine);
            let new = changed(&old, &[Change::Delete(70_001, 5_555)]);
            assert!(sent(&new, in_place) <= 2 * fine);
        }
        let new = changed(&old, &[Change::Insert(3_000_000, 7, 1)]);
        assert!(sent(&new, false) <= 2 * fine);
        let new = changed(&old, &[Change::Insert(3_000_000, 50_000, 1)]);
        assert!(sent(&new, false) <= 50_000 + 2 * fine);
        assert_eq!(sent(&[b"x", &*old].concat(), false), 1);
        // Nothing in common.
        let new = random(6_000_000, 77);
        assert_eq!(sent(&new, false), 6_000_000);
    }

    /// Content that repeats itself, or that was made to look like a candidate everywhere, costs time in proportion.
    #[test]
    fn repetition_costs_no_more_than_its_length() {
        let size = 6 << 20;
        let begun = Instant::now();
        let zeroes = vec![0; size];
        let mut shifted = vec![0; size + 1];
        shifted[0] = 1;
        assert!(literal(&zeroes, &shifted, false, 64, false) <= 2 * 4096);
        for period in [2, 3, 1000, 4096, 5000] {
            let unit = random(period, 3);
            let old: Vec<u8> = unit.iter().copied().cycle().take(size).collect();
            let mut new = old.clone();
            new.iter_mut().step_by(4000).for_each(|byte| *byte ^= 0x55);
            literal(&old, &new, false, 64, false);
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn sizes_of_blocks() {
        let of = |size| Basis::of(size, 0, false);
        assert_eq!(of(1).unwrap().log, 12);
        assert_eq!((of(16 << 20).unwrap().log, of((16 << 20) + 1).unwrap().log), (12, 14));
        assert_eq!((of(1_000_000_000).unwrap().log, of(1 << 30).unwrap().log), (16, 16));
        assert_eq!((of(1 << 32).unwrap().log, of(1 << 37).unwrap().log), (17, 17));
        assert_eq!(of(1 << 40).unwrap().log, 20);
        assert_eq!(of(1 << 44).unwrap().blocks(), BLOCKS_MAX);
        assert_eq!(of((1 << 44) + 1), None);
        assert_eq!(of(0), None);
    }
}
