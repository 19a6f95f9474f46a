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

mod list;
mod pattern;
mod rule;
#[cfg(test)]
mod tests;

use self::list::{ListElement, ListOptions, Loader, RulesDirectory, Visit};
use self::rule::{Flags, MatchRule};
pub use super::filter::list::ReadFile;
pub use super::filter::rule::Style;
use crate::policy::filter::pattern::{Anchor, CompiledRule, FilterEntry, FilterRoots};
use crate::policy::filter::rule::line_text;
pub use crate::policy::filter::rule::{FilterBuilder, FilterError};
use std::sync::Arc;

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
    items: Vec<ListElement>,
    /// Those with the modifier `x`.
    xattrs: Option<Arc<XattrRules>>,
    options: ListOptions,
    doubtful: Doubtful,
}

/// The rules in force in one directory: the filter's own and those of the per-directory files on the path to it.
#[derive(Debug)]
pub struct DirRules {
    items: Vec<ListElement>,
    /// The rules for entries in the order in which they are checked.
    order: Vec<Arc<CompiledRule>>,
    /// The rules with the modifier `x`.
    xattrs: Option<Arc<XattrRules>>,
    /// Names of the dir-merge rules among the items.
    names: Vec<Vec<u8>>,
    /// Whether `order` lacks the rules of files above the transfer's top. rsync checks a source argument itself
    /// against the filter's own rules only.
    arguments_only: bool,
    ends: Arc<FilterRoots>,
}

impl Filter {
    fn new(items: Vec<ListElement>, options: ListOptions, doubtful: Doubtful) -> Self {
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

    /// Returns the filter without the rules that decide about entries: those for names of extended attributes. `None` if
    /// there are none of them.
    #[must_use]
    pub fn of_xattrs(&self) -> Option<Filter> {
        let is_kept = |item: &&ListElement| matches!(item, ListElement::Rule(rule) if rule.xattr);
        let items: Vec<ListElement> = self.items.iter().filter(is_kept).cloned().collect();
        (!items.is_empty()).then(|| Filter::new(items, ListOptions::default(), Doubtful::default()))
    }

    /// Returns whether patterns match whole names below the source, regardless of the source's name.
    #[must_use]
    pub fn is_below_source(&self) -> bool {
        let mut rules =
            self.items.iter().filter(|item| !matches!(item, ListElement::Rule(rule) if rule.xattr));
        matches!(rules.next(), Some(ListElement::Rule(rule)) if rule.whole)
    }

    /// Returns whether there are no rules, and none to tell of.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.doubtful.overlong.is_empty()
    }

    /// Returns whether [`Self::enter`] and [`Self::root`] can ever read a file.
    #[must_use]
    pub fn has_merge_files(&self) -> bool {
        self.items.iter().any(|item| matches!(item, ListElement::Merge(..)))
    }

    /// Returns whether a rule of the options names per-directory files of this name.
    #[must_use]
    pub fn is_merge_file(&self, name: &[u8]) -> bool {
        self.items
            .iter()
            .any(|item| matches!(item, ListElement::Merge(merge, _) if merge.name == name))
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
            let place = || RulesDirectory {
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
            RulesDirectory {
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
        dir.decide(FilterEntry::new(path, is_dir), in_deleted_dir)
    }

    /// Returns the rule that excludes the entry `path` from the transfer; see [`Self::check`].
    #[must_use]
    pub fn hiding<'a>(&self, dir: &'a DirRules, path: &[u8], is_dir: bool) -> Option<Deciding<'a>> {
        dir.sending(FilterEntry::new(path, is_dir))
            .filter(|rule| !rule.include)
            .map(CompiledRule::shown)
    }
}

impl DirRules {
    fn new(items: Vec<ListElement>, ends: Arc<FilterRoots>) -> Self {
        let mut order = flat(&items);
        let xattrs = XattrRules::take(&mut order);
        let names = list::names(&items);
        Self { items, order, xattrs, names, arguments_only: false, ends }
    }

    /// Returns the rule that decides for the sending side.
    fn sending(&self, entry: FilterEntry<'_>) -> Option<&CompiledRule> {
        let applies = |rule: &&Arc<CompiledRule>| {
            let end: &[u8] = if rule.absolute() { &self.ends.source } else { b"" };
            rule.sender && rule.applies(entry, end)
        };
        self.order.iter().find(applies).map(|rule| &**rule)
    }

    /// Returns the rule that decides for the receiving side.
    fn receiving(&self, entry: FilterEntry<'_>, in_deleted_dir: bool) -> Option<&CompiledRule> {
        let applies = |rule: &&Arc<CompiledRule>| {
            let end: &[u8] = if rule.absolute() { &self.ends.target } else { b"" };
            rule.receiver && !(in_deleted_dir && rule.perishable) && rule.applies(entry, end)
        };
        self.order.iter().find(applies).map(|rule| &**rule)
    }

    /// Returns the rule that decides for the receiving side, if it is from a per-directory file and protects the entry.
    fn protecting_file(
        &self,
        entry: FilterEntry<'_>,
        in_deleted_dir: bool,
    ) -> Option<&CompiledRule> {
        self.receiving(entry, in_deleted_dir).filter(|rule| rule.in_directory && !rule.include)
    }

    fn decide(&self, entry: FilterEntry<'_>, in_deleted_dir: bool) -> Decision {
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

fn flat(items: &[ListElement]) -> Vec<Arc<CompiledRule>> {
    let mut rules = Vec::new();
    flatten(items, &mut rules);
    rules
}

fn flatten(items: &[ListElement], into: &mut Vec<Arc<CompiledRule>>) {
    for item in items {
        match item {
            ListElement::Rule(rule) => into.push(Arc::clone(rule)),
            ListElement::Merge(_, held) => flatten(held, into),
        }
    }
}

// Rules as messages show them: which one decides about an entry (rsync(1), `--debug=FILTER`), and which ones of the
// options hold something that is probably not meant.

/// Maximum length of a pattern, as in rsync (PATH_MAX without its NUL).
const PATTERN_BYTES_MAX: usize = 4095;

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
struct Written {
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
    fn check(&mut self, rule: &MatchRule, in_file: bool, origin: &str) -> bool {
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

// The rules of one directory on both sides of a transfer. The source's files exclude entries, the target's own files
// protect entries from deletion; the source's files protect as well.

/// The rules in force in one directory.
#[derive(Clone, Debug)]
pub struct SidedRules {
    source: Arc<DirRules>,
    target: Target,
}

/// The rules of the target's per-directory files.
#[derive(Clone, Debug)]
enum Target {
    /// Not read: nothing is deleted here, or no rule names such files.
    AsSource,
    Own(Arc<DirRules>),
    /// One of them could not be read: it may protect anything.
    Unknown,
}

impl SidedRules {
    /// Makes the rules of a directory whose target side is not needed.
    #[must_use]
    pub fn new(source: Arc<DirRules>) -> SidedRules {
        SidedRules { source, target: Target::AsSource }
    }

    /// Adds the rules of the target's files; `None` if they are not known.
    #[must_use]
    pub fn with_target(self, target: Option<Arc<DirRules>>) -> SidedRules {
        SidedRules { target: target.map_or(Target::Unknown, Target::Own), ..self }
    }

    #[must_use]
    pub fn source(&self) -> &Arc<DirRules> {
        &self.source
    }

    /// Returns the rules that the target's files extend further down; `None` if they are not known.
    #[must_use]
    pub fn target(&self) -> Option<&Arc<DirRules>> {
        match &self.target {
            Target::AsSource => Some(&self.source),
            Target::Own(rules) => Some(rules),
            Target::Unknown => None,
        }
    }

    /// Returns the rules for extended attributes of the entries in the directory.
    #[must_use]
    pub fn xattrs(&self) -> XattrSides {
        let (target, is_unknown) = match &self.target {
            Target::AsSource => (None, false),
            Target::Own(rules) => (rules.xattrs.clone(), false),
            Target::Unknown => (None, true),
        };
        XattrSides { source: self.source.xattrs.clone(), target, is_unknown }
    }

    /// Enters the directory `path` that only the target has. `read` loads its per-directory files.
    ///
    /// # Errors
    /// As [`Filter::enter`]; everything in that directory is protected then.
    pub fn enter_target(
        &self,
        filter: &Filter,
        path: &[u8],
        read: &mut ReadFile<'_>,
    ) -> (SidedRules, Result<(), FilterError>) {
        let Some(target) = self.target() else { return (self.clone(), Ok(())) };
        // The source has no such directory: its inherited rules apply.
        let inherited = filter.enter(&self.source, path, &mut |_| Ok(None));
        let source = inherited.unwrap_or_else(|_| Arc::clone(&self.source));
        match filter.enter(target, path, read) {
            Ok(rules) => (SidedRules::new(source).with_target(Some(rules)), Ok(())),
            Err(error) => (SidedRules::new(source).with_target(None), Err(error)),
        }
    }

    /// Returns whether the sending side excludes the entry. See [`Filter::check`].
    #[must_use]
    pub fn hides(&self, path: &[u8], is_dir: bool) -> bool {
        self.source.decide(FilterEntry::new(path, is_dir), false).hide
    }

    /// Returns the rule that decides whether the sending side excludes the entry, for messages.
    #[must_use]
    pub fn sending(&self, path: &[u8], is_dir: bool) -> Option<Deciding<'_>> {
        self.source.sending(FilterEntry::new(path, is_dir)).map(CompiledRule::shown)
    }

    /// Returns the rule that decides whether the receiving side keeps the entry, for messages; `None` also where that
    /// is not known. See [`SidedRules::protects`].
    #[must_use]
    pub fn receiving(
        &self,
        path: &[u8],
        is_dir: bool,
        in_deleted_dir: bool,
    ) -> Option<Deciding<'_>> {
        let entry = FilterEntry::new(path, is_dir);
        let found = match &self.target {
            Target::AsSource => self.source.receiving(entry, in_deleted_dir),
            Target::Own(target) => {
                let own = target.receiving(entry, in_deleted_dir);
                let of_source = || self.source.protecting_file(entry, in_deleted_dir);
                own.filter(|rule| !rule.include).or_else(of_source).or(own)
            }
            Target::Unknown => None,
        };
        found.map(CompiledRule::shown)
    }

    /// Returns whether the receiving side keeps the entry: rsync's result, which uses the target's files only, or a
    /// rule of the source's files. See [`Filter::check`].
    #[must_use]
    pub fn protects(&self, path: &[u8], is_dir: bool, in_deleted_dir: bool) -> bool {
        let entry = FilterEntry::new(path, is_dir);
        let protect = |rules: &DirRules| rules.decide(entry, in_deleted_dir).protect;
        match &self.target {
            Target::AsSource => protect(&self.source),
            Target::Own(target) => {
                protect(target) || self.source.protecting_file(entry, in_deleted_dir).is_some()
            }
            Target::Unknown => true,
        }
    }
}

// Rules for names of extended attributes (the modifier `x`). The first rule that applies decides, for each side
// separately. Those of a directory's own files concern what is in it.

/// The rules with the modifier `x` of one side, in the order in which they are checked.
#[derive(Debug, Default)]
struct XattrRules(Vec<Arc<CompiledRule>>);

impl XattrRules {
    /// Takes them out of the rules of a directory; `None` if there are none.
    fn take(order: &mut Vec<Arc<CompiledRule>>) -> Option<Arc<XattrRules>> {
        let found: Vec<_> = order.extract_if(.., |rule| rule.xattr).collect();
        (!found.is_empty()).then(|| Arc::new(XattrRules(found)))
    }

    fn allow(&self, name: &[u8], decides: impl Fn(&CompiledRule) -> bool) -> bool {
        let entry = FilterEntry::new(name, false);
        let mut rules = self.0.iter().filter(|rule| decides(rule));
        rules.find(|rule| rule.applies(entry, b"")).is_none_or(|rule| rule.include)
    }
}

/// The rules with the modifier `x` that are in force in one directory.
#[derive(Clone, Debug, Default)]
pub struct XattrSides {
    /// Those of the options and of the source's files.
    source: Option<Arc<XattrRules>>,
    /// Those of the options and of the target's files, where these are read.
    target: Option<Arc<XattrRules>>,
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

// The absolute paths of a transfer's two ends, for rules that refer to places outside of it: those with absolute
// paths and those that read files above it.

/// The paths of one source argument.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The absolute path of the directory that transfer paths start in: `/a/b` for `/a/b/`, `/a` for `/a/b`.
    pub source: &'a [u8],
    /// The absolute path of the target directory.
    pub target: &'a [u8],
    /// The transfer path of the first walked directory: empty for `/a/b/`, `b` for `/a/b`.
    pub first: &'a [u8],
}

impl Origin<'_> {
    fn ends(&self) -> FilterRoots {
        let end = |path: &[u8]| normal(&[path]).get(1..).unwrap_or_default().to_vec();
        FilterRoots { source: end(self.source), target: end(self.target) }
    }

    /// Returns the directories above the first walked one, from the root down. All end in a slash.
    fn above(&self) -> Vec<Vec<u8>> {
        let first = normal(&[self.source, self.first]);
        let inner = first.get(..first.len() - 1).unwrap_or_default();
        let slashes = inner.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| first.get(..=at).unwrap_or_default().to_vec()).collect()
    }

    /// Returns whether a dir-merge rule with the directory part `lead` reads its file in `dir`, which is above the
    /// first walked directory. A relative `lead` starts in that one.
    fn covers(&self, lead: &[u8], dir: &[u8]) -> bool {
        let from = if lead.starts_with(b"/") {
            normal(&[lead])
        } else {
            normal(&[self.source, self.first, lead])
        };
        dir.starts_with(&from)
    }

    /// Returns where patterns anchored in `dir` begin. `dir` ends in a slash.
    fn anchor(&self, dir: &[u8]) -> Anchor {
        let source = normal(&[self.source]);
        match (source.strip_prefix(dir), dir.strip_prefix(&*source)) {
            (_, Some(below)) => Anchor::Below(below.to_vec()),
            (Some(lead), None) => Anchor::Above(lead.to_vec()),
            // Unreachable: `dir` is above or below the source.
            (None, None) => Anchor::Below(Vec::new()),
        }
    }
}

/// Joins the parts to one absolute path without `.`, `..` and doubled slashes, ending in a slash.
fn normal(parts: &[&[u8]]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for component in parts.iter().flat_map(|part| part.split(|byte| *byte == b'/')) {
        match component {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            _ => kept.push(component),
        }
    }
    [b'/'].into_iter().chain(kept.iter().flat_map(|part| [part, &b"/"[..]].concat())).collect()
}
