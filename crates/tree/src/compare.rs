//! Whether two files have the same content: byte by byte, and hole by hole. `--checksum`, `--append-verify`, `verify` and
//! the checks of campaigns all ask here; what follows from an answer is theirs.

use hakobu_core::buffer::{AlignedBytes, is_same};
use hakobu_core::limit::Limiter;
use hakobu_core::meter::Activity;
use hakobu_core::unit::Side;
use hakobu_sys::cache::ReadAhead;
use hakobu_sys::{AsFd, BorrowedFd, file};
use std::fs::File;
use std::io;
use std::path::Path;

/// Returns the start of the next data of either file, at or after `offset`; `end` if there is none. A file system
/// that does not report holes has data everywhere.
fn skip_holes(source: BorrowedFd<'_>, target: BorrowedFd<'_>, offset: u64, end: u64) -> u64 {
    let next = |fd| match file::next_data(fd, offset) {
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
pub fn first_difference<E: From<(Side, io::Error)>>(
    (source, target): (BorrowedFd<'_>, BorrowedFd<'_>),
    (from, to): (u64, u64),
    (left, right): (&mut [u8], &mut [u8]),
    sparse: bool,
    mut begin: impl FnMut(u64) -> Result<(), E>,
    mut compared: impl FnMut(u64, bool),
) -> Result<Option<u64>, E> {
    let mut offset = from;
    let mut ahead = [source, target].map(|fd| ReadAhead::new(fd, (from, to)));
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

/// Bytes read from each file at a time.
const BUFFER_BYTES: usize = 128 << 10;

/// A worker's two buffers.
pub struct Buffers {
    source: AlignedBytes,
    target: AlignedBytes,
}

impl Default for Buffers {
    fn default() -> Self {
        let buffer = || AlignedBytes::zeroed(BUFFER_BYTES);
        Buffers { source: buffer(), target: buffer() }
    }
}

impl Buffers {
    /// Returns the offset of the first byte in a range that differs, as [`first_difference`] does. Progress is counted
    /// on the lane of `doing`, and each file is read at most at the rate of `limit`.
    ///
    /// # Errors
    /// The file that could not be read, and the reason.
    pub fn first_difference(
        &mut self,
        fds: (BorrowedFd<'_>, BorrowedFd<'_>),
        range: (u64, u64),
        sparse: bool,
        (doing, limit): (&Activity, Option<&Limiter>),
    ) -> Result<Option<u64>, (Side, io::Error)> {
        let lane = doing.lane();
        let begin = |bytes| {
            if let Some(limit) = limit {
                limit.pace(bytes, doing);
            }
            Ok(())
        };
        let compared = |bytes, is_last: bool| {
            lane.bytes(bytes);
            // The last piece of a file is counted with the file.
            lane.completions(u64::from(!is_last));
        };
        let buffers = (&mut *self.source, &mut *self.target);
        first_difference(fds, range, buffers, sparse, begin, compared)
    }
}

/// Returns whether the holes of two files of the same size are in the same places, in units of 64 KiB: block sizes
/// differ, and file systems may fill small holes.
///
/// # Errors
/// The file that could not be examined, and the reason.
pub fn same_holes(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    size: u64,
) -> Result<bool, (Side, io::Error)> {
    let mut offset = 0;
    while offset < size {
        let a = coarse(source, offset, size).map_err(|error| (Side::Source, error))?;
        let b = coarse(target, offset, size).map_err(|error| (Side::Target, error))?;
        if a != b {
            return Ok(false);
        }
        offset = a.1;
    }
    Ok(true)
}

/// Returns the next range of data from `offset` on, extended to whole units and merged with adjacent ones.
fn coarse(fd: BorrowedFd<'_>, offset: u64, size: u64) -> io::Result<(u64, u64)> {
    const UNIT: u64 = 64 << 10;
    let up = |end: u64| end.next_multiple_of(UNIT).min(size);
    let Some((start, end)) = file::next_data(fd, offset)? else { return Ok((size, size)) };
    let (start, mut end) = ((start / UNIT * UNIT).max(offset), up(end));
    while end < size
        && let Some((next, next_end)) = file::next_data(fd, end)?
        && next / UNIT * UNIT <= end
    {
        end = up(next_end);
    }
    Ok((start, end))
}

/// Returns the offset of the first byte in which two files differ, `None` if there is none: for callers that compare a few
/// files once.
///
/// # Errors
/// A file cannot be opened or read.
pub fn first_difference_of_files(source: &Path, target: &Path) -> io::Result<Option<u64>> {
    let (source, target) = (File::open(source)?, File::open(target)?);
    let size = source.metadata()?.len().max(target.metadata()?.len());
    let mut buffers = Buffers::default();
    let (fds, buffers) =
        ((source.as_fd(), target.as_fd()), (&mut *buffers.source, &mut *buffers.target));
    let begin = |_| Ok::<(), (Side, io::Error)>(());
    first_difference(fds, (0, size), buffers, false, begin, |_, _| ()).map_err(|(_, error)| error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::meter::{Meter, Phase};
    use std::os::unix::fs::FileExt;

    fn file(name: &str, parts: &[(u64, &[u8])], len: u64) -> File {
        let path =
            std::env::temp_dir().join(format!("hakobu-content-{name}-{}", std::process::id()));
        let file =
            File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(len).unwrap();
        for (at, bytes) in parts {
            file.write_all_at(bytes, *at).unwrap();
        }
        file
    }

    fn compare(a: &File, b: &File, len: u64) -> Option<u64> {
        let mut buffers = Buffers::default();
        let doing = Activity::new(Meter::new(1).share(0), Phase::Read);
        let (a, b) = (a.as_fd(), b.as_fd());
        let plain = buffers.first_difference((a, b), (0, len), false, (&doing, None)).unwrap();
        let sparse = buffers.first_difference((a, b), (0, len), true, (&doing, None)).unwrap();
        assert_eq!(plain, sparse);
        plain
    }

    #[test]
    fn the_first_differing_byte_is_found_wherever_it_is() {
        let len = 3 * BUFFER_BYTES as u64 + 77;
        let a = file("a", &[(0, b"begin"), (len - 3, b"end")], len);
        assert_eq!(compare(&a, &a, len), None);
        for at in [0, 1, BUFFER_BYTES as u64 - 1, BUFFER_BYTES as u64, len - 1] {
            let b = file("b", &[(0, b"begin"), (len - 3, b"end"), (at, b"\xff")], len);
            assert_eq!(compare(&a, &b, len), Some(at));
        }
    }

    #[test]
    fn a_file_that_ends_early_differs_there() {
        let a = file("c", &[(0, b"abcdef")], 6);
        let b = file("d", &[(0, b"abc")], 3);
        assert_eq!(compare(&a, &b, 6), Some(3));
        assert_eq!(compare(&b, &a, 6), Some(3));
        assert_eq!(compare(&b, &b, 6), None);
    }

    #[test]
    fn holes_count_in_coarse_units() {
        let big = 16 << 20;
        let sparse = file("e", &[(8 << 20, b"x")], big);
        let alike = file("f", &[(8 << 20, &[1; 5000])], big);
        let dense = file("g", &[(0, &vec![0; big as usize])], big);
        let same = |a: &File, b: &File| same_holes(a.as_fd(), b.as_fd(), big).unwrap();
        assert!(same(&sparse, &alike));
        assert!(same(&dense, &dense));
        assert!(!same(&sparse, &dense));
        assert!(!same(&dense, &sparse));
    }
}
