//! `--flatten` of `cp` and `mv`: names land as base names, and two sources of one base name never replace each other.

use crate::common::{have, must};
use crate::objects::stage::{Stage, file, names, on_servers, stage, tree};
use crate::server::client::{ACCESS, SECRET};
use std::process::Command;

fn fill(stage: &Stage) {
    for key in ["a/one.txt", "b/c/two.txt", "three.gz"] {
        stage.put(&format!("place/{key}"), key.as_bytes());
    }
}

fn keys(stage: &Stage) -> Vec<String> {
    names(&stage.objects())
}

#[test]
fn names_land_as_base_names() {
    on_servers(|stage| {
        fill(stage);
        stage.counts("cp -r --flatten SPOT/ DST/", 3, 0);
        assert_eq!(names(&tree(&stage.dst())), ["one.txt", "three.gz", "two.txt"]);
        assert_eq!(tree(&stage.dst())[&b"two.txt"[..]], b"b/c/two.txt");
        // A folder's own name is left out as well, with wildcards and between prefixes.
        stage.counts("cp -r --flatten SPOT BKT/flat/", 3, 0);
        stage.counts("cp --flatten SPOT/*.txt BKT/wild/", 2, 0);
        let expected = ["flat/one.txt", "flat/three.gz", "flat/two.txt"];
        assert_eq!(keys(stage)[..3], expected);
        assert_eq!(keys(stage)[6..], ["wild/one.txt", "wild/two.txt"]);
        stage.ok("cp -r --flatten DST/ BKT/up/");
        file(&stage.src(), "x/y/deep", b"deep", 100);
        stage.counts("cp -r --flatten SRC/x BKT/up/", 1, 0);
        assert!(keys(stage).contains(&"up/deep".to_owned()));
        // Conditions look at the base name.
        stage.counts("cp -r -n --flatten SPOT/ DST/", 0, 3);
        stage.counts("cp -r --size-only --flatten SPOT/ BKT/flat/", 0, 3);
        stage.ok("mv --flatten SPOT/ BKT/moved/");
        assert!(stage.place().is_empty());
        assert_eq!(keys(stage).iter().filter(|key| key.starts_with("moved/")).count(), 3);
    });
}

#[test]
fn two_sources_of_one_base_name() {
    for (line, kept) in [
        ("cp -r --flatten SPOT/ DST/", 3),
        ("mv --flatten SPOT/ DST/", 1),
        ("cp --flatten SPOT/* DST/", 3),
        ("cp -r --flatten SPOT/a SPOT/b DST/", 3),
        ("cp --flatten SPOT/a/x SPOT/b/x DST/", 3),
    ] {
        let stage = stage();
        for key in ["a/x", "b/x"] {
            stage.put(&format!("place/{key}"), key.as_bytes());
        }
        stage.put("place/a/y", b"other");
        let run = stage.run(line);
        run.expect(1).says(&["same base name", "/b/x'"]);
        assert_eq!(tree(&stage.dst())[&b"x"[..]], b"a/x", "{run}");
        assert_eq!(stage.place().len(), kept, "{run}");
        assert!(stage.place().contains_key(&b"b/x"[..]), "{run}");
        // The same again does the same.
        let again = stage.run("cp -r --flatten SPOT/b DST/more/");
        again.ok();
    }
}

/// Flattening a prefix into itself: what is a source is not written over.
#[test]
fn a_source_is_not_written_over() {
    for line in
        ["mv --flatten SPOT/ SPOT/", "cp -r --flatten SPOT/ SPOT/", "cp --flatten SPOT/* SPOT/"]
    {
        let stage = stage();
        stage.put("place/d/x", b"below");
        stage.put("place/x", b"above");
        stage.put("place/d/y", b"free");
        let run = stage.run(line);
        run.expect(1).says(&["over another source"]);
        let place = stage.place();
        assert_eq!(place[&b"x"[..]], b"above", "{run}");
        assert_eq!(place[&b"d/x"[..]], b"below", "{run}");
        assert_eq!(place[&b"y"[..]], b"free", "{run}");
        assert_eq!(place.contains_key(&b"d/y"[..]), !line.starts_with("mv"), "{run}");
    }
    let stage = stage();
    stage.put("p/x", b"first");
    stage.put("q/x", b"second");
    stage.run("mv --flatten BKT/p/ BKT/q/ BKT/q/").expect(1);
    let found: Vec<_> = stage.objects().into_values().collect();
    assert!(found.contains(&b"first".to_vec()) && found.contains(&b"second".to_vec()), "{found:?}");
}

#[test]
fn odd_names_flattened() {
    let stage = stage();
    for key in ["a//b", "../up", "x/..", "d/", "e/."] {
        stage.put(&format!("place/{key}"), key.as_bytes());
    }
    stage.put("place/marker/", b"");
    let before = names(&tree(stage.area.path())).len();
    let run = stage.run("cp -r --flatten SPOT/ DST/");
    run.expect(1);
    assert_eq!(names(&tree(&stage.dst())), ["b", "up"], "{run}");
    let new =
        names(&tree(stage.area.path())).into_iter().filter(|name| !name.starts_with("state/"));
    assert!(new.count() <= before + 2, "{run}");
    stage.run("cp -r --flatten SPOT/ BKT/flat/").expect(1).says(&["ends with a slash"]);
    stage.run("cp -r --flatten --dir-markers SPOT/ DST/").expect(1).says(&["--dir-markers"]);
    stage.run("cp -r --flatten SRC DST").expect(2).says(&["--flatten"]);
    stage.run("sync -r --flatten SPOT/ DST/").expect(1).says(&["cp and mv have it"]);
}

#[test]
fn lines_of_a_run_file_flatten() {
    let stage = stage();
    fill(&stage);
    let (bucket, dst) = (&stage.bucket, stage.dst());
    let lines = format!(
        "cp --flatten 's3://{bucket}/place/*' {0}/\ncp 's3://{bucket}/place/*' {0}/kept/\n",
        dst.display()
    );
    stage.fed("run -", lines.as_bytes()).ok();
    let expected =
        ["kept/a/one.txt", "kept/b/c/two.txt", "kept/three.gz", "one.txt", "three.gz", "two.txt"];
    assert_eq!(names(&tree(&dst)), expected);
    // A dry run prints a line for each name.
    let run = stage.ok("cp -r --dry-run --flatten SPOT/ BKT/again/");
    stage.fed("run -", run.out().as_bytes()).ok();
    assert!(keys(&stage).contains(&"again/two.txt".to_owned()), "{run}");
}

#[test]
fn as_s5cmd_flattens() {
    if !have("s5cmd", "--flatten as s5cmd has it") {
        return;
    }
    let stage = stage();
    fill(&stage);
    let theirs = stage.area.join("theirs");
    let server = stage.server.unwrap();
    let mut command = Command::new("s5cmd");
    command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_REGION", "us-east-1").args(["--endpoint-url", &server.url()]);
    command.args(["cp", "--flatten", &format!("s3://{}/place/*", stage.bucket)]);
    must(command.arg(format!("{}/", theirs.display())));
    stage.ok("cp --flatten SPOT/* DST/");
    assert_eq!(tree(&theirs), tree(&stage.dst()));
}
