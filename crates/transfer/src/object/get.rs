//! Downloads: small objects whole, larger ones in ranges, each checked before it gets its name.

mod body;
mod carried;
pub(super) mod files;
mod folded;
pub(super) mod folders;
mod large;
mod place;
mod range;
mod resume;
mod small;
mod stream;
mod target;
mod through;

pub(super) use body::check;
pub(crate) use folded::CASE;
pub use folded::Folded;
pub use stream::{StreamError, StreamParts, download_stream};

use super::core::Core;
use super::failed::Failed;
use super::moving::{Moving, Step};
use super::{Root, Side};
use crate::publish::is_node;
use hakobu_core::error::Operation;
use std::sync::Arc;

/// Default part size, and maximum size of an object that is received whole, in bytes.
const PART_BYTES: u64 = 8 << 20;

/// Downloads a small object, or begins with a large one.
///
/// # Errors
/// Those of the request or the target; nothing incomplete is left under the final name.
pub(super) async fn begin(core: &Core<'_>, moving: &Arc<Moving>) -> Result<Step, Failed> {
    if let Some(path) = moving.name.strip_suffix(b"/") {
        if moving.entry.meta.size > 0 {
            let why = "its name ends with a slash, which no file's can";
            return Err(Failed::Reason(Operation::Create, Side::Target, why));
        }
        return small::marker(core, moving, path).await.map(Step::Done);
    }
    let is_written_to = matches!(moving.pair.target, Root::Local { .. })
        && core.engine.policy().cp_targets
        && moving.existing.as_ref().is_some_and(|there| is_node(there.meta.kind));
    if is_written_to {
        return through::run(core, moving).await.map(Step::Done);
    }
    let part_bytes = core.engine.setup.options.part_bytes.unwrap_or(PART_BYTES).max(1);
    if moving.entry.meta.size <= part_bytes
        && let Some(done) = small::run(core, moving, part_bytes).await?
    {
        return Ok(Step::Done(done));
    }
    large::begin(core, moving, part_bytes).await
}
