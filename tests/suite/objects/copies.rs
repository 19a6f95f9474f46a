//! Copies between buckets: server-side within one endpoint, through the client between two.

use crate::objects::server::{Server, embedded, gateway};
use crate::objects::stage::{Stage, Tree, content, names, on_servers, same, stage};
use std::collections::BTreeMap;

/// The place of one stage, copied to that of another.
fn across(from: &Stage, to: &Stage, line: &str) -> crate::common::case::Run {
    let (source, target) = (from.server.unwrap(), to.server.unwrap());
    let bucket = format!("s3://{}", to.bucket);
    let line = line.replace("OTHER", &bucket);
    let line = format!(
        "{line} --source-endpoint-url {} --destination-endpoint-url {}",
        source.url(),
        // Another name of the same place is another endpoint.
        if source.name == target.name { other_name(target) } else { target.url() }
    );
    from.run(&line)
}

fn other_name(server: &Server) -> String {
    server.url().replace("127.0.0.1", "localhost")
}

fn fill(stage: &Stage) -> Tree {
    let large = content(3, 12_000_000);
    for (key, body) in [("a", &b"one"[..]), ("d/e f", b"two"), ("empty", b""), ("large", &large)] {
        stage.put(&format!("place/{key}"), body);
    }
    stage.place()
}

#[test]
fn inside_one_endpoint_no_body_passes() {
    on_servers(|stage| {
        let expected = fill(stage);
        let asked = stage.asked(|| drop(stage.counts("sync -r SPOT/ BKT/copy/", 4, 0)));
        only_copies(asked, 4);
        let asked = stage.asked(|| drop(stage.counts("sync -r SPOT/ BKT/copy/", 0, 4)));
        only_copies(asked, 0);
        let copied = |prefix: &[u8]| -> Tree {
            let objects = stage.objects().into_iter();
            objects.filter_map(|(k, v)| Some((k.strip_prefix(prefix)?.to_vec(), v))).collect()
        };
        same("sync", &expected, &copied(b"copy/"));
        let asked = stage.asked(|| drop(stage.ok("cp SPOT/a BKT/one")));
        only_copies(asked, 1);
        stage.ok("cp -r SPOT/ BKT/third/");
        stage.ok("cp SPOT/* BKT/wild/");
        stage.put("copy/more", b"");
        stage.ok("sync -r --delete SPOT/ BKT/copy/");
        same("cp -r", &expected, &copied(b"third/"));
        same("--delete", &expected, &copied(b"copy/"));
        // A star stands for slashes as well.
        assert_eq!(names(&copied(b"wild/")), ["a", "d/e f", "empty", "large"]);
        assert_eq!(copied(b"one")[&b""[..]], b"one");
    });
}

fn only_copies(asked: Option<BTreeMap<String, usize>>, copies: usize) {
    let Some(asked) = asked else { return };
    assert_eq!(asked.get("CopyObject").copied().unwrap_or(0), copies, "{asked:?}");
    for operation in ["GetObject", "PutObject", "UploadPart"] {
        assert!(!asked.contains_key(operation), "{asked:?}");
    }
}

fn between(from: &'static Server, to: &'static Server) {
    let (from, to) = (Stage::new(Some(from)), Stage::new(Some(to)));
    let expected = fill(&from);
    // One of the two may know times to the second only: a source of the second of its copy would go
    // again.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let line = "sync -r --part-size 5MiB SPOT/ OTHER/place/";
    let mut run = None;
    let asked = from.asked(|| run = Some(across(&from, &to, line)));
    assert_eq!(run.unwrap().ok().out(), "");
    assert!(asked.is_none_or(|asked| asked["GetObject"] >= 3));
    same("relay", &expected, &to.place());
    let run = across(&from, &to, &format!("{line} --json"));
    assert_eq!(run.ok().summary()["files"], 0, "{run}");
    let head = |stage: &Stage| stage.ok("head --json SPOT/large").summary();
    assert_eq!(head(&from)["bytes"], head(&to)["bytes"]);
    across(&from, &to, "verify SPOT/ OTHER/place/").ok();
    across(&from, &to, "mv SPOT/a OTHER/moved").ok();
    assert!(!from.place().contains_key(&b"a"[..]));
    assert_eq!(to.objects()[&b"moved"[..]], b"one");
}

#[test]
fn between_two_endpoints_of_one_server() {
    between(embedded(), embedded());
}

#[test]
fn between_two_servers() {
    if let Some(gateway) = gateway() {
        between(embedded(), gateway);
        between(gateway, embedded());
    }
}

#[test]
fn metadata_crosses() {
    let (from, to) = (stage(), stage());
    std::fs::write(from.src().join("f"), b"x").unwrap();
    from.ok("cp SRC/f SPOT/f --metadata colour=red --content-type text/x-own");
    from.ok("cp SPOT/f BKT/kept");
    from.ok("cp SPOT/f BKT/replaced --metadata-directive REPLACE --metadata shape=round");
    across(&from, &to, "cp SPOT/f OTHER/far").ok();
    let head = |stage: &Stage, name: &str| stage.ok(&format!("head --json BKT/{name}")).summary();
    for found in [head(&from, "kept"), head(&to, "far")] {
        assert_eq!(found["metadata"]["colour"], "red", "{found}");
        assert_eq!(found["content_type"], "text/x-own", "{found}");
    }
    let found = head(&from, "replaced");
    assert_eq!(found["metadata"]["shape"], "round", "{found}");
    assert!(found["metadata"]["colour"].is_null(), "{found}");
}
