//! ListObjectsV2 and ListObjects: pages checked against the request and against each other.

mod page;
mod types;

use super::query_key;
use super::trust::{ask, out_of_order, untrusted};
use crate::xml::walk_plain;
use crate::{Client, Error, Reply, Request};
use http::Method;

pub(super) use page::{Fields, Names, name_violation};
pub(super) use types::Version;
pub use types::{ListPage, ListQuery, Listed};

/// Lists one page. Keys are requested URL-encoded, so that every byte survives XML.
///
/// # Errors
/// Those of the request; `Invalid` for a prefix that is not UTF-8; `Corrupt` if the response is malformed,
/// lacks a required field, contains keys or prefixes outside the request, or does not advance; `Stopped` as
/// soon as the run is asked to stop.
pub async fn list_objects(
    client: &Client,
    bucket: &str,
    query: &ListQuery,
) -> Result<ListPage, Error> {
    let version = Version::of(client);
    let request = request(bucket, query, version)?;
    ask(client, &request, |reply| page_of(reply, query, version)).await
}

fn request(bucket: &str, query: &ListQuery, version: Version) -> Result<Request, Error> {
    let mut request = Request::new(version.operation(), Method::GET, Some(bucket));
    if version == Version::Two {
        request = request.query("list-type", "2");
    }
    request = query_key(request.query("encoding-type", "url"), "prefix", &query.prefix)?;
    request = query_key(request, "delimiter", query.delimiter.as_slice())?;
    request = match (version, query.continuation.as_deref()) {
        // A marker is both the start of the listing and the link between pages.
        (Version::One, Some(marker)) => request.query("marker", marker),
        (Version::One, None) => query_key(request, "marker", &query.start_after)?,
        (Version::Two, token) => query_key(request, "start-after", &query.start_after)?
            .query_if("continuation-token", token),
    };
    Ok(request.query_if("max-keys", query.max_keys.map(|keys| keys.to_string())))
}

pub(super) fn page_of(
    reply: &Reply,
    asked: &ListQuery,
    version: Version,
) -> Result<ListPage, Error> {
    const ROOT: &[u8] = b"ListBucketResult";
    let mut reader = page::Reader::default();
    if walk_plain(&reply.body, ROOT, |node| reader.take(node)).is_none() {
        reader = page::Reader::default();
        super::read(version.operation(), reply, ROOT, |node| reader.take(node))?;
    }
    reader.page(asked, version)
}

/// A listing that is read page by page; names are in ascending order, also across pages.
pub struct Pages {
    query: ListQuery,
    /// Last key and last common prefix so far.
    last: (Vec<u8>, Vec<u8>),
    over: bool,
}

impl Pages {
    /// Starts with the page that the query describes.
    pub fn new(query: ListQuery) -> Pages {
        Pages { query, last: Default::default(), over: false }
    }

    /// Reads the next page; `None` after the last one. A page may be empty without being the last one.
    ///
    /// # Errors
    /// As [`list_objects`]; `Corrupt` for names out of order.
    pub async fn next(&mut self, client: &Client, bucket: &str) -> Result<Option<ListPage>, Error> {
        if self.over {
            return Ok(None);
        }
        let page = list_objects(client, bucket, &self.query).await?;
        self.follow(&page).map_err(|why| untrusted(Version::of(client).operation(), &why))?;
        self.query.continuation.clone_from(&page.next);
        self.over = page.next.is_none();
        Ok(Some(page))
    }

    /// Checks that a page follows the previous ones; returns the reason if not.
    fn follow(&mut self, page: &ListPage) -> Result<(), String> {
        let keys = page.objects.iter().map(|object| &object.key);
        ascend(&mut self.last.0, keys)?;
        ascend(&mut self.last.1, page.prefixes.iter())
    }
}

/// Checks that names ascend from `last` on, and sets `last` to the last name.
fn ascend<'n>(last: &mut Vec<u8>, names: impl Iterator<Item = &'n Vec<u8>>) -> Result<(), String> {
    let mut before = &*last;
    for name in names {
        // Names are never empty.
        if name <= before {
            return Err(out_of_order(name, before));
        }
        before = name;
    }
    let before = before.clone();
    *last = before;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use hakobu_core::unit::Time;

    #[test]
    fn a_query_asks_for_encoded_keys() {
        let query = ListQuery {
            prefix: b"a/".to_vec(),
            delimiter: Some(b'/'),
            start_after: b"a/b".to_vec(),
            continuation: Some("t".to_owned()),
            max_keys: Some(7),
        };
        let pairs = |version| {
            let list = request("b", &query, version).unwrap();
            list.query.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>()
        };
        let expected = [
            "list-type=2",
            "encoding-type=url",
            "prefix=a/",
            "delimiter=/",
            "start-after=a/b",
            "continuation-token=t",
            "max-keys=7",
        ];
        assert_eq!(pairs(Version::Two), expected);
        let first = ["encoding-type=url", "prefix=a/", "delimiter=/", "marker=t", "max-keys=7"];
        assert_eq!(pairs(Version::One), first);
        let bad = ListQuery { prefix: b"\xff".to_vec(), ..ListQuery::default() };
        assert_eq!(request("b", &bad, Version::Two).unwrap_err().kind, Kind::Invalid);
    }

    fn page(keys: &[&str], prefixes: &[&str]) -> ListPage {
        let object = |key: &&str| Listed {
            key: key.as_bytes().to_vec(),
            size: 0,
            mtime: Time::default(),
            etag: Default::default(),
            storage_class: "".into(),
        };
        let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()).collect();
        ListPage { objects: keys.iter().map(object).collect(), prefixes, next: None }
    }

    #[test]
    fn each_page_comes_after_the_one_before() {
        let mut pages = Pages::new(ListQuery::default());
        for fine in [page(&[], &[]), page(&["b", "d"], &["c/"]), page(&[], &[]), page(&[], &["e/"])]
        {
            pages.follow(&fine).unwrap();
        }
        for bad in
            [page(&["d"], &[]), page(&["g", "f"], &[]), page(&[], &["a/"]), page(&[], &["e/"])]
        {
            assert!(pages.follow(&bad).unwrap_err().contains("out of order"), "{bad:?}");
        }
    }
}
