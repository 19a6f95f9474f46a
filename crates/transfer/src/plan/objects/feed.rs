//! Feeding the object engine: two sorted listings, merged, filtered, decided, handed on as tasks.
//! Knows nothing of requests. Memory does not grow with the number of entries.

use super::{Stores, Stretch, What, listings, needs_target};
use crate::error::{Cause, Class, Fatal, Operation, Problem};
use crate::object::list::{Merge, Merged, Pattern, Sieve, Trouble};
use crate::object::{Engine, Entry, Root, Side, Task, Work, key_of, path_of};
use crate::plan::Spec;
use crate::policy::filter::Decision;
use crate::policy::{Action, Symlinks, decide};
use crate::unit::{Kind, Totals};
use std::sync::Arc;

/// Which of its parts a walk over a stretch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Moves.
    Transfer,
    /// Removes what is extraneous.
    Delete,
    /// Both.
    Both,
}

/// Tasks that are handed over together.
const TASKS: usize = 16;
/// Entries that are removed in one request (DeleteObjects takes so many).
const DELETES: usize = 1000;
/// Entries that are counted before they are told of.
const COUNTED: u64 = 1024;

/// Hands everything that is to be done in a stretch to the engine.
pub fn feed(engine: &Engine<'_>, spec: &Spec, stores: &Stores, stretch: &Stretch, pass: Pass) {
    let mut feed = Feed {
        engine,
        spec,
        stretch,
        moves: pass != Pass::Delete,
        deletes: pass != Pass::Transfer && stretch.may_delete(),
        tasks: Vec::with_capacity(TASKS),
        extraneous: Vec::new(),
        totals: Totals::default(),
        counted: 0,
    };
    feed.run(stores);
    feed.flush();
}

struct Feed<'a> {
    engine: &'a Engine<'a>,
    spec: &'a Spec,
    stretch: &'a Stretch,
    moves: bool,
    deletes: bool,
    tasks: Vec<Task>,
    extraneous: Vec<Entry>,
    totals: Totals,
    /// Entries in `totals` that were not told of yet.
    counted: u64,
}

impl Feed<'_> {
    fn run(&mut self, stores: &Stores) {
        let stretch = self.stretch;
        let engine = self.engine;
        let policy = engine.policy();
        match &stretch.what {
            What::One { entry, name } if self.moves => {
                let existing = match needs_target(self.spec) {
                    true => listings::existing(stretch, stores, name),
                    false => Ok(None),
                };
                match existing {
                    Ok(existing) => {
                        self.see(entry);
                        self.decide(entry.clone(), name.clone(), existing);
                    }
                    Err(trouble) => self.trouble(Side::Target, trouble),
                }
            }
            What::One { .. } => {}
            What::Given(names) => {
                let sieve = match listings::sieve(policy, stretch) {
                    Ok(sieve) => sieve,
                    Err(fatal) => {
                        self.engine.stop_for(fatal);
                        return;
                    }
                };
                let of = |side| listings::given(self.spec, policy, stretch, stores, side, names);
                let wanted = needs_target(self.spec) && !stretch.target_is_new;
                let target = wanted.then(|| of(Side::Target));
                self.merge(Merge::new(Some(of(Side::Source)), target), sieve, None);
            }
            What::Tree { pattern } => {
                let sieve = match listings::sieve(policy, stretch) {
                    Ok(sieve) => sieve,
                    Err(fatal) => {
                        self.engine.stop_for(fatal);
                        return;
                    }
                };
                let of = |side| listings::tree(self.spec, policy, stretch, stores, side);
                let wanted = needs_target(self.spec) || self.deletes;
                let target = (wanted && !stretch.target_is_new).then(|| of(Side::Target));
                let source = match of(Side::Source) {
                    Ok(source) => source,
                    Err(fatal) => {
                        self.engine.stop_for(fatal);
                        return;
                    }
                };
                match target.transpose() {
                    Ok(target) => {
                        self.merge(Merge::new(Some(source), target), sieve, pattern.as_ref());
                    }
                    Err(fatal) => self.engine.stop_for(fatal),
                }
            }
        }
    }

    fn merge(&mut self, merge: Merge, mut sieve: Option<Sieve>, pattern: Option<&Pattern>) {
        let mut any = false;
        for merged in merge {
            if self.engine.is_stopped() {
                return;
            }
            let (entry, existing) = match merged {
                Merged::Source(entry) => (entry, None),
                Merged::Both(entry, existing) => (entry, Some(existing)),
                Merged::Target(existing) => {
                    if self.deletes && !self.rules(&mut sieve, &existing).protect {
                        self.remove(existing);
                    }
                    continue;
                }
                Merged::Unknown(entry) => {
                    // Its trouble was told.
                    self.see(&entry);
                    continue;
                }
                Merged::Trouble(side, trouble) => {
                    any |= side == Side::Source;
                    self.trouble(side, trouble);
                    continue;
                }
            };
            if pattern.is_some_and(|pattern| !pattern.matches(&entry.name)) {
                continue;
            }
            any = true;
            if self.rules(&mut sieve, &entry).hide {
                if let Some(existing) = existing.filter(|_| self.deletes)
                    && !self.rules(&mut sieve, &existing).protect
                {
                    self.remove(existing);
                }
                continue;
            }
            if self.moves {
                self.see(&entry);
                if let Some(name) = self.target_name(&entry) {
                    self.decide(entry, name, existing);
                }
            }
        }
        if pattern.is_some() && !any && self.moves && !self.engine.is_stopped() {
            self.report(self.stretch.pair.source.spell(b""), "the wildcard matches nothing there");
        }
    }

    /// What the filter rules say of an entry of either side.
    fn rules(&mut self, sieve: &mut Option<Sieve>, entry: &Entry) -> Decision {
        let Some(sieve) = sieve else { return Decision::default() };
        sieve.decide(&entry.name).unwrap_or_else(|error| {
            self.totals.failed += 1;
            self.engine.problem(&Problem {
                operation: Operation::Filter,
                source: Some(self.stretch.pair.source.spell(&entry.name)),
                target: None,
                cause: Cause::Said(error.to_string()),
                class: Class::Partial,
            });
            Decision { hide: true, protect: true }
        })
    }

    /// The name that an entry gets at the target; none where no such name can be, which is told.
    fn target_name(&mut self, entry: &Entry) -> Option<Vec<u8>> {
        let encode = self.spec.objects.options.encode_names;
        let pair = &self.stretch.pair;
        // The slash of a folder is no part of its name. An object with content has no such slash.
        let (inner, slash) = match entry.name.strip_suffix(b"/") {
            Some(inner) if entry.meta.kind == Kind::Dir => (inner, true),
            _ => (&*entry.name, false),
        };
        let mapped = match (&pair.source, &pair.target) {
            (Root::Local { .. }, Root::Store { .. }) => key_of(inner, encode),
            // The object whose key is the prefix itself stands for the target folder.
            (Root::Store { .. }, Root::Local { .. }) if entry.name.is_empty() => return None,
            (Root::Store { .. }, Root::Local { .. })
                if slash && !self.spec.objects.options.dir_markers =>
            {
                return None;
            }
            (Root::Store { .. }, Root::Local { .. }) => path_of(inner, encode),
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

    /// Decides about an entry and hands on what is to be done.
    fn decide(&mut self, entry: Entry, name: Vec<u8>, existing: Option<Entry>) {
        let policy = self.engine.policy();
        let options = &self.spec.objects.options;
        let mut source = entry.meta;
        if source.kind == Kind::Symlink && existing.is_some() {
            // A stored symlink is an object like any other.
            source.kind = Kind::File;
        }
        let action = decide(&source, existing.as_ref().map(|there| &there.meta), policy);
        // The time of an object is that of its upload: what it keeps of the source's time stands
        // in its metadata, which no listing shows.
        let kept = options.keep_times && !policy.size_only && !policy.ignore_times;
        let same_size = existing.as_ref().is_some_and(|there| there.meta.size == source.size);
        // Whether the object says to be a symlink, too, stands in its metadata as well.
        let kept_link = policy.symlinks == Symlinks::Keep
            && matches!(self.stretch.pair.source, Root::Store { .. })
            && existing.as_ref().is_some_and(|there| there.meta.kind == Kind::Symlink);
        let closer = match action {
            Action::Compare => true,
            Action::Update if kept_link && same_size => true,
            Action::Update | Action::Metadata => kept && same_size && source.kind == Kind::File,
            Action::Create | Action::Skip(_) => false,
        };
        let (name, existing) = (name.into_boxed_slice(), existing.map(Box::new));
        let work = match (action, existing) {
            (_, Some(existing)) if closer => Work::Compare { entry, name, existing },
            (Action::Create | Action::Update | Action::Compare, existing) => {
                Work::Move { entry, name, existing }
            }
            (Action::Metadata | Action::Skip(_), _) => {
                self.totals.skipped += 1;
                self.totals.bytes_skipped += entry.meta.size;
                return;
            }
        };
        self.tasks.push(Task { pair: Arc::clone(&self.stretch.pair), work });
        if self.tasks.len() >= TASKS {
            self.push();
        }
    }

    /// Has an extraneous entry removed.
    fn remove(&mut self, existing: Entry) {
        self.extraneous.push(existing);
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
        self.counted += 1;
        if self.counted >= COUNTED {
            // What waits goes out as well: a listing may be slow, and most of it unchanged.
            self.push();
            self.tell();
        }
    }

    fn tell(&mut self) {
        let entries = std::mem::take(&mut self.counted);
        self.engine.found(entries);
        let totals = std::mem::take(&mut self.totals);
        self.engine.add(&totals);
    }

    fn push(&mut self) {
        self.engine.push(self.tasks.drain(..));
    }

    fn push_deletes(&mut self) {
        let entries = std::mem::take(&mut self.extraneous);
        let pair = Arc::clone(&self.stretch.pair);
        self.engine.push([Task { pair, work: Work::Delete { entries } }]);
    }

    fn flush(&mut self) {
        self.push();
        if !self.extraneous.is_empty() {
            self.push_deletes();
        }
        self.tell();
    }

    fn trouble(&mut self, side: Side, trouble: Trouble) {
        match trouble {
            Trouble::Problem { problem, .. } => {
                match problem.class {
                    Class::Vanished => self.totals.vanished += 1,
                    Class::Notice => self.totals.skipped += 1,
                    Class::Partial | Class::Fatal => self.totals.failed += 1,
                }
                self.engine.problem(&problem);
            }
            Trouble::Failed(error) => {
                let root = match side {
                    Side::Source => &self.stretch.pair.source,
                    Side::Target => &self.stretch.pair.target,
                };
                let shown = root.spell(b"");
                if error.stops_run() {
                    let message = format!("cannot list {}: {error}", crate::error::quoted(shown));
                    return self.engine.stop_for(Fatal::new(1, message));
                }
                self.totals.failed += 1;
                self.engine.problem(&Problem {
                    operation: Operation::List,
                    source: Some(shown),
                    target: None,
                    cause: Cause::Said(error.to_string()),
                    class: Class::Partial,
                });
            }
        }
    }

    fn report(&mut self, source: std::path::PathBuf, reason: &'static str) {
        self.totals.failed += 1;
        self.engine.problem(&Problem {
            operation: Operation::Read,
            source: Some(source),
            target: None,
            cause: Cause::Reason(reason),
            class: Class::Partial,
        });
    }
}
