//! Comparison of the contents of two files, piece by piece.

use super::mover::Mover;
use crate::local::pace::Station;
use crate::failure::{Failure, Stop, reading};
use hakobu_core::buffer::is_same;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_sys::cache::Ahead;
use hakobu_sys::{AsFd, BorrowedFd, file, space};
use std::ffi::CStr;
use std::io;

/// One of two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first one.
    Source,
    /// The second one.
    Target,
}

impl From<(Side, io::Error)> for Stop {
    fn from((side, error): (Side, io::Error)) -> Stop {
        match side {
            Side::Source => reading(error),
            Side::Target => Failure { operation: Operation::Compare, error }.into(),
        }
    }
}

/// Returns the start of the next data of either file, at or after `offset`; `end` if there is none. A file system
/// that does not report holes has data everywhere.
fn skip_holes(source: BorrowedFd<'_>, target: BorrowedFd<'_>, offset: u64, end: u64) -> u64 {
    let next = |fd| match space::next_data(fd, offset) {
        Ok(Some((start, _))) => start.min(end),
        Ok(None) => end,
        Err(_) => offset,
    };
    match next(source) {
        start if start == offset => offset,
        start => start.min(next(target)),
    }
}

/// Returns the offset of the first byte in `from..to` that differs, `None` if there is none. A file that ends early
/// differs there. `sparse`: both files may have holes, which are not read.
///
/// `begin` is called with the length of each piece before it is read and may end the comparison; `compared` with the
/// length of each equal piece, and whether it is the last one.
///
/// # Errors
/// The file that could not be read, and the reason; those of `begin`.
pub(crate) fn first_difference<E: From<(Side, io::Error)>>(
    (source, target): (BorrowedFd<'_>, BorrowedFd<'_>),
    (from, to): (u64, u64),
    (left, right): (&mut [u8], &mut [u8]),
    sparse: bool,
    mut begin: impl FnMut(u64) -> Result<(), E>,
    mut compared: impl FnMut(u64, bool),
) -> Result<Option<u64>, E> {
    let mut offset = from;
    let mut ahead = [source, target].map(|fd| Ahead::new(fd, (from, to)));
    while offset < to {
        if sparse {
            offset = skip_holes(source, target, offset, to);
        }
        for (ahead, fd) in ahead.iter_mut().zip([source, target]) {
            ahead.reach(fd, offset);
        }
        // No more than what there was: a read that finds the end is one call more for each file.
        let len = usize::try_from(to - offset).unwrap_or(usize::MAX).min(left.len());
        let (Some(a), Some(b)) = (left.get_mut(..len), right.get_mut(..len)) else { break };
        begin(len as u64)?;
        let a_len = file::read_full_at(source, a, offset).map_err(|error| (Side::Source, error))?;
        let b_len = file::read_full_at(target, b, offset).map_err(|error| (Side::Target, error))?;
        if !is_same(a, b) || a_len != len || b_len != len {
            let same = a.iter().zip(b.iter()).take_while(|(a, b)| a == b).count();
            let same = same.min(a_len).min(b_len);
            // Both may have shrunk equally meanwhile: then there is nothing more to compare.
            return Ok((same < a_len.max(b_len)).then_some(offset + same as u64));
        }
        offset += len as u64;
        compared(len as u64, offset >= to);
    }
    Ok(None)
}

impl Mover<'_> {
    /// Compares the contents of two files of equal size (`--checksum`). A target that cannot be read counts as
    /// different and is replaced, as in rsync. `follow`: the source may be a symlink.
    pub(in crate::local) fn is_same(
        &mut self,
        at: &Station<'_>,
        source: (BorrowedFd<'_>, &CStr, bool),
        target: (BorrowedFd<'_>, &CStr),
        size: u64,
    ) -> Result<bool, Stop> {
        at.step(Phase::Look, 2);
        let a = file::open_read(source.0, source.1, source.2).map_err(reading)?;
        let Ok(b) = file::open_read(target.0, target.1, false) else {
            return Ok(false);
        };
        match self.begins_like(at, (a.as_fd(), b.as_fd()), size) {
            Err(Stop::Failed(Failure { operation: Operation::Compare, .. })) => Ok(false),
            other => other,
        }
    }

    /// Returns whether the first `size` bytes of two files are equal.
    ///
    /// # Errors
    /// A file that cannot be read; the run was asked to stop.
    pub(in crate::local) fn begins_like(
        &mut self,
        at: &Station<'_>,
        fds: (BorrowedFd<'_>, BorrowedFd<'_>),
        size: u64,
    ) -> Result<bool, Stop> {
        let half = self.buffer.len() / 2;
        let (left, right) = self.buffer.split_at_mut(half);
        let begin = |_| match at.is_over() {
            true => Err(Stop::Asked),
            false => {
                at.step(Phase::Read, 2);
                Ok(())
            }
        };
        let found = first_difference(fds, (0, size), (left, right), false, begin, |_, _| ())?;
        Ok(found.is_none())
    }
}
