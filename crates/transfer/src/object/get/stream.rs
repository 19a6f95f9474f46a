//! An object's bytes in order, for `cat`: parts are fetched ahead and written in sequence.

use super::body::{is_same, mismatch, stored};
use bytes::Bytes;
use hakobu_s3::header;
use hakobu_s3::ops::{GetOptions, Range, get_object};
use hakobu_s3::{Client, Download, Hasher, S3Session};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// Default size of parts, in bytes.
const PART_BYTES: u64 = 8 << 20;
/// Default number of parts fetched ahead.
const AHEAD: usize = 4;
/// Maximum bytes held at once with the defaults.
pub(super) const HELD_BYTES_MAX: u64 = (AHEAD as u64 + 1) * PART_BYTES;

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
        StreamParts { bytes: PART_BYTES, ahead: AHEAD }
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
///
/// # Errors
/// As [`download_stream`].
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
