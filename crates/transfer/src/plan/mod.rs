//! What a transfer is to do ([`Spec`]), and how it begins: from arguments to the first units of work of an engine.

mod ahead;
mod beside;
mod cut;
mod feed;
mod known;
mod meeting;
pub mod mv;
pub mod objects;
mod paths;
mod space;

use crate::far::TaskOption;
use crate::local::Carried;
use crate::location::{Location, Side, Sources};
use crate::manifest::ManifestFiles;
use crate::object::ObjectOptions;
use crate::object::list::Inventory;
use crate::policy::{Delete, Digest, Policy};
pub use crate::policy::{EntrySelection, NOT_AS_PLANNED, NameRange};
pub use ahead::AheadCount;
pub use beside::compare_beside;
pub use cut::{Cuts, can_be_cut, cut, cut_paths};
use hakobu_core::error::Fatal;
use hakobu_core::event::Remarks;
use hakobu_core::limit::Limits;
use hakobu_core::unit::{Meta, Time};
use hakobu_remote::packing::Packing;
use hakobu_remote::ssh::{RemoteHost, RemoteShell};
use hakobu_s3::Settings;
pub use meeting::Lines;
pub use paths::{
    Argument, TargetPlace, arguments, basis_dirs, batches, chosen_roots, far_facts, lead, listed,
    or_here, place, roots, source_facts,
};
pub use space::{Count, warn_of_space};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Rule by which source arguments become names at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// rsync's rule: `DIR` makes `DST/DIR`, `DIR/` fills `DST`; with `relative` (`-R`) the whole path as typed is
    /// kept, from `/./` on if that occurs.
    Rsync {
        /// `-R`.
        relative: bool,
    },
    /// cp's rule: into `DST` if that is a directory, else under the name `DST`.
    Cp {
        /// `-T`: `DST` is the name itself even if it is a directory.
        no_target_dir: bool,
        /// `-t`, or several sources: `DST` must be a directory.
        target_is_dir: bool,
        /// `--parents`: the whole path as typed is kept below `DST`.
        parents: bool,
    },
}

/// A transfer: sources, target, policy and limits.
#[derive(Clone)]
pub struct Spec {
    pub sources: Sources,
    /// The target; with `null:` everything is read and discarded.
    pub target: Location,
    pub layout: Layout,
    /// Only these paths, relative to the single source (`--files-from`); bytes as read.
    pub files_from: Option<Vec<Vec<u8>>>,
    /// Only these entries below the single source, between paths; replaces `files_from`.
    pub chosen: Option<Arc<EntrySelection>>,
    /// Only entries whose names are in this range; see [`can_be_cut`]. Names are relative to the roots of the single
    /// source and of its target; where they are percent-encoded their keys count.
    pub range: Option<NameRange>,
    /// Decides about each entry.
    pub policy: Policy,
    /// What it may take.
    pub limits: Limits,
    /// Good numbers of jobs are stored and reused (off: `--no-memory`).
    pub remember: bool,
    /// Number of jobs to begin with, instead of a stored one: that of a run just before between the same ends.
    pub jobs_before: Option<usize>,
    /// Experiments during the run test its verdict (`--prove`).
    pub prove: bool,
    /// Whether the listener receives an `Item` event for every change.
    pub items: bool,
    /// Whether it receives items for unchanged entries, too (`-ii`, `-vv`).
    pub items_unchanged: bool,
    /// Whether the listener receives a `Planned` event for every change between paths.
    pub plans: bool,
    /// With one job between paths, entries are taken in the order of their names (`--no-inc-recursive`).
    pub ordered: bool,
    /// Other messages about entries between paths that the listener receives.
    pub remarks: Remarks,
    /// Kind of the checksums that `Item` events of files between paths contain: of transferred files, with
    /// `Policy::checksum` of all.
    pub digest: Option<Digest>,
    /// Missing parents of the target are created (`--mkpath`).
    pub mkpath: bool,
    /// Whether free space is compared with the need before the start.
    pub check_space: bool,
    /// Between paths: groups of hard links that earlier runs of the same command left open, and that this one leaves.
    pub carried: Option<Arc<Carried>>,
    /// The file that the program writes its log to (`--log-file`).
    pub log_file: Option<PathBuf>,
    /// Settings of a transfer with S3 on a side.
    pub objects: Objects,
    /// The end that is on another machine: its paths are there.
    pub remote: Option<RemoteEnd>,
    /// How messages to an end on another machine are compressed (`-z`).
    pub packing: Option<Packing>,
}

/// An end of a transfer on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEnd {
    /// Which one.
    pub side: Side,
    pub host: RemoteHost,
    pub shell: RemoteShell,
    /// The command, which the agent there is a part of.
    pub command: &'static str,
    /// Its options, for the agent.
    pub options: Vec<TaskOption>,
    /// This program is copied there first, if it is not there (`--install-agent`).
    pub installs: bool,
    /// Names and texts of rule files that are here.
    pub rule_files: Vec<(Vec<u8>, Vec<u8>)>,
    /// The list of names is there, and whether its names end with zero bytes.
    pub list: Option<(PathBuf, bool)>,
    /// How long either end may be silent.
    pub silence: Option<Duration>,
    /// How long the agent may take to greet.
    pub connecting: Option<Duration>,
}

impl RemoteEnd {
    /// Returns the name of the host for what is stored about it.
    pub fn name(&self) -> String {
        let RemoteHost { user, host, port } = &self.host;
        let user = user.as_ref().map(|user| format!("{}@", user.to_string_lossy()));
        let port = port.map(|port| format!(":{port}"));
        let host = host.to_string_lossy();
        format!("ssh://{}{host}{}", user.unwrap_or_default(), port.unwrap_or_default())
    }
}

impl Spec {
    /// Returns whether any end is in S3.
    pub fn has_store(&self) -> bool {
        self.sources.are_s3() || self.target.is_s3()
    }

    /// Limits it to single names below a folder, whose path ends with a slash; an earlier run has chosen them and applied
    /// the rules. Nothing is deleted, and directories are transferred without their contents. The names are set by the
    /// caller: `chosen` or `files_from`.
    ///
    /// # Errors
    /// The folder is no source.
    pub fn limit_to(&mut self, folder: Location) -> Result<(), Fatal> {
        self.sources = Sources::of(vec![folder])?;
        (self.chosen, self.files_from, self.range) = (None, None, None);
        self.layout = Layout::Rsync { relative: true };
        // Keys are used unchanged.
        self.objects.raw = true;
        self.check_space = false;
        (self.items, self.items_unchanged) = (false, false);
        let policy = &mut self.policy;
        (policy.recurse, policy.dirs) = (false, true);
        policy.delete = Delete::No;
        policy.delete_excluded = false;
        policy.max_delete = None;
        policy.partial = false;
        policy.filter = policy.filter.take().and_then(|filter| filter.of_xattrs()).map(Arc::new);
        Ok(())
    }
}

/// Settings of a transfer with S3 on a side: accounts, endpoints, and options for writing objects.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Settings for the store of `s3://` sources.
    pub source: Settings,
    /// Settings for the store of `s3://` targets.
    pub target: Settings,
    /// Options for writing objects.
    pub options: ObjectOptions,
    /// `*` and `?` in source keys are literal (`--raw`).
    pub raw: bool,
    /// Every source gets its base name in the target folder (`--flatten`).
    pub flatten: bool,
    /// Names that are transferred only if they still have these sizes and times.
    pub expected: Option<Arc<Expected>>,
    /// Manifests of the run's objects elsewhere than in the user's state folder.
    pub manifests: Option<Arc<dyn ManifestFiles>>,
    /// Names of the source, instead of a listing of its store.
    pub inventory: Option<Arc<Inventory>>,
    /// Names of the target, instead of a listing of its store: only for plans, because what it lacks may exist.
    pub target_inventory: Option<Arc<Inventory>>,
}

impl Objects {
    /// Returns the inventory that the names of a side are taken from.
    pub fn inventory_of(&self, side: Side) -> Option<&Arc<Inventory>> {
        match side {
            Side::Source => self.inventory.as_ref(),
            Side::Target => self.target_inventory.as_ref(),
        }
    }
}

/// Sizes and times that names had when a transfer was planned.
#[derive(Clone, Debug, Default)]
pub struct Expected(pub HashMap<Box<[u8]>, (u64, Time)>);

impl Expected {
    /// Returns whether an entry is unchanged since planning. Times are compared at the coarser precision: a store
    /// returns milliseconds in a listing and seconds elsewhere.
    pub fn is_met(&self, name: &[u8], meta: &Meta) -> bool {
        let Some((size, mtime)) = self.0.get(name) else { return false };
        let ns = mtime.ns == 0 || meta.mtime.ns == 0 || mtime.ns == meta.mtime.ns;
        *size == meta.size && mtime.s == meta.mtime.s && ns
    }
}
