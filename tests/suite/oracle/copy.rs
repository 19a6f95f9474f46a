//! `cp`, `mv` and `rm` on the standard fixture, compared with coreutils: exit code, target, source.

use crate::common::area::{Area, Fs};
use crate::common::case::Case;
use crate::common::diff::{Fields, diff};
use crate::common::remove_tree;
use crate::common::snapshot::Snapshot;
use crate::oracle::options::now;
use crate::oracle::stage;

fn compare(from: Fs, to: Fs, line: &str) -> Option<String> {
    let case = Case::new(line, Area::new(from, line)?, Area::new(to, line)?);
    stage::set(&case);
    let recent_s = now() - 1;
    let ours = case.run();
    let source = Snapshot::of(&case.src());
    remove_tree(&case.src());
    stage::source(&case.src());
    let theirs = case.oracle();
    let mut wrong = Vec::new();
    if ours.code != theirs.code {
        let texts = (ours.err(), theirs.err());
        wrong.push(format!("exit code {} instead of {}: {texts:?}", ours.code, theirs.code));
    }
    // coreutils write into an existing file where the program replaces it, which changes the time of
    // the directory; only an archive says what that time should be.
    let dir_times = line.starts_with("cp -a") && line.contains("SRC ");
    let holes = line.contains("sparse=always");
    let fields = Fields { recent_s, holes, dir_times, ..Fields::ALL };
    let (left, right) = (Snapshot::of(&case.oracle_dst()), Snapshot::of(&case.dst()));
    wrong.extend(diff(&left, &right, &fields, 12));
    let sources = diff(&Snapshot::of(&case.src()), &source, &fields, 5);
    wrong.extend(sources.iter().map(|text| format!("source: {text}")));
    (!wrong.is_empty())
        .then(|| format!("{line} ({} to {})\n    {}", from.name(), to.name(), wrong.join("\n    ")))
}

fn family(from: Fs, to: Fs, lines: &[&str]) {
    let failed: Vec<_> = lines.iter().filter_map(|line| compare(from, to, line)).collect();
    assert!(
        failed.is_empty(),
        "{} of {} differ from coreutils:\n  {}",
        failed.len(),
        lines.len(),
        failed.join("\n  ")
    );
}

#[test]
fn cp_trees() {
    family(
        Fs::Tmpfs,
        Fs::Tmpfs,
        &[
            "cp -a SRC DST",
            "cp -a SRC/ DST",
            "cp -a SRC/. DST/new",
            "cp -aT SRC DST/new",
            "cp -r SRC DST",
            "cp -R SRC DST/new",
            "cp -rp SRC DST",
            "cp -rL SRC/a DST",
            "cp -rP SRC DST",
            "cp -rd SRC DST",
            "cp -r --preserve=all SRC DST",
            "cp -r --preserve=mode,timestamps SRC DST",
            "cp -r --preserve=links SRC/h DST",
            "cp -a --no-preserve=ownership SRC DST",
            // Without a socket: cp gives that one the mode of a directory.
            "cp -a --no-preserve=mode,timestamps SRC/p DST",
            "cp -rs SRC/a DST/links",
            "cp -rl SRC/b DST/linked",
            "cp -r SRC/a SRC/b DST",
            "cp -r -t DST SRC/a SRC/b",
            "cp -r --parents SRC/b/only-src DST",
            "cp -a --sparse=always SRC/holes DST/new",
            "cp -a --sparse=never SRC/holes DST/new",
            "cp -a --sparse=auto SRC/holes DST/new",
            "cp -a --reflink=never SRC DST",
            "cp -a --reflink=auto SRC DST",
            "cp -r SRC/missing DST",
            "cp -r SRC/missing SRC/a DST",
            "cp -r SRC/a SRC/b DST/missing",
            "cp SRC/a DST",
        ],
    );
}

#[test]
fn cp_files() {
    family(
        Fs::Tmpfs,
        Fs::Tmpfs,
        &[
            "cp SRC/a/new.txt DST",
            "cp SRC/a/new.txt DST/other",
            "cp SRC/a/new.txt DST/missing/",
            "cp SRC/a/new.txt DST/missing/other",
            "cp SRC/a/new.txt DST/a/same.txt",
            "cp SRC/a/new.txt SRC/a/same.txt DST/x",
            "cp SRC/a/new.txt SRC/a/same.txt DST/a/same.txt",
            "cp -T SRC/a/new.txt DST",
            "cp -t DST/x SRC/a/new.txt",
            "cp -t DST/missing SRC/a/new.txt",
            "cp -p SRC/p/setuid DST",
            "cp SRC/p/setuid DST",
            "cp -u SRC/a/older-in-src.txt SRC/a/newer-in-src.txt SRC/a/new.txt DST/a",
            "cp -f SRC/a/new.txt DST/a/same.txt",
            "cp -l SRC/a/new.txt DST/linked",
            "cp -s SRC/a/new.txt DST/linked",
            "cp SRC/l/relative DST/file",
            "cp -d SRC/l/relative DST/link",
            "cp -P SRC/l/dangling DST/link",
            "cp -L SRC/l/dangling DST/link",
            "cp SRC/l/dangling DST/link",
            "cp --parents SRC/a/new.txt DST",
            "cp --preserve=timestamps SRC/a/new.txt DST",
            "cp --preserve=mode SRC/p/setuid DST",
            "cp SRC/a/new.txt DST/l/relative",
            "cp -a SRC/a/new.txt DST/l/relative",
            "cp SRC/a/new.txt DST/l/changed",
            "cp SRC/holes/zeroes DST/",
            "cp -a SRC/s/fifo DST",
            "cp -r SRC/s DST/new",
        ],
    );
}

/// coreutils 9.2 changed the exit code of `-n` on existing files and changed it back in 9.5; the
/// tree is the same in all of them.
#[test]
fn cp_no_clobber() {
    for line in ["cp -n SRC/a/new.txt SRC/a/same-size.txt DST/a", "cp -an SRC/a SRC/b DST"] {
        let case = Case::new(line, Area::tmpfs(), Area::tmpfs());
        stage::set(&case);
        case.run().ok();
        case.oracle();
        case.target_is_oracles(&Fields { recent_s: now() - 60, ..Fields::ALL });
    }
}

#[test]
fn mv_inside_and_across_file_systems() {
    for to in [Fs::Tmpfs, Fs::Ext4] {
        family(
            Fs::Tmpfs,
            to,
            &[
                "mv SRC DST",
                "mv SRC DST/new",
                "mv -T SRC DST/new",
                "mv SRC/a SRC/h DST/x",
                "mv SRC/a DST",
                "mv -t DST/x SRC/a/new.txt SRC/a/same.txt",
                "mv SRC/a/new.txt DST/a/same.txt",
                "mv -f SRC/a/new.txt DST/a/same.txt",
                "mv -u SRC/a/older-in-src.txt SRC/a/newer-in-src.txt DST/a",
                "mv -b SRC/a/new.txt DST/a/same.txt",
                "mv SRC/l DST/new",
                "mv SRC/l/dangling DST/x",
                "mv SRC/s DST/new",
                "mv SRC/missing DST",
                "mv SRC/missing SRC/h DST",
                "mv SRC/a/new.txt DST/missing/x",
                "mv SRC/a/new.txt SRC/a/same.txt DST/missing",
                "mv SRC SRC/a",
                "mv SRC/a/new.txt DST/x/extra-dir",
            ],
        );
    }
}

#[test]
fn mv_no_clobber_keeps_both() {
    let case = Case::new("mv -n SRC/a/new.txt DST/a/same.txt", Area::tmpfs(), Area::tmpfs());
    stage::set(&case);
    case.run().ok();
    assert!(case.src().join("a/new.txt").exists());
    assert_eq!(std::fs::read(case.dst().join("a/same.txt")).unwrap(), b"the same");
}

#[test]
fn rm_removes_what_rm_removes() {
    family(
        Fs::Tmpfs,
        Fs::Tmpfs,
        &[
            "rm DST/top-extra",
            "rm -r DST",
            "rm -r DST/x DST/a/same.txt",
            "rm -rf DST/x DST/missing",
            "rm DST/x",
            "rm DST/missing",
            "rm -f DST/missing",
            "rm -r DST/missing DST/x",
            "rm DST/x/extra-link",
            "rm -r DST/keep",
            "rm -f DST/x DST/top-extra",
            "rm -rf DST/../../../no/such/place DST/l",
        ],
    );
}
