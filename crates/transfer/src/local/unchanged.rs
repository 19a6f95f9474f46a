//! The short test for most entries of a repeated run: regular files whose targets agree in all that the options may
//! ask for. `decide` and `attributes` come to the same result in many more steps.

use super::engine::Context;
use super::report::Reports;
use crate::policy::Policy;
use hakobu_core::unit::{Kind, Meta};

/// See the module. Evaluates the options once for a run.
pub(super) struct Unchanged {
    /// Files that agree in type, size, modification time, mode, owner and group need nothing.
    suffices: bool,
    /// ... except those with several names.
    only_single: bool,
    /// ... except those of other users or groups, which are counted because this user may not set them.
    only_own: Option<(u32, u32)>,
}

impl Unchanged {
    pub(super) fn new(context: &Context<'_>, reports: &Reports<'_>) -> Unchanged {
        let owner = (context.euid, context.egid);
        Unchanged {
            suffices: suffices(context.policy) && !reports.items_unchanged,
            only_single: context.policy.hard_links,
            only_own: (!context.is_root()).then_some(owner),
        }
    }

    /// Returns whether nothing has to be done to a file, with its metadata on both sides. The two must not be the same
    /// file.
    pub(super) fn holds(&self, source: &Meta, target: &Meta) -> bool {
        self.suffices
            && source.kind == Kind::File
            && target.kind == Kind::File
            && source.size == target.size
            && source.mtime == target.mtime
            && source.mode == target.mode
            && (source.uid, source.gid) == (target.uid, target.gid)
            && (source.nlink == 1 || !self.only_single)
            && self.only_own.is_none_or(|own| own == (source.uid, source.gid))
    }
}

/// Returns whether the options neither compare more than type, size, modification time, mode, owner and group, nor
/// want any of these to be different from the source's, nor have a consequence for a file that is up to date.
fn suffices(policy: &Policy) -> bool {
    let preserve = policy.preserve;
    let compares_more = policy.checksum || preserve.acls || preserve.xattrs || preserve.file_atimes;
    let wants_other =
        policy.ignore_times || policy.chmod.is_some() || policy.maps_ids() || policy.cp_targets;
    let skips_otherwise = policy.update
        || policy.ignore_existing
        || policy.max_size.or(policy.min_size).is_some()
        || policy.ask.is_some();
    let has_consequence = policy.remove_source_files
        || policy.remove_source_dirs
        || !policy.basis_dirs.is_empty()
        || policy.fake.source
        || policy.fake.target;
    !(compares_more || wants_other || skips_otherwise || has_consequence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::attributes::Attributes;
    use crate::local::engine::{Pass, TargetMode};
    use crate::local::guard::Guard;
    use crate::local::source::SourceDir;
    use crate::policy::{Action, ChmodRules, Grain, Preserve, Symlinks, decide};
    use hakobu_core::control::Control;
    use hakobu_core::unit::Time;
    use hakobu_sys::dir;
    use proptest::prelude::*;
    use std::path::PathBuf;
    use std::sync::LazyLock;

    /// Options of `-a` with others by the bits of a number.
    fn policy(bits: u32) -> Policy {
        let on = |bit: u32| bits >> bit & 1 == 1;
        let mut policy = Policy {
            recurse: true,
            symlinks: Symlinks::Keep,
            devices: true,
            specials: true,
            preserve: Preserve {
                mode: !on(0),
                owner: !on(1),
                group: !on(2),
                times: !on(3),
                owner_explicit: on(4),
                executability: on(5),
                file_atimes: on(6),
                ..Preserve::default()
            },
            hard_links: on(7),
            checksum: on(8),
            ignore_times: on(9),
            size_only: on(10),
            newer_only: on(11),
            update: on(12),
            update_same: on(13),
            existing: on(14),
            ignore_existing: on(15),
            cp_targets: on(16),
            remove_source_dirs: on(17),
            as_user: on(18),
            ..Policy::default()
        };
        policy.max_size = on(19).then_some(1);
        policy.min_size = on(20).then_some(1);
        policy.modify_window_s = on(21).then_some(i64::from(bits >> 30) - 1);
        policy.chown_uid = on(22).then_some(2);
        policy.chown_gid = on(23).then_some(2);
        policy.chmod = on(24).then(|| {
            let mut rules = ChmodRules::default();
            rules.add("g-w,o=", 0).unwrap();
            rules
        });
        if on(25) {
            policy.users.add(0..=1, 2);
        }
        if on(26) {
            policy.groups.add(0..=1, 2);
        }
        policy
    }

    /// Few values of each kind, so that files often agree.
    fn files() -> impl Strategy<Value = Meta> {
        let kinds = prop_oneof![4 => Just(Kind::File), 1 => Just(Kind::Symlink)];
        let modes = prop_oneof![Just(0o644), Just(0o4755), Just(0o600)];
        (kinds, 0u64..3, 0i64..2, 0u32..2, modes, (0u32..2, 0u32..2), 1u64..3).prop_map(
            |(kind, size, s, ns, mode, (uid, gid), nlink)| {
                let meta = Meta::bare(kind, size, Time { s, ns });
                let atime = Time { s: s + 7, ns: 0 };
                Meta { mode, uid, gid, nlink, atime, ..meta }
            },
        )
    }

    /// A file and another one, which is often the same but for one thing.
    fn pairs() -> impl Strategy<Value = (Meta, Meta)> {
        (files(), files(), 0u32..12).prop_map(|(source, other, which)| {
            let mut target = Meta { ino: 1, atime: other.atime, ..source };
            match which {
                0 => target = Meta { ino: 1, ..other },
                1 => target.size = other.size,
                2 => target.mtime = other.mtime,
                3 => target.mode = other.mode,
                4 => target.uid = other.uid,
                5 => target.gid = other.gid,
                6 => target.nlink = other.nlink,
                _ => {}
            }
            (source, target)
        })
    }

    fn short<'a>(policy: &'a Policy, control: &'a Control, euid: u32) -> (Context<'a>, Unchanged) {
        static GUARD: LazyLock<Guard> = LazyLock::new(Guard::default);
        let (pass, mode, guard) = (Pass::Transfer, TargetMode::Real, &*GUARD);
        let (chosen, range, umask, egid) = (None, None, 0, euid);
        let context =
            Context { policy, control, guard, pass, mode, chosen, range, umask, euid, egid };
        let short = Unchanged {
            suffices: suffices(policy),
            only_single: policy.hard_links,
            only_own: (!context.is_root()).then_some((euid, euid)),
        };
        (context, short)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Where the short test says that nothing has to be done, the long way finds nothing either.
        #[test]
        fn the_long_way_agrees(
            set in proptest::collection::vec(0u32..27, 0..4),
            window in 0u32..4,
            (source, target) in pairs(),
            euid in 0u32..2,
        ) {
            let policy = policy(set.iter().fold(window << 30, |bits, bit| bits | 1 << bit));
            let control = Control::default();
            let (context, short) = short(&policy, &control, euid);
            if !short.holds(&source, &target) {
                return Ok(());
            }
            prop_assert_eq!(decide(&source, Some(&target), &policy, Grain::NS), Action::Metadata);
            prop_assert!(!policy.hard_links || source.nlink == 1);
            let mut attributes = Attributes::new(context);
            let want = attributes.want(&source, Some(&target), None);
            let nowhere = (dir::cwd(), c"");
            let change = attributes.changes(((SourceDir::Here(nowhere.0), nowhere.1), nowhere), &target, &want, Grain::NS).unwrap();
            prop_assert!(!change.any(), "{:?} {:?}", change, want);
            prop_assert!(!attributes.count_unprivileged(&source, &want));
            prop_assert_eq!(attributes.take_unprivileged(), 0);
        }
    }

    #[test]
    fn equal_files_of_plain_runs_are_found_and_others_are_not() {
        let control = Control::default();
        let file = Meta { mode: 0o644, ..Meta::bare(Kind::File, 5, Time { s: 9, ns: 9 }) };
        let holds = |policy: &Policy, source: &Meta, target: &Meta, euid| {
            short(policy, &control, euid).1.holds(source, target)
        };
        let plain = policy(0);
        assert!(holds(&plain, &file, &file, 0));
        // Another user counts the owners that it may not set.
        assert!(!holds(&plain, &file, &file, 1));
        let own = Meta { uid: 1, gid: 1, ..file };
        assert!(holds(&plain, &own, &own, 1));
        for other in [
            Meta { kind: Kind::Symlink, ..file },
            Meta { size: 6, ..file },
            Meta { mtime: Time { s: 9, ns: 8 }, ..file },
            Meta { mode: 0o600, ..file },
            Meta { uid: 1, ..file },
            Meta { gid: 1, ..file },
        ] {
            assert!(
                !holds(&plain, &file, &other, 0) && !holds(&plain, &other, &file, 0),
                "{other:?}"
            );
        }
        assert!(!holds(&plain, &Meta { kind: Kind::Symlink, ..file }, &file, 0));
        // -H: only files with one name.
        let linked = Policy { hard_links: true, ..plain.clone() };
        assert!(holds(&linked, &file, &file, 0));
        assert!(!holds(&linked, &Meta { nlink: 2, ..file }, &file, 0));
        for bit in [6, 8, 9, 12, 15, 16, 17, 19, 20, 22, 23, 24, 25, 26] {
            assert!(!holds(&policy(1 << bit), &file, &file, 0), "{bit}");
        }
        let preserve = plain.preserve;
        for asked in [
            Policy { preserve: Preserve { acls: true, ..preserve }, ..plain.clone() },
            Policy { preserve: Preserve { xattrs: true, ..preserve }, ..plain.clone() },
            Policy { remove_source_files: true, ..plain.clone() },
            Policy { basis_dirs: vec![PathBuf::from("b")], ..plain.clone() },
            Policy { ask: Some(std::sync::Arc::new(|_| true)), ..plain.clone() },
            Policy {
                fake: crate::policy::FakeSides { source: true, target: false },
                ..plain.clone()
            },
            Policy {
                fake: crate::policy::FakeSides { source: false, target: true },
                ..plain.clone()
            },
        ] {
            assert!(!holds(&asked, &file, &file, 0));
        }
    }
}
