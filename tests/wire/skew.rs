//! A clock that is wrong: the server's time is taken from its answer, and what is signed then has
//! it. The server here is a few lines, because it has to lie about the time.

use crate::server::Stage;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

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
