//! Options whose work is divided between the two ends: contents that are compared, trees beside the target, files that are
//! completed, devices.

use super::trees::{far, start};
use crate::common::case::Case;
use crate::common::diff::Fields;
use crate::common::grow::{grow, set_mtime};
use crate::common::mutate::{Wild, mutate};
use crate::common::{first_seed, is_root, must};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn copy(from: &Path, to: &Path) {
    must(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// The same command between two directories, with the second target.
fn here(case: &Case) -> String {
    let oracle = case.oracle_dst().display().to_string();
    case.line.replacen("DST", "ORACLE", usize::MAX).replace("ORACLE", &oracle)
}

/// Options mean the same as between two directories of one machine: tree, exit code and lines.
#[test]
fn content_is_compared_and_completed_as_here() {
    let lines = [
        "sync -rc",
        "sync -ac",
        "sync -acu",
        "sync -acI",
        "sync -acn",
        "sync -acH",
        "sync -ac --size-only",
        "sync -a --link-dest=OLD",
        "sync -a --link-dest=../old",
        "sync -aH --link-dest=OLD",
        "sync -aX --link-dest=OLD",
        "sync -a --copy-dest=OLD",
        "sync -aX --copy-dest=OLD",
        "sync -rt --copy-dest=OLD",
        "sync -a --compare-dest=OLD",
        "sync -ac --link-dest=OLD",
        "sync -ac --copy-dest=OLD",
        "sync -ac --compare-dest=OLD",
        "sync -an --link-dest=OLD",
        "sync -a --link-dest=/no/such --link-dest=OLD",
        "sync -a --append",
        "sync -a --append-verify",
        "sync -aI --append",
        "sync -ab --append-verify",
    ];
    for (number, options) in lines.iter().enumerate() {
        for is_source in [false, true] {
            let (case, plan, shell) = start(&format!("{options} -i SRC/ DST"));
            let seed = first_seed(700) + number as u64;
            grow(&case.src(), seed, &plan);
            let tame = Wild { types: false, names: false, links: false };
            for (tree, changes) in [(case.dst(), 1), (case.old(), 2)] {
                copy(&case.src(), &tree);
                mutate(&tree, seed + changes, 12, &plan, tame);
            }
            if !options.contains('H') {
                // Which name of a file is handled first depends on the order in which workers meet them.
                let apart = case.place("apart");
                must(
                    Command::new("cp")
                        .args(["-a", "--no-preserve=links"])
                        .arg(case.dst())
                        .arg(&apart),
                );
                fs::remove_dir_all(case.dst()).unwrap();
                fs::rename(apart, case.dst()).unwrap();
            }
            completed(&case);
            copy(&case.dst(), &case.oracle_dst());
            let here = case.run_line(&here(&case));
            let there = case.run_line(&far(&case.line, &shell, is_source));
            assert_eq!(here.code, there.code, "exit codes\n{here}\n{there}");
            if !options.contains('H') {
                assert_eq!(here.items(), there.items(), "lines\n{here}\n{there}");
            }
            let recent_s = now_s() - 5;
            case.target_is_oracles(&Fields { holes: false, recent_s, ..Fields::ALL });
        }
    }
}

/// Files of which the target has the beginning, another beginning, and more.
fn completed(case: &Case) {
    let content: Vec<u8> = (0..900_000_usize).map(|at| (at / 11) as u8).collect();
    for (name, has) in [("short", 500_000), ("wrong", 500_000), ("longer", 900_001), ("empty", 0)] {
        let (from, to) = (case.src().join(name), case.dst().join(name));
        fs::write(&from, &content).unwrap();
        let mut begun: Vec<u8> = content.iter().copied().chain([0]).take(has).collect();
        if name == "wrong" {
            begun[7] ^= 1;
        }
        fs::write(&to, begun).unwrap();
        set_mtime(&from, 1_600_000_000, 0);
        set_mtime(&to, 1_500_000_000, 0);
    }
}

/// A shell that keeps all that the other end writes.
fn counting(case: &Case, shell: &str) -> (String, PathBuf) {
    let (path, kept) = (case.place("counting.sh"), case.place("kept"));
    let text = format!("#!/bin/sh\n{shell} \"$@\" | tee {}\n", kept.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (path.display().to_string(), kept)
}

/// What the target has, or a tree beside it, does not cross the link.
#[test]
fn content_that_is_there_is_not_sent() {
    let options = [
        ("-a --link-dest=OLD", true),
        ("-a --copy-dest=OLD", true),
        ("-a --compare-dest=OLD", true),
        ("-rp --link-dest=OLD --size-only", true),
        ("-ac", false),
        ("-aI --append", false),
        ("-aI --append-verify", false),
    ];
    for (options, is_beside) in options {
        let (case, _, shell) = start(&format!("sync {options} SRC/ DST"));
        let (shell, kept) = counting(&case, &shell);
        let content: Vec<u8> = (0..4_000_000_usize).map(|at| (at / 13) as u8).collect();
        let beside = if is_beside { case.old() } else { case.dst() };
        for folder in [case.src(), beside.clone()] {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("f"), &content).unwrap();
            set_mtime(&folder.join("f"), 1_600_000_000, 0);
        }
        if options.contains("append") {
            fs::write(beside.join("f"), &content[..3_900_000]).unwrap();
        }
        if options == "-ac" {
            // The time alone is no reason.
            set_mtime(&beside.join("f"), 1_500_000_000, 0);
        }
        case.run_line(&far(&case.line, &shell, true)).ok();
        let sent = fs::metadata(&kept).unwrap().len();
        assert!(sent < 300_000, "{options}: {sent} bytes");
        let (made, old) = (case.dst().join("f"), case.old().join("f"));
        if options.contains("compare-dest") {
            assert!(!made.exists(), "{options}");
            continue;
        }
        assert!(fs::read(&made).unwrap() == content, "{options}");
        if is_beside {
            let is_one = fs::metadata(&made).unwrap().ino() == fs::metadata(&old).unwrap().ino();
            assert_eq!(is_one, options.contains("link-dest"), "{options}");
        }
    }
}

/// Large files are hashed at the source end while others are announced.
#[test]
fn large_files_are_compared_by_content() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -aci SRC/ DST");
        fs::create_dir(case.src()).unwrap();
        for at in 0..5 {
            fs::write(case.src().join(format!("large{at}")), vec![at; 9 << 20]).unwrap();
            fs::write(case.src().join(format!("small{at}")), [at; 9]).unwrap();
        }
        copy(&case.src(), &case.dst());
        for name in ["large3", "small2"] {
            let path = case.dst().join(name);
            let time = fs::metadata(&path).unwrap().mtime();
            let mut content = fs::read(&path).unwrap();
            *content.last_mut().unwrap() ^= 1;
            fs::write(&path, content).unwrap();
            set_mtime(&path, time, 0);
        }
        for name in ["large3", "small2"] {
            let time = fs::metadata(case.src().join(name)).unwrap().mtime();
            set_mtime(&case.src().join(name), time, 0);
        }
        let run = case.run_line(&far(&case.line, &shell, is_source));
        let lines: Vec<_> =
            run.ok().items().into_iter().filter(|line| line.starts_with(">fc")).collect();
        assert_eq!(lines, [">fc........ large3", ">fc........ small2"], "{run}");
        case.target_is_source(&Fields::ALL);
    }
}

/// `%C` is that of the content, from whichever end it comes.
#[test]
fn checksums_are_shown() {
    for options in ["-ac", "-a", "-a --checksum-choice=md5"] {
        for is_source in [false, true] {
            let (case, _, shell) = start(&format!("sync {options} '--out-format=%C %n' SRC/ DST"));
            fs::create_dir(case.src()).unwrap();
            fs::write(case.src().join("f"), "content").unwrap();
            fs::create_dir(case.dst()).unwrap();
            fs::write(case.dst().join("f"), "other content").unwrap();
            copy(&case.dst(), &case.oracle_dst());
            let here = case.run_line(&here(&case));
            let there = case.run_line(&far(&case.line, &shell, is_source));
            assert_eq!(here.ok().out(), there.ok().out());
            assert!(there.out().lines().any(|line| line.len() > 32 && line.ends_with(" f")));
        }
    }
}

/// A shell whose other end has other users and groups.
fn elsewhere(case: &Case, shell: &str) -> Option<String> {
    let (passwd, group) = (case.place("passwd"), case.place("group"));
    fs::write(
        &passwd,
        "root:x:0:0::/:/bin/sh\ndaemon:x:77:77::/:\nbin:x:88:88::/:\nghost:x:1:1::/:\n",
    )
    .unwrap();
    fs::write(&group, "root:x:0:\ndaemon:x:77:\nbin:x:88:\nghost:x:1:\n").unwrap();
    let path = case.place("elsewhere.sh");
    let text = format!(
        "#!/bin/sh\n\
         if [ -z \"$APART\" ]; then APART=1; export APART; exec unshare -m \"$0\" \"$@\"; fi\n\
         mount --bind {} /etc/passwd && mount --bind {} /etc/group || exit 9\n\
         exec {shell} \"$@\"\n",
        passwd.display(),
        group.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let tried = Command::new(&path).args(["h", "true"]).status();
    tried.is_ok_and(|status| status.success()).then(|| path.display().to_string())
}

/// Owners and groups are kept by name, as in rsync, and mapped at the target.
#[test]
fn owners_are_kept_by_name() {
    if !is_root() || fs::read_to_string("/etc/passwd").is_ok_and(|it| !it.contains("daemon:x:1:1:"))
    {
        return crate::common::skip(
            "names of users: root and a user 'daemon' with number 1 are needed",
        );
    }
    // Names there: daemon is 77, bin is 88, ghost is 1; here daemon is 1, bin is 2.
    for (options, is_source, from, expected) in [
        ("-a", false, (1, 1), (77, 77)),
        ("-a", false, (0, 0), (0, 0)),
        ("-a", false, (4000, 1), (4000, 77)),
        ("-ao --no-g", false, (1, 1), (77, 0)),
        ("-a --numeric-ids", false, (1, 1), (1, 1)),
        ("-a --usermap=daemon:bin", false, (1, 1), (88, 77)),
        ("-a --usermap=1:bin --groupmap=*:5", false, (1, 1), (88, 5)),
        ("-a --usermap=:9 --groupmap=:ghost", false, (4000, 4000), (9, 1)),
        ("-a --chown=bin:ghost", false, (1, 1), (88, 1)),
        ("-a", true, (77, 77), (1, 1)),
        ("-a", true, (1, 1), (1, 1)),
        ("-a --usermap=ghost:bin", true, (1, 77), (2, 1)),
        ("-a --numeric-ids", true, (77, 77), (77, 77)),
        ("-a --numeric-ids --usermap=daemon:bin", true, (77, 77), (77, 77)),
        ("-a --chown=:bin", true, (77, 77), (1, 2)),
    ] {
        let (case, _, shell) = start(&format!("sync {options} SRC/ DST"));
        let Some(shell) = elsewhere(&case, &shell) else {
            return crate::common::skip("names of users: unshare(1) cannot mount over /etc/passwd");
        };
        fs::create_dir(case.src()).unwrap();
        fs::write(case.src().join("f"), "content").unwrap();
        std::os::unix::fs::chown(case.src().join("f"), Some(from.0), Some(from.1)).unwrap();
        let run = case.run_line(&far(&case.line, &shell, is_source));
        let made = fs::metadata(case.dst().join("f")).unwrap();
        assert_eq!((made.uid(), made.gid()), expected, "{options} {run}");
        // A second run finds nothing to do.
        let again = far(&case.line, &shell, is_source).replacen("sync", "sync -i", 1);
        assert!(case.run_line(&again).ok().items().is_empty(), "{options}");
        if options == "-a" {
            let verify = format!("verify -e {shell} SRC/ DST");
            let (near, there) = if is_source { ("SRC/", "h:SRC/") } else { ("DST", "h:DST") };
            case.run_line(&verify.replacen(near, there, 1)).ok();
        }
    }
    let (case, _, shell) = start("sync -a --chown=nobody-there SRC/ DST");
    let Some(shell) = elsewhere(&case, &shell) else { return };
    fs::create_dir(case.src()).unwrap();
    let refused = case.run_line(&far(&case.line, &shell, false));
    refused.expect(1).says(&["--chown=nobody-there: there is no user 'nobody-there'"]);
}

/// The users and groups of ACLs are those of the target, too.
#[test]
fn owners_in_acls_are_kept_by_name() {
    if !is_root() || !crate::common::have("setfacl", "names in ACLs") {
        return;
    }
    let (case, _, shell) = start("sync -aA SRC/ DST");
    let Some(shell) = elsewhere(&case, &shell) else { return };
    fs::create_dir(case.src()).unwrap();
    fs::write(case.src().join("f"), "content").unwrap();
    let set =
        Command::new("setfacl").args(["-m", "u:1:r,g:1:rw"]).arg(case.src().join("f")).status();
    if !set.unwrap().success() {
        return crate::common::skip("names in ACLs: the file system keeps none");
    }
    case.run_line(&far(&case.line, &shell, false)).ok();
    let shown = must(Command::new("getfacl").args(["-cnp"]).arg(case.dst().join("f")));
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("user:77:r--") && shown.contains("group:77:rw-"), "{shown}");
}

/// Devices are read as files, and written to.
#[test]
fn devices_as_files() {
    if !is_root() || Command::new("losetup").arg("--version").output().is_err() {
        return crate::common::skip("devices: losetup and root are needed");
    }
    for is_source in [false, true] {
        let (case, _, shell) = start("sync --copy-devices SRC/loop SRC/null DST/");
        fs::create_dir(case.src()).unwrap();
        let image = case.place("image");
        let content: Vec<u8> = (0..1_048_576_usize).map(|at| (at / 7) as u8).collect();
        fs::write(&image, &content).unwrap();
        let made = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().unwrap();
        if !made.status.success() {
            return crate::common::skip("devices: no loop device");
        }
        let device = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        must(Command::new("cp").arg("-a").arg(&device).arg(case.src().join("loop")));
        must(Command::new("mknod").arg(case.src().join("null")).args(["c", "1", "3"]));
        let read = case.run_line(&far(&case.line, &shell, is_source));
        // And back: onto the device, from a file.
        fs::create_dir(case.old()).unwrap();
        let changed: Vec<u8> = content.iter().rev().copied().collect();
        fs::write(case.old().join("loop"), &changed).unwrap();
        fs::create_dir(case.place("devices")).unwrap();
        must(Command::new("cp").arg("-a").arg(&device).arg(case.place("devices").join("loop")));
        let target = case.place("devices").display().to_string();
        let line = match is_source {
            true => format!("sync -e {shell} --write-devices h:OLD/ {target}/ -r"),
            false => format!("sync -e {shell} --write-devices OLD/ h:{target}/ -r"),
        };
        let written = case.run_line(&line);
        must(Command::new("losetup").arg("-d").arg(&device));
        read.ok();
        assert!(fs::read(case.dst().join("loop")).unwrap() == content, "{read}");
        assert_eq!(fs::read(case.dst().join("null")).unwrap(), b"");
        written.ok();
        assert!(fs::read(&image).unwrap() == changed, "{written}");
    }
}

/// Lines of a directory with more names than a message has; records have what an end there does.
#[test]
fn lines_and_records_of_large_directories() {
    for is_source in [false, true] {
        let (case, _, shell) = start("sync -a -j1 -i SRC/ DST");
        fs::create_dir(case.src()).unwrap();
        for number in 0..200 {
            fs::write(case.src().join(format!("f{number:03}")), "content").unwrap();
        }
        let here = case.run_line(&here(&case));
        let there = case.run_line(&far(&case.line, &shell, is_source));
        let lines = |run: &crate::common::case::Run| -> Vec<String> {
            let mut lines: Vec<String> = run.ok().out().lines().map(String::from).collect();
            lines.retain(|line| line.starts_with('>'));
            lines.sort();
            lines
        };
        assert_eq!(lines(&there).len(), 200, "{there}");
        assert_eq!(lines(&here), lines(&there));
        fs::remove_dir_all(case.dst()).unwrap();
        let (log, jobs) = (case.place("log"), case.place("jobs"));
        let records = format!("-a --log-file={} --joblog={}", log.display(), jobs.display());
        let line = format!("sync {records} SRC/ DST");
        case.run_line(&far(&line, &shell, is_source)).ok();
        for record in [&log, &jobs] {
            let text = fs::read_to_string(record).unwrap();
            assert!(text.contains("f000") && text.contains("f199"), "{text}");
        }
        let newer = far("sync -au -q --info=skip SRC/ DST", &shell, is_source);
        crate::common::grow::set_mtime(&case.dst().join("f000"), now_s() + 99, 0);
        assert_eq!(case.run_line(&newer).ok().out(), "");
    }
}
