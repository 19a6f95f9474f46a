//! Folders below the local targets of one core: found or created component by component, and kept open while there is
//! room. No path is resolved as a whole, so no component can be swapped for a symlink.

use super::Side;
use super::entry::Failed;
use crate::failure::c_string;
use hakobu_core::error::Operation;
use hakobu_core::unit::Kind;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, paths, xattr};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// Maximum number of folders that one core keeps open.
const OPEN_MAX: usize = 128;
/// Maximum number of roots (targets of source arguments) whose folders one core caches.
const ROOTS_MAX: usize = 8;

/// Folders below local targets that one core has opened or created.
#[derive(Default)]
pub(in crate::object) struct Folders {
    roots: Vec<Below>,
    /// Counts uses, to find the least recently used folder.
    clock: u64,
    /// The last folder that was found to be without files of dead runs.
    cleared: Option<(u64, u64)>,
    /// Whether names meet below a root (device and inode), by file system.
    met: HashMap<((u64, u64), u64), bool>,
}

/// Folders below one root, by their relative paths (`""` is the root itself). Holding the root open prevents
/// confusing it with another one.
struct Below {
    root: Arc<OwnedFd>,
    /// Its device and inode, once they were needed.
    identity: Option<(u64, u64)>,
    open: HashMap<Box<[u8]>, CachedFolder>,
    /// Folders that a worker is opening on a helper thread; others wait for it.
    opening: HashMap<Box<[u8]>, Rc<Notify>>,
}

struct CachedFolder {
    folder: OpenFolder,
    used: u64,
}

#[derive(Clone)]
pub(super) struct OpenFolder {
    pub fd: Arc<OwnedFd>,
    /// New entries inherit an ACL from it, which replaces the umask.
    pub default_acl: bool,
    /// Its file system may report failed writes at close(2).
    pub reports_late: bool,
    /// Its file system.
    pub dev: Option<u64>,
    /// Its device and inode, if it may have had entries before this run.
    pub older: Option<(u64, u64)>,
}

/// State of a requested folder.
pub(super) enum Look {
    /// It is open.
    Open(OpenFolder),
    /// Another worker is opening it: retry when it is done.
    Opening(Rc<Notify>),
    /// Components remain to be opened or created.
    Way(FolderPath),
}

/// The path from an open folder to one below it. Can be walked on another thread.
pub(super) struct FolderPath {
    /// The folder to reach.
    path: Box<[u8]>,
    /// Length of the part of the path that leads to `from`.
    at: usize,
    from: OpenFolder,
    /// The target folder, which symlinks on the path must not lead out of.
    root: Arc<OwnedFd>,
    rules: Rules,
}

/// Result of walking a path.
pub(super) struct Reached {
    path: Box<[u8]>,
    /// Folders on the path, by the lengths of their paths.
    entered: Vec<(usize, OpenFolder)>,
    /// Number of folders created.
    pub made: u64,
    /// The last folder.
    pub end: Result<OpenFolder, Failed>,
}

/// Rules for opening and creating folders.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// A symlink to a directory is used as the directory (`--keep-dirlinks`).
    pub follow: bool,
    /// The umask for new folders.
    pub umask: u32,
}

/// Splits a relative path into the folder's path and the last name.
///
/// # Errors
/// A reason for a path with a component that is empty, `.` or `..`, or contains a NUL.
pub(super) fn split(path: &[u8]) -> Result<(&[u8], CString), Failed> {
    let good = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    if !path.split(|byte| *byte == b'/').all(good) {
        let why = "the name would lead out of the target directory, or no file can have it";
        return Err(Failed::Reason(Operation::Create, Side::Target, why));
    }
    let (above, last) = paths::split(path);
    let above = above.strip_suffix(b"/").unwrap_or(above);
    Ok((above, c_string(last).map_err(failed(Operation::Create))?))
}

impl Folders {
    /// Looks up the folder at `path` (components that [`split`] accepts; empty for the root).
    pub(super) fn look(&mut self, root: &Arc<OwnedFd>, path: &[u8], rules: Rules) -> Look {
        self.clock += 1;
        let clock = self.clock;
        let below = self.below(root);
        if let Some(kept) = below.open.get_mut(path) {
            kept.used = clock;
            return Look::Open(kept.folder.clone());
        }
        if let Some(opening) = below.opening.get(path) {
            return Look::Opening(Rc::clone(opening));
        }
        match below.nearest(path, clock) {
            (at, from) if at < path.len() => {
                let root = Arc::clone(root);
                Look::Way(FolderPath { path: path.into(), at, from, root, rules })
            }
            (_, folder) => Look::Open(folder),
        }
    }

    /// Returns whether this core cleared a folder just before, and records it.
    pub(super) fn is_cleared(&mut self, folder: (u64, u64)) -> bool {
        self.cleared.replace(folder) == Some(folder)
    }

    /// Returns the device and inode of a root.
    pub(super) fn identity(&mut self, root: &Arc<OwnedFd>) -> Option<(u64, u64)> {
        let below = self.below(root);
        if below.identity.is_none() {
            below.identity = meta::of_fd(&**root).ok().map(|meta| meta.identity());
        }
        below.identity
    }

    /// Returns whether names meet below a root, if this core knows.
    pub(super) fn meets(&self, root: (u64, u64), dev: u64) -> Option<bool> {
        self.met.get(&(root, dev)).copied()
    }

    /// Records whether names meet below a root.
    pub(super) fn learn(&mut self, root: (u64, u64), dev: u64, meets: bool) {
        self.met.insert((root, dev), meets);
    }

    /// Records that the folder at `path` is being opened; the returned `Notify` wakes the others at the end.
    pub(super) fn begins(&mut self, root: &Arc<OwnedFd>, path: &[u8]) -> Rc<Notify> {
        let end = Rc::new(Notify::new());
        self.below(root).opening.insert(path.into(), Rc::clone(&end));
        end
    }

    /// Records that opening it has ended.
    pub(super) fn ends(&mut self, root: &Arc<OwnedFd>, path: &[u8]) {
        self.below(root).opening.remove(path);
    }

    /// Caches the folders on a path, even if its end was not reached.
    pub(super) fn reached(&mut self, root: &Arc<OwnedFd>, reached: &Reached) {
        let clock = self.clock;
        let below = self.below(root);
        for (at, folder) in &reached.entered {
            below.keep(&reached.path[..*at], folder, clock);
        }
    }

    /// Drops a folder and those below it: it was removed or moved.
    pub(super) fn forget(&mut self, root: &Arc<OwnedFd>, path: &[u8]) {
        self.below(root).open.retain(|kept, _| {
            let rest = kept.strip_prefix(path);
            !rest.is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
        });
    }

    fn below(&mut self, root: &Arc<OwnedFd>) -> &mut Below {
        let known = self.roots.iter().position(|below| Arc::ptr_eq(&below.root, root));
        let at = known.unwrap_or_else(|| {
            if self.roots.len() >= ROOTS_MAX {
                self.roots.remove(0);
            }
            let (open, opening) = (HashMap::new(), HashMap::new());
            self.roots.push(Below { root: Arc::clone(root), identity: None, open, opening });
            self.roots.len() - 1
        });
        &mut self.roots[at]
    }
}

impl Below {
    /// Returns the nearest open folder above `path`, and the length of its path.
    fn nearest(&mut self, path: &[u8], clock: u64) -> (usize, OpenFolder) {
        let mut above = path;
        while let Some(at) = above.iter().rposition(|byte| *byte == b'/') {
            above = &above[..at];
            if let Some(kept) = self.open.get_mut(above) {
                kept.used = clock;
                return (at, kept.folder.clone());
            }
        }
        if let Some(kept) = self.open.get(&[][..]) {
            return (0, kept.folder.clone());
        }
        let root = OpenFolder::with(Arc::clone(&self.root), false);
        self.keep(b"", &root, clock);
        (0, root)
    }

    /// Caches a folder, replacing the least recently used one if necessary.
    fn keep(&mut self, path: &[u8], folder: &OpenFolder, clock: u64) {
        if self.open.len() >= OPEN_MAX {
            let oldest = self.open.iter().min_by_key(|(_, kept)| kept.used);
            if let Some(path) = oldest.map(|(path, _)| path.clone()) {
                self.open.remove(&path);
            }
        }
        self.open.insert(path.into(), CachedFolder { folder: folder.clone(), used: clock });
    }
}

impl FolderPath {
    /// Returns whether calls for the path may be slow.
    pub(super) fn waits(&self) -> bool {
        self.from.waits()
    }

    /// Opens or creates each folder on the path. Fails with the system's error, or with a reason if a file or a
    /// symlink is in the way.
    pub(super) fn go(self) -> Reached {
        let FolderPath { path, mut at, mut from, root, rules } = self;
        let (mut entered, mut made) = (Vec::new(), 0);
        let end = loop {
            if at >= path.len() {
                break Ok(from);
            }
            at += usize::from(path[at] == b'/');
            let rest = &path[at..];
            let len = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            at += len;
            let name = c_string(&rest[..len]).map_err(failed(Operation::MakeDir));
            let whole = (root.as_fd(), &path[..at]);
            match name.and_then(|name| enter(from.fd.as_fd(), &name, whole, rules)) {
                Ok((fd, new)) => {
                    made += u64::from(new);
                    from = OpenFolder::with(Arc::new(fd), new);
                    entered.push((at, from.clone()));
                }
                Err(failed) => break Err(failed),
            }
        };
        Reached { path, entered, made, end }
    }
}

impl OpenFolder {
    /// Returns whether calls for files in it may be slow: its file system is a network or FUSE one, or unknown. The
    /// same ones may report failed writes at close(2).
    pub(super) fn waits(&self) -> bool {
        self.reports_late
    }

    fn with(fd: Arc<OwnedFd>, is_new: bool) -> OpenFolder {
        let default_acl = xattr::get(fd.as_fd(), xattr::ACL_DEFAULT, &mut Vec::new()).is_ok();
        let reports_late = file::reports_late(fd.as_fd());
        let identity = meta::of_fd(&*fd).ok().map(|meta| meta.identity());
        let dev = identity.map(|(dev, _)| dev);
        OpenFolder { fd, default_acl, reports_late, dev, older: identity.filter(|_| !is_new) }
    }
}

/// Opens a folder in a folder, or creates it; returns whether it was created. `whole` is its path from the target
/// folder.
fn enter(
    above: BorrowedFd<'_>,
    name: &CStr,
    whole: (BorrowedFd<'_>, &[u8]),
    rules: Rules,
) -> Result<(OwnedFd, bool), Failed> {
    match dir::open(above, name, false) {
        Ok(fd) => return Ok((fd, false)),
        Err(error) if errno::is(&error, errno::ENOENT) => {}
        Err(error) => return follow(above, name, whole, rules, error),
    }
    let new = match dir::create(above, name, 0o777 & !rules.umask) {
        Ok(()) => true,
        // Another core or program created it first.
        Err(error) if errno::is(&error, errno::EEXIST) => false,
        Err(error) => return Err(failed(Operation::MakeDir)(error)),
    };
    match dir::open(above, name, false) {
        Ok(fd) => Ok((fd, new)),
        Err(error) => follow(above, name, whole, rules, error),
    }
}

/// Opens the directory that a symlink in place of a folder names, if the rules allow it and it is in the target folder.
fn follow(
    above: BorrowedFd<'_>,
    name: &CStr,
    (root, path): (BorrowedFd<'_>, &[u8]),
    rules: Rules,
    error: io::Error,
) -> Result<(OwnedFd, bool), Failed> {
    if rules.follow && errno::is_no_dir(&error) {
        let path = c_string(path).map_err(failed(Operation::MakeDir))?;
        match paths::open_beneath(root, &path, paths::OpenPurpose::Directory) {
            Ok(fd) => return Ok((fd, false)),
            Err(error) if errno::is(&error, errno::EXDEV) || errno::is(&error, errno::ELOOP) => {
                let why = "a symlink in place of a directory of its path leads out of the target";
                return Err(Failed::Reason(Operation::MakeDir, Side::Target, why));
            }
            Err(_) => {}
        }
    }
    Err(in_the_way(above, name, error))
}

/// Returns the reason that a folder could not be opened, with a specific text if another entry has its name.
fn in_the_way(above: BorrowedFd<'_>, name: &CStr, error: io::Error) -> Failed {
    if matches!(error.raw_os_error(), Some(errno::ENOTDIR | errno::ELOOP)) {
        let symlink = meta::of(above, name, false).is_ok_and(|there| there.kind == Kind::Symlink);
        let why = match symlink {
            true => "a symlink is in place of a directory of its path",
            false => "a file is in place of a directory of its path",
        };
        return Failed::Reason(Operation::MakeDir, Side::Target, why);
    }
    failed(Operation::MakeDir)(error)
}

/// Returns a closure for `map_err` of calls at the target.
pub(super) fn failed(operation: Operation) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed::File(operation, Side::Target, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    impl Folders {
        /// Returns the folder at `path`, and the number of folders created.
        fn open(
            &mut self,
            root: &Arc<OwnedFd>,
            path: &[u8],
            rules: Rules,
        ) -> Result<(OpenFolder, u64), Failed> {
            match self.look(root, path, rules) {
                Look::Open(folder) => Ok((folder, 0)),
                Look::Way(way) => {
                    let reached = way.go();
                    self.reached(root, &reached);
                    reached.end.map(|folder| (folder, reached.made))
                }
                Look::Opening(_) => panic!("nobody else opens it"),
            }
        }
    }

    const RULES: Rules = Rules { follow: false, umask: 0o022 };

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let unique = format!("hakobu-folders-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(unique);
            drop(std::fs::remove_dir_all(&path));
            std::fs::create_dir(&path).expect("a folder for the test");
            Scratch(path)
        }

        fn root(&self) -> Arc<OwnedFd> {
            let path = CString::new(self.0.as_os_str().as_bytes()).expect("no NUL");
            Arc::new(dir::open_root(&path).expect("open"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn made(folders: &mut Folders, root: &Arc<OwnedFd>, path: &str) -> u64 {
        match folders.open(root, path.as_bytes(), RULES) {
            Ok((_, made)) => made,
            Err(_) => panic!("{path} failed"),
        }
    }

    fn refusal(folders: &mut Folders, root: &Arc<OwnedFd>, path: &str, rules: Rules) -> String {
        match folders.open(root, path.as_bytes(), rules) {
            Ok(_) => "opened".to_owned(),
            Err(Failed::Reason(_, _, why)) => why.to_owned(),
            Err(Failed::File(_, _, error)) => error.to_string(),
            Err(_) => "?".to_owned(),
        }
    }

    #[test]
    fn each_folder_is_made_once() {
        let scratch = Scratch::new("once");
        let root = scratch.root();
        let mut folders = Folders::default();
        assert_eq!(made(&mut folders, &root, ""), 0);
        assert_eq!(made(&mut folders, &root, "a/b/c"), 3);
        assert_eq!(made(&mut folders, &root, "a/b/c"), 0);
        assert_eq!(made(&mut folders, &root, "a/b/d"), 1);
        assert_eq!(made(&mut folders, &root, "a"), 0);
        // Another core finds the existing ones.
        assert_eq!(made(&mut Folders::default(), &root, "a/b/c/e"), 1);
        assert!(scratch.0.join("a/b/c/e").is_dir() && scratch.0.join("a/b/d").is_dir());
    }

    #[test]
    fn a_folder_is_the_same_one_every_time() {
        let scratch = Scratch::new("same");
        let root = scratch.root();
        let mut folders = Folders::default();
        // More than are kept open, twice.
        for round in 0..2 {
            for number in 0..OPEN_MAX * 2 {
                let path = format!("d{number}/e");
                let (folder, made) = folders.open(&root, path.as_bytes(), RULES).expect("open");
                assert_eq!(made, if round == 0 { 2 } else { 0 });
                let here = meta::of_fd(&folder.fd).expect("stat").identity();
                let there = std::fs::metadata(scratch.0.join(&path)).expect("stat");
                assert_eq!(here.1, std::os::unix::fs::MetadataExt::ino(&there), "{path}");
            }
            assert!(folders.roots[0].open.len() <= OPEN_MAX);
        }
    }

    #[test]
    fn obstacles_are_not_followed() {
        let scratch = Scratch::new("way");
        std::fs::create_dir(scratch.0.join("real")).expect("mkdir");
        std::os::unix::fs::symlink("real", scratch.0.join("link")).expect("symlink");
        std::fs::write(scratch.0.join("file"), b"x").expect("write");
        let root = scratch.root();
        let mut folders = Folders::default();
        assert!(refusal(&mut folders, &root, "link/a", RULES).starts_with("a symlink"));
        assert!(refusal(&mut folders, &root, "file/a", RULES).starts_with("a file"));
        assert!(!scratch.0.join("real/a").exists());
        let follow = Rules { follow: true, ..RULES };
        assert_eq!(refusal(&mut folders, &root, "link/a", follow), "opened");
        assert!(scratch.0.join("real/a").is_dir());
        assert!(refusal(&mut folders, &root, "file/a", follow).starts_with("a file"));
    }

    #[test]
    fn removed_folders_are_created_again() {
        let scratch = Scratch::new("gone");
        let root = scratch.root();
        let mut folders = Folders::default();
        made(&mut folders, &root, "a/b/c");
        made(&mut folders, &root, "ab");
        std::fs::remove_dir_all(scratch.0.join("a")).expect("remove");
        folders.forget(&root, b"a");
        assert_eq!(made(&mut folders, &root, "a/b/c"), 3);
        folders.forget(&root, b"a/b");
        assert_eq!(folders.roots[0].open.len(), 3, "the root, a, ab");
    }

    #[test]
    fn many_make_the_same_folders_at_once() {
        let scratch = Scratch::new("race");
        let root = scratch.root();
        let total = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut folders = Folders::default();
                    for number in 0..200 {
                        let made = made(&mut folders, &root, &format!("{}/{number}/x", number % 7));
                        total.fetch_add(made, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 7 + 400, "each was counted by one of them");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for path in ["", ".", "..", "a/..", "../a", "a//b", "/a", "a/", "a/./b", "a\0b"] {
            assert!(split(path.as_bytes()).is_err(), "{path:?}");
        }
        for (path, above, last) in [("a", "", "a"), ("a/b", "a", "b"), ("a/...", "a", "...")] {
            let (found, name) = split(path.as_bytes()).expect("good");
            assert_eq!((found, name.to_bytes()), (above.as_bytes(), last.as_bytes()));
        }
    }
}
