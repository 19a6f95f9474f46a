//! Round trips: uploads and downloads preserve content and metadata.

use crate::objects::stage::{Stage, content, everywhere, file, names, on_servers, same, tree};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

const PART: usize = 5 << 20;

/// `--part-size` where there are parts.
fn parts(stage: &Stage) -> &'static str {
    stage.server.map_or("", |_| " --part-size 5MiB")
}

#[test]
fn sync_r_of_all_sizes() {
    everywhere(|stage| {
        let sizes = [0, 1, 4096, PART - 1, PART, PART + 1, 20_000_000];
        for (seed, size) in sizes.into_iter().enumerate() {
            file(&stage.src(), &format!("f{size}"), &content(seed as u64, size), 100);
        }
        let line = format!("sync -r SRC/ SPOT/{}", parts(stage));
        let files = sizes.len() as u64;
        let mut summary = serde_json::Value::Null;
        let asked = stage.asked(|| summary = stage.counts(&line, files, 0));
        assert_eq!(summary["bytes"], tree(&stage.src()).values().map(Vec::len).sum::<usize>());
        if let Some(asked) = asked {
            let parts = ["PutObject", "CreateMultipartUpload", "UploadPart"];
            assert_eq!(parts.map(|name| asked[name]), [5, 2, 2 + 4], "{asked:?}");
            assert!(!asked.contains_key("HeadObject"), "{asked:?}");
        }
        same("up", &tree(&stage.src()), &stage.place());
        let asked = stage.asked(|| drop(stage.counts("sync -r SPOT/ DST/", files, 0)));
        // Large objects are looked at before their parts are asked for.
        let heads = asked.map_or(0, |asked| asked.get("HeadObject").copied().unwrap_or(0));
        assert!(heads <= 3, "{heads}");
        same("down", &tree(&stage.src()), &tree(&stage.dst()));
    });
}

/// A nested tree with names that sort differently as paths and as keys.
fn nested(dir: &Path) {
    let paths = ["a", "a-b", "a.txt", "b/x", "b.c/y", "b0/z", "d/e/f/g/h", "d/e-/i", "d/e/j"];
    for (seed, path) in paths.into_iter().enumerate() {
        file(dir, path, &content(seed as u64, 300 + seed), 100);
    }
}

#[test]
fn trees_come_back() {
    everywhere(|stage| {
        nested(&stage.src());
        stage.counts("sync -r SRC/ SPOT/", 9, 0);
        same("sync up", &tree(&stage.src()), &stage.place());
        stage.counts("sync -r SPOT/ DST/", 9, 0);
        same("sync down", &tree(&stage.src()), &tree(&stage.dst()));
        // cp -r copies a folder into one that is there.
        stage.ok("cp -r SRC/d SPOT/b/");
        let mut expected = tree(&stage.src());
        for name in ["d/e/f/g/h", "d/e-/i", "d/e/j"] {
            let body = expected[name.as_bytes()].clone();
            expected.insert(format!("b/{name}").into_bytes(), body);
        }
        same("cp -r up", &expected, &stage.place());
        stage.ok("cp -r SPOT/b/d DST/b/");
        same("cp -r down", &expected, &tree(&stage.dst()));
    });
}

#[test]
fn cp_of_single_files() {
    everywhere(|stage| {
        file(&stage.src(), "f", b"one", 100);
        file(&stage.src(), "g", b"two", 100);
        stage.ok("cp SRC/f SPOT/");
        stage.ok("cp SRC/f SPOT/other");
        stage.ok("cp SRC/f SRC/g SPOT/");
        assert_eq!(names(&stage.place()), ["f", "g", "other"]);
        assert_eq!(stage.place()[&b"other"[..]], b"one");
        stage.ok("cp SPOT/f DST/");
        stage.ok("cp SPOT/g DST/h");
        stage.ok("cp SPOT/other SPOT/g DST");
        let down = tree(&stage.dst());
        assert_eq!(names(&down), ["f", "g", "h", "other"]);
        assert_eq!((&*down[&b"h"[..]], &*down[&b"other"[..]]), (&b"two"[..], &b"one"[..]));
        // Without -r a folder is an error, and nothing of it is copied.
        let run = stage.run("cp SRC SPOT/x");
        run.expect(1);
        assert_eq!(names(&stage.place()), ["f", "g", "other"]);
    });
}

#[test]
fn wildcards_need_no_r() {
    on_servers(|stage| {
        for key in ["place/a1", "place/a2", "place/b1", "place/d/a3", "placea4"] {
            stage.put(key, key.as_bytes());
        }
        stage.ok("cp SPOT/a* DST/");
        assert_eq!(names(&tree(&stage.dst())), ["a1", "a2"]);
        stage.ok("cp SPOT/*a? DST/");
        assert_eq!(names(&tree(&stage.dst())), ["a1", "a2", "d/a3"]);
        stage.run("cp SPOT/no* DST/").expect(1).says(&["matches nothing"]);
        stage.put("place/*", b"star");
        stage.ok("cp --raw SPOT/* DST/");
        assert_eq!(names(&tree(&stage.dst())), ["*", "a1", "a2", "d/a3"]);
    });
}

#[test]
fn sync_a_keeps_times_and_modes() {
    everywhere(|stage| {
        let modes = [("f", 0o640), ("d/run", 0o755), ("d/ro", 0o400), ("g", 0o666)];
        for (at, (name, mode)) in modes.into_iter().enumerate() {
            file(&stage.src(), name, name.as_bytes(), 1000 + at as i64);
            let path = stage.src().join(name);
            let odd = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_007, 123_456_789);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(odd).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        }
        stage.counts("sync -a SRC/ SPOT/", 4, 0);
        stage.counts("sync -a SPOT/ DST/", 4, 0);
        for (name, mode) in modes {
            let meta = std::fs::metadata(stage.dst().join(name)).unwrap();
            let found = (meta.mtime(), meta.mtime_nsec(), meta.mode() & 0o7777);
            assert_eq!(found, (1_000_000_007, 123_456_789, mode), "{name}");
        }
    });
}

#[test]
fn symlinks_are_skipped_followed_or_kept() {
    everywhere(|stage| {
        file(&stage.src(), "f", b"target", 100);
        file(&stage.src(), "d/g", b"below", 100);
        symlink("f", stage.src().join("link")).unwrap();
        symlink("d", stage.src().join("dir")).unwrap();
        symlink("nowhere", stage.src().join("broken")).unwrap();
        stage.ok("sync -r SRC/ SPOT/");
        assert_eq!(names(&stage.place()), ["d/g", "f"]);
        // Follows a symlink; a dangling one is a separate error.
        stage.run("sync -rL SRC/ SPOT/").expect(23).says(&["broken"]);
        assert_eq!(names(&stage.place()), ["d/g", "dir/g", "f", "link"]);
        assert_eq!(stage.place()[&b"link"[..]], b"target");
        stage.ok("sync -a --delete SRC/ BKT/kept/");
        stage.ok("sync -a BKT/kept/ DST/");
        for (name, text) in [("link", "f"), ("dir", "d"), ("broken", "nowhere")] {
            let found = std::fs::read_link(stage.dst().join(name));
            assert_eq!(found.unwrap(), Path::new(text), "{name}");
        }
        stage.counts("sync -a SRC/ BKT/kept/", 0, 5);
        stage.counts("sync -a BKT/kept/ DST/", 0, 5);
    });
}

#[test]
fn empty_folders_need_dir_markers() {
    on_servers(|stage| {
        file(&stage.src(), "d/f", b"x", 100);
        std::fs::create_dir_all(stage.src().join("empty/inner")).unwrap();
        stage.ok("sync -r SRC/ SPOT/");
        assert_eq!(names(&stage.place()), ["d/f"]);
        stage.ok("sync -r --dir-markers SRC/ SPOT/");
        assert_eq!(names(&stage.place()), ["d/f", "empty/inner/"]);
        assert_eq!(stage.place()[&b"empty/inner/"[..]], b"");
        let asked = stage.asked(|| drop(stage.ok("sync -r --dir-markers SRC/ SPOT/")));
        assert!(asked.is_none_or(|asked| !asked.contains_key("PutObject")));
        stage.ok("sync -r SPOT/ DST/");
        assert!(!stage.dst().join("empty").exists() && stage.dst().join("d/f").exists());
        stage.ok("sync -r --dir-markers SPOT/ DST/");
        assert!(stage.dst().join("empty/inner").is_dir());
        stage.ok("sync -r --dir-markers --delete SPOT/ DST/");
        assert!(stage.dst().join("empty/inner").is_dir());
        std::fs::remove_dir_all(stage.src().join("empty")).unwrap();
        stage.ok("sync -r --dir-markers --delete SRC/ SPOT/");
        assert_eq!(names(&stage.place()), ["d/f"]);
    });
}
