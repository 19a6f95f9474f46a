//! Error messages for invalid command lines.

use super::{Refused, Table};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Maximum number of typing errors for a suggested option.
const ERRORS_MAX: usize = 2;

impl<S> Table<S> {
    /// Converts clap's error: an option of the command's model is refused with its reason, an unknown one with a
    /// similar spelling, if there is one.
    pub(super) fn refuse(&self, error: &clap::Error) -> Refused {
        if error.kind() == ErrorKind::DisplayHelp {
            return Refused::Help(error.to_string());
        }
        if error.kind() == ErrorKind::UnknownArgument
            && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg)
        {
            return Refused::Usage(self.not_built(typed).unwrap_or_else(|| self.unknown(typed)));
        }
        let text = error.to_string();
        Refused::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
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
        let near = spellings
            .map(|other| (strsim::levenshtein(bare, other), other))
            .min()
            .filter(|(errors, other)| *errors <= ERRORS_MAX && 2 * errors < other.len())
            .map_or(String::new(), |(_, other)| format!("\nhint: a similar option is '--{other}'"));
        let command = self.command;
        format!("unexpected argument '{name}' found (hakobu {command} --help){near}")
    }
}
