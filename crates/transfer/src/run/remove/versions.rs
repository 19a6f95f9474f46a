//! Removal of every version and delete marker of objects, each by its ID.

use super::parts::{Feed, Keys, RemovalTarget, below, inside, pair};
use crate::object::list::{Choice, Scope};
use crate::object::{Entry, Extraneous, Task, Work};
use hakobu_core::error::{Cause, Fatal, Operation};
use hakobu_core::unit::{Kind, Meta};
use hakobu_s3::Error;
use hakobu_s3::ops::{ObjectVersion, VersionPages, VersionQuery};
use hakobu_s3::with_session;
use std::ops::ControlFlow;
use std::sync::Arc;

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
