//! Listings that change while they are read, or are invalid: no existing file is deleted because of them.

use crate::wire::server::{Stage, contents, counts};

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
