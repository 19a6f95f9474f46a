//! The same trees whether an end is on another machine or not.

use super::shell;
use crate::common::area::{Area, Fs};
use crate::common::case::Case;
use crate::common::diff::Fields;
use crate::common::grow::{Plan, grow};
use crate::common::mutate::{Wild, mutate};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use crate::common::{first_seed, rounds};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn start(line: &str) -> (Case, Plan, String) {
    let (from, to) = (Area::new(Fs::Tmpfs, line).unwrap(), Area::new(Fs::Tmpfs, line).unwrap());
    let (a, b) = (Features::probe(from.path()), Features::probe(to.path()));
    let plan = Plan::full(Features { user: a.user && b.user, ..a });
    let shell = shell(&from, "");
    (Case::new(line, from, to), plan, shell.display().to_string())
}

/// The words of a line with the source, or the target, on another machine.
pub fn far(line: &str, shell: &str, is_source: bool) -> String {
    let (place, there) = if is_source { ("SRC", "h:SRC") } else { ("DST", "h:DST") };
    let words = line.replacen(place, there, if is_source { usize::MAX } else { 1 });
    words.replacen("sync", &format!("sync -e {shell}"), 1)
}

/// Lines in rsync's order need whole directories at once: more entries than one message has.
#[test]
fn large_directories_in_order() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -aHi -j 1 --remove-source-files SRC/ DST");
        fs::create_dir_all(case.src().join("dir")).unwrap();
        for at in 0..300 {
            fs::write(case.src().join(format!("dir/{at}")), at.to_string()).unwrap();
        }
        fs::hard_link(case.src().join("dir/1"), case.src().join("dir/299-too")).unwrap();
        case.run_line(&far(&case.line, &shell, is_source)).ok();
        for at in 0..300 {
            let there = fs::read(case.dst().join(format!("dir/{at}"))).unwrap();
            assert_eq!(there, at.to_string().as_bytes());
        }
        assert_eq!(fs::read_dir(case.src().join("dir")).unwrap().count(), 0);
        let identity = |name: &str| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(case.dst().join(name)).unwrap().ino()
        };
        assert_eq!(identity("dir/1"), identity("dir/299-too"), "a hard link became a copy");
    }
}

/// Random trees are copied and randomly changed; the target equals the source, and a second run has nothing to do.
#[test]
fn random_trees_in_both_directions() {
    let first = first_seed(1);
    for seed in first..first + rounds(3) {
        for is_source in [false, true] {
            eprintln!("seed {seed}, source there: {is_source}");
            let (case, plan, shell) = start("sync -aHAXS SRC/ DST");
            grow(&case.src(), seed, &plan);
            let line = far(&case.line, &shell, is_source);
            case.run_line(&line).ok();
            // Holes are found by the target where there are zeroes.
            let fields = Fields { holes: false, ..Fields::ALL };
            case.target_is_source(&fields);
            let before = Snapshot::of(&case.dst()).ctimes();
            let again = case.run_line(&line.replacen("-aHAXS", "-aHAXSi", 1));
            assert!(again.ok().items().is_empty(), "a second run did something: {again}");
            assert!(before == Snapshot::of(&case.dst()).ctimes(), "a second run touched inodes");
            let wild = Wild { types: false, names: true, links: false };
            mutate(&case.src(), seed * 10, 20, &plan, wild);
            case.run_line(&line).ok();
            let source = Snapshot::of(&case.src());
            let target = Snapshot::of(&case.dst()).only(&source);
            let wrong = crate::common::diff::diff(&source, &target, &fields, 10);
            assert!(wrong.is_empty(), "seed {seed}: {line}\n  {}", wrong.join("\n  "));
        }
    }
}

/// Options mean the same as between two directories of one machine: tree, exit code and itemized lines.
#[test]
fn options_mean_the_same() {
    let lines = [
        "sync -r",
        "sync -rl",
        "sync -rlptgoD",
        "sync -a",
        "sync -aH",
        "sync -aX",
        "sync -aA",
        "sync -aS",
        "sync -rt --chmod=u=rw,D+x",
        "sync -rp",
        "sync -rE",
        "sync -aO",
        "sync -aJ",
        "sync -aU",
        "sync -au",
        "sync -aI",
        "sync -a --size-only",
        "sync -a --existing",
        "sync -a --ignore-existing",
        "sync -a --max-size=2k",
        "sync -a --min-size=10",
        "sync -a --exclude=*a*",
        "sync -a --include=*/ --include=*e* --exclude=*",
        "sync -am",
        "sync -ax",
        "sync -aL",
        "sync -ak",
        "sync -a --safe-links",
        "sync -a --copy-unsafe-links",
        "sync -d",
        "sync -ab",
        "sync -ab --suffix=.bak",
        "sync -a --inplace",
        "sync -a --partial",
        "sync -a --delay-updates",
        "sync -a --fsync",
        "sync -an",
        "sync -a --preallocate",
        "sync -a --numeric-ids",
        "sync -a --no-perms",
        "sync -a --no-times",
        "sync -a --modify-window=2",
        "sync -a -j 1",
        "sync -a -j 7",
        "sync -a --bwlimit=100m",
        "sync -a --backup-dir=old",
    ];
    let now = SystemTime::now();
    for (number, options) in lines.iter().enumerate() {
        for is_source in [false, true] {
            // Each direction has both forms, with every second line.
            let places = ["SRC/ DST", "SRC DST/"][(number + usize::from(is_source)) % 2];
            let (case, plan, shell) = start(&format!("{options} -i {places}"));
            let seed = first_seed(500) + number as u64;
            grow(&case.src(), seed, &plan);
            // The target has a part of it, older.
            fs::create_dir(case.dst()).unwrap();
            case.run_line("sync -rt --exclude=*b* SRC/ DST").ok();
            mutate(&case.src(), seed, 10, &plan, Wild { types: false, names: false, links: false });
            let copy = std::process::Command::new("cp")
                .arg("-a")
                .arg(case.dst())
                .arg(case.oracle_dst())
                .status();
            assert!(copy.unwrap().success());
            let here = case.run_line(
                &case
                    .line
                    .replacen("DST", "ORA", 1)
                    .replace("ORA", &case.oracle_dst().display().to_string()),
            );
            let there = case.run_line(&far(&case.line, &shell, is_source));
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            // Which name of a file is the first depends on the order in which workers meet them; what was read since has
            // another access time.
            if !options.contains(['H', 'U']) {
                assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
            }
            // What has no times of the source has those of its run.
            let recent_s = now.duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
            case.target_is_oracles(&Fields { holes: false, recent_s, ..Fields::ALL });
        }
    }
}

/// Arguments: several sources, names, contents, a new name for one file, `-R`, lists.
#[test]
fn arguments_mean_the_same() {
    let recent_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    for (line, both) in [
        ("sync -ai SRC/a SRC/b DST/", true),
        ("sync -ai SRC/a/ SRC/b/ DST", true),
        ("sync -ai SRC/a/f DST", true),
        ("sync -ai SRC/a/f SRC/b/g DST/", true),
        ("sync -aiR SRC/./a/f DST", true),
        ("sync -aiR SRC/./a SRC/./b/g DST", true),
        ("sync -ai --mkpath SRC/a/f DST/x/y/z", true),
        ("sync -ai --files-from=LIST SRC/ DST", false),
        ("sync -ai SRC/none DST/", true),
        ("sync -ai SRC/a SRC/none DST/", true),
        ("sync -i SRC/a DST/", true),
    ] {
        for is_source in [false, true] {
            if is_source && !both {
                continue;
            }
            let (case, _, shell) = start(line);
            for name in ["a/f", "b/g", "a/c/h"] {
                let path = case.src().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, name).unwrap();
            }
            fs::write(case.list(), "a/c/h\nb\n").unwrap();
            let here =
                case.run_line(&case.line.replace("DST", &case.oracle_dst().display().to_string()));
            let there = case.run_line(&far(line, &shell, is_source));
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
            if case.oracle_dst().exists() {
                // A directory that only holds what is copied has the time of its run.
                case.target_is_oracles(&Fields { recent_s, ..Fields::ALL });
            } else {
                assert!(!case.dst().exists());
            }
        }
    }
}

/// Large files come in pieces, also with one worker, while small ones do.
#[test]
fn large_and_small_files_with_any_number_of_jobs() {
    for jobs in [1, 2, 9] {
        for is_source in [false, true] {
            let (case, _, shell) = start(&format!("sync -a -j {jobs} SRC/ DST"));
            for dir in 0..3 {
                let dir = case.src().join(dir.to_string());
                fs::create_dir_all(&dir).unwrap();
                for (at, size) in
                    [0, 1, 4095, 262_144, 262_145, 3_000_000, 9_000_000].into_iter().enumerate()
                {
                    let content: Vec<u8> =
                        (0..size).map(|byte: usize| (byte / 7 + at) as u8).collect();
                    fs::write(dir.join(at.to_string()), content).unwrap();
                }
                for small in 0..300 {
                    fs::write(dir.join(format!("s{small}")), vec![small as u8; small]).unwrap();
                }
            }
            case.run_line(&far(&case.line, &shell, is_source)).ok();
            case.target_is_source(&Fields::ALL);
        }
    }
}

/// `-K` writes to the directory that a symlink of the target leads to, and never out of the target.
#[test]
fn symlinks_to_directories_at_the_target() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -aK SRC/ DST");
        fs::create_dir_all(case.src().join("a/b")).unwrap();
        fs::create_dir(case.src().join("out")).unwrap();
        fs::write(case.src().join("a/b/f"), "new").unwrap();
        fs::write(case.src().join("out/f"), "new").unwrap();
        fs::create_dir_all(case.dst().join("real/b")).unwrap();
        let outside = case.place("outside");
        fs::create_dir(&outside).unwrap();
        symlink("real", case.dst().join("a")).unwrap();
        symlink(&outside, case.dst().join("out")).unwrap();
        let run = case.run_line(&far(&case.line, &shell, is_source));
        run.expect(23).says(&["leads out of the target"]);
        assert!(case.dst().join("a").is_symlink());
        assert_eq!(fs::read(case.dst().join("real/b/f")).unwrap(), b"new");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
