//! Requests of blocks: their paths, their headers, and the answers that are right.

use super::wire::Head;
use crate::job::{Http as Options, HttpMode, Https};
use crate::web::{Unsigned, Web};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hakobu_core::percent;
use md5::{Digest, Md5};
use std::fmt::Write as _;

/// Operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Put,
    Delete,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// The value of the header Host, and the name and the port to connect to.
pub(super) fn host(options: &Options) -> Result<(String, String, u16), String> {
    let text = options.host();
    let usual = if options.https == Https::Off { 80 } else { 443 };
    let is_six = text.starts_with('[');
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !is_six || name.ends_with(']') => {
            let port = port.parse::<u16>().ok().filter(|port| *port > 0);
            (name, port.ok_or_else(|| format!("http_host={text}: has no port after its colon"))?)
        }
        _ => (text, usual),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("http_host={text}: is not a host name with an optional port"));
    }
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    Ok((text.to_owned(), bare.to_owned(), port))
}

/// Path of the object of a block, encoded.
pub(super) fn path(name: &[u8], options: &Options, (offset, bytes): (u64, u64)) -> String {
    let mut path = String::with_capacity(name.len() + 48);
    if !name.starts_with(b"/") {
        path.push('/');
    }
    percent::encode(name, true, &mut path);
    if !options.ranges {
        let _ = write!(path, "_{offset}_{}", offset.saturating_add(bytes));
    }
    path
}

/// A request: its head. `range`: the part of the object that is wanted.
pub(super) fn head(
    method: Method,
    (host, path): (&str, &str),
    options: &Options,
    body: &[u8],
    range: Option<(u64, u64)>,
    web: Option<&dyn Web>,
) -> Vec<u8> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    if let Some((offset, bytes)) = range {
        add("range", format!("bytes={offset}-{}", offset + bytes.saturating_sub(1)));
    }
    match options.mode {
        HttpMode::Swift => add("x-auth-token", options.token.0.clone()),
        HttpMode::S3 => {
            if let (Method::Put, Some(class)) = (method, &options.storage_class) {
                add("x-amz-storage-class", class.clone());
            }
            if !options.customer_key.0.is_empty() && method != Method::Delete {
                let key = options.customer_key.0.as_bytes();
                let algorithm = options.customer_algorithm.as_deref().unwrap_or("AES256");
                let prefix = "x-amz-server-side-encryption-customer";
                add(&format!("{prefix}-algorithm"), algorithm.to_owned());
                add(&format!("{prefix}-key"), STANDARD.encode(key));
                add(&format!("{prefix}-key-md5"), STANDARD.encode(Md5::digest(key)));
            }
        }
        HttpMode::Webdav => {}
    }
    if let (Some(user), false) = (&options.user, options.mode == HttpMode::S3) {
        let pair = format!("{user}:{}", options.password.0);
        add("authorization", format!("Basic {}", STANDARD.encode(pair)));
    }
    if let (HttpMode::S3, Some(web)) = (options.mode, web) {
        let signed = web.sign(&Unsigned {
            method: method.name(),
            host,
            path,
            headers: &headers,
            body,
            region: options.region.as_deref().unwrap_or("us-east-1"),
            key_id: options.key_id.as_deref().unwrap_or_default(),
            key: &options.key.0,
            session: &options.session.0,
        });
        headers.extend(signed);
    }
    let mut text = format!("{} {path} HTTP/1.1\r\nhost: {host}\r\n", method.name());
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if method == Method::Put {
        let _ = write!(text, "content-length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// Checks an answer: its status, and of one with content that it is the block.
pub(super) fn check(
    method: Method,
    head: &Head,
    bytes: u64,
    range: Option<(u64, u64)>,
) -> Result<(), String> {
    let status = head.status;
    let good: &[u16] = match (method, range) {
        (Method::Get, None) => &[200],
        (Method::Get, Some(_)) => &[206],
        (Method::Put, _) => &[200, 201, 204],
        // A missing object counts as deleted.
        (Method::Delete, _) => &[200, 202, 204, 404],
    };
    if !good.contains(&status) {
        let why = match status {
            200 if range.is_some() => " (it does not know ranges)",
            301 | 302 | 303 | 307 | 308 => " (elsewhere: http_host or http_s3_region is wrong)",
            401 | 403 => " (user, key or token is not accepted)",
            404 => " (there is no such object)",
            429 | 503 => " (it is asked too often)",
            _ => "",
        };
        return Err(format!("the server answers {status}{why}"));
    }
    if method != Method::Get {
        return Ok(());
    }
    match head.bytes {
        Some(said) if said == bytes => {}
        Some(said) => return Err(format!("the answer has {said} bytes, not {bytes}")),
        None => return Err("the answer does not say how long it is".to_owned()),
    }
    if let Some((offset, bytes)) = range {
        let last = offset + bytes.saturating_sub(1);
        let begin = format!("bytes {offset}-{last}/");
        let said = head.range.as_deref().unwrap_or("nothing");
        if !said.to_ascii_lowercase().starts_with(&begin) {
            return Err(format!("the answer has {said} in place of {begin}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Secret;

    #[test]
    fn names_of_objects_are_encoded() {
        let blocks = Options::default();
        assert_eq!(path(b"/b/k", &blocks, (4096, 4096)), "/b/k_4096_8192");
        let ranges = Options { ranges: true, ..Options::default() };
        assert_eq!(path("a ü?#\r\n%".as_bytes(), &ranges, (0, 1)), "/a%20%C3%BC%3F%23%0D%0A%25");
    }

    #[test]
    fn hosts_have_ports() {
        let of = |host: &str, https| {
            let options = Options { host: Some(host.to_owned()), https, ..Options::default() };
            super::host(&options).ok().map(|(_, name, port)| (name, port))
        };
        let is = |name: &str, port| Some((name.to_owned(), port));
        assert_eq!(of("x.y", Https::Off), is("x.y", 80));
        assert_eq!(of("x.y", Https::On), is("x.y", 443));
        assert_eq!(of("x:8081", Https::On), is("x", 8081));
        assert_eq!(of("[::1]:9", Https::Off), is("::1", 9));
        assert_eq!(of("[::1]", Https::Off), is("::1", 80));
        for wrong in ["", "x:", "x:0", "x/y", "x y", "x\r\ny", "u@x"] {
            assert_eq!(of(wrong, Https::Off), None, "{wrong:?}");
        }
    }

    #[test]
    fn heads_have_what_their_mode_needs() {
        let text = |options: &Options, method| {
            let head = head(method, ("h", "/k"), options, b"body", None, None);
            String::from_utf8(head).unwrap()
        };
        let dav =
            Options { user: Some("u".into()), password: Secret("p".into()), ..Options::default() };
        let put =
            "PUT /k HTTP/1.1\r\nhost: h\r\nauthorization: Basic dTpw\r\ncontent-length: 4\r\n\r\n";
        assert_eq!(text(&dav, Method::Put), put);
        let token = Secret("t".into());
        let swift = Options { mode: HttpMode::Swift, token, ..Options::default() };
        assert_eq!(
            text(&swift, Method::Get),
            "GET /k HTTP/1.1\r\nhost: h\r\nx-auth-token: t\r\n\r\n"
        );
        let customer_key = Secret("0123456789abcdef0123456789abcdef".into());
        let s3 = Options { mode: HttpMode::S3, customer_key, ..Options::default() };
        let put = text(&s3, Method::Put);
        assert!(
            put.contains("customer-key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\r\n"),
            "{put}"
        );
        assert!(!text(&s3, Method::Delete).contains("customer"));
        assert!(!format!("{s3:?}{dav:?}{swift:?}").contains("0123456789abcdef"));
    }
}
