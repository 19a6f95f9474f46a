//! POSIX ACLs in Linux's xattr format: a version, then entries of tag, permissions and ID, all little-endian
//! (linux/posix_acl_xattr.h).

/// Size of the version, in bytes.
const HEAD_BYTES: usize = 4;
/// The one version.
const VERSION: u32 = 2;
/// Size of an entry, in bytes.
const ENTRY_BYTES: usize = 8;

pub(super) const USER_OBJ: u16 = 0x01;
pub(super) const USER: u16 = 0x02;
pub(super) const GROUP_OBJ: u16 = 0x04;
pub(super) const GROUP: u16 = 0x08;
pub(super) const MASK: u16 = 0x10;
pub(super) const OTHER: u16 = 0x20;

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub tag: u16,
    pub bits: u16,
    pub id: u32,
}

/// Returns the entries of an ACL.
pub(super) fn entries(value: &[u8]) -> impl Iterator<Item = Entry> {
    let all = value.get(HEAD_BYTES..).unwrap_or_default();
    all.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
        let (tag, rest) = entry.split_first_chunk()?;
        let (bits, rest) = rest.split_first_chunk()?;
        let (id, _) = rest.split_first_chunk()?;
        let (tag, bits) = (u16::from_le_bytes(*tag), u16::from_le_bytes(*bits));
        Some(Entry { tag, bits, id: u32::from_le_bytes(*id) })
    })
}

/// Returns the ACL of `entries`, which are in the kernel's order.
pub(super) fn value_of(entries: &[Entry]) -> Vec<u8> {
    let head = VERSION.to_le_bytes().into_iter();
    let rest = entries.iter().flat_map(|entry| {
        let (tag, bits, id) =
            (entry.tag.to_le_bytes(), entry.bits.to_le_bytes(), entry.id.to_le_bytes());
        tag.into_iter().chain(bits).chain(id)
    });
    head.chain(rest).collect()
}

/// Returns the permission bits that a default ACL leaves to a new entry.
pub(super) fn mode_bits(value: &[u8]) -> u32 {
    let of = |tag| entries(value).find(|entry| entry.tag == tag).map(|entry| u32::from(entry.bits));
    let bits = |found: Option<u32>| found.unwrap_or(7) & 7;
    bits(of(USER_OBJ)) << 6 | bits(of(MASK).or_else(|| of(GROUP_OBJ))) << 3 | bits(of(OTHER))
}

/// Replaces the user and group IDs in an ACL. Entries stay in the order that the kernel requires.
pub(super) fn map_ids(value: &mut [u8], user: impl Fn(u32) -> u32, group: impl Fn(u32) -> u32) {
    let mut all: Vec<Entry> = entries(value).collect();
    for entry in &mut all {
        match entry.tag {
            USER => entry.id = user(entry.id),
            GROUP => entry.id = group(entry.id),
            _ => {}
        }
    }
    // IDs of the other tags have no meaning and are all equal.
    all.sort_by_key(|entry| (entry.tag, entry.id));
    value.iter_mut().zip(value_of(&all)).skip(HEAD_BYTES).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(of: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut value = 2u32.to_le_bytes().to_vec();
        for (tag, bits, id) in of {
            value.extend(tag.to_le_bytes());
            value.extend(bits.to_le_bytes());
            value.extend(id.to_le_bytes());
        }
        value
    }

    #[test]
    fn the_mask_stands_for_the_group() {
        let none = u32::MAX;
        assert_eq!(mode_bits(&acl(&[(1, 7, none), (4, 5, none), (32, 4, none)])), 0o754);
        let masked = [(1, 7, none), (2, 7, 5), (4, 5, none), (16, 6, none), (32, 0, none)];
        assert_eq!(mode_bits(&acl(&masked)), 0o760);
        assert_eq!(mode_bits(b""), 0o777);
    }

    #[test]
    fn numbers_become_others_in_order() {
        let none = u32::MAX;
        let mut value = acl(&[(1, 7, none), (2, 4, 5), (2, 6, 9), (4, 5, none), (8, 1, 5)]);
        map_ids(&mut value, |id| if id == 9 { 1 } else { id }, |id| id + 1);
        let expected = acl(&[(1, 7, none), (2, 6, 1), (2, 4, 5), (4, 5, none), (8, 1, 6)]);
        assert!(value == expected);
    }
}
