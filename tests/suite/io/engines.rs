//! Engines of names and of ranges, and the one of the CPU: what they do, what they leave, what fio says of the same.

use super::{area, io, json, measured, names, number};
use crate::common::{have, must};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// fio's report.
fn fio(folder: &Path, line: &str) -> Value {
    let mut command = Command::new("fio");
    command.args(line.split_whitespace()).arg("--output-format=json").current_dir(folder);
    let out = must(&mut command);
    let start = out.iter().position(|byte| *byte == b'{').unwrap();
    serde_json::from_slice(&out[start..]).unwrap()
}

#[test]
fn operations_on_names_are_counted_and_timed() {
    for (line, left) in [
        ("--ioengine=filecreate", 0),
        ("--ioengine=filecreate --create_on_open=1 --openfiles=1 --fallocate=none", 0),
        ("--ioengine=filestat", 0),
        ("--ioengine=filestat --stat_type=lstat", 0),
        ("--ioengine=filestat --stat_type=statx --keep", 60),
        ("--ioengine=filedelete", 0),
        ("--ioengine=filedelete --keep --unlink=0", 0),
        ("--ioengine=dircreate", 0),
        ("--ioengine=dirstat", 0),
        ("--ioengine=dirstat --keep", 60),
        ("--ioengine=dirdelete", 0),
    ] {
        let area = area();
        let line = format!("--name=t {line} --filesize=4k --nrfiles=20 --numjobs=3");
        let found = measured(area.path(), &line);
        for clone in 0..3 {
            let side = format!("/jobs/{clone}/read");
            assert_eq!(number(&found, &format!("{side}/total_ios")), 20, "{line}");
            assert_eq!(number(&found, &format!("{side}/clat_ns/N")), 20, "{line}");
            assert!(number(&found, &format!("{side}/clat_ns/min")) > 100, "{line}");
        }
        let files = names(area.path()).into_iter().filter(|name| name.starts_with("t."));
        assert_eq!(files.count(), left, "{line}");
    }
}

#[test]
fn operations_on_names_are_the_calls_they_say() {
    if !have("strace", "calls of the engines of names") {
        return;
    }
    for (engine, call) in [
        ("filecreate", "openat("),
        ("filestat", "newfstatat("),
        ("filestat --stat_type=statx", "statx("),
        ("filedelete", "unlinkat("),
        ("dircreate", "mkdirat("),
        ("dirdelete", "unlinkat("),
    ] {
        let area = area();
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "trace", "-e"]);
        command.arg("trace=openat,newfstatat,statx,unlinkat,mkdirat,mkdir,rmdir,unlink");
        command.arg(crate::common::program()).args(["io", "--name=zz", "--nrfiles=7"]);
        command.arg("--filesize=4k");
        command.args(format!("--ioengine={engine}").split_whitespace());
        command.current_dir(area.path()).env("XDG_STATE_HOME", area.join("state"));
        must(&mut command);
        let trace = std::fs::read_to_string(area.join("trace")).unwrap();
        let of_job = |line: &&str| line.contains(call) && line.contains("\"zz.0.");
        let creates = |line: &&str| engine != "filecreate" || line.contains("O_CREAT");
        let count = trace.lines().filter(of_job).filter(creates).count();
        assert!(count >= 7, "{engine}: {count} of {call}");
    }
}

#[test]
fn fio_counts_operations_on_names_alike() {
    if !have("fio", "its engines of names") {
        return;
    }
    for engine in ["filecreate", "filestat", "filedelete"] {
        for rest in ["", "--rw=write", "--numjobs=2 --group_reporting"] {
            let line =
                format!("--name=t --ioengine={engine} --filesize=4k --nrfiles=20 --thread {rest}");
            let (theirs, ours) = (area(), area());
            let theirs = fio(theirs.path(), &line);
            let found = measured(ours.path(), &line);
            for key in ["/read/total_ios", "/write/total_ios", "/error", "/jobname"] {
                let key = format!("/jobs/0{key}");
                assert_eq!(found.pointer(&key), theirs.pointer(&key), "{key} of {line}");
            }
        }
    }
}

#[test]
fn what_is_there_is_no_ones_to_remove() {
    let area = area();
    std::fs::write(area.join("t.0.0"), "precious").unwrap();
    std::fs::create_dir(area.join("d.0.0")).unwrap();
    for (line, why) in [
        ("--name=t --ioengine=filedelete --filesize=4k", "it would be removed"),
        ("--name=t --ioengine=filecreate --filesize=4k", "already exists"),
        ("--name=d --ioengine=dirdelete", "it would be removed"),
        ("--name=d --ioengine=dircreate", "already exists"),
        ("--name=d --ioengine=filestat --filesize=4k", "is a directory"),
        ("--name=t --ioengine=dirstat", "is not a directory"),
    ] {
        let run = io(area.path(), line);
        run.expect(1).says(&[why]);
        assert_eq!(std::fs::read(area.join("t.0.0")).unwrap(), b"precious", "{line}");
        assert!(area.join("d.0.0").is_dir(), "{line}");
    }
    // With a word for it they go.
    io(area.path(), "--name=d --ioengine=dirdelete --allow-overwrite").ok();
    io(area.path(), "--name=t --ioengine=filedelete --filesize=4k --allow-overwrite").ok();
    assert!(!area.join("t.0.0").exists() && !area.join("d.0.0").exists());
}

#[test]
fn ranges_are_taken_cut_and_trimmed() {
    let area = area();
    let line = "--name=a --size=1m --bs=64k --keep";
    let allocated = || {
        use std::os::unix::fs::MetadataExt;
        let entry = std::fs::metadata(area.join("a.0.0")).unwrap();
        (entry.len(), entry.blocks() * 512)
    };
    let found =
        measured(area.path(), &format!("{line} --ioengine=falloc --rw=write --fallocate=none"));
    assert_eq!(number(&found, "/jobs/0/write/total_ios"), 16);
    assert_eq!(allocated(), (1 << 20, 1 << 20));
    let found = measured(area.path(), &format!("{line} --ioengine=psync --rw=trim --io_size=256k"));
    assert_eq!(number(&found, "/jobs/0/trim/total_ios"), 4);
    assert_eq!(number(&found, "/jobs/0/write/total_ios"), 0);
    assert_eq!(allocated(), (1 << 20, 768 << 10));
    let found = measured(area.path(), &format!("{line} --ioengine=ftruncate --rw=write"));
    assert_eq!(number(&found, "/jobs/0/write/total_ios"), 16);
    assert_eq!(allocated().0, 15 * (64 << 10));
}

#[test]
fn fio_counts_ranges_alike() {
    if !have("fio", "its engines of ranges") {
        return;
    }
    for line in [
        "--ioengine=falloc --rw=write",
        "--ioengine=falloc --rw=randread",
        "--ioengine=falloc --rw=randtrim",
        "--ioengine=ftruncate --rw=write",
    ] {
        let line = format!("--name=a --size=1m --bs=64k --thread {line}");
        let (theirs, ours) = (area(), area());
        let theirs = fio(theirs.path(), &line);
        let found = measured(ours.path(), &line);
        for way in ["read", "write", "trim"] {
            for key in ["total_ios", "io_bytes"] {
                let key = format!("/jobs/0/{way}/{key}");
                assert_eq!(found.pointer(&key), theirs.pointer(&key), "{key} of {line}");
            }
        }
    }
}

#[test]
fn the_cpu_is_busy_for_its_share() {
    for mode in ["noop", "qsort"] {
        let area = area();
        let line = format!(
            "--name=c --ioengine=cpuio --cpuload=40 --cpuchunks=5000 --cpumode={mode} --runtime=1"
        );
        let found = measured(area.path(), &line);
        let busy = found.pointer("/jobs/0/usr_cpu").and_then(Value::as_f64).unwrap();
        assert!((4.0..60.0).contains(&busy), "{mode}: {busy} %");
        assert_eq!(number(&found, "/jobs/0/read/total_ios"), 0);
        assert!(names(area.path()).iter().all(|name| !name.starts_with("c.")));
    }
    let area = area();
    // With the last of the others it ends as well.
    let line = "--name=c --ioengine=cpuio --cpuload=50 --exit_on_io_done=1 --name=r --size=4k";
    measured(area.path(), line);
    let run = io(area.path(), "--name=c --ioengine=cpuio --runtime=1");
    run.expect(2).says(&["cpuio needs cpuload"]);
    io(area.path(), "--name=c --ioengine=cpuio --cpuload=5").expect(2).says(&["needs runtime="]);
}

#[test]
fn memory_is_touched_page_by_page() {
    let area = area();
    let line = "--name=p --ioengine=page_fault --size=4m --bs=4k --rw=write";
    let found = measured(area.path(), line);
    assert_eq!(number(&found, "/jobs/0/write/total_ios"), 1024);
    let faults = number(&found, "/jobs/0/minf");
    // Large pages are one fault each.
    assert!(faults >= 2, "{faults} page faults");
    let again = measured(area.path(), "--name=n --ioengine=null --size=4m --bs=4k --rw=write");
    assert!(number(&again, "/jobs/0/minf") < faults);
}

#[test]
fn threads_submit_where_asked_to() {
    for engine in ["psync", "libaio", "pvsync2", "null"] {
        let area = area();
        let line = format!(
            "--name=o --ioengine={engine} --io_submit_mode=offload --iodepth=4 --size=256k --bs=4k \
             --rw=randrw --verify=crc32c --rate_iops=4000,4000"
        );
        let line = if engine == "null" { line.replace("--verify=crc32c", "") } else { line };
        let run = io(area.path(), &format!("{line} --output-format=json"));
        run.ok();
        let found = json(&run);
        let all = |way: &str| number(&found, &format!("/jobs/0/{way}/total_ios"));
        assert_eq!(all("read") + all("write"), 64, "{engine}");
        assert_eq!(found["hakobu"]["engines"][0]["iodepth"], 4, "{engine}");
    }
    for engine in ["io_uring", "sync", "mmap"] {
        let line = format!("--name=o --ioengine={engine} --io_submit_mode=offload --size=4k");
        io(area().path(), &line).expect(2).says(&["io_submit_mode=offload is for"]);
    }
}

#[test]
fn what_moves_no_blocks_of_files_or_devices_is_a_named_error() {
    let area = area();
    for (engine, instead) in [
        ("net", "hakobu io measures files and block devices"),
        ("netsplice", "hakobu io measures files and block devices"),
        ("nbd", "nbd-client(8) makes a block device of an export"),
        ("http", "hakobu bench measures transfers with S3"),
        ("exec", "hakobu bench measures commands"),
        ("e4defrag", "e4defrag(8) defragments"),
    ] {
        let named = format!("ioengine={engine}: supported by fio, not by hakobu ({instead})");
        std::fs::write(area.join("a.fio"), format!("[a]\nioengine={engine}\nsize=4k\n")).unwrap();
        for line in [format!("--name=a --size=4k --ioengine={engine}"), "a.fio".to_owned()] {
            io(area.path(), &line).expect(2).says(&[&named]);
        }
    }
    for option in ["hostname=h", "http_host=h", "uri=nbd://h", "program=/bin/true", "donorname=d"] {
        let line = format!("--name=a --size=4k --{option}");
        io(area.path(), &line)
            .expect(2)
            .says(&["is not supported", "an engine that is not built in"]);
    }
    let programs = "hakobu io starts no programs";
    io(area.path(), "--name=a --size=4k --allow-exec").expect(2).says(&["--allow-exec", programs]);
    assert_eq!(names(area.path()), ["a.fio"]);
}
