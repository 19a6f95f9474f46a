//! DeleteObject, also with a condition, and DeleteObjects.

use crate::header::quoted;
use crate::ops::get::check_version;
use crate::ops::put::with_document;
use crate::ops::{head_object, read, send_and_read, string};
use crate::xml::{Node, escaped};
use crate::{Client, Error, ErrorKind, Request, Response};
use futures_util::stream::{self, StreamExt};
use http::Method;
use http::header::IF_MATCH;
use std::collections::HashMap;

const ONE: &str = "DeleteObject";
const NAME: &str = "DeleteObjects";
/// Most keys that are deleted individually at the same time.
const ALONE_MAX: usize = 8;

/// An object to delete, or one version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectId {
    pub key: Vec<u8>,
    /// Version ID. Without one the current version is deleted, or hidden by a delete marker.
    pub version: Option<String>,
    /// ETag, without quotes, that the object must still have ("How to perform conditional deletes", S3 User Guide);
    /// without one it is deleted whatever it is by now. Servers without support reject the condition or ignore it.
    pub etag: Option<String>,
}

/// Result for one object of a batch.
pub type DeleteResult = Result<(), Error>;

/// Deletes an object or one version of it. Like in S3, a missing key is not an error.
///
/// # Errors
/// Those of the request; `Corrupt` if the server names another version than the requested one.
pub async fn delete_object(
    client: &Client,
    bucket: &str,
    key: &[u8],
    version: Option<&str>,
) -> Result<(), Error> {
    let request = Request::new(ONE, Method::DELETE, Some(bucket)).key(key);
    match client.send(&request.query_if("versionId", version)).await {
        Err(error) if error.code == "NoSuchKey" => Ok(()), // sent by some servers
        Err(error) => Err(error),
        Ok(response) => check_version(ONE, "deleted", version, &response.headers),
    }
}

/// Deletes an object if its ETag (without quotes) is unchanged (API reference, DeleteObject, `If-Match`). A
/// missing object, or one deleted by an earlier attempt of this request, is not an error. Servers without support
/// reject the condition or ignore it, so a caller that depends on it must check first.
///
/// # Errors
/// `Precondition` if the object has changed; `NotImplemented`; those of the request.
pub async fn delete_object_if(
    client: &Client,
    bucket: &str,
    key: &[u8],
    etag: &str,
) -> Result<(), Error> {
    let request = Request::new(ONE, Method::DELETE, Some(bucket))
        .key(key)
        .header(IF_MATCH, quoted(ONE, etag)?);
    match client.send(&request).await {
        Err(error) if error.code == "NoSuchKey" => Ok(()),
        Err(error) if error.kind == ErrorKind::Precondition && error.unsure => {
            match head_object(client, bucket, key, None).await {
                Err(gone) if gone.kind == ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }
        }
        result => result.map(|_| ()),
    }
}

/// Deletes up to 1,000 objects or versions; results are in their order. Keys that XML cannot represent are
/// deleted individually, and so are those missing from the response. The result of an object that has another ETag than
/// the requested one is `Precondition`.
///
/// # Errors
/// Those of the request, if no object's result is known; `Corrupt` if the response contains an object that was
/// not requested.
pub async fn delete_objects(
    client: &Client,
    bucket: &str,
    objects: &[ObjectId],
) -> Result<Vec<DeleteResult>, Error> {
    let Batch { request, sent } = batch(bucket, objects);
    let mut results: Vec<Option<DeleteResult>> = vec![None; objects.len()];
    if !sent.is_empty() {
        let found = send_and_read(client, &request, key_results).await?;
        assign(found, objects, &sent, &mut results)?;
    }
    let one = async |(object, result): (&ObjectId, Option<DeleteResult>)| match result {
        Some(result) => result,
        None => delete_alone(client, bucket, object).await,
    };
    let all = objects.iter().zip(results).map(one);
    Ok(stream::iter(all).buffered(ALONE_MAX).collect().await)
}

/// Deletes one object or version, as [`delete_objects`] does.
///
/// # Errors
/// Those of [`delete_object`] and [`delete_object_if`].
pub async fn delete_alone(client: &Client, bucket: &str, object: &ObjectId) -> DeleteResult {
    let ObjectId { key, version, etag } = object;
    match etag {
        Some(etag) if version.is_none() => delete_object_if(client, bucket, key, etag).await,
        _ => delete_object(client, bucket, key, version.as_deref()).await,
    }
}

/// A request for all objects that XML can represent.
struct Batch {
    request: Request,
    /// Indices of its objects.
    sent: Vec<usize>,
}

fn batch(bucket: &str, objects: &[ObjectId]) -> Batch {
    let mut body = String::with_capacity(100 + objects.len() * 80);
    body.push_str("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    let mut sent = Vec::with_capacity(objects.len());
    for (at, ObjectId { key, version, etag }) in objects.iter().enumerate() {
        let Some(key) = escaped(key).filter(|key| !key.is_empty()) else { continue };
        let version = match version {
            None => String::new(),
            Some(version) => match escaped(version.as_bytes()) {
                Some(version) => format!("<VersionId>{version}</VersionId>"),
                None => continue,
            },
        };
        let etag = match etag {
            None => String::new(),
            Some(etag) => match escaped(etag.as_bytes()) {
                Some(etag) => format!("<ETag>&quot;{etag}&quot;</ETag>"),
                None => continue,
            },
        };
        for part in ["<Object><Key>", &key, "</Key>", &version, &etag, "</Object>"] {
            body.push_str(part);
        }
        sent.push(at);
    }
    // Not quiet: missing results would count as deletions.
    body.push_str("</Delete>");
    let request = Request::new(NAME, Method::POST, Some(bucket)).query("delete", "");
    Batch { request: with_document(request, body), sent }
}

/// A result in the response.
#[derive(Debug)]
struct KeyResult {
    key: Vec<u8>,
    version: Option<String>,
    result: DeleteResult,
}

/// Results in the response, in its order.
fn key_results(response: &Response) -> Result<Vec<KeyResult>, Error> {
    let mut found = Vec::new();
    let (mut key, mut version, mut code, mut message) =
        (Vec::new(), None, String::new(), Vec::new());
    read(NAME, response, b"DeleteResult", |node| match node {
        Node::Leaf { parent: b"Error" | b"Deleted", name, text } => match name {
            b"Key" => key = text.to_vec(),
            b"VersionId" if !text.is_empty() => version = Some(string(text)),
            b"Code" => code = string(text),
            b"Message" => message = text.to_vec(),
            _ => {}
        },
        Node::End { name: name @ (b"Error" | b"Deleted"), .. } => {
            let (code, message) = (std::mem::take(&mut code), std::mem::take(&mut message));
            // Some servers report a missing key.
            let gone = name == b"Deleted" || code == "NoSuchKey";
            let result = if gone { Ok(()) } else { Err(Error::of_code(NAME, &code, &message)) };
            found.push(KeyResult {
                key: std::mem::take(&mut key),
                version: version.take(),
                result,
            });
        }
        _ => {}
    })?;
    Ok(found)
}

/// Assigns results to objects. A failure without a key applies to all sent objects.
///
/// # Errors
/// `Corrupt` for an object that was not sent.
fn assign(
    found: Vec<KeyResult>,
    objects: &[ObjectId],
    sent: &[usize],
    results: &mut [Option<DeleteResult>],
) -> Result<(), Error> {
    let mut numbers: HashMap<&[u8], Vec<usize>> = HashMap::with_capacity(sent.len());
    for at in sent {
        numbers.entry(&objects[*at].key).or_default().push(*at);
    }
    for KeyResult { key, version, result } in found {
        let named = match numbers.get(key.as_slice()) {
            Some(named) => named.as_slice(),
            None if key.is_empty() && result.is_err() => sent,
            None => return Err(unnamed(&key, None)),
        };
        let is_meant = |at: &&usize| match (&objects[**at].version, &version) {
            (None, _) => true,
            (Some(asked), Some(told)) => asked == told,
            // The object itself may have been deleted instead of its version: only a failure is certain.
            (Some(_), None) => result.is_err(),
        };
        let mut concerned = named.iter().filter(is_meant).peekable();
        if let (None, Some(version)) = (concerned.peek(), &version) {
            return Err(unnamed(&key, Some(version)));
        }
        for at in concerned {
            // Of two results for an object the error counts.
            if !matches!(results[*at], Some(Err(_))) {
                results[*at] = Some(result.clone());
            }
        }
    }
    Ok(())
}

fn unnamed(key: &[u8], version: Option<&str>) -> Error {
    let key = String::from_utf8_lossy(key);
    let of = version.map(|version| format!("version '{version}' of ")).unwrap_or_default();
    let what = format!("the response is about {of}'{key}', which was not requested");
    Error::new(ErrorKind::Corrupt, NAME, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Checksum};

    fn response(body: &str) -> Response {
        Response::of(body.to_owned())
    }

    fn object(key: &[u8], version: Option<&str>) -> ObjectId {
        ObjectId { key: key.to_vec(), version: version.map(str::to_owned), etag: None }
    }

    fn keys() -> Vec<ObjectId> {
        ["a&b", "", "c\x01", "a&b", " d\n"].map(|key| object(key.as_bytes(), None)).to_vec()
    }

    #[test]
    fn keys_that_xml_cannot_carry_go_alone() {
        let mut keys = keys();
        keys.push(object(b"\xff", None));
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
        keys.extend([object(b"x", None), object(b"y", None)]);
        let results = placed(answer, &keys, &[0, 3, 4, 5, 6]).unwrap();
        let kinds: Vec<_> = results
            .iter()
            .map(|result| result.as_ref().map(|result| result.as_ref().map_err(|e| e.kind).err()))
            .collect();
        let denied = Some(Some(ErrorKind::AccessDenied));
        assert_eq!(kinds, [denied, None, None, denied, Some(None), Some(None), None]);
        let error = results[0].as_ref().unwrap().as_ref().unwrap_err();
        assert!(error.message.ends_with("(server: no <)"));
    }

    fn placed(
        answer: &str,
        keys: &[ObjectId],
        sent: &[usize],
    ) -> Result<Vec<Option<DeleteResult>>, Error> {
        let mut results = vec![None; keys.len()];
        assign(key_results(&response(answer))?, keys, sent, &mut results).map(|()| results)
    }

    #[test]
    fn an_answer_about_another_key_is_none() {
        for answer in [
            "<DeleteResult><Deleted><Key>other</Key></Deleted></DeleteResult>",
            "<DeleteResult><Error><Key>other</Key><Code>NoSuchKey</Code></Error></DeleteResult>",
            "<DeleteResult><Deleted><Key>a&amp;b</Key></Deleted><Deleted><Key/></Deleted>\
            </DeleteResult>",
        ] {
            assert_eq!(placed(answer, &keys(), &[0, 3]).unwrap_err().kind, ErrorKind::Corrupt);
        }
        let both = "<DeleteResult><Error><Key>a&amp;b</Key><Code>AccessDenied</Code></Error>\
        <Deleted><Key>a&amp;b</Key></Deleted></DeleteResult>";
        assert!(placed(both, &keys(), &[0, 3]).unwrap()[0].as_ref().unwrap().is_err());
    }

    #[test]
    fn versions_are_named_and_answered_one_by_one() {
        let objects = [("k", "1"), ("k", "2"), ("k", "\x01"), ("l", "<")]
            .map(|(key, id)| object(key.as_bytes(), Some(id)));
        let Batch { request, sent } = batch("b", &objects);
        assert_eq!(sent, [0, 1, 3]);
        let body = std::str::from_utf8(&request.body).unwrap();
        assert!(body.contains("<Key>k</Key><VersionId>2</VersionId></Object>"), "{body}");
        assert!(body.contains("<VersionId>&lt;</VersionId>"), "{body}");
        let deleted = |key: &str, id: &str| {
            format!("<Deleted><Key>{key}</Key><VersionId>{id}</VersionId></Deleted>")
        };
        let of =
            |inner: &str| placed(&format!("<DeleteResult>{inner}</DeleteResult>"), &objects, &sent);
        let done = |inner: &str| {
            let results = of(inner).unwrap();
            results.iter().map(|result| result.as_ref().map(Result::is_ok)).collect::<Vec<_>>()
        };
        assert_eq!(done(&deleted("k", "2")), [None, Some(true), None, None]);
        // A deletion without a version may be that of the current one.
        assert_eq!(done("<Deleted><Key>k</Key></Deleted>"), [None; 4]);
        let failed = "<Error><Key>k</Key><Code>AccessDenied</Code></Error>";
        assert_eq!(done(failed), [Some(false), Some(false), None, None]);
        let one = failed.replace("</Key>", "</Key><VersionId>1</VersionId>");
        assert_eq!(done(&(one + &deleted("k", "1"))), [Some(false), None, None, None]);
        for other in [deleted("k", "3"), deleted("l", "1"), deleted("m", "1")] {
            assert_eq!(of(&other).unwrap_err().kind, ErrorKind::Corrupt, "{other}");
        }
    }

    #[test]
    fn an_object_that_must_be_unchanged_names_its_etag_and_fails_alone() {
        let unchanged = |key: &[u8]| ObjectId { etag: Some("0<f".into()), ..object(key, None) };
        let objects = [unchanged(b"a"), unchanged(b"b"), object(b"c", None)];
        let Batch { request, sent } = batch("b", &objects);
        assert_eq!(sent, [0, 1, 2]);
        let body = std::str::from_utf8(&request.body).unwrap();
        let named = "<Object><Key>a</Key><ETag>&quot;0&lt;f&quot;</ETag></Object>";
        assert!(body.contains(named) && body.contains("<Object><Key>c</Key></Object>"), "{body}");
        let answer = "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key>\
        <Code>PreconditionFailed</Code></Error><Deleted><Key>c</Key></Deleted></DeleteResult>";
        let results = placed(answer, &objects, &sent).unwrap();
        let kinds: Vec<_> =
            results.iter().map(|it| it.as_ref().unwrap().as_ref().err().map(|e| e.kind)).collect();
        assert_eq!(kinds, [None, Some(ErrorKind::Precondition), None]);
    }

    #[test]
    fn a_failure_of_an_unknown_key_makes_all_uncertain() {
        let answer = "<DeleteResult><Error><Code>InternalError</Code></Error></DeleteResult>";
        let results = placed(answer, &keys(), &[0, 3]).unwrap();
        assert_eq!(results.iter().flatten().filter(|r| r.is_err()).count(), 2);
        assert!(key_results(&response("<DeleteResult/>")).unwrap().is_empty());
        assert!(key_results(&response("<DeleteResult><Error><Key>a</Key></Error>")).is_err());
        assert_eq!(key_results(&response("")).unwrap_err().kind, ErrorKind::Corrupt);
    }
}
