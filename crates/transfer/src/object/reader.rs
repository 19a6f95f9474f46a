//! Reads a range of an object as a stream, over connections that may break: delivered bytes are kept, the rest is
//! requested again, and only from the same version of the object.

use super::budget::Buffer;
use super::core::Core;
use super::ends::Object;
use bytes::Bytes;
use hakobu_s3::ops::{GetOptions, ObjectHead, Range, get_object, head_of};
use hakobu_s3::{Client, Download, Error, ErrorKind};

/// Bytes without a break after which earlier breaks no longer count.
const PROGRESS_BYTES: u64 = 8 << 20;

/// A range of an object being received.
pub(super) struct Reader<'c, 'a> {
    core: &'c Core<'a>,
    client: &'c Client,
    object: &'c Object<'c>,
    end: u64,
    /// Size of the whole object, in bytes.
    size: u64,
    /// Offset of the next piece.
    offset: u64,
    /// Whether the whole object is read: then its stored checksums are requested.
    whole: bool,
    body: Option<Download>,
    head: Option<ObjectHead>,
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
            size,
            offset: range.start,
            whole: range.start == 0 && range.end == size,
            body: None,
            head: None,
            tried: 0,
            broken_at: 0,
        }
    }

    /// Returns the headers of the first answer; sends the request if there was none yet.
    ///
    /// # Errors
    /// Those of the request; `Precondition` if it is another object now.
    pub async fn head(&mut self) -> Result<&ObjectHead, Error> {
        if self.head.is_none() {
            self.open().await?;
        }
        self.head.as_ref().ok_or_else(|| broken("the answer had no headers"))
    }

    /// Returns the next piece; `None` after the last byte of the range.
    ///
    /// # Errors
    /// The last failure, after all tries.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if self.core.engine.is_stopped() {
                return Err(Error::new(ErrorKind::Stopped, "GetObject", "stopped"));
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
                    return Ok(Some(piece));
                }
                Ok(None) => return Ok(None),
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

    /// Reads the rest into one buffer.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub async fn all(&mut self) -> Result<Bytes, Error> {
        let room = usize::try_from(self.end - self.offset)
            .map_err(|_| broken("it does not fit into memory"))?;
        let mut buffer = Buffer::new(room);
        let mut filled = 0;
        while let Some(piece) = self.next().await? {
            let space = buffer.get_mut(filled..filled + piece.len());
            space
                .ok_or_else(|| broken("the answer is longer than the requested range"))?
                .copy_from_slice(&piece);
            filled += piece.len();
        }
        match filled == room {
            true => Ok(buffer.freeze()),
            false => Err(broken("the answer is shorter than the requested range")),
        }
    }

    async fn open(&mut self) -> Result<(), Error> {
        let again = self.head.as_ref().map(|head| head.etag.clone());
        let etag = again.as_deref().filter(|etag| !etag.is_empty()).or(self.object.etag);
        let from_start = self.whole && self.offset == 0;
        let range = (!from_start).then_some(Range { start: self.offset, end: self.end });
        let Object { bucket, key, version, .. } = self.object;
        let wanted = GetOptions { version: *version, range, etag, size: Some(self.size) };
        let body = get_object(self.client, bucket, key, &wanted).await?;
        if self.head.is_none() {
            self.head = Some(ObjectHead { size: body.size(), ..head_of(&body.headers) });
        }
        self.body = Some(body);
        Ok(())
    }
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "GetObject", what)
}
