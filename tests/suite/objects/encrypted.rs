//! `--sse-c`: objects that the server encrypts with a key of the caller. The server of the tests checks keys as S3
//! does it, and its ETags of such objects look like MD5s and are none.

use crate::objects::stage::{Stage, content, file, stage, tree};
use std::path::Path;

/// A key as it is typed, and its base64.
const KEY: &str = "an AES-256 key of 32 bytes, all.";
const KEY64: &str = "YW4gQUVTLTI1NiBrZXkgb2YgMzIgYnl0ZXMsIGFsbC4=";
const OTHER: &str = "OTEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// Options with a key in a file.
fn own(stage: &Stage) -> String {
    let path = stage.area.join("key");
    std::fs::write(&path, KEY).unwrap();
    format!("--sse-c AES256 --sse-c-key fileb://{}", path.display())
}

fn fill(stage: &Stage) -> Vec<u8> {
    let large = content(7, 12_000_000);
    file(&stage.src(), "small", b"some content", 100);
    file(&stage.src(), "d/empty", b"", 100);
    file(&stage.src(), "d/large", &large, 100);
    large
}

/// Whether any file below a folder has a key in one of its forms.
fn holds_key(dir: &Path) -> bool {
    let has =
        |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    tree(dir).iter().any(|(name, bytes)| {
        name.as_slice() != b"key" && (has(bytes, KEY) || has(bytes, KEY64) || has(bytes, OTHER))
    })
}

#[test]
fn up_and_down_with_a_key() {
    for (part, more) in [
        ("--part-size=5MiB", ""),
        ("--part-size=5MiB --checksum-algorithm=MD5", ""),
        ("", "--checksum-algorithm=SHA256"),
    ] {
        let stage = stage();
        let large = fill(&stage);
        let key = own(&stage);
        stage.counts(&format!("sync -rt {part} {more} {key} SRC/ SPOT/"), 3, 0);
        // All forms of the key are one key.
        for form in [key.clone(), format!("--sse-c --sse-c-key={KEY64}")] {
            stage.counts(&format!("sync -rt {part} {form} SRC/ SPOT/"), 0, 3);
            stage.counts(&format!("sync -rc {part} {form} SRC/ SPOT/"), 0, 3);
            stage.counts(&format!("sync -rt {part} {form} SPOT/ DST/"), 3, 0);
            assert_eq!(tree(&stage.src()), tree(&stage.dst()));
            assert!(stage.ok(&format!("cat {form} SPOT/d/large")).stdout == large);
            let head = stage.ok(&format!("head --json {form} SPOT/small")).summary();
            assert_eq!(head["bytes"], 12, "{head}");
            std::fs::remove_dir_all(stage.dst()).unwrap();
            std::fs::create_dir(stage.dst()).unwrap();
        }
        stage.fed(&format!("pipe {key} SPOT/piped"), &large).ok();
        stage.ok(&format!("cp {key} SPOT/piped DST/"));
        assert!(tree(&stage.dst())[&b"piped"[..]] == large);
        stage.ok(&format!("mv {key} SPOT/ DST/moved/"));
        assert_eq!(tree(&stage.dst()).len(), 5);
        assert!(!stage.ok("ls -R BKT").out().contains("place/"));
    }
}

#[test]
fn another_key_or_none_reads_nothing() {
    let stage = stage();
    fill(&stage);
    let key = own(&stage);
    stage.ok(&format!("cp -r --part-size=5MiB {key} SRC/ SPOT/"));
    let wrong = format!("--sse-c --sse-c-key {OTHER}");
    for options in ["", &wrong] {
        for line in [
            "cp OPTIONS SPOT/small DST/",
            "cp -r OPTIONS SPOT/ DST/",
            "mv OPTIONS SPOT/ DST/",
            "sync -r OPTIONS SPOT/ DST/",
            "cat OPTIONS SPOT/small",
            "head OPTIONS SPOT/small",
        ] {
            let run = stage.run(&line.replace("OPTIONS", options));
            assert_ne!(run.code, 0, "{run}");
            assert_eq!(tree(&stage.dst()).len(), 0, "{run}");
            assert!(!run.err().contains(OTHER), "{run}");
        }
    }
    // Nor does a key fit an object without one.
    stage.put("place/plain", b"plain");
    stage.run(&format!("cp {key} SPOT/plain DST/")).expect(1);
    assert_eq!(stage.ok("ls SPOT/").out().lines().count(), 3);
}

#[test]
fn copies_between_keys() {
    let stage = stage();
    let large = fill(&stage);
    let key = own(&stage);
    stage.ok(&format!("cp -r --part-size=5MiB {key} SRC/ SPOT/"));
    let source = format!("--sse-c-copy-source AES256 --sse-c-copy-source-key={KEY64}");
    let other = format!("--sse-c --sse-c-key {OTHER}");
    // To another key, to the same key, to none; and back.
    stage.counts(&format!("cp -r {source} {other} SPOT/ BKT/other/"), 3, 0);
    stage.counts(&format!("cp -r {source} {key} SPOT/ BKT/same/"), 3, 0);
    stage.counts(&format!("cp -r {source} SPOT/ BKT/plain/"), 3, 0);
    stage.counts(&format!("sync -r {key} BKT/plain/ BKT/again/"), 3, 0);
    for (options, place) in [(&*other, "other"), (&key, "same"), ("", "plain"), (&key, "again")] {
        assert!(stage.ok(&format!("cat {options} BKT/{place}/d/large")).stdout == large, "{place}");
    }
    stage.run(&format!("cp -r {other} SPOT/ BKT/none/")).expect(1);
    stage.counts(&format!("mv {source} {other} SPOT/ BKT/moved/"), 3, 0);
    assert!(!stage.ok("ls -R BKT").out().contains("place/"));
    assert_eq!(stage.ok(&format!("cat {other} BKT/moved/small")).out(), "some content");
    // Through this machine, as between two endpoints.
    let url = stage.server.unwrap().url().replace("127.0.0.1", "localhost");
    let target = format!("--destination-endpoint-url {url}");
    let from = format!("--sse-c-copy-source --sse-c-copy-source-key {OTHER}");
    stage.counts(&format!("cp -r {target} {from} {key} BKT/moved/ BKT/relayed/"), 3, 0);
    assert!(stage.ok(&format!("cat {key} BKT/relayed/d/large")).stdout == large);
}

#[test]
fn keys_are_neither_shown_nor_stored() {
    let stage = stage();
    fill(&stage);
    let key = format!("--sse-c --sse-c-key {KEY64}");
    for line in [
        format!("sync -rtvv --resume --json --part-size=5MiB {key} SRC/ SPOT/"),
        format!("cp -rv {key} SPOT/ DST/"),
        format!("cp -v --sse-c=AES256 --sse-c-key={KEY64}x SPOT/small DST/"),
        format!("cp -v --sse-c={KEY64} SPOT/small DST/"),
        format!("cat {key} SPOT/none"),
        format!("ls {key} SPOT/"),
        format!("rm --sse-c-key={KEY64} SPOT/none"),
        format!("cp {key} --sse=AES256 SPOT/small DST/"),
        format!("sync -r {key} SRC/ SPOT/ --cluster local:1 --run AREA/run"),
        format!("cluster plan -r {key} SRC/ SPOT/ --run AREA/run"),
    ] {
        let run = stage.run(&line);
        assert!(!(run.out() + &run.err()).contains(KEY64), "{run}");
    }
    let run = stage.run(&format!("cluster plan -r {key} SRC/ SPOT/ --run AREA/run2"));
    assert_ne!(run.code, 0, "{run}");
    run.says(&["--sse-c"]);
    let lines = format!(
        "cp {key} s3://{0}/place/small {1}/one\ncp --sse-c-key={KEY64} s3://{0}/place/small {1}/two\n",
        stage.bucket,
        stage.dst().display()
    );
    let run = stage.fed("run -n -", lines.as_bytes());
    assert!(run.ok().out().contains("***") && !run.out().contains(KEY64), "{run}");
    let run = stage.fed("run -", lines.as_bytes());
    assert!(!(run.ok().out() + &run.err()).contains(KEY64), "{run}");
    assert!(!holds_key(stage.area.path()));
}

#[test]
fn a_key_needs_a_secret_way() {
    let stage = stage();
    file(&stage.src(), "f", b"x", 100);
    let key = format!("--sse-c --sse-c-key {KEY64}");
    for url in ["http://example.invalid", "http://10.255.255.1:9000"] {
        for line in ["cp SRC/f BKT/f", "cat BKT/f", "head BKT/f", "sync -r SRC/ BKT/", "pipe BKT/f"]
        {
            let run = stage.run(&format!("{line} --endpoint-url {url} {key}"));
            assert_ne!(run.code, 0, "{run}");
            run.says(&["https"]);
        }
    }
    for (line, why) in [
        ("cp --sse-c SRC/f BKT/f", "--sse-c-key"),
        ("cat --sse-c BKT/f", "--sse-c-key"),
        ("cp --sse-c-key short SRC/f BKT/f", "32 bytes"),
        ("cp --sse-c-key fileb://none SRC/f BKT/f", "cannot read 'none'"),
        ("verify --sse-c-key x SRC/ BKT/", "take a key"),
    ] {
        let run = stage.run(line);
        assert_ne!(run.code, 0, "{run}");
        run.says(&[why]);
    }
}
