//! Reads a tree into a value with everything that a copy should keep, using plain system calls and no code of
//! the program under test. Works at any depth.

use super::xattr;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const DEPTH_MAX: usize = 200;

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: FileType,
    /// Size of a regular file; 0 for all others.
    pub size: u64,
    /// First half of the SHA-256 of a regular file's content.
    pub hash: u128,
    /// Permission bits with setuid, setgid, sticky.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime_s: i64,
    pub mtime_ns: u32,
    pub rdev: u64,
    /// Text of a symlink.
    pub link: Vec<u8>,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// First name (in byte order) of the hard-link group within this tree, for groups of two up.
    pub group: Option<Vec<u8>>,
    /// Bytes allocated on disk.
    pub allocated: u64,
    pub ino: u64,
    pub ctime: (i64, u64),
}

/// A whole tree: paths relative to its root (`.` is the root itself), in byte order.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub entries: BTreeMap<Vec<u8>, Entry>,
}

impl Snapshot {
    /// Reads the tree at `root`; empty when there is nothing.
    pub fn of(root: &Path) -> Snapshot {
        Snapshot::try_of(root).unwrap_or_else(|error| panic!("reading {}: {error}", root.display()))
    }

    pub fn try_of(root: &Path) -> std::io::Result<Snapshot> {
        let mut walk = Walk { found: Snapshot::default(), inodes: HashMap::new() };
        match rustix::fs::lstat(root) {
            Err(rustix::io::Errno::NOENT) => return Ok(walk.found),
            Err(error) => return Err(error.into()),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => {
                walk.entry(root, &stat, b"./".to_vec())?;
            }
            Ok(stat) => {
                walk.entry(root, &stat, b".".to_vec())?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                walk.dir(&rustix::fs::open(root, flags, Mode::empty())?, b"", 0)?;
            }
        }
        walk.groups();
        Ok(walk.found)
    }

    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path.as_bytes())
    }

    pub fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// Names of this tree that the other one does not have.
    pub fn not_in(&self, other: &Snapshot) -> Vec<String> {
        let missing = self.entries.keys().filter(|path| !other.entries.contains_key(*path));
        missing.map(|path| show(path)).collect()
    }

    /// The entries whose names the other tree has, too, with hard links among those only.
    pub fn only(mut self, other: &Snapshot) -> Snapshot {
        self.entries.retain(|path, _| other.entries.contains_key(path));
        let mut groups: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for (path, entry) in &self.entries {
            groups.entry(entry.group.clone().unwrap_or_default()).or_default().push(path.clone());
        }
        for entry in self.entries.values_mut() {
            let Some(names) = entry.group.as_ref().and_then(|group| groups.get(group)) else {
                continue;
            };
            entry.group = (names.len() > 1).then(|| names[0].clone());
        }
        self
    }

    /// State that a run without changes must preserve.
    pub fn ctimes(&self) -> BTreeMap<Vec<u8>, (u64, (i64, u64))> {
        self.entries.iter().map(|(path, e)| (path.clone(), (e.ino, e.ctime))).collect()
    }

    /// A listing for people, at most `limit` lines.
    pub fn listing(&self, limit: usize) -> String {
        let mut text = String::new();
        for (path, entry) in self.entries.iter().take(limit) {
            text.push_str(&format!("{} {}\n", line(entry), show(path)));
        }
        if self.entries.len() > limit {
            text.push_str(&format!("… and {} more\n", self.entries.len() - limit));
        }
        text
    }
}

/// A path for a message.
pub fn show(path: &[u8]) -> String {
    path.escape_ascii().to_string()
}

fn line(entry: &Entry) -> String {
    let kind = match entry.kind {
        FileType::Directory => 'd',
        FileType::RegularFile => '-',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::Socket => 's',
        FileType::CharacterDevice => 'c',
        FileType::BlockDevice => 'b',
        _ => '?',
    };
    let mut text = format!(
        "{kind}{:04o} {}:{} {:>9} {}.{:09}",
        entry.mode, entry.uid, entry.gid, entry.size, entry.mtime_s, entry.mtime_ns
    );
    if !entry.xattrs.is_empty() {
        text.push_str(&format!(" +{}", entry.xattrs.len()));
    }
    if !entry.link.is_empty() {
        text.push_str(&format!(" -> {}", show(&entry.link)));
    }
    text
}

struct Walk {
    found: Snapshot,
    inodes: HashMap<(u64, u64), Vec<Vec<u8>>>,
}

impl Walk {
    fn dir(&mut self, fd: &OwnedFd, path: &[u8], depth: usize) -> std::io::Result<()> {
        // Every level keeps a directory open and a piece of the test's small stack.
        if depth > DEPTH_MAX {
            return Err(std::io::Error::other("deeper than this reader goes"));
        }
        for item in rustix::fs::Dir::read_from(fd)? {
            let name = item?.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            let name_os = std::ffi::OsStr::from_bytes(&name);
            let stat = match rustix::fs::statat(fd, name_os, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => continue, // a tree may be read while it changes
                other => other?,
            };
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend(&name);
            // A short way to the entry, however deep it lies: attribute calls take paths only.
            let short = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd())).join(name_os);
            self.entry(&short, &stat, below.clone())?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = rustix::fs::openat(fd, name_os, flags, Mode::empty())?;
                self.dir(&fd, &below, depth + 1)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, at: &Path, stat: &Stat, path: Vec<u8>) -> std::io::Result<()> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let regular = kind == FileType::RegularFile;
        let node = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
        let link = match kind {
            FileType::Symlink => std::fs::read_link(at)?.as_os_str().as_bytes().to_vec(),
            _ => Vec::new(),
        };
        let entry = Entry {
            kind,
            size: if regular { stat.st_size as u64 } else { 0 },
            hash: if regular { hash(at)? } else { 0 },
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime_s: stat.st_mtime,
            mtime_ns: stat.st_mtime_nsec as u32,
            rdev: if node { stat.st_rdev } else { 0 },
            link,
            xattrs: xattr::read_all(at)?,
            group: None,
            allocated: stat.st_blocks as u64 * 512,
            ino: stat.st_ino,
            ctime: (stat.st_ctime, stat.st_ctime_nsec),
        };
        if kind != FileType::Directory && stat.st_nlink > 1 {
            self.inodes.entry((stat.st_dev, stat.st_ino)).or_default().push(path.clone());
        }
        self.found.entries.insert(path, entry);
        Ok(())
    }

    fn groups(&mut self) {
        for names in self.inodes.values().filter(|names| names.len() > 1) {
            let first = names.iter().min().unwrap();
            for name in names {
                self.found.entries.get_mut(name).unwrap().group = Some(first.clone());
            }
        }
    }
}

/// SHA-256, whose work is in functions that are compiled, and optimised, in their own crate: a hash of generic or inlined
/// functions would be compiled in this one, unoptimised.
fn hash(path: &Path) -> std::io::Result<u128> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => {
                let sum = hasher.finalize();
                return Ok(u128::from_be_bytes(sum[..16].try_into().unwrap()));
            }
            n => hasher.update(&buffer[..n]),
        }
    }
}
