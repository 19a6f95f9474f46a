//! Removing objects: single keys, everything below a prefix, what a wildcard matches. Removal
//! begins with the first page of a listing, a thousand keys a request.

use super::{Control, Outcome};
use crate::error::{Cause, Class, Fatal, Operation, Problem};
use crate::event::{Event, Listener};
use crate::journal::Journal;
use crate::limit::{Helm, Limiter};
use crate::object::list::{self, Pattern, StoreQuery, Trouble, bare_meta};
use crate::object::{self, Engine, Entry, JOBS_SEED, ObjectOptions, Pair, Root, Setup, Task, Work};
use crate::policy::Policy;
use crate::s3::blocking::with_store;
use crate::s3::ops::head_object;
use crate::s3::{self, Requests, Settings, Store};
use crate::unit::{Jobs, Kind, Time, Totals};
use futures_util::StreamExt;
use hakobu_sys::process;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Keys of one request (API reference, DeleteObjects).
const BATCH: usize = 1000;
/// Requests in flight that ask whether keys exist.
const LOOKS: usize = 32;
/// Bytes in flight: only names are.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// What is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doomed {
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
    /// Every object whose key begins so.
    Below {
        /// The bucket.
        bucket: String,
        /// The beginning of keys; empty for all.
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

/// What to remove and how.
#[derive(Clone, Debug)]
pub struct Removal {
    /// The store.
    pub settings: Settings,
    /// What is to go.
    pub doomed: Vec<Doomed>,
    /// What does not exist is a failure.
    pub must_exist: bool,
    /// Say what would go, remove nothing.
    pub dry_run: bool,
    /// Requests in flight.
    pub jobs: Jobs,
    /// Requests a second (`--rps-limit`).
    pub requests_per_s_max: Option<u64>,
    /// Whether the listener wants an `Item` for every object.
    pub items: bool,
}

impl Removal {
    /// A removal without options.
    pub fn new(settings: Settings, doomed: Vec<Doomed>) -> Removal {
        let (must_exist, dry_run, items) = (false, false, false);
        let (jobs, requests_per_s_max) = (Jobs::Auto, None);
        Removal { settings, doomed, must_exist, dry_run, jobs, requests_per_s_max, items }
    }
}

/// Removes objects; with `store` in one that is open already.
///
/// # Errors
/// What makes all of it impossible: a store that cannot be opened, no threads.
pub fn remove_objects(
    removal: &Removal,
    store: Option<&Arc<Store>>,
    control: &Control,
    listener: &dyn Listener,
) -> Result<Outcome, Fatal> {
    let started = Instant::now();
    let store = match store {
        Some(store) => Arc::clone(store),
        None => Store::open(&removal.settings).map_err(|e| Fatal::new(1, e.to_string()))?,
    };
    store.set_control(control.flag());
    let before = Requests::of(&store);
    let jobs = match removal.jobs {
        Jobs::Fixed(jobs) => jobs.max(1),
        Jobs::Auto => JOBS_SEED,
    };
    let policy = Policy { dry_run: removal.dry_run, ..Policy::default() };
    let options = ObjectOptions::default();
    let operations = removal.requests_per_s_max.map(|per_s| Arc::new(Limiter::new(per_s)));
    let helm = Helm { operations, ..Helm::fixed(jobs) };
    let setup = Setup {
        policy: &policy,
        options: &options,
        source: None,
        target: Some(Arc::clone(&store)),
        listener,
        control,
        items: (removal.items, false),
        helm: &helm,
        cores: process::cpus(),
        memory_bytes_max: MEMORY_BYTES_MAX,
        journal: Journal::of_user(),
        umask: 0o022,
    };
    let (totals, fatal) = object::run(setup, |engine| {
        feed(engine, removal, &store);
        listener.event(Event::WalkDone);
    })?;
    let stopped = control.is_stopped() && fatal.is_none();
    let requests = Requests::of(&store).since(before);
    Ok(Outcome {
        totals,
        took: started.elapsed(),
        jobs,
        stopped,
        fatal,
        requests,
        ..Outcome::default()
    })
}

fn feed(engine: &Engine<'_>, removal: &Removal, store: &Arc<Store>) {
    let mut at = 0;
    while let Some(doomed) = removal.doomed.get(at).filter(|_| !engine.is_stopped()) {
        match doomed {
            Doomed::Key { bucket, .. } => {
                let rest = removal.doomed[at..].iter().map_while(|doomed| match doomed {
                    Doomed::Key { bucket: other, key } if other == bucket => Some(&**key),
                    _ => None,
                });
                let keys: Vec<&[u8]> = rest.take(BATCH).collect();
                at += keys.len();
                push_keys(engine, removal.must_exist, store, bucket, keys);
            }
            Doomed::Tree { bucket, key } => {
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
                let query = StoreQuery { prefix: [key, &b"/"[..]].concat(), ..all() };
                push_listed(engine, must_exist, store, bucket, query, None);
            }
            Doomed::Below { bucket, prefix } => {
                at += 1;
                let query = StoreQuery { prefix: prefix.clone(), ..all() };
                push_listed(engine, removal.must_exist, store, bucket, query, None);
            }
            Doomed::Matching { bucket, pattern } => {
                at += 1;
                let prefix = pattern.root().to_vec();
                let narrowed = pattern.literal()[prefix.len()..].to_vec();
                let query = StoreQuery { prefix, narrowed, ..all() };
                push_listed(engine, removal.must_exist, store, bucket, query, Some(pattern));
            }
        }
    }
}

fn is_there(store: &Arc<Store>, bucket: &str, key: &[u8]) -> Result<bool, s3::Error> {
    match with_store(store, async |client| head_object(&client, bucket, key, None).await) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == s3::Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn all() -> StoreQuery {
    StoreQuery { recursive: true, unordered: true, ..StoreQuery::default() }
}

fn pair(bucket: &str, prefix: &[u8]) -> Arc<Pair> {
    let target = Root::Store { bucket: bucket.to_owned(), prefix: prefix.to_vec() };
    Arc::new(Pair { source: Root::Null, target, lead: Default::default() })
}

/// Removes single keys, those that exist where that counts.
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
            meta: bare_meta(Kind::File, 0, Time::default()),
            etag: "".into(),
        })
        .collect();
    if !entries.is_empty() {
        engine.push([Task { pair: pair(bucket, b""), work: Work::Delete { entries } }]);
    }
}

/// Removes what a listing finds, page by page.
fn push_listed(
    engine: &Engine<'_>,
    must_exist: bool,
    store: &Arc<Store>,
    bucket: &str,
    query: StoreQuery,
    pattern: Option<&Pattern>,
) {
    let (pair, prefix) = (pair(bucket, &query.prefix), query.prefix.clone());
    let mut listing = list::store(store, bucket, query);
    let (mut found, mut key) = (false, prefix.clone());
    while let Some(page) = listing.page() {
        let mut entries = Vec::with_capacity(page.len());
        let mut broke = None;
        for item in page {
            match item {
                Ok(entry) => {
                    key.truncate(prefix.len());
                    key.extend_from_slice(&entry.name);
                    if pattern.is_none_or(|pattern| pattern.matches(&key)) {
                        entries.push(entry);
                    }
                }
                Err(Trouble::Failed(error)) => broke = Some(error),
                Err(Trouble::Problem { problem, .. }) => engine.problem(&problem),
            }
        }
        found |= !entries.is_empty();
        let pushed = entries.is_empty()
            || engine.push([Task { pair: Arc::clone(&pair), work: Work::Delete { entries } }]);
        if let Some(error) = broke {
            return failed(engine, bucket, &prefix, Operation::List, &error);
        }
        if !pushed {
            return;
        }
    }
    let named = !prefix.is_empty() || pattern.is_some();
    if !found && named && must_exist {
        let cause = Cause::Reason("there is no such object or prefix");
        problem(engine, bucket, &prefix, Operation::Remove, cause);
    }
}

fn failed(engine: &Engine<'_>, bucket: &str, key: &[u8], operation: Operation, error: &s3::Error) {
    if error.kind == s3::Kind::Stopped {
        return;
    }
    if error.stops_run() {
        return engine.stop_for(Fatal::new(1, error.to_string()));
    }
    problem(engine, bucket, key, operation, Cause::Said(error.to_string()));
}

fn problem(engine: &Engine<'_>, bucket: &str, key: &[u8], operation: Operation, cause: Cause) {
    let url = [b"s3://", bucket.as_bytes(), b"/", key].concat();
    let target = Some(PathBuf::from(OsStr::from_bytes(&url)));
    engine.problem(&Problem { operation, source: None, target, cause, class: Class::Partial });
    engine.add(&Totals { failed: 1, ..Totals::default() });
}
