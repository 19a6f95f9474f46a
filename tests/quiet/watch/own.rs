//! Reported usage is that of the command, without the process before exec(2).

use super::number;
use crate::common::{have, must, program};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Counters of resident memory are per CPU and summed up 32 pages at a time: two counters, two CPUs, 4 KiB
/// pages, and the same again for address randomization. The process before exec(2) has megabytes more.
const RSS_SLACK_BYTES: f64 = 2.0 * 2.0 * 2.0 * 32.0 * 4096.0;
/// Faults between fork(2) and exec(2) of time(1), and the effect of address randomization.
const FAULTS_SLACK: f64 = 60.0;

/// Small programs, and one that touches 3 MB.
const COMMANDS: [&str; 4] = [
    "true",
    "sleep 0.05",
    "rsync --version",
    "dd if=/dev/zero of=/dev/null bs=3M count=1 status=none",
];

/// Peak of memory (bytes), faults, and CPU time (s) by time(1).
fn by_time(dir: &Path, line: &str) -> [f64; 3] {
    let file = dir.join("time");
    let mut command = Command::new("time");
    command.args(["-f", "%M %R %U %S", "-o"]).arg(&file).args(line.split(' '));
    must(command.stdout(Stdio::null()));
    let text = std::fs::read_to_string(&file).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [numbers[0] * 1024.0, numbers[1], numbers[2] + numbers[3]]
}

/// The same measured by `hakobu watch`.
fn by_watch(dir: &Path, line: &str) -> [f64; 3] {
    let file = dir.join("json");
    let mut command = Command::new(program());
    command.args(["watch", "--json"]).arg(&file).arg("--").args(line.split(' '));
    must(command.stdin(Stdio::null()).stdout(Stdio::null()));
    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["command"]["max_rss_is_bound"], false, "{line}: {json}");
    let cpu = number(&json, "/command/user_s") + number(&json, "/command/sys_s");
    [number(&json, "/command/max_rss_bytes"), number(&json, "/command/minor_faults"), cpu]
}

/// The same measured by `hakobu bench`, which does not report faults.
fn by_bench(dir: &Path, line: &str) -> [f64; 3] {
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(program());
    command.args(["bench", "-q", "-r", "1", "-N", "-o"]).arg(&out).arg(line);
    command.stdin(Stdio::null()).current_dir(dir);
    must(command.env("XDG_CACHE_HOME", dir).env("XDG_STATE_HOME", dir));
    let text = std::fs::read_to_string(out.join("results.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let run = lines.into_iter().find(|line| line["line"] == "run").unwrap();
    [number(&run, "/rss_bytes_max"), f64::NAN, number(&run, "/user_s") + number(&run, "/sys_s")]
}

#[test]
fn small_commands_have_little() {
    if !have("time", "comparing with time(1)") || !have("rsync", "the memory of rsync") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for line in COMMANDS {
        let theirs = by_time(dir.path(), line);
        for (what, ours) in
            [("watch", by_watch(dir.path(), line)), ("bench", by_bench(dir.path(), line))]
        {
            let said = format!("{what} {line}: {ours:?}, time {theirs:?}");
            assert!((ours[0] - theirs[0]).abs() <= RSS_SLACK_BYTES, "{said}");
            assert!(ours[1].is_nan() || (ours[1] - theirs[1]).abs() <= FAULTS_SLACK, "{said}");
            assert!(ours[2] <= theirs[2] + 0.03, "{said}");
        }
    }
    let touched = by_watch(dir.path(), COMMANDS[3])[0] - by_watch(dir.path(), "true")[0];
    assert!((2.8e6..4.5e6).contains(&touched), "{touched}");
}

/// The command has the streams, environment, working directory and process group of `watch`, and no
/// additional signal is blocked or ignored.
#[test]
fn the_command_has_what_it_had_before() {
    // Signals 32 and 33 are libc's own.
    let script = "cat; echo $HAKOBU_TEST; pwd; grep SigBlk /proc/self/status; \
                  printf '%x\n' $((0x$(sed -n 's/SigIgn:.//p' /proc/self/status) & 0x7fffffff)); \
                  ps -o pgid= -p $$ | tr -d ' '; ls /proc/self/fd | wc -l";
    let said = |command: &mut Command| {
        use std::io::Write;
        command.env("HAKOBU_TEST", "a b").current_dir("/usr").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
        let pid = child.id();
        let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        // The group is that of this test in both.
        (text, pid)
    };
    let (plain, _) = said(Command::new("sh").args(["-c", script]));
    let (watched, _) = said(Command::new(program()).args(["watch", "--", "sh", "-c", script]));
    assert_eq!(watched, plain);
}
