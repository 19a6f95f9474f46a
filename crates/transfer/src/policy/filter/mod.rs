//! rsync's filter language: which entries of a tree are excluded from a transfer (hidden) and which the target keeps
//! although the source lacks them (protected). Pure: rule files arrive as bytes through the caller's closures, and
//! the caller descends into directories: entries below a hidden directory are never checked.
//!
//! The reference is rsync(1), FILTER RULES. Intended differences from rsync 3.5.0:
//! - entries that per-directory files of the source protect are kept in the target as well, in addition to those that
//!   the target's own files protect, so that `--delete` and `--exclude` agree without transferring those files first;
//! - rules anchored in a directory whose own name holds wildcard characters work;
//! - a file that a per-directory file merges is searched for beside it even if its name has no slash;
//! - a dir-merge rule inside a per-directory file does not search directories above that one;
//! - rules for names of extended attributes (the modifier `x`) in per-directory files of the source concern both sides;
//!   rsync's receiving side does not know them when it sets attributes;
//! - in word-split files `- foo` is one rule, as in the manual page; rsync rejects it.

mod builder;
mod cvs;
mod deciding;
mod error;
mod glob;
mod list;
mod matcher;
mod origin;
mod pattern;
mod rule;
mod sides;
#[cfg(test)]
mod tests;
mod xattrs;

use std::sync::Arc;

pub use self::{
    builder::FilterBuilder,
    deciding::{Deciding, Doubtful},
    error::FilterError,
    list::ReadFile,
    origin::Origin,
    rule::Style,
    sides::SidedRules,
    xattrs::XattrSides,
};
use self::{
    list::{Item, Loader, Options, Place, Visit},
    matcher::{Anchor, Ends, Entry, Rule},
    xattrs::XattrRules,
};

/// The decision of the rules for one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The sending side excludes it from the transfer.
    pub hide: bool,
    /// The receiving side must not delete it.
    pub protect: bool,
}

/// The rules of a whole transfer. Immutable; built by [`FilterBuilder`].
#[derive(Debug)]
pub struct Filter {
    items: Vec<Item>,
    /// Those with the modifier `x`.
    xattrs: Option<Arc<XattrRules>>,
    options: Options,
    doubtful: Doubtful,
}

/// The rules in force in one directory: the filter's own and those of the per-directory files on the path to it.
#[derive(Debug)]
pub struct DirRules {
    items: Vec<Item>,
    /// The rules for entries in the order in which they are checked.
    order: Vec<Arc<Rule>>,
    /// The rules with the modifier `x`.
    xattrs: Option<Arc<XattrRules>>,
    /// Names of the dir-merge rules among the items.
    names: Vec<Vec<u8>>,
    /// Whether `order` lacks the rules of files above the transfer's top. rsync checks a source argument itself
    /// against the filter's own rules only.
    arguments_only: bool,
    ends: Arc<Ends>,
}

impl Filter {
    fn new(items: Vec<Item>, options: Options, doubtful: Doubtful) -> Self {
        let xattrs = XattrRules::take(&mut flat(&items));
        Self { items, xattrs, options, doubtful }
    }

    /// Returns the rules of the options that deserve a message.
    #[must_use]
    pub fn doubtful(&self) -> &Doubtful {
        &self.doubtful
    }

    /// Returns the options' rules for names of extended attributes.
    #[must_use]
    pub fn xattrs(&self) -> XattrSides {
        XattrSides { source: self.xattrs.clone(), ..XattrSides::default() }
    }

    /// Returns whether patterns match whole names below the source, regardless of the source's name.
    #[must_use]
    pub fn is_below_source(&self) -> bool {
        let mut rules =
            self.items.iter().filter(|item| !matches!(item, Item::Rule(rule) if rule.xattr));
        matches!(rules.next(), Some(Item::Rule(rule)) if rule.whole)
    }

    /// Returns whether there are no rules, and none to tell of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.doubtful.overlong.is_empty()
    }

    /// Returns whether [`Self::enter`] and [`Self::root`] can ever read a file.
    #[must_use]
    pub fn has_merge_files(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Merge(..)))
    }

    /// Returns whether a rule of the options names per-directory files of this name.
    #[must_use]
    pub fn is_merge_file(&self, name: &[u8]) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Merge(merge, _) if merge.name == name))
    }

    /// Returns the rules in force above the transfer's top, for one source argument: [`Self::check`] checks the
    /// argument itself against them, [`Self::enter`] continues from them. `read` loads the per-directory files of
    /// directories above it, if a rule requires them (`: /.rsync-filter`, `-F`), by absolute path; `Ok(None)` if
    /// there is none.
    ///
    /// # Errors
    /// Such a file cannot be read or holds an invalid rule.
    pub fn root(
        &self,
        origin: &Origin<'_>,
        read: &mut ReadFile<'_>,
    ) -> Result<Arc<DirRules>, FilterError> {
        let mut rules = DirRules::new(self.items.clone(), Arc::new(origin.ends()));
        if !self.has_merge_files() {
            return Ok(Arc::new(rules));
        }
        for dir in origin.above() {
            let place = || Place {
                anchor: origin.anchor(&dir),
                lead: dir.clone(),
                shown: dir.clone(),
                scanned: true,
            };
            let visit = Visit { lead: &dir, place: &place };
            let mut loader = Loader::new(&self.options, read, &rules.names);
            let covers = |lead: Option<&[u8]>| lead.is_some_and(|lead| origin.covers(lead, &dir));
            if let Some(items) =
                loader.enter(&rules.items, &visit, &|merge| covers(merge.scan_from.as_deref()))?
            {
                rules = DirRules::new(items, rules.ends);
                rules.arguments_only = true;
            }
        }
        if rules.arguments_only {
            let own = DirRules::new(self.items.clone(), Arc::clone(&rules.ends));
            (rules.order, rules.xattrs) = (own.order, own.xattrs);
        }
        Ok(Arc::new(rules))
    }

    /// Enters the directory `path` (from the transfer's top: empty for the top itself, `a/b` below) and returns the
    /// rules in force in it, which is `parent` again if nothing changes. `read` loads a per-directory file of this
    /// directory; `Ok(None)` if there is none. It gets plain names, except where a per-directory file itself merges
    /// another one: such a name is passed as written, relative to this directory or absolute, and the caller decides
    /// whether to reject names outside of the source.
    ///
    /// # Errors
    /// A file cannot be read or holds an invalid rule.
    pub fn enter(
        &self,
        parent: &Arc<DirRules>,
        path: &[u8],
        read: &mut ReadFile<'_>,
    ) -> Result<Arc<DirRules>, FilterError> {
        if parent.names.is_empty() {
            return Ok(Arc::clone(parent));
        }
        let place = || {
            let dir = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
            Place {
                anchor: Anchor::Below(dir.clone()),
                lead: Vec::new(),
                shown: dir,
                scanned: true,
            }
        };
        let visit = Visit { lead: b"", place: &place };
        let mut loader = Loader::new(&self.options, read, &parent.names);
        Ok(match loader.enter(&parent.items, &visit, &|_| true)? {
            Some(items) => Arc::new(DirRules::new(items, Arc::clone(&parent.ends))),
            None if parent.arguments_only => {
                Arc::new(DirRules::new(parent.items.clone(), Arc::clone(&parent.ends)))
            }
            None => Arc::clone(parent),
        })
    }

    /// Checks the entry `path` (from the transfer's top, without a leading slash) against the rules of its directory
    /// `dir`. The first rule that applies decides, for each side separately; without one the entry is neither hidden
    /// nor protected. `in_deleted_dir`: the entry is in a directory that is itself being removed, where perishable
    /// rules do not apply. Allocates nothing.
    #[must_use]
    pub fn check(
        &self,
        dir: &DirRules,
        path: &[u8],
        is_dir: bool,
        in_deleted_dir: bool,
    ) -> Decision {
        dir.decide(Entry::new(path, is_dir), in_deleted_dir)
    }

    /// Returns the rule that excludes the entry `path` from the transfer; see [`Self::check`].
    #[must_use]
    pub fn hiding<'a>(&self, dir: &'a DirRules, path: &[u8], is_dir: bool) -> Option<Deciding<'a>> {
        dir.sending(Entry::new(path, is_dir)).filter(|rule| !rule.include).map(Rule::shown)
    }
}

impl DirRules {
    fn new(items: Vec<Item>, ends: Arc<Ends>) -> Self {
        let mut order = flat(&items);
        let xattrs = XattrRules::take(&mut order);
        let names = list::names(&items);
        Self { items, order, xattrs, names, arguments_only: false, ends }
    }

    /// Returns the rule that decides for the sending side.
    fn sending(&self, entry: Entry<'_>) -> Option<&Rule> {
        let applies = |rule: &&Arc<Rule>| {
            let end: &[u8] = if rule.absolute() { &self.ends.source } else { b"" };
            rule.sender && rule.applies(entry, end)
        };
        self.order.iter().find(applies).map(|rule| &**rule)
    }

    /// Returns the rule that decides for the receiving side.
    fn receiving(&self, entry: Entry<'_>, in_deleted_dir: bool) -> Option<&Rule> {
        let applies = |rule: &&Arc<Rule>| {
            let end: &[u8] = if rule.absolute() { &self.ends.target } else { b"" };
            rule.receiver && !(in_deleted_dir && rule.perishable) && rule.applies(entry, end)
        };
        self.order.iter().find(applies).map(|rule| &**rule)
    }

    /// Returns the rule that decides for the receiving side, if it is from a per-directory file and protects the entry.
    fn protecting_file(&self, entry: Entry<'_>, in_deleted_dir: bool) -> Option<&Rule> {
        self.receiving(entry, in_deleted_dir).filter(|rule| rule.in_directory && !rule.include)
    }

    fn decide(&self, entry: Entry<'_>, in_deleted_dir: bool) -> Decision {
        let mut hide = None;
        let mut protect = None;
        for rule in &self.order {
            let sender = rule.sender && hide.is_none();
            let receiver = rule.receiver && protect.is_none();
            if !(sender || receiver) || (in_deleted_dir && rule.perishable) {
                continue;
            }
            let (source, target) = if rule.absolute() {
                let asked = |side: bool, end: &[u8]| side && rule.applies(entry, end);
                (asked(sender, &self.ends.source), asked(receiver, &self.ends.target))
            } else {
                let applies = rule.applies(entry, b"");
                (sender && applies, receiver && applies)
            };
            if source {
                hide = Some(!rule.include);
            }
            if target {
                protect = Some(!rule.include);
            }
            if hide.is_some() && protect.is_some() {
                break;
            }
        }
        Decision { hide: hide.unwrap_or(false), protect: protect.unwrap_or(false) }
    }
}

fn flat(items: &[Item]) -> Vec<Arc<Rule>> {
    let mut rules = Vec::new();
    flatten(items, &mut rules);
    rules
}

fn flatten(items: &[Item], into: &mut Vec<Arc<Rule>>) {
    for item in items {
        match item {
            Item::Rule(rule) => into.push(Arc::clone(rule)),
            Item::Merge(_, held) => flatten(held, into),
        }
    }
}
