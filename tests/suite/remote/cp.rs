//! `cp` with an end on another machine: what it does between paths, it does there.

use super::shell;
use crate::common::area::Area;
use crate::common::case::{Case, case};
use crate::common::diff::Fields;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{SystemTime, UNIX_EPOCH};

fn start(line: &str) -> (Case, String) {
    let (from, to) = (Area::tmpfs(), Area::tmpfs());
    let shell = shell(&from, "").display().to_string();
    (Case::new(line, from, to), shell)
}

fn write(case: &Case, names: &[&str]) {
    for name in names {
        let path = case.src().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

/// Names at the target, attributes, exit codes and lines are those of a copy between two directories.
#[test]
fn it_means_the_same() {
    let recent_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    for (line, is_there) in [
        ("cp SRC/a/f DST", false),
        ("cp SRC/a/f DST", true),
        ("cp SRC/a/f SRC/b/g DST", true),
        ("cp SRC/a/f SRC/b/g DST", false),
        ("cp -v SRC/a/f SRC/a/c DST", true),
        ("cp -r SRC/a DST", false),
        ("cp -r SRC/a DST", true),
        ("cp -rT SRC/a DST", true),
        ("cp -a SRC/a/. DST", false),
        ("cp -a SRC/a/. DST", true),
        ("cp -a SRC DST", false),
        ("cp -rp SRC/a SRC/b DST", true),
        ("cp -rL SRC/a DST", false),
        ("cp -rH SRC/a/link DST", false),
        ("cp SRC/a/link DST", false),
        ("cp -d SRC/a/link DST", false),
        ("cp SRC/a DST", false),
        ("cp SRC/none DST", true),
        ("cp SRC/none SRC/a/f DST", true),
        ("cp --parents -r SRC/a/c DST", true),
        ("cp -t DST SRC/a/f SRC/b/g", true),
        ("cp -t DST SRC/a/f", false),
        ("cp -r --exclude=h SRC/a DST", false),
        ("cp -r --exclude-from=LIST SRC/a DST", false),
        ("cp -b SRC/b/old DST", true),
        ("cp --backup=numbered SRC/b/old DST", true),
        ("cp -n SRC/b/old DST", true),
        ("cp -u SRC/b/old DST", true),
        ("cp --no-preserve=mode SRC/a/run DST", true),
        ("cp --remove-destination SRC/b/old DST", true),
        ("cp --sparse=always SRC/a/f DST", true),
        ("cp -r --dry-run SRC/a DST", true),
        ("cp -j 1 -r SRC/a DST", true),
        ("cp -r SRC/a/ DST/", true),
        ("cp SRC/a/f DST/", false),
    ] {
        // Rules in a file that is here are for sources that are here.
        let ends: &[bool] = if line.contains("-from") { &[false] } else { &[false, true] };
        for is_source in ends.iter().copied() {
            let (case, shell) = start(line);
            write(&case, &["a/f", "a/run", "a/c/h", "b/g", "b/old"]);
            symlink("f", case.src().join("a/link")).unwrap();
            fs::write(case.list(), "h\n").unwrap();
            let ora = case.oracle_dst();
            for place in [case.dst(), ora.clone()].iter().filter(|_| is_there) {
                fs::create_dir(place).unwrap();
                fs::write(place.join("old"), "older").unwrap();
            }
            let here = case.run_line(&line.replace("DST", &ora.display().to_string()));
            let (place, there) = if is_source { ("SRC", "h:SRC") } else { ("DST", "h:DST") };
            let far = line.replace(place, there).replacen("cp", &format!("cp -e {shell}"), 1);
            let there = case.run_line(&far);
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            // Lines name the machine.
            let shown = |text: &str| {
                let mut lines: Vec<String> = text
                    .lines()
                    .map(|line| {
                        let line = line.replace(&ora.display().to_string(), "DST");
                        line.replace(&case.dst().display().to_string(), "DST").replace("h:", "")
                    })
                    .collect();
                lines.sort();
                lines
            };
            assert_eq!(shown(&here.out()), shown(&there.out()), "lines\n{here}\n{there}");
            if ora.exists() {
                case.target_is_oracles(&Fields { holes: false, recent_s, ..Fields::ALL });
            } else {
                assert!(!case.dst().exists(), "{there}");
            }
        }
    }
}

#[test]
fn what_cannot_be_is_said() {
    for (line, code, words) in [
        ("cp h:a g:b", 2, &["both on other machines", "ssh -A g hakobu cp"][..]),
        ("cp h:a SRC DST", 2, &["all on one other machine"]),
        ("cp -l SRC h:DST", 2, &["--link is not supported with another machine"]),
        ("cp -s h:SRC DST", 2, &["--symbolic-link is not supported with another machine"]),
        ("cp -i SRC h:DST", 2, &["--interactive is not supported", "--no-clobber"]),
        (
            "cp -r --exclude-from=/dev/null h:SRC DST",
            2,
            &["--exclude-from is not", "--exclude and"],
        ),
        ("cp --reflink h:SRC DST", 2, &["--reflink=always is not supported"]),
        ("cp SRC s3://bucket/k h:DST", 2, &["is an object", "ssh h hakobu cp"]),
        ("cp --rsync-path=/usr/bin/rsync SRC h:DST", 2, &["that is rsync"]),
        ("cp -r -e /no/shell SRC h:DST", 1, &["cannot start the remote shell '/no/shell'"]),
        ("sync --rsync-path='sudo rsync' SRC h:DST", 1, &["that is rsync", "path of hakobu"]),
        (
            "sync -a --cluster=local:2 SRC/ h:DST",
            1,
            &["many machines", "no end on another machine"],
        ),
        ("sync s3://bucket h:DST", 1, &["is an object", "ssh h hakobu sync"]),
        ("mv SRC h:DST", 2, &["hakobu sync -a --remove-source-files"]),
        ("mv h:SRC DST", 2, &["hakobu sync -a --remove-source-files"]),
        ("rm h:a", 2, &["ssh h hakobu rm 'a'"]),
        ("du h:a", 2, &["ssh h hakobu du 'a'"]),
        ("ls h:a", 2, &["ssh h ls 'a'"]),
        ("head h:a", 2, &["another machine is not supported here (ssh h hakobu"]),
    ] {
        case(line, |c| {
            fs::create_dir(c.src()).unwrap();
            let run = c.run();
            assert_eq!(run.code, code, "{run}");
            run.says(words);
        });
    }
    // A file of such a name is a file.
    case("rm h:a", |c| {
        let name = c.src().with_file_name("x:y");
        fs::write(&name, "").unwrap();
        c.run_line(&format!("rm {}", name.display())).ok();
        assert!(!name.exists());
    });
}
