//! Errors in filter rules and rule files.
//!
//! A message repeats what the command line says, but no line of a file, and no path that only a file names: a rule may
//! name any file that the user can read, and the messages may be read by others.

use hakobu_sys::errno;
use std::{error, fmt, io};

/// An invalid rule, or a rule file that cannot be read, with the rule, its origin and the reason.
#[derive(Debug)]
pub struct FilterError {
    /// As written; empty for one of a file.
    pub(super) rule: Vec<u8>,
    /// The option, or the file and line.
    pub(super) origin: String,
    reason: String,
    cause: Option<io::Error>,
}

impl FilterError {
    pub(super) fn new(rule: &[u8], origin: &str, reason: impl Into<String>) -> Self {
        Self { rule: rule.to_vec(), origin: origin.to_owned(), reason: reason.into(), cause: None }
    }

    /// Returns the error of a file that a rule names. The path is shown only if the rule is (`rule` is not empty).
    pub(super) fn unreadable(rule: &[u8], origin: &str, file: &[u8], cause: io::Error) -> Self {
        let reason = match rule {
            // rsync's words, for a path that is too long together with its directory.
            [] if cause.raw_os_error() == Some(errno::ENAMETOOLONG) => {
                format!("merge-file name overflows: {cause}")
            }
            [] => format!("cannot read the file that it names: {cause}"),
            _ => format!("cannot read {}: {cause}", file.escape_ascii()),
        };
        Self { cause: Some(cause), ..Self::new(rule, origin, reason) }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.rule {
            [] => write!(f, "filter rule at {}: {}", self.origin, self.reason),
            rule => {
                write!(
                    f,
                    "filter rule \"{}\" ({}): {}",
                    rule.escape_ascii(),
                    self.origin,
                    self.reason
                )
            }
        }
    }
}

const NAMED_AT: &str = " of a file named at ";
const EARLIER: &str = " (a file read earlier)";

/// Returns the origin of a line of a file. `shown`: path of the file; `None` for one that a line of a file names, the
/// origin of which is `named_at`.
pub(super) fn line_of(shown: Option<&[u8]>, named_at: &str, line: usize) -> String {
    match shown {
        Some(path) => format!("{} line {line}", path.escape_ascii()),
        None => {
            let first = named_at.split_once(NAMED_AT).map_or(named_at, |(_, first)| first);
            let first = first.strip_suffix(EARLIER).unwrap_or(first);
            format!("line {line}{NAMED_AT}{first}{EARLIER}")
        }
    }
}

/// Returns the text that stands for a rule in a file.
pub(super) fn line_text(origin: &str) -> Vec<u8> {
    format!("<rule from {origin}>").into_bytes()
}

impl error::Error for FilterError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
