//! The files that jobs work on: found or laid out, and never at the cost of somebody's data.
//!
//! What could harm is refused before anything is written: a file that an earlier run did not lay out
//! (it would bear a mark, the extended attribute `user.hakobu.io`), a block device, unless
//! `--allow-overwrite` is given; a device that is mounted or claimed, always. What could not work is
//! refused as well: too little room, too small a file, no permission, no O_DIRECT.

mod look;
mod make;
mod plan;
mod room;
#[cfg(test)]
pub(crate) mod tests;
mod wish;

use super::Job;
use super::pattern::Extent;
use hakobu_sys::{OwnedFd, open};
use look::Found;
use std::collections::HashMap;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use wish::Wish;

/// The attribute of files that were laid out here.
const MARK: &CStr = c"user.hakobu.io";

/// What is permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Safety {
    /// Existing files and block devices may be overwritten.
    pub allow_overwrite: bool,
    /// What was laid out stays.
    pub keep: bool,
}

/// A file, or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidFile {
    /// Its name.
    pub path: PathBuf,
    /// How long it is; of `ioengine=null`, where nothing is opened, how long it would be.
    pub bytes: u64,
    /// It was made now.
    pub laid_out: bool,
    /// It is a block device.
    pub device: bool,
}

/// The files of one clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneFiles {
    /// Its job's place in the list.
    pub job: usize,
    /// Which clone, from 0.
    pub clone: u32,
    /// Places in [`Layout::files`].
    pub files: Vec<usize>,
    /// The part of each that it works on.
    pub extents: Vec<Extent>,
}

/// What [`lay`] found and made.
#[derive(Debug, Default)]
pub struct Layout {
    /// All clones of all jobs, in their order.
    pub clones: Vec<CloneFiles>,
    /// All files, each once.
    pub files: Vec<LaidFile>,
    /// What is to be given back at the end.
    pub held: Held,
}

/// Claims of devices, which nobody else can claim or mount meanwhile, and files to be removed.
#[derive(Debug, Default)]
pub struct Held {
    claims: Vec<OwnedFd>,
    removals: Vec<Made>,
}

/// A file and what it was then: device and inode.
#[derive(Clone, Debug)]
struct Made {
    path: PathBuf,
    identity: (u64, u64),
}

/// Finds or makes the files of all jobs.
///
/// Files that are read and long enough are used as they are; missing ones are made, with content that
/// is on the device. `stop` ends it early. Whatever ends it, what it made is removed again.
///
/// # Errors
/// What is wrong, with the name of the job or the file.
pub fn lay(jobs: &[Job], safety: &Safety, stop: &AtomicBool) -> Result<Layout, String> {
    let (wishes, clones) = wish::collect(jobs)?;
    let mut held = Held::default();
    for wish in wishes.iter().filter(|wish| !wish.null) {
        let here = |why: String| format!("{}: {why}", wish.path.display());
        look::permit(wish, safety).map_err(here)?;
        if wish.found != Found::Absent {
            look::try_open(wish).map_err(here)?;
        }
        if matches!(wish.found, Found::Device { .. }) && wish.writes() {
            let claim = open::open_for_io(&wish.path, false, true, false, true);
            held.claims.push(claim.map_err(|error| here(look::explain(&error, false)))?);
        }
    }
    room::check(&wishes)?;
    let mut made = Vec::new();
    if let Err(why) = make_all(jobs, &wishes, stop, &mut made) {
        let problems = made.iter().filter_map(|made| remove(made).err());
        return Err([why].into_iter().chain(problems).collect::<Vec<_>>().join("; "));
    }
    held.removals = removals(&wishes, &made, safety);
    let files = wishes.into_iter().map(|wish| {
        let there = wish.found.bytes().unwrap_or(0);
        LaidFile {
            laid_out: !wish.null && wish.found == Found::Absent,
            device: matches!(wish.found, Found::Device { .. }),
            bytes: there.max(wish.need_bytes),
            path: wish.path,
        }
    });
    Ok(Layout { clones, files: files.collect(), held })
}

/// Makes what is missing and prolongs what is too short. `made` is what it created, also where it
/// failed.
fn make_all(
    jobs: &[Job],
    wishes: &[Wish],
    stop: &AtomicBool,
    made: &mut Vec<Made>,
) -> Result<(), String> {
    for wish in wishes.iter().filter(|wish| !wish.null) {
        let here = |why: String| format!("{}: {why}", wish.path.display());
        let (fd, from) = match wish.found {
            Found::Absent => {
                let fd = make::create(wish).map_err(here)?;
                let identity = hakobu_sys::meta::of_fd(&fd).map(|meta| meta.identity());
                let identity = identity.map_err(|error| here(error.to_string()))?;
                made.push(Made { path: wish.path.clone(), identity });
                (fd, 0)
            }
            Found::File { bytes, .. } if bytes < wish.need_bytes => {
                (make::reopen(wish).map_err(here)?, bytes)
            }
            _ => continue,
        };
        make::grow(wish, &fd, from, jobs, stop).map_err(here)?;
    }
    Ok(())
}

/// What goes at the end: what was made, unless it is to stay; and what `unlink=1` says.
fn removals(wishes: &[Wish], made: &[Made], safety: &Safety) -> Vec<Made> {
    let made: HashMap<&Path, &Made> = made.iter().map(|made| (made.path.as_path(), made)).collect();
    let mut removals = Vec::new();
    for wish in wishes.iter().filter(|wish| !wish.null) {
        let unlink = wish.uses.iter().any(|user| user.unlink);
        let stays = safety.keep || wish.uses.iter().any(|user| user.create_only);
        match made.get(wish.path.as_path()) {
            Some(made) if unlink || !stays => removals.push((*made).clone()),
            None if unlink && matches!(wish.found, Found::File { .. }) => {
                if let Ok(identity) = look::identity(&wish.path) {
                    removals.push(Made { path: wish.path.clone(), identity });
                }
            }
            _ => {}
        }
    }
    removals
}

impl Layout {
    /// Gives back the claims of devices: others may claim them, such as runs that lay out the same
    /// jobs again.
    pub fn release(&mut self) {
        self.held.claims.clear();
    }

    /// Removes what is not to stay, and says what could not be removed: a file that is another one
    /// now is left alone. What is gone already is no problem.
    pub fn remove(&self) -> Vec<String> {
        self.held.removals.iter().filter_map(|made| remove(made).err()).collect()
    }
}

fn remove(made: &Made) -> Result<(), String> {
    let path: &Path = &made.path;
    let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    match look::identity(path) {
        Ok(identity) if identity != made.identity => {
            Err(format!("{}: is not the file any more that was laid out: left", path.display()))
        }
        Ok(_) => match std::fs::remove_file(path) {
            Err(error) if !gone(&error) => Err(format!("{}: {error}", path.display())),
            _ => Ok(()),
        },
        Err(error) if gone(&error) => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
