//! The parsed command line of `ls` for `s3://`.

use crate::objects::ObjectArgs;
use crate::show::escape::Escape;
use hakobu_transfer::location::S3Url;
use hakobu_transfer::policy::filter::Filter;
use std::ffi::OsString;
use std::sync::Arc;

/// Format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Time, size, name.
    Short,
    /// Adds storage class and ETag.
    Long,
    /// Only whole URLs.
    Urls,
    /// JSON lines.
    Json,
}

/// The parsed command line.
#[derive(Debug)]
pub struct Plan {
    pub(super) form: Form,
    pub(super) recursive: bool,
    pub(super) unordered: bool,
    pub(super) human: bool,
    pub(super) summarize: bool,
    pub(super) end: u8,
    pub(super) escape: Option<Escape>,
    pub(super) objects: ObjectArgs,
    pub(super) filter: Option<Arc<Filter>>,
    pub(super) places: Vec<(OsString, S3Url)>,
}
