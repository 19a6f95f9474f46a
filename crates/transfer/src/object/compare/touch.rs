//! Setting times and modes where the contents are the same already: of a file by system calls, of
//! an object by a copy onto itself, which is the only way that S3 has.

use super::Heads;
use crate::engine::node::c_string;
use crate::error::Operation;
use crate::object::copy::ONE_COPY_BYTES_MAX;
use crate::object::core::Core;
use crate::object::moving::{Done, Failed, Moving};
use crate::object::{ObjectOptions, Root, Side, between, metadata};
use crate::s3::Kind;
use crate::s3::ops::{CopySource, Head, Headers, copy_object};
use crate::unit::{Meta, Time};
use hakobu_sys::{AsFd, OwnedFd, dir, meta};
use http::{HeaderName, HeaderValue};
use std::io;

/// What it comes to.
pub(super) const DONE: Done = Done { bytes: 0, kind: None, skipped: false, metadata: true };

/// What CopyObject forgets of an object unless it is told again (API reference, CopyObject).
const KEPT: [&str; 5] = [
    "x-amz-storage-class",
    "x-amz-website-redirect-location",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
];

/// Gives the target the source's times and mode. `None` where the server cannot.
///
/// # Errors
/// The request's, the system's.
pub(super) async fn touch(
    core: &Core<'_>,
    moving: &Moving,
    heads: &Heads,
) -> Result<Option<Done>, Failed> {
    match (&moving.pair.target, &heads.target) {
        (Root::Local { dir, .. }, _) => {
            let options = core.engine.setup.options;
            let source = heads.source.as_ref().map(|head| metadata::read(&head.metadata));
            let source = source.unwrap_or_default();
            let mtime = source.mtime.unwrap_or(moving.entry.meta.mtime);
            let mtime = options.keep_times.then_some(mtime);
            let chmod = core.engine.policy().chmod.as_ref();
            let apply = |mode| chmod.map_or(mode, |rules| rules.apply(mode, false));
            let mode = source.mode.map(apply).filter(|_| options.keep_modes);
            file(dir, &moving.name, mtime, mode)
                .map(|()| Some(DONE))
                .map_err(|error| Failed::File(Operation::SetTimes, Side::Target, error))
        }
        (Root::Store { .. }, Some(head)) => object(core, moving, heads, head).await,
        _ => Ok(None),
    }
}

fn file(root: &OwnedFd, name: &[u8], mtime: Option<Time>, mode: Option<u32>) -> io::Result<()> {
    let at = name.iter().rposition(|byte| *byte == b'/');
    let below = match at {
        Some(at) => Some(dir::open_below(root.as_fd(), &c_string(&name[..at])?)?),
        None => None,
    };
    let folder = below.as_ref().map_or(root.as_fd(), AsFd::as_fd);
    let name = c_string(&name[at.map_or(0, |at| at + 1)..])?;
    if let Some(mode) = mode {
        meta::set_mode(folder, &name, mode)?;
    }
    match mtime {
        Some(mtime) => meta::set_times(folder, &name, None, mtime),
        None => Ok(()),
    }
}

async fn object(
    core: &Core<'_>,
    moving: &Moving,
    heads: &Heads,
    head: &Head,
) -> Result<Option<Done>, Failed> {
    if head.size > ONE_COPY_BYTES_MAX || head.etag.is_empty() {
        return Ok(None);
    }
    let (bucket, key) = between::target(moving)?;
    let client = core.store(Side::Target)?;
    let mut wanted = Headers::new();
    match &heads.source {
        // What travels with the source's object, as it is written there.
        Some(source) => wanted.extend(
            source
                .headers
                .iter()
                .filter(|(name, _)| is_attribute(name))
                .map(|(name, value)| (name.clone(), value.clone())),
        ),
        None => {
            let policy = core.engine.policy();
            metadata::write(&moving.entry.meta, policy, core.engine.setup.options, &mut wanted);
        }
    }
    let headers = rewritten(head, wanted);
    let source = CopySource { bucket, key: &key, version: None, etag: Some(&head.etag) };
    match copy_object(client, &source, bucket, &key, &headers).await {
        Ok(_) => Ok(Some(DONE)),
        Err(error) if matches!(error.kind, Kind::NotImplemented | Kind::Precondition) => Ok(None),
        Err(error) => Err(Failed::Request(Operation::SetTimes, Side::Target, error)),
    }
}

fn is_attribute(name: &HeaderName) -> bool {
    let end = name.as_str().strip_prefix(between::META);
    end.is_some_and(|end| matches!(end, "mtime" | "mode" | "uid" | "gid"))
}

/// The headers of an object that is copied onto itself: its own, with `wanted` in their place.
fn rewritten(head: &Head, wanted: Headers) -> Headers {
    let mut headers = between::carried(head, &ObjectOptions::default(), b"");
    headers.retain(|(name, _)| !wanted.iter().any(|(other, _)| other == name));
    headers.extend(wanted);
    for name in KEPT {
        if let Some(value) = head.headers.get(name) {
            headers.push((HeaderName::from_static(name), value.clone()));
        }
    }
    let directive = HeaderName::from_static("x-amz-metadata-directive");
    headers.push((directive, HeaderValue::from_static("REPLACE")));
    headers
}

/// The metadata of a file that an object says to have been, for messages: what it does not say
/// stays as `meta` has it.
pub(super) fn as_file(meta: &Meta, head: Option<&Head>) -> Meta {
    let Some(head) = head else { return *meta };
    let kept = metadata::read(&head.metadata);
    Meta {
        mode: kept.mode.unwrap_or(meta.mode),
        mtime: kept.mtime.unwrap_or(meta.mtime),
        size: head.size,
        ..*meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_what_a_copy_onto_itself_forgets() {
        let header = |name: &'static str, value: &'static str| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let all = [
            header("content-type", "a/b"),
            header("x-amz-meta-mtime", "1"),
            header("x-amz-meta-who", "me"),
            header("x-amz-storage-class", "GLACIER_IR"),
            header("x-amz-version-id", "v"),
        ];
        let head = Head { headers: all.into_iter().collect(), ..Head::default() };
        let mut found: Vec<_> = rewritten(&head, vec![header("x-amz-meta-mtime", "2")])
            .into_iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "content-type=a/b",
                "x-amz-meta-mtime=2",
                "x-amz-meta-who=me",
                "x-amz-metadata-directive=REPLACE",
                "x-amz-storage-class=GLACIER_IR"
            ]
        );
    }
}
