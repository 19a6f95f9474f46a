//! `ioengine=http` over TLS.

use super::{area, hakobu};
use crate::common::case::Run;
use crate::common::have;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// A server with TLS and a certificate of its own, by Python; its address.
fn with_tls(folder: &Path) -> (std::process::Child, String) {
    crate::common::must(
        Command::new("openssl")
            .args(
                "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2"
                    .split(' '),
            )
            .args([
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .current_dir(folder)
            .stderr(Stdio::null()),
    );
    std::fs::write(
        folder.join("server.py"),
        "import http.server, ssl\n\
         class H(http.server.BaseHTTPRequestHandler):\n\
         \x20   protocol_version = 'HTTP/1.1'\n\
         \x20   def do_PUT(self):\n\
         \x20       self.rfile.read(int(self.headers['content-length']))\n\
         \x20       self.send_response(201)\n\
         \x20       self.send_header('content-length', '0')\n\
         \x20       self.end_headers()\n\
         s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\n\
         c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
         c.load_cert_chain('cert.pem', 'key.pem')\n\
         s.socket = c.wrap_socket(s.socket, server_side=True)\n\
         print(s.server_address[1], flush=True)\n\
         s.serve_forever()\n",
    )
    .unwrap();
    let mut child = Command::new("python3")
        .arg("server.py")
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (child, format!("localhost:{}", port.trim()))
}

#[test]
fn tls_is_verified_unless_told_otherwise() {
    if !have("python3", "a server with TLS") || !have("openssl", "a server with TLS") {
        return;
    }
    let area = area();
    let (mut child, host) = with_tls(area.path());
    let line = format!(
        "io --ioengine=http --http_host={host} --name=w --rw=write --filename=/o --size=32k"
    );
    let run = |https: &str, bundle: &str| {
        let words: Vec<&str> = line.split_whitespace().chain([https]).collect();
        let output = hakobu(area.path(), &words).env("AWS_CA_BUNDLE", bundle).output();
        Run::new(format!("{line} {https}"), output.unwrap())
    };
    run("--https=insecure", "").ok();
    run("--https=on", "cert.pem").ok();
    run("--https=on", "").expect(1).says(&["certificate"]);
    run("--https=off", "").expect(1);
    child.kill().unwrap();
    child.wait().unwrap();
}
