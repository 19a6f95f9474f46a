//! The type of a cloud's machine, as its metadata service says it.

use crate::common::case::Run;
use crate::io::{area, hakobu};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const WORDS: [&str; 5] = ["io", "--name=a", "--rw=read", "--size=4k", "--output-format=json"];

/// A metadata service of version 2 that says this; its address.
fn service(says: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, says);
        }
    });
    address
}

fn answer(mut stream: TcpStream, says: &str) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let head: Vec<String> =
        lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect();
    let has = |wanted: &str| head.iter().any(|line| line.starts_with(wanted));
    let (status, more, body) = match first.as_str() {
        "PUT /latest/api/token HTTP/1.1" if has("x-aws-ec2-metadata-token-ttl-seconds:") => {
            ("200 OK", "x-aws-ec2-metadata-token-ttl-seconds: 60\r\n", "a-token")
        }
        "GET /latest/meta-data/instance-type HTTP/1.1"
            if has("x-aws-ec2-metadata-token: a-token") =>
        {
            ("200 OK", "", says)
        }
        _ => ("401 Unauthorized", "", ""),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{more}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}

/// The fields of results about the machine's type, and the seconds that it took.
fn told(variables: &[(&str, &str)]) -> (Value, f64) {
    let area = area();
    let mut command = hakobu(area.path(), &WORDS);
    command.env("HOME", area.path()).envs(variables.iter().copied());
    let began = Instant::now();
    let run = Run::new(format!("{variables:?}"), command.output().unwrap());
    let took_s = began.elapsed().as_secs_f64();
    let found: Value = serde_json::from_str(&run.ok().out()).unwrap();
    (found["hakobu"]["machine"]["instance_type"].clone(), took_s)
}

#[test]
fn the_metadata_service_says_the_type() {
    const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    const OFF: (&str, &str) = ("AWS_EC2_METADATA_DISABLED", "true");
    let address = service("x9.3xlarge");
    let (firmware, _) = told(&[(ENDPOINT, &address), OFF]);
    if firmware != Value::Null {
        // The firmware knows the type, so no request is made.
        assert_eq!(told(&[(ENDPOINT, &address)]).0, firmware);
        return;
    }
    assert_eq!(told(&[(ENDPOINT, &address)]).0, "x9.3xlarge");
    // Text that is not a type name is ignored.
    assert_eq!(told(&[(ENDPOINT, &service("<html>no</html>"))]).0, Value::Null);
    // No server, and a server without an answer: measured all the same, and soon.
    assert_eq!(told(&[(ENDPOINT, "http://127.0.0.1:9")]).0, Value::Null);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let (kind, took_s) = told(&[(ENDPOINT, &address)]);
    assert_eq!(kind, Value::Null);
    assert!(took_s < Duration::from_secs(10).as_secs_f64(), "{took_s} s");
}
