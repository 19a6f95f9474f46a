//! Rules and names that come from files, of whichever machine; lists of another machine's files; `--fake-super` at either
//! end.

use super::trees::{far, start};
use crate::common::case::Case;
use crate::common::diff::Fields;
use crate::common::{have, is_root, must};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn tree(case: &Case, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = case.src().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Compares with the same command between two directories.
fn as_here(case: &Case, line: &str, shell: &str, is_source: bool) {
    let oracle = case.oracle_dst().display().to_string();
    let here = case.run_line(&line.replace("DST", &oracle));
    let there = case.run_line(&far(line, shell, is_source));
    assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
    assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
    let recent_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 - 5;
    case.target_is_oracles(&Fields { recent_s, ..Fields::ALL });
}

/// Rule files of this machine count for a source there, and those in the directories of a source wherever it is.
#[test]
fn filters_from_files() {
    for options in [
        "-ai --exclude-from=LIST",
        "-ai --include-from=LIST --exclude=*",
        "-ai '--filter=. LIST'",
        "-ai -F",
        "-ai -FF",
        "-ai '--filter=: .rules'",
        "-ai '--filter=:n- .rules'",
        "-ai '--filter=dir-merge .rules' --exclude=b/y",
        "-ai -C",
        "-ai -0 --exclude-from=LIST",
        "-ai -m -F",
    ] {
        for is_source in [false, true] {
            let (case, _, shell) = start(&format!("sync {options} SRC/ DST"));
            tree(
                &case,
                &[
                    ("x", "x"),
                    ("y", "y"),
                    ("a/x", "ax"),
                    ("a/y", "ay"),
                    ("a/z.o", "object"),
                    ("a/b/x", "abx"),
                    ("a/b/y", "aby"),
                    ("b/x", "bx"),
                    ("b/y", "by"),
                    (".rsync-filter", "- /x\n"),
                    ("a/.rsync-filter", "- y\n"),
                    ("a/.rules", "x\n"),
                    ("b/.rules", "- y\n"),
                    ("a/.cvsignore", "b\n"),
                ],
            );
            let list = match options.contains(" -0 ") {
                true => "x\0/b/y\0",
                false if options.contains(". LIST") => "- x\n+ y\n- *.o\n",
                false if options.contains("include") => "*/\nx\n",
                false => "x\n/b/y\n",
            };
            fs::write(case.list(), list).unwrap();
            as_here(&case, &case.line, &shell, is_source);
        }
    }
}

/// A list of names, on either machine, for sources on either.
#[test]
fn names_from_files() {
    for (options, list) in [
        ("-ai --files-from=", "a/x\nb\n"),
        ("-ari --files-from=", "a/b\nnone\n"),
        ("-ai -0 --files-from=", "a/x\0b/y\0"),
        ("-ai --no-R --files-from=", "a/x\n"),
        ("-i --files-from=", "a/./b/x\n"),
    ] {
        for is_source in [false, true] {
            for place in ["", ":", "h:"] {
                let (case, _, shell) = start(&format!("sync {options}LIST SRC/ DST"));
                let files = [("a/x", "ax"), ("a/b/x", "abx"), ("b/y", "by"), ("c", "c")];
                tree(&case, &files);
                fs::write(case.list(), list).unwrap();
                let oracle = case.oracle_dst().display().to_string();
                let here = case.run_line(&case.line.replace("DST", &oracle));
                let line = far(&case.line, &shell, is_source);
                let there = case.run_line(&line.replace("=LIST", &format!("={place}LIST")));
                assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
                assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
                case.target_is_oracles(&Fields { recent_s: now - 5, ..Fields::ALL });
            }
        }
    }
    // A list that is longer than a message can be.
    for (is_source, place) in [(true, ""), (false, ":")] {
        let (case, _, shell) = start("sync -ai --files-from=LIST SRC/ DST");
        tree(&case, &[("a/x", "ax")]);
        let mut long: String =
            (0..60_000).map(|at| format!("none/{at}/of/these/is/there\n")).collect();
        long.push_str("a/x\n");
        fs::write(case.list(), long).unwrap();
        let line =
            far(&case.line, &shell, is_source).replacen("-ai", "-ai --ignore-missing-args", 1);
        case.run_line(&line.replace("=LIST", &format!("={place}LIST"))).ok();
        assert_eq!(fs::read(case.dst().join("a/x")).unwrap(), b"ax");
    }
    let (case, _, shell) = start("sync -a --files-from=other:LIST SRC/ DST");
    tree(&case, &[("a", "a")]);
    let refused = case.run_line(&far(&case.line, &shell, false));
    refused.expect(1).says(&["another machine than SRC or DST"]);
    let none = case.run_line(&far(&case.line, &shell, false).replace("other:LIST", ":/no/such"));
    none.expect(1).says(&["cannot read '/no/such'"]);
}

/// A single argument is listed, as rsync does, and so is a source with `--list-only`.
#[test]
fn files_there_are_listed() {
    for options in ["", "-r ", "-a ", "-d "] {
        for place in ["SRC/", "SRC", "SRC/a"] {
            let (case, _, shell) = start(&format!("sync {options}{place}"));
            tree(&case, &[("a/x", "ax"), ("a/b/y", "aby"), ("c", "content")]);
            std::os::unix::fs::symlink("c", case.src().join("link")).unwrap();
            let here = case.run();
            let there = case.run_line(&far(&case.line, &shell, true));
            assert_eq!(here.ok().sorted(), there.ok().sorted(), "{there}");
            assert!(!here.sorted().is_empty());
        }
    }
    let (case, _, shell) = start("sync -r --list-only SRC/ DST");
    tree(&case, &[("a/x", "ax")]);
    for is_source in [false, true] {
        let here = case.run();
        let there = case.run_line(&far(&case.line, &shell, is_source));
        assert_eq!(here.ok().sorted(), there.ok().sorted(), "{there}");
        assert!(!case.dst().exists());
    }
}

fn special(path: &Path) {
    must(Command::new("mknod").arg(path.join("null")).args(["c", "1", "3"]));
    must(Command::new("mkfifo").arg(path.join("fifo")));
    std::os::unix::fs::symlink("to", path.join("link")).unwrap();
    fs::write(path.join("f"), "content").unwrap();
    std::os::unix::fs::chown(path.join("f"), Some(1234), Some(2345)).unwrap();
}

/// `--fake-super` is about the end that is here, `-M--fake-super` about the other one.
#[test]
fn attributes_that_are_kept_beside() {
    if !is_root() || !have("getfattr", "--fake-super") {
        return;
    }
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -aX SRC/ DST");
        if !crate::common::xattr::Features::probe(&case.place("")).user {
            return crate::common::skip("--fake-super: the file system keeps no attributes");
        }
        fs::create_dir(case.src()).unwrap();
        special(&case.src());
        // There and back: kept beside at the target, and read from there.
        let (keeps, reads) = match is_source {
            true => ("--fake-super", "--fake-super"),
            false => ("-M--fake-super", "-M--fake-super"),
        };
        let line = far(&case.line, &shell, is_source).replacen("-aX", &format!("-aX {keeps}"), 1);
        case.run_line(&line).ok();
        for name in ["null", "fifo", "f"] {
            let kept = case.dst().join(name);
            assert!(fs::symlink_metadata(&kept).unwrap().is_file(), "{name}");
            let shown = must(Command::new("getfattr").args(["-d", "-m", "-"]).arg(&kept));
            assert!(String::from_utf8_lossy(&shown).contains("user.rsync.%stat"), "{name}");
        }
        let again = line.replacen("-aX", "-aXi", 1);
        assert!(case.run_line(&again).ok().items().is_empty());
        let (dst, old) = (case.dst().display().to_string(), case.old().display().to_string());
        let back = match is_source {
            // What is here is the source now.
            true => format!("sync -e {shell} -aX {reads} {dst}/ h:{old}"),
            false => format!("sync -e {shell} -aX {reads} h:{dst}/ {old}"),
        };
        case.run_line(&back).ok();
        case.same("there and back", &case.src(), &case.old(), &Fields::ALL);
        assert_eq!(fs::metadata(case.old().join("f")).unwrap().uid(), 1234);
    }
}

#[test]
fn options_of_the_other_end_alone() {
    let (case, _, shell) = start("sync -a SRC/ DST");
    tree(&case, &[("a", "a")]);
    for (option, code) in [
        ("-M--fsync", 0),
        ("-M--bwlimit=10m", 0),
        ("-M--checksum", 1),
        ("-M--delete", 1),
        ("-M--no-such", 1),
        ("-Mword", 1),
    ] {
        for is_source in [false, true] {
            let line = far(&case.line, &shell, is_source);
            let run = case.run_line(&line.replacen("-a", &format!("-a {option}"), 1));
            run.expect(code);
            if code != 0 {
                run.says(&["invalid --remote-option"]);
            }
        }
    }
}
