//! What a request can fail with: AWS's error code put into one of few kinds, and one clear sentence.

mod reply;

use std::fmt;

/// What a failure means for the run and for the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// There is no such bucket. Stops the run.
    NoSuchBucket,
    /// There is no such key (or version, or upload).
    NotFound,
    /// The account may not do this.
    AccessDenied,
    /// No credentials, wrong ones, expired and not refreshable. Stops the run.
    Credentials,
    /// The bucket lives in another region and following it did not help. Stops the run.
    Region,
    /// A condition (`If-None-Match`, `If-Match`) did not hold, or the object changed meanwhile.
    Precondition,
    /// Slow down: 503, 429.
    Throttled,
    /// The server failed: 500, 502, 504.
    Server,
    /// No connection, or it broke.
    Connection,
    /// It stood still for too long.
    TimedOut,
    /// What arrived is not what was sent: checksum or length.
    Corrupt,
    /// The server does not know this operation or header.
    NotImplemented,
    /// The request as such is wrong: bad name, entity too large, invalid part.
    Invalid,
    /// The settings are unusable: endpoint, certificates, profile. Stops the run.
    Settings,
    /// The run was asked to stop.
    Stopped,
}

/// One failed request, after its tries.
#[derive(Clone, Debug)]
pub struct Error {
    /// What it means.
    pub kind: Kind,
    /// The operation in AWS's words (`PutObject`).
    pub operation: &'static str,
    /// HTTP status; 0 where no answer came.
    pub status: u16,
    /// AWS's code (`NoSuchBucket`), empty where there is none.
    pub code: String,
    /// The server's words or ours: what went wrong, and what to do where that is known.
    pub message: String,
    /// How many tries were made.
    pub tries: u32,
    /// The region that the bucket lives in, where a server told that it is another one.
    pub region: Option<String>,
}

impl Error {
    /// An error of ours, before or without an answer.
    pub fn new(kind: Kind, operation: &'static str, message: impl Into<String>) -> Error {
        let (code, message) = (String::new(), message.into());
        Error { kind, operation, status: 0, code, message, tries: 1, region: None }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        let kinds = [Kind::Throttled, Kind::Server, Kind::Connection, Kind::TimedOut];
        kinds.contains(&self.kind) || self.kind == Kind::Corrupt
    }

    /// Whether the credentials are of the right account but too old, so that fresh ones help.
    pub fn is_expired_token(&self) -> bool {
        matches!(
            self.code.as_str(),
            "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "RequestExpired"
        )
    }

    /// Whether the server takes our clock for wrong, so that signing with its `Date` helps.
    pub fn is_clock_skew(&self) -> bool {
        matches!(self.code.as_str(), "RequestTimeTooSkewed" | "RequestInTheFuture")
    }

    /// The region to ask instead, where the server told one.
    pub fn redirect_region(&self) -> Option<String> {
        self.region.clone()
    }

    /// Whether the server knows the operation but not the checksum that came with it.
    pub(super) fn is_unknown_checksum(&self) -> bool {
        let words = self.message.to_ascii_lowercase();
        let invalid = matches!(self.kind, Kind::NotImplemented | Kind::Invalid);
        let names = ["checksum", "crc64nvme", "not implemented"];
        invalid && (self.status == 501 || names.iter().any(|name| words.contains(name)))
    }

    /// Whether every other request would fail in the same way, so that the run should stop.
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
