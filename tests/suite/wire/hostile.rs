//! A relay that falsifies the responses to one operation: status, headers, body, or everything about an
//! object. It removes stored checksums, so that only the response itself can reveal it.

use crate::wire::server::Server;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request, as far as an answer depends on it.
pub struct Asked {
    /// `PUT /bkt/k HTTP/1.1`.
    pub line: String,
    pub headers: Vec<(String, String)>,
    /// Number of earlier requests of the operation.
    pub before: usize,
}

/// An answer on its way.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Tells no length: the end of the connection is the end of the body.
    pub endless: bool,
}

impl Answer {
    /// An answer that is made here.
    pub fn new(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers = headers.iter().map(own).collect();
        Answer { status, headers, body: body.into(), endless: false }
    }

    /// Replaces a header; an empty value takes it away.
    pub fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(of, _)| of != name);
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// Treatment of a request whose operation is lied about.
pub enum Lie {
    /// The server never hears of it; this is its answer.
    Instead(Answer),
    /// The server does what it is asked, and this is done to its answer.
    After(Box<dyn Fn(&mut Answer)>),
    /// The server does what it is asked, and nothing is answered.
    Silence,
    /// The truth.
    None,
}

pub type Liar = Arc<dyn Fn(&Asked) -> Lie + Send + Sync>;

pub struct Hostile {
    pub url: String,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Hostile {
    /// Stands in front of a server and answers requests of `operation` as the liar says.
    pub fn new(server: &Server<'_>, operation: &'static str, liar: &Liar) -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behind = server.url.strip_prefix("http://").unwrap().to_owned();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (all, liar) = (Arc::clone(&asked), Arc::clone(liar));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (behind, all, liar) = (behind.clone(), Arc::clone(&all), Arc::clone(&liar));
                std::thread::spawn(move || serve(client.unwrap(), &behind, operation, &all, &liar));
            }
        });
        Hostile { url, asked }
    }

    /// Returns the number of requests of an operation.
    pub fn asked(&self, operation: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|one| **one == operation).count()
    }
}

/// One request, one answer.
fn serve(
    mut client: TcpStream,
    behind: &str,
    operation: &str,
    all: &Mutex<Vec<&'static str>>,
    liar: &Liar,
) -> Option<()> {
    let (line, headers, body) = message(&mut client, false)?;
    let named = operation_of(&line, &headers);
    let before = {
        let mut all = all.lock().unwrap();
        all.push(named);
        all.iter().filter(|one| **one == named).count() - 1
    };
    let asked = Asked { line, headers, before };
    let lie = if named == operation { liar(&asked) } else { Lie::None };
    let answer = match lie {
        Lie::Instead(answer) => answer,
        lie => {
            let mut answer = forward(&asked, &body, behind)?;
            match lie {
                Lie::After(change) => change(&mut answer),
                Lie::Silence => {
                    client.shutdown(Shutdown::Both).ok()?;
                    return None;
                }
                _ => {}
            }
            answer
        }
    };
    let mut head = format!("HTTP/1.1 {} Told\r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let is_head = asked.line.starts_with("HEAD");
    if !answer.endless && answer.header("content-length").is_empty() && answer.status != 204 {
        head.push_str(&format!("content-length: {}\r\n", answer.body.len()));
    }
    head.push_str("\r\n");
    client.write_all(head.as_bytes()).ok()?;
    if !is_head && answer.status != 204 {
        client.write_all(&answer.body).ok()?;
    }
    client.shutdown(Shutdown::Write).ok()
}

fn forward(asked: &Asked, body: &[u8], behind: &str) -> Option<Answer> {
    let mut server = TcpStream::connect(behind).ok()?;
    let mut head = format!("{}\r\nconnection: close\r\n", asked.line);
    for (name, value) in asked.headers.iter().filter(|(name, _)| name != "connection") {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    server.write_all(head.as_bytes()).ok()?;
    server.write_all(body).ok()?;
    let is_head = asked.line.starts_with("HEAD");
    let (line, mut headers, body) = message(&mut server, is_head)?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let drop = ["connection", "transfer-encoding"];
    headers.retain(|(name, _)| !name.starts_with("x-amz-checksum") && !drop.contains(&&**name));
    if !is_head {
        headers.retain(|(name, _)| name != "content-length");
    }
    Some(Answer { status, headers, body, endless: false })
}

type Message = (String, Vec<(String, String)>, Vec<u8>);

/// Reads a request or an answer whole.
fn message(stream: &mut TcpStream, is_head: bool) -> Option<Message> {
    let mut bytes = Vec::new();
    let end = loop {
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None => more(stream, &mut bytes)?,
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next()?.to_owned();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(pair).collect();
    let header = |name: &str| headers.iter().find(|(of, _)| of == name).map(|(_, value)| value);
    bytes.drain(..end);
    let length: Option<usize> = header("content-length").map(|text| text.parse().unwrap());
    match length {
        _ if is_head => bytes.clear(),
        Some(length) => {
            while bytes.len() < length {
                more(stream, &mut bytes)?;
            }
        }
        // The server closes: what came until then is all. A request without a length has no body.
        None if line.starts_with("HTTP/") => {
            while more(stream, &mut bytes).is_some() {}
            if header("transfer-encoding").is_some() {
                bytes = joined(&bytes);
            }
        }
        None => {}
    }
    Some((line, headers, bytes))
}

fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 1 << 16];
    let got = stream.read(&mut buffer).ok().filter(|got| *got > 0)?;
    bytes.extend_from_slice(&buffer[..got]);
    Some(())
}

/// The content of chunks.
fn joined(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(at) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at]).unwrap().trim();
        let size = usize::from_str_radix(size.split(';').next().unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        all.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[at + 4 + size..];
    }
    all
}

/// The operation of a request, in the words of the API reference.
fn operation_of(line: &str, headers: &[(String, String)]) -> &'static str {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    let has_key =
        path.trim_start_matches('/').split_once('/').is_some_and(|(_, key)| !key.is_empty());
    let copies = headers.iter().any(|(name, _)| name == "x-amz-copy-source");
    match (method, has_key) {
        ("GET", true) if has("uploadId") => "ListParts",
        ("GET", true) if has("tagging") => "GetObjectTagging",
        ("GET", true) => "GetObject",
        ("GET", false) if has("uploads") => "ListMultipartUploads",
        ("GET", false) => "ListObjectsV2",
        ("HEAD", true) => "HeadObject",
        ("PUT", true) if has("uploadId") && copies => "UploadPartCopy",
        ("PUT", true) if has("uploadId") => "UploadPart",
        ("PUT", true) if copies => "CopyObject",
        ("PUT", true) => "PutObject",
        ("POST", _) if has("delete") => "DeleteObjects",
        ("POST", true) if has("uploads") => "CreateMultipartUpload",
        ("POST", true) => "CompleteMultipartUpload",
        ("DELETE", true) if has("uploadId") => "AbortMultipartUpload",
        ("DELETE", true) => "DeleteObject",
        _ => "other",
    }
}
