//! Rates and priorities of commands that read or remove: they hold, and the results are the same.

use crate::common::{program, side_by_side};
use crate::tools::place::Place;
use crate::wire::server::Stage;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TREE: &str =
    "mkdir -p t/{a,b}; for f in {1..60}; do echo $f > t/a/$f; echo $f > t/b/$f; done";

fn took(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

#[test]
fn entries_are_handled_at_the_rate_of_operations() {
    // 122 entries at 60 a second take about two seconds.
    let place = Place::new();
    place.sh(&format!("{TREE}; cp -a t copy"));
    for (line, code) in [
        ("du -ab --iops-limit=60 t", 0),
        ("verify --iops-limit=60 t copy", 0),
        ("rm -r -j 8 --iops-limit=60 t", 0),
    ] {
        let du = line.starts_with("du").then(|| place.other("du -ab t", b"").out());
        let took_s = took(|| {
            let run = place.run(line);
            run.expect(code);
            if let Some(du) = du {
                let sorted = |text: &str| {
                    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                    lines.sort();
                    lines
                };
                assert_eq!(sorted(&run.out()), sorted(&du));
            }
        });
        assert!(took_s > 1.6, "{took_s} s: {line}");
    }
    assert!(!place.path().join("t").exists());
    // The questions of -i take none of it, each removal does.
    let took_s =
        took(|| drop(place.run_with("rm -ri --iops-limit=20 copy/a", &[], &b"y\n".repeat(62))));
    assert!(took_s > 2.0, "{took_s} s");
    assert_eq!(place.sh("ls copy"), "b\n");
}

#[test]
fn content_is_read_at_the_rate_of_bytes() {
    let place = Place::new();
    // One large file that workers share, and several.
    place.sh("mkdir a; head -c 9M /dev/urandom > a/big; for f in 1 2 3; do head -c 1M /dev/urandom > a/$f; done; cp -a a b");
    let took_s = took(|| {
        place.run("verify --bwlimit=6m a b").ok();
    });
    assert!(took_s > 1.7, "{took_s} s");
    place.sh("printf x >> b/3; touch -r a/3 b/3");
    place.run("verify --bwlimit=60m a b").expect(1);
    let stage = Stage::new();
    let server = stage.serve("");
    let content = stage.source("big", 4 << 20);
    server.run(&format!("cp {} s3://bkt/big", stage.src().join("big").display())).ok();
    let took_s = took(|| {
        let run = server.run("cat --bwlimit=2m --part-size=1 s3://bkt/big");
        assert!(run.ok().stdout == content, "contents differ");
    });
    assert!(took_s > 1.7, "{took_s} s");
}

#[test]
fn priorities_are_those_that_were_asked_for() {
    let place = Place::new();
    place.sh(&format!("{TREE}; cp -a t copy; cp -a t gone"));
    side_by_side(["du t", "verify t copy", "rm -r gone"], |line| {
        let mut command = Command::new(program());
        command.args(line.split(' ').chain(["--nice=7", "--ionice=idle", "--iops-limit=40"]));
        command.current_dir(place.path()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let pid = child.id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // proc_pid_stat(5): nice is field 19, 16 behind the name.
        let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().to_owned();
        let class = place.sh(&format!("ionice -p {pid}"));
        assert!(child.wait().unwrap().success(), "{line}");
        assert_eq!((nice.as_str(), class.as_str()), ("7", "idle\n"), "{line}");
    });
}
