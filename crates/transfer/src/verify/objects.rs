//! Proves that objects are the same as files or other objects: two listings side by side, sizes
//! from there, contents by stored checksums where they can tell and by reading where not.
//!
//! Folders are no entries here: S3 has none, and zero-byte markers (`a/`) say nothing of contents.
//! Symlinks of a local tree stand for what they name.

mod place;

use super::{Aspect, Aspects, Counts, Difference, Finding, Outcome, Times, differences};
use crate::control::Control;
use crate::error::{Class, Fatal};
use crate::event::{Event, Listener};
use crate::journal::Journal;
use crate::limit::Helm;
use crate::location::Location;
use crate::object::list::{Merge, Merged, Sieve, Trouble, merge_files};
use crate::object::{
    self, Checked, Checking, Engine, Entry, Finding as Found, ObjectOptions, Pair, Root, Setup,
    Side, Task, Work,
};
use crate::policy::filter::{Filter, Origin};
use crate::policy::{Policy, Symlinks};
use crate::s3::{Requests, Settings, Store};
use crate::unit::{Kind, Meta, Totals};
use hakobu_sys::process;
use place::{Place, What};
use std::ops::Add;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Most bytes in flight.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// A comparison with an object or a prefix on one side or both.
#[derive(Clone, Debug)]
pub struct ObjectSpec {
    /// The first side.
    pub source: Location,
    /// The second side.
    pub target: Location,
    /// How the store of the first side is reached.
    pub source_settings: Settings,
    /// How the store of the second side is reached.
    pub target_settings: Settings,
    /// What counts: size, content; mtime and mode where both sides have them (those of files
    /// travel in metadata). Others do not exist here.
    pub aspects: Aspects,
    /// When times are the same.
    pub times: Times,
    /// Entries that only the target has are no difference.
    pub one_way: bool,
    /// As in [`super::Spec`]; per-directory files are read from a local source.
    pub filter: Option<Arc<Filter>>,
    /// Comparisons at once.
    pub jobs: usize,
}

type Report<'a> = &'a (dyn Fn(&Difference<'_>) + Sync);

/// As [`super::verify`], for objects.
///
/// # Errors
/// Code 2: a side is not there or cannot be listed.
pub fn verify_objects(
    spec: &ObjectSpec,
    report: Report<'_>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let started = Instant::now();
    let (source, target) = open(spec, control)?;
    let from = place::find(&spec.source, source.as_ref())?;
    let to = place::find(&spec.target, target.as_ref())?;
    // Contents are found through the links that listings follow.
    let policy = Policy { symlinks: Symlinks::Follow, ..Policy::default() };
    let options = ObjectOptions::default();
    let helm = Helm::fixed(spec.jobs);
    let setup = Setup {
        policy: &policy,
        options: &options,
        source: source.clone(),
        target: target.clone(),
        listener,
        control,
        items: (false, false),
        helm: &helm,
        cores: process::cpus(),
        memory_bytes_max: MEMORY_BYTES_MAX,
        journal: Journal::of_user(),
        umask: 0,
    };
    let (told, answers) = channel();
    let asked = Checking {
        contents: spec.aspects.has(Aspect::Content),
        attributes: spec.aspects.has(Aspect::Time) || spec.aspects.has(Aspect::Mode),
        told,
    };
    let mut feed = Feed { spec, report, listener, counts: Counts::default(), fatal: None };
    let (ran, answered) = std::thread::scope(|scope| {
        let answers = scope.spawn(|| collect(spec, report, listener, answers));
        let feed = &mut feed;
        let stores = (source.as_ref(), target.as_ref());
        let ran = object::run(setup, move |engine| feed.run(engine, (&from, &to), stores, &asked));
        (ran, answers.join())
    });
    let (_, stopped) = ran?;
    let Feed { mut counts, fatal, .. } = feed;
    if let Some(fatal) = stopped.or(fatal) {
        return Err(Fatal { code: 2, ..fatal });
    }
    if control.is_stopped() {
        return Err(Fatal::new(2, "stopped by a signal before everything was compared"));
    }
    match answered {
        Ok(more) => counts.add(&more),
        Err(panic) => std::panic::resume_unwind(panic),
    }
    let same = matches!((&source, &target), (Some(one), Some(other)) if Arc::ptr_eq(one, other));
    let stores = source.iter().chain(target.iter().filter(|_| !same));
    let requests = stores.map(|store| Requests::of(store)).fold(Requests::default(), Add::add);
    Ok(Outcome { counts, took: started.elapsed(), jobs: spec.jobs, requests })
}

type Opened = Option<Arc<Store>>;

fn open(spec: &ObjectSpec, control: &Control) -> Result<(Opened, Opened), Fatal> {
    let of = |location: &Location, settings: &Settings| match location {
        Location::S3(_) => {
            let store = Store::open(settings).map_err(|error| Fatal::new(2, error.to_string()))?;
            store.set_control(control.flag());
            Ok(Some(store))
        }
        _ => Ok(None),
    };
    let source = of(&spec.source, &spec.source_settings)?;
    let target = match (&source, &spec.target) {
        (Some(store), Location::S3(_)) if spec.source_settings == spec.target_settings => {
            Some(Arc::clone(store))
        }
        _ => of(&spec.target, &spec.target_settings)?,
    };
    Ok((source, target))
}

/// Goes through the listings: tells what they show already and hands out the rest.
struct Feed<'a> {
    spec: &'a ObjectSpec,
    report: Report<'a>,
    listener: &'a dyn Listener,
    counts: Counts,
    fatal: Option<Fatal>,
}

impl Feed<'_> {
    fn run(
        &mut self,
        engine: &Engine<'_>,
        (from, to): (&Place, &Place),
        stores: (Option<&Arc<Store>>, Option<&Arc<Store>>),
        asked: &Checking,
    ) {
        let pair = Arc::new(Pair {
            source: place::again(&from.root),
            target: place::again(&to.root),
            lead: Vec::new(),
        });
        let mut sieve = match self.sieve(from) {
            Ok(sieve) => sieve,
            Err(fatal) => {
                self.fatal = Some(fatal);
                return;
            }
        };
        let (source, target) = match (&from.what, &to.what) {
            (What::One(a), What::One(b)) => {
                self.both(engine, &pair, asked, (a.clone(), b.clone()), b"");
                return;
            }
            (What::Tree, What::Tree) => (from.list(stores.0), to.list(stores.1)),
            (What::One(a), What::Tree) => return self.other_type(&a.meta, Kind::Dir, true),
            (What::Tree, What::One(b)) => return self.other_type(&b.meta, Kind::Dir, false),
        };
        for step in Merge::new(Some(source), Some(target)) {
            if engine.is_stopped() {
                return;
            }
            let (a, b) = match step {
                Merged::Both(a, b) => (Some(a), Some(b)),
                Merged::Source(a) => (Some(a), None),
                Merged::Target(b) => (None, Some(b)),
                // The trouble at the target was told.
                Merged::Unknown(_) => continue,
                Merged::Trouble(side, trouble) => {
                    self.trouble(side, trouble);
                    continue;
                }
            };
            let Some(name) = a.as_ref().or(b.as_ref()).map(|entry| entry.name.clone()) else {
                continue;
            };
            // Markers and folders.
            if name.ends_with(b"/") {
                continue;
            }
            match sieve.as_mut().map(|sieve| sieve.decide(&name)).transpose() {
                Ok(Some(decision)) if decision.hide || (a.is_none() && decision.protect) => {
                    continue;
                }
                Ok(_) => {}
                Err(error) => {
                    self.fatal = Some(Fatal::new(2, error.to_string()));
                    return;
                }
            }
            match (a, b) {
                (Some(a), Some(b)) => self.both(engine, &pair, asked, (a, b), &name),
                (Some(a), None) => self.only(Finding::Missing, &name, Some(&a.meta), None),
                (None, Some(b)) if !self.spec.one_way => {
                    self.only(Finding::Extra, &name, None, Some(&b.meta));
                }
                (None, _) => {}
            }
        }
    }

    fn sieve(&self, from: &Place) -> Result<Option<Sieve>, Fatal> {
        let Some(filter) = &self.spec.filter else { return Ok(None) };
        let (read, top) = match &from.root {
            Root::Local { dir, shown } => {
                let top = std::path::absolute(shown).unwrap_or_else(|_| shown.clone());
                (Some(merge_files(Arc::clone(dir))), top.into_os_string().into_encoded_bytes())
            }
            _ => (None, b"/".to_vec()),
        };
        let origin = Origin { source: &top, target: b"/", first: b"" };
        let sieve = Sieve::new(Arc::clone(filter), &origin, read);
        sieve.map(Some).map_err(|error| Fatal::new(2, error.to_string()))
    }

    fn both(
        &mut self,
        engine: &Engine<'_>,
        pair: &Arc<Pair>,
        asked: &Checking,
        (a, b): (Entry, Entry),
        path: &[u8],
    ) {
        let sized = self.spec.aspects.has(Aspect::Size) || self.spec.aspects.has(Aspect::Content);
        if a.meta.size != b.meta.size && sized {
            self.counts.files += 1;
            let wanted = Aspects::NONE.with(Aspect::Size);
            let has_size = self.spec.aspects.has(Aspect::Size);
            let set = if has_size { wanted } else { Aspects::NONE.with(Aspect::Content) };
            return tell(&mut self.counts, self.report, path, set, (&a.meta, &b.meta), None);
        }
        if !asked.contents && !asked.attributes {
            self.counts.files += 1;
            return;
        }
        let name = b.name.clone();
        let work = Work::Check { entry: a, name, existing: Box::new(b), asked: asked.clone() };
        engine.push([Task { pair: Arc::clone(pair), work }]);
    }

    fn only(&mut self, finding: Finding, path: &[u8], a: Option<&Meta>, b: Option<&Meta>) {
        self.counts.differences += 1;
        match finding {
            Finding::Missing => self.counts.missing += 1,
            _ => self.counts.extra += 1,
        }
        (self.report)(&Difference { path, finding, source: a, target: b, offset: None });
    }

    fn other_type(&mut self, one: &Meta, other: Kind, source_is_one: bool) {
        let other = Meta { kind: other, ..*one };
        let metas = if source_is_one { (one, &other) } else { (&other, one) };
        let set = Aspects::NONE.with(Aspect::Type);
        tell(&mut self.counts, self.report, b"", set, metas, None);
    }

    fn trouble(&mut self, side: Side, trouble: Trouble) {
        match trouble {
            Trouble::Problem { problem, .. } => {
                self.counts.failed += u64::from(problem.class != Class::Notice);
                self.listener.event(Event::Problem(&problem));
            }
            Trouble::Failed(error) => {
                let location = match side {
                    Side::Source => &self.spec.source,
                    Side::Target => &self.spec.target,
                };
                let shown = place::spell(location);
                self.fatal.get_or_insert(Fatal::new(2, format!("cannot list {shown}: {error}")));
            }
        }
    }
}

fn tell(
    counts: &mut Counts,
    report: Report<'_>,
    path: &[u8],
    set: Aspects,
    (a, b): (&Meta, &Meta),
    offset: Option<u64>,
) {
    counts.differences += 1;
    for aspect in set.iter() {
        if let Some(count) = counts.by_aspect.get_mut(aspect as usize) {
            *count += 1;
        }
    }
    let finding = Finding::Differs(set);
    report(&Difference { path, finding, source: Some(a), target: Some(b), offset });
}

/// Counts and tells what the cores found out.
fn collect(
    spec: &ObjectSpec,
    report: Report<'_>,
    listener: &dyn Listener,
    answers: Receiver<Checked>,
) -> Counts {
    let mut counts = Counts::default();
    for checked in answers {
        if checked.finding == Found::Failed {
            counts.failed += 1;
            continue;
        }
        counts.files += 1;
        let (set, offset) = judge(&checked, spec.aspects, spec.times);
        let bytes = match (spec.aspects.has(Aspect::Content), offset) {
            (false, _) => 0,
            (true, Some(offset)) => offset,
            (true, None) => checked.source.size,
        };
        counts.bytes += bytes;
        if !set.is_empty() {
            let metas = (&checked.source, &checked.target);
            tell(&mut counts, report, &checked.name, set, metas, offset);
        }
        listener.event(Event::Unit(&Totals { files: 1, bytes, ..Totals::default() }));
    }
    counts
}

/// In what a pair differs, and from which byte on.
fn judge(checked: &Checked, aspects: Aspects, times: Times) -> (Aspects, Option<u64>) {
    let mut wanted = aspects.without(Aspect::Owner).without(Aspect::Group);
    if !checked.times {
        wanted = wanted.without(Aspect::Time);
    }
    if !checked.modes {
        wanted = wanted.without(Aspect::Mode);
    }
    let set = differences(&checked.source, &checked.target, wanted, times);
    match checked.finding {
        Found::Differ(offset) if aspects.has(Aspect::Content) => {
            (set.with(Aspect::Content), offset)
        }
        _ => (set, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::list::bare_meta;
    use crate::unit::Time;

    #[test]
    fn only_what_both_sides_have_counts() {
        let meta = |s, mode| Meta { mode, ..bare_meta(Kind::File, 5, Time { s, ns: 0 }) };
        let mut checked = Checked {
            name: (*b"a").into(),
            source: meta(1, 0o600),
            target: meta(2, 0o644),
            times: false,
            modes: false,
            finding: Found::Differ(Some(3)),
        };
        let of = |checked: &Checked, aspects| {
            let (set, offset) = judge(checked, aspects, Times::default());
            (set.iter().map(Aspect::word).collect::<Vec<_>>(), offset)
        };
        assert_eq!(of(&checked, Aspects::DEFAULT), (vec!["content"], Some(3)));
        (checked.times, checked.modes) = (true, true);
        let found = of(&checked, Aspects::DEFAULT);
        assert_eq!(found, (vec!["content", "mode", "mtime"], Some(3)));
        let sizes = Aspects::NONE.with(Aspect::Size);
        assert_eq!(of(&checked, sizes), (Vec::new(), None));
    }
}
