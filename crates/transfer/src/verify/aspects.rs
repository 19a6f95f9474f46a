//! Aspects in which two entries can differ, and the pure function that compares their metadata.

use crate::policy::filter::Filter;
use hakobu_core::unit::{Kind, Meta, Time};
use hakobu_s3::RequestCounts;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One aspect in which two entries can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Aspect {
    /// File, directory, symlink, ...; entries of different types are compared no further.
    Type,
    /// Bytes of a regular file.
    Size,
    /// Every byte of a regular file; read only if the sizes are equal.
    Content,
    /// Permission bits of anything but a symlink.
    Mode,
    Owner,
    Group,
    /// Modification time.
    Time,
    /// Text of a symlink.
    Link,
    /// Number of a device.
    Device,
    /// Groups of names that are the same file.
    HardLinks,
    /// POSIX access and default ACL.
    Acl,
    /// Extended attributes, except those that the system manages itself (`system.*`).
    Xattrs,
    /// Holes of a regular file, in units of 64 KiB.
    Holes,
}

impl Aspect {
    /// All of them, in the order of reports.
    pub const ALL: [Aspect; 13] = [
        Aspect::Type,
        Aspect::Size,
        Aspect::Content,
        Aspect::Mode,
        Aspect::Owner,
        Aspect::Group,
        Aspect::Time,
        Aspect::Link,
        Aspect::Device,
        Aspect::HardLinks,
        Aspect::Acl,
        Aspect::Xattrs,
        Aspect::Holes,
    ];

    /// Returns its name in text and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Aspect::Type => "type",
            Aspect::Size => "size",
            Aspect::Content => "content",
            Aspect::Mode => "mode",
            Aspect::Owner => "owner",
            Aspect::Group => "group",
            Aspect::Time => "mtime",
            Aspect::Link => "link",
            Aspect::Device => "device",
            Aspect::HardLinks => "hardlinks",
            Aspect::Acl => "acl",
            Aspect::Xattrs => "xattrs",
            Aspect::Holes => "holes",
        }
    }
}

/// A set of aspects.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Aspects(u16);

impl Aspects {
    /// The aspects that `verify` compares by default: those that `sync -a` keeps.
    pub const DEFAULT: Aspects = Aspects::NONE
        .with(Aspect::Type)
        .with(Aspect::Size)
        .with(Aspect::Content)
        .with(Aspect::Mode)
        .with(Aspect::Owner)
        .with(Aspect::Group)
        .with(Aspect::Time)
        .with(Aspect::Link)
        .with(Aspect::Device);

    /// The empty set.
    pub const NONE: Aspects = Aspects(0);

    /// Returns the set with one more.
    pub const fn with(self, aspect: Aspect) -> Aspects {
        Aspects(self.0 | 1 << aspect as u16)
    }

    /// Returns the set without one.
    pub const fn without(self, aspect: Aspect) -> Aspects {
        Aspects(self.0 & !(1 << aspect as u16))
    }

    /// Returns whether it is in the set.
    pub const fn has(self, aspect: Aspect) -> bool {
        self.0 & (1 << aspect as u16) != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns an iterator over the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Aspect> {
        Aspect::ALL.into_iter().filter(move |&aspect| self.has(aspect))
    }
}

impl fmt::Debug for Aspects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Tolerance of times, and the entries whose times are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Times {
    /// Tolerance in whole seconds; without it nanoseconds are compared.
    pub window_s: Option<u64>,
    /// Times of directories are ignored.
    pub omit_dirs: bool,
    /// Times of symlinks are ignored.
    pub omit_links: bool,
}

impl Times {
    fn differ(self, kind: Kind, a: Time, b: Time) -> bool {
        if (kind == Kind::Dir && self.omit_dirs) || (kind == Kind::Symlink && self.omit_links) {
            return false;
        }
        match self.window_s {
            None => a != b,
            Some(window) => a.s.abs_diff(b.s) > window,
        }
    }
}

/// Returns the `wanted` aspects in which two entries differ by their metadata; contents, link texts, attributes,
/// holes and link groups are not included.
pub fn differences(a: &Meta, b: &Meta, wanted: Aspects, times: Times) -> Aspects {
    if a.kind != b.kind {
        return Aspects::NONE.with(Aspect::Type);
    }
    let found = [
        (Aspect::Size, a.kind == Kind::File && a.size != b.size),
        (Aspect::Mode, a.kind != Kind::Symlink && a.mode != b.mode),
        (Aspect::Owner, a.uid != b.uid),
        (Aspect::Group, a.gid != b.gid),
        (Aspect::Time, times.differ(a.kind, a.mtime, b.mtime)),
        (Aspect::Device, a.kind.is_device() && a.rdev != b.rdev),
    ];
    let mut set = Aspects::NONE;
    for (aspect, differs) in found {
        if differs && wanted.has(aspect) {
            set = set.with(aspect);
        }
    }
    set
}

// Types of a comparison: its parameters, findings and outcome.

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct VerifySpec {
    /// The first tree, as typed.
    pub source: PathBuf,
    /// The second tree, as typed.
    pub target: PathBuf,
    /// Aspects to compare.
    pub aspects: Aspects,
    /// Tolerance of times, and the kinds of entries whose times are compared.
    pub times: Times,
    /// Entries that only the target has are not differences.
    pub one_way: bool,
    /// Entries that it hides in the source or protects in the target are not compared; the paths that it receives are
    /// relative to the two trees.
    pub filter: Option<Arc<Filter>>,
    /// Maximum number of open directories of both trees together.
    pub open_dirs_max: usize,
}

/// The difference of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Only the source has it (with everything below, if it is a directory).
    Missing,
    /// Only the target has it (with everything below).
    Extra,
    /// Both have it, and it differs in these aspects.
    Differs(Aspects),
}

#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// Path below the two trees; empty for the trees themselves.
    pub path: &'a [u8],
    pub finding: Finding,
    /// The entry in the source.
    pub source: Option<&'a Meta>,
    /// The entry in the target.
    pub target: Option<&'a Meta>,
    /// Offset of the first byte found to differ, for contents.
    pub offset: Option<u64>,
}

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyCounts {
    /// Pairs of regular files compared.
    pub files: u64,
    /// Pairs of directories compared.
    pub dirs: u64,
    /// Pairs of other entries.
    pub others: u64,
    /// Bytes of content known to be equal or read up to the first difference.
    pub bytes: u64,
    pub differences: u64,
    /// Names that only the source has.
    pub missing: u64,
    /// Names that only the target has.
    pub extra: u64,
    /// Names that differ in each aspect, in the order of [`Aspect::ALL`].
    pub by_aspect: [u64; Aspect::ALL.len()],
    /// Names that could not be compared.
    pub failed: u64,
}

impl VerifyCounts {
    /// Returns the number of names that differ in one aspect.
    pub fn of(&self, aspect: Aspect) -> u64 {
        self.by_aspect.get(aspect as usize).copied().unwrap_or(0)
    }

    /// Counts a difference.
    pub(super) fn note(&mut self, finding: Finding) {
        self.differences += 1;
        match finding {
            Finding::Missing => self.missing += 1,
            Finding::Extra => self.extra += 1,
            Finding::Differs(set) => {
                let aspects = Aspect::ALL.into_iter().zip(&mut self.by_aspect);
                aspects.for_each(|(aspect, count)| *count += u64::from(set.has(aspect)));
            }
        }
    }

    pub(super) fn add(&mut self, other: &VerifyCounts) {
        let VerifyCounts {
            files,
            dirs,
            others,
            bytes,
            differences,
            missing,
            extra,
            by_aspect,
            failed,
        } = other;
        self.files += files;
        self.dirs += dirs;
        self.others += others;
        self.bytes += bytes;
        self.differences += differences;
        self.missing += missing;
        self.extra += extra;
        self.failed += failed;
        for (sum, more) in self.by_aspect.iter_mut().zip(by_aspect) {
            *sum += more;
        }
    }
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyOutcome {
    /// The findings.
    pub counts: VerifyCounts,
    /// Wall time.
    pub took: Duration,
    /// Number of workers at the end.
    pub jobs: usize,
    /// Requests to the stores of both sides; none between local paths.
    pub requests: RequestCounts,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(kind: Kind) -> Meta {
        Meta {
            mode: 0o644,
            uid: 1,
            gid: 2,
            dev: 3,
            ino: 4,
            rdev: 5,
            atime: Time { s: 1, ns: 1 },
            ctime: Time { s: 2, ns: 2 },
            ..Meta::bare(kind, 10, Time { s: 100, ns: 7 })
        }
    }

    fn found(a: &Meta, b: &Meta, wanted: Aspects, times: Times) -> Vec<&'static str> {
        differences(a, b, wanted, times).iter().map(Aspect::word).collect()
    }

    #[test]
    fn uncopyable_attributes_are_ignored() {
        let a = meta(Kind::File);
        let other = Time { s: 9, ns: 9 };
        let b = Meta { dev: 8, ino: 9, blocks: 16, nlink: 4, atime: other, ctime: other, ..a };
        assert_eq!(differences(&a, &b, Aspects::DEFAULT, Times::default()), Aspects::NONE);
    }

    #[test]
    fn every_wanted_respect_is_told_and_no_other() {
        let a = meta(Kind::File);
        let time = Time { s: 101, ns: 7 };
        let b = Meta { mode: 0o600, size: 11, uid: 8, gid: 9, mtime: time, rdev: 1, ..a };
        let all = Aspects::DEFAULT;
        assert_eq!(
            found(&a, &b, all, Times::default()),
            ["size", "mode", "owner", "group", "mtime"]
        );
        for aspect in all.iter() {
            let less = all.without(aspect);
            assert!(!differences(&a, &b, less, Times::default()).has(aspect));
        }
        assert!(differences(&a, &b, Aspects::NONE, Times::default()).is_empty());
    }

    #[test]
    fn another_type_hides_everything_else() {
        let a = meta(Kind::File);
        let b = Meta { kind: Kind::Dir, mode: 0o755, ..a };
        assert_eq!(found(&a, &b, Aspects::DEFAULT, Times::default()), ["type"]);
    }

    #[test]
    fn respects_belong_to_types() {
        let link = meta(Kind::Symlink);
        let other = Meta { mode: 0o777, size: 11, rdev: 6, ..link };
        assert!(differences(&link, &other, Aspects::DEFAULT, Times::default()).is_empty());
        let device = meta(Kind::CharDevice);
        let other = Meta { rdev: 6, size: 11, ..device };
        assert_eq!(found(&device, &other, Aspects::DEFAULT, Times::default()), ["device"]);
    }

    #[test]
    fn times_have_a_window_and_exceptions() {
        let a = meta(Kind::Dir);
        let at = |s, ns| Meta { mtime: Time { s, ns }, ..a };
        let differ = |b: &Meta, times| !differences(&a, b, Aspects::DEFAULT, times).is_empty();
        let window = |s| Times { window_s: Some(s), ..Times::default() };
        assert!(differ(&at(100, 8), Times::default()));
        assert!(!differ(&at(100, 8), window(0)));
        assert!(!differ(&at(98, 0), window(2)));
        assert!(differ(&at(103, 0), window(2)));
        assert!(!differ(&at(0, 0), Times { omit_dirs: true, ..Times::default() }));
        assert!(differ(&at(0, 0), Times { omit_links: true, ..Times::default() }));
    }
}
