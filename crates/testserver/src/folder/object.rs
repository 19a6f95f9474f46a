//! Objects as files: streaming reads, uploads to temporary files that are renamed when complete, and copies.

use super::root::{Root, Temporary};
use super::sums::Sidecar;
use bytes::Bytes;
use hakobu_core::percent::hex;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, StreamingBlob, Timestamp};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError, s3_error};
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
pub struct Stored {
    pub file: File,
    pub meta: Metadata,
    pub etag: String,
    pub sums: Checksum,
}

/// An existing object, whose ETag is unknown if its file was not created by this server.
pub struct Found {
    pub file: File,
    meta: Metadata,
    pub etag: Option<String>,
    sums: Checksum,
}

impl Found {
    /// Computes the ETag if it is unknown.
    pub async fn with_etag(self) -> S3Result<Stored> {
        let Found { file, meta, etag, sums } = self;
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
        Ok(Stored { file, meta, etag, sums })
    }
}

impl Stored {
    /// Opens an object. `None` if it does not exist or is outside the folder.
    pub fn find(root: &Arc<Root>, bucket: &str, name: &str) -> S3Result<Option<Found>> {
        let (file, meta) = match root.file(&format!("{bucket}/{name}")) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(S3Error::internal_error(error)),
        };
        let sidecar = Sidecar::of(root, bucket, name);
        Ok(Some(Found { file, meta, etag: sidecar.etag(), sums: sidecar.sums() }))
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
pub async fn receive(root: &Arc<Root>, body: StreamingBlob) -> S3Result<(Temporary, String)> {
    let mut temporary = Temporary::new(root).map_err(S3Error::internal_error)?;
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
