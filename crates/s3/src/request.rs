//! Requests and responses as plain values.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

/// A request to S3. The client adds host, date, credentials, payload hash and the encoded path.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name in AWS's API reference, for messages and statistics.
    pub operation: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Bucket; `None` for operations of the account (ListBuckets).
    pub bucket: Option<String>,
    /// Key, not encoded; `None` for operations of the bucket.
    pub key: Option<Vec<u8>>,
    /// Query parameters, not encoded, in any order.
    pub query: Vec<(&'static str, String)>,
    /// Headers of the operation.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body, possibly empty. Cloning shares it.
    pub body: Bytes,
    /// True if sending it twice has the same effect as once. Only then is a request that may have succeeded
    /// sent again.
    pub repeatable: bool,
}

impl Request {
    /// Creates a repeatable request without key, query, headers and body.
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

    /// Sets the key.
    pub fn key(mut self, key: &[u8]) -> Request {
        self.key = Some(key.to_vec());
        self
    }

    /// Adds a query parameter.
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a query parameter, if it has a value.
    pub(super) fn query_if(self, name: &'static str, value: Option<impl Into<String>>) -> Request {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Request {
        self.headers.push((name, value));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }
}

/// A successful response (2xx) with its whole body.
#[derive(Clone, Debug)]
pub struct Reply {
    /// 200, 204, 206 …
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

#[cfg(any(test, fuzzing))]
impl Reply {
    /// 200 with this body and without headers.
    pub(crate) fn of(body: impl Into<Bytes>) -> Reply {
        Reply { status: StatusCode::OK, headers: HeaderMap::new(), body: body.into() }
    }
}
