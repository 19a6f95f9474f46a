//! Input of the object engine: two sorted listings, merged, filtered, decided, and queued as tasks. Makes no
//! requests. Memory does not grow with the number of entries.

use super::known::{KnownNames, NameRule};
use super::objects::{
    BaseNames, PlannedSource, SourceKind, Stores, base, needs_target, needs_target_of_one,
};
use super::{NOT_AS_PLANNED, Spec, known, objects as listings};
use crate::local::Pass;
use crate::manifest::{Cursor, Place};
use crate::object::list::{Merge, Merged, NameFilter, Pattern, Trouble};
use crate::object::{
    CASE, CaseConflict, Entry, Extraneous, How, KnownFacts, ObjectEngine, Root, Side, Task, Work,
    key_of, path_of,
};
use crate::policy::filter::Decision;
use crate::policy::{Action, Delete, Grain, NameRange, Reason, Symlinks, decide};
use crate::publish::{self, TempNames};
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem};
use hakobu_core::event::{Change, Event, Item};
use hakobu_core::unit::{Kind, Meta, Totals};
use hakobu_sys::paths::PathBelow;
use hakobu_sys::{AsFd, meta};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Reasons for skipping an entry whose target is its base name.
const SAME_NAME: &str = "another source has the same base name, and --flatten gives it that name";
const IS_SOURCE: &str = "--flatten would write it over another source";
const NO_NAME: &str = "its key ends with a slash, so --flatten has no name for it";
/// Reason for leaving an entry where it is whose target may be a source that was not moved yet.
const ON_SOURCE: &str = "the target is, or may be, a source that this run is still to move";
/// Notice about a source that was named twice (cp(1)).
const TWICE: &str = "it was specified more than once";
/// Number of tasks queued together.
const TASKS: usize = 16;
/// Number of entries removed in one request (the maximum of DeleteObjects).
const DELETES: usize = 1000;
/// Number of entries counted between two reports.
const COUNTED: u64 = 1024;

/// Queues all work of a source argument, the one of this number among those that `known` knows. `names`: target names
/// are base names, which sources take in turn.
pub fn feed(
    engine: &ObjectEngine<'_>,
    spec: &Spec,
    stores: &Stores,
    (planned, number): (&PlannedSource, usize),
    pass: Pass,
    names: Option<&mut BaseNames>,
    known: &KnownNames<'_>,
) {
    let deletes = pass == Pass::Delete || engine.policy().delete == Delete::During;
    let mut feed = Feed {
        engine,
        spec,
        stores,
        planned,
        names,
        known,
        meets: known.meets(number),
        target: known::place(&planned.pair.target, stores),
        drained: false,
        folds: None,
        moves: pass != Pass::Delete,
        deletes: deletes && planned.may_delete(),
        tasks: Vec::with_capacity(TASKS),
        extraneous: Vec::new(),
        totals: Totals::default(),
        counted: 0,
        handed_on: 0,
    };
    feed.run();
    feed.flush();
}

/// What earlier runs know about the objects of a listing, on both sides.
#[derive(Default)]
struct Cursors {
    source: Option<Cursor>,
    target: Option<Cursor>,
}

impl Cursors {
    /// Returns what is known about entries of the listings, which come in order.
    fn find(&mut self, source: Option<&Entry>, target: Option<&Entry>) -> KnownFacts {
        let find = |cursor: &mut Option<Cursor>, entry: Option<&Entry>| {
            let (cursor, entry) = cursor.as_mut().zip(entry)?;
            cursor.find(&entry.name, &entry.etag, entry.meta.size, entry.meta.mtime)
        };
        let (source, target) = (find(&mut self.source, source), find(&mut self.target, target));
        KnownFacts { source, target }
    }

    /// Ends two whole listings.
    fn end(self) {
        self.source.into_iter().chain(self.target).for_each(Cursor::end);
    }
}

struct Feed<'a> {
    engine: &'a ObjectEngine<'a>,
    spec: &'a Spec,
    stores: &'a Stores,
    planned: &'a PlannedSource,
    names: Option<&'a mut BaseNames>,
    known: &'a KnownNames<'a>,
    /// Another source may get one of its target names.
    meets: bool,
    /// What identifies the names of its target in the run.
    target: Vec<u8>,
    /// The work of the sources before it is finished.
    drained: bool,
    /// Device and inode of a local target that holds different names for one.
    folds: Option<(u64, u64)>,
    moves: bool,
    deletes: bool,
    tasks: Vec<Task>,
    extraneous: Vec<Extraneous>,
    totals: Totals,
    /// Entries in `totals` that were not reported yet.
    counted: u64,
    /// Those of them that became tasks.
    handed_on: u64,
}

/// The filter rules of a source argument.
struct Rules {
    source: Option<NameFilter>,
    /// With the target's own per-directory files, if something may be deleted.
    target: Option<NameFilter>,
}

impl Feed<'_> {
    fn run(&mut self) {
        let (planned, stores) = (self.planned, self.stores);
        let engine = self.engine;
        let policy = engine.policy();
        if self.meets && self.moves && self.known.rule == NameRule::Later && needs_target(self.spec)
        {
            // What those before it make is what it is compared with.
            self.drain();
        }
        if self.moves && !self.lists_target() {
            engine.clears_targets();
        }
        if let (Root::Local { dir: root, .. }, false) = (&planned.pair.target, policy.dry_run)
            && self.moves
            && let Ok(top) = meta::of_fd(&**root)
        {
            let folded = &engine.setup.folded;
            let folds = folded.has(top.identity(), (**root).as_fd(), top.dev);
            self.folds = folds.then_some(top.identity());
        }
        match &planned.what {
            SourceKind::One { entry, name } if self.moves => {
                let Some(mut rules) = self.rules_of(stores) else { return };
                if self.hides(&mut rules, entry) {
                    return self.tell_itself_left_out(&mut rules, &entry.name);
                }
                if self.names.is_some() {
                    self.see(entry);
                    return self.flattened(entry.clone(), name.clone());
                }
                let existing = match needs_target_of_one(self.spec) {
                    true => listings::existing(planned, stores, name),
                    false => Ok(None),
                };
                match existing {
                    Ok(existing) => {
                        self.see(entry);
                        self.decide(entry.clone(), name.clone(), existing, KnownFacts::default());
                    }
                    Err(trouble) => self.trouble(Side::Target, trouble),
                }
            }
            SourceKind::One { .. } => {}
            SourceKind::Names(names) => {
                let Some(rules) = self.rules_of(stores) else { return };
                let of =
                    |side| listings::from_names(self.spec, policy, planned, stores, side, names);
                let wanted = needs_target(self.spec) && !planned.target_is_new;
                let target = wanted.then(|| of(Side::Target));
                self.merge(Merge::new(Some(of(Side::Source)), target), rules, None);
            }
            SourceKind::Tree { pattern } => {
                let Some(mut rules) = self.rules_of(stores) else { return };
                if rules.source.as_ref().is_some_and(|name_filter| name_filter.top().hide) {
                    return self.tell_itself_left_out(&mut rules, b"");
                }
                let range = || self.spec.range.clone().unwrap_or_default();
                let of = |side| listings::tree(self.spec, policy, planned, stores, side, range());
                // Base names are in another order than the names of the source: see `flattened`.
                let wanted = self.lists_target();
                let target = (wanted && !planned.target_is_new).then(|| of(Side::Target));
                match of(Side::Source).and_then(|source| Ok((source, target.transpose()?))) {
                    Ok((source, target)) => {
                        self.merge(Merge::new(Some(source), target), rules, pattern.as_ref());
                    }
                    Err(fatal) => self.engine.stop_for(fatal),
                }
            }
        }
    }

    /// Returns whether the target's folders are listed, which removes what dead runs left there.
    fn lists_target(&self) -> bool {
        let wanted = needs_target(self.spec) && self.names.is_none() || self.deletes;
        wanted && matches!(self.planned.what, SourceKind::Tree { .. })
    }

    fn merge(&mut self, merge: Merge, mut rules: Rules, pattern: Option<&Pattern>) {
        let (mut any, mut kept, mut left_out) = (false, false, None);
        let mut cursors = self.cursors();
        let mut whole = true;
        for merged in merge {
            if self.engine.is_stopped() {
                return;
            }
            let known = match &merged {
                Merged::Source(entry) | Merged::Unknown(entry) => cursors.find(Some(entry), None),
                Merged::Both(entry, existing) => cursors.find(Some(entry), Some(existing)),
                Merged::Target(existing) => cursors.find(None, Some(existing)),
                Merged::Trouble(..) => {
                    whole = false;
                    KnownFacts::default()
                }
            };
            let (entry, existing) = match merged {
                Merged::Source(entry) => (entry, None),
                Merged::Both(entry, existing) => (entry, Some(existing)),
                Merged::Target(existing) => {
                    if self.deletes
                        && !self.keeps(&existing)
                        && !self.protects(&mut rules, &existing)
                        && !self.goes_on_behind(&existing)
                    {
                        self.remove(existing);
                    }
                    continue;
                }
                Merged::Unknown(entry) => {
                    // Its problem was reported.
                    kept = true;
                    self.see(&entry);
                    continue;
                }
                Merged::Trouble(side, trouble) => {
                    any |= side == Side::Source;
                    kept |= side == Side::Source;
                    self.trouble(side, trouble);
                    continue;
                }
            };
            if pattern.is_some_and(|pattern| !pattern.matches(&entry.name)) {
                continue;
            }
            any = true;
            if let (Some(name_filter), Some(existing)) = (&mut rules.target, &existing)
                && name_filter.is_rule_file(&existing.name)
            {
                // Apply its folder's rules in their current state, before it is replaced.
                self.ask(Side::Target, name_filter, existing);
            }
            if self.hides(&mut rules, &entry) {
                if left_out.is_none() {
                    left_out = Some(entry.name.to_vec());
                }
                if let Some(existing) = existing.filter(|_| self.deletes)
                    && !self.keeps(&existing)
                    && !self.protects(&mut rules, &existing)
                {
                    self.remove(existing);
                }
                continue;
            }
            kept = true;
            if self.moves {
                self.see(&entry);
                let expected = self.spec.objects.expected.as_deref();
                if expected.is_some_and(|all| !all.is_met(&entry.name, &entry.meta)) {
                    self.report(self.planned.pair.source.spell(&entry.name), NOT_AS_PLANNED);
                    continue;
                }
                let Some(name) = self.target_name(&entry) else { continue };
                match self.names.is_some() {
                    true => self.flattened(entry, name),
                    false => self.decide(entry, name, existing, known),
                }
            }
        }
        if whole && !self.engine.is_stopped() {
            cursors.end();
        }
        if pattern.is_some() && !any && self.moves && !self.engine.is_stopped() {
            self.report(self.planned.pair.source.spell(b""), "the wildcard matches nothing there");
        }
        // Other ranges of the transfer may have what this one lacks.
        let is_whole = self.spec.range.as_ref().is_none_or(NameRange::is_all);
        if self.moves && !kept && is_whole && !self.engine.is_stopped() {
            self.tell_left_out(&mut rules, left_out);
        }
    }

    /// Returns what earlier runs know about the objects of both listings, in a pass that compares them.
    fn cursors(&self) -> Cursors {
        let (planned, setup) = (self.planned, &self.engine.setup);
        if !self.moves || self.names.is_some() || !needs_target(self.spec) {
            return Cursors::default();
        }
        let of = |side| {
            let Root::Store { bucket, prefix } = planned.pair.root(side) else { return None };
            // An inventory is older than the objects.
            if self.spec.objects.inventory_of(side).is_some() {
                return None;
            }
            let endpoint = self.stores.of(side)?.endpoint();
            let (bucket, prefix) = (bucket.clone(), prefix.clone());
            let manifest = setup.manifests.open(side, Place { endpoint, bucket, prefix })?;
            // Manifests that lie elsewhere are about the range only.
            let is_all = self.spec.range.as_ref().is_none_or(NameRange::is_all)
                || self.spec.objects.manifests.is_some();
            let is_whole = is_all && matches!(planned.what, SourceKind::Tree { pattern: None });
            Some(manifest.cursor(is_whole))
        };
        Cursors { source: of(Side::Source), target: of(Side::Target) }
    }

    /// Reports that rules left out everything, if they did.
    fn tell_left_out(&self, rules: &mut Rules, first: Option<Vec<u8>>) {
        let Some(name_filter) = &mut rules.source else { return };
        let policy = self.engine.policy();
        let first =
            first.or_else(|| listings::left_out(self.spec, policy, self.planned, name_filter));
        let Some(name) = first else { return };
        self.engine.problem(&Problem {
            operation: Operation::Filter,
            source: Some(self.planned.pair.source.spell(b"")),
            target: None,
            cause: Cause::Said(name_filter.all_left_out(&name)),
            class: ErrorClass::Notice,
        });
    }

    /// Reports that rules left out the source argument itself, if there is no other one.
    fn tell_itself_left_out(&self, rules: &mut Rules, name: &[u8]) {
        let Some(name_filter) = rules.source.as_mut().filter(|_| self.known.is_alone()) else {
            return;
        };
        if self.moves && !self.engine.is_stopped() {
            self.engine.problem(&Problem {
                operation: Operation::Filter,
                source: Some(self.planned.pair.source.spell(name)),
                target: None,
                cause: Cause::Said(name_filter.left_out(name)),
                class: ErrorClass::Notice,
            });
        }
    }

    /// Decides about an entry whose target name is its base name, and looks at that name first if necessary.
    fn flattened(&mut self, entry: Entry, name: Vec<u8>) {
        let Some(names) = &mut self.names else { return };
        let pair = &self.planned.pair;
        if !names.take(&name) {
            return self.report(pair.source.spell(&entry.name), SAME_NAME);
        }
        let is_itself = pair.source.key(&entry.name) == pair.target.key(&name);
        let may_destroy = !is_itself && names.may_be_source(&pair.target, &name);
        let needs_target = match self.planned.what {
            SourceKind::One { .. } => needs_target_of_one(self.spec),
            SourceKind::Tree { .. } | SourceKind::Names(_) => needs_target(self.spec),
        };
        let existing = match needs_target || may_destroy {
            true => listings::existing(self.planned, self.stores, &name),
            false => Ok(None),
        };
        match existing {
            Ok(Some(_)) if may_destroy => {
                self.report(pair.source.spell(&entry.name), IS_SOURCE);
            }
            Ok(existing) => self.decide(entry, name, existing, KnownFacts::default()),
            Err(trouble) => self.trouble(Side::Target, trouble),
        }
    }

    /// Returns the filter rules of both sides; `None` if they cannot be read, which ends the run.
    fn rules_of(&self, stores: &Stores) -> Option<Rules> {
        let (policy, planned) = (self.engine.policy(), self.planned);
        let of = |side| listings::name_filter(policy, planned, stores, side);
        let both = of(Side::Source).and_then(|source| {
            let target = if self.deletes { of(Side::Target)? } else { None };
            Ok(Rules { source, target })
        });
        both.map_err(|fatal| self.engine.stop_for(fatal)).ok()
    }

    /// Returns whether a rule excludes an entry of the source.
    fn hides(&mut self, rules: &mut Rules, entry: &Entry) -> bool {
        let source = rules.source.as_mut();
        source.is_some_and(|name_filter| self.ask(Side::Source, name_filter, entry).hide)
    }

    /// Returns whether a rule of either side keeps an entry of the target.
    fn protects(&mut self, rules: &mut Rules, entry: &Entry) -> bool {
        let Rules { source, target } = rules;
        let mut by = |side, name_filter: &mut Option<NameFilter>| {
            name_filter
                .as_mut()
                .is_some_and(|name_filter| self.ask(side, name_filter, entry).protect)
        };
        by(Side::Source, source) || by(Side::Target, target)
    }

    /// Returns the decision of one side's filter rules about an entry of either side.
    fn ask(&mut self, side: Side, name_filter: &mut NameFilter, entry: &Entry) -> Decision {
        name_filter.decide(&entry.name).unwrap_or_else(|error| {
            let spelt = Some(self.planned.pair.root(side).spell(&entry.name));
            let (source, target) = match side {
                Side::Source => (spelt, None),
                Side::Target => (None, spelt),
            };
            let cause = Cause::Said(error.to_string());
            let (operation, class) = (Operation::Filter, ErrorClass::Partial);
            self.problem(&Problem { operation, source, target, cause, class });
            Decision { hide: true, protect: true }
        })
    }

    /// Returns the target name of an entry; `None` if no such name is possible, which is reported.
    fn target_name(&mut self, entry: &Entry) -> Option<Vec<u8>> {
        let encode = self.spec.objects.options.encode_names;
        let pair = &self.planned.pair;
        // The slash of a folder is not part of its name. An object with content has no such slash.
        let (inner, slash) = match entry.name.strip_suffix(b"/") {
            Some(inner) if entry.meta.kind == Kind::Dir => (inner, true),
            _ => (&*entry.name, false),
        };
        // A folder has no content that could have a base name.
        let (inner, slash) = match self.names.is_some() {
            true if slash => return None,
            true => (base(inner), false),
            false => (inner, slash),
        };
        if self.names.is_some() && inner.is_empty() {
            self.report(pair.source.spell(&entry.name), NO_NAME);
            return None;
        }
        let mapped = match (&pair.source, &pair.target) {
            (Root::Local { .. }, Root::Store { .. }) => key_of(inner, encode),
            // The object whose key is the prefix itself stands for the target folder.
            (Root::Store { .. }, Root::Local { .. }) if entry.name.is_empty() => return None,
            (Root::Store { .. }, Root::Local { .. })
                if slash && !self.spec.objects.options.dir_markers =>
            {
                return None;
            }
            // A later run would take the file for its own temporary one and remove it.
            (Root::Store { .. }, Root::Local { .. }) if TempNames::ends_path(inner) => {
                self.leave_out(entry);
                return None;
            }
            (Root::Store { .. }, Root::Local { .. }) => path_of(inner, encode),
            _ if self.names.is_some() => return Some(inner.to_vec()),
            _ => return Some(entry.name.to_vec()),
        };
        match mapped {
            Ok(mut name) => {
                if slash {
                    name.push(b'/');
                }
                Some(name)
            }
            Err(error) => {
                self.report(pair.source.spell(&entry.name), error.words());
                None
            }
        }
    }

    /// Returns whether an entry of the target is not extraneous, whatever this source has.
    fn keeps(&self, existing: &Entry) -> bool {
        self.known.keeps(&self.planned.pair.target, &self.target, &existing.name)
    }

    /// Returns whether an extraneous directory of the target is none after all: it goes on behind the range of the
    /// transfer, where the source has an entry in it, or may have one.
    fn goes_on_behind(&self, existing: &Entry) -> bool {
        let range = self.spec.range.as_ref().filter(|range| range.ends_in_folder(&existing.name));
        let Some(range) = range.filter(|_| existing.name.ends_with(b"/")) else { return false };
        let rest = range.rest_of_folder(&existing.name);
        let (policy, planned, stores) = (self.engine.policy(), self.planned, self.stores);
        let listing = listings::tree(self.spec, policy, planned, stores, Side::Source, rest);
        // A problem is reported with the range in which it is.
        listing.map_or(true, |mut listing| listing.next().is_some())
    }

    /// Returns whether writing an entry's target leaves all sources of the run alone that it has not moved yet.
    fn is_safe(&mut self, entry: &Entry, name: &[u8]) -> bool {
        let pair = Arc::clone(&self.planned.pair);
        let key = pair.target.key(name);
        // An object onto itself is refused where it is moved.
        let is_itself = !key.is_empty() && pair.source.key(&entry.name) == key;
        let is_safe = is_itself || !self.known.is_source(&pair.target, &self.target, name);
        if !is_safe {
            self.problem(&Problem {
                operation: Operation::Move,
                source: Some(pair.source.spell(&entry.name)),
                target: Some(pair.target.spell(name)),
                cause: Cause::Reason(ON_SOURCE),
                class: ErrorClass::Partial,
            });
        }
        is_safe
    }

    /// Returns whether an entry may get its target name, which another source of the run may have.
    fn may_take(&mut self, entry: &Entry, name: &[u8]) -> bool {
        if !self.meets {
            return true;
        }
        let pair = Arc::clone(&self.planned.pair);
        let named = !matches!(self.planned.what, SourceKind::Tree { pattern: None });
        let (target, source) = ([&*self.target, name].concat(), pair.source.spell(&entry.name));
        let taken = self.known.claims.take(&target, source.as_os_str().as_bytes(), named);
        let Some(holder) = taken else { return true };
        let (rule, policy) = (self.known.rule, self.engine.policy());
        let (class, cause) = match rule {
            NameRule::First => {
                self.left_out(entry, name);
                return false;
            }
            _ if policy.ignore_existing => {
                self.left_out(entry, name);
                return false;
            }
            NameRule::Later if !(named && holder.named) => {
                if named {
                    self.known.claims.hold(&target, source.as_os_str().as_bytes());
                }
                self.drain();
                return true;
            }
            NameRule::Later if holder.same => (ErrorClass::Notice, Cause::Reason(TWICE)),
            NameRule::Later | NameRule::Stays => (ErrorClass::Partial, Cause::Reason("")),
        };
        self.problem(&Problem {
            operation: Operation::Overwrite,
            source: Some(source),
            target: (class != ErrorClass::Notice).then(|| pair.target.spell(name)),
            cause,
            class,
        });
        false
    }

    /// Looks up an entry of a target that holds different names for one: the listing may have it under another one, where
    /// no deletion may take it then. Returns `None` if another entry of the source has the name there, which is reported.
    fn looked_up(
        &mut self,
        top: (u64, u64),
        entry: &Entry,
        name: &[u8],
        existing: Option<Entry>,
    ) -> Option<Option<Entry>> {
        let engine = self.engine;
        let folded = &engine.setup.folded;
        let mut made = folded.made();
        let asked = engine.setup.options.case_conflict;
        let leaves = engine.policy().remove_source_files;
        if made.take(folded.names(top, name)) && (leaves || asked <= CaseConflict::Skip) {
            drop(made);
            let class = match asked {
                CaseConflict::Skip => ErrorClass::Notice,
                _ => ErrorClass::Partial,
            };
            let pair = &self.planned.pair;
            let operation = match class {
                ErrorClass::Notice => Operation::Read,
                _ => Operation::Create,
            };
            let source = pair.source.spell(&entry.name);
            let target = Some(pair.target.spell(name));
            let (source, cause) = (Some(source), Cause::Reason(CASE));
            self.problem(&Problem { operation, source, target, cause, class });
            return None;
        }
        if existing.is_some() || !needs_target(self.spec) || name.ends_with(b"/") {
            return Some(existing);
        }
        match listings::existing(self.planned, self.stores, name) {
            Ok(found) => {
                if let Some(found) = &found {
                    made.found(found.meta.identity());
                }
                Some(found)
            }
            // It is looked at again when it is placed.
            Err(_) => Some(None),
        }
    }

    /// Counts an entry that is left alone although its target may need something.
    fn left_out(&mut self, entry: &Entry, name: &[u8]) {
        self.pass_over(entry);
        self.totals.left_out += 1;
        self.tell_unchanged(entry, name, Change { left_out: true, ..Change::default() });
    }

    /// Counts an entry whose target needs nothing.
    fn passed_over(&mut self, entry: &Entry, name: &[u8]) {
        self.pass_over(entry);
        self.tell_unchanged(entry, name, Change::default());
    }

    /// Reports an entry that is not moved, if events of such entries are requested. `name`: that at the target.
    fn tell_unchanged(&self, entry: &Entry, name: &[u8], change: Change) {
        let setup = &self.engine.setup;
        if setup.items != (true, true) {
            return;
        }
        let pair = &self.planned.pair;
        let path = [&*pair.lead, &*entry.name].concat();
        setup.listener.event(Event::Item(&Item {
            change,
            kind: entry.meta.kind,
            path: Path::new(OsStr::from_bytes(&path)),
            source: Some(pair.source.spell(&entry.name)),
            target: Some(pair.target.spell(name)),
            version: None,
            link: None,
            bytes: entry.meta.size,
            bytes_moved: 0,
            start_s: 0.0,
            took: Duration::ZERO,
            mode: entry.meta.mode,
            mtime_s: entry.meta.mtime.s,
            meta: &entry.meta,
            digest: None,
            checksum: None,
        }));
    }

    fn pass_over(&mut self, entry: &Entry) {
        self.totals.skipped += 1;
        self.totals.bytes_skipped += entry.meta.size;
    }

    /// Waits until the sources before this one are moved: it may replace what they made.
    fn drain(&mut self) {
        if !std::mem::replace(&mut self.drained, true) {
            self.push();
            self.engine.drain();
        }
    }

    /// Decides about an entry and queues the work.
    fn decide(&mut self, entry: Entry, name: Vec<u8>, existing: Option<Entry>, facts: KnownFacts) {
        if self.known.rule == NameRule::First && !self.may_take(&entry, &name) {
            return;
        }
        let mut existing = existing;
        if let Some(top) = self.folds {
            match self.looked_up(top, &entry, &name, existing) {
                Some(found) => existing = found,
                None => return,
            }
        }
        let policy = self.engine.policy();
        let options = &self.spec.objects.options;
        let mut source = entry.meta;
        if source.kind == Kind::Symlink && existing.is_some() {
            // A stored symlink is an ordinary object.
            source.kind = Kind::File;
        }
        let there = existing.as_ref().map(|there| self.engine.as_here(there.meta));
        let there = there.as_ref();
        // A file has the time of its object to the second. An upload is older than a file of the same second.
        let grain = if policy.newer_only { Grain::NS } else { Grain::S };
        let mut action = decide(&source, there, policy, grain);
        if let (Action::Skip(Reason::Newer | Reason::Existing), Some(there)) = (action, there)
            && self.is_unfinished(&source, there, &name)
        {
            action = Action::Update;
        }
        // An object's time is that of its upload: the source's time is in its metadata, which listings do not return.
        let kept = options.keep_times && !policy.size_only && !policy.ignore_times;
        let same_size = existing.as_ref().is_some_and(|there| there.meta.size == source.size);
        // The metadata also says whether the object is a symlink.
        let kept_link = policy.symlinks == Symlinks::Keep
            && matches!(self.planned.pair.source, Root::Store { .. })
            && existing.as_ref().is_some_and(|there| there.meta.kind == Kind::Symlink);
        let closer = match action {
            Action::Compare => true,
            Action::Update if kept_link && same_size => true,
            Action::Update | Action::Metadata => kept && same_size && source.kind == Kind::File,
            Action::Create | Action::Skip(_) => false,
        };
        let how = match action {
            _ if closer => How::Compare(Box::new(facts)),
            Action::Create | Action::Update | Action::Compare => How::Transfer,
            Action::Metadata => return self.passed_over(&entry, &name),
            Action::Skip(_) => return self.left_out(&entry, &name),
        };
        if !self.is_safe(&entry, &name)
            || self.known.rule != NameRule::First && !self.may_take(&entry, &name)
        {
            return;
        }
        let (name, existing) = (name.into_boxed_slice(), existing.map(Box::new));
        let work = Work::Move { entry, name, existing, how };
        self.tasks.push(Task { pair: Arc::clone(&self.planned.pair), work });
        self.handed_on += 1;
        if self.tasks.len() >= TASKS {
            self.push();
        }
    }

    /// Returns whether the target is a half-written file of another run; reports the first one.
    fn is_unfinished(&self, source: &Meta, there: &Meta, name: &[u8]) -> bool {
        let Root::Local { dir: root, .. } = &self.planned.pair.target else { return false };
        let setup = &self.engine.setup;
        let find = || PathBelow::find((**root).as_fd(), name);
        let unfinished = setup.ledger.is_unfinished_at(source, there, find);
        if unfinished && setup.ledger.is_first_report() {
            let target = self.planned.pair.target.spell(name);
            setup.listener.event(Event::Warning(publish::unfinished(&target)));
        }
        unfinished
    }

    /// Queues the removal of an extraneous entry.
    fn remove(&mut self, existing: Entry) {
        self.extraneous.push((existing, None));
        if self.extraneous.len() >= DELETES {
            self.push_deletes();
        }
    }

    /// Counts an entry of the source.
    fn see(&mut self, entry: &Entry) {
        match entry.meta.kind {
            Kind::Dir => self.totals.seen_dirs += 1,
            Kind::Symlink => self.totals.seen_links += 1,
            _ => {
                self.totals.seen_files += 1;
                self.totals.seen_bytes += entry.meta.size;
            }
        }
        if self.counted >= COUNTED {
            // Flush the queue and the counts as well: a listing may be slow, and most of it unchanged.
            self.push();
            self.report_counts();
        }
        self.counted += 1;
    }

    fn report_counts(&mut self) {
        let entries = std::mem::take(&mut self.counted);
        self.engine.passed(entries - std::mem::take(&mut self.handed_on));
        let totals = std::mem::take(&mut self.totals);
        self.engine.add(&totals);
    }

    fn push(&mut self) {
        self.engine.push(self.tasks.drain(..));
    }

    fn push_deletes(&mut self) {
        let entries = std::mem::take(&mut self.extraneous);
        let pair = Arc::clone(&self.planned.pair);
        self.engine.push([Task { pair, work: Work::Delete { entries } }]);
    }

    fn flush(&mut self) {
        self.push();
        if !self.extraneous.is_empty() {
            self.push_deletes();
        }
        self.report_counts();
    }

    fn trouble(&mut self, side: Side, trouble: Trouble) {
        match trouble {
            Trouble::Problem { problem, .. } => self.problem(&problem),
            // The run reports it itself.
            Trouble::Failed(error) if error.kind == hakobu_s3::ErrorKind::Stopped => {}
            Trouble::Failed(error) => {
                let shown = self.planned.pair.root(side).spell(b"");
                if error.stops_run() {
                    let message =
                        format!("cannot list {}: {error}", hakobu_core::error::quoted(shown));
                    return self.engine.stop_for(Fatal::new(1, message));
                }
                let cause = Cause::Said(error.to_string());
                self.tell(Operation::List, shown, cause, ErrorClass::Partial);
            }
        }
    }

    /// Reports that an object has the form of our temporary names. A move is incomplete then.
    fn leave_out(&mut self, entry: &Entry) {
        let class = match self.engine.policy().remove_source_files {
            true => ErrorClass::Partial,
            false => ErrorClass::Notice,
        };
        let source = self.planned.pair.source.spell(&entry.name);
        self.tell(Operation::Read, source, Cause::Reason(publish::LEFT_OUT), class);
    }

    fn report(&mut self, source: PathBuf, reason: &'static str) {
        self.tell(Operation::Read, source, Cause::Reason(reason), ErrorClass::Partial);
    }

    fn tell(&mut self, operation: Operation, source: PathBuf, cause: Cause, class: ErrorClass) {
        self.problem(&Problem { operation, source: Some(source), target: None, cause, class });
    }

    /// Counts and reports a problem.
    fn problem(&mut self, problem: &Problem) {
        match problem.class {
            ErrorClass::Vanished => self.totals.vanished += 1,
            ErrorClass::Notice => {
                self.totals.skipped += 1;
                self.totals.left_out += 1;
            }
            ErrorClass::Partial | ErrorClass::Fatal => self.totals.failed += 1,
        }
        self.engine.problem(problem);
    }
}
