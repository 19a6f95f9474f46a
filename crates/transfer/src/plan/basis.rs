//! Paths of the basis trees (`--link-dest` and similar).

use super::Place;
use crate::policy::Policy;
use std::path::{Component, Path, PathBuf};

/// Returns the trees of `--link-dest` and similar options; relative ones begin in the target. If the target is not
/// created, `..` is resolved from its future path.
pub fn basis_dirs(policy: &Policy, place: &Place) -> impl Iterator<Item = PathBuf> {
    policy.basis_dirs.iter().map(|path| match place.dir {
        Some(_) => place.path.join(path),
        None => without_parents(&place.path.join(path)),
    })
}

/// Removes `..` from a path, by its text alone.
fn without_parents(path: &Path) -> PathBuf {
    let mut kept = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir
                if matches!(kept.components().next_back(), Some(Component::Normal(_))) =>
            {
                kept.pop();
            }
            Component::CurDir => {}
            other => kept.push(other),
        }
    }
    kept
}
