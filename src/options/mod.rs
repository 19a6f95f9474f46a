//! Options as tables, and what was typed as a list in the order of the command line.
//!
//! Every command has one table ([`Opt`] holds name, value and help of an option) and one list of
//! the options that its model (rsync, cp, mv) has and we do not: those are refused by name. What
//! an option means is not decided here but by the command.

pub mod cp;
pub mod du;
mod filter;
pub mod ls;
pub mod mv;
mod opt;
pub mod rm;
pub mod sync;
pub mod verify;

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
    pub unbuilt: &'static [(&'static str, &'static str)],
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
    fn clap(&self) -> Command {
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
        command
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
                Takes::Value(_) | Takes::Values(_) | Takes::Perhaps(_) => {
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
        let (_, why) = self.unbuilt.iter().find(|(spelling, _)| {
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
mod tests {
    use super::*;

    fn parse(table: &Table, line: &str) -> Result<Typed, Refused> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        table.parse(&arguments)
    }

    fn spelled(table: &Table, line: &str) -> String {
        match parse(table, line) {
            Ok(typed) => {
                let options = typed.options.iter().map(|given| {
                    let sign = if given.on { "" } else { "!" };
                    let count =
                        if given.count > 1 { given.count.to_string() } else { String::new() };
                    format!("{sign}{}{count}{}", given.name, given.value.to_string_lossy())
                });
                let paths = typed.paths.iter().map(|path| format!("[{}]", path.to_string_lossy()));
                options.chain(paths).collect::<Vec<_>>().join(" ")
            }
            Err(Refused::Help(_)) => "help".to_owned(),
            Err(Refused::Usage(message) | Refused::Failed { message, .. }) => {
                message.lines().next().unwrap_or("").to_owned()
            }
        }
    }

    #[test]
    fn tables_are_sound() {
        for table in [
            &sync::TABLE,
            &cp::TABLE,
            &mv::TABLE,
            &rm::TABLE,
            &du::TABLE,
            &ls::TABLE,
            &verify::TABLE,
        ] {
            table.clap().debug_assert();
            assert!(table.help().contains(table.usage), "{}", table.command);
        }
    }

    #[test]
    fn order_is_kept() {
        for (line, expected) in [
            ("-avR s d", "archive verbose relative [s] [d]"),
            ("-a --no-o s d", "archive !owner [s] [d]"),
            ("--no-o -a s d", "!owner archive [s] [d]"),
            ("-o --no-owner -o s d", "owner [s] [d]"),
            ("-vv --no-v -v s", "verbose [s]"),
            ("-vvi s -i d", "verbose2 itemize-changes2 [s] [d]"),
            (
                "--include a --exclude=b -f -_c -F --include d -F",
                "includea excludeb filter-_c F included F",
            ),
            ("-F --exclude -x -FF", "F exclude-x F F"),
            ("--modify-window=-1 -@-1", "modify-window-1"),
            ("-j -2 -j+3", "jobs+3"),
            ("--bwlimit 1m --bwlimit 2m", "bwlimit2m"),
            ("-- -a --delete", "[-a] [--delete]"),
            ("s -a d --del", "archive delete-during [s] [d]"),
            ("--help", "help"),
        ] {
            assert_eq!(spelled(&sync::TABLE, line), expected, "{line}");
        }
    }

    #[test]
    fn unbuilt_options_are_named() {
        for (line, expected) in [
            ("--append a b", "--append is not built"),
            ("--backup-dir=x a b", "--backup-dir is not built"),
            ("--backup-dir x a b", "--backup-dir is not built"),
            (
                "-avz a b",
                "-z is not built: nothing leaves this machine, so there is nothing to compress",
            ),
            (
                "--no-compress a b",
                "--no-compress is not built: nothing leaves this machine, so there is nothing to compress",
            ),
            ("-e ssh a b", "-e is not built: there are no remote locations"),
            ("--nosuch a b", "unexpected argument '--nosuch' found"),
            ("--exclude", "a value is required for '--exclude <PATTERN>' but none was supplied"),
        ] {
            assert_eq!(spelled(&sync::TABLE, line), expected, "{line}");
        }
    }

    #[test]
    fn getopt_abbreviates() {
        assert_eq!(
            spelled(&cp::TABLE, "--rec --refl=never --preserve a b"),
            "recursive reflinknever preserve [a] [b]"
        );
        assert_eq!(spelled(&cp::TABLE, "--backup a b"), "--backup is not built");
        assert_eq!(spelled(&mv::TABLE, "-Z a b"), "-Z is not built");
    }

    #[test]
    fn names_need_not_be_text() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"a\xff".to_vec());
        let mut joined = OsString::from("--exclude=");
        joined.push(&odd);
        let typed = sync::TABLE.parse(&[joined, odd.clone()]);
        let typed = typed.unwrap_or_default();
        assert_eq!(typed.paths, std::slice::from_ref(&odd));
        assert_eq!(typed.options.first().map(|given| given.value.clone()), Some(odd));
    }

    proptest::proptest! {
        #[test]
        fn any_command_line_is_taken_or_refused(
            words in proptest::collection::vec("-{0,2}[a-zA-Z0-9@=./+%é-]{0,8}", 0..6),
        ) {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            for table in [&sync::TABLE, &cp::TABLE, &mv::TABLE] {
                if let Ok(typed) = table.parse(&arguments) {
                    proptest::prop_assert!(typed.paths.len() <= words.len());
                }
            }
        }
    }
}
