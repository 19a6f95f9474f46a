//! What the sources do not have is deleted, whichever end they are at, and only with their proof; sources are removed when
//! their copies are complete.

use super::shell;
use super::trees::{far, start};
use crate::common::area::Area;
use crate::common::case::{Case, Run};
use crate::common::diff::Fields;
use crate::common::grow::grow;
use crate::common::mutate::{Wild, mutate};
use crate::common::{first_seed, have, program};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn files(root: &Path, names: &[&str]) {
    for name in names {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Runs a line between two directories, with the target of the oracle.
fn beside(case: &Case, line: &str) -> Run {
    case.run_line(&line.replace("DST", &case.oracle_dst().display().to_string()))
}

fn recent_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Random trees: target, exit code and lines are those of a run between two directories; where rsync can do the same, the
/// target is rsync's.
#[test]
fn the_same_is_deleted() {
    let has_rsync = have("rsync", "comparing with rsync");
    for (number, (options, is_rsyncs)) in [
        ("-a --delete", true),
        ("-a --delete-before", true),
        ("-a --delete-delay", true),
        ("-a --delete-after", true),
        ("-aK --delete", false),
        ("-a --delete --exclude=*a*", true),
        ("-a --delete-excluded --exclude=*a*", true),
        ("-a --delete-after --exclude=*e* --include=*i*", true),
        ("-a --delete -f'P *a*'", true),
        ("-a --delete -f'R *ab*' -f'- *a*'", true),
        ("-a --delete -f'H *a*'", true),
        ("-am --delete", false),
        ("-am --delete-after --exclude=*a*", false),
        ("-ab --delete", false),
        ("-ab --delete --backup-dir=old", false),
        ("-a --delete --max-delete=3", false),
        ("-an --delete", true),
        ("-an --delete-after", true),
        ("-ax --delete", true),
        ("-aL --delete", false),
        ("-d --delete", false),
        ("-a --delete -j 1", true),
        ("-a --delete -j 9", true),
        ("-a --force", true),
    ]
    .into_iter()
    .enumerate()
    {
        for is_source in [false, true] {
            let (case, plan, shell) = start(&format!("sync {options} -i SRC/ DST"));
            let seed = first_seed(900) + number as u64;
            grow(&case.src(), seed, &plan);
            case.run_line("sync -a SRC/ DST").ok();
            let wild = || Wild { types: true, names: true, links: false };
            mutate(&case.src(), seed, 25, &plan, wild());
            mutate(&case.dst(), seed * 7, 25, &plan, wild());
            copy(&case.dst(), &case.oracle_dst());
            let rsyncs = case.place("rsyncs");
            copy(&case.dst(), &rsyncs);
            let here = beside(&case, &case.line);
            let there = case.run_line(&far(&case.line, &shell, is_source));
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            // Which ones are deleted before the limit is reached is not determined.
            if options.contains("--max-delete") {
                let deleted = |run: &Run| run.out().matches("*deleting").count();
                assert_eq!(deleted(&here), deleted(&there), "{here}\n{there}");
                continue;
            }
            // Nor is what is deleted before a link that leads back is found.
            if options.contains("-aL") {
                let kept = |run: &Run| -> Vec<String> {
                    run.items().into_iter().filter(|line| !line.starts_with('*')).collect()
                };
                assert_eq!(kept(&here), kept(&there), "{here}\n{there}");
                continue;
            }
            assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
            let recent_s = recent_s() - 100;
            let fields = Fields { holes: false, recent_s, ..Fields::ALL };
            case.target_is_oracles(&fields);
            if has_rsync && is_rsyncs && here.code == 0 {
                let line = case.line.replace("DST", &rsyncs.display().to_string());
                if case.oracle_line(&line).code == 0 {
                    case.same("the target is not rsync's", &rsyncs, &case.dst(), &fields);
                }
            }
        }
    }
}

/// Arguments that share a target, or provide only names of it.
#[test]
fn arguments_delete_the_same() {
    for line in [
        "sync -ai --delete SRC/a SRC/b DST/",
        "sync -ai --delete SRC/a/ SRC/b/ DST",
        "sync -ai --delete SRC/a/ SRC/b DST",
        "sync -aiR --delete SRC/./a/c DST",
        "sync -ai --delete-after SRC/a/ SRC/b DST",
        "sync -ai --delete SRC/a SRC/none DST/",
        "sync -ai --delete SRC/a/f DST/",
        "sync -ri --delete-missing-args SRC/a SRC/old DST/",
        "sync -ri --delete-missing-args --delete SRC/a SRC/full DST/",
        "sync -ri --delete-missing-args SRC/a SRC/full DST/",
        "sync -ri --delete-missing-args --force SRC/full DST/",
        "sync -ri --ignore-missing-args SRC/a SRC/old DST/",
        "sync -rRi --delete-missing-args SRC/./b/old DST/",
    ] {
        for is_source in [false, true] {
            let (case, _, shell) = start(line);
            files(&case.src(), &["a/f", "b/g", "a/c/h"]);
            let there = ["a/f", "a/x", "a/c/y", "b/old", "b/g", "old", "full/of", "x/y", "f"];
            files(&case.dst(), &there);
            copy(&case.dst(), &case.oracle_dst());
            let here = beside(&case, &case.line);
            let there = case.run_line(&far(line, &shell, is_source));
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
            case.target_is_oracles(&Fields { recent_s: recent_s() - 100, ..Fields::ALL });
        }
    }
}

/// More names than fit into one question, in one directory and in many.
#[test]
fn many_names_are_asked_for_in_parts() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -r --delete SRC/ DST");
        fs::create_dir_all(case.src().join("flat")).unwrap();
        fs::create_dir_all(case.dst().join("flat")).unwrap();
        for at in 0..9000 {
            fs::write(case.dst().join(format!("flat/{at}-{}", "x".repeat(at % 90))), "").unwrap();
        }
        files(&case.src(), &["flat/8000-new", "stays"]);
        for dir in 0..600 {
            files(&case.src(), &[&format!("{dir}/stays")]);
            files(&case.dst(), &[&format!("{dir}/goes"), &format!("{dir}/stays")]);
        }
        case.run_line(&far(&case.line, &shell, is_source)).ok();
        case.target_is_source(&Fields { times: false, dir_times: false, ..Fields::ALL });
    }
}

/// A directory of the source that cannot be listed keeps its target, the others do not; `--ignore-errors` is the source's
/// word.
#[test]
fn what_cannot_be_listed_keeps_its_target() {
    if !have("strace", "failing listings") {
        return;
    }
    for (options, keeps) in
        [("--delete", true), ("--delete-after", true), ("--delete --ignore-errors", false)]
    {
        let (from, to) = (Area::tmpfs(), Area::tmpfs());
        let trace = "strace -f -qq -o /dev/null -P SRC/one -e inject=getdents64:error=EIO";
        let shell = shell(&from, "");
        let wrapper = from.join("traced");
        let case =
            Case::new(&format!("sync -a {options} -i -e {} h:SRC/ DST", shell.display()), from, to);
        let trace = trace.replace("SRC", &case.src().display().to_string());
        fs::write(&wrapper, format!("#!/bin/sh\nexec {trace} {} \"$@\"\n", program().display()))
            .unwrap();
        Command::new("chmod").arg("+x").arg(&wrapper).status().unwrap();
        files(&case.src(), &["one/keep", "two/keep"]);
        files(&case.dst(), &["one/keep", "one/old", "two/keep", "two/old"]);
        let line = case.line.replace("-e ", &format!("--rsync-path={} -e ", wrapper.display()));
        case.run_line(&line).expect(23);
        assert!(!case.dst().join("two/old").exists(), "{options}");
        assert_eq!(case.dst().join("one/old").exists(), keeps, "{options}");
        assert!(case.dst().join("one/keep").exists(), "{options}");
    }
}

/// The target inside the source and the source inside the target, on one machine.
#[test]
fn sources_are_not_extraneous() {
    for (line, lost) in [
        ("sync -a --delete -e SHELL SRC/ h:SRC/sub/", "sub/x"),
        ("sync -a --delete -e SHELL h:SRC/ SRC/sub/", "sub/x"),
        ("sync -a --delete -e SHELL SRC/sub/ h:SRC/", "sub/x"),
        ("sync -a --delete -e SHELL h:SRC/sub/ SRC/", "sub/x"),
        ("sync -a --delete -e SHELL h:SRC/ SRC/", "a/f"),
        ("sync -a --remove-source-files -e SHELL h:SRC/ SRC/", "a/f"),
        ("sync -a --remove-source-files -e SHELL SRC/ h:SRC/", "a/f"),
    ] {
        let (from, to) = (Area::tmpfs(), Area::tmpfs());
        let shell = shell(&from, "").display().to_string();
        let case = Case::new(&line.replace("SHELL", &shell), from, to);
        files(&case.src(), &["a/f", "sub/x"]);
        let run = case.run();
        assert!(case.src().join(lost).exists(), "{run}");
    }
}

/// One thing under two names, as sources and as source and target, on one machine: each source is there afterwards.
#[test]
fn one_thing_twice() {
    const ALL: &[&str] = &["a/f", "a/g", "sub/x", "sub/deep/y"];
    let (a, sub) = ALL.split_at(2);
    let file = &ALL[..1];
    for (sources, target, names) in [
        ("SRC/", "SRC/", ALL),
        ("SRC/", "LINK/", ALL),
        ("LINK/", "SRC", ALL),
        ("SRC/.", "SRC/sub/..", ALL),
        ("SRC/sub/", "SRC/", sub),
        ("SRC/sub", "SRC", sub),
        ("SRC/linked/", "SRC", sub),
        ("SRC/sub/ SRC/a/", "SRC/", ALL),
        ("SRC/ LINK/", "DST", ALL),
        ("SRC/a", "SRC/a", a),
        ("SRC/a SRC/a", "DST/", a),
        ("SRC/a/f", "SRC/a/f", file),
        ("SRC/a/f", "SRC/hard", file),
        ("SRC/a/f SRC/a/f", "DST/", file),
        ("SRC/a/f SRC/hard", "DST/", file),
        ("SRC/a/f LINK/a/f", "DST/", file),
    ] {
        for options in [
            "-a --delete",
            "-aI --delete-after",
            "-aI --remove-source-files",
            "-aH --delete --remove-source-files",
        ] {
            for is_source in [false, true] {
                let (mut case, _, shell) = start("sync");
                let link = case.place("link");
                let end = |places: &str, is_far: bool| {
                    let far = if is_far { "h:" } else { "" };
                    let place = |place: &str| {
                        format!(" {far}{}", place.replace("LINK", &link.display().to_string()))
                    };
                    places.split(' ').map(place).collect::<String>()
                };
                let (from, to) = (end(sources, is_source), end(target, !is_source));
                case.relabel(&format!("sync -e {shell} {options}{from}{to}"));
                files(&case.src(), ALL);
                fs::hard_link(case.src().join("a/f"), case.src().join("hard")).unwrap();
                std::os::unix::fs::symlink("sub", case.src().join("linked")).unwrap();
                std::os::unix::fs::symlink(case.src(), &link).unwrap();
                let run = case.run();
                assert!(run.code < 124, "{run}");
                let found: Vec<_> =
                    [case.src(), case.dst()].iter().flat_map(|root| contents(root)).collect();
                for name in names {
                    assert!(found.iter().any(|it| it == name.as_bytes()), "{name} is lost: {run}");
                }
            }
        }
    }
}

/// Returns the contents of the files below a directory.
fn contents(root: &Path) -> Vec<Vec<u8>> {
    let (mut contents, mut dirs) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(entry.path()),
                false => contents.extend(fs::read(entry.path())),
            }
        }
    }
    contents
}

/// A backup is none of the files that the other end still reads.
#[test]
fn backups_do_not_replace_sources() {
    for is_source in [false, true] {
        let (mut case, _, shell) = start("sync");
        let other = case.place("other");
        files(&other, &["f"]);
        files(&case.src(), &["g", "sub/f"]);
        fs::write(case.src().join("f"), "own").unwrap();
        let (from, to) = if is_source { ("h:", "") } else { ("", "h:") };
        let sources = format!("{from}{}/ {from}SRC/ {to}SRC", other.display());
        let backups = case.src().join("sub");
        let options = format!("-ab --backup-dir={}", backups.display());
        case.relabel(&format!("sync -e {shell} {options} {sources}"));
        let run = case.run();
        assert_eq!(fs::read(case.src().join("sub/f")).unwrap(), b"sub/f", "{run}");
    }
}

fn spawn(case: &Case, line: &str) -> std::process::Child {
    Command::new(program())
        .args(case.words(line, &case.dst()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("XDG_STATE_HOME", crate::common::area::state_home())
        .spawn()
        .unwrap()
}

/// Kills the near end (`is_near`) or what it started.
fn kill(child: &mut std::process::Child, is_near: bool) {
    if is_near {
        drop(child.kill());
    } else {
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let children = fs::read_to_string(children).unwrap_or_default();
        let agents: Vec<&str> = children.split_whitespace().collect();
        drop(Command::new("kill").arg("-9").args(agents).stderr(Stdio::null()).status());
    }
    child.wait().unwrap();
}

/// Whatever end is killed in the middle of a deletion: nothing that the source has is lost, and the same command ends the
/// job.
#[test]
fn killed_while_it_deletes() {
    for (seed, options) in ["--delete", "--delete-before", "--delete-after"].into_iter().enumerate()
    {
        for is_source in [false, true] {
            let (case, _, shell) = start(&format!("sync -r {options} SRC/ DST"));
            for dir in 0..40 {
                let names: Vec<String> = (0..40).map(|at| format!("{dir}/{at}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                files(&case.src(), names.get(..20).unwrap());
                files(&case.dst(), names.get(10..).unwrap());
            }
            let line = far(&case.line, &shell, is_source);
            for round in 0..4 {
                let mut child = spawn(&case, &line);
                std::thread::sleep(Duration::from_millis(2 + 5 * ((round * 5 + seed as u64) % 7)));
                kill(&mut child, round % 2 == 0);
                for dir in 0..40 {
                    for at in 10..20 {
                        assert!(case.dst().join(format!("{dir}/{at}")).exists(), "{line}");
                    }
                }
            }
            case.run_line(&line).ok();
            case.target_is_source(&Fields { times: false, dir_times: false, ..Fields::ALL });
        }
    }
}

/// Sources are removed as between two directories: files and symlinks that arrived, found right or written.
#[test]
fn sources_are_removed() {
    for (number, options) in [
        "-a",
        "-aH",
        "-a --delay-updates",
        "-a --fsync",
        "-a --delete",
        "-a --delete-after",
        "-ab",
        "-a --existing",
        "-a --ignore-existing",
        "-au",
        "-a --max-size=2k",
        "-a --exclude=*a*",
        "-an",
        "-a --inplace",
        "-am",
    ]
    .into_iter()
    .enumerate()
    {
        for is_source in [false, true] {
            let (mut case, plan, shell) =
                start(&format!("sync {options} --remove-source-files SRC/ DST"));
            let seed = first_seed(700) + number as u64;
            grow(&case.src(), seed, &plan);
            case.run_line("sync -a --exclude=*b* SRC/ DST").ok();
            mutate(&case.src(), seed, 15, &plan, Wild { types: false, names: true, links: false });
            copy(&case.dst(), &case.oracle_dst());
            let source = case.place("source");
            copy(&case.src(), &source);
            let line = case.line.replace("SRC", &source.display().to_string());
            let here = beside(&case, &line);
            let there = case.run_line(&far(&case.line, &shell, is_source));
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            let label = case.line.clone();
            case.relabel(&label);
            let fields = Fields { holes: false, recent_s: recent_s() - 100, ..Fields::ALL };
            case.same("the sources are not the same", &source, &case.src(), &fields);
            case.target_is_oracles(&fields);
        }
    }
}

/// A symlink that is followed is removed after what it leads to was looked up through it, and so is that.
#[test]
fn followed_links_are_removed() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -aL --remove-source-files SRC/ DST");
        files(&case.src(), &["a/f", "b/g"]);
        std::os::unix::fs::symlink("../a/f", case.src().join("b/l")).unwrap();
        std::os::unix::fs::symlink("a", case.src().join("d")).unwrap();
        case.run_line(&far(&case.line, &shell, is_source)).ok();
        for name in ["a/f", "b/g", "b/l", "d/f"] {
            assert!(case.dst().join(name).is_file(), "{name}");
            assert!(fs::symlink_metadata(case.src().join(name)).is_err(), "{name} is left");
        }
    }
}

/// A source that changes after it was copied stays.
#[test]
fn a_changed_source_stays() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -a -j 1 --remove-source-files --bwlimit=2m SRC/ DST");
        fs::create_dir(case.src()).unwrap();
        fs::write(case.src().join("large"), vec![7; 1 << 20]).unwrap();
        let mut child = spawn(&case, &far(&case.line, &shell, is_source));
        let start = SystemTime::now();
        while fs::read_dir(case.dst()).map_or(0, Iterator::count) == 0 {
            assert!(start.elapsed().unwrap() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
        // Same size, later.
        fs::write(case.src().join("large"), vec![8; 1 << 20]).unwrap();
        child.wait().unwrap();
        assert_eq!(fs::read(case.src().join("large")).unwrap(), vec![8; 1 << 20]);
    }
}

/// Whatever end is killed while sources are removed: each is either there or complete at the target.
#[test]
fn killed_while_it_removes_sources() {
    for (seed, options) in ["-a", "-a --delay-updates", "-a --fsync"].into_iter().enumerate() {
        for is_source in [false, true] {
            let (case, _, shell) = start(&format!("sync {options} --remove-source-files SRC/ DST"));
            let content = |at: usize| vec![at as u8; 700 * (at % 50)];
            fs::create_dir_all(case.src()).unwrap();
            for at in 0..400 {
                fs::write(case.src().join(at.to_string()), content(at)).unwrap();
            }
            let line = far(&case.line, &shell, is_source);
            for round in 0..6 {
                let mut child = spawn(&case, &line);
                std::thread::sleep(Duration::from_millis(4 + 6 * ((round * 5 + seed as u64) % 7)));
                kill(&mut child, round % 2 == 0);
                for at in 0..400 {
                    let name = at.to_string();
                    if !case.src().join(&name).exists() {
                        let there = fs::read(case.dst().join(&name)).unwrap();
                        assert!(there == content(at), "{line}: {name} is lost");
                    }
                }
            }
            case.run_line(&line).ok();
            assert_eq!(fs::read_dir(case.src()).unwrap().count(), 0);
            for at in 0..400 {
                assert!(fs::read(case.dst().join(at.to_string())).unwrap() == content(at));
            }
        }
    }
}
