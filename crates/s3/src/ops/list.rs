//! ListObjectsV2 and ListObjects: pages checked against the request.

mod page;
mod pages;
mod types;

use super::trust::ask;
use super::utf8;
use crate::xml::walk_plain;
use crate::{Client, Error, Reply, Request};
use http::Method;

pub(super) use page::{Fields, Names, name_violation};
pub use pages::Pages;
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
    let operation = version.operation();
    let mut request = Request::new(operation, Method::GET, Some(bucket));
    if version == Version::Two {
        request = request.query("list-type", "2");
    }
    request = request.query("encoding-type", "url");
    if !query.prefix.is_empty() {
        request = request.query("prefix", utf8(operation, &query.prefix)?);
    }
    if let Some(delimiter) = query.delimiter {
        request = request.query("delimiter", utf8(operation, &[delimiter])?);
    }
    let start_after = utf8(operation, &query.start_after)?;
    match (version, &query.continuation) {
        // A marker is both the start of the listing and the link between pages.
        (Version::One, Some(marker)) => request = request.query("marker", marker),
        (Version::One, None) if !start_after.is_empty() => {
            request = request.query("marker", start_after);
        }
        (Version::Two, _) if !start_after.is_empty() => {
            request = request.query("start-after", start_after);
        }
        _ => {}
    }
    if let (Version::Two, Some(token)) = (version, &query.continuation) {
        request = request.query("continuation-token", token);
    }
    if let Some(keys) = query.max_keys {
        request = request.query("max-keys", keys.to_string());
    }
    Ok(request)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

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
}
