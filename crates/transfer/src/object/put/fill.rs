//! Reads a stretch of a file into a body and hashes it on the way, without ever making the core
//! wait for a device: what the page cache does not hold is read by a thread for that.

use super::super::budget::Buffer;
use crate::meter::{Doing, Phase};
use crate::s3::{Algorithm, Checksum, Hasher};
use bytes::Bytes;
use hakobu_sys::source::{Cached, read_cached};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, file, volume};
use std::cell::Cell;
use std::io;

/// Bytes that are read and then hashed while they are in the processor's cache.
const STROKE_BYTES: usize = 256 << 10;
/// After so many bytes the core's other connections get their turn.
const TURN_BYTES: usize = 1 << 20;

/// Hashing less than this takes too short to be told of.
const COMPUTED_BYTES_MIN: usize = 64 << 10;

/// What is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub len: usize,
    /// Whether to notice bytes behind it (of small files only, where that is free).
    pub and_more: bool,
    /// What to compute.
    pub algorithm: Option<Algorithm>,
}

/// What was read: shorter than wanted where the file ended, longer where it went on.
pub(super) struct Filled {
    pub body: Bytes,
    pub checksum: Option<Checksum>,
}

/// A body on its way.
struct Progress {
    buffer: Buffer,
    filled: usize,
    hasher: Option<Hasher>,
}

/// How files of a device are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// What is cached at once, the rest elsewhere.
    Cached,
    /// At once: it is memory.
    Memory,
    /// Elsewhere: nobody knows how long it takes.
    Elsewhere,
}

thread_local! {
    /// What was learnt of the device that this core read from last.
    static LEARNT: Cell<(u64, Manner)> = const { Cell::new((u64::MAX, Manner::Cached)) };
}

/// Small files get a byte more room than they need: a read that leaves it empty met the end.
const MORE_BYTES_MAX: usize = 32 << 10;

/// Reads and hashes; `dev` is the file's device. `doing` is told which of the two it is, as far as
/// this core does it.
pub(super) async fn fill(
    doing: &Doing,
    file: &OwnedFd,
    dev: u64,
    wanted: Wanted,
) -> io::Result<Filled> {
    let _phase = doing.during(Phase::Read);
    let more = usize::from(wanted.and_more && wanted.len < MORE_BYTES_MAX);
    let mut progress = Progress {
        buffer: Buffer::new(wanted.len + more),
        filled: 0,
        hasher: wanted.algorithm.map(Hasher::new),
    };
    let mut turn = TURN_BYTES;
    loop {
        match progress.stroke(doing, file.as_fd(), dev, wanted.offset)? {
            Cached::Got(0) => break,
            Cached::Got(_) if progress.filled >= wanted.len => break,
            Cached::Got(_) => {}
            Cached::WouldWait | Cached::Unknown => {
                progress = progress.elsewhere(file, wanted.offset).await?;
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

impl Progress {
    /// One read, hashed.
    fn stroke(
        &mut self,
        doing: &Doing,
        file: BorrowedFd<'_>,
        dev: u64,
        offset: u64,
    ) -> io::Result<Cached> {
        let (learnt, manner) = LEARNT.get();
        let manner = if learnt == dev { manner } else { Manner::Cached };
        let end = self.buffer.len().min(self.filled + STROKE_BYTES);
        let space = self.buffer.get_mut(self.filled..end).unwrap_or_default();
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
                return self.stroke(doing, file, dev, offset);
            }
        }
        if let Cached::Got(got) = found {
            let long = got >= COMPUTED_BYTES_MIN && self.hasher.is_some();
            let _phase = long.then(|| doing.during(Phase::Compute));
            self.take(got);
        }
        Ok(found)
    }

    /// The rest, by a thread that may wait.
    async fn elsewhere(mut self, file: &OwnedFd, offset: u64) -> io::Result<Progress> {
        let file = file.try_clone()?;
        let work = move || {
            loop {
                let end = self.buffer.len().min(self.filled + STROKE_BYTES);
                let space = self.buffer.get_mut(self.filled..end).unwrap_or_default();
                let at = offset + self.filled as u64;
                match file::read_at(file.as_fd(), space, at) {
                    Ok(0) => return Ok(self),
                    Ok(got) => self.take(got),
                    Err(error) => return Err(error),
                }
            }
        };
        tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
    }

    fn take(&mut self, got: usize) {
        let new = self.buffer.get(self.filled..self.filled + got).unwrap_or_default();
        if let Some(hasher) = &mut self.hasher {
            hasher.update(new);
        }
        self.filled += got;
    }

    fn done(mut self) -> Filled {
        self.buffer.truncate(self.filled);
        let checksum = self.hasher.map(Hasher::finish);
        Filled { body: self.buffer.freeze(), checksum }
    }
}
