//! The parsed command line of `rm`.

use crate::filters::{ArgumentFilters, Filters};
use crate::limits::Limits;
use crate::objects::ObjectArgs;
use hakobu_transfer::run::Rates;
use hakobu_tree::remove::Options;
use std::ffi::OsString;

/// When to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Never,
    /// Only before removing write-protected entries, and only on a terminal.
    Protected,
    Once,
    Always,
}

/// The parsed command line.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether paths are in `s3://`.
    pub(super) in_store: bool,
    pub(super) recursive: bool,
    pub(super) empty_dirs: bool,
    /// Remove only the contents of directories.
    pub(super) keep_dirs: bool,
    /// A missing argument is not an error.
    pub(super) force: bool,
    pub(super) dry_run: bool,
    pub(super) ask: Ask,
    pub(super) one_file_system: bool,
    pub(super) preserve_root: bool,
    /// Refuse tops that are mount points, too.
    pub(super) preserve_mounts: bool,
    pub(super) verbose: bool,
    pub(super) json: bool,
    pub(super) limits: Limits,
    pub(super) rates: Rates,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// Rules for local arguments: entries that they exclude stay.
    pub(super) kept: ArgumentFilters,
    pub(super) paths: Vec<OsString>,
}

impl Plan {
    /// Returns the defaults.
    pub(super) fn new(in_store: bool) -> Plan {
        Plan {
            in_store,
            recursive: false,
            empty_dirs: false,
            keep_dirs: false,
            force: false,
            dry_run: false,
            ask: if in_store { Ask::Never } else { Ask::Protected },
            one_file_system: false,
            preserve_root: true,
            preserve_mounts: false,
            verbose: false,
            json: false,
            limits: Limits::default(),
            rates: Rates::default(),
            objects: ObjectArgs::default(),
            filters: Filters::default(),
            kept: ArgumentFilters::default(),
            paths: Vec::new(),
        }
    }

    /// Returns whether a line is printed for each removed entry.
    pub(super) fn tells(&self) -> bool {
        self.verbose || self.dry_run
    }

    /// Returns the options of the walk.
    pub(super) fn removal(&self) -> Options {
        let Plan { one_file_system, dry_run, keep_dirs, .. } = *self;
        Options { one_file_system, dry_run, keep_dirs, ..Options::default() }
    }
}
