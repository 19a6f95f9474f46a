//! Objects as files: streaming reads, uploads to temporary files that are renamed when complete, and copies. Checksums are
//! verified while a body arrives, so that a wrong one never becomes an object, and stored beside the object.

use super::paths::{ServedRoot, TempFile};
use super::store::ObjectAttributes;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hakobu_core::percent::hex;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, StreamingBlob, Timestamp};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError, TrailingHeaders, s3_error};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes per read or write.
const PIECE_BYTES: usize = 256 << 10;

/// An existing object.
pub struct StoredObject {
    pub file: File,
    pub meta: Metadata,
    pub etag: String,
    pub sums: Checksum,
}

/// An existing object, whose ETag is unknown if its file was not created by this server.
pub struct FoundObject {
    pub file: File,
    meta: Metadata,
    pub etag: Option<String>,
    sums: Checksum,
}

impl FoundObject {
    /// Computes the ETag if it is unknown.
    pub async fn with_etag(self) -> S3Result<StoredObject> {
        let FoundObject { file, meta, etag, sums } = self;
        let (file, etag) = match etag {
            Some(etag) => (file, etag),
            None => {
                let (file, read) = blocking(move || {
                    let read = md5_hex(&file);
                    (file, read)
                })
                .await?;
                (file, read.map_err(S3Error::internal_error)?)
            }
        };
        Ok(StoredObject { file, meta, etag, sums })
    }
}

impl StoredObject {
    /// Opens an object. `None` if it does not exist or is outside the folder.
    pub fn find(root: &Arc<ServedRoot>, bucket: &str, name: &str) -> S3Result<Option<FoundObject>> {
        let (file, meta) = match root.file(&format!("{bucket}/{name}")) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(S3Error::internal_error(error)),
        };
        let sidecar = Sidecar::of(root, bucket, name);
        Ok(Some(FoundObject { file, meta, etag: sidecar.etag(), sums: sidecar.sums() }))
    }

    pub fn modified(&self) -> Option<Timestamp> {
        self.meta.modified().ok().map(Timestamp::from)
    }

    /// A range of the content as a body.
    pub fn body(self, range: Range<u64>) -> StreamingBlob {
        let body = FileBody { file: Arc::new(self.file), range, reading: None };
        StreamingBlob::from(Body::http_body_unsync(body))
    }
}

/// True if an error means that the name does not exist below the folder.
pub fn is_absent(error: &io::Error) -> bool {
    use hakobu_sys::errno::{self, ELOOP, ENAMETOOLONG, ENOTDIR, EXDEV};
    error.kind() == ErrorKind::NotFound
        || [ENOTDIR, EXDEV, ELOOP, ENAMETOOLONG].iter().any(|code| errno::is(error, *code))
}

/// Runs blocking work on another thread.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> S3Result<T> {
    spawn_blocking(work).await.map_err(S3Error::internal_error)
}

/// Copies a range of a file; returns its MD5.
pub fn md5_of(from: &File, range: Range<u64>, to: &mut dyn Write) -> io::Result<[u8; 16]> {
    let (mut md5, mut at) = (Md5::new(), range.start);
    let mut buffer = vec![0; PIECE_BYTES];
    while at < range.end {
        let most = (range.end - at).min(buffer.len() as u64) as usize;
        let piece = buffer.get_mut(..most).unwrap_or_default();
        match from.read_at(piece, at) {
            Ok(0) => break,
            Ok(count) => {
                let piece = piece.get(..count).unwrap_or_default();
                md5.update(piece);
                to.write_all(piece)?;
                at += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(md5.finalize())
}

/// Returns the MD5 of a whole file, hexadecimal.
pub fn md5_hex(file: &File) -> io::Result<String> {
    md5_of(file, 0..u64::MAX, &mut io::sink()).map(|md5| hex(&md5))
}

/// Receives a body into a temporary file; also returns its MD5, hexadecimal.
pub async fn receive(root: &Arc<ServedRoot>, body: StreamingBlob) -> S3Result<(TempFile, String)> {
    let mut temporary = TempFile::new(root).map_err(S3Error::internal_error)?;
    let (mut body, mut md5) = (Body::from(body), Md5::new());
    let mut piece: Vec<u8> = Vec::with_capacity(PIECE_BYTES);
    loop {
        let frame = body.frame().await;
        if let Some(frame) = &frame {
            let frame = frame.as_ref().map_err(|error| wrong_body(&error.to_string()))?;
            if let Some(data) = frame.data_ref() {
                md5.update(data);
                piece.extend_from_slice(data);
            }
        }
        if piece.len() >= PIECE_BYTES || (frame.is_none() && !piece.is_empty()) {
            let (back, buffer, written) = blocking(move || {
                let written = temporary.file.write_all(&piece);
                piece.clear();
                (temporary, piece, written)
            })
            .await?;
            (temporary, piece) = (back, buffer);
            written.map_err(S3Error::internal_error)?;
        }
        if frame.is_none() {
            return Ok((temporary, hex(&md5.finalize())));
        }
    }
}

/// Error for a body that differs from its announcement. The protocol library does not export its error types,
/// so their texts are compared.
fn wrong_body(error: &str) -> S3Error {
    if error.contains("Sha256Mismatch") {
        let mut error = S3Error::with_message(S3ErrorCode::Custom(MISMATCH.0.into()), MISMATCH.1);
        error.set_status_code(http::StatusCode::BAD_REQUEST);
        return error;
    }
    if error.contains("SignatureMismatch") {
        return s3_error!(SignatureDoesNotMatch, "a piece of the body is not what was signed");
    }
    s3_error!(IncompleteBody, "the body ended early: {error}")
}

/// S3's code and message for a body that differs from `x-amz-content-sha256`.
pub const MISMATCH: (&str, &str) = (
    "XAmzContentSHA256Mismatch",
    "The provided 'x-amz-content-sha256' header does not match what was computed.",
);

/// Content of a file, read in pieces on other threads.
struct FileBody {
    file: Arc<File>,
    range: Range<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl HttpBody for FileBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = self.get_mut();
        let left = this.range.end.saturating_sub(this.range.start);
        if left == 0 && this.reading.is_none() {
            return Poll::Ready(None);
        }
        let reading = this.reading.get_or_insert_with(|| {
            let (file, at) = (Arc::clone(&this.file), this.range.start);
            let bytes = left.min(PIECE_BYTES as u64) as usize;
            spawn_blocking(move || {
                let mut piece = vec![0; bytes];
                file.read_exact_at(&mut piece, at)?;
                Ok(Bytes::from(piece))
            })
        });
        let read = ready!(Pin::new(reading).poll(context));
        this.reading = None;
        let piece = read.map_err(io::Error::other).and_then(|piece| piece);
        Poll::Ready(Some(piece.map_err(StdError::from).map(|piece| {
            this.range.start += piece.len() as u64;
            Frame::data(piece)
        })))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.range.end.saturating_sub(self.range.start))
    }
}

/// Algorithms: suffixes of `x-amz-checksum-`.
const KINDS: [&str; 5] = ["crc32", "crc32c", "sha1", "sha256", "crc64nvme"];

fn field<'c>(sums: &'c mut Checksum, kind: &str) -> &'c mut Option<String> {
    match kind {
        "crc32" => &mut sums.checksum_crc32,
        "crc32c" => &mut sums.checksum_crc32c,
        "sha1" => &mut sums.checksum_sha1,
        "sha256" => &mut sums.checksum_sha256,
        _ => &mut sums.checksum_crc64nvme,
    }
}

fn switch_on(hasher: &mut ChecksumHasher, kind: &str) {
    match kind {
        "crc32" => hasher.crc32 = Some(Default::default()),
        "crc32c" => hasher.crc32c = Some(Default::default()),
        "sha1" => hasher.sha1 = Some(Default::default()),
        "sha256" => hasher.sha256 = Some(Default::default()),
        _ => hasher.crc64nvme = Some(Default::default()),
    }
}

/// Result of checking a body.
#[derive(Debug, Default)]
pub struct BodyVerdict {
    /// True if the body differs from the client's checksums.
    pub is_wrong: bool,
    /// Its checksums: those that were sent, else CRC-64/NVME, as in S3.
    pub sums: Checksum,
}

/// A body that is verified while it passes; a mismatch becomes an error at its end.
pub struct CheckedBody {
    inner: Body,
    hasher: ChecksumHasher,
    md5: Option<Md5>,
    sent: Checksum,
    sent_md5: Option<String>,
    trailers: Option<TrailingHeaders>,
    verdict: Arc<Mutex<BodyVerdict>>,
}

/// Shared result, to be read after the body.
pub type SharedVerdict = Arc<Mutex<BodyVerdict>>;

/// Takes the result.
pub fn take_verdict(shared: &SharedVerdict) -> BodyVerdict {
    std::mem::take(&mut *shared.lock())
}

impl CheckedBody {
    /// Wraps a body. `trailer` is the `x-amz-trailer` header.
    pub fn wrap(
        body: StreamingBlob,
        mut sent: Checksum,
        sent_md5: Option<String>,
        trailer: &str,
        trailers: Option<TrailingHeaders>,
    ) -> (StreamingBlob, SharedVerdict) {
        let mut hasher = ChecksumHasher::default();
        let mut any = false;
        for kind in KINDS {
            let name = format!("x-amz-checksum-{kind}");
            let trails = trailer.split(',').any(|part| part.trim().eq_ignore_ascii_case(&name));
            if trails || field(&mut sent, kind).is_some() {
                switch_on(&mut hasher, kind);
                any = true;
            }
        }
        if !any {
            switch_on(&mut hasher, "crc64nvme");
        }
        let verdict = SharedVerdict::default();
        let checked = CheckedBody {
            inner: Body::from(body),
            hasher,
            md5: sent_md5.as_ref().map(|_| Md5::new()),
            sent,
            sent_md5,
            trailers,
            verdict: Arc::clone(&verdict),
        };
        (StreamingBlob::from(Body::http_body_unsync(checked)), verdict)
    }

    /// Verifies the checksums at the end.
    fn finish(&mut self) -> bool {
        let mut sums = std::mem::take(&mut self.hasher).finalize();
        for kind in KINDS {
            let trailer = self.trailers.as_ref().and_then(|trailers| {
                let name = format!("x-amz-checksum-{kind}");
                trailers
                    .read(|headers| Some(headers.get(name)?.to_str().ok()?.to_owned()))
                    .flatten()
            });
            let sent = field(&mut self.sent, kind).take().or(trailer);
            if sent.is_some() && sent != *field(&mut sums, kind) {
                return false;
            }
        }
        let md5 = self.md5.take().map(|md5| STANDARD.encode(md5.finalize()));
        if md5 != self.sent_md5 {
            return false;
        }
        self.verdict.lock().sums = sums;
        true
    }
}

impl HttpBody for CheckedBody {
    type Data = Bytes;
    type Error = s3s::StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.hasher.update(data);
                    if let Some(md5) = &mut this.md5 {
                        md5.update(data);
                    }
                }
            }
            Some(Err(_)) => {}
            None if this.finish() => {}
            None => {
                this.verdict.lock().is_wrong = true;
                return Poll::Ready(Some(Err("the body is not what its checksum says".into())));
            }
        }
        Poll::Ready(frame)
    }
}

/// Hasher of CRC-64/NVME and of the algorithms in `like`.
pub fn hasher(like: &mut Checksum) -> ChecksumHasher {
    let mut hasher = ChecksumHasher::default();
    for kind in KINDS {
        if kind == "crc64nvme" || field(like, kind).is_some() {
            switch_on(&mut hasher, kind);
        }
    }
    hasher
}

/// True if the sent checksums (full-object ones, without a number of parts) are equal to these.
pub fn agree(sent: &mut Checksum, sums: &mut Checksum) -> bool {
    KINDS.iter().all(|kind| {
        let sent = field(sent, kind).as_ref().filter(|sum| !sum.contains('-'));
        sent.is_none_or(|sent| field(sums, kind).as_ref() == Some(sent))
    })
}

/// A JSON file with data about an object or a part.
pub struct Sidecar<'r> {
    root: &'r Arc<ServedRoot>,
    path: String,
}

impl<'r> Sidecar<'r> {
    /// ETag and checksums of an object.
    pub fn of(root: &'r Arc<ServedRoot>, bucket: &str, name: &str) -> Sidecar<'r> {
        Sidecar::named(root, bucket, name, "internal")
    }

    /// Attributes of an object.
    pub fn of_metadata(root: &'r Arc<ServedRoot>, bucket: &str, name: &str) -> Sidecar<'r> {
        Sidecar::named(root, bucket, name, "metadata")
    }

    /// Attributes of the object that an upload will create.
    pub fn of_upload(
        root: &'r Arc<ServedRoot>,
        bucket: &str,
        name: &str,
        upload: &str,
    ) -> Sidecar<'r> {
        let file = format!("{}.upload-{upload}.metadata.json", stem(bucket, name));
        Sidecar { root, path: file }
    }

    fn named(root: &'r Arc<ServedRoot>, bucket: &str, name: &str, what: &str) -> Sidecar<'r> {
        Sidecar { root, path: format!("{}.{what}.json", stem(bucket, name)) }
    }

    /// ETag and checksums of a part of an upload.
    pub fn of_part(root: &'r Arc<ServedRoot>, upload: &str, number: i32) -> Sidecar<'r> {
        Sidecar { root, path: format!(".upload_id-{upload}.sum-{number}") }
    }

    /// Content; the default if missing or malformed, because it can be recomputed from the object.
    fn read<T: DeserializeOwned + Default>(&self) -> T {
        let text = self.root.read(&self.path).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// The stored ETag.
    pub fn etag(&self) -> Option<String> {
        Some(self.read::<Map<String, Value>>().get("e_tag")?.as_str()?.to_owned())
    }

    /// The stored checksums.
    pub fn sums(&self) -> Checksum {
        let (map, mut sums) = (self.read::<Map<String, Value>>(), Checksum::default());
        for kind in KINDS {
            let value = map.get(&format!("checksum_{kind}")).and_then(Value::as_str);
            *field(&mut sums, kind) = value.map(str::to_owned);
        }
        sums
    }

    /// Stores ETag and checksums.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn write(&self, etag: &str, sums: &Checksum) -> io::Result<()> {
        let mut map = Map::new();
        map.insert("e_tag".into(), etag.into());
        let mut sums = sums.clone();
        for kind in KINDS {
            if let Some(sum) = field(&mut sums, kind).take() {
                map.insert(format!("checksum_{kind}"), sum.into());
            }
        }
        self.put(&serde_json::to_vec(&map)?)
    }

    /// The stored attributes.
    pub fn attributes(&self) -> ObjectAttributes {
        self.read()
    }

    /// Stores attributes.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn write_attributes(&self, attributes: &ObjectAttributes) -> io::Result<()> {
        self.put(&serde_json::to_vec(attributes)?)
    }

    /// Written to a temporary file and renamed, so that readers never see part of it.
    fn put(&self, text: &[u8]) -> io::Result<()> {
        let mut temporary = TempFile::new(self.root)?;
        temporary.file.write_all(text)?;
        temporary.publish(&self.path, false)
    }

    /// Removes the file, if it exists.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub fn remove(&self) -> io::Result<()> {
        self.root.remove(&self.path)
    }
}

/// Prefix of the metadata files of an object.
fn stem(bucket: &str, name: &str) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!(".bucket-{}.object-{}", encode(bucket), encode(name))
}
