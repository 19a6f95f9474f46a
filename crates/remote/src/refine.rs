//! The second look at content that no block of the basis has. Blocks are large, so that their hashes are few; of the ranges of
//! the basis that such content probably comes from, hashes of small blocks ([`FINE_BYTES`]) are asked for. These ranges are the
//! ones behind the block before it and in front of the block after it: the content of a changed block at its old place, or
//! around bytes that were inserted or taken out.
//!
//! Content that was asked about is held back with what follows it until the answer comes, so that a scan never stands still for
//! one answer.

use crate::delta::{Basis, PatchOp};
use crate::message::CONTENT_BYTES_MAX;
use std::collections::VecDeque;

/// Bytes of a small block, as a power of two.
const FINE_LOG: u32 = 12;
pub const FINE_BYTES: u64 = 1 << FINE_LOG;
/// Most small blocks that are asked about at once.
pub const ASK_BLOCKS_MAX: u64 = CONTENT_BYTES_MAX as u64 >> FINE_LOG;
/// Smallest blocks that are looked at again, as a power of two.
const LOG_MIN: u8 = FINE_LOG as u8 + 2;
/// Bytes and parts that are held back at once; scanning stops at more.
const HELD_BYTES_MAX: usize = 4 << 20;
const HELD_PARTS_MAX: usize = 1 << 14;
/// Content that may be asked about in vain in a row, in parts, what an answer that helped gives back, and how many parts go
/// without a question before another one is tried.
const CREDIT_MAX: u32 = 256;
const CREDIT_BACK: u32 = 8;
const UNASKED: u32 = 32;

/// Returns whether content that has no block in a basis is looked at again.
pub fn refines(basis: &Basis) -> bool {
    basis.log >= LOG_MIN
}

/// The parts that are held back.
pub struct Refining {
    basis: Basis,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Bytes of the new version that were taken, and where the basis goes on behind the last part.
    at: u64,
    behind: u64,
    credit: u32,
    unasked: u32,
}

enum Held {
    Ready(PatchOp),
    Asked { content: Vec<u8>, ranges: Vec<FineRange>, answers: Vec<Vec<u64>> },
}

/// Small blocks of the basis, and where they may be in the content.
struct FineRange {
    at: usize,
    from: u64,
    blocks: u64,
}

impl Refining {
    pub fn new(basis: Basis) -> Refining {
        let (held, held_bytes, at, behind, unasked) = Default::default();
        Refining { basis, held, held_bytes, at, behind, credit: CREDIT_MAX, unasked }
    }

    /// Takes the next parts; `is_last`: the file ends behind them. Returns what is to be asked.
    pub fn take(&mut self, ops: Vec<PatchOp>, is_last: bool) -> Vec<PatchOp> {
        let mut asks = Vec::new();
        let mut ops = ops.into_iter().peekable();
        while let Some(op) = ops.next() {
            let at = self.at;
            self.at += op.bytes();
            let content = match op {
                PatchOp::Same { from, length } => {
                    self.behind = from.saturating_add(length);
                    self.held.push_back(Held::Ready(op));
                    continue;
                }
                PatchOp::Ask { .. } => continue,
                PatchOp::Literal(content) => content,
            };
            let ahead = match ops.peek() {
                Some(PatchOp::Same { from, .. }) => Some(*from),
                Some(_) => None,
                None => is_last.then_some(self.basis.size),
            };
            let ranges = self.ranges(at, content.len(), ahead);
            self.behind = self.behind.saturating_add(content.len() as u64);
            self.held_bytes += content.len();
            if ranges.is_empty() || !self.may_ask() {
                self.held.push_back(Held::Ready(PatchOp::Literal(content)));
                continue;
            }
            let ask = |range: &FineRange| PatchOp::Ask { from: range.from, blocks: range.blocks };
            asks.extend(ranges.iter().map(ask));
            self.held.push_back(Held::Asked { content, ranges, answers: Vec::new() });
        }
        asks
    }

    /// Returns where content of so many bytes, which begins at `place`, may come from.
    fn ranges(&self, place: u64, length: usize, ahead: Option<u64>) -> Vec<FineRange> {
        let (bytes, size) = (length as u64, self.basis.size);
        if bytes <= FINE_BYTES || bytes > CONTENT_BYTES_MAX as u64 {
            return Vec::new();
        }
        let mut ranges = Vec::with_capacity(2);
        let blocks = size.saturating_sub(self.behind).min(bytes) >> FINE_LOG;
        if blocks > 0 {
            ranges.push(FineRange { at: 0, from: self.behind, blocks });
        }
        let begins = ahead.and_then(|ahead| ahead.checked_sub(bytes));
        // What is overwritten is gone when this content is written.
        let is_left = |begins: &u64| !self.basis.in_place || *begins >= place;
        let is_other = |begins: &u64| *begins != self.behind;
        if let Some(begins) = begins.filter(is_left).filter(is_other) {
            // Whole blocks up to the end of the content.
            let at = bytes % FINE_BYTES;
            ranges.push(FineRange {
                at: at as usize,
                from: begins + at,
                blocks: bytes >> FINE_LOG,
            });
        }
        ranges
    }

    fn may_ask(&mut self) -> bool {
        if self.credit > 0 {
            self.credit -= 1;
            return true;
        }
        self.unasked = (self.unasked + 1) % UNASKED;
        self.unasked == 0
    }

    /// Returns whether nothing more should be taken before some of it was answered.
    pub fn is_full(&self) -> bool {
        self.held_bytes > HELD_BYTES_MAX || self.held.len() > HELD_PARTS_MAX
    }

    /// Returns parts that wait for no answer, in their order. `answer`: the next answer, if it has come.
    ///
    /// # Errors
    /// Those of `answer`.
    pub fn next<E>(
        &mut self,
        mut answer: impl FnMut() -> Result<Option<Vec<u64>>, E>,
    ) -> Result<Vec<PatchOp>, E> {
        match self.held.front_mut() {
            None => return Ok(Vec::new()),
            Some(Held::Ready(_)) => {}
            Some(Held::Asked { ranges, answers, .. }) => {
                while answers.len() < ranges.len() {
                    match answer()? {
                        Some(hashes) => answers.push(hashes),
                        None => return Ok(Vec::new()),
                    }
                }
            }
        }
        Ok(match self.held.pop_front() {
            None => Vec::new(),
            Some(Held::Ready(op)) => {
                if let PatchOp::Literal(content) = &op {
                    self.held_bytes -= content.len();
                }
                vec![op]
            }
            Some(Held::Asked { content, ranges, answers }) => {
                self.held_bytes -= content.len();
                let found = self.found(&content, &ranges, &answers);
                if !found.is_empty() {
                    self.credit = CREDIT_MAX.min(self.credit + CREDIT_BACK);
                }
                split(content, &found)
            }
        })
    }

    /// Returns where small blocks are in the content, and in the basis, in their order.
    fn found(
        &self,
        content: &[u8],
        ranges: &[FineRange],
        answers: &[Vec<u64>],
    ) -> Vec<(usize, u64)> {
        let bytes = FINE_BYTES as usize;
        let mut found: Vec<(usize, u64)> = Vec::new();
        for (range, hashes) in ranges.iter().zip(answers) {
            let taken = found.clone();
            let is_free = |at: usize| {
                let next = taken.partition_point(|(other, _)| *other < at);
                let before = next.checked_sub(1).and_then(|last| taken.get(last));
                before.is_none_or(|(other, _)| other + bytes <= at)
                    && taken.get(next).is_none_or(|(other, _)| at + bytes <= *other)
            };
            for (number, hash) in hashes.iter().take(range.blocks as usize).enumerate() {
                let at = range.at + number * bytes;
                let block = content.get(at..at + bytes);
                if block.is_some_and(|block| is_free(at) && self.basis.strong(block) == *hash) {
                    found.push((at, range.from + (number * bytes) as u64));
                }
            }
            found.sort_unstable();
        }
        found
    }
}

/// Returns content as parts: the blocks that were found are in the basis.
fn split(content: Vec<u8>, found: &[(usize, u64)]) -> Vec<PatchOp> {
    if found.is_empty() {
        return vec![PatchOp::Literal(content)];
    }
    let mut parts: Vec<PatchOp> = Vec::new();
    let mut literal_from = 0;
    let literal = |parts: &mut Vec<PatchOp>, from: usize, to: usize| {
        if let Some(bytes) = content.get(from..to).filter(|bytes| !bytes.is_empty()) {
            parts.push(PatchOp::Literal(bytes.to_vec()));
        }
    };
    for (at, from) in found {
        literal(&mut parts, literal_from, *at);
        match parts.last_mut() {
            Some(PatchOp::Same { from: other, length }) if *other + *length == *from => {
                *length += FINE_BYTES;
            }
            _ => parts.push(PatchOp::Same { from: *from, length: FINE_BYTES }),
        }
        literal_from = at + FINE_BYTES as usize;
    }
    literal(&mut parts, literal_from, content.len());
    parts
}
