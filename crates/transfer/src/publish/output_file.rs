//! Files that a command writes for its user: exports, reports, recordings, manual pages. A reader sees the old file or
//! the new one; a program that is killed leaves at most a file with a temporary name, which the next `sync`
//! into that folder removes.

use super::draft::{Draft, TempEntry};
use super::temp_name::TempNames;
use hakobu_sys::paths::Links;
use hakobu_sys::{AsFd, OwnedFd, dir};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A regular file that gets its name once its content is written; dropped before, it never appears.
pub struct OutputFile {
    entry: TempEntry<Arc<OwnedFd>>,
    dir: Arc<OwnedFd>,
    name: CString,
}

impl OutputFile {
    /// Creates a file under a temporary name beside `path`. Symlinks of the folder are followed as `links` allows; one
    /// of this name will be replaced.
    ///
    /// # Errors
    /// The path has no last component; the folder cannot be written to.
    pub fn create(path: &Path, links: &Links) -> io::Result<(OutputFile, File)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.as_bytes();
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.as_os_str().as_bytes(),
            _ => b".",
        };
        let dir = Arc::new(links.open_dir(dir::cwd(), &CString::new(folder)?)?);
        let temp = TempNames::new().make();
        let draft = Draft::temporary(Arc::clone(&dir), temp.clone(), 0o666)?;
        let entry = TempEntry::new(draft.dir, temp);
        Ok((OutputFile { entry, dir, name: CString::new(name)? }, File::from(draft.fd)))
    }

    /// Gives it its name, in place of what has that name.
    ///
    /// # Errors
    /// It could not be renamed, and is removed.
    pub fn publish(mut self) -> io::Result<()> {
        self.entry.rename((self.dir.as_fd(), &self.name), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn names(dir: &Path) -> Vec<std::ffi::OsString> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn only_whole_files_have_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let (given_up, mut file) = OutputFile::create(&path, &Links::Trusted).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(names(dir.path()).len(), 2);
        let temp = names(dir.path()).into_iter().find(|name| name != "a").unwrap();
        assert!(TempNames::ends_path(temp.as_bytes()));
        drop(given_up);
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(dir.path()).len()),
            ("old", 1)
        );
        let (output, mut file) = OutputFile::create(&path, &Links::Trusted).unwrap();
        file.write_all(b"new").unwrap();
        output.publish().unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(dir.path()).len()),
            ("new", 1)
        );
        // A folder of that name stays.
        fs::create_dir(dir.path().join("d")).unwrap();
        let (output, _file) = OutputFile::create(&dir.path().join("d"), &Links::Trusted).unwrap();
        output.publish().unwrap_err();
        assert_eq!(names(dir.path()).len(), 2);
    }
}
