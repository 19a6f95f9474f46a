//! A run folder on a file system that all machines share.

use super::{Folder, Trouble, is_inside};
use hakobu_core::error::{cannot, quoted};
use hakobu_sys::{close, errno, process};
use hakobu_transfer::journal::Owner;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
#[derive(Debug)]
pub struct Local {
    path: PathBuf,
    /// Names of temporary files: process and a number.
    me: String,
    next: AtomicU64,
}

impl Local {
    /// Opens a folder, and makes it where that is asked for. It belongs to this user, and no one
    /// else may look into it.
    ///
    /// # Errors
    /// It is not there, or not ours.
    pub fn open(path: &Path, make: bool) -> Result<Local, Trouble> {
        if make
            && let Err(error) = DirBuilder::new().mode(0o700).create(path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(trouble("create", path, error));
        }
        let meta = fs::symlink_metadata(path).map_err(|error| trouble("open", path, error))?;
        let (uid, mode) = (meta.uid(), meta.mode() & 0o7777);
        let refused = |why: &str| {
            let hint = "hint: a run folder belongs to the user that runs it, mode 0700";
            Err(Trouble::lasting(format!("cannot use run folder {}: {why}\n{hint}", quoted(path))))
        };
        if !meta.is_dir() {
            return refused("it is not a directory");
        }
        if uid != process::euid() {
            return refused(&format!("it belongs to user {uid}"));
        }
        if mode & 0o077 != 0 {
            return refused(&format!("other users have access (mode {mode:04o})"));
        }
        let Owner { host, boot, pid, start } = Owner::me();
        let me = format!("{host:08x}{boot:08x}{pid:x}{start:x}");
        Ok(Local { path: path.to_owned(), me, next: AtomicU64::new(fastrand::u64(..1 << 40)) })
    }

    /// The place of a file, or of a folder of files.
    fn place(&self, name: &str) -> Result<PathBuf, Trouble> {
        match is_inside(name) {
            true => Ok(self.path.join(name)),
            false => {
                let why = format!("{} is not a file of run folder {}", quoted(name), self.shown());
                Err(Trouble::lasting(why))
            }
        }
    }

    /// Writes a file under a temporary name beside its place.
    fn draft(&self, name: &str, content: &[u8]) -> Result<(PathBuf, PathBuf), Trouble> {
        let path = self.place(name)?;
        let folder = path.parent().unwrap_or(&self.path);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temp = folder.join(format!(".{}-{number:x}", self.me));
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp)?;
            file.write_all(content)?;
            // Network file systems tell of some failures only here.
            close::close(file)
        };
        let made = match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match DirBuilder::new().mode(0o700).create(folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => write(),
                }
            }
            made => made,
        };
        made.map_err(|error| {
            drop(fs::remove_file(&temp));
            trouble("write", &path, error)
        })?;
        Ok((temp, path))
    }
}

impl Folder for Local {
    fn create(&self, name: &str, content: &[u8]) -> Result<bool, Trouble> {
        let (temp, path) = self.draft(name, content)?;
        let linked = fs::hard_link(&temp, &path);
        let made = match linked {
            Ok(()) => Ok(true),
            // The answer to a first try may have been lost (NFS): then this file is ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(fs::metadata(&temp).is_ok_and(|meta| meta.nlink() > 1))
            }
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(errno::EPERM | errno::EOPNOTSUPP | errno::ENOSYS | errno::EMLINK)
                ) =>
            {
                exclusive(&path, content)
            }
            Err(error) => Err(error),
        };
        drop(fs::remove_file(&temp));
        made.map_err(|error| trouble("create", &path, error))
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), Trouble> {
        let (temp, path) = self.draft(name, content)?;
        fs::rename(&temp, &path).map_err(|error| {
            drop(fs::remove_file(&temp));
            trouble("write", &path, error)
        })
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Trouble> {
        let path = self.place(name)?;
        match fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(trouble("read", &path, error)),
        }
    }

    fn names(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        let path = self.place(folder)?;
        let list = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path)? {
                names.extend(entry?.file_name().into_string().ok());
            }
            names.retain(|name| !name.starts_with('.'));
            Ok::<_, io::Error>(names)
        };
        match list() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed.map_err(|error| trouble("list", &path, error)),
        }
    }

    fn names_after(&self, folder: &str, _: &str) -> Result<Vec<String>, Trouble> {
        self.names(folder)
    }

    fn remove(&self, name: &str) -> Result<(), Trouble> {
        let path = self.place(name)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(trouble("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    fn shown(&self) -> String {
        quoted(&self.path)
    }
}

/// Makes a file where the file system has no hard links. A reader may see it before its content.
fn exclusive(path: &Path, content: &[u8]) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let written = file.write_all(content).and_then(|()| close::close(file));
            if written.is_err() {
                drop(fs::remove_file(path));
            }
            written.map(|()| true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(fs::read(path).is_ok_and(|there| there == content))
        }
        Err(error) => Err(error),
    }
}

fn trouble(verb: &str, path: &Path, error: io::Error) -> Trouble {
    let lasting = [errno::EACCES, errno::EPERM, errno::EROFS, errno::ENOENT, errno::ENOTDIR];
    let again = !error.raw_os_error().is_some_and(|code| lasting.contains(&code));
    Trouble { again, message: cannot(verb, path, error) }
}
