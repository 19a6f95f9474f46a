//! Object to file: small objects whole, larger ones in ranges, each checked before it appears.

mod body;
mod carried;
mod folders;
mod large;
mod parts;
mod range;
mod resume;
mod small;
mod stream;
mod target;

pub(super) use folders::Folders;
pub use large::Large;
pub(super) use large::part;
pub use stream::{StreamError, download_stream};
pub(super) use target::Files;

use super::Side;
use super::core::Core;
use super::moving::{Failed, Moving, Step};
use crate::error::Operation;
use std::sync::Arc;

/// The size of a part, and the largest object that is received whole, where nobody asks for
/// another.
const PART_BYTES: u64 = 8 << 20;

/// Moves a small entry, or begins with a large one.
///
/// # Errors
/// The request's or the target's; nothing half-written is left under the final name.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    if let Some(path) = moving.name.strip_suffix(b"/") {
        if moving.entry.meta.size > 0 {
            let why = "its name ends with a slash, which no file's can";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        }
        return small::marker(core, moving, path).map(Step::Done);
    }
    let part_bytes = core.engine.setup.options.part_bytes.unwrap_or(PART_BYTES).max(1);
    if moving.entry.meta.size <= part_bytes
        && let Some(done) = small::run(core, moving, part_bytes).await?
    {
        return Ok(Step::Done(done));
    }
    large::begin(core, moving, part_bytes).await
}
