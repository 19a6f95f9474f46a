//! Faults that are put into requests: their little language, and which request gets which.
//!
//! `KIND:key=value,…`; a comma in a value is written `%2C`. These keys choose the requests:
//! `op` (an HTTP method or an S3 operation), `key` (a part of the object's key, of a listing's
//! prefix), `query` (a part of the query as sent), `skip` (so many of those are left alone first),
//! `times` (then so many get it; without it all). A request gets the first fault that chooses it.
//!
//! | kind | keys | what happens |
//! |---|---|---|
//! | `reset` | `after`, `in` | the connection is reset after so many bytes of the body |
//! | `truncate` | `after` | the connection is closed after so many bytes of the answer's body |
//! | `corrupt` | `at`, `in` | the byte of the body at that place is another one |
//! | `checksum` | | the answer's `x-amz-checksum-…` headers are wrong |
//! | `error` | `code`, `status`, `region`, `late` | an S3 error instead of an answer |
//! | `slow` | `rate`, `in` | so many bytes a second of the body |
//! | `silent` | | there is never an answer |
//! | `list` | `drop`, `add`, `swap` | a page of a listing lacks the first so many keys, has one more, has first and last key exchanged |
//!
//! `in` is `request` or `response`; without it the side that carries the object. `error` takes
//! `late=yes` to do what was asked for before it fails, and `region` for redirects.

use super::operation::{Operation, decode, parameter, split};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which body is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of the request.
    Request,
    /// That of the answer.
    Response,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The connection is reset after so many bytes of a body.
    Reset {
        /// Bytes that get through.
        after: u64,
        /// Of which body; `None` is that with the object.
        side: Option<Side>,
    },
    /// The connection is closed after so many bytes of the answer.
    Truncate {
        /// Bytes that get through.
        after: u64,
    },
    /// One byte is another one.
    Corrupt {
        /// Its place.
        at: u64,
        /// In which body; `None` is that with the object.
        side: Option<Side>,
    },
    /// The answer's checksums are wrong.
    Checksum,
    /// An S3 error.
    Error {
        /// HTTP status.
        status: u16,
        /// S3's code.
        code: String,
        /// `x-amz-bucket-region`.
        region: Option<String>,
        /// What was asked for is done nevertheless.
        late: bool,
    },
    /// A body crawls.
    Slow {
        /// Bytes a second.
        rate: u64,
        /// Which body; `None` is that with the object.
        side: Option<Side>,
    },
    /// Never an answer.
    Silent,
    /// A listing's page is changed.
    List {
        /// So many keys are missing at its start.
        drop: usize,
        /// A key that is added in its place.
        add: Option<String>,
        /// The first and the last key change places.
        swap: bool,
    },
}

/// A fault and whom it meets.
#[derive(Debug)]
pub struct Fault {
    /// What happens.
    pub what: What,
    operation: Option<String>,
    key: Option<String>,
    query: Option<String>,
    skip: u64,
    times: Option<u64>,
    /// How many requests were chosen so far.
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
    /// Reads a fault.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Fault, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut fields = Fields::parse(rest)?;
        let what = match kind {
            "reset" => {
                What::Reset { after: fields.number("after")?.unwrap_or(0), side: fields.side()? }
            }
            "truncate" => What::Truncate { after: fields.number("after")?.unwrap_or(0) },
            "corrupt" => {
                What::Corrupt { at: fields.number("at")?.unwrap_or(0), side: fields.side()? }
            }
            "checksum" => What::Checksum,
            "error" => fields.error()?,
            "slow" => {
                let rate = fields.number("rate")?.filter(|rate| *rate > 0);
                let rate = rate.ok_or("slow needs rate=BYTES a second")?;
                What::Slow { rate, side: fields.side()? }
            }
            "silent" => What::Silent,
            "list" => {
                let drop = fields.number("drop")?.unwrap_or(0) as usize;
                What::List { drop, add: fields.take("add"), swap: fields.yes("swap")? }
            }
            _ => return Err(format!("'{kind}' is no kind of fault")),
        };
        let operation = fields.take("op");
        if let Some(name) = &operation
            && !METHODS.iter().any(|method| method.eq_ignore_ascii_case(name))
            && !Operation::ALL.iter().any(|known| known.name().eq_ignore_ascii_case(name))
        {
            return Err(format!("op={name} is neither an HTTP method nor an S3 operation"));
        }
        let fault = Fault {
            what,
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

    /// Whether this request is one of those that it chooses.
    fn fits(&self, request: &Request<'_>) -> bool {
        let is = |name: &String| {
            name.eq_ignore_ascii_case(request.method)
                || name.eq_ignore_ascii_case(&request.operation.name())
        };
        let lists = matches!(request.operation, Operation::ListObjects | Operation::ListObjectsV2);
        let key = || match lists {
            true => decode(parameter(request.query, "prefix").unwrap_or(""), true),
            false => decode(split(request.path).1, false),
        };
        let has = |part: &String| String::from_utf8_lossy(&key()).contains(part.as_str());
        (lists || !matches!(self.what, What::List { .. }))
            && self.operation.as_ref().is_none_or(is)
            && self.key.as_ref().is_none_or(has)
            && self.query.as_ref().is_none_or(|part| request.query.contains(part.as_str()))
    }

    /// Whether it meets this request; counts it.
    fn meets(&self, request: &Request<'_>) -> bool {
        if !self.fits(request) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        number >= self.skip && self.times.is_none_or(|times| number - self.skip < times)
    }
}

const METHODS: &[&str] = &["GET", "HEAD", "PUT", "POST", "DELETE"];

/// What of a request chooses its fault.
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

/// The fault of a request, if it gets one.
pub fn pick<'f>(faults: &'f [Fault], request: &Request<'_>) -> Option<&'f What> {
    faults.iter().find(|fault| fault.meets(request)).map(|fault| &fault.what)
}

impl What {
    /// Its kind, as it is spelled.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Reset { .. } => "reset",
            What::Truncate { .. } => "truncate",
            What::Corrupt { .. } => "corrupt",
            What::Checksum => "checksum",
            What::Error { .. } => "error",
            What::Slow { .. } => "slow",
            What::Silent => "silent",
            What::List { .. } => "list",
        }
    }

    /// The body that it changes, for an operation; `None` where it changes none.
    pub fn side(&self, operation: Operation) -> Option<Side> {
        let usual = match operation.sends_payload() {
            true => Side::Request,
            false => Side::Response,
        };
        match self {
            What::Reset { side, .. } | What::Corrupt { side, .. } | What::Slow { side, .. } => {
                Some(side.unwrap_or(usual))
            }
            What::Truncate { .. } => Some(Side::Response),
            _ => None,
        }
    }
}

/// The pairs of a specification that were not used yet.
struct Fields {
    pairs: Vec<(String, String)>,
}

impl Fields {
    fn parse(text: &str) -> Result<Fields, String> {
        let mut fields = Fields { pairs: Vec::new() };
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("'{pair}' is not key=value"))?;
            let value = String::from_utf8(decode(value, false))
                .map_err(|_| format!("'{pair}' is no text"))?;
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
        text.parse().map(Some).map_err(|_| format!("{name}={text} is no number"))
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

    fn error(&mut self) -> Result<What, String> {
        let code = self.take("code").unwrap_or_else(|| "InternalError".into());
        let known = CODES.iter().find(|(name, _)| *name == code).map(|(_, status)| *status);
        let status = match self.number("status")? {
            Some(status) => u16::try_from(status).ok().filter(|s| (200..600).contains(s)),
            None => known,
        };
        let status = status.ok_or_else(|| format!("give the status (200 to 599) of {code}"))?;
        Ok(What::Error { status, code, region: self.take("region"), late: self.yes("late")? })
    }
}

#[cfg(test)]
mod tests;
