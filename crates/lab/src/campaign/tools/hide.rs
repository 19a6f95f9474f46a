//! What a record shows of values that may be secret: those of environment variables. Their names are shown, and the
//! placeholders in them whose values stand in the record anyway.

use super::template::{PlaceholderValues, Template};
use std::collections::BTreeSet;

/// Stands for what is not shown.
pub const HIDDEN: &str = "***";

/// Names of placeholders that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownPlaceholders(pub BTreeSet<String>);

impl ShownPlaceholders {
    /// A template as a text in which literal parts and other placeholders are hidden; `{name}` stands for those that
    /// are shown.
    pub fn template(&self, template: &Template) -> String {
        self.join(template, |name| Some(format!("{{{name}}}")))
    }

    /// The same with the values of those that are shown.
    pub fn text(&self, template: &Template, values: &PlaceholderValues) -> String {
        self.join(template, |name| Template::plain(&format!("{{{name}}}")).text(values).ok())
    }

    fn join(&self, template: &Template, shown: impl Fn(&str) -> Option<String>) -> String {
        let mut out = String::new();
        for part in template.parts() {
            let text = part.err().filter(|name| self.0.contains(*name)).and_then(&shown);
            match text {
                Some(text) => out.push_str(&text),
                None if part == Ok("") || out.ends_with(HIDDEN) => {}
                None => out.push_str(HIDDEN),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_placeholders_are_shown() {
        let shown = ShownPlaceholders(BTreeSet::from(["jobs".to_owned()]));
        let value = |text: &str| text.to_owned().into();
        let values = PlaceholderValues::from([
            ("jobs".into(), value("4")),
            ("token".into(), value("s3cr3t")),
        ]);
        for (text, template, filled) in [
            ("", "", ""),
            ("s3cr3t", "***", "***"),
            ("{jobs}", "{jobs}", "4"),
            ("{token}", "***", "***"),
            ("a{token}b", "***", "***"),
            ("s3cr3t-{jobs}-more", "***{jobs}***", "***4***"),
            ("{{jobs}}", "***", "***"),
        ] {
            let plain = Template::plain(text);
            assert_eq!(shown.template(&plain), template, "{text}");
            assert_eq!(shown.text(&plain, &values), filled, "{text}");
        }
    }
}
