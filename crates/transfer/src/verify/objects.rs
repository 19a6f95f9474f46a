//! Comparison of objects with files or other objects: merges two listings, compares sizes from there, and contents by
//! stored checksums if they decide and by reading otherwise.
//!
//! Directories are not compared: S3 has none, and zero-byte markers (`a/`) have no content. A symlink is compared
//! with a stored symlink by text, and followed next to any other object.

use super::aspects::{
    Aspect, Aspects, Difference, Finding, Times, VerifyCounts, VerifyOutcome, differences,
};
use crate::failure::c_string;
use crate::journal::Journal;
use crate::local::read_merge_file;
use crate::location::{Location, S3Url};
use crate::object::list::{
    self, Listing, LocalQuery, Merge, Merged, NameFilter, StoreQuery, Trouble, merge_files,
};
use crate::object::{
    self, Checking, ComparedPair, Entry, How, JOBS_SEED, ObjectEngine, ObjectOptions, ObjectSetup,
    Pair, PairFinding as Found, Root, Side, Task, Work, key_of, path_of,
};
use crate::policy::filter::{DirRules, Filter, FilterError, Origin};
use crate::policy::{Policy, Symlinks};
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, quoted};
use hakobu_core::event::{Event, Listener};
use hakobu_core::limit::{Controls, Limits};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::{RequestCounts, S3Session, Settings};
use hakobu_sys::paths::Links;
use hakobu_sys::{BorrowedFd, dir, meta, process};
use std::io;
use std::ops::Add;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Limit on bytes in flight.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// A comparison with an object or a prefix on one side or both.
#[derive(Clone, Debug)]
pub struct ObjectSpec {
    /// The first side.
    pub source: Location,
    /// The second side.
    pub target: Location,
    /// Settings of the store of the first side.
    pub source_settings: Settings,
    /// Settings of the store of the second side.
    pub target_settings: Settings,
    /// Aspects to compare: type, size, content, texts of symlinks; mtime and mode if both sides have them (those of
    /// files are stored in metadata). Others do not exist here.
    pub aspects: Aspects,
    /// Tolerance of times.
    pub times: Times,
    /// Local symlinks are followed, and objects compared by content alone.
    pub follow: bool,
    /// Local names are compared with their percent-encoded keys.
    pub encode_names: bool,
    /// Entries that only the target has are not differences.
    pub one_way: bool,
    /// As in [`super::VerifySpec`]; per-directory files are read from a local source.
    pub filter: Option<Arc<Filter>>,
    /// What it may take: the number of comparisons (a fixed default with `auto`), and bytes of content a second.
    pub limits: Limits,
}

impl ObjectSpec {
    fn symlinks(&self) -> Symlinks {
        if self.follow { Symlinks::Follow } else { Symlinks::Keep }
    }
}

type Report<'a> = &'a (dyn Fn(&Difference<'_>) + Sync);

/// As [`super::verify`], for objects.
///
/// # Errors
/// Code 2: a side does not exist or cannot be listed.
pub fn verify_objects(
    spec: &ObjectSpec,
    report: Report<'_>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<VerifyOutcome, Fatal> {
    compare(spec, None, report, control, listener)
}

/// Compares names below two folders or prefixes, as [`verify_objects`] does entries of trees. Names
/// are those of the source; one that it lacks is not a difference.
///
/// # Errors
/// Code 2: a side cannot be asked.
pub fn verify_named_objects(
    spec: &ObjectSpec,
    names: &[Vec<u8>],
    report: Report<'_>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<VerifyOutcome, Fatal> {
    let spec = ObjectSpec { one_way: true, filter: None, ..spec.clone() };
    compare(&spec, Some(names), report, control, listener)
}

fn compare(
    spec: &ObjectSpec,
    names: Option<&[Vec<u8>]>,
    report: Report<'_>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<VerifyOutcome, Fatal> {
    let started = Instant::now();
    let (source, target) = open(spec, control)?;
    let find = |location: &Location, store: &Opened| match names {
        None => find(location, store.as_ref(), spec.symlinks()),
        Some(_) => folder(location, store.as_ref()),
    };
    let from = find(&spec.source, &source)?;
    let to = find(&spec.target, &target)?;
    // Contents are read through symlinks, also through those that stand for a file next to an object.
    let policy = Policy { symlinks: Symlinks::Follow, ..Policy::default() };
    let options = ObjectOptions::default();
    let bytes = spec.limits.byte_limiter().map(Arc::new);
    let jobs = spec.limits.jobs.fixed_or(JOBS_SEED);
    let controls = Controls { bytes, ..Controls::fixed(jobs) };
    listener.event(Event::Begins(&controls.meter));
    let setup = ObjectSetup {
        policy: &policy,
        options: &options,
        source: source.clone(),
        target: target.clone(),
        listener,
        control,
        items: (false, false),
        controls: &controls,
        cores: process::cpus(),
        memory_bytes_max: MEMORY_BYTES_MAX,
        journal: Journal::of_user(),
        ledger: Arc::default(),
        folded: Arc::default(),
        manifests: Arc::default(),
        umask: 0,
    };
    let (sender, results) = channel();
    let asked = Checking {
        contents: spec.aspects.has(Aspect::Content),
        attributes: spec.aspects.has(Aspect::Time) || spec.aspects.has(Aspect::Mode),
        types: !spec.follow,
        links: spec.aspects.has(Aspect::Link),
        results: sender,
    };
    let mut feed =
        Feed { spec, names, report, listener, counts: VerifyCounts::default(), fatal: None };
    let (ran, answered) = std::thread::scope(|scope| {
        let results = scope.spawn(|| collect(spec, report, results));
        let feed = &mut feed;
        let ran = object::run(setup, move |engine| {
            feed.run(engine, (&from, &to), &asked);
            engine.all_found();
        });
        (ran, results.join())
    });
    let (_, stopped) = ran?;
    let Feed { mut counts, fatal, .. } = feed;
    if control.is_stopped() {
        return Err(Fatal::new(2, "stopped by a signal before everything was compared"));
    }
    if let Some(fatal) = stopped.or(fatal) {
        return Err(Fatal { code: 2, ..fatal });
    }
    match answered {
        Ok(more) => counts.add(&more),
        Err(panic) => std::panic::resume_unwind(panic),
    }
    let same = matches!((&source, &target), (Some(one), Some(other)) if Arc::ptr_eq(one, other));
    let stores = source.iter().chain(target.iter().filter(|_| !same));
    let requests =
        stores.map(|store| RequestCounts::of(store)).fold(RequestCounts::default(), Add::add);
    Ok(VerifyOutcome { counts, took: started.elapsed(), jobs, requests })
}

type Opened = Option<Arc<S3Session>>;

fn open(spec: &ObjectSpec, control: &Control) -> Result<(Opened, Opened), Fatal> {
    let of = |location: &Location, settings: &Settings| match location {
        Location::S3(_) => {
            let store =
                S3Session::open(settings).map_err(|error| Fatal::new(2, error.to_string()))?;
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

/// Reads the listings: reports differences that they show already and queues the rest.
struct Feed<'a> {
    spec: &'a ObjectSpec,
    /// Only these names of the source.
    names: Option<&'a [Vec<u8>]>,
    report: Report<'a>,
    listener: &'a dyn Listener,
    counts: VerifyCounts,
    fatal: Option<Fatal>,
}

impl Feed<'_> {
    fn run(
        &mut self,
        engine: &ObjectEngine<'_>,
        (from, to): (&ResolvedSide, &ResolvedSide),
        asked: &Checking,
    ) {
        let (source, target) = (from.root.clone(), to.root.clone());
        let pair = Arc::new(Pair { source, target, lead: Vec::new() });
        let mut name_filter = match self.name_filter(from) {
            Ok(name_filter) => name_filter,
            Err(fatal) => {
                self.fatal = Some(fatal);
                return;
            }
        };
        let (source, target) = match (&from.what, &to.what) {
            (SideKind::One(a), SideKind::One(b)) => {
                self.both(engine, &pair, asked, (a.clone(), b.clone()), b"");
                return;
            }
            (SideKind::Tree, SideKind::Tree) => match self.names {
                None => {
                    let (symlinks, encode) = (self.spec.symlinks(), self.spec.encode_names);
                    (from.list(symlinks, encode), to.list(symlinks, encode))
                }
                Some(names) => self.named(names, (from, to)),
            },
            (SideKind::One(a), SideKind::Tree) => return self.other_type(&a.meta, Kind::Dir, true),
            (SideKind::Tree, SideKind::One(b)) => {
                return self.other_type(&b.meta, Kind::Dir, false);
            }
        };
        for step in Merge::new(Some(source), Some(target)) {
            if engine.is_stopped() {
                return;
            }
            let (a, b) = match step {
                Merged::Both(a, b) => (Some(a), Some(b)),
                Merged::Source(a) => (Some(a), None),
                Merged::Target(b) => (None, Some(b)),
                // The problem at the target was reported.
                Merged::Unknown(_) => continue,
                Merged::Trouble(side, trouble) => {
                    self.trouble(side, trouble);
                    continue;
                }
            };
            let Some(name) = a.as_ref().or(b.as_ref()).map(|entry| entry.name.clone()) else {
                continue;
            };
            if name.ends_with(b"/") {
                continue;
            }
            match name_filter.as_mut().map(|name_filter| name_filter.decide(&name)).transpose() {
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

    /// The given names on both sides. Those that the target cannot have are missing there.
    fn named(
        &self,
        names: &[Vec<u8>],
        (from, to): (&ResolvedSide, &ResolvedSide),
    ) -> (Listing, Listing) {
        let encode = self.spec.encode_names;
        let at_target = |name: &Vec<u8>| match (&from.root, &to.root) {
            (Root::Local { .. }, Root::Store { .. }) => key_of(name, encode).ok(),
            (Root::Store { .. }, Root::Local { .. }) => path_of(name, encode).ok(),
            _ => Some(name.clone()),
        };
        let (symlinks, there) =
            (self.spec.symlinks(), names.iter().filter_map(at_target).collect());
        (from.list_names(names.to_vec(), symlinks, encode), to.list_names(there, symlinks, encode))
    }

    fn name_filter(&self, from: &ResolvedSide) -> Result<Option<NameFilter>, Fatal> {
        let Some(filter) = &self.spec.filter else { return Ok(None) };
        let (read, top) = match &from.root {
            Root::Local { dir, shown } => {
                let top = std::path::absolute(shown).unwrap_or_else(|_| shown.clone());
                (
                    Some(merge_files(Arc::clone(dir), Links::Trusted)),
                    top.into_os_string().into_encoded_bytes(),
                )
            }
            _ => (None, b"/".to_vec()),
        };
        let origin = Origin { source: &top, target: b"/", first: b"" };
        let name_filter = NameFilter::new(Arc::clone(filter), &origin, read);
        name_filter.map(Some).map_err(|error| Fatal::new(2, error.to_string()))
    }

    fn both(
        &mut self,
        engine: &ObjectEngine<'_>,
        pair: &Arc<Pair>,
        asked: &Checking,
        (a, b): (Entry, Entry),
        path: &[u8],
    ) {
        let sized = self.spec.aspects.has(Aspect::Size) || self.spec.aspects.has(Aspect::Content);
        // An object's metadata says whether it is a symlink.
        let may_be_links = [&a, &b].iter().any(|entry| entry.meta.kind == Kind::Symlink);
        if a.meta.size != b.meta.size && sized && !may_be_links {
            self.counts.files += 1;
            engine.passed(1);
            let wanted = Aspects::NONE.with(Aspect::Size);
            let has_size = self.spec.aspects.has(Aspect::Size);
            let set = if has_size { wanted } else { Aspects::NONE.with(Aspect::Content) };
            return report_pair(&mut self.counts, self.report, path, set, (&a.meta, &b.meta), None);
        }
        if !asked.contents && !asked.attributes && !may_be_links {
            self.counts.files += 1;
            return engine.passed(1);
        }
        let name = b.name.clone();
        let (existing, how) = (Some(Box::new(b)), How::Check(asked.clone()));
        let work = Work::Move { entry: a, name, existing, how };
        engine.push([Task { pair: Arc::clone(pair), work }]);
    }

    fn only(&mut self, finding: Finding, path: &[u8], a: Option<&Meta>, b: Option<&Meta>) {
        self.counts.note(finding);
        (self.report)(&Difference { path, finding, source: a, target: b, offset: None });
    }

    fn other_type(&mut self, one: &Meta, other: Kind, source_is_one: bool) {
        let other = Meta { kind: other, ..*one };
        let metas = if source_is_one { (one, &other) } else { (&other, one) };
        let set = Aspects::NONE.with(Aspect::Type);
        report_pair(&mut self.counts, self.report, b"", set, metas, None);
    }

    fn trouble(&mut self, side: Side, trouble: Trouble) {
        match trouble {
            Trouble::Problem { problem, .. } => {
                self.counts.failed += u64::from(problem.class != ErrorClass::Notice);
                self.listener.event(Event::Problem(&problem));
            }
            Trouble::Failed(error) => {
                let location = match side {
                    Side::Source => &self.spec.source,
                    Side::Target => &self.spec.target,
                };
                let shown = spell(location);
                self.fatal.get_or_insert(Fatal::new(2, format!("cannot list {shown}: {error}")));
            }
        }
    }
}

fn report_pair(
    counts: &mut VerifyCounts,
    report: Report<'_>,
    path: &[u8],
    set: Aspects,
    (a, b): (&Meta, &Meta),
    offset: Option<u64>,
) {
    let finding = Finding::Differs(set);
    counts.note(finding);
    report(&Difference { path, finding, source: Some(a), target: Some(b), offset });
}

/// Counts and reports the results of the cores.
fn collect(spec: &ObjectSpec, report: Report<'_>, results: Receiver<ComparedPair>) -> VerifyCounts {
    let mut counts = VerifyCounts::default();
    for checked in results {
        if checked.finding == Found::Failed {
            counts.failed += 1;
            continue;
        }
        let is_link = checked.source.kind == Kind::Symlink;
        counts.files += u64::from(!is_link);
        counts.others += u64::from(is_link);
        let (set, offset) = judge(&checked, spec.aspects, spec.times);
        let bytes = match (spec.aspects.has(Aspect::Content) && !is_link, offset) {
            (false, _) => 0,
            (true, Some(offset)) => offset,
            (true, None) => checked.source.size,
        };
        counts.bytes += bytes;
        if !set.is_empty() {
            let metas = (&checked.source, &checked.target);
            report_pair(&mut counts, report, &checked.name, set, metas, offset);
        }
    }
    counts
}

/// Returns the aspects in which a pair differs, and the offset of the first difference.
fn judge(checked: &ComparedPair, aspects: Aspects, times: Times) -> (Aspects, Option<u64>) {
    let mut wanted = aspects.without(Aspect::Owner).without(Aspect::Group);
    if !checked.times {
        wanted = wanted.without(Aspect::Time);
    }
    if !checked.modes {
        wanted = wanted.without(Aspect::Mode);
    }
    let set = differences(&checked.source, &checked.target, wanted, times);
    match checked.finding {
        Found::Differ(_) if checked.source.kind == Kind::Symlink => (set.with(Aspect::Link), None),
        Found::Differ(offset) if aspects.has(Aspect::Content) => {
            (set.with(Aspect::Content), offset)
        }
        _ => (set, None),
    }
}

// The arguments of a comparison: a tree (a folder, a prefix) or a single file or object.

/// A resolved argument.
pub(super) struct ResolvedSide {
    pub root: Root,
    /// The store of an S3 root.
    pub store: Option<Arc<S3Session>>,
    pub what: SideKind,
}

/// The kind of an argument.
pub(super) enum SideKind {
    /// A tree of entries.
    Tree,
    /// A single file or object, with its name relative to the root.
    One(Entry),
}

impl ResolvedSide {
    /// Lists the entries. With `encode` local names sort by their percent-encoded keys.
    pub fn list(&self, symlinks: Symlinks, encode: bool) -> Listing {
        let query = LocalQuery { symlinks, encode, ..LocalQuery::default() };
        list::below(&self.root, self.store.as_ref(), Vec::new(), query)
    }

    /// Lists those of the names that exist.
    pub fn list_names(&self, names: Vec<Vec<u8>>, symlinks: Symlinks, encode: bool) -> Listing {
        list::from_names(&self.root, self.store.as_ref(), symlinks, encode, names, false)
    }
}

/// Resolves a folder or prefix; in a store nothing needs to exist below it.
///
/// # Errors
/// Code 2: the folder cannot be opened.
pub(super) fn folder(
    location: &Location,
    store: Option<&Arc<S3Session>>,
) -> Result<ResolvedSide, Fatal> {
    let root = match location {
        Location::Local(path) => {
            let opened = c_string(path.as_os_str().as_bytes())
                .and_then(|name| dir::open_root(&name))
                .map_err(|error| cannot(&spell(location), &Cause::System(error).to_string()))?;
            Root::Local { dir: Arc::new(opened), shown: path.clone() }
        }
        Location::S3(url) => {
            let mut prefix = url.key.clone();
            if !prefix.is_empty() && !prefix.ends_with(b"/") {
                prefix.push(b'/');
            }
            Root::Store { bucket: url.bucket.clone(), prefix }
        }
        Location::Null => {
            return Err(cannot(&spell(location), "only files and objects can be compared"));
        }
    };
    Ok(ResolvedSide { root, store: store.cloned(), what: SideKind::Tree })
}

/// Returns an argument as the user typed it, for messages.
pub(super) fn spell(location: &Location) -> String {
    quoted(location.as_typed())
}

/// Resolves an argument. A symlink to a directory is treated as the directory.
///
/// # Errors
/// Code 2: it does not exist, or cannot be examined.
pub(super) fn find(
    location: &Location,
    store: Option<&Arc<S3Session>>,
    symlinks: Symlinks,
) -> Result<ResolvedSide, Fatal> {
    let shown = spell(location);
    match (location, store) {
        (Location::Local(path), _) => {
            local(path, symlinks).map_err(|error| cannot(&shown, &Cause::System(error).to_string()))
        }
        (Location::S3(url), Some(store)) => object(url, store, &shown),
        _ => Err(cannot(&shown, "only files and objects can be compared")),
    }
}

fn cannot(shown: &str, why: &str) -> Fatal {
    Fatal::new(2, format!("cannot access {shown}: {why}"))
}

fn local(path: &Path, symlinks: Symlinks) -> io::Result<ResolvedSide> {
    let name = c_string(path.as_os_str().as_bytes())?;
    let itself = meta::of(dir::cwd(), &name, false)?;
    let there = match (itself.kind, meta::of(dir::cwd(), &name, true)) {
        (Kind::Symlink, Ok(there)) if there.kind == Kind::Dir => there,
        (Kind::Symlink, _) if symlinks == Symlinks::Keep => itself,
        (_, there) => there?,
    };
    if there.kind == Kind::Dir {
        let dir = Arc::new(dir::open_root(&name)?);
        let root = Root::Local { dir, shown: path.to_owned() };
        return Ok(ResolvedSide { root, store: None, what: SideKind::Tree });
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let dir = Arc::new(dir::open_root(&c_string(folder.as_os_str().as_bytes())?)?);
    let entry = Entry { name: name.as_bytes().into(), meta: there, etag: "".into() };
    let root = Root::Local { dir, shown: folder };
    Ok(ResolvedSide { root, store: None, what: SideKind::One(entry) })
}

/// Returns the first entry whose key has this prefix.
fn first(store: &Arc<S3Session>, bucket: &str, prefix: &[u8]) -> Option<Result<Entry, Trouble>> {
    let query = StoreQuery { prefix: prefix.to_vec(), parallel: 1, ..StoreQuery::default() };
    list::store(store, bucket, query).next()
}

fn object(url: &S3Url, store: &Arc<S3Session>, shown: &str) -> Result<ResolvedSide, Fatal> {
    let failed = |trouble: Trouble| cannot(shown, &trouble.into_error().to_string());
    let place = |prefix: Vec<u8>, what| {
        let root = Root::Store { bucket: url.bucket.clone(), prefix };
        Ok(ResolvedSide { root, store: Some(Arc::clone(store)), what })
    };
    if url.bucket.is_empty() {
        return Err(cannot(shown, "name a bucket"));
    }
    let found = first(store, &url.bucket, &url.key).transpose().map_err(failed)?;
    // An empty bucket is an empty tree.
    if url.key.is_empty() {
        return place(Vec::new(), SideKind::Tree);
    }
    match found {
        None => Err(cannot(shown, "no such object or prefix")),
        Some(_) if url.key.ends_with(b"/") => place(url.key.clone(), SideKind::Tree),
        Some(entry) if entry.name.is_empty() => place(url.key.clone(), SideKind::One(entry)),
        Some(_) => {
            let prefix = [&*url.key, b"/"].concat();
            match first(store, &url.bucket, &prefix).transpose().map_err(failed)? {
                Some(_) => place(prefix, SideKind::Tree),
                None => Err(cannot(shown, "no such object or prefix")),
            }
        }
    }
}

// Filter rules in a comparison: an entry that a rule hides in the source is not compared, and one that a rule
// protects in the target is not a difference, as in `sync --delete`.

/// Returns the rules in force in the two tops.
///
/// # Errors
/// Code 2: a rule file above the trees or in the source's top cannot be read or parsed.
pub fn top(
    filter: &Filter,
    source: &Path,
    target: &Path,
    fd: BorrowedFd<'_>,
) -> Result<Arc<DirRules>, Fatal> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.into_os_string().into_encoded_bytes()
    };
    let (source, target) = (absolute(source), absolute(target));
    let origin = Origin { source: &source, target: &target, first: b"" };
    let mut above = |path: &[u8]| read_merge_file(&Links::Trusted, dir::cwd(), path);
    let root = filter.root(&origin, &mut above);
    root.and_then(|root| enter(filter, &root, b"", fd))
        .map_err(|error| Fatal::new(2, error.to_string()))
}

/// Returns the rules in force in the directory `path`, which is open in the source.
///
/// # Errors
/// A rule file in it cannot be read or parsed.
pub fn enter(
    filter: &Filter,
    above: &Arc<DirRules>,
    path: &[u8],
    fd: BorrowedFd<'_>,
) -> Result<Arc<DirRules>, FilterError> {
    filter.enter(above, path, &mut |name| read_merge_file(&Links::Trusted, fd, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::Time;

    #[test]
    fn only_what_both_sides_have_counts() {
        let meta = |s, mode| Meta { mode, ..Meta::bare(Kind::File, 5, Time { s, ns: 0 }) };
        let mut checked = ComparedPair {
            name: (*b"a").into(),
            source: meta(1, 0o600),
            target: meta(2, 0o644),
            times: false,
            modes: false,
            finding: Found::Differ(Some(3)),
        };
        let of = |checked: &ComparedPair, aspects| {
            let (set, offset) = judge(checked, aspects, Times::default());
            (set.iter().map(Aspect::word).collect::<Vec<_>>(), offset)
        };
        assert_eq!(of(&checked, Aspects::DEFAULT), (vec!["content"], Some(3)));
        (checked.times, checked.modes) = (true, true);
        let found = of(&checked, Aspects::DEFAULT);
        assert_eq!(found, (vec!["content", "mode", "mtime"], Some(3)));
        let sizes = Aspects::NONE.with(Aspect::Size);
        assert_eq!(of(&checked, sizes), (Vec::new(), None));
        (checked.source.kind, checked.target.kind) = (Kind::Symlink, Kind::Symlink);
        assert_eq!(of(&checked, Aspects::DEFAULT), (vec!["mtime", "link"], None));
        checked.finding = Found::Same;
        checked.target.kind = Kind::File;
        assert_eq!(of(&checked, Aspects::DEFAULT), (vec!["type"], None));
    }
}
