//! Written content, and the checks of it.

use super::{area, io, json, measured, number};
use std::collections::HashSet;

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
