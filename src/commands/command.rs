//! A command of the program, and the lookup by name. `list.rs` names all commands, so commands cannot import the
//! list: those that need it get it as an argument.

use crate::exit;
use crate::options::Syntax;
use crate::show::output;
use std::ffi::OsString;
use std::process::ExitCode;

/// One command of the program.
pub struct Command {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// Runs it.
    pub run: Run,
    /// Its options.
    pub table: &'static dyn Syntax,
}

/// The function of a command. Arguments are those after its name.
pub enum Run {
    /// Independent of other commands.
    Alone(fn(Vec<OsString>) -> ExitCode),
    /// Requires the list of commands.
    Among(fn(&'static [Command], Vec<OsString>) -> ExitCode),
}

impl Command {
    /// Runs it.
    pub fn run(&self, all: &'static [Command], arguments: Vec<OsString>) -> ExitCode {
        match self.run {
            Run::Alone(run) => run(arguments),
            Run::Among(run) => run(all, arguments),
        }
    }

    /// Returns whether it has an option of this internal name.
    pub fn has(&self, option: &str) -> bool {
        self.table.clap().get_arguments().any(|argument| argument.get_id() == option)
    }

    /// Returns the spellings of its options whose value may be the next word.
    pub fn spellings_before_values(&self) -> Vec<String> {
        let clap = self.table.clap();
        let takes = clap.get_arguments().filter(|argument| {
            argument.get_action().takes_values() && !argument.is_require_equals_set()
        });
        takes
            .flat_map(|argument| {
                let long = argument.get_long().into_iter().map(|long| format!("--{long}"));
                let aliases = argument.get_all_aliases().unwrap_or_default();
                let aliases = aliases.into_iter().map(|alias| format!("--{alias}"));
                let short = argument.get_short().map(|short| format!("-{short}"));
                long.chain(aliases).chain(short).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Commands that cargo features enable, and the feature of each.
pub const OPTIONAL: &[(&str, &str)] = &[
    ("watch", "lab"),
    ("bench", "lab"),
    ("io", "io"),
    ("results", "lab"),
    ("report", "lab"),
    ("compare", "lab"),
    ("demo", "lab,serve"),
    ("serve", "serve"),
];

/// Returns the command of a name.
pub fn find(all: &'static [Command], name: &str) -> Option<&'static Command> {
    all.iter().find(|command| command.name == name)
}

/// Reports an unknown command, with a suggestion.
pub fn unknown(all: &'static [Command], name: &str) -> ExitCode {
    if name == "select" {
        output::message("select is not supported: hakobu cat reads whole objects");
        return exit::USAGE.into();
    }
    if let Some((_, features)) = OPTIONAL.iter().find(|(command, _)| *command == name) {
        output::message(&format!(
            "this build has no '{name}'\nhint: build hakobu with --features {features}"
        ));
        return exit::USAGE.into();
    }
    let hint = match nearest(all, name) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "hakobu --help lists the commands, hakobu help topics the documentation".to_owned(),
    };
    output::message(&format!("there is no command '{name}'; {hint}"));
    exit::USAGE.into()
}

/// Returns the command within two typing errors of a name.
fn nearest(all: &'static [Command], name: &str) -> Option<&'static str> {
    let near = all.iter().map(|command| (strsim::levenshtein(name, command.name), command.name));
    near.min().filter(|(far, best)| *far <= 2 && *far < best.len()).map(|(_, best)| best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    #[test]
    fn typing_errors() {
        for (typed, meant) in [
            ("snyc", Some("sync")),
            ("sunc", Some("sync")),
            ("rsync", Some("sync")),
            ("copy", None),
            ("c", Some("cp")),
            ("mvv", Some("mv")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(COMMANDS, typed), meant, "{typed}");
        }
    }
}
