//! The parsed command line of `du` for `s3://`.

use crate::commands::du::plan::Unit;
use crate::limits::Priority;
use crate::objects::ObjectArgs;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::policy::filter::Filter;
use std::ffi::OsString;
use std::sync::Arc;

/// The parsed command line.
#[derive(Debug)]
pub struct Plan {
    pub(super) objects: ObjectArgs,
    pub(super) priority: Priority,
    pub(super) unit: Unit,
    /// Lines for objects, too.
    pub(super) all: bool,
    pub(super) depth_max: Option<usize>,
    /// A line for each storage class of an argument.
    pub(super) group: bool,
    pub(super) total: bool,
    pub(super) counts: bool,
    pub(super) end: u8,
    pub(super) json: bool,
    pub(super) filter: Option<Arc<Filter>>,
    pub(super) places: Vec<(OsString, S3Url)>,
}
