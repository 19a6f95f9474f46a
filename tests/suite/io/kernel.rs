//! What it asks of the machine: system calls as strace(1) sees them, counts of the kernel, memory and threads of many jobs.

use crate::common::area::{Area, Fs};
use crate::common::case::Run;
use crate::common::machine::Loop;
use crate::common::{have, have_root, program};
use crate::io::{area, io, measured, names, number};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A call that reads or writes.
#[derive(Debug)]
struct Call {
    thread: u32,
    write: bool,
    bytes: u64,
    offset: u64,
}

/// Runs it below strace; the calls of `pread64` and `pwrite64`, and all that was opened.
fn traced(folder: &Path, line: &str) -> Option<(Vec<Call>, Vec<String>)> {
    if !have("strace", line) {
        return None;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-s", "0", "-o", "trace", "-e", "trace=open,openat,pread64,pwrite64"]);
    command.arg(program()).arg("io").args(line.split_whitespace()).current_dir(folder);
    Run::new(line.to_owned(), command.output().unwrap()).ok();
    let text = std::fs::read_to_string(folder.join("trace")).unwrap();
    std::fs::remove_file(folder.join("trace")).unwrap();
    let opens = |line: &&str| line.contains("openat(") || line.contains("open(");
    let opened = text.lines().filter(opens).map(str::to_owned).collect();
    Some((calls(&text), opened))
}

/// `123 pread64(4, ""..., 4096, 8192) = 4096`; calls that others interrupt are in two lines.
fn calls(text: &str) -> Vec<Call> {
    let mut begun = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else { continue };
        let thread: u32 = thread.parse().unwrap();
        let rest = rest.trim_start();
        let whole = if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, first.to_owned());
            continue;
        } else if rest.starts_with("<... ") {
            let Some(first) = begun.remove(&thread) else { continue };
            let Some((_, last)) = rest.split_once("resumed>") else { continue };
            first + last
        } else {
            rest.to_owned()
        };
        let write = whole.starts_with("pwrite64(");
        if !write && !whole.starts_with("pread64(") {
            continue;
        }
        // Results stand in one column.
        let Some((call, result)) = whole.rsplit_once(" = ") else { continue };
        let Some(arguments) = call.trim_end().strip_suffix(')') else { continue };
        let mut numbers = arguments.rsplit(", ").map(str::trim);
        let offset: u64 = numbers.next().unwrap().parse().unwrap();
        let bytes: u64 = numbers.next().unwrap().parse().unwrap();
        if result.trim().parse() == Ok(bytes) {
            found.push(Call { thread, write, bytes, offset });
        }
    }
    found
}

/// Calls of one size: those of the job, and none of what surrounds it.
fn of_size(calls: Vec<Call>, bytes: u64) -> Vec<Call> {
    calls.into_iter().filter(|call| call.bytes == bytes).collect()
}

#[test]
fn random_order_has_each_block_once() {
    let area = area();
    // A size that nothing else reads or writes in.
    let line = "--name=a --rw=randread --bs=12k --size=2400k --ioengine=psync";
    let Some((calls, _)) = traced(area.path(), line) else { return };
    let calls = of_size(calls, 12288);
    let offsets: BTreeSet<u64> = calls.iter().map(|call| call.offset).collect();
    assert_eq!((calls.len(), offsets.len()), (200, 200));
    assert!(offsets.iter().all(|offset| offset % 12288 == 0 && *offset < 2400 * 1024));
    let steps = calls.windows(2).filter(|pair| pair[0].offset + 12288 == pair[1].offset).count();
    assert!(steps < 20, "{steps} of 199 go on where the one before ended");
    // The same again, as randrepeat says.
    let Some((again, _)) = traced(area.path(), line) else { return };
    let order = |calls: &[Call]| calls.iter().map(|call| call.offset).collect::<Vec<_>>();
    assert_eq!(order(&calls), order(&of_size(again, 12288)));
}

#[test]
fn sequential_order_is_sequential() {
    let area = area();
    let line = "--name=a --rw=write --bs=12k --size=1200k --numjobs=2 --ioengine=psync";
    let Some((calls, _)) = traced(area.path(), line) else { return };
    let calls: Vec<Call> = of_size(calls, 12288);
    let threads: BTreeSet<u32> = calls.iter().map(|call| call.thread).collect();
    assert_eq!((calls.len(), threads.len()), (200, 2));
    assert!(calls.iter().all(|call| call.write));
    for thread in threads {
        let of = calls.iter().filter(|call| call.thread == thread);
        let offsets: Vec<u64> = of.map(|call| call.offset).collect();
        assert_eq!(offsets, (0..100).map(|at| at * 12288).collect::<Vec<_>>());
    }
}

#[test]
fn reads_and_writes_are_mixed_as_asked() {
    let area = area();
    let line = "--name=a --rw=randrw --rwmixread=70 --bs=12k --size=24000k --ioengine=psync";
    let Some((calls, _)) = traced(area.path(), line) else { return };
    let calls = of_size(calls, 12288);
    let reads = calls.iter().filter(|call| !call.write).count();
    assert_eq!(calls.len(), 2000);
    // Four standard deviations of a binomial distribution: 4 √(2000 · 0.7 · 0.3) is 82.
    assert!((1318..=1482).contains(&reads), "{reads}");
}

#[test]
fn direct_is_direct() {
    let Some(area) = Area::new(Fs::Ext4, "O_DIRECT") else { return };
    for (line, is_direct) in [
        ("--name=a --rw=randread --bs=4k --size=256k --ioengine=psync --direct=1", true),
        ("--name=a --rw=randread --bs=4k --size=256k --ioengine=psync", false),
    ] {
        let Some((_, opened)) = traced(area.path(), line) else { return };
        let of_job: Vec<&String> = opened
            .iter()
            .filter(|line| line.contains("a.0.0") && !line.contains("O_CREAT"))
            .collect();
        let direct = of_job.iter().any(|line| line.contains("O_DIRECT"));
        assert_eq!(direct, is_direct, "{of_job:?}");
    }
}

#[test]
fn files_are_opened_for_the_syncs_that_were_asked_for() {
    let area = area();
    for (sync, flag) in [("sync", "O_SYNC"), ("1", "O_SYNC"), ("dsync", "O_DSYNC"), ("none", "")] {
        let line = format!("--name=a --rw=write --bs=4k --size=64k --sync={sync}");
        let Some((_, opened)) = traced(area.path(), &line) else { return };
        let flags = ["O_SYNC", "O_DSYNC"];
        let of_job: Vec<&str> = opened
            .iter()
            .filter(|line| line.contains("a.0.0") && !line.contains("O_CREAT"))
            .flat_map(|line| line.split(['|', ',', ')']))
            .filter(|word| flags.contains(&word.trim()))
            .collect();
        let wanted: &[&str] = if flag.is_empty() { &[] } else { &[flag] };
        assert_eq!(of_job, wanted, "--sync={sync}: {opened:?}");
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let area = area();
    let line = "--name=a --size=1m --bs=4k --verify=crc32c --keep";
    io(area.path(), &format!("{line} --rw=randwrite")).ok();
    io(area.path(), &format!("{line} --rw=read")).ok();
    let path = area.join("a.0.0");
    let mut content = std::fs::read(&path).unwrap();
    content[500_000] ^= 0x10;
    std::fs::write(&path, content).unwrap();
    let run = io(area.path(), &format!("{line} --rw=read --output-format=json"));
    run.expect(1);
    let found = crate::io::json(&run);
    assert_eq!(found["hakobu"]["engines"][0]["verify_errors"], 1, "{found:#}");
    assert_ne!(found["jobs"][0]["error"], 0);
    assert_eq!(names(area.path()), ["a.0.0"]);
}

/// Reads, sectors read, writes, sectors written of a device (Documentation/block/stat.rst).
fn counted(device: &str) -> [u64; 4] {
    let name = device.trim_start_matches("/dev/");
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [numbers[0], numbers[2], numbers[4], numbers[6]]
}

#[test]
fn blocks_and_bytes_are_those_of_the_device() {
    if !have_root("counters of a device") {
        return;
    }
    let area = area();
    let device = Loop::over(&area.join("disk.img"), 16);
    for (engine, rw) in [
        ("psync", "randread"),
        ("io_uring", "randrw"),
        ("libaio", "randwrite"),
        ("pvsync2", "randrw"),
    ] {
        let before = counted(&device.0);
        let found = measured(
            area.path(),
            &format!(
                "--name=a --filename={} --direct=1 --rw={rw} --bs=4k --size=8m --ioengine={engine} \
                 --iodepth={} --allow-overwrite",
                device.0,
                if engine.starts_with('p') { 1 } else { 16 }
            ),
        );
        let after = counted(&device.0);
        let did: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        let side = |way: &str, what: &str| number(&found, &format!("/jobs/0/{way}/{what}"));
        let (reads, writes) = (side("read", "total_ios"), side("write", "total_ios"));
        assert_eq!(reads + writes, 2048, "{engine} {rw}");
        assert_eq!(side("read", "io_bytes"), reads * 4096, "{engine} {rw}");
        assert_eq!((did[1], did[3]), (reads * 8, writes * 8), "sectors of {engine} {rw}");
        // Neighbours may have been joined on their way.
        assert!(did[0] <= reads + 2 && did[2] <= writes, "{engine} {rw}: {did:?}");
        let util = &found["disk_util"][0];
        assert_eq!(util["name"].as_str().unwrap(), device.0.trim_start_matches("/dev/"));
        assert_eq!((number(util, "/read_ios"), number(util, "/write_ios")), (did[0], did[2]));
    }
}

#[test]
fn ten_thousand_jobs() {
    let area = area();
    for line in [
        "--name=a --ioengine=null --rw=randrw --size=64k --numjobs=10000 --group_reporting",
        "--name=a --ioengine=psync --rw=randread --size=4k --numjobs=10000 --group_reporting \
         --filename=one",
    ] {
        if line.contains("one") {
            std::fs::write(area.join("one"), vec![1u8; 4096]).unwrap();
        }
        let found = measured(area.path(), line);
        let bytes = found["jobs"][0]["read"]["io_bytes"].as_u64().unwrap()
            + found["jobs"][0]["write"]["io_bytes"].as_u64().unwrap();
        let each = if line.contains("null") { 64 << 10 } else { 4096 };
        assert_eq!(bytes, 10_000 * each, "{line}");
    }
}

#[test]
fn a_million_jobs_are_refused_by_name() {
    let area = area();
    for engine in ["null", "psync"] {
        let line = format!("--name=a --ioengine={engine} --size=4k --numjobs=1000000");
        io(area.path(), &line).expect(1).says(&["1000000 jobs", "leaves", "hint: "]);
    }
    assert!(names(area.path()).is_empty());
    // Limits of a shell: addresses, and memory that is locked away from this process.
    for (limit, said) in [("-v 2000000", "RLIMIT_AS"), ("-n 100", "RLIMIT_NOFILE")] {
        let script = format!(
            "ulimit {limit}; exec \"$0\" io --name=a --size=4k --numjobs=9000 --filename=f --rw=read"
        );
        std::fs::write(area.join("f"), vec![0u8; 4096]).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(program()).current_dir(area.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

/// Kilobytes of all but buffers.
const MOST_KB: u64 = 64 << 10;

#[test]
fn a_hundred_and_twenty_eight_jobs() {
    if !have("time", "memory of 128 jobs") {
        return;
    }
    let area = area();
    for line in [
        "--name=a --ioengine=null --rw=randrw --bs=4k --size=16m --numjobs=128 --time_based --runtime=1",
        "--name=a --ioengine=psync --rw=randrw --bs=4k --size=256k --numjobs=128 --time_based --runtime=1 \
         --group_reporting",
    ] {
        let mut command = Command::new("time");
        command.args(["-f", "%M", "-o", "kb"]).arg(program()).arg("io");
        command.args(line.split_whitespace()).arg("--output-format=json").current_dir(area.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(area.join("kb")).unwrap();
        let kb: u64 = text.trim().parse().unwrap();
        assert!(kb < MOST_KB + 128 * 4, "{kb} KB: {line}");
    }
}
