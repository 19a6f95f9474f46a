//! Errors in filter rules and rule files.

use std::{error, fmt, io};

/// An invalid rule, or a rule file that cannot be read, with the rule, its origin and the reason.
#[derive(Debug)]
pub struct FilterError {
    rule: Vec<u8>,
    origin: String,
    reason: String,
    cause: Option<io::Error>,
}

impl FilterError {
    pub(super) fn new(rule: &[u8], origin: &str, reason: impl Into<String>) -> Self {
        Self { rule: rule.to_vec(), origin: origin.to_owned(), reason: reason.into(), cause: None }
    }

    pub(super) fn unreadable(rule: &[u8], origin: &str, file: &[u8], cause: io::Error) -> Self {
        let reason = format!("cannot read {}: {cause}", file.escape_ascii());
        Self { cause: Some(cause), ..Self::new(rule, origin, reason) }
    }

    /// Returns the text of the rule as written.
    #[must_use]
    pub fn rule(&self) -> &[u8] {
        &self.rule
    }

    /// Returns the option, or the file and line, that the rule came from.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter rule \"{}\" ({}): {}", self.rule.escape_ascii(), self.origin, self.reason)
    }
}

impl error::Error for FilterError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
