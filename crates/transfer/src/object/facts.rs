//! What a run learns about the metadata of objects, for the next one: where it asks for headers, and where it writes.

use super::entry::Moving;
use super::runtime::Core;
use super::{Root, Side, metadata};
use crate::manifest::{FileMetadata, Modified, Record, today};
use hakobu_s3::ops::{Headers, ObjectHead, PutResult};
use std::time::Instant;

/// What manifests of earlier runs know about two entries that are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownFacts {
    pub source: Option<FileMetadata>,
    pub target: Option<FileMetadata>,
}

impl KnownFacts {
    /// Returns what is known about a side.
    pub fn of(&self, side: Side) -> Option<FileMetadata> {
        match side {
            Side::Source => self.source,
            Side::Target => self.target,
        }
    }
}

impl Core<'_> {
    /// Records the headers of the object on a side, if they are those of the object that was listed.
    pub(super) fn observed(&self, moving: &Moving, side: Side, head: &ObjectHead) {
        let (Root::Store { bucket, prefix }, name) = moving.end(side) else { return };
        let listed = match side {
            Side::Source => Some(&moving.entry),
            Side::Target => moving.existing.as_deref(),
        };
        let setup = &self.engine.setup;
        // A version that was asked for need not be the listed one.
        let is_named = side == Side::Source && setup.options.version.is_some();
        let Some(listed) = listed.filter(|_| !is_named) else { return };
        let Some(manifest) = setup.manifests.recorder(side, bucket, prefix) else { return };
        let Some(date_s) = head.date_s() else { return };
        let mtime = listed.meta.mtime;
        let is_listed = *head.etag == *listed.etag
            && head.size == listed.meta.size
            // Headers have whole seconds.
            && head.mtime.s == mtime.s;
        if is_listed {
            let record = Record {
                key: name.into(),
                etag: listed.etag.clone(),
                size: head.size,
                modified: Modified::At(mtime),
                learnt_day: today(),
                facts: metadata::read(&head.metadata),
            };
            manifest.recorder().learn(record, date_s);
        }
    }

    /// Records an object of `size` bytes that was written with these headers by a request or upload that began at
    /// `begun`.
    pub(super) fn wrote(
        &self,
        moving: &Moving,
        headers: &Headers,
        size: u64,
        begun: Instant,
        put: &PutResult,
    ) {
        let (Root::Store { bucket, prefix }, name) = moving.end(Side::Target) else { return };
        let manifests = &self.engine.setup.manifests;
        let Some(manifest) = manifests.recorder(Side::Target, bucket, prefix) else { return };
        let (Some(date_s), Some(facts)) = (put.date_s, stored(headers)) else { return };
        let took_s = i64::try_from(begun.elapsed().as_secs()).unwrap_or(i64::MAX);
        let modified = match put.mtime {
            Some(time) if time.ns > 0 => Modified::At(time),
            Some(time) => Modified::Within(time.s, time.s),
            None => Modified::Within(date_s.saturating_sub(took_s).saturating_sub(1), date_s),
        };
        let etag = put.etag.as_str().into();
        let record = Record { key: name.into(), etag, size, modified, learnt_day: today(), facts };
        manifest.recorder().learn(record, date_s);
    }
}

/// Returns the metadata that headers store; `None` if a name occurs twice, of which servers keep either or both.
fn stored(headers: &Headers) -> Option<FileMetadata> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix(super::copy::META) else { continue };
        if texts.iter().any(|(other, _)| other == name) {
            return None;
        }
        if matches!(name, "mtime" | "mode" | "uid" | "gid") {
            texts.push((name.to_owned(), value.to_str().ok()?.to_owned()));
        }
    }
    Some(metadata::read(&texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::Time;
    use http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &'static str)]) -> Headers {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(header).collect()
    }

    #[test]
    fn written_headers_are_what_is_stored() {
        let sent = headers(&[
            ("content-type", "a/b"),
            ("x-amz-meta-mtime", "12.5"),
            ("x-amz-meta-mode", "33188"),
            ("x-amz-meta-who", "me"),
        ]);
        let mtime = Some(Time { s: 12, ns: 500_000_000 });
        let found = stored(&sent).unwrap();
        assert_eq!((found.mtime, found.mode, found.uid), (mtime, Some(0o644), None));
        assert_eq!(stored(&headers(&[("etag", "x")])), Some(FileMetadata::default()));
    }

    #[test]
    fn a_name_that_occurs_twice_is_not_known() {
        let twice = headers(&[("x-amz-meta-mtime", "1"), ("x-amz-meta-mtime", "2")]);
        assert_eq!(stored(&twice), None);
    }
}
