//! The served folder as an open descriptor: the kernel resolves every path below it at the time of use, so that `..`,
//! absolute symlinks and concurrent changes cannot lead out. Keys are mapped to files: a plain key is its own path. A key
//! gets a numbered file if it cannot be a path (`//`, `.` and `..`, a slash at either end), is too long for derived names,
//! or collides with an existing folder or file; a list maps numbers to keys.

use hakobu_core::unit::{Kind, Time};
use hakobu_sys::paths::{self, OpenPurpose};
use hakobu_sys::{AsFd, OwnedFd, dir, errno, file, meta, process};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Prefix of temporary files, followed by process id, a number and [`END`].
const START: &str = ".tmp.";
const END: &str = ".internal.part";
/// Largest metadata file of an object, bytes.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// The served folder.
#[derive(Debug)]
pub struct ServedRoot {
    fd: OwnedFd,
    count: AtomicU64,
}

/// Directory of the entry that [`ServedRoot::look`] was called for last: the next one is often beside it.
#[derive(Debug, Default)]
pub struct LastDirectory {
    path: String,
    fd: Option<OwnedFd>,
}

/// A temporary file, removed when dropped before it is published.
#[derive(Debug)]
pub struct TempFile {
    root: Arc<ServedRoot>,
    name: CString,
    /// The file, open for writing.
    pub file: File,
    is_named: bool,
}

impl ServedRoot {
    /// Opens a folder by path, and removes temporary files of ended processes.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<ServedRoot> {
        let fd = dir::open_root(&CString::new(path.as_os_str().as_bytes())?)?;
        let root = ServedRoot { fd, count: AtomicU64::new(0) };
        let mut left = Vec::new();
        root.each("", |name, _| left.extend(is_left(name).then(|| name.to_owned())))?;
        for name in left {
            root.remove(&name)?;
        }
        Ok(root)
    }

    fn get(&self, path: &str, purpose: OpenPurpose) -> io::Result<OwnedFd> {
        paths::open_beneath(self.fd.as_fd(), &CString::new(path)?, purpose)
    }

    /// Metadata of an entry, following symlinks that stay in the folder.
    ///
    /// # Errors
    /// It does not exist, or is outside.
    pub fn meta(&self, path: &str) -> io::Result<Metadata> {
        File::from(self.get(path, OpenPurpose::Looking)?).metadata()
    }

    /// Size and modification time of a regular file, as [`ServedRoot::meta`]; one system call for each entry of a directory.
    ///
    /// # Errors
    /// As [`ServedRoot::meta`]; NotFound if it has another type.
    pub fn look(&self, path: &str, place: &mut LastDirectory) -> io::Result<(u64, SystemTime)> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if place.fd.is_none() || place.path != above {
            let fd = self.get(above, OpenPurpose::Directory)?;
            *place = LastDirectory { path: above.to_owned(), fd: Some(fd) };
        }
        let fd = place.fd.as_ref().ok_or(ErrorKind::NotFound)?;
        let meta = meta::of(fd.as_fd(), &CString::new(name)?, false)?;
        match meta.kind {
            Kind::File => Ok((meta.size, time(meta.mtime))),
            Kind::Symlink => match self.meta(path)? {
                meta if meta.is_file() => Ok((meta.len(), meta.modified()?)),
                _ => Err(ErrorKind::NotFound.into()),
            },
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    /// True if a directory exists; false on errors.
    pub fn is_dir(&self, path: &str) -> bool {
        self.meta(path).is_ok_and(|meta| meta.is_dir())
    }

    /// True if a regular file exists; false on errors.
    pub fn is_file(&self, path: &str) -> bool {
        self.meta(path).is_ok_and(|meta| meta.is_file())
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// Those of opening; NotFound if it has another type.
    pub fn file(&self, path: &str) -> io::Result<(File, Metadata)> {
        // Check the type first: opening a device may have side effects.
        if !self.meta(path)?.is_file() {
            return Err(ErrorKind::NotFound.into());
        }
        let file = File::from(self.get(path, OpenPurpose::Reading)?);
        let meta = file.metadata()?;
        if meta.is_file() { Ok((file, meta)) } else { Err(ErrorKind::NotFound.into()) }
    }

    /// Reads a small file at the top of the folder, with as few system calls as that takes: a listing reads one for each
    /// object. A symlink is not followed.
    ///
    /// # Errors
    /// Those of opening; NotFound if it has another type; InvalidData if it is too large.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        if name.contains('/') {
            return Err(ErrorKind::InvalidInput.into());
        }
        let name = CString::new(name)?;
        // Check the type first: opening a device may have side effects.
        let meta = meta::of(self.fd.as_fd(), &name, false)?;
        if meta.kind != Kind::File {
            return Err(ErrorKind::NotFound.into());
        }
        let file = File::from(file::open_read(self.fd.as_fd(), &name, false)?);
        let size = usize::try_from(meta.size.min(SMALL_BYTES_MAX)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(size + 1);
        file.take(SMALL_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > SMALL_BYTES_MAX {
            true => Err(ErrorKind::InvalidData.into()),
            false => Ok(bytes),
        }
    }

    /// Appends to a file, which is created if missing.
    ///
    /// # Errors
    /// Those of opening and writing.
    pub fn append(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        File::from(self.get(path, OpenPurpose::Appending)?).write_all(bytes)
    }

    /// Calls `each` with the UTF-8 names in a directory and their types.
    ///
    /// # Errors
    /// Those of opening and reading it.
    pub fn each(&self, path: &str, mut each: impl FnMut(&str, Kind)) -> io::Result<()> {
        let folder = self.get(path, OpenPurpose::Directory)?;
        dir::Reader::default().for_each(folder.as_fd(), |name, kind, _| {
            if let Ok(name) = name.to_str() {
                each(name, kind);
            }
        })
    }

    /// Creates a directory at the top of the folder.
    ///
    /// # Errors
    /// Those of mkdir(2).
    pub fn make_dir(&self, name: &str) -> io::Result<()> {
        dir::create(self.fd.as_fd(), &CString::new(name)?, 0o777)
    }

    /// Directory of a path, and the path's last name. `makes` creates missing directories.
    fn parent(&self, path: &str, makes: bool) -> io::Result<(OwnedFd, CString)> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if matches!(name, "" | "." | "..") {
            return Err(ErrorKind::InvalidInput.into());
        }
        let name = CString::new(name)?;
        match self.get(above, OpenPurpose::Directory) {
            Err(error) if makes && error.kind() == ErrorKind::NotFound => {}
            other => return Ok((other?, name)),
        }
        let mut here = self.get("", OpenPurpose::Directory)?;
        let ends = above.match_indices('/').map(|(at, _)| at).chain([above.len()]);
        let mut start = 0;
        for end in ends {
            let part = above.get(start..end).unwrap_or_default();
            match dir::create(here.as_fd(), &CString::new(part)?, 0o777) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            here = self.get(above.get(..end).unwrap_or_default(), OpenPurpose::Directory)?;
            start = end + 1;
        }
        Ok((here, name))
    }

    /// Removes a file or a symlink; a missing one is not an error.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub fn remove(&self, path: &str) -> io::Result<()> {
        let removed =
            self.parent(path, false).and_then(|(dir, name)| dir::unlink(dir.as_fd(), &name));
        match removed {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Removes a directory at the top of the folder with its content.
    ///
    /// # Errors
    /// The first failed removal.
    pub fn remove_tree(&self, name: &str) -> io::Result<()> {
        // This path of the folder survives a rename.
        let folder = PathBuf::from(OsString::from_vec(file::proc_path(&self.fd).into_bytes()));
        // Does not follow symlinks, neither below nor at the path itself.
        std::fs::remove_dir_all(folder.join(name))
    }
}

fn time(time: Time) -> SystemTime {
    let whole = Duration::from_secs(time.s.unsigned_abs());
    let second = if time.s < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
    second + Duration::from_nanos(u64::from(time.ns))
}

/// True for a temporary file whose process has ended.
fn is_left(name: &str) -> bool {
    let middle = name.strip_prefix(START).and_then(|rest| rest.strip_suffix(END));
    middle.is_some_and(|middle| match middle.split_once('.') {
        Some((pid, _)) => pid.parse().is_ok_and(|pid| !process::is_alive(pid)),
        // Servers of earlier versions did not include their process id.
        None => middle.parse::<u64>().is_ok(),
    })
}

impl TempFile {
    /// Creates a temporary file.
    ///
    /// # Errors
    /// Those of creating a file.
    pub fn new(root: &Arc<ServedRoot>) -> io::Result<TempFile> {
        let pid = std::process::id();
        loop {
            let number = root.count.fetch_add(1, Ordering::Relaxed);
            let name = CString::new(format!("{START}{pid}.{number}{END}"))?;
            match file::create_new(root.fd.as_fd(), &name, 0o644) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    let file = File::from(made?);
                    return Ok(TempFile { root: Arc::clone(root), name, file, is_named: false });
                }
            }
        }
    }

    /// Renames it to its path, replacing an existing file unless `is_new`.
    ///
    /// # Errors
    /// Those of creating folders and renaming; AlreadyExists.
    pub fn publish(&mut self, path: &str, is_new: bool) -> io::Result<()> {
        let (dir, name) = self.root.parent(path, true)?;
        let (from, to) = (self.root.fd.as_fd(), dir.as_fd());
        match is_new {
            true => match dir::rename_new(from, &self.name, to, &name) {
                // For file systems without RENAME_NOREPLACE: a hard link has the same effect.
                Err(error) if errno::is(&error, errno::EINVAL) => {
                    return dir::link(from, &self.name, to, &name);
                }
                other => other?,
            },
            false => dir::rename(from, &self.name, to, &name)?,
        }
        self.is_named = true;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.is_named {
            // The next server on this folder retries.
            let _ = dir::unlink(self.root.fd.as_fd(), &self.name);
        }
    }
}

/// The list, inside the served folder: a line of JSON per number, with bucket and key.
const LIST: &str = ".hakobu-names";
/// Prefix of numbered files.
const NUMBERED: &str = ".key-";
/// Longest key used as a path, bytes. Metadata files are named after the key in base64, with a bucket and an
/// upload id, within 255 bytes.
const PLAIN_BYTES_MAX: usize = 64;

type ObjectKey = (String, String);

/// Files of keys.
#[derive(Debug)]
pub struct KeyNames {
    root: Arc<ServedRoot>,
    numbered: Mutex<NumberedKeys>,
}

#[derive(Debug, Default)]
struct NumberedKeys {
    keys: Vec<ObjectKey>,
    numbers: HashMap<ObjectKey, usize>,
}

impl NumberedKeys {
    fn add(&mut self, object: ObjectKey) -> usize {
        let number = self.keys.len();
        self.keys.push(object.clone());
        self.numbers.insert(object, number);
        number
    }
}

impl KeyNames {
    /// Reads the list of a folder.
    ///
    /// # Errors
    /// The list exists and cannot be read.
    pub fn load(root: &Arc<ServedRoot>) -> io::Result<KeyNames> {
        let mut numbered = NumberedKeys::default();
        match root.file(LIST) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            file => {
                for line in BufReader::new(file?.0).lines() {
                    numbered.add(serde_json::from_str(&line?).map_err(io::Error::other)?);
                }
            }
        }
        Ok(KeyNames { root: Arc::clone(root), numbered: Mutex::new(numbered) })
    }

    /// Path of an existing key within its bucket; `None` if it cannot exist.
    pub fn find(&self, bucket: &str, key: &str) -> Option<String> {
        let numbered = self.numbered.lock();
        match numbered.numbers.get(&(bucket.to_owned(), key.to_owned())) {
            Some(number) => Some(file_of(*number)),
            None => is_path(key).then(|| key.to_owned()),
        }
    }

    /// Path within its bucket for writing a key.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn make(&self, bucket: &str, key: &str) -> io::Result<String> {
        let object = (bucket.to_owned(), key.to_owned());
        let mut numbered = self.numbered.lock();
        if let Some(number) = numbered.numbers.get(&object) {
            return Ok(file_of(*number));
        }
        if is_path(key) && key.len() <= PLAIN_BYTES_MAX && !self.is_taken(bucket, key) {
            return Ok(key.to_owned());
        }
        self.number(&mut numbered, object)
    }

    /// Another path for a key whose own path has been taken since it was looked up, by a key above or below
    /// it. `None` if it is still free.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn move_aside(&self, bucket: &str, key: &str) -> io::Result<Option<String>> {
        let object = (bucket.to_owned(), key.to_owned());
        let mut numbered = self.numbered.lock();
        if let Some(number) = numbered.numbers.get(&object) {
            return Ok(Some(file_of(*number)));
        }
        if key.starts_with(NUMBERED) || !self.is_taken(bucket, key) {
            return Ok(None);
        }
        self.number(&mut numbered, object).map(Some)
    }

    /// Assigns a numbered file to a key.
    fn number(&self, numbered: &mut NumberedKeys, object: ObjectKey) -> io::Result<String> {
        let mut line = serde_json::to_vec(&object)?;
        line.push(b'\n');
        self.root.append(LIST, &line)?;
        Ok(file_of(numbered.add(object)))
    }

    /// True if a folder exists in place of the file, or a file in place of one of its folders.
    fn is_taken(&self, bucket: &str, key: &str) -> bool {
        let mut slashes = key.match_indices('/').map(|(at, _)| &key[..at]);
        self.root.is_dir(&format!("{bucket}/{key}"))
            || slashes.any(|part| self.root.is_file(&format!("{bucket}/{part}")))
    }

    /// Key of a path within a bucket; `None` if the path is not an object.
    pub fn key_of(&self, bucket: &str, path: &str) -> Option<String> {
        let Some(digits) = path.strip_prefix(NUMBERED) else { return Some(path.to_owned()) };
        let numbered = self.numbered.lock();
        let (owner, key) = numbered.keys.get(digits.parse::<usize>().ok()?)?;
        (owner == bucket).then(|| key.clone())
    }
}

fn file_of(number: usize) -> String {
    format!("{NUMBERED}{number:09}")
}

/// True if a key can be used as a path.
fn is_path(key: &str) -> bool {
    let is_name = |name: &str| !["", ".", ".."].contains(&name) && name.len() <= 255;
    !key.starts_with(NUMBERED) && !key.contains('\0') && key.split('/').all(is_name)
}
