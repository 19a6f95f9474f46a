//! Uploads. A small file is one read, one checksum and one request; a larger one is sent in parts.

pub(super) mod cut;
mod fill;
mod large;
mod media;
mod open;
mod request;
mod resume;
pub(super) mod stream;

pub(super) use large::TOO_LARGE;
pub use media::of_name_alone as content_type;

use super::core::Core;
use super::ends::{CHANGED_WHILE_READ, Target};
use super::failed::Failed;
use super::moving::{Done, Moving, Step};
use super::{Root, Side};
use crate::policy::Symlinks;
use bytes::Bytes;
use cut::Limits;
use fill::Source;
use hakobu_core::error::Operation;
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::Checksum;
use hakobu_s3::ops::put_object;
use hakobu_sys::{AsFd, BorrowedFd, meta};
use request::{headers, read_failed, refused, unchanged};
use std::sync::Arc;

/// Maximum number of reads of a file that changes while it is read.
const READS_MAX: usize = 3;

/// Uploads a small file, or begins with a large one.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    let Root::Local { dir, .. } = &moving.pair.source else {
        return Err(Failed::Reason(Operation::Read, Side::Source, "it is not a local file"));
    };
    let meta = &moving.entry.meta;
    match meta.kind {
        Kind::Dir => put(core, moving, Bytes::new(), None, meta).await.map(Step::Done),
        Kind::Symlink if core.engine.policy().symlinks == Symlinks::Keep => {
            link(core, moving, dir.as_fd()).await.map(Step::Done)
        }
        _ => file(core, moving, dir.as_fd()).await,
    }
}

/// Uploads a symlink as s3fs stores it: its text is the content, its type is in the metadata.
async fn link(core: &Core<'_>, moving: &Moving, dir: BorrowedFd<'_>) -> Result<Done, Failed> {
    let (text, meta) = open::link(dir, &moving.entry.name).map_err(open::failed)?;
    if meta.kind != Kind::Symlink {
        return Err(Failed::Reason(Operation::Read, Side::Source, "it is no longer a symlink"));
    }
    let body = Bytes::from(text.into_bytes());
    put(core, moving, body, None, &meta).await
}

async fn file(core: &Core<'_>, moving: &Arc<Moving>, dir: BorrowedFd<'_>) -> Result<Step, Failed> {
    let through = open::through(core.engine.policy(), &moving.entry);
    let opened = match fill::waits(moving.entry.meta.dev) {
        true => open::elsewhere(moving, through).await,
        false => open::file(dir, &moving.entry.name, through),
    };
    let (file, mut now) = opened.map_err(open::failed)?;
    let source = Source::new(file, now.dev);
    for _ in 0..READS_MAX {
        if now.kind != Kind::File {
            let why = "it is no longer a regular file";
            return Err(Failed::Reason(Operation::Read, Side::Source, why));
        }
        if let Some(cut) = Limits::of(core.engine).cut(now.size) {
            return large::begin(core, moving, source, &now, cut).await;
        }
        match whole(core, moving, &source, &now).await? {
            Ok(done) => return Ok(Step::Done(done)),
            Err(changed) => now = changed,
        }
    }
    Err(Failed::Reason(Operation::Read, Side::Source, CHANGED_WHILE_READ))
}

/// Uploads with one read and one request; the inner error is the file's new state if it changed.
async fn whole(
    core: &Core<'_>,
    moving: &Moving,
    source: &Source,
    now: &Meta,
) -> Result<Result<Done, Meta>, Failed> {
    // The room is held until the server has the object.
    let _room = core.room(now.size).await;
    let wanted = fill::Wanted {
        offset: 0,
        len: now.size as usize,
        // Files of /proc have size 0: an extra byte shows that they are not empty.
        is_whole: true,
        algorithm: core.upload_checksum(),
    };
    let filled = fill::fill(&core.doing, source, wanted).await.map_err(read_failed)?;
    let after = filled.after.map_or_else(|| meta::of_fd(source), Ok).map_err(read_failed)?;
    if filled.body.len() as u64 != now.size || !unchanged(now, &after) {
        return Ok(Err(after));
    }
    put(core, moving, filled.body, filled.checksum, now).await.map(Ok)
}

/// Sends one request. Computes `checksum` if the caller has none. The key of a directory ends with a slash.
async fn put(
    core: &Core<'_>,
    moving: &Moving,
    body: Bytes,
    checksum: Option<Checksum>,
    meta: &Meta,
) -> Result<Done, Failed> {
    let Target { client, bucket, mut key } = Target::of(core, moving)?;
    if meta.kind == Kind::Dir && !key.ends_with(b"/") {
        key.push(b'/');
    }
    let bytes = body.len() as u64;
    let checksum =
        checksum.or_else(|| core.upload_checksum().map(|which| Checksum::of(which, &body)));
    let headers = headers(core, moving, meta, &body);
    match put_object(client, bucket, &key, body, checksum.as_ref(), &headers).await {
        Ok(_) => {
            let kind = (meta.kind != Kind::File).then_some(meta.kind);
            let bytes = if kind.is_none() { bytes } else { 0 };
            Ok(Done { bytes, kind, ..Done::default() })
        }
        Err(error) => refused(core, error),
    }
}
