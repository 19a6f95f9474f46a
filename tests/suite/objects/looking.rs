//! Commands for inspection and administration: ls, du, cat, head, presign, verify, mb, rb, mpu.

use super::stage::{Stage, content, file, on_servers, stage};
use crate::common::case::on_terminal;
use crate::common::have;
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

fn fill(stage: &Stage) {
    for (key, size) in [("a", 1), ("d/b", 20), ("d/c", 300), ("d/e/f", 4000), ("z", 0)] {
        stage.put(&format!("place/{key}"), &content(size as u64, size));
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The last words of each line.
fn last(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split_whitespace().last().unwrap()).collect()
}

#[test]
fn ls_lists() {
    on_servers(|stage| {
        fill(stage);
        assert_eq!(last(&stage.ok("ls SPOT/").out()), ["a", "d/", "z"]);
        assert!(stage.ok("ls SPOT/").out().lines().any(|line| line.trim().starts_with("PRE ")));
        assert_eq!(last(&stage.ok("ls SPOT/d/").out()), ["b", "c", "e/"]);
        let all = ["place/a", "place/d/b", "place/d/c", "place/d/e/f", "place/z"];
        assert_eq!(last(&stage.ok("ls -R BKT").out()), all);
        assert_eq!(last(&stage.ok("ls -R SPOT/d/").out()), all[1..4]);
        assert_eq!(stage.ok("ls SPOT/d/*").out().lines().count(), 3);
        let found = lines(&stage.ok("ls -R --json SPOT/").out());
        let found = found.iter().map(|line| (line["key"].as_str(), line["bytes"].as_u64()));
        let sizes = [1, 20, 300, 4000, 0].map(Some);
        assert_eq!(
            found.collect::<Vec<_>>(),
            all.map(Some).into_iter().zip(sizes).collect::<Vec<_>>()
        );
        // Other tests make buckets on the same server.
        let own = |line: &str| {
            let out = stage.ok(line).out();
            out.lines().find(|line| line.ends_with(&*stage.bucket)).map(str::to_owned)
        };
        assert!(own("ls").is_some());
        assert_eq!(own("ls"), own("ls s3://"));
        stage.run("ls SPOT/none").expect(2);
        let run = stage.ok("ls -R --summarize SPOT/");
        assert!(run.out().contains('5') && run.out().contains("4321"), "{run}");
    });
}

/// A key may hold any characters: on a terminal they do nothing, elsewhere its bytes are printed.
#[test]
fn hostile_keys_do_nothing_to_a_terminal() {
    if !have("script", "a terminal") {
        return;
    }
    let stage = stage();
    stage.put("place/esc\u{1b}[31m", b"x");
    for line in ["ls", "ls -l", "ls -R", "ls --show-fullpath", "ls --all-versions", "du -a"] {
        let line = format!("{line} SPOT/");
        let shown = on_terminal(&stage.command(&line)).ok().out();
        assert!(shown.contains("esc\\#033[31m"), "{line}: {shown:?}");
        assert!(!shown.contains('\u{1b}'), "{line}: {shown:?}");
    }
    let literal = on_terminal(&stage.command("ls -N SPOT/")).ok().out();
    assert!(literal.contains("esc\u{1b}[31m"), "{literal:?}");
    assert!(stage.ok("ls SPOT/").out().contains("esc\u{1b}[31m\n"));
}

#[test]
fn du_sums() {
    on_servers(|stage| {
        fill(stage);
        let found = lines(&stage.ok("du --json SPOT/").out());
        let found = |path: &str| {
            let path = format!("s3://{}/place/{path}", stage.bucket);
            let line = found.iter().find(|line| line["path"] == path.as_str());
            line.map(|line| (line["bytes"].as_u64().unwrap(), line["objects"].as_u64().unwrap()))
        };
        assert_eq!(found("d/e/"), Some((4000, 1)));
        assert_eq!(found("d/"), Some((4320, 3)));
        assert_eq!(found(""), Some((4321, 5)));
        let run = stage.ok("du -s -b SPOT/ --objects");
        assert!(run.out().contains("4321"), "{run}");
    });
}

#[test]
fn cat_and_head() {
    on_servers(|stage| {
        fill(stage);
        let large = content(9, 9_000_000);
        stage.put("place/large", &large);
        assert_eq!(stage.ok("cat SPOT/d/c").stdout, content(300, 300));
        assert!(stage.ok("cat SPOT/large").stdout == large);
        assert!(stage.ok("cat SPOT/a SPOT/large SPOT/z").stdout[1..] == large);
        assert_eq!(stage.ok("cat --range 10-19 SPOT/d/c").stdout, content(300, 300)[10..20]);
        stage.run("cat SPOT/none").expect(1).says(&["none"]);
        for command in ["head", "stat"] {
            let found = stage.ok(&format!("{command} --json SPOT/d/c")).summary();
            assert_eq!(found["bytes"], 300, "{found}");
            let run = stage.ok(&format!("{command} SPOT/d/c"));
            assert!(run.out().contains("300"), "{run}");
        }
        stage.ok("head BKT");
        stage.run("head SPOT/none").expect(1).says(&["none"]);
        stage.run("head s3://b-that-is-not-there").expect(1);
    });
}

#[test]
fn presign_lets_anybody_read() {
    on_servers(|stage| {
        stage.put("place/a b+c", b"for all");
        let run = stage.ok("presign 'SPOT/a b+c'");
        let answer = stage.server.unwrap().open(run.out().trim());
        assert_eq!((answer.status, &*answer.text()), (200, "for all"), "{run}");
        let broken = run.out().trim().replace("a%20b", "a%20d");
        assert_ne!(stage.server.unwrap().open(&broken).status, 200);
        let run = stage.ok("presign --expires-in 12h 'SPOT/a b+c'");
        assert!(run.out().contains("X-Amz-Expires=43200"), "{run}");
    });
}

#[test]
fn verify_tells_differences() {
    on_servers(|stage| {
        let long = content(1, 9_000_000);
        for (name, body) in [("a", &b"same"[..]), ("d/b", b"also"), ("long", &long)] {
            file(&stage.src(), name, body, 100);
        }
        stage.ok("sync -r --part-size 5MiB SRC/ SPOT/");
        stage.ok("verify SRC/ SPOT/");
        stage.ok("verify SPOT/ SRC/");
        stage.put("place/a", b"SAME");
        stage.put("place/more", b"");
        let run = stage.run("verify SRC/ SPOT/");
        run.expect(1);
        assert!(run.out().contains('a') && run.out().contains("more"), "{run}");
        assert_eq!(run.out().lines().count(), 2, "{run}");
        let found = stage.run("verify --json SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["differences"], 2, "{found}");
        stage.run("verify --one-way SRC/ SPOT/").expect(1);
        stage.ok("rm SPOT/a SPOT/more");
        let found = stage.run("verify --json SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"]["missing"], 1, "{found}");
        stage.run("verify SRC/ s3://b-that-is-not-there/x/").expect(2);
    });
}

#[test]
fn buckets_come_and_go() {
    on_servers(|stage| {
        let name = format!("s3://{}-more", stage.bucket);
        stage.ok(&format!("mb {name}"));
        assert!(stage.ok("ls s3://").out().contains(&name[5..]));
        file(&stage.src(), "f", b"x", 100);
        stage.ok(&format!("cp SRC/f {name}/f"));
        stage.run(&format!("rb {name}")).expect(1);
        stage.ok(&format!("rb --force {name}"));
        stage.run(&format!("rb {name}")).expect(1);
        stage.run(&format!("cp SRC/f {name}/f")).expect(1);
    });
}

#[test]
fn mpu_lists_and_aborts() {
    on_servers(|stage| {
        let begin = |key: &str| {
            let target = format!("/{}/place/{key}?uploads=", stage.bucket);
            let answer = stage.server.unwrap().ask("POST", &target, b"");
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.all("UploadId").remove(0)
        };
        let (one, _two) = (begin("one"), begin("two"));
        let run = stage.ok("mpu ls BKT");
        assert!(run.out().contains("place/one") && run.out().contains("place/two"), "{run}");
        stage.run("mpu abort BKT").expect(2);
        stage.ok("mpu abort --older-than 1h BKT");
        assert_eq!(stage.ok("mpu ls BKT").out().lines().count(), 2);
        stage.ok(&format!("mpu abort --upload-id {one} SPOT/one"));
        let run = stage.ok("mpu ls --json BKT");
        assert_eq!(run.out().lines().count(), 1, "{run}");
        assert!(run.out().contains("place/two"), "{run}");
        stage.ok("mpu abort --all SPOT/");
        assert_eq!(stage.ok("mpu ls BKT").out(), "");
    });
}

// `verify` with a store: directories, symlinks and encoded names, which objects represent in their own way
// or not at all.

#[test]
fn verify_ignores_what_a_store_does_not_keep() {
    on_servers(|stage| {
        file(&stage.src(), "d/a", b"same", 100);
        std::fs::create_dir_all(stage.src().join("empty/below")).unwrap();
        let link = |name: &str, text: &str| symlink(text, stage.src().join(name)).unwrap();
        for (name, text) in [("to-file", "d/a"), ("to-dir", "d"), ("nowhere", "gone")] {
            link(name, text);
        }
        stage.ok("sync -a SRC/ SPOT/");
        for line in ["SRC/ SPOT/", "SPOT/ SRC/", "-a SRC/ SPOT/", "-O SRC SPOT"] {
            let found = stage.run(&format!("verify --json {line}")).expect(0).summary();
            assert_eq!((&found["files"], &found["others"]), (&1.into(), &3.into()), "{found}");
        }
        stage.ok("verify SRC/nowhere SPOT/nowhere");
        stage.ok("sync -a SPOT/ DST/");
        stage.ok("verify -a SPOT/ DST/");
        // Another text of the same length, of another length, and a file in place of a symlink.
        let texts = [("to-file", "d/b"), ("nowhere", "elsewhere")];
        for (name, text) in texts {
            std::fs::remove_file(stage.src().join(name)).unwrap();
            link(name, text);
        }
        std::fs::remove_file(stage.src().join("to-dir")).unwrap();
        file(&stage.src(), "to-dir", b"d", 100);
        let found = stage.run("verify --json SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"], serde_json::json!({"link": 2, "type": 1}), "{found}");
        // Without contents only local symlinks are worth a request.
        let found = stage.run("verify --json --size-only SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"], serde_json::json!({"link": 2}), "{found}");
        stage.ok("verify --size-only --no-links SRC/ SPOT/");
    });
}

#[test]
fn verify_follows_symlinks_that_were_followed_on_the_way_up() {
    on_servers(|stage| {
        file(&stage.src(), "d/a", b"same", 100);
        symlink("d/a", stage.src().join("link")).unwrap();
        symlink("d", stage.src().join("dir")).unwrap();
        stage.ok("sync -rL SRC/ SPOT/");
        stage.ok("verify -L SRC/ SPOT/");
        stage.ok("verify -L SPOT/ SRC/");
        let found = stage.run("verify --json SRC/ SPOT/").expect(1).summary();
        let kinds = serde_json::json!({"missing": 1, "extra": 1});
        assert_eq!(found["by_kind"], kinds, "{found}");
        stage.run("verify -L SRC DST").expect(2);
    });
}

#[test]
fn verify_knows_encoded_names() {
    on_servers(|stage| {
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
        std::fs::write(stage.src().join(name), b"latin").unwrap();
        file(&stage.src(), "d/plain", b"same", 100);
        stage.ok("sync -a --encode-names SRC/ SPOT/");
        stage.ok("verify --encode-names SRC/ SPOT/");
        stage.ok("verify --encode-names SPOT/ SRC/");
        stage.run("verify SRC/ SPOT/").expect(1);
        std::fs::write(stage.src().join(name), b"LATIN").unwrap();
        let found = stage.run("verify --encode-names --json SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"], serde_json::json!({"content": 1}), "{found}");
    });
}
