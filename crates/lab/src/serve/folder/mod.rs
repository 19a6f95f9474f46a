//! S3 on a folder: s3s speaks the protocol, s3s-fs keeps the objects, and what is between them here
//! corrects what would mislead a correct client: keys that are no paths, listings, checksums,
//! conditional reads, buckets that are missing or not empty.

mod list;
mod names;
mod parts;
mod sums;

use bytes::Bytes;
use names::Names;
use s3s::auth::SimpleAuth;
use s3s::dto::*;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3, S3Error, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;
use std::io;
use std::path::{Path, PathBuf};
use sums::{Checked, Sidecar, taken};

/// The service on a folder that exists.
///
/// # Errors
/// The folder cannot be used.
pub fn service(dir: &Path, access_key: String, secret_key: String) -> io::Result<S3Service> {
    let wrong = |why: &dyn std::fmt::Display| {
        io::Error::other(format!("'{}' cannot be served: {why}", dir.display()))
    };
    let root = dir.canonicalize().map_err(|error| wrong(&error))?;
    let store = FileSystem::new(&root).map_err(|_| wrong(&"it cannot be opened"))?;
    let names = Names::load(&root).map_err(|error| wrong(&error))?;
    let mut builder = S3ServiceBuilder::new(Folder { store, root, names });
    builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
    Ok(builder.build())
}

/// The folder.
struct Folder {
    store: FileSystem,
    root: PathBuf,
    names: Names,
}

impl Folder {
    /// Refuses a bucket that is not there.
    fn bucket(&self, bucket: &str) -> S3Result<()> {
        match self.root.join(bucket).is_dir() {
            true => Ok(()),
            false => Err(s3_error!(NoSuchBucket, "there is no bucket {bucket}")),
        }
    }

    /// Where an object that must exist is kept.
    fn find(&self, bucket: &str, key: &str) -> S3Result<String> {
        self.bucket(bucket)?;
        let name = self.names.find(bucket, key);
        name.filter(|name| self.root.join(bucket).join(name).is_file())
            .ok_or_else(|| s3_error!(NoSuchKey, "there is no such key"))
    }

    /// Where an object is to be kept.
    fn make(&self, bucket: &str, key: &str) -> S3Result<String> {
        self.bucket(bucket)?;
        self.names.make(bucket, key).map_err(S3Error::internal_error)
    }

    /// Removes an object and what is known of it; it may be gone already.
    fn remove(&self, bucket: &str, name: &str) {
        let _ = std::fs::remove_file(self.root.join(bucket).join(name));
        Sidecar::of(&self.root, bucket, name).remove();
        Sidecar::of_metadata(&self.root, bucket, name).remove();
    }

    /// Whether a bucket has an object.
    fn has_objects(&self, bucket: &str) -> S3Result<bool> {
        let input = ListObjectsV2Input {
            bucket: bucket.to_owned(),
            max_keys: Some(1),
            ..Default::default()
        };
        Ok(list::objects_v2(self, input)?.key_count != Some(0))
    }
}

/// The `x-amz-trailer` header.
fn trailer<T>(req: &S3Request<T>) -> String {
    let value = req.headers.get("x-amz-trailer").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

/// The body that was sent; none is an empty one.
fn body(sent: Option<StreamingBlob>) -> StreamingBlob {
    sent.unwrap_or_else(|| StreamingBlob::from(Body::from(Bytes::new())))
}

fn bad_digest() -> S3Error {
    s3_error!(BadDigest, "the body is not what its checksum says")
}

/// Whether an object is the one that a condition names.
fn is_it(condition: &ETagCondition, etag: Option<&ETag>) -> bool {
    condition.as_etag().is_none_or(|wanted| etag.is_some_and(|etag| etag.weak_cmp(wanted)))
}

/// Judges the conditions of a read (RFC 9110, section 13).
fn check_read(
    matches: Option<&ETagCondition>,
    none_match: Option<&ETagCondition>,
    etag: Option<&ETag>,
) -> S3Result<()> {
    if matches.is_some_and(|condition| !is_it(condition, etag)) {
        return Err(s3_error!(PreconditionFailed, "the object is another one"));
    }
    if none_match.is_some_and(|condition| is_it(condition, etag)) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

fn full_object() -> Option<ChecksumType> {
    Some(ChecksumType::from_static(ChecksumType::FULL_OBJECT))
}

#[async_trait::async_trait]
impl S3 for Folder {
    async fn create_bucket(
        &self,
        req: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        self.store.create_bucket(req).await
    }

    async fn delete_bucket(
        &self,
        req: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        if self.has_objects(&req.input.bucket)? {
            return Err(s3_error!(BucketNotEmpty, "there are objects in it"));
        }
        self.store.delete_bucket(req).await
    }

    async fn head_bucket(
        &self,
        req: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.store.head_bucket(req).await
    }

    async fn list_buckets(
        &self,
        req: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let mut response = self.store.list_buckets(req).await?;
        response.output.buckets.iter_mut().for_each(|all| all.sort_by(|a, b| a.name.cmp(&b.name)));
        Ok(response)
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.store.get_bucket_location(req).await
    }

    async fn list_objects(
        &self,
        req: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        list::objects(self, req.input).map(S3Response::new)
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        list::objects_v2(self, req.input).map(S3Response::new)
    }

    async fn get_object(
        &self,
        mut req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let name = self.find(&req.input.bucket, &req.input.key)?;
        let path = self.root.join(&req.input.bucket).join(&name);
        if let Some(Range::Suffix { length }) = &mut req.input.range {
            // s3s-fs would seek to before the start.
            *length = (*length).min(path.metadata().map_or(0, |meta| meta.len()));
        }
        let (matches, none_match) = (req.input.if_match.take(), req.input.if_none_match.take());
        let req = req.map_input(|input| GetObjectInput { key: name, ..input });
        let mut response = self.store.get_object(req).await?;
        let output = &mut response.output;
        check_read(matches.as_ref(), none_match.as_ref(), output.e_tag.as_ref())?;
        output.accept_ranges = Some("bytes".into());
        if output.checksum_crc64nvme.is_some() || output.checksum_crc32.is_some() {
            output.checksum_type = full_object();
        }
        Ok(response)
    }

    async fn head_object(
        &self,
        mut req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let name = self.find(&req.input.bucket, &req.input.key)?;
        let (matches, none_match) = (req.input.if_match.take(), req.input.if_none_match.take());
        let req = req.map_input(|input| HeadObjectInput { key: name, ..input });
        let mut response = self.store.head_object(req).await?;
        let output = &mut response.output;
        check_read(matches.as_ref(), none_match.as_ref(), output.e_tag.as_ref())?;
        output.accept_ranges = Some("bytes".into());
        if output.checksum_crc64nvme.is_some() || output.checksum_crc32.is_some() {
            output.checksum_type = full_object();
        }
        Ok(response)
    }

    async fn put_object(
        &self,
        mut req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let bucket = req.input.bucket.clone();
        let name = self.make(&bucket, &req.input.key)?;
        let sent = Checksum {
            checksum_crc32: req.input.checksum_crc32.take(),
            checksum_crc32c: req.input.checksum_crc32c.take(),
            checksum_crc64nvme: req.input.checksum_crc64nvme.take(),
            checksum_sha1: req.input.checksum_sha1.take(),
            checksum_sha256: req.input.checksum_sha256.take(),
            ..Checksum::default()
        };
        let (md5, trailer) = (req.input.content_md5.take(), trailer(&req));
        let body = body(req.input.body.take());
        let (body, verdict) = Checked::wrap(body, sent, md5, &trailer, req.trailing_headers.take());
        // All checking is done by then.
        req.input.checksum_algorithm = None;
        req.input.body = Some(body);
        req.input.key.clone_from(&name);
        let response = self.store.put_object(req).await;
        let verdict = taken(&verdict);
        if verdict.is_wrong {
            return Err(bad_digest());
        }
        let mut response = response?;
        let output = &mut response.output;
        let etag = output.e_tag.as_ref().map(ETag::value).unwrap_or_default();
        let sidecar = Sidecar::of(&self.root, &bucket, &name);
        sidecar.write(etag, &verdict.sums).map_err(S3Error::internal_error)?;
        output.checksum_crc32 = verdict.sums.checksum_crc32;
        output.checksum_crc32c = verdict.sums.checksum_crc32c;
        output.checksum_crc64nvme = verdict.sums.checksum_crc64nvme;
        output.checksum_sha1 = verdict.sums.checksum_sha1;
        output.checksum_sha256 = verdict.sums.checksum_sha256;
        output.checksum_type = full_object();
        Ok(response)
    }

    async fn copy_object(
        &self,
        mut req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        if let CopySource::Bucket { bucket, key, .. } = &mut req.input.copy_source {
            *key = self.find(bucket, key)?.into();
        }
        req.input.key = self.make(&req.input.bucket, &req.input.key)?;
        self.store.copy_object(req).await
    }

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.bucket(&req.input.bucket)?;
        if let Ok(name) = self.find(&req.input.bucket, &req.input.key) {
            self.remove(&req.input.bucket, &name);
        }
        Ok(S3Response::with_status(DeleteObjectOutput::default(), http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        self.bucket(&req.input.bucket)?;
        let quiet = req.input.delete.quiet == Some(true);
        let mut deleted = Vec::new();
        for object in req.input.delete.objects {
            if let Ok(name) = self.find(&req.input.bucket, &object.key) {
                self.remove(&req.input.bucket, &name);
            }
            deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
        }
        let deleted = (!quiet).then_some(deleted);
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let key = req.input.key.clone();
        let name = self.make(&req.input.bucket, &key)?;
        let req = req.map_input(|input| CreateMultipartUploadInput { key: name, ..input });
        let mut response = self.store.create_multipart_upload(req).await?;
        response.output.key = Some(key);
        Ok(response)
    }

    async fn upload_part(
        &self,
        mut req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let (upload, number) = (req.input.upload_id.clone(), req.input.part_number);
        parts::check_upload(self, &upload)?;
        let sent = Checksum {
            checksum_crc32: req.input.checksum_crc32.take(),
            checksum_crc32c: req.input.checksum_crc32c.take(),
            checksum_crc64nvme: req.input.checksum_crc64nvme.take(),
            checksum_sha1: req.input.checksum_sha1.take(),
            checksum_sha256: req.input.checksum_sha256.take(),
            ..Checksum::default()
        };
        let (md5, trailer) = (req.input.content_md5.take(), trailer(&req));
        let body = body(req.input.body.take());
        let (body, verdict) = Checked::wrap(body, sent, md5, &trailer, req.trailing_headers.take());
        req.input.body = Some(body);
        let response = self.store.upload_part(req).await;
        let verdict = taken(&verdict);
        if verdict.is_wrong {
            return Err(bad_digest());
        }
        let mut response = response?;
        let output = &mut response.output;
        let etag = output.e_tag.as_ref().map(ETag::value).unwrap_or_default();
        let sidecar = Sidecar::of_part(&self.root, &upload, number);
        sidecar.write(etag, &verdict.sums).map_err(S3Error::internal_error)?;
        output.checksum_crc32 = verdict.sums.checksum_crc32;
        output.checksum_crc32c = verdict.sums.checksum_crc32c;
        output.checksum_crc64nvme = verdict.sums.checksum_crc64nvme;
        output.checksum_sha1 = verdict.sums.checksum_sha1;
        output.checksum_sha256 = verdict.sums.checksum_sha256;
        Ok(response)
    }

    async fn upload_part_copy(
        &self,
        mut req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let (upload, number) = (req.input.upload_id.clone(), req.input.part_number);
        parts::check_upload(self, &upload)?;
        if let CopySource::Bucket { bucket, key, .. } = &mut req.input.copy_source {
            *key = self.find(bucket, key)?.into();
        }
        let response = self.store.upload_part_copy(req).await?;
        let result = response.output.copy_part_result.as_ref();
        let etag = result.and_then(|result| result.e_tag.as_ref()).map(ETag::value);
        let sidecar = Sidecar::of_part(&self.root, &upload, number);
        let kept = sidecar.write(etag.unwrap_or_default(), &Checksum::default());
        kept.map_err(S3Error::internal_error)?;
        Ok(response)
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let name = self.make(&req.input.bucket, &req.input.key)?;
        parts::complete(self, req, name).await
    }

    async fn abort_multipart_upload(
        &self,
        mut req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let upload = req.input.upload_id.clone();
        parts::check_upload(self, &upload)?;
        req.input.key = self.make(&req.input.bucket, &req.input.key)?;
        let response = self.store.abort_multipart_upload(req).await?;
        parts::forget(self, &upload)?;
        Ok(response)
    }

    async fn list_parts(
        &self,
        req: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        parts::parts(self, req.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        parts::uploads(self, req.input).map(S3Response::new)
    }
}
