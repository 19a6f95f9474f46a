//! A run knows its own names: what it made is not replaced by another of its sources, what it still has to move is not
//! written over, what lies in a source is not removed, and rules hold for what is named.

use crate::common::program;
use crate::objects::stage::{Stage, file, names, on_servers, stage, tree};
use crate::server::client::Served;
use std::process::Command;
use std::time::{Duration, Instant};

fn fill(stage: &Stage) {
    for (name, body) in [("x/f", "first"), ("y/f", "the second"), ("y/g", "other")] {
        let _ = std::fs::remove_dir_all(stage.src());
        stage.put(&format!("place/{name}"), body.as_bytes());
    }
    for (name, body) in [("x/f", "first"), ("y/f", "the second"), ("y/g", "other")] {
        file(&stage.src(), name, body.as_bytes(), 100);
    }
}

fn at<'a>(objects: &'a crate::objects::stage::Tree, key: &str) -> &'a [u8] {
    objects.get(key.as_bytes()).map_or(b"", Vec::as_slice)
}

const JUST_CREATED: &str = "will not overwrite just-created";

#[test]
fn the_second_name_is_refused_as_gnu_does() {
    for line in [
        "mv SRC/x/f SRC/y/f BKT/t/",
        "cp SRC/x/f SRC/y/f BKT/t/",
        "cp -t BKT/t/ SRC/x/f SRC/y/f",
        "cp --files-from=LIST BKT/t/",
        "mv SPOT/x/f SPOT/y/f BKT/t/",
        "mv SPOT/x/* SPOT/y/* BKT/t/",
        "cp SPOT/x/f* SPOT/y/* BKT/t/",
        "mv SPOT/x/f SPOT/y/f DST/t/",
        "cp -j1 SPOT/x/* SPOT/y/f DST/t/",
    ] {
        let stage = stage();
        fill(&stage);
        let list = format!("{0}/x/f\n{0}/y/f\n", stage.src().display());
        std::fs::write(stage.area.join("list"), list).unwrap();
        let run = stage.run(line);
        run.expect(1).says(&[JUST_CREATED, "t/f' with '", "y/f'"]);
        let up = line.contains("SRC") || line.contains("LIST");
        let down = line.contains("DST");
        let made = if down { tree(&stage.dst()) } else { stage.objects() };
        assert_eq!(at(&made, "t/f"), b"first", "{run}");
        let second = if up { tree(&stage.src()) } else { stage.place() };
        assert_eq!(at(&second, "y/f"), b"the second", "{run}");
    }
    // The same one twice is no other one.
    let stage = stage();
    fill(&stage);
    stage.ok("cp SRC/x/f SRC/x/f BKT/t/").says(&["more than once"]);
    stage.run("mv SRC/y/g SRC/y/g BKT/t/").expect(1);
    stage.ok("mv -n SRC/x/f SRC/y/f BKT/n/");
    assert_eq!((at(&stage.objects(), "n/f"), tree(&stage.src()).len()), (&b"first"[..], 1));
}

#[test]
fn merged_folders() {
    on_servers(|stage| {
        for (line, code, expected) in [
            ("cp -r SRC/x/. SRC/y/. BKT/t/", 0, "the second"),
            ("cp -r SRC/x/ SRC/y/f BKT/t/", 0, "the second"),
            ("cp -r SRC/y/f SRC/x/ BKT/t/", 0, "first"),
            ("cp -r SPOT/x/ SPOT/y/ BKT/t/", 0, "the second"),
            ("cp -r SPOT/x/ SPOT/y/ DST/t/", 0, "the second"),
            ("mv SRC/x/ SRC/y/ BKT/t/", 1, "first"),
            ("mv SPOT/x/ SPOT/y/ BKT/t/", 1, "first"),
            ("mv SPOT/x/ SPOT/y/ DST/t/", 1, "first"),
            ("sync -r SRC/x/ SRC/y/ BKT/t/", 0, "first"),
            ("sync -a SRC/x/ SRC/y/ BKT/t/", 0, "first"),
            ("sync -r SRC/x/f SRC/y/f BKT/t/", 0, "first"),
            ("sync -r SPOT/x/ SPOT/y/ BKT/t/", 0, "first"),
            ("sync -r SPOT/x/ SPOT/y/ DST/t/", 0, "first"),
            ("sync -r --remove-source-files SRC/x/ SRC/y/ BKT/t/", 0, "first"),
            ("sync -r --remove-source-files SPOT/x/ SPOT/y/ DST/t/", 0, "first"),
        ] {
            fill(stage);
            let run = stage.run(line);
            run.expect(code);
            let down = line.contains("DST");
            let made = if down { tree(&stage.dst()) } else { stage.objects() };
            assert_eq!(at(&made, "t/f"), expected.as_bytes(), "{run}");
            if line.contains("SRC/y/ ") || line.contains("SPOT/y/ ") {
                assert_eq!(at(&made, "t/g"), b"other", "{run}");
            }
            let local = line.contains("SRC");
            let left = if local { tree(&stage.src()) } else { stage.place() };
            assert_eq!(at(&left, "y/f"), b"the second", "{run}");
            if code == 1 {
                run.says(&[JUST_CREATED, "y/f'"]);
            }
            if line.contains("--remove") || code == 1 {
                assert_eq!(left.len(), 1, "{run}");
            } else if line.starts_with("sync") {
                let skipped = if line.contains("y/f") { 2 } else { 3 };
                stage.counts(line, 0, skipped);
            }
            stage.run("rm -rf BKT/t/");
            let _ = std::fs::remove_dir_all(stage.dst().join("t"));
        }
    });
}

#[test]
fn what_is_still_to_be_moved_is_not_written_over() {
    on_servers(|stage| {
        for (line, code, left) in [
            ("mv BKT/d/ BKT/", 1, &["d/d/d/f", "d/d/f", "f"][..]),
            ("mv BKT/d/* BKT/", 1, &["d/d/d/f", "d/d/f", "f"]),
            ("sync -r --remove-source-files BKT/d/ BKT/", 23, &["d/d/d/f", "d/d/f", "f"]),
            ("mv BKT/d/d/f BKT/d/f BKT/d/", 1, &["d/d/d/f", "d/d/f", "d/f"]),
            ("mv BKT/d/ BKT/d/sub/", 1, &["d/d/d/f", "d/d/f", "d/f"]),
            ("mv -j1 BKT/d/d/d/f BKT/d/d/", 0, &["d/d/f", "d/f"]),
            ("mv --source-endpoint-url=LOCALHOST BKT/d/ BKT/", 1, &["d/d/d/f", "d/d/f", "f"]),
        ] {
            stage.run("rm -rf BKT/");
            for key in ["d/f", "d/d/f", "d/d/d/f"] {
                stage.put(key, key.as_bytes());
            }
            let url = stage.server.unwrap().url().replace("127.0.0.1", "localhost");
            let run = stage.run(&line.replace("LOCALHOST", &url));
            run.expect(code);
            assert_eq!(names(&stage.objects()), left, "{run}");
            if code != 0 && !line.contains("d/d/f BKT/d/f") {
                run.says(&["cannot move", "a source that this run is still to move"]);
            }
        }
    });
}

#[test]
fn what_lies_in_a_source_is_not_extraneous() {
    on_servers(|stage| {
        for delete in ["--delete", "--delete-before", "--delete-after", "--delete-excluded"] {
            stage.run("rm -rf BKT/");
            for key in ["d/a", "d/e/b", "d/secret", "old"] {
                stage.put(key, key.as_bytes());
            }
            stage.ok(&format!("sync -r {delete} --exclude=secret BKT/d/ BKT/"));
            let expected = ["a", "d/a", "d/e/b", "d/secret", "e/b"];
            assert_eq!(names(&stage.objects()), expected, "{delete}");
        }
    });
    // A file beside a folder: its target is not extraneous in the folder's.
    let stage = stage();
    for (delete, removes) in [
        ("--delete", ""),
        ("--delete-after", ""),
        ("--delete-before", ""),
        ("--delete", " --remove-source-files"),
        ("--delete-after", " --remove-source-files"),
    ] {
        file(&stage.src(), "x/f", b"file", 100);
        file(&stage.src(), "y/g", b"other", 100);
        stage.put("place/f", b"before");
        stage.put("place/old", b"old");
        stage.ok(&format!("sync -r {delete}{removes} SRC/y/ SRC/x/f SPOT/"));
        assert_eq!(names(&stage.place()), ["f", "g"], "{delete}{removes}");
        assert_eq!(at(&stage.place(), "f"), b"file");
        file(&stage.dst(), "f", b"before", 100);
        stage.put("q/z", b"z");
        stage.ok(&format!("sync -r {delete} BKT/q/ SPOT/f DST/"));
        assert_eq!(names(&tree(&stage.dst())), ["f", "z"], "{delete}");
    }
}

#[test]
fn rules_hold_for_what_is_named() {
    for (line, made) in [
        ("cp SRC/a.txt SRC/b.key BKT/t/ --exclude=*.key", &["a.txt"][..]),
        ("mv SRC/a.txt SRC/b.key BKT/t/ --exclude=*.key", &["a.txt"]),
        ("mv SRC/b.key BKT/t/ --exclude=*.key", &[]),
        ("mv SRC/b.key BKT/t/ --filter-style=aws --exclude=*.key", &[]),
        ("mv SRC/b.key BKT/t/ --filter-style=s5cmd --exclude=*.key", &[]),
        ("mv SRC/b.key BKT/t/new --exclude=/b.key", &[]),
        ("sync -a SRC/a.txt SRC/b.key BKT/t/ --exclude=*.key", &["a.txt"]),
        ("sync -a --remove-source-files SRC/b.key BKT/t/ --exclude=b*", &[]),
        ("sync -a SRC BKT/t/ --exclude=src", &[]),
        ("cp SPOT/a.txt SPOT/b.key BKT/t/ --exclude=*.key", &["a.txt"]),
        ("mv SPOT/b.key BKT/t/ --exclude=*.key", &[]),
        ("cp SPOT/a.txt SPOT/b.key DST/t/ --exclude=*.key", &["a.txt"]),
        ("mv SPOT/b.key DST/t/ --exclude=*.key", &[]),
        ("mv --flatten SPOT/b.key DST/t/ --exclude=*.key", &[]),
        ("cp SPOT/b.key DST/t/new --filter-style=aws --exclude=*.key", &[]),
        ("sync SPOT/b.key DST/t/ --filter-style=s5cmd --exclude=*.key", &[]),
        ("sync SPOT/b.key DST/t/ --include=*.key --exclude=*", &["b.key"]),
    ] {
        let stage = stage();
        for name in ["a.txt", "b.key"] {
            file(&stage.src(), name, name.as_bytes(), 100);
            stage.put(&format!("place/{name}"), name.as_bytes());
        }
        let run = stage.ok(line);
        let found = match line.contains("DST") {
            true => tree(&stage.dst()),
            false => stage.objects(),
        };
        let below = found.keys().filter_map(|name| name.strip_prefix(b"t/"));
        let below: Vec<_> = below.map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
        assert_eq!(below, made, "{run}");
        let left = if line.contains("SRC") { tree(&stage.src()) } else { stage.place() };
        assert!(left.contains_key(&b"b.key"[..]), "{run}");
        if made.is_empty() {
            run.says(&["the filter rules leave it out"]);
        }
    }
}

#[test]
fn lines_of_a_run_know_each_other() {
    let stage = stage();
    fill(&stage);
    file(&stage.src(), "b.key", b"secret", 100);
    file(&stage.src(), "y/h", b"more", 100);
    let lines = |text: &str| {
        let text = text.replace("SRC", stage.src().to_str().unwrap());
        let text = text.replace("DST", stage.dst().to_str().unwrap());
        stage.fed("run", text.replace("BKT", &format!("s3://{}", stage.bucket)).as_bytes())
    };
    let run =
        lines("mv SRC/x/f BKT/t/\nmv SRC/y/f BKT/t/f\ncp SRC/y/g BKT/t/\ncp SRC/y/h BKT/t/f\n");
    run.expect(1).says(&["line 2: ", "line 4: ", JUST_CREATED]);
    assert_eq!(
        (at(&stage.objects(), "t/f"), at(&stage.objects(), "t/g")),
        (&b"first"[..], &b"other"[..])
    );
    assert_eq!(names(&tree(&stage.src())), ["b.key", "y/f", "y/g", "y/h"]);
    let run = lines("mv BKT/place/x/* DST/\nmv BKT/place/y/* DST/\n");
    run.expect(1).says(&["line 2: ", JUST_CREATED]);
    assert_eq!(at(&tree(&stage.dst()), "f"), b"first");
    assert_eq!(at(&stage.place(), "y/f"), b"the second");
    // What one line is to move is not written over by another one.
    stage.put("a", b"the old a");
    let run = lines("mv BKT/place/y/f BKT/a\nmv BKT/a BKT/c\n");
    run.expect(1).says(&["line 1: ", "a source that this run is still to move"]);
    assert_eq!(at(&stage.objects(), "c"), b"the old a");
    assert_eq!(at(&stage.place(), "y/f"), b"the second");
    lines("mv --exclude '*.key' SRC/b.key BKT/t/\n").ok();
    lines("mv --exclude '*.key' SRC/b.* BKT/t/\n").ok();
    assert_eq!(at(&tree(&stage.src()), "b.key"), b"secret");
    // Others are not in each other's way.
    lines("cp SRC/y/f BKT/u/f\ncp SRC/y/g BKT/u/g\ncp SRC/y/g BKT/u/f-\ncp SRC/y/g BKT/u/ff\n")
        .ok();
}

/// What a killed copy left is removed by the next one of any kind.
#[test]
fn a_killed_copy_leaves_nothing_to_the_next_one() {
    let stage = stage();
    let server = Served::start("s3 DIR --bandwidth 40m");
    let command = |line: &str| {
        let mut command = stage.command(line);
        command.env("AWS_ENDPOINT_URL", server.url());
        command
    };
    let run = |line: &str| crate::common::case::run_fed(&mut command(line), b"");
    let strays = || {
        let all = tree(&stage.dst()).into_keys();
        all.filter(|name| name.windows(8).any(|part| part == b".hakobu-")).count()
    };
    for name in ["a", "d/b"] {
        let body = crate::objects::stage::content(7, 10 << 20);
        file(&stage.src(), name, &body, 100);
    }
    run("mb s3://abc").ok();
    run("cp -r SRC/ s3://abc/p/").ok();
    for (killed, next) in [
        ("cp -r s3://abc/p/ DST/", "cp -r s3://abc/p/ DST/"),
        ("cp s3://abc/p/a s3://abc/p/d/b DST/", "cp s3://abc/p/a DST/"),
        ("sync s3://abc/p/a DST/", "sync s3://abc/p/a DST/"),
    ] {
        std::fs::create_dir_all(stage.dst().join("d")).unwrap();
        // Not under `timeout`, which would leave it to nobody that waits for it.
        let under = command(killed);
        let mut alone = Command::new(program());
        alone.args(under.get_args().skip(3)).current_dir(stage.area.path());
        for (name, value) in under.get_envs() {
            match value {
                Some(value) => alone.env(name, value),
                None => alone.env_remove(name),
            };
        }
        let mut child = alone.spawn().unwrap();
        let begun = Instant::now();
        while strays() == 0 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(strays() > 0, "{killed} left nothing");
        run(next).ok();
        assert_eq!(strays(), 0, "{next}");
        std::fs::remove_dir_all(stage.dst()).unwrap();
    }
}
