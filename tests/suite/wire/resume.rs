//! `--resume` after SIGKILL: transferred data are reused, unless either end or the record has changed.

use crate::wire::server::{Server, Stage, contents};
use rustix::process::Signal;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::SystemTime;

const SIZE: usize = 33 << 20;
const PART: usize = 5 << 20;
const PARTS: usize = SIZE.div_ceil(PART);
const UP: &str = "sync -r --resume --part-size=5MiB --concurrency=2 SRC/ s3://bkt/";
const DOWN: &str = "sync -r --resume --part-size=5MiB --concurrency=2 s3://bkt/ DST/";

/// The one record in the journal.
fn record(stage: &Stage) -> PathBuf {
    let names = std::fs::read_dir(stage.state()).unwrap().map(|name| name.unwrap().path());
    let records: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    assert_eq!(records.len(), 1, "{records:?}");
    records[0].clone()
}

/// Runs until two parts are recorded and kills; how many are.
fn kill(server: &Server<'_>, line: &str, operation: &str, signal: Signal) -> usize {
    let stage = server.stage;
    let begun = server.begin(line);
    server.wait_for(operation, 2);
    let recorded = || {
        let text = std::fs::read(record(stage)).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        record["record"]["parts"].as_array().map_or(0, Vec::len)
    };
    for _ in 0..2000 {
        if recorded() >= 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let code = if signal == Signal::KILL { 137 } else { 20 };
    begun.end(signal).expect(code);
    // Requests in flight at that moment end at the server as well.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let recorded = recorded();
    assert!((2..PARTS).contains(&recorded), "{recorded} parts are recorded");
    recorded
}

/// Nothing is left of what was remembered.
fn forgotten(stage: &Stage) {
    let left: Vec<_> = std::fs::read_dir(stage.state()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Kills an upload, lets `change` do something, runs again: how many parts had been recorded, and
/// how many were sent then.
fn up(signal: Signal, change: impl FnOnce(&Stage)) -> (usize, usize, usize) {
    let stage = Stage::new();
    stage.source("large", SIZE);
    let server = stage.serve("--bandwidth 20MB");
    let recorded = kill(&server, UP, "UploadPart", signal);
    assert_eq!(server.uploads(), 1);
    change(&stage);
    let start = SystemTime::now();
    server.run(UP).ok();
    assert!(stage.object("large") == std::fs::read(stage.src().join("large")).ok());
    forgotten(&stage);
    (recorded, server.succeeded_since("UploadPart", start), server.uploads())
}

#[test]
fn an_upload_goes_on() {
    // A run that is asked to end keeps the parts as well.
    for signal in [Signal::KILL, Signal::INT] {
        let (recorded, sent, left) = up(signal, |_| {});
        assert_eq!((sent, left), (PARTS - recorded, 0));
    }
}

#[test]
fn an_upload_of_a_file_that_changed_starts_anew() {
    let change = |stage: &Stage| {
        let file = std::fs::File::options().write(true).open(stage.src().join("large")).unwrap();
        file.write_all_at(b"changed", 100).unwrap();
    };
    let (_, sent, left) = up(Signal::KILL, change);
    assert_eq!((sent, left), (PARTS, 0));
}

#[test]
fn an_upload_without_a_readable_record_starts_anew() {
    let change = |stage: &Stage| {
        let path = record(stage);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    };
    let (_, sent, left) = up(Signal::KILL, change);
    // The owner of the first upload is unknown by now: it stays until `mpu abort`.
    assert_eq!((sent, left), (PARTS, 1));
}

#[test]
fn an_upload_that_the_server_has_forgotten_starts_anew() {
    let change = |stage: &Stage| {
        stage.serve("").run("mpu abort --all s3://bkt").ok();
    };
    let (_, sent, left) = up(Signal::KILL, change);
    assert_eq!((sent, left), (PARTS, 0));
}

/// A server whose first answer to `operation` crawls. An upload is killed once `is_done` says that
/// the work itself was done. (A record belongs to an endpoint: the next run asks the same server.)
fn killed_before_the_answer<'a>(
    stage: &'a Stage,
    operation: &str,
    is_done: impl Fn(&Server<'_>) -> bool,
) -> Server<'a> {
    let fault = format!("--fault slow:op={operation},rate=5,in=response,times=1");
    let server = stage.serve(&fault);
    let begun = server.begin(UP);
    for _ in 0..2000 {
        if is_done(&server) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(is_done(&server), "{operation} is never done");
    begun.end(Signal::KILL).expect(137);
    // Requests in flight at that moment end at the server as well.
    std::thread::sleep(std::time::Duration::from_millis(300));
    server
}

#[test]
fn an_upload_whose_id_never_arrived_is_not_left_behind() {
    let stage = Stage::new();
    stage.source("large", SIZE);
    let begun = |server: &Server<'_>| server.uploads() == 1;
    let server = killed_before_the_answer(&stage, "CreateMultipartUpload", begun);
    server.run(UP).ok();
    assert!(stage.object("large") == std::fs::read(stage.src().join("large")).ok());
    assert_eq!(server.uploads(), 0);
    forgotten(&stage);
}

#[test]
fn a_record_of_an_upload_that_is_complete_is_removed() {
    let stage = Stage::new();
    stage.source("large", SIZE);
    let complete = |_: &Server<'_>| stage.object("large").is_some();
    let server = killed_before_the_answer(&stage, "CompleteMultipartUpload", complete);
    let start = SystemTime::now();
    // The object is there: nothing is to be done, and nothing remembered.
    server.run(UP).ok();
    assert_eq!((server.succeeded_since("UploadPart", start), server.uploads()), (0, 0));
    forgotten(&stage);
}

/// The same downwards; also whether the target is the only file left there.
fn down(change: impl FnOnce(&Stage)) -> (usize, usize) {
    let stage = Stage::new();
    stage.source("large", SIZE);
    stage.seed();
    let server = stage.serve("--bandwidth 20MB");
    let recorded = kill(&server, DOWN, "GetObject", Signal::KILL);
    let names = contents(&stage.dst());
    let is_kept = |name: &PathBuf| name.to_string_lossy().starts_with(".hakobu-kept-");
    assert!(names.len() == 1 && names.keys().all(is_kept), "{:?}", names.keys());
    change(&stage);
    let start = SystemTime::now();
    server.run(DOWN).ok();
    stage.target_is_source();
    forgotten(&stage);
    (recorded, server.succeeded_since("GetObject", start))
}

/// The file of the unfinished download.
fn kept(stage: &Stage) -> std::fs::File {
    let name = contents(&stage.dst()).into_keys().next().unwrap();
    std::fs::File::options().write(true).open(stage.dst().join(name)).unwrap()
}

#[test]
fn a_download_goes_on() {
    let (recorded, fetched) = down(|_| {});
    assert_eq!(fetched, PARTS - recorded);
}

#[test]
fn a_download_of_an_object_that_changed_starts_anew() {
    let change = |stage: &Stage| {
        let mut bytes = std::fs::read(stage.src().join("large")).unwrap();
        bytes[3] ^= 1;
        std::fs::write(stage.src().join("large"), &bytes).unwrap();
        stage.seed();
    };
    assert_eq!(down(change).1, PARTS);
}

#[test]
fn a_download_without_a_readable_record_starts_anew() {
    let change = |stage: &Stage| std::fs::write(record(stage), b"{\"schema\":1,").unwrap();
    assert_eq!(down(change).1, PARTS);
}

/// A range altered meanwhile is found by its checksum, and only that range is fetched again.
#[test]
fn a_download_whose_file_was_altered() {
    let change = |stage: &Stage| {
        let text = std::fs::read(record(stage)).unwrap();
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let number = record["record"]["parts"][0]["number"].as_u64().unwrap();
        kept(stage).write_all_at(b"altered", (number - 1) * PART as u64 + 9).unwrap();
    };
    let (recorded, fetched) = down(change);
    assert_eq!(fetched, PARTS - recorded + 1);
}

#[test]
fn a_download_whose_file_was_cut() {
    let (_, fetched) = down(|stage| kept(stage).set_len(1000).unwrap());
    assert_eq!(fetched, PARTS);
}
