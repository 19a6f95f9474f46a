//! The directories above a directory, by identity, whatever the spelling of its path: through `..`, and through every
//! other mount of the same file system (bind mounts).

use crate::{AsFd, BorrowedFd, OwnedFd, dir, meta};
use rustix::fs::{Mode, OFlags};
use std::collections::HashSet;
use std::ffi::CString;
use std::io::Result;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const UP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// One line of `/proc/self/mountinfo` (proc(5)).
struct Mount {
    /// `major:minor` of the file system.
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// Decodes the octal escapes of a field: space, tab, line feed and backslash.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| byte == b'\\').and_then(|digits| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match code {
            Some(code) => {
                out.push(code);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

fn parsed(text: &[u8]) -> Vec<Mount> {
    let lines = text.split(|byte| *byte == b'\n');
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = fields.next()?.to_vec();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Mount { device, root, point })
    };
    lines.filter_map(mount).collect()
}

/// Returns the other paths of a path: its directory as seen through other mounts of its file system.
fn elsewhere<'a>(path: &'a Path, mounts: &'a [Mount]) -> impl Iterator<Item = PathBuf> + 'a {
    // The last one of several mounts over each other is visible.
    let own = mounts.iter().enumerate().filter(|(_, mount)| path.starts_with(&mount.point));
    let own = own.max_by_key(|(at, mount)| (mount.point.as_os_str().len(), *at));
    let inner =
        own.and_then(|(_, mount)| Some(mount.root.join(path.strip_prefix(&mount.point).ok()?)));
    let others = mounts.iter().enumerate();
    others.filter_map(move |(at, mount)| {
        let (number, own) = own?;
        let same = at != number && mount.device == own.device;
        let rest = inner.as_ref()?.strip_prefix(&mount.root).ok().filter(|_| same)?;
        Some(mount.point.join(rest))
    })
}

fn typed(path: &Path) -> Option<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    rustix::fs::openat(dir::cwd(), path.as_c_str(), UP, Mode::empty()).ok()
}

/// Device and inode of a directory and of all directories above it, also as seen through other mounts of its file
/// system where `/proc` shows them.
///
/// # Errors
/// Those of openat(2) of `..` and of fstat(2).
pub fn ancestors(of: BorrowedFd<'_>) -> Result<HashSet<(u64, u64)>> {
    let mounts =
        std::fs::read("/proc/self/mountinfo").map(|text| parsed(&text)).unwrap_or_default();
    let mut found = HashSet::new();
    let mut starts = vec![of.try_clone_to_owned()?];
    let mut steps = 0;
    while let Some(start) = starts.pop() {
        let identity = meta::of_fd(&start)?.identity();
        for other in std::fs::read_link(crate::file::proc_path(&start).to_str().unwrap_or_default())
            .iter()
            .flat_map(|path| elsewhere(path, &mounts))
        {
            let fd = typed(&other)
                .filter(|fd| meta::of_fd(fd).is_ok_and(|it| it.identity() == identity));
            starts.extend(fd.and_then(|fd| above(&fd).ok().flatten()).filter(|above| {
                meta::of_fd(above).is_ok_and(|above| !found.contains(&above.identity()))
            }));
        }
        let mut here = Some(start);
        while let Some(fd) = here {
            steps += 1;
            // Bounds the work in trees of mounts that contain each other.
            if !found.insert(meta::of_fd(&fd)?.identity()) || steps > STEPS_MAX {
                break;
            }
            here = above(&fd)?;
        }
    }
    Ok(found)
}

/// Maximum number of directories that are examined.
const STEPS_MAX: usize = 16_384;

/// Opens the directory above; `None` at the root.
fn above(fd: &OwnedFd) -> Result<Option<OwnedFd>> {
    let above = rustix::fs::openat(fd.as_fd(), c"..", UP, Mode::empty())?;
    let same = meta::of_fd(&above)?.identity() == meta::of_fd(fd)?.identity();
    Ok((!same).then_some(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_paths_through_mounts() {
        let text = b"22 1 8:1 / / rw - ext4 /dev/a rw\n\
                     30 22 8:1 /srv/a\\040b /mnt/x rw - ext4 /dev/a rw\n\
                     31 22 8:2 / /srv/a\\040b/other rw - ext4 /dev/b rw\n";
        let mounts = parsed(text);
        let paths = |path: &str| elsewhere(Path::new(path), &mounts).collect::<Vec<_>>();
        assert_eq!(paths("/mnt/x/c"), [PathBuf::from("/srv/a b/c")]);
        assert_eq!(paths("/srv/a b/c"), [PathBuf::from("/mnt/x/c")]);
        assert!(paths("/srv/a b/other/c").is_empty());
        assert!(paths("/srv/b").is_empty());
    }

    #[test]
    fn a_directory_is_below_its_parents() -> Result<()> {
        let top = std::env::temp_dir().join(format!("hakobu-ancestors-{}", std::process::id()));
        std::fs::create_dir_all(top.join("a/b"))?;
        let name = CString::new(top.join("a/b").as_os_str().as_bytes()).unwrap();
        let fd = dir::open_root(&name)?;
        let found = ancestors(fd.as_fd())?;
        for path in [&top, &top.join("a"), &top.join("a/b"), Path::new("/")] {
            assert!(found.contains(&meta::identity(path)?), "{}", path.display());
        }
        std::fs::create_dir_all(top.join("c"))?;
        assert!(!found.contains(&meta::identity(&top.join("c"))?));
        std::fs::remove_dir_all(top)
    }
}
