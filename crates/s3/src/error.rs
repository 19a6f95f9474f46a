//! Errors of requests: AWS's error codes mapped to few kinds, with one clear sentence.

mod reply;

use std::fmt;

/// Kind of failure, by its consequences for the run and for retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The bucket does not exist. Stops the run.
    NoSuchBucket,
    /// The key (or version, or upload) does not exist.
    NotFound,
    /// Permission denied.
    AccessDenied,
    /// Missing, wrong or expired credentials. Stops the run.
    Credentials,
    /// The bucket is in another region, and following the redirect did not help. Stops the run.
    Region,
    /// A condition (`If-None-Match`, `If-Match`) failed, or the object changed meanwhile.
    Precondition,
    /// Throttled: 503, 429.
    Throttled,
    /// Server failure: 500, 502, 504.
    Server,
    /// Connection failed or broke.
    Connection,
    /// No progress for too long.
    TimedOut,
    /// Received data differ from sent data: checksum or length.
    Corrupt,
    /// The server does not support this operation or header.
    NotImplemented,
    /// Invalid request: bad name, entity too large, invalid part.
    Invalid,
    /// Unusable settings: endpoint, certificates, profile. Stops the run.
    Settings,
    /// The run was asked to stop.
    Stopped,
}

/// Code of the error for an object in an archive.
const ARCHIVED: &str = "InvalidObjectState";

/// A failed request, after its attempts.
#[derive(Clone, Debug)]
pub struct Error {
    /// Kind.
    pub kind: Kind,
    /// Operation in AWS's terms (`PutObject`).
    pub operation: &'static str,
    /// HTTP status; 0 without a response.
    pub status: u16,
    /// AWS's error code (`NoSuchBucket`), or empty.
    pub code: String,
    /// Message of the server or ours: the problem, and the remedy if known.
    pub message: String,
    /// Number of attempts.
    pub tries: u32,
    /// Region of the bucket, if a server named another one.
    pub region: Option<String>,
    /// True if an earlier attempt of the request may have been executed: no response, or no valid one, was
    /// received. A failed condition may be a consequence.
    pub unsure: bool,
}

impl Error {
    /// Returns whether the object is in an archive (Glacier) and has to be restored before it is read.
    pub fn is_archived(&self) -> bool {
        self.code == ARCHIVED
    }

    /// Creates an error that does not come from a response.
    pub fn new(kind: Kind, operation: &'static str, message: impl Into<String>) -> Error {
        let (code, message) = (String::new(), message.into());
        Error { kind, operation, status: 0, code, message, tries: 1, region: None, unsure: false }
    }

    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        use Kind::{Connection, Corrupt, Server, Throttled, TimedOut};
        matches!(self.kind, Throttled | Server | Connection | TimedOut | Corrupt)
    }

    /// True if fresh credentials may help.
    pub fn is_expired_token(&self) -> bool {
        matches!(
            self.code.as_str(),
            "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "RequestExpired"
        )
    }

    /// True if the server considers our clock wrong, so that signing with its `Date` helps.
    pub fn is_clock_skew(&self) -> bool {
        matches!(self.code.as_str(), "RequestTimeTooSkewed" | "RequestInTheFuture")
    }

    /// True if the server supports the operation but not its checksum.
    pub(super) fn is_unknown_checksum(&self) -> bool {
        let words = self.message.to_ascii_lowercase();
        let invalid = matches!(self.kind, Kind::NotImplemented | Kind::Invalid);
        let names = ["checksum", "crc64nvme", "not implemented"];
        invalid && (self.status == 501 || names.iter().any(|name| words.contains(name)))
    }

    /// True if all other requests would fail in the same way, so that the run should stop.
    pub fn stops_run(&self) -> bool {
        matches!(self.kind, Kind::NoSuchBucket | Kind::Credentials | Kind::Region | Kind::Settings)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.status, self.code.as_str()) {
            (0, _) => Ok(()),
            (status, "") => write!(f, " (HTTP {status})"),
            (status, code) => write!(f, " ({code}, HTTP {status})"),
        }
    }
}

impl std::error::Error for Error {}
