//! Scripted server on loopback for unit tests of clients. Panics on invalid test input.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "only unit tests call it: a test fails by panicking"
)]

use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of the connection, from 0.
    pub connection: usize,
    /// Number of the request over all connections, from 0.
    pub number: usize,
    /// Request line: `PUT /b/k HTTP/1.1`.
    pub line: String,
    /// Headers, one per line, names in lower case.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// Value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(of, _)| *of == name).map(|(_, value)| value)
    }
}

/// Reaction to a request.
pub enum Act {
    /// Writes this text and keeps the connection.
    Say(String),
    /// Writes this text and closes.
    SayAndClose(String),
    /// Writes this text, then pauses.
    SayAndWait(String, Duration),
    /// Writes this text repeatedly, with a pause, until the client disconnects.
    SayForEver(String, Duration),
    /// Resets the connection instead of answering.
    Reset,
}

/// A response with a body.
pub fn answer(status: &str, headers: &str, body: &str) -> Act {
    Act::Say(text(status, headers, body))
}

/// Text of a response; each of `headers` ends in `\r
/// `. Successful responses get the headers of an object, unless `headers` contains them.
pub fn text(status: &str, headers: &str, body: &str) -> String {
    let mut all = headers.to_owned();
    let length = body.len().to_string();
    let usual = [("content-length", length.as_str()), ("etag", "\"e\""), ("last-modified", DATE)];
    let refused = !status.starts_with('2');
    for (name, value) in usual {
        let is_wanted = name == "content-length" || !refused;
        if is_wanted && !headers.contains(name) {
            all.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    format!("HTTP/1.1 {status}\r\n{all}\r\n{body}")
}

const DATE: &str = "Fri, 24 May 2013 00:00:01 GMT";

/// An S3 error response.
pub fn refusal(status: &str, headers: &str, code: &str) -> Act {
    let body = format!("<Error><Code>{code}</Code><Message>so it is</Message></Error>");
    answer(status, headers, &body)
}

/// A running server; it ends with the process.
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Listens, and calls the script for every request.
    pub fn start(script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen, script) = (Arc::new(Mutex::new(Vec::new())), Arc::new(script));
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (seen, script) = (Arc::clone(&all), Arc::clone(&script));
                std::thread::spawn(move || serve(stream.unwrap(), connection, &seen, &*script));
            }
        });
        Server { url, seen }
    }

    /// Requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    connection: usize,
    all: &Mutex<Vec<Seen>>,
    script: &(impl Fn(&Seen) -> Act + ?Sized),
) {
    let mut bytes = Vec::new();
    while let Some(seen) = next(&mut stream, &mut bytes, connection, all) {
        match script(&seen) {
            Act::Say(text) => stream.write_all(text.as_bytes()).unwrap_or_default(),
            Act::SayAndClose(text) => {
                let _ = stream.write_all(text.as_bytes());
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            Act::SayAndWait(text, time) => {
                let _ = stream.write_all(text.as_bytes());
                std::thread::sleep(time);
                return;
            }
            Act::SayForEver(text, pause) => {
                while stream.write_all(text.as_bytes()).is_ok() {
                    std::thread::sleep(pause);
                }
                return;
            }
            Act::Reset => return reset(stream),
        }
    }
}

/// Closes by RST, which needs a zero SO_LINGER: tokio's sockets can set it.
fn reset(stream: TcpStream) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        stream.set_zero_linger().unwrap();
    });
}

fn next(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    connection: usize,
    all: &Mutex<Vec<Seen>>,
) -> Option<Seen> {
    let mut more = |bytes: &mut Vec<u8>| {
        let mut buffer = [0; 65536];
        let got = stream.read(&mut buffer).ok()?;
        bytes.extend_from_slice(&buffer[..got]);
        (got > 0).then_some(())
    };
    let end = loop {
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None => more(bytes)?,
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let (line, headers) = head.split_once("\r\n").unwrap();
    let mut seen = Seen {
        connection,
        number: 0,
        line: line.to_owned(),
        headers: headers.replace("\r\n", "\n"),
        body: Vec::new(),
    };
    let length = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
    while bytes.len() < end + length {
        more(bytes)?;
    }
    seen.body = bytes[end..end + length].to_vec();
    bytes.drain(..end + length);
    let mut all = all.lock();
    seen.number = all.len();
    all.push(seen.clone());
    Some(seen)
}

/// Runs a test in a runtime like the engine's.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
