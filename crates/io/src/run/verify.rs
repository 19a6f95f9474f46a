//! Reads and checks written blocks (`verify`).

use super::drive::CloneLoop;
use crate::check;
use crate::engine::{Engine, Failure};
use crate::job::VerifyKind;
use crate::pattern::Block;
use hakobu_sys::cache;
use hakobu_sys::paths::Links;
use std::path::Path;

impl<E: Engine> CloneLoop<'_, E> {
    /// Reads all blocks again that the last pass wrote: its first `blocks` ones are those that it
    /// began. From the device, where the page cache can be made to forget. None of this counts as
    /// work; but the job ends when its time is over, as in fio(1), and the rest is not read then.
    pub(super) fn verify(&mut self, blocks: u64) -> Result<(), Failure> {
        self.drain()?;
        let paused = self.meter.pause();
        self.verifying = true;
        let done = self.read_again(blocks);
        self.verifying = false;
        self.meter.resume(paused);
        done
    }

    fn read_again(&mut self, blocks: u64) -> Result<(), Failure> {
        self.sync_all()?;
        for file in self.files {
            // Reading it from memory is not an error.
            let _ = cache::forget(hakobu_sys::AsFd::as_fd(file));
        }
        if self.job.checks.backlog.is_some() {
            // The others were read again when they were many enough.
            let left = std::mem::take(&mut self.backlog);
            return self.read_blocks(left.into_iter());
        }
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        let written = self.picker.replay().take(blocks).filter(|block| block.write);
        self.read_blocks(written)
    }

    fn read_blocks(&mut self, blocks: impl Iterator<Item = Block>) -> Result<(), Failure> {
        for block in blocks {
            if self.meter.is_late() || self.gives_up {
                break;
            }
            if self.unsent.iter().any(|of| self.is_gone(of, &block)) {
                continue;
            }
            self.send(Block { write: false, ..block }, None)?;
        }
        self.drain()
    }

    /// Returns whether a block does not exist, because it or one before it was not written.
    fn is_gone(&self, unsent: &Block, block: &Block) -> bool {
        let behind = self.job.fills && unsent.offset <= block.offset;
        unsent.file == block.file && (behind || unsent.offset == block.offset)
    }

    /// Remembers a written block; when there are `most` of them, some are read again. From where the kernel has
    /// them: nothing is synced for that.
    pub(super) fn remember(&mut self, block: Block, most: u32) -> Result<(), Failure> {
        self.backlog.push_back(block);
        if self.backlog.len() < most as usize {
            return Ok(());
        }
        self.drain()?;
        let count = self.job.checks.backlog_batch.map_or(usize::MAX, |batch| batch as usize);
        let blocks: Vec<Block> = self.backlog.drain(..count.min(self.backlog.len())).collect();
        let paused = self.meter.pause();
        self.verifying = true;
        let done = self.read_blocks(blocks.into_iter());
        self.verifying = false;
        self.meter.resume(paused);
        done
    }

    /// Looks at a block that was read.
    pub(super) fn check(&mut self, slot: usize, block: &Block) {
        let Some(kind) = self.job.verify else { return };
        let (checks, pattern) = (&self.job.checks, &self.job.written.pattern);
        // A job that only reads does not know how often a block was written.
        let generations = match self.verifying && !checks.any_pass {
            true => self.generation..=self.generation,
            false => 0..=u64::MAX,
        };
        let buffer = self.engine.buffer(slot);
        let buffer = buffer.get(..block.bytes as usize).unwrap_or_default();
        self.verified += 1;
        let has_headers = kind != VerifyKind::Pattern;
        let mut found = Ok(());
        for (range, part) in check::parts(block, checks.interval_bytes).filter(|_| has_headers) {
            let buffer = buffer.get(range).unwrap_or_default();
            found = found.and_then(|()| check::verify(buffer, kind, &part, generations.clone()));
        }
        // Without a checksum the content has to be compared.
        if matches!(kind, VerifyKind::Pattern | VerifyKind::Meta) && !pattern.is_empty() {
            let skips = if has_headers { check::HEADER_BYTES } else { 0 };
            let skips = (checks.interval_bytes, skips);
            found = found.and_then(|()| check::holds(buffer, pattern, block, skips));
        }
        let Err(wrong) = found else { return };
        self.wrong += 1;
        self.gives_up |= checks.fatal;
        // Of written blocks that are read again the rest is left out; a job that reads is over.
        self.meter.over |= checks.fatal && !self.verifying;
        let path = self.paths.get(block.file as usize);
        let path = path.map_or_else(String::new, |path| path.display().to_string());
        let kept = match checks.dump {
            true => dump(&path, block, buffer),
            false => String::new(),
        };
        self.first_wrong.get_or_insert_with(|| format!("{path}: {wrong}{kept}"));
    }
}

/// Keeps what was read in place of a block in a file beside it (`verify_dump`); the end of the sentence on it.
fn dump(path: &str, block: &Block, buffer: &[u8]) -> String {
    let name = format!("{path}.{}.received", block.offset);
    match Links::Trusted.write_private(Path::new(&name), buffer) {
        Ok(()) => format!(" (the content that was read is in {name})"),
        Err(error) => format!(" (cannot write {name}: {error})"),
    }
}
