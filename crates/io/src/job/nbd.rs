//! The server of a job with `ioengine=nbd`, by its URI (the project NBD, doc/uri.md).

use std::fmt;
use std::path::PathBuf;

/// Port of servers that name none.
const PORT: u16 = 10809;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdServer {
    /// TCP: name or address, and port.
    Tcp(String, u16),
    /// A unix(7) socket.
    Unix(PathBuf),
}

/// An export of a server (`uri`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdExport {
    /// The URI as it was given.
    pub uri: String,
    /// The server.
    pub server: NbdServer,
    /// Name of the export; empty is the server's default.
    pub name: String,
}

impl NbdExport {
    /// Parses a URI: `nbd://HOST[:PORT][/EXPORT]` or `nbd+unix:///[EXPORT]?socket=PATH`.
    ///
    /// # Errors
    /// A sentence about its value.
    pub fn parse(uri: &str) -> Result<NbdExport, String> {
        let (scheme, rest) = uri.split_once("://").ok_or("is no URI nbd://HOST[:PORT][/EXPORT]")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, name) = rest.split_once('/').unwrap_or((rest, ""));
        let name = decoded(name)?;
        let server = match scheme {
            "nbd" if query.is_empty() => {
                let (host, port) = address(host)?;
                NbdServer::Tcp(host, port)
            }
            "nbd" => return Err("has parameters, of which TCP has none".to_owned()),
            "nbd+unix" if host.is_empty() => {
                let socket = query.strip_prefix("socket=").filter(|path| !path.is_empty());
                let socket = socket.ok_or("needs ?socket=PATH, and no other parameter")?;
                NbdServer::Unix(decoded(socket)?.into())
            }
            "nbd+unix" => return Err("has a host, which unix sockets have not".to_owned()),
            "nbds" | "nbds+unix" | "nbds+vsock" => {
                return Err("is of a server with TLS, which is not supported".to_owned());
            }
            _ => return Err("is neither nbd:// nor nbd+unix://".to_owned()),
        };
        Ok(NbdExport { uri: uri.to_owned(), server, name })
    }
}

impl fmt::Display for NbdExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)
    }
}

/// Name or address, and port.
fn address(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.starts_with('[') || host.ends_with(']') => {
            let port = port.parse::<u16>().ok().filter(|port| *port > 0);
            (host, port.ok_or("has no port after the colon")?)
        }
        _ => (text, PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    match host.is_empty() || !host.chars().all(plain) {
        true => Err("has no name or address of a host".to_owned()),
        false => Ok((host.to_owned(), port)),
    }
}

/// A text without percent-encoding (RFC 3986, section 2.1).
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let pair = digit().zip(digit());
        let (high, low) = pair.ok_or("has a % without two hexadecimal digits behind it")?;
        bytes.push((high * 16 + low) as u8);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err("is no text in UTF-8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_name_a_server_and_an_export() {
        let tcp = |host: &str, port| NbdServer::Tcp(host.to_owned(), port);
        for (uri, server, name) in [
            ("nbd://localhost", tcp("localhost", PORT), ""),
            ("nbd://a.example:7/", tcp("a.example", 7), ""),
            ("nbd://[::1]/disk", tcp("::1", PORT), "disk"),
            ("nbd://[::1]:9/a%2fb/c", tcp("::1", 9), "a/b/c"),
            ("nbd+unix:///?socket=/tmp/a%20b", NbdServer::Unix("/tmp/a b".into()), ""),
            ("nbd+unix:///x?socket=s", NbdServer::Unix("s".into()), "x"),
        ] {
            let found = NbdExport::parse(uri).unwrap();
            assert_eq!((&found.server, found.name.as_str()), (&server, name), "{uri}");
            assert_eq!(found.to_string(), uri);
        }
        for wrong in [
            "",
            "localhost:10809",
            "nbd://",
            "nbd://:7",
            "nbd://a:0",
            "nbd://a:b",
            "nbd://u@a",
            "nbd://a/%4",
            "nbd://a/%zz",
            "nbd://a/%ff",
            "nbd://a?socket=/x",
            "nbds://a",
            "nbd+unix:///",
            "nbd+unix:///?socket=",
            "nbd+unix://a/?socket=/x",
            "nbd+vsock://1",
            "http://a",
        ] {
            assert!(NbdExport::parse(wrong).is_err(), "{wrong}");
        }
    }
}
