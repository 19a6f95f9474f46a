//! `verify` with an end on another machine: it finds what it finds between two trees here.

use super::shell;
use crate::common::area::{Area, Fs};
use crate::common::case::{Case, Run};
use crate::common::grow::{Plan, grow};
use crate::common::mutate::{Wild, mutate};
use crate::common::xattr::Features;
use crate::common::{first_seed, rounds};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

fn start(line: &str) -> (Case, Plan, String) {
    let (from, to) = (Area::new(Fs::Tmpfs, line).unwrap(), Area::new(Fs::Tmpfs, line).unwrap());
    let (a, b) = (Features::probe(from.path()), Features::probe(to.path()));
    let plan = Plan::full(Features { user: a.user && b.user, ..a });
    let shell = shell(&from, "");
    (Case::new(line, from, to), plan, shell.display().to_string())
}

/// The line with one of its ends on another machine.
fn far(line: &str, shell: &str, end: &str) -> String {
    let line = line.replace(end, &format!("h:{end}"));
    line.replacen("verify", &format!("verify -e {shell}"), 1)
}

/// Runs a line with each end on another machine, and checks that code and lines are those of two trees here. Where contents
/// differ, the place is not known.
fn same_everywhere(case: &Case, shell: &str, line: &str) {
    const LINKS: &str = "some hardlinks differ";
    // Which of several names is the one whose links differ depends on their order.
    let place = |line: &String| match line.find(" from byte ") {
        _ if line.ends_with(" (hardlinks)") => LINKS.to_owned(),
        Some(at) => {
            let rest = line[at + 11..].trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{}{rest}", &line[..at])
        }
        None => line.replace(", hardlinks", ""),
    };
    let sorted = |run: &Run| {
        let told = run.sorted();
        let mut lines: Vec<String> = told.iter().map(place).filter(|it| it != LINKS).collect();
        // That name may differ in other ways, too, or in none.
        lines.extend(told.iter().any(|line| line.contains("hardlinks")).then(|| LINKS.to_owned()));
        lines.sort();
        lines
    };
    let here = case.run_line(line);
    let expected = sorted(&here);
    for end in ["SRC", "DST"] {
        let there = case.run_line(&far(line, shell, end));
        assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
        assert_eq!(expected, sorted(&there), "lines\n{here}\n{there}");
    }
}

#[test]
fn random_trees_differ_as_they_do_here() {
    let first = first_seed(40);
    for seed in first..first + rounds(4) {
        eprintln!("seed {seed}");
        let (case, plan, shell) = start("verify SRC DST");
        grow(&case.src(), seed, &plan);
        let copy = Command::new("cp").arg("-a").arg(case.src()).arg(case.dst()).status();
        assert!(copy.unwrap().success());
        for options in ["", "-HAX"] {
            let line = format!("verify {options} SRC DST");
            same_everywhere(&case, &shell, &line);
            case.run_line(&far(&line, &shell, "DST")).ok();
        }
        mutate(&case.dst(), seed * 7, 25, &plan, Wild { types: true, names: true, links: true });
        for options in [
            "",
            "-HAX",
            "--one-way",
            "--size-only",
            "--no-times",
            "-O --no-perms",
            "--exclude=*a*",
            "--include=*/ --include=*e* --exclude=*",
            "-j 1",
            "--modify-window=2",
        ] {
            same_everywhere(&case, &shell, &format!("verify {options} SRC DST"));
        }
    }
}

/// The arguments themselves are compared: their types, files, and symlinks, which only a slash follows.
#[test]
fn arguments_are_compared() {
    let (case, _, shell) = start("verify SRC DST");
    for (at, place) in [case.src(), case.dst()].iter().enumerate() {
        fs::create_dir_all(place.join("d/e")).unwrap();
        fs::write(place.join("same"), "same").unwrap();
        fs::write(place.join("other"), ["one", "two"][at]).unwrap();
        fs::write(place.join("long"), vec![7; 1_000_000 + at]).unwrap();
        fs::write(place.join("large"), vec![7; 3_000_000]).unwrap();
        symlink("d", place.join("link")).unwrap();
        symlink(["a", "b"][at], place.join("text")).unwrap();
        let listed = fs::read_dir(place).unwrap().flatten().map(|entry| entry.path());
        let paths: Vec<_> = listed.chain([place.clone(), place.join("d/e")]).collect();
        for path in paths {
            let touched = Command::new("touch").args(["-h", "-d", "2020-01-01"]).arg(path).status();
            assert!(touched.unwrap().success());
        }
    }
    for line in [
        "verify SRC DST",
        "verify SRC/ DST/",
        "verify SRC/same DST/same",
        "verify SRC/other DST/other",
        "verify SRC/long DST/long",
        "verify SRC/large DST/large",
        "verify SRC/link DST/link",
        "verify SRC/link/ DST/d",
        "verify SRC/link DST/d",
        "verify SRC/text DST/text",
        "verify SRC/same DST/d",
        "verify SRC/d DST/same",
        "verify --max-differences=1 SRC DST",
    ] {
        same_everywhere(&case, &shell, line);
    }
    // The last byte is compared as well.
    let mut content = vec![7; 3_000_000];
    content[2_999_999] = 8;
    fs::write(case.dst().join("large"), content).unwrap();
    let run = case.run_line(&far("verify --no-times SRC/large DST/large", &shell, "DST"));
    run.expect(1);
    assert!(run.out().contains("differs: . (content)"), "{run}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let (case, _, shell) = start("verify SRC DST");
    fs::create_dir(case.src()).unwrap();
    for (line, words) in [
        ("verify SRC h:DST", &["cannot access"][..]),
        ("verify h:DST SRC", &["cannot access"]),
        ("verify SRC h:SRC/none", &["cannot access"]),
        ("verify SRC/none h:SRC", &["cannot access"]),
        ("verify -S SRC h:SRC", &["--sparse is not supported with another machine"]),
        ("verify -F SRC h:SRC", &["a filter file in each directory is not supported"]),
        ("verify h:SRC s3://bucket", &["is an object", "ssh h hakobu verify"]),
        ("verify h:SRC g:SRC", &["ssh -A g hakobu verify"]),
        ("verify --timeout=5 SRC SRC", &["--rsh is for another machine"]),
    ] {
        let run = case.run_line(&line.replacen("verify", &format!("verify -e {shell}"), 1));
        run.expect(2).says(words);
    }
    // What the other end cannot read is neither the same nor different.
    fs::write(case.src().join("f"), "content").unwrap();
    let copy = Command::new("cp").arg("-a").arg(case.src()).arg(case.dst()).status();
    assert!(copy.unwrap().success());
    let agent = case.place("agent.sh");
    // An end that is lost is no answer.
    let cut = "exec stdbuf -o0 head -c 200 < <(exec hakobu \"$@\" <&3 3<&-)";
    fs::write(&agent, format!("#!/bin/bash\nexec 3<&0\n{cut}\n")).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("verify -e {shell} --rsync-path={} SRC h:DST", agent.display());
    case.run_line(&line).expect(2).says(&["lost the other end"]);
}
