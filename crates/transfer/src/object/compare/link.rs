//! Comparison of a local symlink, kept as one, with the object that stands for it.

use super::pieces::{self, Compared, Contents};
use crate::object::entry::Failed;
use crate::object::entry::Moving;
use crate::object::metadata;
use crate::object::runtime::Core;
use crate::object::{Entry, Root, Side};
use bytes::Bytes;
use hakobu_core::unit::Kind;
use hakobu_sys::AsFd;
use hakobu_sys::source;

/// Returns the side that is a local symlink, kept as one.
pub(super) fn side(moving: &Moving) -> Option<Side> {
    let is = |root: &Root, entry: &Entry| {
        matches!(root, Root::Local { .. }) && entry.meta.kind == Kind::Symlink
    };
    let existing = moving.existing.as_deref();
    if is(&moving.pair.source, &moving.entry) {
        Some(Side::Source)
    } else {
        existing.filter(|entry| is(&moving.pair.target, entry)).map(|_| Side::Target)
    }
}

/// Compares the text of a symlink with the content of an object that is marked as one.
///
/// # Errors
/// The side that could not be read, and the reason.
pub(super) async fn compare(
    core: &Core<'_>,
    what: &Compared<'_>,
    side: Side,
) -> Result<Contents, Failed> {
    let (other, head) = match side {
        Side::Source => (Side::Target, what.target),
        Side::Target => (Side::Source, what.source),
    };
    let (Root::Local { dir, .. }, name) = what.moving.end(side) else {
        return Ok(Contents::Differ(None));
    };
    let Some(head) = head else { return Ok(Contents::Differ(None)) };
    let text =
        source::open_name(dir.as_fd(), name).and_then(|link| source::link_text(link.as_fd()));
    let text = Bytes::from(text.map_err(pieces::file_failed(side))?.into_bytes());
    let size = text.len() as u64;
    if metadata::read(&head.metadata).kind != Some(Kind::Symlink) || head.size != size {
        return Ok(Contents::Differ(None));
    }
    let object = pieces::object(core, what, other);
    let mut bytes = pieces::stream(core, what, other, object.as_ref(), size)?;
    let mut left = text;
    while let Some(piece) = bytes.next(core, other).await? {
        if !left.starts_with(&piece) {
            return Ok(Contents::Differ(None));
        }
        let _ = left.split_to(piece.len());
    }
    Ok(if left.is_empty() { Contents::Same } else { Contents::Differ(None) })
}
