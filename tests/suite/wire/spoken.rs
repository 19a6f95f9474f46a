//! A scripted server for responses that no correct server sends; and a small bucket for it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// The path without the bucket's slash in front, as sent.
    pub path: String,
    pub query: String,
    pub body: String,
}

impl Asked {
    /// A parameter of the query, as sent; empty for one without a value.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then_some(value)
        })
    }

    /// Whether it would change what is stored.
    fn changes(&self) -> bool {
        !matches!(&*self.method, "GET" | "HEAD")
    }
}

/// An answer: status, headers (each with its line end), body.
pub struct Said {
    pub status: u16,
    pub headers: String,
    pub body: Vec<u8>,
}

impl Said {
    pub fn xml(body: impl Into<String>) -> Said {
        Said { status: 200, headers: String::new(), body: body.into().into_bytes() }
    }

    pub fn status(status: u16) -> Said {
        Said { status, headers: String::new(), body: Vec::new() }
    }
}

/// A server that is listening.
pub struct Spoken {
    pub url: String,
    changes: Arc<Mutex<Vec<Asked>>>,
}

impl Spoken {
    pub fn start(script: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> Spoken {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let changes: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (script, seen) = (Arc::new(script), Arc::clone(&changes));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                std::thread::spawn(move || converse(stream.unwrap(), &*script, &seen));
            }
        });
        Spoken { url, changes }
    }

    /// Requests that would have changed what is stored, since the last call.
    pub fn changes(&self) -> Vec<Asked> {
        std::mem::take(&mut self.changes.lock().unwrap())
    }
}

fn converse(mut stream: TcpStream, script: &dyn Fn(&Asked) -> Said, seen: &Mutex<Vec<Asked>>) {
    let mut bytes = Vec::new();
    while let Some(asked) = next(&mut stream, &mut bytes) {
        if asked.changes() {
            seen.lock().unwrap().push(asked.clone());
        }
        let Said { status, headers, body } = script(&asked);
        let length = match headers.contains("content-length") {
            true => String::new(),
            false => format!("content-length: {}\r\n", body.len()),
        };
        let head = format!("HTTP/1.1 {status} X\r\n{length}{headers}\r\n");
        let body = if asked.method == "HEAD" { &[][..] } else { &body };
        if stream.write_all(&[head.as_bytes(), body].concat()).is_err() {
            return;
        }
    }
}

fn next(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Asked> {
    let mut buffer = [0; 64 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut lines = head.lines();
            let line = lines.next()?;
            let length = lines.find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            let whole = end + 4 + length.unwrap_or(0);
            if bytes.len() >= whole {
                let body = String::from_utf8_lossy(&bytes[end + 4..whole]).into_owned();
                bytes.drain(..whole);
                let mut words = line.split(' ');
                let method = words.next()?.to_owned();
                let target = words.next()?;
                let (path, query) = target.split_once('?').unwrap_or((target, ""));
                let path = path.trim_start_matches('/').to_owned();
                return Some(Asked { method, path, query: query.to_owned(), body });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Keys of the bucket; `p/` is what is listed.
pub const KEYS: [&str; 5] = ["other1/key", "p/a", "p/b", "p/c/d", "q"];

/// An object of one byte in a page.
pub fn object(key: &str) -> String {
    format!(
        "<Contents><Key>{key}</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified>\
         <ETag>&quot;0cc175b9c0f1b6a831c399e269772661&quot;</ETag><Size>1</Size></Contents>"
    )
}

/// A page of a listing.
pub fn page(inner: &str, next: Option<&str>) -> String {
    let next = match next {
        Some(token) => format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
        ),
        None => "<IsTruncated>false</IsTruncated>".to_owned(),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>{next}{inner}</ListBucketResult>"
    )
}

/// The objects below a prefix, in one page.
pub fn below(asked: &Asked) -> String {
    let prefix = asked.parameter("prefix").unwrap_or_default().replace("%2F", "/");
    let divided = asked.parameter("delimiter").is_some();
    let (mut inner, mut folders) = (String::new(), String::new());
    for key in KEYS.iter().filter(|key| key.starts_with(&prefix)) {
        match key[prefix.len()..].split_once('/').filter(|_| divided) {
            Some((folder, _)) => folders.push_str(&format!(
                "<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>"
            )),
            None => inner.push_str(&object(key)),
        }
    }
    inner + &folders
}

/// Everything but listings: an object of one byte for every key, and success for all else.
pub fn other(asked: &Asked) -> Said {
    let key = asked.path.strip_prefix("bkt/").unwrap_or_default();
    match &*asked.method {
        "GET" | "HEAD" if KEYS.contains(&key) => Said {
            status: 200,
            headers: "etag: \"0cc175b9c0f1b6a831c399e269772661\"\r\n\
                      last-modified: Wed, 01 Jan 2020 00:00:00 GMT\r\n"
                .to_owned(),
            body: b"a".to_vec(),
        },
        "GET" | "HEAD" => Said::status(404),
        "POST" if asked.query.starts_with("delete") => {
            let keys = asked.body.split("<Key>").skip(1).filter_map(|rest| rest.split_once('<'));
            let gone = keys.map(|(key, _)| format!("<Deleted><Key>{key}</Key></Deleted>"));
            Said::xml(format!("<DeleteResult>{}</DeleteResult>", gone.collect::<String>()))
        }
        "DELETE" => Said::status(204),
        // A copy has no body.
        "PUT" if asked.body.is_empty() => Said::xml(
            "<CopyObjectResult><ETag>&quot;0cc175b9c0f1b6a831c399e269772661&quot;</ETag>\
             </CopyObjectResult>",
        ),
        "PUT" if !asked.query.contains("upload") => Said {
            headers: "etag: \"0cc175b9c0f1b6a831c399e269772661\"\r\n".to_owned(),
            ..Said::status(200)
        },
        _ => Said::status(501),
    }
}

/// Whether a page of objects is asked for.
pub fn is_listing(asked: &Asked) -> bool {
    asked.parameter("list-type").is_some()
}
