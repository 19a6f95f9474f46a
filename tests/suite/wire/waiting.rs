//! Slow, silent and missing servers.

use crate::common::soon;
use crate::wire::server::{Stage, contents, counts, retries};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const TIMES: &str = "--cli-read-timeout=0.7 --cli-connect-timeout=2";

#[test]
fn silence_is_given_up_and_tried_again() {
    let stage = Stage::new();
    stage.source("small", 100_000);
    stage.source("large", 11 << 20);
    stage.seed();
    for (fault, line) in [
        ("silent:op=GetObject,key=small,times=1", "sync -r s3://bkt/ DST/"),
        ("silent:op=GetObject,key=large,times=1", "sync -r -I s3://bkt/ DST/"),
        ("silent:op=ListObjectsV2,times=1", "sync -r -I s3://bkt/ DST/"),
        ("silent:op=UploadPart,times=1", "sync -r SRC/ s3://bkt/p/"),
        ("silent:op=PutObject,times=1", "sync -r SRC/ s3://bkt/q/"),
    ] {
        let server = stage.serve(&format!("--fault {fault}"));
        let begun = Instant::now();
        let run = server.run(&format!("{line} --json --part-size=5MiB {TIMES}"));
        assert_eq!(run.code, 0, "{fault}: {run}");
        counts(&run, &[("files", 2), ("failed", 0)]);
        assert!(retries(&run) >= 1, "{fault}: {run}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{fault}: {:?}", begun.elapsed());
        assert_eq!(server.uploads(), 0, "{fault}");
    }
    stage.target_is_source();
    for prefix in ["p", "q"] {
        let there = contents(&stage.area.join("root/bkt").join(prefix));
        assert!(there == contents(&stage.src()), "{prefix}");
    }
}

#[test]
fn silence_without_end_is_a_failure() {
    let stage = Stage::new();
    stage.source("small", 100_000);
    stage.source("other", 5);
    stage.seed();
    let server = stage.serve("--fault silent:op=GetObject,key=small");
    let line = format!("sync -r --json {TIMES} s3://bkt/ DST/");
    let run = server.run_with(&line, &[("AWS_MAX_ATTEMPTS", "2")]);
    run.expect(23);
    counts(&run, &[("files", 1), ("failed", 1), ("retries", 1)]);
    assert!(run.out().contains("no data for 0.7 s"), "{run}");
    assert_eq!(stage.target_has_only_whole_files(), 1);
}

/// A slow but moving transfer is waited for, longer than a stalled one. (Upload data buffered by the kernel
/// look like a stall, hence the larger object.)
#[test]
fn slowness_is_no_failure() {
    let stage = Stage::new();
    for (name, size, rate, down) in
        [("down", 300_000, 200_000, true), ("up", 24_000_000, 8_000_000, false)]
    {
        stage.source(name, size);
        let server = match down {
            true => {
                stage.seed();
                stage.serve(&format!("--fault slow:op=GetObject,rate={rate}"))
            }
            false => stage.serve(&format!("--fault slow:op=PutObject,key=up,rate={rate}")),
        };
        let begun = Instant::now();
        let line = match down {
            true => "cp s3://bkt/down DST/ --cli-read-timeout=0.7",
            false => "cp SRC/up s3://bkt/up --cli-read-timeout=1.5",
        };
        let run = server.run(&format!("{line} --json"));
        run.ok();
        counts(&run, &[("files", 1), ("retries", 0)]);
        let least_ms = if down { 1000 } else { 2000 };
        assert!(begun.elapsed() > Duration::from_millis(least_ms), "{:?}", begun.elapsed());
    }
    assert_eq!(std::fs::read(stage.dst().join("down")).ok(), stage.object("down"));
    assert!(std::fs::read(stage.src().join("up")).ok() == stage.object("up"));
}

/// The second source arrives while the server does not answer the listing of the first one.
#[test]
fn a_source_that_waits_does_not_hold_up_another() {
    let stage = Stage::new();
    for name in ["a/1", "b/1", "b/2"] {
        stage.source(name, 100);
    }
    stage.seed();
    // The first request asks whether there is anything below the prefix.
    let server = stage.serve("--fault silent:op=ListObjectsV2,query=prefix=a,skip=1");
    let begun = server.begin("sync -r --cli-read-timeout=80 s3://bkt/a s3://bkt/b DST/");
    assert!(soon(|| ["b/1", "b/2"].iter().all(|name| stage.dst().join(name).exists())));
    begun.end(Signal::TERM);
    assert!(contents(&stage.dst().join("b")) == contents(&stage.src().join("b")));
    assert_eq!(server.succeeded("ListObjectsV2"), 3, "two questions, and the listing of b");
}

/// After an interruption, what is under way gets two seconds, and no message says that it got more.
#[test]
fn an_interruption_does_not_wait_for_a_silent_server() {
    let stage = Stage::new();
    stage.source("large", 12 << 20);
    let server = stage.serve("--fault silent:op=CompleteMultipartUpload");
    let begun = server.begin("sync -r --part-size=5MiB SRC/ s3://bkt/");
    server.wait_for("UploadPart", 3);
    // The request to complete the upload follows the last part.
    std::thread::sleep(Duration::from_secs(1));
    let run = begun.end(Signal::TERM);
    run.expect(20).says(&["s3://bkt/large", "no data for 2 s", "interrupted"]);
}

#[test]
fn a_server_that_is_not_there() {
    let stage = Stage::new();
    stage.source("a", 10);
    std::fs::write(stage.dst().join("extra"), "extra").unwrap();
    let mut server = stage.serve("");
    server.kill();
    for (line, code) in [
        ("sync -r --delete s3://bkt/ DST/", &[11, 23][..]),
        ("sync -r SRC/ s3://bkt/", &[11, 23]),
        ("cp SRC/a s3://bkt/a", &[1]),
        ("mv SRC/a s3://bkt/a", &[1]),
        ("ls s3://bkt/", &[1, 2]),
        ("rm s3://bkt/a", &[1]),
        ("cat s3://bkt/a", &[1]),
    ] {
        let begun = Instant::now();
        let run = server.run_with(line, &[("AWS_MAX_ATTEMPTS", "2")]);
        assert!(code.contains(&run.code), "{run}");
        run.says(&["no server is listening"]);
        assert!(begun.elapsed() < Duration::from_secs(10), "{line}: {:?}", begun.elapsed());
    }
    assert!(stage.dst().join("extra").exists() && stage.src().join("a").exists());
}

/// The server dies while objects are on their way.
#[test]
fn a_server_that_dies() {
    let stage = Stage::new();
    for number in 0..30 {
        stage.source(&format!("f{number:02}"), 200_000 + number);
    }
    stage.seed();
    let mut server = stage.serve("--bandwidth 2MB");
    let begun = server.begin(&format!("sync -r -j 2 {TIMES} s3://bkt/ DST/"));
    server.wait_for("GetObject", 6);
    server.kill();
    let run = begun.wait();
    assert!([11, 23].contains(&run.code), "{run}");
    let whole = stage.target_has_only_whole_files();
    assert!((3..30).contains(&whole), "{whole}");
    stage.serve("").run("sync -r s3://bkt/ DST/").ok();
    stage.target_is_source();
}
