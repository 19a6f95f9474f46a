//! `mv` and `rm`: what is removed, and what must stay.

use crate::objects::stage::{Stage, everywhere, file, names, on_servers, tree};

fn fill(stage: &Stage) {
    for name in ["a", "d/b", "d/e/c"] {
        file(&stage.src(), name, name.as_bytes(), 100);
    }
}

#[test]
fn mv_up_and_down() {
    everywhere(|stage| {
        fill(stage);
        stage.ok("mv SRC/a SPOT/");
        stage.ok("mv SRC/d SPOT/");
        assert!(!stage.src().join("d").exists(), "the emptied folder goes, too");
        assert_eq!(names(&stage.place()), ["a", "d/b", "d/e/c"]);
        assert!(tree(&stage.src()).is_empty());
        stage.ok("mv SPOT/a DST/x");
        assert_eq!(names(&stage.place()), ["d/b", "d/e/c"]);
        stage.ok("mv SPOT/d DST/");
        assert!(stage.place().is_empty());
        assert_eq!(names(&tree(&stage.dst())), ["d/b", "d/e/c", "x"]);
    });
}

#[test]
fn mv_inside_a_bucket() {
    on_servers(|stage| {
        for key in ["place/a", "place/d/b", "place/d/c"] {
            stage.put(key, key.as_bytes());
        }
        let asked = stage.asked(|| drop(stage.ok("mv SPOT/a BKT/moved")));
        assert!(asked.is_none_or(|asked| !asked.contains_key("GetObject")));
        stage.ok("mv SPOT/d/* BKT/wild/");
        assert_eq!(names(&stage.objects()), ["moved", "wild/b", "wild/c"]);
        assert_eq!(stage.objects()[&b"wild/b"[..]], b"place/d/b");
        // Onto itself it must not vanish.
        let run = stage.run("mv BKT/moved BKT/moved");
        assert_ne!(run.code, 0, "{run}");
        assert_eq!(stage.objects()[&b"moved"[..]], b"place/a");
    });
}

#[test]
fn mv_that_fails_keeps_the_source() {
    on_servers(|stage| {
        fill(stage);
        stage.put("place/a", b"object");
        stage.run("mv SRC/a s3://b-that-is-not-there/").expect(1);
        stage.run("mv SRC/d s3://b-that-is-not-there/").expect(1);
        stage.run("mv SPOT/a s3://b-that-is-not-there/x").expect(1);
        assert_eq!(tree(&stage.src()).len(), 3);
        std::fs::create_dir_all(stage.dst().join("a/in the way")).unwrap();
        stage.run("mv SPOT/a DST/").expect(1);
        std::fs::write(stage.dst().join("file"), b"").unwrap();
        stage.run("mv SPOT/a DST/file/there").expect(1);
        assert_eq!(names(&stage.place()), ["a"]);
        // Entries skipped at the target stay in the source.
        stage.ok("mv -n SRC/a SPOT/a");
        assert!(stage.src().join("a").exists());
        assert_eq!(stage.place()[&b"a"[..]], b"object");
    });
}

#[test]
fn rm_keys_prefixes_and_wildcards() {
    on_servers(|stage| {
        let all = ["p", "p/a", "p/b/c", "p2", "q/one", "q/other", "q/two", "place/x"];
        for key in all.iter().filter(|key| stage.server.unwrap().name == "embedded" || **key != "p")
        {
            stage.put(key, b"x");
        }
        let line = stage.ok("rm -rn BKT/p").sorted();
        assert!(line.iter().any(|line| line.contains("p/b/c")), "{line:?}");
        stage.run("rm BKT/p/").expect(2);
        assert!(stage.objects().contains_key(&b"p/a"[..]));
        stage.ok("rm -r BKT/p");
        assert_eq!(names(&stage.objects()), ["p2", "place/x", "q/one", "q/other", "q/two"]);
        stage.ok("rm BKT/q/o*");
        assert_eq!(names(&stage.objects()), ["p2", "place/x", "q/two"]);
        stage.ok("rm BKT/p2 BKT/q/two");
        assert_eq!(names(&stage.objects()), ["place/x"]);
        stage.run("rm BKT/none").expect(1).says(&["none"]);
        stage.ok("rm -f BKT/none");
        stage.run("rm BKT/none*").expect(1);
        stage.ok("rm -f BKT/none*");
        assert_eq!(names(&stage.objects()), ["place/x"]);
    });
}

#[test]
fn rm_of_more_than_a_page() {
    let stage = crate::objects::stage::stage();
    let lines: Vec<String> = (0..1200).map(|n| format!("many/{n}")).collect();
    for name in &lines {
        file(&stage.src(), name, b"", 100);
    }
    stage.counts("sync -r SRC/ SPOT/", 1200, 0);
    stage.counts("sync -r SRC/ SPOT/", 0, 1200);
    assert_eq!(stage.ok("ls -R BKT").out().lines().count(), 1200);
    let mut deletes = 0;
    let asked = stage.asked(|| drop(stage.ok("rm -r SPOT/many/")));
    deletes += asked.unwrap()["DeleteObjects"];
    assert!((2..=8).contains(&deletes), "{deletes}");
    assert!(stage.objects().is_empty());
}

/// A source that is gone does not make its target extraneous.
#[test]
fn removed_sources_do_not_empty_the_target() {
    on_servers(|stage| {
        for when in ["--delete", "--delete-before", "--delete-after", "--delete-delay"] {
            for number in 0..40 {
                file(&stage.src(), &format!("d/{number:02}"), b"content", 100);
            }
            stage.put("place/extra", b"extraneous");
            stage.ok(&format!("sync -r --remove-source-files {when} SRC/ SPOT/"));
            assert_eq!(stage.place().len(), 40, "{when}");
            assert!(tree(&stage.src()).is_empty(), "{when}");
            file(&stage.dst(), "extra", b"extraneous", 100);
            stage.ok(&format!("sync -r --remove-source-files {when} SPOT/ DST/"));
            assert_eq!(tree(&stage.dst()).len(), 40, "{when}");
            assert!(stage.place().is_empty(), "{when}");
            std::fs::remove_dir_all(stage.dst().join("d")).unwrap();
        }
    });
}
