//! Reads a range of a file into a body and hashes it, without blocking the core on a device: a helper thread reads
//! data that is not in the page cache.

use super::super::budget::Buffer;
use super::super::helper::blocking;
use super::media;
use bytes::Bytes;
use hakobu_core::meter::{Doing, Phase};
use hakobu_core::unit::Meta;
use hakobu_s3::{Algorithm, Checksum, Hasher};
use hakobu_sys::source::{Cached, read_cached};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, file, meta, volume};
use std::cell::Cell;
use std::io;
use std::sync::Arc;

/// Bytes that are read and then hashed while they are in the CPU cache.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes after which the core yields to its other connections.
const TURN_BYTES: usize = 1 << 20;

/// Minimum bytes whose hashing is recorded as a phase.
const COMPUTED_BYTES_MIN: usize = 64 << 10;

/// The bytes to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: usize,
    /// Whether to detect bytes after the range (small files only, where that is free); a helper thread
    /// then looks at the file again.
    pub is_whole: bool,
    /// The algorithm of the checksum to compute.
    pub algorithm: Option<Algorithm>,
}

/// The bytes read: fewer than wanted if the file ended, more if it continued.
pub(super) struct Filled {
    pub body: Bytes,
    pub checksum: Option<Checksum>,
    /// Metadata of a whole file after reading it, if a helper thread read it.
    pub after: Option<Meta>,
}

/// A body being read.
struct Progress {
    buffer: Buffer,
    filled: usize,
    hasher: Option<Hasher>,
    after: Option<Meta>,
}

/// A file being uploaded.
#[derive(Clone)]
pub(super) struct Source {
    file: Arc<OwnedFd>,
    dev: u64,
}

impl Source {
    /// A file of this device.
    pub fn new(file: OwnedFd, dev: u64) -> Source {
        Source { file: Arc::new(file), dev }
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Source {
    /// Has a helper thread close the file where that may wait: a network file system asks its server.
    fn drop(&mut self) {
        if Arc::strong_count(&self.file) == 1
            && waits(self.dev)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let last = Arc::clone(&self.file);
            runtime.spawn_blocking(move || drop(last));
        }
    }
}

/// Method of reading files of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Reads cached bytes directly, the rest on a helper thread.
    Cached,
    /// Directly: it is memory.
    Memory,
    /// On a helper thread: the duration is unknown.
    Elsewhere,
}

thread_local! {
    /// The device that this core last read from, and how.
    static LEARNT: Cell<(u64, Manner)> = const { Cell::new((u64::MAX, Manner::Cached)) };
}

/// Returns whether a call for a file of this device may be slow, as far as this core knows.
pub(super) fn waits(dev: u64) -> bool {
    LEARNT.get() == (dev, Manner::Elsewhere)
}

/// Maximum size, in bytes, of a file that gets one extra byte of room: a read that leaves it empty has reached the
/// end.
const MORE_BYTES_MAX: usize = 32 << 10;

/// Reads and hashes. `doing` records which of the two this core does.
pub(super) async fn fill(doing: &Doing, source: &Source, wanted: Wanted) -> io::Result<Filled> {
    let _phase = doing.during(Phase::Read);
    let more = usize::from(wanted.is_whole && wanted.len < MORE_BYTES_MAX);
    let mut progress = Progress {
        buffer: Buffer::new(wanted.len + more),
        filled: 0,
        hasher: wanted.algorithm.map(Hasher::new),
        after: None,
    };
    let mut turn = TURN_BYTES;
    loop {
        match progress.read_block(doing, source, wanted.offset)? {
            Cached::Got(0) => break,
            Cached::Got(_) if progress.filled >= wanted.len => break,
            Cached::Got(_) => {}
            Cached::WouldWait | Cached::Unknown => {
                progress = progress.elsewhere(source, wanted).await?;
                break;
            }
        }
        if progress.filled >= turn {
            turn += TURN_BYTES;
            tokio::task::yield_now().await;
        }
    }
    Ok(progress.done())
}

/// Reads the beginning of a file, which decides on the media type.
pub(super) async fn start(doing: &Doing, source: &Source) -> io::Result<Bytes> {
    let len = media::LOOK_BYTES;
    let wanted = Wanted { offset: 0, len, is_whole: false, algorithm: None };
    Ok(fill(doing, source, wanted).await?.body)
}

impl Progress {
    /// Performs one read and hashes it.
    fn read_block(&mut self, doing: &Doing, source: &Source, offset: u64) -> io::Result<Cached> {
        let (file, dev) = (source.as_fd(), source.dev);
        let (learnt, manner) = LEARNT.get();
        let manner = if learnt == dev { manner } else { Manner::Cached };
        let end = self.buffer.len().min(self.filled + BLOCK_BYTES);
        let space = &mut self.buffer[self.filled..end];
        let at = offset + self.filled as u64;
        let found = match manner {
            Manner::Cached => read_cached(file, space, at)?,
            Manner::Memory => Cached::Got(file::read_at(file, space, at)?),
            Manner::Elsewhere => Cached::Unknown,
        };
        if manner == Manner::Cached && found == Cached::Unknown {
            let memory = volume::is_memory(file);
            LEARNT.set((dev, if memory { Manner::Memory } else { Manner::Elsewhere }));
            if memory {
                return self.read_block(doing, source, offset);
            }
        }
        if let Cached::Got(got) = found {
            let long = got >= COMPUTED_BYTES_MIN && self.hasher.is_some();
            let _phase = long.then(|| doing.during(Phase::Compute));
            self.take(got);
        }
        Ok(found)
    }

    /// Reads the rest on a helper thread.
    async fn elsewhere(mut self, source: &Source, wanted: Wanted) -> io::Result<Progress> {
        let source = source.clone();
        let work = move || {
            loop {
                let end = self.buffer.len().min(self.filled + BLOCK_BYTES);
                let space = &mut self.buffer[self.filled..end];
                let at = wanted.offset + self.filled as u64;
                match file::read_at(source.as_fd(), space, at)? {
                    0 => break,
                    got => self.take(got),
                }
            }
            if wanted.is_whole {
                self.after = Some(meta::of_fd(&source)?);
            }
            Ok(self)
        };
        blocking(work).await
    }

    fn take(&mut self, got: usize) {
        let new = &self.buffer[self.filled..self.filled + got];
        if let Some(hasher) = &mut self.hasher {
            hasher.update(new);
        }
        self.filled += got;
    }

    fn done(mut self) -> Filled {
        self.buffer.truncate(self.filled);
        let checksum = self.hasher.map(Hasher::finish);
        Filled { body: self.buffer.freeze(), checksum, after: self.after }
    }
}
