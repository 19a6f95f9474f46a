//! What programs printed of a run, beside the numbers that were taken from it: one file for each
//! run, in a folder for each block, so that programs which read fio's JSON find each setting once
//! there.

use super::Run;
use super::store::cannot;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder, in one of results.
pub(super) const FOLDER: &str = "outputs";
/// Follows the block where the cell is a control: it has the settings of another one.
const CONTROL: &str = "-control";

/// Keeps the output of a run.
///
/// # Errors
/// A sentence.
pub(super) fn keep(folder: &Path, run: &Run, is_control: bool, text: &str) -> Result<(), String> {
    let control = if is_control { CONTROL } else { "" };
    let block = folder.join(FOLDER).join(format!("{}{control}", run.block));
    fs::create_dir_all(&block).map_err(|error| cannot("make", &block, error))?;
    let path = block.join(format!("{}.json", run.cell));
    fs::write(&path, text).map_err(|error| cannot("write", &path, error))
}

/// Removes what was kept, if there is any.
///
/// # Errors
/// A sentence: there is something else in it, which stays.
pub(super) fn remove(folder: &Path) -> Result<(), String> {
    let all = folder.join(FOLDER);
    for block in entries(&all)? {
        for file in entries(&block)? {
            if is_ours(&file) {
                fs::remove_file(&file).map_err(|error| cannot("remove", &file, error))?;
            }
        }
        fs::remove_dir(&block).map_err(|error| cannot("remove", &block, error))?;
    }
    match fs::remove_dir(&all) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(cannot("remove", &all, error)),
        _ => Ok(()),
    }
}

/// The first entry that does not belong here.
///
/// # Errors
/// A sentence.
pub(super) fn stranger(folder: &Path) -> Result<Option<PathBuf>, String> {
    for block in entries(&folder.join(FOLDER))? {
        let name = block.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_suffix(CONTROL).unwrap_or(&name);
        if !block.is_dir() || number.parse::<u32>().is_err() {
            return Ok(Some(block));
        }
        if let Some(other) = entries(&block)?.into_iter().find(|file| !is_ours(file)) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

fn is_ours(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.extension().is_some_and(|extension| extension == "json") && stem.parse::<u32>().is_ok()
}

/// The entries of a folder; none if it is not there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(cannot("read", folder, error)),
    }
}
