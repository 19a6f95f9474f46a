//! Checksums: verified while a body arrives, so that a wrong one never becomes an object, and stored beside
//! the object.

use super::attributes::Attributes;
use super::root::{Root, Temporary};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use parking_lot::Mutex;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, StreamingBlob};
use s3s::{Body, TrailingHeaders};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

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
pub struct Verdict {
    /// True if the body differs from the client's checksums.
    pub is_wrong: bool,
    /// Its checksums: those that were sent, else CRC-64/NVME, as in S3.
    pub sums: Checksum,
}

/// A body that is verified while it passes; a mismatch becomes an error at its end.
pub struct Checked {
    inner: Body,
    hasher: ChecksumHasher,
    md5: Option<Md5>,
    sent: Checksum,
    sent_md5: Option<String>,
    trailers: Option<TrailingHeaders>,
    verdict: Arc<Mutex<Verdict>>,
}

/// Shared result, to be read after the body.
pub type Shared = Arc<Mutex<Verdict>>;

/// Takes the result.
pub fn taken(shared: &Shared) -> Verdict {
    std::mem::take(&mut *shared.lock())
}

impl Checked {
    /// Wraps a body. `trailer` is the `x-amz-trailer` header.
    pub fn wrap(
        body: StreamingBlob,
        mut sent: Checksum,
        sent_md5: Option<String>,
        trailer: &str,
        trailers: Option<TrailingHeaders>,
    ) -> (StreamingBlob, Shared) {
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
        let verdict = Shared::default();
        let checked = Checked {
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

impl HttpBody for Checked {
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
    root: &'r Arc<Root>,
    path: String,
}

impl<'r> Sidecar<'r> {
    /// ETag and checksums of an object.
    pub fn of(root: &'r Arc<Root>, bucket: &str, name: &str) -> Sidecar<'r> {
        Sidecar::named(root, bucket, name, "internal")
    }

    /// Attributes of an object.
    pub fn of_metadata(root: &'r Arc<Root>, bucket: &str, name: &str) -> Sidecar<'r> {
        Sidecar::named(root, bucket, name, "metadata")
    }

    /// Attributes of the object that an upload will create.
    pub fn of_upload(root: &'r Arc<Root>, bucket: &str, name: &str, upload: &str) -> Sidecar<'r> {
        let file = format!("{}.upload-{upload}.metadata.json", stem(bucket, name));
        Sidecar { root, path: file }
    }

    fn named(root: &'r Arc<Root>, bucket: &str, name: &str, what: &str) -> Sidecar<'r> {
        Sidecar { root, path: format!("{}.{what}.json", stem(bucket, name)) }
    }

    /// ETag and checksums of a part of an upload.
    pub fn of_part(root: &'r Arc<Root>, upload: &str, number: i32) -> Sidecar<'r> {
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
    pub fn attributes(&self) -> Attributes {
        self.read()
    }

    /// Stores attributes.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn write_attributes(&self, attributes: &Attributes) -> io::Result<()> {
        self.put(&serde_json::to_vec(attributes)?)
    }

    /// Written to a temporary file and renamed, so that readers never see part of it.
    fn put(&self, text: &[u8]) -> io::Result<()> {
        let mut temporary = Temporary::new(self.root)?;
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
