//! Command lines: options as tables, and the arguments as a list in their order.
//!
//! An option is one value ([`Opt`]): its spellings, its help line and its setter. It is defined beside the state that
//! it sets: in the folder of its command, or, for a block that commands share, in the module of its subject. A
//! command has one [`Table`] of such blocks and one list of options of its model (rsync, cp, mv) that are not supported:
//! those are refused by name.

mod arg;
mod opt;
mod order;
mod refusal;
mod table;

use hakobu_core::error::Fatal;
pub use opt::{Fits, JSON, Opt, Row, Takes, flag, value, values};
use std::ffi::OsString;
pub use table::{Block, Blocks, Group, Noted, Syntax, Table, titled};

/// One option from a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptArg {
    /// The option's name in its table.
    pub name: &'static str,
    /// False for `--no-NAME`.
    pub on: bool,
    /// Number of occurrences of a counted option.
    pub count: u8,
    /// Its value, empty if it has none.
    pub value: OsString,
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// Options in order.
    pub options: Vec<OptArg>,
    /// All other arguments in order.
    pub paths: Vec<OsString>,
    /// Accepted options without effect in order, for those whose values are checked.
    pub noted: Vec<OptArg>,
    /// The same as they are spelled, each with the reason.
    pub notes: Vec<(String, &'static str)>,
}

impl Typed {
    /// Returns a sentence about the options without effect; `None` if there are none. Options with the same reason
    /// are grouped.
    pub fn note(&self) -> Option<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (spelling, why) in &self.notes {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, spellings)) if spellings.contains(&spelling.as_str()) => {}
                Some((_, spellings)) => spellings.push(spelling),
                None => reasons.push((why, vec![spelling])),
            }
        }
        let list =
            reasons.iter().map(|(why, spellings)| format!("{} ({why})", spellings.join(", ")));
        let list = list.collect::<Vec<_>>().join("; ");
        (!list.is_empty()).then(|| format!("note: without effect here: {list}"))
    }
}

/// Reason that a command does not start.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// `--help` was given: the help text.
    Help(String),
    /// Invalid command line: the message.
    Usage(String),
    /// It names something unusable.
    Failed {
        /// The exit code.
        code: u8,
        /// The message.
        message: String,
    },
}

impl From<Fatal> for Refused {
    fn from(fatal: Fatal) -> Refused {
        Refused::Failed { code: fatal.code, message: fatal.message }
    }
}

/// Assigns a value: the setter of most options.
///
/// # Errors
/// None; a setter returns a result.
pub fn put<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

/// Adds a value to a list.
///
/// # Errors
/// None; a setter returns a result.
pub fn push<T>(list: &mut Vec<T>, value: T) -> Result<(), String> {
    list.push(value);
    Ok(())
}

/// Declares which fields of a state hold the parts that shared blocks of options set.
macro_rules! parts {
    ($state:ty { $($field:ident: $part:ty),* }) => {
        impl AsMut<$state> for $state {
            fn as_mut(&mut self) -> &mut $state {
                self
            }
        }
        $(impl AsMut<$part> for $state {
            fn as_mut(&mut self) -> &mut $part {
                &mut self.$field
            }
        })*
    };
}
pub(crate) use parts;

#[cfg(test)]
mod peers;
#[cfg(test)]
mod tests;
