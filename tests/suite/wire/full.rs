//! A full disk or file size limit during a download: it stops with a message, and files under their final
//! names are complete.

use crate::common::area::{Fs, Volume};
use crate::wire::server::{Stage, contents};

#[test]
fn a_full_disk_ends_a_download() {
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], "full disk") else { return };
    let stage = Stage::new();
    stage.source("large", 24 << 20);
    for number in 0..30 {
        stage.source(&format!("s{number:02}"), 400_000);
    }
    stage.seed();
    let server = stage.serve("");
    let target = volume.join("dst");
    std::fs::create_dir(&target).unwrap();
    // There is something that must not be lost.
    let old = contents(&stage.src())[std::path::Path::new("s05")].clone();
    std::fs::write(target.join("s05"), &old[1..]).unwrap();
    volume.fill(4 << 20);
    for _ in 0..2 {
        let line = format!("sync -r --json --part-size=5MiB s3://bkt/ {}/", target.display());
        let run = server.run(&line);
        run.expect(11);
        let said = run.err() + &run.out();
        assert!(said.contains("No space left on device"), "{run}");
        assert!(run.err().lines().count() <= 10, "a full disk is one problem: {run}");
        let source = contents(&stage.src());
        for (name, bytes) in contents(&target) {
            let whole = source.get(&name) == Some(&bytes);
            assert!(whole || (name.ends_with("s05") && bytes == old[1..]), "{name:?} is half");
        }
        assert!(!target.join("large").exists());
    }
    std::fs::remove_file(volume.join("ballast")).unwrap();
    let line = format!("cp s3://bkt/s0* {}/", target.display());
    server.run(&line).ok();
    assert_eq!(std::fs::read(target.join("s05")).unwrap(), old);
}

/// Room runs out for a large object only: the same, with `--resume`, whose file is kept.
#[test]
fn a_full_disk_keeps_what_can_be_resumed() {
    let Some(volume) = Volume::new(Fs::Ext4, 32, &[], "full disk") else { return };
    let stage = Stage::new();
    stage.source("large", 20 << 20);
    stage.seed();
    let server = stage.serve("");
    let ballast = volume.fill(8 << 20);
    let target = volume.join("large");
    let line = format!("cp --resume --part-size=5MiB s3://bkt/large {}", target.display());
    server.run(&line).expect(1).says(&["No space left on device"]);
    assert!(!target.exists());
    std::fs::remove_file(ballast).unwrap();
    server.run(&line).ok();
    assert!(std::fs::read(&target).ok() == stage.object("large"));
    let strays = std::fs::read_dir(volume.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("hakobu"));
    assert_eq!(strays.count(), 0);
}
