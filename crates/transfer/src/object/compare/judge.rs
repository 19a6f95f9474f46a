//! What two entries of equal size need, from what is known of them; pure.

use crate::policy::{Policy, same_time};
use crate::unit::{Kind, Time};

/// What is known of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Whether this is a file of this machine.
    pub is_local: bool,
    /// When it was changed: of a file its mtime, of an object its LastModified.
    pub changed: Time,
    /// The mtime that travels with an object; of a file its own. `None` also where times are not
    /// kept.
    pub mtime: Option<Time>,
    /// Permission bits likewise.
    pub mode: Option<u32>,
    /// The type that an object says to be, where it says so.
    pub kind: Option<Kind>,
}

impl Known {
    /// The time that `--update` goes by.
    fn time(&self) -> Time {
        self.mtime.unwrap_or(self.changed)
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Nothing,
    /// The content is right; times or modes are set.
    Metadata,
    /// It is moved.
    Transfer,
    /// The contents decide: equal ones need what [`attributes`] says, others the transfer.
    Contents,
}

/// Whether the target's time says that it has the source's content.
///
/// Times that travel are compared as they are. An object without one was not written by us: then,
/// as everywhere in S3, it is stale when the source was changed after it was written. A local
/// target without a time to compare with has the source's LastModified.
fn same_times(source: &Known, target: &Known, policy: &Policy) -> bool {
    let window = policy.modify_window_s;
    match (source.mtime, target.mtime) {
        (Some(a), Some(b)) => same_time(a, b, window),
        _ if target.is_local => same_time(source.time(), target.time(), window),
        _ => source.changed <= target.changed || same_time(source.changed, target.changed, window),
    }
}

/// What two entries of equal size need.
pub(super) fn judge(source: &Known, target: &Known, policy: &Policy) -> Need {
    let (a, b) = (source.time(), target.time());
    let alike = same_time(a, b, policy.modify_window_s);
    if policy.update && (if alike { policy.update_same } else { b > a }) {
        return Need::Nothing;
    }
    // A symlink where a file should be, or the other way round; what says nothing is a file.
    let is_link = |known: &Known| known.kind == Some(Kind::Symlink);
    if is_link(source) != is_link(target) {
        return Need::Transfer;
    }
    if policy.checksum {
        return Need::Contents;
    }
    if policy.size_only {
        return attributes(source, target, policy);
    }
    if policy.ignore_times || !same_times(source, target, policy) {
        return Need::Transfer;
    }
    attributes(source, target, policy)
}

/// What is left to do where the contents are the same.
pub(super) fn attributes(source: &Known, target: &Known, policy: &Policy) -> Need {
    let time = match (source.mtime, target.mtime) {
        (Some(a), Some(b)) => !same_time(a, b, policy.modify_window_s),
        // A file whose object has no time of its own has its LastModified.
        (None, Some(b)) if target.is_local => !same_time(source.changed, b, policy.modify_window_s),
        _ => false,
    };
    let mode = source.mode.zip(target.mode).is_some_and(|(a, b)| a != b);
    if time || mode { Need::Metadata } else { Need::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Time {
        Time { s, ns: 0 }
    }

    fn file(s: i64) -> Known {
        let (mtime, mode) = (Some(at(s)), Some(0o644));
        Known { is_local: true, changed: at(s), mtime, mode, kind: Some(Kind::File) }
    }

    fn object(changed: i64, mtime: Option<i64>) -> Known {
        let mtime = mtime.map(at);
        Known { is_local: false, changed: at(changed), mtime, mode: None, kind: None }
    }

    fn policy() -> Policy {
        Policy { modify_window_s: 0, ..Policy::default() }
    }

    #[test]
    fn times_decide_where_nothing_else_is_asked() {
        use Need::{Nothing, Transfer};
        for (source, target, need) in [
            // Up: the time that travels counts, not when it was uploaded.
            (file(100), object(500, Some(100)), Nothing),
            (file(101), object(500, Some(100)), Transfer),
            (file(99), object(500, Some(100)), Transfer),
            // Up to an object without a time.
            (file(100), object(500, None), Nothing),
            (file(501), object(500, None), Transfer),
            (file(500), object(500, None), Nothing),
            // Down.
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
            assert_eq!(judge(&source, &target, &policy()), need, "{source:?} {target:?}");
        }
    }

    #[test]
    fn options_decide_first() {
        let (old, new) = (file(100), object(500, Some(200)));
        let update = Policy { update: true, ..policy() };
        assert_eq!(judge(&old, &new, &update), Need::Nothing);
        assert_eq!(judge(&file(300), &new, &update), Need::Transfer);
        let checksum = Policy { checksum: true, ..policy() };
        assert_eq!(judge(&old, &new, &checksum), Need::Contents);
        let sizes = Policy { size_only: true, ..policy() };
        assert_eq!(judge(&old, &new, &sizes), Need::Metadata);
        let again = Policy { ignore_times: true, ..policy() };
        assert_eq!(judge(&file(200), &new, &again), Need::Transfer);
        let both = Policy { ignore_times: true, checksum: true, ..policy() };
        assert_eq!(judge(&file(200), &new, &both), Need::Contents);
        let link = Known { kind: Some(Kind::Symlink), ..new };
        assert_eq!(judge(&file(200), &link, &policy()), Need::Transfer);
        let local = Known { kind: Some(Kind::Symlink), ..file(500) };
        assert_eq!(judge(&object(500, None), &local, &policy()), Need::Transfer);
        assert_eq!(
            judge(&link, &Known { mtime: Some(at(200)), ..local }, &policy()),
            Need::Nothing
        );
    }

    #[test]
    fn attributes_that_are_known_on_both_sides_count() {
        let with = |mode| Known { mode, ..object(500, Some(100)) };
        let p = policy();
        assert_eq!(attributes(&file(100), &with(Some(0o600)), &p), Need::Metadata);
        assert_eq!(attributes(&file(100), &with(None), &p), Need::Nothing);
        assert_eq!(attributes(&file(101), &with(Some(0o644)), &p), Need::Metadata);
        assert_eq!(attributes(&object(500, None), &file(100), &p), Need::Metadata);
        assert_eq!(attributes(&object(100, None), &file(100), &p), Need::Nothing);
    }
}
