//! Object headers given by options reach the server.

use crate::objects::stage::{content, file, on_servers};
use serde_json::Value;

#[test]
fn content_types_are_guessed_from_names() {
    on_servers(|stage| {
        let guesses = [
            ("a.txt", "text/plain"),
            ("b.html", "text/html"),
            ("c.json", "application/json"),
            ("d.png", "image/png"),
            ("e.tar.gz", "application/gzip"),
        ];
        for (name, _) in guesses {
            file(&stage.src(), name, b"x", 100);
        }
        file(&stage.src(), "unknown.thing-that-is-not", b"x", 100);
        stage.ok("sync -r SRC/ SPOT/");
        for (name, expected) in guesses {
            let found = stage.ok(&format!("head --json SPOT/{name}")).summary();
            let found = found["content_type"].as_str().unwrap_or_default();
            let same = found.starts_with(expected) || name.ends_with("gz") && found.contains("gz");
            assert!(same, "{name}: {found:?}");
        }
        stage.ok("cp --no-guess-mime-type SRC/a.txt SPOT/plain");
        let found = stage.ok("head --json SPOT/plain").summary();
        assert_ne!(found["content_type"], "text/plain", "{found}");
    });
}

#[test]
fn content_tells_the_type_where_the_name_does_not() {
    on_servers(|stage| {
        let large = [&b"<html>"[..], &content(1, 6 << 20)].concat();
        let files = [
            ("page", &b"\n<html>"[..], "text/html; charset=utf-8"),
            ("x.unknown-ending", b"%PDF-1.7", "application/pdf"),
            (".hidden", b"name = value\n", "text/plain; charset=utf-8"),
            ("large", &large, "text/html"),
            ("data", b"\x7fELF\0", "application/octet-stream"),
            ("a.txt", b"<html>", "text/plain"),
        ];
        for (name, body, _) in files {
            file(&stage.src(), name, body, 100);
        }
        stage.ok("cp -r --part-size 5MiB SRC/ SPOT/");
        let kind = |key: &str| {
            let found = stage.ok(&format!("head --json SPOT/{key}")).summary();
            found["content_type"].as_str().unwrap_or_default().to_owned()
        };
        for (name, _, expected) in files {
            assert_eq!(kind(name), expected, "{name}");
        }
        stage.ok("cp --no-guess-mime-type SRC/page SPOT/plain");
        assert!(!kind("plain").starts_with("text/html"));
        stage.ok("cp --content-type text/x-own SRC/page SPOT/own");
        assert_eq!(kind("own"), "text/x-own");
        // A stream has no content yet when its object begins.
        stage.fed("pipe SPOT/stream", b"<html>").ok();
        assert_eq!(kind("stream"), "application/octet-stream");
        stage.fed("pipe SPOT/stream.html", b"<html>").ok();
        assert_eq!(kind("stream.html"), "text/html");
    });
}

/// Options with the path and value that `head --json` must then show.
const SAID: &[(&str, &str, &str)] = &[
    ("--content-type text/x-own", "/content_type", "text/x-own"),
    ("--content-encoding gzip", "/headers/content-encoding", "gzip"),
    ("--content-language de", "/headers/content-language", "de"),
    ("--content-disposition attachment", "/headers/content-disposition", "attachment"),
    ("--cache-control max-age=60", "/headers/cache-control", "max-age=60"),
    ("--metadata colour=red,shape=round", "/metadata/colour", "red"),
    ("--metadata colour=red --metadata shape=round", "/metadata/shape", "round"),
];

#[test]
fn headers_and_metadata_arrive() {
    on_servers(|stage| {
        file(&stage.src(), "small", b"x", 100);
        file(&stage.src(), "large", &content(1, 6 << 20), 100);
        for (options, path, expected) in SAID {
            for name in ["small", "large"] {
                stage.ok(&format!("cp --part-size 5MiB {options} SRC/{name} SPOT/{name}"));
                let found: Value = stage.ok(&format!("head --json SPOT/{name}")).summary();
                assert_eq!(found.pointer(path), Some(&(*expected).into()), "{options}: {found}");
            }
        }
        let line = "cp --expires 2030-01-31T12:00:00Z SRC/small SPOT/small";
        stage.ok(line);
        let found = stage.ok("head --json SPOT/small").summary();
        let expires = found.pointer("/headers/expires").and_then(Value::as_str);
        assert!(
            expires.is_some_and(|text| text.starts_with("Thu, 31 Jan 2030 12:00:00")),
            "{found}"
        );
    });
}

#[test]
fn classes_and_tags_are_taken() {
    // Which of them a server keeps is its own affair; none may fail on what it does not know.
    on_servers(|stage| {
        file(&stage.src(), "f", b"x", 100);
        for options in ["--storage-class STANDARD", "--tagging a=b&c=d"] {
            stage.ok(&format!("cp '{options}' SRC/f SPOT/f").replace("'", ""));
            assert_eq!(stage.place()[&b"f"[..]], b"x");
        }
    });
}

#[test]
fn existing_objects_are_not_replaced_on_request() {
    on_servers(|stage| {
        file(&stage.src(), "f", b"new", 100);
        stage.put("place/f", b"old");
        let run = stage.run("cp --if-none-match '*' SRC/f SPOT/f");
        assert_eq!(stage.place()[&b"f"[..]], b"old", "{run}");
        stage.ok("cp --if-none-match '*' SRC/f SPOT/g");
        assert_eq!(stage.place()[&b"g"[..]], b"new");
    });
}

#[test]
fn checksums_of_every_kind() {
    on_servers(|stage| {
        file(&stage.src(), "f", b"123456789", 100);
        for (name, expected) in [
            ("CRC64NVME", Some(crate::server::client::crc64nvme(b"123456789"))),
            ("CRC32C", Some("4waSgw==".to_owned())),
            ("CRC32", Some("y/Q5Jg==".to_owned())),
            ("SHA1", None),
            ("SHA256", Some("FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=".to_owned())),
        ] {
            stage.ok(&format!("cp --checksum-algorithm {name} SRC/f SPOT/{name}"));
            let found = stage.ok(&format!("head --json SPOT/{name}")).summary();
            let kept = found["checksums"][name].as_str().map(str::to_owned);
            assert!(expected.is_none() || kept == expected, "{name}: {found}");
            stage.ok(&format!("cp SPOT/{name} DST/{name}"));
        }
        stage.ok("cp --unsigned-payload SRC/f SPOT/unsigned");
        assert_eq!(stage.place()[&b"unsigned"[..]], b"123456789");
    });
}
