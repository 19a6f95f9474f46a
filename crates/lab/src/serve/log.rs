//! A line of JSON for each request, for tests that count them.

use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One request and its answer.
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
    /// Status of the answer; 0 where none was sent.
    pub status: u16,
    /// Length of the request's body that was read.
    pub received_bytes: u64,
    /// Length of the answer's body.
    pub sent_bytes: u64,
    /// From the request's head to the end of its answer.
    pub took: Duration,
    /// The fault that was put in.
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

/// A log.
#[derive(Debug)]
pub struct Log {
    file: Mutex<File>,
}

impl Log {
    /// Makes it; a file that is there is added to.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Log { file: Mutex::new(file) })
    }

    /// Adds a line, at once. A log that cannot be written does not stop the server.
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
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = file.write_all(&text);
    }
}
