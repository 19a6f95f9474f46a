//! Rules for names of extended attributes (the modifier `x`). They come from the options and the files that those
//! merge; the first rule that applies decides, for each side separately.

use std::sync::Arc;

use super::{
    list::Item,
    matcher::{Entry, Rule},
};

/// The rules with the modifier `x`, in the order in which they are checked.
#[derive(Debug, Default)]
pub struct XattrRules(Vec<Arc<Rule>>);

impl XattrRules {
    /// Separates them from the rules for entries.
    pub(super) fn split(items: Vec<Item>) -> (XattrRules, Vec<Item>) {
        let mut found = Vec::new();
        let mut others = Vec::new();
        for item in items {
            match item {
                Item::Rule(rule) if rule.xattr => found.push(rule),
                other => others.push(other),
            }
        }
        (XattrRules(found), others)
    }

    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an attribute of the source is copied: neither side excludes its name.
    #[must_use]
    pub fn copies(&self, name: &[u8]) -> bool {
        self.allow(name, |rule| rule.sender) && self.removes(name)
    }

    /// Returns whether an attribute that only the target has is removed: its side does not exclude the name.
    #[must_use]
    pub fn removes(&self, name: &[u8]) -> bool {
        self.allow(name, |rule| rule.receiver)
    }

    fn allow(&self, name: &[u8], decides: impl Fn(&Rule) -> bool) -> bool {
        let entry = Entry::new(name, false);
        let mut rules = self.0.iter().filter(|rule| decides(rule));
        rules.find(|rule| rule.applies(entry, b"")).is_none_or(|rule| rule.include)
    }
}
