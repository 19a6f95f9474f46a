//! Rules as messages show them: which one decides about an entry (rsync(1), `--debug=FILTER`), and which ones of the
//! options hold something that is probably not meant.

use super::error::line_text;
use super::rule::{Flags, MatchRule, Style};
use std::sync::Arc;

/// Maximum length of a pattern, as in rsync (PATH_MAX without its NUL).
pub(super) const PATTERN_BYTES_MAX: usize = 4095;

/// The rule that decides about an entry on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deciding<'a> {
    /// The entry is transferred, or may be deleted.
    pub include: bool,
    /// Its pattern; `None` for a rule that a file contains, the text of which is not repeated.
    pub pattern: Option<&'a [u8]>,
    /// The list that it is part of, besides that of the options: `per-dir NAME` or `global CVS`.
    pub list: Option<&'a [u8]>,
}

/// Where a rule was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    /// In a file, instead of the command line.
    pub in_file: bool,
    /// See [`Deciding::list`].
    pub list: Option<Arc<[u8]>>,
}

/// Rules of the options that deserve a message, each as a part of rsync's.
#[derive(Clone, Debug, Default)]
pub struct Doubtful {
    /// Patterns that are too long to match anything, and so are not used; those of files by their origin.
    pub overlong: Vec<Vec<u8>>,
    /// Rules of the command line that end in a space or a tab, in rsync's short form.
    pub spaced: Vec<Vec<u8>>,
}

impl Doubtful {
    /// Adds a rule to the lists that it belongs to. Returns whether it is used.
    pub(super) fn check(&mut self, rule: &MatchRule, in_file: bool, origin: &str) -> bool {
        let pattern = &rule.pattern;
        if rule.flags.style == Style::Rsync && pattern.len() > PATTERN_BYTES_MAX {
            self.overlong.push(if in_file { line_text(origin) } else { pattern.clone() });
            return false;
        }
        if !in_file && matches!(pattern.last(), Some(b' ' | b'\t')) {
            self.spaced.push(short(rule));
        }
        true
    }
}

/// Returns a rule in rsync's short form: `-s PATTERN` for `H PATTERN`.
fn short(rule: &MatchRule) -> Vec<u8> {
    let Flags { absolute, negate, perishable, xattr, sender, receiver, style: _ } = rule.flags;
    let modifiers = [
        (absolute, b'/'),
        (negate, b'!'),
        (xattr, b'x'),
        (sender, b's'),
        (receiver, b'r'),
        (perishable, b'p'),
    ];
    let mut text = vec![if rule.include { b'+' } else { b'-' }];
    text.extend(modifiers.iter().filter(|(on, _)| *on).map(|(_, letter)| *letter));
    text.push(b' ');
    text.extend_from_slice(&rule.pattern);
    text
}
