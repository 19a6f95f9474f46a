//! Files of data sets, of what a run has written, and of what is in the page cache; and places that need not exist yet.

use crate::campaign::data::DataTotals;
use hakobu_core::error::PathError;
use std::fs;
use std::path::Path;

/// Calls a function for every regular file below a folder, without following symlinks, until it returns false.
pub fn each_file(
    folder: &Path,
    mut each: impl FnMut(&Path) -> Result<bool, PathError>,
) -> Result<(), PathError> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = PathError::of("read", &folder);
        for entry in fs::read_dir(&folder).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let kind = entry.file_type().map_err(PathError::of("access", entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && !each(&entry.path())? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Size of a file in bytes; not that of the target of a symlink.
pub fn size(file: &Path) -> Result<u64, PathError> {
    Ok(file.symlink_metadata().map_err(PathError::of("access", file))?.len())
}

/// Counts the regular files below a folder, and their bytes.
pub fn totals(folder: &Path) -> Result<DataTotals, PathError> {
    let mut totals = DataTotals::default();
    each_file(folder, |file| {
        totals.files += 1;
        totals.bytes += size(file)?;
        Ok(true)
    })?;
    Ok(totals)
}

/// Nearest existing ancestor of a path, or the path itself.
pub fn nearest_existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"))
}
