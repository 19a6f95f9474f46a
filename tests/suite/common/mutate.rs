//! Random changes of a tree, as between two backups. Deterministic for a seed.

use super::grow::{Grower, Plan, age, scribble, set_mtime};
use super::snapshot::{Entry, Snapshot};
use super::{remove_tree, xattr};
use fastrand::Rng;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Which changes may happen, besides edits and new attributes.
#[derive(Clone, Copy, Debug)]
pub struct Wild {
    /// A name may become another type.
    pub types: bool,
    /// Names may be removed, renamed, added.
    pub names: bool,
    /// Hard links may be made and broken.
    pub links: bool,
}

impl Wild {
    pub const ALL: Wild = Wild { types: true, names: true, links: true };
}

/// Makes `count` random changes below `root`.
pub fn mutate(root: &Path, seed: u64, count: usize, plan: &Plan, wild: Wild) {
    let mut grower = Grower { rng: Rng::with_seed(seed ^ 0x6d75), plan, files: Vec::new() };
    // Names of their own for each seed: a tree is changed several times.
    let base = 10_000 + 100 * usize::try_from(seed % 10_000).unwrap();
    for number in 0..count {
        let tree = Snapshot::of(root);
        let keys: Vec<_> = tree.entries.keys().filter(|key| *key != b".").collect();
        if keys.is_empty() {
            return;
        }
        let key = keys[grower.rng.usize(..keys.len())];
        let path = root.join(OsStr::from_bytes(key));
        change(&mut grower, root, &path, &tree.entries[key], &tree, base + number, wild);
    }
    age(root);
}

fn change(
    grower: &mut Grower<'_>,
    root: &Path,
    path: &Path,
    entry: &Entry,
    tree: &Snapshot,
    number: usize,
    wild: Wild,
) {
    let dir = entry.kind == FileType::Directory;
    let file = entry.kind == FileType::RegularFile;
    match grower.rng.u8(..12) {
        0 | 1 if file => {
            scribble(path, &mut grower.rng);
            later(path, entry, &mut grower.rng);
        }
        2 if file => {
            grower.content(path);
            later(path, entry, &mut grower.rng);
        }
        3 => later(path, entry, &mut grower.rng),
        4 if entry.kind != FileType::Symlink => {
            let mode = std::fs::Permissions::from_mode(entry.mode ^ 0o040);
            std::fs::set_permissions(path, mode).unwrap();
        }
        5 if grower.plan.features.owners => {
            std::os::unix::fs::lchown(path, Some(1000 + u32::from(grower.rng.u8(..9))), None)
                .unwrap();
        }
        6 if grower.plan.features.user && (file || dir) => {
            for name in entry.xattrs.keys().filter(|name| name.starts_with(b"user.")) {
                xattr::remove(path, name).unwrap();
            }
            if grower.rng.bool() {
                xattr::set(path, "user.changed", b"yes").unwrap();
            }
        }
        7 if wild.types => {
            remove_tree(path);
            if dir || grower.rng.bool() {
                grower.leaf(path);
            } else {
                std::fs::create_dir(path).unwrap();
                grower.content(&path.join("inside"));
                grower.attributes(path, FileType::Directory);
            }
        }
        8 if wild.names => remove_tree(path),
        9 if wild.names => {
            let to = root.join(grower.name(number));
            std::fs::rename(path, to).unwrap();
        }
        10 if wild.names => {
            let parent = if dir { path } else { path.parent().unwrap() };
            let name = grower.name(number);
            grower.leaf(&parent.join(name));
        }
        11 if wild.links && file => relink(grower, root, path, entry, tree, number),
        _ => later(path, entry, &mut grower.rng),
    }
}

/// Another time in whole seconds, so that programs that ignore fractions see it as well.
fn later(path: &Path, entry: &Entry, rng: &mut Rng) {
    set_mtime(
        path,
        entry.mtime_s.clamp(-1 << 30, 1 << 33) + rng.i64(2..100_000),
        rng.u32(..1 << 29),
    );
}

fn relink(
    grower: &mut Grower<'_>,
    root: &Path,
    path: &Path,
    entry: &Entry,
    tree: &Snapshot,
    number: usize,
) {
    if entry.group.is_some() {
        // Breaks it: a new file under the old name.
        std::fs::remove_file(path).unwrap();
        grower.content(path);
        grower.attributes(path, FileType::RegularFile);
        later(path, entry, &mut grower.rng);
        return;
    }
    let others = tree.entries.iter().filter(|(_, e)| e.kind == FileType::RegularFile);
    let others: Vec<PathBuf> =
        others.map(|(name, _)| root.join(OsStr::from_bytes(name))).filter(|p| p != path).collect();
    if others.is_empty() {
        return;
    }
    let other = &others[grower.rng.usize(..others.len())];
    let to = if grower.rng.bool() {
        std::fs::remove_file(path).unwrap();
        path.to_owned()
    } else {
        root.join(grower.name(number))
    };
    std::fs::hard_link(other, to).unwrap();
}
