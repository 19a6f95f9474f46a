//! `--bwlimit` and `--joblog` in every command that supports them.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case_on};
use crate::common::clock::Clock;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SIZE: usize = 16 << 20;

fn source(c: &Case) {
    crate::cli::arguments::files(&c.src(), &["a", "d/b", "d/tab\there"]);
    std::fs::write(c.src().join("large"), vec![b'x'; SIZE]).unwrap();
}

/// Two seconds of work: never more than a tenth too fast, and (in the best of three, as other
/// programs may be in the way) never more than a tenth too slow.
fn mean_rate(line: &str) {
    let mut slowest = Vec::new();
    for _ in 0..3 {
        let mut rate = 0.0;
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            source(c);
            let begun = Instant::now();
            c.run().ok();
            rate = SIZE as f64 / begun.elapsed().as_secs_f64() / f64::from(8 << 20);
            assert!(rate <= 1.1, "{rate:.3} of the rate: {line}");
            let target = c.dst().join("large");
            assert_eq!(std::fs::metadata(target).unwrap().len(), SIZE as u64);
        });
        if rate == 0.0 || rate >= 0.9 {
            return; // skipped aloud, or good
        }
        slowest.push(rate);
    }
    panic!("{slowest:.3?} of the rate: {line}");
}

#[test]
fn bandwidth_of_sync() {
    mean_rate("sync -a --bwlimit=8m SRC/ DST");
}

/// The rate changes while the transfer runs: slow until the next minute begins, then without limit.
#[test]
fn bandwidth_by_time_of_day() {
    let now_s = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_secs()
    };
    let area = Area::tmpfs();
    let Some(clock) = Clock::new(&area) else { return };
    // For the program it is eight seconds before the end of a minute.
    let ahead_s = 60 + 52 - now_s() % 60;
    let now_s = || now_s() + ahead_s;
    let minute = now_s() / 60;
    let time = |minute: u64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    let table = format!("{},512K;{},off", time(minute), time(minute + 1));
    let line = format!("sync -a --bwlimit={table} SRC/ DST");
    case_on(Fs::Tmpfs, Fs::Tmpfs, &line, |c| {
        source(c);
        let mut command = std::process::Command::new(crate::common::program());
        command.args(c.words(&line, &c.dst())).env("TZ", "UTC");
        clock.set(&mut command, "CLOCK_AHEAD_S", ahead_s);
        let (begun, left) = (Instant::now(), 60 - now_s() % 60);
        crate::common::case::Run::new(line.clone(), command.output().unwrap()).ok();
        let took = begun.elapsed();
        if !clock.was_used() {
            return;
        }
        assert!(
            took + Duration::from_millis(1500) > Duration::from_secs(left),
            "{took:?} of {left}"
        );
        // At the rate of the first minute it would take 32 s.
        assert!(took < Duration::from_secs(left + 6), "{took:?}, {left} s before the change");
        assert_eq!(std::fs::metadata(c.dst().join("large")).unwrap().len(), SIZE as u64);
    });
}

#[test]
fn bandwidth_of_sync_with_many_jobs() {
    mean_rate("sync -a -j 8 --bwlimit=8192 SRC/ DST");
}

#[test]
fn bandwidth_of_cp() {
    mean_rate("cp -r --bwlimit=8m SRC DST");
}

#[test]
fn bandwidth_of_mv() {
    mean_rate("mv --bwlimit=8m SRC DST");
}

/// Bytes in the files of a folder.
fn bytes_in(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

/// The most by which a folder grew in any second while `work` ran.
fn grows_in_a_second(dir: &Path, work: impl FnOnce()) -> u64 {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let bytes = bytes_in(dir);
                seen.push((begun, bytes, Instant::now()));
                std::thread::sleep(Duration::from_millis(20));
            }
            let growth = |from: &(Instant, u64, Instant)| {
                // From before the first look until after the last one: no more than a second.
                let until = from.0 + Duration::from_secs(1);
                let last = seen.iter().rev().find(|(_, _, ended)| *ended <= until);
                last.map_or(0, |(_, bytes, _)| bytes.saturating_sub(from.1))
            };
            seen.iter().map(growth).max().unwrap_or_default()
        });
        work();
        over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    })
}

/// Three seconds of files that are smaller than what is granted at once: no second is above the
/// rate by more than a tenth, the mean is right (in the best of three), and waiting costs nothing.
fn smooth(line: &str) {
    const RATE: f64 = (2 << 20) as f64;
    const FILES: usize = 200;
    const FILE_BYTES: usize = 32 << 10;
    let mut means = Vec::new();
    for _ in 0..3 {
        let mut mean = 0.0;
        case_on(Fs::Tmpfs, Fs::Tmpfs, line, |c| {
            std::fs::create_dir(c.src()).unwrap();
            for n in 0..FILES {
                std::fs::write(c.src().join(n.to_string()), vec![n as u8; FILE_BYTES]).unwrap();
            }
            let (begun, dst) = (Instant::now(), c.dst());
            let most = grows_in_a_second(&dst, || {
                let summary = c.run().ok().summary();
                let cpu_s = ["user_s", "sys_s"].map(|name| summary[name].as_f64().unwrap());
                assert!(cpu_s.iter().sum::<f64>() < 0.3, "{cpu_s:?} s of CPU: {line}");
            });
            mean = (FILES * FILE_BYTES) as f64 / begun.elapsed().as_secs_f64() / RATE;
            assert_eq!(bytes_in(&dst), (FILES * FILE_BYTES) as u64);
            assert!(most as f64 <= 1.1 * RATE, "{most} bytes in a second: {line}");
            assert!(mean <= 1.03, "{mean:.3} of the rate: {line}");
        });
        if mean >= 0.95 {
            return;
        }
        means.push(mean);
    }
    panic!("{means:.3?} of the rate: {line}");
}

#[test]
fn bandwidth_is_smooth() {
    smooth("sync -a -j 1 --json --bwlimit=2m SRC/ DST");
}

#[test]
fn bandwidth_is_smooth_with_many_jobs() {
    smooth("sync -a -j 16 --json --bwlimit=2m SRC/ DST");
}

#[test]
fn job_logs_of_cp_and_mv() {
    for line in ["cp -r --joblog LIST SRC DST", "mv --joblog LIST SRC DST"] {
        case_on(Fs::Tmpfs, Fs::Ext4, line, |c| {
            source(c);
            c.run().ok();
            let log = std::fs::read_to_string(c.list()).unwrap();
            let mut lines = log.lines();
            let head = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand";
            assert_eq!(lines.next(), Some(head));
            let rows: Vec<Vec<&str>> = lines.map(|line| line.splitn(9, '\t').collect()).collect();
            assert_eq!(rows.len(), 4, "one line for each file: {log}");
            let mut numbers: Vec<u64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, [1, 2, 3, 4], "{log}");
            for row in &rows {
                assert!(row[2].trim().parse::<f64>().unwrap() > 1e9, "{row:?}");
                assert!(row[3].trim().parse::<f64>().unwrap() >= 0.0, "{row:?}");
                assert_eq!((row[6], row[7]), ("0", "0"), "{row:?}");
            }
            let sizes = |row: &Vec<&str>| row[4].trim().parse::<u64>().unwrap();
            let large = rows.iter().find(|row| row[8].contains("large")).expect("the large file");
            assert!(sizes(large) == SIZE as u64 || large[5] == SIZE.to_string(), "{log}");
        });
    }
}

#[test]
fn job_logs_have_failures() {
    case_on(Fs::Tmpfs, Fs::Tmpfs, "cp -r --joblog LIST SRC/. DST", |c| {
        crate::cli::arguments::files(&c.src(), &["good", "bad"]);
        crate::cli::arguments::files(&c.dst(), &["bad/in/the/way"]);
        c.run().expect(1);
        let log = std::fs::read_to_string(c.list()).unwrap();
        let failed: Vec<&str> =
            log.lines().skip(1).filter(|line| line.split('\t').nth(6) != Some("0")).collect();
        assert_eq!(failed.len(), 1, "{log}");
        assert!(failed[0].contains("bad"), "{log}");
    });
}
