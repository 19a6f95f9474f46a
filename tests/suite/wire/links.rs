//! Symlinks that are kept, with `--checksum`; and `verify`, which follows them and ends on request.

use crate::wire::server::{Stage, counts};
use rustix::process::Signal;
use std::os::unix::fs::symlink;

#[test]
fn kept_links_are_compared_by_their_text() {
    let stage = Stage::new();
    stage.source("file", 1000);
    symlink("file", stage.src().join("link")).unwrap();
    symlink("/nowhere", stage.src().join("dangling")).unwrap();
    let server = stage.serve("");
    server.run("sync -rl --json SRC/ s3://bkt/").ok();
    server.run("sync -rl s3://bkt/ DST/").ok();
    for line in ["sync -rlc --json SRC/ s3://bkt/", "sync -rlc --json s3://bkt/ DST/"] {
        let run = server.run(line);
        run.ok();
        counts(&run, &[("files", 0), ("failed", 0), ("skipped", 3)]);
    }
    // As long as before, but another one.
    std::fs::remove_file(stage.src().join("link")).unwrap();
    symlink("elif", stage.src().join("link")).unwrap();
    let run = server.run("sync -rlc --json SRC/ s3://bkt/");
    run.ok();
    counts(&run, &[("failed", 0), ("skipped", 2)]);
    assert_eq!(stage.object("link").unwrap(), b"elif");
    let run = server.run("sync -rlc --json s3://bkt/ DST/");
    run.ok();
    counts(&run, &[("failed", 0), ("skipped", 2)]);
    let link = std::fs::read_link(stage.dst().join("link")).unwrap();
    assert_eq!(link.to_str(), Some("elif"));
}

#[test]
fn verify_looks_through_links_on_either_side() {
    let stage = Stage::new();
    let bytes = stage.source("file", 1000);
    std::fs::write(stage.src().join("link"), &bytes).unwrap();
    stage.seed();
    std::fs::remove_file(stage.src().join("link")).unwrap();
    symlink("file", stage.src().join("link")).unwrap();
    let server = stage.serve("");
    for line in ["verify SRC s3://bkt/", "verify s3://bkt/ SRC"] {
        server.run(line).ok();
    }
    std::fs::write(stage.src().join("file"), vec![7; 1000]).unwrap();
    for line in ["verify SRC s3://bkt/", "verify s3://bkt/ SRC"] {
        let run = server.run(line);
        run.expect(1);
        assert_eq!(run.out().matches("differs: ").count(), 2, "{run}");
    }
}

#[test]
fn verify_ends_when_it_is_asked_to() {
    let stage = Stage::new();
    for number in 0..40 {
        stage.source(&format!("f{number:02}"), 100_000);
    }
    let server = stage.serve("");
    server.run("sync -r --checksum-algorithm=SHA256 SRC/ s3://bkt/").ok();
    let server = stage.serve("--latency 300ms");
    let begun = server.begin("verify -j 1 SRC s3://bkt/");
    server.wait_for("HeadObject", 2);
    begun.end(Signal::INT).expect(2).says(&["stopped"]);
    assert!(server.succeeded("HeadObject") < 30);
}
