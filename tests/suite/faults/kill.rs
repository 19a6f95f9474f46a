//! kill -9 at random moments: no incomplete file under its final name passes for complete, repeating the
//! command gives the correct tree, and no leftovers remain.

use crate::common::area::{Area, Fs};
use crate::common::case::Case;
use crate::common::diff::{Fields, diff};
use crate::common::grow::set_mtime;
use crate::common::snapshot::{Snapshot, show};
use crate::common::{first_seed, is_root, must, remove_tree, rounds};
use crate::faults::start;
use fastrand::Rng;
use rustix::fs::FileType;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A tree with many small files and a few large ones; `version` gives other contents (of the same
/// size for every second file) and other times.
fn tree(root: &Path, version: u8, recent: bool) {
    let mut rng = Rng::with_seed(42);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_secs()).unwrap();
    for dir in 0..12 {
        let dir = root.join(format!("d{dir}"));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..30 {
            let path = dir.join(format!("f{file}"));
            let mut size = if file == 0 { 1_500_000 } else { rng.usize(..20_000) };
            if file % 2 == 1 {
                size += usize::from(version);
            }
            let mut bytes = vec![version.wrapping_add(file); size];
            Rng::with_seed(u64::from(version)).fill(&mut bytes[..size.min(64)]);
            std::fs::write(&path, bytes).unwrap();
            let mode = std::fs::Permissions::from_mode([0o644, 0o600, 0o755, 0o4755][size % 4]);
            std::fs::set_permissions(&path, mode).unwrap();
            if is_root() && file % 7 == 3 {
                std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
            }
            // Files that were written just now, or will have been in a moment: the time that an
            // unfinished copy has by itself.
            let time = if recent { now + rng.i64(-1..3) } else { now - 1_000_000 };
            set_mtime(&path, time + i64::from(version) * 10, 0);
        }
        std::fs::hard_link(dir.join("f1"), dir.join("linked")).unwrap();
        std::os::unix::fs::symlink("f1", dir.join("symlink")).unwrap();
        set_mtime(&dir.join("symlink"), now - 700_000, 0);
        set_mtime(&dir, now - 500_000, 0);
    }
    set_mtime(root, now - 600_000, 0);
}

struct Plan {
    fs: Fs,
    line: &'static str,
    /// The target holds an older version.
    update: bool,
    recent: bool,
    /// State that the repeated command must restore.
    fields: Fields,
}

/// No file of the target may look finished without being so.
fn no_impostors(source: &Snapshot, old: &Snapshot, target: &Snapshot, plan: &Plan, what: &str) {
    for (path, entry) in &target.entries {
        let Some(from) = source.entries.get(path) else { continue };
        if entry.kind != FileType::RegularFile || entry.hash == from.hash {
            continue;
        }
        let alike = entry.size == from.size && entry.mtime_s == from.mtime_s;
        assert!(!alike, "{what}: {} has the source's size and time, not its content", show(path));
        if plan.update {
            let before = old.entries.get(path).expect("updates have the same names");
            assert!(
                entry.hash == before.hash && entry.size == before.size,
                "{what}: {} is neither the old nor the new file",
                show(path)
            );
        }
    }
}

fn kill_rounds(plan: &Plan, count: u64) {
    let line = plan.line;
    let (Some(from), Some(to)) = (Area::new(Fs::Tmpfs, line), Area::new(plan.fs, line)) else {
        return;
    };
    let case = Case::new(line, from, to);
    tree(&case.src(), 1, plan.recent);
    tree(&case.place("old-version"), 0, plan.recent);
    let prepare = || {
        remove_tree(&case.dst());
        if plan.update {
            let mut cp = Command::new("cp");
            must(cp.arg("-a").arg(case.place("old-version")).arg(case.dst()));
        }
    };
    prepare();
    let begun = Instant::now();
    start(&case, line).wait().ok();
    let whole = begun.elapsed();
    let (source, old) = (Snapshot::of(&case.src()), Snapshot::of(&case.place("old-version")));
    let first = first_seed(1);
    for seed in first..first + rounds(count) {
        let mut rng = Rng::with_seed(seed);
        prepare();
        let kills = 1 + rng.u8(..2);
        let mut what = format!("seed {seed}, {line}, on {}", plan.fs.name());
        for _ in 0..kills {
            let running = start(&case, line);
            let delay = whole.mul_f64(rng.f64() * 1.05);
            std::thread::sleep(delay);
            running.signal(Signal::KILL);
            running.wait();
            what.push_str(&format!(", killed after {delay:?} of {whole:?}"));
            no_impostors(&source, &old, &Snapshot::of(&case.dst()), plan, &what);
        }
        let run = start(&case, line).wait();
        assert_eq!(run.code, 0, "{what}: {run}");
        let target = Snapshot::of(&case.dst());
        let stray = target.not_in(&source);
        assert!(stray.is_empty(), "{what}: stray files {stray:?}");
        let wrong = diff(&source, &target, &plan.fields, 10);
        assert!(wrong.is_empty(), "{what}: after the second run:\n  {}", wrong.join("\n  "));
    }
}

const FRESH: Plan = Plan {
    fs: Fs::Tmpfs,
    line: "sync -aHAX SRC/ DST",
    update: false,
    recent: false,
    fields: Fields::ALL,
};

/// Without `-H`, linked files are separate files.
const UNLINKED: Fields = Fields { groups: false, ..Fields::ALL };
/// Without `-ogt` and so on.
const CONTENT: Fields = Fields::CONTENT;

#[test]
fn fresh_copies() {
    for fs in Fs::ALL {
        kill_rounds(&Plan { fs, ..FRESH }, 12);
    }
}

#[test]
fn fresh_copies_of_recent_files() {
    for fs in [Fs::Tmpfs, Fs::Ext4] {
        kill_rounds(&Plan { fs, recent: true, ..FRESH }, 20);
    }
}

#[test]
fn updates() {
    for fs in Fs::ALL {
        kill_rounds(&Plan { fs, update: true, ..FRESH }, 10);
    }
}

#[test]
fn updates_of_recent_files() {
    kill_rounds(&Plan { fs: Fs::Ext4, update: true, recent: true, ..FRESH }, 15);
}

#[test]
fn many_jobs() {
    kill_rounds(&Plan { fs: Fs::Ext4, line: "sync -aHAX -j 16 SRC/ DST", ..FRESH }, 12);
}

#[test]
fn options_that_look_at_less() {
    let without_times = Plan { fields: CONTENT, ..FRESH };
    let with_times = Plan { fields: UNLINKED, ..FRESH };
    for fs in [Fs::Tmpfs, Fs::Ext4] {
        kill_rounds(&Plan { fs, line: "sync -rl SRC/ DST", ..without_times }, 8);
        kill_rounds(&Plan { fs, line: "sync -rl --size-only SRC/ DST", ..without_times }, 8);
        kill_rounds(&Plan { fs, line: "sync -rl --ignore-existing SRC/ DST", ..without_times }, 8);
        kill_rounds(&Plan { fs, line: "sync -a --ignore-existing SRC/ DST", ..with_times }, 8);
        kill_rounds(&Plan { fs, line: "sync -au SRC/ DST", ..with_times }, 8);
        kill_rounds(&Plan { fs, line: "sync -aS SRC/ DST", ..with_times }, 8);
        kill_rounds(&Plan { fs, line: "sync -a --delete SRC/ DST", update: true, ..with_times }, 8);
    }
}

#[test]
fn cp() {
    for fs in [Fs::Tmpfs, Fs::Ext4] {
        kill_rounds(&Plan { fs, line: "cp -aT SRC DST", ..FRESH }, 8);
        // -n and -u pass over what is there already: also where its other names are not yet, and
        // where a symlink has not got its time.
        let passed_over = Fields { link_times: false, ..UNLINKED };
        kill_rounds(&Plan { fs, line: "cp -anT SRC DST", fields: passed_over, ..FRESH }, 8);
        let update = Plan { update: true, fields: UNLINKED, ..FRESH };
        kill_rounds(&Plan { fs, line: "cp -auT SRC DST", ..update }, 8);
        kill_rounds(&Plan { fs, line: "cp -rT SRC DST", fields: CONTENT, ..FRESH }, 4);
    }
}

/// A move across file systems: at any moment every file is whole in at least one of the places.
#[test]
fn mv_across_file_systems() {
    let line = "mv -T SRC DST";
    let (Some(from), Some(to)) = (Area::new(Fs::Tmpfs, line), Area::new(Fs::Ext4, line)) else {
        return;
    };
    let case = Case::new(line, from, to);
    let original = case.place("original");
    tree(&original, 1, false);
    let whole = Snapshot::of(&original);
    let place = || {
        remove_tree(&case.src());
        remove_tree(&case.dst());
        must(Command::new("cp").arg("-a").arg(&original).arg(case.src()));
    };
    place();
    let begun = Instant::now();
    start(&case, line).wait().ok();
    let took = begun.elapsed().max(Duration::from_millis(5));
    let first = first_seed(1);
    for seed in first..first + rounds(15) {
        let mut rng = Rng::with_seed(seed);
        place();
        let running = start(&case, line);
        std::thread::sleep(took.mul_f64(rng.f64() * 1.05));
        running.signal(Signal::KILL);
        running.wait();
        let (source, target) = (Snapshot::of(&case.src()), Snapshot::of(&case.dst()));
        for (path, entry) in &whole.entries {
            let there =
                |tree: &Snapshot| tree.entries.get(path).is_some_and(|e| e.hash == entry.hash);
            assert!(there(&source) || there(&target), "seed {seed}: lost {}", show(path));
        }
        if source.entries.is_empty() {
            continue; // it was done before it was killed
        }
        // Files removed from the source are complete in the target; the rest follows. mv itself refuses to
        // merge two directories, like coreutils.
        start(&case, "sync -a --remove-source-files SRC/ DST").wait().ok();
        let wrong = diff(
            &whole,
            &Snapshot::of(&case.dst()),
            &Fields { groups: false, dir_times: false, ..Fields::ALL },
            10,
        );
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        let left = Snapshot::of(&case.src());
        let left = left.entries.values().filter(|e| e.kind != FileType::Directory).count();
        assert_eq!(left, 0, "seed {seed}: the source still has files");
    }
}
