//! Files that appear under their names whole, at the end: until then what is written has another
//! name in the same folder. Devices and pipes are written to as they are.

use hakobu_transfer::error::{Cause, quoted};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file to be.
pub struct Target {
    path: PathBuf,
    /// Its name until it is whole; `None` for what is no regular file.
    temporary: Option<PathBuf>,
    writer: BufWriter<File>,
    error: Option<io::Error>,
}

impl Target {
    /// Opens one, so that what cannot be written is known before anything is begun.
    ///
    /// # Errors
    /// A sentence with the path and the cause.
    pub fn open(path: &Path) -> Result<Target, String> {
        let opened = match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                File::options().write(true).open(path).map(|file| (None, file))
            }
            _ => temporary(path).map(|(name, file)| (Some(name), file)),
        };
        let (temporary, file) = opened.map_err(|error| failed(path, error))?;
        let writer = BufWriter::new(file);
        Ok(Target { path: path.to_owned(), temporary, writer, error: None })
    }

    /// Adds to it. An error is told at the end.
    pub fn write(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.writer.write_all(text.as_bytes()).err();
        }
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// A sentence: it is not there, or not whole.
    pub fn finish(mut self) -> Result<(), String> {
        let written = match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.flush(),
        };
        let done = written.and_then(|()| match &self.temporary {
            Some(temporary) => std::fs::rename(temporary, &self.path),
            None => Ok(()),
        });
        if done.is_ok() {
            self.temporary = None;
        }
        done.map_err(|error| failed(&self.path, error))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// A new file beside `path`, which may be a symlink to where the file shall be.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut other = std::ffi::OsString::from(".");
    other.push(name);
    other.push(format!(".{}", std::process::id()));
    let other = path.with_file_name(other);
    let file = File::options().write(true).create_new(true).open(&other)?;
    Ok((other, file))
}

fn failed(path: &Path, error: io::Error) -> String {
    format!("cannot write {}: {}", quoted(path), Cause::System(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_files_have_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        let path = dir.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let mut given_up = Target::open(&path).unwrap();
        given_up.write("half");
        drop(given_up);
        assert_eq!((std::fs::read_to_string(&path).unwrap(), names()), ("old".into(), 1));
        let mut target = Target::open(&path).unwrap();
        target.write("new");
        target.finish().unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap(), names()), ("new".into(), 1));
    }

    #[test]
    fn what_cannot_be_written_says_so() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("no/such"), PathBuf::from("/")] {
            let message = Target::open(&path).err().unwrap_or_default();
            assert!(message.starts_with("cannot write '"), "{message}");
        }
        let mut full = Target::open(Path::new("/dev/full")).unwrap();
        full.write("x");
        assert!(full.finish().is_err());
        let null = Target::open(Path::new("/dev/null")).unwrap();
        null.finish().unwrap();
        assert!(Path::new("/dev/null").exists());
    }
}
