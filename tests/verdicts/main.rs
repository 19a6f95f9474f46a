//! Verdicts in situations with a known limit. Each rig sets up one limit (a throttled disk, a shaped network,
//! a server with a cap, one CPU), transfers data against it for a few seconds and checks the verdict in the
//! summary: it must name that limit or be "not-determined", and never name another one.
//!
//! `HAKOBU_RIGS=name,name` runs only these; names are in the table below.
//!
//! Each rig has a variant on a busy machine: other programs use all CPUs. Then a limit that is still the limit may be
//! named, and nothing else. The quick ones run always, all with `HAKOBU_RIGS_BUSY=1`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../suite/common/mod.rs"]
mod common;

mod commands;
mod disk;
mod fuse;
mod judge;
mod load;
mod local;
mod network;
mod rig;
mod server;

use common::machine::Busy;
use judge::{Ruling, judge};
use load::Load;
use rig::Trial;

/// A machine with one limit.
struct Rig {
    name: &'static str,
    /// Resources that a verdict may name.
    right: &'static [&'static str],
    /// True for rigs most of which have to be named.
    counts: bool,
    /// Sets up the limit and transfers data against it. An error means that the limit could not be set up or
    /// reached.
    run: fn() -> Result<Trial, String>,
}

const fn rig(
    name: &'static str,
    right: &'static [&'static str],
    run: fn() -> Result<Trial, String>,
) -> Rig {
    Rig { name, right, counts: true, run }
}

const RIGS: &[Rig] = &[
    rig("one-cpu", &["cpu"], local::one_cpu),
    rig("3000-writes", &["disk-iops"], || disk::small_files(3_000)),
    rig("6000-writes", &["disk-iops"], || disk::small_files(6_000)),
    rig("125-MB-written", &["disk-bandwidth"], || disk::large_files(125_000_000)),
    rig("3000-reads", &["disk-iops"], || disk::cold_reads(3_000)),
    rig("shaped-upload", &["network"], network::upload),
    rig("shaped-download", &["network"], network::download),
    rig("latency", &["latency"], server::latency),
    rig("16-at-once", &["server"], server::cap),
    rig("slow-down", &["server"], server::slow_down),
    // A receiver cannot distinguish a slow server from the server's slow source.
    rig("slow-server", &["server", "source"], server::bandwidth),
    rig("slow-source", &["source"], local::slow_source),
    rig("bwlimit", &["user-limit"], local::bwlimit),
    rig("watch-rsync-one-cpu", &["cpu"], commands::rsync_on_one_cpu),
    rig("watch-cp-one-cpu", &["cpu"], commands::cp_on_one_cpu),
    rig("watch-fio-one-cpu", &["cpu"], commands::fio_on_one_cpu),
    rig("watch-dd-all-cpus", &["cpu"], commands::dd_on_all_cpus),
    rig("watch-dd-quota", &["cpu"], commands::dd_with_a_quota),
    Rig { counts: false, ..rig("watch-short-processes", &["cpu"], commands::short_processes) },
    // If others use the CPUs, these are the limit.
    rig("watch-dd-thread", &["thread", "cpu"], commands::dd_alone),
    rig("watch-rsync-3000-writes", &["disk-iops"], || {
        disk::watched_small_files("rsync -rt", 3_000)
    }),
    rig("watch-cp-3000-writes", &["disk-iops"], || disk::watched_small_files("cp -r", 3_000)),
    rig("watch-dd-125-MB", &["disk-bandwidth"], || disk::watched_large_file(125_000_000)),
    rig("watch-fio-3000-reads", &["disk-iops"], || disk::watched_reads(3_000)),
    rig("watch-slow-peer", &["peer"], commands::slow_peer),
    rig("watch-s5cmd-one-cpu", &["cpu"], commands::s5cmd_on_one_cpu),
    rig("watch-s5cmd-slow-server", &["peer"], commands::s5cmd_from_a_slow_server),
    // No resource of the machine limits, so nothing may be named.
    Rig { counts: false, ..rig("watch-rsync-limited", &[], commands::rsync_with_a_limit) },
    Rig { counts: false, ..rig("watch-rsyncs-limited", &[], commands::rsyncs_with_limits) },
    Rig { counts: false, ..rig("watch-sleep", &[], commands::sleep) },
    // With few cores these are used up before workers queue for the directory.
    Rig { counts: false, ..rig("one-directory", &["lock", "cpu"], local::one_directory) },
];

/// Rigs of some seconds whose verdict on a busy machine was wrong, or must stay right.
const BUSY: [&str; 5] = [
    "bwlimit",
    "watch-dd-thread",
    "watch-short-processes",
    "watch-rsync-limited",
    "watch-rsyncs-limited",
];
/// Fewest limits to be named on a busy machine, where all rigs can be set up.
const NAMED_BUSY_MIN: usize = 10;

/// Rigs of `HAKOBU_RIGS`; all if it is not set.
fn picked() -> Vec<&'static Rig> {
    let picked = std::env::var("HAKOBU_RIGS").unwrap_or_default();
    let picked: Vec<&str> = picked.split(',').filter(|name| !name.is_empty()).collect();
    let known = |name: &&str| RIGS.iter().any(|rig| rig.name == *name);
    assert!(picked.iter().all(known), "HAKOBU_RIGS names no rig: {picked:?}");
    RIGS.iter().filter(|rig| picked.is_empty() || picked.contains(&rig.name)).collect()
}

/// Held by the test that uses the machine.
static MACHINE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The same while other programs use all CPUs.
#[test]
fn on_a_busy_machine_nothing_else_is_named() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all = common::is_set("HAKOBU_RIGS_BUSY");
    let (mut wrong, mut named, mut tried) = (Vec::new(), Vec::new(), 0);
    for rig in picked().iter().filter(|rig| all || BUSY.contains(&rig.name)) {
        let busy = Busy::all_cpus();
        let before = Load::now();
        let trial = (rig.run)();
        let others = Load::now().others_since(&before);
        drop(busy);
        let trial = match trial {
            Ok(trial) => trial,
            // Without a CPU of its own a program may not reach the limit.
            Err(why) => {
                println!("busy {:20} {why}, others {others:.2}", rig.name);
                continue;
            }
        };
        tried += 1;
        let ruling = judge(&trial.summary, rig.right);
        println!("busy {:20} {:28} {ruling:?}, others {others:.2}", rig.name, trial.note);
        println!("    {}", trial.summary["verdict"]);
        match ruling {
            Ruling::Named => named.push(rig.name),
            Ruling::Open => {}
            Ruling::Wrong(why) => wrong.push(format!("{}: {why}\n{}", rig.name, trial.explained)),
        }
    }
    println!("busy: {} of {tried} named: {named:?}", named.len());
    assert!(wrong.is_empty(), "wrong verdicts:\n  {}", wrong.join("\n  "));
    let enough = named.len() >= NAMED_BUSY_MIN;
    assert!(enough || !all || tried < RIGS.len() - 4, "only {} of {tried} were named", named.len());
}

/// All rigs in one test, because they disturb each other and other tests.
#[test]
fn the_limit_that_was_made_is_named() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (mut wrong, mut named, mut counted) = (Vec::new(), 0, 0);
    for rig in picked() {
        // Others use CPUs and disks at times: an undetermined verdict is repeated once, a wrong one is wrong if it is wrong
        // twice. All are printed.
        let (mut open, mut mistakes, mut others) = (0, 0, 0.0);
        while open < 2 && mistakes < 2 {
            let before = Load::now();
            let trial = (rig.run)();
            others = Load::now().others_since(&before);
            let trial = match trial {
                Ok(trial) => trial,
                Err(why) => {
                    println!("{}: {why}, others {others:.2}", rig.name);
                    open += 1;
                    // A limit that was not reached because of others is not a failure of this machine.
                    if open == 2 && others <= 0.15 {
                        common::skip(&format!("rig {}: {why}", rig.name));
                    }
                    others = 1.0;
                    continue;
                }
            };
            let ruling = judge(&trial.summary, rig.right);
            println!("{:16} {:28} {ruling:?}, others {others:.2}", rig.name, trial.note);
            println!("    {}", trial.summary["verdict"]);
            match ruling {
                Ruling::Named => break,
                Ruling::Open if rig.right.is_empty() => break,
                Ruling::Open => open += 1,
                Ruling::Wrong(why) => {
                    mistakes += 1;
                    if mistakes == 2 {
                        wrong.push(format!("{}: {why}", rig.name));
                    }
                }
            }
            println!("    jobs {}\n{}", trial.summary["jobs_path"], trial.explained);
        }
        let is_named = open < 2 && mistakes < 2 && !rig.right.is_empty();
        named += usize::from(rig.counts && is_named);
        // With other load a limit cannot always be distinguished from it.
        counted += usize::from(rig.counts && (is_named || others <= 0.15));
    }
    println!("{named} of {counted} limits were named");
    assert!(wrong.is_empty(), "wrong verdicts:\n  {}", wrong.join("\n  "));
    assert!(named * 10 >= counted * 8 && named > 0, "only {named} of {counted} limits were named");
}

/// System settings that rigs change are restored.
#[test]
fn what_was_done_is_undone() {
    let area = common::area::Area::tmpfs();
    let mark = area.join("mark");
    let undo = common::machine::Undo::new(&format!("echo undone >{}", mark.display()));
    assert!(!mark.exists());
    drop(undo);
    assert_eq!(std::fs::read_to_string(mark).unwrap(), "undone\n");
}
