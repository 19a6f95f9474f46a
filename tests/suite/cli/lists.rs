//! Names and rules from files, and the null target.

use crate::cli::arguments::{case, files};
use crate::common::case::{Case, Run, run_fed};
use crate::common::diff::Fields;
use crate::common::program;
use crate::common::snapshot::Snapshot;
use std::process::Command;

/// Runs a line in the source folder, with something on standard input.
fn fed(c: &Case, line: &str, input: &[u8]) -> Run {
    let mut command = Command::new(program());
    command.args(c.words(line, &c.dst())).current_dir(c.src()).env("LC_ALL", "C.UTF-8");
    run_fed(&mut command, input)
}

#[test]
fn cp_reads_names_from_a_file_or_standard_input() {
    let lines = &b"a\nd\nwith space\n"[..];
    let nuls = &b"a\0d\0line\nbreak\0"[..];
    for (line, list, last) in [
        ("cp -r --files-from LIST DST", lines, "with space"),
        ("cp -r --files-from=- DST", lines, "with space"),
        ("cp -r -0 --files-from LIST DST", nuls, "line\nbreak"),
        ("cp -r --from0 --files-from - DST", nuls, "line\nbreak"),
        ("cp -r --files-from LIST -t DST", lines, "with space"),
        ("cp -r --files-from LIST d/e DST", lines, "with space"),
        ("cp -r --files-from LIST DST", &lines[..lines.len() - 1], "with space"),
        ("cp -r -0 --files-from LIST DST", &nuls[..nuls.len() - 1], "line\nbreak"),
    ] {
        case(line, |c| {
            files(&c.src(), &["a", "not", "d/e", "d/f", "with space", "line\nbreak"]);
            std::fs::create_dir(c.dst()).unwrap();
            std::fs::write(c.list(), list).unwrap();
            fed(c, line, if line.contains("LIST") { b"" } else { list }).ok();
            let mut names = vec![".", "a", "d", "d/e", "d/f", last];
            if line.contains(" d/e ") {
                names.push("e");
            }
            names.sort_unstable();
            let found = Snapshot::of(&c.dst());
            let found: Vec<_> =
                found.entries.keys().map(|key| String::from_utf8_lossy(key)).collect();
            assert_eq!(found, names);
        });
    }
}

#[test]
fn cp_tells_names_of_a_list_that_are_not_there() {
    case("cp --files-from LIST DST", |c| {
        files(&c.src(), &["a"]);
        std::fs::create_dir(c.dst()).unwrap();
        std::fs::write(c.list(), "missing\na\n").unwrap();
        fed(c, &c.line, b"").expect(1).says(&["missing", "No such file"]);
        assert!(c.dst().join("a").exists(), "the rest is copied");
        let run = fed(c, "cp --files-from OLD DST", b"");
        assert_ne!(run.code, 0);
        run.says(&["No such file"]);
    });
}

/// With `-0` also the files that a rule merges are lists that end with NUL, as rsync has it.
#[test]
fn merged_rules_end_with_nul_where_asked() {
    for line in [
        "sync -r -0 --filter='. LIST' SRC/ DST",
        "sync -r --from0 --filter='merge LIST' SRC/ DST",
        "sync -r -0 --filter='merge,- LIST' SRC/ DST",
        "sync -r -0 --exclude-from=LIST SRC/ DST",
        "sync -r -0 --include-from=LIST --exclude=* SRC/ DST",
    ] {
        for list in [&b"- a\0- line\nbreak\0"[..], b"a\0line\nbreak\0", b"+ a\0- *\0", b"a\0\0b"] {
            let bare = line.contains("merge,-") || line.contains("-from=");
            if !bare && !list.contains(&b' ') {
                continue; // no rule: an error of both
            }
            case(line, |c| {
                files(&c.src(), &["a", "b", "line\nbreak", "d/a", "d/b"]);
                std::fs::write(c.list(), list).unwrap();
                let (ours, theirs) = (c.run(), c.oracle());
                let shown = list.escape_ascii();
                assert_eq!(ours.code, theirs.code, "{shown}: {ours}{theirs}");
                c.target_is_oracles(&Fields::NO_TIMES);
            });
        }
    }
}

/// Everything is read, nothing is written, and the figures are those of a copy.
#[test]
fn null_takes_everything() {
    for options in ["-a", "-r -j 1", "-aHAX -j 8", "-aS"] {
        case(&format!("sync {options} --json SRC/ null:"), |c| {
            files(&c.src(), &["a", "d/b"]);
            let large: Vec<u8> = (0..9_000_000_u32).map(|n| n as u8 | 1).collect();
            std::fs::write(c.src().join("large"), &large).unwrap();
            let before = Snapshot::of(&c.src());
            let empty = c.place("empty");
            std::fs::create_dir(&empty).unwrap();
            // Bytes read and written by a process and its children, as counted by the kernel.
            let script = "\"$@\"; code=$?; cat /proc/$$/io >&2; exit $code";
            let mut command = Command::new("bash");
            command.args(["-c", script, "bash"]).arg(program());
            command.args(c.words(&c.line, &c.dst())).current_dir(&empty);
            let run = run_fed(&mut command, b"");
            let summary = run.ok().summary();
            assert_eq!(summary["files"], 3, "{run}");
            assert_eq!(summary["bytes"], 9_000_000 + 1 + 3, "{run}");
            assert_eq!((&summary["failed"], &summary["skipped"]), (&0.into(), &0.into()), "{run}");
            let counted = |name: &str| -> u64 {
                let text = run.err();
                let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                line.trim().parse().unwrap()
            };
            assert!(counted("rchar:") >= 9_000_004, "did not read everything: {run}");
            assert!(counted("wchar:") < 10_000, "wrote something: {run}");
            assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "made something");
            assert!(!c.dst().exists());
            assert_eq!(Snapshot::of(&c.src()).ctimes(), before.ctimes());
        });
    }
}

#[test]
fn null_tells_what_cannot_be_read() {
    case("sync -a --json SRC/ SRC/missing null:", |c| {
        files(&c.src(), &["a"]);
        let run = c.run();
        run.expect(23).says(&["missing", "No such file"]);
        assert_eq!(run.summary()["files"], 1);
    });
}

#[test]
fn the_log_file_has_a_line_for_each_change() {
    case("sync -a --log-file=LIST SRC/ DST", |c| {
        files(&c.src(), &["a", "b/c", "odd\nname"]);
        let run = c.run();
        assert_eq!(run.ok().out(), "", "{run}");
        let log = std::fs::read_to_string(c.list()).unwrap();
        let mut items = Vec::new();
        for line in log.lines() {
            let fields: Vec<&str> = line.splitn(4, ' ').collect();
            let [date, time, process, item] = fields[..] else { panic!("{line:?}") };
            assert!(date.len() == 10 && date.matches('/').count() == 2, "{line}");
            assert!(time.len() == 8 && time.matches(':').count() == 2, "{line}");
            let number = process.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            assert!(number.is_some_and(|text| text.parse::<u32>().is_ok()), "{line}");
            items.push(item.to_owned());
        }
        items.sort();
        let run = c.run_line("sync -ai SRC/ OLD");
        let mut expected: Vec<String> = run.ok().out().lines().map(str::to_owned).collect();
        expected.retain(|line| !line.starts_with("created directory "));
        expected.sort();
        assert_eq!(items, expected, "as -i has them");
        // Another run appends, and removals are told as well.
        std::fs::remove_file(c.src().join("a")).unwrap();
        c.run_line("sync -a --delete --log-file=LIST SRC/ DST").ok();
        let longer = std::fs::read_to_string(c.list()).unwrap();
        assert!(longer.starts_with(&log), "did not append: {longer}");
        assert!(longer[log.len()..].contains("] *deleting   a\n"), "{longer}");
        let run = c.run_line("sync -a --log-file=LIST/x/y SRC/ DST");
        run.expect(11).says(&["list/x/y", "Not a directory"]);
    });
}
