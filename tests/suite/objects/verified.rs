//! `verify` with a store: directories, symlinks and encoded names, which objects represent in their own way
//! or not at all.

use crate::objects::stage::{file, on_servers};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[test]
fn verify_ignores_what_a_store_does_not_keep() {
    on_servers(|stage| {
        file(&stage.src(), "d/a", b"same", 100);
        std::fs::create_dir_all(stage.src().join("empty/below")).unwrap();
        let link = |name: &str, text: &str| symlink(text, stage.src().join(name)).unwrap();
        for (name, text) in [("to-file", "d/a"), ("to-dir", "d"), ("nowhere", "gone")] {
            link(name, text);
        }
        stage.ok("sync -a SRC/ SPOT/");
        for line in ["SRC/ SPOT/", "SPOT/ SRC/", "-a SRC/ SPOT/", "-O SRC SPOT"] {
            let found = stage.run(&format!("verify --json {line}")).expect(0).summary();
            assert_eq!((&found["files"], &found["others"]), (&1.into(), &3.into()), "{found}");
        }
        stage.ok("verify SRC/nowhere SPOT/nowhere");
        stage.ok("sync -a SPOT/ DST/");
        stage.ok("verify -a SPOT/ DST/");
        // Another text of the same length, of another length, and a file in place of a symlink.
        let texts = [("to-file", "d/b"), ("nowhere", "elsewhere")];
        for (name, text) in texts {
            std::fs::remove_file(stage.src().join(name)).unwrap();
            link(name, text);
        }
        std::fs::remove_file(stage.src().join("to-dir")).unwrap();
        file(&stage.src(), "to-dir", b"d", 100);
        let found = stage.run("verify --json SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"], serde_json::json!({"link": 2, "type": 1}), "{found}");
        // Without contents only local symlinks are worth a request.
        let found = stage.run("verify --json --size-only SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"], serde_json::json!({"link": 2}), "{found}");
        stage.ok("verify --size-only --no-links SRC/ SPOT/");
    });
}

#[test]
fn verify_follows_symlinks_that_were_followed_on_the_way_up() {
    on_servers(|stage| {
        file(&stage.src(), "d/a", b"same", 100);
        symlink("d/a", stage.src().join("link")).unwrap();
        symlink("d", stage.src().join("dir")).unwrap();
        stage.ok("sync -rL SRC/ SPOT/");
        stage.ok("verify -L SRC/ SPOT/");
        stage.ok("verify -L SPOT/ SRC/");
        let found = stage.run("verify --json SRC/ SPOT/").expect(1).summary();
        let kinds = serde_json::json!({"missing": 1, "extra": 1});
        assert_eq!(found["by_kind"], kinds, "{found}");
        stage.run("verify -L SRC DST").expect(2);
    });
}

#[test]
fn verify_knows_encoded_names() {
    on_servers(|stage| {
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
        std::fs::write(stage.src().join(name), b"latin").unwrap();
        file(&stage.src(), "d/plain", b"same", 100);
        stage.ok("sync -a --encode-names SRC/ SPOT/");
        stage.ok("verify --encode-names SRC/ SPOT/");
        stage.ok("verify --encode-names SPOT/ SRC/");
        stage.run("verify SRC/ SPOT/").expect(1);
        std::fs::write(stage.src().join(name), b"LATIN").unwrap();
        let found = stage.run("verify --encode-names --json SRC/ SPOT/").expect(1).summary();
        assert_eq!(found["by_kind"], serde_json::json!({"content": 1}), "{found}");
    });
}
