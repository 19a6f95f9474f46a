//! Faults and conditions, with the null server and with a folder.

use crate::server::client::{Served, crc64nvme};
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_answer_is_reset_or_cut_after_so_many_bytes() {
    let server = Served::start(
        "null --object-size 300000 --fault reset:op=GET,key=r,after=100000,times=1 \
         --fault truncate:key=t,after=70000 --fault reset:op=HEAD",
    );
    for (key, count, reset) in [("r", 100_000, true), ("t", 70_000, false)] {
        let mut connection = server.connect();
        connection.send("GET", &format!("/b/{key}"), "", b"");
        let head = connection.head().unwrap();
        assert_eq!((head.status, head.header("content-length")), (200, Some("300000")));
        let (bytes, ended) = connection.rest();
        assert_eq!(bytes.len(), count, "{key}");
        let kind = ended.err().map(|error| error.kind());
        assert_eq!(kind, reset.then_some(ErrorKind::ConnectionReset), "{key}");
    }
    assert_eq!(server.ask("GET", "/b/r", "", b"").body.len(), 300_000);
    let log = server.log(3);
    assert_eq!((&log[0]["fault"], &log[0]["sent_bytes"]), (&"reset".into(), &100_000.into()));
    assert_eq!(log[2].get("fault"), None);
}

#[test]
fn an_upload_is_reset_within_its_body() {
    let server = Served::start("s3 DIR --fault reset:op=PutObject,key=k,after=100000,times=1");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    let mut connection = server.connect();
    let headers = crate::server::sign::headers("PUT", "/bkt/k", crate::server::client::SECRET);
    connection.send("PUT", "/bkt/k", &headers, &vec![1; 3_000_000]);
    assert!(connection.answer("PUT").is_err());
    assert_eq!(server.signed("GET", "/bkt/k", "", b"").code(), "NoSuchKey");
    assert_eq!(server.signed("PUT", "/bkt/k", "", &vec![1; 3_000_000]).status, 200);
    assert_eq!(server.signed("GET", "/bkt/k", "", b"").body, vec![1; 3_000_000]);
}

#[test]
fn one_byte_or_the_checksum_is_wrong() {
    let server = Served::start(
        "null --object-size 9000 --fault corrupt:key=c,at=5000 --fault checksum:key=s",
    );
    let ask = |key| server.ask("GET", key, "x-amz-checksum-mode: ENABLED\r\n", b"");
    let (good, bad, sum) = (ask("/b/x"), ask("/b/c"), ask("/b/s"));
    let differ: Vec<usize> = (0..9000).filter(|at| good.body[*at] != bad.body[*at]).collect();
    assert_eq!((bad.body.len(), differ.as_slice()), (9000, &[5000][..]));
    let name = "x-amz-checksum-crc64nvme";
    assert_eq!(good.header(name), Some(crc64nvme(&good.body).as_str()));
    assert_eq!(bad.header(name), good.header(name));
    assert!(sum.body == good.body && sum.header(name) != good.header(name));
    assert_eq!(sum.header(name).map(str::len), good.header(name).map(str::len));
}

#[test]
fn a_corrupted_upload_does_not_become_an_object() {
    let server = Served::start("s3 DIR --fault corrupt:op=PUT,key=k,at=2,skip=1,times=1");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    let sum = |body: &[u8]| format!("x-amz-checksum-crc64nvme: {}\r\n", crc64nvme(body));
    assert_eq!(server.signed("PUT", "/bkt/k", &sum(b"first"), b"first").status, 200);
    let wrong = server.signed("PUT", "/bkt/k", &sum(b"second"), b"second");
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "BadDigest"));
    assert_eq!(server.signed("GET", "/bkt/k", "", b"").body, b"first");
    assert_eq!(server.signed("PUT", "/bkt/k", &sum(b"second"), b"second").status, 200);
    assert_eq!(server.signed("GET", "/bkt/k", "", b"").body, b"second");
}

#[test]
fn errors_come_when_they_are_due() {
    let server = Served::start(
        "s3 DIR --fault error:code=SlowDown,op=PUT,key=k,skip=1,times=2 \
         --fault error:code=ExpiredToken,key=token \
         --fault error:code=PermanentRedirect,key=far,region=eu-west-1 \
         --fault error:code=InternalError,late=yes,key=late,op=PUT",
    );
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    let statuses: Vec<u16> =
        (0..4).map(|_| server.signed("PUT", "/bkt/k", "", b"x").status).collect();
    assert_eq!(statuses, [200, 503, 503, 200]);
    let token = server.signed("GET", "/bkt/token", "", b"");
    assert_eq!((token.status, token.code().as_str()), (400, "ExpiredToken"));
    let far = server.signed("GET", "/bkt/far", "", b"");
    assert_eq!((far.status, far.header("x-amz-bucket-region")), (301, Some("eu-west-1")));
    assert_eq!(far.all("Region"), ["eu-west-1"]);
    assert_eq!(server.signed("PUT", "/bkt/late", "", b"done").status, 500);
    assert_eq!(server.signed("GET", "/bkt/late", "", b"").body, b"done");
}

#[test]
fn slow_and_silent_answers() {
    let server = Served::start(
        "null --object-size 50000 --fault slow:key=s,rate=100000 --fault silent:key=q",
    );
    let start = Instant::now();
    assert_eq!(server.ask("GET", "/b/s", "", b"").body.len(), 50_000);
    let took = start.elapsed().as_millis();
    assert!((400..2000).contains(&took), "{took} ms");
    let mut connection = server.connect();
    let wait = Some(Duration::from_millis(200));
    connection.stream.get_ref().set_read_timeout(wait).unwrap();
    connection.send("PUT", "/b/q", "", b"body");
    let kind = connection.answer("PUT").err().map(|error| error.kind());
    assert_eq!(kind, Some(ErrorKind::WouldBlock));
}

#[test]
fn pages_of_listings_change() {
    let server = Served::start(
        "null --keys 6 --fault list:skip=1,times=1,drop=2,add=d0000/f000001x \
         --fault list:skip=1,swap=yes",
    );
    let page = || server.ask("GET", "/b?list-type=2", "", b"").all("Key");
    let names = |all: &[&str]| all.iter().map(|n| format!("d0000/f00000{n}")).collect::<Vec<_>>();
    assert_eq!(page(), names(&["0", "1", "2", "3", "4", "5"]));
    assert_eq!(page(), names(&["1x", "2", "3", "4", "5"]));
    assert_eq!(page(), names(&["5", "1", "2", "3", "4", "0"]));
}

#[test]
fn chance_and_too_many_requests() {
    let failed = |seed: u8| {
        let server = Served::start(&format!("null --error-rate 0.5 --seed {seed}"));
        let statuses = (0..30).map(|_| server.ask("HEAD", "/b/k", "", b"").status);
        statuses.collect::<Vec<u16>>()
    };
    let first = failed(1);
    assert_eq!(first, failed(1));
    assert!(first.contains(&500) && first.contains(&200), "{first:?}");
    let server = Served::start("null --slow-down-above 20");
    let answers: Vec<_> = (0..12).map(|_| server.ask("GET", "/b/k", "", b"")).collect();
    let slowed: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert!(slowed.len() > 3 && slowed.len() < 12, "{}", slowed.len());
    assert_eq!(slowed[0].code(), "SlowDown");
}

#[test]
fn the_bandwidth_and_the_places_are_shared() {
    let server = Served::start("null --object-size 200000 --bandwidth 1MB");
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(server.ask("GET", "/b/k", "", b"").body.len(), 200_000));
        }
    });
    let took = start.elapsed().as_millis();
    assert!((500..3000).contains(&took), "{took} ms for 600 KB at 1 MB/s");
    let server = Served::start("null --max-in-flight 2 --latency 100ms");
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(server.ask("HEAD", "/b/k", "", b"").status, 200));
        }
    });
    let took = start.elapsed().as_millis();
    assert!((300..2000).contains(&took), "{took} ms for six requests, two at a time");
}
