//! The value of `user.rsync.%stat`: the attributes that a file of `--fake-super` stands for. Pure functions.
//!
//! The text is `MODE MAJOR,MINOR UID:GID`: the mode in octal with the bits of the type, the rest decimal.

use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::meta;

/// Mask of the type in a mode.
const TYPE_BITS: u32 = 0o170_000;

/// Types and their bits in a mode (inode(7)).
const TYPES: [(Kind, u32); 7] = [
    (Kind::Fifo, 0o010_000),
    (Kind::CharDevice, 0o020_000),
    (Kind::Dir, 0o040_000),
    (Kind::BlockDevice, 0o060_000),
    (Kind::File, 0o100_000),
    (Kind::Symlink, 0o120_000),
    (Kind::Socket, 0o140_000),
];

/// Attributes that a file or directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::local) struct Stat {
    /// Type.
    pub kind: Kind,
    /// Permission bits, 0 to 0o7777.
    pub mode: u32,
    /// Device number; 0 for other types.
    pub rdev: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Stat {
    /// Returns the text of the attribute.
    pub(super) fn encode(self) -> String {
        let bits = TYPES.iter().find(|(kind, _)| *kind == self.kind).map_or(0, |(_, bits)| *bits);
        let (major, minor) = meta::device_numbers(self.rdev);
        format!("{:o} {major},{minor} {}:{}", bits | self.mode, self.uid, self.gid)
    }

    /// Reads the text of the attribute. `None` if it is not one.
    pub(super) fn decode(value: &[u8]) -> Option<Stat> {
        let mut parts = std::str::from_utf8(value).ok()?.split_ascii_whitespace();
        let (mode, device, owner) = (parts.next()?, parts.next()?, parts.next()?);
        let (major, minor) = device.split_once(',')?;
        let (uid, gid) = owner.split_once(':')?;
        let bits = u32::from_str_radix(mode, 8).ok()?;
        let (kind, _) = TYPES.iter().find(|(_, of)| *of == bits & TYPE_BITS)?;
        if parts.next().is_some() || bits & !(TYPE_BITS | 0o7777) != 0 {
            return None;
        }
        let rdev = match kind.is_device() {
            true => meta::device(major.parse().ok()?, minor.parse().ok()?),
            false => 0,
        };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        Some(Stat { kind: *kind, mode: bits & 0o7777, rdev, uid, gid })
    }

    /// Returns the permission bits of the file itself: no special bits, and its owner may read and write it.
    pub(super) fn real_mode(self) -> u32 {
        self.mode & 0o777 | if self.kind == Kind::Dir { 0o700 } else { 0o600 }
    }

    /// Returns whether a file that has [`Stat::real_mode`] does not show these attributes by itself.
    pub(super) fn is_needed(self, real: &Meta) -> bool {
        let owner = (self.uid, self.gid) != (real.uid, real.gid);
        owner || self.kind != real.kind || self.mode != self.real_mode()
    }

    /// Returns what `real`, a file or directory, stands for. A directory and a file stay what they are to the other.
    pub(super) fn over(self, real: &Meta) -> Meta {
        let is_dir = |kind| kind == Kind::Dir;
        let kind = if is_dir(self.kind) == is_dir(real.kind) { self.kind } else { real.kind };
        let Stat { mode, rdev, uid, gid, .. } = self;
        Meta { kind, mode, rdev, uid, gid, ..*real }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakobu_core::unit::Time;
    use proptest::prelude::*;

    fn stats() -> impl Strategy<Value = Stat> {
        let numbers = (0u32..4096, 0u32..1 << 20, any::<u32>(), any::<u32>());
        (0..TYPES.len(), 0u32..0o10000, numbers).prop_map(|(kind, mode, numbers)| {
            let (major, minor, uid, gid) = numbers;
            let kind = TYPES[kind].0;
            let rdev = if kind.is_device() { meta::device(major, minor) } else { 0 };
            Stat { kind, mode, rdev, uid, gid }
        })
    }

    proptest! {
        #[test]
        fn a_value_survives_its_text(stat in stats()) {
            prop_assert_eq!(Stat::decode(stat.encode().as_bytes()), Some(stat));
        }

        #[test]
        fn no_text_is_too_strange(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Stat::decode(&value);
        }

        #[test]
        fn what_is_not_needed_shows_by_itself(stat in stats(), uid in 0u32..3, gid in 0u32..3) {
            let kind = if stat.kind == Kind::Dir { Kind::Dir } else { Kind::File };
            let mut real = Meta::bare(kind, 0, Time::default());
            (real.mode, real.uid, real.gid) = (stat.real_mode(), uid, gid);
            let shown = stat.over(&real);
            let same = (real.kind, real.mode, real.uid, real.gid)
                == (shown.kind, shown.mode, shown.uid, shown.gid);
            prop_assert_eq!(same, !stat.is_needed(&real));
        }
    }

    #[test]
    fn texts_are_those_of_rsync() {
        let read = |text: &str| Stat::decode(text.as_bytes());
        let device = Stat {
            kind: Kind::CharDevice,
            mode: 0o644,
            rdev: meta::device(41, 67),
            uid: 5,
            gid: 6,
        };
        assert_eq!(read("20644 41,67 5:6"), Some(device));
        assert_eq!(device.encode(), "20644 41,67 5:6");
        for text in
            ["", "zzz", "100644 0,0 5", "644 0,0 1:1", "100644 0,0 1:1 1", "1100644 0,0 1:1"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
