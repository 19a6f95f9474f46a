//! Buckets.

use super::{read, send_and_read, string};
use crate::s3::header::plain;
use crate::s3::time::parse_iso;
use crate::s3::xml::{Node, escaped};
use crate::s3::{Client, Error, Kind, Reply, Request};
use crate::unit::Time;
use http::Method;
use http::header::CONTENT_TYPE;

/// One bucket of the account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Time,
}

/// All buckets of the account, over all pages.
///
/// # Errors
/// The request's.
pub async fn list_buckets(client: &Client) -> Result<Vec<Bucket>, Error> {
    const NAME: &str = "ListBuckets";
    let mut buckets = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let mut request = Request::new(NAME, Method::GET, None);
        if let Some(token) = &token {
            request = request.query("continuation-token", token);
        }
        let (page, next) = send_and_read(client, &request, |reply| buckets_of(NAME, reply)).await?;
        buckets.extend(page);
        if next.is_none() {
            return Ok(buckets);
        }
        if next == token {
            let message = "the server's listing goes on where it was already";
            return Err(Error::new(Kind::Corrupt, NAME, message));
        }
        token = next;
    }
}

fn buckets_of(
    operation: &'static str,
    reply: &Reply,
) -> Result<(Vec<Bucket>, Option<String>), Error> {
    let (mut buckets, mut bucket, mut next) = (Vec::new(), Bucket::default(), None);
    read(operation, reply, b"ListAllMyBucketsResult", |node| match node {
        Node::Leaf { parent: b"Bucket", name: b"Name", text } => bucket.name = string(text),
        Node::Leaf { parent: b"Bucket", name: b"CreationDate", text } => {
            bucket.created = parse_iso(text).unwrap_or_default();
        }
        Node::Leaf { name: b"ContinuationToken", text, .. } if !text.is_empty() => {
            next = Some(string(text));
        }
        Node::End { name: b"Bucket", .. } => buckets.push(std::mem::take(&mut bucket)),
        _ => {}
    })?;
    Ok((buckets, next))
}

/// Whether a bucket is there and may be used.
///
/// # Errors
/// `NoSuchBucket`, `AccessDenied`; the request's.
pub async fn head_bucket(client: &Client, bucket: &str) -> Result<(), Error> {
    let request = Request::new("HeadBucket", Method::HEAD, Some(bucket));
    client.send(&request).await.map(|_| ())
}

/// Makes a bucket in the client's region.
///
/// # Errors
/// `Invalid` where the name is taken; the request's.
pub async fn create_bucket(client: &Client, bucket: &str) -> Result<(), Error> {
    let request = create(bucket, &client.store().region());
    client.send(&request).await.map(|_| ())
}

/// The oldest region is the one that may not be named.
fn create(bucket: &str, region: &str) -> Request {
    let request = Request::new("CreateBucket", Method::PUT, Some(bucket));
    let region = escaped(region.as_bytes()).unwrap_or_default();
    if region.is_empty() || region == "us-east-1" {
        return request;
    }
    let body = format!(
        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
         <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
    );
    request.header(CONTENT_TYPE, plain("application/xml")).body(body)
}

/// Removes an empty bucket.
///
/// # Errors
/// `Invalid` where it is not empty; the request's.
pub async fn delete_bucket(client: &Client, bucket: &str) -> Result<(), Error> {
    let request = Request::new("DeleteBucket", Method::DELETE, Some(bucket));
    client.send(&request).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    #[test]
    fn buckets_are_read() {
        let body = "<ListAllMyBucketsResult><Owner><ID>o</ID><Name>x</Name></Owner><Buckets>\
            <Bucket><Name>b</Name><CreationDate>2013-05-24T00:00:00.000Z</CreationDate></Bucket>\
            <Bucket><Name>c</Name></Bucket></Buckets></ListAllMyBucketsResult>";
        let body = Bytes::from_static(body.as_bytes());
        let reply = Reply { status: StatusCode::OK, headers: HeaderMap::new(), body };
        let (buckets, next) = buckets_of("ListBuckets", &reply).unwrap();
        let names: Vec<_> = buckets.iter().map(|bucket| bucket.name.as_str()).collect();
        assert_eq!((names, next), (vec!["b", "c"], None));
        assert_eq!(buckets[0].created.s, 1_369_353_600);
    }

    #[test]
    fn a_region_is_named_but_for_the_oldest() {
        assert!(create("b", "us-east-1").body.is_empty());
        let body = create("b", "eu-west-1").body;
        assert!(std::str::from_utf8(&body).unwrap().contains(">eu-west-1<"));
    }
}
