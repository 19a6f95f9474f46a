//! The options of `sync` read so far.

use crate::commands::cluster::ClusterArgs;
use crate::filters::Filters;
use crate::limits::LimitArgs;
use crate::names;
use crate::objects::ObjectArgs;
use crate::options::parts;
use crate::show::Wanted;
use hakobu_transfer::policy::{Delete, Policy};
use std::ffi::OsString;

/// Options read so far; see the module.
#[derive(Default)]
pub struct Reading {
    pub(super) policy: Policy,
    pub(super) wanted: Wanted,
    /// `-a` without a separate `-r` has no effect with `--files-from`.
    pub(super) recurse_by_archive: bool,
    /// `--no-r` is respected with `s3://`, too.
    pub(super) no_recursive: bool,
    /// `--super`.
    pub(super) superuser: bool,
    /// `--fake-super`.
    pub(super) fake: Fake,
    /// `--numeric-ids`: no ID has a name in `--usermap` and `--groupmap`.
    pub(super) numeric_ids: bool,
    /// `--drop-D`.
    pub(super) drop_specials: bool,
    /// `--whole-file`.
    pub(super) whole: bool,
    pub(super) links: bool,
    pub(super) copy_links: bool,
    pub(super) dirs: Option<bool>,
    pub(super) relative: Option<bool>,
    pub(super) delete: bool,
    /// The options that set the time of deletion, each once.
    pub(super) delete_when: Vec<(&'static str, Delete)>,
    pub(super) filters: Filters,
    pub(super) files_from: Option<OsString>,
    pub(super) limits: LimitArgs,
    pub(super) mkpath: bool,
    pub(super) suffix: Option<Vec<u8>>,
    pub(super) verbose: u8,
    /// `--info=name`: replaces the level of `-v` for names.
    pub(super) names: Option<u8>,
    /// `--info=backup`; without it from `-vv`.
    pub(super) backups: Option<bool>,
    /// `--info=skip`; without it from `-vv`.
    pub(super) skips: Option<bool>,
    /// Options without effect, by their values, each with the reason.
    pub(super) without: Vec<(String, &'static str)>,
    /// `--no-inc-recursive`.
    pub(super) ordered: bool,
    /// `--debug=filter`; without it from `-vv`.
    pub(super) rules: Option<bool>,
    /// Level of `--info=stats` (2 for `--stats`); without it 1 with `-v`.
    pub(super) stats: Option<u8>,
    pub(super) itemize: u8,
    pub(super) objects: ObjectArgs,
    pub(super) trusted: names::LinkArgs,
    pub(super) cluster: ClusterArgs,
}

/// Requests for `--fake-super`.
#[derive(Clone, Copy, Default)]
pub(super) struct Fake {
    /// On both sides.
    pub both: bool,
    /// `-M--fake-super`: at the target.
    pub target: bool,
    /// `-M--super`: not at the target.
    pub not_target: bool,
}

parts!(Reading {
    objects: ObjectArgs,
    limits: LimitArgs,
    filters: Filters,
    trusted: names::LinkArgs,
    cluster: ClusterArgs
});
