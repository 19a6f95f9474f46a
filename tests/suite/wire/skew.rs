//! A wrong clock: the server's time is taken from its response and used for signing. The server is written
//! here, because it has to return a wrong time.

use crate::common::grow::set_mtime;
use crate::wire::server::Stage;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};

/// The time that the server claims, as HTTP and as signatures write it.
const TIME: (&str, &str) = ("Tue, 01 Jan 2030 12:00:00 GMT", "20300101T12");

#[test]
fn the_servers_clock_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let mut dates = Vec::new();
        for status in ["403 Forbidden\r\nx-amz-error-code: RequestTimeTooSkewed", "200 OK"] {
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                assert!(stream.read_line(&mut line).unwrap() > 0, "the client gave up");
                if let Some(date) = line.to_lowercase().strip_prefix("x-amz-date:") {
                    dates.push(date.trim().to_uppercase());
                }
            }
            let body = "<?xml version=\"1.0\"?><Error><Code>RequestTimeTooSkewed</Code></Error>";
            let body = if status.starts_with("200") { "hello" } else { body };
            let length = body.len();
            write!(
                stream.get_mut(),
                "HTTP/1.1 {status}\r\nDate: {}\r\nETag: \"abc\"\r\n\
                 Last-Modified: {}\r\nContent-Length: {length}\r\n\r\n{body}",
                TIME.0,
                TIME.0
            )
            .unwrap();
        }
        dates
    });
    let stage = Stage::new();
    let other = stage.null("");
    let run = other.run(&format!("cat --endpoint-url {url} s3://bkt/key"));
    run.ok();
    assert_eq!(run.out(), "hello");
    let dates = server.join().unwrap();
    assert!(!dates[0].starts_with(TIME.1) && dates[1].starts_with(TIME.1), "{dates:?}");
}

/// Answers like a store with the object `p/a` of five bytes, whose clock is an hour ahead and which
/// was written half an hour ago. Tells the first line of each request.
fn ahead(listener: &TcpListener, told: &Sender<String>) {
    let now = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let written = now - jiff::SignedDuration::from_mins(30);
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT");
    let list = format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>bkt</Name><Prefix>p/</Prefix><KeyCount>1\
         </KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>p/a</Key>\
         <LastModified>{}</LastModified><ETag>&quot;e&quot;</ETag><Size>5</Size><StorageClass>\
         STANDARD</StorageClass></Contents></ListBucketResult>",
        written.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    );
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        while let Some((first, length)) = head_of(&mut stream) {
            std::io::copy(&mut Read::take(&mut stream, length), &mut std::io::sink()).unwrap();
            let body = if first.starts_with("GET") { &*list } else { "" };
            let head = format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nETag: \"e\"\r\n");
            // Before the answer: the client may be gone after it, and the test with it.
            told.send(first).unwrap();
            let length = body.len();
            write!(stream.get_mut(), "{head}Content-Length: {length}\r\n\r\n{body}").unwrap();
        }
    }
}

/// The first line of a request, and how many bytes its body has; `None` at the end.
fn head_of(stream: &mut impl BufRead) -> Option<(String, u64)> {
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        match &*line {
            "\r\n" => return Some((first, length)),
            _ if first.is_empty() => first = line,
            _ => {}
        }
    }
}

/// Times of uploads are by the server's clock: a file that was changed after its upload goes again,
/// and one that was not stays, however far that clock is off.
#[test]
fn uploads_are_dated_by_the_servers_clock() {
    for (minutes, moves) in [(10, true), (40, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (told, asked) = channel();
        std::thread::spawn(move || ahead(&listener, &told));
        let stage = Stage::new();
        std::fs::write(stage.src().join("a"), "hello").unwrap();
        let changed = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(minutes);
        set_mtime(&stage.src().join("a"), changed.as_second(), 0);
        let other = stage.null("");
        let run = other.run(&format!("sync -r --endpoint-url {url} SRC/ s3://bkt/p/"));
        run.ok();
        let lines: Vec<_> = asked.try_iter().collect();
        let put = lines.iter().any(|line| line.starts_with("PUT"));
        assert_eq!(put, moves, "changed {minutes} minutes ago: {lines:?}");
    }
}

/// A server that calls a right clock wrong is believed once, not for ever.
#[test]
fn a_clock_that_is_right() {
    let stage = Stage::new();
    let server = stage.serve("--fault error:code=RequestTimeTooSkewed");
    std::fs::write(stage.src().join("a"), "a").unwrap();
    let run = server.run("cp SRC/a s3://bkt/a");
    run.expect(1).says(&["RequestTimeTooSkewed"]);
    assert_eq!(stage.object("a"), None);
}
