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

use super::operation::{Operation, parameter, split};
use hakobu_core::percent;
use std::sync::atomic::{AtomicU64, Ordering};

/// Affected body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Request body.
    Request,
    /// Response body.
    Response,
}

/// Kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Reset the connection after some bytes of a body.
    Reset {
        /// Bytes that pass.
        after: u64,
        /// Affected body; `None` for the one with the object.
        side: Option<Side>,
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
        side: Option<Side>,
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
        side: Option<Side>,
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
    pub effect: Effect,
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
        let mut fields = Fields::parse(rest)?;
        let effect = match kind {
            "reset" => {
                Effect::Reset { after: fields.number("after")?.unwrap_or(0), side: fields.side()? }
            }
            "truncate" => Effect::Truncate { after: fields.number("after")?.unwrap_or(0) },
            "corrupt" => {
                Effect::Corrupt { at: fields.number("at")?.unwrap_or(0), side: fields.side()? }
            }
            "checksum" => Effect::Checksum,
            "error" => fields.error()?,
            "slow" => {
                let rate = fields.number("rate")?.filter(|rate| *rate > 0);
                let rate = rate.ok_or("slow needs rate=BYTES a second")?;
                Effect::Slow { rate, side: fields.side()? }
            }
            "silent" => Effect::Silent,
            "list" => {
                let drop = fields.number("drop")?.unwrap_or(0) as usize;
                Effect::List { drop, add: fields.take("add"), swap: fields.yes("swap")? }
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
    fn fits(&self, request: &Request<'_>) -> bool {
        let is = |name: &String| {
            name.eq_ignore_ascii_case(request.method)
                || name.eq_ignore_ascii_case(request.operation.name())
        };
        let lists = matches!(request.operation, Operation::ListObjects | Operation::ListObjectsV2);
        let key = || match lists {
            true => {
                percent::decode(parameter(request.query, "prefix").unwrap_or("").as_bytes(), true)
            }
            false => percent::decode(split(request.path).1.as_bytes(), false),
        };
        let has = |part: &String| String::from_utf8_lossy(&key()).contains(part.as_str());
        (lists || !matches!(self.effect, Effect::List { .. }))
            && self.operation.as_ref().is_none_or(is)
            && self.key.as_ref().is_none_or(has)
            && self.query.as_ref().is_none_or(|part| request.query.contains(part.as_str()))
    }

    /// True if the fault applies to this request; counts it.
    fn applies_to(&self, request: &Request<'_>) -> bool {
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
pub struct Request<'a> {
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
pub fn pick<'f>(faults: &'f [Fault], request: &Request<'_>) -> Option<&'f Effect> {
    faults.iter().find(|fault| fault.applies_to(request)).map(|fault| &fault.effect)
}

impl Effect {
    /// Name of the kind in the syntax.
    pub fn kind(&self) -> &'static str {
        match self {
            Effect::Reset { .. } => "reset",
            Effect::Truncate { .. } => "truncate",
            Effect::Corrupt { .. } => "corrupt",
            Effect::Checksum => "checksum",
            Effect::Error { .. } => "error",
            Effect::Slow { .. } => "slow",
            Effect::Silent => "silent",
            Effect::List { .. } => "list",
        }
    }

    /// Body that it changes for an operation; `None` if none.
    pub fn side(&self, operation: Operation) -> Option<Side> {
        let usual = match operation.sends_payload() {
            true => Side::Request,
            false => Side::Response,
        };
        match self {
            Effect::Reset { side, .. }
            | Effect::Corrupt { side, .. }
            | Effect::Slow { side, .. } => Some(side.unwrap_or(usual)),
            Effect::Truncate { .. } => Some(Side::Response),
            _ => None,
        }
    }
}

/// Unused key-value pairs of a fault.
struct Fields {
    pairs: Vec<(String, String)>,
}

impl Fields {
    fn parse(text: &str) -> Result<Fields, String> {
        let mut fields = Fields { pairs: Vec::new() };
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

    fn side(&mut self) -> Result<Option<Side>, String> {
        match self.take("in").as_deref() {
            None => Ok(None),
            Some("request") => Ok(Some(Side::Request)),
            Some("response") => Ok(Some(Side::Response)),
            Some(other) => Err(format!("in={other} is neither request nor response")),
        }
    }

    fn error(&mut self) -> Result<Effect, String> {
        let code = self.take("code").unwrap_or_else(|| "InternalError".into());
        let known = CODES.iter().find(|(name, _)| *name == code).map(|(_, status)| *status);
        let status = match self.number("status")? {
            Some(status) => u16::try_from(status).ok().filter(|s| (200..600).contains(s)),
            None => known,
        };
        let status = status.ok_or_else(|| format!("give the status (200 to 599) of {code}"))?;
        Ok(Effect::Error { status, code, region: self.take("region"), late: self.yes("late")? })
    }
}

#[cfg(test)]
mod tests;
