//! A command's option table: parsed by clap, with refusals by name, applied in command-line order.

use super::help::{self, ACCEPTED, HelpLength};
use super::{Fits, Opt, OptArg, Refused, Row, Takes, Typed};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// A command's syntax: its name, its usage and its options, which set a state `S`. Tables, groups and blocks
/// are statics: a constant is copied into each unit of compilation that uses it, and relocated at every start.
pub struct Table<S: 'static> {
    /// The command as typed after `hakobu`.
    pub command: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// What the command does, below that line in the help and as the description in the manual.
    pub description: &'static str,
    /// The usage line after `hakobu `.
    pub usage: &'static str,
    /// Command lines, each with its purpose. Tests run every one of them.
    pub examples: &'static [Example],
    /// Names of the options in the short help, in its order; none: those of the command's own groups.
    pub common: &'static [&'static str],
    /// Text below the options in the help.
    pub after: &'static str,
    /// Its options, in blocks that several commands may share.
    pub options: &'static [&'static dyn Block<S>],
    /// Options of its model that are not supported: spellings separated by spaces, and a reason or "".
    pub unbuilt: &'static [&'static [(&'static str, &'static str)]],
    /// Whether long options may be abbreviated as getopt_long(3) allows.
    pub abbreviates: bool,
}

/// A command line, and its purpose.
pub type Example = (&'static str, &'static str);

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
        self.0.iter().map(|row| (ACCEPTED, row)).collect()
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
    /// Returns the command for completions: its own options, with the words and kinds of their values.
    fn completed(&self) -> Command;
    /// Returns the usage line after `hakobu `.
    fn usage(&self) -> &'static str;
    /// Returns what the command does.
    fn description(&self) -> &'static str;
    /// Returns command lines, each with its purpose.
    fn examples(&self) -> &'static [Example];
    /// Returns the text below the options.
    fn after(&self) -> &'static str;
    /// Returns the help on `--help`, or the short one on `-h`.
    fn help(&self, length: HelpLength) -> String;
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
        self.clap_beside(&self.taken_for_others(), Row::arg)
    }

    fn completed(&self) -> Command {
        self.clap_beside(&BTreeSet::new(), Row::completed_arg)
    }

    fn usage(&self) -> &'static str {
        self.usage
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn examples(&self) -> &'static [Example] {
        self.examples
    }

    fn after(&self) -> &'static str {
        self.after
    }

    fn help(&self, length: HelpLength) -> String {
        help::render(self, length)
    }

    fn with_values(&self, arguments: &[OsString]) -> Vec<OsString> {
        Table::with_values(self, arguments)
    }

    #[cfg(test)]
    fn parse(&self, arguments: &[OsString]) -> Result<Typed, Refused> {
        Table::parse(self, arguments)
    }
}

/// One of the fixed words that a command's first operand can be: a subcommand, a shell, a topic. Shells complete them.
#[derive(Clone, Copy)]
pub struct Part {
    /// The word.
    pub name: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// The options behind it.
    pub options: PartOptions,
}

/// Options that go with a [`Part`].
#[derive(Clone, Copy)]
pub enum PartOptions {
    /// Those of the command that have such a name.
    Named(fn(&str) -> bool),
    /// Those of another table.
    Of(&'static dyn Syntax),
}

impl Part {
    /// Returns a word after which all options of the command are valid.
    pub const fn new(name: &'static str, about: &'static str) -> Part {
        Part { name, about, options: PartOptions::Named(|_| true) }
    }

    /// Restricts the options to those with such a name.
    pub const fn with(self, has: fn(&str) -> bool) -> Part {
        Part { options: PartOptions::Named(has), ..self }
    }

    /// Takes the options of another table.
    pub const fn of(self, table: &'static dyn Syntax) -> Part {
        Part { options: PartOptions::Of(table), ..self }
    }

    /// Returns the command line behind the word, for completions; `table` is that of the command.
    pub fn completed(&self, table: &dyn Syntax) -> Command {
        let own = match self.options {
            PartOptions::Named(has) => {
                let all = table.completed();
                let kept = |id: &str| [PATHS, SHORT_HELP, "help"].contains(&id) || has(id);
                let args = all.get_arguments().filter(|arg| kept(arg.get_id().as_str()));
                Command::new(self.name).args(args.cloned().collect::<Vec<_>>())
            }
            PartOptions::Of(table) => table.completed(),
        };
        own.name(self.name)
            .about(self.about)
            .disable_help_flag(true)
            .disable_version_flag(true)
            .version("-")
    }
}

pub(super) const PATHS: &str = "PATHS";

/// The internal name of `-h`.
pub(super) const SHORT_HELP: &str = "short-help";

impl<S> Table<S> {
    fn clap_beside(&self, others: &BTreeSet<&'static str>, arg_of: fn(&Row) -> Arg) -> Command {
        let mut command = Command::new(self.command)
            .about(self.about)
            .override_usage(self.usage)
            .disable_help_flag(true)
            .disable_version_flag(true)
            // `-h` is read as clap's version flag, which needs one.
            .version("-")
            .args_override_self(true)
            .infer_long_args(self.abbreviates)
            .arg(
                Arg::new(PATHS)
                    .num_args(0..)
                    .value_parser(value_parser!(OsString))
                    .action(ArgAction::Append)
                    .hide(true),
            );
        let mut rows: Vec<_> = self.options.iter().flat_map(|block| block.rows()).collect();
        rows.sort_by_key(|(title, _)| help::rank(title));
        let titles = ["Output", "Options"].into_iter();
        let title = titles.into_iter().find(|title| rows.iter().any(|(other, _)| other == title));
        let helps =
            self.help_rows().into_iter().map(|arg| arg.help_heading(title.unwrap_or("Options")));
        let mut helps: Vec<Arg> = helps.collect();
        let last = rows.iter().rposition(|(other, _)| Some(*other) == title);
        if last.is_none() {
            command = command.args(helps.drain(..));
        }
        for (at, (title, option)) in rows.into_iter().enumerate() {
            let mut arg = arg_of(option).help_heading(title);
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
            if Some(at) == last {
                command = command.args(helps.drain(..));
            }
        }
        // With abbreviations, a complete option of the model must not be taken for an abbreviation of ours.
        command.args(
            others
                .iter()
                .map(|name| Arg::new(*name).long(*name).action(ArgAction::SetTrue).hide(true)),
        )
    }

    /// Returns `--help`, and `-h` where that is no option of the command's own.
    fn help_rows(&self) -> Vec<Arg> {
        let whole = Arg::new("help").long("help").action(ArgAction::Help);
        let mut all = vec![whole.help("print this help")];
        if self.has_short_help() {
            // The other action that ends parsing at once, so that the two can be told apart.
            let short = Arg::new(SHORT_HELP).short('h').action(ArgAction::Version);
            all.insert(0, short.help("print the most common options only"));
        }
        all
    }

    /// Returns whether `-h` prints the short help.
    pub(super) fn has_short_help(&self) -> bool {
        self.rows().all(|row| row.short != Some('h'))
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
                return Err(arg.refuse(&format!("none of {}", values.join(", "))));
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
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            return Err(format!("{dashes}{name} is not supported for s3://{why}"));
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
            .clap_beside(&others, Row::arg)
            .no_binary_name(true)
            .try_get_matches_from(self.with_values(arguments))
            .map_err(|error| self.refuse(&error))?;
        if let Some(name) = others.iter().find(|name| matches.get_flag(name)) {
            let message = self.not_built(&format!("--{name}"));
            return Err(Refused::Usage(
                message.unwrap_or_else(|| format!("--{name} is not supported")),
            ));
        }
        let typed = self.in_order(&matches);
        match self.abbreviates {
            true => self.refuse_swallowing(arguments, &typed).map(|()| typed),
            false => Ok(typed),
        }
    }
}

// The options that clap found, in command-line order.

impl<S> Table<S> {
    /// Joins an option with the next word if that is one of its possible values.
    pub(super) fn with_values(&self, arguments: &[OsString]) -> Vec<OsString> {
        let mut joined: Vec<OsString> = Vec::with_capacity(arguments.len());
        let mut values: &[&str] = &[];
        for word in arguments {
            let text = word.to_str().unwrap_or_default();
            match joined.last_mut().filter(|_| values.contains(&text)) {
                Some(option) => {
                    option.push("=");
                    option.push(word);
                    values = &[];
                }
                None => {
                    joined.push(word.clone());
                    let row = text.strip_prefix("--");
                    let row = row.and_then(|name| self.rows().find(|row| row.name == name));
                    values = match row.map(|row| row.takes) {
                        Some(Takes::PerhapsOneOf(_, values)) => values,
                        _ => &[],
                    };
                }
            }
        }
        joined
    }

    pub(super) fn in_order(&self, matches: &ArgMatches) -> Typed {
        let mut found: Vec<(usize, OptArg)> = Vec::new();
        let arg = |name, on, count, value| OptArg { name, on, count, value };
        let typed =
            |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let rows: Vec<&Row> = self.rows().collect();
        for option in &rows {
            let name = option.name;
            if let Some(off) = option.off.first().filter(|off| typed(off)) {
                let last = matches.indices_of(off).and_then(|mut at| at.next_back()).unwrap_or(0);
                found.push((last, arg(name, false, 0, OsString::new())));
            }
            if !typed(name) {
                continue;
            }
            let Some(mut places) = matches.indices_of(name) else { continue };
            match option.takes {
                Takes::Nothing | Takes::Count => {
                    let counts = option.takes == Takes::Count;
                    let count = if counts { matches.get_count(name) } else { 1 };
                    let last = places.next_back();
                    found.extend(last.map(|at| (at, arg(name, true, count, "".into()))));
                }
                Takes::Marks => {
                    found.extend(places.map(|at| (at, arg(name, true, 1, "".into()))));
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
                        Some((*at.first()?, arg(name, true, 1, joined)))
                    }));
                }
                Takes::Value(_)
                | Takes::Values(_)
                | Takes::Perhaps(_)
                | Takes::PerhapsValues(_)
                | Takes::PerhapsOneOf(..) => {
                    let values = matches.get_many::<OsString>(name).into_iter().flatten();
                    found.extend(
                        places.zip(values).map(|(at, v)| (at, arg(name, true, 1, v.clone()))),
                    );
                }
            }
        }
        found.sort_by_key(|(at, _)| *at);
        let (mut notes, mut noted) = (Vec::new(), Vec::new());
        let mut options = Vec::with_capacity(found.len());
        for (_, arg) in found {
            let row = rows.iter().find(|row| row.name == arg.name);
            match row.and_then(|row| Some((*row, row.note?))) {
                Some((row, why)) => {
                    notes.push((spelling(row, arg.on), why));
                    noted.push(arg);
                }
                None => options.push(arg),
            }
        }
        Typed {
            options,
            noted,
            notes,
            paths: matches.get_many::<OsString>(PATHS).into_iter().flatten().cloned().collect(),
        }
    }
}

/// Returns an option as typed, without its value.
fn spelling(row: &Row, on: bool) -> String {
    match row.short {
        Some(short) if on => format!("-{short}"),
        _ if on => format!("--{}", row.name),
        _ => format!("--{}", row.off.first().unwrap_or(&row.name)),
    }
}

// Error messages for invalid command lines.

/// Maximum number of typing errors for a suggested option.
const ERRORS_MAX: usize = 2;

/// Options of other programs, the option here that does the same, and how to write it. The hint is for commands that have
/// that option.
const WORDS: &[(&str, &str, &str)] = &[
    ("threads", "jobs", "-j N sets the number of workers; the default finds it"),
    ("transfers", "jobs", "-j N sets the number of workers; the default finds it"),
    ("checkers", "jobs", "-j N sets the number of workers; the default finds it"),
    ("parallel", "jobs", "-j N sets the number of workers; the default finds it"),
    ("max-concurrent-requests", "jobs", "-j N sets the number of requests at once"),
    ("workers", "jobs", "-j N sets the number of workers; the default finds it"),
    ("multi-thread-streams", "concurrency", "--concurrency N sets the parts in flight per object"),
    ("s3-upload-concurrency", "concurrency", "--concurrency N sets the parts in flight per object"),
    ("s3-chunk-size", "part-size", "--part-size SIZE sets the size of parts"),
    ("multipart-chunk-size-mb", "part-size", "--part-size SIZE sets the size of parts"),
    ("tpslimit", "rps-limit", "--rps-limit N limits requests, --iops-limit N file operations"),
    ("bandwidth", "bwlimit", "--bwlimit RATE limits bytes per second"),
    ("limit-upload", "bwlimit", "--bwlimit RATE limits bytes per second"),
    ("limit-download", "bwlimit", "--bwlimit RATE limits bytes per second"),
    ("delete-removed", "delete", "--delete removes what SRC does not have"),
    ("remove", "delete", "--delete removes what SRC does not have"),
    ("overwrite", "ignore-times", "-I copies files of the same size and time as well"),
    ("skip-existing", "ignore-existing", "--ignore-existing copies only what DST does not have"),
    ("endpoint", "endpoint-url", "--endpoint-url URL names the server"),
    ("host", "endpoint-url", "--endpoint-url URL names the server"),
    ("s3-endpoint", "endpoint-url", "--endpoint-url URL names the server"),
    ("no-check-certificate", "no-verify-ssl", "--no-verify-ssl does not check certificates"),
    ("insecure", "no-verify-ssl", "--no-verify-ssl does not check certificates"),
    ("humanize", "human-readable", "-h prints sizes such as 1.5M"),
    ("human", "human-readable", "-h prints sizes such as 1.5M"),
];

impl<S> Table<S> {
    /// Converts clap's error: an option of the command's model is refused with its reason, an unknown one with a
    /// similar spelling, if there is one.
    pub(super) fn refuse(&self, error: &clap::Error) -> Refused {
        match error.kind() {
            ErrorKind::DisplayHelp => return Refused::Help(Syntax::help(self, HelpLength::Whole)),
            ErrorKind::DisplayVersion => {
                return Refused::Help(Syntax::help(self, HelpLength::Short));
            }
            _ => {}
        }
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        {
            return Refused::Usage(self.not_built(typed).unwrap_or_else(|| self.unknown(typed)));
        }
        if let Some(message) = self.without_value(error) {
            return Refused::Usage(message);
        }
        let text = error.to_string();
        Refused::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
    }

    /// Returns the message for an option that lacks its value.
    fn without_value(&self, error: &clap::Error) -> Option<String> {
        let lacks = match error.kind() {
            ErrorKind::WrongNumberOfValues => true,
            ErrorKind::InvalidValue => {
                let value = error.get(ContextKind::InvalidValue);
                matches!(value, Some(ContextValue::String(value)) if value.is_empty())
            }
            _ => false,
        };
        let Some(ContextValue::String(usage)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        let name = usage.split([' ', '=']).next().unwrap_or(usage);
        let values = if usage.matches('<').count() > 1 { "values" } else { "a value" };
        let usage = usage.replace(['<', '>'], "");
        let command = self.command;
        lacks.then(|| format!("{name} needs {values}: {usage} (hakobu {command} --help)"))
    }

    /// Refuses an abbreviation of an option that would take the next word and have no effect: it rather is a typing error,
    /// and the word an argument.
    fn refuse_swallowing(&self, arguments: &[OsString], typed: &Typed) -> Result<(), Refused> {
        let words = || arguments.iter().filter_map(|word| word.to_str());
        for arg in &typed.noted {
            let Some(row) = self.rows().find(|row| row.name == arg.name) else { continue };
            let is_whole = |word: &str| match word.strip_prefix("--") {
                Some(long) => {
                    let long = long.split('=').next().unwrap_or(long);
                    row.name == long || row.aliases.contains(&long)
                }
                None => row.short.is_some_and(|short| word.contains(short)),
            };
            let is_part = |word: &&str| {
                let long = word.strip_prefix("--").unwrap_or_default();
                !long.is_empty() && row.name.starts_with(long)
            };
            if !matches!(row.takes, Takes::Value(_)) || words().any(is_whole) {
                continue;
            }
            if let Some(word) = words().find(is_part) {
                return Err(Refused::Usage(self.unknown(word)));
            }
        }
        Ok(())
    }

    /// Returns the message for an option of the command's model that is not supported.
    pub(super) fn not_built(&self, typed: &str) -> Option<String> {
        let name = typed.split('=').next()?;
        let bare = name.trim_start_matches('-');
        let positive = bare.strip_prefix("no-").unwrap_or(bare);
        let (_, why) = self.unbuilt().find(|(spelling, _)| {
            let spelling = spelling.trim_start_matches('-');
            spelling == bare || (name.starts_with("--") && spelling == positive)
        })?;
        Some(if why.is_empty() {
            format!("{name} is not supported")
        } else {
            format!("{name} is not supported: {why}")
        })
    }

    fn unknown(&self, typed: &str) -> String {
        let name = typed.split('=').next().unwrap_or(typed);
        let bare = name.trim_start_matches('-');
        let spellings = self.rows().flat_map(|row| {
            let long = row.long.then_some(row.name);
            long.into_iter().chain(row.aliases.iter().copied()).chain(row.off.iter().copied())
        });
        let known = WORDS.iter().find(|(word, here, _)| {
            name.starts_with("--") && *word == bare && self.rows().any(|row| row.name == *here)
        });
        let near = spellings
            .map(|other| (strsim::levenshtein(bare, other), other))
            .min()
            .filter(|(errors, other)| *errors <= ERRORS_MAX && 2 * errors < other.len())
            .map_or(String::new(), |(_, other)| format!("\nhint: a similar option is '--{other}'"));
        let command = self.command;
        let hint = known.map_or(near, |(_, _, how)| format!("\nhint: {how}"));
        format!("unexpected argument '{name}' found (hakobu {command} --help){hint}")
    }
}
