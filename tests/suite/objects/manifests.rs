//! `--manifest`: every entry of the source once, with its result, and a last line with the totals.

use crate::common::case::Run;
use crate::objects::stage::{Stage, everywhere, file, stage};
use serde_json::Value;
use std::collections::BTreeMap;

fn fill(stage: &Stage) {
    for number in 0..12 {
        let name = format!("{}/f{number:02}", number % 3);
        file(&stage.src(), &name, name.as_bytes(), 100);
    }
}

/// The lines of a manifest: results by path, and the totals.
#[track_caller]
fn results(text: &str) -> (BTreeMap<String, String>, Value) {
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let totals = lines.pop().unwrap();
    assert_eq!(totals["result"], "totals", "{text}");
    let mut found = BTreeMap::new();
    for line in &lines {
        let name = line["source"].as_str().or(line["target"].as_str()).unwrap().to_owned();
        let result = line["result"].as_str().unwrap().to_owned();
        assert_eq!(found.insert(name.clone(), result), None, "{name} twice in {text}");
    }
    for result in ["copied", "updated", "unchanged", "skipped", "deleted", "failed"] {
        let count = lines.iter().filter(|line| line["result"] == result).count();
        assert_eq!(totals[result], count, "{result} of {text}");
    }
    (found, totals)
}

fn read(stage: &Stage) -> (BTreeMap<String, String>, Value) {
    results(&std::fs::read_to_string(stage.area.join("list")).unwrap())
}

#[track_caller]
fn run(stage: &Stage, line: &str, code: i32) -> (Run, BTreeMap<String, String>, Value) {
    let run = stage.run(line);
    run.expect(code);
    let (found, totals) = read(stage);
    assert_eq!(totals["exit_code"], code, "{run}");
    (run, found, totals)
}

fn count(found: &BTreeMap<String, String>, result: &str) -> usize {
    // Folders are entries between paths only.
    found.iter().filter(|(name, of)| of == &result && name.contains("/f")).count()
}

#[test]
fn every_entry_has_its_result() {
    everywhere(|stage| {
        fill(stage);
        let up = "sync -a --no-o --no-g --manifest=LIST SRC/ SPOT/";
        let (_, found, _) = run(stage, up, 0);
        assert_eq!(count(&found, "copied"), 12, "{found:?}");
        let (_, found, _) = run(stage, up, 0);
        assert_eq!(count(&found, "unchanged"), 12, "{found:?}");
        // Changed, removed, and left out.
        file(&stage.src(), "0/f00", b"longer than before", 10);
        std::fs::remove_file(stage.src().join("1/f01")).unwrap();
        let line = format!("{up} --delete --max-size=17");
        let (_, found, _) = run(stage, &line, 0);
        let by = |result| count(&found, result);
        assert_eq!((by("unchanged"), by("skipped"), by("deleted")), (10, 1, 1), "{found:?}");
        let (_, found, _) = run(stage, up, 0);
        assert_eq!((count(&found, "copied"), count(&found, "unchanged")), (1, 10), "{found:?}");
        // Back, and once more with other modes.
        let down = "sync -a --no-o --no-g --manifest=LIST SPOT/ DST/";
        let (_, found, _) = run(stage, down, 0);
        assert_eq!(count(&found, "copied"), 11, "{found:?}");
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(stage.dst().join("2/f02"), mode).unwrap();
        let (_, found, _) = run(stage, down, 0);
        assert_eq!((count(&found, "updated"), count(&found, "unchanged")), (1, 10), "{found:?}");
        // What is shown does not depend on it.
        let shown = |line: &str| stage.ok(line).out();
        assert_eq!(shown(down), "");
        let plain = shown("sync -ai --no-o --no-g SPOT/ DST/");
        assert_eq!(shown(&format!("{down} -i")), plain);
    });
}

#[test]
fn cp_and_mv_have_it_too() {
    everywhere(|stage| {
        fill(stage);
        let (_, found, _) = run(stage, "cp -r --manifest LIST SRC SPOT/new", 0);
        assert_eq!(count(&found, "copied"), 12, "{found:?}");
        let (_, found, _) = run(stage, "cp -rT --manifest LIST --no-clobber SRC/0 SPOT/new/0", 0);
        assert_eq!(count(&found, "skipped"), 4, "{found:?}");
        let (_, found, totals) = run(stage, "mv --manifest LIST SPOT/new/0/f00 DST/", 0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(totals["renamed"].as_u64().unwrap() + totals["copied"].as_u64().unwrap(), 1);
    });
}

#[test]
fn failures_have_their_cause() {
    everywhere(|stage| {
        fill(stage);
        // A directory in the way of a file: it stays.
        std::fs::create_dir_all(stage.dst().join("0/f00/in")).unwrap();
        std::fs::write(stage.dst().join("0/f00/in/it"), "x").unwrap();
        stage.ok("sync -r SRC/ SPOT/");
        let (_, found, totals) = run(stage, "sync -r --manifest=LIST SPOT/ DST/", 23);
        assert_eq!((count(&found, "copied"), count(&found, "failed")), (11, 1), "{found:?}");
        assert_eq!(totals["failed"], 1);
        let text = std::fs::read_to_string(stage.area.join("list")).unwrap();
        let failed = text.lines().find(|line| line.contains("\"failed\",")).unwrap();
        let failed: Value = serde_json::from_str(failed).unwrap();
        assert!(failed["source"].as_str().unwrap().ends_with("0/f00"), "{failed}");
        assert!(!failed["cause"].as_str().unwrap().is_empty(), "{failed}");
    });
}

#[test]
fn checksums_that_are_known_are_in_it() {
    let stage = stage();
    fill(&stage);
    stage.ok("sync -r --manifest=LIST SRC/ SPOT/");
    let text = std::fs::read_to_string(stage.area.join("list")).unwrap();
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let content = std::fs::read(line["source"].as_str().unwrap()).unwrap();
    assert_eq!(line["size"], content.len());
    let sum = hakobu_s3::Checksum::of(hakobu_s3::Algorithm::Crc64Nvme, &content).encode();
    assert_eq!(line["checksum"]["algorithm"], "CRC64NVME", "{line}");
    assert_eq!(line["checksum"]["value"], sum, "{line}");
    // Received with a download as well.
    stage.ok("sync -r --manifest=LIST SPOT/ DST/");
    let text = std::fs::read_to_string(stage.area.join("list")).unwrap();
    assert_eq!(text.matches("CRC64NVME").count(), 12, "{text}");
}

#[test]
fn standard_output_is_its_own() {
    everywhere(|stage| {
        fill(stage);
        let run = stage.ok("sync -r --manifest=- SRC/ SPOT/");
        let (found, _) = results(&run.out());
        assert_eq!(count(&found, "copied"), 12);
        for other in ["--json", "-v", "-i", "--stats"] {
            let run = stage.run(&format!("sync -r {other} --manifest=- SRC/ SPOT/"));
            run.expect(1).says(&["--manifest=-"]);
        }
        stage.run("cp -rv --manifest=- SRC/ SPOT/").expect(2);
    });
}

#[test]
fn one_that_is_lost_is_a_failure() {
    everywhere(|stage| {
        fill(stage);
        let run = stage.run("sync -r --manifest=/dev/full SRC/ SPOT/");
        run.expect(11).says(&["/dev/full", "No space left"]);
        stage.run("sync -r --manifest=AREA/no/where SRC/ SPOT/").expect(11);
        stage.run("cp -r --manifest=/dev/full SRC SPOT/").expect(1);
    });
}

/// Without the line of totals a file is not complete.
#[test]
fn a_killed_run_has_no_totals() {
    let stage = stage();
    for number in 0..200 {
        file(&stage.src(), &format!("f{number:03}"), &[b'x'; 5000], 100);
    }
    let line = "sync -r -j 2 --bwlimit=200K --manifest=LIST SRC/ SPOT/";
    let mut command = stage.command(line);
    let mut run = command.spawn().unwrap();
    let list = stage.area.join("list");
    let lines = || std::fs::read_to_string(&list).unwrap_or_default().lines().count();
    while lines() < 20 {
        assert!(run.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // timeout(1) passes it on.
    let sent = std::process::Command::new("kill").args(["-INT", &run.id().to_string()]).status();
    assert!(sent.unwrap().success());
    run.wait().unwrap();
    let (found, totals) = read(&stage);
    assert!(found.len() < 200 && totals["stopped"] == true, "{totals}");
    // Not even a signal that nothing handles leaves one that looks whole.
    let mut run = command.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    // Its only child is the program.
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let child = std::fs::read_to_string(children).unwrap();
    let killed = std::process::Command::new("kill").args(["-KILL", child.trim()]).status();
    assert!(killed.unwrap().success());
    run.wait().unwrap();
    let text = std::fs::read_to_string(&list).unwrap();
    assert!(!text.contains("\"totals\""), "{text}");
}
