//! Request log: a line of JSON per request, for tests.

use hakobu_sys::links::Links;
use hakobu_sys::waiting::Output;
use parking_lot::Mutex;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A request with its response.
#[derive(Debug, Serialize)]
pub struct Entry<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// The S3 operation.
    pub operation: &'static str,
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
    /// Seconds from the request's head to the end of its response.
    pub took_s: f64,
    /// Injected fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
}

#[derive(Serialize)]
struct Line<'a> {
    time_s: f64,
    #[serde(flatten)]
    entry: &'a Entry<'a>,
}

/// A request log.
#[derive(Debug)]
pub struct Log {
    file: Mutex<Output<fn() -> bool>>,
}

impl Log {
    /// Opens the log for appending, and creates it if missing.
    ///
    /// # Errors
    /// The file cannot be opened for writing; ENXIO for a FIFO without reader.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = File::from(Links::Trusted.open_write(path, true)?);
        Ok(Log { file: Mutex::new(Output::new(file, || false)) })
    }

    /// Appends a line immediately. Write errors do not stop the server.
    pub fn add(&self, entry: &Entry<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = Line { time_s: now.as_secs_f64(), entry };
        let Ok(mut text) = serde_json::to_vec(&line) else { return };
        text.push(b'\n');
        let mut file = self.file.lock();
        let _ = file.write_all(&text);
    }
}
