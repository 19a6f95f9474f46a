//! Command lines: options as tables, and the arguments as a list in their order.
//!
//! An option is one value ([`Opt`]): its spellings, its help line and its setter. It is defined beside the state that
//! it sets: in the folder of its command, or, for a block that commands share, in the module of its subject. A
//! command has one [`Table`] of such blocks and one list of options of its model (rsync, cp, mv) that are not supported:
//! those are refused by name.

mod help;
mod opt;
mod table;

use hakobu_core::error::Fatal;
use hakobu_core::number;
use hakobu_s3::without_secrets;
pub use help::HelpLength;
pub use opt::{Fits, JSON, Opt, Row, Takes, flag, value, values};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
pub use table::{Block, Blocks, Example, Group, Noted, Part, Syntax, Table, titled};

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

/// Units of time and their seconds.
const UNITS_S: [(&str, f64); 5] =
    [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

impl OptArg {
    /// Returns the value as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(&self) -> Result<&str, String> {
        self.value.to_str().ok_or_else(|| self.refuse("not valid UTF-8"))
    }

    /// Returns the value parsed; `None` if it is invalid.
    pub fn parsed<T: FromStr>(&self) -> Option<T> {
        self.value.to_str()?.parse().ok()
    }

    /// Returns the value as a number.
    ///
    /// # Errors
    /// It is not a number of this type.
    pub fn number<T: FromStr>(&self) -> Result<T, String> {
        self.text()?.parse().map_err(|_| self.refuse("not a number"))
    }

    /// Returns the value as a number of at least 1.
    ///
    /// # Errors
    /// It is not a number of this type, or 0.
    pub fn positive<T: FromStr + From<u8> + PartialEq>(&self) -> Result<T, String> {
        match self.number()? {
            number if number == T::from(0) => Err(self.refuse("must be at least 1")),
            number => Ok(number),
        }
    }

    /// Returns the value as a duration, in one of the units `us`, `ms`, `s`, `m`, `h` up to `longest`.
    ///
    /// # Errors
    /// It is not a duration; the message shows `examples`.
    pub fn duration(&self, longest: &str, examples: &str) -> Result<Duration, String> {
        let text = self.text()?;
        let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = text.split_at(digits);
        let last = UNITS_S.iter().position(|(name, _)| *name == longest);
        let known = UNITS_S.iter().take(last.map_or(0, |last| last + 1));
        let Some((_, scale_s)) = known.into_iter().find(|(name, _)| *name == unit) else {
            return Err(self.refuse(&format!("not a duration (examples: {examples})")));
        };
        let number: f64 = number.parse().map_err(|_| self.refuse("not a duration"))?;
        Duration::try_from_secs_f64(number * scale_s).map_err(|_| self.refuse("too long"))
    }

    /// Returns the message for an invalid value, with the reason. Passwords in URLs are not shown.
    pub fn refuse(&self, why: &str) -> String {
        let value = self.value.to_string_lossy();
        match self.name.ends_with("endpoint-url") {
            true => format!("invalid --{} '{}': {why}", self.name, without_secrets(&value)),
            false => format!("invalid --{} '{value}': {why}", self.name),
        }
    }

    /// Returns the value as a number of bytes.
    ///
    /// # Errors
    /// It is not a size.
    pub fn size(&self) -> Result<u64, String> {
        number::parse_size(&self.value, 1).map_err(|why| self.refuse(why))
    }

    /// Returns the value as a path.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.value)
    }
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
mod tests;
