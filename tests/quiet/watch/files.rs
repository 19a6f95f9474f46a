//! CSV, JSON and SVG of commands of any length: well-formed and consistent.

use super::{number, run};
use crate::common::area::Area;
use crate::common::{have, must};
use std::path::Path;
use std::process::Command;

struct Files {
    csv: String,
    json: serde_json::Value,
    svg: String,
    rows: usize,
}

/// Records a command in all formats and parses them.
fn files(dir: &Path, options: &[&str], command: &[&str]) -> Files {
    let [csv, json, svg] = ["csv", "json", "svg"].map(|name| dir.join(name));
    let mut words = options.to_vec();
    for (option, path) in [("--csv", &csv), ("--json", &json), ("--svg", &svg)] {
        words.extend([option, path.to_str().unwrap()]);
    }
    words.push("--");
    words.extend(command);
    run(&words).ok();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 3, "something else was left behind");
    if have("python3", "reading XML") {
        let script = "import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])";
        must(Command::new("python3").args(["-c", script]).arg(&svg));
    }
    let csv = std::fs::read_to_string(csv).unwrap();
    let rows = csv.lines().count() - 1;
    let json = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    Files { csv, json, svg: std::fs::read_to_string(svg).unwrap(), rows }
}

/// Numbers in a column of the CSV file.
fn column(csv: &str, name: &str) -> Vec<Option<f64>> {
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let at = header.iter().position(|column| *column == name);
    let at = at.unwrap_or_else(|| panic!("no column {name} in {header:?}"));
    csv.lines().skip(1).map(|line| line.split(',').nth(at).unwrap().parse().ok()).collect()
}

#[test]
fn a_row_for_each_interval() {
    for (interval, seconds, least, most) in [("0.1", "2", 15, 21), ("0.5", "2", 3, 5)] {
        let area = Area::tmpfs();
        let files = files(area.path(), &["-i", interval], &["sleep", seconds]);
        assert!((least..=most).contains(&files.rows), "{interval}: {} rows", files.rows);
        let times: Vec<f64> = column(&files.csv, "t").into_iter().flatten().collect();
        assert!(times.is_sorted() && times.len() == files.rows, "{times:?}");
        assert!((2.0..3.0).contains(times.last().unwrap()), "{times:?}");
        // The JSON file agrees.
        assert_eq!(files.json["schema"], 1);
        assert_eq!(files.json["command"]["argv"], serde_json::json!(["sleep", seconds]));
        let rows = files.json["rows"].as_array().unwrap();
        let names = files.json["columns"].as_array().unwrap();
        assert_eq!(rows.len(), files.rows);
        assert_eq!(number(&files.json, "/summary/intervals") as usize, files.rows);
        for (row, line) in rows.iter().zip(files.csv.lines().skip(1)) {
            let row = row.as_array().unwrap();
            assert_eq!(row.len(), names.len());
            for (cell, text) in row.iter().zip(line.split(',')) {
                assert_eq!(cell.as_f64(), text.parse().ok(), "{line}");
            }
        }
        for (name, unit) in [("bi", "KiB/s"), ("us", "%"), ("cs", "1/s"), ("p_rss", "KiB")] {
            let column = names.iter().find(|column| column["name"] == name).unwrap();
            assert_eq!(column["unit"], unit);
        }
        for total in ["us", "free"] {
            assert!(column(&files.csv, total).iter().any(Option::is_some), "{total}");
        }
        assert!(column(&files.csv, "free").iter().all(|free| free.is_some_and(|free| free > 0.0)));
        assert!(files.svg.contains("sleep 2") && files.svg.contains("Disk throughput"));
    }
}

#[test]
fn short_commands_have_all_of_it_too() {
    for command in [&["true"][..], &["sleep", "0.01"], &["sh", "-c", "echo '<&\u{1}>' >/dev/null"]]
    {
        let area = Area::tmpfs();
        let files = files(area.path(), &[], command);
        assert_eq!(files.rows, 1, "{command:?}");
        assert!(number(&files.json, "/command/real_s") < 5.0);
        assert_eq!(number(&files.json, "/command/exit_code"), 0.0);
        assert!(files.svg.starts_with("<svg ") && files.svg.ends_with("</svg>\n"));
    }
}

#[test]
fn no_name_of_machine_or_user_is_in_it() {
    let area = Area::tmpfs();
    let files = files(area.path(), &[], &["true"]);
    let host = String::from_utf8(must(Command::new("uname").arg("-n"))).unwrap();
    let machine = files.json["machine"].as_object().unwrap();
    let mut keys: Vec<&str> = machine.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["arch", "cpu_model", "cpus", "kernel", "memory_bytes"]);
    assert!(machine.values().all(|value| value.as_str() != Some(host.trim())), "{machine:?}");
    assert!(number(&files.json, "/machine/memory_bytes") > 1e6);
    assert!(number(&files.json, "/machine/cpus") >= 1.0);
}
