//! What a plan depends on besides the campaign: the user's options, and properties of the machine.

use super::throttle::DiskThrottle;
use hakobu_sys::{AsFd, disk};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// User's options besides the campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOptions {
    /// Overrides the scale of the campaign.
    pub scale: Option<f64>,
    /// Overrides places: a path or an `s3://` URL by the name of the place.
    pub places: BTreeMap<String, String>,
    /// Work folder, absolute: targets, data of servers, settings files.
    pub work: PathBuf,
    /// Folder for data sets, absolute.
    pub cache: PathBuf,
    /// Path of the running program, absolute.
    pub own: PathBuf,
    /// Secret key of embedded servers; random.
    pub secret_key: String,
}

/// Properties of the machine that a plan depends on.
#[derive(Clone, Debug)]
pub struct PlanEnvironment {
    /// Folders with programs.
    pub path: Vec<PathBuf>,
    /// Number of usable CPUs.
    pub cpus: usize,
    /// Finds a way to limit the disks of the target's and the source's folder, or the reason why there is
    /// none.
    pub throttle: fn(&Path, Option<&Path>) -> Result<DiskThrottle, String>,
    /// True if two folders are on one file system.
    pub is_one_fs: fn(&Path, &Path) -> bool,
    /// True if a port can be listened on.
    pub is_free: fn(u16) -> bool,
    /// True if a folder is always in memory (tmpfs).
    pub is_memory: fn(&Path) -> bool,
}

impl PlanEnvironment {
    /// Properties of this machine.
    pub fn here() -> PlanEnvironment {
        let path = std::env::var_os("PATH").unwrap_or_default();
        PlanEnvironment {
            path: std::env::split_paths(&path).collect(),
            cpus: hakobu_sys::process::cpus(),
            throttle: DiskThrottle::find,
            is_one_fs,
            is_free: |port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(),
            is_memory,
        }
    }
}

/// Compares the file systems of two folders, which need not exist yet.
fn is_one_fs(one: &Path, other: &Path) -> bool {
    let dev = |folder: &Path| {
        folder.ancestors().find_map(|path| path.metadata().ok()).map(|meta| meta.dev())
    };
    dev(one) == dev(other)
}

/// Looks at the file system of a folder, which need not exist yet.
fn is_memory(folder: &Path) -> bool {
    let there = folder.ancestors().find_map(|path| File::open(path).ok());
    there.is_some_and(|file| disk::is_memory(file.as_fd()))
}
