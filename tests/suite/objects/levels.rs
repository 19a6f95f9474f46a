//! `cat` of buckets, prefixes and wildcards; archived objects; values of options without effect.

use crate::common::case::{Run, run_fed};
use crate::objects::stage::{Stage, file, names, stage, tree};
use crate::server::client::Served;
use serde_json::Value;

#[test]
fn cat_reads_one_level_of_a_prefix_and_all_that_a_wildcard_matches() {
    let stage = stage();
    let printed = |line: &str| stage.ok(line).out();
    assert_eq!(printed("cat BKT"), "");
    assert_eq!(printed("cat BKT/"), "");
    for key in ["a", "b", "d/c", "d/e/f", "g"] {
        stage.put(key, key.as_bytes());
    }
    stage.put("m/", b"");
    for (line, expected) in [
        ("cat BKT", "abg"),
        ("cat BKT/ BKT/d/", "abgd/c"),
        ("cat BKT/d/e/", "d/e/f"),
        ("cat BKT/d/*", "d/cd/e/f"),
        ("cat BKT/*", "abd/cd/e/fg"),
        ("cat --exclude=b BKT", "ag"),
    ] {
        assert_eq!(printed(line), expected, "{line}");
    }
    for line in ["cat BKT/none/", "cat BKT/none*", "cat BKT/none"] {
        stage.run(line).expect(1).says(&["none"]);
    }
    stage.run("cat s3://no-such-bucket").expect(1).says(&["no-such-bucket"]);
    stage.run("cat --version-id x BKT").expect(2).says(&["--version-id goes with single objects"]);
}

/// Runs a command against a server of its own.
fn at(server: &Served, stage: &Stage, line: &str, input: &str) -> Run {
    let mut command = stage.command(line);
    command.env("AWS_ENDPOINT_URL", server.url());
    run_fed(&mut command, input.as_bytes())
}

#[test]
fn archived_objects_are_failures_or_skipped() {
    let stage = stage();
    let refuse =
        |op: &str| format!("--fault error:code=InvalidObjectState,status=403,op={op},key=old");
    let server = Served::start(&format!("s3 DIR {} {}", refuse("GetObject"), refuse("CopyObject")));
    let run = |line: &str| at(&server, &stage, line, "");
    run("mb s3://abc").ok();
    for name in ["new", "old"] {
        file(&stage.src(), name, name.as_bytes(), 100);
    }
    run("cp -r SRC/ s3://abc/p/").ok();
    let clear = || {
        std::fs::remove_dir_all(stage.dst()).unwrap();
        std::fs::create_dir(stage.dst()).unwrap();
    };
    for line in ["sync s3://abc/p/ DST/", "cp s3://abc/p/* DST/", "cp s3://abc/p/* s3://abc/q/"] {
        let refused = run(line);
        assert_ne!(refused.code, 0, "{refused}");
        refused.says(&["old", "restore it first"]);
        clear();
        let skipped = run(&format!("{line} --ignore-glacier-warnings --json"));
        assert_eq!(skipped.ok().summary()["skipped"], 1, "{skipped}");
        let made = names(&tree(&stage.dst()));
        assert!(line.ends_with("q/") || made == ["new"], "{line}: {made:?}");
        clear();
    }
    assert_eq!(run("ls --show-fullpath -R s3://abc/q/").out(), "s3://abc/q/new\n");
    run("mv --ignore-glacier-warnings s3://abc/p/* DST/").ok();
    assert_eq!(run("ls --show-fullpath -R s3://abc/p/").out(), "s3://abc/p/old\n");
    let line = format!("cp --ignore-glacier-warnings s3://abc/p/* {}/\n", stage.dst().display());
    at(&server, &stage, "run", &line).ok();
    run("cat --ignore-glacier-warnings s3://abc/p/new")
        .expect(2)
        .says(&["sync, cp and mv have it"]);
}

#[test]
fn options_without_effect_are_noted_and_their_values_checked() {
    let stage = stage();
    stage.put("k", b"body");
    for (line, note) in [
        ("sync --exact-timestamps BKT/ DST/", "--exact-timestamps (a download is left out only"),
        ("mv --validate-same-s3-paths BKT/k BKT/l", "--validate-same-s3-paths (source and target"),
        ("cp --force-glacier-transfer BKT/l DST/", "--force-glacier-transfer (archived objects"),
        ("ls --debug BKT", "--debug (--stat counts requests"),
        ("--log debug ls BKT", "--log (-v prints each action)"),
    ] {
        stage.run(line).ok().says(&["without effect here", note]);
    }
    for line in ["--log notexist ls BKT", "ls --log=notexist BKT"] {
        stage
            .run(line)
            .expect(2)
            .says(&["invalid --log 'notexist': none of trace, debug, info, error"]);
    }
    stage.fed("--log notexist run", b"ls\n").expect(2);
}

#[test]
fn failures_of_json_runs_are_json() {
    let stage = stage();
    let none = format!("s3://{}/none", stage.bucket);
    for (line, operation, source) in [
        ("ls --json BKT/none", "list", &*none),
        ("du --json BKT/none", "list", &none),
        ("head --json BKT/none", "look_at", &none),
        ("rm --json --raw BKT/none", "remove", &none),
        ("cp --json BKT/none DST/", "read", &none),
        ("rb --json s3://no-such-bucket", "remove_bucket", "s3://no-such-bucket"),
        (
            "bucket-version --json s3://no-such-bucket",
            "look_at_versioning_of",
            "s3://no-such-bucket",
        ),
        ("mpu ls --json s3://no-such-bucket", "list_uploads_of", "s3://no-such-bucket"),
        ("du --json SRC/none", "stat", "none"),
    ] {
        let run = stage.run(line);
        assert_ne!(run.code, 0, "{run}");
        let events = run.out();
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let problem = events.filter(|event| event["event"] == "problem").collect::<Vec<_>>();
        assert_eq!(problem.len(), 1, "{run}");
        assert_eq!(problem[0]["operation"], operation, "{run}");
        let found = problem[0]["source"].as_str().or(problem[0]["target"].as_str()).unwrap();
        assert!(found.ends_with(source), "{run}");
        let message = problem[0]["message"].as_str().unwrap();
        assert!(run.err().contains(message), "{run}");
    }
    let run = stage.run("cp -r --json s3://no-such-bucket/p/ DST/");
    let first = run.out().lines().next().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(first.unwrap()["event"], "error", "{run}");
}

#[test]
fn rules_that_leave_out_everything_are_named() {
    let stage = stage();
    stage.put("a.txt", b"x");
    stage.put("d/b.txt", b"x");
    file(&stage.src(), "d/e/f", b"x", 100);
    let all = "the filter rules leave out everything there";
    for (line, name, pattern) in [
        ("cp -r --exclude=*.txt BKT/ DST/", "a.txt", "*.txt"),
        ("sync --exclude=* BKT/ DST/", "a.txt", "*"),
        ("sync --exclude=/b.txt BKT/d/ DST/", "b.txt", "/b.txt"),
        ("cp --exclude=b* BKT/d/* DST/", "b.txt", "b*"),
        ("mv --filter-style=s5cmd --include=*.py BKT/* DST/", "a.txt", "*"),
        ("sync --exclude=/d/e/ SRC/ BKT/up/", "d/e/f", "/d/e/"),
        ("rm -r --exclude=*.txt BKT", "a.txt", "*.txt"),
        ("ls -R --exclude=*.txt BKT", "a.txt", "*.txt"),
        ("du --exclude=*.txt BKT", "a.txt", "*.txt"),
        ("cat --exclude=*.txt BKT", "a.txt", "*.txt"),
    ] {
        let run = stage.run(line);
        let named = format!("{all}: '{name}' by the pattern '{pattern}'");
        run.ok().says(&[&named]);
        assert_eq!(names(&stage.objects()), ["a.txt", "d/b.txt"], "{run}");
        assert!(tree(&stage.dst()).is_empty(), "{run}");
    }
    for line in [
        "cp -r --exclude=*.py BKT/ DST/",
        "sync --exclude=/a.txt BKT/ DST/",
        "sync --exclude=* --quiet BKT/ DST/",
        "ls -R --exclude=a.txt BKT",
        "sync --exclude=* AREA/empty/ BKT/up/",
    ] {
        std::fs::create_dir_all(stage.area.join("empty")).unwrap();
        let run = stage.ok(line);
        assert!(!run.err().contains(all), "{run}");
    }
}

#[test]
fn a_server_without_listobjectsv2_is_listed() {
    let stage = stage();
    for at in 0..1200 {
        stage.put(&format!("k{at:04}"), b"");
    }
    let asked = stage.asked(|| {
        let listed = stage.ok("ls --use-list-objects-v1 --show-fullpath BKT");
        assert_eq!(listed.out().lines().count(), 1200);
    });
    let asked = asked.unwrap();
    assert!(asked["ListObjects"] >= 2 && !asked.contains_key("ListObjectsV2"), "{asked:?}");
}

#[test]
fn keys_are_taken_literally_with_raw() {
    let stage = stage();
    stage.put("ab", b"other");
    stage.fed("pipe --raw BKT/a*", b"body").ok();
    assert_eq!(names(&stage.objects()), ["a*", "ab"]);
    assert_eq!(stage.ok("cat --raw BKT/a*").out(), "body");
    assert_eq!(stage.ok("cat BKT/a*").out(), "bodyother");
    assert_eq!(stage.ok("head --raw --json BKT/a*").summary()["bytes"], 4);
}
