//! For tests: a server on loopback that does to each request what a script says.

use super::settings::{Addressing, Settings};
use super::store::Store;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Number of the connection, from 0.
    pub connection: usize,
    /// Number of the request over all connections, from 0.
    pub number: usize,
    /// `PUT /b/k HTTP/1.1`.
    pub line: String,
    /// Headers, one a line, names in lower case.
    pub headers: String,
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(of, _)| *of == name).map(|(_, value)| value)
    }
}

/// What is done to it.
pub(crate) enum Act {
    /// Writes this; the connection stays.
    Say(String),
    /// Writes this and closes.
    SayAndClose(String),
    /// Writes this, then nothing for a while.
    SayAndWait(String, Duration),
    /// RST instead of an answer.
    Reset,
}

/// An answer with a body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Act {
    Act::Say(text(status, headers, body))
}

/// The same as text; `headers` end in `\r\n` each.
pub(crate) fn text(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

/// An error as S3 writes it.
pub(crate) fn refusal(status: &str, headers: &str, code: &str) -> Act {
    let body = format!("<Error><Code>{code}</Code><Message>so it is</Message></Error>");
    answer(status, headers, &body)
}

pub(crate) struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Listens, and asks the script about every request.
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

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// A store for it, with keys that are none, as settings say.
    pub fn store(&self, settings: Settings) -> Arc<Store> {
        let settings = Settings {
            endpoint_url: Some(self.url.clone()),
            addressing: Addressing::Path,
            ..settings
        };
        let lookup = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("AK".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("SK".to_owned()),
            _ => None,
        };
        Store::open_with(&settings, &lookup).unwrap()
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
            Act::Reset => {
                // What was not read makes the kernel send RST on close: the client is made to
                // send more by not having been read in full.
                let socket = socket_reset(stream);
                drop(socket);
                return;
            }
        }
    }
}

/// A close that sends RST needs SO_LINGER of zero, which tokio's sockets can set.
fn socket_reset(stream: TcpStream) -> Option<tokio::net::TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        stream.set_zero_linger().unwrap();
        drop(stream);
        None
    })
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
    let mut all = all.lock().unwrap();
    seen.number = all.len();
    all.push(seen.clone());
    Some(seen)
}

/// Runs a test in a runtime as the engine has it.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
