//! Machine-readable formats: JSON lines, the job log, statistics.

use crate::cli::arguments::{case, files};
use serde_json::Value;

/// All lines of the output as JSON values.
#[track_caller]
fn json(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(parse).collect()
}

const FIELDS: &[&str] = &[
    "files",
    "bytes",
    "skipped",
    "deleted",
    "failed",
    "vanished",
    "retries",
    "jobs",
    "real_s",
    "user_s",
    "sys_s",
    "max_rss_bytes",
    "exit_code",
];

#[test]
fn the_summary_has_every_field() {
    for line in [
        "sync -a --json SRC/ DST",
        "sync -av --json SRC/ DST",
        "sync -ai --json SRC/ DST",
        "sync -a --stats --json SRC/ DST",
        "cp -a --json SRC/. DST",
    ] {
        case(line, |c| {
            files(&c.src(), &["a", "b/c", "b/d"]);
            let run = c.run();
            let lines = json(&run.ok().out());
            let summary = lines.last().expect("a summary");
            assert_eq!(summary["event"], "summary");
            assert_eq!(summary["schema"], 1);
            assert_eq!(summary["command"], line.split(' ').next().unwrap());
            for field in FIELDS {
                assert!(summary[field].is_number(), "{field} in {summary}");
            }
            assert_eq!(summary["files"], 3);
            assert_eq!(summary["bytes"], 1 + 3 + 3);
            assert_eq!(summary["failed"], 0);
            assert_eq!(summary["exit_code"], 0);
            assert!(summary["jobs"].as_u64().unwrap() >= 1);
            assert!(summary["real_s"].as_f64().unwrap() > 0.0);
            assert!(summary["max_rss_bytes"].as_u64().unwrap() > 100_000);
            let summaries = lines.iter().filter(|l| l["event"] == "summary").count();
            assert_eq!(summaries, 1, "one summary, and last");
            // And again: everything is skipped.
            if line.starts_with("sync") {
                let run = c.run();
                let lines = json(&run.ok().out());
                let summary = lines.last().unwrap();
                assert_eq!(summary["files"], 0);
                assert!(summary["skipped"].as_u64().unwrap() >= 3, "{summary}");
            }
        });
    }
}

#[test]
fn json_counts_deletions_and_failures() {
    case("sync -a --delete --json SRC/ DST", |c| {
        files(&c.src(), &["a"]);
        files(&c.dst(), &["x", "y/z"]);
        let run = c.run();
        let lines = json(&run.ok().out());
        assert_eq!(lines.last().unwrap()["deleted"], 3);
    });
    case("sync -a --json SRC/missing SRC/a DST", |c| {
        files(&c.src(), &["a"]);
        let run = c.run();
        let lines = json(&run.expect(23).out());
        assert_eq!(lines.last().unwrap()["exit_code"], 23);
    });
}

#[test]
fn json_keeps_odd_names_on_one_line() {
    case("sync -ai --json SRC/ DST", |c| {
        use std::os::unix::ffi::OsStrExt;
        std::fs::create_dir(c.src()).unwrap();
        for name in [&b"line\nbreak"[..], b"\xff\xfe", b"quote\"", b"back\\slash", b"\x01"] {
            std::fs::write(c.src().join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
        }
        json(&c.run().ok().out());
    });
}

#[test]
fn verify_lists_differences() {
    case("verify SRC DST", |c| {
        files(&c.src(), &["same", "content", "missing", "mode", "d/type"]);
        c.run_line("sync -a SRC/ DST").ok();
        std::fs::remove_file(c.dst().join("missing")).unwrap();
        std::fs::write(c.dst().join("extra"), "x").unwrap();
        let meta = std::fs::metadata(c.dst().join("content")).unwrap();
        std::fs::write(c.dst().join("content"), "CONTENT").unwrap();
        let time = meta.modified().unwrap();
        std::fs::File::open(c.dst().join("content")).unwrap().set_modified(time).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(c.dst().join("mode"), mode).unwrap();
        std::fs::remove_file(c.dst().join("d/type")).unwrap();
        std::fs::create_dir(c.dst().join("d/type")).unwrap();
        let run = c.run();
        let text = run.expect(1).out();
        for name in ["content", "missing", "extra", "mode", "d/type"] {
            assert!(text.contains(name), "no word about {name}: {run}");
        }
        assert!(!text.contains("same"), "{run}");
        let run = c.run_line("verify --json SRC DST");
        let lines = json(&run.expect(1).out());
        assert!(lines.len() >= 5, "{run}");
        assert_eq!(lines.last().unwrap()["exit_code"], 1);
    });
}

/// GNU parallel's columns, one line for each file.
#[test]
fn job_log() {
    case("sync -a --joblog LIST SRC/ DST", |c| {
        files(&c.src(), &["a", "b/c", "tab\there"]);
        c.run().ok();
        let log = std::fs::read_to_string(c.list()).unwrap();
        let mut lines = log.lines();
        let head = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";
        assert_eq!(lines.next(), Some(head));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows.len(), 3, "one line for each file: {log}");
        let mut numbers: Vec<u64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
        for row in &rows {
            assert!(row[2].trim().parse::<f64>().unwrap() > 1e9, "{row:?}");
            assert!(row[3].trim().parse::<f64>().unwrap() >= 0.0, "{row:?}");
            assert_eq!((row[6], row[7]), ("0", "0"), "{row:?}");
        }
        assert!(rows.iter().any(|row| row[8..].join("\t").contains("b/c")), "{log}");
    });
}

#[test]
fn stats_have_rsyncs_lines() {
    case("sync -a --stats SRC/ DST", |c| {
        files(&c.src(), &["a", "b/c"]);
        let run = c.run();
        for words in ["Number of files: 4", "Number of created files", "Total file size: 4"] {
            assert!(run.ok().out().contains(words), "{words:?} is missing: {run}");
        }
    });
}

#[test]
fn no_progress_without_a_terminal() {
    case("sync -a --progress SRC/ DST", |c| {
        files(&c.src(), &["a"]);
        let run = c.run();
        assert!(!run.ok().err().contains('\r') && !run.err().contains('\x1b'), "{run}");
        let run = c.run_line("sync -a --info=progress2 --json SRC/ DST");
        json(&run.ok().out());
    });
}

#[test]
fn messages_name_operation_source_target_and_cause() {
    case("sync -a SRC/ DST", |c| {
        files(&c.src(), &["name"]);
        files(&c.dst(), &["name/in/the/way"]);
        let source = c.src().join("name").display().to_string();
        let target = c.dst().join("name").display().to_string();
        let run = c.run();
        let text = run.expect(23).err();
        assert!(text.contains(&source) || text.contains(&target), "no full name: {run}");
    });
}
