//! Detection of changes: each case starts with the same two files on both sides, changes the source, and
//! checks what the next run transfers, removes, and leaves alone.

use crate::objects::stage::{Stage, everywhere, file, names, on_servers, tree};

fn begin(stage: &Stage, first: &str) {
    file(&stage.src(), "a", b"aaaa", 100);
    file(&stage.src(), "d/b", b"bbbb", 100);
    stage.counts(first, 2, 0);
}

/// Runs the line; the place must have these names and contents then.
#[track_caller]
fn then(stage: &Stage, line: &str, files: u64, expected: &[(&str, &str)]) {
    let run = stage.run(&format!("{line} --json"));
    let summary = run.ok().summary();
    assert_eq!(summary["files"], files, "{run}");
    let found = stage
        .place()
        .into_iter()
        .map(|(name, body)| (String::from_utf8(name).unwrap(), String::from_utf8(body).unwrap()));
    let found: Vec<_> = found.collect();
    let found: Vec<_> = found.iter().map(|(name, body)| (&**name, &**body)).collect();
    assert_eq!(found, expected, "{run}");
}

/// Entries transferred after a change: with `-t` for every place, and without it for servers.
type Change = (&'static str, fn(&Stage), u64, &'static [(&'static str, &'static str)]);

const CHANGES: &[Change] = &[
    ("", newer, 1, &[("a", "AAAA"), ("d/b", "bbbb")]),
    ("", longer_and_older, 1, &[("a", "longer"), ("d/b", "bbbb")]),
    ("--size-only", newer, 0, &[("a", "aaaa"), ("d/b", "bbbb")]),
    ("--size-only", longer_and_older, 1, &[("a", "longer"), ("d/b", "bbbb")]),
    ("", unseen, 0, &[("a", "aaaa"), ("d/b", "bbbb")]),
    ("--checksum", unseen, 1, &[("a", "AAAA"), ("d/b", "bbbb")]),
    ("--checksum", touched, 0, &[("a", "aaaa"), ("d/b", "bbbb")]),
    ("--ignore-times", unseen, 2, &[("a", "AAAA"), ("d/b", "bbbb")]),
    ("--update", longer_and_older, 0, &[("a", "aaaa"), ("d/b", "bbbb")]),
    ("--update", newer, 1, &[("a", "AAAA"), ("d/b", "bbbb")]),
    ("--ignore-existing", newer_and_new, 1, &[("a", "aaaa"), ("c", "cccc"), ("d/b", "bbbb")]),
    ("--existing", newer_and_new, 1, &[("a", "AAAA"), ("d/b", "bbbb")]),
    ("--existing --ignore-existing", newer_and_new, 0, &[("a", "aaaa"), ("d/b", "bbbb")]),
    ("--delete", one_gone, 0, &[("a", "aaaa")]),
    ("--delete", newer_and_new, 2, &[("a", "AAAA"), ("c", "cccc"), ("d/b", "bbbb")]),
    ("--delete --existing --ignore-existing", one_gone, 0, &[("a", "aaaa")]),
    ("-n --delete", newer_and_new, 2, &[("a", "aaaa"), ("d/b", "bbbb")]),
    ("-n --delete", one_gone, 0, &[("a", "aaaa"), ("d/b", "bbbb")]),
];

/// Newer than any upload that was just made.
fn newer(stage: &Stage) {
    file(&stage.src(), "a", b"AAAA", -5);
}

fn longer_and_older(stage: &Stage) {
    file(&stage.src(), "a", b"longer", 5000);
}

fn unseen(stage: &Stage) {
    let path = stage.src().join("a");
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, b"AAAA").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
}

fn touched(stage: &Stage) {
    file(&stage.src(), "a", b"aaaa", -5);
}

fn newer_and_new(stage: &Stage) {
    newer(stage);
    file(&stage.src(), "c", b"cccc", 100);
}

fn one_gone(stage: &Stage) {
    std::fs::remove_dir_all(stage.src().join("d")).unwrap();
}

#[test]
fn sync_rt_after_changes() {
    for (options, change, files, expected) in CHANGES {
        everywhere(|stage| {
            begin(stage, "sync -rt SRC/ SPOT/");
            change(stage);
            then(stage, &format!("sync -rt {options} SRC/ SPOT/"), *files, expected);
        });
    }
}

#[test]
fn sync_r_after_changes() {
    for (options, change, files, expected) in CHANGES {
        on_servers(|stage| {
            begin(stage, "sync -r SRC/ SPOT/");
            change(stage);
            then(stage, &format!("sync -r {options} SRC/ SPOT/"), *files, expected);
        });
    }
}

#[test]
fn cp_with_options() {
    everywhere(|stage| {
        file(&stage.src(), "a", b"old", 100);
        stage.ok("cp SRC/a SPOT/a");
        file(&stage.src(), "a", b"new!", 50);
        stage.ok("cp -n SRC/a SPOT/a");
        stage.ok("cp -u SRC/a SPOT/a");
        assert_eq!(stage.place()[&b"a"[..]], b"old");
        stage.ok("cp --dry-run SRC/a SPOT/a");
        assert_eq!(stage.place()[&b"a"[..]], b"old");
        stage.ok("cp SRC/a SPOT/a");
        assert_eq!(stage.place()[&b"a"[..]], b"new!");
        file(&stage.src(), "a", b"same", 50);
        stage.ok("cp --size-only SRC/a SPOT/a");
        assert_eq!(stage.place()[&b"a"[..]], b"new!");
    });
}

#[test]
fn changes_of_objects_come_down() {
    on_servers(|stage| {
        stage.put("place/a", b"aaaa");
        stage.put("place/d/b", b"bbbb");
        stage.counts("sync -r SPOT/ DST/", 2, 0);
        // A local file of another time is not the object, whichever is newer.
        crate::objects::stage::age(&stage.dst().join("a"), 5000);
        std::fs::write(stage.dst().join("extra"), b"").unwrap();
        stage.put("place/d/b", b"longer");
        stage.counts("sync -r SPOT/ DST/", 2, 0);
        stage.counts("sync -r SPOT/ DST/", 0, 2);
        assert_eq!(tree(&stage.dst())[&b"d/b"[..]], b"longer");
        file(&stage.dst(), "a", b"AAAA", 0);
        stage.counts("sync -r --size-only SPOT/ DST/", 0, 2);
        stage.counts("sync -rc SPOT/ DST/", 1, 1);
        assert_eq!(tree(&stage.dst())[&b"a"[..]], b"aaaa");
        file(&stage.dst(), "a", b"mine", -50);
        stage.counts("sync -ru SPOT/ DST/", 0, 2);
        assert_eq!(tree(&stage.dst())[&b"a"[..]], b"mine");
        stage.ok("sync -r --delete -n SPOT/ DST/");
        assert_eq!(names(&tree(&stage.dst())), ["a", "d/b", "extra"]);
        stage.ok("sync -r --delete SPOT/ DST/");
        assert_eq!(names(&tree(&stage.dst())), ["a", "d/b"]);
    });
}

#[test]
fn max_delete_holds_back_the_rest() {
    everywhere(|stage| {
        for name in ["keep", "x1", "x2", "x3"] {
            file(&stage.src(), name, b"x", 100);
        }
        stage.counts("sync -rt SRC/ SPOT/", 4, 0);
        for name in ["x1", "x2", "x3"] {
            std::fs::remove_file(stage.src().join(name)).unwrap();
        }
        stage.run("sync -rt --delete --max-delete=1 SRC/ SPOT/").expect(25);
        assert_eq!(stage.place().len(), 3);
        stage.run("sync -rt --delete --max-delete=2 SRC/ SPOT/").ok();
        assert_eq!(names(&stage.place()), ["keep"]);
    });
}

#[test]
fn a_source_that_cannot_be_found_keeps_everything_at_the_target() {
    on_servers(|stage| {
        file(&stage.src(), "a", b"x", 100);
        stage.put("place/of-the-other", b"x");
        stage.run("sync -rt --delete SRC/ SRC/none/ SPOT/").expect(23);
        assert_eq!(names(&stage.place()), ["a", "of-the-other"]);
    });
}

#[test]
fn a_dry_run_tells_the_mapping() {
    on_servers(|stage| {
        file(&stage.src(), "d/f g", b"x", 100);
        stage.put("place/old", b"x");
        let run = stage.ok("sync -rn --delete SRC/ SPOT/");
        let (src, bucket) = (stage.src(), &stage.bucket);
        let expected = [
            format!("cp '{}/d/f g' 's3://{bucket}/place/d/f g'", src.display()),
            format!("rm 's3://{bucket}/place/old'"),
        ];
        assert_eq!(run.sorted(), expected.map(|line| line.replace('\'', "\\'")), "{run}");
        assert_eq!(names(&stage.place()), ["old"]);
        // It is a file for `run`.
        stage.fed("run -", &run.stdout).ok();
        assert_eq!(names(&stage.place()), ["d/f g"]);
        let run = stage.ok("sync -rn SPOT/ DST/");
        assert_eq!(run.out().lines().count(), 1, "{run}");
        assert!(tree(&stage.dst()).is_empty());
    });
}
