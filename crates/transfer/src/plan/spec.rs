//! What a transfer is told to do.

use crate::object::ObjectOptions;
use crate::policy::Policy;
use crate::s3::Settings;
use crate::unit::Jobs;
use std::path::PathBuf;

/// How source arguments become names at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// rsync's rule: `DIR` makes `DST/DIR`, `DIR/` fills `DST`; with `relative` (`-R`) the whole
    /// path as typed is kept, from `/./` on where that occurs.
    Rsync {
        /// `-R`.
        relative: bool,
    },
    /// cp's rule: into `DST` where that is a directory, else under the name `DST`.
    Cp {
        /// `-T`: `DST` is the name itself even where it is a directory.
        no_target_dir: bool,
        /// `-t`, or several sources: `DST` must be a directory.
        target_is_dir: bool,
        /// `--parents`: the whole path as typed is kept below `DST`.
        parents: bool,
    },
}

/// A transfer: what, from where, to where, how much at once.
#[derive(Clone)]
pub struct Spec {
    /// Sources as typed; a trailing slash has its meaning.
    pub sources: Vec<PathBuf>,
    /// The target as typed; `null:` reads everything and discards it.
    pub target: PathBuf,
    /// How names are made.
    pub layout: Layout,
    /// Only these paths, relative to the single source (`--files-from`); bytes as read.
    pub files_from: Option<Vec<Vec<u8>>>,
    /// What happens to each entry.
    pub policy: Policy,
    /// Units in flight.
    pub jobs: Jobs,
    /// Bytes of content a second, all workers together (`--bwlimit`).
    pub bytes_per_s_max: Option<u64>,
    /// Operations (between paths) or requests (with a store) a second (`--iops-limit`,
    /// `--rps-limit`).
    pub operations_per_s_max: Option<u64>,
    /// Bytes in flight and in buffers (`--memory`); 256 MiB where nothing is said.
    pub memory_bytes_max: Option<u64>,
    /// Numbers of jobs that were good are remembered, and begun with (off: `--no-memory`).
    pub remember: bool,
    /// Experiments are made during the run that prove its verdict (`--prove`).
    pub prove: bool,
    /// Whether the listener wants an `Item` event for every change.
    pub items: bool,
    /// Whether items are wanted for unchanged entries, too (`-ii`, `-vv`).
    pub items_unchanged: bool,
    /// Missing parents of the target are made (`--mkpath`).
    pub mkpath: bool,
    /// Whether free space is compared with what is to come before the start.
    pub check_space: bool,
    /// What a transfer with S3 on a side needs besides.
    pub objects: Objects,
}

/// What a transfer with S3 on a side needs besides: accounts and endpoints, and how objects are
/// written.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// The store of `s3://` sources.
    pub source: Settings,
    /// The store of `s3://` targets.
    pub target: Settings,
    /// How objects are written and read.
    pub options: ObjectOptions,
    /// `*` and `?` in source keys are themselves (`--raw`).
    pub raw: bool,
}
