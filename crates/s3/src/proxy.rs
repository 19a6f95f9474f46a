//! HTTP proxies: selection by environment variables, and tunnels by CONNECT (RFC 9110, 9.3.6). Plain HTTP
//! needs no tunnel: requests then contain the whole URL (RFC 9112, 3.2.2).

use crate::{Lookup, without_secrets};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hakobu_core::percent;
use http::{HeaderValue, Uri};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest head of a response to CONNECT, bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// An HTTP proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    /// Host name or address, IPv6 without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    pub authorization: Option<HeaderValue>,
}

/// Proxies of the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proxies {
    http: Option<Arc<Proxy>>,
    https: Option<Arc<Proxy>>,
    /// Hosts without a proxy (`NO_PROXY`).
    direct: Vec<String>,
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in lower case.
    ///
    /// # Errors
    /// A message: a proxy's URL is invalid or of an unsupported type.
    pub fn of_environment(lookup: Lookup<'_>) -> Result<Proxies, String> {
        let variable = |name: &str| lookup(name).or_else(|| lookup(&name.to_ascii_lowercase()));
        let proxy = |name: &str| {
            let named = [name, "ALL_PROXY"].into_iter();
            let found = named.filter_map(|name| Some((name, variable(name)?))).next();
            found.map(|(name, url)| Proxy::parse(name, &url).map(Arc::new)).transpose()
        };
        let direct = variable("NO_PROXY").unwrap_or_default();
        let direct = direct.split([',', ' ']).map(|host| host.trim().to_ascii_lowercase());
        Ok(Proxies {
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            direct: direct.filter(|host| !host.is_empty()).collect(),
        })
    }

    /// Proxy for a host. Loopback and link-local addresses, including the metadata services of instances,
    /// never use one.
    pub fn on_the_way(&self, tls: bool, host: &str, port: u16) -> Option<Arc<Proxy>> {
        let proxy = if tls { &self.https } else { &self.http };
        let near = match host.parse() {
            Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
            Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unicast_link_local(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        };
        let is_direct = || self.direct.iter().any(|rule| is_exempt(rule, host, port));
        proxy.as_ref().filter(|_| !near && !is_direct()).cloned()
    }
}

/// True if an entry of `NO_PROXY` matches a host: `*`, a host or domain (with or without a leading dot), an
/// address, or a range of addresses such as `10.0.0.0/8`; a host may have a port.
fn is_exempt(rule: &str, host: &str, port: u16) -> bool {
    if rule == "*" {
        return true;
    }
    if let (Some((network, bits)), Ok(address)) = (rule.split_once('/'), host.parse::<IpAddr>()) {
        return in_network(network, bits, address);
    }
    let rule = match rule.rsplit_once(':') {
        Some((name, digits)) if !name.contains(':') => match digits.parse::<u16>() {
            Ok(only) if only != port => return false,
            _ => name,
        },
        _ => rule,
    };
    let name = rule.trim_start_matches('*').trim_start_matches('.');
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_below = || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    !name.is_empty() && (host == name || is_below())
}

fn in_network(network: &str, bits: &str, address: IpAddr) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else {
        return false;
    };
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()), u128::from(address.to_bits()), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    bits <= width && (network ^ address).checked_shr(width - bits).unwrap_or(0) == 0
}

impl Proxy {
    /// Parses `[http://][USER:PASSWORD@]HOST[:PORT]`.
    fn parse(variable: &str, url: &str) -> Result<Proxy, String> {
        let wrong = |why: &str| format!("{variable} '{}': {why}", without_secrets(url));
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(wrong("only proxies that are asked by http:// are built"));
        }
        let rest = rest.trim_end_matches('/');
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let shape = || wrong("it must be http://HOST:PORT");
        let uri: Uri = format!("http://{host}").parse().map_err(|_| shape())?;
        let authority = uri.authority().ok_or_else(shape)?;
        let named = authority.host();
        let port = match authority.as_str().strip_prefix(named) {
            Some("") => 80,
            _ => authority.port_u16().filter(|port| *port != 0).ok_or_else(shape)?,
        };
        let host = named.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() || !matches!(uri.path(), "" | "/") {
            return Err(shape());
        }
        let authorization = user.map(|user| {
            let plain = percent::decode(user.as_bytes(), false);
            let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain)));
            value.map_err(|_| wrong("its user or password cannot be sent"))
        });
        Ok(Proxy { host, port, authorization: authorization.transpose()? })
    }

    /// Opens a tunnel to a host over a connection to the proxy.
    ///
    /// # Errors
    /// Those of the system, or a message about the proxy's response.
    pub async fn open_tunnel(
        &self,
        tcp: &mut TcpStream,
        (host, port): (&str, u16),
    ) -> io::Result<()> {
        let host = match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        };
        let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        tcp.write_all(&request).await?;
        let mut head = Vec::new();
        // Byte by byte, because the data after the head belong to TLS.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= HEAD_BYTES_MAX {
                return Err(io::Error::other("the proxy's response has no end"));
            }
            head.push(tcp.read_u8().await.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => io::Error::other("the proxy closes the connection"),
                _ => error,
            })?);
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next().unwrap_or_default()) {
            (Some(version), Some(status), _)
                if version.starts_with("HTTP/1.") && status.starts_with('2') =>
            {
                Ok(())
            }
            (_, Some("407"), _) => Err(io::Error::other(
                "the proxy requires a user and a password: http://USER:PASSWORD@HOST:PORT",
            )),
            (_, Some(status), why) => {
                Err(io::Error::other(format!("the proxy refuses the connection: {status} {why}")))
            }
            _ => Err(io::Error::other("this is not an HTTP proxy")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Proxies::of_environment(&lookup)
    }

    #[test]
    fn the_environment_names_a_proxy_for_each_scheme() {
        let found = proxies(&[
            ("https_proxy", "http://us%40er:p%3aw@proxy:3128/"),
            ("ALL_PROXY", "other"),
            ("NO_PROXY", "a.test, .b.test,10.0.0.0/8,c.test:81,[fd00::1]"),
        ])
        .unwrap();
        let to = |tls, host, port| {
            found.on_the_way(tls, host, port).map(|proxy| format!("{}:{}", proxy.host, proxy.port))
        };
        for (tls, host, port, expected) in [
            (true, "s3.test", 443, Some("proxy:3128")),
            (false, "s3.test", 80, Some("other:80")),
            (true, "a.test", 443, None),
            (true, "x.a.test", 443, None),
            (true, "xa.test", 443, Some("proxy:3128")),
            (true, "x.b.test", 443, None),
            (true, "10.1.2.3", 443, None),
            (true, "11.1.2.3", 443, Some("proxy:3128")),
            (true, "c.test", 81, None),
            (true, "c.test", 443, Some("proxy:3128")),
            (true, "fd00::1", 443, None),
            (false, "127.0.0.1", 80, None),
            (false, "localhost", 80, None),
            (false, "169.254.169.254", 80, None),
            (false, "::1", 80, None),
        ] {
            assert_eq!(to(tls, host, port).as_deref(), expected, "{tls} {host} {port}");
        }
        let https = found.on_the_way(true, "s3.test", 443).unwrap();
        let authorization = https.authorization.as_ref().and_then(|value| value.to_str().ok());
        assert_eq!(authorization, Some("Basic dXNAZXI6cDp3"));
        let all = proxies(&[("HTTP_PROXY", "p"), ("no_proxy", "*")]).unwrap();
        assert_eq!(all.on_the_way(false, "s3.test", 80), None);
        assert_eq!(proxies(&[]).unwrap(), Proxies::default());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_without_its_password() {
        for url in ["https://u:secret@h", "socks5://u:secret@h", "http://u:secret@", "http://h:x"] {
            let message = proxies(&[("HTTPS_PROXY", url)]).unwrap_err();
            assert!(message.starts_with("HTTPS_PROXY '"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
