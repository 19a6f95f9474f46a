//! Upload of a stream of unknown length (`pipe`): one request if it fits into one part, else growing parts, so that
//! the largest object fits into the allowed number of parts.

use super::get::{is_same, mismatch, stored};
use super::parts::PARTS_MAX;
use super::put::whole_checksum;
use super::runtime::{PooledBuffer, unless};
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hakobu_core::control::Control;
use hakobu_core::limit::Limiter;
use hakobu_s3::ops::{self, GetOptions, Headers, Part, Range, get_object};
use hakobu_s3::{
    Algorithm, Checksum, Client, Download, Error, ErrorKind, Hasher, S3Session, header,
};
use http::header::IF_NONE_MATCH;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::{JoinHandle, LocalSet, spawn_blocking, spawn_local};

const MIB: u64 = 1 << 20;
/// Default size of the first parts, in bytes.
const UPLOAD_PART_BYTES: u64 = 8 * MIB;
/// A part is at least this fraction (1/n) of the bytes sent before it, so that 10,000 parts exceed 5 TiB, the former
/// maximum of an object, whatever the size of the first one.
const GROWTH: u64 = 1250;
/// Maximum size of a part in S3, in bytes.
const PART_BYTES_MAX: u64 = 5 << 30;
/// Default number of concurrent parts.
const STREAMS: usize = 8;

/// Target and options of a stream.
pub struct ObjectStream<'a> {
    pub store: &'a Arc<S3Session>,
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
pub fn upload_stream(
    stream: &ObjectStream<'_>,
    read: impl Read + Send + 'static,
) -> Result<u64, Error> {
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
    stream: &'a ObjectStream<'a>,
    client: &'a Client,
    started: Instant,
    /// The checksum algorithm: the requested one, until a server does not support it.
    algorithm: Cell<Option<Algorithm>>,
}

impl Sending<'_> {
    async fn all<R: Read + Send + 'static>(&self, read: R) -> Result<u64, Error> {
        let first = self.stream.part_bytes.unwrap_or(UPLOAD_PART_BYTES).max(1);
        let piece = self.unless_stopped(PUT, fill(read, first)).await?;
        let (read, bytes) = (piece.0, piece.1.map_err(unreadable)?);
        if (bytes.len() as u64) < first {
            return self.whole(bytes).await;
        }
        let ObjectStream { bucket, key, headers, .. } = self.stream;
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
        let ObjectStream { bucket, key, headers, .. } = self.stream;
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
        let ObjectStream { bucket, key, .. } = self.stream;
        let size = bytes.len() as u64;
        self.pace(size).await;
        let checksum = self.checksum(&bytes);
        let sum = checksum.as_ref();
        let sent = ops::upload_part(self.client, bucket, key, upload, number, bytes, sum).await;
        Step::Sent(sent.map(|part| Part { number, size, etag: part.etag, checksum }))
    }

    async fn complete(&self, upload: &str, mut parts: Vec<Part>) -> Result<u64, Error> {
        let ObjectStream { bucket, key, headers, .. } = self.stream;
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
    let mut buffer = PooledBuffer::new(usize::try_from(wanted).unwrap_or(usize::MAX));
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

// An object's bytes in order, for `cat`: parts are fetched ahead and written in sequence.

/// Default size of parts, in bytes.
const DOWNLOAD_PART_BYTES: u64 = 8 << 20;
/// Default number of parts fetched ahead.
const AHEAD: usize = 4;
/// Maximum bytes held at once with the defaults.
pub(super) const HELD_BYTES_MAX: u64 = (AHEAD as u64 + 1) * DOWNLOAD_PART_BYTES;

/// How a stream is divided.
#[derive(Clone, Copy, Debug)]
pub struct StreamParts {
    /// Bytes per part; at least 1.
    pub bytes: u64,
    /// Number of parts fetched ahead; at least 1.
    pub ahead: usize,
}

impl Default for StreamParts {
    fn default() -> StreamParts {
        StreamParts { bytes: DOWNLOAD_PART_BYTES, ahead: AHEAD }
    }
}

impl StreamParts {
    /// Returns the most bytes that a stream holds at once.
    pub fn held_bytes_max(self) -> u64 {
        (self.ahead as u64).saturating_add(1).saturating_mul(self.bytes)
    }
}

/// Reason that a stream ended early.
#[derive(Debug)]
pub enum StreamError {
    /// A request failed, or the data does not match its checksum.
    Request(hakobu_s3::Error),
    /// The writer failed (a broken pipe, a full disk), or no runtime could be started.
    Write(io::Error),
}

/// Writes an object's bytes in order (all of them, or a range) and returns their number. Blocks; starts its own
/// runtime. Holds at most [`StreamParts::held_bytes_max`]. A stored checksum of the whole object is compared at the end, after the bytes are
/// written.
///
/// # Errors
/// Those of the request or the writer; the bytes written are a prefix of the object, unless the error says that a
/// checksum differs (`Corrupt`).
pub fn download_stream(
    store: &Arc<S3Session>,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
    range: Option<Range>,
    parts: StreamParts,
    write: &mut dyn Write,
) -> Result<u64, StreamError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StreamError::Write)?;
    LocalSet::new().block_on(&runtime, async {
        let source = Source {
            client: Client::new(store),
            bucket: bucket.to_owned(),
            key: key.to_vec(),
            version: version.map(str::to_owned),
            known: None,
            parts,
        };
        source.run(range, write).await
    })
}

/// As [`download_stream`], inside a runtime; `known` are the required ETag and size.
pub(super) async fn stream(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
    known: Option<(String, u64)>,
    write: &mut dyn Write,
) -> Result<u64, StreamError> {
    let source = Source {
        client: client.clone(),
        bucket: bucket.to_owned(),
        key: key.to_vec(),
        version: version.map(str::to_owned),
        known,
        parts: StreamParts::default(),
    };
    source.run(None, write).await
}

/// One object.
struct Source {
    client: Client,
    bucket: String,
    key: Vec<u8>,
    version: Option<String>,
    /// ETag without quotes, and size; unknown until the first answer.
    known: Option<(String, u64)>,
    parts: StreamParts,
}

/// Writer of the bytes, with their count and checksum.
struct Sink<'a> {
    write: &'a mut dyn Write,
    hasher: Option<Hasher>,
    at: u64,
}

impl Sink<'_> {
    fn take(&mut self, frames: &[Bytes]) -> Result<(), StreamError> {
        for frame in frames {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(frame);
            }
            self.write.write_all(frame).map_err(StreamError::Write)?;
            self.at += frame.len() as u64;
        }
        Ok(())
    }
}

impl Source {
    async fn get(&self, range: Option<Range>) -> Result<Download, hakobu_s3::Error> {
        let Source { client, bucket, key, version, known, parts: _ } = self;
        let wanted = GetOptions {
            version: version.as_deref(),
            range,
            etag: known.as_ref().map(|(etag, _)| etag.as_str()),
            size: known.as_ref().map(|(_, size)| *size),
        };
        get_object(client, bucket, key, &wanted).await
    }

    async fn run(
        mut self,
        range: Option<Range>,
        write: &mut dyn Write,
    ) -> Result<u64, StreamError> {
        if range.is_some_and(|range| range.start >= range.end) {
            return Ok(0);
        }
        let mut first = self.get(range).await.map_err(StreamError::Request)?;
        let size = first.size();
        let Range { start, end } = range.unwrap_or(Range { start: 0, end: size });
        let end = end.min(size);
        self.known = Some((header::etag(&first.headers), size));
        let stored = match range.is_none() && self.client.session().checks_downloads() {
            true => stored(&first.headers),
            false => None,
        };
        let hasher = stored.as_ref().map(|stored| Hasher::new(stored.algorithm));
        let mut sink = Sink { write, hasher, at: start };
        let own = end.min(start.saturating_add(self.parts.bytes));
        let source = Rc::new(self);
        let mut ahead = Ahead { source: &source, next: own, end, parts: VecDeque::new() };
        let broke = first_part(&mut first, &mut sink, own, &mut ahead).await?;
        // It is larger than its part: the remaining parts are fetched separately.
        drop(first);
        if let Some(error) = broke {
            if !source.client.may_retry(1, &error).await {
                return Err(StreamError::Request(error));
            }
            let rest = Range { start: sink.at, end: own };
            sink.take(&source.fetch(rest).await.map_err(StreamError::Request)?)?;
        }
        while let Some(part) = ahead.next() {
            let frames = part.await.map_err(|error| StreamError::Write(io::Error::other(error)))?;
            sink.take(&frames.map_err(StreamError::Request)?)?;
        }
        sink.write.flush().map_err(StreamError::Write)?;
        if let (Some(stored), Some(hasher)) = (stored, sink.hasher)
            && !is_same(&stored, hasher)
        {
            return Err(StreamError::Request(mismatch(stored.algorithm)));
        }
        Ok(sink.at - start)
    }

    /// Fetches a whole range; continues where a connection broke.
    async fn fetch(&self, range: Range) -> Result<Vec<Bytes>, hakobu_s3::Error> {
        let (mut frames, mut at, mut tried) = (Vec::new(), range.start, 1);
        while at < range.end {
            let mut download = self.get(Some(Range { start: at, end: range.end })).await?;
            let broke = loop {
                match download.chunk().await {
                    Ok(Some(frame)) => {
                        at += frame.len() as u64;
                        frames.push(frame);
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            if let Some(error) = broke {
                if !self.client.may_retry(tried, &error).await {
                    return Err(error);
                }
                tried += 1;
            }
        }
        Ok(frames)
    }
}

/// Parts in flight while others are written.
struct Ahead<'a> {
    source: &'a Rc<Source>,
    /// The first byte not requested yet.
    next: u64,
    end: u64,
    parts: VecDeque<JoinHandle<Result<Vec<Bytes>, hakobu_s3::Error>>>,
}

impl Ahead<'_> {
    /// Requests as many parts as may be in flight.
    fn fill(&mut self) {
        let StreamParts { bytes, ahead } = self.source.parts;
        while self.parts.len() < ahead && self.next < self.end {
            let end = self.end.min(self.next.saturating_add(bytes));
            let range = Range { start: self.next, end };
            self.next = range.end;
            let source = Rc::clone(self.source);
            self.parts.push_back(spawn_local(async move { source.fetch(range).await }));
        }
    }

    /// Returns the part to write next.
    fn next(&mut self) -> Option<JoinHandle<Result<Vec<Bytes>, hakobu_s3::Error>>> {
        self.fill();
        self.parts.pop_front()
    }
}

/// Writes the part of the first answer; returns the error that broke it.
async fn first_part(
    first: &mut Download,
    sink: &mut Sink<'_>,
    own: u64,
    ahead: &mut Ahead<'_>,
) -> Result<Option<hakobu_s3::Error>, StreamError> {
    ahead.fill();
    while sink.at < own {
        match first.chunk().await {
            Ok(Some(frame)) => {
                let room = usize::try_from(own - sink.at).unwrap_or(usize::MAX);
                sink.take(&[frame.slice(..frame.len().min(room))])?;
            }
            Ok(None) => break,
            Err(error) => return Ok(Some(error)),
        }
    }
    // It must end here if no more was requested: a longer one does not match the request.
    if sink.at == own && own == ahead.end {
        return Ok(first.chunk().await.err());
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_tebibytes_fit() {
        let (mut sent, mut last) = (0, 0);
        for _ in 0..PARTS_MAX {
            let next = part_bytes(UPLOAD_PART_BYTES, sent);
            assert!(next >= last && next <= PART_BYTES_MAX);
            (sent, last) = (sent + next, next);
        }
        assert!(sent > 5 << 40, "{sent}");
        assert_eq!(part_bytes(UPLOAD_PART_BYTES, 1 << 30), UPLOAD_PART_BYTES);
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
