//! What was written is read again and looked at (`verify`).

use super::{Drive, Failure};
use crate::io::check;
use crate::io::engine::Engine;
use crate::io::pattern::Block;
use hakobu_sys::cache;

impl<E: Engine> Drive<'_, E> {
    /// Reads all blocks again that the last pass wrote: its first `blocks` ones are those that it
    /// began. From the device, where the page cache can be made to forget. None of this counts as
    /// work or time of the job.
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
            // That it is read from memory then is no error.
            let _ = cache::forget(hakobu_sys::AsFd::as_fd(file));
        }
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        let written = self.picker.replay().take(blocks).filter(|block| block.write);
        for block in written {
            if self.meter.stops() {
                break;
            }
            self.send(Block { write: false, ..block }, None)?;
        }
        self.drain()
    }

    /// Looks at a block that was read.
    pub(super) fn check(&mut self, slot: usize, block: &Block) {
        let Some(kind) = self.job.verify else { return };
        // Who only reads does not know how often it was written.
        let generations = match self.verifying {
            true => self.generation..=self.generation,
            false => 0..=u64::MAX,
        };
        let buffer = self.engine.buffer(slot);
        let buffer = buffer.get(..block.bytes as usize).unwrap_or_default();
        self.verified += 1;
        if let Err(wrong) = check::verify(buffer, kind, block, generations) {
            self.wrong += 1;
            let path = self.paths.get(block.file as usize);
            let path = path.map_or_else(String::new, |path| path.display().to_string());
            self.first_wrong.get_or_insert_with(|| format!("{path}: {wrong}"));
        }
    }
}
