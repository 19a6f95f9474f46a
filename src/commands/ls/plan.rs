//! The parsed command line of `ls`.

use super::columns;
use crate::filters::{ArgumentFilters, Filters};
use crate::objects::ObjectArgs;
use crate::show::escape::Escape;
use std::ffi::OsString;

/// Format of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Byte for byte.
    Literal,
    /// A question mark for each unprintable character.
    Marked(Escape),
    /// Quoted if a shell requires it.
    Quoted(Escape),
}

/// Format of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Lines,
    Columns,
    Long,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Name,
    Newest,
    Largest,
    AsRead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    No,
    /// All except `.` and `..`.
    Almost,
    All,
}

/// Type indicator after a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    None,
    Slash,
    All,
}

/// The parsed command line.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) form: Form,
    /// `-l` itself was given.
    pub(super) long: bool,
    pub(super) order: Order,
    pub(super) hidden: Hidden,
    pub(super) reverse: bool,
    pub(super) directory: bool,
    pub(super) recursive: bool,
    pub(super) human: bool,
    pub(super) numeric: bool,
    pub(super) owner: bool,
    pub(super) group: bool,
    pub(super) full_time: bool,
    pub(super) inode: bool,
    pub(super) sign: Sign,
    pub(super) names: Names,
    pub(super) end: u8,
    pub(super) summarize: bool,
    pub(super) full_path: bool,
    pub(super) json: bool,
    pub(super) objects: ObjectArgs,
    pub(super) filters: Filters,
    /// Rules for local arguments: entries that they exclude are not listed.
    pub(super) hidden_by: ArgumentFilters,
    pub(super) width: usize,
    pub(super) paths: Vec<OsString>,
}

impl Plan {
    /// Returns the defaults.
    pub(super) fn new(is_terminal: bool) -> Plan {
        let escape = Escape::of_locale();
        Plan {
            form: if is_terminal { Form::Columns } else { Form::Lines },
            long: false,
            order: Order::Name,
            hidden: Hidden::No,
            reverse: false,
            directory: false,
            recursive: false,
            human: false,
            numeric: false,
            owner: true,
            group: true,
            full_time: false,
            inode: false,
            sign: Sign::None,
            names: if is_terminal { Names::Quoted(escape) } else { Names::Literal },
            end: b'\n',
            summarize: false,
            full_path: false,
            json: false,
            objects: ObjectArgs::default(),
            filters: Filters::default(),
            hidden_by: ArgumentFilters::default(),
            width: columns::width(),
            paths: Vec::new(),
        }
    }

    /// Returns whether entries must be examined.
    pub(super) fn needs_meta(&self) -> bool {
        matches!(self.form, Form::Long | Form::Json)
            || matches!(self.order, Order::Newest | Order::Largest)
            || self.sign == Sign::All
    }
}
