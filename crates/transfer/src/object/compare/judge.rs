//! The decision about two entries of equal size, from the facts about them; pure.

use crate::policy::{Grain, Policy, is_newer, same_time};
use hakobu_core::unit::{Kind, Time};

/// The facts about one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Whether this is a local file.
    pub is_local: bool,
    /// Time of the last change: mtime of a file, LastModified of an object.
    pub changed: Time,
    /// mtime in an object's metadata, or of a file. `None` also if times are not kept.
    pub mtime: Option<Time>,
    /// Permission bits, from the same places.
    pub mode: Option<u32>,
    /// Owner and group, from the same places.
    pub owner: (Option<u32>, Option<u32>),
    /// The type in an object's metadata, if it has one.
    pub kind: Option<Kind>,
}

impl Known {
    /// Returns the time that `--update` compares.
    fn time(&self) -> Time {
        self.mtime.unwrap_or(self.changed)
    }
}

/// The work to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// The content is right; set times, mode or owner.
    Metadata,
    /// Transfer it.
    Transfer,
    /// Compare contents: if they are equal, [`attributes`] decides, else transfer.
    Contents,
}

/// Returns the granularity at which the times of two sides are compared: that of the files, and whole seconds for a
/// file that got the time of an upload. A change in the second of its own upload counts as later.
fn grain(source: &Known, target: &Known, files: Grain) -> Grain {
    match source.mtime {
        None if target.is_local => files.max(Grain::S),
        _ => files,
    }
}

/// Returns whether the target's time shows that it has the source's content.
///
/// Times in metadata are compared as they are. An object without one was not written by hakobu: then, as usual in S3,
/// it is stale if the source was changed after it was written. A local target without a time to compare with has the
/// source's LastModified.
fn same_times(source: &Known, target: &Known, policy: &Policy, grain: Grain) -> bool {
    let same = |a, b| same_time(a, b, policy.modify_window_s, grain);
    match (source.mtime, target.mtime) {
        (Some(a), Some(b)) => same(a, b),
        _ if target.is_local => same(source.time(), target.time()),
        _ => source.changed <= target.changed || same(source.changed, target.changed),
    }
}

/// Decides about two entries of equal size. `files` is the coarser granularity of the times of the sides that are
/// files.
pub(super) fn judge(source: &Known, target: &Known, policy: &Policy, files: Grain) -> Need {
    let grain = grain(source, target, files);
    let newer = is_newer(target.time(), source.time(), policy.modify_window_s, grain);
    if policy.update && newer.unwrap_or(policy.update_same) {
        return Need::Nothing;
    }
    // A symlink in place of a file, or the reverse; an unknown type means a file.
    let is_link = |known: &Known| known.kind == Some(Kind::Symlink);
    if is_link(source) != is_link(target) {
        return Need::Transfer;
    }
    if policy.checksum {
        return Need::Contents;
    }
    if policy.size_only {
        return attributes(source, target, policy, files);
    }
    if policy.ignore_times || !same_times(source, target, policy, grain) {
        return Need::Transfer;
    }
    attributes(source, target, policy, files)
}

/// Returns the remaining work if the contents are the same.
pub(super) fn attributes(source: &Known, target: &Known, policy: &Policy, files: Grain) -> Need {
    let grain = grain(source, target, files);
    let differ = |a, b| !same_time(a, b, policy.modify_window_s, grain);
    let time = match (source.mtime, target.mtime) {
        (Some(a), Some(b)) => differ(a, b),
        // A file whose object has no mtime gets its LastModified.
        (None, Some(b)) if target.is_local => differ(source.changed, b),
        _ => false,
    };
    let other = |pair: Option<(u32, u32)>| pair.is_some_and(|(a, b)| a != b);
    let mode = other(source.mode.zip(target.mode));
    let owner =
        other(source.owner.0.zip(target.owner.0)) || other(source.owner.1.zip(target.owner.1));
    if time || mode || owner { Need::Metadata } else { Need::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Time {
        Time { s, ns: 0 }
    }

    fn file(s: i64) -> Known {
        let (mtime, mode) = (Some(at(s)), Some(0o644));
        let kind = Some(Kind::File);
        Known { is_local: true, changed: at(s), mtime, mode, owner: (Some(0), Some(0)), kind }
    }

    fn object(changed: i64, mtime: Option<i64>) -> Known {
        let mtime = mtime.map(at);
        let owner = (None, None);
        Known { is_local: false, changed: at(changed), mtime, mode: None, owner, kind: None }
    }

    fn policy() -> Policy {
        Policy::default()
    }

    #[test]
    fn times_decide_where_nothing_else_is_asked() {
        use Need::{Nothing, Transfer};
        for (source, target, need) in [
            // Upload: the mtime in metadata counts, not the time of upload.
            (file(100), object(500, Some(100)), Nothing),
            (file(101), object(500, Some(100)), Transfer),
            (file(99), object(500, Some(100)), Transfer),
            // Upload over an object without an mtime.
            (file(100), object(500, None), Nothing),
            (file(501), object(500, None), Transfer),
            (file(500), object(500, None), Nothing),
            // Download.
            (object(500, Some(100)), file(100), Nothing),
            (object(500, Some(100)), file(500), Transfer),
            (object(500, None), file(500), Nothing),
            (object(500, None), file(600), Transfer),
            // From store to store.
            (object(500, Some(100)), object(600, Some(100)), Nothing),
            (object(500, Some(100)), object(600, Some(101)), Transfer),
            (object(500, None), object(600, None), Nothing),
            (object(700, None), object(600, None), Transfer),
            (object(500, Some(100)), object(600, None), Nothing),
            (object(700, None), object(600, Some(100)), Transfer),
        ] {
            assert_eq!(
                judge(&source, &target, &policy(), Grain::NS),
                need,
                "{source:?} {target:?}"
            );
        }
    }

    #[test]
    fn options_decide_first() {
        let (old, new) = (file(100), object(500, Some(200)));
        let update = Policy { update: true, ..policy() };
        assert_eq!(judge(&old, &new, &update, Grain::NS), Need::Nothing);
        assert_eq!(judge(&file(300), &new, &update, Grain::NS), Need::Transfer);
        let checksum = Policy { checksum: true, ..policy() };
        assert_eq!(judge(&old, &new, &checksum, Grain::NS), Need::Contents);
        let sizes = Policy { size_only: true, ..policy() };
        assert_eq!(judge(&old, &new, &sizes, Grain::NS), Need::Metadata);
        let again = Policy { ignore_times: true, ..policy() };
        assert_eq!(judge(&file(200), &new, &again, Grain::NS), Need::Transfer);
        let both = Policy { ignore_times: true, checksum: true, ..policy() };
        assert_eq!(judge(&file(200), &new, &both, Grain::NS), Need::Contents);
        let link = Known { kind: Some(Kind::Symlink), ..new };
        assert_eq!(judge(&file(200), &link, &policy(), Grain::NS), Need::Transfer);
        let local = Known { kind: Some(Kind::Symlink), ..file(500) };
        assert_eq!(judge(&object(500, None), &local, &policy(), Grain::NS), Need::Transfer);
        assert_eq!(
            judge(&link, &Known { mtime: Some(at(200)), ..local }, &policy(), Grain::NS),
            Need::Nothing
        );
    }

    #[test]
    fn attributes_that_are_known_on_both_sides_count() {
        let with = |mode| Known { mode, ..object(500, Some(100)) };
        let p = policy();
        assert_eq!(attributes(&file(100), &with(Some(0o600)), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&file(100), &with(None), &p, Grain::NS), Need::Nothing);
        assert_eq!(attributes(&file(101), &with(Some(0o644)), &p, Grain::NS), Need::Metadata);
        let owned = |uid, gid| Known { owner: (uid, gid), ..object(500, Some(100)) };
        assert_eq!(attributes(&owned(Some(1), None), &file(100), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&owned(None, Some(1)), &file(100), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&owned(Some(0), Some(0)), &file(100), &p, Grain::NS), Need::Nothing);
        assert_eq!(attributes(&owned(None, None), &file(100), &p, Grain::NS), Need::Nothing);
        assert_eq!(attributes(&object(500, None), &file(100), &p, Grain::NS), Need::Metadata);
        assert_eq!(attributes(&object(100, None), &file(100), &p, Grain::NS), Need::Nothing);
    }

    #[test]
    fn times_that_travel_count_to_the_granularity_of_the_file_system() {
        let late =
            |known: Known| Known { mtime: known.mtime.map(|at| Time { ns: 5, ..at }), ..known };
        let (file, kept) = (late(file(100)), object(500, Some(100)));
        assert_eq!(judge(&file, &kept, &policy(), Grain::NS), Need::Transfer);
        assert_eq!(judge(&kept, &file, &policy(), Grain::NS), Need::Transfer);
        assert_eq!(judge(&kept, &file, &policy(), Grain::S), Need::Nothing);
        // The time of an upload has whole seconds.
        let plain = Known { changed: Time { s: 100, ns: 7 }, ..object(100, None) };
        assert_eq!(judge(&plain, &file, &policy(), Grain::NS), Need::Nothing);
    }
}
