//! Signature Version 4 (Amazon S3 API Reference, "Authenticating Requests (AWS Signature Version 4)"), in headers and in
//! presigned URLs. Signing is pure: the caller supplies the time.

use crate::{Error, ErrorKind, Request, S3Session, time};
use hakobu_core::percent::{encode, hex};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ring::{digest, hmac};
use std::fmt;
use std::time::Duration;

/// Placeholder for the hash of an unsigned body.
pub(crate) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Longest validity of a presigned URL: seven days.
pub(crate) const EXPIRES_MAX_S: u64 = 7 * 86_400;

const X_AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
const X_AMZ_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const X_AMZ_SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Credentials of an account.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Access key id, `AKIA…`, public.
    pub access_key: String,
    /// Secret key, never shown.
    pub secret_key: String,
    /// Session token of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Signing key of an account, region, and day (UTC).
pub(crate) struct Signer {
    access_key: String,
    session_token: Option<HeaderValue>,
    pub(crate) region: String,
    /// Days since 1970.
    day: i64,
    /// `20130524`.
    date: String,
    /// `20130524/us-east-1/s3/aws4_request`.
    scope: String,
    key: hmac::Key,
}

impl Signer {
    /// Derives the signing key for the day of `now_s` (seconds since 1970).
    pub(crate) fn new(credentials: &Credentials, region: &str, now_s: i64) -> Signer {
        let date = time::stamp(now_s)[..8].to_owned();
        Signer {
            access_key: credentials.access_key.clone(),
            session_token: credentials.session_token.as_deref().map(header_value),
            region: region.to_owned(),
            day: now_s.div_euclid(86_400),
            scope: format!("{date}/{region}/s3/aws4_request"),
            key: signing_key(credentials, &date, region, "s3"),
            date,
        }
    }

    /// True if it is valid for that region and time.
    pub(crate) fn is_for(&self, region: &str, now_s: i64) -> bool {
        self.day == now_s.div_euclid(86_400) && self.region == region
    }

    /// Adds `x-amz-date`, `x-amz-content-sha256`, `x-amz-security-token` and `authorization`. Path and query
    /// must be encoded, the query in canonical order; `host` is the value of the Host header; `payload_hash`
    /// is the body's SHA-256 in hexadecimal, or [`UNSIGNED`].
    #[expect(clippy::too_many_arguments, reason = "all that a signature covers")]
    pub(crate) fn sign(
        &self,
        method: &str,
        host: &str,
        encoded_path: &str,
        encoded_query: &str,
        headers: &mut HeaderMap,
        payload_hash: &str,
        now_s: i64,
    ) {
        let stamp = self.stamp(now_s);
        headers.insert(X_AMZ_DATE, header_value(&stamp));
        headers.insert(X_AMZ_CONTENT_SHA256, header_value(payload_hash));
        if let Some(token) = &self.session_token {
            headers.insert(X_AMZ_SECURITY_TOKEN, token.clone());
        }
        let mut canonical = Canonical::begin(method, encoded_path, encoded_query);
        let signed = canonical.headers(host, headers);
        canonical.end(&signed, payload_hash);
        let signature = self.signature(&canonical.0, &stamp);
        let mut value = Vec::with_capacity(300);
        for part in [
            "AWS4-HMAC-SHA256 Credential=",
            &self.access_key,
            "/",
            &self.scope,
            ",SignedHeaders=",
            &signed,
            ",Signature=",
            &signature,
        ] {
            value.extend_from_slice(part.as_bytes());
        }
        headers.insert(header::AUTHORIZATION, header_bytes(&value));
    }

    /// Time stamp `20130524T000000Z`, always within the day of the scope.
    fn stamp(&self, now_s: i64) -> String {
        let second = now_s.rem_euclid(86_400);
        let mut text = String::with_capacity(16);
        text.push_str(&self.date);
        text.push('T');
        for part in [second / 3_600, second / 60 % 60, second % 60] {
            text.push(char::from(b'0' + (part / 10) as u8));
            text.push(char::from(b'0' + (part % 10) as u8));
        }
        text.push('Z');
        text
    }

    fn signature(&self, canonical: &[u8], stamp: &str) -> String {
        let hash = sha256_hex(canonical);
        let mut context = hmac::Context::with_key(&self.key);
        for part in ["AWS4-HMAC-SHA256\n", stamp, "\n", &self.scope, "\n", &hash] {
            context.update(part.as_bytes());
        }
        hex(context.sign().as_ref())
    }
}

fn signing_key(credentials: &Credentials, date: &str, region: &str, service: &str) -> hmac::Key {
    let secret = format!("AWS4{}", credentials.secret_key);
    let mut key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    for part in [date, region, service, "aws4_request"] {
        let derived = hmac::sign(&key, part.as_bytes());
        key = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
    }
    key
}

/// Builder of a canonical request.
struct Canonical(Vec<u8>);

impl Canonical {
    fn begin(method: &str, path: &str, query: &str) -> Canonical {
        let mut text = Vec::with_capacity(1_024);
        for part in [method, "\n", path, "\n", query, "\n"] {
            text.extend_from_slice(part.as_bytes());
        }
        Canonical(text)
    }

    /// Adds all signed headers in order; returns their names joined by `;`.
    fn headers(&mut self, host: &str, headers: &HeaderMap) -> String {
        let mut pairs: Vec<(&str, &[u8])> = Vec::with_capacity(headers.len() + 1);
        pairs.push(("host", host.as_bytes()));
        let given = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        pairs.extend(given.filter(|(name, _)| is_signed(name)));
        // The sort is stable: values of one name stay in order.
        pairs.sort_by_key(|(name, _)| *name);
        let mut signed = String::with_capacity(128);
        let mut last = "";
        for (name, value) in pairs {
            if name == last {
                self.0.pop(); // the end of the line
                self.0.push(b',');
            } else {
                if !signed.is_empty() {
                    signed.push(';');
                }
                signed.push_str(name);
                self.0.extend_from_slice(name.as_bytes());
                self.0.push(b':');
                last = name;
            }
            self.value(value);
            self.0.push(b'\n');
        }
        signed
    }

    /// Adds a trimmed value with runs of spaces reduced to one.
    fn value(&mut self, value: &[u8]) {
        let value = value.trim_ascii();
        if !value.windows(2).any(|pair| pair == b"  ") {
            self.0.extend_from_slice(value);
            return;
        }
        let mut space = false;
        for byte in value {
            if *byte != b' ' || !space {
                self.0.push(*byte);
            }
            space = *byte == b' ';
        }
    }

    fn end(&mut self, signed: &str, payload_hash: &str) {
        for part in ["\n", signed, "\n", payload_hash] {
            self.0.extend_from_slice(part.as_bytes());
        }
    }
}

/// True for all headers except those that the connection or a proxy may set or change.
fn is_signed(name: &str) -> bool {
    !matches!(
        name,
        "host"
            | "authorization"
            | "accept-encoding"
            | "connection"
            | "content-length"
            | "expect"
            | "te"
            | "transfer-encoding"
            | "user-agent"
            | "x-amzn-trace-id"
    )
}

/// Drops bytes that are invalid in a header; the server will then reject the credentials.
fn header_value(text: &str) -> HeaderValue {
    header_bytes(text.as_bytes())
}

fn header_bytes(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).unwrap_or_else(|_| {
        let kept: Vec<u8> = bytes.iter().copied().filter(|b| *b >= 32 && *b != 127).collect();
        HeaderValue::from_bytes(&kept).unwrap_or_else(|_| HeaderValue::from_static(""))
    })
}

/// A URL with a signature, valid for `expires_s` seconds from `now_s` (at most [`EXPIRES_MAX_S`], checked by
/// the caller). `query` as for [`encode_query`]; only the Host header is signed.
#[expect(clippy::too_many_arguments, reason = "all that a signature covers")]
pub(crate) fn presigned_url(
    signer: &Signer,
    method: &str,
    scheme: &str,
    host: &str,
    encoded_path: &str,
    query: &[(&str, String)],
    expires_s: u64,
    now_s: i64,
) -> String {
    let stamp = signer.stamp(now_s);
    let mut query: Vec<(&str, String)> = query.to_vec();
    query.push(("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned()));
    query.push(("X-Amz-Credential", format!("{}/{}", signer.access_key, signer.scope)));
    query.push(("X-Amz-Date", stamp.clone()));
    query.push(("X-Amz-Expires", expires_s.to_string()));
    query.push(("X-Amz-SignedHeaders", "host".to_owned()));
    if let Some(token) = &signer.session_token {
        let token = String::from_utf8_lossy(token.as_bytes()).into_owned();
        query.push(("X-Amz-Security-Token", token));
    }
    let query = encode_query(&query);
    let mut canonical = Canonical::begin(method, encoded_path, &query);
    let signed = canonical.headers(host, &HeaderMap::new());
    canonical.end(&signed, UNSIGNED);
    let signature = signer.signature(&canonical.0, &stamp);
    format!("{scheme}://{host}{encoded_path}?{query}&X-Amz-Signature={signature}")
}

/// SHA-256 in hexadecimal, for `x-amz-content-sha256`.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Appends a percent-encoded key or path. Slashes stay, and nothing is normalised: `//`, `.`, `..` and a
/// leading `/` are parts of keys.
pub(crate) fn encode_path(bytes: &[u8], out: &mut String) {
    encode(bytes, true, out);
}

/// Encodes a query string in canonical order: by encoded name, then by encoded value.
pub(crate) fn encode_query(query: &[(&str, String)]) -> String {
    let mut pairs: Vec<(String, String)> = query
        .iter()
        .map(|(name, value)| {
            let (mut left, mut right) = (String::new(), String::new());
            encode(name.as_bytes(), false, &mut left);
            encode(value.as_bytes(), false, &mut right);
            (left, right)
        })
        .collect();
    pairs.sort_unstable();
    let mut out = String::new();
    for (name, value) in pairs {
        if !out.is_empty() {
            out.push('&');
        }
        out.push_str(&name);
        out.push('=');
        out.push_str(&value);
    }
    out
}

/// Creates a presigned URL, valid for `expires` (at most seven days) from now. Headers and body of the
/// request are not signed.
///
/// # Errors
/// `Credentials` if there are none, or expired ones cannot be refreshed; `Invalid` for a duration of zero or
/// above the limit.
pub async fn presign(
    session: &S3Session,
    request: &Request,
    expires: Duration,
) -> Result<String, Error> {
    let wrong = |kind, what: &str| Err(Error::new(kind, request.operation, what));
    let expires_s = expires.as_secs();
    if !(1..=EXPIRES_MAX_S).contains(&expires_s) {
        return wrong(ErrorKind::Invalid, "a presigned URL is valid for one second to seven days");
    }
    let now_s = session.server_now_s();
    if session.credential_cache.claims_refresh(now_s) {
        session.credential_cache.refresh_ahead(now_s).await;
    }
    let Some(credentials) = session.credential_cache.credentials() else {
        return wrong(ErrorKind::Credentials, "a presigned URL needs credentials to sign with");
    };
    let route = session.route(request.bucket.as_deref());
    Ok(presigned_url(
        &Signer::new(&credentials, &route.region, now_s),
        request.method.as_str(),
        if route.tls { "https" } else { "http" },
        &route.authority,
        &route.path(request.key.as_deref()),
        &request.query,
        expires_s,
        now_s,
    ))
}

#[cfg(test)]
mod tests;
