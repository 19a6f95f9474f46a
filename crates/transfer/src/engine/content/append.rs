//! Appends the missing end of a target, and compares its existing part.

use super::buffer::BUFFER_BYTES;
use super::mover::Mover;
use crate::engine::failure::{Failure, Stop, reading, writing};
use crate::engine::pace::Station;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_sys::{BorrowedFd, file};

impl Mover<'_> {
    /// Writes the bytes of a source from `start` to its `size` to the same offsets of a target. Returns their number.
    ///
    /// # Errors
    /// [`Stop`]; a part may have been appended.
    pub(in crate::engine) fn append(
        &mut self,
        at: &Station<'_>,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        (start, size): (u64, u64),
    ) -> Result<u64, Stop> {
        let mut offset = start;
        while offset < size {
            if at.is_over() {
                return Err(Stop::Asked);
            }
            let len = (size - offset).min(at.stride(BUFFER_BYTES) as u64) as usize;
            let Some(space) = self.buffer.get_mut(..len) else { return Err(Stop::Changed) };
            at.pace(len as u64);
            at.step(Phase::Read, 1);
            if file::read_full_at(from, space, offset).map_err(reading)? < len {
                return Err(Stop::Changed);
            }
            at.step(Phase::Write, 1);
            file::write_all_at(to, space, offset, false).map_err(writing)?;
            at.moved(len as u64);
            offset += len as u64;
        }
        Ok(size - start)
    }

    /// Returns whether the first `size` bytes of two files are equal.
    ///
    /// # Errors
    /// A file that cannot be read; the run was asked to stop.
    pub(in crate::engine) fn begins_like(
        &mut self,
        at: &Station<'_>,
        (from, there): (BorrowedFd<'_>, BorrowedFd<'_>),
        size: u64,
    ) -> Result<bool, Stop> {
        let (left, right) = self.buffer.split_at_mut(BUFFER_BYTES / 2);
        let mut offset = 0;
        while offset < size {
            if at.is_over() {
                return Err(Stop::Asked);
            }
            let len = (size - offset).min(left.len().min(right.len()) as u64) as usize;
            let (Some(left), Some(right)) = (left.get_mut(..len), right.get_mut(..len)) else {
                return Ok(false);
            };
            at.step(Phase::Read, 2);
            let ours = file::read_full_at(from, left, offset).map_err(reading)?;
            let theirs = file::read_full_at(there, right, offset);
            let theirs = theirs.map_err(Failure::of(Operation::Compare))?;
            if ours < len || theirs < len || left != right {
                return Ok(false);
            }
            offset += len as u64;
        }
        Ok(true)
    }
}
