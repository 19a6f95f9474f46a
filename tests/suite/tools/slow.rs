//! Trees on a file system where every operation takes some milliseconds: as many operations overlap as are
//! useful, regardless of the number of CPUs. Assertions use counters of the file system, not times.

use crate::common::fuse::{Mount, slow};
use crate::common::skip;
use crate::tools::place::Place;
use crate::wire::server::{Stage, contents};
use std::sync::Arc;
use std::time::Duration;

/// Long beside what the processor needs for an operation, on a busy machine too.
const DELAY: Duration = Duration::from_millis(5);
/// More than twice the CPUs of the machines that these tests have to pass on: workers were as many as CPUs before they
/// were tuned.
const OVERLAP_MIN: u64 = 8;
/// Operations that the file system does at once.
const THREADS: usize = 128;
/// Adaptive concurrency may be delayed by other load on the machine.
const ATTEMPTS: usize = 3;
/// Forty folders of fifty files.
const TREE: &str = r#"
    for d in {10..49}; do mkdir -p $T/$d/sub; for f in {10..59}; do echo $d$f > $T/$d/sub/$f; done; done
"#;

/// A place with a slow tree in `slow/t`, beside whatever a script makes.
pub struct Slow {
    /// Gone before the place is.
    _mount: Mount,
    pub place: Place,
    system: Arc<slow::Slow>,
}

impl Slow {
    pub fn new(script: &str) -> Option<Slow> {
        let place = Place::new();
        let mounted = slow::Slow::mount(place.path().join("slow"), Duration::ZERO, THREADS);
        let (mount, system) = match mounted {
            Ok(mounted) => mounted,
            Err(why) => {
                skip(&format!("slow file systems: {why}"));
                return None;
            }
        };
        place.sh(&format!("T=slow/t; {TREE} {script}"));
        system.set_delay(DELAY);
        system.most_waiting();
        Some(Slow { _mount: mount, place, system })
    }
}

/// Runs `work` on a fresh tree; operations of the file system must overlap. Returns the largest number in
/// flight.
#[track_caller]
fn overlaps(script: &str, work: impl Fn(&Slow) -> u64) {
    let mut most = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(slow) = Slow::new(script) else { return };
        let at_once = work(&slow);
        if at_once >= OVERLAP_MIN {
            return;
        }
        most.push(at_once);
    }
    panic!("at most {most:?} operations at once");
}

#[test]
fn du_overlaps_what_it_waits_for() {
    overlaps("", |slow| {
        let lines = slow.place.run("du -ab slow/t").ok().out();
        let most = slow.system.most_waiting();
        // Cached attributes are not requested again.
        assert_eq!(lines, slow.place.other("du -ab slow/t", b"").out());
        most
    });
}

#[test]
fn a_fixed_number_of_jobs_is_kept() {
    let Some(slow) = Slow::new("rm -r slow/t/[234]?") else { return };
    slow.place.run("du -j 3 slow/t").ok();
    let most = slow.system.most_waiting();
    assert!(most <= 3, "{most} operations at once");
}

#[test]
fn rm_overlaps_what_it_waits_for() {
    overlaps("", |slow| {
        slow.place.run("rm -r slow/t").ok();
        let most = slow.system.most_waiting();
        assert_eq!(slow.place.sh("ls slow"), "");
        most
    });
}

#[test]
fn verify_overlaps_what_it_waits_for() {
    overlaps("cp -a slow/t copy; printf X > copy/20/sub/33", |slow| {
        let found = slow.place.run("verify --no-times slow/t copy");
        found.expect(1);
        assert_eq!(found.out().lines().count(), 1, "{found}");
        assert!(found.out().contains("20/sub/33"), "{found}");
        slow.system.most_waiting()
    });
}

/// The file system does not tell how many inodes it uses, so the need for space is counted. The copy does not wait for
/// that: one thread looks up a name at a time.
#[test]
fn a_copy_begins_before_its_space_is_counted() {
    let mut looked_up = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(slow) = Slow::new("") else { return };
        // Until the kernel has forgotten the names.
        std::thread::sleep(Duration::from_millis(3500));
        slow.system.looked_up();
        slow.place.run("sync -r slow/t/ out/").ok();
        let before = slow.system.looked_up();
        slow.system.set_delay(Duration::ZERO);
        assert!(
            contents(&slow.place.path().join("slow/t")) == contents(&slow.place.path().join("out"))
        );
        // Workers look up about 130, directories and their first files; a second of counting would look up 200 more.
        if before < 200 {
            return;
        }
        looked_up.push(before);
    }
    panic!("{looked_up:?} names were looked up before a file was opened");
}

/// A dry run lists and opens no file: all operations are those of the listing.
#[test]
fn a_tree_is_listed_ahead_for_a_store() {
    let stage = Stage::new();
    let server = stage.serve("");
    overlaps("mkdir $T/empty; for f in {1..2000}; do echo $f > $T/flat$f; done", |slow| {
        let tree = slow.place.path().join("slow/t");
        let dry = server.run(&format!("sync -n -r --json {}/ s3://bkt/p/", tree.display()));
        assert_eq!(dry.ok().summary()["files"], 4000, "{dry}");
        let most = slow.system.most_waiting();
        server.run(&format!("sync -r --delete {}/ s3://bkt/p/", tree.display())).ok();
        slow.system.set_delay(Duration::ZERO);
        assert!(contents(&tree) == contents(&stage.area.join("root/bkt/p")), "contents differ");
        most
    });
}

/// A core of an upload has many connections: none of them waits while a file of another one is opened, looked at
/// again, or closed.
#[test]
fn files_are_opened_side_by_side_for_a_store() {
    let stage = Stage::new();
    let server = stage.serve("");
    overlaps("", |slow| {
        let tree = slow.place.path().join("slow/t");
        drop(server.run("rm -r s3://bkt/p/"));
        server.run(&format!("sync -r -j 32 {}/ s3://bkt/p/", tree.display())).ok();
        let (opening, closing) = (slow.system.most_opening(), slow.system.most_closing());
        slow.system.set_delay(Duration::ZERO);
        assert!(contents(&tree) == contents(&stage.area.join("root/bkt/p")), "contents differ");
        opening.min(closing)
    });
}

/// The same downwards: files are created, written and closed beside the core, and folders made there.
#[test]
fn files_are_made_side_by_side_from_a_store() {
    let stage = Stage::new();
    let server = stage.serve("");
    overlaps("cp -a slow/t up; rm -r slow/t; mkdir slow/t", |slow| {
        let (up, tree) = (slow.place.path().join("up"), slow.place.path().join("slow/t"));
        server.run(&format!("sync -r {}/ s3://bkt/p/", up.display())).ok();
        slow.system.most_waiting();
        let run = server.run(&format!("sync -r -j 32 --json s3://bkt/p/ {}/", tree.display()));
        let most = slow.system.most_waiting();
        slow.system.set_delay(Duration::ZERO);
        assert_eq!(run.ok().summary()["files"], 2000, "{run}");
        assert!(contents(&tree) == contents(&up), "contents differ");
        most
    });
}

/// A large object as well: its core goes on while a range is written.
#[test]
fn ranges_of_an_object_are_written_beside_the_core() {
    let Some(slow) = Slow::new("head -c 40M /dev/urandom > big") else { return };
    let stage = Stage::new();
    let server = stage.serve("");
    let (up, big) = (slow.place.path().join("big"), slow.place.path().join("slow/big"));
    server.run(&format!("cp {} s3://bkt/big", up.display())).ok();
    slow.system.seen();
    server.run(&format!("cp s3://bkt/big {}", big.display())).ok();
    let (_, writes) = slow.system.seen();
    slow.system.set_delay(Duration::ZERO);
    assert!(std::fs::read(&up).unwrap() == std::fs::read(&big).unwrap(), "contents differ");
    // A write waits for its answer: as few of them as the file system's largest allows, and the rests of parts.
    assert!(writes <= 40 + 3 * 5, "{writes} writes");
}
