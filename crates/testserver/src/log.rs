//! Request log: a line of JSON per request, for tests.

use hakobu_sys::links::Links;
use parking_lot::Mutex;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A request with its response.
#[derive(Debug)]
pub struct Entry<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// The S3 operation.
    pub operation: String,
    /// Path as sent.
    pub path: &'a str,
    /// Query as sent.
    pub query: &'a str,
    /// Status of the response; 0 if none was sent.
    pub status: u16,
    /// Bytes of the request body that were read.
    pub received_bytes: u64,
    /// Bytes of the response body.
    pub sent_bytes: u64,
    /// Time from the request's head to the end of its response.
    pub took: Duration,
    /// Injected fault.
    pub fault: Option<&'static str>,
}

#[derive(Serialize)]
struct Line<'a> {
    time_s: f64,
    method: &'a str,
    operation: &'a str,
    path: &'a str,
    query: &'a str,
    status: u16,
    received_bytes: u64,
    sent_bytes: u64,
    took_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'static str>,
}

/// A request log.
#[derive(Debug)]
pub struct Log {
    file: Mutex<File>,
}

impl Log {
    /// Opens the log for appending, and creates it if missing.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = File::from(Links::Trusted.open_write(path, true)?);
        Ok(Log { file: Mutex::new(file) })
    }

    /// Appends a line immediately. Write errors do not stop the server.
    pub fn add(&self, entry: &Entry<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = Line {
            time_s: now.as_secs_f64(),
            method: entry.method,
            operation: &entry.operation,
            path: entry.path,
            query: entry.query,
            status: entry.status,
            received_bytes: entry.received_bytes,
            sent_bytes: entry.sent_bytes,
            took_s: entry.took.as_secs_f64(),
            fault: entry.fault,
        };
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        let mut file = self.file.lock();
        let _ = file.write_all(&text);
    }
}
