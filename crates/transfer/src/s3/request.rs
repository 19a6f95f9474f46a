//! One request and its answer, before signing and after reading: plain values.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

/// A request to S3 as an operation describes it. The client adds host, date, credentials, payload
/// hash and the encoded path.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name in AWS's API reference, for messages and statistics.
    pub operation: &'static str,
    /// HTTP method.
    pub method: Method,
    /// The bucket; `None` for operations of the account (ListBuckets).
    pub bucket: Option<String>,
    /// The key, as bytes that are not encoded; `None` for operations of the bucket.
    pub key: Option<Vec<u8>>,
    /// Query parameters, not encoded; order does not matter.
    pub query: Vec<(&'static str, String)>,
    /// Headers of the operation.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, possibly empty. Cloning shares it.
    pub body: Bytes,
    /// Whether sending it twice does no harm beyond sending it once. A request that may have
    /// succeeded is sent again only then.
    pub repeatable: bool,
}

impl Request {
    /// A request without key, query, headers and body, repeatable.
    pub fn new(operation: &'static str, method: Method, bucket: Option<&str>) -> Request {
        Request {
            operation,
            method,
            bucket: bucket.map(str::to_owned),
            key: None,
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            repeatable: true,
        }
    }

    /// The same for an object.
    pub fn key(mut self, key: &[u8]) -> Request {
        self.key = Some(key.to_vec());
        self
    }

    /// The same with one more query parameter.
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.query.push((name, value.into()));
        self
    }

    /// The same with one more header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Request {
        self.headers.push((name, value));
        self
    }

    /// The same with a body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }
}

/// A successful answer (2xx) with its whole body.
#[derive(Clone, Debug)]
pub struct Reply {
    /// 200, 204, 206 …
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}
