//! Downloads to a file system that reports failed writes at close(2), like NFS, SMB and FUSE: the exit code
//! shows it, the object stays, and no file looks complete.

use crate::common::case::run_fed;
use crate::common::fuse::memory::{Faults, Memory};
use crate::common::fuse::{Mount, op};
use crate::common::skip;
use crate::objects::stage::{Stage, content, stage, tree};
use std::fs::File;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EDQUOT: i32 = 122;

const LINES: [&str; 6] = [
    "sync -r SPOT/ AREA/late/out/",
    "sync -r -u --part-size 5MiB SPOT/ AREA/late/out/",
    "sync -r --remove-source-files --part-size 5MiB SPOT/ AREA/late/out/",
    "cp -r -T --part-size 5MiB SPOT AREA/late/out",
    "mv -T --part-size 5MiB SPOT AREA/late/out",
    "sync -r --resume --part-size 5MiB SPOT/ AREA/late/out/",
];

fn bodies() -> [(&'static str, Vec<u8>); 3] {
    [("one", b"one".to_vec()), ("sub/two", content(2, 300_000)), ("large", content(3, 11 << 20))]
}

fn mount(stage: &Stage, faults: &Faults, writeback: bool, unnamed: bool) -> Option<Mount> {
    let memory = Memory::new(faults, writeback, unnamed);
    match Mount::new(stage.area.join("late"), "rw", memory) {
        Ok(mount) => Some(mount),
        Err(why) => {
            skip(&format!("a file system that fails late: {why}"));
            None
        }
    }
}

fn downloads_fail(writeback: bool, unnamed: bool, fails: u64) {
    let (stage, faults) = (stage(), Faults::default());
    let Some(mount) = mount(&stage, &faults, writeback, unnamed) else { return };
    for (line, errno) in LINES.into_iter().zip([ENOSPC, EDQUOT, EIO].into_iter().cycle()) {
        let out = mount.join("out");
        let _ = std::fs::remove_dir_all(&out);
        for (name, body) in bodies() {
            stage.put(&format!("place/{name}"), &body);
        }
        faults.fail(fails, errno);
        let run = stage.run(line);
        assert_ne!(run.code, 0, "{line} with {errno}: {run}");
        assert!(!run.stderr.is_empty(), "{run}");
        let (there, objects) = (tree(mount.path()), stage.place());
        for (name, body) in bodies() {
            assert!(objects.get(name.as_bytes()) == Some(&body), "{name} is gone: {run}");
            let found = there.get(format!("out/{name}").as_bytes());
            assert!(found.is_none_or(|found| found.len() < body.len()), "{name}: {run}");
        }
        faults.clear();
        stage.run(line).ok();
        let there = tree(&out);
        for (name, body) in bodies() {
            assert!(there.get(name.as_bytes()) == Some(&body), "{name}, after {run}");
        }
        assert_eq!(there.len(), bodies().len(), "{:?}", there.keys());
        let moves = line.starts_with("mv") || line.contains("--remove");
        assert_eq!(stage.place().is_empty(), moves, "{line}");
    }
}

#[test]
fn a_failed_flush_keeps_the_object() {
    downloads_fail(false, false, op::FLUSH);
    downloads_fail(false, true, op::FLUSH);
}

#[test]
fn a_failed_write_that_the_kernel_kept_keeps_the_object() {
    downloads_fail(true, false, op::WRITE);
    downloads_fail(true, true, op::WRITE);
}

/// Standard output may be such a file, too.
#[test]
fn a_failed_flush_of_standard_output_is_told() {
    let (stage, faults) = (stage(), Faults::default());
    let Some(mount) = mount(&stage, &faults, false, false) else { return };
    stage.put("place/one", b"one");
    faults.fail(op::FLUSH, ENOSPC);
    for line in ["cat SPOT/one", "ls SPOT/", "sync -rv SPOT/ DST"] {
        let mut command = stage.command(line);
        command.stdout(File::create(mount.join("said")).unwrap());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line}: {said}");
        assert!(said.contains("No space left on device"), "{line}: {said}");
        faults.clear();
        let mut command = stage.command(line);
        command.stdout(File::create(mount.join("said")).unwrap());
        assert!(command.status().unwrap().success(), "{line}");
        faults.fail(op::FLUSH, ENOSPC);
    }
}

/// The record of an unfinished download is discarded if its flush failed.
#[test]
fn a_failed_flush_of_the_journal_is_told() {
    let (stage, faults) = (stage(), Faults::default());
    let Some(mount) = mount(&stage, &faults, false, false) else { return };
    stage.put("place/large", &content(3, 11 << 20));
    let run = || {
        let mut command = stage.command("sync -r --resume --part-size 5MiB SPOT/ DST/");
        command.env("XDG_STATE_HOME", mount.join("state"));
        run_fed(&mut command, b"")
    };
    faults.fail(op::FLUSH, ENOSPC);
    run().expect(11).says(&["journal", "No space left on device"]);
    faults.clear();
    run().ok();
    assert_eq!(tree(&stage.dst()).len(), 1);
}

/// Logs that were asked for are complete, or the code says that they are not.
#[test]
fn a_failed_flush_of_a_log_is_told() {
    let (stage, faults) = (stage(), Faults::default());
    let Some(_mount) = mount(&stage, &faults, false, false) else { return };
    stage.put("place/one", b"one");
    for option in ["--joblog", "--log-file"] {
        faults.fail(op::FLUSH, EDQUOT);
        let run = stage.run(&format!("sync -r -I {option} AREA/late/log SPOT/ DST/"));
        assert_ne!(run.code, 0, "{run}");
        run.says(&["Disk quota exceeded"]);
        faults.clear();
        stage.ok(&format!("sync -r -I {option} AREA/late/log SPOT/ DST/"));
    }
}
