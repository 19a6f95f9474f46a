//! Written content and its checks; files that are not laid out before: those that grow, those that are written until there
//! is no room, and writes that are atomic.

use crate::common::area::{Fs, Volume};
use crate::common::{have, program};
use crate::io::{area, io, json, measured, names, number};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

#[test]
fn patterns_are_what_fio_writes() {
    if !crate::common::have("fio", "its patterns") {
        return;
    }
    for pattern in
        ["0xdeadface", "0x01", "0xfff", "\"abcd\"", "\"ab\"0xff\"c\"", "12", "-12", "1000", "70000"]
    {
        let (theirs, ours) = (area(), area());
        let line = format!("--name=p --rw=write --size=16k --bs=4k --buffer_pattern={pattern}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = std::process::Command::new("fio");
        crate::common::must(command.args(&words).current_dir(theirs.path()));
        io(ours.path(), &format!("{line} --keep")).ok();
        let read = |area: &crate::common::area::Area| std::fs::read(area.join("p.0.0")).unwrap();
        let (theirs, ours) = (read(&theirs), read(&ours));
        assert!(theirs == ours, "{pattern}: {:x?} and {:x?}", &theirs[..8], &ours[..8]);
    }
}

#[test]
fn every_way_to_check_finds_what_is_wrong() {
    for checks in [
        "--verify=crc32c --verify_backlog=4",
        "--verify=md5 --verify_interval=512",
        "--verify=meta --verify_pattern=0xaa555aa5",
        "--verify=meta --verify_pattern=0xaa555aa5 --verify_interval=512",
        "--verify=pattern --verify_pattern=\"hakobu\"",
        "--verify=sha256 --verify_dump=1",
    ] {
        let area = area();
        let line = format!("--name=v --size=64k --bs=4k {checks} --filename=f --keep");
        let found = measured(area.path(), &format!("{line} --rw=write"));
        assert_eq!(found["hakobu"]["engines"][0]["verified"], 16, "{checks}");
        let found = measured(area.path(), &format!("{line} --rw=read --do_verify=1"));
        assert_eq!(found["hakobu"]["engines"][0]["verified"], 16, "{checks}");
        // A byte of the content, behind every header.
        let mut content = std::fs::read(area.join("f")).unwrap();
        content[8192 + 700] ^= 0x10;
        std::fs::write(area.join("f"), content).unwrap();
        let run =
            io(area.path(), &format!("{line} --rw=read --allow-overwrite --output-format=json"));
        run.expect(1).says(&["offset 8"]);
        assert_eq!(json(&run)["hakobu"]["engines"][0]["verify_errors"], 1, "{checks}");
        let kept = std::fs::read(area.join("f.8192.received"));
        assert_eq!(kept.is_ok_and(|kept| kept.len() == 4096), checks.contains("dump"), "{checks}");
    }
}

#[test]
fn checks_are_left_out_or_end_a_job_where_asked() {
    let area = area();
    let line = "--name=v --size=64k --bs=4k --verify=crc32c --filename=f --keep";
    let found = measured(area.path(), &format!("{line} --rw=write --do_verify=0"));
    assert_eq!(found["hakobu"]["engines"][0]["verified"], 0);
    let found = measured(area.path(), &format!("{line} --rw=read"));
    assert_eq!(found["hakobu"]["engines"][0]["verified"], 16);
    std::fs::write(area.join("f"), [0; 65536]).unwrap();
    for (rest, wrong) in [("", 16), ("--verify_fatal=1", 1)] {
        let line = format!("{line} --rw=read {rest} --allow-overwrite --output-format=json");
        let run = io(area.path(), &line);
        run.expect(1);
        assert_eq!(json(&run)["hakobu"]["engines"][0]["verify_errors"], wrong, "{rest}");
    }
    // A note, and no more.
    let run = io(area.path(), "--name=a --size=4k --rw=write --verify=crc32c --verify_async=2");
    run.ok();
    run.says(&["verify_async has no effect here"]);
}

#[test]
fn copies_are_as_many_as_fio_writes() {
    let different = |by: &dyn Fn(&std::path::Path, &str)| {
        let area = area();
        let line = "--name=d --rw=write --size=4m --bs=4k --dedupe_percentage=50 \
                    --dedupe_mode=working_set --dedupe_working_set_percentage=10";
        by(area.path(), line);
        let content = std::fs::read(area.join("d.0.0")).unwrap();
        content.chunks(4096).collect::<HashSet<_>>().len()
    };
    let ours = different(&|folder, line| {
        io(folder, &format!("{line} --keep")).ok();
    });
    assert!((430..600).contains(&ours), "{ours} of 1024");
    if crate::common::have("fio", "its copies") {
        let theirs = different(&|folder, line| {
            let mut command = std::process::Command::new("fio");
            crate::common::must(command.args(line.split_whitespace()).current_dir(folder));
        });
        assert!(ours.abs_diff(theirs) < 120, "{ours} and {theirs} of 1024");
    }
}

#[test]
fn errors_are_tolerated_where_asked() {
    let area = area();
    let line = "--name=a --rw=write --size=8m --bs=64k --filename=/dev/full --allow-overwrite";
    // A full device is not a file that may be written; the file system of the folder is none.
    io(area.path(), line).expect(1).says(&["character device"]);
    let found = measured(area.path(), "--name=a --rw=read --size=64k --continue_on_error=all");
    assert_eq!(number(&found, "/jobs/0/total_err"), 0);
    assert_eq!(number(&found, "/jobs/0/first_error"), 0);
}

#[test]
fn files_begin_empty_and_grow() {
    let area = area();
    let length = || std::fs::metadata(area.join("a.0.0")).unwrap();
    let line = "--name=a --rw=write --bs=4k --size=1m --create_on_open=1 --keep";
    for engine in ["psync", "libaio", "io_uring"] {
        let found = measured(area.path(), &format!("{line} --io_size=256k --ioengine={engine}"));
        assert_eq!(number(&found, "/jobs/0/write/io_bytes"), 256 << 10, "{engine}");
        assert_eq!(length().len(), 256 << 10, "{engine}");
        // As it was left it is written to again.
        measured(area.path(), &format!("{line} --verify=crc32c --ioengine={engine}"));
        assert_eq!(length().len(), 1 << 20, "{engine}");
        std::fs::remove_file(area.join("a.0.0")).unwrap();
    }
    // A file that is read is created as a hole, and everything is removed again.
    measured(area.path(), "--name=a --rw=read --size=1m --create_on_open=1 --keep");
    assert_eq!((length().len(), length().blocks()), (1 << 20, 0));
    std::fs::remove_file(area.join("a.0.0")).unwrap();
    measured(area.path(), "--name=a --rw=randrw --size=1m --create_on_open=1 --verify=md5");
    assert!(names(area.path()).iter().all(|name| !name.starts_with("a.")));
    // A file of somebody else is not begun anew.
    std::fs::write(area.join("mine"), "precious").unwrap();
    let line = "--name=a --rw=write --size=4k --filename=mine --create_on_open=1";
    io(area.path(), line).expect(1).says(&["--allow-overwrite"]);
    assert_eq!(std::fs::read(area.join("mine")).unwrap(), b"precious");
}

#[test]
fn a_file_system_is_filled_and_read_again() {
    for (engine, depth) in [("psync", 1), ("libaio", 8), ("io_uring", 8)] {
        let what = "filling a file system";
        let Some(volume) = Volume::new(Fs::Ext4, 32, &[], what) else { return };
        let line = format!(
            "--bs=64k --ioengine={engine} --iodepth={depth} --direct=1 --verify=crc32c --name=w --rw=write \
             --filename=full --fill_device=1 --do_verify=0 --name=r --stonewall --rw=read \
             --filename=full --output-format=json"
        );
        let run = io(volume.path(), &line);
        run.ok();
        let found = json(&run);
        let written = number(&found, "/jobs/0/write/io_bytes");
        assert!((8 << 20..32 << 20).contains(&written), "{engine}: {written}");
        let read = number(&found, "/jobs/1/read/io_bytes");
        // Blocks that found room behind one that did not, while that one waited, are not part of the file.
        let is_right = |kept: u64, went: u64| match depth {
            1 => kept == went,
            _ => kept <= went && kept > went / 4,
        };
        assert!(is_right(read, written), "{engine}: {read} of {written}");
        assert_eq!(number(&found, "/hakobu/engines/1/verify_errors"), 0, "{engine}");
        assert!(!volume.join("full").exists());
        // It reads what it wrote by itself as well, and size is a limit.
        let line = "--name=w --rw=write --bs=64k --fill_fs=1 --verify=md5 --output-format=json";
        let found = json(io(volume.path(), line).ok());
        let blocks = number(&found, "/jobs/0/write/total_ios");
        assert_eq!(number(&found, "/hakobu/engines/0/verified"), blocks, "{engine}");
        let line = format!("{line} --ioengine={engine} --iodepth={depth} --direct=1 --bs=16k");
        let found = json(io(volume.path(), &line).ok());
        let blocks = number(&found, "/jobs/0/write/total_ios");
        let verified = number(&found, "/hakobu/engines/0/verified");
        assert!(is_right(verified, blocks), "{engine}: {verified} of {blocks}");
        let found = measured(volume.path(), "--name=w --rw=write --fill_device=1 --size=1m");
        assert_eq!(number(&found, "/jobs/0/write/io_bytes"), 1 << 20);
    }
}

#[test]
fn what_cannot_be_filled_is_named() {
    for (line, why) in [
        ("--rw=randwrite --fill_device=1", "written in sequence"),
        ("--rw=read --fill_device=1", "written in sequence"),
        ("--rw=write --fill_device=1 --ioengine=null", "written in sequence"),
        ("--rw=write --fill_device=1 --ioengine=mmap", "ioengine=mmap needs files"),
        ("--rw=write --create_on_open=1 --overwrite=1", "overwrite=1 wants"),
        ("--rw=read --create_on_open=1 --ioengine=filestat", "these have to be there"),
        ("--rw=write --atomic=1", "atomic=1 is for writes with"),
    ] {
        io(area().path(), &format!("--name=a --size=64k {line}")).expect(2).says(&[why]);
    }
    let area = area();
    let line = "--name=r --rw=read --filename=x --name=w --rw=write --filename=x --fill_device=1";
    io(area.path(), line).expect(1).says(&["the file does not exist"]);
}

#[test]
fn atomic_writes_are_asked_for() {
    if !have("strace", "atomic writes") {
        return;
    }
    for (engine, call) in [("pvsync2", "pwritev2("), ("libaio", "io_submit("), ("io_uring", "")] {
        let area = area();
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "trace", "-e", "trace=pwritev2,io_submit,openat"]).arg(program());
        command.args(["io", "--name=a", "--rw=write", "--size=64k", "--bs=4k", "--atomic=1"]);
        command.arg(format!("--ioengine={engine}")).current_dir(area.path());
        let output = command.env("XDG_STATE_HOME", area.join("state")).output().unwrap();
        let trace = std::fs::read_to_string(area.join("trace")).unwrap();
        let asks = |line: &&str| {
            line.contains(call) && (line.contains("RWF_ATOMIC") || line.contains("0x40"))
        };
        if !call.is_empty() {
            assert!(trace.lines().any(|line| asks(&line)), "{engine}: {trace}");
        }
        assert!(trace.lines().any(|line| line.contains("a.0.0") && line.contains("O_DIRECT")));
        // Memory promises nothing: then the error is named. A device that does is fine.
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = said.contains("atomic=1: the device") || said.contains("atomic=1: sizes");
        assert!(output.status.success() || refused && output.status.code() == Some(1), "{said}");
    }
}
