//! Multipart uploads. Parts are checked on arrival, and by ETag and size on completion; the completed object
//! gets a checksum of the whole before it becomes visible.

use super::list::{encoded, is_url};
use super::object::{self, Sidecar, blocking, md5_of};
use super::paths::{ServedRoot, TempFile};
use super::store::{
    FolderStore, ObjectAttributes, add_checksums, check_same_key, checksums_of, customer_key_etag,
    full_object,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hakobu_core::percent::hex;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    Checksum, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart, ETag,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListPartsInput, ListPartsOutput,
    MultipartUpload, Part, Timestamp,
};
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use std::io::{self, Write};
use std::sync::Arc;

/// Smallest part other than the last one, bytes (Amazon S3 user guide, "Multipart upload limits").
const PART_BYTES_MIN: u64 = 5 << 20;
/// Largest part number.
const NUMBER_MAX: i32 = 10_000;

/// Marker file of an upload.
fn begun_file(upload: &str) -> String {
    format!(".upload-{upload}.json")
}

/// Starts an upload of an object stored as `name`; returns its id.
pub fn begin(
    folder: &FolderStore,
    bucket: &str,
    name: &str,
    attributes: &ObjectAttributes,
) -> io::Result<String> {
    let upload = format!("{:032x}", fastrand::u128(..));
    let mut file = TempFile::new(&folder.root)?;
    file.file.write_all(b"null")?;
    Sidecar::of_upload(&folder.root, bucket, name, &upload).write_attributes(attributes)?;
    file.publish(&begun_file(&upload), true)?;
    Ok(upload)
}

/// Checks that an upload exists. Malformed ids could be paths to elsewhere.
pub fn check_upload(folder: &FolderStore, upload: &str) -> S3Result<()> {
    let plain = upload.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match plain && folder.root.is_file(&begun_file(upload)) {
        true => Ok(()),
        false => Err(s3_error!(NoSuchUpload, "there is no such upload")),
    }
}

/// Checks that the key of a part is that of its upload.
pub fn check_key(
    folder: &FolderStore,
    bucket: &str,
    name: &str,
    upload: &str,
    key: Option<&str>,
) -> S3Result<()> {
    let begun = Sidecar::of_upload(&folder.root, bucket, name, upload).attributes();
    check_same_key(begun.customer_key_md5.as_deref(), key)
}

/// Checks the range of a part number.
pub fn check_number(number: i32) -> S3Result<()> {
    match (1..=NUMBER_MAX).contains(&number) {
        true => Ok(()),
        false => Err(s3_error!(InvalidArgument, "part numbers are from 1 to {NUMBER_MAX}")),
    }
}

/// File of a part.
pub fn part_path(upload: &str, number: i32) -> String {
    format!(".upload_id-{upload}.part-{number}")
}

/// Publishes a received part with its checksums.
pub fn keep(
    folder: &FolderStore,
    temporary: &mut TempFile,
    upload: &str,
    number: i32,
    etag: &str,
    sums: &Checksum,
) -> S3Result<()> {
    let _lock = folder.locks.part(upload, number);
    let (path, sidecar) =
        (part_path(upload, number), Sidecar::of_part(&folder.root, upload, number));
    let kept = temporary.publish(&path, false).and_then(|()| sidecar.write(etag, sums));
    kept.map_err(S3Error::internal_error)?;
    // Whoever ended the upload meanwhile may have removed its parts before this one was there.
    check_upload(folder, upload).inspect_err(|_| {
        // What remains is found by no request.
        let _ = folder.root.remove(&path).and_then(|()| sidecar.remove());
    })
}

/// Compares the parts named by a client with existing ones; returns their numbers and ETags.
fn check_parts(
    folder: &FolderStore,
    upload: &str,
    parts: &[CompletedPart],
) -> S3Result<Vec<(i32, Option<String>)>> {
    let root = &folder.root;
    let mut checked: Vec<(i32, Option<String>)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let number =
            part.part_number.ok_or_else(|| s3_error!(MalformedXML, "a part has no number"))?;
        check_number(number)?;
        if let Some((before, _)) = checked.last().filter(|(before, _)| number <= *before) {
            return Err(s3_error!(InvalidPartOrder, "part {number} comes after part {before}"));
        }
        let missing = || missing(number);
        let _lock = folder.locks.part(upload, number);
        let etag = Sidecar::of_part(root, upload, number).etag();
        let named = part.e_tag.as_ref().map(ETag::value);
        let meta = root.meta(&part_path(upload, number)).map_err(|_| missing())?;
        if named.is_some() && named != etag.as_deref() {
            return Err(missing());
        }
        if at + 1 < parts.len() && meta.len() < PART_BYTES_MIN {
            return Err(s3_error!(EntityTooSmall, "part {number} is smaller than 5 MiB"));
        }
        checked.push((number, etag));
    }
    match checked.is_empty() {
        true => Err(s3_error!(MalformedXML, "there is no part to make an object of")),
        false => Ok(checked),
    }
}

fn missing(number: i32) -> S3Error {
    s3_error!(InvalidPart, "part {number} is not what was uploaded")
}

/// Concatenates parts in a temporary file, and checks that they are those that were named: another one may have
/// replaced one of them. Also returns the ETag of the whole. `key_md5` is that of the caller's key.
fn join(
    root: &Arc<ServedRoot>,
    upload: &str,
    parts: &[(i32, Option<String>)],
    key_md5: Option<&String>,
    hasher: ChecksumHasher,
) -> S3Result<(TempFile, String, Checksum)> {
    let mut temporary = TempFile::new(root).map_err(S3Error::internal_error)?;
    let mut md5 = Md5::new();
    let mut to = Hashing { file: &mut temporary.file, hasher };
    for (number, etag) in parts {
        let (part, _) = root.file(&part_path(upload, *number)).map_err(|_| missing(*number))?;
        let own = md5_of(&part, 0..u64::MAX, &mut to).map_err(S3Error::internal_error)?;
        let found = customer_key_etag(hex(&own), key_md5);
        // Parts that are copied have the MD5 itself.
        if etag.as_ref().is_some_and(|etag| *etag != found && *etag != hex(&own)) {
            return Err(missing(*number));
        }
        md5.update(&own);
    }
    let sums = to.hasher.finalize();
    Ok((temporary, format!("{}-{}", hex(&md5.finalize()), parts.len()), sums))
}

/// A writer to a file that also hashes.
struct Hashing<'f> {
    file: &'f mut std::fs::File,
    hasher: ChecksumHasher,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Completes an upload; `name` is the file of the object.
pub async fn complete(
    folder: &FolderStore,
    req: S3Request<CompleteMultipartUploadInput>,
    name: String,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    let mut input = req.input;
    let upload = input.upload_id.clone();
    check_upload(folder, &upload)?;
    let parts = input.multipart_upload.as_ref().and_then(|upload| upload.parts.clone());
    let begun = Sidecar::of_upload(&folder.root, &input.bucket, &name, &upload);
    let attributes = begun.attributes();
    let parts = check_parts(folder, &upload, &parts.unwrap_or_default())?;
    let (bucket, key) = (input.bucket.clone(), input.key.clone());
    let (matches, none_match) = (input.if_match.take(), input.if_none_match.take());
    let conditions = (matches.as_ref(), none_match.as_ref());
    folder.check_write(&bucket, &name, conditions)?;
    let mut sent = checksums_of!(input);
    let (root, of, hasher) = (Arc::clone(&folder.root), upload.clone(), object::hasher(&mut sent));
    let key_md5 = attributes.customer_key_md5.clone();
    let joined = blocking(move || join(&root, &of, &parts, key_md5.as_ref(), hasher)).await?;
    let (temporary, etag, mut sums) = joined?;
    if !object::agree(&mut sent, &mut sums) {
        return Err(s3_error!(BadDigest, "the whole is not what its checksum says"));
    }
    {
        // Of two requests that complete one upload, or of one that aborts it, the first one ends it.
        let _lock = folder.locks.write(&bucket, &key);
        check_upload(folder, &upload)?;
        let object = (bucket.as_str(), key.as_str(), name.as_str());
        folder.keep_locked(temporary, object, conditions, &attributes, &etag, &sums)?;
        begun.remove().and_then(|()| forget(folder, &upload)).map_err(S3Error::internal_error)?;
    }
    let mut output = CompleteMultipartUploadOutput {
        key: Some(key),
        location: Some(format!("/{bucket}")),
        bucket: Some(bucket),
        e_tag: Some(ETag::Strong(etag)),
        checksum_type: full_object(),
        ..Default::default()
    };
    add_checksums!(output, sums);
    Ok(S3Response::new(output))
}

/// Removes an aborted or completed upload: its marker first, then its parts.
pub fn forget(folder: &FolderStore, upload: &str) -> io::Result<()> {
    folder.root.remove(&begun_file(upload))?;
    let start = format!(".upload_id-{upload}.");
    let mut names = Vec::new();
    folder.root.each("", |name, _| {
        names.extend(name.starts_with(&start).then(|| name.to_owned()));
    })?;
    names.iter().try_for_each(|name| folder.root.remove(name))
}

/// Lists the parts of an upload.
pub fn parts(folder: &FolderStore, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    check_upload(folder, &input.upload_id)?;
    let after = input.part_number_marker.unwrap_or(0);
    let parts_max = input.max_parts.unwrap_or(1000).clamp(0, 1000);
    let start = format!(".upload_id-{}.part-", input.upload_id);
    let mut numbers: Vec<i32> = Vec::new();
    let number = |name: &str| name.strip_prefix(&start)?.parse::<i32>().ok();
    let read = folder.root.each("", |name, _| numbers.extend(number(name)));
    read.map_err(S3Error::internal_error)?;
    numbers.retain(|number| *number > after);
    numbers.sort_unstable();
    let is_truncated = numbers.len() > parts_max as usize;
    numbers.truncate(parts_max as usize);
    let part = |number: &i32| {
        // A part deleted meanwhile is not listed.
        let meta = folder.root.meta(&part_path(&input.upload_id, *number)).ok()?;
        let sidecar = Sidecar::of_part(&folder.root, &input.upload_id, *number);
        let mut part = Part {
            part_number: Some(*number),
            size: i64::try_from(meta.len()).ok(),
            last_modified: meta.modified().ok().map(Timestamp::from),
            e_tag: sidecar.etag().map(ETag::Strong),
            ..Default::default()
        };
        add_checksums!(part, sidecar.sums());
        Some(part)
    };
    Ok(ListPartsOutput {
        parts: Some(numbers.iter().filter_map(part).collect()),
        bucket: Some(input.bucket),
        key: Some(input.key),
        upload_id: Some(input.upload_id.clone()),
        max_parts: Some(parts_max),
        part_number_marker: input.part_number_marker,
        next_part_number_marker: numbers.last().copied().filter(|_| is_truncated),
        is_truncated: Some(is_truncated),
        ..Default::default()
    })
}

/// Lists the unfinished uploads of a bucket on one page, up to a thousand.
pub fn uploads(
    folder: &FolderStore,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    folder.bucket(&input.bucket)?;
    let uploads_max = input.max_uploads.unwrap_or(1000).clamp(0, 1000);
    let prefix = input.prefix.clone().unwrap_or_default();
    let marker = (
        input.key_marker.clone().unwrap_or_default(),
        input.upload_id_marker.clone().unwrap_or_default(),
    );
    // Attributes of the future object are stored under bucket, name and upload id.
    let start = format!(".bucket-{}.object-", URL_SAFE_NO_PAD.encode(&input.bucket));
    let mut files = Vec::new();
    let read = folder.root.each("", |file, _| {
        let parts = file.strip_prefix(&start).and_then(|rest| {
            let (name, upload) = rest.strip_suffix(".metadata.json")?.split_once(".upload-")?;
            let name = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
            Some((name, upload.to_owned(), file.to_owned()))
        });
        files.extend(parts);
    });
    read.map_err(S3Error::internal_error)?;
    let mut found = Vec::new();
    for (name, upload, file) in files {
        let Some(key) = folder.names.key_of(&input.bucket, &name) else { continue };
        // With a key alone, uploads of that key are skipped; with both, those up to the id.
        let passed =
            key < marker.0 || (key == marker.0 && (marker.1.is_empty() || upload <= marker.1));
        if key.starts_with(&prefix) && !passed {
            let initiated = folder.root.meta(&file).and_then(|meta| meta.modified()).ok();
            found.push((key, upload, initiated.map(Timestamp::from)));
        }
    }
    found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let is_truncated = found.len() > uploads_max as usize;
    found.truncate(uploads_max as usize);
    let encodes = is_url(input.encoding_type.as_ref());
    let last = found.last().filter(|_| is_truncated).cloned();
    let upload = |(key, upload, initiated): (String, String, Option<Timestamp>)| MultipartUpload {
        key: Some(encoded(key, encodes)),
        upload_id: Some(upload),
        initiated,
        ..Default::default()
    };
    Ok(ListMultipartUploadsOutput {
        bucket: Some(input.bucket),
        prefix: input.prefix.map(|text| encoded(text, encodes)),
        encoding_type: input.encoding_type,
        max_uploads: Some(uploads_max),
        is_truncated: Some(is_truncated),
        next_key_marker: last.as_ref().map(|last| encoded(last.0.clone(), encodes)),
        next_upload_id_marker: last.map(|last| last.1),
        uploads: Some(found.into_iter().map(upload).collect()),
        ..Default::default()
    })
}
