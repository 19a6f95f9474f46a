//! Limits of a server: `hakobu serve null` with latency, limited concurrency, request rate or bandwidth.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::program;
use crate::rig::{Trial, bytes_per_s, files_per_s, inside, names, run};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running null server, killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// `hakobu serve null` with these options; `before` is a command prefix.
    pub fn start(before: &[&str], options: &str) -> Server {
        let own = program();
        let words = [before, &[own.to_str().unwrap(), "serve", "null"]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(options.split_whitespace());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("{command:?} said {first:?}")).to_owned();
        Server { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Uploads `count` files of `size` bytes.
pub fn upload(server: &Server, count: usize, size: usize, options: &[&str]) -> Run {
    let area = Area::tmpfs();
    let source = inside(&names(&area.join("src"), count, size));
    let words = ["sync", "-r", "--no-memory", "--endpoint-url", &server.url];
    run(&[], &area, &[&words[..], options, &[&source, "s3://bkt/up/"]].concat())
}

/// Downloads all objects of the server; `before` as in [`run`].
pub fn download(before: &[&str], server: &Server) -> Run {
    let area = Area::tmpfs();
    let target = inside(&area.join("dst"));
    let words = ["sync", "-r", "--no-memory", "--endpoint-url", &server.url, "s3://bkt/", &target];
    run(before, &area, &words)
}

/// A latency of 50 ms, with 4 requests at a time by option.
pub fn latency() -> Result<Trial, String> {
    let server = Server::start(&[], "--latency 50ms");
    let run = upload(&server, 500, 4096, &["-j", "4"]);
    Trial::at(&run, files_per_s(&run), 4.0 / 0.05, "files/s")
}

/// 16 requests are served at a time, 20 ms each.
pub fn cap() -> Result<Trial, String> {
    let server = Server::start(&[], "--latency 20ms --max-in-flight 16");
    let run = upload(&server, 5_000, 4096, &[]);
    Trial::at(&run, files_per_s(&run), 16.0 / 0.02, "files/s")
}

/// More than 500 requests per second are throttled.
pub fn slow_down() -> Result<Trial, String> {
    let server = Server::start(&[], "--latency 5ms --slow-down-above 500");
    let run = upload(&server, 3_000, 4096, &[]);
    // The share of it that a well-behaved client gets is not tested here.
    let rate = files_per_s(&run);
    let reached = if rate < 250.0 { rate } else { 500.0 };
    Trial::at(&run, reached, 500.0, "files/s")
}

/// 20 MB/s for all responses together.
pub fn bandwidth() -> Result<Trial, String> {
    let server = Server::start(&[], "--bandwidth 20MB --keys 120 --object-size 1MB");
    let run = download(&[], &server);
    Trial::at(&run, bytes_per_s(&run), 20e6, "bytes/s")
}
