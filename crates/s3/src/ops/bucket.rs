//! Operations on buckets: list, look, create, delete, versioning.

use crate::header::plain;
use crate::ops::listing::{NO_PROGRESS, PageCheck, request_page, time, words};
use crate::ops::put::with_document;
use crate::ops::read;
use crate::xml::{Node, escaped};
use crate::{Client, Error, ErrorKind, Request, Response};
use hakobu_core::unit::Time;
use http::Method;
use http::header::CONTENT_TYPE;

const LIST: &str = "ListBuckets";

/// A bucket of the account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    /// Creation time, if the server provides it.
    pub created: Option<Time>,
}

/// All buckets of the account, over all pages.
///
/// # Errors
/// Those of the request; `Corrupt` if a page lacks a required field or the listing does not advance;
/// `Stopped`.
pub async fn list_buckets(client: &Client) -> Result<Vec<Bucket>, Error> {
    let mut buckets = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let request =
            Request::new(LIST, Method::GET, None).query_if("continuation-token", token.as_deref());
        let (page, next) =
            request_page(client, &request, |response| buckets_of(response, &token)).await?;
        buckets.extend(page);
        if next.is_none() {
            return Ok(buckets);
        }
        token = next;
    }
}

/// Buckets of a page, and the token of the next one. This operation has no `IsTruncated`.
fn buckets_of(
    response: &Response,
    token: &Option<String>,
) -> Result<(Vec<Bucket>, Option<String>), Error> {
    let (mut buckets, mut next, mut check) = (Vec::new(), None, PageCheck::default());
    let (mut name, mut created) = (None, None);
    read(LIST, response, b"ListAllMyBucketsResult", |node| match node {
        Node::Leaf { parent: b"Bucket", name: b"Name", text } => {
            check.set(&mut name, "Name", text, words(text));
        }
        Node::Leaf { parent: b"Bucket", name: b"CreationDate", text } => {
            check.set(&mut created, "CreationDate", text, time(text));
        }
        Node::Leaf { name: b"ContinuationToken", text, .. } if !text.is_empty() => {
            check.set(&mut next, "ContinuationToken", text, words(text));
        }
        Node::End { parent: b"Buckets", name: b"Bucket" }
        | Node::Leaf { parent: b"Buckets", name: b"Bucket", .. } => {
            let (name, created) = (name.take(), created.take());
            let name = check.need(name, "Name", "a bucket of it");
            buckets.extend(name.map(|name| Bucket { name, created }));
        }
        _ => {}
    })?;
    if next.is_some() && next == *token {
        check.add(|| NO_PROGRESS.to_owned());
    }
    check.finish(LIST)?;
    Ok((buckets, next))
}

/// Checks that a bucket exists and is accessible.
///
/// # Errors
/// `NoSuchBucket`, `AccessDenied`; those of the request.
pub async fn head_bucket(client: &Client, bucket: &str) -> Result<(), Error> {
    let request = Request::new("HeadBucket", Method::HEAD, Some(bucket));
    client.send(&request).await.map(|_| ())
}

/// Creates a bucket in the client's region.
///
/// # Errors
/// `Invalid` if the name is taken; those of the request.
pub async fn create_bucket(client: &Client, bucket: &str) -> Result<(), Error> {
    let request = create(bucket, &client.session().resolved.region)?;
    client.send(&request).await.map(|_| ())
}

/// us-east-1 must not be named.
fn create(bucket: &str, region: &str) -> Result<Request, Error> {
    const NAME: &str = "CreateBucket";
    let request = Request::new(NAME, Method::PUT, Some(bucket));
    if region.is_empty() || region == "us-east-1" {
        return Ok(request);
    }
    let region = escaped(region.as_bytes()).ok_or_else(|| {
        Error::new(ErrorKind::Settings, NAME, "the region has control characters")
    })?;
    let body = format!(
        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
    );
    Ok(request.header(CONTENT_TYPE, plain("application/xml")).body(body))
}

/// Removes an empty bucket.
///
/// # Errors
/// `Invalid` if it is not empty; those of the request.
pub async fn delete_bucket(client: &Client, bucket: &str) -> Result<(), Error> {
    let request = Request::new("DeleteBucket", Method::DELETE, Some(bucket));
    client.send(&request).await.map(|_| ())
}

const GET: &str = "GetBucketVersioning";
const PUT: &str = "PutBucketVersioning";

/// State of a bucket's versioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versioning {
    /// Each write makes a new version.
    Enabled,
    /// Versions are kept, and new writes replace the version `null`.
    Suspended,
}

impl Versioning {
    /// Parses AWS's word.
    pub fn parse(text: &str) -> Option<Versioning> {
        [Versioning::Enabled, Versioning::Suspended].into_iter().find(|it| it.word() == text)
    }

    /// AWS's word.
    pub fn word(self) -> &'static str {
        match self {
            Versioning::Enabled => "Enabled",
            Versioning::Suspended => "Suspended",
        }
    }
}

/// The versioning of a bucket; `None` if it was never enabled.
///
/// # Errors
/// Those of the request; `Corrupt` for an unknown state.
pub async fn get_versioning(client: &Client, bucket: &str) -> Result<Option<Versioning>, Error> {
    let request = Request::new(GET, Method::GET, Some(bucket)).query("versioning", "");
    versioning_of(&client.send(&request).await?)
}

fn versioning_of(response: &Response) -> Result<Option<Versioning>, Error> {
    const ROOT: &[u8] = b"VersioningConfiguration";
    let (mut state, mut check) = (None, PageCheck::default());
    read(GET, response, ROOT, |node| {
        if let Node::Leaf { parent: ROOT, name: b"Status", text } = node
            // Some servers send an empty one for a bucket that never had versions.
            && !text.trim_ascii().is_empty()
        {
            let word = std::str::from_utf8(text.trim_ascii()).ok();
            check.set(&mut state, "Status", text, word.and_then(Versioning::parse));
        }
    })?;
    check.finish(GET)?;
    Ok(state)
}

/// Sets the versioning of a bucket.
pub async fn put_versioning(
    client: &Client,
    bucket: &str,
    versioning: Versioning,
) -> Result<(), Error> {
    client.send(&put_request(bucket, versioning)).await.map(|_| ())
}

fn put_request(bucket: &str, versioning: Versioning) -> Request {
    let body = format!(
        "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>{}</Status>\
         </VersioningConfiguration>",
        versioning.word()
    );
    with_document(Request::new(PUT, Method::PUT, Some(bucket)).query("versioning", ""), body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn buckets_are_read() {
        let body = "<ListAllMyBucketsResult><Owner><ID>o</ID><Name>x</Name></Owner><Buckets>\
        <Bucket><Name>b</Name><CreationDate>2013-05-24T00:00:00.000Z</CreationDate></Bucket>\
        <Bucket><Name>c</Name></Bucket></Buckets></ListAllMyBucketsResult>";
        let of = |body: &str| buckets_of(&Response::of(body.to_owned()), &None);
        let (buckets, next) = of(body).unwrap();
        let names: Vec<_> = buckets.iter().map(|bucket| bucket.name.as_str()).collect();
        assert_eq!((names, next), (vec!["b", "c"], None));
        let created: Vec<_> = buckets.iter().map(|bucket| bucket.created).collect();
        assert_eq!(created, [Some(Time { s: 1_369_353_600, ns: 0 }), None]);
        for (from, to) in [
            ("<Name>b</Name>", ""),
            ("<Name>c</Name>", ""),
            ("<Name>b</Name>", "<Name/>"),
            ("2013-05-24T", "yesterday"),
        ] {
            let broken = body.replacen(from, to, 1);
            assert_eq!(of(&broken).unwrap_err().kind, ErrorKind::Corrupt, "{from} {to}");
        }
    }

    #[test]
    fn a_region_is_named_but_for_the_oldest() {
        assert!(create("b", "us-east-1").unwrap().body.is_empty());
        assert_eq!(create("b", "eu\u{1}").unwrap_err().kind, ErrorKind::Settings);
        let body = create("b", "eu-west-1").unwrap().body;
        assert!(std::str::from_utf8(&body).unwrap().contains(">eu-west-1<"));
    }

    #[test]
    fn states_are_read() {
        let of = |inner: &str| {
            let body = format!("<VersioningConfiguration>{inner}</VersioningConfiguration>");
            versioning_of(&Response::of(body))
        };
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("<Status></Status>").unwrap(), None);
        assert_eq!(of("<Status>Enabled</Status>").unwrap(), Some(Versioning::Enabled));
        assert_eq!(of("<MfaDelete>x</MfaDelete>").unwrap(), None);
        let suspended = of("<MfaDelete>Disabled</MfaDelete><Status>Suspended</Status>");
        assert_eq!(suspended.unwrap(), Some(Versioning::Suspended));
        for wrong in ["<Status>On</Status>", "<Status>Enabled</Status><Status>Enabled</Status>"] {
            assert_eq!(of(wrong).unwrap_err().kind, ErrorKind::Corrupt, "{wrong}");
        }
    }

    #[test]
    fn a_request_names_the_state() {
        let request = put_request("b", Versioning::Suspended);
        let body = std::str::from_utf8(&request.body).unwrap();
        assert!(body.contains("<Status>Suspended</Status>"), "{body}");
        assert!(request.headers.iter().any(|(name, _)| name == "content-md5"));
    }
}
