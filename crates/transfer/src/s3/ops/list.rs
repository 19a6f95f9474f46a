//! ListObjectsV2.

mod page;

use super::etag::Etag;
use super::{send_and_read, utf8};
use crate::s3::xml::walk_plain;
use crate::s3::{Client, Error, Kind, Reply, Request};
use crate::unit::Time;
use http::Method;
use std::borrow::Cow;

pub(super) use page::Names;

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only keys that begin so.
    pub prefix: Vec<u8>,
    /// Keys that share what stands before the first delimiter after the prefix become one.
    pub delimiter: Option<u8>,
    /// Only keys after this one.
    pub start_after: Vec<u8>,
    /// Goes on from the page before.
    pub continuation: Option<String>,
    /// Keys a page; the server's 1,000 where nothing is said.
    pub max_keys: Option<u32>,
}

/// One object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The whole key, decoded.
    pub key: Vec<u8>,
    /// Bytes.
    pub size: u64,
    /// LastModified.
    pub mtime: Time,
    /// Empty where the server says nothing.
    pub etag: Etag,
    /// `STANDARD`, `GLACIER` …; empty where the server says nothing. Those that AWS has take no
    /// memory of their own.
    pub storage_class: Cow<'static, str>,
}

/// One page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Objects, in the server's order (which is checked by whoever merges).
    pub objects: Vec<Listed>,
    /// Prefixes that the delimiter cut, decoded.
    pub prefixes: Vec<Vec<u8>>,
    /// How to go on; `None` on the last page.
    pub next: Option<String>,
}

/// Lists one page. Keys are asked for URL-encoded, so that every byte survives XML.
///
/// # Errors
/// The request's; `Invalid` for a prefix that is not UTF-8; `Corrupt` for an answer that cannot be
/// read.
pub async fn list_objects(
    client: &Client,
    bucket: &str,
    query: &ListQuery,
) -> Result<ListPage, Error> {
    let request = request(bucket, query)?;
    send_and_read(client, &request, page_of).await
}

fn request(bucket: &str, query: &ListQuery) -> Result<Request, Error> {
    const NAME: &str = "ListObjectsV2";
    let mut request = Request::new(NAME, Method::GET, Some(bucket))
        .query("list-type", "2")
        .query("encoding-type", "url");
    if !query.prefix.is_empty() {
        request = request.query("prefix", utf8(NAME, &query.prefix)?);
    }
    if let Some(delimiter) = query.delimiter {
        request = request.query("delimiter", utf8(NAME, &[delimiter])?);
    }
    if !query.start_after.is_empty() {
        request = request.query("start-after", utf8(NAME, &query.start_after)?);
    }
    if let Some(token) = &query.continuation {
        request = request.query("continuation-token", token);
    }
    if let Some(keys) = query.max_keys {
        request = request.query("max-keys", keys.to_string());
    }
    Ok(request)
}

fn page_of(reply: &Reply) -> Result<ListPage, Error> {
    const NAME: &str = "ListObjectsV2";
    const ROOT: &[u8] = b"ListBucketResult";
    let mut reader = page::Reader::default();
    if walk_plain(&reply.body, ROOT, |node| reader.take(node)).is_none() {
        reader = page::Reader::default();
        super::read(NAME, reply, ROOT, |node| reader.take(node))?;
    }
    reader.page().map_err(|why| Error::new(Kind::Corrupt, NAME, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_asks_for_encoded_keys() {
        let query = ListQuery {
            prefix: b"a/".to_vec(),
            delimiter: Some(b'/'),
            start_after: b"a/b".to_vec(),
            continuation: Some("t".to_owned()),
            max_keys: Some(7),
        };
        let list = request("b", &query).unwrap();
        let pairs: Vec<_> = list.query.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let expected = [
            "list-type=2",
            "encoding-type=url",
            "prefix=a/",
            "delimiter=/",
            "start-after=a/b",
            "continuation-token=t",
            "max-keys=7",
        ];
        assert_eq!(pairs, expected);
        let bad = ListQuery { prefix: b"\xff".to_vec(), ..ListQuery::default() };
        assert_eq!(request("b", &bad).unwrap_err().kind, Kind::Invalid);
    }
}
