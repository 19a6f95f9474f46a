//! Upload of a stream of unknown length (`pipe`): one request if it fits into one part, else growing parts, so that
//! the largest object fits into the allowed number of parts.

use super::super::budget::Buffer;
use super::super::core::unless;
use super::super::cut::PARTS_MAX;
use super::large::whole_checksum;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hakobu_core::control::Control;
use hakobu_core::limit::Limiter;
use hakobu_s3::ops::{self, Headers, Part};
use hakobu_s3::{Algorithm, Checksum, Client, Error, ErrorKind, S3Session};
use http::header::IF_NONE_MATCH;
use std::cell::Cell;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{LocalSet, spawn_blocking};

const MIB: u64 = 1 << 20;
/// Default size of the first parts, in bytes.
const PART_BYTES: u64 = 8 * MIB;
/// A part is at least this fraction (1/n) of the bytes sent before it, so that 10,000 parts exceed 5 TiB, the former
/// maximum of an object, whatever the size of the first one.
const GROWTH: u64 = 1250;
/// Maximum size of a part in S3, in bytes.
const PART_BYTES_MAX: u64 = 5 << 30;
/// Default number of concurrent parts.
const STREAMS: usize = 8;

/// Target and options of a stream.
pub struct Stream<'a> {
    /// The store.
    pub store: &'a Arc<S3Session>,
    /// The bucket.
    pub bucket: &'a str,
    /// The whole key.
    pub key: &'a [u8],
    /// Headers of the object, including If-None-Match.
    pub headers: Headers,
    /// `--part-size`.
    pub part_bytes: Option<u64>,
    /// `--concurrency`: concurrent parts.
    pub concurrency: Option<usize>,
    /// Bytes in flight; a larger part is sent alone.
    pub memory_bytes_max: u64,
    /// `--bwlimit`.
    pub limiter: Option<&'a Limiter>,
    /// Can stop it early.
    pub control: &'a Control,
    /// Called with the number of bytes that have arrived.
    pub progress: &'a (dyn Fn(u64) + 'a),
}

/// Uploads the data of `read` until its end and returns the number of bytes. Blocks; call it outside of any runtime.
/// On failure, including a failed read, nothing is left at the target. A read that waits for input does not delay the
/// end of a stopped run: its thread is abandoned.
///
/// # Errors
/// Those of the request; `Invalid` if reading fails; `Stopped`; `Settings` if no runtime can be started.
pub fn upload_stream(stream: &Stream<'_>, read: impl Read + Send + 'static) -> Result<u64, Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| {
            Error::new(ErrorKind::Settings, PUT, format!("cannot start a runtime: {e}"))
        })?;
    let done = LocalSet::new().block_on(&runtime, async {
        let client = Client::new(stream.store);
        let algorithm = Cell::new(stream.store.upload_checksum());
        let sending = Sending { stream, client: &client, started: Instant::now(), algorithm };
        sending.all(read).await
    });
    runtime.shutdown_background();
    done
}

const PUT: &str = "PutObject";

/// An event of a multipart stream upload.
enum Step<R> {
    /// A piece was read, shorter than wanted at the end of the stream.
    Read(R, io::Result<Bytes>),
    /// A part was sent.
    Sent(Result<Part, Error>),
}

struct Sending<'a> {
    stream: &'a Stream<'a>,
    client: &'a Client,
    started: Instant,
    /// The checksum algorithm: the requested one, until a server does not support it.
    algorithm: Cell<Option<Algorithm>>,
}

impl Sending<'_> {
    async fn all<R: Read + Send + 'static>(&self, read: R) -> Result<u64, Error> {
        let first = self.stream.part_bytes.unwrap_or(PART_BYTES).max(1);
        let piece = self.unless_stopped(PUT, fill(read, first)).await?;
        let (read, bytes) = (piece.0, piece.1.map_err(unreadable)?);
        if (bytes.len() as u64) < first {
            return self.whole(bytes).await;
        }
        let Stream { bucket, key, headers, .. } = self.stream;
        let mut headers = headers.clone();
        // A condition belongs to the request that creates the object.
        headers.retain(|(name, _)| name != IF_NONE_MATCH);
        let algorithm = self.algorithm.get();
        let begun = ops::create_upload(self.client, bucket, key, algorithm, &headers).await?;
        self.algorithm.set(begun.algorithm);
        let upload = begun.id;
        let done = match self.parts(&upload, read, bytes, first).await {
            Ok(parts) => self.complete(&upload, parts).await,
            Err(error) => Err(error),
        };
        if done.is_err() {
            // It failed already, and the first failure is the one reported.
            let _ = ops::abort_upload(self.client, bucket, key, &upload).await;
        }
        done
    }

    async fn whole(&self, bytes: Bytes) -> Result<u64, Error> {
        let Stream { bucket, key, headers, .. } = self.stream;
        let len = bytes.len() as u64;
        self.unless_stopped(PUT, self.pace(len)).await?;
        let checksum = self.checksum(&bytes);
        let sent = ops::put_object(self.client, bucket, key, bytes, checksum.as_ref(), headers);
        self.unless_stopped(PUT, sent).await??;
        (self.stream.progress)(len);
        Ok(len)
    }

    /// Reads and sends all parts after the first, which was read already.
    async fn parts<R: Read + Send + 'static>(
        &self,
        upload: &str,
        read: R,
        bytes: Bytes,
        first: u64,
    ) -> Result<Vec<Part>, Error> {
        const OPERATION: &str = "UploadPart";
        let mut steps: FuturesUnordered<LocalBoxFuture<'_, Step<R>>> = FuturesUnordered::new();
        let (mut parts, mut idle) = (Vec::new(), Some(read));
        let (mut sent, mut number, mut under_way) = (bytes.len() as u64, 1, 1);
        let mut wanted = first;
        steps.push(Box::pin(self.part(upload, number, bytes)));
        loop {
            let next = part_bytes(first, sent);
            if under_way < self.streams(next)
                && let Some(read) = idle.take()
            {
                wanted = next;
                steps.push(Box::pin(async move {
                    let (read, piece) = fill(read, wanted).await;
                    Step::Read(read, piece)
                }));
            }
            let Some(step) = self.unless_stopped(OPERATION, steps.next()).await? else {
                return Ok(parts);
            };
            match step {
                Step::Sent(part) => {
                    under_way -= 1;
                    let part = part?;
                    (self.stream.progress)(part.size);
                    parts.push(part);
                }
                Step::Read(read, piece) => {
                    let piece = piece.map_err(unreadable)?;
                    let len = piece.len() as u64;
                    if len == wanted {
                        idle = Some(read);
                    }
                    if len > 0 {
                        (number, under_way, sent) = (number + 1, under_way + 1, sent + len);
                        if u64::from(number) > PARTS_MAX {
                            let why =
                                "the stream does not fit into 10,000 parts: ask for larger ones";
                            return Err(Error::new(ErrorKind::Invalid, OPERATION, why));
                        }
                        steps.push(Box::pin(self.part(upload, number, piece)));
                    }
                }
            }
        }
    }

    async fn part<R>(&self, upload: &str, number: u32, bytes: Bytes) -> Step<R> {
        let Stream { bucket, key, .. } = self.stream;
        let size = bytes.len() as u64;
        self.pace(size).await;
        let checksum = self.checksum(&bytes);
        let sum = checksum.as_ref();
        let sent = ops::upload_part(self.client, bucket, key, upload, number, bytes, sum).await;
        Step::Sent(sent.map(|part| Part { number, size, etag: part.etag, checksum }))
    }

    async fn complete(&self, upload: &str, mut parts: Vec<Part>) -> Result<u64, Error> {
        let Stream { bucket, key, headers, .. } = self.stream;
        parts.sort_unstable_by_key(|part| part.number);
        let size = parts.iter().map(|part| part.size).sum();
        let whole = whole_checksum(&parts);
        let mut headers = headers.clone();
        headers.retain(|(name, _)| name == IF_NONE_MATCH);
        let whole = whole.as_ref();
        ops::complete_upload(self.client, bucket, key, upload, &parts, size, whole, &headers)
            .await?;
        Ok(size)
    }

    fn checksum(&self, bytes: &[u8]) -> Option<Checksum> {
        self.algorithm.get().map(|which| Checksum::of(which, bytes))
    }

    /// Returns how many parts of that size may be in flight besides the one being read.
    fn streams(&self, part_bytes: u64) -> u64 {
        let fit = (self.stream.memory_bytes_max / part_bytes.max(1)).saturating_sub(1);
        let wanted = self.stream.concurrency.unwrap_or(STREAMS) as u64;
        wanted.min(fit).max(1)
    }

    async fn pace(&self, bytes: u64) {
        let Some(limiter) = self.stream.limiter else { return };
        // In one piece: see `Engine::pace`. Stopping the run drops this future.
        tokio::time::sleep(limiter.take(bytes, self.started.elapsed())).await;
    }

    async fn unless_stopped<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let stopped = || Error::new(ErrorKind::Stopped, operation, "the run was asked to stop");
        unless(|| self.stream.control.is_stopped(), work).await.ok_or_else(stopped)
    }
}

/// Returns the size of the next part after `sent` bytes.
fn part_bytes(first: u64, sent: u64) -> u64 {
    first.max((sent / GROWTH).next_multiple_of(MIB)).min(PART_BYTES_MAX)
}

/// Reads up to `wanted` bytes on a helper thread; fewer at the end of the stream.
async fn fill<R: Read + Send + 'static>(mut read: R, wanted: u64) -> (R, io::Result<Bytes>) {
    // Allocated on this thread, to which it is returned after the part was sent.
    let mut buffer = Buffer::new(usize::try_from(wanted).unwrap_or(usize::MAX));
    let work = move || {
        let mut filled = 0;
        let end = loop {
            match buffer.get_mut(filled..) {
                None | Some([]) => break Ok(()),
                Some(space) => match read.read(space) {
                    Ok(0) => break Ok(()),
                    Ok(got) => filled += got,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => break Err(error),
                },
            }
        };
        buffer.truncate(filled);
        (read, end.map(|()| buffer.freeze()))
    };
    match spawn_blocking(work).await {
        Ok(read) => read,
        // The reader itself panicked: propagate it.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Invalid, PUT, format!("cannot read the stream: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_tebibytes_fit() {
        let (mut sent, mut last) = (0, 0);
        for _ in 0..PARTS_MAX {
            let next = part_bytes(PART_BYTES, sent);
            assert!(next >= last && next <= PART_BYTES_MAX);
            (sent, last) = (sent + next, next);
        }
        assert!(sent > 5 << 40, "{sent}");
        assert_eq!(part_bytes(PART_BYTES, 1 << 30), PART_BYTES);
    }

    #[test]
    fn pieces_are_full_until_the_end() {
        /// Returns a byte at a time, and is interrupted.
        struct Slow(Vec<u8>, bool);
        impl Read for Slow {
            fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
                self.1 = !self.1;
                if self.1 {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let Some(byte) = self.0.pop() else { return Ok(0) };
                space[0] = byte;
                Ok(1)
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (read, piece) = fill(Slow(vec![5, 4, 3, 2, 1], false), 3).await;
            assert_eq!(&piece.unwrap()[..], [1, 2, 3]);
            let (_, piece) = fill(read, 3).await;
            assert_eq!(&piece.unwrap()[..], [4, 5]);
        });
    }
}
