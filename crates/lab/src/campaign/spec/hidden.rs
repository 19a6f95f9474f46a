//! The source text of a campaign without the values of environment variables: results hold it, and reports publish it.

use super::CampaignSpec;
use super::node::{self, Located, SourceText, SpecError, TomlEntry, TomlValue};
use crate::campaign::tools::{HIDDEN, Template};

/// The text with each value of `env`, and of parameters that go there, as the record shows it.
///
/// # Errors
/// It is not TOML.
pub(super) fn text(source: &SourceText<'_>, spec: &CampaignSpec) -> Result<String, SpecError> {
    let mut changes: Vec<(usize, usize, String)> = Vec::new();
    let top = node::read(source)?;
    let tools = listed(&top, "tool");
    for (spot, tool) in tools.iter().zip(&spec.tools) {
        let shown = spec.shown(tool);
        for (_, value) in entries(spot, "env") {
            // A value that is no text of its own has a kind and a place only.
            let new = match &value.value {
                TomlValue::Text(text) => shown.template(&Template::plain(text)),
                _ => HIDDEN.to_owned(),
            };
            changes.push((value.at, value.end, new));
        }
        for (name, value) in entries(spot, "set") {
            if spec.hides(tool, &name.value) {
                changes.push((value.at, value.end, HIDDEN.to_owned()));
            }
        }
    }
    changes.sort_unstable();
    let mut out = String::with_capacity(source.text.len());
    let mut from = 0;
    for (at, end, new) in changes {
        out.push_str(source.text.get(from..at).unwrap_or_default());
        out.push_str(&TomlValue::Text(new).quoted());
        from = end.max(from);
    }
    out.push_str(source.text.get(from..).unwrap_or_default());
    Ok(out)
}

/// Tables of a list.
fn listed<'a>(top: &'a [TomlEntry], key: &str) -> Vec<&'a Located<TomlValue>> {
    let found = top.iter().find(|(own, _)| own.value == key).map(|(_, spot)| &spot.value);
    match found {
        Some(TomlValue::List(tables)) => tables.iter().collect(),
        _ => Vec::new(),
    }
}

/// Entries of a subtable.
fn entries<'a>(table: &'a Located<TomlValue>, key: &str) -> &'a [TomlEntry] {
    let TomlValue::Table(entries) = &table.value else { return &[] };
    match entries.iter().find(|(own, _)| own.value == key).map(|(_, spot)| &spot.value) {
        Some(TomlValue::Table(entries)) => entries,
        _ => &[],
    }
}
