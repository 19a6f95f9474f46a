//! Each operation against a server that follows its row, and against servers that violate each column of it.

use super::*;
use crate::ops::*;
use crate::script::{Act, Server, ServerSession, block_on, text};
use crate::{Client, Settings};
use bytes::Bytes;

const DATE: &str = "Fri, 24 May 2013 00:00:01 GMT";

/// A response to send.
#[derive(Clone, Debug)]
struct ScriptedResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl ScriptedResponse {
    /// Minimal response that satisfies a row.
    fn good(rule: &Rule) -> ScriptedResponse {
        let value = |form: &Form| match form {
            Form::Etag => "\"e\"",
            Form::Number => "5",
            Form::Date => DATE,
        };
        let headers = rule.headers.iter().map(|(name, form)| (*name, value(form).to_owned()));
        let body = match rule.body {
            Body::Unused | Body::Content => String::new(),
            Body::Page => match rule.operation {
                "ListBuckets" => "<ListAllMyBucketsResult/>".to_owned(),
                "ListParts" => "<ListPartsResult><IsTruncated>false</IsTruncated>\
                    </ListPartsResult>"
                    .to_owned(),
                "ListMultipartUploads" => "<ListMultipartUploadsResult><IsTruncated>false\
                    </IsTruncated></ListMultipartUploadsResult>"
                    .to_owned(),
                "ListObjectVersions" => "<ListVersionsResult><IsTruncated>false</IsTruncated>\
                    </ListVersionsResult>"
                    .to_owned(),
                _ => "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
                    .to_owned(),
            },
            Body::Document(root, fields) => {
                let fields: String =
                    fields.iter().map(|name| format!("<{name}>x</{name}>")).collect();
                format!("<{root}>{fields}</{root}>")
            }
        };
        ScriptedResponse { status: rule.statuses[0], headers: headers.collect(), body }
    }

    fn act(&self) -> Act {
        let mut headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        // Headers not in the row are omitted: the script adds defaults unless they are mentioned.
        headers.push_str("not: etag, last-modified\r\n");
        // Closing the connection avoids unread body data.
        Act::SayAndClose(text(&format!("{} Told", self.status), &headers, &self.body))
    }

    /// Each way to violate one column of the row.
    fn violations(rule: &Rule) -> Vec<(String, ScriptedResponse)> {
        let good = ScriptedResponse::good(rule);
        let mut found = Vec::new();
        for status in [200, 201, 202, 203, 204, 205, 206, 207, 226, 299, 304] {
            // Statuses valid for other requests of the operation are checked by `ops`.
            if !rule.statuses.contains(&status) {
                found.push((format!("HTTP {status}"), ScriptedResponse { status, ..good.clone() }));
            }
        }
        for at in 0..good.headers.len() {
            let mut without = good.clone();
            let (name, _) = without.headers.remove(at);
            // This server always sends a length, as HTTP requires for a body.
            if name != "content-length" {
                found.push((format!("no {name}"), without));
            }
            for garbled in ["", "\"\"", "-1", "18446744073709551616", "x y"] {
                let fits = rule.headers[at].1.fits(&HeaderValue::from_static(garbled));
                let mut with = good.clone();
                with.headers[at].1 = garbled.to_owned();
                if !fits && name != "content-length" {
                    found.push((format!("{name}: {garbled}"), with));
                }
            }
        }
        let error = "<Error><Code>InternalError</Code><Message>so it is</Message></Error>";
        let mut bodies = vec![error, "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code>"];
        let empty;
        let garbled;
        if let Body::Document(root, fields) = rule.body {
            let end = format!("</{root}>");
            garbled = good.body.replace(&end, &format!("<ChecksumCRC32>no</ChecksumCRC32>{end}"));
            bodies.push(&garbled);
            bodies.extend(["", "<html><body/></html>", "no document", "<Error/>"]);
            bodies.push(good.body.rsplit_once('<').unwrap().0);
            empty = format!("<{root}/>");
            if !fields.is_empty() {
                bodies.push(&empty);
            }
        }
        if rule.operation.starts_with("Head") || rule.body == Body::Content {
            bodies.clear();
        }
        for body in bodies {
            // A 204 response cannot have a body.
            let response = ScriptedResponse {
                status: 200,
                body: body.to_owned(),
                headers: good.headers.clone(),
            };
            found.push((format!("body {body:?}"), response));
        }
        if !rule.headers.is_empty() {
            let mut sums = good;
            sums.headers.push(("x-amz-checksum-crc32", "no sum".to_owned()));
            found.push(("a garbled checksum".to_owned(), sums));
        }
        found
    }
}

/// Calls an operation like the program does.
async fn call(operation: &str, client: &Client) -> Result<(), Error> {
    let (b, k, none) = ("bkt", b"k", Headers::new());
    let source = CopySource { bucket: b, key: b"s", version: None, customer_key: None, etag: None };
    let part = |etag: &str| Part { number: 1, size: 5, etag: etag.to_owned(), checksum: None };
    let body = Bytes::from_static(b"12345");
    match operation {
        "GetObject" => get_object(client, b, k, &GetOptions::default()).await.map(drop),
        "PutObject" => put_object(client, b, k, body, None, &none).await.map(drop),
        "HeadObject" => head_object(client, b, k, None).await.map(drop),
        "UploadPart" => upload_part(client, b, k, "u", 1, body, None).await.map(drop),
        "ListObjects" | "ListObjectsV2" => {
            list_objects(client, b, &ListQuery::default()).await.map(drop)
        }
        "ListObjectVersions" => {
            VersionPages::new(VersionQuery::default()).next(client, b).await.map(drop)
        }
        "DeleteObject" => delete_object(client, b, k, None).await,
        "DeleteObjects" => {
            let object = ObjectId { key: k.to_vec(), version: None, etag: None };
            let results = delete_objects(client, b, &[object]).await?;
            results.into_iter().collect()
        }
        "CopyObject" => copy_object(client, &source, b, k, &none).await.map(drop),
        "UploadPartCopy" => {
            let range = Range { start: 0, end: 5 };
            upload_part_copy(client, &source, range, b, k, "u", 1).await.map(drop)
        }
        "CreateMultipartUpload" => create_upload(client, b, k, None, &none).await.map(drop),
        "CompleteMultipartUpload" => {
            complete_upload(client, b, k, "u", &[part("e")], 5, None, &none).await.map(drop)
        }
        "AbortMultipartUpload" => abort_upload(client, b, k, "u").await,
        "GetObjectTagging" => get_tags(client, b, k, None).await.map(drop),
        "ListParts" => list_parts(client, b, k, "u").await.map(drop),
        "ListMultipartUploads" => list_uploads(client, b, b"").await.map(drop),
        "ListBuckets" => list_buckets(client).await.map(drop),
        "HeadBucket" => head_bucket(client, b).await,
        "CreateBucket" => create_bucket(client, b).await,
        "DeleteBucket" => delete_bucket(client, b).await,
        "GetBucketVersioning" => get_versioning(client, b).await.map(drop),
        "PutBucketVersioning" => put_versioning(client, b, Versioning::Enabled).await,
        name => panic!("{name} is called nowhere"),
    }
}

fn answer_to(rule: &'static Rule, response: ScriptedResponse) -> Result<(), Error> {
    let server = Server::start(move |seen| {
        let named = seen.line.contains("delete=") || rule.operation != "DeleteObjects";
        // Keys missing from the response to DeleteObjects are deleted one by one.
        if named { response.act() } else { Act::SayAndClose(text("204 Gone", "", "")) }
    });
    let list_objects_v1 = rule.operation == "ListObjects";
    let settings = Settings { attempts_max: Some(2), list_objects_v1, ..Settings::default() };
    block_on(call(rule.operation, &Client::new(&server.session(settings))))
}

#[test]
fn what_a_row_asks_for_is_enough() {
    for rule in RULES {
        for status in rule.statuses.iter().filter(|status| **status != 206) {
            let response = ScriptedResponse { status: *status, ..ScriptedResponse::good(rule) };
            let result = answer_to(rule, response);
            assert!(result.is_ok(), "{} {status}: {:?}", rule.operation, result.err());
        }
    }
}

#[test]
fn every_violation_of_a_row_is_an_error() {
    let mut count = 0;
    for rule in RULES {
        for (what, response) in ScriptedResponse::violations(rule) {
            let result = answer_to(rule, response);
            assert!(result.is_err(), "{}: {what} is taken for a success", rule.operation);
            count += 1;
        }
    }
    assert!(count > 250, "{count}");
}

#[test]
fn lengths_have_to_be_numbers() {
    for wrong in ["", "-1", "18446744073709551616", "5 5", "0x5", "5,5"] {
        assert!(!Form::Number.fits(&HeaderValue::from_static(wrong)), "{wrong}");
    }
    let without = HeaderMap::from_iter([
        (header::ETAG, HeaderValue::from_static("e")),
        (header::LAST_MODIFIED, HeaderValue::from_static(DATE)),
    ]);
    let error = check_head("HeadObject", StatusCode::OK, &without).unwrap_err();
    assert!(error.message.contains("Content-Length"), "{error}");
    assert!(check_head("GetObject", StatusCode::OK, &without).is_ok());
}

#[test]
fn an_operation_without_a_row_is_refused() {
    let error = check("NoSuch", &Response::of("")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    let names: std::collections::HashSet<_> = RULES.iter().map(|rule| rule.operation).collect();
    assert_eq!(names.len(), RULES.len());
}

#[test]
fn only_a_condition_can_fail() {
    let error = |status| Error {
        status,
        ..Error::new(ErrorKind::Precondition, "PutObject", "it is another")
    };
    let put = Request::new("PutObject", http::Method::PUT, Some("b"));
    let once = put.clone().header(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
    assert_eq!(refusal(&put, error(412)).kind, ErrorKind::Invalid);
    assert_eq!(refusal(&once, error(412)).kind, ErrorKind::Precondition);
    assert_eq!(refusal(&put, error(409)).kind, ErrorKind::Precondition);
    for request in [put, once] {
        let refused = refusal(&request, error(304));
        assert_eq!(refused.kind, ErrorKind::Invalid);
        assert!(refused.message.contains("not modified"), "{refused}");
    }
}
