//! The folder as a store: files of objects, conditions of reads, writes and copies, and receiving of bodies.

use super::attributes::Attributes;
use super::customer_key;
use super::locks::Locks;
use super::names::Names;
use super::object::{Stored, is_absent, md5_hex, receive};
use super::rests::Rests;
use super::root::{Root, Temporary};
use super::sums::{Checked, Sidecar, Verdict, taken};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use s3s::dto::{
    Checksum, ChecksumType, CopyObjectInput, CopySource, ETag, ETagCondition, StreamingBlob,
    Timestamp,
};
use s3s::path::check_bucket_name;
use s3s::{Body, S3Error, S3Result, TrailingHeaders, s3_error};
use std::io::ErrorKind;
use std::ops::Range as Span;
use std::sync::Arc;

/// A folder served as a store.
pub struct Folder {
    pub root: Arc<Root>,
    pub names: Names,
    pub rests: Rests,
    pub locks: Locks,
}

/// Bucket, key and file of an object.
pub type Named<'a> = (&'a str, &'a str, &'a str);

/// `If-Match` and `If-None-Match`.
pub type Conditions<'a> = (Option<&'a ETagCondition>, Option<&'a ETagCondition>);

impl Folder {
    /// Checks that a bucket exists.
    pub fn bucket(&self, bucket: &str) -> S3Result<()> {
        match check_bucket_name(bucket) && self.root.is_dir(bucket) {
            true => Ok(()),
            false => Err(s3_error!(NoSuchBucket, "there is no bucket {bucket}")),
        }
    }

    /// File of an existing object.
    pub fn find(&self, bucket: &str, key: &str) -> S3Result<String> {
        self.bucket(bucket)?;
        let name = self.names.find(bucket, key);
        name.filter(|name| self.root.is_file(&format!("{bucket}/{name}"))).ok_or_else(no_such_key)
    }

    /// File for writing an object.
    pub fn make(&self, bucket: &str, key: &str) -> S3Result<String> {
        self.bucket(bucket)?;
        self.names.make(bucket, key).map_err(S3Error::internal_error)
    }

    /// Opens an object that must exist, whose key of the caller has this MD5. Also returns its attributes.
    pub async fn read(
        &self,
        bucket: &str,
        key: &str,
        key_md5: Option<&str>,
    ) -> S3Result<(Stored, Attributes)> {
        let (found, attributes) = {
            let _lock = self.locks.read(bucket, key);
            let name = self.find(bucket, key)?;
            let found = Stored::find(&self.root, bucket, &name)?.ok_or_else(no_such_key)?;
            (found, Sidecar::of_metadata(&self.root, bucket, &name).attributes())
        };
        let stored = found.with_etag().await?;
        customer_key::fits(attributes.customer_key_md5.as_deref(), key_md5)?;
        Ok((stored, attributes))
    }

    /// Publishes a received file, and stores its metadata: of several requests for one key, one is kept as a whole.
    pub fn keep(
        &self,
        temporary: Temporary,
        object: Named<'_>,
        conditions: Conditions<'_>,
        attributes: &Attributes,
        etag: &str,
        sums: &Checksum,
    ) -> S3Result<()> {
        let (bucket, key, _) = object;
        let _lock = self.locks.write(bucket, key);
        self.keep_locked(temporary, object, conditions, attributes, etag, sums)
    }

    /// As [`Folder::keep`], for a caller that holds the lock of the object.
    pub fn keep_locked(
        &self,
        mut temporary: Temporary,
        (bucket, _, name): Named<'_>,
        conditions: Conditions<'_>,
        attributes: &Attributes,
        etag: &str,
        sums: &Checksum,
    ) -> S3Result<()> {
        self.bucket(bucket)?;
        // Another object may have been created while the body was received.
        self.check_write(bucket, name, conditions)?;
        let is_new = conditions.1.is_some_and(ETagCondition::is_any);
        let (mut name, mut published) =
            (name.to_owned(), temporary.publish(&format!("{bucket}/{name}"), is_new));
        if published.is_err() {
            let other = self.names.move_aside(bucket, &name).map_err(S3Error::internal_error)?;
            if let Some(other) = other {
                published = temporary.publish(&format!("{bucket}/{other}"), is_new);
                name = other;
            }
        }
        match published {
            Err(error) if is_new && error.kind() == ErrorKind::AlreadyExists => {
                return Err(s3_error!(PreconditionFailed, "the object exists"));
            }
            Err(error) if is_absent(&error) => {
                return Err(s3_error!(AccessDenied, "a link or a file is in the way of the key"));
            }
            other => other.map_err(S3Error::internal_error)?,
        }
        let written = Sidecar::of_metadata(&self.root, bucket, &name)
            .write_attributes(attributes)
            .and_then(|()| Sidecar::of(&self.root, bucket, &name).write(etag, sums));
        written.map_err(S3Error::internal_error)
    }

    /// Removes the object of a key with its metadata, if there is one.
    pub fn delete(&self, bucket: &str, key: &str) -> S3Result<()> {
        let _lock = self.locks.write(bucket, key);
        // A link that leads out of the folder is not an object.
        let Ok(name) = self.find(bucket, key) else { return Ok(()) };
        let removed = self
            .root
            .remove(&format!("{bucket}/{name}"))
            .and_then(|()| Sidecar::of(&self.root, bucket, &name).remove())
            .and_then(|()| Sidecar::of_metadata(&self.root, bucket, &name).remove());
        removed.map_err(S3Error::internal_error)
    }

    /// Checks the conditions of a write.
    pub fn check_write(
        &self,
        bucket: &str,
        name: &str,
        (matches, none_match): Conditions<'_>,
    ) -> S3Result<()> {
        if matches.is_none() && none_match.is_none() {
            return Ok(());
        }
        let etag = match Stored::find(&self.root, bucket, name)? {
            None => None,
            Some(there) => match there.etag {
                Some(etag) => Some(etag),
                None => Some(md5_hex(&there.file).map_err(S3Error::internal_error)?),
            },
        };
        let etag = etag.map(ETag::Strong);
        let is = |condition| etag.as_ref().is_some_and(|etag| is_it(condition, etag));
        if matches.is_some_and(|condition| !is(condition)) {
            return Err(s3_error!(PreconditionFailed, "the object is another one, or none"));
        }
        if none_match.is_some_and(is) {
            return Err(s3_error!(PreconditionFailed, "the object exists"));
        }
        Ok(())
    }

    /// Receives a body, an empty one if missing, and checks it.
    pub async fn received(
        &self,
        body: Option<StreamingBlob>,
        sent: Checksum,
        md5: Option<String>,
        headers: &HeaderMap,
        trailers: Option<TrailingHeaders>,
    ) -> S3Result<(Temporary, String, Verdict)> {
        let body = body.unwrap_or_else(|| StreamingBlob::from(Body::from(Bytes::new())));
        let trailer = headers.get("x-amz-trailer").and_then(|value| value.to_str().ok());
        let trailer = trailer.unwrap_or_default();
        let (body, verdict) = Checked::wrap(body, sent, md5, trailer, trailers);
        let received = receive(&self.root, body).await;
        let verdict = taken(&verdict);
        if verdict.is_wrong {
            return Err(s3_error!(BadDigest, "the body is not what its checksum says"));
        }
        let (temporary, md5) = received?;
        Ok((temporary, md5, verdict))
    }
}

fn no_such_key() -> S3Error {
    s3_error!(NoSuchKey, "there is no such key")
}

/// Bucket and key of the source of a copy.
pub fn source(from: &CopySource) -> S3Result<(&str, &str)> {
    match from {
        CopySource::Bucket { bucket, key, .. } => Ok((bucket, key)),
        _ => Err(s3_error!(NotImplemented, "only objects of buckets are copied")),
    }
}

/// Parses `x-amz-copy-source-range`: `bytes=FIRST-LAST`.
pub fn span(text: Option<&str>, length: u64) -> S3Result<Span<u64>> {
    let Some(text) = text else { return Ok(0..length) };
    let wrong = || s3_error!(InvalidArgument, "'{text}' is not a range: bytes=FIRST-LAST");
    let ends = text.strip_prefix("bytes=").and_then(|ends| ends.split_once('-'));
    let (first, last) = ends.ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    match first <= last && last < length {
        true => Ok(first..last + 1),
        false => Err(s3_error!(InvalidRange, "the object has {length} bytes")),
    }
}

/// Takes the checksums of a request.
macro_rules! checksums_of {
    ($input:expr) => {
        s3s::dto::Checksum {
            checksum_crc32: $input.checksum_crc32.take(),
            checksum_crc32c: $input.checksum_crc32c.take(),
            checksum_crc64nvme: $input.checksum_crc64nvme.take(),
            checksum_sha1: $input.checksum_sha1.take(),
            checksum_sha256: $input.checksum_sha256.take(),
            ..Default::default()
        }
    };
}
pub(super) use checksums_of;

/// Receives the body of a request with checksums.
macro_rules! checked_body {
    ($folder:expr, $req:expr) => {{
        let sent = $crate::folder::store::checksums_of!($req.input);
        let (body, md5) = ($req.input.body.take(), $req.input.content_md5.take());
        $folder.received(body, sent, md5, &$req.headers, $req.trailing_headers.take()).await?
    }};
}
pub(super) use checked_body;

/// Opens the source of a copy, as [`Folder::read`].
macro_rules! source_of {
    ($folder:expr, $input:expr) => {{
        let key_md5 = $crate::folder::customer_key::check((
            $input.copy_source_sse_customer_algorithm.take(),
            $input.copy_source_sse_customer_key.take(),
            $input.copy_source_sse_customer_key_md5.take(),
        ))?;
        let (bucket, key) = $crate::folder::store::source(&$input.copy_source)?;
        $folder.read(bucket, key, key_md5.as_deref()).await?
    }};
}
pub(super) use source_of;

/// Adds checksums to a response.
macro_rules! add_checksums {
    ($output:expr, $sums:expr) => {
        let sums = $sums;
        $output.checksum_crc32 = sums.checksum_crc32;
        $output.checksum_crc32c = sums.checksum_crc32c;
        $output.checksum_crc64nvme = sums.checksum_crc64nvme;
        $output.checksum_sha1 = sums.checksum_sha1;
        $output.checksum_sha256 = sums.checksum_sha256;
    };
}
pub(super) use add_checksums;

/// True if an object matches an ETag condition.
fn is_it(condition: &ETagCondition, etag: &ETag) -> bool {
    condition.as_etag().is_none_or(|wanted| etag.weak_cmp(wanted))
}

/// Returns the condition in a header.
pub fn condition_of(value: Option<&HeaderValue>) -> S3Result<Option<ETagCondition>> {
    let parsed = value.map(|value| value.to_str().ok().and_then(|text| text.parse().ok()));
    match parsed {
        Some(None) => Err(s3_error!(InvalidArgument, "a condition names no ETag")),
        parsed => Ok(parsed.flatten()),
    }
}

/// Checks the conditions of a read (RFC 9110, section 13).
pub fn check_read(
    matches: Option<&ETagCondition>,
    none_match: Option<&ETagCondition>,
    etag: &ETag,
) -> S3Result<()> {
    if matches.is_some_and(|condition| !is_it(condition, etag)) {
        return Err(s3_error!(PreconditionFailed, "the object is another one"));
    }
    if none_match.is_some_and(|condition| is_it(condition, etag)) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

pub fn full_object() -> Option<ChecksumType> {
    Some(ChecksumType::from_static(ChecksumType::FULL_OBJECT))
}

/// Type of the checksums returned with an object.
pub fn type_of(sums: &Checksum) -> Option<ChecksumType> {
    match sums.checksum_crc64nvme.is_some() || sums.checksum_crc32.is_some() {
        true => full_object(),
        false => None,
    }
}

/// Checks the conditions of a copy on its source; ETag conditions precede those on the time.
pub fn check_copy(
    input: &CopyObjectInput,
    etag: &ETag,
    modified: Option<Timestamp>,
) -> S3Result<()> {
    let is_later = |than: &Option<Timestamp>| {
        than.as_ref().zip(modified.as_ref()).map(|(than, modified)| modified > than)
    };
    let holds = match &input.copy_source_if_match {
        Some(condition) => is_it(condition, etag),
        None => is_later(&input.copy_source_if_unmodified_since) != Some(true),
    };
    let is_new = match &input.copy_source_if_none_match {
        Some(condition) => !is_it(condition, etag),
        None => is_later(&input.copy_source_if_modified_since) != Some(false),
    };
    match holds && is_new {
        true => Ok(()),
        false => Err(s3_error!(PreconditionFailed, "the source is not as the conditions say")),
    }
}
