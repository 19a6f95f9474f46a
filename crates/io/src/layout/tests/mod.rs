//! Layout on real file systems and devices: what is made, what is used, what is refused.

mod devices;
mod files;
mod parts;
mod refusals;
pub(crate) mod rig;

use super::{Layout, Safety, lay_out};
use crate::job::tests::job;
use crate::{Amount, Job};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const NOTHING: Safety = Safety { allow_overwrite: false, keep: false };
const KEEP: Safety = Safety { allow_overwrite: false, keep: true };
const OVERWRITE: Safety = Safety { allow_overwrite: true, keep: false };

/// A job with files of its own in a folder, so many bytes of them for each clone.
fn in_folder(rw: &str, folder: &Path, bytes: u64) -> Job {
    let size = Some(Amount::Bytes(bytes));
    Job { directories: vec![folder.to_owned()], size, ..job(rw) }
}

/// A job on one file or device.
fn on(rw: &str, path: &Path) -> Job {
    Job { filenames: vec![path.to_owned()], ..job(rw) }
}

/// Reason that a job is refused.
#[track_caller]
fn refused(job: &Job, safety: &Safety) -> String {
    let stop = AtomicBool::new(false);
    lay_out(std::slice::from_ref(job), safety, &stop).map(|_| ()).unwrap_err()
}

#[track_caller]
fn laid(job: &Job, safety: &Safety) -> Layout {
    lay_out(std::slice::from_ref(job), safety, &AtomicBool::new(false)).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "lost+found").collect();
    names.sort();
    names
}
