//! Sets times, modes and owners of entries with equal contents: of a file by system calls, of an object by a copy
//! onto itself, the only way in S3.

use crate::object::copy::ONE_COPY_BYTES_MAX;
use crate::object::core::Core;
use crate::object::ends::Target;
use crate::object::failed::Failed;
use crate::object::metadata::{self, Kept};
use crate::object::moving::{Done, Moving};
use crate::object::{ObjectOptions, Root, Side, between};
use hakobu_core::error::Operation;
use hakobu_core::unit::Meta;
use hakobu_s3::ErrorKind;
use hakobu_s3::ops::{CopySource, Headers, ObjectHead, copy_object};
use hakobu_sys::below::Below;
use hakobu_sys::{AsFd, OwnedFd, meta, process, stamp};
use http::{HeaderName, HeaderValue};
use std::io;

/// Headers of source and target, for those that are objects.
#[derive(Default)]
pub(super) struct Heads {
    pub source: Option<ObjectHead>,
    pub target: Option<ObjectHead>,
}

/// Headers that CopyObject drops unless they are sent again (API reference, CopyObject).
const KEPT: [&str; 5] = [
    "x-amz-storage-class",
    "x-amz-website-redirect-location",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-bucket-key-enabled",
];

/// Sets the source's times, mode and owner on the target. Returns `None` if the server cannot.
///
/// # Errors
/// Those of the request or of the system.
pub(super) async fn touch(
    core: &Core<'_>,
    moving: &Moving,
    heads: &Heads,
) -> Result<Option<Done>, Failed> {
    match (&moving.pair.target, &heads.target) {
        (Root::Local { dir, .. }, _) => {
            let (policy, options) = (core.engine.policy(), core.engine.setup.options);
            let source = heads.source.as_ref().map(|head| metadata::read(&head.metadata));
            let mut kept = source.unwrap_or_default().on_file(policy, options, process::euid());
            // A file whose object has no mtime gets its LastModified.
            let listed = options.keep_times.then_some(moving.entry.meta.mtime);
            kept.mtime = kept.mtime.or(listed);
            if let Some(rules) = &policy.chmod {
                kept.mode = kept.mode.map(|mode| rules.apply(mode, false));
            }
            file(dir, &moving.name, &kept)
                .map(|()| Some(Done::METADATA))
                .map_err(|(operation, error)| Failed::File(operation, Side::Target, error))
        }
        (Root::Store { .. }, Some(head)) => object(core, moving, heads, head).await,
        _ => Ok(None),
    }
}

/// Sets owner, mode and time, in this order: a change of owner clears setuid bits.
fn file(root: &OwnedFd, name: &[u8], kept: &Kept) -> Result<(), (Operation, io::Error)> {
    let below = Below::find(root.as_fd(), name).map_err(|error| (Operation::Stat, error))?;
    let (folder, name) = (below.dir(), below.name());
    if kept.uid.is_some() || kept.gid.is_some() {
        let owned = meta::set_owner(folder, name, kept.uid, kept.gid);
        owned.map_err(|error| (Operation::SetOwner, error))?;
    }
    if let Some(mode) = kept.mode {
        let moded = meta::set_mode(folder, name, mode);
        moded.map_err(|error| (Operation::SetMode, error))?;
    }
    match kept.mtime {
        Some(mtime) => {
            let dev = meta::of_fd(folder).map_err(|error| (Operation::Stat, error))?.dev;
            stamp::set(dev, folder, name, None, mtime).map_err(|error| (Operation::SetTimes, error))
        }
        None => Ok(()),
    }
}

async fn object(
    core: &Core<'_>,
    moving: &Moving,
    heads: &Heads,
    head: &ObjectHead,
) -> Result<Option<Done>, Failed> {
    if head.size > ONE_COPY_BYTES_MAX || head.etag.is_empty() {
        return Ok(None);
    }
    let Target { client, bucket, key } = Target::of(core, moving)?;
    let mut wanted = Headers::new();
    match &heads.source {
        // The source object's metadata, unchanged.
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
    let source = CopySource {
        bucket,
        key: &key,
        version: None,
        customer_key: client.session().customer_key(),
        etag: Some(&head.etag),
    };
    match copy_object(client, &source, bucket, &key, &headers).await {
        Ok(_) => Ok(Some(Done::METADATA)),
        Err(error) if matches!(error.kind, ErrorKind::NotImplemented | ErrorKind::Precondition) => {
            Ok(None)
        }
        Err(error) => Err(Failed::at_target(Operation::SetTimes)(error)),
    }
}

fn is_attribute(name: &HeaderName) -> bool {
    let end = name.as_str().strip_prefix(between::META);
    end.is_some_and(|end| matches!(end, "mtime" | "mode" | "uid" | "gid"))
}

/// Returns the headers of an object that is copied onto itself: its own, overridden by `wanted`.
fn rewritten(head: &ObjectHead, wanted: Headers) -> Headers {
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

/// Returns the file metadata stored with an object, for messages; missing values come from `meta`.
pub(super) fn as_file(meta: &Meta, head: Option<&ObjectHead>) -> Meta {
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
        let head = ObjectHead { headers: all.into_iter().collect(), ..ObjectHead::default() };
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
