//! The pure function that decides what happens to an entry, and how rsync would itemize it.

use super::{Grain, Policy, Symlinks, is_newer, same_time};
use hakobu_core::unit::{Kind, Meta};

/// The action for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The target does not exist: create it.
    Create,
    /// Replace the target (regular files: content; others: created anew).
    Update,
    /// The content is right; attributes may differ.
    Metadata,
    /// Sizes are equal and `--checksum` requires a comparison of contents.
    Compare,
    /// Do nothing.
    Skip(Reason),
}

/// Reason for a skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `--existing` and the target does not exist.
    NotExisting,
    /// `--ignore-existing` and the target exists.
    Existing,
    /// `--update` and the target is newer.
    Newer,
    /// Larger than `--max-size`.
    TooLarge,
    /// Smaller than `--min-size`.
    TooSmall,
    /// A symlink without `--links`.
    Symlink,
    /// A device, FIFO or socket without `--devices` or `--specials`.
    NonRegular,
    /// A device, which only the superuser may create.
    Privileged,
    /// A directory without `--recursive` or `--dirs`.
    Directory,
}

/// Returns the action for an entry from the metadata of source and target.
///
/// `source` is the entry to transfer (after following a symlink if the policy says so); `target` is `None` if it does
/// not exist; `grain` is the coarser granularity of their times, where it matters. Attributes are compared later,
/// with the entry open.
pub fn decide(source: &Meta, target: Option<&Meta>, policy: &Policy, grain: Grain) -> Action {
    match source.kind {
        // Only a file that stands for a symlink is left of those that are followed.
        Kind::Symlink if policy.symlinks != Symlinks::Keep => return Action::Skip(Reason::Symlink),
        kind if kind.is_device() && !policy.devices => return Action::Skip(Reason::NonRegular),
        kind if kind.is_special() && !policy.specials => return Action::Skip(Reason::NonRegular),
        Kind::Dir if !policy.recurse && !policy.dirs => return Action::Skip(Reason::Directory),
        Kind::File => {
            if policy.max_size.is_some_and(|max| source.size > max) {
                return Action::Skip(Reason::TooLarge);
            }
            if policy.min_size.is_some_and(|min| source.size < min) {
                return Action::Skip(Reason::TooSmall);
            }
        }
        _ => {}
    }
    let Some(target) = target else {
        return if policy.existing { Action::Skip(Reason::NotExisting) } else { Action::Create };
    };
    if source.kind == Kind::Dir {
        return if target.kind == Kind::Dir { Action::Metadata } else { Action::Update };
    }
    if policy.ignore_existing {
        return Action::Skip(Reason::Existing);
    }
    if source.kind != target.kind {
        return Action::Update;
    }
    if policy.update && source.kind == Kind::File {
        let newer = is_newer(target.mtime, source.mtime, policy.modify_window_s, grain);
        if newer.unwrap_or(policy.update_same) {
            return Action::Skip(Reason::Newer);
        }
    }
    compare(source, target, policy, grain)
}

/// Decides whether two entries of one kind have the same content, ignoring the options about existing targets.
pub fn compare(source: &Meta, target: &Meta, policy: &Policy, grain: Grain) -> Action {
    match source.kind {
        _ if source.kind != target.kind => Action::Update,
        Kind::File => decide_file(source, target, policy, grain),
        // The text of a symlink is compared by the engine, which has to read it anyway.
        Kind::Symlink => Action::Compare,
        Kind::CharDevice | Kind::BlockDevice if source.rdev != target.rdev => Action::Update,
        _ => Action::Metadata,
    }
}

fn decide_file(source: &Meta, target: &Meta, policy: &Policy, grain: Grain) -> Action {
    if source.size != target.size {
        return Action::Update;
    }
    if policy.checksum {
        return Action::Compare;
    }
    if policy.size_only {
        return Action::Metadata;
    }
    if policy.newer_only && !policy.ignore_times {
        // Compare nanoseconds although the target's time may be rounded down to a second: the source may have been
        // written in the second of its upload, after the upload.
        let mut known = target.mtime;
        known.s = known.s.saturating_add(policy.modify_window_s.unwrap_or(0).max(0));
        let stale = source.mtime > known;
        return if stale { Action::Update } else { Action::Metadata };
    }
    let same = same_time(source.mtime, target.mtime, policy.modify_window_s, grain);
    if policy.ignore_times || !same { Action::Update } else { Action::Metadata }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::Time;
    use proptest::prelude::*;

    /// Decides for file systems with nanosecond times.
    fn decide(source: &Meta, target: Option<&Meta>, policy: &Policy) -> Action {
        super::decide(source, target, policy, Grain::NS)
    }

    fn meta(kind: Kind, size: u64, s: i64, ns: u32) -> Meta {
        Meta { mode: 0o644, dev: 1, ino: 2, ..Meta::bare(kind, size, Time { s, ns }) }
    }

    fn file(size: u64, s: i64) -> Meta {
        meta(Kind::File, size, s, 0)
    }

    /// Policy of `sync -a`.
    fn archive() -> Policy {
        Policy {
            recurse: true,
            symlinks: Symlinks::Keep,
            devices: true,
            specials: true,
            ..Policy::default()
        }
    }

    type Change = fn(&mut Policy);

    #[test]
    fn files_that_exist() {
        let plain: Change = |_| ();
        let table: &[(&str, Change, (u64, i64), Action)] = &[
            ("same", plain, (5, 100), Action::Metadata),
            ("other size", plain, (6, 100), Action::Update),
            ("target older", plain, (5, 99), Action::Update),
            ("target newer", plain, (5, 101), Action::Update),
            ("-u, older", |p| p.update = true, (5, 99), Action::Update),
            ("-u, newer", |p| p.update = true, (5, 101), Action::Skip(Reason::Newer)),
            ("-u, newer and larger", |p| p.update = true, (9, 101), Action::Skip(Reason::Newer)),
            ("-u, same time, other size", |p| p.update = true, (9, 100), Action::Update),
            ("-u, same", |p| p.update = true, (5, 100), Action::Metadata),
            (
                "cp -u, same time, other size",
                |p| (p.update, p.update_same, p.ignore_times) = (true, true, true),
                (9, 100),
                Action::Skip(Reason::Newer),
            ),
            (
                "cp -u, older",
                |p| (p.update, p.update_same, p.ignore_times) = (true, true, true),
                (5, 99),
                Action::Update,
            ),
            ("-c, same", |p| p.checksum = true, (5, 100), Action::Compare),
            ("-c, other time", |p| p.checksum = true, (5, 7), Action::Compare),
            ("-c, other size", |p| p.checksum = true, (6, 100), Action::Update),
            ("-I, same", |p| p.ignore_times = true, (5, 100), Action::Update),
            (
                "-I -u, newer",
                |p| (p.ignore_times, p.update) = (true, true),
                (5, 101),
                Action::Skip(Reason::Newer),
            ),
            (
                "-I --size-only",
                |p| (p.ignore_times, p.size_only) = (true, true),
                (5, 7),
                Action::Metadata,
            ),
            ("--size-only, other time", |p| p.size_only = true, (5, 7), Action::Metadata),
            (
                "-c --size-only",
                |p| (p.checksum, p.size_only) = (true, true),
                (5, 100),
                Action::Compare,
            ),
            ("--size-only, other size", |p| p.size_only = true, (6, 100), Action::Update),
            (
                "--size-only -u, newer",
                |p| (p.size_only, p.update) = (true, true),
                (5, 101),
                Action::Skip(Reason::Newer),
            ),
            ("window 1, 1 s", |p| p.modify_window_s = Some(1), (5, 101), Action::Metadata),
            ("window 1, 2 s", |p| p.modify_window_s = Some(1), (5, 102), Action::Update),
            (
                "window 2 -u, 2 s newer",
                |p| (p.modify_window_s, p.update) = (Some(2), true),
                (5, 102),
                Action::Skip(Reason::Newer),
            ),
            (
                "window 1 -u, 1 s newer, other size",
                |p| (p.modify_window_s, p.update) = (Some(1), true),
                (9, 101),
                Action::Skip(Reason::Newer),
            ),
            (
                "window 1 -u, 1 s older, other size",
                |p| (p.modify_window_s, p.update) = (Some(1), true),
                (9, 99),
                Action::Update,
            ),
            (
                "window 2 -u, 3 s newer",
                |p| (p.modify_window_s, p.update) = (Some(2), true),
                (5, 103),
                Action::Skip(Reason::Newer),
            ),
            ("--existing", |p| p.existing = true, (6, 100), Action::Update),
            (
                "--ignore-existing",
                |p| p.ignore_existing = true,
                (6, 7),
                Action::Skip(Reason::Existing),
            ),
            ("--max-size=4", |p| p.max_size = Some(4), (6, 7), Action::Skip(Reason::TooLarge)),
            ("--max-size=5", |p| p.max_size = Some(5), (6, 7), Action::Update),
            ("--min-size=5", |p| p.min_size = Some(5), (6, 7), Action::Update),
            ("--min-size=6", |p| p.min_size = Some(6), (6, 7), Action::Skip(Reason::TooSmall)),
        ];
        for (what, change, (size, time), expected) in table {
            let mut policy = archive();
            change(&mut policy);
            let action = decide(&file(5, 100), Some(&file(*size, *time)), &policy);
            assert_eq!(action, *expected, "{what}");
        }
    }

    #[test]
    fn nanoseconds_count_where_both_ends_keep_them() {
        let target = meta(Kind::File, 5, 100, 999_999_999);
        let seconds = Policy { modify_window_s: Some(0), ..archive() };
        assert_eq!(decide(&file(5, 100), Some(&target), &seconds), Action::Metadata);
        let newer = Policy { update: true, ..seconds };
        assert_eq!(decide(&file(5, 100), Some(&target), &newer), Action::Metadata);
        assert_eq!(
            super::decide(&file(5, 100), Some(&target), &archive(), Grain::S),
            Action::Metadata
        );
        assert_eq!(decide(&file(5, 100), Some(&target), &archive()), Action::Update);
        let nanoseconds = Policy { modify_window_s: Some(-1), ..archive() };
        let action = super::decide(&file(5, 100), Some(&target), &nanoseconds, Grain::S);
        assert_eq!(action, Action::Update);
        let newer = Policy { update: true, ..nanoseconds };
        assert_eq!(decide(&file(5, 100), Some(&target), &newer), Action::Skip(Reason::Newer));
    }

    /// The time of an upload is rounded down to a second: a file written in that second may be newer, so it is
    /// transferred again.
    #[test]
    fn a_source_of_the_second_of_its_upload_is_stale() {
        let upload = Policy { newer_only: true, ..archive() };
        let target = meta(Kind::File, 5, 100, 0);
        let at = |s, ns| decide(&meta(Kind::File, 5, s, ns), Some(&target), &upload);
        assert_eq!(at(100, 0), Action::Metadata);
        assert_eq!(at(100, 1), Action::Update);
        assert_eq!(at(99, 999_999_999), Action::Metadata);
    }

    const KINDS: [Kind; 7] = [
        Kind::File,
        Kind::Dir,
        Kind::Symlink,
        Kind::Fifo,
        Kind::Socket,
        Kind::CharDevice,
        Kind::BlockDevice,
    ];

    #[test]
    fn kinds() {
        let same: [Action; 7] = [
            Action::Metadata,
            Action::Metadata,
            Action::Compare,
            Action::Metadata,
            Action::Metadata,
            Action::Metadata,
            Action::Metadata,
        ];
        let bare: [Option<Reason>; 7] = [
            None,
            Some(Reason::Directory),
            Some(Reason::Symlink),
            Some(Reason::NonRegular),
            Some(Reason::NonRegular),
            Some(Reason::NonRegular),
            Some(Reason::NonRegular),
        ];
        for (from, (same, bare)) in KINDS.into_iter().zip(same.into_iter().zip(bare)) {
            let source = meta(from, 5, 100, 0);
            assert_eq!(decide(&source, None, &archive()), Action::Create, "{from:?}");
            let without = decide(&source, None, &Policy::default());
            assert_eq!(without, bare.map_or(Action::Create, Action::Skip), "{from:?}");
            for to in KINDS {
                let action = decide(&source, Some(&meta(to, 5, 100, 0)), &archive());
                let expected = if from == to { same } else { Action::Update };
                assert_eq!(action, expected, "{from:?} over {to:?}");
            }
        }
        let dirs = Policy { dirs: true, ..Policy::default() };
        assert_eq!(decide(&meta(Kind::Dir, 5, 100, 0), None, &dirs), Action::Create);
        let source = meta(Kind::CharDevice, 0, 100, 0);
        let other = Meta { rdev: 259, ..source };
        assert_eq!(decide(&source, Some(&other), &archive()), Action::Update, "another device");
    }

    prop_compose! {
        fn any_meta()(
            kind in 0..KINDS.len(), size in 0..4_u64, s in 0..4_i64, ns in 0..2_u32,
            mode in 0..0o10000_u32, uid in 0..2_u32, gid in 0..2_u32, rdev in 0..2_u64,
        ) -> Meta {
            Meta { mode, uid, gid, rdev, ..meta(KINDS[kind], size, s, ns) }
        }
    }

    /// Flags, window, largest and smallest size: shown on failure instead of the policy.
    type Options = (u16, Option<i64>, Option<u64>, Option<u64>);

    fn any_options() -> impl Strategy<Value = Options> {
        let size = || proptest::option::of(0..4_u64);
        (any::<u16>(), proptest::option::of(-1..3_i64), size(), size())
    }

    fn policy((bits, modify_window_s, max_size, min_size): Options) -> Policy {
        let is = |bit: u32| bits >> bit & 1 == 1;
        Policy {
            recurse: is(0),
            dirs: is(1),
            symlinks: if is(2) { Symlinks::Keep } else { Symlinks::Skip },
            devices: is(3),
            specials: is(4),
            update: is(5),
            update_same: is(6),
            checksum: is(7),
            size_only: is(8),
            ignore_times: is(9),
            existing: is(10),
            ignore_existing: is(11),
            modify_window_s,
            max_size,
            min_size,
            ..Policy::default()
        }
    }

    fn is_out(action: Action) -> bool {
        use Reason::{Directory, NonRegular, Symlink, TooLarge, TooSmall};
        matches!(action, Action::Skip(TooLarge | TooSmall | Symlink | NonRegular | Directory))
    }

    proptest! {
        #[test]
        fn missing_targets_are_created_or_skipped(source in any_meta(), options in any_options()) {
            let policy = policy(options);
            let action = decide(&source, None, &policy);
            let skipped = is_out(action) || action == Action::Skip(Reason::NotExisting);
            prop_assert!(action == Action::Create || skipped, "{action:?}");
            prop_assert_eq!(action == Action::Create, !skipped);
            prop_assert!(!(policy.existing && action == Action::Create));
        }

        #[test]
        fn skipped_entries_do_not_depend_on_the_target(
            source in any_meta(), target in any_meta(), options in any_options(),
        ) {
            let policy = policy(options);
            let (without, with) = (decide(&source, None, &policy), decide(&source, Some(&target), &policy));
            prop_assert_eq!(is_out(without), is_out(with));
            if is_out(with) {
                prop_assert_eq!(without, with);
            }
            // An existing target is neither created nor reported as missing.
            prop_assert!(with != Action::Create && with != Action::Skip(Reason::NotExisting));
        }

        #[test]
        fn owner_and_mode_decide_nothing(
            source in any_meta(), target in any_meta(), options in any_options(),
            mode in 0..0o10000_u32, id in any::<u32>(), seconds in any::<i64>(),
        ) {
            let policy = policy(options);
            let time = Time { s: seconds, ns: 0 };
            let changed = |meta: Meta| {
                Meta { mode, uid: id, gid: id, nlink: 9, ino: 77, dev: 5, atime: time, ctime: time, ..meta }
            };
            let action = decide(&source, Some(&target), &policy);
            prop_assert_eq!(decide(&changed(source), Some(&target), &policy), action);
            prop_assert_eq!(decide(&source, Some(&changed(target)), &policy), action);
        }

        #[test]
        fn same_size_and_time_is_never_copied_unless_asked(
            source in any_meta(), options in any_options(),
        ) {
            let policy = policy(options);
            let source = Meta { kind: Kind::File, ..source };
            let action = decide(&source, Some(&source), &policy);
            prop_assert!(action != Action::Update || policy.ignore_times && !policy.checksum);
            // A second run after a first one has nothing to do.
            if !policy.ignore_times && !policy.checksum {
                let done = action == Action::Metadata || matches!(action, Action::Skip(_));
                prop_assert!(done, "{action:?}");
            }
        }

        #[test]
        fn other_sizes_are_never_taken_for_the_same(
            source in any_meta(), target in any_meta(), options in any_options(),
        ) {
            let policy = policy(options);
            let file = |meta: Meta| Meta { kind: Kind::File, ..meta };
            let (source, target) = (file(source), file(target));
            if source.size != target.size {
                let action = decide(&source, Some(&target), &policy);
                prop_assert!(matches!(action, Action::Update | Action::Skip(_)), "{action:?}");
            }
        }

        #[test]
        fn an_existing_directory_is_entered_whatever_the_options(
            source in any_meta(), target in any_meta(), options in any_options(),
        ) {
            let policy = policy(options);
            let dir = |meta: Meta| Meta { kind: Kind::Dir, ..meta };
            let action = decide(&dir(source), Some(&dir(target)), &policy);
            let skipped = action == Action::Skip(Reason::Directory);
            prop_assert_eq!(skipped, !policy.recurse && !policy.dirs);
            prop_assert!(skipped || action == Action::Metadata, "{action:?}");
        }

        #[test]
        fn ignore_existing_never_touches_a_file(
            source in any_meta(), target in any_meta(), options in any_options(),
        ) {
            let policy = policy(options);
            let policy = Policy { ignore_existing: true, ..policy };
            if source.kind != Kind::Dir {
                let action = decide(&source, Some(&target), &policy);
                prop_assert!(matches!(action, Action::Skip(_)), "{action:?}");
            }
        }

        #[test]
        fn times_are_compared_alike_from_both_sides(
            a in any_meta(), b in any_meta(), window in proptest::option::of(-1..3_i64),
        ) {
            for grain in [Grain::NS, Grain::S, Grain::TWO_S] {
                let same = |a: &Meta, b: &Meta| same_time(a.mtime, b.mtime, window, grain);
                prop_assert_eq!(same(&a, &b), same(&b, &a));
                prop_assert!(same(&a, &a));
            }
        }

        #[test]
        fn a_newer_target_stays(source in any_meta(), target in any_meta(), options in any_options()) {
            let policy = policy(options);
            let policy = Policy { update: true, ..policy };
            let file = |meta: Meta| Meta { kind: Kind::File, ..meta };
            let (source, target) = (file(source), file(target));
            let clear = target.mtime.s > source.mtime.s + policy.modify_window_s.unwrap_or(0).max(0);
            if clear {
                let action = decide(&source, Some(&target), &policy);
                prop_assert!(matches!(action, Action::Skip(_)), "{action:?}");
            }
        }
    }
}
