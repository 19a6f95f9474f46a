//! Plans from an S3 Inventory, which the tests write as S3 does.

use super::Stage;
use crate::objects::server::{embedded, encode};
use crate::objects::stage::tree as files;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

const SCHEMA: &str =
    "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag";

fn fed(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().stdout
}

/// Rows of what a bucket holds, in the reverse order of their keys.
fn rows(bucket: &str) -> Vec<String> {
    let listed = embedded().ask("GET", &format!("/{bucket}?encoding-type=url&list-type=2"), b"");
    let keys = listed.all("Key");
    let (sizes, times) = (listed.all("Size"), listed.all("LastModified"));
    let rows = keys.iter().zip(&sizes).zip(&times).map(|((key, size), time)| {
        format!("\"{bucket}\",\"{key}\",\"v1\",\"true\",\"false\",\"{size}\",\"{time}\",\"e\"")
    });
    rows.rev().collect()
}

/// An inventory: its manifest, and its files by their names.
fn inventory(bucket: &str, parts: &[&[String]]) -> (Value, Vec<(String, Vec<u8>)>) {
    let mut files = Vec::new();
    let mut named = Vec::new();
    for (number, rows) in parts.iter().enumerate() {
        let packed = fed("gzip", &["-c"], format!("{}\n", rows.join("\n")).as_bytes());
        let md5 = String::from_utf8(fed("md5sum", &[], &packed)).unwrap();
        let key = format!("inv/{bucket}/all/data/part{number}.csv.gz");
        named.push(json!({"key": key, "size": packed.len(), "MD5checksum": md5[..32]}));
        files.push((key, packed));
    }
    let manifest = json!({
        "sourceBucket": bucket, "destinationBucket": "arn:aws:s3:::other", "version": "2016-11-30",
        "creationTimestamp": "1700000000000", "fileFormat": "CSV", "fileSchema": SCHEMA,
        "files": named,
    });
    (manifest, files)
}

/// Writes it as `aws s3 sync` brings it: `NAME/DATE/manifest.json` and `NAME/data/`.
fn write(place: &Path, (manifest, files): &(Value, Vec<(String, Vec<u8>)>)) {
    let (dated, data) = (place.join("2024-02-03T01-00Z"), place.join("data"));
    std::fs::create_dir_all(&dated).unwrap();
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(dated.join("manifest.json"), manifest.to_string()).unwrap();
    for (key, content) in files {
        std::fs::write(data.join(key.rsplit('/').next().unwrap()), content).unwrap();
    }
}

const MANIFEST: &str = "inv/2024-02-03T01-00Z/manifest.json";

fn filled(name: &str) -> Stage {
    let stage = Stage::with_bucket(name);
    for key in ["p/a", "p/b c+d,\"e", "p/d/\u{e4}", "p/d.x", "p/z", "q/outside"] {
        embedded().put(&stage.bucket, key.as_bytes(), format!("content of {key}").as_bytes());
    }
    stage
}

#[test]
fn a_plan_has_what_the_inventory_names() {
    let stage = filled("inventory");
    let mut all = rows(&stage.bucket);
    let old = |key: &str, latest: &str, marker: &str| {
        let time = "2020-01-01T00:00:00.000Z";
        let bucket = &stage.bucket;
        format!("\"{bucket}\",\"{key}\",\"v0\",\"{latest}\",\"{marker}\",\"\",\"{time}\",\"\"")
    };
    all.push(old("p/a", "false", "false"));
    all.push(old("p/removed", "true", "true"));
    // An object that came after the inventory.
    embedded().put(&stage.bucket, b"p/later", b"not in the inventory");
    let (one, two) = all.split_at(3);
    let made = inventory(&stage.bucket, &[one, two]);
    write(&stage.area.join("inv"), &made);
    let before = embedded().log(&stage.bucket).unwrap().len();
    let plan = format!("cluster plan -r --inventory={MANIFEST} --run RUN BKT/p/ DST");
    let run = stage.ok(&plan);
    run.says(&["5 objects below the source", "1 object outside of it", "2 older versions"]);
    assert_eq!(stage.plan()["entries"], 5);
    let asked = embedded().log(&stage.bucket).unwrap();
    let listed = asked[before..].iter().filter(|line| {
        // One key is asked for, to see that the prefix is there.
        let query = line["query"].as_str().unwrap_or_default();
        query.contains("list-type=2") && !query.contains("max-keys=1")
    });
    assert_eq!(listed.count(), 0, "{asked:?}");
    stage.workers(2);
    assert!(!stage.dst().join("later").exists() && stage.dst().join("d/\u{e4}").exists());
    assert!(stage.results().iter().all(|done| done["changed"] == 0 && done["failed"] == 0));
    stage.ok("cluster collect RUN");
    let mut expected = super::store::below(&stage, "p/");
    assert_eq!(files(&stage.dst()), expected);
    // The same inventory in a bucket.
    let (mut manifest, files_of) = made;
    for (key, content) in &files_of {
        embedded().put(&stage.bucket, key.as_bytes(), content);
    }
    manifest["destinationBucket"] = format!("arn:aws:s3:::{}", stage.bucket).into();
    embedded().put(&stage.bucket, b"inv/manifest.json", manifest.to_string().as_bytes());
    std::fs::remove_dir_all(stage.run()).unwrap();
    std::fs::remove_dir_all(stage.dst()).unwrap();
    stage.ok("cluster plan -r --inventory=BKT/inv/manifest.json --run RUN BKT/p/ DST");
    assert_eq!(stage.plan()["entries"], 5);
    stage.workers(1);
    expected.remove(&b"later"[..]);
    assert_eq!(files(&stage.dst()), expected);
    // In one command, to another prefix; what the inventory does not know is brought by collect.
    std::fs::remove_dir_all(stage.run()).unwrap();
    stage.ok(&format!("sync -r --cluster=local:2 --inventory={MANIFEST} BKT/p/ BKT/copy/"));
    assert_eq!(super::store::below(&stage, "copy/"), super::store::below(&stage, "p/"));
}

#[test]
fn objects_that_changed_since_are_left_to_collect() {
    let stage = filled("inventory-old");
    let made = inventory(&stage.bucket, &[&rows(&stage.bucket)]);
    write(&stage.area.join("inv"), &made);
    embedded().put(&stage.bucket, b"p/a", b"another object by now");
    let gone = embedded().ask("DELETE", &format!("/{}/p/z", stage.bucket), b"");
    assert_eq!(gone.status, 204);
    stage.ok(&format!("cluster plan -r --inventory={MANIFEST} --run RUN BKT/p/ DST"));
    stage.ok("cluster work RUN");
    assert!(!stage.dst().join("a").exists() && stage.dst().join("d.x").exists());
    let problems = format!("{:?}", stage.results());
    assert!(problems.contains("it has changed since the plan was made"), "{problems}");
    stage.ok("cluster collect RUN");
    assert_eq!(files(&stage.dst()), super::store::below(&stage, "p/"));
}

#[test]
fn an_inventory_that_cannot_be_trusted_is_not_used() {
    let stage = filled("inventory-bad");
    let good = rows(&stage.bucket);
    let place = stage.area.join("inv");
    type Made = (Value, Vec<(String, Vec<u8>)>);
    let refused = |what: &str, code: i32, why: &str, change: &dyn Fn(&mut Made)| {
        let mut made = inventory(&stage.bucket, &[&good]);
        change(&mut made);
        let _ = std::fs::remove_dir_all(&place);
        write(&place, &made);
        let run = stage.go(&format!("cluster plan -r --inventory={MANIFEST} --run RUN BKT/p/ DST"));
        assert!(run.code == code && run.err().contains(why), "{what}: {run}");
        assert!(!stage.run().exists(), "{what}");
    };
    let with_rows = |made: &mut Made, rows: &[String]| *made = inventory(&stage.bucket, &[rows]);
    refused("another checksum", 11, "its MD5 checksum is not that of its manifest", &|made| {
        let last = made.1[0].1.len() - 1;
        made.1[0].1[last] ^= 1;
    });
    refused("cut off", 11, "and its manifest says", &|made| {
        made.1[0].1.pop();
    });
    refused("not there", 11, "neither beside its manifest", &|made| made.1.clear());
    refused("another bucket", 1, "it is one of bucket 'other'", &|made| {
        made.0["sourceBucket"] = "other".into();
    });
    refused("a column less", 1, "it has no column Size", &|made| {
        made.0["fileSchema"] = "Bucket, Key, LastModifiedDate".into();
    });
    refused("fewer columns than rows have", 11, "and the manifest names 4", &|made| {
        made.0["fileSchema"] = "Bucket, Key, Size, LastModifiedDate".into();
    });
    refused("another form", 1, "reading Parquet files is not supported", &|made| {
        made.0["fileFormat"] = "Parquet".into();
    });
    refused("no gzip", 11, "row 1", &|made| {
        let plain = format!("{}\n", good.join("\n")).into_bytes();
        let md5 = String::from_utf8(fed("md5sum", &[], &plain)).unwrap();
        made.0["files"][0]["size"] = plain.len().into();
        made.0["files"][0]["MD5checksum"] = md5[..32].into();
        made.1[0].1 = plain;
    });
    refused("a row of another bucket", 11, "it is of bucket 'foreign'", &|made| {
        let mut rows = good.clone();
        rows[2] = rows[2].replacen(&stage.bucket, "foreign", 1);
        with_rows(made, &rows);
    });
    refused("a row without a size", 11, "is not a size", &|made| {
        let mut rows = good.clone();
        rows.push(format!(
            "\"{}\",\"p/x\",\"\",\"true\",\"false\",\"\",\"2020-01-01T00:00:00Z\",\"\"",
            stage.bucket
        ));
        with_rows(made, &rows);
    });
    // Two rows for one key end the listing: what comes after them is left to collect.
    let mut twice = good.clone();
    twice.push(twice.iter().find(|row| row.contains("\"p/a\"")).unwrap().clone());
    let _ = std::fs::remove_dir_all(&place);
    write(&place, &inventory(&stage.bucket, &[&twice]));
    let run = stage.go(&format!("cluster plan -r --inventory={MANIFEST} --run RUN BKT/p/ DST"));
    run.expect(23).says(&["the listing names 'a' twice"]);
    stage.workers(1);
    stage.ok("cluster collect RUN");
    assert_eq!(files(&stage.dst()), super::store::below(&stage, "p/"));
    std::fs::remove_dir_all(stage.run()).unwrap();
    std::fs::remove_dir_all(stage.dst()).unwrap();
    // A key that leads out of the target is not a file there.
    let mut out = good.clone();
    out.push(good[0].replace(&encode(b"q/outside"), "p/../../escaped"));
    let _ = std::fs::remove_dir_all(&place);
    write(&place, &inventory(&stage.bucket, &[&out]));
    stage.go(&format!("cluster plan -r --inventory={MANIFEST} --run RUN BKT/p/ DST")).expect(23);
    stage.workers(1);
    stage.ok("cluster collect RUN");
    assert!(!stage.area.join("escaped").exists());
    // Options that exclude it.
    std::fs::write(stage.area.join("list"), "a\n").unwrap();
    std::fs::remove_dir_all(stage.run()).unwrap();
    for (line, why) in [
        (
            format!("cluster plan -r --inventory={MANIFEST} --run RUN SRC/ BKT/p/"),
            "needs one source",
        ),
        (
            format!("cluster plan -r --inventory={MANIFEST} --run RUN BKT/p DST"),
            "a slash at its end",
        ),
        (
            format!("cluster plan --files-from=list --inventory={MANIFEST} --run RUN BKT/p/ DST"),
            "cannot be used with --files-from",
        ),
        (format!("sync -r --inventory={MANIFEST} BKT/p/ DST"), "go with --cluster"),
        (format!("sync -r --target-inventory={MANIFEST} SRC/ BKT/p/"), "go with --cluster"),
        (
            format!("cluster plan -r --target-inventory={MANIFEST} --run RUN BKT/p/ DST"),
            "needs a target in S3",
        ),
        (
            format!("cluster plan -r --target-inventory={MANIFEST} --run RUN SRC BKT/p/"),
            "needs a source with a slash at its end",
        ),
        (
            format!(
                "cluster plan --files-from=list --target-inventory={MANIFEST} --run RUN SRC/ BKT/p/"
            ),
            "--target-inventory cannot be used with --files-from",
        ),
    ] {
        stage.go(&line).expect(1).says(&[why]);
    }
}

#[test]
fn an_inventory_of_the_target_replaces_its_listing_and_is_believed_in_nothing() {
    let stage = Stage::with_bucket("inventory-target");
    let put = |key: &str, content: &str| {
        embedded().put(&stage.bucket, key.as_bytes(), content.as_bytes());
    };
    // Files are older than all objects, or newer.
    let src = |name: &str, is_newer: bool| {
        let path = stage.src().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("content of {name}")).unwrap();
        let (now, apart) = (SystemTime::now(), Duration::from_secs(600));
        let mtime = if is_newer { now + apart } else { now - apart };
        File::options().write(true).open(&path).unwrap().set_modified(mtime).unwrap();
    };
    for name in ["same", "gone", "new", "newer"] {
        src(name, false);
    }
    for name in ["d/changed", "unlisted"] {
        src(name, true);
    }
    for name in ["same", "gone", "extraneous", "back"] {
        put(&format!("t/{name}"), &format!("content of {name}"));
    }
    put("t/d/changed", "an older state");
    put("other", "outside");
    write(&stage.area.join("inv"), &inventory(&stage.bucket, &[&rows(&stage.bucket)]));
    // What happened after the inventory.
    put("t/unlisted", "written by another program");
    put("t/newer", "newer than the source, and longer than it");
    let removed = embedded().ask("DELETE", &format!("/{}/t/gone", stage.bucket), b"");
    assert_eq!(removed.status, 204);
    src("back", false);
    let before = embedded().log(&stage.bucket).unwrap().len();
    let plan = format!(
        "cluster plan -r --update --delete --target-inventory={MANIFEST} --run RUN SRC/ BKT/t"
    );
    stage.ok(&plan).says(&["5 objects below the target", "1 object outside of it"]);
    let asked = embedded().log(&stage.bucket).unwrap();
    let lists = |line: &&Value| {
        line["query"].as_str().unwrap_or_default().contains("list-type=2")
            && line["method"] == "GET"
    };
    assert_eq!(asked[before..].iter().filter(lists).count(), 0, "{asked:?}");
    // `same`, `gone` and `back` are as the inventory says.
    assert_eq!(stage.plan()["entries"], 4);
    stage.workers(2);
    let there = || super::store::below(&stage, "t/");
    let after = there();
    let of = |name: &str| after.get(name.as_bytes()).map(|it| format!("{it:?}"));
    assert!(of("new").is_some() && of("extraneous").is_some() && of("gone").is_none());
    let content =
        |key: &str| embedded().ask("GET", &format!("/{}/t/{key}", stage.bucket), b"").body;
    let newer = b"newer than the source, and longer than it";
    assert_eq!(content("newer"), newer, "--update holds for what the inventory lacks");
    assert_eq!(content("unlisted"), b"content of unlisted");
    assert_eq!(content("d/changed"), b"content of d/changed");
    // What the workers left, and what the inventory had wrong, is right after collect.
    stage.ok("cluster collect RUN");
    assert_eq!(content("newer"), newer);
    assert_eq!(content("gone"), b"content of gone");
    assert!(!there().contains_key(&b"extraneous"[..]) && there().contains_key(&b"back"[..]));
}
