//! Checksums of ranges of files, computed on helper threads.

use hakobu_core::buffer::AlignedBytes;
use hakobu_s3::{Algorithm, Checksum, Hasher};
use hakobu_sys::{AsFd, OwnedFd, file};
use std::io;

/// Bytes read at once when a finished file is read again.
const READ_BYTES: usize = 1 << 20;

/// Runs blocking work on a helper thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Returns the checksum of a range of a file.
///
/// # Errors
/// Those of the system; UnexpectedEof if the file is shorter.
pub(super) fn hash(
    file: &OwnedFd,
    algorithm: Algorithm,
    start: u64,
    end: u64,
) -> io::Result<Checksum> {
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = AlignedBytes::zeroed(READ_BYTES);
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let space = &mut buffer[..wanted];
        let got = file::read_full_at(file.as_fd(), space, at)?;
        if got < wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(space);
        at += got as u64;
    }
    Ok(hasher.finish())
}
