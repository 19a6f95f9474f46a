//! Fault injection: the syntax of faults, and their assignment to requests.
//!
//! `KIND:key=value,…`; a comma in a value is written `%2C`. These keys select requests: `op` (an HTTP method
//! or an S3 operation), `key` (a substring of the object key or listing prefix), `query` (a substring of the
//! query as sent), `skip` (number of matching requests to leave alone first), `times` (number of requests to
//! affect then; all by default). A request gets the first fault that matches it.
//!
//! | kind | keys | effect |
//! |---|---|---|
//! | `reset` | `after`, `in` | resets the connection after `after` bytes of the body |
//! | `truncate` | `after` | closes the connection after `after` bytes of the response body |
//! | `corrupt` | `at`, `in` | changes the byte of the body at offset `at` |
//! | `checksum` | | makes the `x-amz-checksum-…` headers of the response wrong |
//! | `error` | `code`, `status`, `region`, `late` | returns an S3 error |
//! | `slow` | `rate`, `in` | limits the body to `rate` bytes per second |
//! | `silent` | | never answers |
//! | `list` | `drop`, `add`, `swap` | changes a page: drops first keys, adds one, swaps first and last |
//!
//! `in` is `request` or `response`; by default the side that carries the object. `error` takes `late=yes` to
//! execute the request before failing, and `region` for redirects.

use crate::protocol::{Operation, push_escaped, query_parameter, split_path};
use hakobu_core::percent;
use std::sync::atomic::{AtomicU64, Ordering};

/// Affected body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySide {
    /// Request body.
    Request,
    /// Response body.
    Response,
}

/// Kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// Reset the connection after some bytes of a body.
    Reset {
        /// Bytes that pass.
        after: u64,
        /// Affected body; `None` for the one with the object.
        side: Option<BodySide>,
    },
    /// Close the connection after some bytes of the response body.
    Truncate {
        /// Bytes that pass.
        after: u64,
    },
    /// Change one byte.
    Corrupt {
        /// Its offset.
        at: u64,
        /// Affected body; `None` for the one with the object.
        side: Option<BodySide>,
    },
    /// Return wrong checksums.
    Checksum,
    /// Return an S3 error.
    Error {
        /// HTTP status.
        status: u16,
        /// S3 error code.
        code: String,
        /// `x-amz-bucket-region`.
        region: Option<String>,
        /// True to execute the request nevertheless.
        late: bool,
    },
    /// Slow a body down.
    Slow {
        /// Bytes per second.
        rate: u64,
        /// Affected body; `None` for the one with the object.
        side: Option<BodySide>,
    },
    /// Never answer.
    Silent,
    /// Change a page of a listing.
    List {
        /// Number of keys dropped from its start.
        drop: usize,
        /// A key added in their place.
        add: Option<String>,
        /// True to exchange the first and the last key.
        swap: bool,
    },
}

/// A fault with its selection of requests.
#[derive(Debug)]
pub struct Fault {
    /// The fault.
    pub effect: FaultEffect,
    operation: Option<String>,
    key: Option<String>,
    query: Option<String>,
    skip: u64,
    times: Option<u64>,
    /// Number of matching requests so far.
    seen: AtomicU64,
}

/// S3's error codes with their status (Amazon S3 API reference, "List of error codes").
const CODES: &[(&str, u16)] = &[
    ("AccessDenied", 403),
    ("AuthorizationHeaderMalformed", 400),
    ("BadDigest", 400),
    ("ExpiredToken", 400),
    ("InternalError", 500),
    ("InvalidAccessKeyId", 403),
    ("InvalidPart", 400),
    ("NoSuchBucket", 404),
    ("NoSuchKey", 404),
    ("NoSuchUpload", 404),
    ("PermanentRedirect", 301),
    ("PreconditionFailed", 412),
    ("RequestTimeTooSkewed", 403),
    ("RequestTimeout", 400),
    ("ServiceUnavailable", 503),
    ("SignatureDoesNotMatch", 403),
    ("SlowDown", 503),
    ("TemporaryRedirect", 307),
];

impl Fault {
    /// Parses a fault.
    ///
    /// # Errors
    /// A message about the problem.
    pub fn parse(text: &str) -> Result<Fault, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut fields = FaultFields::parse(rest)?;
        let effect = match kind {
            "reset" => FaultEffect::Reset {
                after: fields.number("after")?.unwrap_or(0),
                side: fields.side()?,
            },
            "truncate" => FaultEffect::Truncate { after: fields.number("after")?.unwrap_or(0) },
            "corrupt" => {
                FaultEffect::Corrupt { at: fields.number("at")?.unwrap_or(0), side: fields.side()? }
            }
            "checksum" => FaultEffect::Checksum,
            "error" => fields.error()?,
            "slow" => {
                let rate = fields.number("rate")?.filter(|rate| *rate > 0);
                let rate = rate.ok_or("slow needs rate=BYTES a second")?;
                FaultEffect::Slow { rate, side: fields.side()? }
            }
            "silent" => FaultEffect::Silent,
            "list" => {
                let drop = fields.number("drop")?.unwrap_or(0) as usize;
                FaultEffect::List { drop, add: fields.take("add"), swap: fields.yes("swap")? }
            }
            _ => return Err(format!("'{kind}' is not a kind of fault")),
        };
        let operation = fields.take("op");
        if let Some(name) = &operation
            && !METHODS.iter().any(|method| method.eq_ignore_ascii_case(name))
            && !Operation::ALL.iter().any(|known| known.name().eq_ignore_ascii_case(name))
        {
            return Err(format!("op={name} is neither an HTTP method nor an S3 operation"));
        }
        let fault = Fault {
            effect,
            operation,
            key: fields.take("key"),
            query: fields.take("query"),
            skip: fields.number("skip")?.unwrap_or(0),
            times: fields.number("times")?,
            seen: AtomicU64::new(0),
        };
        match fields.pairs.first() {
            Some((name, _)) => Err(format!("{kind} has no '{name}'")),
            None => Ok(fault),
        }
    }

    /// True if this request matches.
    fn fits(&self, request: &FaultRequest<'_>) -> bool {
        let is = |name: &String| {
            name.eq_ignore_ascii_case(request.method)
                || name.eq_ignore_ascii_case(request.operation.name())
        };
        let lists = matches!(request.operation, Operation::ListObjects | Operation::ListObjectsV2);
        let key = || match lists {
            true => percent::decode(
                query_parameter(request.query, "prefix").unwrap_or("").as_bytes(),
                true,
            ),
            false => percent::decode(split_path(request.path).1.as_bytes(), false),
        };
        let has = |part: &String| String::from_utf8_lossy(&key()).contains(part.as_str());
        (lists || !matches!(self.effect, FaultEffect::List { .. }))
            && self.operation.as_ref().is_none_or(is)
            && self.key.as_ref().is_none_or(has)
            && self.query.as_ref().is_none_or(|part| request.query.contains(part.as_str()))
    }

    /// True if the fault applies to this request; counts it.
    fn applies_to(&self, request: &FaultRequest<'_>) -> bool {
        if !self.fits(request) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        number >= self.skip && self.times.is_none_or(|times| number - self.skip < times)
    }
}

const METHODS: &[&str] = &["GET", "HEAD", "PUT", "POST", "DELETE"];

/// Properties of a request that select its fault.
#[derive(Clone, Copy, Debug)]
pub struct FaultRequest<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// The S3 operation.
    pub operation: Operation,
    /// Path as sent.
    pub path: &'a str,
    /// Query as sent.
    pub query: &'a str,
}

/// Fault of a request, if any.
pub fn pick<'f>(faults: &'f [Fault], request: &FaultRequest<'_>) -> Option<&'f FaultEffect> {
    faults.iter().find(|fault| fault.applies_to(request)).map(|fault| &fault.effect)
}

impl FaultEffect {
    /// Name of the kind in the syntax.
    pub fn kind(&self) -> &'static str {
        match self {
            FaultEffect::Reset { .. } => "reset",
            FaultEffect::Truncate { .. } => "truncate",
            FaultEffect::Corrupt { .. } => "corrupt",
            FaultEffect::Checksum => "checksum",
            FaultEffect::Error { .. } => "error",
            FaultEffect::Slow { .. } => "slow",
            FaultEffect::Silent => "silent",
            FaultEffect::List { .. } => "list",
        }
    }

    /// Body that it changes for an operation; `None` if none.
    pub fn side(&self, operation: Operation) -> Option<BodySide> {
        let usual = match operation.sends_payload() {
            true => BodySide::Request,
            false => BodySide::Response,
        };
        match self {
            FaultEffect::Reset { side, .. }
            | FaultEffect::Corrupt { side, .. }
            | FaultEffect::Slow { side, .. } => Some(side.unwrap_or(usual)),
            FaultEffect::Truncate { .. } => Some(BodySide::Response),
            _ => None,
        }
    }
}

/// Unused key-value pairs of a fault.
struct FaultFields {
    pairs: Vec<(String, String)>,
}

impl FaultFields {
    fn parse(text: &str) -> Result<FaultFields, String> {
        let mut fields = FaultFields { pairs: Vec::new() };
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("'{pair}' is not key=value"))?;
            let value = String::from_utf8(percent::decode(value.as_bytes(), false))
                .map_err(|_| format!("'{pair}' is not valid UTF-8"))?;
            if fields.pairs.iter().any(|(known, _)| known == name) {
                return Err(format!("{name} is given twice"));
            }
            fields.pairs.push((name.to_owned(), value));
        }
        Ok(fields)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        Some(self.pairs.remove(at).1)
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.take(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{name}={text} is not a number"))
    }

    fn yes(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name).as_deref() {
            None | Some("no") => Ok(false),
            Some("yes") => Ok(true),
            Some(other) => Err(format!("{name}={other} is neither yes nor no")),
        }
    }

    fn side(&mut self) -> Result<Option<BodySide>, String> {
        match self.take("in").as_deref() {
            None => Ok(None),
            Some("request") => Ok(Some(BodySide::Request)),
            Some("response") => Ok(Some(BodySide::Response)),
            Some(other) => Err(format!("in={other} is neither request nor response")),
        }
    }

    fn error(&mut self) -> Result<FaultEffect, String> {
        let code = self.take("code").unwrap_or_else(|| "InternalError".into());
        let known = CODES.iter().find(|(name, _)| *name == code).map(|(_, status)| *status);
        let status = match self.number("status")? {
            Some(status) => u16::try_from(status).ok().filter(|s| (200..600).contains(s)),
            None => known,
        };
        let status = status.ok_or_else(|| format!("give the status (200 to 599) of {code}"))?;
        Ok(FaultEffect::Error {
            status,
            code,
            region: self.take("region"),
            late: self.yes("late")?,
        })
    }
}

const OPEN: &str = "<Contents>";
const CLOSE: &str = "</Contents>";

/// Drops the first `drop` keys of a page, adds a key, and exchanges the first and the last key. Text that is
/// no listing, or has no keys, is returned unchanged.
pub fn changed_page(page: &str, drop: usize, add: Option<&str>, swap: bool) -> String {
    let (Some(start), Some(end)) = (page.find(OPEN), page.rfind(CLOSE)) else {
        return page.to_owned();
    };
    let end = end + CLOSE.len();
    let mut entries: Vec<String> =
        page[start..end].split_inclusive(CLOSE).map(str::to_owned).collect();
    let like = entries.first().cloned().unwrap_or_default();
    entries.drain(..drop.min(entries.len()));
    if let Some(key) = add {
        let added = renamed_entry(&like, key);
        let at = entries.iter().position(|entry| key_of(entry) > key_of(&added));
        entries.insert(at.unwrap_or(entries.len()), added);
    }
    if swap && entries.len() > 1 {
        let last = entries.len() - 1;
        entries.swap(0, last);
    }
    [&page[..start], &entries.concat(), &page[end..]].concat()
}

/// Key of the entry as written.
fn key_of(entry: &str) -> &str {
    let rest = entry.split_once("<Key>").map_or("", |(_, rest)| rest);
    rest.split_once("</Key>").map_or("", |(key, _)| key)
}

/// The entry with another key.
fn renamed_entry(entry: &str, key: &str) -> String {
    let mut escaped = Vec::new();
    push_escaped(key.as_bytes(), &mut escaped);
    let old = format!("<Key>{}</Key>", key_of(entry));
    entry.replacen(&old, &format!("<Key>{}</Key>", String::from_utf8_lossy(&escaped)), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>(method: &'a str, path: &'a str, query: &'a str) -> FaultRequest<'a> {
        FaultRequest { method, operation: Operation::of(method, path, query, false), path, query }
    }

    #[test]
    fn specifications() {
        let effect = |text: &str| Fault::parse(text).map(|fault| fault.effect);
        let error = |code: &str, status, region: Option<&str>, late| FaultEffect::Error {
            status,
            code: code.into(),
            region: region.map(Into::into),
            late,
        };
        for (text, expected) in [
            ("reset:op=GET,after=1000,times=2", FaultEffect::Reset { after: 1000, side: None }),
            ("reset:in=response", FaultEffect::Reset { after: 0, side: Some(BodySide::Response) }),
            ("truncate:after=5", FaultEffect::Truncate { after: 5 }),
            ("corrupt:at=7", FaultEffect::Corrupt { at: 7, side: None }),
            ("checksum", FaultEffect::Checksum),
            ("silent:", FaultEffect::Silent),
            ("slow:rate=10", FaultEffect::Slow { rate: 10, side: None }),
            ("error", error("InternalError", 500, None, false)),
            ("error:code=SlowDown,late=yes", error("SlowDown", 503, None, true)),
            ("error:code=X,status=418", error("X", 418, None, false)),
            (
                "error:code=PermanentRedirect,region=eu-west-1",
                error("PermanentRedirect", 301, Some("eu-west-1"), false),
            ),
            ("list:add=a%2Cb", FaultEffect::List { drop: 0, add: Some("a,b".into()), swap: false }),
        ] {
            assert_eq!(effect(text), Ok(expected), "{text}");
        }
        for (text, said) in [
            ("", "'' is not a kind"),
            ("resets", "'resets' is not a kind"),
            ("reset:after", "'after' is not key=value"),
            ("reset:after=x", "after=x is not a number"),
            ("reset:times=-1", "times=-1 is not a number"),
            ("reset:at=1", "reset has no 'at'"),
            ("reset:op=GTE", "op=GTE is neither"),
            ("reset:in=both", "in=both is neither"),
            ("reset:skip=1,skip=2", "skip is given twice"),
            ("error:code=Strange", "give the status"),
            ("error:status=99", "give the status"),
            ("slow", "slow needs rate"),
            ("slow:rate=0", "slow needs rate"),
            ("list:swap=perhaps", "swap=perhaps is neither"),
        ] {
            let message = effect(text).err().unwrap_or_default();
            assert!(message.contains(said), "{text}: {message}");
        }
    }

    #[test]
    fn who_is_met() {
        let get = request("GET", "/b/some%20key", "");
        let put = request("PUT", "/b/key", "partNumber=2&uploadId=x");
        let list = request("GET", "/b", "list-type=2&prefix=some+k");
        for (text, applies_to) in [
            ("silent", [true, true, true]),
            ("silent:op=get", [true, false, true]),
            ("silent:op=UploadPart", [false, true, false]),
            ("silent:key=some%20k", [true, false, true]),
            ("silent:query=partNumber=2", [false, true, false]),
            ("list:drop=1", [false, false, true]),
        ] {
            let fault = Fault::parse(text).unwrap();
            assert_eq!(
                [get, put, list].map(|request| fault.applies_to(&request)),
                applies_to,
                "{text}"
            );
        }
    }

    #[test]
    fn how_often() {
        let faults = ["silent:op=GET,skip=1,times=2", "checksum:skip=1"];
        let faults = faults.map(|text| Fault::parse(text).unwrap());
        let get = request("GET", "/b/k", "");
        let kinds: Vec<_> =
            (0..6).map(|_| pick(&faults, &get).map(FaultEffect::kind).unwrap_or("none")).collect();
        assert_eq!(kinds, ["none", "silent", "silent", "checksum", "checksum", "checksum"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_or_refused(
            text in "(reset|error|slow|list|corrupt)?(:((op|key|in|rate|after|code|x)=?[ -~]{0,6},?){0,4})?",
        ) {
            let _ = Fault::parse(&text);
        }

        #[test]
        fn what_is_written_is_read(after: u64, skip: u64, times: u64, key in "[a-z/]{1,9}") {
            let text = format!("reset:key={key},times={times},after={after},skip={skip}");
            let fault = Fault::parse(&text).map_err(proptest::test_runner::TestCaseError::fail)?;
            proptest::prop_assert_eq!(fault.effect, FaultEffect::Reset { after, side: None });
            proptest::prop_assert_eq!((fault.skip, fault.times), (skip, Some(times)));
            proptest::prop_assert_eq!(fault.key, Some(key));
        }
    }

    #[test]
    fn pages() {
        let page = |keys: &str| {
            let entries = keys
                .split_whitespace()
                .map(|key| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>"))
                .collect::<String>();
            format!("<L><KeyCount>3</KeyCount>{entries}<X/></L>")
        };
        for (drop, add, swap, keys) in [
            (0, None, false, "a b d"),
            (1, None, false, "b d"),
            (9, None, false, ""),
            (0, Some("c"), false, "a b c d"),
            (1, Some("e"), false, "b d e"),
            (0, Some("a&"), false, "a a&amp; b d"),
            (0, None, true, "d b a"),
        ] {
            assert_eq!(
                changed_page(&page("a b d"), drop, add, swap),
                page(keys),
                "{drop} {add:?} {swap}"
            );
        }
        assert_eq!(changed_page("<Error/>", 1, Some("x"), true), "<Error/>");
    }
}
