//! Servers of this test program: each is started once, and killed by a keeper process after the end of the
//! test program.

use crate::common::area::Area;
use crate::common::{have, program};
use crate::server::client::{ACCESS, Answer, Connection, SECRET};
use crate::server::sign;
use serde_json::Value;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A running server.
pub struct Server {
    pub name: &'static str,
    /// `host:port`.
    pub address: String,
    /// Log of requests, if any.
    log: Option<PathBuf>,
    area: Area,
    /// Its standard input is the pipe whose end tells the keeper that this process is gone.
    _keeper: Mutex<Child>,
}

/// `hakobu serve s3`.
pub fn embedded() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let area = Area::tmpfs();
        let log = area.join("log");
        let mut command = Command::new(program());
        command.args(["serve", "s3"]).arg(area.join("root")).arg("--log").arg(&log);
        let mut server = Server::start("embedded", area, &command);
        server.log = Some(log);
        let said = server.wait_for(|server| {
            let text = std::fs::read_to_string(server.area.join("out")).ok()?;
            text.ends_with('\n').then_some(text)
        });
        let address = said.trim().strip_prefix("listening on http://");
        server.address = address.unwrap_or_else(|| panic!("it said {said:?}")).to_owned();
        server
    })
}

/// versitygw, where it is installed.
pub fn gateway() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| versitygw(false)).as_ref()
}

/// versitygw with versions of objects, where it is installed.
pub fn versioned() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| versitygw(true)).as_ref()
}

fn versitygw(keeps_versions: bool) -> Option<Server> {
    if !have("versitygw", "objects on versitygw") {
        return None;
    }
    let area = Area::tmpfs();
    // It cannot say which port it took: one that was free a moment ago has to do.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new("versitygw");
    command.args(["--access", ACCESS, "--secret", SECRET, "--region", "us-east-1", "--quiet"]);
    command.arg("--port").arg(free.to_string()).arg("posix");
    if keeps_versions {
        let versions = area.join("versions");
        std::fs::create_dir(&versions).unwrap();
        command.arg("--versioning-dir").arg(versions);
    }
    command.arg(area.join("root"));
    let mut server = Server::start("versitygw", area, &command);
    server.address = free.to_string();
    server.wait_for(|server| TcpStream::connect(&server.address).ok());
    Some(server)
}

impl Server {
    fn start(name: &'static str, area: Area, command: &Command) -> Server {
        std::fs::create_dir(area.join("root")).unwrap();
        let script = "trap '' INT TERM HUP; dir=$1; shift\n\
            \"$@\" >\"$dir/out\" 2>\"$dir/err\" </dev/null & server=$!\n\
            cat >/dev/null; kill -9 $server";
        let mut keeper = Command::new("sh");
        keeper.args(["-c", script, "keeper"]).arg(area.path());
        keeper.arg(command.get_program()).args(command.get_args()).process_group(0);
        keeper.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let _keeper = Mutex::new(keeper.spawn().unwrap());
        Server { name, address: String::new(), log: None, area, _keeper }
    }

    fn wait_for<T>(&self, ready: impl Fn(&Server) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = ready(self) {
                return found;
            }
            let err = std::fs::read_to_string(self.area.join("err")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(30), "{} is not up: {err}", self.name);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// One signed request on a connection of its own; the target is encoded already.
    pub fn ask(&self, method: &str, target: &str, body: &[u8]) -> Answer {
        let mut connection = Connection::new(&self.address);
        connection.send(method, target, &sign::headers(method, target, SECRET), body);
        connection.answer(method).unwrap_or_else(|error| panic!("{method} {target}: {error}"))
    }

    /// Content that a URL gives without credentials.
    pub fn open(&self, url: &str) -> Answer {
        let target = url.strip_prefix(&self.url()).unwrap_or_else(|| panic!("{url}"));
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = &self.address;
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let status = std::str::from_utf8(&all[9..12]).unwrap().parse().unwrap();
        Answer { status, headers: Vec::new(), body: all[end + 4..].to_vec() }
    }

    /// The requests so far whose path is in a bucket, once no more come; `None` without a log.
    /// A line is written when its answer is over, which may be just after the client has it.
    pub fn log(&self, bucket: &str) -> Option<Vec<Value>> {
        let file = self.log.as_ref()?;
        let (own, below) = (format!("/{bucket}"), format!("/{bucket}/"));
        let read = || {
            let text = std::fs::read_to_string(file).unwrap();
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let ours = lines.filter(|line| {
                let path = line["path"].as_str().unwrap();
                path == own || path.starts_with(&below)
            });
            ours.collect::<Vec<_>>()
        };
        let mut last = read();
        loop {
            std::thread::sleep(Duration::from_millis(25));
            let now = read();
            if now.len() == last.len() {
                return Some(now);
            }
            last = now;
        }
    }

    /// Every object of a bucket and its content.
    pub fn objects(&self, bucket: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let answer = self.ask("GET", &format!("/{bucket}?encoding-type=url&list-type=2"), b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(!answer.text().contains("<IsTruncated>true"), "too many for one page");
        let keys = answer.all("Key").into_iter().map(|key| decode(&key));
        let objects = keys.map(|key| {
            let answer = self.ask("GET", &format!("/{bucket}/{}", encode(&key)), b"");
            assert_eq!(answer.status, 200, "{}: {}", key.escape_ascii(), answer.text());
            (key, answer.body)
        });
        objects.collect()
    }

    /// Puts an object.
    pub fn put(&self, bucket: &str, key: &[u8], body: &[u8]) {
        let answer = self.ask("PUT", &format!("/{bucket}/{}", encode(key)), body);
        assert_eq!(answer.status, 200, "{}: {}", key.escape_ascii(), answer.text());
    }
}

/// A key as it stands in a path.
pub fn encode(key: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let letters = key.iter().map(|byte| match plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    letters.collect()
}

/// Decodes a key of a listing with `encoding-type=url`.
fn decode(text: &str) -> Vec<u8> {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let (byte, step) = match bytes[at] {
            b'%' => (u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap(), 3),
            b'+' => (b' ', 1),
            byte => (byte, 1),
        };
        out.push(byte);
        at += step;
    }
    out
}

#[test]
fn keys_are_encoded_and_decoded() {
    let key = "a b/+%$\n\u{e9}".as_bytes();
    assert_eq!(encode(key), "a%20b/%2B%25%24%0A%C3%A9");
    assert_eq!(decode(&encode(key)), key);
}
