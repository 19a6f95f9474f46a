//! The proof that what the target has may be deleted: no source has the name, by a lookup there and now. It is made on the
//! machine of the sources, for this machine's target or for that of the other end.

use super::source::SourceDir;
use super::target_dir::{DirFds, Node};
use super::walk::{filter_failure, read_merge_file};
use crate::failure::Failure;
use crate::policy::{Policy, Symlinks, is_unsafe_link};
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, dir, errno, meta};
use hakobu_tree::names::push_name;
use std::ffi::CStr;
use std::sync::Arc;

/// Returns whether deletion depends on the path of a name.
pub(super) fn needs_path(policy: &Policy, node: &Node) -> bool {
    node.rules.is_some() || policy.prune_empty_dirs || policy.copy_unsafe_links
}

/// Returns whether any source of a directory provides a name that its target has. A source that has it, but is hidden by a
/// rule or is an empty directory that is left out, does not. `path`: that of the name in the transfer, if it is needed.
/// `looks` is called before each lookup.
///
/// # Errors
/// It cannot be told: an error does not prove that a name is gone.
pub(super) fn is_provided(
    policy: &Policy,
    (node, fds): (&Node, &DirFds),
    (name, path): (&CStr, &[u8]),
    mut looks: impl FnMut(),
) -> Result<bool, Failure> {
    if node.base.as_deref().is_some_and(|base| base.provided.iter().any(|other| **other == *name)) {
        return Ok(true);
    }
    let rules = node.rules.as_ref();
    for side in (0..fds.sources.len()).filter(|side| node.selects(*side, name)) {
        let source_dir = fds.source(side).and_then(SourceDir::here);
        let source_dir = source_dir.map_err(Failure::of(Operation::Stat))?;
        looks();
        match meta::of(source_dir, name, false) {
            Ok(source) => {
                let is_dir = source.kind == Kind::Dir
                    || is_followed_dir(policy, (source_dir, name), source.kind, || path.to_vec());
                let hidden = rules.is_some_and(|rules| rules.hides(path, is_dir));
                let pruned = is_dir
                    && policy.prune_empty_dirs
                    && !has_content(policy, node, (source_dir, name), path)?;
                if !hidden && !pruned {
                    return Ok(true);
                }
            }
            Err(error) if errno::is(&error, errno::ENOENT) => {
                // In a directory that was removed meanwhile every lookup returns ENOENT.
                let source = meta::of_fd(source_dir).map_err(Failure::of(Operation::List))?;
                if source.nlink == 0 {
                    return Err(Failure::code(Operation::List, errno::ESTALE));
                }
            }
            Err(error) => return Err(Failure { operation: Operation::Stat, error }),
        }
    }
    Ok(false)
}

/// Returns which of the names that the other end asks for no source provides: a bit for each, the lowest first. After an
/// error those that follow count as provided, and the error is returned as well.
pub fn absent(policy: &Policy, node: &Node, names: &[Vec<u8>]) -> (Vec<u8>, Option<Failure>) {
    let mut absent = vec![0; names.len().div_ceil(8)];
    let mut path = Vec::new();
    let mut look = || -> Result<(), Failure> {
        let fds = node.fds().map_err(Failure::of(Operation::List))?;
        for (at, name) in names.iter().enumerate() {
            let name = crate::failure::c_string(name).map_err(Failure::of(Operation::Stat))?;
            path.clear();
            if needs_path(policy, node) {
                node.push_path(&mut path);
                push_name(&mut path, name.to_bytes());
            }
            let is_provided = is_provided(policy, (node, &fds), (&name, &path), || {})?;
            if let Some(bits) = absent.get_mut(at / 8).filter(|_| !is_provided) {
                *bits |= 1 << (at % 8);
            }
        }
        Ok(())
    };
    let failure = look().err();
    (absent, failure)
}

/// Returns whether a symlink is treated as the directory that it points to. `path`: its own path in the transfer.
pub(super) fn is_followed_dir(
    policy: &Policy,
    (dir_fd, name): (BorrowedFd<'_>, &CStr),
    kind: Kind,
    path: impl FnOnce() -> Vec<u8>,
) -> bool {
    if !matches!(kind, Kind::Symlink | Kind::Unknown) {
        return false;
    }
    let follows = policy.copy_dirlinks
        || policy.symlinks == Symlinks::Follow
        || is_unsafe_followed(policy, (dir_fd, name), path);
    (follows || kind == Kind::Unknown)
        && meta::of(dir_fd, name, follows).is_ok_and(|meta| meta.kind == Kind::Dir)
}

/// Returns whether a symlink points out of the tree and is replaced by its referent.
pub(super) fn is_unsafe_followed(
    policy: &Policy,
    (dir_fd, name): (BorrowedFd<'_>, &CStr),
    path: impl FnOnce() -> Vec<u8>,
) -> bool {
    policy.copy_unsafe_links
        && dir::read_link(dir_fd, name).is_ok_and(|text| is_unsafe_link(text.to_bytes(), &path()))
}

/// Returns whether anything but directories is transferred from below a source directory (`--prune-empty-dirs` skips it
/// otherwise). Stops at the first hit.
fn has_content(
    policy: &Policy,
    node: &Node,
    (source_dir, name): (BorrowedFd<'_>, &CStr),
    path: &[u8],
) -> Result<bool, Failure> {
    let mut reader = dir::Reader::default();
    // A symlink that is treated as a directory is followed, as in the walk.
    let follows = policy.follows_dirs();
    let open = dir::open(source_dir, name, follows).map_err(Failure::of(Operation::List))?;
    let filter = policy.filter.as_deref();
    let rules = node.rules.as_ref().map(|rules| Arc::clone(rules.source()));
    let mut waiting = vec![(open, path.to_vec(), rules)];
    while let Some((fd, path, rules)) = waiting.pop() {
        let rules = match (filter, rules) {
            (Some(filter), Some(rules)) => {
                let read = &mut |name: &[u8]| read_merge_file(&policy.links, fd.as_fd(), name);
                let entered = filter.enter(&rules, &path, read);
                Some(entered.map_err(filter_failure)?)
            }
            (_, rules) => rules,
        };
        let mut found = false;
        let listed = reader.for_each(fd.as_fd(), |name, kind, _| {
            let mut path = path.clone();
            push_name(&mut path, name.to_bytes());
            let is_dir = kind == Kind::Dir
                || is_followed_dir(policy, (fd.as_fd(), name), kind, || path.clone());
            let hidden = filter
                .zip(rules.as_deref())
                .is_some_and(|(filter, rules)| filter.check(rules, &path, is_dir, false).hide);
            match (hidden, is_dir) {
                (true, _) => {}
                (false, false) => found = true,
                // A directory that cannot be opened may contain anything: it counts as content.
                (false, true) => match dir::open(fd.as_fd(), name, follows) {
                    Ok(below) if waiting.len() < 500 => {
                        waiting.push((below, path, rules.clone()));
                    }
                    _ => found = true,
                },
            }
        });
        listed.map_err(Failure::of(Operation::List))?;
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}
