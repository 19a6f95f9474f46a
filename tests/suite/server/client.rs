//! A server to test, and a minimal HTTP client, independent of the code under test.

use crate::common::area::Area;
use crate::common::program;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Keys of servers on a folder.
pub const ACCESS: &str = "hakobu-test";
pub const SECRET: &str = "secret/of+tests";

/// A running server, killed when dropped.
pub struct Served {
    child: Child,
    pub address: String,
    pub area: Area,
}

impl Served {
    /// Starts `hakobu serve` with these arguments; `DIR` is a separate folder, and a log is written.
    pub fn start(line: &str) -> Served {
        let area = Area::tmpfs();
        let dir = area.join("root");
        std::fs::create_dir(&dir).unwrap();
        let mut command = Command::new(program());
        command.arg("serve").args(line.split_whitespace().map(|word| match word {
            "DIR" => dir.clone().into_os_string(),
            word => word.into(),
        }));
        command.arg("--log").arg(area.join("log"));
        command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("serve {line}: said {first:?}")).to_owned();
        Served { child, address, area }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn root(&self) -> PathBuf {
        self.area.join("root")
    }

    /// Log lines so far. A line is written at the end of its response, possibly after the client has received
    /// it: waits until there are `count`.
    pub fn log(&self, count: usize) -> Vec<Value> {
        for _ in 0..200 {
            let text = std::fs::read_to_string(self.area.join("log")).unwrap();
            if text.lines().count() >= count && text.ends_with('\n') {
                let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
                return lines.collect();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("there are no {count} lines in the log");
    }

    /// Ends it by a signal; returns the exit code.
    pub fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap().code()
    }

    pub fn connect(&self) -> Connection {
        Connection::new(&self.address)
    }

    /// Sends one unsigned request on its own connection.
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.send(method, target, headers, body);
        connection.answer(method).unwrap_or_else(|error| panic!("{method} {target}: {error}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection.
pub struct Connection {
    pub stream: BufReader<TcpStream>,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Texts of all elements with a name.
    pub fn all(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let open = format!("<{name}>");
        let parts = text.split(&open).skip(1);
        parts.map(|part| part.split('<').next().unwrap().to_owned()).collect()
    }

    pub fn code(&self) -> String {
        self.all("Code").first().cloned().unwrap_or_default()
    }
}

impl Connection {
    pub fn new(address: &str) -> Connection {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Connection { stream: BufReader::new(stream) }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a request with a body of known length.
    pub fn send(&mut self, method: &str, target: &str, headers: &str, body: &[u8]) {
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        // A server that refuses may close early; the response has the reason.
        let _ = self.write(head.as_bytes()).and_then(|()| self.write(body));
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Head of the next response, with an empty body.
    pub fn head(&mut self) -> io::Result<Answer> {
        let status = self.line()?;
        let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let mut answer = Answer { status: status.unwrap(), headers: Vec::new(), body: Vec::new() };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok(answer) };
            answer.headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The next response, to a request with this method.
    pub fn answer(&mut self, method: &str) -> io::Result<Answer> {
        let mut answer = self.head()?;
        if method == "HEAD" || matches!(answer.status, 100 | 204 | 304) {
            return Ok(answer);
        }
        if let Some(length) = answer.header("content-length").map(|text| text.parse().unwrap()) {
            answer.body.resize(length, 0);
            self.stream.read_exact(&mut answer.body)?;
            return Ok(answer);
        }
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{answer:?}");
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            answer.body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return Ok(answer);
            }
        }
    }

    /// Everything up to the end of the connection, and how it ended.
    pub fn rest(&mut self) -> (Vec<u8>, io::Result<()>) {
        let mut bytes = Vec::new();
        let ended = self.stream.read_to_end(&mut bytes).map(drop);
        (bytes, ended)
    }
}

/// CRC-64/NVME (NVM Express NVM Command Set 1.0d, section 5.2.1.3.4), bit by bit, in base64.
pub fn crc64nvme(bytes: &[u8]) -> String {
    let mut crc = u64::MAX;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x9a6c_9329_ac4b_c9b5 } else { crc >> 1 };
        }
    }
    base64(&(!crc).to_be_bytes())
}

fn base64(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = digits[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[test]
fn the_oracle_knows_its_checksum() {
    assert_eq!(crc64nvme(b"123456789"), base64(&0xae8b_1486_0a79_9888_u64.to_be_bytes()));
    assert_eq!(base64(b"ab"), "YWI=");
}
