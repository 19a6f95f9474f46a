//! A repeated command does nothing: no output, no file in the summary, no inode touched. Users repeat a sync
//! to be sure, which must not enlarge snapshots and backups.

use crate::common::area::{Area, Fs};
use crate::common::case::{Case, case};
use crate::common::grow::{Plan, grow};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use serde_json::Value;

fn second_run(fs: Fs, line: &str) {
    let (Some(from), Some(to)) = (Area::new(Fs::Tmpfs, line), Area::new(fs, line)) else { return };
    let plan = Plan { hostile: true, ..Plan::full(Features::probe(to.path())) };
    let case = Case::new(line, from, to);
    grow(&case.src(), 7, &plan);
    std::fs::create_dir(case.dst()).unwrap();
    case.run().ok();
    let before = Snapshot::of(&case.dst());
    assert!(before.entries.len() > 50, "nothing was copied: {line}");
    let run = case.run_line(&format!("{line} -i"));
    assert!(run.ok().items().is_empty(), "a second run did something: {run}");
    let run = case.run_line(&format!("{line} --json"));
    let summary = run.ok().out().lines().last().map(str::to_owned).unwrap_or_default();
    let summary: Value = serde_json::from_str(&summary).expect("a JSON summary");
    assert_eq!(summary["files"], 0, "{run}");
    assert_eq!(summary["bytes"], 0, "{run}");
    assert_eq!(summary["deleted"], 0, "{run}");
    let after = Snapshot::of(&case.dst());
    assert!(before.ctimes() == after.ctimes(), "a second run touched inodes: {line}");
}

macro_rules! second_runs {
    ($($name:ident: $line:literal)*) => {$(
        #[test]
        fn $name() {
            for fs in Fs::ALL {
                second_run(fs, $line);
            }
        }
    )*};
}

second_runs! {
    archive: "sync -a SRC/ DST"
    archive_with_all_attributes: "sync -aHAX SRC/ DST"
    archive_with_holes: "sync -aHAXS --delete SRC/ DST"
    checksum: "sync -ac SRC/ DST"
    relative: "sync -aR SRC/./ DST"
    links_and_times: "sync -rlt SRC/ DST"
    into_the_target: "sync -aH SRC DST"
    size_only: "sync -rl --size-only SRC/ DST"
    delete_after: "sync -a --delete-after SRC/ DST"
    numeric: "sync -aAX --numeric-ids --no-owner SRC/ DST"
}

/// Only the nanoseconds differ: with a window the rule is rsync's, which compares whole seconds
/// unless told otherwise.
#[test]
fn fractions_of_a_second() {
    for line in ["sync -a -i --modify-window=0 SRC/ DST", "sync -a -i --modify-window=-1 SRC/ DST"]
    {
        case(line, |c| {
            for dir in [c.src(), c.dst(), c.oracle_dst()] {
                std::fs::create_dir(&dir).unwrap();
                std::fs::write(dir.join("file"), "same").unwrap();
                let ns = if dir == c.src() { 5 } else { 999 };
                crate::common::grow::set_mtime(&dir.join("file"), 1_000_000_000, ns);
                crate::common::grow::set_mtime(&dir, 1_000_000_000, 0);
            }
            let (ours, theirs) = (c.run(), c.oracle());
            assert_eq!(ours.ok().out(), theirs.ok().out(), "{ours}");
            c.target_is_oracles(&crate::common::diff::Fields::ALL);
        });
    }
}
