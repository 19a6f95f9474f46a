//! Information that a transfer requires before it decides about an entry.

use crate::plan::{Layout, Spec};

/// Returns whether the target must be examined before deciding.
pub(super) fn needs_target(spec: &Spec) -> bool {
    let policy = &spec.policy;
    let sync = matches!(spec.layout, Layout::Rsync { .. });
    sync || policy.size_only
        || policy.update
        || policy.ignore_existing
        || policy.existing
        || policy.checksum
}

/// As `needs_target`, for a single entry with a new name. cp writes into a device or FIFO of that name, and keeps
/// mode and owner of a file; examining a local target costs one call.
pub(super) fn needs_target_of_one(spec: &Spec) -> bool {
    needs_target(spec) || spec.policy.cp_targets && !spec.target.is_s3()
}
