//! System calls made to fail by strace, one at a time: a run that says 0 has made the right tree,
//! a run that did not says so, and the same command again repairs everything.

use crate::common::area::Area;
use crate::common::case::Run;
use crate::common::diff::{Fields, diff};
use crate::common::grow::{Plan, grow};
use crate::common::mutate::{Wild, mutate};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use crate::common::{first_seed, have, must, program, remove_tree, rounds};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const CALLS: &[(&str, &[&str])] = &[
    ("openat", &["EMFILE", "EACCES", "EIO", "ENOSPC", "ENOMEM"]),
    ("openat2", &["EMFILE", "EACCES", "EIO", "ENOSYS"]),
    ("read", &["EIO", "EINTR", "EISDIR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("write", &["EIO", "ENOSPC", "EDQUOT", "EINTR", "EFBIG"]),
    ("pwrite64", &["EIO", "ENOSPC", "EDQUOT"]),
    ("copy_file_range", &["EIO", "ENOSPC", "EXDEV", "EINVAL", "EOPNOTSUPP"]),
    ("sendfile", &["EIO", "EINVAL"]),
    ("ioctl", &["EOPNOTSUPP", "EIO"]),
    ("lseek", &["EINVAL", "EIO"]),
    ("fallocate", &["EOPNOTSUPP", "ENOSPC"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("linkat", &["EMLINK", "EPERM", "ENOENT", "EEXIST"]),
    ("renameat", &["EIO", "EACCES", "ENOSPC"]),
    ("renameat2", &["EIO", "EACCES", "EINVAL"]),
    ("unlinkat", &["EIO", "EACCES", "EBUSY"]),
    ("mkdirat", &["EACCES", "ENOSPC", "EMLINK"]),
    ("symlinkat", &["EACCES", "ENOSPC"]),
    ("mknodat", &["EPERM", "ENOSPC"]),
    ("utimensat", &["EPERM", "EROFS", "EIO"]),
    ("fchmod", &["EPERM", "EIO"]),
    ("fchmodat", &["EPERM", "EIO"]),
    ("fchmodat2", &["EPERM", "ENOSYS"]),
    ("fchown", &["EPERM", "EINVAL"]),
    ("fchownat", &["EPERM", "EINVAL"]),
    ("fstat", &["EIO"]),
    ("newfstatat", &["EIO", "EACCES"]),
    ("statx", &["EIO", "EACCES", "ENOSYS"]),
    ("getdents64", &["EIO", "ENOENT"]),
    ("readlinkat", &["EIO", "EACCES"]),
    ("fsetxattr", &["ENOSPC", "EPERM", "EIO"]),
    ("setxattr", &["ENOSPC", "EPERM"]),
    ("lsetxattr", &["ENOSPC", "EPERM"]),
    ("setxattrat", &["ENOSPC", "ENOSYS"]),
    ("fgetxattr", &["EIO", "ERANGE"]),
    ("lgetxattr", &["EIO"]),
    ("getxattr", &["EIO"]),
    ("flistxattr", &["EIO", "ERANGE"]),
    ("llistxattr", &["EIO"]),
    ("listxattr", &["EIO"]),
    ("close", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO"]),
    ("syncfs", &["EIO"]),
];

struct Bench {
    area: Area,
    source: Snapshot,
    /// The target before each run: nothing, or an older version.
    update: bool,
}

impl Bench {
    fn new(update: bool) -> Bench {
        let area = Area::tmpfs();
        let plan = Plan {
            entries: 40,
            hostile: false,
            size_max: 200_000,
            ..Plan::full(Features::probe(area.path()))
        };
        grow(&area.join("src"), 11, &plan);
        if update {
            must(Command::new("cp").arg("-a").arg(area.join("src")).arg(area.join("old")));
            mutate(&area.join("src"), 12, 25, &plan, Wild::ALL);
        }
        let source = Snapshot::of(&area.join("src"));
        Bench { area, source, update }
    }

    fn prepare(&self) {
        remove_tree(&self.area.join("dst"));
        if self.update {
            must(
                Command::new("cp").arg("-a").arg(self.area.join("old")).arg(self.area.join("dst")),
            );
        }
    }

    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![program().into_os_string()];
        words.extend(["sync", "-aHAX", "--delete", "-j", "1"].map(OsString::from));
        words.push(self.area.join("src").join("").into_os_string());
        words.push(self.area.join("dst").into_os_string());
        words
    }

    fn strace(&self, what: &str, log: &Path) -> Run {
        let mut command = Command::new("timeout");
        // Cargo names folders of libraries, each of which is searched by calls of its own.
        command.env_remove("LD_LIBRARY_PATH");
        command.args(["--kill-after=5", "120", "strace", "-f", "-qq", "-o"]).arg(log);
        command.args(["-e", what]).args(self.words());
        Run::new(what.to_owned(), command.output().unwrap())
    }

    /// How often each call is made by the thread that makes it most.
    fn count(&self) -> BTreeMap<String, u64> {
        self.prepare();
        let log = self.area.join("log");
        let names: Vec<_> = CALLS.iter().map(|(name, _)| format!("?{name}")).collect();
        self.strace(&format!("trace={}", names.join(",")), &log).ok();
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for line in String::from_utf8_lossy(&std::fs::read(log).unwrap()).lines() {
            let mut parts = line.splitn(2, ' ');
            let (Some(pid), Some(rest)) = (parts.next(), parts.next()) else { continue };
            let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
            *counts.entry((call.to_owned(), pid.to_owned())).or_default() += 1;
        }
        let mut most = BTreeMap::new();
        for ((call, _), count) in counts {
            let entry = most.entry(call).or_insert(0);
            *entry = count.max(*entry);
        }
        most
    }

    /// One run with one injected failure; what is wrong about it.
    fn inject(&self, call: &str, fault: &str, when: &str) -> Option<String> {
        self.prepare();
        let log = self.area.join("log");
        let what = format!("inject={call}:{fault}:when={when}");
        let run = self.strace(&what, &log);
        let target = Snapshot::of(&self.area.join("dst"));
        let wrong = diff(&self.source, &target, &Fields::ALL, 5);
        if run.code == 0 && !wrong.is_empty() {
            return Some(format!("{what}: exit code 0, but {wrong:?}; said: {}", run.err()));
        }
        let mute = call == "write" && when.ends_with('+'); // no message can be written either
        if run.code != 0 && run.stderr.is_empty() && !mute {
            return Some(format!("{what}: exit code {} without a word", run.code));
        }
        if run.code >= 124 && run.code != 127 {
            return Some(format!("{what}: died or hung with {}: {}", run.code, run.err()));
        }
        self.impostors(&target, &what).or_else(|| self.repair(&what))
    }

    fn impostors(&self, target: &Snapshot, what: &str) -> Option<String> {
        let bad = target.entries.iter().find(|(path, entry)| {
            self.source.entries.get(*path).is_some_and(|from| {
                entry.size == from.size && entry.mtime_s == from.mtime_s && entry.hash != from.hash
            })
        });
        bad.map(|(path, _)| {
            format!("{what}: {} only looks finished", crate::common::snapshot::show(path))
        })
    }

    /// The same command again, undisturbed, makes it right.
    fn repair(&self, what: &str) -> Option<String> {
        let words = self.words();
        let run = crate::common::case::run_command(&PathBuf::from(&words[0]), &words[1..]);
        let wrong = diff(&self.source, &Snapshot::of(&self.area.join("dst")), &Fields::ALL, 5);
        (run.code != 0 || !wrong.is_empty())
            .then(|| format!("{what}: the run after it ended with {}: {wrong:?}", run.code))
    }
}

fn every_call_fails_once(update: bool) {
    if !have("strace", "errno injection") {
        return;
    }
    let bench = Bench::new(update);
    let counts = bench.count();
    let mut failed = Vec::new();
    let seed = first_seed(1);
    let mut rng = Rng::with_seed(seed);
    for (call, errors) in CALLS {
        let Some(count) = counts.get(*call) else { continue };
        for error in *errors {
            // The first and the last call, and some between them.
            let mut moments = vec![1, *count];
            moments.extend((0..rounds(2)).map(|_| rng.u64(1..=*count)));
            moments.sort_unstable();
            moments.dedup();
            for when in moments {
                let fault = format!("error={error}");
                failed.extend(bench.inject(call, &fault, &when.to_string()));
            }
        }
    }
    assert!(failed.is_empty(), "seed {seed}, {} failures:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn fresh_copy() {
    every_call_fails_once(false);
}

#[test]
fn update() {
    every_call_fails_once(true);
}

/// A call that fails from some moment on, for good.
#[test]
fn lasting_failures() {
    if !have("strace", "errno injection") {
        return;
    }
    let bench = Bench::new(false);
    let counts = bench.count();
    let mut failed = Vec::new();
    for (call, fault) in [
        ("write", "error=ENOSPC"),
        ("write", "error=EIO"),
        ("openat", "error=EMFILE"),
        ("utimensat", "error=EPERM"),
        ("fchown", "error=EPERM"),
        ("fchownat", "error=EPERM"),
        ("linkat", "error=EPERM"),
        ("copy_file_range", "error=EXDEV"),
        ("read", "retval=0"),
        ("pread64", "retval=0"),
        ("getdents64", "error=EIO"),
        ("fsetxattr", "error=ENOSPC"),
        ("unlinkat", "error=EBUSY"),
    ] {
        let Some(count) = counts.get(call) else { continue };
        for part in [2, 3, 4] {
            failed.extend(bench.inject(call, fault, &format!("{}+", (count * part / 4).max(1))));
        }
    }
    assert!(failed.is_empty(), "{} failures:\n{}", failed.len(), failed.join("\n"));
}

/// Short reads and writes are no failures: the rest follows.
#[test]
fn failures_that_are_none() {
    if !have("strace", "errno injection") {
        return;
    }
    let bench = Bench::new(false);
    for (call, error) in [
        ("copy_file_range", "EXDEV"),
        ("copy_file_range", "EOPNOTSUPP"),
        ("ioctl", "EOPNOTSUPP"),
        ("fallocate", "EOPNOTSUPP"),
        ("setxattrat", "ENOSYS"),
        ("fchmodat2", "ENOSYS"),
        ("openat2", "ENOSYS"),
    ] {
        bench.prepare();
        let run =
            bench.strace(&format!("inject=?{call}:error={error}:when=1+"), &bench.area.join("log"));
        run.ok();
        let wrong = diff(&bench.source, &Snapshot::of(&bench.area.join("dst")), &Fields::ALL, 5);
        assert!(wrong.is_empty(), "{call} {error}: {wrong:?}");
    }
}
