//! Limits of the machine: memory independent of the tree, few open files, paths beyond PATH_MAX, ten thousand
//! identical failures.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case, case_on};
use crate::common::diff::{Fields, diff};
use crate::common::grow::age;
use crate::common::snapshot::Snapshot;
use crate::common::{have, have_root, must, program, remove_tree, rounds};
use rustix::fs::{Mode, OFlags};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Peak memory of a command in KiB, as the kernel counted it.
fn peak_kib(words: &[std::ffi::OsString]) -> (u64, i32) {
    let mut command = Command::new("/usr/bin/time");
    let output = command.args(["-q", "-f", "%M"]).arg(program()).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().last().unwrap_or_default();
    let kib = line.parse().unwrap_or_else(|_| panic!("no memory figure: {text}"));
    (kib, output.status.code().unwrap())
}

fn flat(root: &Path, count: usize) {
    std::fs::create_dir_all(root).unwrap();
    let fd = rustix::fs::open(root, OFlags::RDONLY, Mode::empty()).unwrap();
    for n in 0..count {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let name = format!("file-with-a-name-of-usual-length-{n:07}");
        rustix::fs::openat(&fd, name, flags, Mode::from_raw_mode(0o644)).unwrap();
    }
}

#[test]
fn memory_does_not_grow_with_the_tree() {
    if !have("time", "memory of a run") {
        return;
    }
    let count = usize::try_from(rounds(200_000)).unwrap();
    case("sync -a SRC/ DST", |c| {
        flat(&c.src(), count);
        for line in ["sync -a SRC/ DST", "sync -a --delete SRC/ DST", "sync -aH -j 4 SRC/ DST"] {
            remove_tree(&c.dst());
            if line.contains("--delete") {
                flat(&c.dst(), count / 2);
                std::fs::rename(c.dst(), c.place("x")).unwrap();
                std::fs::create_dir(c.dst()).unwrap();
                std::fs::rename(c.place("x"), c.dst().join("extraneous")).unwrap();
            }
            let (kib, code) = peak_kib(&c.words(line, &c.dst()));
            assert_eq!(code, 0);
            assert_eq!(std::fs::read_dir(c.dst()).unwrap().count(), count);
            assert!(kib <= 64 << 10, "{line}: {kib} KiB for {count} files");
        }
    });
}

fn few_files(line: &str, limit: u32) {
    case(line, |c| {
        let mut dir = c.src();
        for level in 0..120 {
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("file"), format!("level {level}")).unwrap();
            std::fs::create_dir(dir.join("side")).unwrap();
            std::fs::write(dir.join("side/file"), "side").unwrap();
            dir = dir.join("d");
        }
        age(&c.src());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {limit}; exec \"$@\""), "sh"]).arg(program());
        let output = command.args(c.words(line, &c.dst())).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{line} with {limit} open files: {said}");
        c.target_is_source(&Fields::ALL);
    });
}

#[test]
fn few_open_files_are_enough() {
    few_files("sync -a SRC/ DST", 64);
    few_files("sync -aHAX -j 8 SRC/ DST", 64);
    few_files("sync -a -j 1 SRC/ DST", 32);
    // Long enough for a look at the machine, whose counters are files as well.
    few_files("sync -a -j 1 --iops-limit=400 SRC/ DST", 32);
    few_files("cp -aT SRC DST", 64);
}

/// A tree whose deepest names are longer than any path may be.
fn deep(root: &Path, levels: usize) {
    std::fs::create_dir(root).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut fd = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for level in 0..levels {
        let name = format!("{level:0>200}");
        let write = OFlags::CREATE | OFlags::WRONLY;
        let file = rustix::fs::openat(&fd, "file", write, Mode::from_raw_mode(0o640)).unwrap();
        rustix::io::write(&file, name.as_bytes()).unwrap();
        rustix::fs::mkdirat(&fd, &name, Mode::from_raw_mode(0o755)).unwrap();
        fd = rustix::fs::openat(&fd, &name, flags, Mode::empty()).unwrap();
    }
}

#[test]
fn paths_beyond_path_max() {
    for line in [
        "sync -aHAX SRC/ DST",
        "sync -a -j 1 SRC/ DST",
        "cp -aT SRC DST",
        "sync -a --delete SRC/ DST",
    ] {
        case(line, |c| {
            deep(&c.src(), 60); // 12,000 bytes
            c.run().ok();
            c.target_is_source(&Fields::ALL);
            c.run_line("sync -a -i SRC/ DST").ok();
            c.run_line("verify SRC DST").ok();
            std::fs::remove_dir_all(c.src()).unwrap();
            std::fs::create_dir(c.src()).unwrap();
            c.run_line("sync -a --delete SRC/ DST").ok();
            assert_eq!(Snapshot::of(&c.dst()).entries.len(), 1);
        });
    }
    case("rm -r DST", |c| {
        deep(&c.dst(), 60);
        c.run().ok();
        assert!(!c.dst().exists());
    });
}

/// Deeper than there are open files, and deeper than a thread's stack allows careless recursion.
#[test]
fn very_deep_trees() {
    case("sync -a SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut fd = rustix::fs::open(c.src(), flags, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&fd, "d", Mode::from_raw_mode(0o755)).unwrap();
            fd = rustix::fs::openat(&fd, "d", flags, Mode::empty()).unwrap();
        }
        c.run().ok();
        // Counted by find, because the reader of trees keeps every level open.
        let count = |root: &Path| {
            let out = Command::new("find").arg(root).args(["-printf", "x"]).output().unwrap();
            out.stdout.len()
        };
        assert_eq!(count(&c.dst()), 3001);
        c.run_line("rm -r DST").ok();
        assert!(!c.dst().exists());
    });
}

#[test]
fn ten_thousand_failures_are_one_line() {
    if !have_root("an ordinary user") {
        return;
    }
    case("sync -a SRC/ DST", |c| {
        std::fs::create_dir(c.src()).unwrap();
        for n in 0..10_000 {
            let path = c.src().join(format!("f{n}"));
            std::fs::write(&path, "x").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        }
        std::fs::create_dir(c.dst()).unwrap();
        crate::faults::user::give_away(&c.dst());
        let run = crate::faults::user::run_as_nobody(c, &c.line);
        run.expect(23);
        let text = run.err().replace([',', '\'', ' '], "");
        assert!(run.err().lines().count() <= 20, "{} lines", run.err().lines().count());
        // Three have names, the others are counted.
        assert!(text.contains("and9997more"), "no count: {run}");
    });
}

#[test]
fn names_of_255_bytes_are_updated() {
    for fs in Fs::ALL {
        let line = "sync -a SRC/ DST";
        let (Some(from), Some(to)) = (Area::new(Fs::Tmpfs, line), Area::new(fs, line)) else {
            continue;
        };
        let case = Case::new(line, from, to);
        std::fs::create_dir(case.src()).unwrap();
        let name = "n".repeat(255);
        // A temporary name for it must not be longer than a name may be.
        for content in ["first", "second, longer", "3"] {
            std::fs::write(case.src().join(&name), content).unwrap();
            for options in ["-a", "-r", "-aI", "-a --size-only"] {
                case.run_line(&format!("sync {options} SRC/ DST")).ok();
            }
            let wrong =
                diff(&Snapshot::of(&case.src()), &Snapshot::of(&case.dst()), &Fields::CONTENT, 5);
            assert!(wrong.is_empty(), "{wrong:?}");
        }
        case.run_line("sync -aI --backup SRC/ DST"); // may fail: the backup's name is too long
        assert!(case.dst().join(&name).exists());
    }
}

/// Beyond every 32-bit count, with holes around the few bytes that there are.
#[test]
fn files_beyond_4_gib() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    const PARTS: &[(u64, &[u8])] = &[
        (0, b"start"),
        ((2 << 30) - 3, b"2 GiB"),
        ((4 << 30) - 3, b"4 GiB"),
        ((4 << 30) + 9_000, b"beyond"),
    ];
    const SIZE: u64 = (5 << 30) + 7;
    for fs in Fs::ALL {
        for line in ["sync -aS SRC/ DST", "sync -a --inplace SRC/ DST", "cp -aT SRC DST"] {
            case_on(Fs::Tmpfs, fs, line, |c| {
                std::fs::create_dir(c.src()).unwrap();
                let file = std::fs::File::create_new(c.src().join("large")).unwrap();
                file.set_len(SIZE).unwrap();
                for (at, bytes) in PARTS {
                    file.write_all_at(bytes, *at).unwrap();
                }
                let file = std::fs::File::open(c.src().join("large")).unwrap();
                c.run().ok();
                // Not by hash: the reader of trees would read 5 GiB of holes, twice.
                let copy = std::fs::File::open(c.dst().join("large")).unwrap();
                let meta = copy.metadata().unwrap();
                assert_eq!(meta.len(), SIZE, "{line}");
                assert_eq!(meta.modified().unwrap(), file.metadata().unwrap().modified().unwrap());
                let allocated = meta.blocks() * 512;
                assert!(allocated < 4 << 20, "{line} on {}: {allocated} bytes", fs.name());
                for (at, bytes) in PARTS {
                    let start = at.saturating_sub(5_000);
                    let (mut theirs, mut ours) = (vec![1; 10_000], vec![2; 10_000]);
                    file.read_exact_at(&mut theirs, start).unwrap();
                    copy.read_exact_at(&mut ours, start).unwrap();
                    assert!(ours == theirs, "{line}: {} at {at}", bytes.escape_ascii());
                }
                let run = c.run_line("sync -a -i SRC/ DST");
                assert_eq!(run.ok().out(), "", "{run}");
            });
        }
    }
}

/// Growing the table of descriptors of a process with threads waits for an RCU grace period: some milliseconds.
#[test]
fn room_for_descriptors_is_made_before_the_first_thread() {
    if !have("strace", "order of calls") {
        return;
    }
    for line in ["sync -a SRC/ DST", "cp -r SRC DST", "du -s SRC", "verify SRC SRC", "rm -r SRC"] {
        case(line, |c| {
            flat(&c.src(), 1);
            let trace = c.place("trace");
            let mut command = Command::new("strace");
            command.args(["-f", "-e", "trace=fcntl,?clone,?clone3", "-o"]).arg(&trace);
            must(command.arg(program()).args(c.words(line, &c.dst())));
            let text = std::fs::read_to_string(&trace).unwrap();
            let reserved = text.lines().position(|call| call.contains("F_DUPFD_CLOEXEC, 4095"));
            let thread = text.lines().position(|call| call.contains(" clone"));
            assert!(reserved.is_some() && reserved < thread, "{line}: {text}");
        });
    }
}
