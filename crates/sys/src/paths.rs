//! Paths: below an open directory, resolved component by component without following symlinks, or by openat2(2); paths
//! given by the user, where a symlink is followed only if it belongs to root or to the user; and the directories above a
//! directory, by identity.

use crate::cgroup::unescaped;
use crate::meta::{self, Kind};
use crate::{AsFd, BorrowedFd, OwnedFd, dir, errno, file};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use rustix::path::Arg;
use std::collections::{HashSet, VecDeque};
use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Splits a path or key before its last name: the folder with its slash (empty at the top), and the name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.split_at(path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1))
}

/// A name in an open directory.
#[derive(Debug)]
pub struct PathBelow<'a> {
    top: BorrowedFd<'a>,
    folder: Option<OwnedFd>,
    name: CString,
}

impl PathBelow<'_> {
    /// Opens the directory of `path` below `top`. A single name needs no system call.
    ///
    /// # Errors
    /// The directory does not exist, is behind a symlink or above `top`; the path contains a NUL.
    pub fn find<'a>(top: BorrowedFd<'a>, path: &[u8]) -> Result<PathBelow<'a>> {
        let (folder, name) = split(path);
        let folder = match folder.strip_suffix(b"/") {
            Some(folder) => Some(dir::open_below(top, &CString::new(folder)?)?),
            None => None,
        };
        Ok(PathBelow { top, folder, name: CString::new(name)? })
    }

    /// Opens the directory of a path given by the user, following symlinks.
    ///
    /// # Errors
    /// The directory does not exist; the path contains a NUL.
    pub fn typed(path: &Path) -> Result<PathBelow<'static>> {
        let (folder, name) = split(path.as_os_str().as_bytes());
        let folder = if folder.is_empty() { b"." } else { folder };
        let folder = Some(dir::open_root(&CString::new(folder)?)?);
        Ok(PathBelow { top: dir::cwd(), folder, name: CString::new(name)? })
    }

    /// The directory.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.folder.as_ref().map_or(self.top, AsFd::as_fd)
    }

    /// The name in the directory.
    pub fn name(&self) -> &CStr {
        &self.name
    }
}

/// Most tries if a concurrent rename keeps the kernel from resolving a path with `..` (EAGAIN, openat2(2)).
const TRIES_MAX: usize = 100;

/// Purpose of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPurpose {
    /// Reading a file; does not wait for the writer of a FIFO.
    Reading,
    /// Listing a directory, or resolving names in it.
    Directory,
    /// Reading metadata of an entry of any kind (`O_PATH`).
    Looking,
    /// Appending to a file, which is created if missing.
    Appending,
}

impl OpenPurpose {
    fn flags(self) -> OFlags {
        // openat2(2) rejects flags that have no effect with O_PATH.
        let flags = match self {
            OpenPurpose::Reading => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            OpenPurpose::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
            OpenPurpose::Looking => OFlags::PATH,
            OpenPurpose::Appending => {
                let how = OFlags::NONBLOCK | OFlags::NOCTTY;
                OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | how
            }
        };
        flags | OFlags::CLOEXEC
    }
}

/// Opens a relative path below a directory; an empty path is the directory itself.
///
/// # Errors
/// EXDEV (or ELOOP) if the path leads out of the directory; those of openat2(2).
pub fn open_beneath(dir: BorrowedFd<'_>, path: &CStr, purpose: OpenPurpose) -> Result<OwnedFd> {
    let path = if path.is_empty() { c"." } else { path };
    let mode = match purpose {
        OpenPurpose::Appending => Mode::from_raw_mode(0o644),
        _ => Mode::empty(),
    };
    open_with(dir, path, purpose.flags(), mode, ResolveFlags::NO_MAGICLINKS)
}

/// Opens a relative path that must stay below a directory, with further conditions on the way. Without
/// openat2(2) it cannot be verified where a symlink leads: none is followed.
pub(crate) fn open_with<P: Arg + Copy>(
    dir: BorrowedFd<'_>,
    path: P,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    for _ in 0..TRIES_MAX {
        match openat2(dir, path, flags, mode, ResolveFlags::BENEATH | resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => {
                return open_each(dir, path.as_cow_c_str()?.to_bytes(), flags, mode);
            }
            other => return Ok(other?),
        }
    }
    Err(Errno::AGAIN.into())
}

/// As [`open_with`], component by component. Directories on the way need not be readable.
pub(crate) fn open_each(
    dir: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let mut names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    if path.starts_with(b"/") || names.clone().any(|name| name == b"..") {
        return Err(Errno::XDEV.into());
    }
    let between = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut above: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let here = above.as_ref().map_or(dir, AsFd::as_fd);
        if names.peek().is_some() {
            above = Some(openat(here, name, between, Mode::empty())?);
            continue;
        }
        let last = openat(here, name, flags | OFlags::NOFOLLOW, mode)?;
        // O_PATH opens a symlink itself instead of failing, unless that was asked for.
        let links = !flags.contains(OFlags::PATH) || flags.contains(OFlags::NOFOLLOW);
        return match links || meta::of_fd(&last)?.kind != Kind::Symlink {
            true => Ok(last),
            false => Err(Errno::LOOP.into()),
        };
    }
    Err(Errno::NOENT.into())
}

const CREATE: OFlags = OFlags::CREATE.union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const LIST: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Times that the directories above one are made because it cannot be.
const LOOKS_MAX: u32 = 3;

impl Links {
    /// Opens a directory for listing and for resolving names in it.
    ///
    /// # Errors
    /// [`RefusedLink`]; those of open(2).
    pub fn open_dir(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd> {
        if *self == Links::Any {
            return Ok(rustix::fs::openat(at, path, LIST, Mode::empty())?);
        }
        let entry = self.end(at, path)?.entry.ok_or_else(|| os(errno::ENOENT))?;
        // Reopens exactly the directory of the O_PATH descriptor.
        Ok(rustix::fs::openat(entry, c".", LIST, Mode::empty())?)
    }

    /// Opens a file for reading. Does not block: the writer of a FIFO is waited for by
    /// [`stdio::Input`](crate::stdio::Input).
    pub fn open_read(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd> {
        self.open(at, path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK)
    }

    /// Opens a file for writing, and creates it if missing. Existing content is kept before the new one
    /// (`append`), or truncated. Does not block, so a FIFO may be written with
    /// [`stdio::Output`](crate::stdio::Output) only.
    ///
    /// # Errors
    /// As [`Links::open_dir`]; ENXIO for a FIFO without reader.
    pub fn open_write(&self, path: &Path, append: bool) -> Result<OwnedFd> {
        let how = OFlags::NONBLOCK | if append { OFlags::APPEND } else { OFlags::TRUNC };
        self.open(CWD, &c_path(path)?, CREATE | OFlags::WRONLY | how)
    }

    /// Opens a file for the output of a command, whose writes block. Existing content is replaced.
    pub fn open_output(&self, path: &Path) -> Result<OwnedFd> {
        let fd = self.open_write(path, false)?;
        rustix::io::ioctl_fionbio(&fd, false)?;
        Ok(fd)
    }

    /// Opens a file that only its owner may read, and creates it if missing. It is read, and written at its end.
    pub fn open_private(&self, path: &Path) -> Result<OwnedFd> {
        self.open_with(CWD, &c_path(path)?, CREATE | OFlags::RDWR | OFlags::APPEND, 0o600)
    }

    /// Writes a whole file that only its owner may read, and checks the result of close(2). Existing content is
    /// replaced.
    ///
    /// # Errors
    /// As [`Links::open_dir`]; those of write(2) and close(2).
    pub fn write_private(&self, path: &Path, content: &[u8]) -> Result<()> {
        let flags = CREATE | OFlags::WRONLY | OFlags::TRUNC;
        let mut file = File::from(self.open_with(CWD, &c_path(path)?, flags, 0o600)?);
        file.write_all(content)?;
        file::close(file)
    }

    /// Checks whether one name may be followed, if it is a symlink. Its target is not examined.
    ///
    /// # Errors
    /// [`RefusedLink`]; those of fstatat(2).
    pub fn check(&self, at: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        if *self == Links::Any {
            return Ok(());
        }
        let meta = meta::of(at, name, false)?;
        match meta.kind {
            Kind::Symlink => self.check_owner(name.to_bytes(), meta.uid),
            _ => Ok(()),
        }
    }

    fn open(&self, at: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<OwnedFd> {
        self.open_with(at, path, flags, 0o666)
    }

    /// `mode`: that of a new file, restricted by the umask.
    fn open_with(
        &self,
        at: BorrowedFd<'_>,
        path: &CStr,
        flags: OFlags,
        mode: u32,
    ) -> Result<OwnedFd> {
        let mode = Mode::from_raw_mode(mode);
        if *self == Links::Any {
            return Ok(rustix::fs::openat(at, path, flags, mode)?);
        }
        let PathEnd { dir, name, magic, .. } = self.end(at, path)?;
        let flags = if magic { flags } else { flags | OFlags::NOFOLLOW };
        Ok(rustix::fs::openat(dir, &*name, flags, mode)?)
    }

    /// Creates a directory; `parents` creates missing ancestors as well. Returns false if it exists.
    ///
    /// # Errors
    /// As [`Links::open_dir`]; EEXIST if the name exists with another type.
    pub fn make_dir(&self, path: &Path, mode: u32, parents: bool) -> Result<bool> {
        let mut made = false;
        // Missing directories, deepest first, each with the number of its ENOENT so far.
        let mut missing = vec![(path, 0)];
        while let Some((here, refused)) = missing.pop() {
            match self.make_one(here, mode) {
                // Another process may remove the directory above once it was made. File systems whose directories
                // nobody can make (procfs) return ENOENT although it is there.
                Err(error)
                    if parents && errno::is(&error, errno::ENOENT) && refused < LOOKS_MAX =>
                {
                    let above = here.parent().filter(|above| !above.as_os_str().is_empty());
                    let Some(above) = above else { return Err(error) };
                    missing.extend([(here, refused + 1), (above, 0)]);
                }
                Err(error) => return Err(error),
                Ok(new) => made = new,
            }
        }
        Ok(made)
    }

    /// Creates the last directory of a path, unless it exists.
    fn make_one(&self, path: &Path, mode: u32) -> Result<bool> {
        let path = c_path(path)?;
        // Any link may be followed, but the directory is created where the walk ended.
        let PathEnd { dir, name, entry, .. } = self.end(CWD, &path)?;
        let Some(entry) = entry else {
            return match rustix::fs::mkdirat(&dir, &*name, Mode::from_raw_mode(mode)) {
                // Created concurrently; its type is checked when it is opened.
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::EXIST) => Ok(false),
                Err(error) => Err(error.into()),
            };
        };
        match meta::of_fd(entry)?.kind {
            Kind::Dir => Ok(false),
            _ => Err(os(errno::EEXIST)),
        }
    }
}

fn c_path(path: &Path) -> Result<CString> {
    let path: &OsStr = path.as_ref();
    Ok(CString::new(path.as_bytes())?)
}

/// Symlinks that a path may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Those owned by root or the running user.
    #[default]
    Trusted,
    /// As `Trusted`, and the path has to end in this directory or below it.
    Within(PathBuf),
    Any,
}

/// Reason for refusing a path that the kernel would follow.
#[derive(Debug, PartialEq, Eq)]
pub enum RefusedLink {
    /// A symlink of another user.
    Foreign {
        name: Vec<u8>,
        /// Its owner.
        uid: u32,
    },
    /// The path ends outside the directory.
    Outside(PathBuf),
}

impl RefusedLink {
    /// True if an error is one of these.
    pub fn is(error: &Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<RefusedLink>())
    }

    /// True if an error is a symlink of another user.
    pub fn is_foreign(error: &Error) -> bool {
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<RefusedLink>());
        matches!(refused, Some(RefusedLink::Foreign { .. }))
    }
}

impl fmt::Display for RefusedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedLink::Foreign { name, uid } => write!(
                f,
                "the symlink '{}' belongs to user {uid}, not to root or the running user\n\
                 hint: give the path that it leads to, or --insecure-links",
                name.escape_ascii()
            ),
            RefusedLink::Outside(root) => write!(f, "it leads out of {}", root.display()),
        }
    }
}

impl std::error::Error for RefusedLink {}

impl From<RefusedLink> for Error {
    fn from(refused: RefusedLink) -> Error {
        Error::new(ErrorKind::PermissionDenied, refused)
    }
}

impl Links {
    pub(crate) fn check_owner(&self, name: &[u8], uid: u32) -> Result<()> {
        if *self == Links::Any || uid == 0 || uid == crate::process::euid() {
            return Ok(());
        }
        Err(RefusedLink::Foreign { name: name.to_vec(), uid }.into())
    }
}

pub(crate) fn os(code: i32) -> Error {
    Error::from_raw_os_error(code)
}

/// Most symlinks in a path, as in Linux.
const LINKS_MAX: usize = 40;
const NAME: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

pub(crate) struct PathEnd {
    /// Directory that contains the last name.
    pub(crate) dir: OwnedFd,
    pub(crate) name: CString,
    /// Entry of that name; `None` if it does not exist.
    pub(crate) entry: Option<OwnedFd>,
    /// True for a magic link of procfs, which only the kernel can follow.
    pub(crate) magic: bool,
}

impl Links {
    /// Walks a path to its end.
    pub(crate) fn end(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<PathEnd> {
        let end = self.walk(at, path)?;
        match self {
            Links::Within(root) if !is_below(&end, root)? => {
                Err(RefusedLink::Outside(root.clone()).into())
            }
            _ => Ok(end),
        }
    }

    fn walk(&self, at: BorrowedFd<'_>, path: &CStr) -> Result<PathEnd> {
        let open = |at: BorrowedFd<'_>, name: &[u8], flags| -> Result<OwnedFd> {
            Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
        };
        let end = |dir, name: &[u8], entry, magic| -> Result<PathEnd> {
            Ok(PathEnd { dir, name: CString::new(name)?, entry, magic })
        };
        let start = |at: BorrowedFd<'_>, path: &[u8]| match path.first() {
            None => Err(os(errno::ENOENT)),
            Some(b'/') => open(CWD, b"/", DIR),
            Some(_) => open(at, b".", DIR),
        };
        let parts = |path: &[u8]| -> Vec<Vec<u8>> {
            let parts = path.split(|byte| *byte == b'/');
            parts.filter(|part| !matches!(*part, b"" | b".")).map(<[u8]>::to_vec).collect()
        };
        let mut here = start(at, path.to_bytes())?;
        let mut names = VecDeque::from(parts(path.to_bytes()));
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            if name == b".." {
                here = open(here.as_fd(), b"..", DIR)?;
                continue;
            }
            let last = names.is_empty();
            let entry = match open(here.as_fd(), &name, NAME) {
                Err(error) if last && errno::is(&error, errno::ENOENT) => {
                    return end(here, &name, None, false);
                }
                other => other?,
            };
            let meta = meta::of_fd(&entry)?;
            if meta.kind != Kind::Symlink {
                if last {
                    return end(here, &name, Some(entry), false);
                }
                here = entry;
                continue;
            }
            self.check_owner(&name, meta.uid)?;
            links += 1;
            if links > LINKS_MAX {
                return Err(os(errno::ELOOP));
            }
            if is_proc(here.as_fd())? {
                // The text of a magic link is not a path ("pipe:[123]").
                let entry = open(here.as_fd(), &name, OFlags::PATH | OFlags::CLOEXEC)?;
                if last {
                    return end(here, &name, Some(entry), true);
                }
                here = entry;
                continue;
            }
            let text = crate::dir::read_link(entry.as_fd(), c"")?;
            here = start(here.as_fd(), text.to_bytes())?;
            for part in parts(text.to_bytes()).into_iter().rev() {
                names.push_front(part);
            }
        }
        let entry = Some(open(here.as_fd(), b".", DIR)?);
        end(here, b".", entry, false)
    }
}

/// True if a path ends in a directory or below it, according to its parent directories.
fn is_below(end: &PathEnd, root: &Path) -> Result<bool> {
    let identity = |fd: BorrowedFd<'_>| Ok::<_, Error>(meta::of_fd(fd)?.identity());
    let root = match rustix::fs::openat(CWD, root, DIR, Mode::empty()) {
        // Nothing is below a directory that does not exist.
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        other => identity(other?.as_fd())?,
    };
    let within = |from: BorrowedFd<'_>| -> Result<bool> {
        let mut here = rustix::fs::openat(from, c".", DIR, Mode::empty())?;
        loop {
            let this = identity(here.as_fd())?;
            if this == root {
                return Ok(true);
            }
            here = rustix::fs::openat(here, c"..", DIR, Mode::empty())?;
            if identity(here.as_fd())? == this {
                return Ok(false);
            }
        }
    };
    match &end.entry {
        Some(entry) if meta::of_fd(entry)?.kind == Kind::Dir => within(entry.as_fd()),
        _ => within(end.dir.as_fd()),
    }
}

fn is_proc(dir: BorrowedFd<'_>) -> Result<bool> {
    Ok(rustix::fs::fstatfs(dir)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

const UP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// One line of `/proc/self/mountinfo` (proc(5)).
struct MountLine {
    /// `major:minor` of the file system.
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    point: PathBuf,
}

fn parsed(text: &[u8]) -> Vec<MountLine> {
    let lines = text.split(|byte| *byte == b'\n');
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = fields.next()?.to_vec();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(MountLine { device, root, point })
    };
    lines.filter_map(mount).collect()
}

/// Returns the other paths of a path: its directory as seen through other mounts of its file system.
fn elsewhere<'a>(path: &'a Path, mounts: &'a [MountLine]) -> impl Iterator<Item = PathBuf> + 'a {
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
mod tests;
