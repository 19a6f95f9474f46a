//! Filters, lists of files and deletion have the same meaning on servers as in folders: the oracle is the
//! same command between two folders.

use crate::objects::server::gateway;
use crate::objects::stage::{Stage, Tree, file, same, stage, tree};
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
/// Rules in files of each folder: which folder, the file's name, what it says.
type Rules = &'static [(&'static str, &'static str, &'static str)];

/// With the options, what stands in files of the source, and of the target.
const RULE_FILES: &[(&str, Rules, Rules)] = &[
    ("-F --delete", &[], &[("", ".rsync-filter", "P old.tmp")]),
    ("-F --delete", &[], &[("d", ".rsync-filter", "P *.tmp")]),
    ("-F --delete", &[], &[("old", ".rsync-filter", "P y")]),
    ("-F --delete", &[("", ".rsync-filter", "- *.tmp")], &[]),
    ("-F --delete", &[("d", ".rsync-filter", "- *.tmp")], &[("d/e", ".rsync-filter", "P old.txt")]),
    ("-FF --delete", &[("", ".rsync-filter", "- d-e/")], &[("", ".rsync-filter", "P old/")]),
    ("-F --delete", &[("", ".rsync-filter", "- x")], &[("", ".rsync-filter", "P old/")]),
    ("'--filter=:n .rules' --delete", &[], &[("", ".rules", "P old.txt")]),
    ("'--filter=:- .rules' --delete", &[("d", ".rules", "e/")], &[("d", ".rules", "old.tmp")]),
    (
        "'--filter=: .rules' --delete-excluded",
        &[("", ".rules", "- *.tmp")],
        &[("", ".rules", "P y")],
    ),
    ("-C --delete", &[("d", ".cvsignore", "*.tmp")], &[("", ".cvsignore", "old.tmp")]),
];

fn rule_files(dir: &Path, rules: Rules) {
    for (folder, name, text) in rules {
        // Not "/NAME": joined to the folder that is the root of the machine.
        let path = Path::new(folder).join(name);
        file(dir, path.to_str().unwrap(), text.as_bytes(), 100);
    }
}

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

/// Content of the target after the command between two folders.
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

#[test]
fn files_of_rules_on_either_side() {
    let stage = stage();
    for (number, (options, source, target)) in RULE_FILES.iter().enumerate() {
        let begin = |stage: &Stage| {
            for (dir, rules, is_source) in
                [(stage.src(), source, true), (stage.dst(), target, false)]
            {
                crate::common::remove_tree(&dir);
                std::fs::create_dir(&dir).unwrap();
                fill(&dir, is_source);
                rule_files(&dir, rules);
            }
        };
        let folders = Stage::new(None);
        begin(&folders);
        folders.ok(&format!("sync -rt {options} SRC/ DST/"));
        let expected = tree(&folders.dst());
        begin(&stage);
        let from = format!("BKT/from{number}/");
        stage.ok(&format!("sync -rt SRC/ {from}"));
        stage.ok("sync -rt --delete DST/ SPOT/");
        stage.ok(&format!("sync -rt {options} SRC/ SPOT/"));
        same(&format!("{options} {number}: up"), &expected, &stage.place());
        stage.ok(&format!("sync -rt {options} {from} DST/"));
        same(&format!("{options} {number}: down"), &expected, &tree(&stage.dst()));
        begin(&stage);
        stage.ok("sync -rt --delete DST/ SPOT/");
        stage.ok(&format!("sync -rt {options} {from} SPOT/"));
        same(&format!("{options} {number}: across"), &expected, &stage.place());
    }
}

#[test]
fn an_unreadable_file_of_rules_keeps_everything() {
    let stage = stage();
    fill(&stage.src(), true);
    fill(&stage.dst(), false);
    stage.ok("sync -rt SRC/ BKT/source/");
    file(&stage.dst(), "d/.rules", b"nonsense", 100);
    let run = stage.run("sync -rt --delete '--filter=: .rules' BKT/source/ DST/");
    run.expect(23).says(&["line 1"]);
    let there = tree(&stage.dst());
    assert!(there.contains_key(&b"d/old.tmp"[..]) && !there.contains_key(&b"old.tmp"[..]), "{run}");
}
