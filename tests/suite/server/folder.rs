//! S3 on a folder: signatures, keys that are not paths, listings, multipart uploads.

use crate::server::client::{Served, crc64nvme};
use crate::server::sign;

/// A key as encoded in a request.
fn encoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let byte = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    key.bytes().map(byte).collect()
}

#[test]
fn who_does_not_know_the_secret_is_refused() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    let wrong = sign::headers("GET", "/bkt", "another secret");
    let answer = server.ask("GET", "/bkt", &wrong, b"");
    assert_eq!((answer.status, answer.code().as_str()), (403, "SignatureDoesNotMatch"));
    assert_eq!(server.ask("GET", "/bkt", "", b"").status, 403);
    assert_eq!(server.signed("GET", "/", "", b"").all("Name"), ["bkt"]);
}

#[test]
fn keys_above_and_below_each_other_at_the_same_time() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    let keys: Vec<Vec<String>> = (0..40)
        .map(|round| ["", "/b", "/b/c"].iter().map(|end| format!("{round}{end}")).collect())
        .collect();
    std::thread::scope(|scope| {
        for end in 0..3 {
            let (server, keys) = (&server, &keys);
            scope.spawn(move || {
                for key in keys.iter().map(|keys| &keys[end]) {
                    let answer = server.signed("PUT", &format!("/bkt/{key}"), "", key.as_bytes());
                    assert_eq!(answer.status, 200, "{key}");
                }
            });
        }
    });
    for key in keys.iter().flatten() {
        let answer = server.signed("GET", &format!("/bkt/{key}"), "", b"");
        assert_eq!((answer.status, &answer.body[..]), (200, key.as_bytes()), "{key}");
    }
}

#[test]
fn keys_that_are_no_paths_come_back() {
    let server = Served::start("s3 DIR");
    let long = "x".repeat(300);
    let mut keys = vec![
        "plain/key",
        "/lead",
        "a//b",
        "./x",
        "../y",
        "a/../z",
        "sp ace$",
        "tail/",
        "%41",
        "ü/ñ",
        "new\nline",
        "a",
        "a/b",
        "a/b/",
        "..",
        ".key-000000000",
        "+&<>",
        &long,
    ];
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    for key in &keys {
        let target = format!("/bkt/{}", encoded(key));
        assert_eq!(server.signed("PUT", &target, "", key.as_bytes()).status, 200, "{key}");
    }
    assert!(server.root().join("bkt/plain/key").is_file());
    assert!(!server.root().join("y").exists(), "a key has left its bucket");
    keys.sort_unstable();
    let expected: Vec<String> = keys.iter().map(|key| encoded(key)).collect();
    for size in [1000, 5] {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let query = format!("encoding-type=url&list-type=2&max-keys={size}");
            let page = server.signed("GET", &format!("/bkt?{token}{query}"), "", b"");
            found.extend(page.all("Key"));
            match page.all("NextContinuationToken").first() {
                Some(next) => token = format!("continuation-token={next}&"),
                None => break,
            }
        }
        assert_eq!(found, expected, "{size} a page");
    }
    let query = "delimiter=%2F&encoding-type=url&list-type=2&prefix=a%2F";
    let page = server.signed("GET", &format!("/bkt?{query}"), "", b"");
    assert_eq!(page.all("Key"), ["a/b"]);
    assert_eq!(page.all("Prefix")[1..], ["a/../", "a//", "a/b/"]);
    for key in &keys {
        let target = format!("/bkt/{}", encoded(key));
        let got = server.signed("GET", &target, "", b"");
        assert_eq!((got.status, got.body.as_slice()), (200, key.as_bytes()), "{key}");
        let sum = crc64nvme(key.as_bytes());
        assert_eq!(got.header("x-amz-checksum-crc64nvme"), Some(sum.as_str()), "{key}");
    }
    assert_eq!(server.signed("DELETE", "/bkt", "", b"").code(), "BucketNotEmpty");
    for key in &keys {
        let target = format!("/bkt/{}", encoded(key));
        assert_eq!(server.signed("DELETE", &target, "", b"").status, 204, "{key}");
        assert_eq!(server.signed("GET", &target, "", b"").code(), "NoSuchKey", "{key}");
    }
    assert_eq!(server.signed("DELETE", "/bkt", "", b"").status, 204);
    assert_eq!(server.signed("PUT", "/bkt/k", "", b"").code(), "NoSuchBucket");
}

#[test]
fn what_lies_in_the_folder_is_served() {
    let server = Served::start("s3 DIR");
    std::fs::create_dir_all(server.root().join("bkt/d/empty")).unwrap();
    std::fs::write(server.root().join("bkt/d/f"), "by hand").unwrap();
    let page = server.signed("GET", "/bkt?list-type=2", "", b"");
    assert_eq!(page.all("Key"), ["d/f"]);
    let got = server.signed("GET", "/bkt/d/f", "Range: bytes=-4\r\n", b"");
    assert_eq!((got.status, got.body.as_slice()), (206, &b"hand"[..]));
    let all = server.signed("GET", "/bkt/d/f", "Range: bytes=-400\r\n", b"");
    assert_eq!(all.body, b"by hand");
    assert_eq!(server.signed("GET", "/bkt/d", "", b"").code(), "NoSuchKey");
    let etag = format!("If-Match: {}\r\n", got.header("etag").unwrap());
    assert_eq!(server.signed("GET", "/bkt/d/f", &etag, b"").status, 200);
    let none = etag.replace("Match", "None-Match");
    assert_eq!(server.signed("GET", "/bkt/d/f", &none, b"").status, 304);
    let other = server.signed("GET", "/bkt/d/f", "If-Match: \"x\"\r\n", b"");
    assert_eq!(other.status, 412);
}

#[test]
fn multipart_uploads_are_checked_and_listed() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    // The checksum of the previous object must not remain.
    assert_eq!(server.signed("PUT", "/bkt/k", "", b"old").status, 200);
    let upload = server.signed("POST", "/bkt/k?uploads=", "", b"").all("UploadId").remove(0);
    let whole: Vec<u8> = (0..6_000_000u32).map(|n| (n >> 8) as u8).collect();
    let (first, second) = whole.split_at(5 << 20);
    let part = |number: u8, more: &str, bytes: &[u8]| {
        let target = format!("/bkt/k?partNumber={number}&uploadId={upload}");
        server.signed("PUT", &target, more, bytes)
    };
    let etags: Vec<_> = [(1, first), (2, second)]
        .into_iter()
        .map(|(number, bytes)| part(number, "", bytes).header("etag").unwrap().to_owned())
        .collect();
    let wrong = format!("x-amz-checksum-crc64nvme: {}\r\n", crc64nvme(b"x"));
    assert_eq!(part(2, &wrong, b"y").code(), "BadDigest");
    let listed = server.signed("GET", &format!("/bkt/k?uploadId={upload}"), "", b"");
    assert_eq!(listed.all("PartNumber"), ["1", "2"]);
    assert_eq!(listed.all("Size"), ["5242880", "757120"]);
    assert_eq!(listed.all("ChecksumCRC64NVME"), [crc64nvme(first), crc64nvme(second)]);
    let uploads = server.signed("GET", "/bkt?uploads=", "", b"");
    assert_eq!(
        (uploads.all("Key"), uploads.all("UploadId")),
        (vec!["k".into()], vec![upload.clone()])
    );
    let complete = |etags: &[String]| {
        let parts = etags.iter().zip(1..).map(|(etag, number)| {
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
        });
        let body = format!(
            "<CompleteMultipartUpload>{}</CompleteMultipartUpload>",
            parts.collect::<String>()
        );
        server.signed("POST", &format!("/bkt/k?uploadId={upload}"), "", body.as_bytes())
    };
    assert_eq!(complete(&[etags[1].clone(), etags[0].clone()]).code(), "InvalidPart");
    assert_eq!(server.signed("GET", "/bkt/k", "", b"").body, b"old");
    let done = complete(&etags);
    assert_eq!(done.all("ChecksumCRC64NVME"), [crc64nvme(&whole)], "{}", done.text());
    let got = server.signed("GET", "/bkt/k", "", b"");
    assert!(got.body == whole);
    assert_eq!(got.header("x-amz-checksum-crc64nvme"), Some(crc64nvme(&whole).as_str()));
    assert_eq!(complete(&etags).code(), "NoSuchUpload");
    assert!(server.signed("GET", "/bkt?uploads=", "", b"").all("UploadId").is_empty());
}

#[test]
fn numbered_names_outlive_the_server() {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    assert_eq!(server.signed("PUT", "/bkt/a//b", "", b"odd").status, 200);
    let again = Served::start(&format!("s3 {}", server.root().display()));
    assert_eq!(again.signed("GET", "/bkt/a//b", "", b"").body, b"odd");
    assert_eq!(again.signed("GET", "/bkt?list-type=2", "", b"").all("Key"), ["a//b"]);
}
