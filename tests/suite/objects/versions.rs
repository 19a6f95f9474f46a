//! Versions of objects: `--all-versions`, `--version-id`, `bucket-version`, on a server that keeps them and on one that
//! does not; and storage classes of `du --group`.

use crate::common::{have, must};
use crate::objects::server::{embedded, versioned};
use crate::objects::stage::{Stage, content, on_servers};
use crate::server::client::{ACCESS, SECRET};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// A bucket that keeps versions; `None` where no such server is installed.
fn stage() -> Option<Stage> {
    let stage = Stage::new(Some(versioned()?));
    stage.ok("bucket-version --set Enabled BKT");
    Some(stage)
}

/// Three versions and a delete marker of `place/a`, two versions of `place/d/b`, one of `place2`.
fn fill(stage: &Stage) {
    for size in [1, 20, 300] {
        stage.put("place/a", &content(size, size as usize));
    }
    stage.ok("rm SPOT/a");
    for size in [4000, 50_000] {
        stage.put("place/d/b", &content(size, size as usize));
    }
    stage.put("place2", b"1234567");
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Key, version ID and kind of everything that is listed.
fn listed(stage: &Stage, line: &str) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = lines(&stage.ok(line).out());
    found
        .iter()
        .map(|line| (text(&line["key"]), text(&line["version_id"]), text(&line["event"])))
        .collect()
}

const ALL: &str = "ls -R --all-versions --json BKT";

fn keys(stage: &Stage) -> Vec<String> {
    listed(stage, ALL).into_iter().map(|(key, ..)| key).collect()
}

/// The same client against the same bucket.
fn s5cmd(stage: &Stage, line: &str) -> String {
    let server = stage.server.unwrap();
    let mut command = Command::new("s5cmd");
    command.env("AWS_ACCESS_KEY_ID", ACCESS).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
    command.args(["--endpoint-url", &server.url()]);
    let words = line.split(' ').map(|word| word.replace("BKT", &format!("s3://{}", stage.bucket)));
    String::from_utf8(must(command.args(words))).unwrap()
}

#[test]
fn ls_and_du_show_all_versions() {
    let Some(stage) = stage() else { return };
    fill(&stage);
    let found = listed(&stage, ALL);
    let kinds: Vec<_> = found.iter().map(|(key, _, event)| (&**key, &**event)).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == ("place/a", "object")).count(), 3);
    assert_eq!(kinds.iter().filter(|kind| **kind == ("place/a", "delete_marker")).count(), 1);
    assert_eq!(
        kinds[4..],
        [("place/d/b", "object"), ("place/d/b", "object"), ("place2", "object")]
    );
    let ids: BTreeSet<_> = found.iter().map(|(_, id, _)| id).collect();
    assert_eq!(ids.len(), 7, "{found:?}");
    assert!(ids.iter().all(|id| !id.is_empty()));
    let latest = lines(&stage.ok(ALL).out());
    assert_eq!(latest.iter().filter(|line| line["latest"] == true).count(), 3);
    // Without -R up to the next slash, and text with the ID at the end of the line.
    let run = stage.ok("ls --all-versions SPOT/");
    assert_eq!(run.out().lines().count(), 5, "{run}");
    assert!(run.out().contains("PRE d/") && run.out().contains("DELETED a"), "{run}");
    let last = run.out().lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    let own: BTreeSet<String> = last;
    assert!(found[..4].iter().all(|(_, id, _)| own.contains(id)), "{run}");
    assert_eq!(stage.ok("ls --all-versions SPOT/a*").out().lines().count(), 4);
    assert_eq!(stage.ok("ls -R --all-versions --exclude=*b BKT").out().lines().count(), 5);
    stage.run("ls --all-versions SPOT/none").expect(2).says(&["no such"]);
    let sum = |line: &str| {
        let found = lines(&stage.ok(line).out());
        let last = found.last().unwrap();
        (last["bytes"].as_u64().unwrap(), last["objects"].as_u64().unwrap())
    };
    assert_eq!(sum("du --json BKT"), (50_007, 2));
    assert_eq!(sum("du --json --all-versions BKT"), (54_328, 7));
    assert_eq!(sum("du --json --all-versions SPOT/a"), (321, 4));
    assert_eq!(sum("du --json -s --all-versions --exclude=a SPOT/"), (54_000, 2));
    let own = found.iter().filter(|(key, _, event)| key == "place/a" && event == "object");
    let sizes: BTreeSet<u64> =
        own.map(|(_, id, _)| sum(&format!("du --json --version-id {id} SPOT/a")).0).collect();
    assert_eq!(sizes, [1, 20, 300].into());
    stage.run("du --version-id no-such-version SPOT/a").expect(1);
}

#[test]
fn ls_and_du_agree_with_s5cmd() {
    if !have("s5cmd", "versions as s5cmd lists them") {
        return;
    }
    let Some(stage) = stage() else { return };
    fill(&stage);
    let words = |line: &str| {
        let mut words = line.split_whitespace().rev().map(str::to_owned);
        let id = words.next().unwrap();
        (words.next().unwrap(), id)
    };
    // Its JSON lines have no version IDs.
    let text = s5cmd(&stage, "ls --all-versions BKT/*");
    let theirs: BTreeSet<(String, String)> = text.lines().map(words).collect();
    let ours = listed(&stage, ALL).into_iter().map(|(key, id, _)| (key, id)).collect();
    assert_eq!(theirs, ours);
    for (theirs, ours) in [
        ("--json du --all-versions BKT/*", "du --json --all-versions BKT"),
        ("--json du --all-versions BKT/place/a", "du --json --all-versions SPOT/a"),
        ("--json du --group BKT/*", "du --json --group BKT"),
    ] {
        let their = lines(&s5cmd(&stage, theirs)).pop().unwrap();
        let our = lines(&stage.ok(ours).out()).pop().unwrap();
        assert_eq!(their["size"], our["bytes"], "{theirs}");
        assert_eq!(their["count"], our["objects"], "{theirs}");
        assert_eq!(their.get("storage_class"), our.get("storage_class"), "{theirs}");
    }
    assert!(s5cmd(&stage, "bucket-version BKT").contains("Enabled"));
}

#[test]
fn rm_removes_each_version() {
    let Some(stage) = stage() else { return };
    fill(&stage);
    // A dry run says what it would remove, in lines that can be run.
    let run = stage.ok("rm -rn --all-versions SPOT/");
    assert_eq!(run.out().lines().count(), 6, "{run}");
    let ids: Vec<String> = listed(&stage, ALL).into_iter().map(|(_, id, _)| id).collect();
    assert!(ids[..6].iter().all(|id| run.out().contains(id)), "{run}");
    assert_eq!(keys(&stage).len(), 7);
    let line = run.out().lines().next().unwrap().replace('\'', "");
    stage.ok(&line);
    assert_eq!(keys(&stage).len(), 6);
    // One key, not those that it begins.
    let run = stage.ok("rm -v --all-versions SPOT/a");
    assert!(run.out().contains("(version "), "{run}");
    assert!(keys(&stage).iter().all(|key| key != "place/a"));
    stage.run("rm --all-versions SPOT/a").expect(1).says(&["no version"]);
    stage.ok("rm -f --all-versions SPOT/a");
    fill(&stage);
    stage.ok("rm --all-versions --exclude=*b SPOT/*");
    assert!(keys(&stage).iter().all(|key| key != "place/a"));
    assert_eq!(keys(&stage).iter().filter(|key| *key == "place/d/b").count(), 4);
    fill(&stage);
    stage.ok("rm -r --all-versions BKT/place");
    let rest: BTreeSet<_> = keys(&stage).into_iter().collect();
    assert_eq!(rest.into_iter().collect::<Vec<_>>(), ["place2"]);
    // Lines of a run file, with the same rules.
    fill(&stage);
    let line = format!("rm --all-versions s3://{}/place/*\n", stage.bucket);
    let run = stage.fed("run -", line.as_bytes());
    run.ok();
    assert!(keys(&stage).iter().all(|key| key == "place2"), "{run}");
    stage.run("rm --all-versions --version-id x SPOT/a").expect(2);
    stage.run("rm -r --all-versions SRC").expect(2);
}

#[test]
fn a_bucket_with_versions_is_removed_on_request() {
    let Some(stage) = stage() else { return };
    fill(&stage);
    stage.run("rb --all-versions BKT").expect(2).says(&["--force"]);
    stage.run("rb --force BKT").expect(1).says(&["not empty"]);
    stage.ok("rb --force --all-versions BKT");
    stage.run("head BKT").expect(1);
}

#[test]
fn bucket_version_shows_and_sets() {
    let Some(stage) = stage() else { return };
    let shown = |stage: &Stage| lines(&stage.ok("bucket-version --json BKT").out())[0].clone();
    assert_eq!(shown(&stage)["status"], "Enabled");
    assert!(stage.ok("bucket-version BKT").out().ends_with("\tEnabled\n"));
    stage.ok("bucket-version --set suspended BKT");
    assert_eq!(shown(&stage)["status"], "Suspended");
    stage.put("place/a", b"one");
    stage.put("place/a", b"two");
    let found = listed(&stage, ALL);
    assert_eq!(found.len(), 1, "{found:?}");
    stage.run("bucket-version --set off BKT").expect(2).says(&["Enabled or Suspended"]);
    stage.run("bucket-version BKT/key").expect(2);
    stage.run("bucket-version s3://b-that-is-not-there").expect(1).says(&["versioning"]);
    let line = format!("bucket-version --set Enabled s3://{}\n", stage.bucket);
    stage.fed("run -", line.as_bytes()).ok();
    assert_eq!(shown(&stage)["status"], "Enabled");
}

/// Several runs that remove the same versions: what another one removed counts as removed. (versitygw fails by itself
/// where two requests remove one version.)
#[test]
fn several_removals_at_once() {
    let stage = Stage::new(Some(embedded()));
    for number in 0..300 {
        stage.put(&format!("place/{number}"), b"one");
    }
    let mut running: Vec<_> =
        (0..3).map(|_| stage.command("rm -rf --all-versions SPOT/").spawn().unwrap()).collect();
    for child in &mut running {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(keys(&stage), [""; 0]);
}

/// Without versioning each object is one version.
#[test]
fn without_versioning_an_object_is_one_version() {
    on_servers(|stage| {
        stage.put("place/a", b"12345");
        stage.put("place/d/b", b"678");
        assert!(stage.ok("bucket-version BKT").out().ends_with("\tnever enabled\n"));
        let found = listed(stage, ALL);
        let of = |key: &str| (key.to_owned(), "null".to_owned(), "object".to_owned());
        assert_eq!(found, [of("place/a"), of("place/d/b")]);
        let run = stage.ok("du -b --all-versions --group BKT");
        assert_eq!(run.out(), format!("8\ts3://{} [STANDARD]\n", stage.bucket), "{run}");
        let run = stage.ok("du -bc --group SPOT/a SPOT/d/");
        assert_eq!(run.out().lines().last(), Some("8\ttotal [STANDARD]"), "{run}");
        stage.ok("rm -r --all-versions SPOT/d/");
        assert_eq!(stage.objects().len(), 1);
        stage.ok("rb --force --all-versions BKT");
    });
}

#[test]
fn du_groups_by_storage_class() {
    on_servers(|stage| {
        stage.put("place/a", b"12345");
        let group = lines(&stage.ok("du --json --group BKT").out());
        assert_eq!(group.len(), 1);
        assert_eq!(group[0]["storage_class"], "STANDARD");
        assert_eq!((&group[0]["bytes"], &group[0]["objects"]), (&5.into(), &1.into()));
        let line = format!("du -g s3://{}\n", stage.bucket);
        stage.fed("run -", line.as_bytes()).ok();
        stage.run("du --group SRC").expect(2);
        stage.run("du --group -a BKT").expect(2);
        stage.run("du --group SPOT/none").expect(1);
    });
}
