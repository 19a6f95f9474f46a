//! `ioengine=e4defrag`: blocks change places, content does not.

use super::{area, io, measured, number};
use crate::common::area::{Fs, Volume};
use crate::common::{have, must};
use std::path::Path;
use std::process::Command;

/// Returns the positions of a file's blocks on the device.
fn blocks(path: &Path) -> String {
    let out = must(Command::new("filefrag").arg("-ev").arg(path));
    let text = String::from_utf8(out).unwrap();
    text.lines().filter(|line| line.contains("..")).collect::<Vec<_>>().join("\n")
}

#[test]
fn blocks_change_places_and_content_stays() {
    let Some(volume) = Volume::new(Fs::Ext4, 64, &[], "exchanging blocks") else { return };
    if !have("filefrag", "blocks of a file") {
        return;
    }
    for (engine, rw) in [("", "write"), ("--inplace=1", "write"), ("--inplace=1", "randwrite")] {
        let file = volume.join("file");
        let content: Vec<u8> = (0..1u32 << 20).map(|at| ((at * 7) >> 5) as u8).collect();
        std::fs::write(&file, &content).unwrap();
        must(Command::new("sync").arg("-f").arg(&file));
        let before = blocks(&file);
        let line = format!(
            "--name=e --ioengine=e4defrag --filename=file --donorname=donor --size=1m --bs=32k --rw={rw} \
             --allow-overwrite {engine}"
        );
        let found = measured(volume.path(), &line);
        assert_eq!(number(&found, "/jobs/0/write/io_bytes"), 1 << 20, "{line}");
        assert!(std::fs::read(&file).unwrap() == content, "{line}");
        assert_ne!(blocks(&file), before, "{line}");
        // The donor file has been removed.
        assert!(!volume.join("donor").exists(), "{line}");
        std::fs::remove_file(&file).unwrap();
    }
    // Several at once, with one donor.
    let line =
        "--ioengine=e4defrag --donorname=d --size=1m --bs=32k --rw=write --name=e --numjobs=3";
    let found = measured(volume.path(), line);
    for clone in 0..3 {
        assert_eq!(number(&found, &format!("/jobs/{clone}/write/total_ios")), 32);
    }
}

#[test]
fn what_is_not_ext4_is_named() {
    let area = area();
    let line = "--name=e --ioengine=e4defrag --donorname=d --size=64k --rw=write";
    io(area.path(), line)
        .expect(1)
        .says(&["exchanging 4096 bytes", "e4defrag needs both files on one ext4"]);
    // A donor of somebody else keeps its blocks, and nobody gives to himself.
    std::fs::write(area.join("mine"), "precious").unwrap();
    let line = "--name=e --ioengine=e4defrag --donorname=mine --size=64k --rw=write";
    io(area.path(), line).expect(1).says(&["mine", "--allow-overwrite"]);
    assert_eq!(std::fs::read(area.join("mine")).unwrap(), b"precious");
    let line = "--name=e --ioengine=e4defrag --donorname=f --filename=f --size=64k --rw=write";
    io(area.path(), line).expect(1).says(&["gives its blocks to itself"]);
    let line = "--name=e --ioengine=e4defrag --size=64k";
    io(area.path(), &format!("{line} --rw=write")).expect(2).says(&["needs donorname="]);
    io(area.path(), &format!("{line} --rw=read --donorname=x"))
        .expect(2)
        .says(&["knows writes only"]);
}
