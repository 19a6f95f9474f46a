//! The pure function that decides what happens to an entry, and how rsync would itemize it.

use super::{Grain, Policy, Symlinks, is_newer, same_time};
use hakobu_core::unit::{Kind, Meta};

/// The action for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The target does not exist: create it.
    Create,
    /// Replace the target (regular files: content; others: created anew).
    Update,
    /// The content is right; attributes may differ.
    Metadata,
    /// Sizes are equal and `--checksum` requires a comparison of contents.
    Compare,
    /// Do nothing.
    Skip(Reason),
}

/// Reason for a skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `--existing` and the target does not exist.
    NotExisting,
    /// `--ignore-existing` and the target exists.
    Existing,
    /// `--update` and the target is newer.
    Newer,
    /// Larger than `--max-size`.
    TooLarge,
    /// Smaller than `--min-size`.
    TooSmall,
    /// A symlink without `--links`.
    Symlink,
    /// A device, FIFO or socket without `--devices` or `--specials`.
    NonRegular,
    /// A device, which only the superuser may create.
    Privileged,
    /// A directory without `--recursive` or `--dirs`.
    Directory,
}

/// Returns the action for an entry from the metadata of source and target.
///
/// `source` is the entry to transfer (after following a symlink if the policy says so); `target` is `None` if it does
/// not exist; `grain` is the coarser granularity of their times, where it matters. Attributes are compared later,
/// with the entry open.
pub fn decide(source: &Meta, target: Option<&Meta>, policy: &Policy, grain: Grain) -> Action {
    match source.kind {
        // Only a file that stands for a symlink is left of those that are followed.
        Kind::Symlink if policy.symlinks != Symlinks::Keep => return Action::Skip(Reason::Symlink),
        kind if kind.is_device() && !policy.devices => return Action::Skip(Reason::NonRegular),
        kind if kind.is_special() && !policy.specials => return Action::Skip(Reason::NonRegular),
        Kind::Dir if !policy.recurse && !policy.dirs => return Action::Skip(Reason::Directory),
        Kind::File => {
            if policy.max_size.is_some_and(|max| source.size > max) {
                return Action::Skip(Reason::TooLarge);
            }
            if policy.min_size.is_some_and(|min| source.size < min) {
                return Action::Skip(Reason::TooSmall);
            }
        }
        _ => {}
    }
    let Some(target) = target else {
        return if policy.existing { Action::Skip(Reason::NotExisting) } else { Action::Create };
    };
    if source.kind == Kind::Dir {
        return if target.kind == Kind::Dir { Action::Metadata } else { Action::Update };
    }
    if policy.ignore_existing {
        return Action::Skip(Reason::Existing);
    }
    if source.kind != target.kind {
        return Action::Update;
    }
    if policy.update && source.kind == Kind::File {
        let newer = is_newer(target.mtime, source.mtime, policy.modify_window_s, grain);
        if newer.unwrap_or(policy.update_same) {
            return Action::Skip(Reason::Newer);
        }
    }
    compare(source, target, policy, grain)
}

/// Decides whether two entries of one kind have the same content, ignoring the options about existing targets.
pub fn compare(source: &Meta, target: &Meta, policy: &Policy, grain: Grain) -> Action {
    match source.kind {
        _ if source.kind != target.kind => Action::Update,
        Kind::File => decide_file(source, target, policy, grain),
        // The text of a symlink is compared by the engine, which has to read it anyway.
        Kind::Symlink => Action::Compare,
        Kind::CharDevice | Kind::BlockDevice if source.rdev != target.rdev => Action::Update,
        _ => Action::Metadata,
    }
}

fn decide_file(source: &Meta, target: &Meta, policy: &Policy, grain: Grain) -> Action {
    if source.size != target.size {
        return Action::Update;
    }
    if policy.checksum {
        return Action::Compare;
    }
    if policy.size_only {
        return Action::Metadata;
    }
    if policy.newer_only && !policy.ignore_times {
        // Compare nanoseconds although the target's time may be rounded down to a second: the source may have been
        // written in the second of its upload, after the upload.
        let mut known = target.mtime;
        known.s = known.s.saturating_add(policy.modify_window_s.unwrap_or(0).max(0));
        let stale = source.mtime > known;
        return if stale { Action::Update } else { Action::Metadata };
    }
    let same = same_time(source.mtime, target.mtime, policy.modify_window_s, grain);
    if policy.ignore_times || !same { Action::Update } else { Action::Metadata }
}

#[cfg(test)]
mod tests;
