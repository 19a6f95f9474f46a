//! Reading a stretch of an object as it comes, over connections that may break in the middle: what
//! was delivered is kept, the rest is asked for again, and only of the very same object.

use super::budget::Buffer;
use super::core::Core;
use super::moving::Failed;
use super::{Root, Side};
use crate::error::Operation;
use crate::s3::ops::{Head, Range, get_object, head_of};
use crate::s3::{Client, Download, Error, Kind};
use bytes::Bytes;
use http::StatusCode;

/// Bytes without a break after which earlier breaks no longer count.
const PROGRESS_BYTES: u64 = 8 << 20;

/// An object of one of the two stores.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    /// Its bucket.
    pub bucket: &'a str,
    /// Its whole key.
    pub key: Vec<u8>,
    /// Its version, where one was asked for.
    pub version: Option<&'a str>,
    /// Its ETag, where it is known: only that object is read.
    pub etag: Option<&'a str>,
}

impl<'a> Object<'a> {
    /// The object of a name below a root; `None` where that is no store. An empty ETag is not
    /// known.
    pub fn below(root: &'a Root, name: &[u8], etag: &'a str) -> Option<Object<'a>> {
        let Root::Store { bucket, .. } = root else { return None };
        let etag = (!etag.is_empty()).then_some(etag);
        Some(Object { bucket, key: root.key(name), version: None, etag })
    }
}

/// A stretch of an object on its way to us.
pub(super) struct Reader<'c, 'a> {
    core: &'c Core<'a>,
    client: &'c Client,
    object: &'c Object<'c>,
    end: u64,
    /// Where the next piece begins.
    offset: u64,
    /// Whether the whole object is wanted: then its stored checksums come along.
    whole: bool,
    body: Option<Download>,
    head: Option<Head>,
    tried: u32,
    broken_at: u64,
}

impl<'c, 'a> Reader<'c, 'a> {
    /// Prepares to read `range`; `size` is that of the whole object.
    pub fn new(
        core: &'c Core<'a>,
        client: &'c Client,
        object: &'c Object<'c>,
        range: Range,
        size: u64,
    ) -> Reader<'c, 'a> {
        Reader {
            core,
            client,
            object,
            end: range.end,
            offset: range.start,
            whole: range.start == 0 && range.end == size,
            body: None,
            head: None,
            tried: 0,
            broken_at: 0,
        }
    }

    /// What the first answer said of the object; asks now where nothing was asked yet.
    ///
    /// # Errors
    /// The request's; `Precondition` where it is another object by now.
    pub async fn head(&mut self) -> Result<&Head, Error> {
        if self.head.is_none() {
            self.open().await?;
        }
        self.head.as_ref().ok_or_else(|| broken("the answer had no headers"))
    }

    /// The next piece; `None` after the last byte of the range.
    ///
    /// # Errors
    /// The last failure, when the tries are spent.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.core.engine.is_stopped() {
                return Err(Error::new(Kind::Stopped, "GetObject", "stopped"));
            }
            let result = match &mut self.body {
                Some(body) => body.chunk().await,
                None if self.offset >= self.end && self.head.is_some() => return Ok(None),
                None => {
                    self.open().await?;
                    continue;
                }
            };
            match result {
                Ok(Some(piece)) => {
                    self.offset += piece.len() as u64;
                    if self.offset > self.end {
                        return Err(broken("the server sent more than was asked for"));
                    }
                    return Ok(Some(piece));
                }
                Ok(None) if self.offset == self.end => return Ok(None),
                // Less came than we asked for, and it was not a broken connection.
                Ok(None) => return Err(broken("the server sent less than was asked for")),
                Err(error) => {
                    self.body = None;
                    if self.offset >= self.broken_at + PROGRESS_BYTES {
                        self.tried = 0;
                    }
                    self.broken_at = self.offset;
                    self.tried += 1;
                    if !self.client.may_retry(self.tried, &error).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reads everything that is left into one buffer.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub async fn all(&mut self) -> Result<Bytes, Error> {
        let room = usize::try_from(self.end - self.offset)
            .map_err(|_| broken("it does not fit into memory"))?;
        let mut buffer = Buffer::new(room);
        let mut filled = 0;
        while let Some(piece) = self.next().await? {
            if let Some(space) = buffer.get_mut(filled..filled + piece.len()) {
                space.copy_from_slice(&piece);
            }
            filled += piece.len();
        }
        Ok(buffer.freeze())
    }

    async fn open(&mut self) -> Result<(), Error> {
        let again = self.head.as_ref().map(|head| head.etag.clone());
        let etag = again.as_deref().filter(|etag| !etag.is_empty()).or(self.object.etag);
        let from_start = self.whole && self.offset == 0;
        let range = (!from_start).then_some(Range { start: self.offset, end: self.end });
        let Object { bucket, key, version, .. } = self.object;
        let body = get_object(self.client, bucket, key, *version, range, etag).await?;
        if range.is_some() && body.status != StatusCode::PARTIAL_CONTENT {
            return Err(broken("the server does not give parts of objects"));
        }
        if self.head.is_none() {
            self.head = Some(head_of(&body.headers));
        }
        self.body = Some(body);
        Ok(())
    }
}

fn broken(what: &str) -> Error {
    Error::new(Kind::Corrupt, "GetObject", what)
}

impl Core<'_> {
    /// The client of a side.
    ///
    /// # Errors
    /// There is none, which the planner prevents.
    pub(super) fn store(&self, side: Side) -> Result<&Client, Failed> {
        let reason = Failed::Reason(Operation::Read, side, "there is no store on this side");
        self.client(side).ok_or(reason)
    }
}

/// A failed read of a source: an object that is gone has vanished, another one in its place is
/// told as such.
pub(super) fn read_failed(error: Error) -> Failed {
    match error.kind {
        Kind::NotFound => Failed::Vanished(Operation::Read),
        Kind::Precondition => Failed::Reason(Operation::Read, Side::Source, CHANGED),
        _ => Failed::Request(Operation::Read, Side::Source, error),
    }
}

/// Said of a source that is another one than was listed.
pub(super) const CHANGED: &str = "it changed since it was listed; the next run moves it";
