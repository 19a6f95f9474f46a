//! rsync's lines of progress on standard output (`--progress`, `--info=progress2`), compared with rsync.

use super::meanings::{T, file};
use crate::common::case::{Case, Run, case};
use crate::common::have;
use std::os::unix::fs::symlink;

/// Lines of `--progress`: names, and of the last state of each file its size, percentage and number. Rates, times and
/// counts of directories are left out.
fn progress(c: &Case, run: &Run) -> Vec<String> {
    let text = run.out().replace(c.oracle_dst().to_str().unwrap(), c.dst().to_str().unwrap());
    let shown = text.lines().filter(|line| *line != "sending incremental file list");
    shown
        .map(|line| match line.rsplit_once('\r') {
            None => line.to_owned(),
            Some((_, state)) => {
                let number = state.split_once("(xfr#").map(|(_, rest)| rest.split_once(','));
                let checks = ["to-chk=", "ir-chk="].iter().any(|word| state.contains(word));
                format!("{} #{} {checks}", &state[..20], number.flatten().unwrap().0)
            }
        })
        .collect()
}

#[test]
fn progress_of_files_is_rsyncs_on_standard_output() {
    if !have("rsync", "progress beside rsync") {
        return;
    }
    for (line, has_states) in [
        ("sync -aj1 --progress SRC/ DST", true),
        ("sync -aPhj1 SRC/ DST", true),
        ("sync -aij1 --info=progress SRC/ DST", true),
        ("sync -anj1 --progress SRC/ DST", false),
        ("sync -aj1 --progress --no-progress SRC/ DST", false),
        ("sync -aqj1 --progress SRC/ DST", false),
    ] {
        case(line, |c| {
            file(&c.src().join("a"), &"x".repeat(50_000), T);
            file(&c.src().join("d/empty"), "", T);
            file(&c.src().join("d/f"), &"x".repeat(1_234_567), T);
            symlink("a", c.src().join("l")).unwrap();
            let theirs = c.oracle_line(&line.replace("j1", ""));
            let ours = c.run();
            assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
            assert_eq!(progress(c, &ours), progress(c, &theirs), "{ours}\n{theirs}");
            assert_eq!(ours.out().contains("100%"), has_states, "{ours}");
        });
    }
}

/// The last state of `--info=progress2`: size, percentage, number of files and of entries that are left.
fn state(run: &Run) -> (String, String) {
    let text = run.out();
    let line = text.lines().rfind(|line| line.starts_with('\r'));
    let last = line.and_then(|line| line.rsplit('\r').next()).unwrap_or_default().trim_end();
    let (start, rest) = last.split_at_checked(20).unwrap_or_default();
    let position = rest.split_once("(xfr#").and_then(|(_, rest)| rest.split_once('/'));
    (start.to_owned(), position.unwrap_or_default().0.to_owned())
}

#[test]
fn progress_of_the_run_is_rsyncs_on_standard_output() {
    if !have("rsync", "progress beside rsync") {
        return;
    }
    for (line, first) in [
        ("sync -aj1 --info=progress2 SRC/ DST", "\r"),
        ("sync -aj1 --info=progress2 --bwlimit=1m SRC/ DST", "\r"),
        ("sync -aij1 --info=progress2 SRC/ DST", "cd+++++++++ ./"),
        ("sync -ahj1 --info=progress2 SRC/ DST", "\r"),
    ] {
        case(line, |c| {
            file(&c.src().join("a"), &"x".repeat(50_000), T);
            file(&c.src().join("d/empty"), "", T);
            file(&c.src().join("d/f"), &"x".repeat(1_834_567), T);
            let theirs = c.oracle_line(&line.replace("j1", ""));
            let ours = c.run();
            assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
            assert_eq!(state(&ours), state(&theirs), "{ours}\n{theirs}");
            assert_eq!(state(&ours).1, "3, to-chk=0", "{ours}");
            assert!(ours.out().contains(first) && ours.out().ends_with('\n'), "{ours}");
            // Names stand on lines of their own.
            let lines = ours.out();
            assert!(
                lines.lines().all(|line| !line.contains("+++") || !line.contains('\r')),
                "{ours}"
            );
            let states = lines.matches('\r').count();
            assert_eq!(states > 1, line.contains("bwlimit"), "{ours}");
            assert!(!ours.err().contains(" left"), "{ours}");
        });
    }
    for line in [
        "sync -aq --info=progress2 SRC/ DST",
        "sync -a --info=progress2 --no-progress SRC/ DST",
        "sync -a --info=progress2,progress0 SRC/ DST",
    ] {
        case(line, |c| {
            file(&c.src().join("a"), "a", T);
            assert_eq!(c.run().ok().out(), "");
        });
    }
}
