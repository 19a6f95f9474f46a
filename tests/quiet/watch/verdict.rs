//! Verdicts of `watch` on commands whose limit is known regardless of other load.

use super::{record, run, watch};
use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::have;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// Uses a CPU for some seconds.
const BURN: &str = "timeout 4 dd if=/dev/zero of=/dev/null bs=1M status=none";

/// Resource and level; a claim has two signals and advice, and the sentence comes first.
fn form(run: &Run, json: &Value) -> (String, String) {
    let verdict = &json["verdict"];
    let text = |field: &str| {
        let value = verdict[field].as_str();
        value.unwrap_or_else(|| panic!("no {field} in {verdict}: {run}")).to_owned()
    };
    let (resource, level) = (text("resource"), text("level"));
    let advice = text("advice");
    let signals = verdict["evidence"].as_array().unwrap();
    // The sentence says once how many CPUs other processes use, in its evidence or in its advice.
    let (before, after) = advice.split_once(" (other processes use ").unwrap_or((&advice, ""));
    let after = after.split_once(" CPUs)").map_or(after, |(_, after)| after);
    assert!(!advice.is_empty(), "{verdict}");
    run.says(&[before, after]);
    assert_eq!(resource == "none", level == "not-determined", "{verdict}");
    assert!(resource == "none" || signals.len() >= 2, "{verdict}");
    let said = if resource == "none" { "Bottleneck: unknown" } else { "Bottleneck: " };
    let text = run.err();
    let (at, table) = (text.find(said), text.find("\ncommand        "));
    assert!(at.is_some() && at < table, "the sentence comes first: {run}");
    (resource, level)
}

/// Limiting resource of a script.
fn limits(script: &str) -> (Run, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (run, json) = record(dir.path(), script);
    let (resource, level) = form(&run, &json);
    (run, resource, level)
}

/// A CPU that this test may use.
fn one_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn two_processes_on_one_cpu() {
    if !have("taskset", "a command on one CPU") {
        return;
    }
    let script = format!("taskset -c {} sh -c '{BURN} & {BURN} & wait'", one_cpu());
    let (run, resource, level) = limits(&script);
    assert_eq!(resource, "cpu", "{run}");
    assert!(level == "at-limit" || level == "consistent", "{run}");
    run.says(&[" one CPU (", " busy; runnable threads waited "]);
    run.says(&[" would help", "more processes alone"]);
}

#[test]
fn more_threads_than_cpus() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let each = vec![BURN; 2 * cpus].join(" & ");
    let (run, resource, _) = limits(&format!("{each} & wait"));
    assert_eq!(resource, "cpu", "{run}");
}

#[test]
fn one_process_alone() {
    let (run, resource, _) = limits(BURN);
    // If others use the other CPUs, the verdict may be "none" or "cpu", but nothing else.
    assert!(["thread", "cpu", "none"].contains(&resource.as_str()), "{run}");
    if resource == "thread" {
        run.says(&[" one thread of the command (busiest thread used "]);
    }
}

#[test]
fn a_command_that_sleeps_and_one_that_is_short() {
    let (run, resource, _) = limits("sleep 2.6");
    assert_eq!(resource, "none", "{run}");
    run.says(&["The command was idle"]);
    let (run, resource, _) = limits("exit 0");
    assert_eq!(resource, "none", "{run}");
    run.says(&["too short to judge"]);
}

/// A connection with little traffic.
#[test]
fn a_slow_server() {
    if !have("bash", "a command with a connection") {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..60 {
            stream.write_all(&[7; 20_000]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    let script = format!("exec bash -c 'exec cat </dev/tcp/127.0.0.1/{port} >/dev/null'");
    let (run, resource, level) = limits(&script);
    server.join().unwrap();
    // If others use CPUs, these may be the limit.
    assert!(["peer", "none"].contains(&resource.as_str()), "{run}");
    assert!(resource == "none" || level == "consistent", "{run}");
}

#[test]
fn quiet_says_nothing_and_the_files_say_all() {
    let area = Area::tmpfs();
    let (json, text) = (area.join("json"), area.join("text"));
    let words = ["-q", "--json", json.to_str().unwrap(), "--", "sh", "-c", "echo out; exit 3"];
    let quiet = run(&words);
    quiet.expect(3);
    assert_eq!((quiet.out(), quiet.err()), ("out\n".to_owned(), String::new()));
    let json: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(json["verdict"]["resource"], "none");
    let output = run(&["-q", "-o", text.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.err(), "");
    let text = std::fs::read_to_string(text).unwrap();
    assert!(text.starts_with("\nBottleneck: unknown. "), "{text}");
    let ja = area.join("ja");
    run(&["-q", "--lang", "ja", "-o", ja.to_str().unwrap(), "--", "true"]).ok();
    let text = std::fs::read_to_string(ja).unwrap();
    assert!(text.starts_with("\nボトルネック: 不明。"), "{text}");
    // The machine has no verdict, and -q prints no view.
    let machine = watch(&["-q", "-i", "0.05", "-c", "2"]).stdout(Stdio::piped()).output().unwrap();
    assert!(machine.status.success() && machine.stdout.is_empty(), "{machine:?}");
}
