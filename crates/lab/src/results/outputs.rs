//! Output of runs, kept beside the extracted metrics: one file per run, in a folder per block, so that
//! programs which read fio's JSON find each setting once per folder.

use super::Run;
use hakobu_core::error::cannot;
use hakobu_sys::paths::Links;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the folder inside a results folder.
pub(super) const FOLDER: &str = "outputs";
/// Suffix of a block's folder for controls, which repeat the settings of another cell.
const CONTROL: &str = "-control";

/// Saves the output of a run.
///
/// # Errors
/// A message.
pub(super) fn keep_output(folder: &Path, run: &Run, is_control: bool, text: &str) -> Result<(), String> {
    let control = if is_control { CONTROL } else { "" };
    let block = folder.join(FOLDER).join(format!("{}{control}", run.block));
    let made = Links::Trusted.make_dir(&block, 0o777, true);
    made.map_err(|error| cannot("make", &block, error))?;
    let path = block.join(format!("{}.json", run.cell));
    let written = Links::Trusted.write_private(&path, text.as_bytes());
    written.map_err(|error| cannot("write", &path, error))
}

/// Removes saved outputs, if there are any.
///
/// # Errors
/// A message: other files are in the folder, which stay.
pub(super) fn remove_outputs(folder: &Path) -> Result<(), String> {
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

/// First entry that is not a saved output.
///
/// # Errors
/// A message.
pub(super) fn foreign_entry(folder: &Path) -> Result<Option<PathBuf>, String> {
    let all = folder.join(FOLDER);
    if all.is_symlink() {
        return Ok(Some(all));
    }
    for block in entries(&all)? {
        let name = block.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_suffix(CONTROL).unwrap_or(&name);
        // Symbolic links are not followed.
        let is_folder = block.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if !is_folder || number.parse::<u32>().is_err() {
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

/// Entries of a folder; none if it does not exist.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    match fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(|error| cannot("read", folder, error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(cannot("read", folder, error)),
    }
}
