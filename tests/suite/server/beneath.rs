//! A served folder has no way out through links; bodies must match their signature.

use crate::server::client::Served;
use crate::server::sign::sha256;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server on a folder with a bucket, and a foreign folder beside it.
fn served() -> (Served, PathBuf) {
    let server = Served::start("s3 DIR");
    assert_eq!(server.signed("PUT", "/bkt", "", b"").status, 200);
    let outside = server.area.join("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    fs::write(outside.join("sub/secret"), "secret").unwrap();
    (server, outside)
}

#[track_caller]
fn untouched(outside: &std::path::Path) {
    let names = |dir: PathBuf| {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(outside.to_owned()), ["secret", "sub"]);
    assert_eq!(names(outside.join("sub")), ["secret"]);
    for file in ["secret", "sub/secret"] {
        assert_eq!(fs::read(outside.join(file)).unwrap(), b"secret");
    }
}

#[test]
fn links_lead_nowhere() {
    let (server, outside) = served();
    let bucket = server.root().join("bkt");
    for (to, name) in [
        (outside.join("secret"), "absolute"),
        (outside.clone(), "folder"),
        ("../../outside/secret".into(), "relative"),
        ("../../outside".into(), "up"),
        ("/proc/self/root".into(), "magic"),
    ] {
        symlink(to, bucket.join(name)).unwrap();
    }
    symlink(&outside, server.root().join("evil-bucket")).unwrap();
    fs::write(bucket.join("plain"), "plain").unwrap();
    symlink("plain", bucket.join("inside")).unwrap();
    let magic = format!("/bkt/magic{}/secret", outside.display());
    let keys = [
        "/bkt/absolute",
        "/bkt/relative",
        "/bkt/folder/secret",
        "/bkt/up/sub/secret",
        &magic,
        "/bkt/folder",
    ];
    for key in keys {
        assert_eq!(server.signed("GET", key, "", b"").code(), "NoSuchKey", "{key}");
        assert_eq!(server.signed("HEAD", key, "", b"").status, 404, "{key}");
        let copy = format!("x-amz-copy-source: {key}\r\n");
        assert_eq!(server.signed("PUT", "/bkt/copy", &copy, b"").code(), "NoSuchKey", "{key}");
    }
    for method in ["GET", "PUT", "DELETE"] {
        let answer = server.signed(method, "/evil-bucket/secret", "", b"x");
        assert_eq!(answer.code(), "NoSuchBucket", "{method}");
    }
    assert_eq!(server.signed("GET", "/evil-bucket?list-type=2", "", b"").code(), "NoSuchBucket");
    assert_eq!(server.signed("DELETE", "/evil-bucket", "", b"").code(), "NoSuchBucket");
    assert_eq!(server.signed("GET", "/", "", b"").all("Name"), ["bkt"]);
    // A link that stays in the folder is an object.
    assert_eq!(server.signed("GET", "/bkt/inside", "", b"").body, b"plain");
    let page = server.signed("GET", "/bkt?list-type=2", "", b"");
    assert_eq!(page.all("Key"), ["inside", "plain"]);
    // Nothing is written outside: a link in the path is an error, a link in place of the file is replaced.
    for key in ["/bkt/folder/new", "/bkt/up/sub/secret", "/bkt/up/deep/er/new"] {
        let answer = server.signed("PUT", key, "", b"mine");
        assert_eq!(answer.status, 403, "{key}: {}", answer.text());
        let copy = "x-amz-copy-source: /bkt/plain\r\n";
        assert_eq!(server.signed("PUT", key, copy, b"").status, 403, "{key}");
    }
    for key in ["/bkt/up/sub/secret", "/bkt/folder/secret"] {
        assert_eq!(server.signed("DELETE", key, "", b"").status, 204, "{key}");
    }
    let body = "<Delete><Object><Key>up/secret</Key></Object></Delete>";
    assert_eq!(server.signed("POST", "/bkt?delete=", "", body.as_bytes()).status, 200);
    untouched(&outside);
    assert_eq!(server.signed("PUT", "/bkt/absolute", "", b"mine").status, 200);
    assert_eq!(server.signed("GET", "/bkt/absolute", "", b"").body, b"mine");
    for key in ["absolute", "inside", "plain"] {
        assert_eq!(server.signed("DELETE", &format!("/bkt/{key}"), "", b"").status, 204);
    }
    // Deleting an empty bucket removes its links, but not their targets.
    assert_eq!(server.signed("DELETE", "/bkt", "", b"").status, 204);
    assert!(!bucket.exists());
    untouched(&outside);
}

/// Metadata files beside the buckets, as links to elsewhere.
#[test]
fn what_the_server_knows_stays_inside() {
    let (server, outside) = served();
    let root = server.root();
    symlink(outside.join("secret"), root.join(".hakobu-names")).unwrap();
    assert_eq!(server.signed("PUT", "/bkt/a//b", "", b"x").status, 500);
    fs::remove_file(root.join(".hakobu-names")).unwrap();
    let upload = server.signed("POST", "/bkt/k?uploads=", "", b"").all("UploadId").remove(0);
    for name in [format!(".upload_id-{upload}.part-1"), format!(".upload_id-{upload}.sum-1")] {
        symlink(outside.join("secret"), root.join(name)).unwrap();
    }
    let part = server.signed("PUT", &format!("/bkt/k?partNumber=1&uploadId={upload}"), "", b"part");
    assert_eq!(part.status, 200);
    untouched(&outside);
    for (target, code) in [
        ("/bkt/k?partNumber=1&uploadId=..%2F..%2Foutside%2Fsecret".to_owned(), "NoSuchUpload"),
        (format!("/bkt/k?partNumber=0&uploadId={upload}"), "InvalidArgument"),
        (format!("/bkt/k?partNumber=-1&uploadId={upload}"), "InvalidArgument"),
    ] {
        assert_eq!(server.signed("PUT", &target, "", b"part").code(), code, "{target}");
    }
    assert_eq!(server.signed("DELETE", &format!("/bkt/k?uploadId={upload}"), "", b"").status, 204);
    let left: Vec<_> =
        fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["bkt"]);
    untouched(&outside);
}

/// A folder alternates between a link and a folder while requests are served.
#[test]
fn links_that_are_made_meanwhile_lead_nowhere() {
    let (server, outside) = served();
    let bucket = server.root().join("bkt");
    let (flip, link) = (bucket.join("flip"), bucket.join("link"));
    fs::create_dir(&flip).unwrap();
    fs::write(flip.join("secret"), "inside").unwrap();
    symlink(&outside, &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &flip, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for number in 0..150 {
            let got = server.signed("GET", "/bkt/flip/secret", "", b"");
            assert!(got.body != b"secret", "{number}");
            server.signed("PUT", &format!("/bkt/flip/new-{number}"), "", b"new");
            server.signed("DELETE", "/bkt/flip/secret", "", b"");
            server.signed("PUT", "/bkt/flip/secret", "", b"inside");
            let page = server.signed("GET", "/bkt?list-type=2&prefix=flip%2Fsub", "", b"");
            assert!(page.all("Key").is_empty(), "{}", page.text());
        }
        over.store(true, Ordering::Relaxed);
    });
    untouched(&outside);
}

#[test]
fn a_body_that_was_not_signed_is_refused_as_by_s3() {
    let (server, _) = served();
    let upload = server.signed("POST", "/bkt/k?uploads=", "", b"").all("UploadId").remove(0);
    let part = format!("/bkt/k?partNumber=1&uploadId={upload}");
    let (signed, sent) = (b"what was signed".as_slice(), b"what was sent!!".as_slice());
    let delete = b"<Delete><Object><Key>kept</Key></Object></Delete>";
    assert_eq!(server.signed("PUT", "/bkt/kept", "", b"kept").status, 200);
    for (method, target, body) in [
        ("PUT", "/bkt/new", sent),
        ("PUT", "/bkt/kept", sent),
        ("PUT", part.as_str(), sent),
        ("POST", "/bkt?delete=", delete),
    ] {
        let answer = server.signed_for(method, target, &sha256(signed), body);
        let said = (answer.status, answer.code());
        assert_eq!(said, (400, "XAmzContentSHA256Mismatch".to_owned()), "{method} {target}");
        if body == sent {
            let answer = server.signed_for(method, target, &sha256(body), body);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
    assert_eq!(server.signed("GET", "/bkt/kept", "", b"").body, sent);
    assert_eq!(server.signed("GET", "/bkt/new", "", b"").body, sent);
}
