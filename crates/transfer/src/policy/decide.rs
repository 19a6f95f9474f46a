//! The one pure function that decides what happens to an entry, and how rsync would itemize it.

use super::{Policy, Symlinks};
use crate::unit::{Kind, Meta, Time};

/// What shall happen to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// There is nothing at the target: make it.
    Create,
    /// What is at the target is replaced (regular files: content; others: made anew).
    Update,
    /// The content is right; attributes may differ.
    Metadata,
    /// Sizes are equal and `--checksum` asks for the contents before deciding.
    Compare,
    /// Nothing happens.
    Skip(Reason),
}

/// Why nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `--existing` and there is none.
    NotExisting,
    /// `--ignore-existing` and there is one.
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
    /// A directory without `--recursive` or `--dirs`.
    Directory,
}

/// Whether two times are the same to this policy: within `window_s` whole seconds, or to the
/// nanosecond where the window is negative (rsync(1), `--modify-window`).
pub(crate) fn same_time(a: Time, b: Time, window_s: i64) -> bool {
    if window_s < 0 { a == b } else { a.s.abs_diff(b.s) <= window_s as u64 }
}

/// Decides from the source's and the target's metadata what happens to the entry.
///
/// `source` is what is transferred (after following a symlink where the policy follows);
/// `target` is `None` where nothing is there. Attributes are compared later, with the entry open.
pub fn decide(source: &Meta, target: Option<&Meta>, policy: &Policy) -> Action {
    match source.kind {
        Kind::Symlink if policy.symlinks == Symlinks::Skip => return Action::Skip(Reason::Symlink),
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
    if policy.update && source.kind == Kind::File && is_newer(target, source, policy) {
        return Action::Skip(Reason::Newer);
    }
    match source.kind {
        Kind::File => decide_file(source, target, policy),
        // The text of a symlink is compared by the engine, which has to read it anyway.
        Kind::Symlink => Action::Compare,
        Kind::CharDevice | Kind::BlockDevice if source.rdev != target.rdev => Action::Update,
        _ => Action::Metadata,
    }
}

fn decide_file(source: &Meta, target: &Meta, policy: &Policy) -> Action {
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
        // To the nanosecond, although the target's time may be a whole second, rounded down: what
        // was written in the second of its upload may have been written after it.
        let mut known = target.mtime;
        known.s = known.s.saturating_add(policy.modify_window_s.max(0));
        let stale = source.mtime > known;
        return if stale { Action::Update } else { Action::Metadata };
    }
    if policy.ignore_times || !same_time(source.mtime, target.mtime, policy.modify_window_s) {
        return Action::Update;
    }
    Action::Metadata
}

fn is_newer(target: &Meta, source: &Meta, policy: &Policy) -> bool {
    if same_time(source.mtime, target.mtime, policy.modify_window_s) {
        return policy.update_same;
    }
    target.mtime > source.mtime
}

#[cfg(test)]
mod tests;
