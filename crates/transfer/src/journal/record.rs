//! The format of a record: plain values, readable without the S3 client and the engines.

use hakobu_core::unit::{Meta, Time};
use ring::digest::{Context, SHA256};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Incremented when a field changes its meaning: records of another schema are not read.
const SCHEMA: u32 = 1;

/// Source and target of an object; they name a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    source: String,
    target: String,
    endpoint: String,
}

/// The state of one unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its identity when the work began; on any difference the work starts over.
    pub source: Source,
    /// Location of the finished parts.
    pub place: Place,
    /// Bytes of every part except the last.
    pub part_bytes: u64,
    /// The algorithm of the parts' checksums as S3 spells it (`CRC64NVME`); empty for none.
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
        /// ETag without quotes.
        etag: String,
        /// Its version, if one was specified.
        version: Option<String>,
    },
}

/// Location of the finished parts of an unfinished object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the multipart upload with this ID.
    Upload(String),
    /// Not known yet: an upload was requested and the answer is unknown. The store may have an upload without parts
    /// whose ID is not recorded.
    Asked,
    /// In a file beside the target, with this name, device and inode.
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
    /// Starts at 1; the part begins at offset (number - 1) × `part_bytes`.
    pub number: u32,
    /// Bytes.
    pub bytes: u64,
    /// ETag of an uploaded part, without quotes; else empty.
    pub etag: String,
    /// Checksum as S3 writes it (base64); empty if none was computed.
    pub checksum: String,
}

/// A record as stored on disk.
#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    identity: Identity,
    record: Record,
}

/// Result of [`Record::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The source is unchanged and the parts are consistent.
    Good,
    /// The source has changed.
    SourceChanged,
    /// The record is inconsistent.
    Broken,
}

impl Identity {
    /// Makes an identity from an absolute local path or an `s3://` URL on each side, and their endpoints (one, or
    /// both joined by a space).
    pub fn new(source: &[u8], target: &[u8], endpoint: &str) -> Identity {
        Identity { source: text(source), target: text(target), endpoint: endpoint.to_owned() }
    }

    /// Returns the source as text: `%` and bytes that are not UTF-8 are percent-encoded.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the target in the same form.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the endpoints of both sides.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
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
    /// Returns the source of a file.
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

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Source::File { size, .. } | Source::Object { size, .. } => *size,
        }
    }
}

impl Record {
    /// Checks that this record is about the current `source` and consistent: parts lie inside the source, none twice,
    /// each with the length that its number implies.
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

/// Encodes bytes reversibly as text: `%` and bytes that are not UTF-8 become `%XX`.
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

/// Decodes a text made by [`text`].
pub fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) if *byte == b'%' => {
                out.push(code);
                rest = &after[2..];
            }
            _ => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    out
}

pub(super) fn encode(identity: &Identity, record: &Record) -> serde_json::Result<Vec<u8>> {
    let stored = Stored { schema: SCHEMA, identity: identity.clone(), record: record.clone() };
    serde_json::to_vec(&stored)
}

pub(super) fn decode(text: &[u8]) -> Option<(Identity, Record)> {
    let stored: Stored = of_schema(text, SCHEMA).ok()??;
    Some((stored.identity, stored.record))
}

/// Decodes a JSON file that says its schema; `None` if it is of another one.
pub(super) fn of_schema<T: DeserializeOwned>(
    text: &[u8],
    schema: u32,
) -> serde_json::Result<Option<T>> {
    /// Only the version: the rest may have another form.
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let versioned: Versioned = serde_json::from_slice(text)?;
    if versioned.schema != schema {
        return Ok(None);
    }
    serde_json::from_slice(text).map(Some)
}
