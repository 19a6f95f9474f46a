//! Blocking work on helper threads.

use std::io;

/// Runs blocking work on a helper thread of the core.
///
/// # Errors
/// Those of the work; one of its own if it panics.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
