//! A command's option table: parsed by clap, with refusals by name, applied in command-line order.

use super::{Fits, Opt, OptArg, Refused, Row, Takes, Typed};
use clap::{Arg, ArgAction, Command, value_parser};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// A command's syntax: its name, its usage and its options, which set a state `S`. Tables, groups and blocks
/// are statics: a constant is copied into each unit of compilation that uses it, and relocated at every start.
pub struct Table<S: 'static> {
    /// The command as typed after `hakobu`.
    pub command: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// The usage line after `hakobu `.
    pub usage: &'static str,
    /// Text below the options in the help.
    pub after: &'static str,
    /// Its options, in blocks that several commands may share.
    pub options: &'static [&'static dyn Block<S>],
    /// Options of its model that are not supported: spellings separated by spaces, and a reason or "".
    pub unbuilt: &'static [&'static [(&'static str, &'static str)]],
    /// Whether long options may be abbreviated as getopt_long(3) allows.
    pub abbreviates: bool,
}

/// A block of options: of a command, or of a part of its state.
pub trait Block<S>: Sync {
    /// Returns the rows of the options, each with its headline in the help.
    fn rows(&self) -> Vec<(&'static str, &'static Row)>;
    /// Sets an option if it belongs to this block.
    fn set(&self, state: &mut S, arg: &OptArg) -> Option<Result<(), String>>;
}

/// Options under their own headline.
pub struct Group<T: 'static>(pub &'static str, pub &'static [Opt<T>]);

/// A headline, for the options of a [`Group`].
pub struct Title(&'static str);

/// Starts a group with its headline.
pub const fn titled(title: &'static str) -> Title {
    Title(title)
}

impl Title {
    /// Returns the group of these options.
    pub const fn with<T>(self, options: &'static [Opt<T>]) -> Group<T> {
        Group(self.0, options)
    }
}

impl<T> Group<T> {
    /// Returns whether an option belongs to this group.
    pub fn has(&self, arg: &OptArg) -> bool {
        self.1.iter().any(|option| option.row.name == arg.name)
    }
}

impl<S: AsMut<T>, T> Block<S> for Group<T> {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        self.1.iter().map(|option| (self.0, &option.row)).collect()
    }

    fn set(&self, state: &mut S, arg: &OptArg) -> Option<Result<(), String>> {
        self.1.set(state, arg)
    }
}

impl<S: AsMut<T>, T> Block<S> for &'static [Opt<T>] {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        self.iter().map(|option| ("Options", &option.row)).collect()
    }

    fn set(&self, state: &mut S, arg: &OptArg) -> Option<Result<(), String>> {
        let option = self.iter().find(|option| option.row.name == arg.name)?;
        Some(option.set(state.as_mut(), arg))
    }
}

/// Options that are accepted without effect; see [`Row::noted`].
pub struct Noted(pub &'static [Row]);

impl<S> Block<S> for Noted {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        self.0.iter().map(|row| ("Accepted, without effect here", row)).collect()
    }

    fn set(&self, _: &mut S, _: &OptArg) -> Option<Result<(), String>> {
        None
    }
}

/// Blocks shared by several commands, for one part of their state.
pub struct Blocks<T: 'static>(pub &'static [&'static dyn Block<T>]);

impl<S: AsMut<T>, T> Block<S> for Blocks<T> {
    fn rows(&self) -> Vec<(&'static str, &'static Row)> {
        self.0.iter().flat_map(|block| block.rows()).collect()
    }

    fn set(&self, state: &mut S, arg: &OptArg) -> Option<Result<(), String>> {
        self.0.iter().find_map(|block| block.set(state.as_mut(), arg))
    }
}

/// A table, independent of its state.
pub trait Syntax: Sync {
    /// Returns the command for clap, for manual pages and completions, too.
    fn clap(&self) -> Command;
    /// Returns the usage line after `hakobu `.
    fn usage(&self) -> &'static str;
    /// Joins an option with the next word if that is one of its possible values.
    fn with_values(&self, arguments: &[OsString]) -> Vec<OsString>;
    /// Parses a command line.
    ///
    /// # Errors
    /// The mistake in it, or the help if that was requested.
    #[cfg(test)]
    fn parse(&self, arguments: &[OsString]) -> Result<Typed, Refused>;
}

impl<S> Syntax for Table<S> {
    fn clap(&self) -> Command {
        self.clap_beside(&self.taken_for_others())
    }

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn with_values(&self, arguments: &[OsString]) -> Vec<OsString> {
        Table::with_values(self, arguments)
    }

    #[cfg(test)]
    fn parse(&self, arguments: &[OsString]) -> Result<Typed, Refused> {
        Table::parse(self, arguments)
    }
}

pub(super) const PATHS: &str = "PATHS";

impl<S> Table<S> {
    fn clap_beside(&self, others: &BTreeSet<&'static str>) -> Command {
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
        for block in self.options {
            for (title, option) in block.rows() {
                let mut arg = option.arg().help_heading(title);
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
        }
        // With abbreviations, a complete option of the model must not be taken for an abbreviation of ours.
        command.args(
            others
                .iter()
                .map(|name| Arg::new(*name).long(*name).action(ArgAction::SetTrue).hide(true)),
        )
    }

    /// Returns the rows of all options.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row> {
        self.options.iter().flat_map(|block| block.rows()).map(|(_, row)| row)
    }

    /// Applies a command line to a state, in order.
    ///
    /// # Errors
    /// An invalid value.
    pub fn read(&self, typed: &Typed, mut state: S) -> Result<S, String> {
        for arg in &typed.options {
            let mut blocks = self.options.iter();
            blocks.find_map(|block| block.set(&mut state, arg)).unwrap_or_else(|| {
                Err(format!("--{} is not an option of {}", arg.name, self.command))
            })?;
        }
        for arg in &typed.noted {
            let row = self.rows().find(|row| row.name == arg.name);
            if let Some(Takes::PerhapsOneOf(_, values)) = row.map(|row| row.takes)
                && !arg.value.is_empty()
                && !values.iter().any(|value| arg.value == *value)
            {
                return Err(arg.refuse(&format!("is none of {}", values.join(", "))));
            }
        }
        Ok(state)
    }

    /// Rejects options that are invalid for the locations: `any` of them, or the `target`, is in `s3://`. Only
    /// explicit options are rejected; implied ones are ignored silently, as documented.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn check_places(&self, typed: &Typed, any: bool, target: bool) -> Result<(), String> {
        for OptArg { name, on, .. } in &typed.options {
            let row = self.rows().find(|row| row.name == *name);
            let why = match row.map_or(Fits::All, |row| row.fits) {
                Fits::Stored if !any => {
                    return Err(format!("--{name} is for s3:// locations, and none is given"));
                }
                Fits::Local(why) if any && *on => why,
                Fits::LocalTarget(why) if target && *on => why,
                _ => continue,
            };
            let dashes = if name.len() == 1 { "-" } else { "--" };
            let colon = if why.is_empty() { "" } else { ": " };
            return Err(format!("{dashes}{name} is not supported for s3://{colon}{why}"));
        }
        Ok(())
    }

    /// Returns the unbuilt options that one of ours begins with.
    fn taken_for_others(&self) -> BTreeSet<&'static str> {
        if !self.abbreviates {
            return BTreeSet::new();
        }
        let rows: Vec<&Row> = self.rows().collect();
        let built = |name: &str| {
            rows.iter().any(|row| {
                row.name == name || row.aliases.contains(&name) || row.off.contains(&name)
            })
        };
        let ours = |name: &str| rows.iter().any(|row| row.long && row.name.starts_with(name));
        let names = self.unbuilt().filter_map(|(spelling, _)| spelling.strip_prefix("--"));
        names.filter(|name| ours(name) && !built(name)).collect()
    }

    pub(super) fn unbuilt(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = self.unbuilt.iter().copied().flatten();
        all.flat_map(|(names, why)| names.split_whitespace().map(move |name| (name, *why)))
    }

    /// Returns the help of the command.
    pub fn help(&self) -> String {
        self.clap().render_help().to_string()
    }

    /// Parses a command line whose words are separated by spaces.
    #[cfg(test)]
    pub fn parse_line(&self, line: &str) -> Result<Typed, String> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        self.parse(&arguments).map_err(|refused| match refused {
            Refused::Help(_) => "help".to_owned(),
            Refused::Usage(message) | Refused::Failed { message, .. } => message,
        })
    }

    /// Parses a command line.
    ///
    /// # Errors
    /// The mistake in it, or the help if that was requested.
    pub fn parse(&self, arguments: &[OsString]) -> Result<Typed, Refused> {
        let others = self.taken_for_others();
        let matches = self
            .clap_beside(&others)
            .no_binary_name(true)
            .try_get_matches_from(self.with_values(arguments))
            .map_err(|error| self.refuse(&error))?;
        if let Some(name) = others.iter().find(|name| matches.get_flag(name)) {
            let message = self.not_built(&format!("--{name}"));
            return Err(Refused::Usage(
                message.unwrap_or_else(|| format!("--{name} is not supported")),
            ));
        }
        Ok(self.in_order(&matches))
    }
}
