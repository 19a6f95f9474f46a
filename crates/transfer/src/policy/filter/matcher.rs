//! A compiled rule: its pattern, what it is measured from, and what it decides.

use super::{
    glob::Text,
    pattern::Pattern,
    rule::{Flags, MatchRule},
};

/// Where patterns with a leading slash begin, as seen from the transfer's top.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    /// In the directory of this path, which ends in a slash or is empty for the top itself.
    Below(Vec<u8>),
    /// Above the top, which lies at this path below it (ends in a slash).
    Above(Vec<u8>),
}

/// The two ends of a transfer as absolute paths without the leading slash; empty or ending in a
/// slash.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub source: Vec<u8>,
    pub target: Vec<u8>,
}

/// One entry, as rules see it.
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

/// A rule that is ready to be asked.
#[derive(Debug)]
pub(super) struct Rule {
    pattern: Pattern,
    anchor: Anchor,
    absolute: bool,
    /// The pattern needs no more than the last component, so neither anchor nor ends.
    name_only: bool,
    negate: bool,
    pub include: bool,
    pub perishable: bool,
    /// Decides whether the sending side leaves the entry out.
    pub sender: bool,
    /// Decides whether the receiving side may delete the entry.
    pub receiver: bool,
}

impl Rule {
    /// Compiles a parsed rule. `delete_excluded` makes rules without a side the sender's.
    pub(super) fn new(rule: &MatchRule, anchor: &Anchor, delete_excluded: bool) -> Self {
        let Flags { absolute, negate, perishable, sender, receiver } = rule.flags;
        let both = !sender && !receiver;
        let pattern = Pattern::new(&rule.pattern);
        let name_only = pattern.name_only();
        let anchor = if pattern.anchored() { anchor.clone() } else { Anchor::Below(Vec::new()) };
        Self {
            pattern,
            anchor,
            absolute: absolute && !name_only,
            name_only,
            negate,
            include: rule.include,
            perishable,
            sender: sender || both,
            receiver: receiver || (both && !delete_excluded),
        }
    }

    /// Whether the two sides have to be asked separately, because the rule looks at absolute paths.
    pub(super) fn absolute(&self) -> bool {
        self.absolute
    }

    /// Whether the rule takes effect on `entry`. `end` is the absolute path of the side that asks;
    /// only rules with the modifier `/` look at it.
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
