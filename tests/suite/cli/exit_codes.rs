//! Every documented exit code.

use super::arguments as hakobu_case;
use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::snapshot::Snapshot;
use crate::common::{have, program};
use hakobu_case::{case, files};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

#[test]
fn sync_0_done() {
    case("sync -a SRC/ DST", |c| {
        files(&c.src(), &["a", "b/c"]);
        let run = c.run();
        run.ok();
        assert_eq!(run.err(), "");
        assert!(Snapshot::of(&c.dst()).has("b/c"));
    });
}

#[test]
fn sync_1_usage() {
    for line in [
        "sync",
        "sync --no-such-option SRC DST",
        "sync -a --max-size=banana SRC/ DST",
        "sync -a -j banana SRC/ DST",
        "sync -a --bwlimit=-5 SRC/ DST",
        "sync -a --chmod=u~x SRC/ DST",
        "sync --delete SRC/a DST",
        "sync -a --filter=nonsense SRC/ DST",
        "sync -a --filter='X what' SRC/ DST",
    ] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            assert_eq!(run.code, 1, "{run}");
            assert!(!run.stderr.is_empty(), "{run}");
            assert!(!c.dst().exists(), "a wrong command line moved something: {run}");
        });
    }
}

/// Files of rules and lists that are not there stop the run with rsync's own code.
#[test]
fn sync_lists_that_are_missing() {
    for line in [
        "sync -a --files-from=LIST SRC DST",
        "sync -a --exclude-from=LIST SRC/ DST",
        "sync -a --include-from=LIST SRC/ DST",
        "sync -a --filter='. LIST' SRC/ DST",
    ] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!(ours.code, theirs.code, "{ours}{theirs}");
            ours.says(&["list"]);
        });
    }
}

#[test]
fn sync_11_target_that_cannot_be() {
    for line in ["sync -a SRC/ DST/missing/parent", "sync -a SRC/a SRC/b DST/a"] {
        case(line, |c| {
            files(&c.src(), &["a", "b"]);
            files(&c.dst(), &["a"]);
            let (ours, theirs) = (c.run(), c.oracle());
            if line.contains("missing") {
                std::fs::create_dir_all(c.oracle_dst()).unwrap();
                assert_eq!(ours.code, c.oracle().code, "{ours}");
            } else {
                files(&c.oracle_dst(), &["a"]);
                assert_eq!(ours.code, c.oracle().code, "{ours}{theirs}");
            }
            assert_ne!(ours.code, 0);
            assert_eq!(std::fs::read_to_string(c.dst().join("a")).unwrap(), "a");
        });
    }
}

#[test]
fn sync_23_partial() {
    for line in ["sync -a SRC/missing DST", "sync -a SRC/missing SRC/a DST"] {
        case(line, |c| {
            files(&c.src(), &["a"]);
            let run = c.run();
            run.expect(23).says(&["missing", "No such file or directory"]);
            assert_eq!(c.dst().exists(), line.contains("SRC/a"), "the rest is done: {run}");
        });
    }
    case("sync -a SRC/ DST", |c| {
        files(&c.src(), &["a", "name"]);
        files(&c.dst(), &["name/in/the/way"]);
        c.run().expect(23).says(&["name"]);
        assert!(c.dst().join("a").exists() && c.dst().join("name/in/the/way").exists());
    });
}

#[test]
fn sync_25_deletions_held_back() {
    case("sync -a --delete --max-delete=1 SRC/ DST", |c| {
        files(&c.src(), &["a"]);
        files(&c.dst(), &["x", "y", "z"]);
        c.run().expect(25).says(&["max-delete"]);
        assert_eq!(std::fs::read_dir(c.dst()).unwrap().count(), 3);
    });
}

#[test]
fn cp_mv_rm_1_failure_2_usage() {
    for (line, code) in [
        ("cp SRC/a DST", 0),
        ("cp SRC/missing DST", 1),
        ("cp SRC DST", 1),
        ("cp SRC/a SRC/b DST/nowhere", 1),
        ("cp", 2),
        ("cp SRC/a", 2),
        ("cp --no-such-option SRC/a DST", 2),
        ("cp --sparse=perhaps SRC/a DST", 2),
        ("cp --reflink=perhaps SRC/a DST", 2),
        ("cp --preserve=beauty SRC/a DST", 2),
        ("cp -T SRC/a SRC/b DST", 2),
        ("mv SRC/a DST", 0),
        ("mv SRC/missing DST", 1),
        ("mv", 2),
        ("mv --no-such-option a b", 2),
        ("rm SRC/a", 0),
        ("rm SRC/missing", 1),
        ("rm -f SRC/missing", 0),
        ("rm SRC", 1),
        ("rm", 2),
        ("rm -f", 0),
        ("rm --no-such-option a", 2),
    ] {
        case(line, |c| {
            files(&c.src(), &["a", "b"]);
            let run = c.run();
            assert_eq!(run.code, code, "{run}");
            assert_eq!(run.code == 0, run.stderr.is_empty(), "{run}");
        });
    }
}

#[test]
fn verify_0_same_1_different_2_not_compared() {
    case("verify SRC DST", |c| {
        files(&c.src(), &["a", "d/b"]);
        c.run_line("sync -a SRC/ DST").ok();
        c.run().expect(0);
        std::fs::write(c.dst().join("a"), "X").unwrap();
        c.run().expect(1);
        c.run_line("verify SRC SRC/missing").expect(2).says(&["missing"]);
        c.run_line("verify SRC").expect(2);
        c.run_line("verify --no-such-option SRC DST").expect(2);
    });
}

#[test]
fn a_failed_move_never_says_0() {
    case("sync -r --json SRC/ DST", |c| {
        files(&c.src(), &["good", "bad"]);
        files(&c.dst(), &["bad/in/the/way"]);
        let run = c.run();
        run.expect(23);
        let last = run.out().lines().last().unwrap_or_default().to_owned();
        let summary: serde_json::Value = serde_json::from_str(&last).expect("a summary");
        assert_eq!(summary["exit_code"], 23);
        assert_eq!(summary["failed"], 1);
    });
}

#[test]
fn list_tools_say_what_they_cannot_see() {
    case("du SRC/missing", |c| {
        files(&c.src(), &["a"]);
        assert_ne!(c.run().code, 0);
        c.run_line("du SRC").ok();
    });
}

#[test]
fn a_target_that_is_a_file_is_not_replaced_by_a_tree() {
    case("sync -a SRC/ DST/file", |c| {
        files(&c.src(), &["a", "b"]);
        files(&c.dst(), &["file"]);
        std::fs::set_permissions(c.dst().join("file"), PermissionsExt::from_mode(0o600)).unwrap();
        let run = c.run();
        assert_ne!(run.code, 0, "{run}");
        assert_eq!(std::fs::read_to_string(c.dst().join("file")).unwrap(), "file");
    });
}

#[test]
fn a_server_without_its_directory() {
    let area = Area::tmpfs();
    let mut command = Command::new(program());
    command.args(["serve", "s3", "nodir"]).current_dir(area.path()).stdin(Stdio::null());
    let ran = Run::new("serve s3 nodir".into(), command.output().unwrap());
    ran.expect(1);
    assert_eq!(ran.err(), "hakobu: cannot serve 'nodir': No such file or directory\n");
}

// Started by a program that ignores SIGCHLD (some daemons and wrappers of cron): children are still seen.

const IGNORING: &str = "import os, signal, sys\n\
                        signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
                        os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn children_are_seen_where_their_ends_are_ignored() {
    if !have("python3", "a parent that ignores SIGCHLD") {
        return;
    }
    let area = Area::tmpfs();
    std::fs::create_dir(area.join("src")).unwrap();
    std::fs::write(area.join("src/f"), "content").unwrap();
    // The second line is one that a process of its own runs.
    std::fs::write(area.join("lines"), "cp -r src dst\ndu .\n").unwrap();
    let cases: [(&[&str], i32); 7] = [
        (&["watch", "--", "sh", "-c", "exit 3"], 3),
        (&["watch", "--", "sh", "-c", "kill -TERM $$"], 143),
        (&["watch", "--", "/no/such/program"], 127),
        (&["bench", "-r", "2", "-o", "out", "-p", "true", "-c", "true", "true"], 0),
        (&["run", "lines"], 0),
        (&["cluster", "plan", "-a", "--run", "run", "src/", "dst2"], 0),
        (&["cluster", "submit", "--local", "2", "run"], 0),
    ];
    for (words, code) in cases {
        let mut command = Command::new("python3");
        command.args(["-c", IGNORING]).arg(program()).args(words);
        command.current_dir(area.path()).stdin(Stdio::null());
        command.env("HOME", area.path()).env("XDG_STATE_HOME", area.join("state"));
        let ran = Run::new(words.join(" "), command.output().unwrap());
        ran.expect(code);
    }
    assert!(area.join("dst/f").exists() && area.join("dst2/f").exists());
}
