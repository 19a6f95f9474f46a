//! Random trees, copied and randomly changed, on every pair of file systems: the target must equal the source
//! and the target of rsync or cp.

use crate::common::area::{Area, Fs};
use crate::common::case::Case;
use crate::common::diff::{Fields, diff};
use crate::common::grow::{Plan, grow};
use crate::common::mutate::{Wild, mutate};
use crate::common::snapshot::Snapshot;
use crate::common::xattr::Features;
use crate::common::{first_seed, must, remove_tree, rounds};
use std::process::Command;

/// Attributes that both ends support.
fn features(from: &Area, to: &Area) -> Features {
    let (a, b) = (Features::probe(from.path()), Features::probe(to.path()));
    Features {
        user: a.user && b.user,
        trusted: a.trusted && b.trusted,
        capability: a.capability && b.capability,
        acl: a.acl && b.acl,
        nodes: a.nodes && b.nodes,
        owners: a.owners && b.owners,
    }
}

fn start(line: &str, from: Fs, to: Fs) -> Option<(Case, Plan)> {
    let (from, to) = (Area::new(from, line)?, Area::new(to, line)?);
    let plan = Plan::full(features(&from, &to));
    Some((Case::new(line, from, to), plan))
}

fn sync_round(from: Fs, to: Fs, seed: u64) {
    let Some((mut case, plan)) = start("sync -aHAXS SRC/ DST", from, to) else { return };
    // rsync is not an oracle for ACLs: it loses a group's bits where they equal the mask, and on XFS it
    // takes the second view of an ACL (trusted.SGI_ACL_FILE) for an extraneous attribute. The
    // comparison with the source knows better.
    let theirs = Fields { xattrs: false, mode: false, ..Fields::HOLES };
    grow(&case.src(), seed, &plan);
    case.run().ok();
    case.oracle().ok();
    case.target_is_source(&Fields::ALL);
    case.target_is_oracles(&theirs);
    nothing_to_do(&case);
    for change in 0..3 {
        mutate(&case.src(), seed * 10 + change, 20, &plan, Wild::ALL);
        let delete = if change % 2 == 0 { " --delete" } else { "" };
        case.relabel(&format!("sync -aHAXS{delete} SRC/ DST"));
        let (ours, oracle) = (case.run(), case.oracle());
        if ours.code == 0 {
            holds_the_source(&case, seed);
        }
        if ours.code == 0 && oracle.code != 0 {
            // rsync gives up on some changes of type among directories with ACLs.
            remove_tree(&case.oracle_dst());
            must(Command::new("cp").arg("-a").arg(case.dst()).arg(case.oracle_dst()));
            continue;
        }
        assert_eq!(ours.code, oracle.code, "exit codes, seed {seed}: {ours}\n{oracle}");
        // Without --delete names stay that the source no longer has, also as links of files: whether
        // a new name joins those is up to the program.
        let groups = !delete.is_empty();
        case.target_is_oracles(&Fields { holes: false, groups, ..theirs });
        if !delete.is_empty() {
            case.target_is_source(&Fields::ALL);
            nothing_to_do(&case);
        }
    }
}

/// Everything that the source has is in the target, and is the same.
fn holds_the_source(case: &Case, seed: u64) {
    let source = Snapshot::of(&case.src());
    let target = Snapshot::of(&case.dst()).only(&source);
    let wrong = diff(&source, &target, &Fields::ALL, 10);
    assert!(wrong.is_empty(), "seed {seed}: {}\n  {}", case.line, wrong.join("\n  "));
}

/// A second run prints nothing, moves nothing, and touches no inode.
fn nothing_to_do(case: &Case) {
    let before = Snapshot::of(&case.dst()).ctimes();
    let run = case.run_line("sync -aHAXS -i SRC/ DST");
    assert!(run.ok().items().is_empty(), "a second run did something: {run}");
    assert!(before == Snapshot::of(&case.dst()).ctimes(), "a second run touched inodes: {run}");
}

fn sync_rounds(from: Fs, to: Fs) {
    let first = first_seed(1);
    for seed in first..first + rounds(3) {
        eprintln!("seed {seed}");
        sync_round(from, to, seed);
    }
}

#[test]
fn sync_tmpfs_to_tmpfs() {
    sync_rounds(Fs::Tmpfs, Fs::Tmpfs);
}

#[test]
fn sync_tmpfs_to_ext4() {
    sync_rounds(Fs::Tmpfs, Fs::Ext4);
}

#[test]
fn sync_tmpfs_to_xfs() {
    sync_rounds(Fs::Tmpfs, Fs::Xfs);
}

#[test]
fn sync_tmpfs_to_btrfs() {
    sync_rounds(Fs::Tmpfs, Fs::Btrfs);
}

#[test]
fn sync_ext4_to_ext4() {
    sync_rounds(Fs::Ext4, Fs::Ext4);
}

#[test]
fn sync_xfs_to_xfs() {
    sync_rounds(Fs::Xfs, Fs::Xfs);
}

#[test]
fn sync_btrfs_to_btrfs() {
    sync_rounds(Fs::Btrfs, Fs::Btrfs);
}

#[test]
fn sync_btrfs_to_tmpfs() {
    sync_rounds(Fs::Btrfs, Fs::Tmpfs);
}

#[test]
fn cp_everywhere() {
    for (from, to) in [
        (Fs::Tmpfs, Fs::Tmpfs),
        (Fs::Tmpfs, Fs::Ext4),
        (Fs::Tmpfs, Fs::Xfs),
        (Fs::Tmpfs, Fs::Btrfs),
        (Fs::Xfs, Fs::Xfs),
        (Fs::Btrfs, Fs::Btrfs),
    ] {
        let first = first_seed(100);
        for seed in first..first + rounds(2) {
            eprintln!("seed {seed}");
            let Some((case, plan)) = start("cp -a SRC DST", from, to) else { return };
            grow(&case.src(), seed, &plan);
            case.run().ok();
            case.oracle().ok();
            case.target_is_source(&Fields::HOLES);
            case.target_is_oracles(&Fields::HOLES);
            // Again, onto what is there: the same files written anew.
            mutate(&case.src(), seed, 15, &plan, Wild { types: false, names: true, links: false });
            let again = "cp -aT SRC DST";
            let (ours, theirs) = (case.run_line(again), case.oracle_line(again));
            assert_eq!(ours.code, theirs.code, "exit codes: {ours}\n{theirs}");
            if ours.code == 0 {
                holds_the_source(&case, seed);
            }
            // cp writes into existing inodes: it keeps links among them that the source no longer has,
            // and bits of the mode now and then. Names and contents must agree.
            case.target_is_oracles(&Fields::CONTENT);
        }
    }
}
