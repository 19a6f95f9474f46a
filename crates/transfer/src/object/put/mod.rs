//! File to object. A small one is one read, one checksum and one request; a larger one goes in
//! parts.

pub(super) mod cut;
mod fill;
mod large;
mod open;
mod resume;
pub(super) mod stream;

pub use large::Large;
pub(super) use large::{TOO_LARGE, part};

use super::core::Core;
use super::metadata;
use super::moving::{Done, Failed, Moving, Step};
use super::{Root, Side};
use crate::error::Operation;
use crate::policy::Symlinks;
use crate::s3::ops::{Headers, put_object};
use crate::s3::{self, Checksum, Kind as Why};
use crate::unit::{Kind, Meta};
use bytes::Bytes;
use cut::Cut;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, meta};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use std::sync::Arc;

/// How often a file that changes while it is read is read again.
const READS_MAX: usize = 3;
const CHANGED: &str = "it changed while it was read";

/// Moves a small entry, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let Root::Local { dir, .. } = &moving.pair.source else {
        return Err(Failed::Reason(Operation::Read, Side::Source, "it is no local file"));
    };
    let meta = &moving.entry.meta;
    match meta.kind {
        Kind::Dir => {
            let mut key = moving.pair.target.key(&moving.name);
            if !key.ends_with(b"/") {
                key.push(b'/');
            }
            put(core, moving, &key, Bytes::new(), None, meta).await
        }
        Kind::Symlink if core.engine.policy().symlinks == Symlinks::Keep => {
            link(core, moving, dir.as_fd()).await
        }
        _ => file(core, moving, dir.as_fd()).await,
    }
}

/// A symlink as s3fs stores it: its text is the content, its type is in the metadata.
async fn link(core: &Core<'_>, moving: &Arc<Moving>, dir: BorrowedFd<'_>) -> Result<Step, Failed> {
    let (text, meta) = open::link(dir, &moving.entry.name).map_err(open::failed)?;
    if meta.kind != Kind::Symlink {
        return Err(Failed::Reason(Operation::Read, Side::Source, "it is no longer a symlink"));
    }
    let body = Bytes::from(text.into_bytes());
    let key = moving.pair.target.key(&moving.name);
    put(core, moving, &key, body, None, &meta).await
}

async fn file(core: &Core<'_>, moving: &Arc<Moving>, dir: BorrowedFd<'_>) -> Result<Step, Failed> {
    let through = open::through(core.engine.policy(), &moving.entry);
    let (file, mut now) = open::file(dir, &moving.entry.name, through).map_err(open::failed)?;
    for _ in 0..READS_MAX {
        if now.kind != Kind::File {
            let why = "it is no longer a regular file";
            return Err(Failed::Reason(Operation::Read, Side::Source, why));
        }
        if let Some(cut) = Cut::of(now.size, &core.engine.limits()) {
            return large::begin(core, moving, file, &now, cut).await;
        }
        match whole(core, moving, &file, &now).await? {
            Ok(step) => return Ok(step),
            Err(changed) => now = changed,
        }
    }
    Err(Failed::Reason(Operation::Read, Side::Source, CHANGED))
}

/// One read and one request; the inner error is what the file is by now, where it changed.
async fn whole(
    core: &Core<'_>,
    moving: &Arc<Moving>,
    file: &OwnedFd,
    now: &Meta,
) -> Result<Result<Step, Meta>, Failed> {
    // The room is held until the server has the object.
    let _room = core.room(now.size).await;
    let wanted = fill::Wanted {
        offset: 0,
        len: now.size as usize,
        // A file of /proc calls itself empty: one byte more would show that it is not.
        and_more: true,
        algorithm: core.upload_checksum(),
    };
    let filled = fill::fill(&core.doing, file, now.dev, wanted).await.map_err(read_failed)?;
    let after = meta::of_fd(file).map_err(read_failed)?;
    if filled.body.len() as u64 != now.size || !unchanged(now, &after) {
        return Ok(Err(after));
    }
    let key = moving.pair.target.key(&moving.name);
    put(core, moving, &key, filled.body, filled.checksum, now).await.map(Ok)
}

/// One request. `checksum` is computed here where the caller has none.
async fn put(
    core: &Core<'_>,
    moving: &Moving,
    key: &[u8],
    body: Bytes,
    checksum: Option<Checksum>,
    meta: &Meta,
) -> Result<Step, Failed> {
    let (Root::Store { bucket, .. }, Some(client)) =
        (&moving.pair.target, core.client(Side::Target))
    else {
        return Err(no_store());
    };
    let bytes = body.len() as u64;
    let checksum =
        checksum.or_else(|| core.upload_checksum().map(|which| Checksum::of(which, &body)));
    let headers = headers(core, moving, meta);
    match put_object(client, bucket, key, body, checksum.as_ref(), &headers).await {
        Ok(_) => {
            let kind = (meta.kind != Kind::File).then_some(meta.kind);
            let bytes = if kind.is_none() { bytes } else { 0 };
            Ok(Step::Done(Done { bytes, kind, ..Done::default() }))
        }
        Err(error) => refused(core, error).map(Step::Done),
    }
}

/// What a failed request that would have made the object means.
fn refused(core: &Core<'_>, error: s3::Error) -> Result<Done, Failed> {
    let setup = &core.engine.setup;
    let existed = error.kind == Why::Precondition && setup.options.if_none_match;
    if existed && setup.policy.ignore_existing {
        return Ok(Done { skipped: true, ..Done::default() });
    }
    Err(Failed::Request(Operation::Write, Side::Target, error))
}

/// All headers of the object that an entry becomes.
fn headers(core: &Core<'_>, moving: &Moving, meta: &Meta) -> Headers {
    let options = core.engine.setup.options;
    let mut headers = Vec::with_capacity(options.headers.len() + 6);
    headers.extend(options.headers.iter().cloned());
    let typed = || options.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
    if options.guess_content_type && meta.kind == Kind::File && !typed() {
        headers.extend(content_type(&moving.entry.name).map(|value| (CONTENT_TYPE, value)));
    }
    metadata::write(meta, core.engine.policy(), options, &mut headers);
    if options.if_none_match {
        headers.push((IF_NONE_MATCH, HeaderValue::from_static("*")));
    }
    headers
}

/// The media type that the ending of a name stands for.
pub fn content_type(name: &[u8]) -> Option<HeaderValue> {
    let base = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = base.iter().rposition(|&byte| byte == b'.')?;
    let ending = std::str::from_utf8(base.get(dot + 1..)?).ok()?;
    // A name that begins with its only dot is a hidden file without an ending.
    let guess = (dot > 0).then(|| mime_guess::from_ext(ending).first_raw()).flatten()?;
    Some(HeaderValue::from_static(guess))
}

/// Whether nothing was written to a file between two looks at it.
fn unchanged(before: &Meta, after: &Meta) -> bool {
    (before.size, before.mtime, before.ctime) == (after.size, after.mtime, after.ctime)
}

fn read_failed(error: std::io::Error) -> Failed {
    Failed::File(Operation::Read, Side::Source, error)
}

fn no_store() -> Failed {
    Failed::Reason(Operation::Write, Side::Target, "it is in no store")
}

impl Core<'_> {
    /// The checksum to compute of what goes up.
    pub(super) fn upload_checksum(&self) -> Option<s3::Algorithm> {
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
