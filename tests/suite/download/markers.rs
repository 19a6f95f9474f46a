//! Empty folders and their zero-byte marker objects, on request, in both directions.

use super::Stage;
use std::fs;

/// Relative paths of all folders below one, in order.
fn folders(top: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn empty_folders_cross_where_that_is_asked_for() {
    let stage = Stage::new("s3 DIR");
    let source = stage.target().join("source");
    fs::create_dir_all(source.join("empty")).unwrap();
    fs::create_dir_all(source.join("a/deep")).unwrap();
    fs::write(source.join("a/file"), "content").unwrap();
    for line in [
        "mb s3://bucket",
        "sync -a --dir-markers OUT/source/ s3://bucket/kept/",
        "sync -a OUT/source/ s3://bucket/plain/",
        "sync -a --dir-markers s3://bucket/kept/ OUT/kept/",
        // A marker is not a file and is not reported.
        "sync -a s3://bucket/kept/ OUT/files/",
        "sync -a --dir-markers s3://bucket/plain/ OUT/plain/",
    ] {
        let output = stage.run(line);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.is_empty(), "{line}: {told}");
    }
    let there = |name: &str| folders(&stage.target().join(name));
    assert_eq!(there("kept"), ["a", "a/deep", "empty"]);
    assert_eq!(there("files"), ["a"]);
    assert_eq!(there("plain"), ["a"]);
    assert_eq!(fs::read(stage.target().join("kept/a/file")).unwrap(), b"content");
}

#[test]
fn a_bucket_that_cannot_be_is_told_as_such() {
    let stage = Stage::new("null");
    for line in ["ls s3://b", "du s3://b", "rm s3://b/x", "cp s3://b/x OUT/"] {
        let output = stage.run(line);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !told.contains("none is given"), "{line}: {told}");
        assert!(told.contains("s3://b"), "{line}: {told}");
    }
}
