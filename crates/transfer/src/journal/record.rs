//! The form of a record: plain values, so that neither the S3 client nor the engines are needed to
//! read one.

use crate::unit::{Meta, Time};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

/// Raised when a field changes its meaning: records of another schema are not read.
const SCHEMA: u32 = 1;

/// What is moved where: names a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    source: String,
    target: String,
    endpoint: String,
}

/// What is remembered of one unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What it was when the work began; anything else now means to begin anew.
    pub source: Source,
    /// Where the finished parts lie.
    pub place: Place,
    /// Bytes of every part but the last.
    pub part_bytes: u64,
    /// The algorithm of the parts' checksums in S3's spelling (`CRC64NVME`); empty for none.
    pub algorithm: String,
    /// Finished parts, in no order.
    pub parts: Vec<Part>,
}

/// The source of an unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A local file.
    File {
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
        /// Bytes.
        size: u64,
        /// Last change of the content: seconds, nanoseconds.
        mtime: (i64, u32),
        /// Last change of the inode: seconds, nanoseconds.
        ctime: (i64, u32),
    },
    /// An object.
    Object {
        /// Bytes.
        size: u64,
        /// Without quotes.
        etag: String,
        /// Its version, where one was named.
        version: Option<String>,
    },
}

/// Where the finished parts of an unfinished object lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In a multipart upload of that id.
    Upload(String),
    /// In a file of that name beside the target, which has that device and inode.
    File {
        /// Its name, encoded as in [`Identity`].
        name: String,
        /// Device.
        dev: u64,
        /// Inode.
        ino: u64,
    },
}

/// A finished part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 1; it begins at (number - 1) × `part_bytes`.
    pub number: u32,
    /// Bytes.
    pub bytes: u64,
    /// Of an uploaded part: without quotes; else empty.
    pub etag: String,
    /// As S3 writes it (base64); empty where none was computed.
    pub checksum: String,
}

/// A record as it lies on disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    identity: Identity,
    record: Record,
}

/// Only the version: the rest may have another form.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

/// Why a record is not to be gone on with; see [`Record::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The source is what it was and the parts make sense.
    Good,
    /// The source is another one by now.
    SourceChanged,
    /// The record contradicts itself.
    Broken,
}

impl Identity {
    /// Of an absolute local path or an `s3://` URL on each side, and of the endpoints that they
    /// belong to (one, or both joined by a space).
    pub fn new(source: &[u8], target: &[u8], endpoint: &str) -> Identity {
        Identity { source: text(source), target: text(target), endpoint: endpoint.to_owned() }
    }

    /// The source as text: `%` and bytes that are not UTF-8 are percent-encoded.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The target in the same form.
    pub fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn file_name(&self, end: &str) -> String {
        let mut hash = Context::new(&SHA256);
        for field in [&self.source, &self.target, &self.endpoint] {
            hash.update(&(field.len() as u64).to_be_bytes());
            hash.update(field.as_bytes());
        }
        let hash = hash.finish();
        let mut name: String = hash.as_ref().iter().take(16).map(|b| format!("{b:02x}")).collect();
        name.push('.');
        name.push_str(end);
        name
    }
}

impl Source {
    /// Of a file.
    pub fn of_file(meta: &Meta) -> Source {
        let pair = |time: Time| (time.s, time.ns);
        Source::File {
            dev: meta.dev,
            ino: meta.ino,
            size: meta.size,
            mtime: pair(meta.mtime),
            ctime: pair(meta.ctime),
        }
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        match self {
            Source::File { size, .. } | Source::Object { size, .. } => *size,
        }
    }
}

impl Record {
    /// Whether this record is about `source` as it is now, and possible in itself: parts lie
    /// inside the source, none twice, each of the length that its number demands.
    pub fn check(&self, source: &Source) -> Checked {
        if self.source != *source {
            return Checked::SourceChanged;
        }
        let size = source.size();
        let mut numbers = std::collections::HashSet::new();
        let possible = |part: &Part| {
            let start = u64::from(part.number.checked_sub(1)?).checked_mul(self.part_bytes)?;
            let wanted = size.checked_sub(start)?.min(self.part_bytes);
            (wanted > 0 && wanted == part.bytes).then_some(())
        };
        let good = self.part_bytes > 0
            && self
                .parts
                .iter()
                .all(|part| numbers.insert(part.number) && possible(part).is_some());
        if good { Checked::Good } else { Checked::Broken }
    }
}

/// Bytes as text that can be turned back: `%` and what is not UTF-8 become `%XX`.
pub fn text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

pub(super) fn encode(identity: &Identity, record: &Record) -> serde_json::Result<Vec<u8>> {
    let stored = Stored { schema: SCHEMA, identity: identity.clone(), record: record.clone() };
    serde_json::to_vec(&stored)
}

pub(super) fn decode(text: &[u8]) -> Option<(Identity, Record)> {
    let versioned: Versioned = serde_json::from_slice(text).ok()?;
    if versioned.schema != SCHEMA {
        return None;
    }
    let stored: Stored = serde_json::from_slice(text).ok()?;
    Some((stored.identity, stored.record))
}
