//! Other S3 clients, if installed, work with both servers.

use super::client::{ACCESS, Connection, SECRET, Served};
use crate::common::area::Area;
use crate::common::{have, must, program};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn client(program: &str, server: &Served) -> Command {
    let mut command = Command::new(program);
    command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
    command.current_dir(server.area.path()).arg("--endpoint-url").arg(server.url());
    command
}

/// Runs a command line of a client.
fn run(program: &str, server: &Served, line: &str) -> String {
    let out = must(client(program, server).args(line.split_whitespace()));
    String::from_utf8(out).unwrap()
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 3) as u8).collect()
}

#[test]
fn s5cmd_works_with_both() {
    if !have("s5cmd", "s5cmd against both servers") {
        return;
    }
    let server = Served::start("s3 DIR");
    std::fs::write(server.area.join("large"), content(12_000_000)).unwrap();
    run("s5cmd", &server, "mb s3://bkt");
    run("s5cmd", &server, "cp --part-size 5 large s3://bkt/p/large");
    run("s5cmd", &server, "cp s3://bkt/p/large back");
    assert!(std::fs::read(server.area.join("back")).unwrap() == content(12_000_000));
    assert!(run("s5cmd", &server, "ls s3://bkt/*").contains("12000000"));
    run("s5cmd", &server, "rm s3://bkt/*");
    let null = Served::start("null --keys 2500");
    std::fs::write(null.area.join("large"), content(12_000_000)).unwrap();
    run("s5cmd", &null, "cp --part-size 5 large s3://bkt/p/large");
    run("s5cmd", &null, "cp s3://bkt/x.size-7000000 back");
    assert_eq!(std::fs::read(null.area.join("back")).unwrap().len(), 7_000_000);
    assert_eq!(run("s5cmd", &null, "ls s3://bkt/*").lines().count(), 2500);
    assert_eq!(run("s5cmd", &null, "rm s3://bkt/*").lines().count(), 2500);
}

#[test]
fn aws_works_with_both() {
    if !have("aws", "aws against both servers") {
        return;
    }
    let server = Served::start("s3 DIR");
    std::fs::create_dir(server.root().join("bkt")).unwrap();
    std::fs::write(server.area.join("large"), content(12_000_000)).unwrap();
    run("aws", &server, "s3 cp --only-show-errors large s3://bkt/p/large");
    run("aws", &server, "s3 cp --only-show-errors s3://bkt/p/large back");
    assert!(std::fs::read(server.area.join("back")).unwrap() == content(12_000_000));
    let null = Served::start("null --keys 2500");
    std::fs::write(null.area.join("large"), content(12_000_000)).unwrap();
    run("aws", &null, "s3 cp --only-show-errors large s3://bkt/p/large");
    run("aws", &null, "s3 cp --only-show-errors s3://bkt/x.size-9000000 back");
    assert_eq!(std::fs::read(null.area.join("back")).unwrap().len(), 9_000_000);
    assert_eq!(run("aws", &null, "s3 ls --recursive s3://bkt").lines().count(), 2500);
}

// Status of a running server: totals on SIGUSR1, and a line per second with `--progress`.

#[test]
fn totals_are_told_while_it_runs_and_at_the_end() {
    let area = Area::tmpfs();
    for line in ["null --object-size 100", "null --object-size 100 --latency 1ms"] {
        let stderr = area.join("stderr");
        let mut child = Command::new(program())
            .arg("serve")
            .args(line.split(' '))
            .arg("--progress")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("listening on http://").unwrap();
        // Nothing is printed before the first request.
        std::thread::sleep(Duration::from_millis(1100));
        assert_eq!(std::fs::read_to_string(&stderr).unwrap(), "", "{line}");
        let mut connection = Connection::new(address);
        for _ in 0..3 {
            connection.send("PUT", "/b/k", "", b"hello");
            assert_eq!(connection.answer("PUT").unwrap().status, 200);
        }
        connection.send("GET", "/b/k", "", b"");
        assert_eq!(connection.answer("GET").unwrap().body.len(), 100);
        let until = |wanted: &str| {
            let begun = Instant::now();
            loop {
                let text = std::fs::read_to_string(&stderr).unwrap();
                if text.contains(wanted) {
                    return text;
                }
                assert!(begun.elapsed() < Duration::from_secs(20), "{line}: no {wanted} in {text}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        until("hakobu: 4 requests (");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::USR1).unwrap();
        let totals = "hakobu: 4 requests, 15 bytes received, 100 bytes sent\n";
        until(totals);
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{line}");
        let text = std::fs::read_to_string(&stderr).unwrap();
        assert_eq!(text.matches(totals).count(), 2, "{line}: {text}");
    }
}
