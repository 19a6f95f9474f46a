//! One option of a command: its spellings, what follows it, its line in the help.

use clap::{Arg, ArgAction, value_parser};
use std::ffi::OsString;

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing; given twice it means the same.
    Nothing,
    /// Nothing, and how often it is given matters.
    Count,
    /// Nothing, and where each one stands among the others matters.
    Marks,
    /// A value; the last one counts.
    Value(&'static str),
    /// A value; all of them count.
    Values(&'static str),
    /// So many values, each time; all of them count. They come joined by `=`.
    Words(&'static [&'static str]),
    /// Perhaps a value after `=`; the last one counts.
    Perhaps(&'static str),
    /// Perhaps a value after `=`, each time; all of them count.
    PerhapsValues(&'static str),
}

/// One option of a command.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// Its name in the program, and its long spelling unless `long` is false.
    pub name: &'static str,
    /// Whether `--name` exists.
    pub long: bool,
    /// Its one-letter spelling.
    pub short: Option<char>,
    /// Other long spellings.
    pub aliases: &'static [&'static str],
    /// Spellings (without dashes) that turn it off, such as `no-times`, `no-t`.
    pub off: &'static [&'static str],
    /// What follows it.
    pub takes: Takes,
    /// One line for the help.
    pub help: &'static str,
    /// Under which headline of the help it stands.
    pub group: &'static str,
}

/// An option that takes nothing.
pub const fn flag(name: &'static str, short: Option<char>, help: &'static str) -> Opt {
    Opt {
        name,
        long: true,
        short,
        aliases: &[],
        off: &[],
        takes: Takes::Nothing,
        help,
        group: "Options",
    }
}

/// An option with a value, of which the last one counts.
pub const fn value(
    name: &'static str,
    short: Option<char>,
    what: &'static str,
    help: &'static str,
) -> Opt {
    Opt { takes: Takes::Value(what), ..flag(name, short, help) }
}

impl Opt {
    /// The same with spellings that turn it off.
    pub const fn off(self, off: &'static [&'static str]) -> Opt {
        Opt { off, ..self }
    }

    /// The same with other long spellings.
    pub const fn alias(self, aliases: &'static [&'static str]) -> Opt {
        Opt { aliases, ..self }
    }

    /// The same with something else after it.
    pub const fn takes(self, takes: Takes) -> Opt {
        Opt { takes, ..self }
    }

    /// The same without a long spelling.
    pub const fn short_only(self) -> Opt {
        Opt { long: false, ..self }
    }

    /// The same under another headline.
    pub const fn in_group(self, group: &'static str) -> Opt {
        Opt { group, ..self }
    }

    /// The option for clap.
    pub fn arg(&self) -> Arg {
        let mut arg = Arg::new(self.name).help(self.help).help_heading(self.group);
        if self.long {
            arg = arg.long(self.name).aliases(self.aliases.iter().copied());
        }
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        let os = value_parser!(OsString);
        match self.takes {
            Takes::Nothing => arg.action(ArgAction::SetTrue),
            Takes::Count => arg.action(ArgAction::Count),
            // A flag whose every place is remembered: clap keeps places only of values, so this
            // one has an empty value that nobody types.
            Takes::Marks => arg
                .action(ArgAction::Append)
                .num_args(0..=1)
                .require_equals(true)
                .hide(true)
                .default_missing_value("")
                .value_parser([""]),
            Takes::Value(what) => arg.value_name(what).value_parser(os).allow_hyphen_values(true),
            Takes::Values(what) => arg
                .value_name(what)
                .value_parser(os)
                .allow_hyphen_values(true)
                .action(ArgAction::Append),
            Takes::Words(what) => arg
                .value_names(what)
                .num_args(what.len())
                .value_parser(os)
                .allow_hyphen_values(true)
                .action(ArgAction::Append),
            Takes::Perhaps(what) | Takes::PerhapsValues(what) => {
                let arg = arg
                    .value_name(what)
                    .value_parser(os)
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("");
                match self.takes {
                    Takes::PerhapsValues(_) => arg.action(ArgAction::Append),
                    _ => arg,
                }
            }
        }
    }
}
