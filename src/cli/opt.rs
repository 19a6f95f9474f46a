//! One option of a command: its spellings, its value, its help line, and its setter.

use super::OptArg;
use clap::builder::Resettable;
use clap::{Arg, ArgAction, ValueHint, value_parser};
use std::ffi::OsString;

/// Arguments of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None; repeating it has no effect.
    Nothing,
    /// None; occurrences are counted.
    Count,
    /// None; every position is recorded.
    Marks,
    /// A value; the last one counts.
    Value(&'static str),
    /// A value; all of them count.
    Values(&'static str),
    /// This many values at each occurrence; all of them count. They are joined by `=`.
    Words(&'static [&'static str]),
    /// An optional value after `=`; the last one counts.
    Perhaps(&'static str),
    /// An optional value after `=` at each occurrence; all of them count.
    PerhapsValues(&'static str),
    /// An optional value out of these, after `=` or as the next word; the last one counts.
    PerhapsOneOf(&'static str, &'static [&'static str]),
}

/// The kinds of locations that an option is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// All of them.
    All,
    /// At least one in `s3://`.
    Stored,
    /// None in `s3://`, with a reason or "".
    Local(&'static str),
    /// No target in `s3://`, with a reason.
    LocalTarget(&'static str),
}

/// The part of an option that command lines, manual pages and completions need. With a setter it becomes an option
/// that can be in a table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its internal name, and its long spelling unless `long` is false.
    pub name: &'static str,
    /// Whether `--name` exists.
    pub long: bool,
    /// Its one-letter spelling.
    pub short: Option<char>,
    /// Other long spellings.
    pub aliases: &'static [&'static str],
    /// Spellings (without dashes) that negate it, such as `no-times`, `no-t`.
    pub off: &'static [&'static str],
    /// Its arguments.
    pub takes: Takes,
    /// Fixed words among its values, for completions.
    pub words: &'static [&'static str],
    /// Its help line.
    pub help: &'static str,
    /// Locations that it is valid for.
    pub fits: Fits,
    /// Reason that it has no effect here: it is accepted, with a note.
    pub note: Option<&'static str>,
}

/// Sets the state from an option; the error describes an invalid value.
type Setter<S> = fn(&mut S, &OptArg) -> Result<(), String>;

enum Set<S> {
    /// On or off; cannot fail.
    Switch(fn(&mut S, bool)),
    Value(Setter<S>),
}

/// One option of a command, which sets something in a state `S`.
pub struct Opt<S> {
    /// Everything except the setter.
    pub row: Row,
    set: Set<S>,
}

impl<S> Opt<S> {
    /// Sets the state.
    ///
    /// # Errors
    /// The value is invalid.
    pub fn set(&self, state: &mut S, arg: &OptArg) -> Result<(), String> {
        match self.set {
            Set::Switch(set) => {
                set(state, arg.on);
                Ok(())
            }
            Set::Value(set) => set(state, arg),
        }
    }
}

/// Makes an option without arguments.
pub const fn flag(name: &'static str, short: Option<char>, help: &'static str) -> Row {
    Row {
        name,
        long: true,
        short,
        aliases: &[],
        off: &[],
        takes: Takes::Nothing,
        words: &[],
        help,
        fits: Fits::All,
        note: None,
    }
}

/// `--json`, for commands that list it in their own table.
pub const JSON: Row = flag("json", None, "JSON lines on standard output, nothing else");

/// Makes an option with a value, of which the last one counts.
pub const fn value(
    name: &'static str,
    short: Option<char>,
    what: &'static str,
    help: &'static str,
) -> Row {
    Row { takes: Takes::Value(what), ..flag(name, short, help) }
}

/// Makes an option with a value, all of which count.
pub const fn values(
    name: &'static str,
    short: Option<char>,
    what: &'static str,
    help: &'static str,
) -> Row {
    Row { takes: Takes::Values(what), ..flag(name, short, help) }
}

impl Row {
    /// Adds a setter for on and off.
    pub const fn sets<S>(self, set: fn(&mut S, bool)) -> Opt<S> {
        Opt { row: self, set: Set::Switch(set) }
    }

    /// Adds a setter that reads the value, or the count.
    pub const fn reads<S>(self, set: Setter<S>) -> Opt<S> {
        Opt { row: self, set: Set::Value(set) }
    }

    /// Adds spellings that negate it.
    pub const fn off(self, off: &'static [&'static str]) -> Row {
        Row { off, ..self }
    }

    /// Adds other long spellings.
    pub const fn alias(self, aliases: &'static [&'static str]) -> Row {
        Row { aliases, ..self }
    }

    /// Sets its arguments.
    pub const fn takes(self, takes: Takes) -> Row {
        Row { takes, ..self }
    }

    /// Names fixed words among its values: shells complete them.
    pub const fn words(self, words: &'static [&'static str]) -> Row {
        Row { words, ..self }
    }

    /// Removes the long spelling.
    pub const fn short_only(self) -> Row {
        Row { long: false, ..self }
    }

    /// Makes it an option without effect, with the reason.
    pub const fn noted(self, why: &'static str) -> Row {
        Row { note: Some(why), ..self }
    }

    /// Replaces the help line.
    pub const fn with_help(self, help: &'static str) -> Row {
        Row { help, ..self }
    }

    /// Restricts it to `s3://`.
    pub const fn stored(self) -> Row {
        Row { fits: Fits::Stored, ..self }
    }

    /// Rejects it if a side is in `s3://`. The reason may be "".
    pub const fn local(self, why: &'static str) -> Row {
        Row { fits: Fits::Local(why), ..self }
    }

    /// Rejects it if the target is in `s3://`.
    pub const fn local_target(self, why: &'static str) -> Row {
        Row { fits: Fits::LocalTarget(why), ..self }
    }

    /// Returns the option for completions: with the words or the kind of its value.
    pub fn completed_arg(&self) -> Arg {
        let words = match self.takes {
            Takes::PerhapsOneOf(_, words) => words,
            _ => self.words,
        };
        let arg = self.arg();
        if !words.is_empty() {
            // The implied value is none of the words.
            return arg.default_missing_value(Resettable::Reset).value_parser(words.to_vec());
        }
        match self.takes {
            Takes::Value("FILE" | "PATH" | "RUN" | "MANIFEST" | "HOSTS")
            | Takes::Values("FILE" | "PATH") => arg.value_hint(ValueHint::AnyPath),
            Takes::Value("DIR") | Takes::Values("DIR") => arg.value_hint(ValueHint::DirPath),
            _ => arg,
        }
    }

    /// Returns the option for clap.
    pub fn arg(&self) -> Arg {
        let mut arg = Arg::new(self.name).help(self.help);
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
            // A flag whose positions are all recorded: clap records positions of values only, so it has an empty
            // implicit value.
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
            Takes::Perhaps(what) | Takes::PerhapsValues(what) | Takes::PerhapsOneOf(what, _) => {
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
