//! Removal of objects, or of all their versions: single keys, everything below a prefix, matches of a wildcard. Begins
//! with the first page of a listing, a thousand keys per request.

use super::steer::Terms;
use crate::journal::{Journal, Ledger};
use crate::local::Pass;
use crate::location::s3_path;
use crate::object::list::{self, Choice, Pattern, Scope, StoreQuery, Trouble};
use crate::object::{
    self, Entry, Extraneous, JOBS_SEED, ObjectEngine, ObjectOptions, ObjectSetup, Pair, Root, Task,
    Work,
};
use crate::policy::Policy;
use crate::policy::filter::Filter;
use crate::run::{Job, Outcome, Resources, Run};
use futures_util::StreamExt;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, ErrorClass, Fatal, Operation, Problem};
use hakobu_core::event::Listener;
use hakobu_core::unit::{Jobs, Kind, Meta, Time, Totals};
use hakobu_s3::ops::{ObjectVersion, VersionPages, VersionQuery, head_object};
use hakobu_s3::{Error, RequestCounts, S3Session, Settings, with_session};
use hakobu_sys::process;
use std::iter;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Limit on bytes in flight: only names are.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Removes objects; in `store` if one is open already.
///
/// # Errors
/// An error for all of it: a store that cannot be opened, no threads.
pub fn remove_objects(
    removal: &Removal,
    store: Option<&Arc<S3Session>>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let run = Run::new(control, listener);
    let store = match store {
        Some(store) => Arc::clone(store),
        None => S3Session::open(&removal.settings).map_err(|e| Fatal::new(1, e.to_string()))?,
    };
    store.set_control(control.flag());
    let before = RequestCounts::of(&store);
    let policy = Policy { dry_run: removal.dry_run, ..Policy::default() };
    run.carry_out(&Removing { removal, store, before, policy, control, listener })
}

/// A removal whose store is open.
struct Removing<'a> {
    removal: &'a Removal,
    store: Arc<S3Session>,
    before: RequestCounts,
    policy: Policy,
    control: &'a Control,
    listener: &'a dyn Listener,
}

impl Job for Removing<'_> {
    fn terms(&self) -> Terms {
        let jobs = self.removal.jobs.fixed_or(JOBS_SEED).max(1);
        Terms::of_removal(jobs, self.removal.requests_per_s_max)
    }

    fn ledger(&self) -> Ledger {
        Ledger::default()
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass::Delete]
    }

    fn pass(&self, _: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let setup = ObjectSetup {
            policy: &self.policy,
            options: &ObjectOptions::default(),
            source: None,
            target: Some(Arc::clone(&self.store)),
            listener: self.listener,
            control: self.control,
            items: (self.removal.items, false),
            controls: &resources.controls,
            cores: process::cpus(),
            memory_bytes_max: MEMORY_BYTES_MAX,
            journal: Journal::of_user(),
            ledger: Arc::clone(&resources.ledger),
            folded: Arc::default(),
            manifests: Arc::default(),
            umask: 0o022,
        };
        object::run(setup, |engine| {
            let feed = Feed { engine, removal: self.removal, store: &self.store };
            match self.removal.all_versions {
                true => feed.versions(),
                false => feed.objects(),
            }
            engine.all_found();
        })
    }

    fn requests(&self) -> RequestCounts {
        RequestCounts::of(&self.store).since(self.before)
    }
}

// Description of a removal, and the parts of both of its kinds: scopes, ends, problems.

/// Objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalTarget {
    pub bucket: String,
    pub keys: Keys,
}

/// Keys of objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    One(Vec<u8>),
    /// A key without a slash at its end, and everything below it and a slash: either or both.
    Tree(Vec<u8>),
    /// Every key with this prefix; empty for all.
    Below(Vec<u8>),
    /// Every key that a wildcard matches.
    Matching(Pattern),
}

#[derive(Clone, Debug)]
pub struct Removal {
    /// Settings of the store.
    pub settings: Settings,
    /// Objects to remove.
    pub targets: Vec<RemovalTarget>,
    /// Names that the rules hide are kept; the names are relative to the argument.
    pub filter: Option<Arc<Filter>>,
    /// Remove every version and delete marker instead of the current versions.
    pub all_versions: bool,
    /// A missing object is a failure.
    pub must_exist: bool,
    /// Report what would be removed, remove nothing.
    pub dry_run: bool,
    /// Concurrent requests.
    pub jobs: Jobs,
    /// Limit on requests per second (`--rps-limit`).
    pub requests_per_s_max: Option<u64>,
    /// Whether the listener receives an `Item` for every object.
    pub items: bool,
}

impl Removal {
    /// Returns a removal without options.
    pub fn new(settings: Settings, targets: Vec<RemovalTarget>) -> Removal {
        Removal {
            settings,
            targets,
            filter: None,
            all_versions: false,
            must_exist: false,
            dry_run: false,
            jobs: Jobs::Auto,
            requests_per_s_max: None,
            items: false,
        }
    }
}

/// Returns the scope of everything below a prefix.
pub(super) fn below(prefix: Vec<u8>) -> Scope {
    Scope { prefix, narrowed: Vec::new(), pattern: None }
}

/// Returns the scope of everything below a key and a slash.
pub(super) fn inside(key: &[u8]) -> Scope {
    below([key, b"/"].concat())
}

pub(super) fn pair(bucket: &str, prefix: &[u8]) -> Arc<Pair> {
    let target = Root::Store { bucket: bucket.to_owned(), prefix: prefix.to_vec() };
    Arc::new(Pair { source: Root::Null, target, lead: Default::default() })
}

/// Queues the requests of a removal.
pub(super) struct Feed<'a> {
    pub engine: &'a ObjectEngine<'a>,
    pub removal: &'a Removal,
    pub store: &'a Arc<S3Session>,
}

impl Feed<'_> {
    /// Reports a failed request; a setting or credential that cannot work stops the run.
    pub fn failed(&self, bucket: &str, key: &[u8], operation: Operation, error: &hakobu_s3::Error) {
        if error.kind == hakobu_s3::ErrorKind::Stopped {
            return;
        }
        if error.stops_run() {
            return self.engine.stop_for(Fatal::new(1, error.to_string()));
        }
        self.problem(bucket, key, operation, Cause::Said(error.to_string()));
    }

    /// Reports and counts an object that cannot be removed.
    pub fn problem(&self, bucket: &str, key: &[u8], operation: Operation, cause: Cause) {
        let target = Some(s3_path(bucket, &[key]));
        let class = ErrorClass::Partial;
        self.engine.problem(&Problem { operation, source: None, target, cause, class });
        self.engine.add(&Totals { failed: 1, ..Totals::default() });
    }

    /// Reports that rules left out everything in an argument.
    pub fn left_out(&self, bucket: &str, key: &[u8], why: String) {
        self.engine.problem(&Problem {
            operation: Operation::Filter,
            source: Some(s3_path(bucket, &[key])),
            target: None,
            cause: Cause::Said(why),
            class: ErrorClass::Notice,
        });
    }
}

// Removal of current versions: single keys, and the objects of listings.

/// Maximum number of keys in one request (API reference, DeleteObjects).
const BATCH: usize = 1000;
/// Concurrent requests that check whether keys exist.
const LOOKS: usize = 32;

impl Feed<'_> {
    /// Queues the removal of all targets.
    pub fn objects(&self) {
        let Feed { engine, removal, store } = self;
        let (mut at, must_exist) = (0, removal.must_exist);
        while let Some(target) = removal.targets.get(at).filter(|_| !engine.is_stopped()) {
            let bucket = &*target.bucket;
            at += 1;
            match &target.keys {
                Keys::One(key) => {
                    let more =
                        removal.targets[at..].iter().map_while(|target| match &target.keys {
                            Keys::One(key) if target.bucket == bucket => Some(&**key),
                            _ => None,
                        });
                    let keys: Vec<&[u8]> = iter::once(&**key).chain(more).take(BATCH).collect();
                    at += keys.len() - 1;
                    self.keys(must_exist, bucket, keys);
                }
                Keys::Tree(key) => match is_there(store, bucket, key) {
                    Ok(found) => {
                        if found {
                            self.keys(false, bucket, vec![key]);
                        }
                        self.listed(must_exist && !found, bucket, inside(key));
                    }
                    Err(error) => self.failed(bucket, key, Operation::Remove, &error),
                },
                Keys::Below(prefix) => self.listed(must_exist, bucket, below(prefix.clone())),
                Keys::Matching(pattern) => {
                    self.listed(must_exist, bucket, Scope::matching(pattern.clone()));
                }
            }
        }
    }

    /// Removes single keys; with `must_exist` only after checking that they exist.
    fn keys(&self, must_exist: bool, bucket: &str, mut keys: Vec<&[u8]>) {
        if must_exist {
            let looked = with_session(self.store, async |client| {
                let client = &client;
                let looks = keys.iter().map(|key| head_object(client, bucket, key, None));
                Ok(futures_util::stream::iter(looks).buffered(LOOKS).collect::<Vec<_>>().await)
            });
            let looked = match looked {
                Ok(looked) => looked,
                Err(error) => return self.failed(bucket, b"", Operation::Remove, &error),
            };
            let mut found = looked.iter();
            keys.retain(|key| match found.next() {
                Some(Err(error)) => {
                    self.failed(bucket, key, Operation::Remove, error);
                    false
                }
                _ => true,
            });
        }
        let meta = Meta::bare(Kind::File, 0, Time::default());
        let entry = |key: &[u8]| (Entry { name: key.into(), meta, etag: "".into() }, None);
        let entries: Vec<Extraneous> = keys.into_iter().map(entry).collect();
        if !entries.is_empty() {
            self.engine.push([Task { pair: pair(bucket, b""), work: Work::Delete { entries } }]);
        }
    }

    /// Removes the objects of a listing, page by page.
    fn listed(&self, must_exist: bool, bucket: &str, scope: Scope) {
        let Scope { prefix, narrowed, pattern } = scope;
        // The argument, for messages.
        let asked = match &pattern {
            Some(pattern) => pattern.text().to_vec(),
            None => prefix.clone(),
        };
        let mut choice = match Choice::new(&prefix, pattern, self.removal.filter.as_ref()) {
            Ok(choice) => choice,
            Err(error) => return self.engine.stop_for(Fatal::new(1, error.to_string())),
        };
        let pair = pair(bucket, &prefix);
        let query = StoreQuery { prefix, narrowed, unordered: true, ..StoreQuery::default() };
        let mut listing = list::store(self.store, bucket, query);
        let mut found = false;
        while let Some(page) = listing.page() {
            let mut entries = Vec::with_capacity(page.len());
            let mut broke = None;
            for item in page {
                match item {
                    Ok(entry) => {
                        let matches = choice.matches(&entry.name);
                        found |= matches;
                        if matches && !choice.hides(&entry.name) {
                            entries.push((entry, None));
                        }
                    }
                    Err(Trouble::Failed(error)) => broke = Some(error),
                    Err(Trouble::Problem { problem, .. }) => self.engine.problem(&problem),
                }
            }
            let pushed = entries.is_empty()
                || self
                    .engine
                    .push([Task { pair: Arc::clone(&pair), work: Work::Delete { entries } }]);
            if let Some(error) = broke {
                return self.failed(bucket, &asked, Operation::List, &error);
            }
            if !pushed {
                return;
            }
        }
        if let Some(why) = choice.all_left_out() {
            self.left_out(bucket, &asked, why);
        }
        if !found && !asked.is_empty() && must_exist {
            let cause = Cause::Reason("no such object or prefix");
            self.problem(bucket, &asked, Operation::Remove, cause);
        }
    }
}

fn is_there(store: &Arc<S3Session>, bucket: &str, key: &[u8]) -> Result<bool, hakobu_s3::Error> {
    match with_session(store, async |client| head_object(&client, bucket, key, None).await) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == hakobu_s3::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

// Removal of every version and delete marker of objects, each by its ID.

/// Objects whose versions are removed.
enum Names<'n> {
    /// That of a key.
    Key(&'n [u8]),
    /// Those of a scope, without those that the rules hide.
    Scope(Scope),
}

impl Feed<'_> {
    /// Queues the removal of the versions of all targets.
    pub fn versions(&self) {
        for RemovalTarget { bucket, keys } in &self.removal.targets {
            if self.engine.is_stopped() {
                return;
            }
            match keys {
                Keys::One(key) => self.all(bucket, key, [Names::Key(key)]),
                Keys::Tree(key) => {
                    self.all(bucket, key, [Names::Key(key), Names::Scope(inside(key))]);
                }
                Keys::Below(prefix) => {
                    self.all(bucket, prefix, [Names::Scope(below(prefix.clone()))]);
                }
                Keys::Matching(pattern) => {
                    let scope = Scope::matching(pattern.clone());
                    self.all(bucket, pattern.text(), [Names::Scope(scope)]);
                }
            }
        }
    }

    /// Queues the versions of an argument, `asked`; reports if there are none.
    fn all<'n>(&self, bucket: &str, asked: &[u8], names: impl IntoIterator<Item = Names<'n>>) {
        let mut found = false;
        for names in names {
            let queued = match &names {
                Names::Key(key) => self.of_key(bucket, key),
                Names::Scope(scope) => self.of_scope(bucket, scope),
            };
            match queued {
                Ok(any) => found |= any,
                Err(error) => return self.failed(bucket, asked, Operation::List, &error),
            }
        }
        let whole = asked.is_empty();
        if !found && !whole && self.removal.must_exist && !self.engine.is_stopped() {
            let cause = Cause::Reason("there is no version of such an object or prefix");
            self.problem(bucket, asked, Operation::Remove, cause);
        }
    }

    /// Queues the versions of one key; returns whether there are any.
    fn of_key(&self, bucket: &str, key: &[u8]) -> Result<bool, Error> {
        let mut found = false;
        self.pages(bucket, key, b"", |page| {
            // Longer keys with this prefix come after it.
            let (own, others): (Vec<_>, Vec<_>) =
                page.into_iter().partition(|version| version.key == key);
            found |= !own.is_empty();
            if others.is_empty() { ControlFlow::Continue(own) } else { ControlFlow::Break(own) }
        })?;
        Ok(found)
    }

    /// Queues the versions of a scope; returns whether there are any.
    fn of_scope(&self, bucket: &str, scope: &Scope) -> Result<bool, Error> {
        let Scope { prefix, narrowed, pattern } = scope;
        let filter = self.removal.filter.as_ref();
        let mut choice = match Choice::new(prefix, pattern.clone(), filter) {
            Ok(choice) => choice,
            Err(error) => {
                self.engine.stop_for(Fatal::new(1, error.to_string()));
                return Ok(true);
            }
        };
        let whole = [&**prefix, &**narrowed].concat();
        let mut found = false;
        self.pages(bucket, &whole, prefix, |mut page| {
            page.retain(|version| {
                let name = &version.key[prefix.len()..];
                let matches = choice.matches(name);
                found |= matches;
                matches && !choice.hides(name)
            });
            ControlFlow::Continue(page)
        })?;
        if let Some(why) = choice.all_left_out() {
            self.left_out(bucket, &whole, why);
        }
        Ok(found)
    }

    /// Reads the versions of keys with a prefix and queues those that `choose` returns of each page, by their names
    /// below `root`; ends early when it breaks.
    fn pages(
        &self,
        bucket: &str,
        prefix: &[u8],
        root: &[u8],
        mut choose: impl FnMut(
            Vec<ObjectVersion>,
        ) -> ControlFlow<Vec<ObjectVersion>, Vec<ObjectVersion>>,
    ) -> Result<(), Error> {
        let query = VersionQuery { prefix: prefix.to_vec(), delimiter: None };
        let mut pages = VersionPages::new(query);
        let pair = pair(bucket, root);
        with_session(self.store, async |client| {
            while let Some(page) = pages.next(&client, bucket).await? {
                let (versions, is_last) = match choose(page.versions) {
                    ControlFlow::Continue(versions) => (versions, false),
                    ControlFlow::Break(versions) => (versions, true),
                };
                let entries: Vec<_> =
                    versions.into_iter().map(|version| entry(version, root.len())).collect();
                let nothing = entries.is_empty();
                let work = Work::Delete { entries };
                let task = Task { pair: Arc::clone(&pair), work };
                let goes_on = nothing || self.engine.push([task]);
                if is_last || !goes_on {
                    break;
                }
            }
            Ok(())
        })
    }
}

fn entry(version: ObjectVersion, root_len: usize) -> Extraneous {
    let ObjectVersion { key, id, size, mtime, .. } = version;
    let meta = Meta::bare(Kind::File, size, mtime);
    // Every key of a page begins with the prefix.
    let entry = Entry { name: key[root_len..].into(), meta, etag: "".into() };
    (entry, Some(id.into()))
}
