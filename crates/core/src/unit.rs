//! Types that all crates share: kinds, metadata, jobs, counts, the machine.

pub use hakobu_sys::meta::{Kind, Meta, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of units that may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Jobs {
    /// As many as the tuner or its seed rule finds right.
    #[default]
    Auto,
    /// Exactly this many, at least one.
    Fixed(usize),
}

impl Jobs {
    /// Returns the requested number, or `default` where it is left to the program.
    pub fn fixed_or(self, default: usize) -> usize {
        match self {
            Jobs::Auto => default,
            Jobs::Fixed(jobs) => jobs,
        }
    }
}

/// An end of a transfer or comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where entries come from.
    Source,
    /// Where they go to.
    Target,
}

/// Counts of what a run, a unit or a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Regular files whose content was transferred.
    pub files: u64,
    /// Bytes of content transferred.
    pub bytes: u64,
    /// Those of them that the target had in the file that was replaced.
    pub bytes_matched: u64,
    /// Directories created.
    pub dirs_created: u64,
    /// Symlinks, nodes, and hard links created.
    pub links_created: u64,
    /// Regular files created (part of `files`).
    pub files_created: u64,
    /// Entries that were up to date already, or that an option leaves alone.
    pub skipped: u64,
    /// Those of them that were left alone although they are not up to date.
    pub left_out: u64,
    /// Bytes of regular files that were up to date.
    pub bytes_skipped: u64,
    /// Entries whose metadata alone was changed.
    pub metadata: u64,
    /// Entries removed from the target.
    pub deleted: u64,
    /// Entries removed from the source after they had arrived.
    pub removed_sources: u64,
    /// Entries that could not be transferred as asked.
    pub failed: u64,
    /// Sources that vanished.
    pub vanished: u64,
    /// Deletions that `--max-delete` held back.
    pub deletes_held: u64,
    /// Attributes that were skipped because they require privileges.
    pub unprivileged: u64,
    /// Entries that were looked at: regular files.
    pub seen_files: u64,
    /// Entries that were looked at: directories.
    pub seen_dirs: u64,
    /// Entries that were looked at: symlinks.
    pub seen_links: u64,
    /// Entries that were looked at: devices, FIFOs, sockets.
    pub seen_nodes: u64,
    /// Bytes of all regular files that were looked at, and of the texts of symlinks.
    pub seen_bytes: u64,
}

impl Totals {
    /// Returns the number of entries that were up to date already.
    pub fn unchanged(&self) -> u64 {
        self.skipped.saturating_sub(self.left_out)
    }
}

macro_rules! add_fields {
    ($($field:ident)*) => {
        impl std::ops::AddAssign for Totals {
            fn add_assign(&mut self, other: Totals) { $(self.$field += other.$field;)* }
        }
    };
}
add_fields!(files bytes bytes_matched dirs_created links_created files_created skipped left_out bytes_skipped metadata
    deleted removed_sources failed vanished deletes_held unprivileged seen_files seen_dirs
    seen_links seen_nodes seen_bytes);

/// Properties of the machine that affect measurements. Contains nothing that identifies it or its users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name among others: the user's, else the instance type, else the CPU.
    pub name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    pub cpu_model: Option<String>,
    /// CPUs that this process may use; a quota makes it a fraction.
    pub cpus: f64,
    pub cpus_online: usize,
    pub memory_bytes: u64,
    /// The cloud's instance type, where there is one.
    pub instance_type: Option<String>,
    /// Location of data: its label, kind and options of the file system, model, scheduler
    /// and kind of the disk.
    pub volumes: BTreeMap<String, String>,
    /// Limits that control groups set, one sentence each.
    pub limits: Vec<String>,
}
