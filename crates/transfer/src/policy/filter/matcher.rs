//! A compiled rule: its pattern, the anchor, and the sides that it decides for.

use super::{
    deciding::{Deciding, Written},
    glob::Text,
    pattern::Pattern,
    rule::{Flags, MatchRule, Style},
};

/// Start of patterns with a leading slash, relative to the transfer's top.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    /// In the directory of this path, which ends in a slash or is empty for the top itself.
    Below(Vec<u8>),
    /// Above the top, which has this path below it (ends in a slash).
    Above(Vec<u8>),
}

/// The two ends of a transfer as absolute paths without the leading slash; empty or ending in a
/// slash.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub source: Vec<u8>,
    pub target: Vec<u8>,
}

/// An entry as matched by rules.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub path: &'a [u8],
    pub name: &'a [u8],
    pub is_dir: bool,
}

impl<'a> Entry<'a> {
    pub(super) fn new(path: &'a [u8], is_dir: bool) -> Self {
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        Self { path, name: path.get(start..).unwrap_or_default(), is_dir }
    }
}

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    pattern: Pattern,
    /// The pattern as written, for messages.
    text: Box<[u8]>,
    written: Written,
    anchor: Anchor,
    absolute: bool,
    /// The pattern uses only the last component, so neither anchor nor ends.
    name_only: bool,
    negate: bool,
    pub include: bool,
    pub perishable: bool,
    /// The pattern matches whole names (aws, s5cmd).
    pub whole: bool,
    /// It is from a per-directory file.
    pub in_directory: bool,
    /// It decides about names of extended attributes.
    pub xattr: bool,
    /// Decides whether the sending side excludes the entry.
    pub sender: bool,
    /// Decides whether the receiving side may delete the entry.
    pub receiver: bool,
}

impl Rule {
    /// Compiles a parsed rule of a per-directory file (`in_directory`) or of the options. `delete_excluded` makes
    /// rules without a side the sender's. `written`: where, for messages.
    pub(super) fn new(
        rule: &MatchRule,
        anchor: &Anchor,
        in_directory: bool,
        delete_excluded: bool,
        written: Written,
    ) -> Self {
        let Flags { absolute, negate, perishable, xattr, sender, receiver, style } = rule.flags;
        let both = !sender && !receiver;
        let pattern = match style {
            Style::Rsync => Pattern::new(&rule.pattern),
            Style::Aws => Pattern::whole(&rule.pattern, true),
            Style::S5cmd => Pattern::whole(&rule.pattern, false),
        };
        let name_only = pattern.name_only();
        let anchor = if pattern.anchored() { anchor.clone() } else { Anchor::Below(Vec::new()) };
        Self {
            pattern,
            text: rule.pattern.as_slice().into(),
            written,
            anchor,
            absolute: absolute && !name_only,
            name_only,
            negate,
            include: rule.include,
            whole: style != Style::Rsync,
            perishable,
            in_directory,
            xattr,
            sender: sender || both,
            receiver: receiver || (both && !delete_excluded),
        }
    }

    /// Returns what messages show of it.
    pub(super) fn shown(&self) -> Deciding<'_> {
        Deciding {
            include: self.include,
            pattern: Some(&*self.text).filter(|_| !self.written.in_file),
            list: self.written.list.as_deref(),
        }
    }

    /// Returns whether the two sides have to be checked separately, because the rule uses absolute paths.
    pub(super) fn absolute(&self) -> bool {
        self.absolute
    }

    /// Returns whether the rule matches `entry`. `end` is the absolute path of the checking side; only rules with the
    /// modifier `/` use it.
    pub(super) fn applies(&self, entry: Entry<'_>, end: &[u8]) -> bool {
        self.matches(entry, end) != self.negate
    }

    fn matches(&self, entry: Entry<'_>, end: &[u8]) -> bool {
        let text = if self.name_only {
            Text::of(entry.path)
        } else if self.absolute {
            Text { head: end, ..Text::of(entry.path) }
        } else {
            match &self.anchor {
                Anchor::Above(head) => Text { head, ..Text::of(entry.path) },
                Anchor::Below(dir) => match entry.path.strip_prefix(&**dir) {
                    Some(path) => Text::of(path),
                    None => return false,
                },
            }
        };
        self.pattern.matches(text, entry.name, entry.is_dir)
    }
}
