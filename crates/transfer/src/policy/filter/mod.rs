//! rsync's filter language: which entries of a tree are left out of a transfer (hidden) and which
//! the target keeps although the source lacks them (protected). Pure: files of rules arrive as
//! bytes through the caller's closures, and descending into directories is the caller's part, too:
//! nothing below a hidden directory is ever asked about.
//!
//! The source of every meaning is rsync(1), FILTER RULES. Wanted differences from rsync 3.5.0:
//! - per-directory files are read from the source for both sides, so that `--delete` and `--exclude`
//!   agree without transferring those files first;
//! - rules anchored in a directory whose own name holds wildcard characters work;
//! - a file that a per-directory file merges is looked for beside it even when its name has no slash;
//! - a dir-merge rule inside a per-directory file looks at no directories above that one;
//! - the modifier `x` (rules for names of extended attributes) is refused by name;
//! - in word-split files `- foo` is one rule, as the manual page says and the program refuses.

mod builder;
mod cvs;
mod error;
mod glob;
mod list;
mod matcher;
mod origin;
mod pattern;
mod rule;
#[cfg(test)]
mod tests;

use std::{io, sync::Arc};

pub use self::{builder::FilterBuilder, error::FilterError, origin::Origin};
use self::{
    list::{Item, Loader, Options, Place, Visit},
    matcher::{Anchor, Ends, Entry, Rule},
};

/// What the rules say of one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The sending side leaves it out of the transfer.
    pub hide: bool,
    /// The receiving side must not delete it.
    pub protect: bool,
}

/// Loads a per-directory file by name; `Ok(None)` where there is none.
pub type ReadFile<'a> = dyn FnMut(&[u8]) -> io::Result<Option<Vec<u8>>> + 'a;

/// The rules of a whole transfer. Immutable; made by [`FilterBuilder`].
#[derive(Debug)]
pub struct Filter {
    items: Vec<Item>,
    options: Options,
}

/// The rules in force in one directory: the filter's own and those of the per-directory files on
/// the way there.
#[derive(Debug)]
pub struct DirRules {
    items: Vec<Item>,
    /// The same rules in the order in which they are asked.
    order: Vec<Arc<Rule>>,
    /// Names of the dir-merge rules among the items.
    names: Vec<Vec<u8>>,
    /// Whether the order leaves out what the files above the transfer's top say. rsync asks only
    /// the filter's own rules about a source argument itself.
    arguments_only: bool,
    ends: Arc<Ends>,
}

impl Filter {
    fn new(items: Vec<Item>, options: Options) -> Self {
        Self { items, options }
    }

    /// Whether there are no rules at all, so that nothing needs to be asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether [`Self::enter`] and [`Self::root`] can ever read anything.
    #[must_use]
    pub fn has_merge_files(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Merge(..)))
    }

    /// The rules in force above the transfer's top, for one source argument: [`Self::check`] asks
    /// them about the argument itself, [`Self::enter`] goes on from them. `read` loads the
    /// per-directory files of directories above it, where a rule asks for them (`: /.rsync-filter`,
    /// `-F`), by absolute path; `Ok(None)` where there is none.
    ///
    /// # Errors
    /// When such a file cannot be read or holds a rule that is refused.
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
            rules.order = own.order;
        }
        Ok(Arc::new(rules))
    }

    /// Enters the directory `path` (from the transfer's top: empty for the top itself, `a/b`
    /// below): the rules in force in it, which is `parent` again when nothing changes. `read` loads
    /// a per-directory file of this directory; `Ok(None)` where there is none. It is asked for
    /// plain names, except where a per-directory file itself merges another one: such a name comes
    /// as it was written, relative to this directory or absolute, and to refuse those that leave
    /// the source is the caller's decision.
    ///
    /// # Errors
    /// When a file cannot be read or holds a rule that is refused.
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

    /// What the rules of the directory `dir` say of its entry `path` (from the transfer's top,
    /// without a leading slash). The first rule that applies decides, for each side on its own;
    /// without one the entry is neither hidden nor protected. `in_deleted_dir` says that the entry
    /// lies in a directory that is itself being removed, where perishable rules do not count.
    /// Allocates nothing.
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
}

impl DirRules {
    fn new(items: Vec<Item>, ends: Arc<Ends>) -> Self {
        let mut order = Vec::new();
        flatten(&items, &mut order);
        let names = list::names(&items);
        Self { items, order, names, arguments_only: false, ends }
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

fn flatten(items: &[Item], into: &mut Vec<Arc<Rule>>) {
    for item in items {
        match item {
            Item::Rule(rule) => into.push(Arc::clone(rule)),
            Item::Merge(_, held) => flatten(held, into),
        }
    }
}
