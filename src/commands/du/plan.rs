//! The parsed command line of `du`.

use crate::filters::Filters;
use crate::limits::Limits;
use crate::objects::ObjectArgs;
use hakobu_transfer::run::Rates;
use hakobu_tree::usage::Options;
use std::ffi::OsString;

/// Format of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Multiples of this many bytes, rounded up.
    Bytes(u64),
    /// `1.5M`.
    Human,
}

/// The parsed command line.
#[derive(Debug)]
pub struct Plan {
    pub(super) options: Options,
    pub(super) summarize: bool,
    /// `-s`, which is 0, or `--max-depth`, whichever comes last.
    pub(super) levels: Option<usize>,
    pub(super) unit: Unit,
    pub(super) total: bool,
    /// `--objects`.
    pub(super) counts: bool,
    /// `--group`.
    pub(super) group: bool,
    pub(super) end: u8,
    pub(super) json: bool,
    pub(super) limits: Limits,
    pub(super) rates: Rates,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    pub(super) paths: Vec<OsString>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            options: Options::default(),
            summarize: false,
            levels: None,
            unit: Unit::Bytes(1024),
            total: false,
            counts: false,
            group: false,
            end: b'\n',
            json: false,
            limits: Limits::default(),
            rates: Rates::default(),
            objects: ObjectArgs::default(),
            filters: Filters::default(),
            paths: Vec::new(),
        }
    }
}
