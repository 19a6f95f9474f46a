//! The null server: HTTP, objects, listings.

use crate::common::program;
use crate::server::client::{Served, crc64nvme};
use rustix::process::Signal;
use std::process::Command;
use std::time::{Duration, Instant};

/// Content of every object, by its documentation.
fn payload(from: usize, count: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut period = Vec::new();
    for _ in 0..262_139 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        period.push(state as u8);
    }
    (from..from + count).map(|at| period[at % period.len()]).collect()
}

#[test]
fn requests_in_one_piece_are_answered_in_order() {
    let server = Served::start("null --object-size 100");
    let mut connection = server.connect();
    let text = "PUT /b/k HTTP/1.1\r\nContent-Length: 5\r\nx-amz-checksum-crc32: abcd\r\n\r\nhello\
                GET /b/k HTTP/1.1\r\nRange: bytes=10-19\r\n\r\n\
                HEAD /b/k HTTP/1.1\r\n\r\n\
                PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
                GET /b/k HTTP/1.1\r\nConnection: close\r\n\r\n";
    connection.write(text.as_bytes()).unwrap();
    let put = connection.answer("PUT").unwrap();
    assert_eq!((put.status, put.header("x-amz-checksum-crc32")), (200, Some("abcd")));
    let part = connection.answer("GET").unwrap();
    assert_eq!((part.status, part.header("content-range")), (206, Some("bytes 10-19/100")));
    assert_eq!(part.body, payload(10, 10));
    let head = connection.answer("HEAD").unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some("100")));
    assert_eq!(connection.answer("PUT").unwrap().status, 200);
    let last = connection.answer("GET").unwrap();
    assert_eq!(last.body, payload(0, 100));
    let (rest, ended) = connection.rest();
    assert!(rest.is_empty() && ended.is_ok(), "{rest:?} {ended:?}");
    let log = server.log(5);
    let received: Vec<_> = log.iter().map(|line| line["received_bytes"].as_u64()).collect();
    assert_eq!(received, [5, 0, 0, 3, 0].map(Some));
    assert_eq!(log[1]["operation"], "GetObject");
    assert_eq!(log[1]["sent_bytes"], 10);
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = Served::start("null --object-size 3");
    let mut connection = server.connect();
    for byte in b"PUT /b/k HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET /b/k HTTP/1.1\r\n\r\n" {
        connection.write(&[*byte]).unwrap();
    }
    assert_eq!(connection.answer("PUT").unwrap().status, 200);
    assert_eq!(connection.answer("GET").unwrap().body, payload(0, 3));
}

#[test]
fn large_bodies_pass_both_ways() {
    let server = Served::start("null");
    let mut connection = server.connect();
    connection.send("PUT", "/b/large", "", &vec![7; 9_000_000]);
    assert_eq!(connection.answer("PUT").unwrap().status, 200);
    connection.send("GET", "/b/x.size-5000001", "x-amz-checksum-mode: ENABLED\r\n", b"");
    let got = connection.answer("GET").unwrap();
    assert_eq!(got.header("x-amz-checksum-type"), Some("FULL_OBJECT"));
    assert_eq!(got.header("x-amz-checksum-crc64nvme"), Some(crc64nvme(&got.body).as_str()));
    assert!(got.body == payload(0, 5_000_001));
    connection.send("GET", "/b/x.size-5000001", "Range: bytes=300000-900000\r\n", b"");
    let part = connection.answer("GET").unwrap();
    assert!(part.body == payload(300_000, 600_001));
    assert_eq!(part.header("x-amz-checksum-crc64nvme"), None);
    assert_eq!(server.log(3)[0]["received_bytes"], 9_000_000);
}

#[test]
fn a_client_that_waits_for_100_continue_gets_it() {
    let server = Served::start("null");
    let mut connection = server.connect();
    let head = "PUT /b/k HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\
                x-amz-trailer: x-amz-checksum-crc32\r\n\r\n";
    connection.write(head.as_bytes()).unwrap();
    assert_eq!(connection.head().unwrap().status, 100);
    // aws-chunked inside chunked, as sent by aws-cli over plain HTTP.
    let inner = "3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n";
    let body = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
    connection.write(body.as_bytes()).unwrap();
    let put = connection.answer("PUT").unwrap();
    assert_eq!(put.header("x-amz-checksum-crc32"), Some("NSRBwg=="));
}

#[test]
fn what_is_no_request_is_refused() {
    let server = Served::start("null");
    for text in [
        "nonsense\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(70_000)),
    ] {
        let mut connection = server.connect();
        let _ = connection.write(text.as_bytes());
        assert_eq!(connection.answer("GET").unwrap().status, 400, "{text:.40}");
    }
    // A client that disconnects within a body does not disturb others.
    let mut connection = server.connect();
    connection.write(b"PUT /b/k HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc").unwrap();
    drop(connection);
    assert_eq!(server.ask("HEAD", "/b/k", "", b"").status, 200);
    assert_eq!(server.ask("GET", "/b?versions", "", b"").code(), "NotImplemented");
    let wrong = server.ask("GET", "/b/k", "Range: bytes=5000-\r\n", b"");
    assert_eq!((wrong.status, wrong.code().as_str()), (416, "InvalidRange"));
}

#[test]
fn listings_have_all_keys_once_and_in_order() {
    let server = Served::start("null --keys 12345");
    let mut connection = server.connect();
    let mut list = |query: &str| {
        let (mut found, mut more) = (Vec::new(), String::new());
        loop {
            connection.send("GET", &format!("/b?list-type=2&{query}{more}"), "", b"");
            let page = connection.answer("GET").unwrap();
            assert_eq!(page.status, 200, "{}", page.text());
            let prefixes = page.text().matches("<CommonPrefixes>").count();
            let folded = page.all("Prefix");
            found.extend(page.all("Key"));
            found.extend_from_slice(&folded[folded.len() - prefixes..]);
            let token = page.all("NextContinuationToken");
            assert_eq!(page.all("IsTruncated")[0] == "true", !token.is_empty());
            match token.first() {
                Some(token) => more = format!("&continuation-token={token}"),
                None => return found,
            }
        }
    };
    let expected: Vec<_> = (0..12_345).map(|n| format!("d{:04}/f{n:06}", n / 1000)).collect();
    assert_eq!(list(""), expected);
    assert_eq!(list("max-keys=777"), expected);
    assert_eq!(list("start-after=d0012/f012340"), expected[12_341..]);
    assert_eq!(list("prefix=d0003/f0031&max-keys=7"), expected[3100..3200]);
    let folders: Vec<_> = (0..13).map(|n| format!("d{n:04}/")).collect();
    assert_eq!(list("delimiter=%2F&max-keys=4"), folders);
}

#[test]
fn deletes_name_what_they_deleted() {
    let server = Served::start("null");
    let body = b"<Delete><Object><Key>a&amp;b</Key></Object><Object><Key>c</Key></Object></Delete>";
    assert_eq!(server.ask("POST", "/b?delete", "", body).all("Key"), ["a&amp;b", "c"]);
    let quiet = b"<Delete><Quiet>true</Quiet><Object><Key>c</Key></Object></Delete>";
    assert!(server.ask("POST", "/b?delete=", "", quiet).all("Key").is_empty());
    assert_eq!(server.ask("DELETE", "/b/k", "", b"").status, 204);
}

#[test]
fn it_waits_when_asked_and_ends_when_told() {
    let server = Served::start("null --latency 60ms --threads 1");
    let start = Instant::now();
    assert_eq!(server.ask("HEAD", "/b", "", b"").status, 200);
    assert!(start.elapsed() >= Duration::from_millis(60), "{:?}", start.elapsed());
    assert_eq!(server.end(Signal::TERM), Some(0));
    assert_eq!(Served::start("null").end(Signal::INT), Some(0));
}

#[test]
fn what_cannot_be_served_is_an_error() {
    for (line, code) in [
        ("serve", 2),
        ("serve nothing", 2),
        ("serve null --fault nonsense", 2),
        ("serve null --listen 300.0.0.1:1", 1),
        ("serve s3 /nowhere/at/all", 1),
    ] {
        let output = Command::new(program()).args(line.split(' ')).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{line}");
    }
}
