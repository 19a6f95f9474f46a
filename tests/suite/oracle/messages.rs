//! rsync's messages besides the lines of entries (`--info=backup`, `--info=skip`) and checksums in lines (`%C`),
//! compared with rsync.

use super::meanings::{T, file};
use crate::common::case::{Case, Run, case};
use crate::common::diff::Fields;
use crate::common::grow::set_mtime;
use crate::common::have;
use std::fs::hard_link;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Lines of the output, sorted; both targets are `DST`. rsync's lines about its own work are left out, and that its dry
/// runs tell of backups of symlinks (of files they do not).
fn lines(c: &Case, run: &Run) -> Vec<String> {
    let text = run.out();
    let (ours, theirs) = (c.dst(), c.oracle_dst());
    let text = text.replace(theirs.to_str().unwrap(), "DST").replace(ours.to_str().unwrap(), "DST");
    let own = ["(new) backup_dir is", "cannot delete non-empty"];
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.is_empty() && !own.iter().any(|own| line.starts_with(own)))
        .filter(|line| !(c.line.contains("-anib") && line.starts_with("backed up l")))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// Gives a directory, and the directories and symlinks below it, the same time in every tree: lines of their times
/// would depend on the moment in which each tree was made.
fn settle(dir: &Path) {
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap().file_type() {
            kind if kind.is_dir() => settle(&path),
            kind if kind.is_symlink() => set_mtime(&path, T, 0),
            _ => {}
        }
    }
    set_mtime(dir, T, 0);
}

/// Runs both programs: the same lines, of which one has the words, and the same trees.
fn same_lines(c: &Case, words: &str) {
    [c.src(), c.dst(), c.oracle_dst()].iter().for_each(|root| settle(root));
    let (ours, theirs) = (c.run(), c.oracle());
    assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
    assert!(lines(c, &ours).iter().any(|line| line.contains(words)), "{words}: {ours}");
    assert_eq!(lines(c, &ours), lines(c, &theirs), "{ours}\n{theirs}");
    c.target_is_oracles(&Fields { dir_times: false, link_times: false, ..Fields::ALL });
}

#[test]
fn backups_are_told_in_rsyncs_words() {
    if !have("rsync", "messages beside rsync") {
        return;
    }
    for (line, words) in [
        ("sync -ab --info=backup SRC/ DST", "backed up d/f to d/f~"),
        ("sync -ai -b --suffix=.old --info=backup SRC/ DST", "backed up l to l.old"),
        ("sync -ab --delete --info=backup SRC/ DST", "backed up extra/file to extra/file~"),
        ("sync -a --backup-dir=DST.bak --info=backup SRC/ DST", "backed up d/f to DST.bak/d/f"),
        (
            "sync -a --backup-dir=DST.bak/ --suffix=.x --delete --info=backup SRC/ DST",
            "backed up extra/file to DST.bak/extra/file.x",
        ),
        ("sync -aib --info=backup0 SRC/ DST", ">f.s"),
        ("sync -ab --inplace --info=backup SRC/ DST", "backed up d/f to d/f~"),
        ("sync -ab --delay-updates --info=backup SRC/ DST", "backed up d/f to d/f~"),
        ("sync -ab --info=backup SRC/d/f DST/d/g", "backed up g to g~"),
        ("sync -anib --info=backup SRC/ DST", ">f.s"),
    ] {
        case(line, |c| {
            file(&c.src().join("d/f"), "new content", T);
            file(&c.src().join("same"), "same", T);
            file(&c.src().join("new"), "new", T);
            symlink("there", c.src().join("l")).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("d/f"), "old", T - 5);
                file(&root.join("d/g"), "old", T - 5);
                file(&root.join("same"), "same", T);
                file(&root.join("extra/file"), "extra", T);
                symlink("here", root.join("l")).unwrap();
            }
            same_lines(c, words);
        });
    }
}

#[test]
fn skipped_entries_are_told_in_rsyncs_words() {
    if !have("rsync", "messages beside rsync") {
        return;
    }
    for (line, words) in [
        ("sync -a --existing --info=skip SRC/ DST", "not creating new directory \"n\""),
        ("sync -ai --existing --max-size=2 --info=skip SRC/ DST", "not creating new file \"new\""),
        ("sync -a --ignore-existing --info=skip SRC/ DST", "d/same exists"),
        ("sync -a --ignore-existing --max-size=2 --info=skip SRC/ DST", "d/old exists"),
        ("sync -aiu --info=skip SRC/ DST", "d/old is newer"),
        ("sync -au -n --info=skip SRC/ DST", "d/old is newer"),
        ("sync -a --max-size=4 --info=skip SRC/ DST", "d/old is over max-size"),
        ("sync -a --min-size=4 --info=skip SRC/ DST", "new is under min-size"),
        ("sync -a --max-size=4 --info=skip SRC/d/old DST/d/same", "old is over max-size"),
        ("sync -au --info=skip SRC/d/old DST/d/old", "old is newer"),
        ("sync -aiu --info=skip0 SRC/ DST", ">f+++++++++ new"),
    ] {
        case(line, |c| {
            file(&c.src().join("d/old"), "old content", T);
            file(&c.src().join("d/same"), "same", T);
            file(&c.src().join("n/m/inside"), "inside", T);
            file(&c.src().join("new"), "new", T);
            symlink("there", c.src().join("l")).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("d/old"), "newer", T + 5);
                file(&root.join("d/same"), "same", T);
            }
            same_lines(c, words);
        });
    }
}

/// `-vv` has them, too, `-q` has not, and `--json` has an event for each.
#[test]
fn messages_by_level_and_as_json() {
    for (line, expected) in [
        ("sync -avvu SRC/ DST", "f is newer"),
        ("sync -au -vv --info=skip0 SRC/ DST", ""),
        ("sync -au --info=name2 SRC/ DST", ""),
        ("sync -aqu --info=skip SRC/ DST", ""),
        ("sync -au SRC/ DST", ""),
        ("sync -au --info=skip --json SRC/ DST", "{\"event\":\"info\",\"message\":\"f is newer\"}"),
    ] {
        case(line, |c| {
            file(&c.src().join("f"), "old", T);
            file(&c.dst().join("f"), "newer", T + 5);
            let run = c.run();
            let found: Vec<&str> = std::str::from_utf8(&run.ok().stdout).unwrap().lines().collect();
            let found = found.into_iter().find(|line| line.contains("is newer"));
            assert_eq!(found.unwrap_or_default(), expected, "{run}");
        });
    }
    case("sync -au --info=skip --log-file=LIST SRC/ DST", |c| {
        file(&c.src().join("f"), "old", T);
        file(&c.dst().join("f"), "newer", T + 5);
        c.run().ok();
        let log = std::fs::read_to_string(c.list()).unwrap();
        assert!(log.lines().any(|line| line.ends_with("] f is newer")), "{log}");
    });
}

#[test]
fn checksums_in_lines_are_rsyncs() {
    if !have("rsync", "checksums beside rsync") {
        return;
    }
    for line in [
        "sync -a --out-format='%C %n' --checksum-choice=md5 SRC/ DST",
        "sync -ac --out-format='[%40C] %i %n' --checksum-choice=md5 SRC/ DST",
        "sync -aH --out-format='%C %n' --cc=none,md5 -c SRC/ DST",
        "sync -aH --out-format='%-34C|%n' --cc=md5 SRC/ DST",
        "sync -ac --delete --out-format='%i %C %n' --cc=xxh128 SRC/ DST",
        "sync -a --out-format='%C %n' SRC/ DST",
        "sync -ac --out-format='%000000000000000000000000000000%C %n' SRC/ DST",
    ] {
        // A build of rsync without the library has no xxh128.
        let theirs = std::process::Command::new("rsync").arg("--version").output().unwrap();
        if !line.contains("md5") && !String::from_utf8_lossy(&theirs.stdout).contains("xxh128") {
            continue;
        }
        case(line, |c| {
            file(&c.src().join("d/large"), &"0123456789abcdef".repeat(20_000), T);
            file(&c.src().join("empty"), "", T);
            file(&c.src().join("small"), "small", T);
            file(&c.src().join("mode"), "mode", T);
            hard_link(c.src().join("small"), c.src().join("small2")).unwrap();
            symlink("there", c.src().join("l")).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("small"), "other", T - 5);
                file(&root.join("mode"), "mode", T - 5);
                file(&root.join("gone"), "gone", T);
            }
            same_lines(c, "d/large");
        });
    }
}

#[test]
fn checksums_that_are_not_built_are_refused() {
    for (line, words) in [
        ("sync -a --out-format=%C --checksum-choice=xxh64 SRC/ DST", "%C supports xxh128"),
        ("sync -a --log-file=LIST --log-file-format=%C --cc=sha1 SRC/ DST", "%C supports xxh128"),
        ("sync -a --out-format=%C SRC/ s3://bucket/", "%C is not supported for s3://"),
    ] {
        case(line, |c| {
            file(&c.src().join("f"), "f", T);
            c.run().expect(1).says(&[words]);
            assert!(!c.dst().exists());
        });
    }
}

/// The last two lines of the output with their numbers as `N`, and the total size.
fn ending(run: &Run) -> (String, String) {
    let text = run.out();
    let lines: Vec<&str> = text.lines().collect();
    let [.., "", sent, total] = lines[..] else { panic!("no end: {run}") };
    let size = total.strip_prefix("total size is ").and_then(|rest| rest.split(' ').next());
    let is_number = |c: char| c.is_ascii_digit() || ".,KMG".contains(c);
    let words = [sent, total].map(|line| {
        let word = |word: &str| {
            let number = word.chars().all(is_number) && word.contains(|c: char| c.is_ascii_digit());
            if number { "N".to_owned() } else { word.to_owned() }
        };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    });
    (words.join("\n"), size.unwrap_or_default().to_owned())
}

#[test]
fn the_end_is_rsyncs() {
    if !have("rsync", "totals beside rsync") {
        return;
    }
    for (line, ends) in [
        ("sync -av SRC/ DST", true),
        ("sync -avn SRC/ DST", true),
        ("sync -avh SRC/ DST", true),
        ("sync -av --no-h SRC/ DST", true),
        ("sync -avvi --delete SRC/ DST", true),
        ("sync -a --stats SRC/ DST", true),
        ("sync -a --info=stats SRC/ DST", true),
        ("sync -a --stats --info=stats1 SRC/ DST", true),
        ("sync -av --info=name0 SRC/ DST", true),
        ("sync -av --list-only SRC/", true),
        ("sync -av --info=stats0 SRC/ DST", false),
        ("sync -avq SRC/ DST", false),
        ("sync -ai SRC/ DST", false),
        ("sync -a SRC/ DST", false),
    ] {
        case(line, |c| {
            file(&c.src().join("a"), &"x".repeat(50_000), T);
            file(&c.src().join("d/f"), &"x".repeat(1_234_567), T);
            file(&c.src().join("same"), "same", T);
            symlink("there", c.src().join("l")).unwrap();
            for root in [c.dst(), c.oracle_dst()] {
                file(&root.join("same"), "same", T);
                file(&root.join("extra"), "extra", T);
            }
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!((ours.code, theirs.code), (0, 0), "{ours}\n{theirs}");
            for run in [&ours, &theirs] {
                assert_eq!(run.out().contains("total size is"), ends, "{run}");
            }
            assert_eq!(
                ours.out().contains("Number of files"),
                theirs.out().contains("Number of files"),
                "{ours}\n{theirs}"
            );
            if ends {
                assert_eq!(ending(&ours), ending(&theirs), "{ours}\n{theirs}");
            }
        });
    }
}

/// Names are taken in order where that is asked for; on this file system the directory has them in another one, either
/// from the first or from the last.
#[test]
fn names_in_order_with_one_job() {
    use crate::common::area::Fs;
    use crate::common::case::case_on;
    use std::os::unix::fs::MetadataExt;
    let in_order = |line: &str, reversed: bool| {
        let mut is_sorted = false;
        case_on(Fs::Tmpfs, Fs::Tmpfs, line, |c| {
            let mut names: Vec<String> = (0..30).map(|n| format!("f{n:02}")).collect();
            if reversed {
                names.reverse();
            }
            names.iter().for_each(|name| file(&c.src().join(name), "x", T));
            c.run().ok();
            names.sort();
            // Inodes of this file system are numbered as they are made.
            let inode = |name: &String| c.dst().join(name).metadata().unwrap().ino();
            is_sorted = names.iter().map(inode).is_sorted();
        });
        is_sorted
    };
    for reversed in [false, true] {
        assert!(in_order("sync -a -j1 --no-inc-recursive SRC/ DST", reversed));
    }
    let line = "sync -a -j1 SRC/ DST";
    assert!(!(in_order(line, false) && in_order(line, true)), "the directory is in order anyway");
    case("sync -a -j2 --no-inc-recursive SRC/ DST", |c| {
        file(&c.src().join("a"), "x", T);
        c.run().ok().says(&["--no-inc-recursive (names are in order with -j 1 only)"]);
    });
}
