//! Page cache of files before a run: evict, load, and measure the cached share.

use crate::campaign::files::each_file;
use crate::campaign::run::PrepareError;
use hakobu_core::error::PathError;
use hakobu_sys::{AsFd, cache, file};
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Attempts to evict a file, and the time between.
const ASKED_MAX: usize = 5;
const BETWEEN: Duration = Duration::from_millis(20);

/// Calls a function for every regular file below a path (or the file itself), without following symlinks.
/// Stops early if `stop` is set.
fn each(
    path: &Path,
    stop: &AtomicBool,
    mut each: impl FnMut(&Path) -> Result<(), PathError>,
) -> Result<(), PathError> {
    if path.is_file() {
        return each(path);
    }
    each_file(path, |file| match stop.load(Ordering::Relaxed) {
        true => Ok(false),
        false => each(file).map(|()| true),
    })
}

/// Evicts files from the page cache, and verifies it.
pub(super) fn cold(path: &Path, stop: &AtomicBool) -> Result<(), PrepareError> {
    let (mut stay, mut pages) = (0, 0);
    each(path, stop, |name| {
        let (there, all) = forget(name).map_err(PathError::of("access", name))?;
        stay += there;
        pages += all;
        Ok(())
    })?;
    match stay {
        0 => Ok(()),
        _ => Err(PrepareError::NotCold { path: path.to_owned(), stay, pages }),
    }
}

/// Remaining and total pages of a file.
fn forget(name: &Path) -> io::Result<(u64, u64)> {
    let file = File::open(name)?;
    // Dirty pages cannot be evicted.
    file::sync(file.as_fd())?;
    let mut left = (0, 0);
    for asked in 0..ASKED_MAX {
        if asked > 0 {
            // Another CPU may hold pages in a local list for a moment.
            std::thread::sleep(BETWEEN);
        }
        cache::forget(file.as_fd())?;
        left = cache::resident_pages(file.as_fd())?;
        if left.0 == 0 {
            break;
        }
        if asked == 0 && hakobu_sys::disk::is_memory(file.as_fd()) {
            break;
        }
    }
    Ok(left)
}

/// Reads files into the page cache.
pub(super) fn warm(path: &Path, stop: &AtomicBool) -> Result<(), PathError> {
    let mut buffer = vec![0; 256 * 1024];
    each(path, stop, |name| {
        let read = File::open(name).and_then(|mut file| {
            loop {
                match file.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        });
        read.map_err(PathError::of("read", name))
    })
}

/// Share of the files' pages in the page cache; `None` without pages, or if it cannot be determined.
pub(super) fn cached(path: &Path, stop: &AtomicBool) -> Option<f64> {
    let (mut there, mut all) = (0, 0);
    let looked = each(path, stop, |name| {
        // A file that has vanished has no pages.
        if let Ok(file) = File::open(name) {
            let pages = cache::resident_pages(file.as_fd());
            let pages = pages.map_err(PathError::of("access", name))?;
            there += pages.0;
            all += pages.1;
        }
        Ok(())
    });
    (looked.is_ok() && all > 0).then(|| there as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("hakobu-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::write(dir.join("a/b/f"), vec![1; 100_000]).unwrap();
        std::fs::write(dir.join("g"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", dir.join("away")).unwrap();
        dir
    }

    #[test]
    fn cold_and_warm() {
        let dir = dir("cold");
        let stop = AtomicBool::new(false);
        warm(&dir, &stop).unwrap();
        assert_eq!(cached(&dir, &stop), Some(1.0));
        match cold(&dir, &stop) {
            Ok(()) => {
                assert_eq!(cached(&dir, &stop), Some(0.0));
                warm(&dir.join("a/b/f"), &stop).unwrap();
                assert!(cached(&dir, &stop).unwrap() > 0.9);
            }
            // A file system in memory.
            Err(PrepareError::NotCold { stay: 26, pages: 26, .. }) => {}
            Err(why) => panic!("{why}"),
        }
        assert_eq!(cached(&dir.join("away"), &AtomicBool::new(true)), None);
        let why = warm(&dir.join("no"), &stop).unwrap_err().to_string();
        assert!(why.starts_with("cannot read"), "{why}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
