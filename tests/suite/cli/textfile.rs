//! `--textfile`: gauges of every end of a transfer, in a form that Prometheus' node exporter takes, and the units of
//! systemd that use it.

use crate::common::area::Area;
use crate::common::case::{Run, run_command};
use crate::common::{have, program};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A sample: its name, its labels, its value.
type Sample = (String, HashMap<String, String>, f64);

/// Checks a text as the exposition format wants it, version 0.0.4, and returns its samples.
fn samples(text: &str) -> Vec<Sample> {
    let mut found: Vec<Sample> = Vec::new();
    let (mut helps, mut types) = (HashSet::new(), HashSet::new());
    assert!(text.ends_with('\n'), "the last line has no end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help");
            assert!(helps.insert(name.to_owned()) && !help.is_empty(), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(helps.contains(name) && types.insert(name.to_owned()), "{line}");
            assert_eq!(kind, "gauge", "{line}");
            continue;
        }
        let sample = sample(line);
        assert!(types.contains(&sample.0), "no type before {line}");
        let is_new = found.iter().all(|(name, labels, _)| (name, labels) != (&sample.0, &sample.1));
        assert!(is_new, "twice: {line}");
        found.push(sample);
    }
    assert_eq!(found.len(), types.len());
    found
}

fn is_name(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn sample(line: &str) -> Sample {
    let (name, rest) = line.split_once('{').expect("labels");
    assert!(is_name(name), "{line}");
    let (mut labels, mut rest) = (HashMap::new(), rest);
    while !rest.starts_with('}') {
        let (label, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(label), "{line}");
        let (mut value, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next().expect("the end of a label") {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("an escaped character").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("\\{c} in {line}"),
                },
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    let value = rest[1..].trim_start().parse().expect("a number");
    (name.to_owned(), labels, value)
}

fn gauges(path: &Path) -> Vec<Sample> {
    samples(&std::fs::read_to_string(path).unwrap())
}

fn gauge(all: &[Sample], name: &str) -> Option<f64> {
    let name = format!("hakobu_transfer_{name}");
    all.iter().find(|(other, ..)| *other == name).map(|(_, _, value)| *value)
}

/// Runs a line in a folder.
fn go(area: &Area, line: &str) -> Run {
    let mut command = Command::new(program());
    command.args(line.split(' ')).current_dir(area.path()).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", area.join("state"));
    Run::new(line.to_owned(), command.output().unwrap())
}

fn stage() -> Area {
    let area = Area::tmpfs();
    std::fs::create_dir_all(area.join("src/d")).unwrap();
    std::fs::write(area.join("src/a"), "12345").unwrap();
    std::fs::write(area.join("src/d/b"), "123").unwrap();
    area
}

#[test]
fn every_end_of_a_transfer_is_told() {
    let area = stage();
    let file = area.join("nightly.prom");
    std::fs::create_dir(area.join("dst")).unwrap();
    std::fs::write(area.join("dst/old"), "x").unwrap();
    let begun = std::time::SystemTime::now();
    go(&area, "sync -a --delete --textfile nightly.prom src/ dst/").ok();
    let all = gauges(&file);
    for (name, value) in [
        ("success", 1.0),
        ("exit_code", 0.0),
        ("files", 2.0),
        ("bytes", 8.0),
        ("deleted", 1.0),
        ("failed", 0.0),
        ("interrupted", 0.0),
    ] {
        assert_eq!(gauge(&all, name), Some(value), "{name}: {all:?}");
    }
    let now_s = begun.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let end = gauge(&all, "end_time_seconds").unwrap();
    assert!((now_s - 1.0..now_s + 60.0).contains(&end), "{all:?}");
    assert_eq!(gauge(&all, "last_success_time_seconds"), Some(end));
    let start = gauge(&all, "start_time_seconds").unwrap();
    let duration = gauge(&all, "duration_seconds").unwrap();
    assert!((end - start - duration).abs() < 0.01, "{all:?}");
    for (name, labels, _) in &all {
        assert_eq!((&*labels["name"], &*labels["command"]), ("nightly", "sync"), "{name}");
    }
    let info = all.iter().find(|(name, ..)| name == "hakobu_transfer_info").unwrap();
    assert_eq!((&*info.1["source"], &*info.1["target"]), ("src/", "dst/"));
    // A dry run says nothing of the transfer, and a failure keeps the time of the success.
    let before = std::fs::read(&file).unwrap();
    go(&area, "sync -an --textfile=nightly.prom src/ dst/").ok();
    go(&area, "sync -avn --textfile=nightly.prom missing/ dst/").expect(23);
    go(&area, "cp --dryrun --frobnicate --textfile=nightly.prom src dst/").expect(2);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    for (line, code) in [
        ("sync -a --textfile nightly.prom missing/ dst/", 23),
        ("sync -a --textfile nightly.prom --frobnicate src/ dst/", 1),
        ("sync -a --textfile=nightly.prom --bwlimit=x src/ dst/", 1),
        ("cp -r --textfile=nightly.prom missing dst/", 1),
        ("mv --textfile=nightly.prom missing dst/", 1),
        ("cp --frobnicate --textfile=nightly.prom src dst/", 2),
        // Of cp and mv it is no dry run.
        ("mv -n --frobnicate --textfile=nightly.prom src dst/", 2),
    ] {
        go(&area, line).expect(code);
        let all = gauges(&file);
        assert_eq!(gauge(&all, "success"), Some(0.0), "{line}");
        assert_eq!(gauge(&all, "exit_code"), Some(f64::from(code)), "{line}");
        assert_eq!(gauge(&all, "last_success_time_seconds"), Some(end), "{line}");
    }
    let left: Vec<_> =
        std::fs::read_dir(area.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("prom.")), "{left:?}");
}

#[test]
fn cp_and_mv_have_a_name_of_their_own() {
    let area = stage();
    go(&area, "cp -r --textfile=t.prom --textfile-name=a\"b\\c src copy").ok();
    let all = gauges(&area.join("t.prom"));
    assert_eq!((gauge(&all, "files"), &*all[0].1["name"]), (Some(2.0), "a\"b\\c"));
    go(&area, "mv --textfile=t.prom src/a moved").ok();
    let all = gauges(&area.join("t.prom"));
    assert_eq!((gauge(&all, "success"), &*all[0].1["command"]), (Some(1.0), "mv"));
}

#[test]
fn a_file_that_cannot_be_written_fails_before_the_work() {
    let area = stage();
    let run = go(&area, "sync -a --textfile=no/such/t.prom src/ dst/");
    run.expect(11).says(&["no/such/t.prom"]);
    assert_eq!(run.err().matches("no/such/t.prom").count(), 1, "{run}");
    assert!(!area.join("dst").exists());
}

#[test]
fn a_run_on_many_machines_tells_its_end() {
    let area = stage();
    let line = "sync -a --cluster local:2 --run run --verify --textfile t.prom src/ dst";
    go(&area, line).ok();
    let all = gauges(&area.join("t.prom"));
    assert_eq!((gauge(&all, "success"), gauge(&all, "exit_code")), (Some(1.0), Some(0.0)));
    let info = all.iter().find(|(name, ..)| name == "hakobu_transfer_info").unwrap();
    assert!(info.1["source"].ends_with("src/") && info.1["target"].ends_with("dst"), "{info:?}");
    // What the verification finds is the end of the whole: a file that changed after the workers, of the same size and time.
    let target = area.join("dst/a");
    let mtime = std::fs::metadata(&target).unwrap().modified().unwrap();
    go(&area, "cluster plan -aI --textfile t.prom --run run3 src/ dst").ok();
    go(&area, "cluster work run3").ok();
    std::fs::write(&target, "54321").unwrap();
    std::fs::File::options().write(true).open(&target).unwrap().set_modified(mtime).unwrap();
    go(&area, "cluster collect --verify run3").expect(23);
    let all = gauges(&area.join("t.prom"));
    assert_eq!((gauge(&all, "success"), gauge(&all, "exit_code")), (Some(0.0), Some(23.0)));
    assert!(gauge(&all, "last_success_time_seconds").is_some());
}

#[test]
fn an_interrupted_run_is_no_success() {
    let area = stage();
    std::fs::write(area.join("src/large"), vec![b'x'; 8 << 20]).unwrap();
    let mut command = Command::new(program());
    let line = "sync -a --bwlimit=1m --textfile=t.prom src/ dst/";
    command
        .args(line.split(' '))
        .current_dir(area.path())
        .env("XDG_STATE_HOME", area.join("state"));
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // As scancel and a script's trap: one request, many signals.
    for _ in 0..5 {
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(child.wait().unwrap().code(), Some(20));
    let all = gauges(&area.join("t.prom"));
    for (name, value) in [("success", 0.0), ("interrupted", 1.0), ("exit_code", 20.0)] {
        assert_eq!(gauge(&all, name), Some(value), "{name}: {all:?}");
    }
    assert_eq!(gauge(&all, "last_success_time_seconds"), None);
}

// Units of systemd.

fn unit(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The value of a setting of a unit or an environment file.
fn setting<'a>(text: &'a str, name: &str) -> &'a str {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = values.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(values.next().is_none(), "{name} twice");
    value
}

/// What the service starts is run, with the example's options, on a tree.
#[test]
fn the_service_does_what_its_example_says() {
    let area = stage();
    let (service, example) = (unit("hakobu-sync@.service"), unit("nightly.conf"));
    let options = setting(&example, "HAKOBU_OPTIONS");
    let options = options.trim_matches('\'').replace("/var/lib/prometheus/node-exporter/", "");
    let start = setting(&service, "ExecStart").replace("/usr/bin/hakobu", "\"$HAKOBU\"");
    // A shell splits the options as systemd does.
    let start = start.replace("$HAKOBU_OPTIONS", &options);
    // Of systemd each of these is one word.
    let start = start.replace("${HAKOBU_SOURCE}", "\"$HAKOBU_SOURCE\"");
    let start = start.replace("${HAKOBU_TARGET}", "\"$HAKOBU_TARGET\"");
    let mut command = Command::new("bash");
    command.args(["-c", &start]).current_dir(area.path()).env("HAKOBU", program());
    command.env("HAKOBU_SOURCE", "src/").env("HAKOBU_TARGET", "the target/");
    command.env("XDG_STATE_HOME", area.join("state"));
    Run::new(start, command.output().unwrap()).ok();
    assert_eq!(std::fs::read(area.join("the target/d/b")).unwrap(), b"123");
    assert_eq!(gauge(&gauges(&area.join("hakobu-nightly.prom")), "files"), Some(2.0));
    // Codes of the help are either success, or tried again, or for somebody to look at.
    let help = run_command(&program(), &["sync", "--help"]).ok().out();
    let codes = |name: &str| -> HashSet<u32> {
        setting(&service, name).split(' ').map(|code| code.parse().unwrap()).collect()
    };
    let (success, look) = (codes("SuccessExitStatus"), codes("RestartPreventExitStatus"));
    assert!(success.is_disjoint(&look));
    let text = help.split("Exit codes:").nth(1).unwrap();
    let listed = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let again: HashSet<u32> = listed
        .filter(|code| *code > 0 && !success.contains(code) && !look.contains(code))
        .collect();
    assert_eq!(again, HashSet::from([12, 35, 255]), "a code without a policy");
    // What the package installs.
    let manifest =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    assert!(manifest.unwrap().contains("packaging/systemd/*"), "not in the package");
}

#[test]
fn systemd_takes_the_units() {
    if !have("systemd-analyze", "units of systemd") {
        return;
    }
    let area = Area::tmpfs();
    let check = |service: &str| {
        std::fs::write(area.join("hakobu-sync@.service"), service).unwrap();
        std::fs::write(area.join("hakobu-sync@.timer"), unit("hakobu-sync@.timer")).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", "hakobu-sync@.service", "hakobu-sync@.timer"]);
        let output = command.current_dir(area.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let service =
        unit("hakobu-sync@.service").replace("/usr/bin/hakobu", program().to_str().unwrap());
    assert_eq!(check(&service), (true, String::new()));
    let (_, said) = check(&service.replace("KillMode=", "KilMode="));
    assert!(said.contains("KilMode"), "it checks nothing: {said}");
}
