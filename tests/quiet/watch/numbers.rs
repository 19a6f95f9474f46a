//! Measurements compared with time(1), and with commands of known behaviour.

use super::{number, record, watch};
use crate::common::area::{Fs, Volume};
use crate::common::{have, must};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Uses `seconds` of CPU time.
fn burn(seconds: u32) -> String {
    format!("ulimit -t {seconds}; while :; do :; done")
}

#[test]
fn cpu_time_is_that_of_the_command_and_its_children() {
    let dir = tempfile::tempdir().unwrap();
    // The limit kills the inner shells after a second as counted in ticks: on a busy machine the exact time
    // is up to a tenth off.
    let script = format!("sh -c '{}'; (sh -c '{}'); exit 0", burn(1), burn(1));
    let (run, json) = record(dir.path(), &script);
    run.ok();
    let used = number(&json, "/command/user_s") + number(&json, "/command/sys_s");
    assert!((1.6..2.4).contains(&used), "{used} s of 2: {run}");
    // Observed from outside it is the same, within the resolution of ticks.
    let seen =
        number(&json, "/summary/processes/user_s") + number(&json, "/summary/processes/sys_s");
    assert!((seen - used).abs() < 0.15, "{seen} and {used}");
    let thread = number(&json, "/summary/processes/busiest_thread_percent/peak");
    assert!(thread > 20.0 && thread <= 100.0, "{thread}");
    assert!(number(&json, "/summary/busiest_cpu/peak") > 20.0);
}

#[test]
fn time_says_the_same() {
    if !have("time", "comparing with time(1)") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script =
        "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 50000000 /dev/zero | cksum";
    let file = dir.path().join("time");
    must(
        Command::new("time")
            .args(["-f", "%U %S %M %R", "-o"])
            .arg(&file)
            .args(["sh", "-c", script]),
    );
    let text = std::fs::read_to_string(&file).unwrap();
    let theirs: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let (run, json) = record(dir.path(), script);
    run.ok();
    let ours = number(&json, "/command/user_s") + number(&json, "/command/sys_s");
    let (cpu, rss, faults) = (theirs[0] + theirs[1], theirs[2] * 1024.0, theirs[3]);
    assert!(ours > cpu * 0.6 - 0.05 && ours < cpu * 1.6 + 0.05, "{ours} and {cpu} s");
    let ours = number(&json, "/command/max_rss_bytes");
    let is_bound = json["command"]["max_rss_is_bound"] == true;
    assert!(is_bound && ours >= rss || (ours - rss).abs() < 2e6, "{ours} and {rss} bytes: {run}");
    let ours = number(&json, "/command/minor_faults");
    assert!((ours - faults).abs() < 0.3 * faults, "{ours} and {faults} faults");
}

#[test]
fn large_memory_is_exact() {
    let dir = tempfile::tempdir().unwrap();
    if !have("python3", "a command that takes memory") {
        return;
    }
    let (run, json) =
        record(dir.path(), "exec python3 -c 'x = bytearray(200000000); print(len(x))'");
    run.ok();
    assert_eq!(
        (run.out(), &json["command"]["max_rss_is_bound"]),
        ("200000000\n".into(), &false.into())
    );
    let rss = number(&json, "/command/max_rss_bytes");
    assert!((200e6..260e6).contains(&rss), "{rss}");
}

#[test]
fn what_is_written_shows_at_process_and_device() {
    let Some(volume) = Volume::new(Fs::Ext4, 256, &[], "writes of a device") else { return };
    let source =
        String::from_utf8(must(Command::new("findmnt").args(["-no", "SOURCE"]).arg(volume.path())));
    let disk = source.unwrap().trim().trim_start_matches("/dev/").to_owned();
    let script = |flags: &str| {
        let file = volume.join("file");
        format!("dd if=/dev/zero of={} bs=1M count=64 {flags} 2>/dev/null", file.display())
    };
    let bytes = f64::from(64 << 20);
    for flags in ["oflag=direct", "conv=fsync"] {
        let dir = tempfile::tempdir().unwrap();
        let (run, json) = record(dir.path(), &script(flags));
        run.ok();
        let disks = json["summary"]["disks"].as_array().unwrap();
        let found = disks.iter().find(|one| one["name"] == disk.as_str());
        let found = found.unwrap_or_else(|| panic!("no {disk} in {disks:?}"));
        let written = number(found, "/write_bytes");
        assert!((bytes..1.1 * bytes).contains(&written), "{flags}: {written} of {bytes}");
        assert!(number(found, "/writes") >= 64.0 && number(found, "/write_ms/mean") >= 0.0);
        assert!(number(found, "/write_bytes_per_s/peak") > 0.0);
        // The process made them dirty; bo counts requests to all devices.
        let by_process = number(&json, "/command/device_write_bytes");
        assert!((bytes..1.1 * bytes).contains(&by_process), "{flags}: {by_process}");
        let out = number(&json, "/summary/paged_out_bytes_per_s/mean")
            * number(&json, "/summary/sampled_s");
        assert!(out >= 0.99 * bytes, "{flags}: bo {out}");
    }
}

#[test]
fn watching_costs_next_to_nothing() {
    if !have("time", "what watch itself uses") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("time");
    // Besides the command's own: `sleep` uses two milliseconds.
    let words = ["watch", "--", "sleep", "5"];
    let mut command = Command::new("time");
    command.args(["-f", "%U %S", "-o"]).arg(&file).arg(crate::common::program()).args(words);
    must(command.stderr(Stdio::null()));
    let text = std::fs::read_to_string(&file).unwrap();
    let used: f64 = text.split_whitespace().map(|word| word.parse::<f64>().unwrap()).sum();
    assert!(used / 5.0 < 0.02, "{used} s of CPU in 5 s");
}

#[test]
fn a_running_process_is_watched_until_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("json");
    let script = format!("sh -c '{}'; sleep 0.3", burn(1));
    let mut burner = Command::new("sh").args(["-c", &script]).spawn().unwrap();
    let pid = burner.id().to_string();
    let json_word = json.to_str().unwrap().to_owned();
    let words = ["--pid", &pid, "--json", &json_word];
    let mut watching = watch(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    burner.wait().unwrap();
    for _ in 0..100 {
        if watching.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = watching.try_wait().unwrap();
    let _ = watching.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(json["pid"].to_string(), pid);
    assert!(json.get("command").is_none());
    let used =
        number(&json, "/summary/processes/user_s") + number(&json, "/summary/processes/sys_s");
    assert!((0.7..1.3).contains(&used), "{used}");
    assert!(Path::new(&json_word).exists());
}
