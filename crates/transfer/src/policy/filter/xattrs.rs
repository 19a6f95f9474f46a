//! Rules for names of extended attributes (the modifier `x`). The first rule that applies decides, for each side
//! separately. Those of a directory's own files concern what is in it.

use std::sync::Arc;

use super::matcher::{Entry, Rule};

/// The rules with the modifier `x` of one side, in the order in which they are checked.
#[derive(Debug, Default)]
pub(super) struct XattrRules(Vec<Arc<Rule>>);

impl XattrRules {
    /// Takes them out of the rules of a directory; `None` if there are none.
    pub(super) fn take(order: &mut Vec<Arc<Rule>>) -> Option<Arc<XattrRules>> {
        let found: Vec<_> = order.extract_if(.., |rule| rule.xattr).collect();
        (!found.is_empty()).then(|| Arc::new(XattrRules(found)))
    }

    fn allow(&self, name: &[u8], decides: impl Fn(&Rule) -> bool) -> bool {
        let entry = Entry::new(name, false);
        let mut rules = self.0.iter().filter(|rule| decides(rule));
        rules.find(|rule| rule.applies(entry, b"")).is_none_or(|rule| rule.include)
    }
}

/// The rules with the modifier `x` that are in force in one directory.
#[derive(Clone, Debug, Default)]
pub struct XattrSides {
    /// Those of the options and of the source's files.
    pub(super) source: Option<Arc<XattrRules>>,
    /// Those of the options and of the target's files, where these are read.
    pub(super) target: Option<Arc<XattrRules>>,
    /// One of the target's files could not be read: it may keep any attribute.
    pub(super) is_unknown: bool,
}

impl XattrSides {
    /// Returns whether there are rules: they replace the limits to namespaces, as in rsync.
    #[must_use]
    pub fn any(&self) -> bool {
        self.source.is_some() || self.target.is_some()
    }

    /// Returns whether an attribute of the source is copied: neither side excludes its name.
    #[must_use]
    pub fn copies(&self, name: &[u8]) -> bool {
        let sends = |rules: &Arc<XattrRules>| rules.allow(name, |rule| rule.sender);
        self.source.as_ref().is_none_or(sends) && self.takes(name)
    }

    /// Returns whether an attribute that only the target has is removed: its side does not exclude the name.
    #[must_use]
    pub fn removes(&self, name: &[u8]) -> bool {
        !self.is_unknown && self.takes(name)
    }

    fn takes(&self, name: &[u8]) -> bool {
        let takes = |rules: &Arc<XattrRules>| rules.allow(name, |rule| rule.receiver);
        [&self.source, &self.target].into_iter().flatten().all(takes)
    }
}
