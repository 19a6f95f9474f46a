//! DeleteObject and DeleteObjects.

use super::put::with_checksum;
use super::{read, send_and_read, string};
use crate::s3::header::plain;
use crate::s3::xml::{Node, escaped};
use crate::s3::{Algorithm, Checksum, Client, Error, Reply, Request};
use http::Method;
use http::header::CONTENT_TYPE;
use std::collections::HashMap;

const NAME: &str = "DeleteObjects";

/// What became of one key of a batch.
pub type Deleted = Result<(), Error>;

/// Deletes one object (or one version of it). A key that is not there is no error, as in S3.
///
/// # Errors
/// The request's.
pub async fn delete_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<(), Error> {
    let mut request = Request::new("DeleteObject", Method::DELETE, Some(bucket)).key(key);
    if let Some(version) = version {
        request = request.query("versionId", version);
    }
    match client.send(&request).await {
        Err(error) if error.code == "NoSuchKey" => Ok(()), // as some servers say
        result => result.map(|_| ()),
    }
}

/// Deletes up to 1,000 objects; the answers come in the order of `keys`. Keys that XML cannot
/// carry are deleted one by one.
///
/// # Errors
/// The request's, when nothing is known of any key.
pub async fn delete_objects(
    client: &Client,
    bucket: &str,
    keys: &[Vec<u8>],
) -> Result<Vec<Deleted>, Error> {
    let Batch { request, sent, alone } = batch(bucket, keys);
    let mut results: Vec<Deleted> = vec![Ok(()); keys.len()];
    if !sent.is_empty() {
        let failures = send_and_read(client, &request, failures).await?;
        place(failures, keys, &sent, &mut results);
    }
    for at in alone {
        results[at] = delete_object(client, bucket, &keys[at], None).await;
    }
    Ok(results)
}

/// A request for all keys that XML can carry.
struct Batch {
    request: Request,
    /// Numbers of the keys in it.
    sent: Vec<usize>,
    /// Numbers of the others.
    alone: Vec<usize>,
}

fn batch(bucket: &str, keys: &[Vec<u8>]) -> Batch {
    let mut body = String::with_capacity(100 + keys.len() * 80);
    body.push_str("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    let (mut sent, mut alone) = (Vec::with_capacity(keys.len()), Vec::new());
    for (at, key) in keys.iter().enumerate() {
        match escaped(key).filter(|key| !key.is_empty()) {
            Some(key) => {
                body.push_str("<Object><Key>");
                body.push_str(&key);
                body.push_str("</Key></Object>");
                sent.push(at);
            }
            None => alone.push(at),
        }
    }
    // Only what failed is told; whoever answers without an error for a key has deleted it.
    body.push_str("<Quiet>true</Quiet></Delete>");
    // Newer servers want any checksum, older ones insist on an MD5.
    let md5 = Checksum::of(Algorithm::Md5, body.as_bytes());
    let crc = Checksum::of(Algorithm::Crc32, body.as_bytes());
    let request = Request::new(NAME, Method::POST, Some(bucket))
        .query("delete", "")
        .header(CONTENT_TYPE, plain("application/xml"))
        .body(body);
    let request = with_checksum(with_checksum(request, Some(&md5)), Some(&crc));
    Batch { request, sent, alone }
}

/// Keys that failed, in the server's words, and how.
fn failures(reply: &Reply) -> Result<Vec<(Vec<u8>, Error)>, Error> {
    let mut failures = Vec::new();
    let (mut key, mut code, mut message) = (Vec::new(), String::new(), Vec::new());
    read(NAME, reply, b"DeleteResult", |node| match node {
        Node::Leaf { parent: b"Error", name, text } => match name {
            b"Key" => key = text.to_vec(),
            b"Code" => code = string(text),
            b"Message" => message = text.to_vec(),
            _ => {}
        },
        Node::End { name: b"Error", .. } => {
            let message = std::mem::take(&mut message);
            let error = Error::of_code(NAME, &std::mem::take(&mut code), &message);
            failures.push((std::mem::take(&mut key), error));
        }
        _ => {}
    })?;
    failures.retain(|(_, error)| error.code != "NoSuchKey");
    Ok(failures)
}

/// Puts failures where their keys are. One whose key is not among those that were sent makes all
/// of them uncertain.
fn place(
    failures: Vec<(Vec<u8>, Error)>,
    keys: &[Vec<u8>],
    sent: &[usize],
    results: &mut [Deleted],
) {
    if failures.is_empty() {
        return;
    }
    let mut numbers: HashMap<&[u8], Vec<usize>> = HashMap::with_capacity(sent.len());
    for at in sent {
        numbers.entry(&keys[*at]).or_default().push(*at);
    }
    for (key, error) in failures {
        let concerned = numbers.get(key.as_slice()).map_or(sent, Vec::as_slice);
        for at in concerned {
            results[*at] = Err(error.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::Kind;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    fn reply(body: &str) -> Reply {
        let body = Bytes::from(body.to_owned());
        Reply { status: StatusCode::OK, headers: HeaderMap::new(), body }
    }

    fn keys() -> Vec<Vec<u8>> {
        ["a&b", "", "c\x01", "a&b", " d\n"].map(|key| key.as_bytes().to_vec()).to_vec()
    }

    #[test]
    fn keys_that_xml_cannot_carry_go_alone() {
        let mut keys = keys();
        keys.push(b"\xff".to_vec());
        let Batch { request, sent, alone } = batch("b", &keys);
        assert_eq!((sent, alone), (vec![0, 3, 4], vec![1, 2, 5]));
        let body = std::str::from_utf8(&request.body).unwrap();
        assert!(body.contains("<Key>a&amp;b</Key>") && body.contains("<Key> d&#xA;</Key>"));
        let md5 = request.headers.iter().find(|(name, _)| name == "content-md5").unwrap();
        let expected = Checksum::of(Algorithm::Md5, &request.body);
        assert_eq!(md5.1.to_str().unwrap(), expected.encode());
    }

    #[test]
    fn every_key_gets_its_own_answer() {
        let answer = "<DeleteResult><Deleted><Key>x</Key></Deleted><Error><Key>a&amp;b</Key>\
            <Code>AccessDenied</Code><Message>no &lt;</Message></Error><Error><Key> d&#xA;</Key>\
            <Code>NoSuchKey</Code></Error></DeleteResult>";
        let keys = keys();
        let mut results: Vec<Deleted> = vec![Ok(()); keys.len()];
        place(failures(&reply(answer)).unwrap(), &keys, &[0, 3, 4], &mut results);
        let kinds: Vec<_> = results.iter().map(|r| r.as_ref().err().map(|e| e.kind)).collect();
        let denied = Some(Kind::AccessDenied);
        assert_eq!(kinds, [denied, None, None, denied, None]);
        assert!(results[0].as_ref().unwrap_err().message.ends_with("no <"));
    }

    #[test]
    fn a_failure_of_an_unknown_key_makes_all_uncertain() {
        let answer = "<DeleteResult><Error><Code>InternalError</Code></Error></DeleteResult>";
        let keys = keys();
        let mut results: Vec<Deleted> = vec![Ok(()); keys.len()];
        place(failures(&reply(answer)).unwrap(), &keys, &[0, 3], &mut results);
        assert_eq!(results.iter().filter(|r| r.is_err()).count(), 2);
        assert!(failures(&reply("<DeleteResult/>")).unwrap().is_empty());
        assert!(failures(&reply("<DeleteResult><Error><Key>a</Key></Error>")).is_err());
        assert_eq!(failures(&reply("")).unwrap_err().kind, Kind::Corrupt);
    }
}
