//! Comparison of contents of source and target (`--checksum`).

use super::mover::Mover;
use crate::engine::failure::{Failure, Stop};
use crate::engine::pace::Station;
use hakobu_core::buffer;
use hakobu_core::error::Operation;
use hakobu_core::meter::Phase;
use hakobu_sys::cache::Ahead;
use hakobu_sys::{AsFd, BorrowedFd, file};
use std::ffi::CStr;

impl Mover<'_> {
    /// Compares the contents of two files of equal size. A target that cannot be read counts as different and is
    /// replaced, as in rsync. `follow`: the source may be a symlink.
    pub(in crate::engine) fn is_same(
        &mut self,
        at: &Station<'_>,
        source: (BorrowedFd<'_>, &CStr, bool),
        target: (BorrowedFd<'_>, &CStr),
        size: u64,
    ) -> Result<bool, Stop> {
        let read = || Failure::of(Operation::Read);
        at.step(Phase::Look, 2);
        let a = file::open_read(source.0, source.1, source.2).map_err(read())?;
        let Ok(b) = file::open_read(target.0, target.1, false) else {
            return Ok(false);
        };
        let whole = (0, size);
        let (mut ahead_a, mut ahead_b) =
            (Ahead::new(a.as_fd(), whole), Ahead::new(b.as_fd(), whole));
        let half = self.buffer.len() / 2;
        let (left, right) = self.buffer.split_at_mut(half);
        let mut offset = 0;
        while offset < size {
            if at.is_over() {
                return Err(Stop::Asked);
            }
            at.step(Phase::Read, 2);
            ahead_a.reach(a.as_fd(), offset);
            ahead_b.reach(b.as_fd(), offset);
            // No more than what there was: a read that finds the end is one call more for each file.
            let len = usize::try_from(size - offset).unwrap_or(usize::MAX).min(half);
            let (Some(left), Some(right)) = (left.get_mut(..len), right.get_mut(..len)) else {
                return Ok(false);
            };
            let got = file::read_full_at(a.as_fd(), left, offset).map_err(read())?;
            let Ok(there) = file::read_full_at(b.as_fd(), right, offset) else {
                return Ok(false);
            };
            let (Some(left), Some(right)) = (left.get(..got), right.get(..there)) else {
                return Ok(false);
            };
            if !buffer::is_same(left, right) {
                return Ok(false);
            }
            if got == 0 {
                break;
            }
            offset += got as u64;
        }
        Ok(true)
    }
}
