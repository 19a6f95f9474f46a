//! Time stamps of file systems with any resolution: copied files are unchanged in the next run; another
//! version of the same size within a second is detected.

use crate::common::area::{Area, Fs, Volume};
use crate::common::case::{Run, case, run_command};
use crate::common::fuse::Mount;
use crate::common::fuse::memory::{Keep, Memory};
use crate::common::grow::set_mtime;
use crate::common::{program, skip};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const S: i64 = 1_000_000_000;

/// Even and odd seconds, whole ones and all kinds of fractions.
const TIMES: [(i64, u32); 7] = [
    (S, 0),
    (S + 1, 0),
    (S + 2, 999_999_999),
    (S + 3, 123_456_789),
    (S + 4, 500_000_000),
    (S + 5, 120_000_000),
    (-S + 1, 1),
];

/// A file system in user space that keeps times in its own way, by a clock that is ahead; skips where there can be none.
fn mounted(root: PathBuf, keep: Keep, ahead_s: i64) -> Option<Mount> {
    let mounted = Mount::new(root, "rw", Memory::timed(keep, ahead_s));
    mounted.inspect_err(|why| skip(&format!("times on FUSE: {why}"))).ok()
}

fn fill(dir: &Path) {
    std::fs::create_dir_all(dir.join("sub")).unwrap();
    for (number, (s, ns)) in TIMES.into_iter().enumerate() {
        let path = dir.join("sub").join(format!("f{number}"));
        std::fs::write(&path, format!("content {number}")).unwrap();
        set_mtime(&path, s, ns);
    }
    set_mtime(&dir.join("sub"), S + 7, 987_654_321);
    set_mtime(dir, S + 9, 5);
}

fn run(line: &str, from: &Path, to: &Path) -> Run {
    let words: Vec<OsString> = line
        .split(' ')
        .map(|word| match word {
            "FROM" => from.join("").into_os_string(),
            "TO" => to.join("").into_os_string(),
            word => word.into(),
        })
        .collect();
    run_command(&program(), &words)
}

/// Properties of a file system.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// It keeps every nanosecond.
    Exactly,
    /// Its own times show what it keeps.
    Shown,
    /// Only setting times and reading them back shows it, and a dry run sets none.
    Hidden,
}

/// Copies to `there`.
fn trip(what: &str, there: &Path, kept: Kept) {
    let area = Area::tmpfs();
    let (source, target, back) = (area.join("src"), there.join("dst"), area.join("back"));
    fill(&source);
    run("sync -a FROM TO", &source, &target).ok();
    // Unchanged entries are not printed.
    for line in ["sync -a -i FROM TO", "sync -a -i --delete FROM TO", "sync -au -i FROM TO"] {
        let second = run(line, &source, &target);
        assert_eq!(second.ok().out(), "", "{what}: a second run did something");
    }
    if kept != Kept::Hidden {
        let dry = run("sync -a -n -i FROM TO", &source, &target);
        assert_eq!(dry.ok().out(), "", "{what}: a dry run sees something to do");
    }
    assert_eq!(run("cp -auvT FROM TO", &source, &target).ok().out(), "", "{what}: cp -u");
    // Back: the coarser times came from these files. A file system that only programs know may need
    // one more run.
    std::fs::create_dir(&back).unwrap();
    run("sync -a FROM TO", &target, &back).ok();
    assert_eq!(run("sync -a -i FROM TO", &target, &back).ok().out(), "", "{what}: back");
    if kept == Kept::Exactly {
        let file = source.join("sub/f4");
        std::fs::write(&file, "Content 4").unwrap();
        set_mtime(&file, S + 4, 500_000_001);
        run("sync -a FROM TO", &source, &target).ok();
        let arrived = std::fs::read_to_string(target.join("sub/f4")).unwrap();
        assert_eq!(arrived, "Content 4", "{what}: another version of the same second");
        std::fs::write(&file, "content 4").unwrap();
        set_mtime(&file, S + 4, 500_000_000);
        run("sync -au FROM TO", &source, &target).ok();
        let kept = std::fs::read_to_string(target.join("sub/f4")).unwrap();
        assert_eq!(kept, "Content 4", "{what}: -u keeps what is newer by a nanosecond");
    }
}

#[test]
fn file_systems_that_keep_every_nanosecond() {
    for fs in Fs::ALL {
        if let Some(area) = Area::new(fs, "granularity of times") {
            trip(fs.name(), area.path(), Kept::Exactly);
        }
    }
}

/// Inodes of 128 bytes have no room for fractions.
#[test]
fn whole_seconds_on_ext4() {
    let volume = Volume::new(Fs::Ext4, 32, &["-I", "128"], "granularity of times");
    if let Some(volume) = volume {
        trip("ext4 with small inodes", volume.path(), Kept::Shown);
        // The other way, from files whose times are older than a finer target's.
        let area = Area::tmpfs();
        let (fine, coarse) = (area.join("fine"), volume.join("coarse"));
        fill(&fine);
        run("sync -a FROM TO", &fine, &coarse).ok();
        assert_eq!(run("sync -a -i FROM TO", &coarse, &fine).ok().out(), "");
    }
}

fn cut<const UNIT: i128>(ns: i128) -> i128 {
    ns - ns.rem_euclid(UNIT)
}

/// As a floating-point number of seconds.
fn float(ns: i128) -> i128 {
    (ns as f64 / 1e9 * 1e9) as i128
}

/// Even seconds, rounded up.
fn up(ns: i128) -> i128 {
    cut::<2_000_000_000>(ns + 1_999_999_999)
}

#[test]
fn file_systems_in_user_space() {
    let units: [(&str, Kept, Keep); 7] = [
        ("100 ns", Kept::Shown, cut::<100>),
        ("1 us", Kept::Shown, cut::<1_000>),
        ("10 ms", Kept::Shown, cut::<10_000_000>),
        ("1 s", Kept::Shown, cut::<1_000_000_000>),
        ("2 s", Kept::Hidden, cut::<2_000_000_000>),
        ("a float", Kept::Hidden, float),
        ("2 s, rounded up", Kept::Hidden, up),
    ];
    let area = Area::tmpfs();
    for (number, (what, kept, keep)) in units.into_iter().enumerate() {
        let Some(mount) = mounted(area.join(&format!("m{number}")), keep, 0) else { return };
        trip(what, mount.path(), kept);
    }
}

/// Whether a new file has its final name while it is being written is a question to the clock of its
/// own file system: half-written it has that clock's time, which must not be its source's.
#[test]
fn the_targets_clock_decides_about_final_names() {
    let area = Area::tmpfs();
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    for (ahead_s, source_s, early) in [
        (-3600, now_s - 1800, false),
        (-3600, now_s - 5400, true),
        (3600, now_s + 1800, true),
        (3600, now_s + 5400, false),
        (0, now_s, false),
        (0, now_s - 1800, true),
    ] {
        let what = format!("{ahead_s} {source_s} {now_s}");
        let Some(mount) = mounted(area.join(&what), |ns| ns, ahead_s) else { return };
        let source = area.join("src");
        std::fs::create_dir_all(&source).unwrap();
        std::fs::write(source.join("file"), vec![1; 3_000_000]).unwrap();
        set_mtime(&source.join("file"), source_s, 0);
        let mut command = Command::new(program());
        command.args(["sync", "-a", "-j1", "--bwlimit=500"]).arg(source.join(""));
        command.arg(mount.path().join("dst")).env("XDG_STATE_HOME", area.join("state"));
        let mut child = command.spawn().unwrap();
        let begun = Instant::now();
        let names = || {
            let names = std::fs::read_dir(mount.path().join("dst")).into_iter().flatten();
            let sizes = names.filter_map(|name| {
                let name = name.ok()?;
                (name.metadata().ok()?.len() > 0).then(|| name.file_name())
            });
            sizes.collect::<Vec<_>>()
        };
        while names().is_empty() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let found = names();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found == ["file"], early, "{what}: {found:?}");
    }
}

/// rsync's rule with a window: what is not older than the source by the window stays.
#[test]
fn newer_targets_with_a_window() {
    for window_s in [0, 1, 2] {
        for newer_s in -3..=3 {
            for text in ["target", "target of another size"] {
                let line = format!("sync -rtu --modify-window={window_s} SRC/ DST");
                case(&line, |c| {
                    for (dir, text, s) in [
                        (c.src(), "source", S),
                        (c.dst(), text, S + newer_s),
                        (c.oracle_dst(), text, S + newer_s),
                    ] {
                        std::fs::create_dir(&dir).unwrap();
                        std::fs::write(dir.join("file"), text).unwrap();
                        set_mtime(&dir.join("file"), s, 0);
                    }
                    c.run().ok();
                    c.oracle().ok();
                    let read = |dir: &Path| std::fs::read_to_string(dir.join("file")).unwrap();
                    let (ours, theirs) = (read(&c.dst()), read(&c.oracle_dst()));
                    assert_eq!(ours, theirs, "{line}, {newer_s} s newer");
                });
            }
        }
    }
}
