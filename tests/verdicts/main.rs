//! Why not faster, asked where the answer is known because the test made it. Each rig is a machine
//! with one limit (a throttled disk, a shaped network, a server with a cap, one CPU), moves data
//! for a few seconds against it and reads the verdict in the summary: it names that limit or says
//! "not-determined", and never names another one.
//!
//! `HAKOBU_RIGS=name,name` runs only these; names are those in the table below.

#[path = "../common/mod.rs"]
mod common;

mod disk;
mod fuse;
mod judge;
mod load;
mod local;
mod network;
mod rig;
mod server;
mod undo;

use judge::{Ruling, judge};
use load::Load;
use rig::Trial;

/// A machine with one limit.
struct Rig {
    name: &'static str,
    /// The resources that a verdict may name.
    right: &'static [&'static str],
    /// Whether it is among those of which most have to be named.
    counts: bool,
    /// Makes the limit and moves data against it. An error says why the limit could not be made, or
    /// that it was not reached.
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
    // Who only receives cannot tell a server that sends slowly from what it reads from.
    rig("slow-server", &["server", "source"], server::bandwidth),
    rig("slow-source", &["source"], local::slow_source),
    rig("bwlimit", &["user-limit"], local::bwlimit),
    // With few cores these are used up before workers queue for the directory.
    Rig { counts: false, ..rig("one-directory", &["lock", "cpu"], local::one_directory) },
];

/// All rigs in one test: they disturb each other and what else runs.
#[test]
fn the_limit_that_was_made_is_named() {
    let picked = std::env::var("HAKOBU_RIGS").unwrap_or_default();
    let picked: Vec<&str> = picked.split(',').filter(|name| !name.is_empty()).collect();
    let known = |name: &&str| RIGS.iter().any(|rig| rig.name == *name);
    assert!(picked.iter().all(known), "HAKOBU_RIGS names no rig: {picked:?}");
    let (mut wrong, mut named, mut counted) = (Vec::new(), 0, 0);
    for rig in RIGS.iter().filter(|rig| picked.is_empty() || picked.contains(&rig.name)) {
        // Others take CPUs and disks at times: what is not named is tried once more, and both are
        // shown.
        for is_last in [false, true] {
            let before = Load::now();
            let trial = match (rig.run)() {
                Ok(trial) => trial,
                Err(why) => {
                    if is_last {
                        common::skip(&format!("rig {}: {why}", rig.name));
                    }
                    continue;
                }
            };
            let ruling = judge(&trial.summary, rig.right);
            let others = Load::now().others_since(&before);
            println!("{:16} {:28} {ruling:?}, others {others:.2}", rig.name, trial.note);
            println!("    {}", trial.summary["verdict"]);
            if let Ruling::Named = ruling {
                named += usize::from(rig.counts);
                counted += usize::from(rig.counts);
                break;
            }
            println!("    jobs {}\n{}", trial.summary["jobs_path"], trial.explained);
            if is_last {
                // Where others work, a limit cannot always be told from theirs.
                counted += usize::from(rig.counts && others <= 0.25);
                if let Ruling::Wrong(why) = ruling {
                    wrong.push(format!("{}: {why}", rig.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "wrong verdicts:\n  {}", wrong.join("\n  "));
    assert!(named * 10 >= counted * 8 && named > 0, "only {named} of {counted} limits were named");
}
