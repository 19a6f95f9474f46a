//! SIGKILL at random moments: nothing is lost, no incomplete file passes for complete, and repeating the
//! command completes the target without leftovers. `HAKOBU_KILLS` is the number of kills per command.

use crate::common::area::Fs;
use crate::common::first_seed;
use crate::sweep::fault::run;
use crate::sweep::judge::{Scenario, report};
use crate::sweep::local::{IN_TWO_RUNS, Kind, Local, MV, SYNC};
use crate::sweep::store::Remote;
use crate::wire::server::Stage;
use fastrand::Rng;
use std::process::Stdio;
use std::time::Instant;

/// Runs a command and kills it, again and again.
fn killed(scenario: &dyn Scenario) {
    let wanted = std::env::var("HAKOBU_KILLS").ok().and_then(|text| text.parse().ok());
    let wanted = wanted.unwrap_or(20);
    scenario.prepare();
    let begun = Instant::now();
    run(scenario.command()).ok();
    let whole = begun.elapsed();
    let (mut kills, mut finished, mut wrong, mut seed) = (0, 0, Vec::new(), first_seed(1));
    while kills < wanted {
        let mut rng = Rng::with_seed(seed);
        scenario.prepare();
        let mut what = format!("{}: seed {seed} of {whole:?}", scenario.line());
        let mut found = Vec::new();
        for _ in 0..=rng.u8(..2) {
            let mut command = scenario.command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let delay = whole.mul_f64(rng.f64());
            std::thread::sleep(delay);
            let ended = child.try_wait().unwrap().is_some();
            child.kill().unwrap();
            child.wait().unwrap();
            what.push_str(&format!(", killed after {delay:?}"));
            kills += u64::from(!ended);
            finished += u64::from(ended);
            found.extend(scenario.harm());
        }
        found.extend(scenario.not_healed());
        found.extend(scenario.left_over());
        if !scenario.line().contains("--resume") {
            // Known to the server alone: `mpu abort` finds them.
            found.retain(|found| !found.contains("unfinished upload"));
        }
        if !found.is_empty() {
            wrong.push(format!("{what}: {}", found.join("; ")));
        }
        seed += 1;
        assert!(finished < 10 * wanted, "{}: it ends before it can be killed", scenario.line());
    }
    report("kills", scenario.line(), &format!("{kills} kills, {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn killed_local(kind: Kind) {
    if let Some(local) = Local::new(kind) {
        killed(&local);
    }
}

fn killed_remote(line: &'static str) {
    let stage = Stage::new();
    // Slow enough that there are moments inside a part.
    killed(&Remote::new(&stage, line, "--bandwidth 60MB"));
}

#[test]
fn sync() {
    killed_local(Kind { fs: (Fs::Tmpfs, Fs::Ext4), ..SYNC });
}

#[test]
fn sync_that_removes_sources() {
    let line = "sync -aHAX --remove-source-files -j 2 SRC/ DST";
    let fs = (Fs::Tmpfs, Fs::Ext4);
    killed_local(Kind { line, moves: true, healed: IN_TWO_RUNS, fs, ..SYNC });
}

#[test]
fn mv() {
    killed_local(Kind { fs: (Fs::Tmpfs, Fs::Ext4), ..MV });
}

#[test]
fn upload() {
    killed_remote("sync -rt --resume --part-size=5MiB SRC/ s3://bkt/");
}

#[test]
fn download() {
    killed_remote("sync -rt --resume --part-size=5MiB s3://bkt/ DST/");
}

#[test]
fn mv_up() {
    killed_remote("mv --resume --part-size=5MiB SRC/* s3://bkt/");
}

#[test]
fn mv_down() {
    killed_remote("mv --resume --part-size=5MiB s3://bkt/* DST/");
}
