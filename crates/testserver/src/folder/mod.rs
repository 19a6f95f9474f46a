//! S3 server on a folder: s3s implements the protocol; objects are files with metadata beside them
//! ([`store`]). All paths are resolved below the folder ([`root`]).

mod attributes;
mod customer_key;
mod list;
mod locks;
mod names;
mod object;
mod parts;
pub mod payload;
mod rests;
mod root;
mod store;
mod sums;
mod versions;

use attributes::{Attributes, add_attributes, attributes_of};
use customer_key::{add_customer_key, customer_key_of};
use hakobu_core::percent::hex;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use locks::Locks;
use names::Names;
use object::{blocking, md5_of};
use rests::Rests;
use root::{Root, Temporary};
use s3s::auth::SimpleAuth;
use s3s::dto::*;
use s3s::path::check_bucket_name;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result, s3_error};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use store::{
    Folder, add_checksums, check_copy, check_read, checked_body, condition_of, full_object,
    source_of, span, type_of,
};
use sums::Sidecar;

/// Response to an operation.
type Answer<T> = S3Result<S3Response<T>>;

/// Creates the service on an existing folder.
///
/// # Errors
/// The folder cannot be used.
pub fn service(dir: &Path, access_key: String, secret_key: String) -> io::Result<S3Service> {
    let wrong = |why: &dyn std::fmt::Display| {
        io::Error::other(format!("'{}' cannot be served: {why}", dir.display()))
    };
    let root = Arc::new(Root::open(dir).map_err(|error| wrong(&error))?);
    let names = Names::load(&root).map_err(|error| wrong(&error))?;
    let (rests, locks) = (Rests::default(), Locks::default());
    let mut builder = S3ServiceBuilder::new(Folder { root, names, rests, locks });
    builder.set_auth(SimpleAuth::from_single(access_key, secret_key));
    Ok(builder.build())
}

#[async_trait::async_trait]
impl S3 for Folder {
    async fn create_bucket(&self, req: S3Request<CreateBucketInput>) -> Answer<CreateBucketOutput> {
        match self.root.make_dir(&req.input.bucket) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(s3_error!(BucketAlreadyExists, "there is such a bucket"))
            }
            made => made
                .map(|()| S3Response::new(CreateBucketOutput::default()))
                .map_err(S3Error::internal_error),
        }
    }

    async fn delete_bucket(&self, req: S3Request<DeleteBucketInput>) -> Answer<DeleteBucketOutput> {
        self.bucket(&req.input.bucket)?;
        // No object is created between the look and the removal.
        let _locks = self.locks.write_all();
        self.bucket(&req.input.bucket)?;
        if list::has_files(self, &req.input.bucket).map_err(S3Error::internal_error)? {
            return Err(s3_error!(BucketNotEmpty, "there are objects in it"));
        }
        self.root.remove_tree(&req.input.bucket).map_err(S3Error::internal_error)?;
        Ok(S3Response::new(DeleteBucketOutput {}))
    }

    async fn head_bucket(&self, req: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        self.bucket(&req.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> Answer<ListBucketsOutput> {
        let mut names = Vec::new();
        let read = self.root.each("", |name, _| names.push(name.to_owned()));
        read.map_err(S3Error::internal_error)?;
        names.retain(|name| check_bucket_name(name) && self.root.is_dir(name));
        names.sort_unstable();
        let bucket = |name: String| {
            let meta = self.root.meta(&name).ok();
            let made = meta.and_then(|meta| meta.created().or_else(|_| meta.modified()).ok());
            Bucket {
                creation_date: made.map(Timestamp::from),
                name: Some(name),
                ..Default::default()
            }
        };
        let buckets = Some(names.into_iter().map(bucket).collect());
        Ok(S3Response::new(ListBucketsOutput { buckets, ..Default::default() }))
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> Answer<GetBucketLocationOutput> {
        self.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn list_objects(&self, req: S3Request<ListObjectsInput>) -> Answer<ListObjectsOutput> {
        list::objects(self, req.input).map(S3Response::new)
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> Answer<ListObjectsV2Output> {
        list::objects_v2(self, req.input).map(S3Response::new)
    }

    async fn list_object_versions(
        &self,
        req: S3Request<ListObjectVersionsInput>,
    ) -> Answer<ListObjectVersionsOutput> {
        versions::list(self, req.input).map(S3Response::new)
    }

    async fn get_bucket_versioning(
        &self,
        req: S3Request<GetBucketVersioningInput>,
    ) -> Answer<GetBucketVersioningOutput> {
        self.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        let mut input = req.input;
        versions::check(input.version_id.as_deref())?;
        let key = customer_key_of!(input);
        let (stored, attributes) = self.read(&input.bucket, &input.key, key.as_deref()).await?;
        let etag = ETag::Strong(stored.etag.clone());
        check_read(input.if_match.as_ref(), input.if_none_match.as_ref(), &etag)?;
        let length = stored.meta.len();
        let span = match input.range {
            Some(range) => range.check(length)?,
            None => 0..length,
        };
        let mut output = GetObjectOutput {
            content_length: i64::try_from(span.end - span.start).ok(),
            content_range: input
                .range
                .map(|_| format!("bytes {}-{}/{length}", span.start, span.end - 1)),
            last_modified: stored.modified(),
            e_tag: Some(etag),
            accept_ranges: Some("bytes".into()),
            ..Default::default()
        };
        // The checksum is of the whole object.
        if span == (0..length) {
            output.checksum_type = type_of(&stored.sums);
            add_checksums!(output, stored.sums.clone());
        }
        add_attributes!(output, attributes);
        output.body = Some(stored.body(span));
        Ok(S3Response::new(output))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        let mut input = req.input;
        versions::check(input.version_id.as_deref())?;
        let key = customer_key_of!(input);
        let (stored, attributes) = self.read(&input.bucket, &input.key, key.as_deref()).await?;
        let etag = ETag::Strong(stored.etag.clone());
        check_read(input.if_match.as_ref(), input.if_none_match.as_ref(), &etag)?;
        let mut output = HeadObjectOutput {
            content_length: i64::try_from(stored.meta.len()).ok(),
            last_modified: stored.modified(),
            e_tag: Some(etag),
            accept_ranges: Some("bytes".into()),
            ..Default::default()
        };
        output.checksum_type = type_of(&stored.sums);
        add_checksums!(output, stored.sums);
        add_attributes!(output, attributes);
        Ok(S3Response::new(output))
    }

    async fn put_object(&self, mut req: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        let classes = ["STANDARD", "REDUCED_REDUNDANCY"];
        if req.input.storage_class.as_ref().is_some_and(|c| !classes.contains(&c.as_str())) {
            return Err(s3_error!(InvalidStorageClass, "there is no such class here"));
        }
        let bucket = req.input.bucket.clone();
        let key = customer_key_of!(req.input);
        let name = self.make(&bucket, &req.input.key)?;
        let (matches, none_match) = (req.input.if_match.take(), req.input.if_none_match.take());
        let conditions = (matches.as_ref(), none_match.as_ref());
        self.check_write(&bucket, &name, conditions)?;
        let (temporary, md5, verdict) = checked_body!(self, req);
        let etag = customer_key::etag(md5, key.as_ref());
        let attributes = Attributes { customer_key_md5: key, ..attributes_of!(req.input) };
        let object = (bucket.as_str(), req.input.key.as_str(), name.as_str());
        self.keep(temporary, object, conditions, &attributes, &etag, &verdict.sums)?;
        let mut output = PutObjectOutput { e_tag: Some(ETag::Strong(etag)), ..Default::default() };
        add_customer_key!(output, attributes.customer_key_md5);
        add_checksums!(output, verdict.sums);
        output.checksum_type = full_object();
        Ok(S3Response::new(output))
    }

    async fn copy_object(&self, mut req: S3Request<CopyObjectInput>) -> Answer<CopyObjectOutput> {
        let input = &mut req.input;
        let target_key = customer_key_of!(input);
        let (stored, kept) = source_of!(self, input);
        let etag = ETag::Strong(stored.etag.clone());
        check_copy(input, &etag, stored.modified())?;
        let name = self.make(&input.bucket, &input.key)?;
        // Conditions on the target are not part of the generated input.
        let of = |name| condition_of(req.headers.get(name));
        let (matches, none_match) = (of(IF_MATCH)?, of(IF_NONE_MATCH)?);
        let conditions = (matches.as_ref(), none_match.as_ref());
        self.check_write(&input.bucket, &name, conditions)?;
        let replaces = input.metadata_directive.as_ref().map(MetadataDirective::as_str)
            == Some(MetadataDirective::REPLACE);
        // The content of a copy with another key has another ETag.
        let new_etag = match target_key == kept.customer_key_md5 {
            true => stored.etag.clone(),
            false => customer_key::etag(stored.etag.clone(), target_key.as_ref()),
        };
        let attributes = if replaces { attributes_of!(input) } else { kept };
        let attributes = Attributes { customer_key_md5: target_key, ..attributes };
        let mut temporary = Temporary::new(&self.root).map_err(S3Error::internal_error)?;
        let mut file = stored.file;
        let copied = blocking(move || {
            io::copy(&mut file, &mut temporary.file)?;
            let modified = temporary.file.metadata()?.modified()?;
            Ok::<_, io::Error>((temporary, modified))
        });
        let (temporary, modified) = copied.await?.map_err(S3Error::internal_error)?;
        let object = (input.bucket.as_str(), input.key.as_str(), name.as_str());
        let sums = &stored.sums;
        self.keep(temporary, object, conditions, &attributes, &new_etag, sums)?;
        let result = CopyObjectResult {
            e_tag: Some(ETag::Strong(new_etag)),
            last_modified: Some(Timestamp::from(modified)),
            ..Default::default()
        };
        let output = CopyObjectOutput { copy_object_result: Some(result), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn delete_object(&self, req: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        self.bucket(&req.input.bucket)?;
        versions::check(req.input.version_id.as_deref())?;
        self.delete(&req.input.bucket, &req.input.key)?;
        let output = DeleteObjectOutput { version_id: req.input.version_id, ..Default::default() };
        Ok(S3Response::with_status(output, http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> Answer<DeleteObjectsOutput> {
        self.bucket(&req.input.bucket)?;
        let quiet = req.input.delete.quiet == Some(true);
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for object in req.input.delete.objects {
            let version = object.version_id;
            let done = versions::check(version.as_deref())
                .and_then(|()| self.delete(&req.input.bucket, &object.key));
            match done {
                Ok(()) => deleted.push(DeletedObject {
                    key: Some(object.key),
                    version_id: version,
                    ..Default::default()
                }),
                Err(why) => errors.push(Error {
                    key: Some(object.key),
                    version_id: version,
                    code: Some(why.code().as_str().to_owned()),
                    message: Some(why.to_string()),
                }),
            }
        }
        let deleted = (!quiet).then_some(deleted);
        let errors = (!errors.is_empty()).then_some(errors);
        Ok(S3Response::new(DeleteObjectsOutput { deleted, errors, ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        mut req: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        let input = &mut req.input;
        let key = customer_key_of!(input);
        let name = self.make(&input.bucket, &input.key)?;
        let attributes = Attributes { customer_key_md5: key, ..attributes_of!(input) };
        let upload = parts::begin(self, &input.bucket, &name, &attributes);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            upload_id: Some(upload.map_err(S3Error::internal_error)?),
            ..Default::default()
        }))
    }

    async fn upload_part(&self, mut req: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        let (upload, number) = (req.input.upload_id.clone(), req.input.part_number);
        parts::check_upload(self, &upload)?;
        parts::check_number(number)?;
        let key = customer_key_of!(req.input);
        let name = self.make(&req.input.bucket, &req.input.key)?;
        parts::check_key(self, &req.input.bucket, &name, &upload, key.as_deref())?;
        let (mut temporary, md5, verdict) = checked_body!(self, req);
        let md5 = customer_key::etag(md5, key.as_ref());
        parts::keep(self, &mut temporary, &upload, number, &md5, &verdict.sums)?;
        let mut output = UploadPartOutput { e_tag: Some(ETag::Strong(md5)), ..Default::default() };
        add_customer_key!(output, key);
        add_checksums!(output, verdict.sums);
        Ok(S3Response::new(output))
    }

    async fn upload_part_copy(
        &self,
        mut req: S3Request<UploadPartCopyInput>,
    ) -> Answer<UploadPartCopyOutput> {
        let (upload, number) = (req.input.upload_id.clone(), req.input.part_number);
        parts::check_upload(self, &upload)?;
        parts::check_number(number)?;
        let target_key = customer_key_of!(req.input);
        let target = self.make(&req.input.bucket, &req.input.key)?;
        parts::check_key(self, &req.input.bucket, &target, &upload, target_key.as_deref())?;
        let (stored, _) = source_of!(self, req.input);
        let span = span(req.input.copy_source_range.as_deref(), stored.meta.len())?;
        let mut temporary = Temporary::new(&self.root).map_err(S3Error::internal_error)?;
        let copied = blocking(move || {
            let md5 = md5_of(&stored.file, span, &mut temporary.file)?;
            Ok::<_, io::Error>((temporary, hex(&md5)))
        });
        let (mut temporary, md5) = copied.await?.map_err(S3Error::internal_error)?;
        parts::keep(self, &mut temporary, &upload, number, &md5, &Checksum::default())?;
        let result = CopyPartResult { e_tag: Some(ETag::Strong(md5)), ..Default::default() };
        let output = UploadPartCopyOutput { copy_part_result: Some(result), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        let name = self.make(&req.input.bucket, &req.input.key)?;
        parts::complete(self, req, name).await
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        let upload = &req.input.upload_id;
        let name = self.make(&req.input.bucket, &req.input.key)?;
        // One that is completed meanwhile is not aborted, and the other way round.
        let _lock = self.locks.write(&req.input.bucket, &req.input.key);
        parts::check_upload(self, upload)?;
        Sidecar::of_upload(&self.root, &req.input.bucket, &name, upload)
            .remove()
            .and_then(|()| parts::forget(self, upload))
            .map_err(S3Error::internal_error)?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    async fn list_parts(&self, req: S3Request<ListPartsInput>) -> Answer<ListPartsOutput> {
        parts::parts(self, req.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> Answer<ListMultipartUploadsOutput> {
        parts::uploads(self, req.input).map(S3Response::new)
    }
}
