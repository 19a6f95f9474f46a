//! Checksums: checked while a body arrives, so that a wrong one never becomes an object, and kept
//! where s3s-fs keeps what it knows of an object.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, StreamingBlob};
use s3s::{Body, TrailingHeaders};
use serde_json::{Map, Value};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// The algorithms: what follows `x-amz-checksum-`.
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

/// What is known of a body when it has arrived.
#[derive(Debug, Default)]
pub struct Verdict {
    /// It is not what the client says it is.
    pub is_wrong: bool,
    /// Its checksums: those that were sent, else CRC-64/NVME, as with S3.
    pub sums: Checksum,
}

/// A body that is checked while it passes; one that is wrong ends in an error.
pub struct Checked {
    inner: Body,
    hasher: ChecksumHasher,
    md5: Option<Md5>,
    sent: Checksum,
    sent_md5: Option<String>,
    trailers: Option<TrailingHeaders>,
    verdict: Arc<Mutex<Verdict>>,
}

/// The shared verdict, to be read when the body has been.
pub type Shared = Arc<Mutex<Verdict>>;

/// Takes the verdict.
pub fn taken(shared: &Shared) -> Verdict {
    std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner))
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

    /// At the end: whether everything is as it was sent.
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
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner).sums = sums;
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
                this.verdict.lock().unwrap_or_else(PoisonError::into_inner).is_wrong = true;
                return Poll::Ready(Some(Err("the body is not what its checksum says".into())));
            }
        }
        Poll::Ready(frame)
    }
}

/// The checksums of a file: CRC-64/NVME and those that are in `like`.
///
/// # Errors
/// It cannot be read.
pub fn of_file(path: &Path, like: &mut Checksum) -> io::Result<Checksum> {
    let mut hasher = ChecksumHasher::default();
    for kind in KINDS {
        if kind == "crc64nvme" || field(like, kind).is_some() {
            switch_on(&mut hasher, kind);
        }
    }
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// Whether sums that were sent (whole ones, not those with a number of parts) are these.
pub fn agree(sent: &mut Checksum, sums: &mut Checksum) -> bool {
    KINDS.iter().all(|kind| {
        let sent = field(sent, kind).as_ref().filter(|sum| !sum.contains('-'));
        sent.is_none_or(|sent| field(sums, kind).as_ref() == Some(sent))
    })
}

/// What is kept about an object or a part, a JSON object in a file.
pub struct Sidecar {
    path: PathBuf,
}

impl Sidecar {
    /// That which s3s-fs keeps of an object.
    pub fn of(root: &Path, bucket: &str, name: &str) -> Sidecar {
        Sidecar::named(root, bucket, name, "internal")
    }

    /// That in which s3s-fs keeps what the client said of an object.
    pub fn of_metadata(root: &Path, bucket: &str, name: &str) -> Sidecar {
        Sidecar::named(root, bucket, name, "metadata")
    }

    fn named(root: &Path, bucket: &str, name: &str, what: &str) -> Sidecar {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let file = format!(".bucket-{}.object-{}.{what}.json", encode(bucket), encode(name));
        Sidecar { path: root.join(file) }
    }

    /// That of a part of an upload.
    pub fn of_part(root: &Path, upload: &str, number: i32) -> Sidecar {
        Sidecar { path: root.join(format!(".upload_id-{upload}.sum-{number}")) }
    }

    fn read(&self) -> Map<String, Value> {
        let text = std::fs::read(&self.path).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// The ETag in it.
    pub fn etag(&self) -> Option<String> {
        Some(self.read().get("e_tag")?.as_str()?.to_owned())
    }

    /// The checksums in it.
    pub fn sums(&self) -> Checksum {
        let (map, mut sums) = (self.read(), Checksum::default());
        for kind in KINDS {
            let value = map.get(&format!("checksum_{kind}")).and_then(Value::as_str);
            *field(&mut sums, kind) = value.map(str::to_owned);
        }
        sums
    }

    /// Writes it anew.
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
        // Beside it first: a reader must not see half of it. Parts of one upload, and writers of
        // one object, come at the same time: each has a name of its own.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}.new", COUNT.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&beside, serde_json::to_vec(&map)?)?;
        std::fs::rename(&beside, &self.path)
    }

    /// Removes it; it may be gone already.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
