//! I/O priorities: what the kernel gets, what logs and reports have of it.

use super::{area, io, json, measured, number};
use crate::common::machine::Loop;
use crate::common::{have, have_root, must};
use serde_json::Value;
use std::process::Command;

/// Values of the last column of a log.
fn priorities(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.rsplit(", ").next().unwrap().to_owned()).collect()
}

#[test]
fn shares_of_the_blocks_have_their_priority() {
    for engine in ["io_uring", "libaio"] {
        let area = area();
        let line = format!(
            "--name=a --rw=randread --bs=4k --size=4m --ioengine={engine} --iodepth=8 \
             --prioclass=2 --prio=5 --cmdprio_percentage=20 --cmdprio_class=3 --write_lat_log=log \
             --log_prio=1 --output-format=json"
        );
        let run = io(area.path(), &line);
        run.ok();
        let logged = priorities(&area.join("log_clat.1.log"));
        let idle = logged.iter().filter(|of| *of == "0x6000").count();
        assert_eq!(logged.iter().filter(|of| *of == "0x4005").count(), 1024 - idle, "{engine}");
        assert!((140..270).contains(&idle), "{engine}: {idle} of 1024");
        let found = json(&run);
        let prios = found.pointer("/jobs/0/read/prios").and_then(Value::as_array).unwrap();
        let of = |at: usize| {
            let one = &prios[at];
            (number(one, "/prioclass"), number(one, "/prio"), number(one, "/clat_ns/N"))
        };
        assert_eq!(of(0), (2, 5, 1024 - idle as u64), "{engine}");
        assert_eq!(of(1), (3, 0, idle as u64), "{engine}");
        assert_eq!(prios.len(), 2);
    }
}

#[test]
fn sizes_have_priorities() {
    let area = area();
    let line = "--name=a --rw=randrw --bssplit=4k/50:16k/50,8k/100 --size=4m --ioengine=libaio \
                --iodepth=4 --cmdprio_bssplit=4k/50/3/0:4k/50/2/1:16k/0,8k/100/2/6 \
                --write_lat_log=log --log_prio=1";
    measured(area.path(), line);
    let text = std::fs::read_to_string(area.join("log_clat.1.log")).unwrap();
    let mut counts = std::collections::BTreeMap::<(String, String), u32>::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(", ").collect();
        *counts.entry((fields[3].to_owned(), fields[4].to_owned())).or_default() += 1;
    }
    let kinds: Vec<(&str, &str)> =
        counts.keys().map(|(bytes, of)| (bytes.as_str(), of.as_str())).collect();
    let expected =
        [("16384", "0x0000"), ("4096", "0x4001"), ("4096", "0x6000"), ("8192", "0x4006")];
    assert_eq!(kinds, expected);
}

#[test]
fn the_kernel_is_asked_for_them() {
    if !have("strace", "priorities of blocks") {
        return;
    }
    let area = area();
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "trace", "-e", "trace=io_submit,ioprio_set"]);
    command.arg(crate::common::program()).args(["io", "--name=a", "--rw=read", "--size=64k"]);
    command.args(["--ioengine=libaio", "--cmdprio_percentage=100", "--cmdprio_class=2"]);
    command.args(["--cmdprio=3", "--prioclass=3"]);
    must(command.current_dir(area.path()).env("XDG_STATE_HOME", area.join("state")));
    let trace = std::fs::read_to_string(area.join("trace")).unwrap();
    let blocks = trace.lines().filter(|line| line.contains("io_submit("));
    // 0x4003: strace has the class and the level apart, or the number.
    let of_block = |line: &&str| line.contains("16387") || line.contains("IOPRIO_CLASS_BE, 3");
    assert_eq!(blocks.filter(of_block).count(), 16, "{trace}");
    assert!(trace.contains("ioprio_set(IOPRIO_WHO_PROCESS, 0, "), "{trace}");
}

#[test]
fn realtime_is_had_with_privilege() {
    if !have_root("realtime priority of blocks") {
        return;
    }
    let area = area();
    let device = Loop::over(&area.join("disk.img"), 8);
    let line = format!(
        "--name=a --filename={} --rw=randread --bs=4k --direct=1 --size=1m --cmdprio_percentage=50 \
         --ioengine=io_uring --iodepth=4 --write_lat_log=log",
        device.0
    );
    measured(area.path(), &line);
    // Without log_prio a column says which are of the highest class.
    let logged = priorities(&area.join("log_lat.1.log"));
    let high = logged.iter().filter(|of| *of == "1").count();
    assert_eq!(logged.iter().filter(|of| *of == "0").count(), 256 - high);
    assert!((80..176).contains(&high), "{high} of 256");
    // Without privilege it is a named error.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"]);
    command.arg(crate::common::program()).args(["io", "--name=a", "--size=64k", "--prioclass=1"]);
    command.arg("--directory").arg("/tmp").env("XDG_STATE_HOME", "/tmp");
    if have("setpriv", "priorities without privilege") {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("realtime needs CAP_SYS_NICE"), "{said}");
    }
}

#[test]
fn fio_has_the_same_keys_of_priorities() {
    if !have("fio", "its latencies by priority") {
        return;
    }
    let line = "--name=a --rw=randread --bs=4k --size=1m --ioengine=libaio --iodepth=4 --thread \
                --direct=1 --cmdprio_percentage=50 --cmdprio_class=3 --prioclass=2 --prio=1 \
                --output-format=json";
    let (theirs, ours) = (area(), area());
    let mut command = Command::new("fio");
    let out = must(command.args(line.split_whitespace()).current_dir(theirs.path()));
    let start = out.iter().position(|byte| *byte == b'{').unwrap();
    let theirs: Value = serde_json::from_slice(&out[start..]).unwrap();
    let ours = json(io(ours.path(), line).ok());
    let kinds = |document: &Value| -> Vec<(String, Vec<String>)> {
        let prios = document.pointer("/jobs/0/read/prios").and_then(Value::as_array).unwrap();
        let keys = |one: &Value| {
            let mut keys: Vec<String> = one.as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let mut all: Vec<_> = prios
            .iter()
            .map(|one| (format!("{}/{}", one["prioclass"], one["prio"]), keys(one)))
            .collect();
        all.sort();
        all
    };
    assert_eq!(kinds(&ours), kinds(&theirs));
}

#[test]
fn what_cannot_be_is_named() {
    for (line, why) in [
        ("--ioengine=libaio --cmdprio_percentage=101", "cmdprio_percentage"),
        ("--ioengine=libaio --cmdprio_class=4", "not a class"),
        ("--prio=8", "not a level"),
        ("--prioclass=0 --prio=3", "prio is a level of"),
        ("--ioengine=libaio --cmdprio_percentage=5 --cmdprio_bssplit=4k/5", "exclude each other"),
        ("--ioengine=libaio --cmdprio_bssplit=4k/60:4k/60", "more than 100 percent"),
        ("--cmdprio_percentage=5 --strict", "only io_uring and libaio have"),
        ("--ioengine=libaio --cmdprio=5 --strict", "there is neither cmdprio_percentage"),
    ] {
        io(area().path(), &format!("--name=a --size=64k {line}")).expect(2).says(&[why]);
    }
}
