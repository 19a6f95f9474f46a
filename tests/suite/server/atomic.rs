//! Requests for one key at the same time: one of them as a whole, its content, checksum and metadata together.

use crate::server::client::{Answer, Served, crc64nvme};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a writer stores: of its own size, with metadata that names it.
fn body(writer: usize) -> Vec<u8> {
    vec![b'a' + writer as u8; 1000 + writer]
}

/// Checks an answer with an object: everything in it is of one writer. Returns the writer.
fn whole(answer: &Answer) -> usize {
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    let writer = usize::from(answer.body[0] - b'a');
    assert_eq!(answer.body, body(writer));
    let sum = crc64nvme(&answer.body);
    assert_eq!(answer.header("x-amz-checksum-crc64nvme"), Some(sum.as_str()), "writer {writer}");
    let name = writer.to_string();
    assert_eq!(answer.header("x-amz-meta-writer"), Some(name.as_str()));
    writer
}

fn put(server: &Served, key: &str, writer: usize) -> Answer {
    let body = body(writer);
    let headers = format!(
        "x-amz-meta-writer: {writer}\r\nx-amz-checksum-crc64nvme: {}\r\n",
        crc64nvme(&body)
    );
    server.signed("PUT", key, &headers, &body)
}

/// Starts an upload of one part, and returns the request that completes it.
fn upload(server: &Served, key: &str, writer: usize) -> (String, String) {
    let begun = server.signed(
        "POST",
        &format!("{key}?uploads="),
        &format!("x-amz-meta-writer: {writer}\r\n"),
        b"",
    );
    let id = begun.all("UploadId")[0].clone();
    let part =
        server.signed("PUT", &format!("{key}?partNumber=1&uploadId={id}"), "", &body(writer));
    let etag = part.header("etag").unwrap_or_else(|| panic!("{}", part.text())).to_owned();
    let parts = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
    );
    (format!("{key}?uploadId={id}"), parts)
}

#[test]
fn one_of_several_writers_is_kept_as_a_whole() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    assert_eq!(put(&server, "/bkt/source", 4).status, 200);
    for round in 0..12 {
        let key = "/bkt/k";
        assert_eq!(put(&server, key, 0).status, 200);
        let (complete, parts) = upload(&server, key, 3);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    whole(&server.signed("GET", key, "", b""));
                    // Size and ETag of a listing are of one object.
                    let list = server.signed("GET", "/bkt?list-type=2&prefix=k", "", b"");
                    let (size, etag) = (list.all("Size"), list.all("ETag"));
                    let writer = size[0].parse::<usize>().unwrap() - 1000;
                    let is_parts = etag[0].contains("-1");
                    assert_eq!(is_parts, writer == 3, "round {round}: {size:?} {etag:?}");
                }
            });
            let mut writers = Vec::new();
            for writer in [1, 2] {
                let server = &server;
                writers.push(scope.spawn(move || assert_eq!(put(server, key, writer).status, 200)));
            }
            writers.push(scope.spawn(|| {
                let headers = "x-amz-copy-source: /bkt/source\r\n";
                assert_eq!(server.signed("PUT", key, headers, b"").status, 200);
            }));
            writers.push(scope.spawn(|| {
                let done = server.signed("POST", &complete, "", parts.as_bytes());
                assert_eq!(done.status, 200, "{}", done.text());
            }));
            for writer in writers {
                writer.join().unwrap();
            }
            ended.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        whole(&server.signed("GET", key, "", b""));
    }
}

#[test]
fn a_removal_beside_a_write_leaves_all_or_nothing() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    for round in 0..60 {
        let key = format!("/bkt/d{}/k", round % 3);
        put(&server, &key, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(put(&server, &key, 2).status, 200));
            scope.spawn(|| assert_eq!(server.signed("DELETE", &key, "", b"").status, 204));
        });
        let answer = server.signed("GET", &key, "", b"");
        if answer.status != 404 {
            assert_eq!(whole(&answer), 2);
        }
    }
}

#[test]
fn an_upload_is_completed_once_with_its_metadata() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    for round in 0..10 {
        let key = format!("/bkt/k{round}");
        let (complete, parts) = upload(&server, &key, 5);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let ask = |method: &'static str, body: &'static str| {
                let (server, complete, parts) = (&server, &complete, &parts);
                scope.spawn(move || {
                    let body = if body.is_empty() { b"" } else { parts.as_bytes() };
                    server.signed(method, complete, "", body).status
                })
            };
            let asked = match round % 2 {
                0 => [ask("POST", "parts"), ask("POST", "parts")],
                _ => [ask("POST", "parts"), ask("DELETE", "")],
            };
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        let answer = server.signed("GET", &key, "", b"");
        match answer.status {
            404 => assert!(statuses.contains(&204), "{statuses:?}"),
            _ => assert_eq!(whole(&answer), 5),
        }
        assert!(statuses.iter().all(|status| *status < 500), "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status < 300).count(), 1, "{statuses:?}");
    }
}

#[test]
fn parts_of_one_number_do_not_mix() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    for _ in 0..20 {
        let begun = server.signed("POST", "/bkt/k?uploads=", "x-amz-meta-writer: 1\r\n", b"");
        let id = begun.all("UploadId")[0].clone();
        let target = format!("/bkt/k?partNumber=1&uploadId={id}");
        std::thread::scope(|scope| {
            for writer in [1, 2, 3] {
                let (server, target) = (&server, &target);
                scope.spawn(move || server.signed("PUT", target, "", &body(writer)));
            }
        });
        let list = server.signed("GET", &format!("/bkt/k?uploadId={id}"), "", b"");
        let (size, etag) = (list.all("Size")[0].clone(), list.all("ETag")[0].clone());
        let parts = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        );
        let done = server.signed("POST", &format!("/bkt/k?uploadId={id}"), "", parts.as_bytes());
        assert_eq!(done.status, 200, "{}", done.text());
        let answer = server.signed("GET", "/bkt/k", "", b"");
        assert_eq!(answer.body.len().to_string(), size);
        assert_eq!(answer.body, body(answer.body.len() - 1000));
    }
}
