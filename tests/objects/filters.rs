//! Filters, lists of files and removal mean on servers what they mean in folders: the oracle is the
//! same command between two folders.

use crate::server::gateway;
use crate::stage::{Stage, Tree, file, same, stage, tree};
use std::path::Path;

const OPTIONS: &[&str] = &[
    "--exclude=*.tmp",
    "--exclude=d/",
    "--exclude=/d/",
    "--exclude=/d/*.txt",
    "--exclude=d/**",
    "--include=*/ --include=*.txt --exclude=*",
    "--include=d/*** --exclude=*",
    "--exclude=? --exclude=d-e/",
    "--exclude=[a-c].*",
    "--max-size=3 --delete",
    "--min-size=3",
    "--delete",
    "--delete --exclude=*.tmp",
    "--delete --delete-excluded --exclude=*.tmp",
    "--delete --exclude=/d/",
    "--delete --delete-excluded --exclude=/d/",
    "--delete --include=*/ --include=*.txt --exclude=*",
    "--delete '--filter=P old/**'",
    "--delete '--filter=H *.tmp'",
    "--files-from=LIST",
    "--files-from=LIST --exclude=*.tmp",
    "--existing --delete",
    "--ignore-existing --exclude=*.txt",
];

/// Source and target differ in names and sizes, never in times alone.
fn fill(dir: &Path, source: bool) {
    let both = ["a.txt", "a.tmp", "d/b.txt", "d/b.tmp", "d/e/c.txt", "d-e/c.tmp", "x"];
    let own: &[&str] = match source {
        true => &["new", "d/new.txt", "f/g/new.tmp", "d.txt"],
        false => &["old/x.txt", "old/y", "d/old.tmp", "old.tmp", "d/e/old.txt"],
    };
    for (at, name) in both.iter().chain(own).enumerate() {
        let body = if source { &b"this is what the source has"[..2 + at] } else { &b"o"[..] };
        file(dir, name, body, 100);
    }
}

fn prepare(stage: &Stage) {
    let list = "a.txt\nd/e/c.txt\nd/b.tmp\nx\n";
    std::fs::write(stage.area.join("list"), list).unwrap();
}

/// What the target holds after the command between two folders.
fn oracle(options: &str) -> Tree {
    let stage = Stage::new(None);
    prepare(&stage);
    fill(&stage.src(), true);
    fill(&stage.dst(), false);
    stage.ok(&format!("sync -rt {options} SRC/ DST/"));
    tree(&stage.dst())
}

fn check(stage: &Stage) {
    prepare(stage);
    fill(&stage.src(), true);
    fill(&stage.area.join("old"), false);
    stage.ok("sync -rt SRC/ BKT/source/");
    for options in OPTIONS {
        let expected = oracle(options);
        stage.ok("sync -rt --delete AREA/old/ SPOT/");
        stage.ok(&format!("sync -rt {options} SRC/ SPOT/"));
        same(&format!("{options}: up"), &expected, &stage.place());
        crate::common::remove_tree(&stage.dst());
        std::fs::create_dir(stage.dst()).unwrap();
        fill(&stage.dst(), false);
        stage.ok(&format!("sync -rt {options} BKT/source/ DST/"));
        same(&format!("{options}: down"), &expected, &tree(&stage.dst()));
    }
}

#[test]
fn on_the_embedded_server() {
    let stage = stage();
    check(&stage);
    // Once across is enough: the merge is the same.
    let expected = oracle("--delete --exclude=*.tmp");
    stage.ok("sync -rt --delete AREA/old/ SPOT/");
    stage.ok("sync -rt --delete --exclude=*.tmp BKT/source/ SPOT/");
    same("across", &expected, &stage.place());
}

#[test]
fn on_versitygw() {
    if let Some(server) = gateway() {
        check(&Stage::new(Some(server)));
    }
}

#[test]
fn cp_r_with_filters() {
    let stage = stage();
    fill(&stage.src(), true);
    stage.ok("cp -r --exclude=*.tmp --exclude=d-e/ SRC/. SPOT/");
    let mut expected = tree(&stage.src());
    expected.retain(|name, _| !name.ends_with(b".tmp"));
    same("cp -r", &expected, &stage.place());
}
