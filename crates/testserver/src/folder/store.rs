//! The folder as a store: files of objects, conditions of reads, writes and copies, and receiving of bodies; the
//! attributes of objects, the keys of the caller (SSE-C), and the locks of objects and parts.

use super::list::PendingListings;
use super::object::{
    BodyVerdict, CheckedBody, Sidecar, StoredObject, is_absent, md5_hex, receive, take_verdict,
};
use super::paths::{KeyNames, ServedRoot, TempFile};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    Checksum, ChecksumType, CopyObjectInput, CopySource, ETag, ETagCondition, StreamingBlob,
    Timestamp, TimestampFormat,
};
use s3s::path::check_bucket_name;
use s3s::{Body, S3Error, S3Result, TrailingHeaders, s3_error};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::io::ErrorKind;
use std::ops::Range as Span;
use std::sync::Arc;

/// A folder served as a store.
pub struct FolderStore {
    pub root: Arc<ServedRoot>,
    pub names: KeyNames,
    pub rests: PendingListings,
    pub locks: ObjectLocks,
}

/// Bucket, key and file of an object.
pub type ObjectName<'a> = (&'a str, &'a str, &'a str);

/// `If-Match` and `If-None-Match`.
pub type ETagConditions<'a> = (Option<&'a ETagCondition>, Option<&'a ETagCondition>);

impl FolderStore {
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
    ) -> S3Result<(StoredObject, ObjectAttributes)> {
        let (found, attributes) = {
            let _lock = self.locks.read(bucket, key);
            let name = self.find(bucket, key)?;
            let found = StoredObject::find(&self.root, bucket, &name)?.ok_or_else(no_such_key)?;
            (found, Sidecar::of_metadata(&self.root, bucket, &name).attributes())
        };
        let stored = found.with_etag().await?;
        check_same_key(attributes.customer_key_md5.as_deref(), key_md5)?;
        Ok((stored, attributes))
    }

    /// Publishes a received file, and stores its metadata: of several requests for one key, one is kept as a whole.
    pub fn keep(
        &self,
        temporary: TempFile,
        object: ObjectName<'_>,
        conditions: ETagConditions<'_>,
        attributes: &ObjectAttributes,
        etag: &str,
        sums: &Checksum,
    ) -> S3Result<()> {
        let (bucket, key, _) = object;
        let _lock = self.locks.write(bucket, key);
        self.keep_locked(temporary, object, conditions, attributes, etag, sums)
    }

    /// As [`FolderStore::keep`], for a caller that holds the lock of the object.
    pub fn keep_locked(
        &self,
        mut temporary: TempFile,
        (bucket, _, name): ObjectName<'_>,
        conditions: ETagConditions<'_>,
        attributes: &ObjectAttributes,
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

    /// Removes the object of a key with its metadata, if there is one and it matches `If-Match`.
    pub fn delete(&self, bucket: &str, key: &str, matches: Option<&ETagCondition>) -> S3Result<()> {
        let _lock = self.locks.write(bucket, key);
        // A link that leads out of the folder is not an object.
        let Ok(name) = self.find(bucket, key) else { return Ok(()) };
        if StoredObject::find(&self.root, bucket, &name)?.is_some() {
            self.check_write(bucket, &name, (matches, None))?;
        }
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
        (matches, none_match): ETagConditions<'_>,
    ) -> S3Result<()> {
        if matches.is_none() && none_match.is_none() {
            return Ok(());
        }
        let etag = match StoredObject::find(&self.root, bucket, name)? {
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
    ) -> S3Result<(TempFile, String, BodyVerdict)> {
        let body = body.unwrap_or_else(|| StreamingBlob::from(Body::from(Bytes::new())));
        let trailer = headers.get("x-amz-trailer").and_then(|value| value.to_str().ok());
        let trailer = trailer.unwrap_or_default();
        let (body, verdict) = CheckedBody::wrap(body, sent, md5, trailer, trailers);
        let received = receive(&self.root, body).await;
        let verdict = take_verdict(&verdict);
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

/// Opens the source of a copy, as [`FolderStore::read`].
macro_rules! source_of {
    ($folder:expr, $input:expr) => {{
        let key_md5 = $crate::folder::store::check_customer_key((
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

/// Attributes of an object, stored as JSON beside it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ObjectAttributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_metadata: Option<HashMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_redirect_location: Option<String>,
    /// MD5 of the caller's key for the object (SSE-C). The content is stored as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_key_md5: Option<String>,
}

/// Extracts the attributes of a request.
macro_rules! attributes_of {
    ($input:expr) => {
        $crate::folder::store::ObjectAttributes {
            user_metadata: $input.metadata.take(),
            content_encoding: $input.content_encoding.take(),
            content_type: $input.content_type.take(),
            content_disposition: $input.content_disposition.take(),
            content_language: $input.content_language.take(),
            cache_control: $input.cache_control.take(),
            website_redirect_location: $input.website_redirect_location.take(),
            ..Default::default()
        }
        .expiring($input.expires.take())
    };
}
pub(super) use attributes_of;

/// Adds the attributes to a response.
macro_rules! add_attributes {
    ($output:expr, $attributes:expr) => {
        let attributes = $attributes;
        $output.expires = attributes.expires();
        $output.metadata = attributes.user_metadata;
        $output.content_encoding = attributes.content_encoding;
        $output.content_type = attributes.content_type;
        $output.content_disposition = attributes.content_disposition;
        $output.content_language = attributes.content_language;
        $output.cache_control = attributes.cache_control;
        $output.website_redirect_location = attributes.website_redirect_location;
        $crate::folder::store::add_customer_key!($output, attributes.customer_key_md5);
    };
}
pub(super) use add_attributes;

impl ObjectAttributes {
    pub fn expiring(mut self, at: Option<Timestamp>) -> ObjectAttributes {
        let mut text = Vec::new();
        let written = at.map(|at| at.format(TimestampFormat::DateTime, &mut text));
        self.expires =
            written.and_then(|done| done.ok()).and_then(|()| String::from_utf8(text).ok());
        self
    }

    pub fn expires(&self) -> Option<Timestamp> {
        Timestamp::parse(TimestampFormat::DateTime, self.expires.as_deref()?).ok()
    }
}

/// Headers of a request: algorithm, key, and MD5 of the key.
pub type CustomerKeyHeaders = (Option<String>, Option<String>, Option<String>);

/// Takes the headers of a request, and checks them.
macro_rules! customer_key_of {
    ($input:expr) => {
        $crate::folder::store::check_customer_key((
            $input.sse_customer_algorithm.take(),
            $input.sse_customer_key.take(),
            $input.sse_customer_key_md5.take(),
        ))?
    };
}
pub(super) use customer_key_of;

/// Adds the MD5 of a key to a response, if there is one.
macro_rules! add_customer_key {
    ($output:expr, $md5:expr) => {
        let md5: Option<String> = $md5;
        $output.sse_customer_algorithm = md5.as_ref().map(|_| "AES256".to_owned());
        $output.sse_customer_key_md5 = md5;
    };
}
pub(super) use add_customer_key;

/// Returns the MD5 of a sent key, if there is one.
pub fn check_customer_key(sent: CustomerKeyHeaders) -> S3Result<Option<String>> {
    let (algorithm, key, md5) = match sent {
        (None, None, None) => return Ok(None),
        (Some(algorithm), Some(key), Some(md5)) => (algorithm, key, md5),
        _ => return Err(s3_error!(InvalidArgument, "algorithm, key and MD5 go together")),
    };
    let key = STANDARD.decode(key).ok().filter(|key| key.len() == 32 && algorithm == "AES256");
    let Some(key) = key else {
        return Err(s3_error!(InvalidArgument, "the key is not one of AES-256"));
    };
    let mut hasher = Md5::new();
    hasher.update(&key);
    match STANDARD.encode(hasher.finalize()) == md5 {
        true => Ok(Some(md5)),
        false => Err(s3_error!(InvalidArgument, "the MD5 is not that of the key")),
    }
}

/// Checks that the sent key is that of the object.
pub fn check_same_key(stored: Option<&str>, sent: Option<&str>) -> S3Result<()> {
    match (stored, sent) {
        (Some(stored), Some(sent)) if stored != sent => {
            Err(s3_error!(AccessDenied, "the object has another key"))
        }
        (Some(_), None) => Err(s3_error!(InvalidRequest, "the object is encrypted with a key")),
        (None, Some(_)) => Err(s3_error!(InvalidRequest, "the object has no key")),
        _ => Ok(()),
    }
}

/// Returns the ETag of content with an MD5: another text of the same form if a key encrypts it.
pub fn customer_key_etag(md5: String, key: Option<&String>) -> String {
    match key {
        None => md5,
        Some(_) => md5.chars().rev().collect(),
    }
}

/// Number of locks; names share them. They are held for a few system calls, and never while a body is received.
const LOCKS: usize = 64;

/// The locks of a server. Nobody holds two of them, except whoever holds all.
#[derive(Debug)]
pub struct ObjectLocks {
    hasher: RandomState,
    objects: [RwLock<()>; LOCKS],
    parts: [RwLock<()>; LOCKS],
}

impl Default for ObjectLocks {
    fn default() -> ObjectLocks {
        let locks = || std::array::from_fn(|_| RwLock::new(()));
        ObjectLocks { hasher: RandomState::new(), objects: locks(), parts: locks() }
    }
}

impl ObjectLocks {
    fn place(&self, of: impl Hash) -> usize {
        (self.hasher.hash_one(of) % LOCKS as u64) as usize
    }

    /// Keeps an object as it is.
    pub fn read(&self, bucket: &str, key: &str) -> RwLockReadGuard<'_, ()> {
        self.objects[self.place((bucket, key))].read()
    }

    /// Allows to change an object.
    pub fn write(&self, bucket: &str, key: &str) -> RwLockWriteGuard<'_, ()> {
        self.objects[self.place((bucket, key))].write()
    }

    /// Keeps all objects as they are.
    pub fn write_all(&self) -> Vec<RwLockWriteGuard<'_, ()>> {
        self.objects.iter().map(RwLock::write).collect()
    }

    /// Allows to change a part of an upload.
    pub fn part(&self, upload: &str, number: i32) -> RwLockWriteGuard<'_, ()> {
        self.parts[self.place((upload, number))].write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked() {
        let key = [5; 32];
        let md5 = |key: &[u8]| {
            let mut hasher = Md5::new();
            hasher.update(key);
            Some(STANDARD.encode(hasher.finalize()))
        };
        let some = |text: &str| Some(text.to_owned());
        let whole = (some("AES256"), Some(STANDARD.encode(key)), md5(&key));
        assert_eq!(check_customer_key(whole.clone()).unwrap(), md5(&key));
        assert_eq!(check_customer_key((None, None, None)).unwrap(), None);
        for wrong in [
            (some("DES"), whole.1.clone(), whole.2.clone()),
            (whole.0.clone(), some("AAAA"), md5(&[0; 3])),
            (whole.0.clone(), whole.1.clone(), md5(&[6; 32])),
            (whole.0.clone(), whole.1.clone(), None),
        ] {
            assert!(check_customer_key(wrong).is_err());
        }
        assert!(check_same_key(Some("a"), Some("a")).is_ok() && check_same_key(None, None).is_ok());
        assert!(check_same_key(Some("a"), Some("b")).is_err());
        assert!(
            check_same_key(Some("a"), None).is_err() && check_same_key(None, Some("a")).is_err()
        );
    }
}
