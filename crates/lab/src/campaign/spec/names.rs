//! Names in braces that commands may use, and what refuses others.

use super::node::Error;
use super::table::{Spot, Table};
use super::tool::Parameter;
use super::value;
use crate::campaign::tools::Template;
use std::collections::BTreeSet;

/// Names that stand for something in every command.
pub const FIXED: &[&str] = &[
    "bucket", "config", "cpus", "data", "dst", "endpoint", "list", "name", "options", "own",
    "prefix", "src", "work",
];

/// Names that commands may use.
pub(super) struct Names(pub BTreeSet<String>);

impl Names {
    /// Those of a campaign: the fixed ones, what is swept (and `NAME_max`), what follows the scale.
    pub fn of(sweep: &[Parameter], scaled: &[(String, u64, u64)]) -> Names {
        let mut names: BTreeSet<String> = FIXED.iter().map(|name| (*name).to_owned()).collect();
        names.extend(scaled.iter().map(|(name, ..)| name.clone()));
        for parameter in sweep {
            names.insert(parameter.name.clone());
            names.insert(format!("{}_max", parameter.name));
        }
        Names(names)
    }

    /// Refuses a template that uses another name.
    pub fn check(&self, template: &Template) -> Result<(), String> {
        let Some(name) = template.names().find(|name| !self.0.contains(*name)) else {
            return Ok(());
        };
        let hint = value::hint(name, self.0.iter().map(String::as_str));
        Err(format!("{{{name}}} stands for nothing here: sweep it or set it{hint}"))
    }

    /// Refuses a command that is none, or uses another name.
    pub fn command(
        &self,
        table: &Table<'_>,
        key: &str,
        spot: &Spot<String>,
    ) -> Result<Template, Error> {
        let template = Template::parse(&spot.value);
        let checked = template.and_then(|template| self.check(&template).map(|()| template));
        checked.map_err(|why| table.wrong(spot.at, key, why))
    }

    /// Refuses a text that is no command and uses another name.
    pub fn plain(
        &self,
        table: &Table<'_>,
        key: &str,
        spot: &Spot<String>,
    ) -> Result<Template, Error> {
        let template = Template::plain(&spot.value);
        self.check(&template).map_err(|why| table.wrong(spot.at, key, why))?;
        Ok(template)
    }
}
