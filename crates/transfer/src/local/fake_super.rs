//! `--fake-super`: attributes that only root may set are kept in extended attributes of ordinary files, in rsync's
//! format, and read from there.
//!
//! Devices, FIFOs, sockets and symlinks are regular files then; a symlink's file contains the path. Which side of a
//! copy is treated so is decided by the caller ([`Context`](super::context::Context)).

use super::attributes::{
    AttributeEntry, GROUP, GROUP_OBJ, MASK, OTHER, USER, USER_OBJ, entries, value_of,
};
use super::source::FarEntry;
use hakobu_core::unit::{Kind, Meta};
use hakobu_sys::{AsFd, BorrowedFd, OwnedFd, dir, errno, file, meta, xattr};
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::sync::Arc;

/// Attribute that holds mode, device number and owner.
const STAT: &CStr = c"user.rsync.%stat";

/// Maximum length of a symlink's text, in bytes (`PATH_MAX`).
const TEXT_BYTES_MAX: usize = 4096;

/// Returns the metadata of an entry, with `fakes` of what it stands for; `follow` resolves a (real) symlink.
///
/// # Errors
/// Those of examining it, and an attribute that is not in rsync's format.
pub(super) fn of(fakes: bool, (dir, name): (BorrowedFd<'_>, &CStr), follow: bool) -> Result<Meta> {
    let real = meta::of(dir, name, follow)?;
    match real.kind {
        _ if !fakes => Ok(real),
        Kind::File | Kind::Dir if follow => {
            let fd = file::open_read(dir, name, true)?;
            AttributeHandle::Open(fd.as_fd()).over(real)
        }
        Kind::File | Kind::Dir => AttributeHandle::named(dir, name)?.meta(),
        _ => Ok(real),
    }
}

/// As [`of`], for an open entry.
pub(super) fn of_fd(fakes: bool, fd: BorrowedFd<'_>) -> Result<Meta> {
    if fakes { AttributeHandle::Open(fd).meta() } else { meta::of_fd(fd) }
}

/// Returns the text of a symlink, which with `fakes` may be a regular file that stands for one.
///
/// # Errors
/// Those of reading it; ENAMETOOLONG.
pub(super) fn link_text(fakes: bool, (dir, name): (BorrowedFd<'_>, &CStr)) -> Result<CString> {
    match dir::read_link(dir, name) {
        Err(error) if fakes && errno::is(&error, errno::EINVAL) => {}
        other => return other,
    }
    let fd = file::open_read(dir, name, false)?;
    let mut text = vec![0; TEXT_BYTES_MAX];
    let mut filled = 0;
    while let Some(space) = text.get_mut(filled..).filter(|space| !space.is_empty()) {
        match file::read(fd.as_fd(), space)? {
            0 => break,
            got => filled += got,
        }
    }
    if filled == TEXT_BYTES_MAX {
        return Err(Error::from_raw_os_error(errno::ENAMETOOLONG));
    }
    text.truncate(filled);
    CString::new(text).map_err(|_| Error::from_raw_os_error(errno::EINVAL))
}

/// Creates the regular file that stands for a symlink with this text, or for a node.
///
/// # Errors
/// Those of creating and writing it; there is no file then.
pub(super) fn make(dir: BorrowedFd<'_>, name: &CStr, text: Option<&CStr>) -> Result<()> {
    let fd: OwnedFd = file::create_new(dir, name, 0o600)?;
    let Some(text) = text else { return Ok(()) };
    let written = file::write_all(fd.as_fd(), text.to_bytes())
        .and_then(|()| hakobu_sys::file::close(fd).map(drop));
    if written.is_err() {
        drop(dir::unlink(dir, name));
    }
    written
}

/// An entry whose attributes are read or set: open, or given by its name.
pub(super) enum AttributeHandle<'a> {
    /// An open file or directory.
    Open(BorrowedFd<'a>),
    /// A name in a directory.
    Named(xattr::Named<'a>),
    /// An entry of the other end, with what it has told.
    Told(Arc<FarEntry>),
}

impl<'a> AttributeHandle<'a> {
    /// Returns the entry of a name, without opening it for reading.
    pub(super) fn named(dir: BorrowedFd<'a>, name: &'a CStr) -> Result<AttributeHandle<'a>> {
        Ok(AttributeHandle::Named(xattr::Named::new(dir, name)?))
    }

    /// Returns the entry itself, not what it stands for.
    pub(super) fn real(&self) -> Result<Meta> {
        match self {
            AttributeHandle::Open(fd) => meta::of_fd(fd),
            AttributeHandle::Named(named) => named.meta(),
            AttributeHandle::Told(entry) => Ok(entry.meta),
        }
    }

    /// Returns what the entry stands for.
    pub(super) fn meta(&self) -> Result<Meta> {
        self.over(self.real()?)
    }

    /// As [`AttributeHandle::meta`], for an entry that is `real` itself.
    fn over(&self, real: Meta) -> Result<Meta> {
        if !matches!(real.kind, Kind::File | Kind::Dir) {
            return Ok(real);
        }
        match self.get(STAT, &mut Vec::new()) {
            Ok(value) => match Stat::decode(value) {
                Some(stat) => Ok(stat.over(&real)),
                None => {
                    Err(Error::other("its user.rsync.%stat is not in the format of --fake-super"))
                }
            },
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(real),
            Err(error) => Err(error),
        }
    }

    /// Makes a file or directory stand for `wanted`: of it kind, mode, device number and owner count. The mode of the
    /// file itself is left to the caller.
    pub(super) fn stand_for(&self, real: &Meta, wanted: Stat) -> Result<()> {
        if wanted.is_needed(real) {
            return self.set(STAT, wanted.encode().as_bytes());
        }
        match self.remove(STAT) {
            Err(error) if xattr::is_absent(&error) || xattr::is_unsupported(&error) => Ok(()),
            other => other,
        }
    }

    /// As [`xattr::list`].
    pub(super) fn list<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        match self {
            AttributeHandle::Open(fd) => xattr::list(*fd, buffer),
            AttributeHandle::Named(named) => named.list(buffer),
            AttributeHandle::Told(entry) => {
                buffer.clear();
                let names = entry.xattrs.iter().map(|(name, _)| name.as_bytes_with_nul());
                names.for_each(|name| buffer.extend_from_slice(name));
                Ok(buffer)
            }
        }
    }

    /// As [`xattr::get`].
    pub(super) fn get<'b>(&self, name: &CStr, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        match self {
            AttributeHandle::Open(fd) => xattr::get(*fd, name, buffer),
            AttributeHandle::Named(named) => named.get(name, buffer),
            AttributeHandle::Told(entry) => {
                let found = entry.xattrs.iter().find(|(own, _)| **own == *name);
                let (_, value) = found.ok_or_else(|| Error::from_raw_os_error(errno::ENODATA))?;
                buffer.clear();
                buffer.extend_from_slice(value);
                Ok(buffer)
            }
        }
    }

    /// As [`xattr::set`].
    pub(super) fn set(&self, name: &CStr, value: &[u8]) -> Result<()> {
        match self {
            AttributeHandle::Open(fd) => xattr::set(*fd, name, value),
            AttributeHandle::Named(named) => named.set(name, value),
            AttributeHandle::Told(_) => Err(Error::from_raw_os_error(errno::EREMOTE)),
        }
    }

    /// As [`xattr::remove`].
    pub(super) fn remove(&self, name: &CStr) -> Result<()> {
        match self {
            AttributeHandle::Open(fd) => xattr::remove(*fd, name),
            AttributeHandle::Named(named) => named.remove(name),
            AttributeHandle::Told(_) => Err(Error::from_raw_os_error(errno::EREMOTE)),
        }
    }
}

/// Returns the attributes that an entry shall stand for, and the permission bits that it gets itself.
pub(super) fn wanted(kind: Kind, mode: u32, rdev: u64, (uid, gid): (u32, u32)) -> (Stat, u32) {
    let rdev = if kind.is_device() { rdev } else { 0 };
    let stat = Stat { kind, mode, rdev, uid, gid };
    (stat, stat.real_mode())
}

// The value of `user.rsync.%stat`: the attributes that a file of `--fake-super` stands for. Pure functions.
//
// The text is `MODE MAJOR,MINOR UID:GID`: the mode in octal with the bits of the type, the rest decimal.

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
pub(super) struct Stat {
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

// Names of extended attributes on a side of `--fake-super`: those outside of `user.` lie under `user.rsync.`, ACLs
// in a format of rsync's, and the names that rsync keeps for itself are hidden.

const PREFIX: &[u8] = b"user.rsync.";
const ACCESS: &CStr = c"user.rsync.%aacl";
const DEFAULT: &CStr = c"user.rsync.%dacl";

/// How the names of a side are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum XattrNames {
    /// They are what they are.
    Plain,
    /// A source of `--fake-super`: names outside of `user.` may be there as themselves, too.
    Source,
    /// A target of `--fake-super`.
    Target,
}

impl XattrNames {
    /// Returns the name to the outside of an attribute that a file has; `None` if it is hidden.
    pub(super) fn shown(self, name: &CStr) -> Option<Cow<'_, CStr>> {
        let bytes = name.to_bytes();
        let below = bytes.strip_prefix(PREFIX);
        match (self, below) {
            (XattrNames::Plain, _) => Some(name.into()),
            (_, Some(_)) if name == ACCESS => Some(xattr::ACL_ACCESS.into()),
            (_, Some(_)) if name == DEFAULT => Some(xattr::ACL_DEFAULT.into()),
            (_, Some([b'%', ..] | [])) => None,
            (_, Some(below)) => CString::new(below).ok().map(Cow::Owned),
            _ if name == xattr::ACL_ACCESS || name == xattr::ACL_DEFAULT => None,
            (XattrNames::Target, _) if !bytes.starts_with(b"user.") => None,
            _ => Some(name.into()),
        }
    }

    /// Returns the name under which a file keeps an attribute.
    pub(super) fn kept(self, name: &CStr) -> Cow<'_, CStr> {
        if self == XattrNames::Plain {
            return name.into();
        }
        match name.to_bytes() {
            _ if name == xattr::ACL_ACCESS => ACCESS.into(),
            _ if name == xattr::ACL_DEFAULT => DEFAULT.into(),
            bytes if bytes.starts_with(b"user.") => name.into(),
            bytes => {
                let whole = [PREFIX, bytes].concat();
                CString::new(whole).map_or(name.into(), Cow::Owned)
            }
        }
    }

    /// Returns the value that a file keeps for `value`.
    pub(super) fn encode<'v>(self, name: &CStr, value: &'v [u8]) -> Cow<'v, [u8]> {
        let access = name == xattr::ACL_ACCESS;
        match self != XattrNames::Plain && (access || name == xattr::ACL_DEFAULT) {
            true => Cow::Owned(encode(value, access)),
            false => value.into(),
        }
    }

    /// Returns the value that a kept one stands for if it differs: that of an ACL. `mode`: permission bits of the
    /// file. `Err` if it is no ACL of rsync's.
    pub(super) fn decode(
        self,
        name: &CStr,
        kept: &[u8],
        mode: impl FnOnce() -> std::io::Result<u32>,
    ) -> std::io::Result<Option<Vec<u8>>> {
        let access = name == xattr::ACL_ACCESS;
        if self == XattrNames::Plain || !(access || name == xattr::ACL_DEFAULT) {
            return Ok(None);
        }
        let mode = if access { Some(mode()?) } else { None };
        let broken = || std::io::Error::other("its ACL is not in the format of --fake-super");
        decode(kept, mode).map(Some).ok_or_else(broken)
    }
}

// ACLs as `--fake-super` keeps them in `user.rsync.%aacl` and `user.rsync.%dacl`. Pure functions.
//
// A value is a list of 32-bit little-endian numbers: the permissions of owner, group, mask and others, [`ABSENT`]
// where there are none, then pairs of an ID and its permissions, with [`IS_USER`] for users. An access ACL leaves
// out what the mode tells: owner, others, and the group if it equals the mask.

const ABSENT: u32 = 0x80;
const IS_USER: u32 = 1 << 31;
const NO_ID: u32 = u32::MAX;

/// Turns the kernel's value of an ACL into rsync's. `access`: it is not a default ACL.
pub(super) fn encode(value: &[u8], access: bool) -> Vec<u8> {
    let all: Vec<AttributeEntry> = entries(value).collect();
    let of = |tag| all.iter().find(|entry| entry.tag == tag).map(|entry| u32::from(entry.bits));
    let (mask, group) = (of(MASK), of(GROUP_OBJ));
    let told = access && (mask.is_none() || mask == group);
    let head = [
        of(USER_OBJ).filter(|_| !access),
        group.filter(|_| !told),
        mask,
        of(OTHER).filter(|_| !access),
    ];
    let named = all.iter().filter(|entry| matches!(entry.tag, USER | GROUP)).flat_map(|entry| {
        let flag = if entry.tag == USER { IS_USER } else { 0 };
        [entry.id, u32::from(entry.bits) | flag]
    });
    let head = head.into_iter().map(|bits| bits.unwrap_or(ABSENT));
    head.chain(named).flat_map(u32::to_le_bytes).collect()
}

/// Turns rsync's value of an ACL into the kernel's. `mode`: permission bits that an access ACL leaves out. `None` if
/// it is not such a value.
pub(super) fn decode(value: &[u8], mode: Option<u32>) -> Option<Vec<u8>> {
    let (words, rest) = value.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let mut head = || words.next();
    let (owner, group, mask, other) = (head()?, head()?, head()?, head()?);
    let words: Vec<u32> = words.collect();
    let (named, odd) = words.as_chunks::<2>();
    if !rest.is_empty() || !odd.is_empty() {
        return None;
    }
    let of_mode = |shift: u32| mode.map_or(0, |mode| mode >> shift & 7);
    let or = |bits: u32, told: u32| if bits == ABSENT { told } else { bits };
    let mut all = vec![
        (USER_OBJ, or(owner, of_mode(6)), NO_ID),
        (GROUP_OBJ, or(group, or(mask, of_mode(3))), NO_ID),
        (OTHER, or(other, of_mode(0)), NO_ID),
    ];
    if mask != ABSENT || !named.is_empty() {
        all.push((MASK, or(mask, of_mode(3)), NO_ID));
    }
    for [id, bits] in named {
        let tag = if bits & IS_USER != 0 { USER } else { GROUP };
        all.push((tag, bits & !IS_USER, *id));
    }
    let mut all: Vec<AttributeEntry> = all
        .into_iter()
        .map(|(tag, bits, id)| Some(AttributeEntry { tag, bits: u16::try_from(bits).ok()?, id }))
        .collect::<Option<_>>()?;
    // The order that the kernel requires.
    all.sort_by_key(|entry| (entry.tag, entry.id));
    all.iter().all(|entry| entry.bits < 8).then(|| value_of(&all))
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

    #[test]
    fn names_are_translated_both_ways() {
        for (inside, outside) in [
            (c"user.a", c"user.a"),
            (c"user.rsync.trusted.a", c"trusted.a"),
            (c"user.rsync.%aacl", xattr::ACL_ACCESS),
            (c"user.rsync.%dacl", xattr::ACL_DEFAULT),
        ] {
            for names in [XattrNames::Source, XattrNames::Target] {
                assert_eq!(names.shown(inside).as_deref(), Some(outside));
                assert_eq!(&*names.kept(outside), inside);
            }
        }
        for names in [XattrNames::Source, XattrNames::Target] {
            assert_eq!(names.shown(c"user.rsync.%stat"), None);
        }
        assert_eq!(XattrNames::Source.shown(c"trusted.a").as_deref(), Some(c"trusted.a"));
        assert_eq!(XattrNames::Target.shown(c"trusted.a"), None);
        assert_eq!(XattrNames::Source.shown(xattr::ACL_ACCESS), None);
        assert_eq!(XattrNames::Plain.shown(c"user.rsync.a").as_deref(), Some(c"user.rsync.a"));
    }

    fn kernel(of: &[(u16, u16, u32)]) -> Vec<u8> {
        let all: Vec<AttributeEntry> = of
            .iter()
            .map(|(tag, bits, id)| AttributeEntry { tag: *tag, bits: *bits, id: *id })
            .collect();
        value_of(&all)
    }

    fn words(of: &[u32]) -> Vec<u8> {
        of.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn values_are_those_of_rsync() {
        let one =
            kernel(&[(1, 6, NO_ID), (2, 6, 1000), (4, 6, NO_ID), (16, 6, NO_ID), (32, 4, NO_ID)]);
        let stored = words(&[ABSENT, ABSENT, 6, ABSENT, 1000, 6 | IS_USER]);
        assert_eq!(encode(&one, true), stored);
        assert_eq!(decode(&stored, Some(0o664)), Some(one));
        let two =
            kernel(&[(1, 7, NO_ID), (4, 5, NO_ID), (8, 7, 9), (16, 7, NO_ID), (32, 5, NO_ID)]);
        let stored = words(&[7, 5, 7, 5, 9, 7]);
        assert_eq!(encode(&two, false), stored);
        assert_eq!(decode(&stored, None), Some(two));
        for bad in
            [&b""[..], b"abc", &words(&[1, 2, 3]), &words(&[1, 2, 3, 4, 5]), &words(&[9, 0, 0, 0])]
        {
            assert_eq!(decode(bad, None), None);
        }
    }

    proptest! {
        #[test]
        fn an_acl_survives(
            bits in prop::array::uniform4(0u16..8),
            users in prop::collection::btree_map(0u32..9, 0u16..8, 0..3),
            groups in prop::collection::btree_map(0u32..9, 0u16..8, 0..3),
            access in any::<bool>(),
        ) {
            let [owner, group, mask, other] = bits;
            let mut of = vec![(USER_OBJ, owner, NO_ID)];
            of.extend(users.iter().map(|(id, bits)| (USER, *bits, *id)));
            of.push((GROUP_OBJ, group, NO_ID));
            of.extend(groups.iter().map(|(id, bits)| (GROUP, *bits, *id)));
            of.push((MASK, mask, NO_ID));
            of.push((OTHER, other, NO_ID));
            let value = kernel(&of);
            let mode = u32::from(owner) << 6 | u32::from(mask) << 3 | u32::from(other);
            let stored = encode(&value, access);
            prop_assert_eq!(decode(&stored, access.then_some(mode)), Some(value));
        }

        #[test]
        fn no_value_is_too_strange(value in prop::collection::vec(any::<u8>(), 0..60), mode in 0u32..512) {
            let _ = decode(&value, Some(mode));
        }
    }
}
