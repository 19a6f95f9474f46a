//! Removal of versions of objects.

use super::objects::{self, KEYS_MAX};
use super::report::removed;
use crate::object::core::Core;
use crate::object::{Entry, Pair, Root, VersionEntry};
use hakobu_core::unit::Totals;
use std::sync::Arc;

/// Removes versions of objects of the pair's target, within `--max-delete`; counts and reports each.
pub(in crate::object) async fn run(
    core: &Core<'_>,
    pair: &Arc<Pair>,
    mut versions: Vec<VersionEntry>,
) {
    let mut totals = Totals::default();
    let before = versions.len();
    versions.retain(|_| core.engine.may_delete());
    totals.deletes_held = (before - versions.len()) as u64;
    let all: Vec<(&Entry, Option<&str>)> =
        versions.iter().map(|version| (&version.entry, Some(&*version.id))).collect();
    if core.engine.policy().dry_run {
        for (entry, version) in &all {
            removed(core.engine, pair, entry, *version, &mut totals);
        }
    } else if let Root::Store { bucket, .. } = &pair.target {
        for batch in all.chunks(KEYS_MAX) {
            if core.engine.is_stopped() {
                break;
            }
            objects::remove(core, pair, bucket, batch, &mut totals).await;
        }
    }
    core.doing.lane().done(before as u64);
    core.add(totals);
}
