//! Folders made by this program, which it may therefore empty or remove. A mark, a small file written when
//! the folder was made, holds the folder's inode. A folder without its mark, or reached through a symbolic
//! link, is never touched.

use hakobu_core::error::{Cause, Operation, PathError, quoted};
use hakobu_core::unit::Kind;
use hakobu_sys::paths::Links;
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, process};
use hakobu_tree::remove::{Removal, RemovalEntry, RemoveOptions, remove_tree};
use std::ffi::{CStr, CString, OsStr};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::{fmt, io};

/// Name of a mark inside its folder.
const MARK: &CStr = c".hakobu-made";
/// Suffix of the folder's name in a mark beside it.
const BESIDE: &str = ".made";
/// Subfolder that programs write to in a folder with a mark inside; they may replace it.
pub const CONTENT: &str = "content";

/// Position of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderMark {
    /// In the folder.
    Inside,
    /// In the parent folder, for a folder that may contain nothing but its content.
    Beside,
}

/// An open folder that this program made.
#[derive(Debug)]
pub struct OwnFolder {
    path: PathBuf,
    parent: OwnedFd,
    name: CString,
    folder: OwnedFd,
    mark: FolderMark,
}

/// Why a folder cannot be used as one that this program made.
#[derive(Debug)]
pub enum FolderError {
    /// A call failed.
    Path(PathError),
    /// It is left alone.
    Refused {
        path: PathBuf,
        /// The reason: what follows its path in a sentence.
        why: &'static str,
    },
}

impl fmt::Display for FolderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderError::Path(error) => error.fmt(out),
            FolderError::Refused { path, why } => write!(out, "{} {why}", quoted(path)),
        }
    }
}

error_type!(FolderError: Path(PathError); );

fn refused(path: &Path, why: &'static str) -> FolderError {
    FolderError::Refused { path: path.to_owned(), why }
}

impl OwnFolder {
    /// Creates a folder with its mark, or opens an existing one. An empty folder of this user is accepted as
    /// well: a run may have been killed before it wrote the mark.
    ///
    /// # Errors
    /// The path is a symbolic link or no directory, belongs to another user, holds files but no mark, or a call
    /// failed.
    pub fn claim(path: &Path, mark: FolderMark) -> Result<OwnFolder, FolderError> {
        let own = OwnFolder::open(path, mark)?;
        if own.is_marked()? {
            return Ok(own);
        }
        if !own.is_empty()? {
            return Err(refused(
                path,
                "holds files and was not created by hakobu: it is left alone\n\
                 hint: move it away or remove it, or choose another place",
            ));
        }
        own.write_mark().map_err(PathError::of("mark", path))?;
        Ok(own)
    }

    fn open(path: &Path, mark: FolderMark) -> Result<OwnFolder, FolderError> {
        let nul = |_| refused(path, NUL);
        let name = path.file_name().ok_or_else(|| refused(path, "has no name"))?;
        let name = CString::new(name.as_bytes()).map_err(nul)?;
        let above = path.parent().unwrap_or(Path::new("/"));
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let made = Links::Trusted.make_dir(above, 0o777, true);
        made.map_err(PathError::of("make", above))?;
        let text = CString::new(above.as_os_str().as_bytes()).map_err(nul)?;
        let parent = Links::Trusted.open_dir(dir::cwd(), &text);
        let parent = parent.map_err(PathError::of("open", above))?;
        create(parent.as_fd(), &name, path)?;
        let folder = dir::open(parent.as_fd(), &name, false).map_err(|error| {
            match errno::is(&error, errno::ENOTDIR) || errno::is(&error, errno::ELOOP) {
                true => refused(path, "is a symbolic link or no directory: left alone"),
                false => PathError::of("open", path)(error).into(),
            }
        })?;
        let own = OwnFolder { path: path.to_owned(), parent, name, folder, mark };
        let uid = meta::of_fd(&own.folder).map_err(PathError::of("access", path))?.uid;
        if uid != process::euid() && uid != own.uid_of_new_files() {
            return Err(refused(path, "belongs to another user: it is left alone"));
        }
        Ok(own)
    }

    /// Owner of new files in the folder. Some file systems give all files the same owner (CIFS, FAT, NFS with
    /// squashed root).
    fn uid_of_new_files(&self) -> u32 {
        let name = c".hakobu-owner";
        let probe = file::create_new(self.folder.as_fd(), name, 0o600);
        let uid = probe.and_then(|probe| {
            let uid = meta::of_fd(&probe).map(|meta| meta.uid);
            dir::unlink(self.folder.as_fd(), name)?;
            uid
        });
        uid.unwrap_or_else(|_| process::euid())
    }

    /// Directory and name of the mark.
    fn mark(&self) -> (BorrowedFd<'_>, CString) {
        match self.mark {
            FolderMark::Inside => (self.folder.as_fd(), MARK.to_owned()),
            FolderMark::Beside => {
                let mut name = self.name.to_bytes().to_vec();
                name.extend(BESIDE.as_bytes());
                // Neither part contains a NUL.
                (self.parent.as_fd(), CString::new(name).unwrap_or_default())
            }
        }
    }

    /// Text of the mark. The inode invalidates it in a copy of the folder; the device number is omitted
    /// because it may change when the file system is mounted again.
    fn text(&self) -> io::Result<String> {
        let inode = meta::of_fd(&self.folder)?.ino;
        Ok(format!("hakobu made this folder and empties it again; inode {inode}\n"))
    }

    fn is_marked(&self) -> Result<bool, PathError> {
        let (dir, name) = self.mark();
        let read = || -> io::Result<bool> {
            let mark = file::open_read(dir, &name, false)?;
            let found = meta::of_fd(&mark)?;
            let folder = meta::of_fd(&self.folder)?;
            if found.kind != Kind::File || found.uid != folder.uid {
                return Ok(false);
            }
            let mut buffer = [0; 256];
            let count = file::read_full_at(mark.as_fd(), &mut buffer, 0)?;
            Ok(buffer.get(..count) == Some(self.text()?.as_bytes()))
        };
        match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            // A symbolic link in its place.
            Err(error) if errno::is(&error, errno::ELOOP) => Ok(false),
            read => read.map_err(PathError::of("read the mark of", &self.path)),
        }
    }

    /// True if the folder contains nothing but a mark.
    fn is_empty(&self) -> Result<bool, PathError> {
        let mut others = 0;
        let mut count = |name: &CStr, _, _| {
            others += u32::from(self.mark != FolderMark::Inside || name != MARK);
        };
        let read = dir::Reader::default().for_each(self.folder.as_fd(), &mut count);
        read.map_err(PathError::of("read", &self.path))?;
        Ok(others == 0)
    }

    fn write_mark(&self) -> io::Result<()> {
        let (dir, name) = self.mark();
        match dir::unlink(dir, &name) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mark = file::create_new(dir, &name, 0o644)?;
        file::write_all(mark.as_fd(), self.text()?.as_bytes())
    }

    /// Removes everything at a path below the folder and creates it again. Symbolic links are not followed.
    pub fn empty(&self, below: &Path) -> Result<(), FolderError> {
        let mut here = self.folder.try_clone().map_err(PathError::of("open", &self.path))?;
        let mut path = self.path.clone();
        let mut parts = below.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else {
                return Err(refused(
                    &self.path.join(below),
                    "does not lie in the campaign's folder",
                ));
            };
            path.push(name);
            let name = CString::new(name.as_bytes()).map_err(|_| refused(&path, NUL))?;
            if parts.peek().is_none() {
                remove(here.as_fd(), &name, &path)?;
            }
            create(here.as_fd(), &name, &path)?;
            let inner = dir::open(here.as_fd(), &name, false);
            here = inner.map_err(PathError::of("open", &path))?;
        }
        Ok(())
    }

    /// Removes the folder with its content, and its mark last.
    pub fn remove(self) -> Result<(), FolderError> {
        let named = meta::of(self.parent.as_fd(), &self.name, false);
        let same =
            named.and_then(|named| Ok(named.identity() == meta::of_fd(&self.folder)?.identity()));
        if !same.map_err(PathError::of("access", &self.path))? {
            return Err(refused(&self.path, "is another directory by now: left alone"));
        }
        remove(self.parent.as_fd(), &self.name, &self.path)?;
        match self.mark {
            FolderMark::Inside => Ok(()),
            FolderMark::Beside => {
                let (dir, name) = self.mark();
                Ok(dir::unlink(dir, &name).map_err(PathError::of("unmark", &self.path))?)
            }
        }
    }
}

/// Creates a folder unless there is an entry of this name.
fn create(dir: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<(), PathError> {
    match dir::create(dir, name, 0o777) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(PathError::of("make", path)(error))
        }
        _ => Ok(()),
    }
}

/// Removes an entry with everything below it.
fn remove(dir: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<(), PathError> {
    let options = RemoveOptions { make_writable: true, ..RemoveOptions::default() };
    let mut problem = FirstProblem(None);
    let bytes = path.as_os_str().as_bytes();
    let kind = match meta::of(dir, name, false) {
        Ok(meta) => meta.kind,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(PathError::of("access", path)(error)),
    };
    remove_tree(dir, name, kind, bytes, options, &mut problem);
    problem.0.map_or(Ok(()), Err)
}

/// The first failed removal.
struct FirstProblem(Option<PathError>);

impl Removal for FirstProblem {
    fn removed(&mut self, _: &RemovalEntry<'_>) {}

    fn failed(&mut self, entry: &RemovalEntry<'_>, _: Operation, cause: Cause) {
        let path = PathBuf::from(OsStr::from_bytes(entry.path));
        self.0.get_or_insert(PathError { verb: "remove", path, cause });
    }
}

/// Why a path is refused.
const NUL: &str = "holds a NUL";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn refusal(path: &Path, mark: FolderMark) -> String {
        OwnFolder::claim(path, mark).unwrap_err().to_string()
    }

    #[test]
    fn folders_are_made_known_again_and_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("f"), "mine").unwrap();
        for mark in [FolderMark::Inside, FolderMark::Beside] {
            let path = dir.path().join(format!("a/{mark:?}"));
            for _ in 0..2 {
                let own = OwnFolder::claim(&path, mark).unwrap();
                own.empty(Path::new("content/deep")).unwrap();
                fs::create_dir(path.join("content/deep/x")).unwrap();
                fs::write(path.join("content/deep/x/f"), "x").unwrap();
                symlink(&outside, path.join("content/deep/link")).unwrap();
                own.empty(Path::new("content/deep")).unwrap();
                assert_eq!(fs::read_dir(path.join("content/deep")).unwrap().count(), 0);
                // If a program replaces the folder by a link, the link is removed, not its target.
                fs::remove_dir(path.join("content/deep")).unwrap();
                symlink(&outside, path.join("content/deep")).unwrap();
                own.empty(Path::new("content/deep")).unwrap();
                assert!(path.join("content/deep").symlink_metadata().unwrap().is_dir());
                assert!(own.empty(Path::new("../..")).is_err());
            }
            OwnFolder::claim(&path, mark).unwrap().remove().unwrap();
        }
        assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 0, "marks go as well");
        assert_eq!(fs::read(outside.join("f")).unwrap(), b"mine");
    }

    #[test]
    fn what_belongs_to_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let full = path("full");
        fs::create_dir(&full).unwrap();
        fs::write(full.join("thesis"), "mine").unwrap();
        symlink(&full, path("link")).unwrap();
        fs::write(path("file"), "").unwrap();
        // A renamed copy of our folder: its mark is invalid.
        let own = OwnFolder::claim(&path("own"), FolderMark::Inside).unwrap();
        own.empty(Path::new(CONTENT)).unwrap();
        fs::create_dir(path("copy")).unwrap();
        fs::copy(path("own/.hakobu-made"), path("copy/.hakobu-made")).unwrap();
        fs::write(path("copy/thesis"), "mine").unwrap();
        symlink(path("own"), path("to-own")).unwrap();
        for mark in [FolderMark::Inside, FolderMark::Beside] {
            for (name, said) in [
                ("full", "was not created by hakobu"),
                ("copy", "was not created by hakobu"),
                ("link", "is a symbolic link or no directory"),
                ("to-own", "is a symbolic link or no directory"),
                ("file", "is a symbolic link or no directory"),
            ] {
                let why = refusal(&path(name), mark);
                assert!(why.contains(said) && why.contains(name), "{why}");
            }
        }
        // A link in place of the mark.
        fs::rename(path("own/.hakobu-made"), path("mark")).unwrap();
        symlink(path("mark"), path("own/.hakobu-made")).unwrap();
        assert!(refusal(&path("own"), FolderMark::Inside).contains("was not created"));
        assert_eq!(fs::read(full.join("thesis")).unwrap(), b"mine");
        assert!(path("copy/thesis").exists() && path("own/content").exists());
        // Incomplete, from a killed run.
        fs::create_dir(path("half")).unwrap();
        fs::write(path("half/.hakobu-made"), "hako").unwrap();
        OwnFolder::claim(&path("half"), FolderMark::Inside).unwrap();
    }

    #[test]
    fn folders_of_other_users_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("theirs");
        let own = OwnFolder::claim(&path, FolderMark::Inside).unwrap();
        if std::os::unix::fs::chown(&path, Some(12345), None).is_err() {
            return; // chown requires root
        }
        assert!(refusal(&path, FolderMark::Inside).contains("belongs to another user"));
        drop(own);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1, "the probe is removed");
    }

    #[test]
    fn a_folder_that_was_replaced_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        let own = OwnFolder::claim(&path, FolderMark::Inside).unwrap();
        fs::rename(&path, dir.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("thesis"), "mine").unwrap();
        assert!(own.remove().unwrap_err().to_string().contains("is another directory by now"));
        assert!(path.join("thesis").exists());
    }
}
