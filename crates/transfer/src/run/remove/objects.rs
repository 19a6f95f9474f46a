//! Removal of current versions: single keys, and the objects of listings.

use super::parts::{Feed, Keys, below, inside, pair};
use crate::object::list::{self, Choice, Scope, StoreQuery, Trouble};
use crate::object::{Entry, Extraneous, Task, Work};
use futures_util::StreamExt;
use hakobu_core::error::{Cause, Fatal, Operation};
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::S3Session;
use hakobu_s3::ops::head_object;
use hakobu_s3::with_session;
use std::iter;
use std::sync::Arc;

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
            let cause = Cause::Reason("there is no such object or prefix");
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
