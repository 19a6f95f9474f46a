//! GetObjectTagging.

use crate::xml::{self, Node};
use crate::{Client, Error, Kind, Request};
use hakobu_core::percent;
use http::Method;

/// Tags of an object in the form of `x-amz-tagging`: a query string (API reference, PutObject).
///
/// # Errors
/// `NotFound`; those of the request; `Corrupt` for a malformed response.
pub async fn get_tags(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<String, Error> {
    let request = Request::new(OPERATION, Method::GET, Some(bucket))
        .key(key)
        .query("tagging", "")
        .query_if("versionId", version);
    query_of(&client.send(&request).await?.body)
}

const OPERATION: &str = "GetObjectTagging";

fn query_of(document: &[u8]) -> Result<String, Error> {
    let mut query = String::new();
    let walked = xml::walk(document, b"Tagging", |node| {
        if let Node::Leaf { parent: b"Tag", name, text } = node {
            match name {
                b"Key" if !query.is_empty() => query.push('&'),
                b"Value" => query.push('='),
                _ => {}
            }
            percent::encode(text, false, &mut query);
        }
    });
    let wrong = |_| Error::new(Kind::Corrupt, OPERATION, "the tags cannot be read");
    walked.map(|()| query).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_a_query() {
        let document = b"<?xml version=\"1.0\"?><Tagging xmlns=\"u\"><TagSet><Tag><Key>a b</Key>\
            <Value>1&amp;2=3</Value></Tag><Tag><Key>k</Key><Value/></Tag></TagSet></Tagging>";
        assert_eq!(query_of(document).unwrap(), "a%20b=1%262%3D3&k=");
        assert_eq!(query_of(b"<Tagging><TagSet/></Tagging>").unwrap(), "");
        assert!(query_of(b"<Error/>").is_err());
    }
}
