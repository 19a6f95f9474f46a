//! Gathered writes: several buffers in one call, `writev(2)` and `pwritev(2)`.

use crate::BorrowedFd;
use std::io::{IoSlice, Result};

/// Most buffers per call (IOV_MAX of linux/limits.h).
const BUFFERS_MAX: usize = 1024;

/// Writes all buffers in order at the file's position.
///
/// # Errors
/// Those of `writev(2)`; ENOSPC if a write makes no progress.
pub fn write_all<'a>(
    fd: BorrowedFd<'_>,
    buffers: impl IntoIterator<Item = &'a [u8]>,
) -> Result<()> {
    let mut slices = slices(buffers);
    run(&mut slices, |slices, _| rustix::io::writev(fd, slices))
}

/// Writes all buffers in order, starting at an offset.
///
/// # Errors
/// As [`write_all`].
pub fn write_all_at<'a>(
    fd: BorrowedFd<'_>,
    buffers: impl IntoIterator<Item = &'a [u8]>,
    offset: u64,
) -> Result<()> {
    let mut slices = slices(buffers);
    run(&mut slices, |slices, done| rustix::io::pwritev(fd, slices, offset + done))
}

fn slices<'a>(buffers: impl IntoIterator<Item = &'a [u8]>) -> Vec<IoSlice<'a>> {
    buffers.into_iter().filter(|buffer| !buffer.is_empty()).map(IoSlice::new).collect()
}

/// Repeats `call` until everything is written; it gets the remaining buffers and the bytes done.
fn run(
    mut left: &mut [IoSlice<'_>],
    mut call: impl FnMut(&[IoSlice<'_>], u64) -> rustix::io::Result<usize>,
) -> Result<()> {
    let mut done = 0;
    while !left.is_empty() {
        let now = left.get(..BUFFERS_MAX).unwrap_or(left);
        match crate::errno::until_uninterrupted(|| call(now, done))? {
            0 => return Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
            wrote => {
                done += wrote as u64;
                IoSlice::advance_slices(&mut left, wrote);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short writes are continued in order.
    #[test]
    fn short_writes_are_gone_on_with() {
        for most in [1, 2, 3, 5, 100] {
            let mut out = Vec::new();
            let mut slices = slices([&b"ab"[..], b"", b"cde", b"f"]);
            run(&mut slices, |slices, done| {
                assert_eq!(done, out.len() as u64);
                let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                let wrote = all.len().min(most);
                out.extend_from_slice(&all[..wrote]);
                Ok(wrote)
            })
            .expect("no error");
            assert_eq!(out, b"abcdef");
        }
    }

    #[test]
    fn no_progress_is_a_full_disk() {
        let mut slices = slices([&b"ab"[..]]);
        let error = run(&mut slices, |_, _| Ok(0)).expect_err("full");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
}
