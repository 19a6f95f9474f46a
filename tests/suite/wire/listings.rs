//! Listings that change while they are read, or are invalid: no existing file is deleted because of them.

use super::server::{Stage, contents, counts};
use crate::common::have;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

fn stage() -> Stage {
    let stage = Stage::new();
    for name in ["a", "b", "c/1", "c/2", "d"] {
        stage.source(name, 100);
    }
    stage.seed();
    stage
}

/// A key of the target that the listing misses is written again, one that it makes up is gone
/// already; neither is a reason to delete anything else.
#[test]
fn keys_of_the_target_come_and_go() {
    let stage = stage();
    for fault in ["drop=2", "add=bb", "drop=1,add=zz", "add=c/0"] {
        let server = stage.serve(&format!("--fault list:{fault}"));
        let run = server.run("sync -r --delete --json SRC/ s3://bkt/");
        assert_eq!(run.code, 0, "{fault}: {run}");
        counts(&run, &[("failed", 0)]);
        for (name, bytes) in contents(&stage.src()) {
            assert_eq!(stage.object(name.to_str().unwrap()), Some(bytes), "{fault}: {name:?}");
        }
    }
}

/// A key of the source that is gone when it is asked for vanished; the others arrive.
#[test]
fn keys_of_the_source_come_and_go() {
    let stage = stage();
    let server = stage.serve("--fault list:add=bb");
    let run = server.run("sync -r --delete --json s3://bkt/ DST/");
    run.expect(24);
    counts(&run, &[("files", 5), ("failed", 0), ("vanished", 1), ("deleted", 0)]);
    stage.target_is_source();
    // One that was there before and comes late is not deleted when it is listed again.
    stage.serve("").run("sync -r --delete s3://bkt/ DST/").ok();
    stage.target_is_source();
}

/// Without an order missing names cannot be told: such a run ends and deletes nothing.
#[test]
fn keys_out_of_order() {
    let stage = stage();
    stage.serve("").run("sync -r s3://bkt/ DST/").ok();
    std::fs::write(stage.dst().join("bb"), "extra").unwrap();
    std::fs::write(stage.dst().join("zz"), "extra").unwrap();
    let (here, there) = (contents(&stage.dst()), contents(&stage.area.join("root")));
    let server = stage.serve("--fault list:swap=yes");
    for line in ["sync -r --delete --json s3://bkt/ DST/", "sync -r --delete --json SRC/ s3://bkt/"]
    {
        let run = server.run(line);
        assert!([11, 23].contains(&run.code), "{run}");
        counts(&run, &[("deleted", 0)]);
        assert!(run.err().contains("order") || run.out().contains("order"), "{run}");
        let keys = |all: &std::collections::BTreeMap<_, _>| all.keys().cloned().collect::<Vec<_>>();
        assert!(keys(&contents(&stage.dst())) == keys(&here), "{run}");
        for name in there.keys().filter(|name| !name.to_string_lossy().contains('.')) {
            assert!(stage.area.join("root").join(name).exists(), "{run}");
        }
    }
}

/// The second page of several is out of order, or fails: nothing beyond it is deleted.
#[test]
fn a_later_page_is_wrong() {
    let stage = Stage::new();
    for fault in ["list:swap=yes", "error:op=ListObjectsV2,code=AccessDenied"] {
        std::fs::create_dir_all(stage.dst().join("d0000")).unwrap();
        for name in ["d0000/extra", "zzz"] {
            std::fs::write(stage.dst().join(name), "extra").unwrap();
        }
        let fault = format!("{fault},skip=1").replace(":,", ":");
        let server = stage.null(&format!("--keys 3000 --object-size 10 --fault {fault}"));
        let run = server.run("sync -r --delete --json s3://bkt/ DST/");
        assert!([11, 23].contains(&run.code), "{fault}: {run}");
        assert!(stage.dst().join("zzz").exists(), "{fault}: {run}");
    }
}

// A server that supports only version 1 of the listing.

const ONE: &str = "--use-list-objects-v1";

#[test]
fn listings_by_the_first_version() {
    let stage = Stage::new();
    // More than a page; a folder after it, and one between two keys.
    for number in 0..1100 {
        stage.source(&format!("f{number:04}"), 3);
    }
    stage.source("f05/inside", 7);
    stage.source("z/last", 9);
    stage.seed();
    let server = stage.serve("--fault error:op=ListObjectsV2,code=NotImplemented,status=501");
    let run = server.run("ls s3://bkt/");
    assert_ne!(run.code, 0, "{run}");
    let listed = |line: &str| {
        let run = server.run(line);
        run.ok().out().lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    };
    let top: Vec<String> = listed(&format!("ls {ONE} s3://bkt/"));
    assert_eq!(top.len(), 1102, "{top:?}");
    assert!(top.contains(&"f05/".to_owned()) && top.contains(&"z/".to_owned()), "{top:?}");
    let all: Vec<String> = listed(&format!("ls -R {ONE} s3://bkt/"));
    assert_eq!(all.len(), 1102);
    assert!(all.contains(&"f05/inside".to_owned()) && all.is_sorted(), "{all:?}");
    // The word that others have for it.
    let long: Vec<String> = listed("ls -lR --list-objects-v1 s3://bkt/f05/");
    assert_eq!(long, ["f05/inside"]);
    server.run(&format!("sync -r {ONE} s3://bkt/ DST/")).ok();
    stage.target_is_source();
    server.run(&format!("sync -r --delete {ONE} DST/ s3://bkt/")).ok();
    server.run(&format!("rm -r {ONE} s3://bkt/")).ok();
    assert_eq!(stage.object("f0000"), None);
}

// Memory is independent of the number of keys.

const KEYS: usize = 100_000;
/// Every object of the null server was changed last at this time.
const MODIFIED_S: u64 = 1_704_067_200;
const PEAK_KIB_MAX: u64 = 96 << 10;

/// A local tree that is what the null server lists.
fn tree(root: &Path, size: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
    for number in 0..KEYS {
        let dir = root.join(format!("d{:04}", number / 1000));
        if number % 1000 == 0 {
            std::fs::create_dir(&dir).unwrap();
        }
        let file = std::fs::File::create(dir.join(format!("f{number:06}"))).unwrap();
        file.set_len(size).unwrap();
        file.set_modified(time).unwrap();
    }
}

#[test]
fn a_hundred_thousand_keys_that_are_unchanged() {
    if !have("time", "memory of a run") {
        return;
    }
    let stage = Stage::new();
    tree(&stage.dst(), 77);
    let server = stage.null(&format!("--keys {KEYS} --object-size 77"));
    for line in [
        "sync -r --delete --json s3://bkt/ DST/",
        "sync -r --delete --json DST/ s3://bkt/",
        "sync -r --delete --json s3://bkt/ s3://other/",
    ] {
        let run = server.run_measured(line);
        run.0.ok();
        let counted = [("files", 0), ("deleted", 0), ("failed", 0), ("skipped", KEYS as u64)];
        counts(&run.0, &counted);
        assert!(run.1 <= PEAK_KIB_MAX, "{line}: {} KiB for {KEYS} keys", run.1);
    }
    // The tree was only looked at.
    let meta = std::fs::metadata(stage.dst().join("d0042/f042000")).unwrap();
    assert_eq!((meta.len(), meta.mtime()), (77, MODIFIED_S as i64));
}
