//! DeleteObject and DeleteObjects.

use super::put::with_checksum;
use super::{read, send_and_read, string};
use crate::header::plain;
use crate::xml::{Node, escaped};
use crate::{Algorithm, Checksum, Client, Error, Kind, Reply, Request};
use futures_util::stream::{self, StreamExt};
use http::Method;
use http::header::CONTENT_TYPE;
use std::collections::HashMap;

const NAME: &str = "DeleteObjects";
/// Most keys that are deleted individually at the same time.
const ALONE_MAX: usize = 8;

/// Result for one key of a batch.
pub type Deleted = Result<(), Error>;

/// Deletes an object or one version of it. Like in S3, a missing key is no error.
///
/// # Errors
/// Those of the request.
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
        Err(error) if error.code == "NoSuchKey" => Ok(()), // sent by some servers
        result => result.map(|_| ()),
    }
}

/// Deletes up to 1,000 objects; results are in the order of `keys`. Keys that XML cannot represent are
/// deleted individually, and so are those missing from the response.
///
/// # Errors
/// Those of the request, if no key's result is known; `Corrupt` if the response contains a key that was not
/// requested.
pub async fn delete_objects(
    client: &Client,
    bucket: &str,
    keys: &[Vec<u8>],
) -> Result<Vec<Deleted>, Error> {
    let Batch { request, sent } = batch(bucket, keys);
    let mut results: Vec<Option<Deleted>> = vec![None; keys.len()];
    if !sent.is_empty() {
        let answers = send_and_read(client, &request, answers).await?;
        place(answers, keys, &sent, &mut results)?;
    }
    let one = async |(key, result): (&Vec<u8>, Option<Deleted>)| match result {
        Some(result) => result,
        None => delete_object(client, bucket, key, None).await,
    };
    let all = keys.iter().zip(results).map(one);
    Ok(stream::iter(all).buffered(ALONE_MAX).collect().await)
}

/// A request for all keys that XML can represent.
struct Batch {
    request: Request,
    /// Indices of its keys.
    sent: Vec<usize>,
}

fn batch(bucket: &str, keys: &[Vec<u8>]) -> Batch {
    let mut body = String::with_capacity(100 + keys.len() * 80);
    body.push_str("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    let mut sent = Vec::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        if let Some(key) = escaped(key).filter(|key| !key.is_empty()) {
            body.push_str("<Object><Key>");
            body.push_str(&key);
            body.push_str("</Key></Object>");
            sent.push(at);
        }
    }
    // Not quiet: missing results would count as deletions.
    body.push_str("</Delete>");
    // Newer servers require any checksum, older ones an MD5.
    let md5 = Checksum::of(Algorithm::Md5, body.as_bytes());
    let crc = Checksum::of(Algorithm::Crc32, body.as_bytes());
    let request = Request::new(NAME, Method::POST, Some(bucket))
        .query("delete", "")
        .header(CONTENT_TYPE, plain("application/xml"))
        .body(body);
    let request = with_checksum(with_checksum(request, Some(&md5)), Some(&crc));
    Batch { request, sent }
}

/// Results in the response, by key.
fn answers(reply: &Reply) -> Result<Vec<(Vec<u8>, Deleted)>, Error> {
    let mut answers = Vec::new();
    let (mut key, mut code, mut message) = (Vec::new(), String::new(), Vec::new());
    read(NAME, reply, b"DeleteResult", |node| match node {
        Node::Leaf { parent: b"Error", name, text } => match name {
            b"Key" => key = text.to_vec(),
            b"Code" => code = string(text),
            b"Message" => message = text.to_vec(),
            _ => {}
        },
        Node::Leaf { parent: b"Deleted", name: b"Key", text } => {
            answers.push((text.to_vec(), Ok(())));
        }
        Node::End { name: b"Error", .. } => {
            let (key, code) = (std::mem::take(&mut key), std::mem::take(&mut code));
            let error = Error::of_code(NAME, &code, &std::mem::take(&mut message));
            let gone = error.code == "NoSuchKey"; // sent by some servers
            answers.push((key, if gone { Ok(()) } else { Err(error) }));
        }
        _ => {}
    })?;
    Ok(answers)
}

/// Assigns results to keys. A failure without a key applies to all sent keys.
///
/// # Errors
/// `Corrupt` for a key that was not sent.
fn place(
    answers: Vec<(Vec<u8>, Deleted)>,
    keys: &[Vec<u8>],
    sent: &[usize],
    results: &mut [Option<Deleted>],
) -> Result<(), Error> {
    let mut numbers: HashMap<&[u8], Vec<usize>> = HashMap::with_capacity(sent.len());
    for at in sent {
        numbers.entry(&keys[*at]).or_default().push(*at);
    }
    for (key, answer) in answers {
        let concerned = match numbers.get(key.as_slice()) {
            Some(concerned) => concerned.as_slice(),
            None if key.is_empty() && answer.is_err() => sent,
            None => {
                let key = String::from_utf8_lossy(&key).into_owned();
                let what = format!("the server answered about '{key}', which was not named");
                return Err(Error::new(Kind::Corrupt, NAME, what));
            }
        };
        for at in concerned {
            // Of two results for a key the error counts.
            if !matches!(results[*at], Some(Err(_))) {
                results[*at] = Some(answer.clone());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let Batch { request, sent } = batch("b", &keys);
        assert_eq!(sent, [0, 3, 4]);
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
        let mut keys = keys();
        keys.extend([b"x".to_vec(), b"y".to_vec()]);
        let results = placed(answer, &keys, &[0, 3, 4, 5, 6]).unwrap();
        let kinds: Vec<_> = results
            .iter()
            .map(|result| result.as_ref().map(|result| result.as_ref().map_err(|e| e.kind).err()))
            .collect();
        let denied = Some(Some(Kind::AccessDenied));
        assert_eq!(kinds, [denied, None, None, denied, Some(None), Some(None), None]);
        let error = results[0].as_ref().unwrap().as_ref().unwrap_err();
        assert!(error.message.ends_with("no <"));
    }

    fn placed(
        answer: &str,
        keys: &[Vec<u8>],
        sent: &[usize],
    ) -> Result<Vec<Option<Deleted>>, Error> {
        let mut results = vec![None; keys.len()];
        place(answers(&reply(answer))?, keys, sent, &mut results).map(|()| results)
    }

    #[test]
    fn an_answer_about_another_key_is_none() {
        for answer in [
            "<DeleteResult><Deleted><Key>other</Key></Deleted></DeleteResult>",
            "<DeleteResult><Error><Key>other</Key><Code>NoSuchKey</Code></Error></DeleteResult>",
            "<DeleteResult><Deleted><Key>a&amp;b</Key></Deleted><Deleted><Key/></Deleted>\
                </DeleteResult>",
        ] {
            assert_eq!(placed(answer, &keys(), &[0, 3]).unwrap_err().kind, Kind::Corrupt);
        }
        let both = "<DeleteResult><Error><Key>a&amp;b</Key><Code>AccessDenied</Code></Error>\
            <Deleted><Key>a&amp;b</Key></Deleted></DeleteResult>";
        assert!(placed(both, &keys(), &[0, 3]).unwrap()[0].as_ref().unwrap().is_err());
    }

    #[test]
    fn a_failure_of_an_unknown_key_makes_all_uncertain() {
        let answer = "<DeleteResult><Error><Code>InternalError</Code></Error></DeleteResult>";
        let results = placed(answer, &keys(), &[0, 3]).unwrap();
        assert_eq!(results.iter().flatten().filter(|r| r.is_err()).count(), 2);
        assert!(answers(&reply("<DeleteResult/>")).unwrap().is_empty());
        assert!(answers(&reply("<DeleteResult><Error><Key>a</Key></Error>")).is_err());
        assert_eq!(answers(&reply("")).unwrap_err().kind, Kind::Corrupt);
    }
}
