//! Shared by whole and multipart uploads: the headers and conditions of a request that creates an object, and the
//! failures of both ends.

use super::super::between::condition;
use super::super::core::Core;
use super::super::failed::Failed;
use super::super::moving::{Done, Moving};
use super::super::{Side, metadata};
use super::media;
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::ErrorKind;
use hakobu_s3::ops::Headers;
use http::header::CONTENT_TYPE;

/// Handles the failure of a request that would have created the object.
pub(super) fn refused(core: &Core<'_>, error: hakobu_s3::Error) -> Result<Done, Failed> {
    let setup = &core.engine.setup;
    let refused = error.kind == ErrorKind::Precondition;
    let existed = refused && setup.options.if_none_match && setup.policy.ignore_existing;
    if existed || refused && setup.control.is_leased() {
        return Ok(Done::SKIPPED);
    }
    Err(Failed::at_target(Operation::Write)(error))
}

/// Returns all headers of the object for an entry. `start` is the beginning of its content.
pub(super) fn headers(core: &Core<'_>, moving: &Moving, meta: &Meta, start: &[u8]) -> Headers {
    let options = core.engine.setup.options;
    let mut headers = Vec::with_capacity(options.headers.len() + 6);
    headers.extend(options.headers.iter().cloned());
    if guesses(core, meta) {
        let guess = media::of_name(&moving.entry.name).or_else(|| media::of_content(start));
        headers.extend(guess.map(|value| (CONTENT_TYPE, value)));
    }
    metadata::write(meta, core.engine.policy(), options, &mut headers);
    headers.extend(condition(core, moving));
    headers
}

fn guesses(core: &Core<'_>, meta: &Meta) -> bool {
    let options = core.engine.setup.options;
    let typed = || options.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
    options.guess_content_type && meta.kind == Kind::File && !typed()
}

/// Returns whether the content decides on a header of the object.
pub(super) fn needs_content(core: &Core<'_>, moving: &Moving, meta: &Meta) -> bool {
    guesses(core, meta) && media::of_name(&moving.entry.name).is_none()
}

/// Returns whether a file was not written to between two checks.
pub(super) fn unchanged(before: &Meta, after: &Meta) -> bool {
    (before.size, before.mtime, before.ctime) == (after.size, after.mtime, after.ctime)
}

pub(super) fn read_failed(error: std::io::Error) -> Failed {
    Failed::File(Operation::Read, Side::Source, error)
}

impl Core<'_> {
    /// Returns the algorithm of the checksum to compute for uploads.
    pub(in crate::object) fn upload_checksum(&self) -> Option<hakobu_s3::Algorithm> {
        self.target.as_ref()?.session().upload_checksum()
    }
}
