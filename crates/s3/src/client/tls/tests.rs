//! Trust in certificates, against a server with a self-signed one.

use crate::script::block_on;
use crate::{Client, ErrorKind, Request, S3Session, Settings};
use http::Method;
use parking_lot::Mutex;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/client/tls")
}

/// Responds to every request with 200 over TLS; counts full and resumed handshakes, and keeps heads.
struct Server {
    url: String,
    handshakes: Arc<[AtomicU32; 2]>,
    heads: Arc<Mutex<Vec<String>>>,
}

fn server(close: bool) -> Server {
    server_with("cert.pem", close)
}

/// The certificates are of the same key.
fn server_with(certificate: &str, close: bool) -> Server {
    let certificate = CertificateDer::from_pem_file(folder().join(certificate)).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder().join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let handshakes = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let heads = Arc::new(Mutex::new(Vec::new()));
    let (counted, kept) = (Arc::clone(&handshakes), Arc::clone(&heads));
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(connection, tcp.unwrap());
            let mut bytes = Vec::new();
            let mut buffer = [0; 65536];
            while let Ok(got @ 1..) = tls.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..got]);
                if !bytes.ends_with(b"\r\n\r\nbody") {
                    continue;
                }
                let resumed = tls.conn.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
                counted[usize::from(resumed)].fetch_add(1, Ordering::Relaxed);
                kept.lock().push(String::from_utf8(std::mem::take(&mut bytes)).unwrap());
                tls.write_all(b"HTTP/1.1 200 OK\r\netag: e\r\ncontent-length: 2\r\n\r\nok")
                    .unwrap();
                if close {
                    tls.conn.send_close_notify();
                    let _ = tls.flush();
                    break;
                }
            }
        }
    });
    Server { url, handshakes, heads }
}

fn client(server: &Server, settings: Settings) -> Client {
    let settings = Settings { endpoint_url: Some(server.url.clone()), ..settings };
    let lookup = |name: &str| name.starts_with("AWS_ACCESS_KEY").then(|| "AK".to_owned());
    let lookup =
        |name: &str| lookup(name).or((name == "AWS_SECRET_ACCESS_KEY").then(|| "S".into()));
    Client::new(&S3Session::open_with(&settings, &lookup).unwrap())
}

fn put() -> Request {
    Request::new("PutObject", Method::PUT, Some("bucket")).key(b"k").body("body")
}

#[test]
fn a_bundle_is_trusted_and_bodies_are_not_signed() {
    let server = server(false);
    let ca_bundle = Some(folder().join("cert.pem"));
    let client = client(&server, Settings { ca_bundle, ..Settings::default() });
    let response = block_on(async {
        client.send(&put()).await.unwrap();
        client.send(&put()).await.unwrap()
    });
    assert_eq!(&response.body[..], b"ok");
    assert_eq!(client.session().counts.connections.load(Ordering::Relaxed), 1);
    let heads = server.heads.lock();
    assert!(heads.iter().all(|head| head.contains("x-amz-content-sha256: UNSIGNED-PAYLOAD")));
}

#[test]
fn a_stranger_is_refused_at_once_and_trusted_on_demand() {
    let server = server(false);
    let checking =
        match std::panic::catch_unwind(AssertUnwindSafe(|| client(&server, Settings::default()))) {
            Ok(client) => client,
            // A machine without certificates fails before the first request.
            Err(_) => return assert!(super::trusted(None).is_err()),
        };
    let error = block_on(checking.send(&put())).unwrap_err();
    assert_eq!((error.kind, error.tries), (ErrorKind::Settings, 1));
    assert!(error.message.contains("its certificate is not trusted"), "{}", error.message);
    assert!(error.message.contains(&server.url), "{}", error.message);
    let trusting = client(&server, Settings { no_verify_ssl: true, ..Settings::default() });
    block_on(trusting.send(&put())).unwrap();
}

#[test]
fn the_certificate_of_the_server_itself_is_trusted() {
    for (certificate, bundle, refused) in [
        // As `openssl req -x509` makes it: its own authority.
        ("authority.pem", "authority.pem", None),
        ("issued.pem", "authority.pem", None),
        ("issued.pem", "issued.pem", None),
        // The same authority, but not the certificate that is trusted.
        ("elsewhere.pem", "authority.pem", Some("it is signed by itself")),
        ("elsewhere.pem", "elsewhere.pem", Some("it is for another host name")),
        ("expired.pem", "expired.pem", Some("it has expired")),
        ("authority.pem", "cert.pem", Some("it is signed by itself")),
        ("issued.pem", "cert.pem", Some("its issuer is unknown")),
    ] {
        let server = server_with(certificate, true);
        let ca_bundle = Some(folder().join(bundle));
        let client = client(&server, Settings { ca_bundle, ..Settings::default() });
        let sent = block_on(async { client.send(&put()).await.map(|_| ()) });
        let why = sent.err().map(|error| error.message);
        let is_it = match (&why, refused) {
            (None, None) => true,
            (Some(why), Some(refused)) => why.contains(&format!("not trusted ({refused})")),
            _ => false,
        };
        assert!(is_it, "{certificate}, {bundle} trusted: {why:?}");
    }
}

#[test]
fn sessions_are_resumed() {
    let server = server(true);
    let ca_bundle = Some(folder().join("cert.pem"));
    let client = client(&server, Settings { ca_bundle, ..Settings::default() });
    block_on(async {
        for _ in 0..4 {
            client.send(&put()).await.unwrap();
        }
    });
    let count = |kind: usize| server.handshakes[kind].load(Ordering::Relaxed);
    assert!(count(1) >= 2, "{} full, {} resumed", count(0), count(1));
}

#[test]
fn a_server_without_tls_and_a_bundle_without_certificates_are_named() {
    let plain = crate::script::Server::start(|_| crate::script::answer("200 OK", "", ""));
    let settings = Settings {
        endpoint_url: Some(plain.url.replace("http:", "https:")),
        no_sign_request: true,
        ca_bundle: Some(folder().join("cert.pem")),
        connect_timeout: Some(std::time::Duration::from_millis(300)),
        ..Settings::default()
    };
    let client = Client::new(&S3Session::open_with(&settings, &|_| None).unwrap());
    let error = block_on(client.send(&put())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connection);
    assert!(error.message.starts_with("cannot connect to https://"), "{}", error.message);
    let bundle = |path: &str| super::config(Some(Path::new(path)), true).map(|_| ()).unwrap_err();
    assert!(bundle("/dev/null").contains("no certificate in PEM form"));
    assert!(bundle("/nowhere.pem").contains("/nowhere.pem"));
}
