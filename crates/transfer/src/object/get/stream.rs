//! An object's bytes in order, for `cat`: parts are fetched ahead and written one after the other.

use super::body::{content_length, is_same, mismatch, stored};
use crate::s3::ops::{Range, get_object, head_of};
use crate::s3::{self, Client, Download, Hasher, Kind, Store};
use bytes::Bytes;
use http::StatusCode;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// Bytes of a part.
const PART_BYTES: u64 = 8 << 20;
/// Parts that are fetched ahead.
const AHEAD: usize = 4;

/// Why a stream ended early.
#[derive(Debug)]
pub enum StreamError {
    /// A request failed, or what came was not what is stored.
    Request(s3::Error),
    /// The writer failed (a broken pipe, a full disk), or no runtime could be had.
    Write(io::Error),
}

/// Writes an object's bytes in order (all of them, or a range) and returns their number. Blocks;
/// starts a runtime of its own. Holds at most 40 MiB. What is written was complete; a stored
/// checksum of the whole object is compared at the end, when the bytes are out already.
///
/// # Errors
/// The request's or the writer's; what was written until then is a prefix of the object, unless the
/// error says that a checksum differs (`Corrupt`).
pub fn download_stream(
    store: &Arc<Store>,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
    range: Option<Range>,
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
            etag: String::new(),
        };
        source.run(range, write).await
    })
}

/// One object.
struct Source {
    client: Client,
    bucket: String,
    key: Vec<u8>,
    version: Option<String>,
    /// Without quotes; empty until the first answer.
    etag: String,
}

/// Where the bytes go, and what they come to.
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
    async fn get(&self, range: Option<Range>) -> Result<Download, s3::Error> {
        let Source { client, bucket, key, version, etag } = self;
        let etag = Some(&**etag).filter(|etag| !etag.is_empty());
        get_object(client, bucket, key, version.as_deref(), range, etag).await
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
        let start = range.map_or(0, |range| range.start);
        if start > 0 && first.status != StatusCode::PARTIAL_CONTENT {
            return Err(StreamError::Request(no_ranges()));
        }
        self.etag = head_of(&first.headers).etag;
        let stored = match range.is_none() && self.client.store().checks_downloads() {
            true => stored(&first.headers),
            false => None,
        };
        let hasher = stored.as_ref().map(|stored| Hasher::new(stored.algorithm));
        let mut sink = Sink { write, hasher, at: start };
        // Without a length nobody knows what to ask for: it comes in one piece.
        let end = content_length(&first.headers).map_or(u64::MAX, |bytes| start + bytes);
        let own = match end {
            u64::MAX => end,
            end => end.min(start + PART_BYTES),
        };
        let source = Rc::new(self);
        let mut ahead = Ahead { source: &source, next: own, end, parts: VecDeque::new() };
        let broke = first_part(&mut first, &mut sink, own, &mut ahead).await?;
        // It has more than its part: the others fetch that.
        drop(first);
        if let Some(error) = broke {
            if end == u64::MAX || !source.client.may_retry(1, &error).await {
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

    /// A range whole, gone on with from where the connection broke.
    async fn fetch(&self, range: Range) -> Result<Vec<Bytes>, s3::Error> {
        let (mut frames, mut at, mut tried) = (Vec::new(), range.start, 1);
        while at < range.end {
            let mut download = self.get(Some(Range { start: at, end: range.end })).await?;
            if download.status != StatusCode::PARTIAL_CONTENT && at > 0 {
                return Err(no_ranges());
            }
            let broke = loop {
                match download.chunk().await {
                    Ok(Some(frame)) if at + frame.len() as u64 > range.end => {
                        break Some(s3::Error::new(Kind::Corrupt, "GetObject", "too long a body"));
                    }
                    Ok(Some(frame)) => {
                        at += frame.len() as u64;
                        frames.push(frame);
                    }
                    Ok(None) if at == range.end => break None,
                    Ok(None) => {
                        let early = "the body ended early";
                        break Some(s3::Error::new(Kind::Corrupt, "GetObject", early));
                    }
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

/// Parts that are under way while others are written.
struct Ahead<'a> {
    source: &'a Rc<Source>,
    /// The first byte that nobody has asked for.
    next: u64,
    end: u64,
    parts: VecDeque<JoinHandle<Result<Vec<Bytes>, s3::Error>>>,
}

impl Ahead<'_> {
    /// Asks for as many parts as may be under way.
    fn fill(&mut self) {
        while self.parts.len() < AHEAD && self.next < self.end {
            let range = Range { start: self.next, end: self.end.min(self.next + PART_BYTES) };
            self.next = range.end;
            let source = Rc::clone(self.source);
            self.parts.push_back(spawn_local(async move { source.fetch(range).await }));
        }
    }

    /// The part to write next.
    fn next(&mut self) -> Option<JoinHandle<Result<Vec<Bytes>, s3::Error>>> {
        self.fill();
        self.parts.pop_front()
    }
}

/// Writes what the first answer has of its part; returns what broke it.
async fn first_part(
    first: &mut Download,
    sink: &mut Sink<'_>,
    own: u64,
    ahead: &mut Ahead<'_>,
) -> Result<Option<s3::Error>, StreamError> {
    ahead.fill();
    while sink.at < own {
        match first.chunk().await {
            Ok(Some(frame)) => {
                let room = usize::try_from(own - sink.at).unwrap_or(usize::MAX);
                sink.take(&[frame.slice(..frame.len().min(room))])?;
            }
            Ok(None) if own == u64::MAX => break,
            Ok(None) => {
                let early = "the body ended early";
                return Ok(Some(s3::Error::new(Kind::Corrupt, "GetObject", early)));
            }
            Err(error) => return Ok(Some(error)),
        }
    }
    Ok(None)
}

fn no_ranges() -> s3::Error {
    let why = "the server does not answer requests for ranges with ranges";
    s3::Error::new(Kind::NotImplemented, "GetObject", why)
}
