//! Multipart uploads: what s3s-fs leaves out. Parts are checked as they come and again, by ETag and
//! size, before an upload is completed; the completed object gets a checksum of the whole.

use super::Folder;
use super::list::{encoded, is_url};
use super::sums::{self, Sidecar};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use s3s::dto::{
    Checksum, ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CompletedPart, ETag, ListMultipartUploadsInput, ListMultipartUploadsOutput, ListPartsInput,
    ListPartsOutput, MultipartUpload, Part, Timestamp,
};
use s3s::{S3, S3Error, S3Request, S3Response, S3Result, s3_error};
use std::path::{Path, PathBuf};

/// The smallest part that is not the last one, in bytes (Amazon S3 user guide, "Multipart upload
/// limits").
const PART_BYTES_MIN: u64 = 5 << 20;

/// Refuses an upload that is not there. Ids that are none could lead elsewhere.
pub fn check_upload(folder: &Folder, upload: &str) -> S3Result<()> {
    let plain = upload.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match plain && folder.root.join(format!(".upload-{upload}.json")).is_file() {
        true => Ok(()),
        false => Err(s3_error!(NoSuchUpload, "there is no such upload")),
    }
}

/// The file of a part.
pub fn part_path(root: &Path, upload: &str, number: i32) -> PathBuf {
    root.join(format!(".upload_id-{upload}.part-{number}"))
}

/// What a client says it uploaded, against what is there.
fn check_parts(root: &Path, upload: &str, parts: &[CompletedPart]) -> S3Result<()> {
    let mut before = 0;
    for (at, part) in parts.iter().enumerate() {
        let number = part.part_number.unwrap_or(0);
        if number <= before {
            return Err(s3_error!(InvalidPartOrder, "part {number} comes after part {before}"));
        }
        before = number;
        let missing = || s3_error!(InvalidPart, "part {number} is not what was uploaded");
        let etag = Sidecar::of_part(root, upload, number).etag();
        let named = part.e_tag.as_ref().map(ETag::value);
        let meta = std::fs::metadata(part_path(root, upload, number)).map_err(|_| missing())?;
        if named.is_some() && named != etag.as_deref() {
            return Err(missing());
        }
        if at + 1 < parts.len() && meta.len() < PART_BYTES_MIN {
            return Err(s3_error!(EntityTooSmall, "part {number} is smaller than 5 MiB"));
        }
    }
    Ok(())
}

/// Completes an upload; `name` is where the object is kept.
pub async fn complete(
    folder: &Folder,
    req: S3Request<CompleteMultipartUploadInput>,
    name: String,
) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
    let upload = req.input.upload_id.clone();
    check_upload(folder, &upload)?;
    let parts = req.input.multipart_upload.as_ref().and_then(|upload| upload.parts.clone());
    let parts = parts.unwrap_or_default();
    check_parts(&folder.root, &upload, &parts)?;
    let (bucket, key) = (req.input.bucket.clone(), req.input.key.clone());
    let mut sent = Checksum {
        checksum_crc32: req.input.checksum_crc32.clone(),
        checksum_crc32c: req.input.checksum_crc32c.clone(),
        checksum_crc64nvme: req.input.checksum_crc64nvme.clone(),
        checksum_sha1: req.input.checksum_sha1.clone(),
        checksum_sha256: req.input.checksum_sha256.clone(),
        ..Checksum::default()
    };
    let req = req.map_input(|input| CompleteMultipartUploadInput { key: name.clone(), ..input });
    let mut done = folder.store.complete_multipart_upload(req).await?.output;
    if let Some(rest) = done.future.take() {
        done = rest.await?;
    }
    for part in &parts {
        Sidecar::of_part(&folder.root, &upload, part.part_number.unwrap_or(0)).remove();
    }
    let path = folder.root.join(&bucket).join(&name);
    let mut like = sent.clone();
    let read = tokio::task::spawn_blocking(move || sums::of_file(&path, &mut like)).await;
    let read = read.map_err(S3Error::internal_error)?;
    let mut sums = read.map_err(S3Error::internal_error)?;
    if !sums::agree(&mut sent, &mut sums) {
        folder.remove(&bucket, &name);
        return Err(s3_error!(BadDigest, "the whole is not what its checksum says"));
    }
    let etag = done.e_tag.as_ref().map(ETag::value).unwrap_or_default();
    let sidecar = Sidecar::of(&folder.root, &bucket, &name);
    sidecar.write(etag, &sums).map_err(S3Error::internal_error)?;
    Ok(S3Response::new(CompleteMultipartUploadOutput {
        key: Some(key),
        location: Some(format!("/{bucket}")),
        bucket: Some(bucket),
        checksum_crc32: sums.checksum_crc32,
        checksum_crc32c: sums.checksum_crc32c,
        checksum_crc64nvme: sums.checksum_crc64nvme,
        checksum_sha1: sums.checksum_sha1,
        checksum_sha256: sums.checksum_sha256,
        checksum_type: Some(ChecksumType::from_static(ChecksumType::FULL_OBJECT)),
        ..done
    }))
}

/// Forgets the checksums of an upload that is aborted.
pub fn forget(folder: &Folder, upload: &str) -> S3Result<()> {
    let start = format!(".upload_id-{upload}.sum-");
    for entry in std::fs::read_dir(&folder.root).map_err(S3Error::internal_error)? {
        let entry = entry.map_err(S3Error::internal_error)?;
        if entry.file_name().to_string_lossy().starts_with(&start) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// The parts of an upload.
pub fn parts(folder: &Folder, input: ListPartsInput) -> S3Result<ListPartsOutput> {
    check_upload(folder, &input.upload_id)?;
    let after = input.part_number_marker.unwrap_or(0);
    let parts_max = input.max_parts.unwrap_or(1000).clamp(0, 1000);
    let start = format!(".upload_id-{}.part-", input.upload_id);
    let mut numbers: Vec<i32> = std::fs::read_dir(&folder.root)
        .map_err(S3Error::internal_error)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix(&start)?.parse().ok())
        .filter(|number| *number > after)
        .collect();
    numbers.sort_unstable();
    let is_truncated = numbers.len() > parts_max as usize;
    numbers.truncate(parts_max as usize);
    let part = |number: &i32| {
        let meta = part_path(&folder.root, &input.upload_id, *number).metadata().ok()?;
        let sidecar = Sidecar::of_part(&folder.root, &input.upload_id, *number);
        let sums = sidecar.sums();
        Some(Part {
            part_number: Some(*number),
            size: i64::try_from(meta.len()).ok(),
            last_modified: meta.modified().ok().map(Timestamp::from),
            e_tag: sidecar.etag().map(ETag::Strong),
            checksum_crc32: sums.checksum_crc32,
            checksum_crc32c: sums.checksum_crc32c,
            checksum_crc64nvme: sums.checksum_crc64nvme,
            checksum_sha1: sums.checksum_sha1,
            checksum_sha256: sums.checksum_sha256,
        })
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

/// The unfinished uploads of a bucket, all on one page up to a thousand.
pub fn uploads(
    folder: &Folder,
    input: ListMultipartUploadsInput,
) -> S3Result<ListMultipartUploadsOutput> {
    folder.bucket(&input.bucket)?;
    let uploads_max = input.max_uploads.unwrap_or(1000).clamp(0, 1000);
    let prefix = input.prefix.clone().unwrap_or_default();
    let marker = (
        input.key_marker.clone().unwrap_or_default(),
        input.upload_id_marker.clone().unwrap_or_default(),
    );
    // s3s-fs keeps what an object will be like under bucket, key and upload id.
    let start = format!(".bucket-{}.object-", URL_SAFE_NO_PAD.encode(&input.bucket));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder.root).map_err(S3Error::internal_error)? {
        let entry = entry.map_err(S3Error::internal_error)?;
        let file = entry.file_name();
        let Some((name, upload)) = file.to_str().and_then(|file| {
            let rest = file.strip_prefix(&start)?.strip_suffix(".metadata.json")?;
            let (name, upload) = rest.split_once(".upload-")?;
            let name = URL_SAFE_NO_PAD.decode(name).ok()?;
            Some((String::from_utf8(name).ok()?, upload.to_owned()))
        }) else {
            continue;
        };
        let Some(key) = folder.names.key_of(&input.bucket, &name) else { continue };
        // With a key alone, uploads of that key are passed; with both, those up to the id.
        let passed =
            key < marker.0 || (key == marker.0 && (marker.1.is_empty() || upload <= marker.1));
        if key.starts_with(&prefix) && !passed {
            let initiated = entry.metadata().and_then(|meta| meta.modified()).ok();
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
