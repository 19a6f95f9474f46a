//! Random option sets on random pairs of trees, compared with rsync: exit code and trees must be equal. Seeds
//! are fixed; `HAKOBU_GENERATED=all` runs all thousand of them (`500` so many), `HAKOBU_SEED` one. Intended differences
//! (docs/differences.md) are not generated.

use crate::common::area::Area;
use crate::common::case::Case;
use crate::common::diff::{Fields, diff};
use crate::common::grow::{Plan, grow};
use crate::common::mutate::{Wild, mutate};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use crate::common::{have, must, remove_tree};
use crate::oracle::options::now;
use fastrand::Rng;
use std::path::Path;
use std::process::Command;

/// Tests among which the seeds are divided.
const PARTS: u64 = 4;

/// One of these in each line, more often the first ones.
const BASES: &[&str] = &["-a", "-a", "-a", "-rlpt", "-rt", "-r", "-rlt", "-rlD", "-rpgo", "-dlt"];

/// Options that go with all others, each in some lines.
const ALONE: &[&str] = &[
    "-H",
    "-S",
    "-O",
    "-J",
    "-E",
    "-W",
    "-x",
    "-xx",
    "-m",
    "--force",
    "--fsync",
    "--numeric-ids",
    "--ignore-errors",
    "--safe-links",
    "--copy-unsafe-links",
    "--chmod=u+rwX,go-w",
    "--chmod=D755,F640",
    "--chmod=o=u",
    "--chown=1000:1001",
    "--usermap=0:1000,1000:0",
    "--no-super",
    "--no-perms",
    "--no-times",
    "--no-links",
    "--no-D",
    "--max-size=10k",
    "--min-size=100",
    "--modify-window=1",
    "--exclude=*1*",
    "--exclude=/*5*/",
    "--include=*2* --exclude=*4*",
    "--filter='P *3'",
    "--filter='H *6'",
    "--filter='R *7'",
    "-n",
    "--mkpath",
    "--drop-D",
    "--remove-source-files",
];

/// Options of which a line has at most one of each group.
const GROUPS: &[&[&str]] = &[
    &["-c", "-u", "-I", "--size-only", "-cu", "-uI"],
    &["--existing", "--ignore-non-existing"],
    &[
        "--delete",
        "--delete-before",
        "--delete-after",
        "--del",
        "--delete-excluded",
        "--delete-delay",
    ],
    &["-b", "-b --suffix=.old", "--backup-dir=DST.bak", "--backup-dir=DST.bak --suffix=.x"],
    &["--link-dest=OLD", "--copy-dest=OLD", "--compare-dest=OLD"],
    &[
        "--inplace",
        "--delay-updates",
        "--partial-dir=.part",
        "--partial",
        "--append",
        "--append-verify",
    ],
];

/// Selection of copied entries.
const PLACES: &[&str] =
    &["SRC/ DST", "SRC/ DST", "SRC/ DST", "SRC DST", "SRC/ DST/new", "SRC/ DST/new/", "SRC/. DST/"];

/// A command line.
fn line(rng: &mut Rng) -> String {
    let mut words = vec!["sync", BASES[rng.usize(..BASES.len())]];
    for option in ALONE {
        if rng.usize(..12) == 0 {
            words.push(option);
        }
    }
    for group in GROUPS {
        if rng.usize(..4) == 0 {
            words.push(group[rng.usize(..group.len())]);
        }
    }
    words.push(PLACES[rng.usize(..PLACES.len())]);
    words.join(" ")
}

/// Whether the two differ here on purpose (docs/differences.md), or rsync's own result depends on its order.
fn is_excused(line: &str) -> bool {
    let has = |text: &str| line.contains(text);
    // The tree beside the target is what rsync compares sizes with, also where it will not read it.
    (has("--append") && has("OLD"))
        // rsync 3.5.0 writes zeroes over what it appends to.
        || (has("--append") && has(" -S"))
        // Another name of a file that was written into is as it should be, or not yet.
        || ((has("--append") || has("--inplace")) && (has(" -b") || has("--backup-dir")))
        // Entries replaced by a link into another tree get a backup here; entries that only look the same are
        // copied from the source.
        || (has("OLD") && (has(" -b") || has("--backup-dir") || has("--size-only")))
        || (has("-dlt") && has(" -n "))
        // rsync leaves links that lead to what it has removed.
        || (has("--remove-source-files") && has("--copy-unsafe-links"))
        // Dangling links below what the target does not have are told by rsync's sender.
        || (has("-existing") && has("--copy-unsafe-links"))
}

fn copy(from: &Path, to: &Path) {
    must(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Where the ends of a transfer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Here,
    /// The source is on another machine.
    SourceThere,
    TargetThere,
}

impl Ends {
    /// The line as the program under test gets it.
    fn line(self, line: &str, shell: &str) -> String {
        let there = match self {
            Ends::Here => return line.to_owned(),
            Ends::SourceThere => line.replace(" SRC", " h:SRC"),
            Ends::TargetThere => line.replace(" DST", " h:DST"),
        };
        there.replacen("sync", &format!("sync -e {shell}"), 1)
    }
}

/// Grows the trees of a seed, and runs both programs. What differs comes back as text.
pub fn differs(seed: u64, ends: Ends) -> Option<String> {
    let mut rng = Rng::with_seed(seed);
    let line = loop {
        let line = line(&mut rng);
        if !is_excused(&line) {
            break line;
        }
    };
    let case = Case::new(&line, Area::tmpfs(), Area::tmpfs());
    let beside = Area::tmpfs();
    let shell = crate::remote::shell(&beside, "");
    // rsync is not an oracle for ACLs (see `random.rs`).
    let (user, trusted, capability, acl) = (false, false, false, false);
    let features = Features { user, trusted, capability, acl, nodes: true, owners: true };
    let plan = Plan { entries: 30, hostile: false, size_max: 40_000, ..Plan::full(features) };
    grow(&case.src(), seed, &plan);
    for (tree, changes) in [(case.dst(), 12), (case.old(), 8)] {
        copy(&case.src(), &tree);
        mutate(&tree, seed + changes, changes as usize, &plan, Wild::ALL);
    }
    mutate(&case.src(), seed, 8, &plan, Wild::ALL);
    copy(&case.dst(), &case.oracle_dst());
    let saved = case.place("saved");
    copy(&case.src(), &saved);
    let recent_s = now() - 1;
    let ours = case.run_line(&ends.line(&line, &shell.display().to_string()));
    let source = Snapshot::of(&case.src());
    if line.contains("--remove-source-files") {
        remove_tree(&case.src());
        copy(&saved, &case.src());
    }
    let theirs = case.oracle();
    let mut wrong = Vec::new();
    if ours.code != theirs.code {
        let texts = (ours.err(), theirs.err());
        wrong.push(format!("exit code {} instead of {}: {texts:?}", ours.code, theirs.code));
    }
    let groups = line.contains("-H");
    // If modes are not kept, rsync takes them from another tree, or from what was in the way.
    let keeps_modes = ["-a", "-rlpt", "-rpgo"].iter().any(|base| line.contains(base));
    let mode = keeps_modes && !line.contains("--no-perms")
        || !["OLD", "-rlD", "-H"].iter().any(|text| line.contains(text));
    let fields = Fields { recent_s, groups, mode, ..Fields::ALL };
    let bak = |tree: &Path| tree.with_extension("bak");
    for (what, ora, own) in [
        ("", case.oracle_dst(), case.dst()),
        ("backups: ", bak(&case.oracle_dst()), bak(&case.dst())),
    ] {
        let fields = match what {
            "" => fields,
            // Modes of folders there are those that the target had, not those that it got.
            _ => Fields { dir_times: false, mode: false, owner: false, groups: false, ..fields },
        };
        match (ora.exists(), own.exists()) {
            (true, true) => {
                let lines = diff(&Snapshot::of(&ora), &Snapshot::of(&own), &fields, 8);
                wrong.extend(lines.iter().map(|line| format!("{what}{line}")));
            }
            (false, false) => {}
            (there, _) => wrong.push(format!("{what}rsync's is there: {there}")),
        }
    }
    let left = diff(&Snapshot::of(&case.src()), &source, &Fields { groups: false, ..fields }, 5);
    wrong.extend(left.iter().map(|text| format!("source: {text}")));
    (!wrong.is_empty())
        .then(|| format!("seed {seed}, {ends:?}: {line}\n    {}", wrong.join("\n    ")))
}

/// The seeds that are wanted: `few` without the variables of the environment.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let of = |name| std::env::var(name).ok();
    let count = match of("HAKOBU_GENERATED").as_deref() {
        Some("all") => 1000,
        Some(count) => count.parse().unwrap(),
        None => few,
    };
    match of("HAKOBU_SEED").and_then(|text| text.parse().ok()) {
        Some(only) => only..only + 1,
        None => 0..count,
    }
}

fn part(number: u64) {
    if !have("rsync", "random options beside rsync") {
        return;
    }
    let mine: Vec<u64> = seeds(100).filter(|seed| seed % PARTS == number).collect();
    let failed: Vec<_> = mine.iter().filter_map(|seed| differs(*seed, Ends::Here)).collect();
    assert!(
        failed.is_empty(),
        "{} of {} differ from rsync:\n  {}",
        failed.len(),
        mine.len(),
        failed.join("\n  ")
    );
}

#[test]
fn random_options_first() {
    part(0);
}

#[test]
fn random_options_second() {
    part(1);
}

#[test]
fn random_options_third() {
    part(2);
}

#[test]
fn random_options_fourth() {
    part(3);
}
