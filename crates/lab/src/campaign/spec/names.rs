//! Placeholders available to commands, and the check for unknown ones.

use super::value;
use crate::campaign::tools::Template;
use std::collections::BTreeSet;

/// Placeholders available in every command.
pub const FIXED: &[&str] = &[
    "bucket", "config", "cpus", "data", "dst", "endpoint", "list", "name", "options", "own",
    "prefix", "src", "work",
];

/// A set of available placeholders.
pub(super) struct Placeholders(pub BTreeSet<String>);

/// A parameter with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptParameter {
    /// Name of the placeholder.
    pub name: String,
    /// Values as inserted into the command.
    pub values: Vec<String>,
}

impl Placeholders {
    /// Placeholders of a campaign: fixed ones, swept parameters (and `NAME_max`), scaled sizes.
    pub fn of(sweep: &[SweptParameter], scaled: &[(String, u64, u64)]) -> Placeholders {
        let mut names: BTreeSet<String> = FIXED.iter().map(|name| (*name).to_owned()).collect();
        names.extend(scaled.iter().map(|(name, ..)| name.clone()));
        for parameter in sweep {
            names.insert(parameter.name.clone());
            names.insert(format!("{}_max", parameter.name));
        }
        Placeholders(names)
    }

    /// Fails if a template uses an unknown placeholder.
    fn check(&self, template: &Template) -> Result<(), String> {
        let Some(name) = template.names().find(|name| !self.0.contains(*name)) else {
            return Ok(());
        };
        let hint = value::hint(name, self.0.iter().map(String::as_str));
        Err(format!("{{{name}}} is not defined: sweep it or set it{hint}"))
    }

    /// Parses a command; fails on a syntax error or unknown placeholder.
    pub fn command(&self, text: &str) -> Result<Template, String> {
        let template = Template::parse(text)?;
        self.check(&template).map(|()| template)
    }

    /// Parses a text other than a command; fails on an unknown placeholder.
    pub fn plain(&self, text: &str) -> Result<Template, String> {
        let template = Template::plain(text);
        self.check(&template).map(|()| template)
    }
}
