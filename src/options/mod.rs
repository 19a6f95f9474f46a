//! Options as tables, and what was typed as a list in the order of the command line.
//!
//! Every command has one table ([`Opt`] holds name, value and help of an option) and one list of
//! the options that its model (rsync, cp, mv) has and we do not: those are refused by name. What
//! an option means is not decided here but by the command.

pub mod bench;
pub mod compare;
pub mod cp;
pub mod demo;
pub mod du;
mod filter;
mod given;
pub mod io;
pub mod ls;
pub mod manual;
pub mod mv;
mod opt;
pub mod report;
pub mod results;
pub mod rm;
mod s3;
pub mod serve;
pub mod sync;
pub mod tools;
pub mod verify;
pub mod watch;
pub mod work;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use hakobu_transfer::error::Fatal;
pub use opt::{Opt, Takes, flag, value};
use std::ffi::OsString;

/// A command line: its name, its usage and its table.
pub struct Table {
    /// The command as typed after `hakobu`.
    pub command: &'static str,
    /// One line that says what it does.
    pub about: &'static str,
    /// The usage line after `hakobu `.
    pub usage: &'static str,
    /// What stands below the options in the help.
    pub after: &'static str,
    /// Its options, in blocks that other commands may share.
    pub options: &'static [&'static [Opt]],
    /// Options that its model has and we do not, each with a reason or "".
    pub unbuilt: &'static [&'static [(&'static str, &'static str)]],
    /// Whether a long option may be shortened as getopt_long(3) allows.
    pub abbreviates: bool,
}

/// One option as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The option's name in its table.
    pub name: &'static str,
    /// False for `--no-NAME`.
    pub on: bool,
    /// How often a counted option was given.
    pub count: u8,
    /// Its value, empty for one that has none.
    pub value: OsString,
}

/// A command line as it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typed {
    /// Options in their order.
    pub options: Vec<Given>,
    /// Everything else in its order.
    pub paths: Vec<OsString>,
}

/// Why a command does not begin.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// `--help` was asked for: the text.
    Help(String),
    /// It is wrong: the message.
    Usage(String),
    /// It names something that cannot be used.
    Failed {
        /// The exit code.
        code: u8,
        /// Why.
        message: String,
    },
}

impl From<Fatal> for Refused {
    fn from(fatal: Fatal) -> Refused {
        Refused::Failed { code: fatal.code, message: fatal.message }
    }
}

const PATHS: &str = "PATHS";

impl Table {
    /// As clap has it: for manual pages and completions, too.
    pub fn clap(&self) -> Command {
        let mut command = Command::new(self.command)
            .about(self.about)
            .override_usage(self.usage)
            .after_help(self.after)
            .disable_help_flag(true)
            .disable_version_flag(true)
            .args_override_self(true)
            .infer_long_args(self.abbreviates)
            .arg(
                Arg::new(PATHS)
                    .num_args(0..)
                    .value_parser(value_parser!(OsString))
                    .action(ArgAction::Append)
                    .hide(true),
            )
            .arg(
                Arg::new("help")
                    .long("help")
                    .action(ArgAction::Help)
                    .help("print this text")
                    .help_heading("Output"),
            );
        for option in self.options.iter().copied().flatten() {
            let mut arg = option.arg();
            if let Some((first, others)) = option.off.split_first() {
                command = command.arg(
                    Arg::new(*first)
                        .long(*first)
                        .aliases(others.iter().copied())
                        .action(ArgAction::SetTrue)
                        .overrides_with(option.name)
                        .hide(true),
                );
                arg = arg.overrides_with(*first);
            }
            command = command.arg(arg);
        }
        // Where long options may be shortened, a whole option of the model's must not be taken for
        // the beginning of one of ours.
        for name in self.taken_for_others() {
            command = command.arg(Arg::new(name).long(name).action(ArgAction::SetTrue).hide(true));
        }
        command
    }

    /// Names of options that are not built and that one of ours begins with.
    fn taken_for_others(&self) -> impl Iterator<Item = &'static str> {
        let ours = |name: &str| {
            let longs = self.options.iter().copied().flatten().filter(|option| option.long);
            longs.into_iter().any(|option| option.name.starts_with(name))
        };
        let names = self.unbuilt().filter_map(|(spelling, _)| spelling.strip_prefix("--"));
        names.filter(move |name| self.abbreviates && ours(name))
    }

    fn unbuilt(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        self.unbuilt.iter().copied().flatten()
    }

    /// The help of the command.
    pub fn help(&self) -> String {
        self.clap().render_help().to_string()
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// What is wrong with it, or the help where that was asked for.
    pub fn parse(&self, arguments: &[OsString]) -> Result<Typed, Refused> {
        let matches = self
            .clap()
            .no_binary_name(true)
            .try_get_matches_from(arguments)
            .map_err(|error| self.refuse(&error))?;
        if let Some(name) = self.taken_for_others().find(|name| matches.get_flag(name)) {
            let message = self.not_built(&format!("--{name}"));
            return Err(Refused::Usage(
                message.unwrap_or_else(|| format!("--{name} is not built")),
            ));
        }
        Ok(self.in_order(&matches))
    }

    fn in_order(&self, matches: &ArgMatches) -> Typed {
        let mut found: Vec<(usize, Given)> = Vec::new();
        let given = |name, on, count, value| Given { name, on, count, value };
        let typed =
            |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        for option in self.options.iter().copied().flatten() {
            let name = option.name;
            if let Some(off) = option.off.first().filter(|off| typed(off)) {
                let last = matches.indices_of(off).and_then(|mut at| at.next_back()).unwrap_or(0);
                found.push((last, given(name, false, 0, OsString::new())));
            }
            if !typed(name) {
                continue;
            }
            let Some(mut places) = matches.indices_of(name) else { continue };
            match option.takes {
                Takes::Nothing => {
                    found
                        .extend(places.next_back().map(|at| (at, given(name, true, 1, "".into()))));
                }
                Takes::Count => {
                    let count = matches.get_count(name);
                    found.extend(
                        places.next_back().map(|at| (at, given(name, true, count, "".into()))),
                    );
                }
                Takes::Marks => {
                    found.extend(places.map(|at| (at, given(name, true, 1, "".into()))));
                }
                Takes::Words(names) => {
                    let places: Vec<usize> = places.collect();
                    let values = matches.get_many::<OsString>(name).into_iter().flatten();
                    let values: Vec<&OsString> = values.collect();
                    let each = places.chunks(names.len()).zip(values.chunks(names.len()));
                    found.extend(each.filter_map(|(at, words)| {
                        let mut joined = (*words.first()?).clone();
                        for word in &words[1..] {
                            joined.push("=");
                            joined.push(word);
                        }
                        Some((*at.first()?, given(name, true, 1, joined)))
                    }));
                }
                Takes::Value(_)
                | Takes::Values(_)
                | Takes::Perhaps(_)
                | Takes::PerhapsValues(_) => {
                    let values = matches.get_many::<OsString>(name).into_iter().flatten();
                    found.extend(
                        places.zip(values).map(|(at, v)| (at, given(name, true, 1, v.clone()))),
                    );
                }
            }
        }
        found.sort_by_key(|(at, _)| *at);
        Typed {
            options: found.into_iter().map(|(_, given)| given).collect(),
            paths: matches.get_many::<OsString>(PATHS).into_iter().flatten().cloned().collect(),
        }
    }

    fn refuse(&self, error: &clap::Error) -> Refused {
        if error.kind() == ErrorKind::DisplayHelp {
            return Refused::Help(error.to_string());
        }
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
            && let Some(message) = self.not_built(typed)
        {
            return Refused::Usage(message);
        }
        let text = error.to_string();
        Refused::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
    }

    /// The message for an option that the model of this command has and we do not.
    fn not_built(&self, typed: &str) -> Option<String> {
        let name = typed.split('=').next()?;
        let bare = name.trim_start_matches('-');
        let positive = bare.strip_prefix("no-").unwrap_or(bare);
        let (_, why) = self.unbuilt().find(|(spelling, _)| {
            let spelling = spelling.trim_start_matches('-');
            spelling == bare || (name.starts_with("--") && spelling == positive)
        })?;
        Some(if why.is_empty() {
            format!("{name} is not built")
        } else {
            format!("{name} is not built: {why}")
        })
    }
}

#[cfg(test)]
mod tests;
