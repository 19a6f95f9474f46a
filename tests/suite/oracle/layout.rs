//! Target paths: relative arguments, `-R`, lists of files, and the recipe `rsync -avR FILE DST/`, from a
//! separate working directory.

use crate::common::area::Area;
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use crate::oracle::stage;

/// Runs a line inside the source directory with both programs and compares exit codes and trees.
fn inside(line: &str, list: &[u8]) {
    let mut case = Case::new(line, Area::tmpfs(), Area::tmpfs());
    stage::set(&case);
    std::fs::write(case.list(), list).unwrap();
    case.cwd = Some(case.src());
    let (ours, theirs) = (case.run(), case.oracle());
    assert_eq!(ours.code, theirs.code, "exit codes: {ours}\n{theirs}");
    case.target_is_oracles(&Fields { recent_s: crate::oracle::options::now() - 60, ..Fields::ALL });
}

#[test]
fn relative_sources() {
    for line in [
        "sync -avR a/new.txt DST/",
        "sync -avR ./a/new.txt DST/",
        "sync -avR b/only-src/deep/file a/core DST/",
        "sync -avR b/./only-src/deep DST/",
        "sync -aR p/dir/below DST/new/",
        "sync -aR p DST/new/",
        "sync -aR p/ DST/new/",
        "sync -aR ../src/a/new.txt DST/",
        "sync -aR l/dir/deep/file DST/",
        "sync -a a DST",
        "sync -a . DST",
        "sync -a ./ DST",
        "sync -a .. DST/up --exclude=ora --exclude=dst --exclude=list --exclude=old",
        "sync -a a/new.txt b DST",
        "sync -r h DST",
        "sync -aH h/one h/two DST/new/",
    ] {
        inside(line, b"");
    }
}

#[test]
fn many_single_file_runs_make_the_tree_of_one_run() {
    let mut case = Case::new("sync -avR FILE DST/", Area::tmpfs(), Area::tmpfs());
    stage::source(&case.src());
    case.cwd = Some(case.src());
    std::fs::create_dir(case.dst()).unwrap();
    std::fs::create_dir(case.oracle_dst()).unwrap();
    for file in ["a/new.txt", "b/only-src/deep/file", "size/0", "l/relative", "p/read-only"] {
        case.run_line(&format!("sync -avR {file} DST/")).ok();
        case.oracle_line(&format!("sync -avR {file} DST/")).ok();
    }
    case.target_is_oracles(&Fields { recent_s: crate::oracle::options::now() - 60, ..Fields::ALL });
}

#[test]
fn lists_of_files() {
    let list = b"a/new.txt\n/b/only-src/deep/file\n# no comment\n; none either\nl/relative\nsize\n./h/one\n";
    for line in [
        "sync -a --files-from=LIST . DST",
        "sync -a --files-from=LIST SRC DST",
        "sync -a --files-from=LIST SRC/ DST",
        "sync -ar --files-from=LIST SRC DST",
        "sync -a --no-R --files-from=LIST SRC DST",
        "sync --files-from=LIST SRC DST",
        "sync -a --files-from=LIST --exclude=*.txt SRC DST",
    ] {
        inside(line, list);
    }
}

#[test]
fn lists_with_missing_entries_go_on() {
    inside("sync -a --files-from=LIST SRC DST", b"a/new.txt\nnot/there\nsize/1k\n");
}

#[test]
fn lists_that_end_names_with_a_nul_byte() {
    for line in ["sync -a -0 --files-from=LIST SRC DST", "sync -a --from0 --files-from=LIST . DST"]
    {
        inside(line, b"a/new.txt\0size/1k\0l/dangling\0");
    }
}

#[test]
fn a_list_may_not_leave_the_source() {
    case("sync -a --files-from=LIST SRC/a DST", |c| {
        stage::set(c);
        std::fs::write(c.list(), "../size/1k\n../../../etc/hostname\nnew.txt\n").unwrap();
        let (ours, theirs) = (c.run(), c.oracle());
        assert_eq!(ours.code, theirs.code, "exit codes: {ours}\n{theirs}");
        c.target_is_oracles(&Fields {
            recent_s: crate::oracle::options::now() - 60,
            ..Fields::ALL
        });
    });
}

#[test]
fn rules_from_files() {
    let rules = b"# a comment\n; another\n\n+ new.txt\n- *.txt\n- /size/\n";
    for line in [
        "sync -a --exclude-from=LIST SRC/ DST",
        "sync -a --include-from=LIST --exclude=* SRC/ DST",
        "sync -a --filter='. LIST' SRC/ DST",
        "sync -a --filter='merge LIST' --delete SRC/ DST",
        "sync -a --filter='.- LIST' SRC/ DST",
    ] {
        inside(line, rules);
    }
}

#[test]
fn patterns_from_nul_terminated_files() {
    inside("sync -a -0 --exclude-from=LIST SRC/ DST", b"*.txt\0size\0");
}
