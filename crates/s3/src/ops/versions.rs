//! ListObjectVersions: versions of objects and delete markers, in pages checked against the request.

mod page;
mod types;

pub use types::{ObjectVersion, VersionPage, VersionQuery};

use super::trust::{Marker, NO_PROGRESS, ask, out_of_order, shown, untrusted};
use super::{query_key, read};
use crate::{Client, Error, Reply, Request};
use http::Method;
use page::{OPERATION, OTHER_ROOT, ROOT};
use std::collections::HashSet;

/// A listing of versions that is read page by page.
pub struct VersionPages {
    query: VersionQuery,
    from: Marker,
    /// Version IDs that pages began after, of the key of `from`.
    begun: HashSet<String>,
    /// Last key so far, and the IDs of its versions.
    last: Vec<u8>,
    ids: HashSet<String>,
    last_prefix: Vec<u8>,
    over: bool,
}

impl VersionPages {
    /// Starts with the first page of a query.
    pub fn new(query: VersionQuery) -> VersionPages {
        VersionPages {
            query,
            from: Marker::default(),
            begun: HashSet::new(),
            last: Vec::new(),
            ids: HashSet::new(),
            last_prefix: Vec::new(),
            over: false,
        }
    }

    /// Reads the next page; `None` after the last one. A page may be empty without being the last one.
    ///
    /// # Errors
    /// Those of the request; `Invalid` for a prefix that is not UTF-8; `Corrupt` if the response is malformed,
    /// lacks a required field, contains keys or prefixes outside the request or out of order, names a version
    /// twice, or does not advance; `Stopped` as soon as the run is asked to stop.
    pub async fn next(
        &mut self,
        client: &Client,
        bucket: &str,
    ) -> Result<Option<VersionPage>, Error> {
        if self.over {
            return Ok(None);
        }
        let request = request(bucket, &self.query, &self.from)?;
        let page = |reply: &Reply| page_of(reply, &self.query, &self.from);
        let mut page = ask(client, &request, page).await?;
        self.follow(&mut page).map_err(|why| untrusted(OPERATION, &why))?;
        Ok(Some(page))
    }

    /// Checks that a page follows the previous ones, and moves to the next one; returns the reason if not.
    fn follow(&mut self, page: &mut VersionPage) -> Result<(), String> {
        let mut wrong = None;
        let (last, ids, from) = (&mut self.last, &mut self.ids, &self.from);
        page.versions.retain(|version| {
            if version.key < *last {
                wrong.get_or_insert_with(|| out_of_order(&version.key, last));
            }
            if version.key != *last {
                last.clone_from(&version.key);
                ids.clear();
            }
            if ids.insert(version.id.clone()) {
                return true;
            }
            // Some servers begin a page with the version that the previous one ended with.
            if version.key != from.key || version.id != from.id {
                let (id, key) = (shown(version.id.as_bytes()), shown(&version.key));
                wrong.get_or_insert_with(|| format!("it lists version {id} of {key} twice"));
            }
            false
        });
        for prefix in &page.prefixes {
            // Prefixes are never empty.
            if *prefix <= self.last_prefix {
                wrong.get_or_insert_with(|| out_of_order(prefix, &self.last_prefix));
            }
            self.last_prefix.clone_from(prefix);
        }
        if let Some(why) = wrong {
            return Err(why);
        }
        let Some(next) = page.next.take() else {
            self.over = true;
            return Ok(());
        };
        if next.key != self.from.key {
            self.begun.clear();
        }
        // Version IDs have no order, so a page that begins where an earlier one did is found by its ID.
        if !self.begun.insert(next.id.clone()) {
            return Err(NO_PROGRESS.to_owned());
        }
        self.from = next;
        Ok(())
    }
}

fn request(bucket: &str, query: &VersionQuery, from: &Marker) -> Result<Request, Error> {
    let request = Request::new(OPERATION, Method::GET, Some(bucket))
        .query("versions", "")
        .query("encoding-type", "url");
    let request = query_key(request, "prefix", &query.prefix)?;
    let request = query_key(request, "delimiter", query.delimiter.as_slice())?;
    from.query(request, "version-id-marker")
}

fn page_of(reply: &Reply, asked: &VersionQuery, from: &Marker) -> Result<VersionPage, Error> {
    let mut reader = page::Reader::default();
    read(OPERATION, reply, root_of(&reply.body), |node| reader.take(node))?;
    reader.page(asked, from)
}

/// Returns the root element to expect: only its own start tag selects the other name.
fn root_of(document: &[u8]) -> &'static [u8] {
    let is_name = |byte: &u8| byte.is_ascii_alphabetic();
    let mut tags = document.split(|byte| *byte == b'<').skip(1);
    match tags.find(|tag| tag.first().is_some_and(is_name)) {
        Some(tag) if tag.starts_with(OTHER_ROOT) => OTHER_ROOT,
        _ => ROOT,
    }
}

/// The first page of a listing of everything.
#[cfg(any(test, fuzzing))]
pub(super) fn first_page_of(reply: &Reply) -> Result<VersionPage, Error> {
    page_of(reply, &VersionQuery::default(), &Marker::default())
}

#[cfg(test)]
mod tests;
