//! The files that jobs work on: found or laid out, and never at the cost of existing data.
//!
//! Everything is checked before anything is written. Refused unless `--allow-overwrite` is given: a file that
//! differs from what an earlier run laid out and left (its mark), and a block device. Always refused: a device that is
//! mounted or claimed, too little space, too small a file, missing permission, missing O_DIRECT.

mod files;
mod make;
mod safety;
#[cfg(test)]
pub(crate) mod tests;

use crate::job::Job;
use crate::pattern::Extent;
use files::FilePlan;
use hakobu_sys::{AsFd, OwnedFd, blocks, meta};
use safety::FileState;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safety {
    /// Existing files and block devices may be overwritten.
    pub allow_overwrite: bool,
    /// Files that were laid out stay.
    pub keep: bool,
}

/// A file, or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidFile {
    pub path: PathBuf,
    /// Its length; of `ioengine=null`, where nothing is opened, the length it would have.
    pub bytes: u64,
    /// It was made now.
    pub laid_out: bool,
    /// It is a block device.
    pub device: bool,
    /// It is only a name: an engine that opens no file has it.
    pub nothing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneFiles {
    /// Its job's place in the list.
    pub job: usize,
    /// Number of the clone, from 0.
    pub clone: u32,
    /// Places in [`Layout::files`].
    pub files: Vec<usize>,
    /// The part of each that it works on.
    pub extents: Vec<Extent>,
    /// An earlier job fills them: how much is there is known when this one begins.
    pub follows: bool,
}

/// Result of [`lay_out`].
#[derive(Debug, Default)]
pub struct Layout {
    /// All clones of all jobs, in their order.
    pub clones: Vec<CloneFiles>,
    /// All files, each once.
    pub files: Vec<LaidFile>,
    /// Claims of devices, which no other process can claim or mount meanwhile.
    claims: Vec<OwnedFd>,
    /// Files to be removed, and files of ours that stay and are written to.
    removals: Vec<Made>,
    marks: Vec<Made>,
    /// Names that an engine makes, and whether those are of folders: to be removed where they are empty.
    born: Vec<(PathBuf, bool)>,
}

/// A file or a folder, with its device and inode at that time.
#[derive(Clone, Debug)]
struct Made {
    path: PathBuf,
    identity: (u64, u64),
    folder: bool,
}

/// Finds or makes the files of all jobs.
///
/// Files that are read and long enough are used as they are; missing ones are made, with content that
/// is on the device. `stop` ends it early. On any early end, created files are removed.
pub fn lay_out(jobs: &[Job], safety: &Safety, stop: &AtomicBool) -> Result<Layout, String> {
    let (plans, clones) = files::collect(jobs)?;
    let mut claims = Vec::new();
    for plan in plans.iter().filter(|plan| !plan.is_nothing()) {
        let here = |why: String| format!("{}: {why}", plan.path.display());
        safety::permit(plan, safety).map_err(here)?;
        if !matches!(plan.found, FileState::Absent | FileState::Folder) {
            safety::try_open(plan).map_err(here)?;
        }
        if matches!(plan.found, FileState::Device { .. }) && plan.writes() {
            let claim = blocks::open_for_io(&plan.path, false, true, false, true);
            claims.push(claim.map_err(|error| here(safety::explain(&error, false)))?);
        }
    }
    safety::check_room(&plans)?;
    let mut made = Vec::new();
    if let Err(why) = make_all(&plans, stop, &mut made) {
        let problems = made.iter().filter_map(|made| remove(made).err());
        return Err([why].into_iter().chain(problems).collect::<Vec<_>>().join("; "));
    }
    let removals = removals(&plans, &made, safety);
    let marks = marks(&plans, &made, &removals);
    // Also with --keep, which concerns laid out files only: a run creates these again.
    let born = plans.iter().filter(|plan| plan.is_made());
    let born = born.map(|plan| (plan.path.clone(), plan.is_folder())).collect();
    let files = plans.into_iter().map(|plan| {
        let there = plan.found.bytes().unwrap_or(0);
        LaidFile {
            laid_out: plan.is_laid_out() && plan.found == FileState::Absent,
            device: matches!(plan.found, FileState::Device { .. }),
            nothing: plan.is_nothing(),
            bytes: there.max(plan.need_bytes),
            path: plan.path,
        }
    });
    Ok(Layout { clones, files: files.collect(), claims, removals, marks, born })
}

/// Makes what is missing and prolongs what is too short. `made` is what it created, also where it
/// failed.
fn make_all(plans: &[FilePlan<'_>], stop: &AtomicBool, made: &mut Vec<Made>) -> Result<(), String> {
    for plan in plans.iter().filter(|plan| plan.is_laid_out()) {
        let here = |why: String| format!("{}: {why}", plan.path.display());
        let (fd, from) = match plan.found {
            FileState::Absent if plan.is_folder() => {
                std::fs::create_dir(&plan.path).map_err(|error| here(error.to_string()))?;
                let identity = meta::identity(&plan.path);
                let identity = identity.map_err(|error| here(error.to_string()))?;
                made.push(Made { path: plan.path.clone(), identity, folder: true });
                continue;
            }
            FileState::Absent => {
                let fd = make::create(plan).map_err(here)?;
                let identity = meta::of_fd(&fd).map(|meta| meta.identity());
                let identity = identity.map_err(|error| here(error.to_string()))?;
                made.push(Made { path: plan.path.clone(), identity, folder: false });
                (fd, 0)
            }
            FileState::File { bytes, .. } if bytes < plan.need_bytes => {
                (make::reopen(plan).map_err(here)?, bytes)
            }
            _ => continue,
        };
        make::grow(plan, &fd, from, stop).map_err(here)?;
    }
    Ok(())
}

/// Removes files at the end: created ones, unless they are kept, and those with `unlink=1`.
fn removals(plans: &[FilePlan<'_>], made: &[Made], safety: &Safety) -> Vec<Made> {
    let made: HashMap<&Path, &Made> = made.iter().map(|made| (made.path.as_path(), made)).collect();
    let mut removals = Vec::new();
    for plan in plans.iter().filter(|plan| plan.is_laid_out()) {
        let unlink = plan.uses.iter().any(|user| user.unlink);
        let stays = safety.keep || plan.uses.iter().any(|user| user.job.create_only);
        match made.get(plan.path.as_path()) {
            Some(made) if unlink || !stays => removals.push((*made).clone()),
            None if unlink && matches!(plan.found, FileState::File { .. }) => {
                if let Ok(identity) = meta::identity(&plan.path) {
                    removals.push(Made { path: plan.path.clone(), identity, folder: false });
                }
            }
            _ => {}
        }
    }
    removals
}

/// Files of ours that are written to and stay: their marks fit no longer after the run.
fn marks(plans: &[FilePlan<'_>], made: &[Made], removals: &[Made]) -> Vec<Made> {
    let ours = |plan: &&FilePlan<'_>| matches!(plan.found, FileState::File { ours: true, .. });
    let old = plans.iter().filter(|plan| plan.is_laid_out() && plan.writes()).filter(ours);
    // Through symbolic links, as they are opened. A file that cannot be looked at keeps its old mark,
    // and counts as a foreign file later.
    let old = old.filter_map(|plan| {
        let entry = std::fs::metadata(&plan.path).ok()?;
        let identity = (entry.dev(), entry.ino());
        Some(Made { path: plan.path.clone(), identity, folder: false })
    });
    let goes = |made: &Made| removals.iter().any(|other| other.path == made.path);
    let files = made.iter().filter(|made| !made.folder).cloned();
    old.chain(files).filter(|made| !goes(made)).collect()
}

impl Layout {
    /// Gives back the claims of devices: others may claim them, such as runs that lay out the same
    /// jobs again.
    pub fn release(&mut self) {
        self.claims.clear();
    }

    /// Marks what stays as it is now, removes the rest, and says what could not be done: a file that
    /// is another one now is left alone. What is gone already is not a problem.
    pub fn remove(&self) -> Vec<String> {
        let marked = self.marks.iter().filter_map(|made| mark_again(made).err());
        let removed = self.removals.iter().filter_map(|made| remove(made).err());
        // Of what engines made, the last comes first: folders may be in each other.
        let born = self.born.iter().rev();
        let born = born.filter_map(|(path, folder)| remove_empty(path, *folder).err());
        marked.chain(removed).chain(born).collect()
    }
}

/// Marks a file as the run left it.
fn mark_again(made: &Made) -> Result<(), String> {
    let here = |error: std::io::Error| format!("{}: {error}", made.path.display());
    let fd = match blocks::open_for_io(&made.path, true, false, false, false) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        fd => fd.map_err(here)?,
    };
    if meta::of_fd(&fd).map_err(here)?.identity() != made.identity {
        return Ok(());
    }
    make::mark(fd.as_fd()).map_err(here)
}

fn remove(made: &Made) -> Result<(), String> {
    let path: &Path = &made.path;
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    match meta::identity(path) {
        Ok(identity) if identity != made.identity => Err(format!(
            "{}: is no longer the file that was laid out: left in place",
            path.display()
        )),
        Ok(_) => {
            match if made.folder { std::fs::remove_dir(path) } else { std::fs::remove_file(path) } {
                Err(error) if !gone(&error) => Err(format!("{}: {error}", path.display())),
                _ => Ok(()),
            }
        }
        Err(error) if gone(&error) => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Removes what an engine made under a name where nothing was: an empty file or folder. Anything else is not its
/// work, and is left alone.
fn remove_empty(path: &Path, folder: bool) -> Result<(), String> {
    let here = |error: std::io::Error| format!("{}: {error}", path.display());
    let entry = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entry => entry.map_err(here)?,
    };
    if folder && entry.is_dir() {
        return std::fs::remove_dir(path).map_err(here);
    }
    if !folder && entry.is_file() && entry.len() == 0 {
        return std::fs::remove_file(path).map_err(here);
    }
    Err(format!("{}: has been replaced since it was created: left in place", path.display()))
}
