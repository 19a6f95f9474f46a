//! Every run ends: at the first signal whatever it waits for, at lists without line ends, at directories that nobody
//! can make.

use crate::common::case::{Run, run_command};
use crate::common::{have_root, program, side_by_side, soon};
use crate::tools::place::Place;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns whether a process catches a signal (proc(5), `SigCgt`).
fn catches(child: &Child, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

/// Starts a line with an open standard input, sends one signal, and expects the end within two seconds. `handled`: the
/// line catches it.
fn stopped(dir: &Path, line: &str, signal: Signal, handled: bool) -> Run {
    let mut command = Command::new(program());
    command.args(line.split_whitespace()).current_dir(dir).env("XDG_STATE_HOME", dir.join("state"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Nobody writes to it, and nobody reads its output before the end.
    let stdin = child.stdin.take();
    // On a busy machine it may take longer to come to that.
    assert!(!handled || soon(|| catches(&child, signal)), "{line} does not catch {signal:?}");
    std::thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none(), "{line} does not wait");
    kill_process(Pid::from_child(&child), signal).unwrap();
    let sent = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if sent.elapsed() > Duration::from_secs(2) {
            let _ = child.kill();
            let mut err = String::new();
            let _ = child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut err));
            panic!("{line} goes on after {signal:?}: {err}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stdin);
    Run::new(line.to_owned(), child.wait_with_output().unwrap())
}

#[test]
fn one_signal_ends_every_wait() {
    // The exit code of an interrupted run; 0 for what a signal may end like any other program.
    let lines = [
        ("run", 1),
        ("run ff", 1),
        ("run list-from-fifo", 1),
        ("cp -i a b", 1),
        ("mv -i a b", 1),
        ("cp a ff", 1),
        ("cp large read", 1),
        ("rm -i a", 0),
        ("sync -a --log-file=ff s/ t/", 20),
        ("cp -r --joblog=ff s u", 1),
        ("sync -a --files-from=ff s/ t/", 0),
        ("sync -a --files-from=- s/ t/", 0),
        ("sync -a --exclude-from=ff s/ t/", 0),
        ("sync -av many/ v/", 20),
    ];
    let cases = lines.iter().flat_map(|case| [(case, Signal::INT), (case, Signal::TERM)]);
    let cases: Vec<_> = cases.collect();
    // A few at a time: all at once would keep the CPUs busy for longer than a wait may last.
    let stops = |((line, code), signal): &(&(&str, i32), Signal)| {
        let place = Place::new();
        place.sh(
            "echo 1 > a; echo 2 > b; mkfifo ff read; mkdir s many; echo 1 > s/x; head -c 1M /dev/zero > large
             echo 'sync -a --files-from=ff s/ t/' > list-from-fifo
             cd many; touch $(seq -f 'a-name-that-fills-the-pipe-of-standard-output-%g' 3000)",
        );
        // Open for reading, and never read.
        let _reader =
            std::fs::File::options().read(true).write(true).open(place.path().join("read"));
        let run = stopped(place.path(), line, *signal, *code != 0);
        let expected = if *code == 0 { 128 + signal.as_raw() } else { *code };
        assert_eq!(run.code, expected, "{run}");
        let left = place.sh("cat a b; ls -A | grep -c '^\\.hakobu' || true");
        assert_eq!(left, "1\n2\n0\n", "{run}");
    };
    cases.chunks(4).for_each(|some| side_by_side(some, stops));
}

#[test]
fn lists_without_ends_are_errors() {
    let place = Place::new();
    place.sh(
        "ln -s /dev/zero c.toml; mkdir s; echo x > s/f; head -c 5000 /dev/zero | tr '\\0' n > long",
    );
    for (line, code, words) in [
        ("sync -a --from0 --files-from=/dev/zero s/ t/", 1, "empty names in a row"),
        ("sync -a --files-from=/dev/zero s/ t/", 1, "name 1 is longer than 4096 bytes"),
        ("sync -a --files-from=long s/ t/", 1, "name 1 is longer than 4096 bytes"),
        ("cp -r --files-from=/dev/zero t", 1, "name 1 is longer than 4096 bytes"),
        ("sync -a --exclude-from=/dev/zero s/ t/", 11, "line 1 is longer than 1048576 bytes"),
        ("sync -a --from0 --exclude-from=/dev/zero s/ t/", 11, "empty lines in a row"),
        ("sync -a --filter=._/dev/zero s/ t/", 11, "line 1 is longer than 1048576 bytes"),
        ("sync -a --filter=merge_/dev/zero s/ t/", 11, "line 1 is longer than 1048576 bytes"),
        ("run /dev/zero", 1, "line 1 is longer than 1048576 bytes"),
        ("bench c.toml", 2, "line 1 is longer than 1048576 bytes"),
        ("io /dev/zero", 2, "line 1 is longer than 1048576 bytes"),
    ] {
        // 400 MB of addresses beyond what the program itself takes.
        let run = place.try_sh(&format!("ulimit -v 4000000; timeout 20 $H {line} < /dev/null"));
        assert!(run.code != 124 && run.code != 137, "{run}");
        assert!(run.err().contains(words), "{words}: {run}");
        let _ = code;
        assert_ne!(run.code, 0, "{run}");
    }
    let run = place.try_sh("timeout 20 $H cp -i s/f long < /dev/zero; cmp -s s/f long");
    assert_eq!(run.code, 1, "no answer was given: {run}");
}

#[test]
fn directories_that_cannot_be_made_are_looked_at_a_few_times() {
    let place = Place::new();
    place.sh("mkdir s; echo x > s/f");
    let source = place.path().join("s/");
    let source = source.to_str().unwrap();
    for words in [
        vec!["sync", "-a", "--mkpath", source, "/proc/none/below/"],
        vec!["sync", "-a", "--mkpath", "--backup-dir=/proc/none/below", source, "/proc/none/x/"],
    ] {
        let run = run_command(&program(), &words);
        assert_eq!(run.code, 11, "{run}");
        assert!(run.err().contains("No such file or directory"), "{run}");
    }
}

#[test]
fn a_run_says_nothing_of_the_files_that_it_writes() {
    let place = Place::new();
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state
         for i in $(seq 40); do
             rm -rf s d; mkdir s d
             for k in 1 2 3 4 5 6 7 8; do echo new$i$k-longer > s/f$k; echo o > d/f$k; echo x > d/x$k; done
             $H sync -a --delete s/ d/ || exit 1
         done",
    );
    assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
}

#[test]
fn three_runs_remove_the_same_trees() {
    let place = Place::new();
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state
         mkdir -p s/keep; echo x > s/keep/f
         deep=$(printf 'd/%.0s' $(seq 40))
         for i in $(seq 12); do
             mkdir -p t; for k in 1 2 3; do mkdir -p t/junk$k/$deep/{a,b,c,d}/{e,f}; done
             find t -type d -links 2 -exec touch {}/one {}/two \\;
             for run in 1 2 3; do $H sync -a --delete s/ t/ & pids[run]=$!; done
             for run in 1 2 3; do wait ${pids[run]} || exit 1; done
             diff -r s t || exit 2
         done",
    );
    run.ok();
}

#[test]
fn without_proc_links_and_nodes_keep_their_attributes() {
    if !have_root("a namespace without /proc") {
        return;
    }
    let place = Place::new();
    place.sh(
        "mkdir -p s/d m; echo x > s/f; ln -s f s/link; mkfifo s/fifo; mknod s/null c 1 3; chmod 640 s/fifo
         touch -hd 2001-02-03 s/*; cp -a s moved; cp -a s copied
         for e in link fifo null f d; do setfattr -hn trusted.test -v $e s/$e moved/$e copied/$e; done",
    );
    let run = place.try_sh(
        "export XDG_STATE_HOME=$PWD/state
         unshare -m bash -c 'mount -t tmpfs none m && umount -l /proc || exit 77
             $H sync -aX s/ t/ || exit 3
             $H sync -aXi s/ t/ || exit 4
             $H cp -a s u || exit 5
             $H mv moved m/moved || exit 6
             $H verify -X s t || exit 8
             for tree in t u m/moved; do
                 for e in link fifo null f d; do
                     [ \"$(getfattr -hn trusted.test --only-values $tree/$e)\" = $e ] || exit 9
                     [ \"$(stat -c %A.%Y.%u $tree/$e)\" = \"$(stat -c %A.%Y.%u s/$e)\" ] || exit 10
                 done
             done; [ ! -e moved ]'",
    );
    if run.code == 77 {
        return crate::common::skip("a namespace without /proc: mount or umount is refused");
    }
    assert_eq!((run.ok().out(), run.err()), (String::new(), String::new()), "{run}");
}
