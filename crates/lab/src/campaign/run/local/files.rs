//! Files before a run: folders emptied, files thrown out of the page cache or read into it, and how
//! much of them is in it.

use hakobu_sys::{AsFd, cache, file};
use hakobu_transfer::error::{Cause, quoted};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Times that a file is asked to leave the page cache, and the time between.
const ASKED_MAX: usize = 5;
const BETWEEN: Duration = Duration::from_millis(20);

/// Removes everything in a folder, and makes it where it is missing.
pub(super) fn empty(folder: &Path) -> Result<(), String> {
    let cannot = |what: &str, path: &Path, error: io::Error| {
        format!("cannot {what} {}: {}", quoted(path), Cause::System(error))
    };
    std::fs::create_dir_all(folder).map_err(|error| cannot("make", folder, error))?;
    let real = folder.canonicalize().map_err(|error| cannot("look at", folder, error))?;
    if is_precious(&real) {
        return Err(format!("{} is not to be emptied", quoted(folder)));
    }
    let entries = std::fs::read_dir(&real).map_err(|error| cannot("read", folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot("read", folder, error))?;
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed =
            if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(|error| cannot("remove", &path, error))?;
    }
    Ok(())
}

/// The root, a folder right below it, the user's home and what it is in, and where we are: whoever
/// names one of them for a target made a mistake.
fn is_precious(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute() && home.parent().is_some());
    let here = std::env::current_dir().ok();
    let holds = |place: Option<PathBuf>| place.is_some_and(|place| place.starts_with(folder));
    folder.components().count() <= 2 || holds(home) || holds(here)
}

/// Hands over every regular file below a path, or the file that it is; symlinks are not followed.
/// Ends early where `stop` is set.
fn each(
    path: &Path,
    stop: &AtomicBool,
    mut each: impl FnMut(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let failed =
        |path: &Path, error| format!("cannot read {}: {}", quoted(path), Cause::System(error));
    if path.is_file() {
        return each(path);
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| failed(&folder, error))?;
        for entry in entries {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let entry = entry.map_err(|error| failed(&folder, error))?;
            let kind = entry.file_type().map_err(|error| failed(&entry.path(), error))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                each(&entry.path())?;
            }
        }
    }
    Ok(())
}

/// Throws files out of the page cache, and proves it.
pub(super) fn cold(path: &Path, stop: &AtomicBool) -> Result<(), String> {
    let (mut stay, mut pages) = (0, 0);
    each(path, stop, |name| {
        let (there, all) = forget(name).map_err(|error| {
            format!("cannot look at {}: {}", quoted(name), Cause::System(error))
        })?;
        stay += there;
        pages += all;
        Ok(())
    })?;
    match stay {
        0 => Ok(()),
        _ => Err(format!(
            "{} cannot be made cold: {stay} of {pages} pages stay in the page cache",
            quoted(path)
        )),
    }
}

/// Pages of a file that stay, and all of them.
fn forget(name: &Path) -> io::Result<(u64, u64)> {
    let file = File::open(name)?;
    // What is not written back yet cannot be forgotten.
    file::sync(file.as_fd())?;
    let mut left = (0, 0);
    for asked in 0..ASKED_MAX {
        if asked > 0 {
            // Another CPU may hold some in a list of its own for a moment.
            std::thread::sleep(BETWEEN);
        }
        cache::forget(file.as_fd())?;
        left = cache::resident_pages(file.as_fd())?;
        if left.0 == 0 {
            break;
        }
        if asked == 0 && hakobu_sys::volume::is_memory(file.as_fd()) {
            break;
        }
    }
    Ok(left)
}

/// Reads files, so that they are in the page cache.
pub(super) fn warm(path: &Path, stop: &AtomicBool) -> Result<(), String> {
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
        read.map_err(|error| format!("cannot read {}: {}", quoted(name), Cause::System(error)))
    })
}

/// The share of files' pages that is in the page cache; `None` where there are none, or nobody may
/// know.
pub(super) fn cached(path: &Path, stop: &AtomicBool) -> Option<f64> {
    let (mut there, mut all) = (0, 0);
    let looked = each(path, stop, |name| {
        // A file that vanished meanwhile has no pages.
        if let Ok(file) = File::open(name) {
            let pages = cache::resident_pages(file.as_fd())
                .map_err(|error| Cause::System(error).to_string())?;
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
    fn folders_are_emptied_and_nothing_else() {
        let dir = dir("empty");
        let outside = dir.join("a");
        let target = dir.join("t");
        std::fs::create_dir_all(target.join("c")).unwrap();
        std::os::unix::fs::symlink(&outside, target.join("link")).unwrap();
        std::os::unix::fs::symlink(&target, dir.join("way")).unwrap();
        empty(&dir.join("way")).unwrap();
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
        assert!(outside.join("b/f").exists());
        empty(&dir.join("new/folder")).unwrap();
        assert!(dir.join("new/folder").is_dir());
        let here = std::env::current_dir().unwrap();
        for precious in [Path::new("/"), Path::new("/usr"), here.as_path()] {
            let why = empty(precious).unwrap_err();
            assert!(why.ends_with("is not to be emptied"), "{why}");
        }
        assert!(empty(&dir.join("g/h")).unwrap_err().starts_with("cannot make"));
        std::fs::remove_dir_all(&dir).unwrap();
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
            Err(why) => assert!(why.contains("26 of 26 pages stay"), "{why}"),
        }
        assert_eq!(cached(&dir.join("away"), &AtomicBool::new(true)), None);
        assert!(warm(&dir.join("no"), &stop).unwrap_err().starts_with("cannot read"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
