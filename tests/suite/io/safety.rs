//! Existing files stay as they were, and no new ones are left behind.

use crate::common::area::{Area, Fs, Volume};
use crate::common::machine::Loop;
use crate::common::{have_root, must};
use crate::io::{area, io, measured, names, number};
use std::process::Command;

#[test]
fn a_file_that_was_there_is_not_written_to() {
    let area = area();
    let content = vec![7u8; 1 << 20];
    for (name, line) in [
        ("io.0.0", "--name=io --rw=write --size=1m"),
        ("thesis", "--name=io --rw=randwrite --size=64k --filename=thesis"),
        ("other", "--name=io --rw=randrw --size=64k --filename=other --direct=0"),
    ] {
        std::fs::write(area.join(name), &content).unwrap();
        io(area.path(), line).expect(1).says(&[name, "--allow-overwrite"]);
        assert!(std::fs::read(area.join(name)).unwrap() == content, "{name}");
    }
    assert_eq!(names(area.path()), ["io.0.0", "other", "thesis"]);
    // Reading does no harm, and neither removes nor changes it.
    let found = measured(area.path(), "--name=io --rw=read --size=1m --filename=thesis");
    assert_eq!(number(&found, "/jobs/0/read/io_bytes"), 1 << 20);
    assert!(std::fs::read(area.join("thesis")).unwrap() == content);
    // Asked for, it is written to, and still stays.
    io(area.path(), "--name=io --rw=write --size=1m --filename=thesis --allow-overwrite").ok();
    let now = std::fs::read(area.join("thesis")).unwrap();
    assert!(now.len() == content.len() && now != content);
}

#[test]
fn what_was_laid_out_goes_again() {
    let area = area();
    std::fs::write(area.join("mine"), "x").unwrap();
    for line in [
        "--name=io --rw=read --size=1m --numjobs=3 --nrfiles=2",
        "--name=io --rw=randwrite --size=1m",
        // An error in the midst of it.
        "--name=io --rw=read --size=64k --name=no --rw=read --size=64k --filename=/no/such/file",
    ] {
        io(area.path(), line);
        assert_eq!(names(area.path()), ["mine"], "{line}");
    }
    io(area.path(), "--name=io --rw=write --size=1m --numjobs=2 --keep").ok();
    assert_eq!(names(area.path()), ["io.0.0", "io.1.0", "mine"]);
    // Known as ours, they may be written to again.
    io(area.path(), "--name=io --rw=randwrite --size=1m --numjobs=2 --keep").ok();
    assert_eq!(names(area.path()), ["io.0.0", "io.1.0", "mine"]);
}

/// A file that was laid out here and then got content of the user's: the mark fits no longer.
#[test]
fn content_that_came_later_is_not_overwritten() {
    let area = area();
    let mine = vec![9u8; 1 << 20];
    let path = area.join("io.0.0");
    let write = "--name=io --rw=randwrite --size=1m --keep";
    type Change<'a> = &'a dyn Fn();
    let other = area.join("other");
    let changes: [(&str, Change<'_>); 3] = [
        ("the same length", &|| std::fs::write(&path, &mine).unwrap()),
        ("another length", &|| std::fs::write(&path, &mine[..5]).unwrap()),
        ("a copy with all attributes", &|| {
            must(Command::new("cp").arg("--preserve=all").args([&path, &other]));
            std::fs::rename(&other, &path).unwrap();
        }),
    ];
    for (what, change) in changes {
        let _ = std::fs::remove_file(&path);
        io(area.path(), write).ok();
        // As it was left, it is written to again, any number of times.
        io(area.path(), write).ok();
        io(area.path(), "--name=io --rw=read --size=1m").ok();
        io(area.path(), write).ok();
        std::thread::sleep(std::time::Duration::from_millis(20));
        change();
        let content = std::fs::read(&path).unwrap();
        for line in [write, "--name=io --rw=read --size=1m --unlink=1"] {
            io(area.path(), line).expect(1).says(&["io.0.0", "--allow-overwrite"]);
        }
        assert!(std::fs::read(&path).unwrap() == content, "{what}");
    }
}

#[test]
fn names_that_no_engine_opens_are_not_written_before() {
    let area = area();
    std::fs::write(area.join("mine"), "precious").unwrap();
    for engine in ["null", "http --http_host=127.0.0.1:9"] {
        let line = format!(
            "--name=a --rw=write --size=4k --filename=mine --runtime=1 --precondition --ioengine={engine}"
        );
        io(area.path(), &line);
        assert_eq!(std::fs::read(area.join("mine")).unwrap(), b"precious", "{engine}");
    }
}

#[test]
fn a_full_disk_is_known_before() {
    let what = "too large a job";
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], what) else { return };
    let run = io(volume.path(), "--name=io --rw=write --size=1g --runtime=1");
    run.expect(1).says(&["1073741824 bytes are to be laid out", "are free"]);
    let left = names(volume.path());
    assert!(left.iter().all(|name| name == "lost+found"), "{left:?}");
}

#[test]
fn a_read_only_file_system_is_an_error() {
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], "a read-only file system") else { return };
    must(Command::new("mount").args(["-o", "remount,ro"]).arg(volume.path()));
    let run = io(volume.path(), "--name=io --rw=write --size=1m");
    run.expect(1);
    assert!(run.err().to_lowercase().contains("read-only"), "{run}");
}

#[test]
fn links_lead_nowhere() {
    let area = area();
    std::fs::write(area.join("target"), vec![1u8; 1 << 20]).unwrap();
    std::os::unix::fs::symlink("target", area.join("io.0.0")).unwrap();
    io(area.path(), "--name=io --rw=write --size=1m").expect(1);
    assert!(std::fs::read(area.join("target")).unwrap() == vec![1u8; 1 << 20]);
    assert_eq!(names(area.path()), ["io.0.0", "target"]);
}

#[test]
fn devices_are_not_written_to_by_mistake() {
    if !have_root("writing to a device") {
        return;
    }
    let area = area();
    let device = Loop::over(&area.join("disk.img"), 8);
    let line = format!("--name=io --rw=write --size=1m --filename={}", device.0);
    io(area.path(), &line).expect(1).says(&[device.0.as_str(), "--allow-overwrite"]);
    assert!(std::fs::read(area.join("disk.img")).unwrap().iter().all(|byte| *byte == 0));
    io(area.path(), &format!("{line} --allow-overwrite --direct=1")).ok();
    assert!(std::fs::read(area.join("disk.img")).unwrap().iter().any(|byte| *byte != 0));
}

#[test]
fn a_mounted_device_is_never_written_to() {
    let Some(area) = Area::new(Fs::Ext4, "writing to a mounted device") else { return };
    let out =
        must(Command::new("findmnt").args(["-n", "-o", "SOURCE", "--target"]).arg(area.path()));
    let device = String::from_utf8(out).unwrap().trim().to_owned();
    let line = format!("--name=io --rw=write --size=64k --filename={device} --allow-overwrite");
    io(area.path(), &line).expect(1).says(&[device.as_str()]);
}
