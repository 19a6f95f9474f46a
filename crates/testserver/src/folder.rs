//! S3 server on a folder: s3s implements the protocol; objects are files with metadata beside them
//! ([`store`]). All paths are resolved below the folder ([`paths`]).

mod list;
mod object;
mod parts;
mod paths;
mod store;

use crate::protocol;
use hakobu_core::percent::hex;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use list::PendingListings;
use object::{MISMATCH, Sidecar, blocking, md5_of};
use paths::{KeyNames, ServedRoot, TempFile};
use s3s::auth::{S3Auth, SecretKey, SimpleAuth};
use s3s::dto::*;
use s3s::path::check_bucket_name;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, S3, S3Error, S3Request, S3Response, S3Result, s3_error};
use sha2::{Digest, Sha256};
use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use store::{
    FolderStore, ObjectAttributes, ObjectLocks, add_attributes, add_checksums, add_customer_key,
    attributes_of, check_copy, check_read, checked_body, condition_of, customer_key_etag,
    customer_key_of, full_object, source_of, span, type_of,
};

/// Response to an operation.
type OperationResult<T> = S3Result<S3Response<T>>;

/// Creates the service on an existing folder.
///
/// # Errors
/// The folder cannot be used.
pub fn service(dir: &Path, access_key: String, secret_key: String) -> io::Result<S3Service> {
    let wrong = |why: &dyn std::fmt::Display| {
        io::Error::other(format!("'{}' cannot be served: {why}", dir.display()))
    };
    let root = Arc::new(ServedRoot::open(dir).map_err(|error| wrong(&error))?);
    let names = KeyNames::load(&root).map_err(|error| wrong(&error))?;
    let (rests, locks) = (PendingListings::default(), ObjectLocks::default());
    let mut builder = S3ServiceBuilder::new(FolderStore { root, names, rests, locks });
    builder.set_auth(OneAccount(SimpleAuth::from_single(access_key, secret_key)));
    Ok(builder.build())
}

/// The keys of one account. An unknown access key is answered as S3 answers it.
struct OneAccount(SimpleAuth);

#[async_trait::async_trait]
impl S3Auth for OneAccount {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        self.0.get_secret_key(access_key).await.map_err(|_| {
            s3_error!(
                InvalidAccessKeyId,
                "The AWS Access Key Id you provided does not exist in our records."
            )
        })
    }
}

/// Storage classes of S3. They are accepted and not kept: objects of a folder are always at hand.
const STORAGE_CLASSES: &[&str] = &[
    "STANDARD",
    "REDUCED_REDUNDANCY",
    "STANDARD_IA",
    "ONEZONE_IA",
    "INTELLIGENT_TIERING",
    "GLACIER",
    "DEEP_ARCHIVE",
    "GLACIER_IR",
    "OUTPOSTS",
    "SNOW",
    "EXPRESS_ONEZONE",
];

fn check_storage_class(class: Option<&StorageClass>) -> S3Result<()> {
    match class.is_none_or(|class| STORAGE_CLASSES.contains(&class.as_str())) {
        true => Ok(()),
        false => {
            Err(s3_error!(InvalidStorageClass, "The storage class you specified is not valid"))
        }
    }
}

#[async_trait::async_trait]
impl S3 for FolderStore {
    async fn create_bucket(
        &self,
        req: S3Request<CreateBucketInput>,
    ) -> OperationResult<CreateBucketOutput> {
        match self.root.make_dir(&req.input.bucket) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(s3_error!(
                BucketAlreadyOwnedByYou,
                "Your previous request to create the named bucket succeeded and you already own it."
            )),
            made => made
                .map(|()| S3Response::new(CreateBucketOutput::default()))
                .map_err(S3Error::internal_error),
        }
    }

    async fn delete_bucket(
        &self,
        req: S3Request<DeleteBucketInput>,
    ) -> OperationResult<DeleteBucketOutput> {
        self.bucket(&req.input.bucket)?;
        // No object is created between the look and the removal.
        let _locks = self.locks.write_all();
        self.bucket(&req.input.bucket)?;
        if list::has_files(self, &req.input.bucket).map_err(S3Error::internal_error)? {
            return Err(s3_error!(BucketNotEmpty, "The bucket you tried to delete is not empty"));
        }
        self.root.remove_tree(&req.input.bucket).map_err(S3Error::internal_error)?;
        Ok(S3Response::new(DeleteBucketOutput {}))
    }

    async fn head_bucket(
        &self,
        req: S3Request<HeadBucketInput>,
    ) -> OperationResult<HeadBucketOutput> {
        self.bucket(&req.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn list_buckets(
        &self,
        _: S3Request<ListBucketsInput>,
    ) -> OperationResult<ListBucketsOutput> {
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
    ) -> OperationResult<GetBucketLocationOutput> {
        self.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn list_objects(
        &self,
        req: S3Request<ListObjectsInput>,
    ) -> OperationResult<ListObjectsOutput> {
        list::objects(self, req.input).map(S3Response::new)
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> OperationResult<ListObjectsV2Output> {
        list::objects_v2(self, req.input).map(S3Response::new)
    }

    async fn list_object_versions(
        &self,
        req: S3Request<ListObjectVersionsInput>,
    ) -> OperationResult<ListObjectVersionsOutput> {
        list_versions(self, req.input).map(S3Response::new)
    }

    async fn get_bucket_versioning(
        &self,
        req: S3Request<GetBucketVersioningInput>,
    ) -> OperationResult<GetBucketVersioningOutput> {
        self.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> OperationResult<GetObjectOutput> {
        let mut input = req.input;
        check_version(input.version_id.as_deref())?;
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

    async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> OperationResult<HeadObjectOutput> {
        let mut input = req.input;
        check_version(input.version_id.as_deref())?;
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

    async fn put_object(
        &self,
        mut req: S3Request<PutObjectInput>,
    ) -> OperationResult<PutObjectOutput> {
        check_storage_class(req.input.storage_class.as_ref())?;
        let bucket = req.input.bucket.clone();
        let key = customer_key_of!(req.input);
        let name = self.make(&bucket, &req.input.key)?;
        let (matches, none_match) = (req.input.if_match.take(), req.input.if_none_match.take());
        let conditions = (matches.as_ref(), none_match.as_ref());
        self.check_write(&bucket, &name, conditions)?;
        let (temporary, md5, verdict) = checked_body!(self, req);
        let etag = customer_key_etag(md5, key.as_ref());
        let attributes = ObjectAttributes { customer_key_md5: key, ..attributes_of!(req.input) };
        let object = (bucket.as_str(), req.input.key.as_str(), name.as_str());
        self.keep(temporary, object, conditions, &attributes, &etag, &verdict.sums)?;
        let mut output = PutObjectOutput { e_tag: Some(ETag::Strong(etag)), ..Default::default() };
        add_customer_key!(output, attributes.customer_key_md5);
        add_checksums!(output, verdict.sums);
        output.checksum_type = full_object();
        Ok(S3Response::new(output))
    }

    async fn copy_object(
        &self,
        mut req: S3Request<CopyObjectInput>,
    ) -> OperationResult<CopyObjectOutput> {
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
            false => customer_key_etag(stored.etag.clone(), target_key.as_ref()),
        };
        let attributes = if replaces { attributes_of!(input) } else { kept };
        let attributes = ObjectAttributes { customer_key_md5: target_key, ..attributes };
        let mut temporary = TempFile::new(&self.root).map_err(S3Error::internal_error)?;
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

    async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> OperationResult<DeleteObjectOutput> {
        self.bucket(&req.input.bucket)?;
        check_version(req.input.version_id.as_deref())?;
        self.delete(&req.input.bucket, &req.input.key, req.input.if_match.as_ref())?;
        let output = DeleteObjectOutput { version_id: req.input.version_id, ..Default::default() };
        Ok(S3Response::with_status(output, http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> OperationResult<DeleteObjectsOutput> {
        self.bucket(&req.input.bucket)?;
        let quiet = req.input.delete.quiet == Some(true);
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for object in req.input.delete.objects {
            let version = object.version_id;
            let matches = object.e_tag.map(ETagCondition::ETag);
            let done = check_version(version.as_deref())
                .and_then(|()| self.delete(&req.input.bucket, &object.key, matches.as_ref()));
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
    ) -> OperationResult<CreateMultipartUploadOutput> {
        let input = &mut req.input;
        check_storage_class(input.storage_class.as_ref())?;
        let key = customer_key_of!(input);
        let name = self.make(&input.bucket, &input.key)?;
        let attributes = ObjectAttributes { customer_key_md5: key, ..attributes_of!(input) };
        let upload = parts::begin(self, &input.bucket, &name, &attributes);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket.clone()),
            key: Some(input.key.clone()),
            upload_id: Some(upload.map_err(S3Error::internal_error)?),
            ..Default::default()
        }))
    }

    async fn upload_part(
        &self,
        mut req: S3Request<UploadPartInput>,
    ) -> OperationResult<UploadPartOutput> {
        let (upload, number) = (req.input.upload_id.clone(), req.input.part_number);
        parts::check_upload(self, &upload)?;
        parts::check_number(number)?;
        let key = customer_key_of!(req.input);
        let name = self.make(&req.input.bucket, &req.input.key)?;
        parts::check_key(self, &req.input.bucket, &name, &upload, key.as_deref())?;
        let (mut temporary, md5, verdict) = checked_body!(self, req);
        let md5 = customer_key_etag(md5, key.as_ref());
        parts::keep(self, &mut temporary, &upload, number, &md5, &verdict.sums)?;
        let mut output = UploadPartOutput { e_tag: Some(ETag::Strong(md5)), ..Default::default() };
        add_customer_key!(output, key);
        add_checksums!(output, verdict.sums);
        Ok(S3Response::new(output))
    }

    async fn upload_part_copy(
        &self,
        mut req: S3Request<UploadPartCopyInput>,
    ) -> OperationResult<UploadPartCopyOutput> {
        let (upload, number) = (req.input.upload_id.clone(), req.input.part_number);
        parts::check_upload(self, &upload)?;
        parts::check_number(number)?;
        let target_key = customer_key_of!(req.input);
        let target = self.make(&req.input.bucket, &req.input.key)?;
        parts::check_key(self, &req.input.bucket, &target, &upload, target_key.as_deref())?;
        let (stored, _) = source_of!(self, req.input);
        let span = span(req.input.copy_source_range.as_deref(), stored.meta.len())?;
        let mut temporary = TempFile::new(&self.root).map_err(S3Error::internal_error)?;
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
    ) -> OperationResult<CompleteMultipartUploadOutput> {
        let name = self.make(&req.input.bucket, &req.input.key)?;
        parts::complete(self, req, name).await
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> OperationResult<AbortMultipartUploadOutput> {
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

    async fn list_parts(&self, req: S3Request<ListPartsInput>) -> OperationResult<ListPartsOutput> {
        parts::parts(self, req.input).map(S3Response::new)
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> OperationResult<ListMultipartUploadsOutput> {
        parts::uploads(self, req.input).map(S3Response::new)
    }
}

/// The version ID of every object.
pub const NULL_VERSION: &str = "null";

/// `GET ?versions`.
pub fn list_versions(
    folder: &FolderStore,
    input: ListObjectVersionsInput,
) -> S3Result<ListObjectVersionsOutput> {
    let page = list::objects(
        folder,
        ListObjectsInput {
            bucket: input.bucket,
            prefix: input.prefix,
            delimiter: input.delimiter,
            encoding_type: input.encoding_type,
            marker: input.key_marker,
            max_keys: input.max_keys,
            ..Default::default()
        },
    )?;
    let class = || ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
    let version = |object: Object| ObjectVersion {
        key: object.key,
        version_id: Some(NULL_VERSION.to_owned()),
        is_latest: Some(true),
        last_modified: object.last_modified,
        e_tag: object.e_tag,
        size: object.size,
        storage_class: Some(class()),
        ..Default::default()
    };
    Ok(ListObjectVersionsOutput {
        name: page.name,
        prefix: page.prefix,
        key_marker: page.marker,
        max_keys: page.max_keys,
        is_truncated: page.is_truncated,
        next_key_marker: page.next_marker,
        versions: page.contents.map(|objects| objects.into_iter().map(version).collect()),
        common_prefixes: page.common_prefixes,
        delimiter: page.delimiter,
        encoding_type: page.encoding_type,
        ..Default::default()
    })
}

/// Checks that a requested version is the one that there is.
pub fn check_version(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some(NULL_VERSION) => Ok(()),
        Some(_) => Err(s3_error!(NoSuchVersion, "objects here have the version 'null' only")),
    }
}

type Failure = Box<dyn StdError + Send + Sync>;

/// Largest such body, bytes: ten thousand parts or a thousand keys fit.
const SMALL_BODY_BYTES_MAX: usize = 16 << 20;

/// Responds to a request. `is_small`: the library reads its body. For one that differs from `x-amz-content-sha256` the
/// library would return an internal error.
///
/// # Errors
/// The body cannot be received, or the library failed.
pub async fn respond(
    service: &S3Service,
    request: Request<Body>,
    is_small: bool,
) -> Result<Response<Body>, Failure> {
    let has_body = [Method::POST, Method::PUT].contains(request.method());
    let said = request.headers().get("x-amz-content-sha256").and_then(|said| said.to_str().ok());
    let is_sum = |said: &&str| said.len() == 64 && said.bytes().all(|c| c.is_ascii_hexdigit());
    let Some(said) = said.filter(is_sum).filter(|_| is_small && has_body).map(str::to_lowercase)
    else {
        return Ok(service.call(request).await?);
    };
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body = Limited::new(body, SMALL_BODY_BYTES_MAX).collect().await?.to_bytes();
    let sum = hex(&Sha256::digest(&body));
    // Like S3, check the signature first.
    let response = service.call(Request::from_parts(parts, Body::from(body))).await?;
    if sum == said || response.status() != StatusCode::INTERNAL_SERVER_ERROR {
        return Ok(response);
    }
    let (code, message) = MISMATCH;
    Ok(protocol::error_response(StatusCode::BAD_REQUEST, code, message, &path, None)?)
}
