//! Files that the program writes for the user: exports, reports, logs, manual pages, completions. Such a file gets its
//! name when it is complete ([`OutputFile`]). Devices and pipes are written to directly, and `-` is standard output. Symlinks on the way are followed if they belong to root or the running user.

use crate::show::output::Output;
use hakobu_core::error::{Cause, cannot};
use hakobu_sys::paths::Links;
use hakobu_transfer::publish::OutputFile;
use std::io;
use std::path::{Path, PathBuf};

/// The name that means standard output.
const STDOUT: &str = "-";

/// An output file.
pub struct Target {
    path: PathBuf,
    /// `None` if it is not a regular file.
    file: Option<OutputFile>,
    output: Output,
}

impl Target {
    /// Opens a file, so that errors appear before the work begins.
    ///
    /// # Errors
    /// A sentence with the path and the cause.
    pub fn open(path: &Path) -> Result<Target, String> {
        let opened = match std::fs::metadata(path) {
            _ if is_stdout(path) => Ok((None, Output::stdout())),
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                Output::file(path, true, &Links::Trusted).map(|output| (None, output))
            }
            _ => OutputFile::create(path, &Links::Trusted)
                .map(|(created, file)| (Some(created), Output::new(file))),
        };
        let (file, output) = opened.map_err(|error| failed(path, error))?;
        Ok(Target { path: path.to_owned(), file, output })
    }

    /// Opens several files, those that are requested.
    ///
    /// # Errors
    /// One cannot be written, or two are standard output.
    pub fn open_all<const N: usize>(
        paths: [&Option<PathBuf>; N],
    ) -> Result<[Option<Target>; N], String> {
        let requested = paths.iter().filter_map(|path| path.as_deref());
        if requested.filter(|path| is_stdout(path)).count() > 1 {
            return Err("only one file can be standard output (-)".to_owned());
        }
        let mut opened = [const { None }; N];
        for (path, target) in paths.into_iter().zip(&mut opened) {
            *target = path.as_deref().map(Target::open).transpose()?;
        }
        Ok(opened)
    }

    /// Writes to it. An error is reported by `finish`.
    pub fn write(&mut self, text: &str) {
        self.output.write(text.as_bytes());
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// As [`Target::finish`].
    pub fn deliver(self, text: impl AsRef<[u8]>) -> Result<(), String> {
        self.output.write(text.as_ref());
        self.finish()
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// A sentence: it could not be created, or is incomplete.
    pub fn finish(self) -> Result<(), String> {
        let written = self.output.finish().map_or(Ok(()), Err);
        let done = written.and_then(|()| self.file.map_or(Ok(()), OutputFile::publish));
        done.map_err(|error| failed(&self.path, error))
    }
}

/// Returns whether a path means standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == STDOUT
}

/// Writes a whole file.
///
/// # Errors
/// A sentence with the path and the cause.
pub fn write_file(path: &Path, text: &str) -> Result<(), String> {
    Target::open(path)?.deliver(text)
}

/// Creates a folder and its missing parents, for [`Target::open`].
///
/// # Errors
/// A sentence with the path and the cause.
pub fn make_folder(path: &Path) -> Result<(), String> {
    let made = Links::Trusted.make_dir(path, 0o777, true);
    made.map(drop).map_err(|error| cannot("write", path, error))
}

/// Returns the path, by default standard output.
pub fn or_stdout(path: Option<PathBuf>) -> PathBuf {
    path.unwrap_or_else(|| STDOUT.into())
}

fn failed(path: &Path, error: io::Error) -> String {
    match is_stdout(path) {
        true => format!("cannot write to standard output: {}", Cause::System(error)),
        false => cannot("write", path, error),
    }
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
    fn write_errors_are_reported() {
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
