//! Removal of objects: single keys, everything below a prefix, matches of a wildcard. Begins with the first page of a
//! listing, a thousand keys per request.

use super::outcome::Outcome;
use super::stages::{Job, Resources, Run};
use super::steer::Terms;
use crate::engine::Pass;
use crate::journal::{Journal, Ledger};
use crate::location::s3_path;
use crate::object::list::{self, Choice, Pattern, Scope, StoreQuery, Trouble};
use crate::object::{self, Engine, Entry, JOBS_SEED, ObjectOptions, Pair, Root, Setup, Task, Work};
use crate::policy::Policy;
use crate::policy::filter::Filter;
use futures_util::StreamExt;
use hakobu_core::control::Control;
use hakobu_core::error::{Cause, Class, Fatal, Operation, Problem};
use hakobu_core::event::Listener;
use hakobu_core::unit::{Jobs, Kind, Meta, Time, Totals};
use hakobu_s3::blocking::with_store;
use hakobu_s3::ops::head_object;
use hakobu_s3::{Requests, Settings, Store};
use hakobu_sys::process;
use std::sync::Arc;

/// Maximum number of keys in one request (API reference, DeleteObjects).
const BATCH: usize = 1000;
/// Concurrent requests that check whether keys exist.
const LOOKS: usize = 32;
/// Limit on bytes in flight: only names are.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalTarget {
    /// One object.
    Key {
        /// Its bucket.
        bucket: String,
        /// Its key.
        key: Vec<u8>,
    },
    /// An object, and everything below its key and a slash: either or both.
    Tree {
        /// Its bucket.
        bucket: String,
        /// Its key, without a slash at its end.
        key: Vec<u8>,
    },
    /// Every object whose key has this prefix.
    Below {
        /// The bucket.
        bucket: String,
        /// The prefix; empty for all.
        prefix: Vec<u8>,
    },
    /// Every object whose key a wildcard matches.
    Matching {
        /// The bucket.
        bucket: String,
        /// The wildcard.
        pattern: Pattern,
    },
}

/// A removal.
#[derive(Clone, Debug)]
pub struct Removal {
    /// Settings of the store.
    pub settings: Settings,
    /// Objects to remove.
    pub targets: Vec<RemovalTarget>,
    /// Names that the rules hide are kept; the names are relative to the argument.
    pub filter: Option<Arc<Filter>>,
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
        let (must_exist, dry_run, items) = (false, false, false);
        let (jobs, requests_per_s_max) = (Jobs::Auto, None);
        let filter = None;
        Removal { settings, targets, filter, must_exist, dry_run, jobs, requests_per_s_max, items }
    }
}

/// Removes objects; in `store` if one is open already.
///
/// # Errors
/// An error for all of it: a store that cannot be opened, no threads.
pub fn remove_objects(
    removal: &Removal,
    store: Option<&Arc<Store>>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let run = Run::new(control, listener);
    let store = match store {
        Some(store) => Arc::clone(store),
        None => Store::open(&removal.settings).map_err(|e| Fatal::new(1, e.to_string()))?,
    };
    store.set_control(control.flag());
    let before = Requests::of(&store);
    let policy = Policy { dry_run: removal.dry_run, ..Policy::default() };
    run.carry_out(&Removing { removal, store, before, policy, control, listener })
}

/// A removal whose store is open.
struct Removing<'a> {
    removal: &'a Removal,
    store: Arc<Store>,
    before: Requests,
    policy: Policy,
    control: &'a Control,
    listener: &'a dyn Listener,
}

impl Job for Removing<'_> {
    fn terms(&self) -> Terms {
        let jobs = match self.removal.jobs {
            Jobs::Fixed(jobs) => jobs.max(1),
            Jobs::Auto => JOBS_SEED,
        };
        Terms::of_removal(jobs, self.removal.requests_per_s_max)
    }

    fn ledger(&self) -> Ledger {
        Ledger::default()
    }

    fn passes(&self) -> &'static [Pass] {
        &[Pass::Delete]
    }

    fn pass(&self, _: Pass, resources: &Resources) -> Result<(Totals, Option<Fatal>), Fatal> {
        let setup = Setup {
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
            umask: 0o022,
        };
        object::run(setup, |engine| {
            feed(engine, self.removal, &self.store);
            engine.all_found();
        })
    }

    fn forgets_record(&self) -> bool {
        false
    }

    fn tidy(&self) {}

    fn requests(&self) -> Requests {
        Requests::of(&self.store).since(self.before)
    }
}

fn feed(engine: &Engine<'_>, removal: &Removal, store: &Arc<Store>) {
    let mut at = 0;
    while let Some(target) = removal.targets.get(at).filter(|_| !engine.is_stopped()) {
        match target {
            RemovalTarget::Key { bucket, .. } => {
                let rest = removal.targets[at..].iter().map_while(|target| match target {
                    RemovalTarget::Key { bucket: other, key } if other == bucket => Some(&**key),
                    _ => None,
                });
                let keys: Vec<&[u8]> = rest.take(BATCH).collect();
                at += keys.len();
                push_keys(engine, removal.must_exist, store, bucket, keys);
            }
            RemovalTarget::Tree { bucket, key } => {
                at += 1;
                let must_exist = match is_there(store, bucket, key) {
                    Ok(true) => {
                        push_keys(engine, false, store, bucket, vec![key]);
                        false
                    }
                    Ok(false) => removal.must_exist,
                    Err(error) => {
                        failed(engine, bucket, key, Operation::Remove, &error);
                        continue;
                    }
                };
                let scope = below([key, &b"/"[..]].concat());
                push_listed(engine, removal, must_exist, store, bucket, scope);
            }
            RemovalTarget::Below { bucket, prefix } => {
                at += 1;
                let scope = below(prefix.clone());
                push_listed(engine, removal, removal.must_exist, store, bucket, scope);
            }
            RemovalTarget::Matching { bucket, pattern } => {
                at += 1;
                let scope = Scope::matching(pattern.clone());
                push_listed(engine, removal, removal.must_exist, store, bucket, scope);
            }
        }
    }
}

fn is_there(store: &Arc<Store>, bucket: &str, key: &[u8]) -> Result<bool, hakobu_s3::Error> {
    match with_store(store, async |client| head_object(&client, bucket, key, None).await) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == hakobu_s3::Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the scope of everything below a prefix.
fn below(prefix: Vec<u8>) -> Scope {
    Scope { prefix, narrowed: Vec::new(), pattern: None }
}

fn pair(bucket: &str, prefix: &[u8]) -> Arc<Pair> {
    let target = Root::Store { bucket: bucket.to_owned(), prefix: prefix.to_vec() };
    Arc::new(Pair { source: Root::Null, target, lead: Default::default() })
}

/// Removes single keys; with `must_exist` only after checking that they exist.
fn push_keys(
    engine: &Engine<'_>,
    must_exist: bool,
    store: &Arc<Store>,
    bucket: &str,
    mut keys: Vec<&[u8]>,
) {
    if must_exist {
        let looked = with_store(store, async |client| {
            let client = &client;
            let looks = keys.iter().map(|key| head_object(client, bucket, key, None));
            Ok(futures_util::stream::iter(looks).buffered(LOOKS).collect::<Vec<_>>().await)
        });
        let looked = match looked {
            Ok(looked) => looked,
            Err(error) => return failed(engine, bucket, b"", Operation::Remove, &error),
        };
        let mut found = looked.iter();
        keys.retain(|key| match found.next() {
            Some(Err(error)) => {
                failed(engine, bucket, key, Operation::Remove, error);
                false
            }
            _ => true,
        });
    }
    let entries: Vec<Entry> = keys
        .into_iter()
        .map(|key| Entry {
            name: key.into(),
            meta: Meta::bare(Kind::File, 0, Time::default()),
            etag: "".into(),
        })
        .collect();
    if !entries.is_empty() {
        engine.push([Task { pair: pair(bucket, b""), work: Work::Delete { entries } }]);
    }
}

/// Removes the objects of a listing, page by page.
fn push_listed(
    engine: &Engine<'_>,
    removal: &Removal,
    must_exist: bool,
    store: &Arc<Store>,
    bucket: &str,
    scope: Scope,
) {
    let Scope { prefix, narrowed, pattern } = scope;
    // The argument, for messages.
    let asked = match &pattern {
        Some(pattern) => pattern.text().to_vec(),
        None => prefix.clone(),
    };
    let mut choice = match Choice::new(&prefix, pattern, removal.filter.as_ref()) {
        Ok(choice) => choice,
        Err(error) => return engine.stop_for(Fatal::new(1, error.to_string())),
    };
    let pair = pair(bucket, &prefix);
    let query = StoreQuery { prefix, narrowed, unordered: true, ..StoreQuery::default() };
    let mut listing = list::store(store, bucket, query);
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
                        entries.push(entry);
                    }
                }
                Err(Trouble::Failed(error)) => broke = Some(error),
                Err(Trouble::Problem { problem, .. }) => engine.problem(&problem),
            }
        }
        let pushed = entries.is_empty()
            || engine.push([Task { pair: Arc::clone(&pair), work: Work::Delete { entries } }]);
        if let Some(error) = broke {
            return failed(engine, bucket, &asked, Operation::List, &error);
        }
        if !pushed {
            return;
        }
    }
    if !found && !asked.is_empty() && must_exist {
        let cause = Cause::Reason("there is no such object or prefix");
        problem(engine, bucket, &asked, Operation::Remove, cause);
    }
}

fn failed(
    engine: &Engine<'_>,
    bucket: &str,
    key: &[u8],
    operation: Operation,
    error: &hakobu_s3::Error,
) {
    if error.kind == hakobu_s3::Kind::Stopped {
        return;
    }
    if error.stops_run() {
        return engine.stop_for(Fatal::new(1, error.to_string()));
    }
    problem(engine, bucket, key, operation, Cause::Said(error.to_string()));
}

fn problem(engine: &Engine<'_>, bucket: &str, key: &[u8], operation: Operation, cause: Cause) {
    let target = Some(s3_path(bucket, &[key]));
    engine.problem(&Problem { operation, source: None, target, cause, class: Class::Partial });
    engine.add(&Totals { failed: 1, ..Totals::default() });
}
