//! Working folder and data of the demonstration: a private folder that is removed afterwards, and files with
//! reproducible pseudo-random content.

use crate::number;
use hakobu_core::error::{Cause, quoted};
use hakobu_lab::campaign::own_folder::{FolderMark, OwnFolder};
use hakobu_sys::{AsFd, disk};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of files per folder.
const FOLDER_FILES: u64 = 100;
/// Bytes generated and written at once.
const PIECE_BYTES: u64 = 256 << 10;
/// Number of copies on disk at once: files, store, copy.
const COPIES: u64 = 3;
/// Bytes that a small file and its entry may use in addition to its content.
const ENTRY_BYTES: u64 = 8192;

/// A private folder. Removed on drop, unless it is kept.
pub struct Area {
    dir: PathBuf,
    /// Removes the folder; `None` once it is removed or kept.
    own: Option<OwnFolder>,
}

impl Area {
    /// Creates the folder, in `TMPDIR` or `/tmp`.
    ///
    /// # Errors
    /// A sentence: it cannot be created.
    pub fn make() -> Result<Area, String> {
        let parent = std::env::temp_dir();
        let failed = |error| format!("cannot make a folder in {}: {}", quoted(&parent), why(error));
        // A name with a colon before its first slash would mean another machine.
        let parent = parent.canonicalize().map_err(failed)?;
        for attempt in 0.. {
            let dir = parent.join(format!("hakobu-demo-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {
                    let own = Some(OwnFolder::claim(&dir, FolderMark::Inside)?);
                    let area = Area { dir, own };
                    fs::create_dir(area.files()).map_err(failed)?;
                    fs::create_dir(area.store()).map_err(failed)?;
                    return Ok(area);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Returns the folder of generated files.
    pub fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// Returns the folder of the server.
    pub fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    /// Returns the folder of downloaded files.
    pub fn copy(&self) -> PathBuf {
        self.dir.join("copy")
    }

    /// Checks that everything will fit.
    ///
    /// # Errors
    /// A sentence, with a workaround.
    pub fn has_room(&self, data: &Data) -> Result<(), String> {
        let Ok(room) = File::open(&self.dir).and_then(|dir| disk::space(dir.as_fd())) else {
            return Ok(()); // a failure shows when writing
        };
        let one = data.bytes().unwrap_or(u64::MAX);
        let entries = data.count().saturating_mul(ENTRY_BYTES);
        let need = one.saturating_add(entries).saturating_mul(COPIES);
        if need <= room.free_bytes {
            return Ok(());
        }
        Err(format!(
            "{} has {} left and this takes {}: choose fewer files, or another volume by TMPDIR",
            quoted(&self.dir),
            number::bytes(room.free_bytes),
            number::bytes(need)
        ))
    }

    /// Keeps the folder and returns its path.
    pub fn keep(mut self) -> PathBuf {
        self.own = None;
        self.dir.clone()
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// A sentence: the path that is left, and the cause.
    pub fn remove(mut self) -> Result<(), String> {
        self.own.take().map_or(Ok(()), OwnFolder::remove)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // A failure cannot be reported here.
        let _ = self.own.take().map(OwnFolder::remove);
    }
}

fn why(error: io::Error) -> Cause {
    Cause::System(error)
}

/// The files to generate: many small ones and one large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of small files.
    pub files: u64,
    /// Bytes of each small file.
    pub file_bytes: u64,
    /// Bytes of the large file; 0: none.
    pub large_bytes: u64,
}

impl Default for Data {
    fn default() -> Data {
        Data { files: 2000, file_bytes: 16 << 10, large_bytes: 64 << 20 }
    }
}

impl Data {
    /// Returns the number of files.
    pub fn count(&self) -> u64 {
        self.files + u64::from(self.large_bytes > 0)
    }

    /// Returns the total bytes; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        self.files.checked_mul(self.file_bytes)?.checked_add(self.large_bytes)
    }

    /// Generates them in an existing folder, until `stop` is set.
    ///
    /// # Errors
    /// A sentence: a file that cannot be written, or that it was stopped.
    pub fn make(&self, dir: &Path, stop: &AtomicBool) -> Result<(), String> {
        let failed = |path: &Path| {
            let path = quoted(path);
            move |error| format!("cannot write {path}: {}", why(error))
        };
        let mut folder = dir.to_owned();
        for number in 0..self.files {
            if number % FOLDER_FILES == 0 {
                folder = dir.join(format!("{:04}", number / FOLDER_FILES));
                fs::create_dir(&folder).map_err(failed(&folder))?;
            }
            let path = folder.join(format!("{number:06}.bin"));
            write(&path, number, self.file_bytes, stop).map_err(failed(&path))?;
        }
        if self.large_bytes > 0 {
            let path = dir.join("large.bin");
            write(&path, self.files, self.large_bytes, stop).map_err(failed(&path))?;
        }
        Ok(())
    }
}

fn write(path: &Path, seed: u64, bytes: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    // Streams of neighbouring seeds must not be the same stream shifted by a step.
    let mut state = mixed(seed.wrapping_add(1));
    let mut piece = vec![0; PIECE_BYTES.min(bytes) as usize];
    let mut left = bytes;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if left == 0 {
            return Ok(());
        }
        piece.truncate(left.min(PIECE_BYTES) as usize);
        fill(&mut piece, &mut state);
        file.write_all(&piece)?;
        left -= piece.len() as u64;
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn fill(piece: &mut [u8], state: &mut u64) {
    for word in piece.chunks_mut(8) {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&mixed(*state).to_le_bytes()[..word.len()]);
    }
}

fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first numbers of SplitMix64 from seed 0, by its reference implementation.
        let (mut piece, mut state) = ([0; 16], 0);
        fill(&mut piece, &mut state);
        assert_eq!(piece[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert_eq!(piece[8..], 0x6e78_9e6a_a1b9_65f4_u64.to_le_bytes());
    }

    #[test]
    fn files_are_the_same_every_time_and_differ_from_each_other() {
        let data = Data { files: 101, file_bytes: 20, large_bytes: 300_001 };
        let go_on = AtomicBool::new(false);
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for dir in &dirs {
            data.make(dir.path(), &go_on).unwrap();
        }
        let read = |dir: usize, name: &str| fs::read(dirs[dir].path().join(name)).unwrap();
        for name in ["0000/000000.bin", "0000/000099.bin", "0001/000100.bin", "large.bin"] {
            assert_eq!(read(0, name), read(1, name), "{name}");
        }
        assert_eq!(read(0, "large.bin").len(), 300_001);
        assert_ne!(read(0, "0000/000000.bin"), read(0, "0000/000001.bin"));
        let stopped = tempfile::tempdir().unwrap();
        assert!(data.make(stopped.path(), &AtomicBool::new(true)).is_err());
    }
}
