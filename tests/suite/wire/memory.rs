//! Memory is independent of the number of keys.

use crate::common::have;
use crate::wire::server::{Stage, counts};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

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
