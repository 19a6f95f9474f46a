//! Paths and attributes of downloaded files: folders, times, obstacles.

use crate::download::Stage;
use std::os::unix::fs::{MetadataExt, symlink};

/// Every object of the null server was changed last at this time.
const MODIFIED_S: i64 = 1_704_067_200;

#[test]
fn a_second_run_does_nothing() {
    let stage = Stage::new("null --keys 300 --object-size 4096");
    stage.ok("sync -r s3://bkt/ OUT/");
    let names = stage.names();
    assert!(!names.is_empty());
    let before = stage.server.log(1).len();
    let run = stage.run("sync -r --json s3://bkt/ OUT/");
    let out = String::from_utf8_lossy(&run.stdout).into_owned();
    let summary: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["files"], &summary["skipped"]), (&0.into(), &300.into()), "{summary}");
    let log = stage.server.log(before + 1);
    assert!(log[before..].iter().all(|line| line["operation"] != "GetObject"));
}

#[test]
fn files_have_the_objects_time_and_the_usual_mode() {
    let stage = Stage::new("null");
    for size in [0, 4096, 9_000_000] {
        stage.ok(&format!("cp s3://bkt/a.size-{size} OUT/{size}"));
        let meta = std::fs::metadata(stage.target().join(size.to_string())).unwrap();
        assert_eq!((meta.len(), meta.mtime()), (size, MODIFIED_S));
        assert_eq!(meta.mode() & 0o7133, 0, "{:o}", meta.mode());
    }
}

#[test]
fn a_symlink_is_replaced_and_never_written_through() {
    let stage = Stage::new("null");
    let other = stage.area.join("other");
    std::fs::write(&other, b"safe").unwrap();
    for size in [4096, 9_000_000] {
        let link = stage.target().join(format!("a.size-{size}"));
        symlink(&other, &link).unwrap();
        stage.ok(&format!("sync s3://bkt/a.size-{size} OUT/"));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read(&other).unwrap(), b"safe");
    }
}

#[test]
fn a_symlink_in_the_way_is_not_followed() {
    let stage = Stage::new("null --keys 3");
    let elsewhere = stage.area.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    stage.ok("sync -r s3://bkt/ OUT/");
    let first = stage.names().remove(0);
    let path = stage.target().join(&first);
    assert!(path.is_dir(), "the server's keys have folders");
    std::fs::remove_dir_all(&path).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let run = stage.run("sync -r s3://bkt/ OUT/");
    assert_eq!(run.status.code(), Some(23), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}
