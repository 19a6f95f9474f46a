//! Shared by whole and multipart uploads: the headers and conditions of a request that creates an object, and the
//! failures of both ends.

use super::super::between::condition;
use super::super::core::Core;
use super::super::failed::Failed;
use super::super::moving::{Done, Moving};
use super::super::{Side, metadata};
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::Kind as Why;
use hakobu_s3::ops::Headers;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

pub(super) const CHANGED: &str = "it changed while it was read";

/// Handles the failure of a request that would have created the object.
pub(super) fn refused(core: &Core<'_>, error: hakobu_s3::Error) -> Result<Done, Failed> {
    let setup = &core.engine.setup;
    let refused = error.kind == Why::Precondition;
    let existed = refused && setup.options.if_none_match && setup.policy.ignore_existing;
    if existed || refused && setup.control.is_leased() {
        return Ok(Done { skipped: true, ..Done::default() });
    }
    Err(Failed::Request(Operation::Write, Side::Target, error))
}

/// Returns all headers of the object for an entry.
pub(super) fn headers(core: &Core<'_>, moving: &Moving, meta: &Meta) -> Headers {
    let options = core.engine.setup.options;
    let mut headers = Vec::with_capacity(options.headers.len() + 6);
    headers.extend(options.headers.iter().cloned());
    let typed = || options.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
    if options.guess_content_type && meta.kind == Kind::File && !typed() {
        headers.extend(content_type(&moving.entry.name).map(|value| (CONTENT_TYPE, value)));
    }
    metadata::write(meta, core.engine.policy(), options, &mut headers);
    headers.extend(condition(core, moving));
    headers
}

/// Returns the media type for the extension of a name.
pub fn content_type(name: &[u8]) -> Option<HeaderValue> {
    let base = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = base.iter().rposition(|&byte| byte == b'.')?;
    let ending = std::str::from_utf8(base.get(dot + 1..)?).ok()?;
    // A name whose only dot is its first character is a hidden file without an extension.
    let guess = (dot > 0).then(|| mime_guess::from_ext(ending).first_raw()).flatten()?;
    Some(HeaderValue::from_static(guess))
}

/// Returns whether a file was not written to between two checks.
pub(super) fn unchanged(before: &Meta, after: &Meta) -> bool {
    (before.size, before.mtime, before.ctime) == (after.size, after.mtime, after.ctime)
}

pub(super) fn read_failed(error: std::io::Error) -> Failed {
    Failed::File(Operation::Read, Side::Source, error)
}

pub(super) fn no_store() -> Failed {
    Failed::Reason(Operation::Write, Side::Target, "it is in no store")
}

impl Core<'_> {
    /// Returns the algorithm of the checksum to compute for uploads.
    pub(in crate::object) fn upload_checksum(&self) -> Option<hakobu_s3::Algorithm> {
        self.client(Side::Target)?.store().upload_checksum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_come_from_endings() {
        for (name, wanted) in [
            ("a/b.html", Some("text/html")),
            ("B.JPG", Some("image/jpeg")),
            ("x.tar.gz", Some("application/gzip")),
            ("a.json/b", None),
            (".png", None),
            ("no.such-ending", None),
            ("dot.", None),
            ("", None),
        ] {
            let found = content_type(name.as_bytes());
            assert_eq!(found.as_ref().map(|value| value.to_str().unwrap()), wanted, "{name}");
        }
        assert_eq!(content_type(b"\xff.\xff"), None);
    }
}
