//! Proxies of the environment: only the proxy can resolve the server's name.

use crate::common::case::{Run, run_fed};
use crate::objects::stage::{Stage, stage};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A proxy that sends everything to one server and keeps the first lines and the credentials.
struct Proxy {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(server: &str, wanted: Option<&'static str>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, server) = (Arc::clone(&heads), server.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (seen, server) = (Arc::clone(&seen), server.clone());
                std::thread::spawn(move || drop(serve(client, &server, wanted, &seen)));
            }
        });
        Proxy { url: format!("{address}"), heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// One connection: a head, then bytes both ways. A second request of the connection goes on as it is, so
/// only the first one is looked at.
fn serve(
    client: TcpStream,
    server: &str,
    wanted: Option<&str>,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    seen.lock().unwrap().push(head.clone());
    let mut client = client;
    let allowed = wanted.is_none_or(|wanted| {
        head.lines().any(|line| {
            let (name, value) = line.split_once(": ").unwrap_or_default();
            name.eq_ignore_ascii_case("proxy-authorization") && value == wanted
        })
    });
    if !allowed {
        client.write_all(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")?;
        return Ok(());
    }
    let mut upstream = TcpStream::connect(server)?;
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        // Servers take the whole URL, too (RFC 9112, 3.2.2).
        upstream.write_all(head.as_bytes())?;
    }
    let (mut back, mut out) = (upstream.try_clone()?, client.try_clone()?);
    let answers = std::thread::spawn(move || drop(std::io::copy(&mut back, &mut out)));
    let mut buffer = [0; 16_384];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        upstream.write_all(&buffer[..count])?;
    }
    let _ = upstream.shutdown(std::net::Shutdown::Write);
    let _ = answers.join();
    Ok(())
}

/// Runs with a server of a name that does not exist.
fn away(stage: &Stage, line: &str, variables: &[(&str, String)]) -> Run {
    let mut command = stage.command(line);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    command.env("AWS_ENDPOINT_URL", "http://store.invalid").env("AWS_MAX_ATTEMPTS", "1");
    for (name, value) in variables {
        command.env(name, value);
    }
    run_fed(&mut command, b"")
}

#[test]
fn requests_go_by_way_of_the_proxy() {
    let stage = stage();
    stage.put("k", b"body");
    let url = stage.server.unwrap().url();
    let server = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let basic = "Basic dXM6cGE6c3M=";
    let proxy = Proxy::start(&server, Some(basic));
    let with_user = format!("http://us:pa%3ass@{}", proxy.url);
    let set = |name, value: &str| (name, value.to_owned());
    let bucket = &stage.bucket;
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let before = proxy.heads().len();
        let run = away(&stage, "cat --addressing-style path BKT/k", &[set(name, &with_user)]);
        let head = proxy.heads().get(before).cloned().unwrap_or_default();
        let line = format!("GET http://store.invalid/{bucket}/k HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{name}: {head}\n{run}");
    }
    let run = away(&stage, "cat BKT/k", &[set("HTTP_PROXY", &proxy.url)]);
    run.expect(1).says(&["407"]);
    let count = proxy.heads().len();
    let around = [set("HTTP_PROXY", &with_user), set("NO_PROXY", "other.test,.invalid")];
    away(&stage, "cat BKT/k", &around).expect(1);
    assert_eq!(proxy.heads().len(), count, "NO_PROXY");
    // The proxy is asked for a tunnel; what answers at its end speaks no TLS.
    let tunnel = [set("HTTPS_PROXY", &with_user), set("AWS_ENDPOINT_URL", "https://store.invalid")];
    let run = away(&stage, "cat BKT/k", &tunnel);
    run.expect(1).says(&["by way of the proxy"]);
    assert!(proxy.heads()[count].starts_with("CONNECT store.invalid:443 HTTP/1.1\r\n"), "{run}");
    let run = away(
        &stage,
        "cat BKT/k",
        &[set("HTTPS_PROXY", &proxy.url), set("AWS_ENDPOINT_URL", "https://store.invalid")],
    );
    run.expect(1).says(&["the proxy requires a user and a password"]);
    let run = away(&stage, "cat BKT/k", &[set("HTTP_PROXY", "socks5://u:secret@h")]);
    run.expect(1).says(&["HTTP_PROXY", "only proxies that are asked by http://"]);
    assert!(!run.err().contains("secret"), "{run}");
}
