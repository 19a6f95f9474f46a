//! Signatures and TLS for programs that have connections of their own, such as a benchmark of servers.

use crate::Credentials;
use crate::client::tls;
use crate::sign::{Signer, sha256_hex};
use crate::time::now_s;
use hakobu_core::web::Unsigned;
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use std::io::{Error, Result};
use std::net::TcpStream;
use std::path::Path;

/// Headers that sign a request at this time: date, hash of the body, token, signature.
pub fn signature(request: &Unsigned<'_>) -> Vec<(String, String)> {
    let keys = Credentials {
        access_key: request.key_id.to_owned(),
        secret_key: request.key.to_owned(),
        session_token: Some(request.session.to_owned()).filter(|token| !token.is_empty()),
    };
    let now_s = now_s();
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let given = headers.clone();
    let hash = sha256_hex(request.body);
    let Unsigned { method, host, path, region, .. } = *request;
    let signer = Signer::new(&keys, region, now_s);
    signer.sign(method, host, path, "", &mut headers, &hash, now_s);
    let added = headers.iter().filter(|(name, _)| !given.contains_key(*name));
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    added.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// TLS over a connection to this host, whose certificate is verified against `bundle` (PEM) or the system's unless
/// `verify` is false. The handshake is done.
///
/// # Errors
/// There are no certificates to trust, or the handshake failed.
pub fn secure(
    mut socket: TcpStream,
    host: &str,
    bundle: Option<&Path>,
    verify: bool,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let config = tls::config(bundle, verify).map_err(Error::other)?;
    let name = ServerName::try_from(host.to_owned()).map_err(Error::other)?;
    let mut connection = ClientConnection::new(config, name).map_err(Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(connection, socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_have_all_that_is_signed() {
        let headers = [("x-amz-storage-class".to_owned(), "STANDARD".to_owned())];
        let found = signature(&Unsigned {
            method: "PUT",
            host: "h:1",
            path: "/b/k",
            headers: &headers,
            body: b"x",
            region: "eu-x-1",
            key_id: "AKID",
            key: "secret",
            session: "token",
        });
        let of =
            |name: &str| found.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
        let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        assert_eq!(of("x-amz-content-sha256"), Some(hash));
        assert_eq!((of("x-amz-security-token"), of("x-amz-storage-class")), (Some("token"), None));
        let signed = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token;\
                  x-amz-storage-class,";
        let text = of("authorization").unwrap();
        assert!(text.contains("/eu-x-1/s3/aws4_request,") && text.contains(signed), "{text}");
        assert!(!format!("{found:?}").contains("secret\""));
    }
}
