//! Removal of current versions: single keys, and the objects of listings.

use super::parts::{below, failed, left_out, pair, problem};
use super::types::{Removal, RemovalTarget};
use crate::object::list::{self, Choice, Scope, StoreQuery, Trouble};
use crate::object::{Engine, Entry, Extraneous, Task, Work};
use futures_util::StreamExt;
use hakobu_core::error::{Cause, Fatal, Operation};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::Store;
use hakobu_s3::blocking::with_store;
use hakobu_s3::ops::head_object;
use std::sync::Arc;

/// Maximum number of keys in one request (API reference, DeleteObjects).
const BATCH: usize = 1000;
/// Concurrent requests that check whether keys exist.
const LOOKS: usize = 32;

/// Queues the removal of all targets.
pub(super) fn feed(engine: &Engine<'_>, removal: &Removal, store: &Arc<Store>) {
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
    let meta = Meta::bare(Kind::File, 0, Time::default());
    let entry = |key: &[u8]| (Entry { name: key.into(), meta, etag: "".into() }, None);
    let entries: Vec<Extraneous> = keys.into_iter().map(entry).collect();
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
                        entries.push((entry, None));
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
    if let Some(why) = choice.all_left_out() {
        left_out(engine, bucket, &asked, why);
    }
    if !found && !asked.is_empty() && must_exist {
        let cause = Cause::Reason("there is no such object or prefix");
        problem(engine, bucket, &asked, Operation::Remove, cause);
    }
}
