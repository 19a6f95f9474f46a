//! Downloads with the real binary from `hakobu serve null`, whose objects have generated content with known
//! checksums, and which injects faults.

use crate::common::area::Area;
use crate::server::client::Served;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A server and a folder to download into.
pub struct Stage {
    /// The server.
    pub server: Served,
    /// Holds the folder and the state of unfinished downloads.
    pub area: Area,
}

impl Stage {
    /// Starts `hakobu serve` with these words.
    pub fn new(serve: &str) -> Stage {
        let stage = Stage { server: Served::start(serve), area: Area::tmpfs() };
        std::fs::create_dir(stage.target()).unwrap();
        stage
    }

    /// The folder to download into.
    pub fn target(&self) -> PathBuf {
        self.area.join("target")
    }

    /// `hakobu` with these words; `OUT` is the folder.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(crate::common::program());
        let out = self.target().to_str().unwrap().to_owned();
        command.args(line.split_whitespace().map(|word| word.replace("OUT", &out)));
        command.arg("--endpoint-url").arg(self.server.url());
        command.env("AWS_ACCESS_KEY_ID", crate::server::client::ACCESS);
        command.env("AWS_SECRET_ACCESS_KEY", crate::server::client::SECRET);
        command.env("AWS_REGION", "us-east-1").env("XDG_STATE_HOME", self.area.join("state"));
        command
    }

    /// Runs it to its end.
    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs it; it must succeed.
    pub fn ok(&self, line: &str) {
        let run = self.run(line);
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
    }

    /// Content of a key of that size, read by another client than the one under test.
    pub fn content(&self, size: u64) -> Vec<u8> {
        let answer = self.server.ask("GET", &format!("/bkt/plain.size-{size}"), "", b"");
        assert_eq!(answer.body.len() as u64, size);
        answer.body
    }

    /// Names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.target()).unwrap();
        let mut names: Vec<_> =
            names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

// Paths and attributes of downloaded files: folders, times, obstacles.

/// Every object of the null server was changed last at this time.
const MODIFIED_S: i64 = 1_704_067_200;

#[test]
fn a_second_run_does_nothing() {
    let stage = Stage::new("null --keys 300 --object-size 4096");
    stage.ok("sync -r s3://bkt/ OUT/");
    let names = stage.names();
    assert!(!names.is_empty());
    let before = stage.server.log(1).len();
    let run = stage.run("sync -r --json s3://bkt/ OUT/");
    let out = String::from_utf8_lossy(&run.stdout).into_owned();
    let summary: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["files"], &summary["skipped"]), (&0.into(), &300.into()), "{summary}");
    let log = stage.server.log(before + 1);
    assert!(log[before..].iter().all(|line| line["operation"] != "GetObject"));
}

#[test]
fn files_have_the_objects_time_and_the_usual_mode() {
    let stage = Stage::new("null");
    for size in [0, 4096, 9_000_000] {
        stage.ok(&format!("cp s3://bkt/a.size-{size} OUT/{size}"));
        let meta = std::fs::metadata(stage.target().join(size.to_string())).unwrap();
        assert_eq!((meta.len(), meta.mtime()), (size, MODIFIED_S));
        assert_eq!(meta.mode() & 0o7133, 0, "{:o}", meta.mode());
    }
}

#[test]
fn a_symlink_is_replaced_and_never_written_through() {
    let stage = Stage::new("null");
    let other = stage.area.join("other");
    std::fs::write(&other, b"safe").unwrap();
    for size in [4096, 9_000_000] {
        let link = stage.target().join(format!("a.size-{size}"));
        symlink(&other, &link).unwrap();
        stage.ok(&format!("sync s3://bkt/a.size-{size} OUT/"));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read(&other).unwrap(), b"safe");
    }
}

#[test]
fn a_symlink_in_the_way_is_not_followed() {
    let stage = Stage::new("null --keys 3");
    let elsewhere = stage.area.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    stage.ok("sync -r s3://bkt/ OUT/");
    let first = stage.names().remove(0);
    let path = stage.target().join(&first);
    assert!(path.is_dir(), "the server's keys have folders");
    std::fs::remove_dir_all(&path).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let run = stage.run("sync -r s3://bkt/ OUT/");
    assert_eq!(run.status.code(), Some(23), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

// Empty folders and their zero-byte marker objects, on request, in both directions.

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

// Response bodies that break, end early or are wrong: requested again, never left incomplete.

/// Sizes of an object that is received whole and of one that comes in ranges.
const SIZES: [u64; 2] = [300_000, 20_000_000];

#[test]
fn what_breaks_is_gone_on_with() {
    for size in SIZES {
        let stage = Stage::new(
            "null --fault reset:op=GET,key=reset,after=100000,times=2 \
             --fault truncate:op=GET,key=cut,after=70000,times=2 \
             --fault corrupt:op=GET,key=wrong,at=5000,times=1",
        );
        let good = stage.content(size);
        for key in ["reset", "cut", "wrong"] {
            stage.ok(&format!("cp s3://bkt/{key}.size-{size} OUT/{key}"));
            assert!(std::fs::read(stage.target().join(key)).unwrap() == good, "{key} {size}");
        }
        assert_eq!(stage.names(), ["cut", "reset", "wrong"]);
    }
}

#[test]
fn what_stays_wrong_does_not_appear() {
    for size in SIZES {
        let stage = Stage::new("null --fault corrupt:op=GET,key=wrong,at=5000");
        std::fs::write(stage.target().join("old"), b"what was there").unwrap();
        for name in ["new", "old"] {
            let run = stage.run(&format!("cp s3://bkt/wrong.size-{size} OUT/{name}"));
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            assert_eq!(run.status.code(), Some(1), "{said}");
            assert!(said.contains("CRC64NVME"), "{said}");
        }
        assert_eq!(stage.names(), ["old"], "{size}");
        assert_eq!(std::fs::read(stage.target().join("old")).unwrap(), b"what was there");
    }
}

// Interrupted downloads: nothing is left, or with `--resume` data for a later run.

const SIZE: u64 = 190_000_000;
const PART_BYTES: u64 = 5 << 20;

/// Starts, waits until at least `bytes` have been written beside the target, and interrupts.
fn interrupt(stage: &Stage, line: &str, bytes: u64) {
    let mut child = stage.command(line).spawn().unwrap();
    let begun = Instant::now();
    let written = || {
        let dir = std::fs::read_dir(stage.target()).unwrap();
        let sizes = dir.map(|entry| entry.unwrap().metadata().map_or(0, |meta| meta.len()));
        sizes.sum::<u64>()
    };
    while written() < bytes && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The first ranges end after 2.6 seconds.
    std::thread::sleep(Duration::from_secs(3));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let sent = Instant::now();
    let status = child.wait().unwrap();
    assert!(!status.success());
    assert!(sent.elapsed() < Duration::from_secs(10), "took {:?} to stop", sent.elapsed());
}

#[test]
fn a_stopped_download_leaves_nothing() {
    let stage = Stage::new("null --fault slow:key=slow,rate=2000000,in=response");
    interrupt(&stage, &format!("sync s3://bkt/slow.size-{SIZE} OUT/"), 1 << 20);
    assert_eq!(stage.names(), [""; 0]);
}

/// A copy between paths was killed: a download into the same folder does not take its half-written
/// file for one that is there.
#[test]
fn a_half_written_file_of_a_killed_copy_is_replaced() {
    let stage = Stage::new("null");
    let (name, size) = ("f.size-6000000", 6_000_000);
    let source = stage.area.join("src");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join(name), vec![b'x'; size]).unwrap();
    crate::common::grow::set_mtime(&source.join(name), 1_000_000_000, 0);
    let mut copy = std::process::Command::new(crate::common::program());
    copy.args(["sync", "-a", "-j1", "--bwlimit=1000"]).arg(source.join("")).arg(stage.target());
    let mut child = copy.env("XDG_STATE_HOME", stage.area.join("state")).spawn().unwrap();
    let written = || stage.target().join(name).metadata().map_or(0, |file| file.len());
    let begun = Instant::now();
    while written() == 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert!((1..size as u64).contains(&written()));
    let run = stage.run(&format!("sync --ignore-existing s3://bkt/{name} OUT/"));
    assert!(run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("is unfinished"), "{run:?}");
    assert!(std::fs::read(stage.target().join(name)).unwrap() == stage.content(size as u64));
    // Files written after the killed run stay.
    std::thread::sleep(Duration::from_secs(7));
    std::fs::write(stage.target().join(name), "mine").unwrap();
    stage.ok(&format!("sync --ignore-existing s3://bkt/{name} OUT/"));
    assert_eq!(written(), 4);
}

#[test]
fn finished_ranges_are_not_fetched_again_unless_they_changed() {
    let stage = Stage::new("null --fault slow:key=slow,rate=2000000,in=response");
    let line = format!("sync --resume --part-size=5MiB s3://bkt/slow.size-{SIZE} OUT/");
    interrupt(&stage, &line, 1 << 20);
    let names = stage.names();
    assert!(matches!(&names[..], [name] if name.starts_with(".hakobu-kept-")), "{names:?}");
    let state = stage.area.join("state/hakobu");
    let record = std::fs::read_dir(&state).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.extension().is_some_and(|end| end == "json").then_some(path)
    });
    let record = std::fs::read(record.expect("a record")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let parts = record["record"]["parts"].as_array().unwrap();
    assert!(parts.len() >= 2, "{} parts were finished", parts.len());
    // One of them is not any more what it was.
    let kept = stage.target().join(&names[0]);
    let number = parts[0]["number"].as_u64().unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(kept).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"####", (number - 1) * PART_BYTES).unwrap();
    drop(file);
    let gets = || stage.server.log(1).iter().filter(|line| line["method"] == "GET").count() as u64;
    let before = gets();
    stage.ok(&line);
    let expected = SIZE.div_ceil(PART_BYTES) - parts.len() as u64 + 1;
    // The listing of the source may be a GET, too.
    assert!((expected..=expected + 1).contains(&(gets() - before)), "{expected}");
    let name = format!("slow.size-{SIZE}");
    assert_eq!(stage.names(), [name.as_str()]);
    assert!(std::fs::read(stage.target().join(&name)).unwrap() == stage.content(SIZE));
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0);
}
