//! Lists of rules in which per-directory merge files have a position, and the reading of files into them. A list is a
//! tree: a dir-merge rule holds the rules of its files on the path to the current directory.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::pattern::{Anchor, CompiledRule};
use super::rule;
use super::rule::{
    CvsPattern, Directive, FilterError, Flags, MatchRule, MergeRule, line_of, line_text,
};
use crate::policy::filter::{Doubtful, Written};

/// Maximum nesting of merge files, as in rsync. Stops a file that merges itself.
const DEPTH_MAX: usize = 32;

/// Maximum number of files that one directory may bring in. Stops files that merge each other many times.
const FILES_MAX: usize = 4096;

/// Loads a per-directory file by name; `Ok(None)` if there is none.
pub type ReadFile<'a> = dyn FnMut(&[u8]) -> io::Result<Option<Vec<u8>>> + 'a;

#[derive(Clone, Debug)]
pub(super) enum ListElement {
    Rule(Arc<CompiledRule>),
    /// A dir-merge rule with the rules that apply here, the innermost directory's first.
    Merge(Arc<PerDir>, Vec<ListElement>),
}

/// A dir-merge rule.
#[derive(Debug)]
pub(super) struct PerDir {
    /// The file's name in every directory.
    pub name: Vec<u8>,
    /// The directory part as written, with its last slash, where the upward scan starts.
    pub scan_from: Option<Vec<u8>>,
    rule: MergeRule,
    origin: String,
    from_file: bool,
    /// See [`Deciding::list`](super::Deciding::list).
    list: Arc<[u8]>,
}

/// Options that apply to every file.
#[derive(Debug, Default)]
pub(super) struct ListOptions {
    pub delete_excluded: bool,
    pub from0: bool,
    pub cvs: Vec<CvsPattern>,
}

/// The directory that rules are read in.
pub(super) struct RulesDirectory {
    /// Start of its anchored patterns.
    pub anchor: Anchor,
    /// Prefix of a file's name for reading it: empty, or ends in a slash.
    pub lead: Vec<u8>,
    /// The directory for messages: ends in a slash, or is empty.
    pub shown: Vec<u8>,
    /// False while the options are read: dir-merge rules only reserve their position then.
    pub scanned: bool,
}

/// Where a rule stands.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    /// The rule as written; empty for a line of a file.
    pub text: &'a [u8],
    /// The option, or the file and line.
    pub origin: &'a str,
    /// The directory that it is read in.
    pub place: &'a RulesDirectory,
    /// Nesting of its file.
    pub depth: usize,
}

impl Spot<'_> {
    fn refuse(self, reason: impl Into<String>) -> FilterError {
        FilterError::new(self.text, self.origin, reason)
    }
}

/// Reads rules into lists.
pub(super) struct Loader<'a> {
    options: &'a ListOptions,
    read: &'a mut ReadFile<'a>,
    /// Names of the dir-merge rules in force: a second rule with the same name is ignored, as in rsync.
    names: Cow<'a, [Vec<u8>]>,
    files: usize,
    /// Rules for messages.
    pub doubtful: Doubtful,
}

/// A list that is being read.
#[derive(Default)]
pub(super) struct ListReader {
    pub items: Vec<ListElement>,
    /// Whether a `!` dropped the inherited rules.
    pub cleared: bool,
    /// Names of the inherited dir-merge rules.
    inherited: Vec<Vec<u8>>,
    /// That of the per-directory file whose rules these are.
    list: Option<Arc<[u8]>>,
}

/// A directory being entered. Its [`RulesDirectory`] is only made when a file turns up, because most have none.
pub(super) struct Visit<'a> {
    /// As in [`RulesDirectory`].
    pub lead: &'a [u8],
    pub place: &'a dyn Fn() -> RulesDirectory,
}

impl<'a> Loader<'a> {
    /// Makes a loader that reads through `read` with `options`, where dir-merge rules of these `names` are in force.
    pub(super) fn new(
        options: &'a ListOptions,
        read: &'a mut ReadFile<'a>,
        names: &'a [Vec<u8>],
    ) -> Self {
        let names = Cow::Borrowed(names);
        Self { options, read, names, files: 0, doubtful: Doubtful::default() }
    }

    /// Returns the list for a directory below the one that `items` belongs to; `None` if nothing changes. `covers`
    /// returns whether to read a file for one of the list's own dir-merge rules.
    pub(super) fn enter(
        &mut self,
        items: &[ListElement],
        visit: &Visit<'_>,
        covers: &dyn Fn(&PerDir) -> bool,
    ) -> Result<Option<Vec<ListElement>>, FilterError> {
        self.enter_at(items, visit, covers, 0)
    }

    fn enter_at(
        &mut self,
        items: &[ListElement],
        visit: &Visit<'_>,
        covers: &dyn Fn(&PerDir) -> bool,
        depth: usize,
    ) -> Result<Option<Vec<ListElement>>, FilterError> {
        let mut changed: Option<Vec<ListElement>> = None;
        for (index, item) in items.iter().enumerate() {
            let fresh = match item {
                ListElement::Merge(merge, held) if covers(merge) => {
                    self.enter_merge(merge, held, visit, depth)?
                }
                _ => None,
            };
            if let (None, Some(_)) = (&changed, &fresh) {
                changed = Some(items.get(..index).unwrap_or_default().to_vec());
            }
            if let Some(list) = &mut changed {
                list.push(fresh.unwrap_or_else(|| item.clone()));
            }
        }
        Ok(changed)
    }

    fn enter_merge(
        &mut self,
        merge: &Arc<PerDir>,
        held: &[ListElement],
        visit: &Visit<'_>,
        depth: usize,
    ) -> Result<Option<ListElement>, FilterError> {
        let inherited = if merge.rule.no_inherit {
            if !held.is_empty() {
                self.forget(&names(held));
            }
            (!held.is_empty()).then(Vec::new)
        } else {
            self.enter_at(held, visit, &|_| true, depth + 1)?
        };
        let content = self.read_per_dir(merge, visit.lead)?;
        if content.is_none() && inherited.is_none() {
            return Ok(None);
        }
        let kept = inherited.as_deref().unwrap_or(held);
        let mut draft = ListReader { inherited: names(kept), ..ListReader::default() };
        if let Some(content) = content {
            self.load_per_dir(&mut draft, &content, merge, &(visit.place)(), depth)?;
        }
        if !draft.cleared {
            draft.items.extend_from_slice(kept);
        }
        Ok(Some(ListElement::Merge(Arc::clone(merge), draft.items)))
    }

    fn read_per_dir(
        &mut self,
        merge: &PerDir,
        lead: &[u8],
    ) -> Result<Option<Vec<u8>>, FilterError> {
        let path = if lead.is_empty() {
            Cow::Borrowed(&*merge.name)
        } else {
            [lead, &merge.name].concat().into()
        };
        let unreadable = |cause| {
            let text = if merge.from_file { &[][..] } else { &merge.rule.name };
            FilterError::unreadable(text, &merge.origin, &path, cause)
        };
        (self.read)(&path).map_err(unreadable)
    }

    fn load_per_dir(
        &mut self,
        draft: &mut ListReader,
        content: &[u8],
        merge: &PerDir,
        place: &RulesDirectory,
        depth: usize,
    ) -> Result<(), FilterError> {
        draft.list = Some(Arc::clone(&merge.list));
        let shown = [&*place.shown, &*merge.name].concat();
        let shown = Some(&*shown).filter(|_| !merge.from_file);
        self.load(draft, content, &merge.rule, (shown, &merge.origin), place, depth + 1)
    }

    /// Adds the rules of the files that a name with leading `..` (`: ../.rules`) finds above its directory, as if
    /// they had been met on the path down. The nearest come first.
    fn load_above(
        &mut self,
        draft: &mut ListReader,
        merge: &PerDir,
        place: &RulesDirectory,
        depth: usize,
    ) -> Result<(), FilterError> {
        let lead = merge.scan_from.as_deref().unwrap_or_default();
        let ups = lead.split(|byte| *byte == b'/').take_while(|part| *part == b"..").count();
        for up in 1..=ups {
            if draft.cleared || merge.rule.no_inherit {
                break;
            }
            let name = [&b"../".repeat(up), &*merge.name].concat();
            let above = place.beside(&name);
            if let Some(content) = self.read_per_dir(merge, &above.lead)? {
                self.load_per_dir(draft, &content, merge, &above, depth)?;
            }
        }
        Ok(())
    }

    fn forget(&mut self, gone: &[Vec<u8>]) {
        if !gone.is_empty() {
            self.names.to_mut().retain(|name| !gone.contains(name));
        }
    }

    /// Adds the rules of a file's content to `draft`. `shown`, `named_at`: see [`line_of`].
    fn load(
        &mut self,
        draft: &mut ListReader,
        content: &[u8],
        file: &MergeRule,
        (shown, named_at): (Option<&[u8]>, &str),
        place: &RulesDirectory,
        depth: usize,
    ) -> Result<(), FilterError> {
        let origin = |line| line_of(shown, named_at, line);
        let MergeRule { words, syntax, flags, .. } = *file;
        for (line, parsed) in rule::parse_all(content, self.options.from0, words, syntax, flags) {
            let parsed =
                parsed.map_err(|refused| FilterError::new(&[], &origin(line), refused.reason()))?;
            if let Some(directive) = parsed {
                let spot = Spot { text: &[], origin: &origin(line), place, depth };
                self.add(draft, directive, spot)?;
            }
        }
        Ok(())
    }

    /// Adds one rule to `draft`.
    pub(super) fn add(
        &mut self,
        draft: &mut ListReader,
        directive: Directive,
        spot: Spot<'_>,
    ) -> Result<(), FilterError> {
        let Spot { text, origin, place, depth } = spot;
        match directive {
            Directive::Clear => {
                draft.cleared = true;
                self.forget(&names(&draft.items));
                self.forget(&std::mem::take(&mut draft.inherited));
                draft.items.clear();
            }
            Directive::Match(rule) => {
                let written = Written { in_file: text.is_empty(), list: draft.list.clone() };
                self.push(draft, &rule, written, spot);
            }
            Directive::Cvs { include, flags } => {
                let options = self.options;
                let list: Arc<[u8]> = Arc::from(&b"global CVS"[..]);
                for CvsPattern { pattern, perishable, in_file } in &options.cvs {
                    let flags = Flags { perishable: flags.perishable || *perishable, ..flags };
                    let rule = MatchRule { include, flags, pattern: pattern.clone() };
                    let written = Written { in_file: *in_file, list: Some(Arc::clone(&list)) };
                    self.push(draft, &rule, written, spot);
                }
            }
            Directive::Merge(file) => {
                self.bounded(spot)?;
                self.exclude_self(draft, &file, spot);
                self.merge(draft, &file, spot)?;
            }
            Directive::DirMerge(rule) => {
                self.bounded(spot)?;
                self.exclude_self(draft, &rule, spot);
                let split = base_at(&rule.name);
                let name = rule.name.get(split..).unwrap_or_default().to_vec();
                if name.is_empty() {
                    return Err(spot.refuse("it names a directory instead of a file"));
                }
                if self.names.contains(&name) {
                    return Ok(());
                }
                self.names.to_mut().push(name.clone());
                let scan_from =
                    rule.name.get(..split).filter(|lead| !lead.is_empty()).map(<[u8]>::to_vec);
                let shown = match text {
                    [] => Cow::Owned(line_text(origin)),
                    _ => Cow::Borrowed(&*name),
                };
                let merge = Arc::new(PerDir {
                    list: [b"per-dir ", &*shown].concat().into(),
                    name,
                    scan_from,
                    rule,
                    origin: origin.to_owned(),
                    from_file: text.is_empty(),
                });
                // A rule in a per-directory file applies in that file's directory already.
                let mut held = ListReader::default();
                if place.scanned {
                    if let Some(content) = self.read_per_dir(&merge, &place.lead)? {
                        self.load_per_dir(&mut held, &content, &merge, place, depth)?;
                    }
                    self.load_above(&mut held, &merge, place, depth)?;
                }
                draft.items.push(ListElement::Merge(merge, held.items));
            }
        }
        Ok(())
    }

    /// Rejects rules that would cause endless reading.
    fn bounded(&mut self, spot: Spot<'_>) -> Result<(), FilterError> {
        self.files += 1;
        if spot.depth >= DEPTH_MAX {
            let reason = format!("merge-file include depth limit of {DEPTH_MAX} reached");
            return Err(spot.refuse(reason));
        }
        if self.files > FILES_MAX {
            return Err(spot.refuse("too many merge files"));
        }
        Ok(())
    }

    fn push(&mut self, draft: &mut ListReader, rule: &MatchRule, written: Written, spot: Spot<'_>) {
        if self.doubtful.check(rule, written.in_file, spot.origin) {
            let RulesDirectory { anchor, scanned, .. } = spot.place;
            let delete_excluded = self.options.delete_excluded;
            let rule = CompiledRule::new(rule, anchor, *scanned, delete_excluded, written);
            draft.items.push(ListElement::Rule(Arc::new(rule)));
        }
    }

    /// Applies the modifier `e`: the file's name is excluded, regardless of the rules in it.
    fn exclude_self(&mut self, draft: &mut ListReader, file: &MergeRule, spot: Spot<'_>) {
        if file.exclude_self {
            let pattern = file.name.get(base_at(&file.name)..).unwrap_or_default().to_vec();
            let rule = MatchRule { include: false, flags: Flags::default(), pattern };
            let written = Written { in_file: spot.text.is_empty(), list: draft.list.clone() };
            self.push(draft, &rule, written, spot);
        }
    }

    fn merge(
        &mut self,
        draft: &mut ListReader,
        file: &MergeRule,
        spot: Spot<'_>,
    ) -> Result<(), FilterError> {
        let Spot { text, origin, place, depth } = spot;
        let beside = |lead: &[u8]| match file.name.first() {
            Some(b'/') => file.name.clone(),
            _ => [lead, &*file.name].concat(),
        };
        let path = beside(&place.lead);
        let unreadable = |cause| FilterError::unreadable(text, origin, &path, cause);
        let content = (self.read)(&path).map_err(unreadable)?;
        let content = content.ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))?;
        let shown = beside(&place.shown);
        let shown = Some(&*shown).filter(|_| !text.is_empty());
        if !place.scanned {
            return self.load(draft, &content, file, (shown, origin), place, depth + 1);
        }
        let inner = place.beside(&file.name);
        self.load(draft, &content, file, (shown, origin), &inner, depth + 1)
    }
}

impl RulesDirectory {
    /// Returns the directory of a file named from here. Its anchored patterns begin there.
    fn beside(&self, name: &[u8]) -> Self {
        let dir = name.get(..base_at(name)).unwrap_or_default();
        let join =
            |lead: &[u8]| if dir.starts_with(b"/") { dir.to_vec() } else { [lead, dir].concat() };
        let anchor = match &self.anchor {
            Anchor::Below(top) if !dir.starts_with(b"/") => below(&[top, dir].concat()),
            _ => None,
        };
        Self {
            // A file elsewhere has no directory in the transfer; its rules are relative to this one.
            anchor: anchor.map_or_else(|| self.anchor.clone(), Anchor::Below),
            lead: join(&self.lead),
            shown: join(&self.shown),
            scanned: self.scanned,
        }
    }
}

/// Normalises `path` (which ends in a slash or is empty) without `.` and `..`; `None` if it leaves the top.
fn below(path: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.iter().flat_map(|part| [part, &b"/"[..]].concat()).collect())
}

/// Returns where the last component of a name begins.
fn base_at(name: &[u8]) -> usize {
    name.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

/// Returns the names of the dir-merge rules in a list, at any depth.
pub(super) fn names(items: &[ListElement]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for item in items {
        if let ListElement::Merge(merge, held) = item {
            found.push(merge.name.clone());
            found.extend(names(held));
        }
    }
    found
}
