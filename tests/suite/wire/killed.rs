//! Signals: an interrupted run cleans up; a killed one leaves nothing that a later run takes for complete.

use crate::wire::server::{Stage, contents};
use rustix::process::Signal;

const LARGE: usize = 24 << 20;

/// Large files go in parts, more than a second in all.
const LINE: &str = "--part-size=5MiB --concurrency=2";

fn stage() -> Stage {
    let stage = Stage::new();
    stage.source("large", LARGE);
    for number in 0..10 {
        stage.source(&format!("s/{number}"), 300_000);
    }
    stage
}

#[test]
fn an_upload_that_is_asked_to_end() {
    let stage = stage();
    for (line, signal, code) in [
        (format!("sync -r {LINE} SRC/ s3://bkt/p/"), Signal::INT, 20),
        (format!("sync -r {LINE} SRC/ s3://bkt/p/"), Signal::TERM, 20),
        (format!("cp {LINE} SRC/large s3://bkt/p/large"), Signal::INT, 1),
        (format!("mv {LINE} SRC/large s3://bkt/p/large"), Signal::TERM, 1),
    ] {
        let server = stage.serve("--bandwidth 12MB");
        let begun = server.begin(&line);
        server.wait_for("UploadPart", 1);
        assert_eq!(server.uploads(), 1);
        let run = begun.end(signal);
        run.expect(code).says(&["interrupted"]);
        assert_eq!(server.uploads(), 0, "{line}");
        assert_eq!(stage.object("p/large"), None, "{line}");
        assert!(stage.src().join("large").exists(), "{line}");
        let source = contents(&stage.src());
        for (name, bytes) in source.iter().filter(|(name, _)| name.starts_with("s")) {
            let there = stage.object(&format!("p/{}", name.display()));
            assert!(there.is_none_or(|there| there == *bytes), "{line}: {name:?}");
        }
    }
}

#[test]
fn a_download_that_is_asked_to_end() {
    let stage = stage();
    stage.seed();
    for (line, signal, code) in [
        (format!("sync -r {LINE} s3://bkt/ DST/"), Signal::INT, 20),
        (format!("cp -r {LINE} s3://bkt/* DST/"), Signal::TERM, 1),
        (format!("mv {LINE} s3://bkt/large DST/"), Signal::INT, 1),
    ] {
        let server = stage.serve("--bandwidth 12MB");
        let begun = server.begin(&line);
        server.wait_for("GetObject", 1);
        std::thread::sleep(std::time::Duration::from_millis(200));
        let run = begun.end(signal);
        run.expect(code).says(&["interrupted"]);
        stage.target_has_only_whole_files();
        assert!(!stage.dst().join("large").exists(), "{line}");
        assert!(stage.object("large").is_some(), "{line}");
    }
    stage.serve("").run("sync -r s3://bkt/ DST/").ok();
    stage.target_is_source();
}

/// SIGKILL leaves no chance to clean up: but what has its name is whole, and the next run finds the
/// rest.
#[test]
fn a_download_that_is_killed() {
    let stage = stage();
    stage.seed();
    let server = stage.serve("--bandwidth 12MB");
    for wait_ms in [0, 150, 400] {
        let begun = server.begin(&format!("sync -r {LINE} s3://bkt/ DST/"));
        let so_far = server.succeeded("GetObject");
        server.wait_for("GetObject", so_far + 1);
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        begun.end(Signal::KILL).expect(137);
        let source = contents(&stage.src());
        for (name, bytes) in contents(&stage.dst()) {
            // Temporary files may be left, under names that say so.
            let is_temporary = name.to_string_lossy().contains(".hakobu");
            assert!(is_temporary || source.get(&name) == Some(&bytes), "{name:?} is not whole");
        }
    }
    drop(server);
    stage.serve("").run("sync -r s3://bkt/ DST/").ok();
    stage.target_is_source();
}

/// The same upwards: an object is there as a whole or not at all.
#[test]
fn an_upload_that_is_killed() {
    let stage = stage();
    let server = stage.serve("--bandwidth 12MB");
    let begun = server.begin(&format!("sync -r {LINE} SRC/ s3://bkt/p/"));
    server.wait_for("UploadPart", 1);
    begun.end(Signal::KILL).expect(137);
    assert_eq!(stage.object("p/large"), None);
    // A killed run leaves the upload; it can be found and removed.
    assert_eq!(server.uploads(), 1);
    server.run("mpu abort --all s3://bkt").ok();
    assert_eq!(server.uploads(), 0);
    drop(server);
    stage.serve("").run(&format!("sync -r {LINE} SRC/ s3://bkt/p/")).ok();
    assert!(contents(&stage.area.join("root/bkt/p")) == contents(&stage.src()));
}
