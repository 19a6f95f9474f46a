//! Downloads onto a file system that takes different names for one: NTFS that ignores case.

use crate::common::machine::Undo;
use crate::common::{have, have_root, must};
use crate::objects::stage::{Stage, stage, tree};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// Mounts such a file system in the area of a case.
fn caseless(stage: &Stage) -> Option<(PathBuf, Undo)> {
    const WHAT: &str = "names that differ in case";
    if !have_root(WHAT) || !have("lowntfs-3g", WHAT) || !have("mkntfs", WHAT) {
        return None;
    }
    let (image, root) = (stage.area.join("image"), stage.area.join("caseless"));
    std::fs::create_dir(&root).unwrap();
    std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
    must(Command::new("mkntfs").args(["-F", "-Q", "-q"]).arg(&image));
    let undo = Undo::new(&format!("umount -l '{}'", root.display()));
    must(Command::new("lowntfs-3g").args(["-o", "ignore_case"]).arg(&image).arg(&root));
    Some((root, undo))
}

fn fill(stage: &Stage, keys: &[&str]) {
    for key in keys {
        stage.put(&format!("place/{key}"), format!("content of {key}").as_bytes());
    }
}

fn contents(stage: &Stage, root: &std::path::Path) -> BTreeSet<Vec<u8>> {
    let objects = stage.objects().into_values();
    objects.chain(tree(root).into_values()).collect()
}

const KEYS: &[&str] = &["A", "a", "Dir/x", "dir/x", "Dir/y", "dir/z", "one"];

#[test]
fn names_of_one_run_never_replace_each_other() {
    let stage = stage();
    let Some((root, _undo)) = caseless(&stage) else { return };
    for (line, code) in [
        ("mv SPOT/ AREA/caseless/t/", 1),
        ("mv -j1 SPOT/* AREA/caseless/t/", 1),
        ("mv BKT/place/A BKT/place/a AREA/caseless/t/", 1),
        ("mv --case-conflict=ignore SPOT/ AREA/caseless/t/", 1),
        ("mv --case-conflict=skip SPOT/ AREA/caseless/t/", 0),
        ("sync -r --remove-source-files SPOT/ AREA/caseless/t/", 23),
        ("cp -r SPOT/ AREA/caseless/t/", 1),
        ("cp -r --part-size=5MiB SPOT/ AREA/caseless/t/", 1),
        ("sync -r --delete SPOT/ AREA/caseless/t/", 23),
    ] {
        fill(&stage, KEYS);
        std::fs::create_dir(root.join("t")).unwrap();
        let before = contents(&stage, &root);
        let run = stage.run(line);
        run.expect(code);
        if code != 0 {
            run.says(&["the target's file system takes its name for that of another file"]);
            // Either one may be the first.
            assert!(run.err().to_lowercase().contains("/a'"), "{run}");
        }
        assert_eq!(contents(&stage, &root), before, "{run}");
        let moves = line.starts_with("mv") || line.contains("--remove");
        if moves && !line.contains("place/A") {
            let left: Vec<_> = stage.place().into_keys().collect();
            assert_eq!(left.len(), 2, "{run}: {left:?}");
        }
        emptied(&root.join("t"));
    }
}

#[test]
fn other_names_come_again_without_work() {
    let stage = stage();
    let Some((root, _undo)) = caseless(&stage) else { return };
    fill(&stage, &["README", "Dir/x", "dir/z", "one"]);
    let all = contents(&stage, &root);
    // The file system lists its names in lower case: they are found all the same, and not removed.
    for delete in ["", " --delete", " --delete-before", " --delete-after", " --delete"] {
        stage.ok(&format!("sync -r{delete} SPOT/ AREA/caseless/t/"));
        assert_eq!(tree(&root).into_values().collect::<BTreeSet<_>>(), all, "{delete}");
    }
    stage.counts("sync -r SPOT/ AREA/caseless/t/", 0, 4);
    stage.put("place/README", b"another content");
    stage.counts("sync -r --delete SPOT/ AREA/caseless/t/", 1, 3);
    assert!(tree(&root).into_values().any(|content| content == b"another content"));
    // What another program put there is an ordinary target of cp.
    stage.ok("cp -r SPOT/ AREA/caseless/t/");
}

#[test]
fn conflicts_are_as_asked() {
    let stage = stage();
    let Some((root, _undo)) = caseless(&stage) else { return };
    fill(&stage, &["A", "a"]);
    stage.ok("cp -r --case-conflict=skip SPOT/ AREA/caseless/").says(&["skipped", "/a'"]);
    assert_eq!(tree(&root)[&b"a"[..]], b"content of A");
    stage.ok("cp -r --case-conflict=warn SPOT/ AREA/caseless/").says(&["it replaced another file"]);
    stage.ok("cp -r -j1 --case-conflict=ignore SPOT/ AREA/caseless/");
    assert_eq!(tree(&root).len(), 1);
    stage
        .run("cp --case-conflict=x SPOT/A AREA/caseless/")
        .expect(2)
        .says(&["invalid --case-conflict 'x': none of error, skip, warn, ignore"]);
    // Elsewhere they are two names.
    stage.ok("cp -r SPOT/ DST/");
    assert_eq!(tree(&stage.dst()).len(), 2);
}

/// Removes a directory. FUSE removes files that were open a moment later.
fn emptied(dir: &std::path::Path) {
    for _ in 0..50 {
        if std::fs::remove_dir_all(dir).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    std::fs::remove_dir_all(dir).unwrap();
}
