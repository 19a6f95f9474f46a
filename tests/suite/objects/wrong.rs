//! An error that affects the whole run is reported once, early, in one sentence.

use crate::common::case::{Run, run_fed};
use crate::objects::stage::{Stage, file, on_servers};
use crate::server::client::SECRET;
use std::time::{Duration, Instant};

/// Runs with other variables; it must fail soon, with one line that has one of these words.
#[track_caller]
fn fails(stage: &Stage, line: &str, more: &[(&str, &str)], words: &[&str]) {
    let mut command = stage.command(line);
    command.envs(more.iter().copied());
    let begun = Instant::now();
    let run: Run = run_fed(&mut command, b"x");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?} for {run}", begun.elapsed());
    assert!((1..=23).contains(&run.code), "{run}");
    assert_eq!(run.err().lines().count(), 1, "{run}");
    assert_eq!(run.out(), "", "{run}");
    let text = run.err();
    assert!(words.iter().any(|word| text.contains(word)), "none of {words:?} in {run}");
}

/// Every command that asks a server, with a place `AT` in it.
const COMMANDS: &[&str] = &[
    "sync -r SRC/ AT",
    "sync -r AT DST/",
    "sync -r AT SPOT/",
    "cp SRC/f0 AT",
    "cp AT/f0 DST/",
    "cp -r SRC/. AT",
    "mv SRC/f0 AT",
    "rm AT/f0",
    "rm -r AT",
    "ls AT",
    "du AT",
    "cat AT/f0",
    "pipe AT/f0",
    "head AT/f0",
    "mpu ls BUCKET",
    "verify SRC/ AT",
];

fn each(stage: &Stage, bucket: &str, more: &[(&str, &str)], words: &[&str]) {
    for number in 0..30 {
        file(&stage.src(), &format!("f{number}"), b"x", 100);
    }
    for line in COMMANDS {
        let at = format!("s3://{bucket}/at");
        let line = line.replace("BUCKET", &format!("s3://{bucket}")).replace("AT", &at);
        fails(stage, &line, more, words);
    }
    assert!(stage.src().join("f0").exists());
    assert_eq!(std::fs::read_dir(stage.dst()).unwrap().count(), 0);
}

#[test]
fn a_bucket_that_is_not_there() {
    on_servers(|stage| each(stage, "b-that-is-not-there", &[], &["no such bucket", "404"]));
}

#[test]
fn credentials_that_are_wrong() {
    on_servers(|stage| {
        // A HEAD has no body that says why, and versitygw answers 404 to strangers.
        each(
            stage,
            &stage.bucket,
            &[("AWS_ACCESS_KEY_ID", "nobody")],
            &["credentials", "403", "404"],
        );
        let wrong = format!("{SECRET}x");
        fails(stage, "ls BKT", &[("AWS_SECRET_ACCESS_KEY", &wrong)], &["secret"]);
    });
}

#[test]
fn nobody_at_the_port() {
    let stage = crate::objects::stage::stage();
    each(&stage, "bucket", &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")], &["127.0.0.1:1"]);
}

#[test]
fn objects_that_are_not_there() {
    on_servers(|stage| {
        stage.put("place/d/f", b"x");
        for line in ["cp SPOT/none DST/", "cat SPOT/none", "head SPOT/none", "mv SPOT/none DST/"] {
            fails(stage, line, &[], &["none"]);
        }
        fails(stage, "cp SPOT/d DST/", &[], &["-r"]);
        fails(stage, "cp SRC/none SPOT/", &[], &["none"]);
    });
}
